"""Many pages in flight at once: exactly one of each passes, and the event loop does not wait."""

from __future__ import annotations

import threading
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
