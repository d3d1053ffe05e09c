"""The same site again: replayed from the cache, resumed, and crawled a second time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from crawl_site import Crawl, Site, article, crawl, crawls, job, page, story

if TYPE_CHECKING:
    from collections.abc import Iterator

VISITS = ["/a", "/a-near", "/b", "/b-copy", "/short"]
STORIES = range(8)
CACHED = [f"/cached{path}" for path in VISITS]


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    pages: dict[str, Any] = {
        "/a": article(1),
        "/a-near": article(1, edits=2),
        "/b": article(2),
        "/b-copy": article(2),
        "/short": page("Short", ["Too short."]),
        # What comes on the second visit:
        "/to-another": lambda visit: article(11 if visit == 1 else 12),
        "/to-the-same": lambda visit: article(13, edits=visit - 1),
        "/to-the-kept": lambda visit: article(14 if visit == 1 else 13),
    }
    for path in VISITS:
        pages[f"/cached{path}"] = pages[path]
    for number in STORIES:
        pages[f"/story-{number}-a"] = article(20 + number)
        pages[f"/story-{number}-b"] = article(20 + number, edits=1)
    links = [path for path in pages if path.startswith("/story-")]
    pages["/stories"] = page("All stories", story(99), links=links)
    with Site(pages) as running:
        yield running


@pytest.fixture(scope="module")
def done(site: Site, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Crawl]]:
    folder = tmp_path_factory.mktemp("again")
    cache = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(folder / "cache")}
    changing = ["/to-another", "/to-the-same", "/to-the-kept"]
    pairs = {
        "cache": [job("Visitor", cache, place, visits=CACHED) for place in ("one", "replay")],
        # The other way round: duplicates come before the pages that were kept.
        "same": [job(visits=visits, place="same") for visits in (VISITS, VISITS[::-1])],
        "changed": [job(visits=changing, place="changed") for _ in range(2)],
        "raised": [
            job(spider, place="raised", visits=["/a", "/a-near"])
            for spider in ("Faulty", "Visitor")
        ],
        "twice": [
            job(visits=["/a", {"path": "/a", "dont_filter": True}], place="twice") for _ in range(2)
        ],
    }
    results = crawls(folder, site, [one for pair in pairs.values() for one in pair])
    return {name: results[2 * n : 2 * n + 2] for n, name in enumerate(pairs)}


@pytest.fixture(scope="module")
def resumed(site: Site, tmp_path_factory: pytest.TempPathFactory) -> tuple[Crawl, Crawl]:
    """A crawl stopped after a few items, and its continuation in another process."""
    folder = tmp_path_factory.mktemp("resumed")
    settings = {"JOBDIR": str(folder / "job")}
    visits: list[Any] = [{"path": "/stories", "dont_filter": True}]
    stop = {**settings, "CLOSESPIDER_ITEMCOUNT": 4}
    first = crawl(folder, site, "Visitor", stop, visits=visits, follow=True)
    second = crawl(folder, site, "Visitor", settings, visits=visits, follow=True)
    return first, second


def outcome(crawl: Crawl) -> list[dict[str, Any]]:
    """The log, without what differs between two crawls."""
    own = ("time", "crawl")
    return [{k: v for k, v in record.items() if k not in own} for record in crawl.records()]


def test_a_replay_from_the_cache_with_a_fresh_store_drops_the_same(
    done: dict[str, list[Crawl]], site: Site
) -> None:
    first, replay = done["cache"]
    assert [site.count(path) for path in CACHED] == [1] * len(CACHED)
    assert replay.stats["httpcache/hit"] == len(CACHED)
    assert all("cached" in page["flags"] for page in replay.arrived)
    assert first.failed_paths == replay.failed_paths == ["/cached/a-near", "/cached/b-copy"]
    assert first.paths == replay.paths
    assert outcome(first) == outcome(replay)
    assert len(outcome(first)) == 2
    assert first.simdup_stats == replay.simdup_stats


def test_a_second_crawl_over_the_same_store_drops_nothing_the_first_kept(
    done: dict[str, list[Crawl]],
) -> None:
    first, again = done["same"]
    assert again.paths == first.paths[::-1] == ["/short", "/b", "/a"]


def test_a_second_crawl_drops_the_same_duplicates(done: dict[str, list[Crawl]]) -> None:
    first, again = done["same"]
    assert again.failed_paths == first.failed_paths[::-1] == ["/b-copy", "/a-near"]
    assert sorted(record["url"] for record in outcome(again)[2:]) == ["/a-near", "/b-copy"]


def test_kept_pages_are_revisits_in_the_second_crawl(done: dict[str, list[Crawl]]) -> None:
    _, again = done["same"]
    verdict = again.verdict("/a")
    assert verdict is not None
    assert verdict["simhash"] == verdict["simhash_of"]
    assert {k: verdict[k] for k in ("kind", "change", "reason", "distance", "resemblance")} == {
        "kind": "revisit",
        "change": "unchanged",
        "reason": "body",
        "distance": 0,
        "resemblance": 1.0,
    }
    assert verdict["duplicate_of"] is None


def test_the_stats_and_lines_of_a_second_crawl_tell_revisits(done: dict[str, list[Crawl]]) -> None:
    _, again = done["same"]
    distances = {k: v for k, v in again.simdup_stats.items() if k.startswith("distance/")}
    saved = again.simdup_stats["bytes_saved"]
    assert again.simdup_stats == {
        "checked": 4,
        "revisit/unchanged": 2,
        "duplicate/exact": 1,
        "duplicate/near": 1,
        "dropped": 2,
        "bytes_saved": saved,
        "skipped/too_short": 1,
        **distances,
    }
    assert again.stat("store/pages") == 2
    start, end = again.said("INFO")
    assert "holds 2 pages and 2 duplicates" in start
    assert re.search(
        r"checked 4 pages: 0 unique, 2 duplicates \(50\.0 %: 1 exact, 1 near\), "
        r"2 revisits \(2 unchanged\); not checked 1 \(1 too_short\); dropped 2, ",
        end,
    )


def test_a_page_that_has_changed_is_a_revisit_and_passes(done: dict[str, list[Crawl]]) -> None:
    first, again = done["changed"]
    assert [page["verdict"]["kind"] for page in first.arrived] == ["unique"] * 3
    changes = {page["path"]: page["verdict"]["change"] for page in again.arrived}
    assert changes == {
        "/to-another": "changed",
        "/to-the-same": "minor",
        # What was kept must not become a duplicate of another kept page either.
        "/to-the-kept": "changed",
    }
    minor = again.verdict("/to-the-same")
    assert minor is not None
    assert (minor["kind"], minor["reason"]) == ("revisit", "simhash")
    assert 0.7 <= minor["resemblance"] < 1
    assert again.failed == []
    assert again.simdup_stats == {"checked": 3, "revisit/changed": 2, "revisit/minor": 1}


def test_a_page_whose_callback_raised_comes_again_as_a_revisit(
    done: dict[str, list[Crawl]],
) -> None:
    first, again = done["raised"]
    assert first.stats["spider_exceptions/RuntimeError"] == 1
    assert first.items == []
    assert (again.paths, again.failed_paths) == (["/a"], ["/a-near"])
    assert (again.verdict("/a") or {})["kind"] == "revisit"
    assert [item["path"] for item in again.items] == ["/a"]


def test_the_same_url_twice_in_one_crawl_is_a_revisit(done: dict[str, list[Crawl]]) -> None:
    first, _ = done["twice"]
    assert [page["verdict"]["kind"] for page in first.arrived] == ["unique", "revisit"]


def test_a_stopped_crawl_resumes_without_losing_a_story(resumed: tuple[Crawl, Crawl]) -> None:
    first, second = resumed
    assert first.stats["finish_reason"] == "closespider_itemcount"
    assert second.stats["finish_reason"] == "finished"
    assert 3 <= len(first.paths) < len(STORIES)
    arrived = {path.rpartition("-")[0] for path in first.paths + second.paths}
    assert arrived >= {f"/story-{number}" for number in STORIES}


def test_a_resumed_crawl_drops_nothing_that_was_kept_before(resumed: tuple[Crawl, Crawl]) -> None:
    first, second = resumed
    kept = {page["path"] for page in first.arrived if page["verdict"]["kind"] == "unique"}
    assert len(kept) >= 3
    assert kept.isdisjoint(second.failed_paths)


def test_a_resumed_crawl_drops_duplicates_of_pages_from_before_the_stop(
    resumed: tuple[Crawl, Crawl],
) -> None:
    first, second = resumed
    dropped = sorted(first.failed_paths + second.failed_paths)
    assert dropped == [f"/story-{number}-b" for number in STORIES]


def test_the_start_page_of_a_resumed_crawl_is_a_revisit(resumed: tuple[Crawl, Crawl]) -> None:
    verdict = resumed[1].verdict("/stories")
    assert verdict is not None
    assert (verdict["kind"], verdict["change"]) == ("revisit", "unchanged")
