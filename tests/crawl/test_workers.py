"""Crawls whose pages are analysed by worker processes."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from crawl_site import SETTINGS, Child, Site, article, crawl, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crawl_site import Crawl

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="children are found in /proc"
)

STORIES = 40
AT_ONCE = {"CONCURRENT_REQUESTS": 16, "CONCURRENT_REQUESTS_PER_DOMAIN": 16}


def undeclared(number: int) -> Any:
    """A page whose charset nothing declares: Scrapy guesses."""
    html = article(number).replace('<meta charset="utf-8">', "").replace("</h1>", " – é ü</h1>")
    return html.encode("cp1252")


PAGES: dict[str, Any] = {
    **{f"/{number}": article(500 + number) for number in range(STORIES)},
    **{f"/{number}-copy": article(500 + number, edits=1, variant=1) for number in range(STORIES)},
    **{f"/odd{number}": undeclared(700 + number) for number in range(3)},
}


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with Site(PAGES) as running:
        yield running


def children_of(parent: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            if int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(entry.name))
    return found


def workers_of(parent: int) -> list[int]:
    return [pid for pid in children_of(parent) if b"scrapy_simdup.worker" in command_of(pid)]


def command_of(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def story_of(path: str) -> str:
    return path.partition("-")[0]


def outcome(result: Crawl) -> dict[str, Any]:
    return {
        "passed": sorted(map(story_of, result.paths)),
        "dropped": sorted(story_of(failure["path"]) for failure in result.failed),
        "stats": {**result.simdup_stats, "bytes_saved": None},  # either of two may be the first
        "complaints": result.complaints,
    }


def test_come_to_the_same_verdicts_as_without(site: Site, tmp_path: Path) -> None:
    done = {
        number: crawl(
            tmp_path / str(number),
            site,
            "Visitor",
            {**AT_ONCE, "SIMDUP_WORKERS": number},
            visits=list(PAGES),
        )
        for number in (0, 2)
    }
    assert outcome(done[0]) == outcome(done[2])
    assert len(done[2].paths) == STORIES + 3
    assert done[2].stats["simdup/time/extract_ms/mean"] > 0


def test_lose_no_page_when_workers_are_killed_all_the_time(site: Site, tmp_path: Path) -> None:
    chance, ended, killed = random.Random(5), threading.Event(), []

    def kill() -> None:
        while not ended.wait(chance.uniform(0.5, 1.5)) and len(killed) < 200:
            workers = [pid for child in children_of(os.getpid()) for pid in workers_of(child)]
            if workers:
                killed.append(chance.choice(workers))
                with suppress(ProcessLookupError):
                    os.kill(killed[-1], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        result = crawl(
            tmp_path,
            site,
            "Visitor",
            {**AT_ONCE, "SIMDUP_WORKERS": 2, "SIMDUP_EXTRACTOR": "crawl.extractors.slow"},
            visits=list(PAGES),
        )
    finally:
        ended.set()
        killer.join()
    assert set(map(story_of, result.paths)) == set(map(story_of, PAGES)), "every story arrived"
    assert len(result.paths) + len(result.failed) == len(PAGES), "every page has an answer"
    assert result.stat("worker/died") >= 1
    assert result.stats["finish_reason"] == "finished"
    errors = [line for line in result.complaints if not line.startswith("WARNING scrapy_simdup")]
    assert errors == []


def test_end_a_page_that_hangs(site: Site, tmp_path: Path) -> None:
    pages = {"/stuck": article(404), "/other": article(405)}
    settings = {
        **AT_ONCE,
        "SIMDUP_WORKERS": 1,
        "SIMDUP_TIMEOUT": 1,
        "SIMDUP_EXTRACTOR": "crawl.extractors.stuck",
    }
    with Site(pages) as running:
        result = crawl(tmp_path, running, "Visitor", settings, visits=list(pages))
    assert sorted(result.paths) == ["/other", "/stuck"]
    assert (result.stat("skipped/timeout"), result.stat("unique")) == (1, 1)
    assert result.stat("worker/timeout") == 1


def test_that_cannot_start_are_replaced_by_a_thread(site: Site, tmp_path: Path) -> None:
    settings = {
        **AT_ONCE,
        "SIMDUP_WORKERS": 2,
        "SIMDUP_EXTRACTOR": "crawl.extractors.only_in_the_crawl",
    }
    result = crawl(tmp_path, site, "Visitor", settings, visits=[f"/{n}" for n in range(8)])
    assert result.stat("unique") == 8
    assert result.stat("worker/unavailable") >= 1
    (warning,) = result.said("WARNING")
    assert "a worker does not start" in warning
    assert "a thread of this process extracts instead" in warning


SCRIPT = """
from scrapy.crawler import AsyncCrawlerProcess
from crawl.spiders import Visitor

print("the script runs", flush=True)
process = AsyncCrawlerProcess({settings!r})
process.crawl(Visitor, root={root!r}, visits={visits!r}, items=())
process.start()
"""


@pytest.mark.parametrize("times", [1, 2])
def test_are_gone_after_ctrl_c_and_no_script_runs_twice(
    site: Site, tmp_path: Path, times: int
) -> None:
    settings = {
        **SETTINGS,
        **AT_ONCE,
        "SIMDUP_STORE": str(tmp_path / "store"),
        "SIMDUP_LOG": False,
        "SIMDUP_WORKERS": 2,
        "SIMDUP_EXTRACTOR": "crawl.extractors.slow",
    }
    script = tmp_path / "script.py"
    text = SCRIPT.format(settings=settings, root=site.root, visits=list(PAGES))
    script.write_text(text, "utf-8")
    with Child(script, cwd=tmp_path) as child:
        wait_until(lambda: len(workers_of(child.process.pid)) == 2)
        workers = workers_of(child.process.pid)
        time.sleep(0.5)
        for _ in range(times):
            child.interrupt()
            time.sleep(0.5)
        output = child.wait(20)
    assert output.count("the script runs") == 1
    assert "Traceback" not in output
    wait_until(lambda: not any(map(command_of, workers)))
