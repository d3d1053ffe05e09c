"""Action ``drop``, the default: what a crawl does with duplicates, counts, logs and says of them."""

from __future__ import annotations

import random
import re
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from crawl_site import Crawl, Site, article, crawls, job, page, story

from scrapy_simdup import Config
from scrapy_simdup.auditlog import FIELDS
from scrapy_simdup.crawlstats import STATS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


BLOCKED = [f"/block?{number}" for number in range(102)]


def shuffled(number: int) -> list[str]:
    """The words of a story in another order: the same simhash, but no shingle in common."""
    words = " ".join(story(number)).split()
    random.Random(1).shuffle(words)
    return [" ".join(words[start : start + 60]) for start in range(0, len(words), 60)]


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    first = article(1)
    pages = {
        "/a": first,
        "/a-bytes": first,
        "/a-text": article(1, head="<!-- printed at noon --><meta name='x' content='y'>"),
        "/a-near": article(1, edits=2, links=["/only-from-a-near"]),
        "/a-shuffled": page("Story 1", shuffled(1)),
        "/b": article(2),
        "/b-near": article(2, edits=1),
        "/c": article(3),
        "/short": page("Short", ["Not enough words to judge."]),
        "/only-from-a-near": article(9),
        "/salvaged": article(10),
    }
    linked = ["/a", "/a-bytes", "/a-text", "/a-near", "/a-shuffled", "/b", "/b-near", "/short"]
    pages["/"] = page("Stories", story(0), links=linked)
    pages["/c-copy"] = pages["/c"]
    pages.update(dict.fromkeys(BLOCKED, page("Please log in", story(11))))
    with Site(pages) as running:
        yield running


@pytest.fixture(scope="module")
def all_three(site: Site, tmp_path_factory: pytest.TempPathFactory) -> list[Crawl]:
    silent: list[Any] = [
        "/",
        {"path": "/c", "errback": False},
        {"path": "/c-copy", "errback": False},
    ]
    jobs = [
        job("Visitor", visits=silent, follow=True, name="normal"),
        job("Salvager", {"SIMDUP_LOG": False}, visits=["/a", "/a-bytes"], name="salvager"),
        job("Visitor", visits=BLOCKED, name="blocked"),
    ]
    return crawls(tmp_path_factory.mktemp("drop"), site, jobs)


@pytest.fixture(scope="module")
def crawl(all_three: list[Crawl]) -> Crawl:
    return all_three[0]


@pytest.fixture(scope="module")
def salvager(all_three: list[Crawl]) -> Crawl:
    return all_three[1]


def test_kept_pages_reach_the_callback_in_the_order_of_the_crawl_and_duplicates_do_not(
    crawl: Crawl,
) -> None:
    assert crawl.paths == ["/", "/c", "/a", "/a-shuffled", "/b", "/short"]


def test_items_of_kept_pages_are_untouched(crawl: Crawl) -> None:
    assert [set(item) for item in crawl.items] == [{"type", "path", "text"}] * 6
    assert crawl.dropped == []


@pytest.mark.parametrize(
    ("path", "kind", "reason", "original"),
    [
        ("/a-bytes", "exact", "body", "/a"),
        ("/a-text", "exact", "text", "/a"),
        ("/a-near", "near", "simhash", "/a"),
        ("/b-near", "near", "simhash", "/b"),
    ],
)
def test_the_errback_gets_the_page_and_its_verdict(
    crawl: Crawl, path: str, kind: str, reason: str, original: str
) -> None:
    (failure,) = [failure for failure in crawl.failed if failure["path"] == path]
    assert failure["type"] == "DuplicatePage"
    assert failure["response"] == path
    assert failure["response_class"] == "HtmlResponse"
    assert failure["request"] == path
    assert failure["same_request"] is True
    verdict = failure["verdict"]
    assert (verdict["kind"], verdict["reason"], verdict["duplicate_of"]) == (kind, reason, original)
    assert verdict["title"] == f"Story {1 if original == '/a' else 2}"


def test_only_duplicates_go_to_the_errback(crawl: Crawl) -> None:
    assert crawl.failed_paths == ["/a-bytes", "/a-text", "/a-near", "/b-near"]


def test_the_exception_says_what_the_page_duplicates_and_how_that_is_known(crawl: Crawl) -> None:
    messages = {failure["path"]: failure["message"] for failure in crawl.failed}
    assert messages["/a-bytes"] == "exact duplicate of /a (same bytes)"
    assert messages["/a-text"] == "exact duplicate of /a (same main text)"
    assert re.fullmatch(
        r"near duplicate of /a \(distance [0-8], resemblance (0\.[7-9]\d|1\.00)\)",
        messages["/a-near"],
    )


def test_items_and_requests_of_a_generator_errback_are_processed(
    salvager: Crawl, site: Site
) -> None:
    assert salvager.failed_paths == ["/a-bytes"]
    assert {"type": "dict", "path": "/a-bytes", "salvaged": True} in salvager.items
    assert salvager.paths == ["/a", "/salvaged"]
    assert site.count("/salvaged") == 1


