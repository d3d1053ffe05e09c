from __future__ import annotations

import json
import logging
import pickle
import random
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from types import ModuleType
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml.html import document_fromstring
from material import story

from scrapy_simdup.page.blocks import read_blocks
from scrapy_simdup.page.content import Content, ContentExtractor, NoContent
from scrapy_simdup.page.fingerprint import Fingerprinter, text_digest
from scrapy_simdup.page.simhash import hamming
from scrapy_simdup.page.sketch import resemblance

if TYPE_CHECKING:
    from collections.abc import Callable

EXTRACTOR = ContentExtractor()
FINGERPRINTER = Fingerprinter()

FERRY = (
    (
        "The ferry across the estuary stopped for nine weeks while its chain was replaced, and the "
        "two villages became so quiet that herons walked on the landing stage."
    ),
    (
        "On the southern bank the bakery closed at noon, because its customers from the other side "
        "stayed away; the baker repainted his van and learned to play the accordion."
    ),
    (
        "On the northern bank the school bus took the long way round over the iron bridge, and the "
        "children came home after dark with their homework done on their knees."
    ),
)
VIOLIN = (
    (
        "Before a violin is varnished it hangs in the sun for a summer, where the wood darkens and "
        "lets go of its last moisture without anybody touching it but the maker."
    ),
    (
        "Old recipes call for linseed oil, resin from larch trees and a pigment of madder roots, "
        "boiled so slowly that the pot has to be watched through two nights."
    ),
    (
        "Each coat is thinner than a hair, and twelve coats take as many weeks; impatience shows "
        "forever as a wrinkle under the light of the concert hall."
    ),
)
CONSENT = (
    (
        "We and our many partners keep information on your device so that pages load faster, and so "
        "that we know which of our programmes are liked best by which listeners."
    ),
    (
        "You may accept all purposes, refuse them, or choose one by one; your choice is kept for half "
        "a year and can be withdrawn through the link below every page of ours."
    ),
)
MENU = "<nav><ul><li><a href='/'>Home</a></li><li><a href='/n'>News</a></li></ul></nav>"
FOOTER = "<footer><p>Printed by nobody, <a href='/i'>imprint</a></p></footer>"


def paragraphs(story: tuple[str, ...]) -> str:
    return "".join(f"<p>{paragraph}</p>" for paragraph in story)


def page(body: str, head: str = "<title>A page</title>") -> str:
    return (
        f'<!DOCTYPE html><html lang="en"><head>{head}</head>'
        f"<body>{MENU}{body}{FOOTER}</body></html>"
    )


def article(story: tuple[str, ...], heading: str = "A heading") -> str:
    return page(f"<main><h1>{heading}</h1>{paragraphs(story)}</main>")


def text(html: str, extractor: ContentExtractor = EXTRACTOR) -> str:
    return "\n".join(extractor.extract(html).main)


def reason(html: str, extractor: ContentExtractor = EXTRACTOR) -> str:
    with pytest.raises(NoContent) as raised:
        extractor.extract(html)
    return raised.value.reason


def are_near(a: str, b: str) -> bool:
    one, other = FINGERPRINTER.fingerprint(text(a)), FINGERPRINTER.fingerprint(text(b))
    assert one is not None
    assert other is not None
    near = hamming(one.simhash, other.simhash) <= 10
    return near and resemblance(one.sketch, other.sketch) >= 0.6


# ---- text ----------------------------------------------------------------------------------------


def test_the_story_is_extracted_without_menu_and_footer() -> None:
    found = text(article(FERRY))
    assert all(paragraph in found for paragraph in FERRY)
    assert "News" not in found
    assert "imprint" not in found


