"""What is in a page store on LMDB, and what a transaction may do with it.

Sub-databases (all numbers big-endian, so that bytes sort as numbers):

========= ============================== ======================= ==================
name      key                            value                   several values
========= ============================== ======================= ==================
pages     page id (8 bytes)              record (MessagePack)
keys      fingerprint of the request     page id
bodies    body digest (16)               page id of a kept page  yes, oldest first
texts     digest of a view (16)          page id of a kept page  yes, oldest first
tables    table number, prefix           permuted fingerprints
holders   fingerprint (8)                page id of a kept page  yes, oldest first
aliases   page id of a representative    page id of a duplicate  yes
hosts     digest of the host's name (16) ``HostMemory``, packed
crawls    start and digest of its id (16) ``Crawl`` (MessagePack)
========= ============================== ======================= ==================

Whatever is damaged is a ``StoreError`` that says so, never taken for empty.
"""

from __future__ import annotations

import hashlib
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from scrapy_simdup.errors import StoreError
from scrapy_simdup.page.sketch import BINS
from scrapy_simdup.store.crawls import crawl_key, decode_crawl, encode_crawl
from scrapy_simdup.store.hostmemory import HostMemory
from scrapy_simdup.store.records import (
    COMMON_PAGES,
    MAX_CANDIDATES,
    MAX_HOLDERS,
    MAX_SAME_TEXT,
    Record,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import lmdb
    import numpy.typing as npt

    from scrapy_simdup.store.crawls import Crawl
    from scrapy_simdup.store.environment import Environment
    from scrapy_simdup.store.permuted import PermutedTables
    from scrapy_simdup.store.tables import U64

_PLAIN = ("pages", "keys", "hosts", "tables", "crawls")
_INDEXES = ("bodies", "texts", "holders", "aliases")

#: Bytes of a page id, of a digest, and of the longest key that LMDB takes.
_ID, _DIGEST, _MAX_KEY = 8, 16, 511

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Record).decode


class Databases:
    """The handles of all sub-databases, and the name of the store, for messages."""

    def __init__(self, environment: Environment) -> None:
        self.store = environment.name
        self._environment = environment
        self._load()
        environment.when_reopened(self._load)

    def _load(self) -> None:
        environment = self._environment
        for name in _PLAIN:
            setattr(self, name, environment.database(name))
        for name in _INDEXES:
            setattr(self, name, environment.database(name, dupsort=True, dupfixed=True))

    def file_pages(self, txn: lmdb.Transaction) -> int:
        """How many pages of the file are in use."""
        used = 2  # what says where the rest is
        for database in (None, *(getattr(self, name) for name in (*_PLAIN, *_INDEXES))):
            stat = txn.stat(database) if database is not None else txn.stat()
            used += stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"]
        return int(used)

    pages: Any
    keys: Any
    hosts: Any
    bodies: Any
    texts: Any
    tables: Any
    holders: Any
    aliases: Any
    crawls: Any


def _index_entries(record: Record) -> list[tuple[str, bytes]]:
    """The keys under which the id of a record is entered, and in which index, ``keys`` aside."""
    if not record.kept:
        return [("aliases", _pack(record.representative))]
    return [
        ("bodies", record.body_digest),
        *(("texts", digest) for digest in {view.digest for view in record.views}),
        *(("holders", _pack(simhash)) for simhash in {view.simhash for view in record.views}),
    ]


def _pack(number: int) -> bytes:
    return number.to_bytes(8, "big")


def _unpack(raw: Any) -> int:
    if len(raw) != _ID:
        raise StoreError(
            f"the store is damaged: {bytes(raw).hex()} stands where a page id should; see what "
            "scrapy simdup doctor says"
        )
    return int.from_bytes(raw, "big")


