"""HTML → the main text of a page.

trafilatura does the extraction. What lives here is what a crawl needs around it: pages cut off,
without `<html>`, with NUL bytes or hundreds of thousands of elements; a text that is not the story;
and a plain reason wherever there is none. Whether a text is long enough to be judged is decided in
`fingerprint`.
"""

from __future__ import annotations

import html as entities
import importlib
import importlib.metadata
import json
import logging
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lxml.html import HtmlElement

Reason = Literal["no_text", "too_many_elements", "extraction_failed", "thin"]

DEFAULT_EXTRACTOR = "trafilatura"
RULES = "1"
"""Changes whenever the rules of this module give another text for the same page."""

MAX_TITLE = 300

_MAX_ATTRIBUTES = 1000
_SHORT = 3000
_SHELL = 1000
_THIN = 2
_SCRIPT_PROSE = 100
_PARAGRAPH = 60
_OPENING = 30

# What no reader sees. Controls, since libxml2 would end the text at a NUL; and marks of possible
# line breaks and directions, since trafilatura counts them when it looks for the longest text.
_INVISIBLE = (
    *map(chr, (*range(9), 11, 12, *range(14, 32))),
    *"\xad\u200b\u200e\u200f\u2060\ufeff\ufffe\uffff",
)
_INVISIBLE_ENTITY = re.compile(
    "&(?:shy|zerowidthspace|lrm|rlm|nobreak|#0*(?:173|8203|8206|8207|8288|65279)"
    "|#x0*(?:ad|200b|200e|200f|2060|feff));",
    re.IGNORECASE,
)
_WBR = re.compile(r"</?wbr\b[^<>]*>", re.IGNORECASE)
_DOCTYPE = re.compile(r"<!doctype[^<>]*>", re.IGNORECASE)
# `[^<>]`, so that it is tried over no stretch twice: such patterns run with the GIL held.
_SELF_CLOSED_HTML = re.compile(r"(<html\b[^<>]*)/>", re.IGNORECASE)
_QUOTED = re.compile(r""""[^"<>]*"|'[^'<>]*'""")
_TAG = re.compile(r"<[a-zA-Z/!][^<>]*>")
_LANGUAGE = re.compile(r"[a-z]{2,8}(?:[-_][a-z0-9]{1,8})*", re.IGNORECASE)


class NoContent(Exception):
    """A page has no main text that it could be judged by.

    `reason` is `no_text` (nothing to extract, or what can be extracted is not what the page is
    about), `thin` (what can be extracted is less than half of what the page shows),
    `too_many_elements`, or `extraction_failed`, where `__cause__` has the exception.
    """

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason: Reason = reason

    def __reduce__(self) -> tuple[type[NoContent], tuple[Reason]]:
        return NoContent, (self.reason,)


@dataclass(frozen=True, slots=True)
class Content:
    """What was found on a page.

    `texts` are the views of the page, the primary one first; none is empty. `title` has at most
    300 characters. `language` is what the page's `<html lang>` says, unchecked.
    """

    texts: tuple[str, ...]
    title: str | None
    language: str | None