@pytest.mark.parametrize(
    "fragment",
    [
        paragraphs(FERRY),
        "<p>" + "<p>".join(FERRY),
        "<main>" + paragraphs(FERRY) + "</main>",
        "<body>\n" + "<br><br>\n".join(FERRY),
        "<br>".join(FERRY),
        "\n".join(FERRY),
        "\ufeff  <div>" + paragraphs(FERRY),
        "<head><title>A page</title></head>" + paragraphs(FERRY),
        "<!-- x -->" * 20 + paragraphs(FERRY),
    ],
)
def test_a_fragment_has_the_text_of_the_whole_document(fragment: str) -> None:
    assert text_digest(text(fragment)) == text_digest("\n".join(FERRY))


def test_different_fragments_are_different() -> None:
    assert not are_near("<br>".join(FERRY), "<br>".join(VIOLIN))


@pytest.mark.parametrize(
    "prolog",
    [
        "<?xml version='1.0' encoding='gbk'?>",
        '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "http://x/y.dtd" />',
        "<html/>\n",
        "<html lang='en' />",
        '<meta charset="koi8-r">',
        "\x00\x01",
    ],
)
def test_an_odd_beginning_does_not_hide_the_text(prolog: str) -> None:
    assert "Größe 尺寸" in text(f"{prolog}<body><p>Größe 尺寸</p>{paragraphs(FERRY)}</body>")


def test_text_after_a_nul_is_not_lost() -> None:
    begin, *rest = FERRY
    cut = article((begin + "\x00", *rest))
    assert text(cut) == text(article(FERRY))
    assert text_digest(text(article((begin + "\x00", *VIOLIN)))) != text_digest(text(cut))


@pytest.mark.parametrize(
    "mark",
    [
        "\x00",
        "\x08",
        "\x0b",
        "\ufffe",
        "\xad",
        "\u200b",
        "\u2060",
        "\ufeff",
        "<wbr>",
        "<WBR/>",
        "&shy;",
        "&#173;",
        "&#xAD;",
        "&ZeroWidthSpace;",
        "&#8203;",
        "&#x200B;",
    ],
)
def test_what_no_reader_sees_does_not_part_words(mark: str) -> None:
    strewn = tuple(paragraph.replace("ea", f"e{mark}a") for paragraph in FERRY)
    assert text_digest(text(article(strewn))) == text_digest(text(article(FERRY)))


def test_a_lone_surrogate_does_no_harm() -> None:
    assert FERRY[1] in text(article(("Lone \ud800 surrogate", *FERRY)))


def test_the_text_does_not_depend_on_the_pages_before() -> None:
    before = text(article(FERRY))
    for _ in range(5):
        text(article(VIOLIN))
        text(article(FERRY))
    assert text(article(FERRY)) == before


def test_threads_extract_the_same() -> None:
    pages = [article(FERRY), article(VIOLIN), "<br>".join(VIOLIN)] * 8
    extractor = ContentExtractor()
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(extractor.extract, pages)) == list(map(EXTRACTOR.extract, pages))


# ---- title and language --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "body", "title"),
    [
        ("<title> The\n ferry &amp; its chain </title>", "<h1>No</h1>", "The ferry & its chain"),
        ("", "<svg><title>Icon</title></svg><h1>The <b>ferry</b></h1>", "The ferry"),
        ("<title> </title>", "<h1>The <b>ferry</b></h1><h1>No</h1>", "The ferry"),
        ("<title>Ferry</title>", "<svg><title>Icon</title></svg>", "Ferry"),
        ("", "", None),
        ("<title>" + "x" * 400 + "</title>", "", "x" * 300),
    ],
)
def test_the_title_is_the_pages_or_its_first_heading(
    head: str, body: str, title: str | None
) -> None:
    assert EXTRACTOR.extract(page(body + paragraphs(FERRY), head)).title == title


@pytest.mark.parametrize(
    ("tag", "language"),
    [
        ('<html lang="zh-Hant-TW">', "zh-Hant-TW"),
        ("<html lang=' de '>", "de"),
        ('<html xml:lang="pt_BR">', "pt_BR"),
        ('<html lang="">', None),
        ('<html lang="{{ lang }}">', None),
        ("<html>", None),
    ],
)
def test_the_language_is_the_declared_one(tag: str, language: str | None) -> None:
    assert EXTRACTOR.extract(f"{tag}<body>{paragraphs(FERRY)}").language == language


