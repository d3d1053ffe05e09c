"""What a crawl would have come to under other options, decided anew from what is stored of its pages.

The pages are decided about twice in the order in which they came: under the options of the crawl and
under the ones that are wanted, each in a store of its own that is thrown away. What the two say
otherwise is what the options change. So what cannot be known any more — the text, if it was not
kept; what was known of a host at that moment — falls on both alike, and the crawl's own options
change nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from scrapy_simdup.redecision import Redecision, as_kept
from scrapy_simdup.store.lmdb import LmdbPageStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from scrapy_simdup.config import Config
    from scrapy_simdup.page.profiler import Profiler
    from scrapy_simdup.store.records import PageTransaction, Record

_BATCH = 200


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of a page: ``kind`` is unique, exact, near or skipped."""

    kind: str
    duplicate_of: str | None = None
    distance: int | None = None
    resemblance: float | None = None
    why: str | None = None

    @property
    def is_duplicate(self) -> bool:
        return self.kind in {"exact", "near"}

    def is_as(self, other: Fate) -> bool:
        """Whether the page passes, or is a duplicate of the same page, in both."""
        if self.is_duplicate or other.is_duplicate:
            return self.duplicate_of == other.duplicate_of
        return self.kind == other.kind


@dataclass(frozen=True, slots=True)
class Change:
    """A page whose fate is another under the wanted options."""

    url: str
    was: Fate
    would_be: Fate
    title: str | None


@dataclass
class Outcome:
    """How many pages there were, of each kind under the crawl's options and under the wanted ones,
    and how many the crawl itself had decided otherwise than they are decided offline.
    """

    pages: int = 0
    changed: int = 0
    was: Counter[str] = field(default_factory=Counter)
    would_be: Counter[str] = field(default_factory=Counter)
    deviating: int = 0


class Simulation:
    """A store of its own in which stored pages are decided about under *config*."""

    def __init__(self, config: Config, profiler: Profiler, pages: int) -> None:
        self._config = config
        self._profiler = profiler
        self._store = LmdbPageStore(
            None,
            configuration=profiler.identity,
            max_distance=config.max_distance,
            expected_pages=max(1, pages),
        )

    def decide(self, records: list[tuple[Record, bool]]) -> list[Fate | None]:
        """What becomes of each page; those that are not asked about (False) are there as they are."""

        def job(txn: PageTransaction) -> list[Fate | None]:
            return [self._decided(txn, *one) for one in records]

        return self._store.transact(job).result()

    def _decided(self, txn: PageTransaction, record: Record, is_asked: bool) -> Fate | None:
        if not is_asked:
            if record.kept:
                txn.put(record)
            return None
        views = tuple(view for view in record.views if view.tokens >= self._config.min_tokens)
        if not views:
            return Fate("skipped", why="too_short")
        if len(views) != len(record.views):
            profile = msgspec.structs.replace(record.profile, views=views)
            record = msgspec.structs.replace(record, profile=profile)
        verdict = Redecision.of(as_kept(record), self._config, self._profiler).anew(txn, None)
        assert verdict is not None, "there is an analysis"
        miss = verdict.near_miss
        return Fate(
            verdict.kind,
            verdict.duplicate_of,
            (miss or verdict).distance,
            (miss or verdict).resemblance,
            verdict.rule or verdict.reason if miss is None else miss.rule,
        )

    def close(self) -> None:
        self._store.close()


def recorded(record: Record, original: Record | None) -> Fate:
    """What became of a page in the crawl."""
    if original is None:
        return Fate("unique")
    return Fate(
        "near" if record.reason == "simhash" else "exact",
        original.url,
        record.distance,
        record.resemblance,
        record.rule or record.reason,
    )


def replay(
    pages: Iterable[tuple[Record, Record | None, bool]],
    own: Config,
    wanted: Config,
    profiler: Profiler,
    total: int,
    outcome: Outcome,
    on_progress: Callable[[int, int], object],
) -> Iterator[Change]:
    """The pages whose fate the *wanted* options would change, as they come.

    *pages* are (record, the record of its kept page, whether it is asked about), the oldest first;
    *own* are the options of the crawl. *outcome* is filled as the changes are read.
    """
    simulations = [Simulation(config, profiler, total) for config in (own, wanted)]
    try:
        iterator = iter(pages)
        seen = 0
        while batch := list(islice(iterator, _BATCH)):
            asked = [(record, is_asked) for record, _, is_asked in batch]
            before, after = (simulation.decide(asked) for simulation in simulations)
            for (record, original, _), was, would_be in zip(batch, before, after, strict=True):
                if was is None or would_be is None:
                    continue
                true = recorded(record, original)
                outcome.pages += 1
                outcome.deviating += not was.is_as(true)
                outcome.was[was.kind] += 1
                outcome.would_be[would_be.kind] += 1
                if not was.is_as(would_be):
                    outcome.changed += 1
                    yield Change(
                        record.url, true if was.is_as(true) else was, would_be, record.title
                    )
            seen += len(batch)
            on_progress(seen, total)
    finally:
        for simulation in simulations:
            simulation.close()
