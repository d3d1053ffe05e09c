"""The part of judging a page that costs time and needs no store: extract, segment, fingerprint.

`Analyser` runs on the analyst's thread or in worker processes: what goes in and what comes out can
be pickled.
"""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from w3lib.encoding import html_to_unicode

from scrapy_simdup.errors import ConfigError
from scrapy_simdup.page.content import MAX_TITLE, Content, ContentExtractor, NoContent
from scrapy_simdup.page.fingerprint import Fingerprinter
from scrapy_simdup.page.kepttext import pack_texts
from scrapy_simdup.page.profiler import Portrait, Profiler, Unfit

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy_simdup.config import Config


@dataclass(frozen=True, slots=True)
class Charset:
    """Makes text of a body whose charset is known, as browsers do."""

    name: str

    def __call__(self, body: bytes) -> str:
        return html_to_unicode(f"charset={self.name}", body)[1]


@dataclass(frozen=True, slots=True)
class Declared:
    """Makes text of a body as it declares itself, and the header *content_type* that came with it."""

    content_type: str | None = None

    def __call__(self, body: bytes) -> str:
        return html_to_unicode(self.content_type, body)[1]


@dataclass(frozen=True, slots=True)
class Material:
    """What a page is judged by: its *body*, and *decode*, which makes text of that.

    The text is HTML, or (*is_html* off) the main text itself. *title* is that of the page where it
    is known already.
    """

    body: bytes
    decode: Callable[[bytes], str]
    is_html: bool
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Analysis:
    """What the text of a page gives. ``text`` is empty unless it is to be kept."""

    portrait: Portrait
    language: str | None
    text: bytes
    cut_off: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """An analysis, or (``skipped``) one of ``SKIP_REASONS``; and the seconds it took, if known."""

    analysis: Analysis | None
    skipped: str | None
    seconds: float | None = None


class Analyser:
    """Analyses pages, always in the same way. Raises ``ConfigError`` for an unusable extractor."""

    def __init__(self, config: Config) -> None:
        try:
            self._extractor = ContentExtractor(config.extractor, config.max_elements)
        except ValueError as error:
            raise ConfigError(f"extractor = {config.extractor!r}: {error}") from error
        self.profiler = Profiler(Fingerprinter.of(config), config.views)
        self._keep_text = config.keep_text

    @property
    def identity(self) -> dict[str, str]:
        """All that decides which profile a page has."""
        return {**self._extractor.identity, **self.profiler.identity}

    def load(self) -> None:
        """Import now what the first page would import, so that nothing waits for it later."""
        self._extractor.load()

    def __call__(self, material: Material) -> Outcome:
        """Analyse a page; whatever goes wrong with it is a reason to skip it."""
        started = time.perf_counter()
        found = self._analyse(material)
        seconds = time.perf_counter() - started
        if isinstance(found, str):
            return Outcome(None, found, seconds)
        return Outcome(found, None, seconds)

    def _analyse(self, material: Material) -> Analysis | str:
        try:
            text = material.decode(material.body)
            content = self._extractor.extract(text) if material.is_html else Content.of_text(text)
        except NoContent as error:
            return error.reason
        except BaseException:  # an unheard-of charset; an extractor that calls sys.exit()
            return "extraction_failed"
        if title := storable((material.title or content.title or "")[:MAX_TITLE]):
            content = dataclasses.replace(content, title=title)
        try:
            portrait = self.profiler.portrait(content)
        except Unfit as unfit:
            return str(unfit)
        return Analysis(
            portrait=portrait,
            language=content.language,
            text=pack_texts(content) if self._keep_text else b"",
            cut_off=content.cut_off,
        )


def storable(text: str) -> str:
    """Lone surrogates cannot be written down; they become escapes."""
    return text.encode("utf-8", "backslashreplace").decode()