# ---- is it the story? ----------------------------------------------------------------------------


def test_a_story_in_an_aside_is_not_replaced_by_the_consent_text() -> None:
    def radio(story: tuple[str, ...]) -> str:
        consent = f"<div class='layer'><h2>Your choice</h2>{paragraphs(CONSENT)}</div>"
        return page(f"{consent}<div><aside><h1>A story</h1>{paragraphs(story)}</aside></div>")

    assert not are_near(radio(FERRY), radio(VIOLIN))
    assert are_near(radio(FERRY), article(FERRY))


def test_a_page_that_may_be_about_its_aside_is_not_judged() -> None:
    consent = f"<div class='layer'><h2>Your choice</h2>{paragraphs(CONSENT)}</div>"
    assert reason(page(f"{consent}<aside>{paragraphs(FERRY)}</aside>")) == "no_text"


def test_a_long_article_with_an_aside_is_itself() -> None:
    aside = f"<aside>{paragraphs(CONSENT)}</aside>"
    with_aside = page(f"<main><h1>A</h1>{paragraphs(FERRY + VIOLIN)}</main>{aside}")
    found = text(with_aside)
    assert FERRY[0] in found
    assert CONSENT[0] not in found


def shell(data: str) -> str:
    loading = "<p>Stories are shown here once the page has finished loading; if nothing appears, "
    return page(f"<div id='app'>{loading} please switch on scripts for this site.</p></div>{data}")


def json_ld(body: str, kind: str = "application/ld+json") -> str:
    data = {"@graph": [{"@type": "WebPage"}, {"@type": "NewsArticle", "articleBody": body}]}
    return f'<script type="{kind}">{json.dumps(data)}</script>'


def test_an_article_that_only_search_engines_are_shown_is_read() -> None:
    pages = [shell(json_ld("\n\n".join(story))) for story in (FERRY, VIOLIN)]
    assert not are_near(*pages)
    assert are_near(pages[0], article(FERRY))


def test_escaped_markup_in_such_an_article_is_not_text() -> None:
    body = "".join(f"&lt;p class=&quot;t&quot;&gt;{part} &amp;uuml;&lt;/p&gt;" for part in FERRY)
    found = text(shell(json_ld(body)))
    assert "class" not in found
    assert "<" not in found
    assert FERRY[2] + " ü" in found


@pytest.mark.parametrize(
    "data",
    [
        '<script type="application/ld+json">{"articleBody": "cut off</script>',
        f'<script type="application/ld+json">"articleBody"{"[" * 100_000}</script>',
        json_ld("too short to be the article"),
        json_ld(""),
        json_ld("\n".join(VIOLIN), kind="text/plain"),
    ],
)
def test_other_data_of_a_page_changes_nothing(data: str) -> None:
    plain = page(f"<main>{paragraphs(FERRY)}</main>")
    assert text(plain.replace("</body>", data + "</body>")) == text(plain)


def state(story: tuple[str, ...]) -> str:
    data = {"props": {"article": {"paragraphs": list(story)}, "build": "Qk1t" * 200}}
    return f'<script type="application/json">{json.dumps(data)}</script>'


def test_a_shell_whose_story_waits_in_a_script_is_not_judged() -> None:
    assert reason(shell(state(FERRY))) == "no_text"
    zh = (
        "老城区的修伞匠今年七十三岁，每天早上六点就把工具箱摆到桥头，下雨的日子年轻人围着他拍照。"
        * 3
    )
    assert reason(shell(state((zh, zh + "完")))) == "no_text"


def test_a_page_that_shows_the_story_it_carries_in_a_script_is_itself() -> None:
    shown = article(FERRY)
    assert text(shown.replace("</body>", state(FERRY) + "</body>")) == text(shown)
    assert text(shell(state(("short", "x" * 5000)))) == text(shell(""))


def content(html: str) -> Content:
    return EXTRACTOR.extract(html)