class ContentExtractor:
    """Extracts the main text of pages, always in the same way.

    `extractor` is "trafilatura" or the dotted path of a callable `(html: str) -> str | None`. Pages
    with more than `max_elements` tags, or a tag with more than 1,000 attributes, are refused before
    they are parsed. This bounds the time of a page, but loosely: trafilatura needs about 0.1 ms a
    tag, and 5 s for 500 tables in one another. A caller that cannot wait needs a timeout. Instances
    may be used from several threads and pickled; trafilatura loads with the first page, or by :meth:`load`.

    Raises ValueError when `extractor` cannot be imported or called.
    """

    def __init__(self, extractor: str = DEFAULT_EXTRACTOR, max_elements: int = 200_000) -> None:
        self.extractor = extractor
        self.max_elements = max_elements
        self._custom = None if extractor == DEFAULT_EXTRACTOR else _callable_at(extractor)
        self._trafilatura: Callable[[HtmlElement], str] | None = None

    def load(self) -> None:
        """Import trafilatura now. It holds the GIL for some 150 ms, which a crawl would notice."""
        if self._custom is None and self._trafilatura is None:
            self._trafilatura = _load_trafilatura()

    def __reduce__(self) -> tuple[type[ContentExtractor], tuple[str, int]]:
        return ContentExtractor, (self.extractor, self.max_elements)

    @property
    def identity(self) -> dict[str, str]:
        """All that decides which text a page has, save the code of a custom extractor."""
        if self._custom is not None:
            return {"extractor": self.extractor, "content": RULES}
        from lxml.etree import LIBXML_VERSION

        return {
            "extractor": self.extractor,
            "content": RULES,
            "trafilatura": importlib.metadata.version("trafilatura"),
            "libxml2": ".".join(map(str, LIBXML_VERSION)),
        }

    def extract(self, html: str) -> Content:
        """The content of a page, given as decoded text.

        Raises NoContent, and nothing else.
        """
        html = _visible(html)
        if not html or html.isspace():
            raise NoContent("no_text")
        if html.count("<") > self.max_elements or _has_monstrous_tag(html):
            raise NoContent("too_many_elements")
        try:
            content = self._extract(html)
        except NoContent:
            raise
        except Exception as error:
            raise NoContent("extraction_failed") from error
        if not content.texts:
            raise NoContent("no_text")
        return content

    def _extract(self, html: str) -> Content:
        if self._custom is not None:
            return self._extract_custom(self._custom, html)
        self.load()
        assert self._trafilatura is not None
        tree = _parse(html)
        text = self._trafilatura(tree)
        # A long text is hardly ever the wrong one, and the checks would cost on every page.
        text = text if len(text) >= _SHORT else _checked(text, tree)
        if _is_thin(text, tree):
            raise NoContent("thin")
        return Content(_views(text), _title(tree), _language(tree))

    def _extract_custom(self, extract: Callable[[str], str | None], html: str) -> Content:
        text = extract(html) or ""
        if not isinstance(text, str):
            raise TypeError(
                f"{self.extractor} returned {type(text).__name__}, allowed are str and None"
            )
        try:
            tree = _parse(html)
        except (NoContent, ValueError):  # it found a text all the same
            return Content(_views(text), None, None)
        return Content(_views(text), _title(tree), _language(tree))


def _views(text: str) -> tuple[str, ...]:
    return (text,) if text and not text.isspace() else ()


def _callable_at(path: str) -> Callable[[str], str | None]:
    allowed = (
        f"allowed are {DEFAULT_EXTRACTOR!r} and the dotted path of a callable that takes HTML and "
        "returns text or None"
    )
    module, _, name = path.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name)
    except Exception as error:  # whatever a module does when it is imported
        raise ValueError(f"extractor {path!r} cannot be imported ({error}); {allowed}") from error
    if not callable(found):
        raise ValueError(f"extractor {path!r} is not callable; {allowed}")  # noqa: TRY004
    checked: Callable[[str], str | None] = found
    return checked


def _load_trafilatura() -> Callable[[HtmlElement], str]:
    import trafilatura
    from trafilatura import utils
    from trafilatura.settings import Extractor

    for name in ("trafilatura", "htmldate", "courlan", "justext"):
        logger = logging.getLogger(name)
        # They log an error for every page without text. A level that somebody chose stays.
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.CRITICAL)
    # Comments are off: they differ between two visits. So is deduplication, which depends on the
    # pages seen before.
    options = Extractor(output_format="python", fast=True, comments=False)
    # These two remember 1024 strings of any length, which may be hundreds of megabytes.
    forget = [
        getattr(cached, "cache_clear", None)
        for cached in (getattr(utils, name, None) for name in ("trim", "line_processing"))
    ]

    def extract(tree: HtmlElement) -> str:
        try:
            document = trafilatura.bare_extraction(tree, options=options)
        finally:
            for clear in forget:
                if clear is not None:
                    clear()
        return (getattr(document, "text", None) or "") if document is not None else ""

    return extract


# ---- parsing -------------------------------------------------------------------------------------


def _visible(html: str) -> str:
    for character in _INVISIBLE:
        # Looking first is ten times as fast as replacing or a regular expression where there is
        # none, which is nearly always.
        if character in html:
            html = html.replace(character, "")
    return _WBR.sub("", _INVISIBLE_ENTITY.sub("", html))


