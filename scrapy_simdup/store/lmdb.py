"""The page store on LMDB: opening it, who may use it, one transaction after another.

What is in it, and what a transaction may do, is in `transaction`. The layout of the tables is chosen
when the store is made and stands in the header; other values of k use the same tables with more or
fewer probes.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from scrapy_simdup.errors import StoreError
from scrapy_simdup.store.environment import Environment
from scrapy_simdup.store.layouts import CurrentTables, relayout
from scrapy_simdup.store.permuted import PermutedTables
from scrapy_simdup.store.planner import Plan, outgrown, plan
from scrapy_simdup.store.records import PageTransaction, StoreInfo
from scrapy_simdup.store.tables import U64, Layout
from scrapy_simdup.store.transaction import Databases, LmdbTransaction
from scrapy_simdup.work import GroupCommitter

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping
    from concurrent.futures import Future

    import lmdb


T = TypeVar("T")

KIND = "pages"


def configuration_id(configuration: Mapping[str, str]) -> str:
    """Return 12 hexadecimal digits that stand for all that changes a fingerprint."""
    canonical = json.dumps(dict(configuration), sort_keys=True, ensure_ascii=True)
    return hashlib.blake2b(canonical.encode(), digest_size=6).hexdigest()


class LmdbPageStore:
    """A ``PageStore`` in a folder, or (``path=None``) in a file without a name.

    *configuration* is all that changes a fingerprint; a store made with another one is refused.
    *private* keeps other users from the files.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        *,
        configuration: Mapping[str, str],
        max_distance: int,
        expected_pages: int,
        map_size: int | None = None,
        private: bool = False,
    ) -> None:
        self._environment = Environment.open(path, kind=KIND, map_size=map_size, private=private)
        try:
            self._set_up(dict(configuration), max_distance, expected_pages)
        except BaseException:
            self._environment.close()
            raise
        self._committer: GroupCommitter[PageTransaction] = GroupCommitter(
            self._write, name="simdup-store"
        )

    def _set_up(
        self, configuration: dict[str, str], max_distance: int, expected_pages: int
    ) -> None:
        environment = self._environment
        header = environment.header()
        if "layout" not in header:
            layout = plan(max_distance, expected_pages).layout
            # Another process may be first, and then it counts what that one has written.
            header = environment.complete_header(
                layout=layout.to_dict(), configuration=configuration
            )
        check_configuration(environment.name, configuration, header["configuration"])
        self._max_distance = max_distance
        self._tables = CurrentTables(self._permuted_tables)
        environment.read(self._tables.of)
        self._databases = Databases(environment)

    def _permuted_tables(self, header: Mapping[str, Any]) -> PermutedTables:
        name = self._environment.name
        layout = layout_of(name, header)
        try:
            return PermutedTables(layout, self._max_distance)
        except ValueError as error:
            raise StoreError(
                f"{name} was laid out for a smaller max_distance than {self._max_distance} "
                f"({error}); use a smaller one, or another store"
            ) from error

    def _write(self, run: Callable[[PageTransaction], T]) -> T:
        def job(txn: lmdb.Transaction) -> T:
            transaction = LmdbTransaction(txn, self._databases, self._tables.of(txn))
            result = run(transaction)
            transaction.write_memories()
            return result

        return self._environment.write(job)

    def outgrown(self) -> Plan | None:
        """Return the plan of a layout that halves the time of a page, None if there is none."""

        def job(txn: lmdb.Transaction) -> Plan | None:
            tables = self._tables.of(txn)
            stored = tables.count(txn, self._databases.tables)
            return outgrown(tables.layout, self._max_distance, stored)

        return self._environment.read(job)

    def relayout(
        self,
        expected: int | None = None,
        on_progress: Callable[[int, int], object] | None = None,
    ) -> None:
        """Lay the tables out anew for *expected* fingerprints, by default for those stored.

        They are written in bulk, from what ``holders`` has, in one transaction: afterwards, or
        killed at any moment, the store is whole. Other processes may go on using it, but wait where
        they write. *on_progress(done, total)*, in entries of tables, must not use the store. The
        file grows by the size of the new tables.
        """
        _relayout(self._environment, self._databases, self._max_distance, expected, on_progress)

    def transact(
        self, job: Callable[[PageTransaction], T], prepare: Callable[[], Any] | None = None
    ) -> Future[T]:
        self._environment.check_process()
        try:
            return self._committer.submit(job, prepare)
        except RuntimeError as error:
            raise StoreError(f"{self._environment.name} is closed") from error

    def info(self) -> StoreInfo:
        return store_info(self._environment)

    def close(self) -> None:
        try:
            self._environment.check_process()
        except StoreError:
            return  # the thread and the file are the parent's
        self._committer.close()
        self._environment.close()