def _host_key(host: str) -> bytes:
    """Hosts are told apart by this digest; it has one length, and LMDB's keys have a longest."""
    return hashlib.blake2b(host.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class NoRecordError(StoreError, KeyError):
    """There is no page with this id."""

    def __init__(self, page_id: int) -> None:
        super().__init__(
            f"the store has no record of page {page_id}: the page has been taken out meanwhile, or "
            "the store is damaged (scrapy simdup doctor)"
        )

    __str__ = Exception.__str__  # not the repr that a KeyError shows


class StoredTransaction:
    """What one LMDB transaction sees of a store, and may enter, the tables of fingerprints aside."""

    def __init__(self, txn: lmdb.Transaction, databases: Databases) -> None:
        self._txn = txn
        self._dbs = databases

    def get(self, page_id: int) -> Record:
        raw = self._txn.get(_pack(page_id), db=self._dbs.pages)
        if raw is None:
            raise NoRecordError(page_id)
        try:
            return _decode(raw)
        except msgspec.DecodeError as error:
            raise self._damaged(f"record of page {page_id}", error) from error

    def find(self, key: bytes) -> tuple[int, Record] | None:
        raw = self._txn.get(key, db=self._dbs.keys)
        if raw is None:
            return None
        page_id = _unpack(raw)
        return page_id, self.get(page_id)

    def records(self, after: int, limit: int) -> list[tuple[int, Record]]:
        with self._txn.cursor(self._dbs.pages) as cursor:
            if not cursor.set_range(_pack(after + 1)):
                return []
            ids = (raw for raw in cursor.iternext(values=False) if len(raw) == _ID)
            return [(page_id, self.get(page_id)) for page_id in map(_unpack, islice(ids, limit))]

    def all_records(self) -> Iterator[tuple[int, Record]]:
        """All (page id, record), ascending."""
        for page_id in self.page_ids():
            yield page_id, self.get(page_id)

    def page_ids(self) -> Iterator[int]:
        """The ids of all records, ascending."""
        with self._txn.cursor(self._dbs.pages) as cursor:
            yield from (_unpack(raw) for raw in cursor.iternext(values=False) if len(raw) == _ID)

    def odd_ids(self) -> list[bytes]:
        """What stands in the place of page ids and can be none."""
        with self._txn.cursor(self._dbs.pages) as cursor:
            return [bytes(raw) for raw in cursor.iternext(values=False) if len(raw) != _ID]

    def get_sound(self, page_id: int) -> Record:
        """As `get`, and a ``StoreError`` also for a record that can be no page's."""
        record = self.get(page_id)
        sizes = {len(view.digest) for view in record.views} | {len(record.body_digest)}
        numbers = [record.representative, *(view.simhash for view in record.views)]
        if (
            sizes != {_DIGEST}
            or not record.views
            or {len(view.sketch) for view in record.views} != {BINS // 2}
            or not 0 < len(record.key) <= _MAX_KEY
            or not all(0 <= number < 1 << 64 for number in numbers)
        ):
            error = ValueError("a key, digest, sketch or number that cannot be")
            raise self._damaged(f"record of page {page_id}", error)
        return record

    def index(self, name: str) -> Iterator[tuple[bytes, bytes]]:
        """All (key, value) of an index: ``keys``, ``bodies``, ``texts``, ``holders``, ``aliases``."""
        with self._txn.cursor(getattr(self._dbs, name)) as cursor:
            for key, value in cursor:
                yield bytes(key), bytes(value)

    def crawls(self) -> list[Crawl]:
        """What is known of crawls, the oldest first."""
        with self._txn.cursor(self._dbs.crawls) as cursor:
            try:
                return [decode_crawl(bytes(value)) for value in cursor.iternext(keys=False)]
            except msgspec.DecodeError as error:
                raise self._damaged("list of crawls", error) from error

    def counts(self) -> tuple[int, int]:
        """Numbers of kept pages and of their duplicates."""
        duplicates = self._txn.stat(self._dbs.aliases)["entries"]
        return self._txn.stat(self._dbs.pages)["entries"] - duplicates, duplicates

    def lost_alias(self) -> tuple[int, int] | None:
        """The first (page id, id of its representative) of which the latter is no kept page."""
        with self._txn.cursor(self._dbs.aliases) as cursor:
            for key, value in cursor.iternext_nodup(keys=True, values=True):
                page_id, alias = _unpack(key), _unpack(value)
                raw = self._txn.get(key, db=self._dbs.pages)
                if raw is None or not self.get(page_id).kept:
                    return alias, page_id
        return None

    def memories(self) -> Iterator[tuple[bytes, bytes]]:
        """The key of every host, and its memory, packed."""
        with self._txn.cursor(self._dbs.hosts) as cursor:
            for key, value in cursor:
                yield bytes(key), bytes(value)

    def restore(self, page_id: int, record: Record) -> None:
        """Put a record under an id that is larger than all there are.

        ValueError if another page has its request.
        """
        if not self._txn.put(record.key, _pack(page_id), overwrite=False, db=self._dbs.keys):
            raise ValueError(f"page {page_id} is of the same request as another one")
        self._txn.put(_pack(page_id), _encode(record), append=True, db=self._dbs.pages)
        self._enter(page_id, record)

    def put_memory(self, key: bytes, memory: bytes) -> None:
        """Put the memory of a host; ValueError for what is none."""
        HostMemory.decode(memory)
        self._txn.put(key, memory, db=self._dbs.hosts)

    def note_crawl(self, crawl: Crawl) -> None:
        self._txn.put(crawl_key(crawl), encode_crawl(crawl), db=self._dbs.crawls)

    def _enter(self, page_id: int, record: Record) -> None:
        """Enter a record into the indexes."""
        for name, key in _index_entries(record):
            self._txn.put(key, _pack(page_id), db=getattr(self._dbs, name))

    def forget(self, page_id: int) -> None:
        """Take a record out of ``pages`` alone, whatever it is."""
        self._txn.delete(_pack(page_id), db=self._dbs.pages)

    def forget_odd_ids(self) -> int:
        """Take out what has no page id; says how many records that were."""
        odd = self.odd_ids()
        for raw in odd:
            self._txn.delete(raw, db=self._dbs.pages)
        return len(odd)

    def forget_memory(self, key: bytes) -> None:
        """Forget what was learned of a host."""
        self._txn.delete(key, db=self._dbs.hosts)

    def forget_crawl(self, crawl_id: str) -> None:
        """Forget a crawl; and all that cannot be read of crawls."""
        with self._txn.cursor(self._dbs.crawls) as cursor:
            for key, value in [(bytes(key), bytes(value)) for key, value in cursor]:
                try:
                    is_meant = decode_crawl(value).id == crawl_id
                except msgspec.DecodeError:
                    is_meant = True
                if is_meant:
                    self._txn.delete(key, db=self._dbs.crawls)

    def bytes_used(self) -> int:
        return self._dbs.file_pages(self._txn) * int(self._txn.stat()["psize"])

    def aliases_of(self, page_id: int, limit: int | None = None) -> list[int]:
        with self._txn.cursor(self._dbs.aliases) as cursor:
            if not cursor.set_key(_pack(page_id)):
                return []
            return [_unpack(raw) for raw in islice(cursor.iternext_dup(), limit)]

    def aliases(self, page_id: int) -> int:
        with self._txn.cursor(self._dbs.aliases) as cursor:
            return cursor.count() if cursor.set_key(_pack(page_id)) else 0

    def _damaged(self, what: str, error: Exception) -> StoreError:
        return StoreError(
            f"{self._dbs.store} has a damaged {what} ({error}); restore a copy, or use another store"
        )


class LmdbTransaction(StoredTransaction):
    """A ``PageTransaction`` around one LMDB transaction."""

    def __init__(self, txn: lmdb.Transaction, databases: Databases, tables: PermutedTables):
        super().__init__(txn, databases)
        self._tables = tables
        self._memories: dict[bytes, HostMemory] = {}
        self._learned: set[bytes] = set()

    def compared_tables(
        self, fingerprints: U64
    ) -> Iterator[tuple[dict[bytes, bytes], dict[bytes, bytes]]]:
        """For each table its buckets as they ought to be, and as they are; see ``PermutedTables``."""
        return self._tables.compared(self._txn, self._dbs.tables, fingerprints)

    def fingerprint_count(self) -> int:
        """How many fingerprints the tables say that they hold."""
        return self._tables.count(self._txn, self._dbs.tables)

    def rewrite_indexes(self) -> None:
        """Make all indexes anew from the records. Of records with one request the oldest stays."""
        entries: dict[str, list[tuple[bytes, bytes]]] = {name: [] for name in ("keys", *_INDEXES)}
        seen: set[bytes] = set()
        for page_id in [*self.page_ids()]:
            record = self.get(page_id)
            own = _pack(page_id)
            if record.key in seen:
                self._txn.delete(own, db=self._dbs.pages)
                continue
            seen.add(record.key)
            entries["keys"].append((record.key, own))
            for name, key in _index_entries(record):
                entries[name].append((key, own))
        for name, found in entries.items():
            database = getattr(self._dbs, name)
            self._txn.drop(database, delete=False)
            with self._txn.cursor(database) as cursor:
                cursor.putmulti(sorted(found), append=name == "keys")
        self._txn.drop(self._dbs.tables, delete=False)
        holders = sorted({key for key, _ in entries["holders"]})
        fingerprints = np.frombuffer(b"".join(holders), dtype=">u8").astype(np.uint64)
        self._tables.add(self._txn, self._dbs.tables, fingerprints)

    def find_bodies(self, digest: bytes) -> list[int]:
        with self._txn.cursor(self._dbs.bodies) as cursor:
            if not cursor.set_key(digest):
                return []
            return [_unpack(raw) for raw in islice(cursor.iternext_dup(), MAX_SAME_TEXT)]

    def find_texts(self, digests: Sequence[bytes]) -> list[int]:
        found: set[int] = set()
        with self._txn.cursor(self._dbs.texts) as cursor:
            for digest in set(digests):
                if cursor.set_key(digest):
                    found.update(map(_unpack, islice(cursor.iternext_dup(), MAX_SAME_TEXT)))
        return sorted(found)

    def candidates(self, simhashes: Sequence[int]) -> list[int]:
        near: list[tuple[int, int]] = []
        try:
            for simhash in set(simhashes):
                near += self._tables.query(self._txn, self._dbs.tables, simhash, MAX_CANDIDATES)
        except ValueError as error:  # a bucket is not a number of whole fingerprints
            raise self._damaged("table of fingerprints", error) from error
        found: set[int] = set()
        with self._txn.cursor(self._dbs.holders) as cursor:
            for _, fingerprint in sorted(near):
                left = min(MAX_HOLDERS, MAX_CANDIDATES - len(found))
                if left <= 0:
                    break
                if cursor.set_key(_pack(fingerprint)):
                    found.update(map(_unpack, islice(cursor.iternext_dup(), left)))
        return sorted(found)

    def common_blocks(self, host: str, blocks: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
        return self._memory(host, _host_key(host)).count(blocks) >= COMMON_PAGES

    def learn_blocks(self, host: str, blocks: npt.NDArray[np.uint32]) -> None:
        if len(blocks):
            key = _host_key(host)
            self._memory(host, key).learn(blocks)
            self._learned.add(key)

    def write_memories(self) -> None:
        """Write what was learned of hosts: once for all pages of a transaction."""
        for key in sorted(self._learned):
            self._txn.put(key, self._memories[key].encode(), db=self._dbs.hosts)
        self._learned.clear()

    def _memory(self, host: str, key: bytes) -> HostMemory:
        if key not in self._memories:  # asked for again and again in one decision
            raw = self._txn.get(key, db=self._dbs.hosts)
            try:
                self._memories[key] = HostMemory() if raw is None else HostMemory.decode(bytes(raw))
            except ValueError as error:
                raise self._damaged(f"memory of host {host!r}", error) from error
        return self._memories[key]

    def put(self, record: Record, page_id: int | None = None) -> int:
        is_new = page_id is None
        former: Record | None = None
        if page_id is None:
            page_id = self._next_id()
            self._txn.put(record.key, _pack(page_id), db=self._dbs.keys)
        else:
            former = self.get(page_id)
        # A new id is the largest: appended, LMDB fills its pages, else it leaves them half empty.
        self._txn.put(_pack(page_id), _encode(record), append=is_new, db=self._dbs.pages)
        if former is None or {*_index_entries(former)} != {*_index_entries(record)}:
            if former is not None:
                self._withdraw(page_id, former)
            self._enter(page_id, record)
        return page_id

    def _enter(self, page_id: int, record: Record) -> None:
        super()._enter(page_id, record)
        if record.kept:
            for simhash in {view.simhash for view in record.views}:
                one = np.array([simhash], dtype=np.uint64)
                self._tables.add(self._txn, self._dbs.tables, one)

    def _next_id(self) -> int:
        with self._txn.cursor(self._dbs.pages) as cursor:
            return _unpack(cursor.key()) + 1 if cursor.last() else 1

    def _withdraw(self, page_id: int, record: Record) -> None:
        """Take a record out of all indexes, not out of ``pages`` and ``keys``."""
        for name, key in _index_entries(record):
            self._txn.delete(key, _pack(page_id), db=getattr(self._dbs, name))
            if name == "holders" and self._txn.get(key, db=self._dbs.holders) is None:
                self._tables.remove(self._txn, self._dbs.tables, _unpack(key))

    def delete(self, page_id: int) -> None:
        record = self.get(page_id)
        self._withdraw(page_id, record)
        self._txn.delete(record.key, db=self._dbs.keys)
        self._txn.delete(_pack(page_id), db=self._dbs.pages)
