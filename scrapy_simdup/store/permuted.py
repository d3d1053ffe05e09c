"""The permuted tables in one LMDB database: add, remove, and look up within Hamming distance k.

All work happens inside a transaction that is handed in; opening files, committing and growing the
map are :mod:`scrapy_simdup.store.environment`'s. Which tables there are is
:mod:`scrapy_simdup.store.tables`'.

The database is ``dupsort`` and ``dupfixed``. Key: table number (1 byte) and the prefix of the
permuted fingerprint, big-endian, left-aligned, as wide for all tables as for the widest. Values:
the permuted fingerprints with that prefix, 8 bytes each, big-endian. So the order of the bytes is
the order of the numbers, and one table's entries in numeric order are in the database's order.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from scrapy_simdup.store.tables import BITS, MAX_PROBES, U64, Indices, Layout, check_distance

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import lmdb

#: Rows of the queries intp[m], found fingerprints uint64[m], distances uint8[m].
Pairs: TypeAlias = tuple[Indices, U64, npt.NDArray[np.uint8]]

_VALUE_BYTES = 8
_NOTHING: Pairs = (
    np.empty(0, dtype=np.intp),
    np.empty(0, dtype=np.uint64),
    np.empty(0, dtype=np.uint8),
)

#: Up to so many probes, Python integers make the keys faster than numpy does.
_FEW_PROBES = 12
#: Keys, and pairs of query and candidate, that a step of a batch handles at once: some 20 MB.
_BATCH_KEYS = 1 << 18
_BATCH_PAIRS = 1 << 18
_WRITE_CHUNK = 1 << 16


class PermutedTables:
    """The tables of *layout*, looked up at distance *k*.

    Which keys to probe is worked out here, once. ``ValueError`` if that are more than
    ``MAX_PROBES``; :meth:`Layout.probe_counts` tells before.
    """

    def __init__(self, layout: Layout, k: int) -> None:
        self.layout = layout
        self.k = check_distance(k)
        count = sum(layout.probe_counts(self.k))
        if count > MAX_PROBES:
            raise ValueError(
                f"layout {layout.name!r} would need {count:,} probes a lookup for distance {k}; "
                f"allowed are {MAX_PROBES:,}"
            )
        self._probe_tables, self._probe_flips = layout.probes(self.k)
        width = layout.key_bytes
        self._prefix_shift = BITS - 8 * (width - 1)
        # What few probes need, as Python integers: table, its number as a byte, flips, prefix mask.
        probes = zip(self._probe_tables.tolist(), self._probe_flips.tolist(), strict=True)
        self._few_probes = [
            (number, bytes([number]), flips, layout.tables[number].prefix_mask)
            for number, flips in (probes if count <= _FEW_PROBES else ())
        ]
        # Candidates keep their byte order: XOR and bit_count do not mind, and it saves a pass.
        self._entry = np.dtype(
            [("table", "u1"), ("prefix", f"V{width - 1}"), ("value", "=u8")], align=False
        )

    def add(self, txn: lmdb.Transaction, db: Any, fingerprints: U64) -> None:
        """Insert uint64[n]; those that are there already stay as they are."""
        if len(fingerprints) == 1:
            for key, value in self._entries(int(fingerprints[0])):
                txn.put(key, value, db=db)
            return
        cursor = txn.cursor(db=db)
        append = txn.stat(db)["entries"] == 0
        fingerprints = np.unique(fingerprints)
        for number, table in enumerate(self.layout.tables):
            permuted = np.sort(table.permute_many(fingerprints))
            for start in range(0, len(permuted), _WRITE_CHUNK):
                chunk = permuted[start : start + _WRITE_CHUNK]
                keys = self.layout.keys(np.full(len(chunk), number, dtype=np.intp), chunk)
                values = chunk.astype(">u8").view("V8").tolist()
                read, added = cursor.putmulti(zip(keys, values, strict=True), append=append)
                assert read == added, "appended out of order"

    def remove(self, txn: lmdb.Transaction, db: Any, fingerprint: int) -> bool:
        """Delete *fingerprint*; False if it was not there."""
        found = False
        for key, value in self._entries(fingerprint):
            found = txn.delete(key, value, db=db) or found
        return found

    def contains(self, txn: lmdb.Transaction, db: Any, fingerprint: int) -> bool:
        """Say whether *fingerprint* itself is stored."""
        key, value = next(self._entries(fingerprint))
        return txn.cursor(db=db).set_key_dup(key, value)

    def fingerprints(self, txn: lmdb.Transaction, db: Any) -> U64:
        """Return all stored fingerprints, uint64[n], in the order of the first table."""
        cursor = txn.cursor(db=db)
        cursor.first()
        first_table = takewhile(lambda entry: entry[0][0] == 0, cursor)
        permuted = np.frombuffer(b"".join(value for _, value in first_table), dtype=">u8")
        return self.layout.tables[0].restore_many(permuted.astype(np.uint64))

    def count(self, txn: lmdb.Transaction, db: Any) -> int:
        """Return the number of stored fingerprints."""
        return txn.stat(db)["entries"] // len(self.layout.tables)

    def query(
        self, txn: lmdb.Transaction, db: Any, fingerprint: int
    ) -> tuple[U64, npt.NDArray[np.uint8]]:
        """Return every stored fingerprint within k of *fingerprint*, once.

        uint64[m] fingerprints and uint8[m] distances, ordered by distance, then fingerprint.
        """
        own = [table.permute(fingerprint) for table in self.layout.tables]
        permuted = np.array(own, dtype=">u8")
        if self._few_probes:
            shift, width = self._prefix_shift, self.layout.key_bytes - 1
            keys = [
                first_byte + (((own[number] ^ flips) & mask) >> shift).to_bytes(width, "big")
                for number, first_byte, flips, mask in self._few_probes
            ]
        else:
            keys = self.layout.keys(
                self._probe_tables,
                permuted.astype(np.uint64)[self._probe_tables] ^ self._probe_flips,
            )
        candidates = self._candidates(txn.cursor(db), keys)
        numbers, values = candidates["table"], candidates["value"]
        # The order of the bytes does not matter to XOR and to counting bits.
        distances = np.bitwise_count(values ^ permuted.view(np.uint64)[numbers])
        near = np.flatnonzero(distances <= self.k)
        if not len(near):
            return _NOTHING[1:]
        found = self.layout.restore(numbers[near].astype(np.intp), _swapped(values[near]))
        _, found, distances = _in_order(np.zeros_like(near), found, distances[near])
        return found, distances

    def query_many(self, txn: lmdb.Transaction, db: Any, fingerprints: U64) -> Pairs:
        """Look up uint64[n]: for each, every stored fingerprint within k, once.

        intp[m] rows of *fingerprints*, uint64[m] what was found, uint8[m] distances, ordered by
        row, distance, found fingerprint. Besides the result, memory stays bounded.
        """
        step = max(1, _BATCH_KEYS // len(self._probe_tables))
        parts = [_NOTHING]
        for start in range(0, len(fingerprints), step):
            batch = fingerprints[start : start + step]
            rows, found, distances = _in_order(*_joined(self._near_pairs(txn, db, batch)))
            parts.append((rows + start, found, distances))
        return _joined(parts)

    def _near_pairs(self, txn: lmdb.Transaction, db: Any, fingerprints: U64) -> Iterator[Pairs]:
        """Yield (rows, found, distances) of pairs within k; a pair comes once a table at most."""
        cursor = txn.cursor(db)
        stored = self.count(txn, db)
        for number, table in enumerate(self.layout.tables):
            own = table.permute_many(fingerprints)
            mask = np.uint64(table.prefix_mask)
            flips = self._probe_flips[self._probe_tables == number]
            probes = ((own ^ flips[:, np.newaxis]) & mask).ravel()
            order = np.argsort(probes)  # neighbours in the tree are read together
            bucket = stored >> table.prefix_bits
            step = max(1, _BATCH_PAIRS // (bucket + 1))
            for start in range(0, len(probes), step):
                chosen = order[start : start + step]
                prefixes = probes[chosen]
                rows = chosen % len(fingerprints)
                unique = np.unique(prefixes)
                keys = self.layout.keys(np.full(len(unique), number, dtype=np.intp), unique)
                values = _swapped(self._candidates(cursor, keys)["value"])
                buckets = values & mask
                first = np.searchsorted(buckets, prefixes, side="left")
                counts = np.searchsorted(buckets, prefixes, side="right") - first
                for part in _slices(counts, _BATCH_PAIRS):
                    ends = np.cumsum(counts[part])
                    pairs = np.arange(ends[-1])
                    pairs += np.repeat(first[part] - ends + counts[part], counts[part])
                    found = values[pairs]
                    distances = np.bitwise_count(found ^ np.repeat(own[rows[part]], counts[part]))
                    near = np.flatnonzero(distances <= self.k)
                    near_rows = rows[part][np.searchsorted(ends, near, side="right")]
                    yield near_rows, table.restore_many(found[near]), distances[near]

    def _candidates(self, cursor: lmdb.Cursor, keys: list[bytes]) -> npt.NDArray[np.void]:
        """Return all entries under *keys*, in their order: fields table, prefix, value."""
        found = cursor.getmulti(keys, dupdata=True, dupfixed_bytes=_VALUE_BYTES, keyfixed=True)
        return np.frombuffer(found, dtype=self._entry)

    def _entries(self, fingerprint: int) -> Iterator[tuple[bytes, bytes]]:
        """Yield the (key, value) of *fingerprint* in each table."""
        shift, width = self._prefix_shift, self.layout.key_bytes - 1
        for number, table in enumerate(self.layout.tables):
            permuted = table.permute(fingerprint)
            prefix = (permuted & table.prefix_mask) >> shift
            yield (
                number.to_bytes(1, "big") + prefix.to_bytes(width, "big"),
                permuted.to_bytes(_VALUE_BYTES, "big"),
            )


def _joined(parts: Iterable[Pairs]) -> Pairs:
    rows, found, distances = zip(_NOTHING, *parts, strict=True)
    return np.concatenate(rows), np.concatenate(found), np.concatenate(distances)


def _in_order(rows: Indices, found: U64, distances: npt.NDArray[np.uint8]) -> Pairs:
    """Sort by row, distance, fingerprint, and keep one of the tables that found the same pair."""
    order = np.lexsort((found, distances, rows))
    rows, found, distances = rows[order], found[order], distances[order]
    once = np.ones(len(rows), dtype=np.bool_)
    once[1:] = (rows[1:] != rows[:-1]) | (found[1:] != found[:-1])
    return rows[once], found[once], distances[once]


def _swapped(values: U64) -> U64:
    """Turn uint64[n] into the byte order of the store, or back."""
    return np.ascontiguousarray(values).view(">u8").astype(np.uint64)


def _slices(counts: Indices, most: int) -> Iterator[slice]:
    """Cut *counts* into slices that add to about *most*, and nowhere within a count."""
    ends = np.cumsum(counts)
    start = 0
    while start < len(counts):
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + most, side="right")))
        yield slice(start, stop)
        start = stop