@pytest.mark.parametrize(
    "html",
    [
        shell(json_ld("\n\n".join(FERRY))),
        shell(json_ld("\n\n".join(FERRY)) + state(VIOLIN)),
        page(
            f"<aside>{paragraphs(CONSENT)}</aside><div>Loading …</div>" + json_ld(" ".join(FERRY))
        ),
    ],
)
def test_what_is_shown_around_a_story_for_search_engines_is_not_to_be_judged_by(html: str) -> None:
    found = content(html)
    assert FERRY[0] in " ".join(found.main)
    assert (found.prose, found.no_main) == ((), None)
    assert found.title == "A page"


def test_a_long_article_for_search_engines_only_leaves_its_shell_aside_as_well() -> None:
    long = story("a long article", 700)
    found = content(shell(json_ld(long)))
    assert long.split()[-1] in " ".join(found.main)
    assert found.prose == ()


@pytest.mark.parametrize("words", [150, 700])
def test_a_page_that_shows_the_article_that_search_engines_get_has_prose(words: int) -> None:
    shown = tuple(story("an article", words).split("\n\n"))
    listed = f"<ul><li>{'</li><li>'.join(shown)}</li></ul>"
    for body in (paragraphs(shown), listed, f"<table><tr><td>{paragraphs(shown)}<td>x</table>"):
        found = content(page(f"<main><h1>A</h1>{body}</main>" + json_ld("\n".join(shown))))
        assert set(shown) <= set(found.prose)


def test_the_prose_of_a_page_with_a_consent_layer_is_all_that_it_shows() -> None:
    layer = f"<div class='layer'><h2>Your choice</h2>{paragraphs(CONSENT)}</div>"
    found = content(
        page(f"{layer}<div><section><h1>A story</h1>{paragraphs(FERRY)}</section></div>")
    )
    assert found.prose == ("Your choice", *CONSENT, "A story", *FERRY)
    assert found.visible == ("Home", "News", *found.prose, "Printed by nobody, imprint")


def test_a_story_in_an_aside_is_no_prose_and_does_not_leave_the_consent_text_alone() -> None:
    """Else all pages with that layer would have the same prose."""
    layer = f"<div class='layer'><h2>Your choice</h2>{paragraphs(CONSENT)}</div>"

    def radio(story: tuple[str, ...]) -> Content:
        return content(
            page(f"{layer}<div><aside><h1>A story</h1>{paragraphs(story)}</aside></div>")
        )

    one, other = radio(FERRY), radio(VIOLIN)
    assert one.main == FERRY
    assert one.prose == other.prose
    assert set(FERRY) <= set(one.visible)
    assert set(one.visible) != set(other.visible)


# ---- blocks, prose, cut off ----------------------------------------------------------------------


def test_the_blocks_are_those_of_the_page_as_it_came() -> None:
    """The extractor may take the tree to pieces, but not ours."""
    html = page(
        f"<main><h1>A</h1>{paragraphs(FERRY)}<table><tr><td>1<td>2</table><!-- c --><p>x<br>y</p></main>"
        f"<aside>{paragraphs(CONSENT)}</aside><form>Name <input> <button>Send</button></form>"
    )
    found, blocks = content(html), read_blocks(document_fromstring(html))
    assert found.visible[: len(blocks)] == blocks.visible()
    assert found.prose == blocks.prose()
    assert {"1", "2", "x y", "Name", *CONSENT, *FERRY} <= set(found.visible)
    assert not {*CONSENT, "Home"} & set(found.prose)


def test_headings_have_300_characters_together() -> None:
    headings = "".join(f"<h1>{letter * 140}</h1>" for letter in "abcd")
    found = content(page(headings + paragraphs(FERRY))).headings
    assert found == ("a" * 140, "b" * 140, "c" * 20)
    assert content(page(f"<h1>{'x' * 400}</h1><h1>no</h1>{paragraphs(FERRY)}")).headings == (
        "x" * 300,
    )
    assert content(page(paragraphs(FERRY))).headings == ()