def test_a_dropped_page_without_errback_vanishes_without_warning_or_error(
    crawl: Crawl, site: Site
) -> None:
    assert site.count("/c-copy") == 1
    assert "/c-copy" not in crawl.paths + crawl.failed_paths
    assert crawl.complaints == []


def test_links_of_dropped_pages_are_not_followed(site: Site, crawl: Crawl) -> None:
    assert site.count("/a-near") == 1
    assert site.count("/only-from-a-near") == 0


def test_scrapy_counts_dropped_pages_as_downloaded_and_not_as_received(crawl: Crawl) -> None:
    assert crawl.stats["downloader/response_count"] == 11
    assert crawl.stats["response_received_count"] == 6


def test_the_stats_are_right(crawl: Crawl, site: Site) -> None:
    dropped = ("/a-bytes", "/a-text", "/a-near", "/b-near", "/c-copy")
    near = [f["verdict"]["distance"] for f in crawl.failed if f["verdict"]["kind"] == "near"]
    expected = {
        "checked": 10,
        "unique": 5,
        "duplicate/exact": 3,
        "duplicate/near": 2,
        "near_miss": 1,
        "refused/resemblance": 1,
        "skipped/too_short": 1,
        "dropped": 5,
        "bytes_saved": sum(len(site.pages[path]) for path in dropped),
    }
    for distance in near:
        key = f"distance/{distance}"
        expected[key] = expected.get(key, 0) + 1
    assert crawl.simdup_stats == expected


def test_every_response_is_counted_once(crawl: Crawl) -> None:
    stats = crawl.simdup_stats
    duplicates = stats["duplicate/exact"] + stats["duplicate/near"]
    assert stats["checked"] == stats["unique"] + duplicates
    skipped = sum(number for key, number in stats.items() if key.startswith("skipped/"))
    assert crawl.stats["downloader/response_count"] == stats["checked"] + skipped


def test_sizes_and_times_are_in_the_stats(crawl: Crawl) -> None:
    assert crawl.stat("store/pages") == 5
    assert crawl.stat("store/bytes") > 4096
    for step in ("extract", "lookup"):
        mean, p99 = crawl.stat(f"time/{step}_ms/mean"), crawl.stat(f"time/{step}_ms/p99")
        assert 0 < mean < 1000
        assert p99 >= mean


def test_all_stats_are_documented(crawl: Crawl) -> None:
    patterns = [re.sub(r"<\w+>", r"\\w+", re.escape(key).replace("\\<", "<")) for key in STATS]
    keys = [key[len("simdup/") :] for key in crawl.stats if key.startswith("simdup/")]
    assert [k for k in keys if not any(re.fullmatch(p, k) for p in patterns)] == []


def test_one_info_line_at_the_start_says_what_is_in_effect(crawl: Crawl) -> None:
    start, _ = crawl.said("INFO")
    default = Config()
    assert re.fullmatch(
        rf"simdup: action=drop, max_distance={default.max_distance}, "
        rf"min_resemblance={default.min_resemblance}, min_tokens={default.min_tokens}, "
        rf"weights={default.weights}, extractor=trafilatura, workers=0; "
        r"configuration [0-9a-f]{12}; store (?P<store>\S+) holds 0 pages and 0 duplicates "
        r"\(tables \S+\); log (?P<log>\S+)",
        start,
    )
    assert str(crawl.folder / "store") in start
    assert start.endswith(f"; log {crawl.folder / 'dropped.jsonl'}")


def test_one_info_line_at_the_end_says_what_was_found(crawl: Crawl, site: Site) -> None:
    _, end = crawl.said("INFO")
    assert re.fullmatch(
        r"simdup: checked 10 pages: 5 unique, 5 duplicates \(50\.0 %: 3 exact, 2 near\); "
        r"not checked 1 \(1 too_short\); dropped 5, \d+\.\d kB saved; "
        + re.escape(f"duplicates are listed in {crawl.folder / 'dropped.jsonl'}"),
        end,
    )


def test_without_a_log_the_closing_line_says_so_and_nothing_is_written(salvager: Crawl) -> None:
    assert salvager.said("INFO")[0].endswith("; log off")
    assert re.fullmatch(
        r"simdup: checked 3 pages: 2 unique, 1 duplicate \(33\.3 %: 1 exact, 0 near\); "
        r"dropped 1, \d\.\d kB saved; no log",
        salvager.said("INFO")[-1],
    )
    assert [path.name for path in salvager.folder.iterdir()] == ["store"]


def test_each_drop_is_one_debug_line(crawl: Crawl) -> None:
    assert crawl.said("DEBUG") == [
        "Dropped <GET /c-copy>: exact duplicate of /c (body)",
        "Dropped <GET /a-bytes>: exact duplicate of /a (body)",
        "Dropped <GET /a-text>: exact duplicate of /a (text)",
        "Dropped <GET /a-near>: near duplicate of /a (simhash)",
        "Dropped <GET /b-near>: near duplicate of /b (simhash)",
    ]


