"""The demo site of ``example_project``: what it claims of its pages is true.

Whether a crawl finds its duplicates is tested elsewhere.
"""

from __future__ import annotations

import re
from collections import Counter
from http.client import HTTPConnection
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from parsel import Selector

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLE = Path(__file__).resolve().parent.parent / "example_project"
DUPLICATES = ("copy", "session", "tracking", "print", "mirror", "refreshed", "edited", "extended")
ENCODED = ("gbk", "big5")
CONTENT = ".article-body p, .entry-content p"


@pytest.fixture(scope="module", autouse=True)
def example_on_path() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXAMPLE))
        yield


@pytest.fixture(scope="module")
def pages(example_on_path: None) -> list[Any]:
    from example.site import all_pages

    return all_pages()


@pytest.fixture(scope="module")
def articles(example_on_path: None) -> dict[str, Any]:
    from example.site import texts
    from example.site.pages import LANGS

    return {article.slug: article for lang in LANGS for article in texts.articles(lang)}


def html(page: Any) -> str:
    """Decode a page by the charset of its header, or else of its meta element."""
    declared = re.search(r"charset=([\w-]+)", page.headers["Content-Type"])
    found = declared[1] if declared else re.search(rb'charset="([\w-]+)"', page.body)[1].decode()
    return page.body.decode(found)


def selector(page: Any) -> Selector:
    return Selector(html(page), type="html")


def paragraphs(page: Any) -> list[str]:
    found = selector(page).css("body > p" if page.form == "print" else CONTENT)
    texts = ["".join(p.xpath(".//text()").getall()) for p in found]
    return texts[:-1] if page.form == "print" else texts  # the last says where it was printed


def tokens(text: str) -> list[str]:
    """Words; in Chinese, characters."""
    return re.findall(r"[\u3007\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+", text)


def resemblance(a: str, b: str) -> float:
    one, other = (
        {tuple(words[i : i + 5]) for i in range(len(words) - 4)} for words in (tokens(a), tokens(b))
    )
    return len(one & other) / max(1, len(one | other))


def text_of(page: Any) -> str:
    return " ".join(selector(page).xpath("//body//text()").getall())


def targets(page: Any) -> set[str]:
    found = set(selector(page).css("a::attr(href)").getall())
    if "Location" in page.headers:
        found.add(page.headers["Location"])
    return found | set(re.findall(r'content="\d+; url=([^"]+)"', html(page)))


def of_form(pages: list[Any], *forms: str) -> list[Any]:
    return [page for page in pages if page.form in forms]


# The list of pages


def test_it_is_the_same_every_time(pages):
    from example.site import all_pages

    assert all_pages() == pages


def test_paths_are_unique(pages):
    counts = Counter(page.path for page in pages)
    assert [path for path, count in counts.items() if count > 1] == []
    assert all(page.path.startswith("/") and "#" not in page.path for page in pages)


def test_it_has_a_size_to_crawl_in_seconds(pages):
    assert 150 <= len(pages) <= 230
    assert sum(len(page.body) for page in pages) < 1_000_000


def test_every_form_occurs_and_no_other(pages):
    from example.site import FORMS

    counts = Counter(page.form for page in pages)
    assert set(counts) == set(FORMS)
    assert {form for form, count in counts.items() if count < 3} <= set(ENCODED)


@pytest.mark.parametrize("form", DUPLICATES)
def test_every_form_of_duplicate_occurs_in_both_languages(pages, articles, form):
    langs = Counter(articles[page.story].lang[:2] for page in of_form(pages, form))
    assert min(langs["en"], langs["zh"]) >= 3


def test_duplicates_and_nothing_else_have_a_story(pages, articles):
    with_story = of_form(pages, "original", *DUPLICATES, *ENCODED)
    assert [page.path for page in pages if (page.story is not None) != (page in with_story)] == []
    originals = of_form(pages, "original")
    assert sorted(page.story for page in originals) == sorted(articles)
    assert len(articles) >= 26


# Links


def test_every_linked_page_exists(pages):
    paths = {page.path for page in pages}
    assert {path for page in pages for path in targets(page)} <= paths


def test_every_page_is_reached_though_no_article_is_read(pages):
    by_path = {page.path: page for page in pages}
    reached, waiting = {"/"}, ["/"]
    while waiting:
        page = by_path[waiting.pop()]
        if page.story is None:
            waiting += (new := targets(page) - reached)
            reached |= new
    assert reached == set(by_path)


# Stories


def test_articles_have_the_length_of_articles(articles):
    for article in articles.values():
        low, high = (250, 450) if article.lang == "en" else (400, 800)
        assert low <= len(tokens(" ".join(article.paragraphs))) <= high, article.slug
        assert len(article.paragraphs) >= 4, article.slug


def test_different_stories_are_different(articles):
    texts = {slug: " ".join(article.paragraphs) for slug, article in articles.items()}
    for one, other in combinations(texts, 2):
        assert resemblance(texts[one], texts[other]) < 0.05, (one, other)


