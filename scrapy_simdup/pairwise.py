"""Texts and pages without a store: the fingerprint of one, the comparison of two."""

from __future__ import annotations

import dataclasses
import functools
import re
from typing import TYPE_CHECKING, Any

from scrapy_simdup.config import Config
from scrapy_simdup.page import fingerprint as page_fingerprint
from scrapy_simdup.page.comparison import compare_profiles
from scrapy_simdup.page.content import Content, ContentExtractor, NoContent
from scrapy_simdup.page.features import normalise_blocks
from scrapy_simdup.page.fingerprint import blocks_digest
from scrapy_simdup.page.measure import Comparison, measure
from scrapy_simdup.page.profiler import Profiler, Unfit

if TYPE_CHECKING:
    from scrapy_simdup.page.fingerprint import Fingerprint
    from scrapy_simdup.page.profiler import Portrait

_HTML = re.compile(
    r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--(?:(?!-->).)*-->\s*)*"
    r"<(?:!doctype|html|head|body|div|p|main|article|h\d)\b",
    re.IGNORECASE | re.DOTALL,
)


class Fingerprinter:
    """Text → fingerprint, with the options of the same names as the settings.

    Raises :class:`~scrapy_simdup.ConfigError` for unknown options and values not allowed.
    """

    def __init__(self, **options: Any) -> None:
        self._fingerprinter = _fingerprinter(Config.from_options(options))

    def fingerprint(self, text: str) -> Fingerprint | None:
        """Return simhash (64 bits), sketch (256 bytes), number of tokens and of distinct shingles.

        None if the text has no features: no letters or digits. ``min_tokens`` is not applied here.
        """
        return self._fingerprinter.fingerprint(text)


def compare(a: str, b: str, **options: Any) -> Comparison:
    """Compare two texts, or two HTML pages of one site, as the detector would.

    ``near`` is what the detector would say of b after a, were there no other pages of their site
    to tell its boilerplate by, and with ``keep_text``: both texts are at hand, so wherever it could
    matter their shingles are counted, not estimated. Texts that it would not judge (too short,
    nothing to extract) are near only if they are the same.
    """
    config = Config.from_options(options)
    profiler = Profiler(_fingerprinter(config), config.views)
    extractor = ContentExtractor(config.extractor, config.max_elements)
    contents = [_content(source, extractor) for source in (a, b)]
    portraits = [_portrait(content, profiler) for content in contents]
    if portraits[0] is not None and portraits[1] is not None:
        shingles = {name: part.shingles() for name, part in portraits[0].composition.items()}
        comparison = compare_profiles(
            portraits[1], portraits[0].profile, config, same_site=True, exact=shingles.get
        )
        return dataclasses.replace(comparison, near=True) if a == b else comparison
    same = a == b or _same_text(*contents)
    fingerprints = [
        None if content is None else _fingerprinter(config).fingerprint("\n".join(content.main))
        for content in contents
    ]
    if fingerprints[0] is None or fingerprints[1] is None:
        return Comparison(distance=None, resemblance=None, containment=None, near=same)
    return dataclasses.replace(measure(fingerprints[0], fingerprints[1]), near=same)


def _same_text(a: Content | None, b: Content | None) -> bool:
    if a is None or b is None or not a.main or not b.main:
        return False
    return blocks_digest(normalise_blocks(a.main)) == blocks_digest(normalise_blocks(b.main))


@functools.lru_cache(maxsize=8)
def _fingerprinter(config: Config) -> page_fingerprint.Fingerprinter:
    """One instance for many comparisons: each would load jieba's dictionary anew."""
    return page_fingerprint.Fingerprinter.of(config)


def _content(source: str, extractor: ContentExtractor) -> Content | None:
    if not _HTML.match(source):
        return Content.of_text(source)
    try:
        return extractor.extract(source)
    except NoContent:
        return None


def _portrait(content: Content | None, profiler: Profiler) -> Portrait | None:
    try:
        return None if content is None else profiler.portrait(content)
    except Unfit:
        return None
