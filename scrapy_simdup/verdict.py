"""What the detector says of a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

#: Kinds of verdict.
KINDS: Final = ("unique", "exact", "near", "revisit", "skipped")

#: Why a page is not judged. Every one passes, and is counted as ``simdup/skipped/<reason>``.
SKIP_REASONS: Final[dict[str, str]] = {
    "opt_out": 'the request says meta["simdup"] = False',
    "no_callback": "no page of the crawl: robots.txt, media files, requests of other components",
    "method": "neither GET nor POST",
    "status": "the status is not 200",
    "not_html": "neither HTML nor XHTML, by content type and body",
    "xml": "XML: a feed or sitemap, whatever its label",
    "incomplete": "the body was not received to its end (flags dataloss, partial, download_stopped)",
    "empty_body": "nothing but white space in the body",
    "body_too_large": "larger than SIMDUP_MAX_BODY_BYTES",
    "too_many_elements": "more tags than SIMDUP_MAX_ELEMENTS",
    "extraction_failed": "the extractor raised an exception, or its process died",
    "timeout": "no main text within SIMDUP_TIMEOUT",
    "no_text": "no main text in the page, or in the fields of the item",
    "thin": "the main text found is less than half of what the page shows outside of links",
    "boilerplate": "all the text, title included, recurs on many other pages of the host",
    "unreadable": "a fifth of the text are characters without meaning: wrong charset, symbols",
    "no_features": "text, but no letters or digits in it",
    "too_short": "fewer than SIMDUP_MIN_TOKENS tokens of text",
    "too_uniform": "fewer than SIMDUP_MIN_TOKENS / 3 different tokens",
    "no_page": "an item that comes from no page, or was replaced before it reached us",
    "store_failed": "the store could not be read or written",
    "store_full": "the store has reached SIMDUP_MAX_STORE_BYTES, and the page is new to it",
}

#: How a duplicate or a revisit was recognised (``Verdict.reason``).
MATCH_REASONS: Final[dict[str, str]] = {
    "body": "same bytes",
    "text": "same text",
    "simhash": "fingerprints within SIMDUP_MAX_DISTANCE, verified if SIMDUP_MIN_RESEMBLANCE is set",
    "url": "same request as a kept page, with another text",
}

#: What has become of a page that is visited again (``Verdict.change``).
CHANGES: Final = ("unchanged", "minor", "changed")


@dataclass(frozen=True, slots=True, kw_only=True)
class NearMiss:
    """The most similar candidate that was refused, and the ``rule`` that refused it.

    It is within 3 bits, or at least half as alike as a duplicate has to be: many others come near.
    """

    url: str
    rule: str
    view: str
    distance: int
    resemblance: float
    containment: float
    length_ratio: float
    simhash: int
    tokens: int
    title: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a page is, and how we know.

    ``kind``
        ``unique`` (kept), ``exact`` or ``near`` (a duplicate of ``duplicate_of``), ``revisit`` (the
        same request as a kept page; ``change`` says what became of it), ``skipped`` (not judged).
    ``reason``
        why it was skipped (:data:`SKIP_REASONS`) or how it was recognised
        (:data:`MATCH_REASONS`); None if unique.
    ``duplicate_of``
        URL of the kept page that it duplicates, or None.
    ``distance``, ``resemblance``, ``containment``
        to that page (a duplicate) or to its own former self (a revisit): Hamming distance in bits,
        estimated Jaccard resemblance of the shingle sets 0…1, and share of the smaller set that
        the larger contains 0…1. None where there is nothing to compare.
    ``length_ratio``
        shingles of the shorter text over those of the longer, 0…1.
    ``view``, ``rule``
        the view that was compared, ``main`` or ``prose``, and the rule that decided
        (:data:`~scrapy_simdup.page.comparison.RULES`); no rule for the same bytes.
    ``cut_off``
        the document ends in the middle: what is left of it was judged.
    ``simhash``, ``tokens``; ``simhash_of``, ``tokens_of``
        fingerprint and number of tokens of this page and of the page it was compared with.
    ``title``, ``title_of``
        titles of this page and of the page it duplicates.
    ``cluster_size``
        pages known as duplicates of ``duplicate_of``, this one included.
    ``for_links``
        it is one of the first ``SIMDUP_CLUSTER_LINKS`` duplicates of its page, so in action
        ``drop`` it reaches the spider for its links all the same.
    ``near_miss``
        the best candidate that verification refused, if the page was not found to be a duplicate.
    """

    kind: str
    duplicate_of: str | None = None
    distance: int | None = None
    resemblance: float | None = None
    reason: str | None = None
    containment: float | None = None
    length_ratio: float | None = None
    view: str | None = None
    rule: str | None = None
    cut_off: bool = False
    change: str | None = None
    simhash: int | None = None
    simhash_of: int | None = None
    tokens: int | None = None
    tokens_of: int | None = None
    title: str | None = None
    title_of: str | None = None
    cluster_size: int | None = None
    for_links: bool = False
    near_miss: NearMiss | None = None

    @property
    def is_duplicate(self) -> bool:
        """Whether the page duplicates one that was kept."""
        return self.kind in {"exact", "near"}

    def as_dict(self) -> dict[str, Any]:
        """Return what an item's field holds: JSON-able, without what is None."""
        fields = (
            "kind",
            "reason",
            "duplicate_of",
            "distance",
            "resemblance",
            "containment",
            "rule",
        )
        values = {name: getattr(self, name) for name in (*fields, "change")}
        return {name: value for name, value in values.items() if value is not None}
