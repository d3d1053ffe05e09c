"""A store, to be read only: for commands and reports, also while a crawl writes to it.

LMDB keeps the pages of a file that a reader may still see, so a long transaction makes a file grow
that is written to. Whatever walks through a store does it in many short ones.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from scrapy_simdup.errors import StoreError
from scrapy_simdup.store.environment import Environment
from scrapy_simdup.store.layouts import CurrentTables
from scrapy_simdup.store.lmdb import (
    KIND,
    check_configuration,
    layout_of,
    store_info,
)
from scrapy_simdup.store.permuted import PermutedTables
from scrapy_simdup.store.tables import MAX_PROBES
from scrapy_simdup.store.transaction import Databases, LmdbTransaction

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Any

    import lmdb
    from typing_extensions import Self

    from scrapy_simdup.store.crawls import Crawl
    from scrapy_simdup.store.records import PageTransaction, Record, StoreInfo
    from scrapy_simdup.store.tables import Layout

T = TypeVar("T")

_BATCH = 1_000


class StoreReader:
    """What is in the store at *path*; with *max_distance*, look-ups reach as far.

    Raises :class:`StoreError` where there is none, or none that can be read. To be closed.
    """

    def __init__(self, path: str | os.PathLike[str], max_distance: int = 0) -> None:
        self._environment = Environment.open(path, kind=KIND, readonly=True)
        self._max_distance = max_distance
        try:
            self._databases = Databases(self._environment)
            self._tables = CurrentTables(self._permuted_tables)
            self._environment.read(self._tables.of)
        except BaseException:
            self._environment.close()
            raise

    def _permuted_tables(self, header: Mapping[str, Any]) -> PermutedTables:
        name = self._environment.name
        try:
            return PermutedTables(layout_of(name, header), self._max_distance)
        except ValueError as error:
            raise StoreError(
                f"{name} was laid out for a smaller max_distance than {self._max_distance} "
                f"({error}); use a smaller one, or scrapy simdup rebuild"
            ) from error

    def within(self, max_distance: int) -> StoreReader:
        """A reader of the same store whose look-ups reach as far, or as far as its tables can."""
        environment = self._environment
        assert environment.path is not None, "stores without a folder are not opened for reading"
        layout = layout_of(environment.name, environment.header())
        reach = max(
            (k for k in range(max_distance + 1) if sum(layout.probe_counts(k)) <= MAX_PROBES),
            default=0,
        )
        return StoreReader(environment.path, max(reach, self._max_distance))

    def info(self) -> StoreInfo:
        return store_info(self._environment)

    def check_configuration(self, configuration: dict[str, str]) -> None:
        """Raise :class:`StoreError` unless the store's fingerprints were made in this way."""
        found = self._environment.header()["configuration"]
        check_configuration(self._environment.name, configuration, found)

    def header(self) -> dict[str, Any]:
        return self._environment.header()

    def transaction(self, job: Callable[[PageTransaction], T]) -> T:
        """Run *job* in one transaction, in which it must not write."""
        return self._environment.read(
            lambda txn: job(LmdbTransaction(txn, self._databases, self._tables.of(txn)))
        )

    def get(self, page_id: int) -> Record:
        """The record of a page; KeyError if there is none."""
        return self.transaction(lambda txn: txn.get(page_id))

    def records(self, after: int = 0) -> Iterator[tuple[int, Record]]:
        """All (page id, record) in the order of their ids, from the first id above *after* on."""
        while batch := self.transaction(lambda txn: txn.records(after, _BATCH)):  # noqa: B023
            yield from batch
            after = batch[-1][0]

    def find_url(self, url: str) -> list[tuple[int, Record]]:
        """The pages with this very URL. Several requests may have one; all records are looked at."""
        return [(page_id, record) for page_id, record in self.records() if record.url == url]

    def aliases(self, page_id: int) -> list[int]:
        """The ids of the pages that are recorded as duplicates of this one, oldest first."""
        return self.transaction(lambda txn: txn.aliases_of(page_id))

    def clusters(self, limit: int | None = None) -> list[tuple[int, int]]:
        """(page id of the representative, number of its duplicates), the largest first."""

        def job(txn: lmdb.Transaction) -> Counter[int]:
            with txn.cursor(self._databases.aliases) as cursor:
                return Counter(
                    {
                        int.from_bytes(key, "big"): cursor.count()
                        for key in cursor.iternext_nodup(keys=True, values=False)
                    }
                )

        sizes = self._environment.read(job)
        return sorted(sizes.items(), key=lambda item: (-item[1], item[0]))[:limit]

    def candidates(self, simhashes: Sequence[int]) -> list[int]:
        """The ids of all kept pages within ``max_distance`` of one of *simhashes*, oldest first."""
        return self.transaction(lambda txn: txn.candidates(simhashes))

    def crawls(self) -> list[Crawl]:
        """What is known of crawls, the oldest first."""
        with self.snapshot() as txn:
            return txn.crawls()

    @contextmanager
    def snapshot(self) -> Iterator[LmdbTransaction]:
        """The whole store at one moment; see ``Environment.snapshot`` for what that costs."""
        with self._environment.snapshot() as txn:
            yield LmdbTransaction(txn, self._databases, self._tables.of(txn))

    def layout(self) -> Layout:
        """How the tables are laid out."""
        return layout_of(self._environment.name, self._environment.header())

    def file_figures(self) -> tuple[int, int, int]:
        """Pages of the file, how many of them are free, and readers of processes that have ended."""
        pages = self._environment.info()["pages"]
        with self._environment.snapshot() as txn:
            used = self._databases.file_pages(txn)
        return pages, max(0, pages - used), self._environment.stale_readers()

    def close(self) -> None:
        self._environment.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