def test_the_dropped_page_log_has_one_record_a_duplicate_and_near_misses(crawl: Crawl) -> None:
    assert [(record["url"], record["kind"]) for record in crawl.records()] == [
        ("/c-copy", "exact"),
        ("/a-bytes", "exact"),
        ("/a-text", "exact"),
        ("/a-near", "near"),
        ("/a-shuffled", "near_miss"),
        ("/b-near", "near"),
    ]


def test_a_record_of_the_log_is_complete(crawl: Crawl, site: Site) -> None:
    record = crawl.records()[3]
    verdict = crawl.failed[2]["verdict"]
    assert list(record) == list(FIELDS)
    assert datetime.now(timezone.utc) - datetime.fromisoformat(record.pop("time")) < timedelta(
        minutes=5
    )
    assert re.fullmatch(r"normal-\d{8}T\d{6}-[0-9a-f]{4}", record.pop("crawl"))
    assert 0.7 <= record["resemblance"] <= record["containment"] <= 1
    assert record == {
        "spider": "normal",
        "url": "/a-near",
        "referer": "/",
        "kind": "near",
        "reason": "simhash",
        "duplicate_of": "/a",
        "distance": verdict["distance"],
        "resemblance": round(verdict["resemblance"], 4),
        "containment": round(verdict["containment"], 4),
        "length_ratio": round(verdict["length_ratio"], 4),
        "view": "main",
        "rule": "resemblance",
        "cut_off": False,
        "simhash": f"{verdict['simhash']:016x}",
        "simhash_of": f"{verdict['simhash_of']:016x}",
        "tokens": verdict["tokens"],
        "tokens_of": verdict["tokens_of"],
        "title": "Story 1",
        "title_of": "Story 1",
        "action": "drop",
        "bytes": len(site.pages["/a-near"]),
        "depth": 1,
    }


def test_a_start_request_has_depth_0_and_no_referer(crawl: Crawl) -> None:
    record = crawl.records()[0]
    assert (record["url"], record["depth"], record["referer"]) == ("/c-copy", 0, None)


def test_a_near_miss_is_logged_with_the_candidate_that_was_refused(crawl: Crawl) -> None:
    record = crawl.records()[4]
    assert list(record) == list(FIELDS)
    assert (record["kind"], record["reason"], record["action"]) == (
        "near_miss",
        "resemblance",
        "pass",
    )
    assert record["duplicate_of"] == "/a"
    assert record["distance"] <= Config().max_distance
    assert 0 <= record["resemblance"] < 0.7
    verdict = crawl.verdict("/a-shuffled")
    assert verdict is not None
    assert verdict["kind"] == "unique"
    assert record["simhash"] == f"{verdict['simhash']:016x}"


def test_stats_and_log_agree(crawl: Crawl) -> None:
    records = crawl.records()
    kinds = [record["kind"] for record in records]
    assert kinds.count("exact") == crawl.stat("duplicate/exact")
    assert kinds.count("near") == crawl.stat("duplicate/near")
    assert kinds.count("near_miss") == crawl.stat("near_miss")
    dropped = [record for record in records if record["action"] == "drop"]
    assert len(dropped) == crawl.stat("dropped")
    assert sum(record["bytes"] for record in dropped) == crawl.stat("bytes_saved")
    assert {record["crawl"] for record in records} == {records[0]["crawl"]}


def test_the_verdict_of_a_page_that_was_kept_is_in_the_meta(crawl: Crawl) -> None:
    verdicts = {page["path"]: page["verdict"] for page in crawl.arrived}
    assert {path: verdict["kind"] for path, verdict in verdicts.items()} == {
        "/": "unique",
        "/c": "unique",
        "/a": "unique",
        "/a-shuffled": "unique",
        "/b": "unique",
        "/short": "skipped",
    }
    assert verdicts["/short"]["reason"] == "too_short"
    assert all(page["flags"] == [] for page in crawl.arrived)


def test_a_page_with_a_hundred_duplicates_is_worth_one_warning(all_three: list[Crawl]) -> None:
    crawl = all_three[2]
    assert (crawl.paths, crawl.stat("duplicate/exact")) == (["/block?0"], 101)
    assert crawl.stat("alert/one_page") == 1
    (warning,) = crawl.said("WARNING")
    assert "are duplicates of /block?0, the last is /block?49; see whether it is a block" in warning
    assert crawl.said("ERROR") == []


def test_a_known_cluster_is_worth_one_warning_a_crawl(tmp_path: Path) -> None:
    pages = {f"/block?{n}": article(1) for n in range(101)}
    with Site(pages) as site:
        done = crawls(tmp_path, site, [job("Visitor", visits=list(pages), items=())] * 2)
    assert [result.stat("alert/one_page") for result in done] == [1, 0]
    assert [result.stat("alert/large_cluster") for result in done] == [0, 1]
    assert [len(result.said("WARNING")) for result in done] == [1, 1]
