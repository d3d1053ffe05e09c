"""A page's tree → the blocks of text that it shows, in reading order, in one walk.

A block is what stands between two boundaries of layout: a paragraph, a list item, a table cell, a
piece of code. The walk has no thresholds to fall to one side or the other of, so the same text
under another template, in another order of menus, gives the same blocks. trafilatura's choice of
the main text is better, where it is stable; this is what it is checked against.
"""

from __future__ import annotations

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
_NAVIGATION = frozenset(("nav", "header", "footer", "aside", "menu"))


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


class _Level(NamedTuple):
    """An open element: children still to come, the text behind it, and where it stands."""

    children: Iterator[HtmlElement]
    tail: str | None
    is_block: bool
    in_link: bool
    in_navigation: bool
    in_heading: bool


def _walk(root: HtmlElement) -> Iterator[Block]:
    parts: list[str] = [root.text or ""]
    linked = 0
    level = _Level(iter(root), None, True, False, False, False)
    above: list[_Level] = []
    while True:
        child = next(level.children, None)
        if child is None:
            if level.is_block:
                if block := _block(parts, linked, level):
                    yield block
                parts, linked = [], 0
            if not above:
                return
            tail, level = level.tail, above.pop()
        else:
            tag = child.tag
            if isinstance(tag, str) and tag not in _SILENT:
                inline = tag in _INLINE
                if not inline:
                    if block := _block(parts, linked, level):
                        yield block
                    parts, linked = [], 0
                elif tag in ("br", "img", "input"):
                    parts.append(" ")
                above.append(level)
                level = _Level(
                    iter(child),
                    child.tail,
                    not inline,
                    level.in_link or _is_link(child),
                    level.in_navigation or tag in _NAVIGATION,
                    level.in_heading or tag == "h1",
                )
                tail = child.text
            else:
                if isinstance(tag, str):  # a comment does not part words
                    parts.append(" ")
                tail = child.tail
        if tail:
            parts.append(tail)
            if level.in_link:
                linked += _length(tail)


def _is_link(element: HtmlElement) -> bool:
    # `<a name="top">` is where links lead, and often left open: then it holds the rest of the page.
    return element.tag == "a" and ("href" in element.attrib or not element.get("name"))


def _block(parts: list[str], linked: int, level: _Level) -> Block | None:
    text = " ".join("".join(parts).split())
    return Block(text, linked, level.in_navigation, level.in_heading) if text else None


def _length(text: str) -> int:
    return len("".join(text.split()))