WHOLE = article(FERRY)


@pytest.mark.parametrize(
    ("html", "cut_off"),
    [
        (WHOLE, False),
        (WHOLE.upper(), False),
        (WHOLE + "\n<!-- 0.3 s, from the cache -->\n\n", False),
        (WHOLE.removesuffix("</html>"), False),
        (WHOLE.removesuffix("</body></html>"), True),
        (WHOLE.replace("</html>", "").replace("</body>", "</body"), True),
        (WHOLE[: WHOLE.index(FERRY[2]) + 20], True),
        (WHOLE[: WHOLE.index("<p>" + FERRY[2]) + 2], True),
        (paragraphs(FERRY), False),
        (paragraphs(FERRY) + "<", True),
        (paragraphs(FERRY) + "<a href='/x", True),
        ("\n".join(FERRY), False),
        ("<body>" + paragraphs(FERRY), False),
        ("<HTML><BODY>" + paragraphs(FERRY), True),
        (" " * 3000 + "<html><body>" + paragraphs(FERRY), True),
        (WHOLE.replace("</body>", "<script>" + "x = 1;" * 900 + "</script></body>"), False),
    ],
)
def test_a_page_that_ends_in_the_middle_says_so(html: str, cut_off: bool) -> None:
    assert content(html).cut_off is cut_off


@pytest.mark.parametrize(
    "html",
    [
        paragraphs(FERRY),
        "<p>" + "<p>".join(FERRY),
        "<body>" + paragraphs(FERRY),
        "<br><br>".join(FERRY),
    ],
)
def test_a_page_without_html_has_prose_like_any_other(html: str) -> None:
    assert text_digest("".join(content(html).prose)) == text_digest("".join(FERRY))
    assert content(html).visible == content(html).prose


TALE = story("tale", 250)
PARTS = TALE.split("\n\n")
CODE = "\n".join(f"def step_{n}(ferry): return ferry.move({n}, chain={7 * n})" for n in range(12))
BODY = paragraphs(tuple(PARTS))
LINKS = "<ul><li><a href='/'>Home</a></li><li><a href='/n'>News of the harbour</a></li></ul>"
RENDERINGS = {
    "article": page(f"<main><article><h1>T</h1>{BODY}<pre>{CODE}</pre></article></main>"),
    "classes": f"<html><body class='article-page'><div id='menu' class='menu'>{LINKS}</div>"
    f"<div id='content'><div class='article-body'><h1>T</h1>{BODY}<pre>{CODE}</pre></div></div>"
    "<div id='footer' class='footer'><a href='/i'>Imprint</a></div></body></html>",
    "layout table": f"<html><body><table><tr><td width=99>{LINKS}</td><td><font size=5>T</font>{BODY}"
    f"<pre>{CODE}</pre></td></tr></table></body></html>",
    "code in a table": page(
        f"<main><h1>T</h1>{BODY}<table><tr><td><pre>{CODE}</pre></td></tr></table></main>"
    ),
    "list": page(
        f"<main><h1>T</h1><ul><li>{'</li><li>'.join(PARTS)}</li></ul><pre>{CODE}</pre></main>"
    ),
    "menu behind": f"<html><body><div><h1>T</h1>{BODY}<pre>{CODE}</pre></div>{LINKS}</body></html>",
    "span soup": "<html><body><div><div>T</div><div><span>"
    + "</span></div><div><span>".join(PARTS)
    + f"</span></div><div><code>{CODE}</code></div></div></body></html>",
    "line breaks": f"<html><body><b>T</b><br><br>{'<br><br>'.join(PARTS)}<br><pre>{CODE}</pre>",
}


@pytest.mark.parametrize(("one", "other"), [*combinations(RENDERINGS, 2)])
def test_a_text_under_two_templates_resembles_itself_in_a_view(one: str, other: str) -> None:
    alike = []
    for view in ("main", "prose"):
        texts = [getattr(content(RENDERINGS[name]), view) for name in (one, other)]
        made = [FINGERPRINTER.fingerprint("\n".join(blocks)) for blocks in texts]
        if made[0] is not None and made[1] is not None:
            alike.append(resemblance(made[0].sketch, made[1].sketch))
    assert max(alike) >= 0.9


