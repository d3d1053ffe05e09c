"""The same site again: replayed from the cache, resumed, and crawled a second time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from crawl_site import Crawl, Site, article, crawl, crawls, job, page, story

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VISITS = ["/a", "/a-near", "/b", "/b-copy", "/short"]


@pytest.fixture
def site() -> Iterator[Site]:
    pages: dict[str, Any] = {
        "/a": article(1),
        "/a-near": article(1, edits=2),
        "/b": article(2),
        "/b-copy": article(2),
        "/short": page("Short", ["Too short."]),
    }
    with Site(pages) as running:
        yield running


def outcome(crawl: Crawl, log: Path) -> list[dict[str, Any]]:
    """The log, without what differs between two crawls."""
    own = ("time", "crawl")
    return [
        {name: value for name, value in record.items() if name not in own}
        for record in crawl.records(log)
    ]


def test_a_replay_from_the_cache_with_a_fresh_store_drops_the_same(
    site: Site, tmp_path: Path
) -> None:
    cache = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path / "cache")}
    logs = [tmp_path / "first.jsonl", tmp_path / "replay.jsonl"]
    jobs = [
        job(
            "Visitor",
            {**cache, "SIMDUP_STORE": str(log.with_suffix("")), "SIMDUP_LOG": str(log)},
            visits=VISITS,
        )
        for log in logs
    ]
    first, replay = crawls(tmp_path, site, jobs)
    assert len(site.visits) == len(VISITS)
    assert replay.stats["httpcache/hit"] == len(VISITS)
    assert all("cached" in page["flags"] for page in replay.arrived)
    assert first.failed_paths == replay.failed_paths == ["/a-near", "/b-copy"]
    assert first.paths == replay.paths
    assert outcome(first, logs[0]) == outcome(replay, logs[1])
    assert len(outcome(first, logs[0])) == 2
    assert first.simdup_stats == replay.simdup_stats


def test_a_second_crawl_finds_kept_pages_unchanged_and_drops_the_same_duplicates(
    site: Site, tmp_path: Path
) -> None:
    first = crawl(tmp_path, site, visits=VISITS)
    # The other way round: a duplicate comes before the page that was kept.
    again = crawl(tmp_path, site, visits=VISITS[::-1])
    assert again.paths == first.paths[::-1] == ["/short", "/b", "/a"]
    assert again.failed_paths == first.failed_paths[::-1] == ["/b-copy", "/a-near"]
    assert again.simdup_stats["revisit/unchanged"] == 2
    assert again.stat("unique") == 0
    assert again.verdict("/a") == {
        **dict.fromkeys(("duplicate_of", "near_miss", "cluster_size")),
        **{k: v for k, v in (again.verdict("/a") or {}).items() if k.startswith(("simh", "tok"))},
        "kind": "revisit",
        "change": "unchanged",
        "reason": "body",
        "distance": 0,
        "resemblance": 1.0,
        "containment": 1.0,
        "title": "Story 1",
    }
    counts = [again.stat(key) for key in ("checked", "duplicate/exact", "duplicate/near")]
    assert counts == [4, 1, 1]
    assert (again.stat("store/pages"), first.stat("store/pages")) == (2, 2)
    start, end = again.said("INFO")
    assert "holds 2 pages and 2 duplicates" in start
    assert re.search(
        r"checked 4 pages: 0 unique, 2 duplicates \(50\.0 %: 1 exact, 1 near\), "
        r"2 revisits \(2 unchanged\); not checked 1 \(1 too_short\); dropped 2, ",
        end,
    )


def test_a_page_that_has_changed_is_a_revisit_and_passes(site: Site, tmp_path: Path) -> None:
    site.pages["/a"] = lambda visit: article(1) if visit == 1 else article(7)
    site.pages["/b"] = lambda visit: article(2) if visit == 1 else article(2, edits=1)
    # What is kept must not become a duplicate of another kept page either.
    site.pages["/c"] = lambda visit: article(3) if visit == 1 else article(1)
    jobs = [job(visits=["/a", "/b", "/c"], name=name) for name in ("visitor", "visitor")]
    first, again = crawls(tmp_path, site, jobs)
    assert [page["verdict"]["kind"] for page in first.arrived] == ["unique"] * 3
    changes = {page["path"]: page["verdict"]["change"] for page in again.arrived}
    assert changes == {"/a": "changed", "/b": "minor", "/c": "changed"}
    minor = again.verdict("/b")
    assert minor is not None
    assert (minor["kind"], minor["reason"]) == ("revisit", "simhash")
    assert 0.7 <= minor["resemblance"] <= 1
    assert again.failed == []
    revisits = {k: v for k, v in again.simdup_stats.items() if k.startswith("revisit/")}
    assert revisits == {"revisit/changed": 2, "revisit/minor": 1}
    assert again.stat("checked") == 3


def test_a_page_whose_callback_raised_comes_again_as_a_revisit(site: Site, tmp_path: Path) -> None:
    jobs = [job("Faulty", visits=["/a", "/a-near"]), job("Visitor", visits=["/a", "/a-near"])]
    first, again = crawls(tmp_path, site, jobs)
    assert first.stats["spider_exceptions/RuntimeError"] == 1
    assert first.items == []
    assert (again.paths, again.failed_paths) == (["/a"], ["/a-near"])
    assert (again.verdict("/a") or {})["kind"] == "revisit"
    assert [item["path"] for item in again.items] == ["/a"]


def test_the_same_url_twice_in_one_crawl_is_a_revisit(site: Site, tmp_path: Path) -> None:
    result = crawl(tmp_path, site, visits=["/a", {"path": "/a", "dont_filter": True}])
    assert [page["verdict"]["kind"] for page in result.arrived] == ["unique", "revisit"]


def test_a_stopped_crawl_resumes_without_losing_a_story(site: Site, tmp_path: Path) -> None:
    stories = range(8)
    paths = [f"/story-{number}-{copy}" for number in stories for copy in "ab"]
    for number in stories:
        site.pages[f"/story-{number}-a"] = article(20 + number)
        site.pages[f"/story-{number}-b"] = article(20 + number, edits=1)
    site.pages["/"] = page("All stories", story(99), links=paths)
    settings = {"JOBDIR": str(tmp_path / "job"), "CLOSESPIDER_ITEMCOUNT": 4}
    visits: list[Any] = [{"path": "/", "dont_filter": True}]
    first = crawl(tmp_path, site, "Visitor", settings, visits=visits, follow=True)
    assert first.stats["finish_reason"] == "closespider_itemcount"
    assert 3 <= len(first.paths) < len(stories)
    del settings["CLOSESPIDER_ITEMCOUNT"]
    second = crawl(tmp_path, site, "Visitor", settings, visits=visits, follow=True)
    assert second.stats["finish_reason"] == "finished"
    arrived = first.paths + second.paths
    assert {path.rpartition("-")[0] for path in arrived} >= {f"/story-{n}" for n in stories}
    kept = {page["path"] for page in first.arrived if page["verdict"]["kind"] == "unique"}
    assert kept.isdisjoint(second.failed_paths)
    assert set(first.failed_paths + second.failed_paths) == {path for path in paths if path[-1] == "b"}
    # The start page comes again, as it does in every resumed crawl.
    assert (second.verdict("/") or {})["kind"] == "revisit"
