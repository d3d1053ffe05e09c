"""What breaks in mid-crawl costs no page: it passes, it is counted, and it is said once."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from crawl_site import Crawl, Site, article, crawls, job

from scrapy_simdup import Detector

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGES = {f"/{number}": article(300 + number) for number in range(12)}
COPIES = {f"/{number}-copy": html for number, html in enumerate(PAGES.values())}


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with Site({**PAGES, **COPIES}) as running:
        yield running


@pytest.fixture(scope="module")
def done(site: Site, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Crawl]:
    paths = list(PAGES)
    extractor = "crawl.extractors."
    slow = {
        "SIMDUP_EXTRACTOR": f"{extractor}hanging",
        "SIMDUP_TIMEOUT": 0.5,
        "CONCURRENT_REQUESTS": 12,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 12,
    }
    breaking = {"DOWNLOADER_MIDDLEWARES": {"crawl.spiders.Saboteur": 544}}
    jobs = [
        job(
            "Visitor",
            {"SIMDUP_EXTRACTOR": f"{extractor}raising"},
            visits=[*paths, "/0-copy", "/1-copy"],
            name="raises",
        ),
        job("Visitor", slow, visits=paths, name="hangs"),
        job(
            "Visitor",
            {**breaking, "SABOTAGE": "close"},
            visits=[*paths, "/0-copy", "/11-copy"],
            name="close",
        ),
        job(
            "Visitor",
            {**breaking, "SABOTAGE": "log"},
            visits=["/0", "/0-copy", "/1", "/1-copy", "/2", "/2-copy", "/3", "/3-copy"],
            name="log",
        ),
        job(
            "Visitor",
            {**breaking, "SABOTAGE": "judge"},
            visits=[*paths, "/11-copy"],
            name="judge",
        ),
        job(
            "Visitor",
            {**breaking, "SABOTAGE": "record", "SIMDUP_ACTION": "drop_items"},
            visits=[*paths, "/0-copy", "/1-copy"],
            name="record",
        ),
    ]
    if sys.platform != "win32":
        full = {**breaking, "SABOTAGE": "disk"}
        jobs.append(job("Visitor", full, visits=[*paths, "/0-copy", "/11-copy"], name="disk"))
        again = {**full, "SABOTAGE": "space"}
        jobs.append(job("Visitor", again, visits=[*paths, "/11-copy", "/5-copy"], name="space"))
    results = crawls(tmp_path_factory.mktemp("failures"), site, jobs)
    return {one["arguments"]["name"]: result for one, result in zip(jobs, results, strict=True)}


def reasons(crawl: Crawl) -> dict[str, str | None]:
    return {page["path"]: page["verdict"]["reason"] for page in crawl.arrived}


def test_a_page_whose_extraction_fails_passes_and_the_others_are_judged(
    done: dict[str, Crawl],
) -> None:
    crawl = done["raises"]
    assert crawl.paths == [*PAGES, "/0-copy"]
    failed = {path for path, reason in reasons(crawl).items() if reason == "extraction_failed"}
    assert failed == {"/0", "/5", "/10", "/0-copy"}
    assert crawl.failed_paths == ["/1-copy"]
    assert crawl.stat("skipped/extraction_failed") == 4
    assert crawl.stat("unique") == 9


def test_a_page_whose_extraction_hangs_passes_after_the_timeout_and_costs_no_other(
    done: dict[str, Crawl],
) -> None:
    crawl = done["hangs"]
    assert reasons(crawl) == {**dict.fromkeys(PAGES), "/1": "timeout"}
    assert (crawl.stat("unique"), crawl.stat("skipped/timeout")) == (11, 1)
    assert crawl.stats["finish_reason"] == "finished"
    assert 0.5 <= crawl.stats["elapsed_time_seconds"] < 3


@pytest.mark.parametrize("way", ["close", "disk"])
def test_when_the_store_fails_all_later_pages_pass_unjudged(
    done: dict[str, Crawl], way: str
) -> None:
    if way not in done:
        pytest.skip("no limit of file sizes on this system")
    crawl = done[way]
    assert crawl.paths == [*PAGES, "/0-copy", "/11-copy"]
    assert len(crawl.items) == 14
    assert crawl.stats["finish_reason"] == "finished"
    later = list(reasons(crawl).values())
    assert later == [None] * 5 + ["store_failed"] * 9
    assert crawl.stat("unique") == 5
    assert crawl.stat("skipped/store_failed") == 9
    assert crawl.stat("error/store") == 9


def test_when_there_is_space_again_pages_are_judged_again(done: dict[str, Crawl]) -> None:
    if "space" not in done:
        pytest.skip("no limit of file sizes on this system")
    crawl = done["space"]
    assert list(reasons(crawl).values()) == [None] * 5 + ["store_failed"] * 4 + [None] * 4
    assert crawl.failed_paths == ["/11-copy"], "of /5 nothing is known: its copy passes"
    assert (crawl.stat("error/store"), crawl.stat("unique")) == (4, 9)
    assert len([line for line in crawl.log if line["level"] == "ERROR"]) == 1
    with Detector(crawl.folder / "store") as detector:
        assert (detector.info().pages, detector.info().aliases) == (9, 1)


@pytest.mark.parametrize("way", ["close", "disk"])
def test_the_failure_of_the_store_is_one_error_in_the_log(done: dict[str, Crawl], way: str) -> None:
    if way not in done:
        pytest.skip("no limit of file sizes on this system")
    crawl = done[way]
    (error,) = [line for line in crawl.log if line["level"] == "ERROR"]
    assert error["logger"] == "scrapy_simdup.session"
    assert error["traceback"] is True
    assert "store failed for /5, which passes unjudged" in error["message"]
    assert str(crawl.folder / "store") in error["message"]
    end = crawl.said("INFO")[-1]
    assert "simdup: checked 5 pages: 5 unique" in end
    assert "not checked 9 (9 store_failed); 9 errors (9 store)" in end


@pytest.mark.parametrize("way", ["close", "disk"])
def test_what_was_judged_before_is_in_the_store(done: dict[str, Crawl], way: str) -> None:
    if way not in done:
        pytest.skip("no limit of file sizes on this system")
    with Detector(done[way].folder / "store") as detector:
        assert (detector.info().pages, detector.info().aliases) == (5, 0)
        verdict = detector.check("http://other/", COPIES["/0-copy"])
    assert verdict.kind == "exact"


def test_when_the_log_cannot_be_written_nothing_is_dropped(done: dict[str, Crawl]) -> None:
    crawl = done["log"]
    passed = ["/1-copy", "/2-copy", "/3-copy"]
    assert sorted(crawl.paths) == sorted(["/0", "/1", "/2", "/3", *passed])
    assert (crawl.stat("dropped"), crawl.stat("tagged"), crawl.stat("error/log")) == (1, 3, 3)
    (error,) = crawl.said("ERROR")
    assert "log failed for /1-copy" in error
    assert "passes unjudged" not in error
    assert len(crawl.records()) == 1


def test_an_unforeseen_exception_in_our_own_code_costs_no_page(done: dict[str, Crawl]) -> None:
    crawl = done["judge"]
    assert crawl.paths == [*PAGES, "/11-copy"]
    assert crawl.stat("unique") == 5
    assert crawl.stat("error/page") == 8
    (error,) = crawl.said("ERROR")
    assert "page failed for /5, which passes unjudged: nobody thought of this" in error
    assert (crawl.stat("checked"), len(crawl.items)) == (5, 13)


def test_a_duplicate_that_passes_because_of_us_keeps_its_items(done: dict[str, Crawl]) -> None:
    crawl = done["record"]
    assert crawl.paths == [*PAGES, "/0-copy", "/1-copy"]
    assert (len(crawl.items), crawl.dropped) == (14, [])
    assert crawl.stat("error/page") == 9
    assert (crawl.verdict("/0-copy"), crawl.stat("dropped")) == (None, 0)