# ---- pages without text, or with too much of everything -------------------------------------------


@pytest.mark.parametrize(
    "html",
    [
        "",
        " \n\t",
        "\x00\x00",
        "<html></html>",
        "<html><body><script>var a = 1;</script></body></html>",
        "<!-- nothing -->",
        "<frameset><frame src=a><frame src=b></frameset>",
        "<img src=a.png>",
    ],
)
def test_a_page_without_text_says_so(html: str) -> None:
    assert reason(html) == "no_text"


def test_a_page_with_too_many_elements_is_not_parsed() -> None:
    extractor = ContentExtractor(max_elements=50)
    assert reason("<b>x</b>" * 26 + paragraphs(FERRY), extractor) == "too_many_elements"
    assert FERRY[0] in text(paragraphs(FERRY), extractor)


def test_a_tag_with_thousands_of_attributes_is_not_parsed() -> None:
    attributes = " ".join(f"a{i}=1" for i in range(200_000))
    assert reason(f"<p {attributes}>{FERRY[0]}") == "too_many_elements"
    path = " ".join(f"{i} {i}" for i in range(5000))
    assert FERRY[0] in text(page(f"<svg><path d='M {path}'/></svg>{paragraphs(FERRY)}"))


@pytest.mark.parametrize(
    ("opening", "attribute"),
    [
        ("<p ", "a{}=1 "),
        ('<p x=">" ', "a{} "),
        ("<p", "/a{}"),
        ("<p ", 'a{}="<" '),
        ("<p ", "a{}='>'"),
        ("<p ", 'a{}=""'),
    ],
)
def test_attributes_are_counted_however_they_are_written(opening: str, attribute: str) -> None:
    tag = opening + "".join(attribute.format(n) for n in range(3000)) + ">"
    assert reason(f"<body>{tag}{paragraphs(FERRY)}") == "too_many_elements"


def test_a_less_than_sign_opens_no_tag() -> None:
    assert "in the end" in text(page(f"<p>Where a < b {'we go on ' * 800} in the end"))


@pytest.mark.parametrize("tag", ["script", "style", "SCRIPT"])
def test_code_is_no_tag_of_many_attributes(tag: str) -> None:
    code = "if (a<b) { " + "x = y / z; " * 2000 + "}"
    assert FERRY[0] in text(page(f"<{tag} type=x>{code}</{tag}>{paragraphs(FERRY)}"))
    assert FERRY[0] in text(page(f"{paragraphs(FERRY)}<{tag}>{code}"))


@pytest.mark.parametrize(
    "document",
    [
        "<html><body><h1>A</h1>{0}</body></html>{1}",
        "<html><body><h1>A</h1>{0}</body></html><div>{1}</div>",
        "<html><body><h1>A</h1>{0}</body></html><html><body>{1}</body></html>",
        "<html><body><h1>A</h1>{0}</body><div>{1}</div></html>",
        "<html><body><h1>A</h1>{0}</html><section>{1}</section>",
    ],
)
def test_what_stands_after_the_end_is_part_of_the_page(document: str) -> None:
    found = EXTRACTOR.extract(document.format(paragraphs(FERRY), paragraphs(VIOLIN)))
    for paragraph in (*FERRY, *VIOLIN):
        assert paragraph in found.prose
        assert paragraph in "\n".join(found.main)


def test_many_comments_and_scripts_take_linear_time() -> None:
    data = '<script type="application/ld+json">{}</script>'

    def seconds(count: int) -> float:
        body = "".join(f"<div class=comment></div>{n}<script></script>{n}" for n in range(count))
        html = page(f"{paragraphs(FERRY)}{data}{body}")
        started = time.process_time()
        EXTRACTOR.extract(html)
        return time.process_time() - started

    many, few = (min(seconds(count) for _ in range(2)) for count in (8000, 800))
    assert many < 40 * max(few, 0.01)


