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


def main_text(html: str, shown: int = ENOUGH) -> str:
    return MAIN_TEXT(tree_of(html), shown, again=lambda: tree_of(html))


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


def marked(seed: object) -> str:
    """Parts that go, and such that stay, by what their attributes say."""
    marks = (
        *(
            "class=sidebar",
            "id=share-it",
            "class='x teaser'",
            "class='big-caption'",
            "role=Navigation",
        ),
        *("style='display: none'", "aria-hidden=true", "id=cookies class=x", "class=x id=cookies"),
        *("class=reply-1", "class=tags", "class='post-meta'", "class=widget", "class=x id=y"),
    )
    parts = "".join(
        f"<{tag} {mark}>{story(f'{seed} {mark}', 30)}</{tag}>"
        for mark in marks
        for tag in ("div", "p", "section")
    )
    return f"<div class=entry-content><h1>{seed}</h1>{paragraphs(seed, 900)}{parts}</div>"


def frame(body: str) -> str:
    menu = "".join(f"<li><a href=/{n}>Section {n}</a>" for n in range(8))
    return (
        f"<html><head><title>t</title></head><body><nav><ul>{menu}</ul></nav>{body}"
        f"<footer><p>Copyright</p></footer></body></html>"
    )


@pytest.mark.parametrize("shape", [article, table, listing, code, bare, form, scripted, marked])
@pytest.mark.parametrize("seed", range(3))
def test_it_is_what_trafilatura_finds(shape: Callable[[object], str], seed: int) -> None:
    """The reference: the library's own sequence of the same parts, where it needs no second try."""
    html = frame(shape(seed))
    options = {"fast": True, "include_comments": False}
    reference = trafilatura.bare_extraction(tree_of(html), **options)
    assert main_text(html) == (reference.text if reference is not None else "")
    assert len(main_text(html)) > 100


def test_trafilatura_itself_is_not_changed() -> None:
    """Our instances of its modules have other expressions, and a shorter list of what to drop."""
    assert all(isinstance(x, etree.XPath) for x in trafilatura.main_extractor.BODY_XPATH)
    assert "script" in trafilatura.htmlprocessing.MANUALLY_CLEANED


def test_a_page_without_text_has_none() -> None:
    assert main_text("<html><body></body></html>") == ""


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
    alone = main_text(frame(article("a")))
    assert main_text(frame(article("a") + comments)) == alone
    inside = article("a").replace("</article>", f"{comments}</article>")
    assert main_text(frame(inside)) == alone


def test_text_behind_comments_stays() -> None:
    html = frame(f"<article><p>{story(1)}</p><div class=comments>no</div>A last word. {story(2)}")
    found = main_text(html)
    assert "A last word." in found
    assert story(2)[-30:] in found


def test_a_commentary_is_no_comment() -> None:
    html = frame(f"<div id=commentary><article>{paragraphs(1)}</article></div>")
    assert story(1)[:40] in main_text(html)


def test_posts_of_a_forum_are_its_content() -> None:
    data = '<script type="application/ld+json">{"@type": "DiscussionForumPosting"}</script>'
    posts = "".join(f"<div class=comment><p>{story(n, 60)}</p></div>" for n in range(4))
    html = frame(f"<article><h1>Thread</h1>{posts}</article>")
    forum = html.replace("<body>", f"<body>{data}")
    assert story(3, 60)[:40] in main_text(forum)
    assert story(3, 60)[:40] not in main_text(html)


@pytest.mark.parametrize("more", ["<div class=infinite-scroll>", "<section id=mvp-post-add-wrap>"])
def test_other_articles_that_are_added_as_one_scrolls_do_not_count(more: str) -> None:
    closing = f"</{more[1:].split(maxsplit=1)[0]}>"
    html = frame(f"{article('a')}{more}{paragraphs('b', 900)}{closing}")
    assert main_text(html) == main_text(frame(article("a")))


def test_the_page_itself_may_be_in_such_a_container() -> None:
    html = frame(f"<div class=infinite-scroll>{article('a')}</div>")
    assert story("a")[:40] in main_text(html)


def test_a_text_that_covers_little_of_the_page_gets_a_second_try() -> None:
    cards = "".join(f"<div class=teaser><p>{story(n, 60)}</p></div>" for n in range(12))
    html = frame(f"<article><p>{story('lead', 50)}</p>{cards}</article>")
    short, long = main_text(html), main_text(html, len(html))
    assert len(long) > 1.5 * len(short)


def test_how_long_a_menu_is_makes_no_difference() -> None:
    """trafilatura itself measures the whole page, and tries again because of a menu."""
    texts = set()
    for length in (5, 50, 500):
        menu = "".join(f"<li><a href=/{n}>{story(n, 6)}</a>" for n in range(length))
        html = frame(f"<article><p>{story('lead', 50)}</p></article><div>{story('b', 90)}</div>")
        shown = len(story("lead", 50)) + len(story("b", 90))
        texts.add(main_text(html.replace("<ul>", f"<ul>{menu}"), shown))
    assert len(texts) == 1
