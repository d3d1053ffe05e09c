from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trafilatura
from lxml import etree
from lxml.html import HtmlElement, document_fromstring
from material import story

from scrapy_simdup.page.maintext import MainText

if TYPE_CHECKING:
    from collections.abc import Callable

MAIN_TEXT = MainText()
ENOUGH = 0  # "the page shows nothing else": no second try


def paragraphs(seed: object, words: int = 300) -> str:
    return "".join(f"<p>{text}</p>" for text in story(str(seed), words).split("\n") if text)


def tree_of(html: str) -> HtmlElement:
    return document_fromstring(html)


def article(seed: object) -> str:
    return f"<article><h1>{seed}</h1>{paragraphs(seed)}</article>"


def table(seed: object) -> str:
    rows = "".join(f"<tr><td>{n}<td>{text}" for n, text in enumerate(story(str(seed)).split(". ")))
    return f"<div class=content><table>{rows}</table></div>"


def listing(seed: object) -> str:
    items = "".join(f"<li>{text}" for text in story(str(seed)).split(". "))
    return f"<main><ul>{items}</ul></main>"


def code(seed: object) -> str:
    return f"<div id=content>{paragraphs(seed, 80)}<pre><code>{{\n    x()\n}}</code></pre></div>"


def bare(seed: object) -> str:
    return paragraphs(seed, 40)


def form(seed: object) -> str:
    return f"<form id=aspnetForm><div>{paragraphs(seed)}</div><input value=x><button>Go</button></form>"


def scripted(seed: object) -> str:
    noise = "<script>var a = '<p>no</p>'</script><style>p {}</style><noscript>no</noscript>"
    return f"{noise}<svg><text>no</text></svg>{article(seed)}{noise}<select><option>no</select>"


def frame(body: str) -> str:
    menu = "".join(f"<li><a href=/{n}>Section {n}</a>" for n in range(8))
    return (
        f"<html><head><title>t</title></head><body><nav><ul>{menu}</ul></nav>{body}"
        f"<footer><p>Copyright</p></footer></body></html>"
    )


@pytest.mark.parametrize("shape", [article, table, listing, code, bare, form, scripted])
@pytest.mark.parametrize("seed", range(3))
def test_it_is_what_trafilatura_finds(shape: Callable[[object], str], seed: int) -> None:
    """The reference: the library's own sequence of the same parts, where it needs no second try."""
    html = frame(shape(seed))
    options = {"fast": True, "include_comments": False}
    reference = trafilatura.bare_extraction(tree_of(html), **options)
    assert MAIN_TEXT(tree_of(html), ENOUGH) == (reference.text if reference is not None else "")
    assert len(MAIN_TEXT(tree_of(html), ENOUGH)) > 100


def test_the_tree_stays_as_it_is() -> None:
    tree = tree_of(frame(scripted(1) + f"<div class=comments>{paragraphs(2)}</div>"))
    before = etree.tostring(tree)
    MAIN_TEXT(tree, 10**6)
    assert etree.tostring(tree) == before


def test_a_page_without_text_has_none() -> None:
    assert MAIN_TEXT(tree_of("<html><body></body></html>"), ENOUGH) == ""


@pytest.mark.parametrize(
    "opening",
    [
        "<div id=comments>",
        "<section class='comment-list'>",
        "<ol class=commentlist>",
        "<details class=post-comments>",
        "<div id=disqus_thread>",
    ],
)
def test_comments_are_no_main_text(opening: str) -> None:
    closing = f"</{opening[1:].split(maxsplit=1)[0]}>"
    comments = f"{opening}<div><p>{story('reader')}</p></div>{closing}"
    alone = MAIN_TEXT(tree_of(frame(article("a"))), ENOUGH)
    assert MAIN_TEXT(tree_of(frame(article("a") + comments)), ENOUGH) == alone
    inside = article("a").replace("</article>", f"{comments}</article>")
    assert MAIN_TEXT(tree_of(frame(inside)), ENOUGH) == alone


def test_text_behind_comments_stays() -> None:
    html = frame(f"<article><p>{story(1)}</p><div class=comments>no</div>A last word. {story(2)}")
    found = MAIN_TEXT(tree_of(html), ENOUGH)
    assert "A last word." in found
    assert story(2)[-30:] in found


def test_a_commentary_is_no_comment() -> None:
    html = frame(f"<div id=commentary><article>{paragraphs(1)}</article></div>")
    assert story(1)[:40] in MAIN_TEXT(tree_of(html), ENOUGH)


def test_posts_of_a_forum_are_its_content() -> None:
    data = '<script type="application/ld+json">{"@type": "DiscussionForumPosting"}</script>'
    posts = "".join(f"<div class=comment><p>{story(n, 60)}</p></div>" for n in range(4))
    html = frame(f"<article><h1>Thread</h1>{posts}</article>")
    forum = html.replace("<body>", f"<body>{data}")
    assert story(3, 60)[:40] in MAIN_TEXT(tree_of(forum), ENOUGH)
    assert story(3, 60)[:40] not in MAIN_TEXT(tree_of(html), ENOUGH)


@pytest.mark.parametrize("more", ["<div class=infinite-scroll>", "<section id=mvp-post-add-wrap>"])
def test_other_articles_that_are_added_as_one_scrolls_do_not_count(more: str) -> None:
    closing = f"</{more[1:].split(maxsplit=1)[0]}>"
    html = frame(f"{article('a')}{more}{paragraphs('b', 900)}{closing}")
    assert MAIN_TEXT(tree_of(html), ENOUGH) == MAIN_TEXT(tree_of(frame(article("a"))), ENOUGH)


def test_the_page_itself_may_be_in_such_a_container() -> None:
    html = frame(f"<div class=infinite-scroll>{article('a')}</div>")
    assert story("a")[:40] in MAIN_TEXT(tree_of(html), ENOUGH)


def test_a_text_that_covers_little_of_the_page_gets_a_second_try() -> None:
    cards = "".join(f"<div class=teaser><p>{story(n, 60)}</p></div>" for n in range(12))
    tree = tree_of(frame(f"<article><p>{story('lead', 50)}</p>{cards}</article>"))
    short = MAIN_TEXT(tree, ENOUGH)
    long = MAIN_TEXT(tree, len(tree.text_content()))
    assert len(long) > 1.5 * len(short)


def test_how_long_a_menu_is_makes_no_difference() -> None:
    """trafilatura itself measures the whole page, and tries again because of a menu."""
    texts = set()
    for length in (5, 50, 500):
        menu = "".join(f"<li><a href=/{n}>{story(n, 6)}</a>" for n in range(length))
        html = frame(f"<article><p>{story('lead', 50)}</p></article><div>{story('b', 90)}</div>")
        tree = tree_of(html.replace("<ul>", f"<ul>{menu}"))
        texts.add(MAIN_TEXT(tree, len(story("lead", 50)) + len(story("b", 90))))
    assert len(texts) == 1