def test_a_story_that_is_shown_without_scripts_only_is_found() -> None:
    shell = "<div id=app></div><noscript><article>{}</article></noscript>"
    assert FERRY[1] in text(f"<html><body>{shell.format(paragraphs(FERRY))}</body></html>")


def test_a_hint_to_switch_scripts_on_is_no_text() -> None:
    hint = "<noscript>Please enable JavaScript in your browser to display our pages.</noscript>"
    short = f"<html><body><p>{FERRY[0]}</p>{hint}</body></html>"
    assert "JavaScript" not in text(short)


@pytest.mark.parametrize("tag", ["div", "b", "x-y"])
def test_a_page_nested_too_deep_to_be_read_whole_is_not_judged(tag: str) -> None:
    assert reason(paragraphs(FERRY) + f"<{tag}>" * 100_000 + "different") == "extraction_failed"


@pytest.mark.parametrize("tag", ["div", "span", "blockquote", "ul><li", "font", "table"])
def test_a_page_nested_hundreds_of_levels_deep_is_read_whole(tag: str) -> None:
    assert FERRY[2] in text(f"<{tag}>" * 900 + paragraphs(FERRY))


def test_a_page_of_many_megabytes_in_one_element_is_read_whole() -> None:
    assert "last word" in text("<p>" + "word " * 2_200_000 + "last word")


MARKUP = re.compile(r"\S+").findall(
    "<p> <html> <body> </p> <table> <td> <!-- --> <![CDATA[ ]]> <script> <a <h1> &#0; &#xD800; & "
    "< > \" ' = <li> <pre> <br> <svg> <title> <frameset> <wbr> &shy; \ud800 \x00 word"
)


def content_or_reason(html: str) -> Content | str:
    try:
        return EXTRACTOR.extract(html)
    except NoContent as error:
        return error.reason


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    st.one_of(
        st.text(max_size=80),
        st.binary(max_size=400).map(lambda data: data.decode("latin-1")),
        st.binary(max_size=400).map(lambda data: data.decode("utf-8", "replace")),
        st.lists(st.sampled_from(MARKUP), max_size=30).map(" ".join),
    )
)
def test_whatever_comes_there_is_content_or_a_reason(html: str) -> None:
    found = content_or_reason(html)
    if isinstance(found, Content):
        assert found.main or found.prose
        blocks = (*found.main, *found.prose, *found.headings)
        assert all(block and not block.isspace() for block in blocks)
        assert (found.no_main is None) is bool(found.main)
    else:
        assert found in ("no_text", "extraction_failed")


def test_binary_junk_is_content_or_a_reason() -> None:
    junk = random.Random(1).randbytes(200_000)
    for html in (
        junk.decode("latin-1"),
        junk.decode("utf-8", "replace"),
        f"%PDF-1.7\n{junk.hex()}",
    ):
        found = content_or_reason(html)
        assert isinstance(found, Content) or found in ("no_text", "extraction_failed")


def test_a_reason_survives_pickling() -> None:
    assert pickle.loads(pickle.dumps(NoContent("no_text"))).reason == "no_text"


# ---- extractors ----------------------------------------------------------------------------------


@pytest.fixture
def custom(monkeypatch: pytest.MonkeyPatch) -> Callable[[object], ContentExtractor]:
    def make(extract: object) -> ContentExtractor:
        module = ModuleType("my_extractors")
        module.extract = extract  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "my_extractors", module)
        return ContentExtractor("my_extractors.extract")

    return make


def test_an_extractor_of_ones_own_gets_the_html(
    custom: Callable[[object], ContentExtractor],
) -> None:
    extractor = custom(lambda html: html.partition("<h1>")[2][:9])
    assert extractor.extract(article(FERRY)) == Content(
        ("A heading",), title="A page", headings=("A heading",), language="en"
    )
    assert extractor.identity["extractor"] == "my_extractors.extract"


