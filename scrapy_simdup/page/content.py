"""HTML → what a page says: its main text, its prose, its title.

trafilatura finds the main text. What lives here is what a crawl needs around it: pages cut off,
without `<html>`, with NUL bytes or hundreds of thousands of elements; a text that is not the story;
and a plain reason wherever there is none. Whether a text is long enough to be judged is decided in
`fingerprint`.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import logging
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from scrapy_simdup.page import story
from scrapy_simdup.page.blocks import carried_texts, read_blocks

if TYPE_CHECKING:
    from collections.abc import Callable

    from lxml.html import HtmlElement

Reason = Literal["no_text", "too_many_elements", "extraction_failed", "thin"]
NoMain = Literal["no_text", "thin"]

DEFAULT_EXTRACTOR = "trafilatura"
RULES = "2"
"""Changes whenever the rules of this module give another text for the same page."""

MAX_TITLE = 300

_MAX_ATTRIBUTES = 1000
_SHORT = 3000
_TAIL = 4096

# What no reader sees. Controls, since libxml2 would end the text at a NUL; and marks of possible
# line breaks and directions, since trafilatura counts them when it looks for the longest text.
_INVISIBLE = (
    *map(chr, (*range(9), 11, 12, *range(14, 32))),
    *"\xad\u200b\u200e\u200f\u2060\ufeff\ufffe\uffff",
)
# Spelt out, since a pattern that ignores case is searched much slower.
_INVISIBLE_ENTITY = re.compile(
    "&(?:shy|ZeroWidthSpace|lrm|rlm|NoBreak|#0*(?:173|8203|8206|8207|8288|65279)"
    "|#[xX]0*(?:[aA][dD]|200[bBeEfF]|2060|[fF][eE][fF][fF]));"
)
_WBR = re.compile(r"</?[wW][bB][rR]\b[^<>]*>")
_DOCTYPE = re.compile(r"<!doctype[^<>]*>", re.IGNORECASE)
# `[^<>]`, so that it is tried over no stretch twice: such patterns run with the GIL held.
_SELF_CLOSED_HTML = re.compile(r"(<html\b[^<>]*)/>", re.IGNORECASE)
_QUOTED = re.compile(r""""[^"<>]*"|'[^'<>]*'""")
_UNFINISHED_TAG = re.compile(r"<(?:[a-zA-Z/!][^<>]*)?\Z")
_BLANK_LINES = re.compile(r"\n\s*\n")
_LANGUAGE = re.compile(r"[a-z]{2,8}(?:[-_][a-z0-9]{1,8})*", re.IGNORECASE)


class NoContent(Exception):
    """A page has no text that it could be judged by.

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
    """What was found on a page, each text as its blocks.

    `main` is what the extractor takes for the main text, and empty where that does not stand for
    the page; `no_main` says why. `prose` is what the page shows outside of navigation and links, and
    empty where that does not stand for the page; `visible` is all that it shows or carries. Both
    are empty with an extractor of the user's own. At least one of `main` and `prose` is not empty.

    `title` has at most 300 characters, and so have `headings`, the page's `<h1>`, together.
    `language` is what the page's `<html lang>` says, unchecked. `cut_off` says that the document
    ends in the middle: it was opened with `<html>`, or stops within a tag, and never closed.
    """

    main: tuple[str, ...]
    prose: tuple[str, ...] = ()
    visible: tuple[str, ...] = ()
    title: str | None = None
    headings: tuple[str, ...] = ()
    language: str | None = None
    no_main: NoMain | None = None
    cut_off: bool = False

    @classmethod
    def of_text(cls, text: str, title: str | None = None) -> Content:
        """The content of a plain text. Its blocks are what blank lines part."""
        return cls(tuple(_BLANK_LINES.split(text)), title=title)


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
        if not content.main and not content.prose:
            raise NoContent(content.no_main or "no_text")
        return content

    def _extract(self, html: str) -> Content:
        if self._custom is not None:
            return self._extract_custom(self._custom, html)
        self.load()
        assert self._trafilatura is not None
        tree = _parse(html)
        text = self._trafilatura(tree)
        # A long text is hardly ever the wrong one, and the checks would cost on every page.
        found = story.Story(text) if len(text) >= _SHORT else story.checked(text, tree)
        if not found.on_page and not found.text:
            raise NoContent("no_text")
        blocks = read_blocks(tree)
        on_page = found.on_page and story.is_shown(found.text, blocks, tree)
        thin = on_page and story.is_thin(found.text, blocks, tree)
        main = () if thin else _lines(found.text)
        return Content(
            main=main,
            prose=blocks.prose() if on_page else (),
            visible=(*blocks.visible(), *carried_texts(tree)),
            title=_title(tree),
            headings=_cut(blocks.headings()),
            language=_language(tree),
            no_main=None if main else "thin" if thin else "no_text",
            cut_off=_is_cut_off(html),
        )

    def _extract_custom(self, extract: Callable[[str], str | None], html: str) -> Content:
        text = extract(html) or ""
        if not isinstance(text, str):
            raise TypeError(
                f"{self.extractor} returned {type(text).__name__}, allowed are str and None"
            )
        main = _lines(text)
        try:
            tree = _parse(html)
        except (NoContent, ValueError):  # it found a text all the same
            return Content(main)
        return Content(
            main,
            title=_title(tree),
            headings=_cut(read_blocks(tree).headings()),
            language=_language(tree),
            cut_off=_is_cut_off(html),
        )


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line for line in text.split("\n") if line and not line.isspace())


def _cut(headings: tuple[str, ...]) -> tuple[str, ...]:
    """As many headings as have 300 characters together."""
    kept: list[str] = []
    left = MAX_TITLE
    for heading in headings:
        if left <= 0:
            break
        kept.append(heading[:left])
        left -= len(heading)
    return tuple(kept)


def _is_cut_off(html: str) -> bool:
    """Whether a document stops within a tag, or opens `<html>` and ends neither that nor `<body>`."""
    if _UNFINISHED_TAG.search(html, len(html) - _TAIL if len(html) > _TAIL else 0):
        return True
    if not any(tag in html[:_TAIL] for tag in ("<html", "<HTML")):
        return False
    return not any(tag in html for tag in ("</html", "</HTML", "</body", "</BODY"))


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
    from lxml.etree import ElementDefaultClassLookup, HTMLParser, ParserError
    from lxml.html import HtmlElement, document_fromstring

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
    # lxml.html's own parser asks Python code for the class of every element it hands out, which
    # costs a quarter of the time of an extraction; we need none of its classes for forms.
    parser.set_element_class_lookup(ElementDefaultClassLookup(element=HtmlElement))
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
