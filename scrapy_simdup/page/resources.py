"""A page's tree → what it is about without saying so in its text.

What it embeds, its images, where its links lead, and texts that stand apart: in navigation, in
attributes, in controls and templates. None of it is part of a view; two pages with the same text
are told apart by it (`comparison`).

URLs are known by the last part of their path, since a mirror has other hosts and folders, and a
visit another session. Nothing here has the cost of more than one walk over the page.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl, unquote

from scrapy_simdup.page.blocks import at_most, outermost

if TYPE_CHECKING:
    from collections.abc import Callable

    from lxml.html import HtmlElement

    from scrapy_simdup.page.blocks import Blocks

MAX_APART = 50_000
"""Of the texts that stand apart, so many characters are read."""

_NAVIGATION = ("nav", "header", "footer", "aside", "menu")
_IMAGES = frozenset(("img", "input"))
# Their sources are code, or are loaded for the code.
_CODE = frozenset(("script", "link", "style"))
_SOURCES = frozenset(("src", "data", "poster"))
# Not what is read, however long.
_NO_PROSE = frozenset(
    (
        *("class", "style", "href", "src", "srcset", "sizes", "data", "poster", "d", "points"),
        *("transform", "action", "value"),
    )
)
_HOLDERS = ("template", "noscript", "textarea", "select", "datalist", "button", "dialog", "object")
_UNTYPED = frozenset(("hidden", "submit", "button", "reset", "image", "checkbox", "radio"))
_PROSE_LENGTH = 40
_PROSE_SPACES = 7

_JSON_STRING = re.compile(r'"([^"\\]{10,})"')
_NO_ADDRESS = ("javascript:", "about:", "blob:", "mailto:", "tel:", "#")
_DIGEST = re.compile(r"(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{8,}")
# A file made by a program may be known by its query: numbers, places, names, but no moment or session.
_PROGRAMS = frozenset(("php", "asp", "aspx", "jsp", "cgi", "pl", "do"))
_SHORT_VALUE = re.compile(r"(?!\d{10})[\w.,+ -]{1,12}")
_SIGNS = re.compile(r"[\W_]+")


class Resources(NamedTuple):
    """Names of what a page embeds (frames, documents, films, sounds), of its images, of what its
    links lead to, each outside of navigation; and its texts that stand apart.
    """

    embeds: frozenset[str] = frozenset()
    images: frozenset[str] = frozenset()
    links: frozenset[str] = frozenset()
    apart: tuple[str, ...] = ()


NOTHING = Resources()


def read_resources(tree: HtmlElement, blocks: Blocks) -> Resources:
    """The resources of a page, given as lxml's tree and its blocks. The tree is not changed."""
    body = tree.find("body")
    body = tree if body is None else body
    navigation, held = _set_apart(body)
    embeds: set[str] = set()
    images: set[str] = set()
    links: set[str] = set()
    told: list[str] = []
    typed: list[str] = []
    for element in body.iter("*"):
        for name, value in element.items():
            if name == "href":
                if element not in navigation and element.tag == "a":
                    links.add(value)
            elif name in _SOURCES:
                tag = element.tag
                if tag not in _CODE and element not in navigation:
                    (images if tag in _IMAGES else embeds).add(value)
            elif name == "value":
                if element.tag == "input" and element.get("type", "").lower() not in _UNTYPED:
                    typed.append(value)
            elif len(value) >= _PROSE_LENGTH and name not in _NO_PROSE and name[:2] != "on":
                told.append(value)
    apart = (*blocks.asides(), *held, *filter(_is_prose, told), " ".join(typed))
    return Resources(
        embeds=_named(embeds, _file_name),
        images=_named(images, _file_name),
        links=_named(links, _link_name),
        apart=at_most((text for text in apart if text and not text.isspace()), MAX_APART),
    )


def _set_apart(body: HtmlElement) -> tuple[set[HtmlElement], list[str]]:
    """All elements that are in navigation, and the texts of those that show theirs later, or
    elsewhere, or to be changed. What is within another such element is looked at once.
    """
    navigation = {inner for outer in outermost(body, *_NAVIGATION) for inner in outer.iter("*")}
    holders = set(outermost(body, *_HOLDERS))
    texts: list[str] = []
    for element in body.iter(*_HOLDERS, "script"):
        if element in holders:
            texts.append(" ".join(element.itertext()))
        elif (
            element.tag == "script"
            and (element.get("type") or "").strip().lower() == "application/json"
        ):
            texts.append(_strings(element.text or ""))
    return navigation, texts


def _named(urls: set[str], name: Callable[[str], str]) -> frozenset[str]:
    return frozenset(map(name, urls)) - {""}


def _strings(json: str) -> str:
    """The strings of several words in a JSON text, one after another."""
    strings = _JSON_STRING.findall(json[:MAX_APART])
    return " ".join(string for string in strings if string.strip().count(" ") >= 2)


def _is_prose(text: str) -> bool:
    return len(text) >= _PROSE_LENGTH and (text.count(" ") >= _PROSE_SPACES or not text.isascii())


def _link_name(url: str) -> str:
    """The last part of the path that a link leads to; "" where it leads nowhere else.

    A number is no name; it is that of a thing in the folder.
    """
    path = url.strip().partition("#")[0].partition("?")[0].partition(";")[0]
    if path.startswith(_NO_ADDRESS):
        return ""
    folder, _, last = path.rstrip("/").rpartition("/")
    return f"{folder.rpartition('/')[2]}/{last}" if last.isdigit() else last


def _file_name(url: str) -> str:
    """What a source is called: no folder, suffix, nor digest of what is in it, and no query.

    An image in another format, or built anew under another digest, is the same image. A number is
    called as its folder is, too, and what a program makes as its query says.
    """
    if url[:5].lower() == "data:":
        return url
    address, _, query = url.strip().partition("#")[0].partition("?")
    folder, _, last = unquote(_link_name(address)).lower().rpartition("/")
    stem, _, suffix = last.rpartition(".") if "." in last else (last, "", "")
    if stem.isdigit():  # the first picture of an album
        stem = f"{folder or address.rpartition('/')[0].rpartition('/')[2]} {stem}"
    if query and (not suffix or suffix in _PROGRAMS):
        values = (value for _, value in parse_qsl(query) if _SHORT_VALUE.fullmatch(value))
        stem = " ".join((stem, *values))
    return " ".join(part for part in _SIGNS.split(stem) if not _DIGEST.fullmatch(part)) or stem
