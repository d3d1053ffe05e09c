"""Texts and pages without a store: the fingerprint of one, the comparison of two."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

from scrapy_simdup.config import Config
from scrapy_simdup.page import fingerprint as page_fingerprint
from scrapy_simdup.page.comparison import Comparison, compare_views
from scrapy_simdup.page.content import ContentExtractor, NoContent

if TYPE_CHECKING:
    from scrapy_simdup.page.fingerprint import Fingerprint

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
        self._rules = _rules(Config.from_options(options))

    def fingerprint(self, text: str) -> Fingerprint | None:
        """Return simhash (64 bits), sketch (256 bytes), number of tokens and of distinct shingles.

        None if the text has no features: no letters or digits. ``min_tokens`` is not applied here.
        """
        return self._rules.fingerprint(text)


def compare(a: str, b: str, **options: Any) -> Comparison:
    """Compare two texts, or two HTML pages by their main text, as the detector would.

    ``near`` is what the detector would say of b after a. Texts that it would not judge (too short,
    nothing to extract) are near only if they are the same.
    """
    config = Config.from_options(options)
    fingerprinter = _rules(config)
    extractor = ContentExtractor(config.extractor, config.max_elements)
    first, second = _texts(a, extractor), _texts(b, extractor)
    views = [
        [view for view in map(fingerprinter.fingerprint, texts) if view is not None]
        for texts in (first, second)
    ]
    same = a == b or (
        bool(first[0].strip())
        and page_fingerprint.text_digest(first[0]) == page_fingerprint.text_digest(second[0])
    )
    if not views[0] or not views[1]:
        return Comparison(distance=None, resemblance=None, containment=None, near=same)
    judged = [[view for view in page if fingerprinter.state(view) is None] for page in views]
    comparison = compare_views(
        judged[0] or views[0],
        judged[1] or views[1],
        max_distance=config.max_distance,
        min_resemblance=config.min_resemblance,
    )
    near = same or (comparison.near and bool(judged[0]) and bool(judged[1]))
    return Comparison(
        distance=comparison.distance,
        resemblance=comparison.resemblance,
        containment=comparison.containment,
        near=near,
    )


@functools.lru_cache(maxsize=8)
def _rules(config: Config) -> page_fingerprint.Fingerprinter:
    """One instance for many comparisons: each would load jieba's dictionary anew."""
    return page_fingerprint.Fingerprinter(
        weights=config.weights,
        seed=config.seed,
        min_tokens=config.min_tokens,
        unify_chinese=config.unify_chinese,
    )


def _texts(source: str, extractor: ContentExtractor) -> tuple[str, ...]:
    if not _HTML.match(source):
        return (source,)
    try:
        return extractor.extract(source).texts
    except NoContent:
        return ("",)
