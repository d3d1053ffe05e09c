"""A page's tree → the blocks of text that it shows, in reading order, in one walk.

A block is what stands between two boundaries of layout: a paragraph, a list item, a table cell, a
piece of code. The walk has no thresholds to fall to one side or the other of, so the same text
under another template, in another order of menus, gives the same blocks. trafilatura's choice of
the main text is better, where it is stable; this is what it is checked against.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lxml.html import HtmlElement

# What shows no text, or text that is chosen from and not read.
_SILENT = frozenset(
    (
        *("script", "style", "noscript", "template", "head", "title", "svg", "math", "canvas"),
        *("object", "iframe", "audio", "video", "map", "select", "datalist", "button", "textarea"),
    )
)
# What does not end a block.
_INLINE = frozenset(
    (
        *("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "br", "cite", "code", "data", "del"),
        *("dfn", "em", "font", "i", "img", "input", "ins", "kbd", "label", "mark", "nobr", "q"),
        *("rp", "rt", "ruby", "s", "samp", "small", "span", "strike", "strong", "sub", "sup"),
        *("time", "tt", "u", "var", "wbr"),
    )
)
_CARRIERS = (
    *("script", "noscript", "template", "svg", "math", "object", "textarea", "select"),
    *("datalist", "button", "map", "iframe", "img"),
)
_TEXT_CARRIERS = tuple(tag for tag in _CARRIERS if tag not in ("script", "iframe", "img"))
_SPACES = frozenset(("br", "img", "input"))
_NAVIGATION = frozenset(("nav", "header", "footer", "aside", "menu"))
# What a tag is to the walk, in one look-up: what is in none of these sets ends a block.
_BLOCK, _FLOWING, _SPACE, _ANCHOR, _SECTION, _HEADING, _UNREAD = range(7)
_ROLES = {
    **dict.fromkeys(_INLINE, _FLOWING),
    **dict.fromkeys(_SPACES, _SPACE),
    **dict.fromkeys(_NAVIGATION, _SECTION),
    **dict.fromkeys(_SILENT, _UNREAD),
    "a": _ANCHOR,
    "h1": _HEADING,
}

# Strings of scripts may be text if they have 40 characters without a quote in them.
_MIN_STRING = 40
_MAX_STRING = 20_000
_MAX_CARRIED = 200_000


class Block(NamedTuple):
    """Its text with single spaces, the number of its characters without them (`length`), and how
    many of these stand in links.
    """

    text: str
    length: int
    linked: int
    in_navigation: bool
    in_heading: bool


class Blocks(tuple[Block, ...]):
    """The blocks of a page, and the parts of them that the views are made of."""

    __slots__ = ()

    def visible(self) -> tuple[str, ...]:
        """All of it."""
        return tuple(block.text for block in self)

    def prose(self) -> tuple[str, ...]:
        """What is neither in navigation (`<nav>`, `<header>`, `<footer>`, `<aside>`, `<menu>`) nor
        mostly links.
        """
        return tuple(
            block.text
            for block in self
            if not block.in_navigation and 2 * block.linked <= block.length
        )

    def asides(self) -> tuple[str, ...]:
        """What is in navigation, but not mostly links."""
        return tuple(
            block.text for block in self if block.in_navigation and 2 * block.linked <= block.length
        )

    def headings(self) -> tuple[str, ...]:
        """The `<h1>` of the page."""
        return tuple(block.text for block in self if block.in_heading)


def read_blocks(tree: HtmlElement) -> Blocks:
    """The blocks of a page, given as lxml's tree of a whole document, which is not changed."""
    body = tree.find("body")
    return Blocks(_walk(tree if body is None else body))


def outermost(tree: HtmlElement, *tags: str) -> Iterator[HtmlElement]:
    """The elements with such a tag that are in no other one, in linear time."""
    inside: set[HtmlElement] = set()
    for element in tree.iter(*tags):
        if element not in inside:
            if len(element):
                inside.update(element.iter(*tags))
            yield element


def at_most(texts: Iterable[str], characters: int) -> tuple[str, ...]:
    """As many of the texts as have so many characters together; the last one may be cut."""
    kept: list[str] = []
    for text in texts:
        if characters <= 0:
            break
        kept.append(text[:characters])
        characters -= len(text)
    return tuple(kept)


def carried_texts(tree: HtmlElement) -> tuple[str, ...]:
    """What a page carries beside its blocks: a reader or a script may be shown it, we cannot tell.

    Texts of drawings, formulas, templates and controls, alternatives to images and scripts, frames,
    and strings in scripts that read like prose. Nobody can judge a page by it; but two pages that
    differ in it are not the same, however alike their blocks are. At most 200,000 characters, and
    20,000 of one text.
    """
    return at_most((text[:_MAX_STRING] for text in _carried(tree)), _MAX_CARRIED)


def _carried(tree: HtmlElement) -> Iterator[str]:
    inside: set[HtmlElement] = set()  # another one's text has theirs
    for element in tree.iter(*_CARRIERS):
        tag = element.tag
        if tag == "img":
            yield element.get("alt") or ""
        elif tag == "iframe":
            yield element.get("srcdoc") or element.get("src") or ""
        elif tag == "script":
            strings = (element.text or "").replace("'", '"').replace("`", '"').split('"')[1:]
            yield from [text for text in strings if len(text) >= _MIN_STRING and _is_text(text)]
        elif element not in inside:
            if len(element):
                inside.update(element.iter(*_TEXT_CARRIERS))
            yield " ".join(element.itertext())


def _is_text(string: str) -> bool:
    return string.count(" ") >= len(string) / 25 or not string.isascii()


def _walk(root: HtmlElement) -> Iterator[Block]:
    # This runs twice for every element of every page, hence plain locals and one loop, which is
    # quicker than lxml's `iterwalk`.
    parts: list[str] = []
    linked = 0
    links = navigations = headings = 0  # how many are open
    above: list[tuple[HtmlElement, Iterator[HtmlElement]]] = []  # each with its children to come
    children: Iterator[HtmlElement] = iter(())
    element, opens = root, True
    while True:
        role = _ROLES.get(element.tag, _BLOCK)
        if role == _UNREAD:
            parts.append(" ")
            opens = False
        elif role == _ANCHOR:
            if _leads_away(element):
                links += 1 if opens else -1
        elif role == _SPACE:
            if opens:
                parts.append(" ")
        elif role != _FLOWING:
            if not isinstance(element.tag, str):  # a comment, which parts no word
                opens = False
            elif parts:
                if text := " ".join("".join(parts).split()):
                    length = len(text) - text.count(" ")
                    yield Block(text, length, linked, navigations > 0, headings > 0)
                parts, linked = [], 0
            if role == _HEADING:
                headings += 1 if opens else -1
            elif role == _SECTION:
                navigations += 1 if opens else -1
        if element is root and not opens:
            return
        if text := element.text if opens else element.tail:
            parts.append(text)
            if links:
                linked += len("".join(text.split()))
        if opens and not len(element):
            opens = False
            continue
        if opens:
            above.append((element, children))
            children = iter(element)
        following = next(children, None)
        opens = following is not None
        if following is not None:
            element = following
        else:
            element, children = above.pop()


def _leads_away(anchor: HtmlElement) -> bool:
    """Whether `<a>` is a link; else it is a place that links lead to, often around a whole text."""
    get = anchor.get
    return get("href") is not None or (get("name") is None and get("id") is None)
