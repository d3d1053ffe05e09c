"""The report as a file: what is in it, and that nothing in it can do harm."""

from __future__ import annotations

import re
import sys
from collections import Counter
from types import SimpleNamespace

import lxml.html
import pytest

from scrapy_simdup.report.data import POINTS, Sample, gather
from scrapy_simdup.report.render import link
from scrapy_simdup.report.texts import marked
from scrapy_simdup.store.reading import StoreReader

from .conftest import PAGES, TITLE, report


@pytest.fixture(scope="module")
def page(made):
    return lxml.html.parse(
        str(made / "report.html"), lxml.html.HTMLParser(encoding="utf-8")
    ).getroot()


def test_figures_are_those_of_the_store(page):
    cards = {
        card.text_content().removeprefix(card[0].text): card[0].text
        for card in page.cssselect(".card")
    }
    assert (cards["pages"], cards["kept"], cards["exact"]) == (str(len(PAGES)), "13", "5")
    assert cards["near"] == "9"
    assert cards["near misses"] == "20", "those of the crawl"
    text = page.text_content()
    assert "20: siblings" in text
    assert "3: no_text" in text
    assert "one_page (1)" in text


def test_every_chart_is_there(page):
    names = [figure.get("id") for figure in page.cssselect("figure")]
    assert names == ["chart-distances", "chart-scatter", "chart-timeline", "chart-hosts"]
    for figure in page.cssselect("figure"):
        assert figure.cssselect("svg rect, svg circle")
    assert not page.xpath("//svg//script")


def test_pairs_have_their_texts_and_differences(page):
    articles = page.cssselect("article[data-pair]")
    assert Counter(one.get("data-kind") for one in articles) == {
        "near": 9,
        "exact": 5,
        "near_miss": 20,
    }
    [near] = [one for one in articles if "https://b.example/4" in one.get("data-pair")]
    assert len(near.cssselect("del")) == len(near.cssselect("ins")) == 2
    assert all("edited" in one.text for one in near.cssselect("del"))


def test_what_comes_from_the_web_stays_text(page, made):
    assert TITLE in page.text_content()
    scripts = page.cssselect("script")
    assert len(scripts) == 1
    assert not page.cssselect("img, iframe, link, object, embed, base, form")
    addresses = {anchor.get("href") for anchor in page.cssselect("a")}
    assert addresses
    assert all(address.startswith(("http://", "https://")) for address in addresses)
    source = (made / "report.html").read_text("utf-8")
    handlers = re.findall(r"\son[a-z]+=", re.sub(r"(?s)<script>.*?</script>", "", source))
    assert handlers == []
    assert "default-src 'none'" in source


def test_of_the_whole_store_and_of_a_crawl_there_is_not(made, capsys):
    assert report(made, "--all", "--json") == 0
    assert report(made) == 0
    assert report(made, "--crawl", "none") == 2
    assert "there are: crawl" in capsys.readouterr().err
    assert report(made, "--httpcache", "/none") == 2


@pytest.mark.parametrize("name", ["pygal", "jinja2"])
def test_without_the_extra_is_one_line_that_says_what_to_install(made, monkeypatch, capsys, name):
    monkeypatch.setitem(sys.modules, name, None)
    assert report(made) == 1
    assert "pip install 'scrapy-simdup[report]'" in capsys.readouterr().err


def test_only_http_addresses_are_links():
    assert link("https://example.org/a?b") == "https://example.org/a?b"
    for url in (
        "javascript:alert(1)",
        "file:///etc/passwd",
        "data:text/html,x",
        "//a",
        "http://",
        "http://[",
        "",
    ):
        assert link(url) is None


def test_texts_are_marked_word_by_word_and_sign_by_sign():
    both = marked(["the old word here"], ["the new word here"])
    assert both.left == [(False, "the "), (True, "old"), (False, " word here")]
    assert both.right == [(False, "the "), (True, "new"), (False, " word here")]
    both = marked(["今天天气很好"], ["今天天氣很好"])
    assert both.left == [(False, "今天天"), (True, "气"), (False, "很好")]
    long = [" ".join(f"word{n}" for n in range(500))]
    assert marked(long, long).left[0][1].count("…") == 1
    different = [" ".join(f"other{n}" for n in range(50_000))]
    assert marked(long, different).cut


def test_samples_are_the_same_every_time_and_fair():
    first, second = Sample[int](50, "seed"), Sample[int](50, "seed")
    for number in range(10_000):
        first.add(number)
        second.add(number)
    assert first.chosen == second.chosen
    assert len(first.chosen) == 50
    assert 3_000 < sum(first.chosen) / 50 < 7_000


def test_a_hundred_thousand_records_stay_below_three_megabytes(made, tmp_path):
    from scrapy_simdup.report.render import render

    entries = (
        {
            "kind": "near_miss",
            "crawl": "crawl",
            "url": f"https://host{n % 5000}.example/{n}/" + "x" * 200,
            "duplicate_of": f"https://host{n % 7}.example/" + "y" * 200,
            "distance": n % 12,
            "resemblance": n % 100 / 100,
            "rule": "siblings",
            "title": f"Title {n} " + "z" * 250,
        }
        for n in range(100_000)
    )
    with StoreReader(made / "store") as reader:
        summary = gather(reader, reader.crawls()[0], entries, lambda *_: None)
    assert len(summary.points["near_miss"].chosen) == POINTS
    nothing = SimpleNamespace(of=lambda *_: None)
    html = render(summary, nothing, lambda *_: None)
    assert len(html.encode()) < 3_000_000
