"""Every way in which Scrapy runs: scripts, no reactor, other reactors, two crawlers at once."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest
from crawl_site import SETTINGS, Crawl, Site, article, crawls, job, python

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VISITS = ["/a", "/a-copy", "/a-near", "/b"]

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
    for number in range(12):
        pages[f"/{number}"] = article(50 + number)
    with Site(pages) as running:
        yield running


@pytest.mark.parametrize(("process", "workers"), [("CrawlerProcess", 1), ("AsyncCrawlerProcess", 0)])
def test_an_unguarded_script_runs_once(
    site: Site, tmp_path: Path, process: str, workers: int
) -> None:
    settings = {
        **SETTINGS,
        "SIMDUP_STORE": str(tmp_path / "store"),
        "SIMDUP_LOG": False,
        "SIMDUP_WORKERS": workers,
        "LOG_LEVEL": "INFO",
    }
    script = tmp_path / "script.py"
    script.write_text(
        SCRIPT.format(process=process, settings=settings, root=site.root, visits=VISITS), "utf-8"
    )
    done = python(script, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    first, report = done.stdout.splitlines()
    assert first == "script"
    result = json.loads(report)
    assert result["arrived"] == ["/a", "/b"]
    assert result["stats"]["simdup/dropped"] == 2
    assert done.stderr.count("simdup: checked 4 pages: 2 unique, 2 duplicates") == 1
    assert "ERROR" not in done.stderr
    assert "Traceback" not in done.stderr


def expect_the_usual(crawl: Crawl) -> None:
    assert crawl.paths == ["/a", "/b"]
    assert crawl.failed_paths == ["/a-copy", "/a-near"]
    assert (crawl.stat("unique"), crawl.stat("dropped")) == (2, 2)
    assert crawl.said("WARNING") + crawl.said("ERROR") == []
    assert len(crawl.said("INFO")) == 2


def test_without_a_reactor(site: Site, tmp_path: Path) -> None:
    jobs = [job(visits=VISITS)]
    (crawl,) = crawls(tmp_path, site, jobs, TWISTED_REACTOR_ENABLED=False)
    expect_the_usual(crawl)


@pytest.mark.parametrize(
    "reactor",
    [
        "twisted.internet.selectreactor.SelectReactor",
        pytest.param(
            "twisted.internet.epollreactor.EPollReactor",
            marks=pytest.mark.skipif(sys.platform != "linux", reason="Linux only"),
        ),
    ],
)
def test_on_a_reactor_without_asyncio(site: Site, tmp_path: Path, reactor: str) -> None:
    jobs = [
        job(visits=VISITS, name="drop"),
        job("Visitor", {"SIMDUP_ACTION": "tag"}, visits=VISITS, name="tag"),
        job("Visitor", {"SIMDUP_ITEM_FIELDS": ["text"]}, visits=VISITS, name="fields"),
    ]
    drop, tag, fields = crawls(tmp_path, site, jobs, TWISTED_REACTOR=reactor)
    expect_the_usual(drop)
    assert [item["path"] for item in tag.items if "simdup" in item] == ["/a-copy", "/a-near"]
    assert [item["path"] for item in fields.items] == ["/a", "/b"]


def test_two_crawlers_of_one_process_share_a_store(site: Site, tmp_path: Path) -> None:
    paths = [f"/{number}" for number in range(12)]
    for path in paths:
        site.pages[f"{path}?other"] = site.pages[path]
    others = [f"{path}?other" for path in paths[::-1]]
    store = {"SIMDUP_STORE": str(tmp_path / "store"), "CONCURRENT_REQUESTS": 4}
    jobs = [
        job("Visitor", store, visits=paths, name="one"),
        job("Visitor", store, visits=others, name="two"),
    ]
    one, two = crawls(tmp_path, site, jobs, how="together")
    assert (one.error, two.error) == (None, None)
    arrived = sorted(path.partition("?")[0] for path in one.paths + two.paths)
    assert arrived == sorted(paths)
    assert len(one.failed) + len(two.failed) == len(paths)
    assert max(one.stat("store/pages"), two.stat("store/pages")) == len(paths)
    records = one.records() + two.records()
    assert len(records) == len(paths)
    assert {record["spider"] for record in records} <= {"one", "two"}
    assert one.complaints + two.complaints == []