def test_copies_and_tracking_links_are_the_bytes_of_the_original(pages):
    bodies = {page.story: page.body for page in of_form(pages, "original")}
    for page in of_form(pages, "copy", "tracking"):
        assert page.body == bodies[page.story], page.path


@pytest.mark.parametrize("form", ["original", "session", "print", "mirror", "refreshed", *ENCODED])
def test_the_story_is_there_word_for_word(pages, articles, form):
    for page in of_form(pages, form):
        assert paragraphs(page) == list(articles[page.story].paragraphs), page.path


@pytest.mark.parametrize("form", ["session", "print", "mirror", "refreshed", *ENCODED])
def test_other_forms_have_other_bytes(pages, form):
    bodies = {page.story: page.body for page in of_form(pages, "original")}
    for page in of_form(pages, form):
        assert page.body != bodies[page.story], page.path


def test_a_refreshed_page_has_another_date_advertisement_and_counter(pages):
    originals = {page.story: selector(page) for page in of_form(pages, "original")}
    for page in of_form(pages, "refreshed"):
        for css in ("time", ".ad", ".counter"):
            new = selector(page).css(css).get()
            assert new, (page.path, css)
            assert new != originals[page.story].css(css).get(), (page.path, css)


def test_an_edited_page_has_one_sentence_changed(pages, articles):
    for page in of_form(pages, "edited"):
        article = articles[page.story]
        old, new = article.edit
        assert 0 < len(tokens(old)) < 30
        assert "\n".join(paragraphs(page)) == "\n".join(article.paragraphs).replace(old, new)
        assert new in "\n".join(paragraphs(page))


def test_an_extended_page_has_a_paragraph_more(pages, articles):
    for page in of_form(pages, "extended"):
        article = articles[page.story]
        new = [text for text in paragraphs(page) if text not in article.paragraphs]
        assert len(new) == 1
        assert len(paragraphs(page)) == len(article.paragraphs) + 1
        share = len(tokens(new[0])) / len(tokens(" ".join(article.paragraphs)))
        assert 0.095 <= share <= 0.13, (page.path, share)


@pytest.mark.parametrize("form", ENCODED)
def test_pages_in_old_encodings_declare_them(pages, form):
    for page in of_form(pages, form):
        assert f'charset="{form}"'.encode() in page.body
        with pytest.raises(UnicodeDecodeError):
            page.body.decode("utf-8")
    if form == "big5":
        assert all("charset" not in page.headers["Content-Type"] for page in of_form(pages, form))


# What must pass


def test_products_differ_in_name_model_colour_and_price_only(pages):
    from example.site import texts

    by_path = {page.path: page for page in pages}
    for lang in ("en", "zh"):
        _, *products = texts.records(f"products.{lang}")
        masked = set()
        for product in products:
            text = html(by_path[f"/shop/{lang}/{product.head['model'].lower()}.html"])
            for key, value in product.head.items():
                assert text.count(value) >= 2, (value, key)
                text = text.replace(value, f"<{key}>")
            masked.add(text)
        assert len(products) >= 4
        assert len(masked) == 1


def test_product_descriptions_have_the_length_of_a_paragraph(pages):
    for page in of_form(pages, "product"):
        count = len(tokens(selector(page).css(".description::text").get()))
        assert 120 <= count <= (150 if "/en/" in page.path else 260), (page.path, count)


def test_siblings_share_their_boilerplate_but_no_content(pages):
    for lang in ("en", "zh"):
        siblings = [p for p in of_form(pages, "sibling") if f"/{lang}/" in p.path]
        assert len({selector(page).css(".visit").get() for page in siblings}) == 1
        own = ["".join(selector(page).css("main > p ::text").getall()) for page in siblings]
        assert min(len(tokens(text)) for text in own) >= 60
        assert max(resemblance(a, b) for a, b in combinations(own, 2)) < 0.05


def test_list_pages_differ(pages):
    lists = {page.path: text_of(page) for page in of_form(pages, "list")}
    for one, other in combinations(lists, 2):
        assert resemblance(lists[one], lists[other]) < 0.2, (one, other)


def test_quotes_are_long_and_have_a_longer_text_around_them(pages, articles):
    for page in of_form(pages, "quote"):
        quoted = "".join(selector(page).css("blockquote ::text").getall())
        around = "".join(selector(page).css(".article-body > p ::text").getall())
        [article] = [a for a in articles.values() if quoted.strip().startswith(a.paragraphs[:3])]
        share = len(tokens(quoted)) / len(tokens(" ".join(article.paragraphs)))
        assert 0.3 <= share <= 0.5, (page.path, share)
        assert len(tokens(around)) > len(tokens(quoted)), page.path


def test_short_pages_are_short(pages):
    for page in of_form(pages, "short"):
        main = selector(page).css(".article-body") or selector(page).css("body")
        assert 0 < len(tokens("".join(main.xpath(".//text()").getall()))) < 20, page.path


def test_two_short_pages_are_the_same_bytes(pages):
    bodies = Counter(page.body for page in of_form(pages, "short"))
    assert max(bodies.values()) == 2


