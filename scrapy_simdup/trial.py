"""Judging pages by a store without writing to it: what the verdict would be.

The decision is the detector's own; only what it writes goes nowhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from scrapy_simdup.analysis import Analyser, storable
from scrapy_simdup.decision import Decision, Page
from scrapy_simdup.detector import page_key
from scrapy_simdup.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    from scrapy_simdup.analysis import Analysis, Material
    from scrapy_simdup.config import Config
    from scrapy_simdup.page.measure import Comparison
    from scrapy_simdup.page.profiler import Profiler
    from scrapy_simdup.store.crawls import Crawl
    from scrapy_simdup.store.reading import StoreReader
    from scrapy_simdup.store.records import PageTransaction, Record


@dataclass(frozen=True, slots=True)
class Trial:
    """A page that was judged: the verdict, and its analysis, if its text could be judged."""

    page: Page
    verdict: Verdict
    analysis: Analysis | None


class Judge:
    """Judges pages by what *reader*'s store holds, as a crawl with *config* would.

    Raises ``StoreError`` where the store was made with another configuration, and ``ConfigError``
    for an unusable extractor.
    """

    def __init__(self, reader: StoreReader, config: Config) -> None:
        self._reader = reader
        self.config = config
        self._analyser = Analyser(config)
        reader.check_configuration(self._analyser.identity)

    @property
    def profiler(self) -> Profiler:
        return self._analyser.profiler

    def analyse(self, material: Material) -> Analysis | str:
        """The analysis of a page, or why it would be skipped."""
        if len(material.body) > self.config.max_body_bytes:
            return "body_too_large"
        if not material.body or material.body.isspace():
            return "empty_body" if material.is_html else "no_text"
        outcome = self._analyser(material)
        return outcome.analysis or outcome.skipped or "no_text"

    def judge(self, url: str, material: Material) -> Trial:
        """What would be said of the page at *url*, if it came now."""
        page = Page(url=storable(url), key=page_key(url), material=material, seed=self.config.seed)
        analysis = self.analyse(material)
        if isinstance(analysis, str):
            return Trial(page, Verdict(kind="skipped", reason=analysis), None)
        verdict = self._decide(page, None) or self._decide(page, analysis)
        assert verdict is not None, "there is an analysis"
        return Trial(page, verdict, analysis)

    def _decide(self, page: Page, analysis: Analysis | None) -> Verdict | None:
        decision = self._decision(page, analysis)
        return self._reader.transaction(lambda txn: decision(Unwritten(txn)))

    def _decision(self, page: Page, analysis: Analysis | None) -> Decision:
        return Decision(page, analysis, self.config, "", self._analyser.profiler)

    def nearest(self, trial: Trial, limit: int) -> list[tuple[Record, Comparison]]:
        """The stored pages that are most alike, of those within the reader's ``max_distance``.

        Duplicates first, then the best resemblance; the page itself is none of them.
        """
        analysis = trial.analysis
        if analysis is None:
            return []
        decision = self._decision(trial.page, analysis)
        simhashes = [view.simhash for view in analysis.portrait.profile.views]

        def job(txn: PageTransaction) -> list[tuple[Record, Comparison]]:
            records = (txn.get(page_id) for page_id in txn.candidates(simhashes))
            return [
                (record, decision.compare(txn, analysis, record))
                for record in records
                if record.key != trial.page.key
            ]

        found = self._reader.transaction(job)
        found.sort(key=lambda pair: (not pair[1].near, -(pair[1].resemblance or 0.0)))
        return found[:limit]


class Unwritten:
    """A ``PageTransaction`` for one decision, which sees what it writes; nobody else does."""

    def __init__(self, txn: PageTransaction) -> None:
        self._txn = txn
        self._written: dict[int, Record] = {}

    def get(self, page_id: int) -> Record:
        return self._written.get(page_id) or self._txn.get(page_id)

    def find(self, key: bytes) -> tuple[int, Record] | None:
        return self._txn.find(key)

    def find_bodies(self, digest: bytes) -> list[int]:
        return self._txn.find_bodies(digest)

    def find_texts(self, digests: Sequence[bytes]) -> list[int]:
        return self._txn.find_texts(digests)

    def candidates(self, simhashes: Sequence[int]) -> list[int]:
        return self._txn.candidates(simhashes)

    def common_blocks(self, host: str, blocks: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
        return self._txn.common_blocks(host, blocks)

    def learn_blocks(self, host: str, blocks: npt.NDArray[np.uint32]) -> None:
        """It is asked what is common before, not after."""

    def put(self, record: Record, page_id: int | None = None) -> int:
        if page_id is None:
            page_id = 2**63  # larger than any
        self._written[page_id] = record
        return page_id

    def bytes_used(self) -> int:
        return self._txn.bytes_used()

    def aliases(self, page_id: int) -> int:
        return len(self.aliases_of(page_id))

    def aliases_of(self, page_id: int, limit: int | None = None) -> list[int]:
        stored = [n for n in self._txn.aliases_of(page_id) if n not in self._written]
        own = [n for n, record in self._written.items() if record.representative == page_id]
        return sorted((*stored, *own))[:limit]

    def records(self, after: int, limit: int) -> list[tuple[int, Record]]:
        return self._txn.records(after, limit)

    def delete(self, page_id: int) -> None:
        raise NotImplementedError("a decision deletes nothing")

    def note_crawl(self, crawl: Crawl) -> None:
        raise NotImplementedError("a decision notes no crawl")
