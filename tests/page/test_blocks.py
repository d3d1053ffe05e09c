"""The walk over a page's tree: which text stands in which block, and which of them are prose."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from lxml.html import HTMLParser, document_fromstring, tostring

from scrapy_simdup.page.blocks import Block, Blocks, carried_texts, read_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator


def blocks(html: str) -> Blocks:
    parser = HTMLParser(encoding="utf-8", huge_tree=True, default_doctype=False)
    return read_blocks(document_fromstring(html.encode(), parser=parser))


def texts(html: str) -> list[str]:
    return list(blocks(html).visible())


def prose(html: str) -> list[str]:
    return list(blocks(html).prose())


# ---- boundaries and order ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>one</p><p>two</p>", ["one", "two"]),
        ("<p>one<p>two", ["one", "two"]),
        ("<ul><li>one<li>two <ol><li>inner</ol> two again</ul>", "one|two|inner|two again"),
        ("<table><tr><td>a<td>b<tr><th>c</table>", "a|b|c"),
        ("<dl><dt>term<dd>what it is</dl>", "term|what it is"),
        ("<div>before<div>within</div>behind</div>last", "before|within|behind|last"),
        ("<h1>head</h1>loose<hr>text", "head|loose|text"),
        ("<pre>def f():\n    return 1\n</pre>", "def f(): return 1"),
        ("<x-card>one</x-card>two", "one|two"),
        ("<p></p><p> \n\xa0</p><div><p>only</p></div>", "only"),
        ("", ""),
    ],
)
def test_a_block_ends_where_the_layout_does(html: str, expected: str | list[str]) -> None:
    wanted = expected.split("|") if isinstance(expected, str) and expected else list(expected)
    assert texts(f"<body>{html}</body>") == wanted


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("a <b>bold</b> word", "a bold word"),
        ("un<b>bold</b>ed <i>w<u>or</u>d</i>s", "unbolded words"),
        ("H<sub>2</sub>O, x<sup>2</sup>", "H2O, x2"),
        ("see <a href=/x>this <em>link</em></a>, please", "see this link, please"),
        ("one<br>two<br/>three", "one two three"),
        ("left<img src=a.png alt=no>right", "left right"),
        ("super<wbr>califragilistic", "supercalifragilistic"),
        ("<ruby>漢<rt>kan</rt></ruby>字", "漢kan字"),
        ("one\n\t two\u3000 three", "one two three"),
        ("<span>one</span><span>two</span>", "onetwo"),
    ],
)
def test_an_inline_element_does_not_end_a_block(html: str, expected: str) -> None:
    assert texts(f"<body><p>{html}</p>") == [expected]


def test_a_block_within_an_inline_element_ends_what_is_around_it() -> None:
    assert texts("<body><span>one<div>two</div>three</span>four") == ["one", "two", "threefour"]
    found = blocks('<body><a href="/">one<div>two</div>three</a> four')
    assert found == (
        Block("one", 3, 3, in_navigation=False, in_heading=False),
        Block("two", 3, 3, in_navigation=False, in_heading=False),
        Block("three four", 9, 5, in_navigation=False, in_heading=False),
    )


@pytest.mark.parametrize(
    "silent",
    [
        "<script>no()</script>",
        "<style>p {no: 1}</style>",
        "<noscript>no</noscript>",
        "<template><p>no</p></template>",
        "<svg><title>no</title><text>no</text></svg>",
        "<select><option>no<option>nor</select>",
        "<button>no</button>",
        "<textarea>no</textarea>",
        "<iframe>no</iframe>",
        "<canvas>no</canvas>",
        "<audio>no <p>no</p></audio>",
        "<object>no</object>",
    ],
)
def test_what_shows_no_text_is_left_out_and_what_stands_behind_it_is_not(silent: str) -> None:
    assert texts(f"<body><p>one{silent}two</p>{silent}three") == ["one two", "three"]


def test_comments_and_instructions_are_not_there() -> None:
    assert texts("<body><!-- a --><p>wo<!-- b -->rd <?php echo 1 ?>here</p><!-- c -->last") == [
        "word here",
        "last",
    ]


def test_head_and_title_are_no_part_of_the_text() -> None:
    assert texts("<html><head><title>no</title></head><body><title>no</title>yes") == ["yes"]


def test_a_tree_without_a_body_is_read_from_its_root() -> None:
    tree = etree.fromstring("<div>one<p>two</p>three</div>")
    assert read_blocks(tree).visible() == ("one", "two", "three")


def test_the_tree_is_left_as_it_was() -> None:
    tree = document_fromstring("<body>a<p>b<!-- c --><a href=/>d</a>e</p>f<script>g</script>h")
    before = tostring(tree)
    read_blocks(tree)
    assert tostring(tree) == before


@pytest.mark.parametrize("tag", ["div", "span", "b", "blockquote", "a"])
def test_2000_levels_are_no_recursion(tag: str) -> None:
    root = element = etree.Element("body")
    for _ in range(2000):
        element = etree.SubElement(element, tag)
        element.text, element.tail = "in ", " out"
    found = " ".join(read_blocks(root).visible()).split()
    assert found == ["in"] * 2000 + ["out"] * 2000


def test_a_long_page_takes_linear_time() -> None:
    def seconds(paragraphs: int) -> float:
        tree = document_fromstring("<body>" + "<p>one <b>two</b> <a href=/>three</a>" * paragraphs)
        started = time.perf_counter()
        assert len(read_blocks(tree)) == paragraphs
        return time.perf_counter() - started

    seconds(100)
    assert min(seconds(20_000) for _ in range(3)) < 40 * min(seconds(2_000) for _ in range(3))


# ---- prose, headings -----------------------------------------------------------------------------


@pytest.mark.parametrize("tag", ["nav", "header", "footer", "aside", "menu"])
def test_navigation_is_shown_and_is_no_prose(tag: str) -> None:
    html = f"<body><{tag}>out <div><p>also out</p></div> too</{tag}><p>prose</p>"
    assert texts(html) == ["out", "also out", "too", "prose"]
    assert prose(html) == ["prose"]


def test_a_block_that_is_mostly_links_is_no_prose() -> None:
    assert prose("<body><p>12345 <a href=/>12345</a></p>") == ["12345 12345"]
    assert prose("<body><p>12345 <a href=/>12 34 56</a></p>") == []
    assert prose("<body><p>1234567890 <a href=/>12345</a> <a href=/>12345</a></p>") != []
    assert prose("<body><p>1234567890 <a href=/>12345</a> <a href=/>123456</a></p>") == []


def test_links_count_with_all_that_stands_in_them_and_nothing_that_does_not() -> None:
    (block,) = blocks("<body><p>one <a href=/>two <b>three</b> four<img>five</a> six <b>7</b></p>")
    assert block.text == "one two three four five six 7"
    assert block.linked == len("twothreefourfive")


def test_the_links_of_one_block_do_not_count_for_the_next() -> None:
    found = blocks("<body><p><a href=/>link</a></p>text<p>text</p><a href=/>link</a><p>text")
    assert [block.linked for block in found] == [4, 0, 0, 4, 0]


def test_a_link_within_a_link_counts_once() -> None:
    inner = etree.fromstring(
        '<body><p>x<a href="/">one <a href="/">two</a> three</a>four</p></body>'
    )
    (block,) = read_blocks(inner)
    assert block == Block("xone two threefour", 16, 11, in_navigation=False, in_heading=False)


def test_a_place_that_links_lead_to_is_no_link() -> None:
    open_anchor = "<body><a name=top><p>The first paragraph.</p><p>The second one.</p>"
    assert prose(open_anchor) == ["The first paragraph.", "The second one."]
    assert prose("<body><h2><a name=chapter-2>Chapter the second</a></h2>") != []
    assert prose("<body><h2><a name=chapter-2 href=#chapter-2>Chapter the second</a></h2>") == []


def test_headings_are_the_h1_wherever_they_stand() -> None:
    html = """<body><header><h1>The <a href=/>Daily</a> Lantern</h1></header>
    <h2>no</h2><h1><span>Ferry</span><div>stops</div></h1><p>text</p><h1></h1>"""
    assert blocks(html).headings() == ("The Daily Lantern", "Ferry", "stops")


def test_a_page_without_text_has_no_blocks() -> None:
    found = blocks("<body><img src=a.png><script>1</script></body>")
    assert (found, found.visible(), found.prose(), found.headings()) == ((), (), (), ())


# ---- markup that changes nothing -----------------------------------------------------------------

STORY = (
    "The ferry across the estuary stopped for nine weeks while its chain was replaced.",
    "On the southern bank the bakery closed at noon, and the baker repainted his van.",
    "def cross(ferry): return ferry.chain or None",
    "When the boat ran again, the captain let everyone cross for free until midnight.",
)
MENU = "<ul><li><a href=/>Home</a></li><li><a href=/n>News</a> <a href=/s>Sport</a></li></ul>"
FIRST, SECOND, CODE, LAST = STORY


@pytest.mark.parametrize(
    "html",
    [
        f"<p>{FIRST}<p>{SECOND}<pre>{CODE}</pre><p>{LAST}",
        f"{MENU}<div><p>{FIRST}</p><p>{SECOND}</p></div><pre>{CODE}</pre><div>{LAST}</div>",
        f"<div><p>{FIRST}</p><p>{SECOND}</p></div><pre>{CODE}</pre><div>{LAST}</div>{MENU}",
        f"<nav>{MENU} and more</nav><p>{FIRST}</p>{SECOND}<pre>{CODE}</pre>{LAST}<footer>Ads</footer>",
        f"<table><tr><td>{MENU}<td><p>{FIRST}<p>{SECOND}<pre>{CODE}</pre>{LAST}</table>",
        f"<p>{FIRST}<p>{SECOND}<table><tr><td>{CODE}</table><p>{LAST}",
        f"<p>{FIRST}<p>{SECOND}<figure><pre><code><span>{CODE}</span></code></pre></figure>{LAST}",
        f"<ul><li>{FIRST}<li>{SECOND}<li><code>{CODE}</code><li>{LAST}</ul>",
        "<article>"
        + "".join(
            f"<section><div><span>{part.replace(' ', ' </span><span>')}</span></div></section>"
            for part in STORY
        )
        + "</article>",
        "<div><div><div>" + "</div></div><div><div>".join(STORY) + "</div></div></div>",
        "<p>" + "</p>\n\n<p>\n".join(part.replace(" ", "\n  ") for part in STORY) + "\n</p>",
        "<script>track()</script><p>" + "</p><!-- ad --><script>ad()</script><p>".join(STORY),
    ],
)
def test_another_template_gives_the_same_prose(html: str) -> None:
    assert prose(f"<body>{html}</body>") == list(STORY)


def test_the_number_column_of_a_code_listing_is_a_block_of_its_own() -> None:
    listing = "<table><tr><td><pre>1\n2\n3</pre></td><td><pre>def f():\n  x\n  y</pre></td></table>"
    assert prose(f"<body>{listing}") == ["1 2 3", "def f(): x y"]


# ---- the slow reference --------------------------------------------------------------------------

SILENT = ("script", "select", "title")
INLINE = ("a", "b", "br", "img", "span")
BLOCK = ("div", "p", "li", "td", "pre", "h1", "nav", "header", "x-y")
NAVIGATION = {"nav", "header"}

pieces_of_text = st.sampled_from([None, "", " ", "a", "b ", " c", "\n", "long word", "漢字\xa0"])
COMMENT = "!"


Node = tuple[str, "str | None", "str | None", "list[Any]"]
"""Tag, text, tail, children."""

tags = st.sampled_from((*SILENT, *INLINE, *BLOCK, COMMENT, "a", "a"))


def with_children(children: st.SearchStrategy[list[Any]]) -> st.SearchStrategy[Node]:
    return st.tuples(tags, pieces_of_text, pieces_of_text, children)


nodes: st.SearchStrategy[Node] = st.recursive(
    with_children(st.just([])),
    lambda inner: with_children(st.lists(inner, max_size=4)),
    max_leaves=30,
)


def build(node: Node, parent: Any) -> None:
    tag, text, tail, children = node
    if tag == COMMENT:
        element = etree.Comment("hidden")
        parent.append(element)
    else:
        element = etree.SubElement(parent, tag)
        element.text = text
        for child in children:
            build(child, element)
    element.tail = tail


def pieces(element: Any) -> Iterator[tuple[str, frozenset[str]] | None]:
    """Every piece of text with the tags of the elements it stands in; None where a block ends."""
    tags = frozenset((element.tag, *(above.tag for above in element.iterancestors())))
    yield element.text or "", tags
    for child in element:
        if child.tag in SILENT:
            yield " ", tags
        elif child.tag in INLINE:
            yield " " if child.tag in ("br", "img") else "", tags
            yield from pieces(child)
        elif child.tag in BLOCK:
            yield None
            yield from pieces(child)
            yield None
        yield child.tail or "", tags


def slow_blocks(body: Any) -> list[Block]:
    found: list[Block] = []
    open_block: list[tuple[str, frozenset[str]]] = []
    for piece in (*pieces(body), None):
        if piece is not None:
            open_block.append(piece)
            continue
        if text := " ".join("".join(part for part, _ in open_block).split()):
            around = open_block[0][1]  # navigation and headings are blocks, so the same for all
            linked = "".join(part for part, tags in open_block if "a" in tags and part != " ")
            found.append(
                Block(
                    text,
                    len("".join(text.split())),
                    len("".join(linked.split())),
                    bool(around & NAVIGATION),
                    "h1" in around,
                )
            )
        open_block = []
    return found


@settings(derandomize=True, deadline=None, max_examples=150)
@given(st.lists(nodes, max_size=4), pieces_of_text)
def test_the_walk_equals_the_slow_reference(children: list[Node], text: str | None) -> None:
    body = etree.Element("body")
    body.text = text
    for child in children:
        build(child, body)
    found = read_blocks(body)
    assert list(found) == slow_blocks(body)
    assert found.visible() == tuple(block.text for block in found)
    assert set(found.prose()) | set(found.headings()) <= set(found.visible())


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.lists(nodes, max_size=4))
def test_no_text_is_lost_or_shown_twice(children: list[Node]) -> None:
    body = etree.Element("body")
    for child in children:
        build(child, body)
    found = "".join("".join(block.text.split()) for block in read_blocks(body))
    etree.strip_elements(body, *SILENT, etree.Comment, with_tail=False)
    assert found == "".join("".join(body.itertext()).split())


# ---- what a page carries beside its blocks -------------------------------------------------------


@pytest.mark.parametrize(
    ("html", "carried"),
    [
        ("<p>shown</p>", []),
        ("<svg><text>drawn</text></svg><math><mi>x</mi></math>", ["drawn", "x"]),
        ("<img src=a.png alt='a heron'><noscript>no script</noscript>", ["a heron", "no script"]),
        ("<textarea>typed</textarea><button>Send</button>", ["typed", "Send"]),
        ("<iframe src='/map?of=1'></iframe>", ["/map?of=1"]),
        (f'<script>var a = "{STORY[0]}", b = "short"</script>', [STORY[0]]),
        (f'<script>var a = "{"x" * 500}"</script>', []),
    ],
)
def test_what_is_carried_and_not_shown_is_known_of_all_the_same(
    html: str, carried: list[str]
) -> None:
    tree = document_fromstring(f"<html><body>{html}</body></html>")
    found = [" ".join(text.split()) for text in carried_texts(tree)]
    assert sorted(filter(None, found)) == sorted(carried)


def test_no_more_is_carried_than_200000_characters_and_20000_of_one_text() -> None:
    tree = document_fromstring("<body>" + f"<button>{'x' * 70_000}</button>" * 5)
    assert [*map(len, carried_texts(tree))] == [20_000] * 5
    tree = document_fromstring("<body>" + f"<button>{'x' * 15_000}</button>" * 20)
    assert sum(map(len, carried_texts(tree))) == 200_000


def test_texts_of_an_image_map_are_carried() -> None:
    tree = document_fromstring("<body><map name=m><p>To the north the mill.</p></map><p>Text")
    assert any("the mill" in carried for carried in carried_texts(tree))
