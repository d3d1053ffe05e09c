"""HTML → what a page says: its main text, its prose, its title.

`maintext` finds the main text with trafilatura. What lives here is what a crawl needs around it:
pages cut off, without `<html>`, with NUL bytes or hundreds of thousands of elements; a text that is
not the story; and a plain reason wherever there is none. Whether a text is long enough to be judged
is decided in `fingerprint`.
"""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Literal

import numpy as np

from scrapy_simdup.page import story
from scrapy_simdup.page.blocks import at_most, carried_texts, outermost, read_blocks
from scrapy_simdup.page.maintext import MainText
from scrapy_simdup.page.resources import NOTHING, Resources, read_resources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lxml.html import HtmlElement

Reason = Literal["no_text", "too_many_elements", "extraction_failed", "thin"]
NoMain = Literal["no_text", "thin"]

DEFAULT_EXTRACTOR = "trafilatura"
RULES = "3"
"""Changes whenever the rules of this module give another text for the same page."""

MAX_TITLE = 300

_MAX_ATTRIBUTES = 1000
_SHORT = 3000
_TAIL = 4096

# What no reader sees. Controls, since libxml2 would end the text at a NUL; and marks of possible
# line breaks and directions, since trafilatura counts them when it looks for the longest text.
_CONTROLS = bytes((*range(9), 11, 12, *range(14, 32)))
_INVISIBLE = "\xad\u200b\u200e\u200f\u2060\ufeff\ufffe\uffff"
# Spelt out, since a pattern that ignores case is searched much slower.
_INVISIBLE_ENTITY = re.compile(
    rb"&(?:shy|ZeroWidthSpace|lrm|rlm|NoBreak|#0*(?:173|8203|8206|8207|8288|65279)"
    rb"|#[xX]0*(?:[aA][dD]|200[bBeEfF]|2060|[fF][eE][fF][fF]));"
)
_WBR = re.compile(rb"</?[wW][bB][rR]\b[^<>]*>")
_DOCTYPE = re.compile(rb"<!doctype[^<>]*>", re.IGNORECASE)
# `[^<>]`, so that it is tried over no stretch twice: such patterns run with the GIL held.
_SELF_CLOSED_HTML = re.compile(rb"(<html\b[^<>]*)/>", re.IGNORECASE)
# Text that has no tags; where it does not end, all that follows is of it.
_RAW_TEXT = re.compile(rb"<(script|style|textarea|title)\b[^<>]*>")  # of a document in lower case
# A value in quotes, which may hold anything but these.
_VALUE = re.compile(rb"""=\s*(?:"[^"]*"|'[^']*')""")
_TAG = re.compile(rb"<[a-zA-Z]")
_BETWEEN_ATTRIBUTES = re.compile(rb"[\s/=]+")
_UNFINISHED_TAG = re.compile(rb"<(?:[a-zA-Z/!][^<>]*)?\Z")
(_TAG_END,) = b">"
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
    are empty with an extractor of the user's own, and so are `resources`, what the page is about in
    no text of it. At least one of `main` and `prose` is not empty.

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
    resources: Resources = NOTHING

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
        self._main_text: MainText | None = None

    def load(self) -> None:
        """Import trafilatura now. It holds the GIL for some 150 ms, which a crawl would notice."""
        if self._custom is None and self._main_text is None:
            self._main_text = MainText()

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
            **MainText.identity(),
            "libxml2": ".".join(map(str, LIBXML_VERSION)),
        }

    def extract(self, html: str) -> Content:
        """The content of a page, given as decoded text.

        Raises NoContent, and nothing else.
        """
        document = _visible(html)
        if not document or document.isspace():
            raise NoContent("no_text")
        if document.count(b"<") > self.max_elements or _has_monstrous_tag(document):
            raise NoContent("too_many_elements")
        try:
            content = self._extract(document)
        except NoContent:
            raise
        except Exception as error:
            raise NoContent("extraction_failed") from error
        if not content.main and not content.prose:
            raise NoContent(content.no_main or "no_text")
        return content

    def _extract(self, document: bytes) -> Content:
        if self._custom is not None:
            return self._extract_custom(self._custom, document)
        self.load()
        assert self._main_text is not None
        tree = _parse(document)
        blocks = read_blocks(tree)
        evidence = story.read_evidence(tree)
        carried, resources = carried_texts(tree), read_resources(tree, blocks)
        title, language = _title(tree), _language(tree)
        # Comes last, since it takes the tree to pieces.
        text = self._main_text(
            tree,
            sum(b.length for b in blocks if not b.in_navigation),
            again=lambda: _parse(document),
        )
        # A long text is hardly ever the wrong one.
        found = story.Story(text) if len(text) >= _SHORT else story.checked(text, evidence)
        if not found.on_page and not found.text:
            raise NoContent("no_text")
        on_page = found.on_page and story.is_shown(found.text, blocks, evidence)
        thin = on_page and story.is_thin(found.text, blocks, evidence)
        main = () if thin else _lines(found.text)
        return Content(
            main=main,
            prose=blocks.prose() if on_page else (),
            visible=(*blocks.visible(), *carried),
            resources=resources,
            title=title,
            headings=at_most(blocks.headings(), MAX_TITLE),
            language=language,
            no_main=None if main else "thin" if thin else "no_text",
            cut_off=_is_cut_off(document),
        )

    def _extract_custom(self, extract: Callable[[str], str | None], document: bytes) -> Content:
        text = extract(document.decode()) or ""
        if not isinstance(text, str):
            raise TypeError(
                f"{self.extractor} returned {type(text).__name__}, allowed are str and None"
            )
        main = _lines(text)
        try:
            tree = _parse(document)
        except (NoContent, ValueError):  # it found a text all the same
            return Content(main)
        return Content(
            main,
            title=_title(tree),
            headings=at_most(read_blocks(tree).headings(), MAX_TITLE),
            language=_language(tree),
            cut_off=_is_cut_off(document),
        )


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line for line in text.split("\n") if line and not line.isspace())


