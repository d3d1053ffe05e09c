"""What a page is about in no text of it: what is read of the tree, and under which names."""

from __future__ import annotations

import time

import pytest
from lxml.html import document_fromstring
from material import story

from scrapy_simdup.page.blocks import read_blocks
from scrapy_simdup.page.resources import MAX_APART, Resources, read_resources

PASSAGE = " ".join(story("passage", 30).split())


def read(body: str, head: str = "") -> Resources:
    tree = document_fromstring(f"<html><head>{head}</head><body>{body}</body></html>")
    return read_resources(tree, read_blocks(tree))


@pytest.mark.parametrize(
    "element",
    [
        '<iframe src="https://films.example/embed/gulls"></iframe>',
        '<embed src="gulls.pdf">',
        '<object data="/files/gulls.pdf"></object>',
        '<video poster="gulls.png"></video>',
        '<audio><source src="gulls.ogg"></audio>',
        '<amp-list src="/api/gulls.json"></amp-list>',
    ],
)
def test_what_is_embedded_is_known_by_its_name(element: str) -> None:
    assert read(element) == Resources(embeds=frozenset({"gulls"}))


@pytest.mark.parametrize(
    "source",
    [
        "gulls.jpg",
        "/a/b/Gulls.webp",
        "https://cdn.example/gulls.jpg?v=17#x",
        "gulls.3fd2a91b.jpg",
        "gulls-1b9d6bcdbbfd4b2d.png",
        "gulls.jpg;jsessionid=17",
    ],
)
def test_an_image_is_the_same_in_another_folder_format_or_build(source: str) -> None:
    assert read(f'<img src="{source}">').images == {"gulls"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/gallery/17/01.jpg", "/gallery/18/01.jpg"),
        ("/img.php?id=1700", "/img.php?id=1701"),
        ("/player?v=17abc", "/player?v=18abc"),
        ("/embed?q=52.1,13.1", "/embed?q=48.1,11.5"),
        ("/doc.aspx?id=17", "/doc.aspx?id=18"),
    ],
)
def test_numbered_images_and_those_made_by_programs_are_told_apart(one: str, other: str) -> None:
    assert read(f'<img src="{one}">').images != read(f'<img src="{other}">').images


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/gulls.jpg?id=17", "/gulls.jpg?id=18"),
        ("/img.php?t=1700000000", "/img.php?t=1800000000"),
        ("/img.php?sid=0f3a9b5c7d21e4f6", "/img.php?sid=1f3a9b5c7d21e4f6"),
        ("//a.example/17/01.jpg", "//b.example/x/17/01.jpg"),
    ],
)
def test_but_not_by_moments_sessions_and_hosts(one: str, other: str) -> None:
    assert read(f'<img src="{one}">').images == read(f'<img src="{other}">').images


def test_a_name_that_is_nothing_but_a_digest_stays() -> None:
    assert read('<img src="/3fd2a91b.jpg">').images == {"3fd2a91b"}
    assert read('<img src="data:image/png;base64,AA">').images == {"data:image/png;base64,AA"}


def test_links_are_known_by_the_last_part_of_their_path() -> None:
    body = (
        '<a href="/tea/?from=mail">1</a><a href="../rope.html#top">2</a><a href="#top">3</a>'
        '<a href="javascript:void(0)">4</a><a href="/lamps/12">5</a><a name="x">6</a>'
    )
    assert read(body).links == {"tea", "rope.html", "lamps/12"}


@pytest.mark.parametrize("tag", ["nav", "header", "footer", "aside", "menu"])
def test_what_is_in_navigation_is_left_out(tag: str) -> None:
    assert read(f'<{tag}><div><a href="/a"><img src="b.png"></a></div></{tag}>') == Resources()


def test_code_is_no_resource() -> None:
    assert read('<script src="app.js"></script><link href="a.css">') == Resources()


@pytest.mark.parametrize(
    "body",
    [
        f"<aside><p>{PASSAGE}</p></aside>",
        f"<template><p>{PASSAGE}</p></template>",
        f"<textarea>{PASSAGE}</textarea>",
        f"<button>{PASSAGE}</button>",
        f"<dialog>{PASSAGE}</dialog>",
        f'<div role="img" aria-label="{PASSAGE}"></div>',
        f'<div data-page="{PASSAGE}"></div>',
        f'<input type="text" value="{PASSAGE}">',
        f'<script type="application/json">{{"body": "{PASSAGE}"}}</script>',
    ],
)
def test_texts_that_stand_apart(body: str) -> None:
    assert PASSAGE in [" ".join(text.split()) for text in read(body).apart]


@pytest.mark.parametrize(
    "body",
    [
        f"<p>{PASSAGE}</p>",
        f'<p class="{PASSAGE}" style="{PASSAGE}" onclick="{PASSAGE}">x</p>',
        f'<input type="hidden" value="{PASSAGE}">',
        '<div data-token="8f2e0c7b5a6d4e3f8f2e0c7b5a6d4e3f8f2e0c7b5a6d4e3f"></div>',
        '<div data-id="17" aria-label="Close"></div>',
        f"<script>var text = '{PASSAGE}';</script>",
    ],
)
def test_texts_that_do_not(body: str) -> None:
    assert read(body).apart == ()


def test_an_excerpt_for_machines_says_nothing_new() -> None:
    """It is another one as soon as the text is corrected."""
    assert read("", f'<meta name="description" content="{PASSAGE}">').apart == ()


def test_texts_apart_are_read_up_to_a_limit() -> None:
    apart = read(f"<textarea>{'word ' * MAX_APART}</textarea>").apart
    assert sum(map(len, apart)) == MAX_APART


@pytest.mark.parametrize("tag", ["object", "nav", "template", "aside"])
def test_nested_elements_take_linear_time(tag: str) -> None:
    from lxml import html

    parser = html.HTMLParser(huge_tree=True)

    def seconds(depth: int) -> float:
        rows = "<a href=x></a>" * 20
        tree = html.document_fromstring(f"<html><body>{f'<{tag}>{rows}' * depth}", parser=parser)
        blocks = read_blocks(tree)
        started = time.process_time()
        read_resources(tree, blocks)
        return time.process_time() - started

    # 16 times as deep: quadratic would be 256 times as long, and caches that are too small make it
    # some 60. The best of several, since a busy machine or a collection of garbage can only add.
    deep, flat = (min(seconds(depth) for _ in range(4)) for depth in (1920, 120))
    assert deep < 150 * max(flat, 0.004)
