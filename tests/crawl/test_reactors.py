"""Every way in which Scrapy runs: scripts, no reactor, other reactors, two crawlers at once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from crawl_site import (
    SETTINGS,
    Crawl,
    Site,
    article,
    crawls,
    job,
    python,
    read_records,
    two_at_a_time,
)

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

VISITS = ["/a", "/a-copy", "/a-near", "/b"]
SHARED = [f"/{number}" for number in range(12)]

# As in Scrapy's documentation: nothing guards the script from being imported again.
SCRIPT = """
import json
from scrapy.crawler import {process}
from crawl.spiders import Visitor

print("script")
process = {process}({settings!r})
crawler = process.create_crawler(Visitor)
process.crawl(crawler, root={root!r}, visits={visits!r})
process.start()
stats = {{k: v for k, v in crawler.stats.get_stats().items() if k.startswith("simdup/")}}
print(json.dumps({{"arrived": [page["path"] for page in crawler.spider.arrived], "stats": stats}}))
"""


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    pages = {
        "/a": article(1),
        "/a-copy": article(1),
        "/a-near": article(1, edits=2),
        "/b": article(2),
    }
    for number, path in enumerate(SHARED):
        pages[path] = pages[f"{path}?other"] = article(50 + number)
    with Site(pages) as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reactors")


@pytest.fixture(scope="module")
def done(site: Site, folder: Path) -> dict[str, Any]:
    def script(process: str) -> subprocess.CompletedProcess[str]:
        place = folder / process
        place.mkdir()
        settings = {**SETTINGS, "LOG_LEVEL": "INFO"}
        text = SCRIPT.format(process=process, settings=settings, root=site.root, visits=VISITS)
        (place / "script.py").write_text(text, "utf-8")
        return python("script.py", cwd=place)

    def on(name: str, **settings: Any) -> list[Crawl]:
        jobs = [
            job(visits=VISITS, name="drop"),
            job("Visitor", {"SIMDUP_ACTION": "tag"}, visits=VISITS, name="tag"),
            job("Visitor", {"SIMDUP_ITEM_FIELDS": ["text"]}, visits=VISITS, name="fields"),
        ]
        return crawls(folder / name, site, jobs, **settings)

    def together() -> list[Crawl]:
        store = {"SIMDUP_STORE": str(folder / "shared"), "CONCURRENT_REQUESTS": 4}
        others = [f"{path}?other" for path in SHARED[::-1]]
        jobs = [
            job("Visitor", store, visits=SHARED, name="one"),
            job("Visitor", store, visits=others, name="two"),
        ]
        return crawls(folder / "together", site, jobs, how="together")

    select = "twisted.internet.selectreactor.SelectReactor"
    return two_at_a_time(
        {
            "CrawlerProcess": lambda: script("CrawlerProcess"),
            "AsyncCrawlerProcess": lambda: script("AsyncCrawlerProcess"),
            "no reactor": lambda: on("none", TWISTED_REACTOR_ENABLED=False),
            "select reactor": lambda: on("select", TWISTED_REACTOR=select),
            "together": together,
        }
    )


@pytest.mark.parametrize("process", ["CrawlerProcess", "AsyncCrawlerProcess"])
def test_an_unguarded_script_runs_once(done: dict[str, Any], process: str) -> None:
    result = done[process]
    assert result.returncode == 0, result.stderr
    first, report = result.stdout.splitlines()
    assert first == "script"
    assert json.loads(report)["arrived"] == ["/a", "/b"]
    assert json.loads(report)["stats"]["simdup/dropped"] == 2
    assert result.stderr.count("simdup: checked 4 pages: 2 unique, 2 duplicates") == 1
    assert "ERROR" not in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("process", ["CrawlerProcess", "AsyncCrawlerProcess"])
def test_outside_a_project_store_and_log_are_in_the_working_folder(
    done: dict[str, Any], folder: Path, site: Site, process: str
) -> None:
    assert done[process].returncode == 0
    data = folder / process / ".scrapy" / "simdup"
    assert (data / "visitor" / "data.mdb").exists()
    (log,) = data.glob("visitor-dropped-*.jsonl")
    assert [record["url"] for record in read_records(log, site.root)] == ["/a-copy", "/a-near"]


@pytest.mark.parametrize("reactor", ["no reactor", "select reactor"])
class TestReactor:
    def test_pages_are_dropped(self, done: dict[str, Any], reactor: str) -> None:
        crawl = done[reactor][0]
        assert crawl.paths == ["/a", "/b"]
        assert crawl.failed_paths == ["/a-copy", "/a-near"]
        assert (crawl.stat("unique"), crawl.stat("dropped")) == (2, 2)

    def test_items_are_tagged(self, done: dict[str, Any], reactor: str) -> None:
        items = done[reactor][1].items
        assert [item["path"] for item in items if "simdup" in item] == ["/a-copy", "/a-near"]

    def test_items_are_judged(self, done: dict[str, Any], reactor: str) -> None:
        crawl = done[reactor][2]
        assert sorted(item["path"] for item in crawl.items) == ["/a", "/b"]
        assert len(crawl.dropped) == 2

    def test_nothing_is_worth_a_warning(self, done: dict[str, Any], reactor: str) -> None:
        for crawl in done[reactor]:
            assert crawl.said("WARNING") + crawl.said("ERROR") == []
            start, end = crawl.said("INFO", "scrapy_simdup.session")
            assert (start.startswith("simdup: action="), end.startswith("simdup: checked 4")) == (
                True,
                True,
            )


def test_of_two_crawlers_of_one_process_on_one_store_one_keeps_each_page(
    done: dict[str, Any],
) -> None:
    one, two = done["together"]
    assert (one.error, two.error) == (None, None)
    arrived = sorted(path.partition("?")[0] for path in one.paths + two.paths)
    assert arrived == sorted(SHARED)
    assert len(one.failed) + len(two.failed) == len(SHARED)
    assert one.complaints + two.complaints == []


def test_two_crawlers_on_one_store_count_and_log_for_themselves(done: dict[str, Any]) -> None:
    one, two = done["together"]
    for crawl, name in ((one, "one"), (two, "two")):
        assert (crawl.stat("checked"), crawl.stat("dropped")) == (12, len(crawl.failed))
        assert crawl.stat("unique") == len(crawl.paths)
        records = crawl.records()
        assert sorted(record["url"] for record in records) == sorted(crawl.failed_paths)
        assert {record["spider"] for record in records} <= {name}
    assert max(one.stat("store/pages"), two.stat("store/pages")) == len(SHARED)
