"""Taking pages out of a store, and putting it right: what is left is whole after every transaction.

A duplicate whose kept page goes gets another one: it is compared with the kept pages anew, and if it
is like none of them it is kept itself.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from scrapy_simdup.analysis import Analyser
from scrapy_simdup.errors import StoreError
from scrapy_simdup.redecision import Redecision, without
from scrapy_simdup.store.hostmemory import HostMemory
from scrapy_simdup.store.lmdb import open_for_upkeep

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator

    from scrapy_simdup.config import Config
    from scrapy_simdup.page.profiler import Profiler
    from scrapy_simdup.store.lmdb import Writer
    from scrapy_simdup.store.records import PageTransaction
    from scrapy_simdup.store.transaction import LmdbTransaction

T = TypeVar("T")

_BATCH = 200


@dataclass
class Removal:
    """What was, or would be, taken out: kept pages, duplicates; ``resettled`` duplicates got another
    kept page, ``promoted`` ones are kept now.
    """

    kept: int = 0
    duplicates: int = 0
    resettled: int = 0
    promoted: int = 0


class Upkeep:
    """Changes the store at *path* as *config* says that pages are compared.

    Raises ``StoreError`` where there is no store, or one made with another configuration.
    """

    def __init__(self, writer: Writer, config: Config, profiler: Profiler) -> None:
        self._writer = writer
        self._config = config
        self._profiler = profiler

    @classmethod
    @contextmanager
    def opened(cls, path: str | os.PathLike[str], config: Config) -> Iterator[Upkeep]:
        analyser = Analyser(config)
        with open_for_upkeep(path, config.max_distance, analyser.identity) as writer:
            yield cls(writer, config, analyser.profiler)

    def remove(self, page_ids: Iterable[int], on_progress: Callable[[int], object]) -> Removal:
        """Take pages out, in transactions that read or write some `_BATCH` pages each.

        Of a large cluster, some duplicates are settled in each. *on_progress* is told how many of the
        pages are done.
        """
        removal, ids, done = Removal(), [*page_ids], 0
        leaving = frozenset(ids)
        while batch := ids[done : done + _BATCH]:
            part, finished = self._writer.write(lambda txn: self._remove(txn, batch, leaving))
            for name, number in vars(part).items():
                setattr(removal, name, getattr(removal, name) + number)
            done += finished
            on_progress(done)
        return removal

    def _remove(
        self, txn: PageTransaction, batch: list[int], leaving: frozenset[int]
    ) -> tuple[Removal, int]:
        """Do what one transaction may; says how many pages of *batch* are done with it.

        A kept page goes after its last duplicate, so that none is ever without one.
        """
        removal, left = Removal(), _BATCH
        for done, page_id in enumerate(batch):
            if left <= 0:
                return removal, done
            left -= 1
            try:
                record = txn.get(page_id)
            except KeyError:  # gone with the page it duplicates, or in a run that was broken off
                continue
            if record.kept:
                # The oldest first: it may be kept, and the others follow.
                aliases = txn.aliases_of(page_id, left + 1)
                for alias in aliases[:left]:
                    _check_alias(txn, alias, page_id)
                    self._part(txn, alias, leaving, removal)
                left -= len(aliases)
                if left < 0:
                    return removal, done
                removal.kept += 1
            else:
                removal.duplicates += 1
            txn.delete(page_id)
        return removal, len(batch)

    def _part(
        self, txn: PageTransaction, page_id: int, leaving: frozenset[int], removal: Removal
    ) -> None:
        """Part a duplicate from its kept page, which is leaving."""
        if page_id in leaving:
            txn.delete(page_id)
            removal.duplicates += 1
        elif self._settle(txn, page_id, leaving):
            removal.resettled += 1
        else:
            removal.promoted += 1

    def _settle(
        self, txn: PageTransaction, page_id: int, leaving: frozenset[int] = frozenset()
    ) -> bool:
        """Whether a duplicate is one of another kept page that stays; else it is kept now."""
        decision = Redecision.of(txn.get(page_id), self._config, self._profiler)
        verdict = decision.settle(without(txn, leaving), page_id)
        return verdict is not None and verdict.is_duplicate

    def forget_crawl(self, crawl_id: str) -> None:
        """Take a crawl out of the list of crawls."""
        self._writer.write(lambda txn: txn.forget_crawl(crawl_id))

    def repair(self) -> dict[str, int]:
        """Put right what can be, in one transaction; says how much of what was done.

        What cannot be read is forgotten, the indexes are made anew from the records, and duplicates
        of pages that are not kept get another one.
        """
        return self._writer.write(self._repair)

    def _repair(self, txn: LmdbTransaction) -> dict[str, int]:
        forgotten, orphans, kept = txn.forget_odd_ids(), [], set()
        for page_id in [*txn.page_ids()]:
            try:
                record = txn.get_sound(page_id)
            except StoreError:
                txn.forget(page_id)
                forgotten += 1
                continue
            if record.kept:
                kept.add(page_id)
            else:
                orphans.append((page_id, record.representative))
        damaged = [key for key, memory in txn.memories() if not HostMemory.can_read(memory)]
        for key in damaged:
            txn.forget_memory(key)
        txn.forget_crawl("")
        txn.rewrite_indexes()
        lost = [page_id for page_id, of in orphans if of not in kept]
        settled = sum(self._settle(txn, page_id) for page_id in lost if _is_there(txn, page_id))
        return {
            "records_forgotten": forgotten,
            "hosts_forgotten": len(damaged),
            "duplicates_resettled": settled,
            "duplicates_kept_now": len(lost) - settled,
        }


def _check_alias(txn: PageTransaction, alias: int, page_id: int) -> None:
    """Raise ``StoreError`` where the index says of *alias* what its record does not."""
    if not _is_there(txn, alias) or txn.get(alias).representative != page_id:
        raise StoreError(
            f"page {alias} is entered as a duplicate of page {page_id}, and is none; "
            "scrapy simdup doctor --repair, then try again"
        )


def _is_there(txn: PageTransaction, page_id: int) -> bool:
    try:
        txn.get(page_id)
    except KeyError:
        return False
    return True