def test_an_extractor_that_finds_nothing_leaves_no_text(
    custom: Callable[[object], ContentExtractor],
) -> None:
    assert reason(article(FERRY), custom(lambda html: None)) == "no_text"
    assert reason(article(FERRY), custom(lambda html: " \n")) == "no_text"


def test_an_extractor_that_fails_is_told_with_its_exception(
    custom: Callable[[object], ContentExtractor],
) -> None:
    for fails, kind in (
        (lambda html: dict[str, str]()["x"], KeyError),
        (lambda html: b"bytes", TypeError),
    ):
        with pytest.raises(NoContent) as raised:
            custom(fails).extract(article(FERRY))
        assert raised.value.reason == "extraction_failed"
        assert isinstance(raised.value.__cause__, kind)


def test_an_extractor_of_ones_own_may_read_what_libxml2_cannot(
    custom: Callable[[object], ContentExtractor],
) -> None:
    found = custom(lambda html: "found").extract("<div>" * 50_000)
    assert found == Content(("found",))


@pytest.mark.parametrize(
    "path",
    ["", "trafilatur", "no_such_module.extract", "json.no_such_name", "string.digits", "..x"],
)
def test_an_extractor_that_cannot_be_used_is_refused_by_name(path: str) -> None:
    with pytest.raises(ValueError, match=r"'trafilatura' and the dotted path") as raised:
        ContentExtractor(path)
    assert repr(path) in str(raised.value)


def test_the_identity_names_all_that_changes_a_text() -> None:
    assert EXTRACTOR.identity.keys() == {
        *("extractor", "content", "main", "trafilatura", "libxml2")
    }
    assert EXTRACTOR.identity["extractor"] == "trafilatura"


def test_an_extractor_can_be_pickled_after_use() -> None:
    text(article(FERRY))
    again = pickle.loads(pickle.dumps(ContentExtractor(max_elements=500)))
    assert again.max_elements == 500
    assert text(article(FERRY), again) == text(article(FERRY))


def test_extraction_is_silent(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    for html in ("", "<html></html>", "<p>x", article(FERRY)):
        content_or_reason(html)
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")


def test_a_log_level_that_somebody_chose_stays() -> None:
    logger = logging.getLogger("trafilatura")
    before = logger.level
    try:
        logger.setLevel(logging.INFO)
        text(article(FERRY), ContentExtractor())
        assert logger.level == logging.INFO
    finally:
        logger.setLevel(before)


BOILERPLATE = "<p>" + story("on every page", 70) + "</p>"


@pytest.mark.parametrize(
    "wrapper", ["<div>{}</div>", "<dl><dd>{}</dd></dl>", "<x-song>{}</x-song>"]
)
def test_a_text_that_is_a_small_part_of_the_page_does_not_stand_for_it(wrapper: str) -> None:
    song = "<br>".join(story(f"song {line}", 6) for line in range(36))
    html = (
        f"<html><body><h1>A song</h1>{wrapper.format(song)}<div>{BOILERPLATE}</div></body></html>"
    )
    found = content(html)
    assert (found.main, found.no_main) == ((), "thin")
    assert found.prose == ("A song", song.replace("<br>", " "), story("on every page", 70))


@pytest.mark.parametrize("tag", ["noscript", "textarea"])
def test_a_page_that_shows_nothing_else_to_go_by_is_thin(tag: str) -> None:
    hidden = f"<{tag}>{story('hidden', 300)}</{tag}>"
    assert reason(f"<html><body><nav>{BOILERPLATE}</nav>{hidden}</body></html>") == "thin"


def test_links_and_navigation_do_not_make_a_text_thin() -> None:
    links = "".join(
        f"<div><a href='/{n}'>A long title of another page {n}</a></div>" for n in range(99)
    )
    html = f"<html><body><nav>{'menu ' * 999}</nav>{links}<main>{BOILERPLATE}</main></body></html>"
    assert story("on every page", 70).split()[-1] in text(html)
