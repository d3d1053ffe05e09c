"""The decision about one page, as a job in the store's transaction: look, decide, write down.

Everything here depends on the page and the transaction only, so it can be run again.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
import numpy as np

from scrapy_simdup.page.comparison import compare_views
from scrapy_simdup.page.fingerprint import body_digest
from scrapy_simdup.page.simhash import hamming_many
from scrapy_simdup.page.sketch import resemblance_many
from scrapy_simdup.store.records import Record, View
from scrapy_simdup.verdict import NearMiss, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scrapy_simdup.config import Config
    from scrapy_simdup.page.comparison import Comparison
    from scrapy_simdup.store.records import PageTransaction


@dataclass(frozen=True, slots=True)
class Analysis:
    """What the text of a page gives: all that the second step needs."""

    text_digest: bytes
    views: tuple[View, ...]
    title: str | None
    language: str | None
    text: bytes


@dataclass
class Page:
    """A page on its way. *decode* gives its HTML, or (*is_html* off) its text.

    An item (*is_item*) has no request of its own and is known by its content: the same or nearly
    the same item of this host in an earlier crawl is its former self, wherever it stood then.
    """

    url: str
    key: bytes
    body: bytes
    decode: Callable[[], str]
    is_html: bool
    title: str | None
    seed: int
    is_item: bool = False

    @cached_property
    def body_digest(self) -> bytes:
        return body_digest(self.body, self.seed)


@dataclass(frozen=True)
class Decision:
    """The job in the store's transaction: decide about one page and write it down.

    Returns None if the text is needed to decide. May run more than once: it depends on the
    transaction only.
    """

    page: Page
    analysis: Analysis | None
    config: Config
    crawl: str

    def __call__(self, txn: PageTransaction) -> Verdict | None:
        known = txn.find(self.page.key)
        if known is not None and known[1].kept and not self.page.is_item:
            return self._revisit(txn, *known)
        page_id = known[0] if known is not None and not known[1].kept else None
        return self._exact(txn, page_id, txn.find_body(self.page.body_digest), "body") or (
            None if self.analysis is None else self._by_text(txn, page_id, self.analysis)
        )

    def _by_text(self, txn: PageTransaction, page_id: int | None, analysis: Analysis) -> Verdict:
        return self._exact(
            txn, page_id, txn.find_text(analysis.text_digest), "text"
        ) or self._near_or_unique(txn, page_id, analysis)

    def _revisit(self, txn: PageTransaction, page_id: int, former: Record) -> Verdict | None:
        """A kept page (or item) again: it passes, and its record is replaced."""
        if former.body_digest == self.page.body_digest:
            change, reason = "unchanged", "body"
            record, comparison = former, None
        elif self.analysis is None:
            return None
        else:
            record = self._record(self.analysis.text_digest, self.analysis)
            comparison = self._compare(record.views, former.views)
            if former.text_digest == record.text_digest:
                change, reason = "unchanged", "text"
            elif comparison.near:
                change, reason = "minor", "simhash"
            else:
                change, reason = "changed", "url"
        now = time.time()
        first_seen = former.first_seen or now
        record = msgspec.structs.replace(
            record, key=former.key, first_seen=first_seen, last_seen=now, crawl=self.crawl
        )
        txn.put(record, page_id)
        return Verdict(
            kind="revisit",
            change=change,
            reason=reason,
            title=record.title,
            **_measured(record.views, former.views, comparison),
        )

    def _exact(
        self, txn: PageTransaction, page_id: int | None, original_id: int | None, reason: str
    ) -> Verdict | None:
        if original_id is None:
            return None
        original = txn.get(original_id)
        record = self._record(original.text_digest, self.analysis, original)
        comparison = self._compare(record.views, original.views)
        return self._duplicate(txn, page_id, record, original_id, original, reason, comparison)

    def _near_or_unique(
        self, txn: PageTransaction, page_id: int | None, analysis: Analysis
    ) -> Verdict:
        record = self._record(analysis.text_digest, analysis)
        candidates = [
            (other_id, txn.get(other_id))
            for other_id in txn.candidates([view.simhash for view in analysis.views])
        ]
        refused = None
        if candidates:
            best_id, best = self._most_similar(analysis.views, candidates)
            comparison = self._compare(analysis.views, best.views)
            if comparison.near:
                return self._duplicate(txn, page_id, record, best_id, best, "simhash", comparison)
            assert comparison.distance is not None, "both have views"
            refused = NearMiss(
                url=best.url,
                distance=comparison.distance,
                resemblance=comparison.resemblance or 0.0,
                containment=comparison.containment or 0.0,
                simhash=best.views[0].simhash,
                tokens=best.views[0].tokens,
            )
        now = time.time()
        txn.put(
            msgspec.structs.replace(record, first_seen=now, last_seen=now, crawl=self.crawl),
            page_id,
        )
        return Verdict(
            kind="unique",
            simhash=record.views[0].simhash,
            tokens=record.views[0].tokens,
            title=record.title,
            near_miss=refused,
        )

    def _is_former_self(self, original: Record) -> bool:
        return (
            self.page.is_item
            and original.crawl != self.crawl
            and _host(original.url) == _host(self.page.url)
        )

    def _most_similar(
        self, views: Sequence[View], candidates: list[tuple[int, Record]]
    ) -> tuple[int, Record]:
        """Of several candidates the best resemblance, then distance, then the oldest.

        Only pairs of views within the Hamming distance count, as in ``compare_views``.
        """
        owner = [n for n, (_, record) in enumerate(candidates) for _ in record.views]
        others = [view for _, record in candidates for view in record.views]
        simhashes = np.array([view.simhash for view in others], dtype=np.uint64)
        sketches = np.frombuffer(b"".join(view.sketch for view in others), dtype=np.uint8).reshape(
            len(others), -1
        )
        best: tuple[float, int, int] | None = None
        for view in views:
            distances = hamming_many(simhashes, view.simhash)
            resemblances = resemblance_many(view.sketch, sketches)
            for n in np.flatnonzero(distances <= self.config.max_distance):
                rank = (-float(resemblances[n]), int(distances[n]), owner[n])
                best = rank if best is None else min(best, rank)
        assert best is not None, "a candidate has a view within the distance"
        return candidates[best[2]]

    def _duplicate(
        self,
        txn: PageTransaction,
        page_id: int | None,
        record: Record,
        original_id: int,
        original: Record,
        reason: str,
        comparison: Comparison,
    ) -> Verdict:
        if self._is_former_self(original):
            revisit = self._revisit(txn, original_id, original)
            assert revisit is not None, "it has the same bytes, or there is an analysis"
            return revisit
        now = time.time()
        measured = _measured(record.views, original.views, comparison)
        alias = msgspec.structs.replace(
            record,
            representative=original_id,
            reason=reason,
            distance=measured["distance"],
            resemblance=measured["resemblance"],
            first_seen=now,
            last_seen=now,
            crawl=self.crawl,
        )
        if page_id is not None or txn.find(self.page.key) is None:
            txn.put(alias, page_id)  # else: a second copy of an item on one page
        return Verdict(
            kind="near" if reason == "simhash" else "exact",
            duplicate_of=original.url,
            reason=reason,
            title=record.title,
            cluster_size=txn.aliases(original_id),
            **measured,
        )

    def _record(
        self, digest: bytes, analysis: Analysis | None, original: Record | None = None
    ) -> Record:
        """Make the record of this page; without an analysis, the bytes are those of *original*."""
        source: Any = analysis or original
        return Record(
            key=self.page.key,
            url=self.page.url,
            body_digest=self.page.body_digest,
            text_digest=digest,
            views=list(source.views),
            title=source.title,
            language=source.language,
            body_bytes=len(self.page.body),
            text=source.text,
        )

    def _compare(self, views: Sequence[View], others: Sequence[View]) -> Comparison:
        return compare_views(
            views,
            others,
            max_distance=self.config.max_distance,
            min_resemblance=self.config.min_resemblance,
        )


def _measured(
    views: Sequence[View], others: Sequence[View], comparison: Comparison | None
) -> dict[str, Any]:
    """Return the figures of a verdict; same bytes (no comparison) are alike in all of them."""
    return {
        "distance": comparison.distance if comparison else 0,
        "resemblance": comparison.resemblance if comparison else 1.0,
        "containment": comparison.containment if comparison else 1.0,
        "simhash": views[0].simhash,
        "simhash_of": others[0].simhash,
        "tokens": views[0].tokens,
        "tokens_of": others[0].tokens,
    }


def _host(url: str) -> str:
    try:
        return urlsplit(url).netloc.lower()
    except ValueError:  # no URL that could be requested
        return url