def test_redirects_are_answered_by_status_or_by_refresh(pages):
    statuses = Counter(page.status for page in of_form(pages, "redirect"))
    assert statuses[301] >= 1
    assert statuses[302] >= 1
    delays = [int(d) for p in pages for d in re.findall(r'content="(\d+); url=', html(p))]
    assert min(delays) <= 100 < max(delays)  # Scrapy follows up to 100 seconds
    assert {page.status for page in pages if page.form != "redirect"} == {200}


# The server


@pytest.fixture
def server(pages: list[Any]) -> Iterator[Any]:
    from example.site import SiteServer

    server = SiteServer(pages)
    yield server
    server.stop()


def fetch(server: Any, path: str) -> tuple[int, dict[str, str], bytes]:
    connection = HTTPConnection(*server.server_address, timeout=10)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def test_the_server_answers_with_each_page_as_it_is(server, pages, capfd):
    for page in pages:
        status, headers, body = fetch(server, page.path)
        assert (status, body) == (page.status, page.body)
        assert page.headers.items() <= headers.items()
    assert capfd.readouterr() == ("", "")


def test_the_server_knows_robots_txt_and_what_it_does_not_have(server):
    assert b"Disallow" in fetch(server, "/robots.txt")[2]
    assert fetch(server, "/nowhere")[0] == 404
    assert server.url == f"http://127.0.0.1:{server.server_address[1]}/"


# The judgement


@pytest.fixture
def truth(pages: list[Any]) -> Any:
    from example.truth import Truth

    return Truth(pages)


def duplicate(of: str) -> Any:
    return SimpleNamespace(
        kind="near", reason="simhash", distance=3, resemblance=0.9, duplicate_of=f"http://h{of}"
    )


def report_lines(truth: Any) -> list[str]:
    return truth.report().splitlines()


def test_one_page_of_each_story_is_to_pass(truth, pages):
    stories = {}
    for page in pages:
        if page.story in stories:
            truth.dropped(f"http://h{page.path}", duplicate(stories[page.story]))
        else:
            truth.passed(f"http://h{page.path}")
            if page.story:
                stories[page.story] = page.path
    count = sum(page.story is not None for page in pages) - len(stories)
    last = f"found {count} of {count} duplicates, missed 0, falsely dropped 0"
    assert report_lines(truth)[-1] == last
    assert report_lines(truth)[-2] == ""


def test_it_does_not_matter_which_page_of_a_story_passes(truth):
    truth.passed("http://h/corrected/en/quince.html")
    truth.dropped("http://h/news/en/quince.html", duplicate("/corrected/en/quince.html"))
    assert (len(truth.found), len(truth.missed), len(truth.falsely_dropped)) == (1, 0, 0)


def test_a_second_page_of_a_story_that_passes_is_missed(truth):
    truth.passed("http://h/news/en/quince.html")
    truth.passed("http://h/corrected/en/quince.html")
    assert report_lines(truth)[-1] == "found 0 of 1 duplicates, missed 1, falsely dropped 0"
    assert report_lines(truth)[-2] == (
        "missed: edited /corrected/en/quince.html passed beside original /news/en/quince.html"
    )


def test_a_missed_page_is_named_with_its_distance_if_both_fingerprints_are_known(truth):
    truth.passed("http://h/news/en/quince.html", SimpleNamespace(simhash=0b1011))
    truth.passed("http://h/corrected/en/quince.html", SimpleNamespace(simhash=0b0001))
    assert report_lines(truth)[-2].endswith("original /news/en/quince.html (distance 2)")


def test_a_missed_page_is_named_with_the_near_miss_that_was_refused(truth):
    miss = SimpleNamespace(url="http://h/news/en/quince.html", distance=4, resemblance=0.654)
    truth.passed("http://h/news/en/quince.html", SimpleNamespace(simhash=1, near_miss=None))
    truth.passed("http://h/evening/en/quince.html", SimpleNamespace(simhash=2, near_miss=miss))
    assert report_lines(truth)[-2].endswith(
        "(near miss of http://h/news/en/quince.html, distance 4, resemblance 0.65)"
    )


@pytest.mark.parametrize("path", ["/news/en/quince.html", "/shop/en/kt-210.html", "/"])
def test_a_page_called_a_duplicate_of_another_story_is_falsely_dropped(truth, path):
    truth.passed("http://h/shop/en/kt-340.html")
    truth.dropped(f"http://h{path}", duplicate("/shop/en/kt-340.html"))
    assert report_lines(truth)[-1] == "found 0 of 0 duplicates, missed 0, falsely dropped 1"
    assert report_lines(truth)[-2].endswith(
        f"{path} as a duplicate of product /shop/en/kt-340.html "
        "(near, simhash, distance 3, resemblance 0.90)"
    )


def test_pages_that_the_crawl_did_not_see_are_named(truth, pages):
    truth.passed("http://h/")
    assert sum(line.startswith("not seen: ") for line in report_lines(truth)) == len(pages) - 1
