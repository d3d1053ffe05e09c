"""Many pages in flight at once: exactly one of each passes, and the event loop does not wait."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from crawl_site import Site, article, crawl, heavy_article

if TYPE_CHECKING:
    from pathlib import Path

STORIES, COPIES = 50, 4


def test_of_near_identical_pages_in_flight_together_exactly_one_passes(tmp_path: Path) -> None:
    barriers = [threading.Barrier(COPIES) for _ in range(STORIES)]

    def together(number: int, copy: int) -> Any:
        def answer(visit: int) -> str:
            barriers[number].wait(timeout=20)
            return article(100 + number, edits=1, variant=copy)

        return answer

    paths = {
        f"/{number}-{copy}": together(number, copy)
        for number in range(STORIES)
        for copy in range(COPIES)
    }
    settings = {"CONCURRENT_REQUESTS": 16, "CONCURRENT_REQUESTS_PER_DOMAIN": 16}
    with Site(paths) as site:
        result = crawl(tmp_path, site, "Visitor", settings, visits=list(paths))
    assert [barrier.broken for barrier in barriers] == [False] * STORIES
    arrived = Counter(path.partition("-")[0] for path in result.paths)
    assert arrived == Counter({f"/{number}": 1 for number in range(STORIES)})
    assert len(result.failed) == STORIES * (COPIES - 1)
    assert (result.stat("unique"), result.stat("duplicate/near")) == (50, 150)
    assert result.stat("store/pages") == 50
    for failure in result.failed:
        story_of = failure["path"].partition("-")[0]
        assert failure["verdict"]["duplicate_of"].partition("-")[0] == story_of
        assert failure["verdict"]["duplicate_of"] in result.paths
    assert len(result.records()) == 150
    assert result.complaints == []


def test_pages_that_wait_for_their_verdict_take_up_no_download(tmp_path: Path) -> None:
    """Three at a time: while three are analysed three others come, and then no more."""
    at_once, all_pages = 3, 12
    second_three = threading.Barrier(at_once)
    lock = threading.Lock()
    running: set[int] = set()
    most, seen_meanwhile = [0], [0]

    def answering(number: int) -> Any:
        def answer(visit: int) -> str:
            with lock:
                running.add(number)
                most[0] = max(most[0], len(running))
            if at_once <= number < 2 * at_once:
                second_three.wait(timeout=15)
            if number == 2 * at_once - 1:
                time.sleep(0.3)  # for others that should not come
                seen_meanwhile[0] = len(site.visits)
                (tmp_path / "go").touch()
            with lock:
                running.discard(number)
            return article(100 + number)

        return answer

    paths = {f"/{number}": answering(number) for number in range(all_pages)}
    settings = {
        "CONCURRENT_REQUESTS": at_once,
        "CONCURRENT_REQUESTS_PER_DOMAIN": all_pages,
        "SIMDUP_EXTRACTOR": "crawl.extractors.patient",
        "SIMDUP_TIMEOUT": 40,
    }
    with Site(paths) as site:
        result = crawl(tmp_path, site, "Visitor", settings, visits=list(paths))
    assert not second_three.broken
    assert seen_meanwhile == [2 * at_once]
    assert most == [at_once]
    assert result.stat("unique") == all_pages
    assert result.complaints == []


def test_one_page_at_a_time_stays_one_page_at_a_time(tmp_path: Path) -> None:
    """The second page would be ready long before the first."""
    pages = {"/long": heavy_article(1, kilobytes=400), "/short": article(2)}
    visits = ["/long", {"path": "/short", "meta": {"simdup": False}}]
    with Site(pages) as site:
        result = crawl(tmp_path, site, "Visitor", visits=visits)
    assert result.paths == ["/long", "/short"]


def test_the_event_loop_does_not_wait_for_us(tmp_path: Path) -> None:
    """A generous limit: what it really is stands in benchmarks/crawling.py."""
    pages = {f"/{number}": heavy_article(200 + number, kilobytes=150) for number in range(60)}
    assert min(map(len, pages.values())) > 140_000
    settings = {
        "CONCURRENT_REQUESTS": 16,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
        "EXTENSIONS": {"crawl.spiders.LagMeter": 0},
        "LOG_LEVEL": "INFO",
    }
    with Site(pages) as site:
        result = crawl(tmp_path, site, "Visitor", settings, visits=list(pages), items=())
    assert result.stat("unique") == 60
    print("loop lag:", {k: v for k, v in result.stats.items() if k.startswith("lag/")})
    assert result.stats["lag/samples"] > 50
    assert result.stats["lag/p99"] < 200