def _parse(html: str) -> HtmlElement:
    """A whole document, whatever `html` is a part of.

    Parsed here and not by trafilatura, which gives up on fragments whose first 50 characters do
    not say "html". Raises NoContent when there is nothing but markup, or when libxml2 stopped
    half-way.
    """
    from lxml.etree import ParserError
    from lxml.html import HTMLParser, document_fromstring

    # libxml2 takes `<html/>` for the whole page, older versions also some doctypes.
    head = _DOCTYPE.sub("", html[:4096], count=1)
    html = _SELF_CLOSED_HTML.sub(r"\1>", head, count=1) + html[4096:]
    # A parser of our own for each page: its log tells below whether it came to the end. Bytes,
    # since text with an encoding declaration is refused. `huge_tree` allows 2048 levels instead
    # of 256, and texts of more than 10 MB.
    parser = HTMLParser(
        encoding="utf-8",
        remove_comments=True,
        remove_pis=True,
        huge_tree=True,
        default_doctype=False,
        collect_ids=False,
    )
    try:
        tree: HtmlElement = document_fromstring(html.encode("utf-8", "replace"), parser=parser)
    except ParserError as error:  # "Document is empty"
        raise NoContent("no_text") from error
    if fatal := parser.error_log.filter_from_fatals():
        # Two pages that differ only behind that point would be equal.
        raise ValueError(f"libxml2 did not read the whole page: {fatal[0].message}")
    return tree


def _has_monstrous_tag(html: str) -> bool:
    """Whether a tag has more than 1,000 attributes: libxml2 needs time by the square of them."""
    for part in html.split("<"):
        if len(part) > 2 * _MAX_ATTRIBUTES and part[0].isalpha():
            tag = part.partition(">")[0]
            if len(_QUOTED.sub("", tag).split(None, _MAX_ATTRIBUTES + 1)) > _MAX_ATTRIBUTES + 1:
                return True
    return False


def _title(tree: HtmlElement) -> str | None:
    icons = {title for svg in tree.iter("svg") for title in svg.iter("title")}
    titles = (title for title in tree.iter("title") if title not in icons)
    for element in (*titles, *tree.iter("h1")):
        if title := " ".join(element.text_content().split()):
            return title[:MAX_TITLE]
    return None


def _language(tree: HtmlElement) -> str | None:
    for name in ("lang", "xml:lang"):
        declared = (tree.get(name) or "").strip()
        if _LANGUAGE.fullmatch(declared):
            return declared
    return None


# ---- is it the story? ----------------------------------------------------------------------------


def _checked(text: str, tree: HtmlElement) -> str:
    """The extracted text, or a better one where the page shows that it is not the story.

    Different pages whose story is missed are left with the same shell, consent text or menu, and
    look like duplicates. So, in this order:

    - the `articleBody` that the page gives to search engines, where it is twice as long;
    - the longest run of paragraphs, where it was left out, is longer, and stands under the page's
      main heading; or no text, where it stands in an `<aside>` without one;
    - no text, where a script holds twice as much prose that is not on the page.

    Raises NoContent.
    """
    extracted = _squeezed(text)
    article = _article_body(tree)
    if len(_squeezed(article)) > 2 * len(extracted):
        return article
    parent, story = _longest_prose(tree)
    if parent is not None and _left_out(story, extracted):
        if _has_main_heading(parent):
            return "\n".join(story)
        if any(ancestor.tag == "aside" for ancestor in (parent, *parent.iterancestors())):
            raise NoContent("no_text")
    if len(text) < _SHELL and _prose_in_scripts(tree) > 2 * len(extracted):
        raise NoContent("no_text")
    return text


# What is not read as the text of a page: navigation, controls, and what is not shown.
_NO_PROSE = frozenset(
    (
        *("a", "nav", "header", "footer", "select", "datalist", "button"),
        *("script", "style", "template", "svg", "canvas", "object", "iframe"),
    )
)


