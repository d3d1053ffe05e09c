"""The decision about one page, as a job in the store's transaction: look, decide, write down.

Everything here depends on the page and the transaction only, so it can be run again.
"""

from __future__ import annotations

import importlib.metadata
import time
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from scrapy_simdup.page.comparison import compare_profiles
from scrapy_simdup.page.fingerprint import body_digest
from scrapy_simdup.page.kepttext import unpack_texts
from scrapy_simdup.page.measure import closest
from scrapy_simdup.page.simhash import hamming_many
from scrapy_simdup.page.sketch import resemblance_many
from scrapy_simdup.page.thresholds import THRESHOLDS
from scrapy_simdup.sites import host_of, site_of
from scrapy_simdup.store.records import Record
from scrapy_simdup.verdict import NearMiss, Verdict

if TYPE_CHECKING:
    import numpy.typing as npt

    from scrapy_simdup.analysis import Analysis, Material
    from scrapy_simdup.config import Config
    from scrapy_simdup.page.measure import Comparison
    from scrapy_simdup.page.profile import Profile, View
    from scrapy_simdup.page.profiler import Profiler
    from scrapy_simdup.page.thresholds import Thresholds
    from scrapy_simdup.store.records import PageTransaction

MAX_COMPARED = 64
"""Of the candidates that resemble a page enough, so many are compared in full, the most similar
ones first. Only a page with more siblings than that of one template could have another duplicate
among the rest."""

VERSION = importlib.metadata.version("scrapy-simdup")
_CRITERIA = (
    *("max_distance", "min_resemblance", "min_tokens"),
    *("keep_siblings", "keep_text", "max_elements", "scope"),
)
_MEASURED = ("distance", "resemblance", "containment", "length_ratio", "view", "rule")
_NEAR_MISS = 0.5
_NEAR_MISS_DISTANCE = 3


