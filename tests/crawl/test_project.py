"""A Scrapy project from its command line: default places, other commands, settings that are wrong."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from crawl_site import SETTINGS, Site, article, python, read_records

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

SPIDERS = """
from scrapy import Request, Spider

class Base(Spider):
    async def start(self):
        for path in ("/a", "/a-copy"):
            yield Request({root!r} + path)

    def parse(self, response):
        '''Has a contract.

        @url {root}/a
        @returns items 1 1
        '''
        yield {{"url": response.url}}

class Plain(Base):
    name = "plain"

class Slash(Base):
    name = "../100%(up)s/odd name"

class Dots(Base):
    name = ".."
"""


def make_project(folder: Path, root: str, settings: dict[str, Any]) -> Path:
    package = folder / "proj"
    package.mkdir(parents=True)
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = proj.settings\n", "utf-8")
    (package / "__init__.py").write_text("", "utf-8")
    (package / "spiders.py").write_text(SPIDERS.format(root=root), "utf-8")
    settings = {**SETTINGS, "SPIDER_MODULES": ["proj.spiders"], "LOG_LEVEL": "INFO", **settings}
    lines = "".join(f"{name} = {value!r}\n" for name, value in settings.items())
    (package / "settings.py").write_text(lines, "utf-8")
    return folder


def scrapy(
    project: Path, *arguments: str, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    return python("-m", "scrapy", *arguments, cwd=cwd or project)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with Site({"/a": article(1), "/a-copy": article(1)}) as running:
        yield running


@pytest.fixture(scope="module")
def bad(
    site: Site, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[subprocess.CompletedProcess[str], Path]]:
    """Crawls that must not start, by what is wrong with them."""
    folder = tmp_path_factory.mktemp("bad")
    project = make_project(folder / "project", site.root, {"SIMDUP_STORE": str(folder / "store")})
    (folder / "file").write_text("a file", "utf-8")
    seeded = scrapy(project, "crawl", "plain", "-s", "SIMDUP_STORE=seeded")
    assert seeded.returncode == 0, seeded.stderr
    damaged = project / "damaged"
    damaged.mkdir()
    (damaged / "data.mdb").write_bytes(b"not a database" * 1000)
    wrong = {
        "unknown setting": ["SIMDUP_MAXDISTANCE=3"],
        "action": ["SIMDUP_ACTION=delete"],
        "number": ["SIMDUP_MAX_DISTANCE=abc"],
        "store is a file": [f"SIMDUP_STORE={folder / 'file'}"],
        "store is damaged": ["SIMDUP_STORE=damaged"],
        "other configuration": ["SIMDUP_STORE=seeded", "SIMDUP_SEED=1"],
        "log": [f"SIMDUP_LOG={folder / 'file' / 'log.jsonl'}"],
        "extractor": ["SIMDUP_EXTRACTOR=no.such.extractor"],
    }

    def run(settings: list[str]) -> subprocess.CompletedProcess[str]:
        options = [part for setting in settings for part in ("-s", setting)]
        return scrapy(project, "crawl", "plain", *options)

    before = len(site.visits)
    with ThreadPoolExecutor(2) as pool:
        results = dict(zip(wrong, pool.map(run, wrong.values()), strict=True))
    results = {name: (result, folder) for name, result in results.items()}
    assert len(site.visits) == before, "a crawl that must not start has started"
    return results


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("unknown setting", "unknown setting SIMDUP_MAXDISTANCE: did you mean SIMDUP_MAX_DISTANCE?"),
        ("action", "SIMDUP_ACTION = 'delete': must be one of drop, drop_items, tag"),
        ("number", "SIMDUP_MAX_DISTANCE = 'abc': must be a whole number from 0 to 11"),
        ("store is a file", "SIMDUP_STORE: store '{folder}/file' is a file; a store is a folder"),
        ("store is damaged", "does not hold a readable store"),
        ("other configuration", "was made with another configuration (seed: 1 here, 0 in the store)"),
        ("log", "SIMDUP_LOG: '{folder}/file/log.jsonl' cannot be written: Not a directory; choose"),
        ("extractor", "SIMDUP_EXTRACTOR = 'no.such.extractor'"),
    ],
)
def test_a_setting_that_is_wrong_stops_the_crawl_before_it_starts(
    bad: dict[str, tuple[subprocess.CompletedProcess[str], Path]], name: str, message: str
) -> None:
    done, folder = bad[name]
    assert done.returncode == 1
    assert message.format(folder=folder) in done.stderr
    assert "Spider opened" not in done.stderr


@pytest.mark.parametrize("name", ["store is a file", "store is damaged", "other configuration"])
def test_what_is_wrong_with_a_store_names_the_setting_the_path_and_the_way_out(
    bad: dict[str, tuple[subprocess.CompletedProcess[str], Path]], name: str
) -> None:
    done, _ = bad[name]
    (message,) = [line for line in done.stderr.splitlines() if "StoreError: SIMDUP_STORE" in line]
    assert re.search(r"SIMDUP_STORE: store '/[^']+'", message)
    assert "another store" in message or "a store is a folder of its own" in message


def test_a_wrong_store_is_left_as_it_is(
    bad: dict[str, tuple[subprocess.CompletedProcess[str], Path]],
) -> None:
    _, folder = bad["store is damaged"]
    damaged = folder / "project" / "damaged"
    assert [path.name for path in damaged.iterdir()] == ["data.mdb"]
    assert (damaged / "data.mdb").read_bytes() == b"not a database" * 1000
    assert (folder / "file").read_text("utf-8") == "a file"


def test_in_a_project_store_and_log_are_in_its_data_folder_whatever_the_spider_is_called(
    site: Site, tmp_path: Path
) -> None:
    project = make_project(tmp_path / "100%(sure)", site.root, {})
    names = {"plain": "plain", "..": "%2E%2E"}
    names["../100%(up)s/odd name"] = "..%2F100%25%28up%29s%2Fodd%20name"
    with ThreadPoolExecutor(2) as pool:
        crawls = list(pool.map(lambda name: scrapy(project, "crawl", name), names))
    assert [crawl.returncode for crawl in crawls] == [0, 0, 0], crawls
    data = project / ".scrapy" / "simdup"
    folders = {path.name for path in data.iterdir() if path.is_dir()}
    assert folders == set(names.values())
    for crawl, (name, folder) in zip(crawls, names.items(), strict=True):
        (log,) = [path for path in data.glob("*.jsonl") if path.name.startswith(f"{folder}-")]
        assert re.fullmatch(re.escape(folder) + r"-dropped-\d{8}T\d{6}\.jsonl", log.name)
        (record,) = read_records(log, site.root)
        assert (record["spider"], record["url"]) == (name, "/a-copy")
        assert f"store {data / folder} holds 0 pages" in crawl.stderr
        assert f"; duplicates are listed in {log}" in crawl.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["100%(sure)"]


def test_outside_a_project_they_are_in_the_working_folder(site: Site, tmp_path: Path) -> None:
    spider = SPIDERS.format(root=site.root).replace('"plain"', '"lonely"')
    spider = spider[: spider.index("class Slash")]
    (tmp_path / "lonely.py").write_text(spider, "utf-8")
    settings = {**SETTINGS, "ADDONS": json.dumps(SETTINGS["ADDONS"]), "LOG_LEVEL": "INFO"}
    options = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
    done = scrapy(tmp_path, "runspider", *options, "lonely.py")
    assert done.returncode == 0, done.stderr
    (log,) = (tmp_path / ".scrapy" / "simdup").glob("lonely-dropped-*.jsonl")
    assert len(read_records(log, site.root)) == 1
    assert (tmp_path / ".scrapy" / "simdup" / "lonely" / "data.mdb").exists()


def test_the_log_may_be_named_by_spider_and_time(site: Site, tmp_path: Path) -> None:
    project = make_project(tmp_path, site.root, {"SIMDUP_LOG": "logs/%(time)s/%(spider)s.jsonl"})
    assert scrapy(project, "crawl", "plain").returncode == 0
    (log,) = (project / "logs").glob("*/*.jsonl")
    assert re.fullmatch(r"\d{8}T\d{6}/plain\.jsonl", log.relative_to(project / "logs").as_posix())


def test_check_and_list_and_a_crawl_without_us_leave_nothing_behind(
    site: Site, tmp_path: Path
) -> None:
    project = make_project(tmp_path, site.root, {})
    commands = [["check"], ["list"], ["crawl", "plain", "-s", "SIMDUP_ENABLED=False"]]
    with ThreadPoolExecutor(2) as pool:
        check, spiders, crawl = pool.map(lambda command: scrapy(project, *command), commands)
    assert check.returncode == 0, check.stderr
    assert "Ran 3 contracts" in check.stderr
    assert spiders.stdout.splitlines() == ["..", "../100%(up)s/odd name", "plain"]
    assert (spiders.returncode, spiders.stderr) == (0, "")
    assert crawl.returncode == 0
    assert "simdup" not in crawl.stderr.replace("scrapy_simdup.Addon", "")
    assert not (project / ".scrapy").exists()