def _is_cut_off(document: bytes) -> bool:
    """Whether a document stops within a tag, or opens `<html>` and ends neither that nor `<body>`."""
    if _UNFINISHED_TAG.search(document, max(0, len(document) - _TAIL)):
        return True
    if not any(tag in document[:_TAIL] for tag in (b"<html", b"<HTML")):
        return False
    # From behind, where it is.
    ends = (b"</html", b"</HTML", b"</body", b"</BODY")
    return all(document.rfind(end) < 0 for end in ends)


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


# ---- parsing -------------------------------------------------------------------------------------


def _visible(html: str) -> bytes:
    """A page as UTF-8, without what nobody sees.

    Bytes, since libxml2 refuses text with an encoding declaration, and patterns find them faster.
    """
    for character in _INVISIBLE:
        if character in html:  # looking first is quicker where there is none, which is most often
            html = html.replace(character, "")
    document = html.encode("utf-8", "replace").translate(None, _CONTROLS)
    return _WBR.sub(b"", _INVISIBLE_ENTITY.sub(b"", document))


def _parse(document: bytes) -> HtmlElement:
    """A whole document, whatever it is a part of, given as UTF-8.

    Parsed here and not by trafilatura, which gives up on fragments whose first 50 characters do
    not say "html". Raises NoContent when there is nothing but markup, or when libxml2 stopped
    half-way.
    """
    from lxml.etree import ElementDefaultClassLookup, HTMLParser, ParserError
    from lxml.html import HtmlElement, document_fromstring

    # libxml2 takes `<html/>` for the whole page, older versions also some doctypes.
    head = _DOCTYPE.sub(b"", document[:4096], count=1)
    document = _SELF_CLOSED_HTML.sub(rb"\1>", head, count=1) + document[4096:]
    # A parser of our own for each page: its log tells below whether it came to the end. `huge_tree`
    # allows 2048 levels instead of 256, and texts of more than 10 MB.
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
        tree: HtmlElement = document_fromstring(document, parser=parser)
    except ParserError as error:  # "Document is empty"
        raise NoContent("no_text") from error
    if fatal := parser.error_log.filter_from_fatals():
        # Two pages that differ only behind that point would be equal.
        raise ValueError(f"libxml2 did not read the whole page: {fatal[0].message}")
    _gather(tree)
    return tree


def _gather(tree: HtmlElement) -> None:
    """Put into `<body>` what stands after its end or that of the document, as a browser does.

    libxml2 leaves it beside `<body>`, or makes roots of it.
    """
    body = tree.find("body")
    if body is None:
        return
    beside = [child for child in tree if child.tag not in ("head", "body", "frameset")]
    for root in list(tree.itersiblings()):
        if root.tag == "html":
            beside += [
                part for child in root for part in (child if child.tag == "body" else [child])
            ]
        elif isinstance(root.tag, str):
            beside.append(root)
    body.extend(beside)


def _has_monstrous_tag(document: bytes) -> bool:
    """Whether a tag has more than 1,000 attributes: libxml2 needs time by the square of them."""
    if len(document) < 2 * _MAX_ATTRIBUTES:
        return False
    # In code and in values, `<` and `>` are no tags.
    bare = _VALUE.sub(b"=", _without_raw_text(document))
    ends = np.flatnonzero(np.frombuffer(bare, dtype=np.uint8) == _TAG_END)
    # Up to the next `>` all is of the first tag, and looked at once.
    bounds = np.concatenate(([-1], ends, [len(bare)]))
    long = np.flatnonzero(np.diff(bounds) > 2 * _MAX_ATTRIBUTES)
    for start, end in zip((bounds[long] + 1).tolist(), bounds[long + 1].tolist(), strict=True):
        tag = _TAG.search(bare, start, end)  # `a < b` is none
        if (
            tag is not None
            and len(_BETWEEN_ATTRIBUTES.split(bare[tag.start() : end], _MAX_ATTRIBUTES + 1))
            > _MAX_ATTRIBUTES + 1
        ):
            return True
    return False


def _without_raw_text(document: bytes) -> bytes:
    """A document in lower case, without what stands in elements that hold no markup."""
    document = document.lower()
    parts = []
    end = 0
    while element := _RAW_TEXT.search(document, end):
        parts.append(document[end : element.end()])
        close = b"</" + element[1]
        end = document.find(close, element.end())
        if end < 0:
            break
        end += len(close)
    else:
        parts.append(document[end:])
    return b"".join(parts)


def _title(tree: HtmlElement) -> str | None:
    for element in chain(_titles(tree), tree.iter("h1")):
        if title := " ".join(element.text_content().split()):
            return title[:MAX_TITLE]
    return None


def _titles(tree: HtmlElement) -> Iterator[HtmlElement]:
    """All `<title>` but those of icons, which are looked for where `<head>` begins with none."""
    first = next(tree.iter("title"), None)
    if first is not None and first.getparent().tag == "head":
        yield first
    icons = {title for svg in outermost(tree, "svg") for title in svg.iter("title")}
    yield from (title for title in tree.iter("title") if title not in icons)


def _language(tree: HtmlElement) -> str | None:
    for name in ("lang", "xml:lang"):
        declared = (tree.get(name) or "").strip()
        if _LANGUAGE.fullmatch(declared):
            return declared
    return None
