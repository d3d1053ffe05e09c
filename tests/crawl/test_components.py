"""The add-on, its three components by hand, and what happens if one of them is missing."""

from __future__ import annotations

from typing import Any

import pytest
from crawl_site import Crawl, Site, article, crawls, job

MIDDLEWARE = "scrapy_simdup.downloadermiddleware.SimdupDownloaderMiddleware"
SPIDER_MIDDLEWARE = "scrapy_simdup.spidermiddleware.SimdupSpiderMiddleware"
PIPELINE = "scrapy_simdup.pipeline.SimdupItemPipeline"
BY_HAND: dict[str, Any] = {
    "ADDONS": {},
    "DOWNLOADER_MIDDLEWARES": {MIDDLEWARE: 545},
    "SPIDER_MIDDLEWARES": {SPIDER_MIDDLEWARE: 10},
    "ITEM_PIPELINES": {PIPELINE: 100},
}
VISITS = ["/a", "/a-copy", "/b"]
TAG = {"SIMDUP_ACTION": "tag"}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Crawl]:
    first = article(1)
    jobs = [
        job("Visitor", {**BY_HAND, **TAG}, visits=VISITS, name="by hand"),
        job("Visitor", BY_HAND, visits=VISITS, name="by hand, drop"),
        job(
            "Visitor",
            {**TAG, "ITEM_PIPELINES": {PIPELINE: None}},
            visits=VISITS,
            name="no pipeline",
        ),
        job("Visitor", {"ITEM_PIPELINES": {PIPELINE: None}}, visits=VISITS, name="drop only"),
        job(
            "Visitor",
            {**TAG, "SPIDER_MIDDLEWARES": {SPIDER_MIDDLEWARE: None}},
            visits=VISITS,
            name="no spider middleware",
        ),
        job(
            "Visitor",
            {"DOWNLOADER_MIDDLEWARES": {MIDDLEWARE: None}},
            visits=VISITS,
            name="no downloader middleware",
        ),
        job("Visitor", {"SIMDUP_ENABLED": False}, visits=VISITS, name="switched off"),
        job(
            "Visitor",
            {"SIMDUP_ENABLED": "0", "SIMDUP_STORE": "/dev/null/no/such/place"},
            visits=VISITS,
            name="switched off with a bad store",
        ),
        job(
            "Visitor",
            {**TAG, "ITEM_PIPELINES": {"crawl.spiders.Replacer": 50}},
            visits=VISITS,
            name="a pipeline before ours",
        ),
    ]
    with Site({"/a": first, "/a-copy": first, "/b": article(2)}) as site:
        results = crawls(tmp_path_factory.mktemp("components"), site, jobs)
    return {one["arguments"]["name"]: result for one, result in zip(jobs, results, strict=True)}


def tagged(crawl: Crawl) -> list[str]:
    return [item["path"] for item in crawl.items if "simdup" in item]


def test_components_enabled_by_hand_work_without_the_add_on(done: dict[str, Crawl]) -> None:
    assert tagged(done["by hand"]) == ["/a-copy"]
    assert done["by hand, drop"].failed_paths == ["/a-copy"]
    assert done["by hand"].complaints + done["by hand, drop"].complaints == []


def test_pages_are_dropped_without_the_pipeline(done: dict[str, Crawl]) -> None:
    crawl = done["drop only"]
    assert (crawl.paths, crawl.failed_paths) == (["/a", "/b"], ["/a-copy"])
    assert crawl.complaints == []


def test_items_pass_without_the_pipeline(done: dict[str, Crawl]) -> None:
    crawl = done["no pipeline"]
    assert len(crawl.items) == 3
    assert tagged(crawl) == []
    assert crawl.stat("duplicate/exact") == 1


@pytest.mark.parametrize("missing", ["no spider middleware", "no downloader middleware"])
def test_the_pipeline_says_what_it_misses_and_lets_items_pass(
    done: dict[str, Crawl], missing: str
) -> None:
    crawl = done[missing]
    assert crawl.error is None
    assert len(crawl.items) == 3
    assert tagged(crawl) == []
    (warning,) = crawl.said("WARNING")
    assert "SimdupDownloaderMiddleware and SimdupSpiderMiddleware" in warning
    assert crawl.said("ERROR") == []


@pytest.mark.parametrize("name", ["switched off", "switched off with a bad store"])
def test_switched_off_it_does_nothing_and_leaves_nothing(done: dict[str, Crawl], name: str) -> None:
    crawl = done[name]
    assert crawl.paths == VISITS
    assert [page["verdict"] for page in crawl.arrived] == [None] * 3
    assert crawl.simdup_stats == {}
    assert crawl.said("INFO") + crawl.complaints == []
    assert list(crawl.folder.iterdir()) == []


def test_items_that_an_earlier_pipeline_replaces_pass_and_are_not_held(
    done: dict[str, Crawl],
) -> None:
    crawl = done["a pipeline before ours"]
    assert [item["path"] for item in crawl.items] == VISITS
    assert tagged(crawl) == []
    assert crawl.extra["held"] == 0
