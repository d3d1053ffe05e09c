"""The example project with the plugin on: its own site, and real sites where they are at hand."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tarfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"


def read_lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def project(tmp_path):
    """A copy of the example project: a crawl leaves its store there."""
    ignored = shutil.ignore_patterns(".scrapy", "__pycache__")
    return shutil.copytree(ROOT / "example_project", tmp_path / "project", ignore=ignored)


def scrapy(project, *arguments):
    done = subprocess.run(
        [sys.executable, "-m", "scrapy", *arguments],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    complaints = re.findall(r"^.* (?:WARNING|ERROR|CRITICAL): .*$", done.stderr, re.MULTILINE)
    # Of a site that has each article in up to eight forms, an operator is to hear.
    others = [line for line in complaints if "(simdup/alert/duplicates)" not in line]
    assert not others, done.stderr[-3000:]
    assert len(complaints) <= 1
    return done


@pytest.mark.parametrize("action", ["drop", "tag"])
def test_the_demo_finds_its_duplicates_and_drops_nothing_else(project, action):
    done = scrapy(project, "crawl", "demo", "-s", f"SIMDUP_ACTION={action}", "-O", "items.jsonl")
    last = done.stdout.splitlines()[-1]
    found, pages, falsely = map(
        int,
        re.fullmatch(r"found (\d+) of (\d+) duplicates, .*falsely dropped (\d+)", last).groups(),
    )
    assert pages == 132
    assert found >= 120, done.stdout
    assert falsely == 0, done.stdout
    items = read_lines(project / "items.jsonl")
    tagged = [item for item in items if item["simdup"]]
    assert len(tagged) == (found if action == "tag" else 0)
    assert all(item["simdup"]["duplicate_of"] for item in tagged)


def test_the_site_spider_says_what_it_needs(project):
    done = subprocess.run(
        [sys.executable, "-m", "scrapy", "crawl", "site"],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "say which site: scrapy crawl site -a url=https://example.org/" in done.stderr


@pytest.fixture
def served(tmp_path):
    """Serve a folder of an evaluation set; skip where the sets are not."""
    servers = []

    def serve(name, folder):
        pack = DATA / f"{name}.tar.xz"
        if not pack.exists():
            pytest.skip(f"evaluation set {name} is not beside this repository")
        with tarfile.open(pack) as tar:
            tar.extractall(tmp_path / "data", filter="data")
        quiet = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
        handler = partial(quiet, directory=str(tmp_path / "data" / name / folder))
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        servers.append(server)
        Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}/"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("name", "folder"), [("phpunit-manual", "site"), ("wuchong-blog", "site/20241218")]
)
def test_a_real_site_twice_over_one_store(project, served, name, folder):
    url = served(name, folder)
    delivered, dropped = [], []
    for run in ("first", "second"):
        log = f"SIMDUP_LOG={run}.jsonl"
        scrapy(project, "crawl", "site", "-a", f"url={url}", "-s", log, "-O", f"{run}-items.jsonl")
        lines = read_lines(project / f"{run}.jsonl")
        dropped.append({line["url"]: line for line in lines if line["kind"] != "near_miss"})
        delivered.append({item["url"] for item in read_lines(project / f"{run}-items.jsonl")})
    assert len(delivered[0]) > 60
    for line in dropped[0].values():
        assert line["duplicate_of"] in delivered[0], "every drop names a page that arrived"
        assert line["reason"] in {"body", "text", "simhash"}
    assert delivered[1] == delivered[0]
    assert dropped[1].keys() == dropped[0].keys()
