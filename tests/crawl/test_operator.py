"""What an operator is told while a crawl runs, and what that may do to the crawl."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from crawl_site import Crawl, Site, article, crawl, crawls, job

from scrapy_simdup.store.reading import StoreReader

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOGIN = article(900)
COPIES = 6


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    pages: dict[str, Any] = {f"/{number}": article(number) for number in range(40)}
    pages |= {f"/wall/{number}": LOGIN + f"<!-- {number} -->" for number in range(40)}
    links = {number: [f"/found/{number}"] for number in range(COPIES)}
    pages |= {f"/copy/{n}": article(1, edits=1, variant=n, links=links[n]) for n in links}
    pages |= {f"/found/{n}": article(50 + n) for n in links}
    with Site(pages) as running:
        yield running


@pytest.fixture(scope="module")
def walled(site: Site, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Crawl]:
    """40 good pages, then 40 times the login page; the last ones are never asked for if it closes."""
    visits = [*(f"/{n}" for n in range(40)), *(f"/wall/{n}" for n in range(40))]
    jobs = [
        job(visits=visits, name="goes on"),
        job("Visitor", {"SIMDUP_CLOSE_ON_ALERT": True}, visits=visits, name="all"),
        job("Visitor", {"SIMDUP_CLOSE_ON_ALERT": ["one_page"]}, visits=visits, name="one"),
        job("Visitor", {"SIMDUP_CLOSE_ON_ALERT": "no_text"}, visits=visits, name="other"),
    ]
    done = crawls(tmp_path_factory.mktemp("walled"), site, jobs)
    return dict(zip(("goes on", "all", "one", "other"), done, strict=True))


def test_a_page_that_attracts_the_others_is_told_of_once(walled: dict[str, Crawl]) -> None:
    result = walled["goes on"]
    [complaint] = result.complaints
    assert re.fullmatch(
        r"WARNING scrapy_simdup\.session: simdup: 28 of the last 69 pages of 127\.0\.0\.1:\d+ are "
        r"duplicates of /wall/0, the last is /wall/28; see whether .*"
        r"\(simdup/alert/one_page\)",
        complaint,
    )
    assert result.stat("alert/one_page") == 1
    assert result.stats["finish_reason"] == "finished"
    assert result.stat("checked") == 80


@pytest.mark.parametrize("which", ["all", "one"])
def test_it_may_end_the_crawl(walled: dict[str, Crawl], which: str) -> None:
    result = walled[which]
    assert result.stats["finish_reason"] == "simdup_one_page"
    assert 69 <= result.stat("checked") < 75
    assert result.error is None


def test_another_kind_does_not(walled: dict[str, Crawl]) -> None:
    assert walled["other"].stats["finish_reason"] == "finished"


@pytest.mark.parametrize(("links", "arrived"), [(0, 0), (1, 1), (4, 4), (100, COPIES)])
def test_the_first_duplicates_of_a_page_reach_the_spider_for_their_links(
    site: Site, tmp_path: Path, links: int, arrived: int
) -> None:
    visits = ["/1", *(f"/copy/{n}" for n in range(COPIES))]
    settings = {"SIMDUP_CLUSTER_LINKS": links}
    one = job("Visitor", settings, visits=visits, follow=True)
    first, again = crawls(tmp_path, site, [one, one])
    found = [f"/found/{n}" for n in range(arrived)]
    assert first.paths == ["/1", *(f"/copy/{n}" for n in range(arrived)), *found]
    assert [item["path"] for item in first.items] == ["/1", *found], "items of duplicates are not"
    assert (first.stat("dropped"), first.stat("tagged")) == (COPIES, arrived)
    actions = [record["action"] for record in first.records()]  # of both crawls
    assert actions == 2 * (["drop_items"] * arrived + ["drop"] * (COPIES - arrived))
    assert again.paths == first.paths, "the same ones on the next crawl"


def test_a_line_tells_now_and_then_how_far_it_is(site: Site, tmp_path: Path) -> None:
    visits = [{"path": f"/{n}"} for n in range(30)] + ["/copy/0"] * 1
    settings = {
        "LOGSTATS_INTERVAL": 0.2,
        "DOWNLOAD_DELAY": 0.03,
        "EXTENSIONS": {"scrapy.extensions.periodic_log.PeriodicLog": 0},
        "PERIODIC_LOG_STATS": {"include": ["simdup/store"]},
    }
    result = crawl(tmp_path, site, "Visitor", settings, visits=visits)
    lines = [line for line in result.said("INFO") if "found" in line and "/min" in line]
    assert len(lines) > 2
    pattern = (
        r"simdup: checked (\d+) pages \(at (\d+) pages/min\), found (\d+) duplicates \(at \d+/min, "
        r"\d+\.\d %\); store (\d+) pages, \d+\.\d kB"
    )
    matches = [re.fullmatch(pattern, line) for line in lines]
    assert all(matches), lines
    counted = [int(match[1]) for match in matches if match]
    assert counted == sorted(counted)
    assert 0 < counted[-1] <= 31
    periodic = [
        line["message"] for line in result.log if line["logger"] == "scrapy.extensions.periodic_log"
    ]
    assert any('"simdup/store/pages"' in message for message in periodic), periodic


def test_a_store_remembers_its_crawls(site: Site, tmp_path: Path) -> None:
    settings = {"SIMDUP_MIN_TOKENS": 25, "SIMDUP_SEED": 7}
    result = crawl(tmp_path, site, "Visitor", settings, visits=["/1", "/2", "/copy/0"])
    with StoreReader(tmp_path / "store") as reader:
        [noted] = reader.crawls()
        records = dict(reader.records())
    assert noted.spider == "visitor"
    assert noted.id == result.records()[0]["crawl"]
    assert noted.ended is not None
    assert noted.started <= records[1].first_seen <= noted.ended
    assert noted.options["min_tokens"] == 25
    assert "seed" not in noted.options
    assert (noted.counts["unique"], noted.counts["duplicate/near"]) == (2, 1)
    assert {record.added_by for record in records.values()} == {noted.id}


def test_a_crawl_that_comes_to_nothing_says_why(site: Site, tmp_path: Path) -> None:
    """Its start page duplicates one of an earlier crawl over the same store."""
    first, nothing = crawls(
        tmp_path,
        site,
        [job(visits=["/1"], place="one"), job(visits=["/copy/1"], place="one", follow=True)],
    )
    assert first.complaints == []
    [complaint] = nothing.complaints
    assert "no page of this crawl has passed: 1 were dropped, the last, /copy/1, as a" in complaint
    assert "duplicate of /1, and links of dropped pages are not followed" in complaint
    assert nothing.paths == []
