"""HTML → `Content` by several extractors, once a page: the results are kept in a cache folder.

Extractors other than the package's go through its `ContentExtractor`, as a user's own would; or
find the main text only, and all else is the package's.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.metadata
import os
import pickle
import time
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from scrapy_simdup.config import Config
from scrapy_simdup.page import blocks, content, maintext, resources, story
from scrapy_simdup.page.content import Content, ContentExtractor, NoContent
from scrapy_simdup.page.fingerprint import body_digest

if TYPE_CHECKING:
    from collections.abc import Callable

    from lxml.html import HtmlElement
    from sets import PageSet

PACKAGE: Final = "package"

_MainFinder: TypeAlias = "Callable[[str, HtmlElement, int], str]"


@dataclass(frozen=True, slots=True)
class Extracted:
    """A page after extraction, which took `seconds` of processor time; `content` is None where there is none, and `reason` says why."""

    body_digest: bytes
    seconds: float
    content: Content | None
    reason: str = ""


def trafilatura_fast(html: str) -> str | None:
    import trafilatura

    return trafilatura.extract(html, fast=True, include_comments=False)


def trafilatura_default(html: str) -> str | None:
    import trafilatura

    return trafilatura.extract(html, include_comments=False)


def trafilatura_baseline(html: str) -> str | None:
    import trafilatura

    body, text, _ = trafilatura.baseline(html)
    return "\n".join(filter(None, (element.text for element in body.iter("p")))) or text


def resiliparse_main(html: str) -> str | None:
    from resiliparse.extract.html2text import extract_plain_text

    return str(extract_plain_text(html, main_content=True))


#: By name: a function, and the distributions whose versions decide what it gives.
_OTHERS: Final[dict[str, tuple[Callable[[str], str | None], tuple[str, ...]]]] = {
    "trafilatura fast": (trafilatura_fast, ("trafilatura", "lxml")),
    "trafilatura default": (trafilatura_default, ("trafilatura", "lxml", "justext")),
    "trafilatura baseline": (trafilatura_baseline, ("trafilatura", "lxml")),
    "resiliparse": (resiliparse_main, ("resiliparse", "lxml")),
}


class _OtherMain(ContentExtractor):
    """The package's extractor with the main text found by `find`, all else unchanged.

    `find` is given what is visible of a page, its tree, and how many characters it shows outside
    of menus, headers and footers.
    """

    def __init__(self, find: _MainFinder, max_elements: int) -> None:
        super().__init__(max_elements=max_elements)
        self._find = find

    def _extract(self, document: bytes) -> Content:
        html = document.decode()
        found: Any = lambda tree, shown: self._find(html, tree, shown)
        self._main_text = found
        return super()._extract(document)


def _resiliparse_beside(visible: str, _: HtmlElement, __: int) -> str:
    from resiliparse.extract.html2text import extract_plain_text

    # Without alternative texts it leaves out whole figures, in which some sites have their code.
    return str(extract_plain_text(visible, main_content=True, list_bullets=False, comments=False))


def _resiliparse_or_all(visible: str, tree: HtmlElement, shown: int) -> str:
    from resiliparse.extract.html2text import extract_plain_text

    text = _resiliparse_beside(visible, tree, shown)
    if len(text) >= _LITTLE:
        return text
    return max(text, str(extract_plain_text(visible, list_bullets=False)), key=len)


def _resiliparse_or_trafilatura(visible: str, tree: HtmlElement, shown: int) -> str:
    text = _resiliparse_beside(visible, tree, shown)
    if len(text) >= _LITTLE and (len(text) >= maintext._ESCALATED or len(text) >= _COVERED * shown):
        return text
    return max(text, _main_text()(tree, shown), key=len)


#: Where a main text is shorter, or covers less of what the page shows, the package looks again.
_LITTLE, _COVERED = 250, maintext._COVERED

_main_text = functools.cache(maintext.MainText)

#: By name: what finds the main text beside the prose, and the distributions that decide with it.
_BESIDE: Final[dict[str, tuple[_MainFinder, tuple[str, ...]]]] = {
    "resiliparse and prose": (_resiliparse_beside, ("resiliparse",)),
    "resiliparse or all text, and prose": (_resiliparse_or_all, ("resiliparse",)),
    "resiliparse or trafilatura, and prose": (_resiliparse_or_trafilatura, ("resiliparse",)),
}


def _only_prose(found: Content) -> Content:
    return dataclasses.replace(found, main=found.prose, prose=(), visible=())


def _only_visible(found: Content) -> Content:
    return dataclasses.replace(found, main=found.visible, prose=(), visible=())


def _with_title(found: Content) -> Content:
    title = (found.title,) if found.title else ()
    return dataclasses.replace(
        found,
        main=(*title, *found.main) if found.main else (),
        prose=(*title, *found.prose) if found.prose else (),
    )


#: Other readings of what the package has extracted.
_READINGS: Final[dict[str, Callable[[Content], Content]]] = {
    "prose": _only_prose,
    "visible text": _only_visible,
    "title and text": _with_title,
}

NAMES: Final = (PACKAGE, *_READINGS, *_OTHERS, *_BESIDE)


def source_of(name: str) -> str:
    """The extractor that has to run for the extractor `name`."""
    return PACKAGE if name in _READINGS else name


def extracted(pages: PageSet, name: str, cache: Path) -> list[Extracted]:
    """All pages of a set by the extractor `name`, from the cache or made now."""
    path = _path(pages, source_of(name), cache)
    if path.exists():
        found: list[Extracted] = pickle.loads(path.read_bytes())
    else:
        extractor = _extractor(source_of(name))
        found = [_extract(extractor, html) for html in pages.pages()]
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}")
        unfinished.write_bytes(pickle.dumps(found))
        unfinished.replace(path)
    reading = _READINGS.get(name)
    return found if reading is None else [_read_otherwise(page, reading) for page in found]


def is_cached(pages: PageSet, name: str, cache: Path) -> bool:
    return _path(pages, source_of(name), cache).exists()


def _path(pages: PageSet, source: str, cache: Path) -> Path:
    docs = blake2b((pages.folder / "docs.jsonl").read_bytes(), digest_size=8).hexdigest()
    slug = source.replace(" ", "-")
    return cache / "extracted" / f"{pages.name}-{slug}-{docs}-{_identity(source)}.pickle"


@functools.cache
def _identity(source: str) -> str:
    if source == PACKAGE or source in _BESIDE:
        modules = (blocks, content, maintext, resources, story)
        code = b"".join(Path(str(module.__file__)).read_bytes() for module in modules)
        versions = [importlib.metadata.version(name) for name in _BESIDE.get(source, ("", ()))[1]]
        parts = ("".join((repr(ContentExtractor().identity), *versions)).encode(), code)
    else:
        versions = [importlib.metadata.version(library) for library in _OTHERS[source][1]]
        parts = (repr((source, versions, content.RULES)).encode(), b"")
    return blake2b(b"".join(parts), digest_size=8).hexdigest()


def _extractor(source: str) -> ContentExtractor:
    limit = Config().max_elements
    if source == PACKAGE:
        return ContentExtractor(max_elements=limit)
    if source in _BESIDE:
        return _OtherMain(_BESIDE[source][0], limit)
    function = _OTHERS[source][0]
    return ContentExtractor(f"{function.__module__}.{function.__name__}", limit)


def _extract(extractor: ContentExtractor, html: str) -> Extracted:
    body = html.encode("utf-8", "surrogatepass")
    digest = body_digest(body)
    started = time.process_time()
    if len(body) > Config().max_body_bytes or not body.strip():
        return Extracted(digest, 0.0, None, "body")
    try:
        found = extractor.extract(html)
    except NoContent as error:
        return Extracted(digest, time.process_time() - started, None, error.reason)
    return Extracted(digest, time.process_time() - started, found)


def _read_otherwise(page: Extracted, reading: Callable[[Content], Content]) -> Extracted:
    if page.content is None:
        return page
    found = reading(page.content)
    if found.main or found.prose:
        return dataclasses.replace(page, content=found)
    return dataclasses.replace(page, content=None, reason="no_text")