def read_info(path: str | os.PathLike[str]) -> StoreInfo:
    """Say what the store at *path* holds, without changing it; also while a crawl is using it."""
    environment = Environment.open(path, kind=KIND, readonly=True)
    try:
        return store_info(environment)
    finally:
        environment.close()


def rebuild(
    path: str | os.PathLike[str],
    max_distance: int,
    expected: int | None = None,
    on_progress: Callable[[int, int], object] | None = None,
) -> tuple[str, str]:
    """Lay out the tables of the store at *path* anew, for *max_distance* and *expected* fingerprints.

    As :meth:`LmdbPageStore.relayout`, and also for a distance that the layout there cannot serve.
    Returns the names of the layout before and after. StoreError where there is no store.
    """
    before = read_info(path).layout
    environment = Environment.open(path, kind=KIND)
    try:
        _relayout(environment, Databases(environment), max_distance, expected, on_progress)
        return before, layout_of(environment.name, environment.header()).name
    finally:
        environment.close()


class Writer:
    """Runs jobs in transactions of their own, one at a time; made by :func:`open_for_upkeep`."""

    def __init__(self, environment: Environment, max_distance: int) -> None:
        self._environment = environment
        self._databases = Databases(environment)

        def tables(header: Mapping[str, Any]) -> PermutedTables:
            return PermutedTables(layout_of(environment.name, header), max_distance)

        self._tables = CurrentTables(tables)

    def write(self, run: Callable[[LmdbTransaction], T]) -> T:
        """Run a job; what it writes is durable when this returns. It may run more than once."""

        def job(txn: lmdb.Transaction) -> T:
            transaction = LmdbTransaction(txn, self._databases, self._tables.of(txn))
            result = run(transaction)
            transaction.write_memories()
            return result

        return self._environment.write(job)


@contextmanager
def open_for_upkeep(
    path: str | os.PathLike[str], max_distance: int, configuration: Mapping[str, str]
) -> Iterator[Writer]:
    """Open the store at *path* to change it. ``StoreError`` where there is none, or another one."""
    info = read_info(path)
    check_configuration(f"store {info.path!r}", dict(configuration), info.configuration)
    environment = Environment.open(path, kind=KIND)
    try:
        yield Writer(environment, max_distance)
    finally:
        environment.close()


def _relayout(
    environment: Environment,
    databases: Databases,
    max_distance: int,
    expected: int | None,
    on_progress: Callable[[int, int], object] | None,
) -> None:
    stored = environment.read(lambda txn: distinct_fingerprints(txn, databases.holders))
    layout = plan(max_distance, expected or max(1, len(stored))).layout
    relayout(
        environment,
        databases.tables,
        layout,
        lambda txn: distinct_fingerprints(txn, databases.holders),
        on_progress,
    )


def store_info(environment: Environment) -> StoreInfo:
    pages_db = environment.database("pages")
    aliases_db = environment.database("aliases", dupsort=True, dupfixed=True)

    def count(txn: lmdb.Transaction) -> tuple[int, int]:
        return txn.stat(pages_db)["entries"], txn.stat(aliases_db)["entries"]

    pages, aliases = environment.read(count)
    header = environment.header()
    return StoreInfo(
        path=str(environment.path) if environment.path else None,
        pages=pages - aliases,
        aliases=aliases,
        bytes=environment.info()["bytes"],
        layout=layout_of(environment.name, header).name,
        configuration_id=configuration_id(header["configuration"]),
        configuration=header["configuration"],
    )


def layout_of(name: str, header: Mapping[str, Any]) -> Layout:
    try:
        return Layout.from_dict(header["layout"])
    except (KeyError, ValueError) as error:
        raise StoreError(
            f"{name} has a damaged header ({error}); restore a copy, or use another store"
        ) from error


def distinct_fingerprints(txn: lmdb.Transaction, holders: Any) -> U64:
    """Return every fingerprint of a kept page once, uint64[n]."""
    cursor = txn.cursor(holders)
    keys = b"".join(cursor.iternext_nodup(keys=True, values=False))
    return np.frombuffer(keys, dtype=">u8").astype(np.uint64)


def check_configuration(store: str, wanted: dict[str, str], found: dict[str, str]) -> None:
    """Raise :class:`StoreError`, with what differs, unless both configurations are the same."""
    if wanted == found:
        return
    differences = ", ".join(
        f"{name}: {wanted.get(name, 'not used')} here, {found.get(name, 'not used')} in the store"
        for name in sorted({*wanted, *found})
        if wanted.get(name) != found.get(name)
    )
    raise StoreError(
        f"{store} was made with another configuration ({differences}); its fingerprints "
        "cannot be compared with new ones. Use the same options and versions, or another store"
    )