@dataclass
class Page:
    """A page on its way.

    An item (*is_item*) has no request of its own and is known by its content: the same or nearly
    the same item of this host in an earlier crawl is its former self, wherever it stood then.
    """

    url: str
    key: bytes
    material: Material
    seed: int
    is_item: bool = False

    @property
    def body(self) -> bytes:
        return self.material.body

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
    profiler: Profiler
    thresholds: Thresholds = THRESHOLDS

    def __call__(self, txn: PageTransaction) -> Verdict | None:
        known = txn.find(self.page.key)
        if known is not None and known[1].kept and not self.page.is_item:
            return self._revisit(txn, *known)
        if known is None and self._is_full(txn):
            return Verdict(kind="skipped", reason="store_full")
        page_id = known[0] if known is not None and not known[1].kept else None
        if known is not None and page_id is not None:
            repeated = self._repeated(txn, *known)
            if repeated is not None:
                return repeated
        return self.anew(txn, page_id)

    def _is_full(self, txn: PageTransaction) -> bool:
        limit = self.config.max_store_bytes
        return limit is not None and txn.bytes_used() >= limit

    def anew(self, txn: PageTransaction, page_id: int | None) -> Verdict | None:
        """Decide whatever was said of the page before; *page_id* is that of its record."""
        return self._exact(txn, page_id) or (
            None if self.analysis is None else self._by_text(txn, page_id, self.analysis)
        )

    def _by_text(self, txn: PageTransaction, page_id: int | None, analysis: Analysis) -> Verdict:
        refused: tuple[Record, Comparison] | None = None
        boilerplate = self._is_boilerplate(txn)
        for original_id, original in self._most_similar(txn, analysis.portrait.profile):
            comparison = self.compare(txn, analysis, original)
            same_text = comparison.rule == "same_text"
            if comparison.near and (same_text or not boilerplate):
                return self._duplicate(
                    txn,
                    page_id,
                    self._record(analysis),
                    original_id,
                    original,
                    "text" if same_text else "simhash",
                    comparison,
                )
            if refused is None and not comparison.near and self._is_worth_telling(comparison):
                refused = original, comparison
        if boilerplate:
            title = analysis.portrait.profile.title
            return Verdict(kind="skipped", reason="boilerplate", title=title)
        return self._unique(txn, page_id, analysis, refused)

    def _revisit(self, txn: PageTransaction, page_id: int, former: Record) -> Verdict | None:
        """A kept page (or item) again: it passes, and its record is replaced."""
        comparison: Comparison | None
        if former.body_digest == self.page.body_digest:
            change, reason = "unchanged", "body"
            record, comparison = former, None
        elif self.analysis is None:
            return None
        else:
            record = self._record(self.analysis)
            comparison = self.compare(txn, self.analysis, former)
            if _same_text(record.profile, former.profile):
                change, reason = "unchanged", "text"
            elif comparison.near:
                change, reason = "minor", "simhash"
            else:
                change, reason = "changed", "url"
        record = msgspec.structs.replace(record, key=former.key, url=self.page.url)
        txn.put(self._dated(record, former), page_id)
        return Verdict(
            kind="revisit",
            change=change,
            reason=reason,
            title=record.title,
            **_measured(record.profile, former.profile, comparison),
        )

    def _repeated(self, txn: PageTransaction, page_id: int, former: Record) -> Verdict | None:
        """The former verdict about a duplicate, if nothing has changed that it was made of.

        What is known of a host grows with every page, and judged anew by it the same two pages
        could have another verdict. None if one of them has changed, or how pages are judged.
        """
        if self.page.is_item or former.reason == "body":  # whether bytes are the same is seen anew
            return None
        if former.body_digest == self.page.body_digest and self.page.material.title in (
            None,
            former.title,
        ):
            record = former
        elif self.analysis is None:
            return None
        else:
            record = self._record(self.analysis)
        original = txn.get(former.representative)
        if former.judged != self._judged(self.page.url, record.profile, original):
            return None
        alias = msgspec.structs.replace(
            former,
            url=self.page.url,
            body_digest=record.body_digest,
            profile=record.profile,
            language=record.language,
            body_bytes=record.body_bytes,
            text=record.text,
            cut_off=former.cut_off if self.analysis is None else self.analysis.cut_off,
        )
        txn.put(self._dated(alias, former), page_id)
        return self._as_duplicate(txn, page_id, alias, original)

    def _judged(self, url: str, profile: Profile, original: Record) -> bytes:
        """8 bytes that stay the same as long as both pages, and how they are judged, do."""
        criteria = [getattr(self.config, name) for name in _CRITERIA]
        hosts = host_of(url), host_of(original.url)
        seen = (VERSION, criteria, hosts, profile, original.profile)
        return blake2b(msgspec.msgpack.encode(seen), digest_size=8).digest()

    def _exact(self, txn: PageTransaction, page_id: int | None) -> Verdict | None:
        """The verdict where a kept page has the same bytes."""
        for original_id in txn.find_bodies(self.page.body_digest):
            original = txn.get(original_id)
            if self._in_scope(original):
                record = self._record(self.analysis, original)
                return self._duplicate(txn, page_id, record, original_id, original, "body", None)
        return None

    def _unique(
        self,
        txn: PageTransaction,
        page_id: int | None,
        analysis: Analysis,
        refused: tuple[Record, Comparison] | None,
    ) -> Verdict:
        record = self._record(analysis)
        txn.put(self._dated(record, None if page_id is None else txn.get(page_id)), page_id)
        txn.learn_blocks(self._host, self._own_blocks)
        return Verdict(
            kind="unique",
            simhash=record.views[0].simhash,
            tokens=record.views[0].tokens,
            title=record.title,
            cut_off=analysis.cut_off,
            near_miss=None if refused is None else _near_miss(*refused),
        )

    def _is_boilerplate(self, txn: PageTransaction) -> bool:
        """Whether a page has nothing of its own: all its blocks, title included, are its host's."""
        return bool(txn.common_blocks(self._host, self._own_blocks).all())

    def _is_worth_telling(self, comparison: Comparison) -> bool:
        """Whether a refused candidate is a near miss: very near, or half as alike as it has to be."""
        if comparison.rule == "distance" or comparison.distance is None:
            return False
        least = self.config.min_resemblance or 0.0
        alike = (comparison.resemblance or 0.0) >= _NEAR_MISS * least
        return alike or comparison.distance <= _NEAR_MISS_DISTANCE

    def _is_former_self(self, original: Record) -> bool:
        return (
            self.page.is_item
            and original.crawl != self.crawl
            and host_of(original.url) == self._host
        )

    def _most_similar(self, txn: PageTransaction, profile: Profile) -> list[tuple[int, Record]]:
        """The kept pages that may be near: those with the same text, then the best resemblance, then
        distance, then the oldest.

        Sketches of all candidates are compared in one go; those that resemble the page too little
        follow last, since the best of them is the near miss to be told of.
        """
        same = set(txn.find_texts([view.digest for view in profile.views]))
        ids = sorted({*same, *txn.candidates([view.simhash for view in profile.views])})
        if not ids:
            return []
        found = [(page_id, txn.get(page_id)) for page_id in ids]
        candidates = [(page_id, record) for page_id, record in found if self._in_scope(record)]
        if not candidates:
            return []
        best, nearest = np.full(len(candidates), -1.0), np.full(len(candidates), 64)
        for view in profile.views:
            rows = [n for n, (_, record) in enumerate(candidates) if record.profile.view(view.name)]
            if rows:
                sketches = b"".join(_view(candidates[n][1].profile, view.name).sketch for n in rows)
                alike = resemblance_many(
                    view.sketch, np.frombuffer(sketches, dtype=np.uint8).reshape(len(rows), -1)
                )
                best[rows] = np.maximum(best[rows], alike)
                simhashes = [_view(candidates[n][1].profile, view.name).simhash for n in rows]
                distances = hamming_many(np.array(simhashes, dtype=np.uint64), view.simhash)
                nearest[rows] = np.minimum(nearest[rows], distances)
        other = np.array([page_id not in same for page_id, _ in candidates], dtype=np.bool_)
        order = np.lexsort((nearest, -best, other))[:MAX_COMPARED]  # stable: the oldest come first
        return [candidates[n] for n in order]

    def _duplicate(
        self,
        txn: PageTransaction,
        page_id: int | None,
        record: Record,
        original_id: int,
        original: Record,
        reason: str,
        comparison: Comparison | None,
    ) -> Verdict:
        if self._is_former_self(original):
            revisit = self._revisit(txn, original_id, original)
            assert revisit is not None, "it has the same bytes, or there is an analysis"
            return revisit
        measured = _measured(record.profile, original.profile, comparison)
        alias = msgspec.structs.replace(
            record,
            representative=original_id,
            reason=reason,
            judged=self._judged(self.page.url, record.profile, original),
            cut_off=self.analysis is not None and self.analysis.cut_off,
            **{name: measured[name] for name in _MEASURED},
        )
        if self.analysis is not None and record.title != original.title:
            # A near-duplicate of another title may be another page of a template: what they share
            # is learned, or the first page would stand for all of them for ever.
            txn.learn_blocks(self._host, self._own_blocks)
        former = None if page_id is None else txn.get(page_id)
        if former is not None or txn.find(self.page.key) is None:
            page_id = txn.put(self._dated(alias, former), page_id)
        # else: a second copy of an item on one page
        return self._as_duplicate(txn, page_id, alias, original)

    def _dated(self, record: Record, former: Record | None) -> Record:
        """The record as of now; when and by which crawl it was found the former one says."""
        now = time.time()
        return msgspec.structs.replace(
            record,
            # A clock may have been put back since.
            first_seen=min((former and former.first_seen) or now, now),
            added_by=(former and former.added_by) or self.crawl,
            last_seen=now,
            crawl=self.crawl,
        )

    def _as_duplicate(
        self, txn: PageTransaction, page_id: int | None, alias: Record, original: Record
    ) -> Verdict:
        """The verdict that a duplicate's record tells of."""
        links = self.config.cluster_links
        view = alias.profile.view(alias.view or "") or alias.views[0]
        view_of = original.profile.view(alias.view or "") or original.views[0]
        return Verdict(
            kind="near" if alias.reason == "simhash" else "exact",
            duplicate_of=original.url,
            reason=alias.reason,
            title=alias.title,
            title_of=original.title,
            cluster_size=txn.aliases(alias.representative),
            for_links=links > 0 and page_id in txn.aliases_of(alias.representative, links),
            cut_off=alias.cut_off,
            simhash=view.simhash,
            simhash_of=view_of.simhash,
            tokens=view.tokens,
            tokens_of=view_of.tokens,
            **{name: getattr(alias, name) for name in _MEASURED},
        )

    def _record(self, analysis: Analysis | None, original: Record | None = None) -> Record:
        """Make the record of this page; without an analysis, the bytes are those of *original*."""
        if analysis is not None:
            profile, language, text = analysis.portrait.profile, analysis.language, analysis.text
        else:
            assert original is not None
            profile, language, text = original.profile, original.language, original.text
        return Record(
            key=self.page.key,
            url=self.page.url,
            body_digest=self.page.body_digest,
            profile=profile,
            language=language,
            body_bytes=len(self.page.body),
            text=text,
        )

    def compare(self, txn: PageTransaction, analysis: Analysis, other: Record) -> Comparison:
        """Compare the page at hand with a stored one."""
        host = self._host

        def common(blocks: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
            return txn.common_blocks(host, blocks)

        def shingles(view: str) -> npt.NDArray[np.uint64] | None:
            try:
                texts = unpack_texts(other.text).get(view)
            except ValueError:  # damaged; the sketches are still there
                return None
            return (
                None
                if texts is None
                else self.profiler.shingles(texts, japanese=other.profile.japanese)
            )

        return compare_profiles(
            analysis.portrait,
            other.profile,
            self.config,
            same_site=host == host_of(other.url),
            common=common,
            exact=shingles if analysis.text and other.text else None,
            thresholds=self.thresholds,
        )

    @cached_property
    def _host(self) -> str:
        return host_of(self.page.url)

    def _in_scope(self, original: Record) -> bool:
        """Whether the page may be a duplicate of this one (``scope``). A former self always may."""
        scope = self.config.scope
        if scope == "all" or self._is_former_self(original):
            return True
        return (site_of(self.page.url) == site_of(original.url)) == (scope == "same-site")

    @cached_property
    def _own_blocks(self) -> npt.NDArray[np.uint32]:
        assert self.analysis is not None
        return self.analysis.portrait.own_blocks


def _measured(profile: Profile, other: Profile, comparison: Comparison | None) -> dict[str, Any]:
    """The figures of a verdict; without a comparison (same bytes) those of the closest views."""
    found = comparison
    if found is None or found.distance is None:  # None: no view in common
        found = closest(profile, other)
    view = profile.view(found.view or "") or profile.views[0]
    view_of = other.view(found.view or "") or other.views[0]
    return {
        "distance": found.distance,
        "resemblance": found.resemblance,
        "containment": found.containment,
        "length_ratio": found.length_ratio,
        "view": view.name,
        "rule": None if comparison is None else comparison.rule,
        "simhash": view.simhash,
        "simhash_of": view_of.simhash,
        "tokens": view.tokens,
        "tokens_of": view_of.tokens,
    }


def _near_miss(other: Record, comparison: Comparison) -> NearMiss:
    assert comparison.distance is not None
    assert comparison.rule is not None
    view = other.profile.view(comparison.view or "") or other.views[0]
    return NearMiss(
        url=other.url,
        rule=comparison.rule,
        view=view.name,
        distance=comparison.distance,
        resemblance=comparison.resemblance or 0.0,
        containment=comparison.containment or 0.0,
        length_ratio=comparison.length_ratio or 0.0,
        simhash=view.simhash,
        tokens=view.tokens,
        title=other.title,
    )


def _same_text(a: Profile, b: Profile) -> bool:
    return any(
        other is not None and other.digest == view.digest
        for view in a.views
        for other in (b.view(view.name),)
    )


def _view(profile: Profile, name: str) -> View:
    view = profile.view(name)
    assert view is not None
    return view