def _is_thin(text: str, tree: HtmlElement) -> bool:
    """Whether the page shows more than twice as much text, outside of links, as was extracted.

    Then the text does not stand for the page: it may be the one paragraph that all pages share.
    Of the pages of eight real sites 0 to 4 % are like that, of 61 news pages 5.
    """
    enough = _THIN * len(_squeezed(text))
    shown = 0
    pending = [tree.find("body") if tree.find("body") is not None else tree]
    while pending and shown <= enough:
        element = pending.pop()
        shown += len(_squeezed(element.text or ""))
        for child in element:
            shown += len(_squeezed(child.tail or ""))
            if isinstance(child.tag, str) and child.tag not in _NO_PROSE:
                pending.append(child)
    return bool(text) and shown > enough


def _article_body(tree: HtmlElement) -> str:
    """The schema.org `articleBody` values of a page, as plain text."""
    bodies = dict.fromkeys(
        value
        for data in _json_scripts(tree, "application/ld+json", containing="articleBody")
        for key, value in _strings(data)
        if key == "articleBody"
    )
    return "\n".join(_plain(body) for body in bodies)


def _longest_prose(tree: HtmlElement) -> tuple[HtmlElement | None, list[str]]:
    """The element with the longest paragraphs among its children, and these paragraphs.

    Short ones and those that are mostly links do not count: they are menus and teasers.
    """
    prose: defaultdict[HtmlElement, list[str]] = defaultdict(list)
    for paragraph in tree.iter("p"):
        shown = " ".join(paragraph.text_content().split())
        if len(shown) < _PARAGRAPH or any(True for _ in paragraph.iter("script", "style")):
            continue
        linked = sum(len(link.text_content()) for link in paragraph.iter("a"))
        if linked <= len(shown) / 2:
            prose[paragraph.getparent()].append(shown)
    return max(prose.items(), key=lambda found: sum(map(len, found[1])), default=(None, []))


def _left_out(story: list[str], extracted: str) -> bool:
    """Whether a story is longer than what was extracted, and less than a third of it is in there."""
    squeezed = [_squeezed(paragraph) for paragraph in story]
    length = sum(map(len, squeezed))
    known = sum(len(part) for part in squeezed if part[:_OPENING] in extracted)
    return length > len(extracted) and 3 * known < length


def _has_main_heading(element: HtmlElement) -> bool:
    """Whether an `<h1>` is in the element or at most two levels above, but below `<body>`."""
    for _ in range(3):
        if element is None or element.tag in ("body", "html"):
            return False
        if element.find(".//h1") is not None:
            return True
        element = element.getparent()
    return False


def _prose_in_scripts(tree: HtmlElement) -> int:
    """How many letters of prose a page carries in scripts of JSON, to be shown by the browser."""
    prose = {
        _squeezed(plain)
        for data in _json_scripts(tree, "application/json", containing=" ")
        for _, value in _strings(data)
        if len(value) >= _SCRIPT_PROSE and _is_prose(plain := _plain(value))
    }
    return sum(map(len, prose))


def _is_prose(text: str) -> bool:
    letters = sum(map(str.isalpha, text))
    # Base64 and minified code have letters enough, but neither spaces nor other scripts.
    return letters >= 0.6 * len(text) and (text.count(" ") >= len(text) / 25 or not text.isascii())


def _json_scripts(tree: HtmlElement, kind: str, containing: str) -> Iterator[Any]:
    for script in tree.iter("script"):
        if (script.get("type") or "").strip().lower() == kind and containing in (script.text or ""):
            try:
                yield json.loads(script.text, strict=False)
            except (ValueError, RecursionError):
                continue


def _strings(data: Any) -> Iterator[tuple[str | None, str]]:
    """All strings of a JSON value, each with the key it stands under."""
    pending: list[tuple[str | None, Any]] = [(None, data)]
    while pending:
        key, value = pending.pop()
        if isinstance(value, str):
            yield key, value
        elif isinstance(value, dict):
            pending.extend(reversed(value.items()))
        elif isinstance(value, list):
            pending.extend((key, item) for item in reversed(value))


def _plain(markup: str) -> str:
    # Twice: such values are often escaped HTML, with entities of its own.
    return entities.unescape(_TAG.sub(" ", entities.unescape(markup)))


def _squeezed(text: str) -> str:
    return "".join(text.split())
