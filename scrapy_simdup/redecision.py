"""Deciding about a page from what is stored of it: no HTML, no text unless that was kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import msgspec

from scrapy_simdup.analysis import Analysis, Material
from scrapy_simdup.decision import Decision, Page
from scrapy_simdup.page.profiler import portrait_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_simdup.config import Config
    from scrapy_simdup.page.profiler import Profiler
    from scrapy_simdup.store.records import PageTransaction, Record
    from scrapy_simdup.verdict import Verdict

#: The fields of a record that say how a duplicate was recognised, as a kept page has them.
_KEPT = {
    "representative": 0,
    "reason": None,
    "distance": None,
    "resemblance": None,
    "containment": None,
    "length_ratio": None,
    "view": None,
    "rule": None,
    "judged": b"",
}


def as_kept(record: Record) -> Record:
    """The record of the same page, were it kept."""
    return msgspec.structs.replace(record, **_KEPT)


class _Without:
    """A transaction in which some pages are not found by what they are like."""

    def __init__(self, txn: PageTransaction, leaving: frozenset[int]) -> None:
        self._txn = txn
        self._leaving = leaving

    def __getattr__(self, name: str) -> Any:
        return getattr(self._txn, name)

    def find_bodies(self, digest: bytes) -> list[int]:
        return self._staying(self._txn.find_bodies(digest))

    def find_texts(self, digests: Sequence[bytes]) -> list[int]:
        return self._staying(self._txn.find_texts(digests))

    def candidates(self, simhashes: Sequence[int]) -> list[int]:
        return self._staying(self._txn.candidates(simhashes))

    def _staying(self, page_ids: list[int]) -> list[int]:
        return [page_id for page_id in page_ids if page_id not in self._leaving]


def without(txn: PageTransaction, leaving: frozenset[int]) -> PageTransaction:
    """The transaction, in which no page becomes a duplicate of one that is *leaving*."""
    return cast("PageTransaction", _Without(txn, leaving)) if leaving else txn


@dataclass
class StoredPage(Page):
    """A page that is in a store."""

    record: Record | None = None

    @property
    def body_digest(self) -> bytes:
        assert self.record is not None
        return self.record.body_digest


@dataclass(frozen=True)
class Redecision(Decision):
    """A decision about a stored page. Its record keeps its times and the names of its crawls.

    What the page consists of is not known any more (`page.profiler.portrait_of`).
    """

    @classmethod
    def of(cls, record: Record, config: Config, profiler: Profiler) -> Redecision:
        page = StoredPage(
            record.url,
            record.key,
            Material(b"", bytes.decode, is_html=True),
            config.seed,
            record=record,
        )
        portrait = portrait_of(record.profile, config.seed)
        analysis = Analysis(portrait, record.language, record.text, record.cut_off)
        return cls(page, analysis, config, record.crawl, profiler)

    @property
    def _stored(self) -> Record:
        assert isinstance(self.page, StoredPage)
        assert self.page.record is not None
        return self.page.record

    def _record(self, analysis: Analysis | None, original: Record | None = None) -> Record:
        return as_kept(self._stored)

    def _dated(self, record: Record, former: Record | None) -> Record:
        return record

    def settle(self, txn: PageTransaction, page_id: int) -> Verdict | None:
        """Give a duplicate whose page has gone another one, or keep it. None: kept unjudged."""
        verdict = self.anew(txn, page_id)
        assert verdict is not None, "there is an analysis"
        if verdict.kind == "skipped":  # all of it is its host's: still better kept than lost
            txn.put(as_kept(self._stored), page_id)
            return None
        return verdict
