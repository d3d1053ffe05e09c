"""A page's tree → the blocks of text that it shows, in reading order, in one walk.

A block is what stands between two boundaries of layout: a paragraph, a list item, a table cell, a
piece of code. The walk has no thresholds to fall to one side or the other of, so the same text
under another template, in another order of menus, gives the same blocks. trafilatura's choice of
the main text is better, where it is stable; this is what it is checked against.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    *("datalist", "button", "iframe", "img"),
)
_SPACES = frozenset(("br", "img", "input"))
_NAVIGATION = frozenset(("nav", "header", "footer", "aside", "menu"))


# Strings of scripts that may be text: at least 40 characters without a quote in them.
_STRING = re.compile(r"""["'`]([^"'`]{40,})""")
_MAX_CARRIED = 200_000
_MAX_STRING = 20_000


class Block(NamedTuple):
    """`linked` is the number of its characters, white space aside, that stand in links."""

    text: str
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
            if not block.in_navigation and 2 * block.linked <= _length(block.text)
        )

    def headings(self) -> tuple[str, ...]:
        """The `<h1>` of the page."""
        return tuple(block.text for block in self if block.in_heading)


def read_blocks(tree: HtmlElement) -> Blocks:
    """The blocks of a page, given as lxml's tree of a whole document, which is not changed."""
    body = tree.find("body")
    return Blocks(_walk(tree if body is None else body))


def carried_texts(tree: HtmlElement) -> tuple[str, ...]:
    """What a page carries beside its blocks: a reader or a script may be shown it, we cannot tell.

    Texts of drawings, formulas, templates and controls, alternatives to images and scripts, frames,
    and strings in scripts that read like prose. Nobody can judge a page by it; but two pages that
    differ in it are not the same, however alike their blocks are. At most 200,000 characters, and 20,000 of one text.
    """
    texts: list[str] = []
    left = _MAX_CARRIED
    for element in tree.iter(*_CARRIERS):
        for text in _carried_by(element):
            texts.append(text[: min(left, _MAX_STRING)])
            left -= len(texts[-1])
            if left <= 0:
                return tuple(texts)
    return tuple(texts)


def _carried_by(element: HtmlElement) -> Iterator[str]:
    if element.tag == "img":
        yield element.get("alt") or ""
    elif element.tag == "iframe":
        yield element.get("srcdoc") or element.get("src") or ""
    elif element.tag == "script":
        for string in _STRING.findall(element.text or ""):
            if string.count(" ") >= len(string) / 25 or not string.isascii():
                yield string
    else:
        yield " ".join(element.itertext())


def _walk(root: HtmlElement) -> Iterator[Block]:
    parts: list[str] = [root.text or ""]
    linked = 0
    # Of the open elements: children still to come, the text behind, and where they stand. Plain
    # tuples and locals, since this runs for every element of every page.
    above: list[tuple[Iterator[HtmlElement], str | None, bool, bool, bool, bool]] = []
    children: Iterator[HtmlElement] = iter(root)
    tail: str | None = None
    is_block, in_link, in_navigation, in_heading = True, False, False, False
    text: str | None
    while True:
        child = next(children, None)
        if child is None:
            if is_block:
                if text := " ".join("".join(parts).split()):
                    yield Block(text, linked, in_navigation, in_heading)
                parts, linked = [], 0
            if not above:
                return
            text = tail
            children, tail, is_block, in_link, in_navigation, in_heading = above.pop()
        else:
            tag = child.tag
            if isinstance(tag, str) and tag not in _SILENT:
                inline = tag in _INLINE
                if not inline:
                    if text := " ".join("".join(parts).split()):
                        yield Block(text, linked, in_navigation, in_heading)
                    parts, linked = [], 0
                elif tag in _SPACES:
                    parts.append(" ")
                above.append((children, tail, is_block, in_link, in_navigation, in_heading))
                children, tail, is_block = iter(child), child.tail, not inline
                in_link = in_link or (tag == "a" and _leads_away(child))
                in_navigation = in_navigation or tag in _NAVIGATION
                in_heading = in_heading or tag == "h1"
                text = child.text
            else:
                if isinstance(tag, str):  # a comment parts no word
                    parts.append(" ")
                text = child.tail
        if text:
            parts.append(text)
            if in_link:
                linked += _length(text)


def _leads_away(anchor: HtmlElement) -> bool:
    """Whether `<a>` is a link; else it is a place that links lead to, often around a whole text."""
    get = anchor.get
    return get("href") is not None or (get("name") is None and get("id") is None)


def _length(text: str) -> int:
    return len("".join(text.split()))
