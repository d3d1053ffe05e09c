"""The permuted tables in one LMDB database: add, remove, and look up within Hamming distance k.

All work happens inside a transaction that is handed in; opening files, committing and growing the
map are :mod:`scrapy_simdup.store.environment`'s. Which tables there are is
:mod:`scrapy_simdup.store.tables`'.

One entry of the database is a bucket: all permuted fingerprints of a table with one prefix. Key:
table number (1 byte) and the prefix, big-endian, left-aligned, as wide for all tables as for the
widest, so that the order of the bytes is the order of the numbers. Value: the permuted
fingerprints, 8 bytes each, little-endian, sorted. Beside the buckets stands, under a key of one
byte, the number of fingerprints.

Why not LMDB's own sorted duplicates, one value each: its ``getmulti`` copies them one by one, which
was two thirds of a lookup, and bulk loads write them one by one.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from itertools import accumulate, pairwise, takewhile
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from scrapy_simdup.store.tables import BITS, MAX_PROBES, U64, Indices, Layout, check_distance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import lmdb

#: Rows of the queries intp[m], found fingerprints uint64[m], distances uint8[m].
Pairs: TypeAlias = tuple[Indices, U64, npt.NDArray[np.uint8]]
#: Keys and what is under them; types are LMDB's, here it is bytes.
Buckets: TypeAlias = "list[tuple[bytes | memoryview, bytes | memoryview]]"

_VALUE_BYTES = 8
_VALUES = np.dtype("<u8")
_COUNT_KEY = b"\0"  # shorter than any key of a bucket, and before them all
_NOTHING: Pairs = (
    np.empty(0, dtype=np.intp),
    np.empty(0, dtype=np.uint64),
    np.empty(0, dtype=np.uint8),
)

#: Up to so many probes, Python integers make the keys faster than numpy does.
_FEW_PROBES = 12
#: So many matches, from all tables, they also restore faster.
_FEW_MATCHES = 24
#: So much of the buckets of a lookup is compared at once: it stays in the processor's cache, and in
#: memory that need not be fetched from the system and zeroed, which took as long as all the rest.
_LOOKUP_BYTES = 1 << 17
#: What a step of a batch handles at once: keys; fingerprints in the buckets it reads; pairs of
#: query and candidate. Some 30 MB in all, and the pairs stay in the processor's cache.
_BATCH_KEYS = 1 << 18
_BATCH_VALUES = 1 << 21
_BATCH_PAIRS = 1 << 16
#: Up to so many times as many fingerprints as are added are written anew with them.
_REWRITE = 16
#: Fingerprints that a bulk load cuts into buckets at once.
_WRITE_CHUNK = 1 << 20


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
        if layout.key_bytes > 8:
            raise ValueError(f"layout {layout.name!r} has prefixes of more than 56 bits")
        self._probe_tables, self._probe_flips = layout.probes(self.k)
        # A key as a number: the prefix, and the number of the table above it.
        width = layout.key_bytes
        self._prefix_shift = BITS - 8 * (width - 1)
        shift = np.uint64(self._prefix_shift)
        numbers = self._probe_tables.astype(np.uint64) << np.uint64(8 * (width - 1))
        self._probe_keys = numbers | self._probe_flips >> shift
        masks = [table.prefix_mask >> self._prefix_shift for table in layout.tables]
        self._prefix_masks = np.array(masks, dtype=np.uint64)
        self._cut_keys = struct.Struct(f"{width}s" * count)
        # What few probes need, as Python integers.
        probes = zip(self._probe_tables.tolist(), self._probe_keys.tolist(), strict=True)
        self._few_probes = [
            (number, masks[number], key) for number, key in (probes if count <= _FEW_PROBES else ())
        ]

    def add(
        self,
        txn: lmdb.Transaction,
        db: Any,
        fingerprints: U64,
        on_progress: Callable[[int, int], object] | None = None,
    ) -> None:
        """Insert uint64[n]; those that are there already stay as they are.

        *on_progress* is called with what is written so far, of all tables together, and the whole.
        """
        if len(fingerprints) == 1 and on_progress is None:
            self._add_one(txn, db, int(fingerprints[0]))
            return
        stored = self.count(txn, db)
        if 0 < stored < _REWRITE * len(fingerprints):
            # Most buckets would be rewritten one by one, and pages that are full be split.
            fingerprints = np.concatenate((self.fingerprints(txn, db), fingerprints))
            txn.drop(db, delete=False)
            stored = 0
        fingerprints = _sorted_once(fingerprints)
        written, total = 0, len(fingerprints) * len(self.layout.tables)
        if not stored and len(fingerprints):
            self._set_count(txn, db, len(fingerprints))  # appending, the first key comes first
        cursor = txn.cursor(db)
        for number, table in enumerate(self.layout.tables):
            permuted = table.permute_many(fingerprints)
            permuted.sort()
            new = 0
            for part in _whole_buckets(permuted, table.prefix_mask):
                values = permuted[part]
                written += len(values)
                if stored:
                    keys, _ = self._buckets(number, values)
                    before = _joined_values([blob for _, blob in cursor.getmulti(keys)])
                    values = _sorted_once(np.concatenate((before, values)))
                    new += len(values) - len(before)
                cursor.putmulti(zip(*self._buckets(number, values), strict=True), append=not stored)
                if on_progress is not None:
                    on_progress(written, total)
        if stored:
            self._set_count(txn, db, stored + new)

    def _buckets(self, number: int, values: U64) -> tuple[list[bytes], list[bytes]]:
        """Cut sorted permuted fingerprints of a table into buckets: keys, and what they hold."""
        prefixes = values & self.layout.prefix_masks[number]
        starts = np.flatnonzero(prefixes[1:] != prefixes[:-1]) + 1
        starts = np.concatenate(([0], starts))
        keys = self.layout.keys(np.full(len(starts), number, dtype=np.intp), prefixes[starts])
        raw = values.astype(_VALUES, copy=False).tobytes()
        edges = [*(starts * _VALUE_BYTES).tolist(), len(raw)]
        return keys, [raw[start:end] for start, end in pairwise(edges)]

    def _add_one(self, txn: lmdb.Transaction, db: Any, fingerprint: int) -> None:
        for key, value in self._entries(fingerprint):
            blob = bytes(txn.get(key, b"", db=db))
            place, found = _find(blob, value)
            if found:
                return  # in all tables or in none
            packed = value.to_bytes(_VALUE_BYTES, "little")
            txn.put(key, blob[:place] + packed + blob[place:], db=db)
        self._set_count(txn, db, self.count(txn, db) + 1)

    def remove(self, txn: lmdb.Transaction, db: Any, fingerprint: int) -> bool:
        """Delete *fingerprint*; False if it was not there."""
        for key, value in self._entries(fingerprint):
            blob = bytes(txn.get(key, b"", db=db))
            place, found = _find(blob, value)
            if not found:
                return False  # in all tables or in none
            left = blob[:place] + blob[place + _VALUE_BYTES :]
            if left:
                txn.put(key, left, db=db)
            else:
                txn.delete(key, db=db)
        self._set_count(txn, db, self.count(txn, db) - 1)
        return True

    def contains(self, txn: lmdb.Transaction, db: Any, fingerprint: int) -> bool:
        """Say whether *fingerprint* itself is stored."""
        key, value = next(self._entries(fingerprint))
        return _find(bytes(txn.get(key, b"", db=db)), value)[1]

    def fingerprints(self, txn: lmdb.Transaction, db: Any) -> U64:
        """Return all stored fingerprints, uint64[n], in the order of the first table."""
        cursor = txn.cursor(db)
        cursor.set_range(bytes(self.layout.key_bytes))
        first_table = takewhile(lambda entry: entry[0][0] == 0, cursor)
        permuted = _joined_values([blob for _, blob in first_table])
        return self.layout.tables[0].restore_many(permuted)

    def compared(
        self, txn: lmdb.Transaction, db: Any, fingerprints: U64
    ) -> Iterator[tuple[dict[bytes, bytes], dict[bytes, bytes]]]:
        """For each table the buckets that it ought to have, and those that it has, by their keys.

        *fingerprints*, uint64[n], are all there ought to be, each once.
        """
        for number, table in enumerate(self.layout.tables):
            wanted: dict[bytes, bytes] = {}
            if len(fingerprints):
                keys, blobs = self._buckets(number, np.sort(table.permute_many(fingerprints)))
                wanted = dict(zip(keys, blobs, strict=True))
            with txn.cursor(db) as cursor:
                there: dict[bytes, bytes] = {}
                if cursor.set_range(number.to_bytes(1, "big") + bytes(self.layout.key_bytes - 1)):
                    for key, blob in cursor:
                        if key[0] != number:
                            break
                        there[bytes(key)] = bytes(blob)
            yield wanted, there

    def count(self, txn: lmdb.Transaction, db: Any) -> int:
        """Return the number of stored fingerprints."""
        return int.from_bytes(txn.get(_COUNT_KEY, b"", db=db), "big")

    def _set_count(self, txn: lmdb.Transaction, db: Any, count: int) -> None:
        if count:
            txn.put(_COUNT_KEY, count.to_bytes(8, "big"), db=db)
        else:
            txn.delete(_COUNT_KEY, db=db)

    def query(
        self, txn: lmdb.Transaction, db: Any, fingerprint: int, limit: int | None = None
    ) -> list[tuple[int, int]]:
        """Return (distance, fingerprint) of all stored within k of *fingerprint*, once, sorted.

        With *limit* not more than the nearest so many.
        """
        own = self.layout.permute_one(fingerprint)
        packed = [value.to_bytes(_VALUE_BYTES, "little") for value in own]
        matches: set[tuple[int, int]] = set()
        for buckets in _parts(txn.cursor(db).getmulti(self._keys(own))):
            values = _joined_values([blob for _, blob in buckets])
            # Beside every value the query in the order of its table. Repeated bytes cost least.
            beside = [packed[key[0]] * (len(blob) // _VALUE_BYTES) for key, blob in buckets]
            distances = np.bitwise_count(values ^ _joined_values(beside))
            near = (distances <= self.k).nonzero()[0]
            if limit is not None and len(near) > (most := limit * len(self.layout.tables)):
                # One fingerprint is found in each table at most.
                near = near[np.argpartition(distances[near], most)[:most]]
            if len(near):
                ends = [*accumulate(len(blob) // _VALUE_BYTES for _, blob in buckets)]
                numbers = [buckets[bisect_right(ends, place)][0][0] for place in near.tolist()]
                found = self._restored(numbers, values[near])
                matches.update(zip(distances[near].tolist(), found, strict=True))
        return sorted(matches)[:limit]

    def _restored(self, numbers: list[int], permuted: U64) -> list[int]:
        """Return the fingerprints of permuted ones of these tables."""
        if len(numbers) > _FEW_MATCHES:
            found: list[int] = self.layout.restore(np.array(numbers), permuted).tolist()
            return found
        tables = self.layout.tables
        return [
            tables[number].restore(value)
            for number, value in zip(numbers, permuted.tolist(), strict=True)
        ]

    def _keys(self, own: list[int]) -> Iterable[bytes]:
        """Return the keys to probe for a fingerprint, given as permuted for each table."""
        width, shift = self.layout.key_bytes, self._prefix_shift
        if self._few_probes:
            return [
                (own[number] >> shift & mask ^ key).to_bytes(width, "big")
                for number, mask, key in self._few_probes
            ]
        prefixes = np.array(own, dtype=np.uint64) >> np.uint64(shift) & self._prefix_masks
        keys = (prefixes[self._probe_tables] ^ self._probe_keys).astype(">u8")
        rows = keys.view(np.uint8).reshape(-1, 8)[:, 8 - width :]
        return self._cut_keys.unpack(rows.tobytes())

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
            flips = self._probe_flips[self._probe_tables == number]
            probes = ((own ^ flips[:, np.newaxis]) & np.uint64(table.prefix_mask)).ravel()
            order = np.argsort(probes)  # neighbours in the tree are read together
            probes, rows = probes[order], order % len(fingerprints)
            is_new = np.ones(len(probes), dtype=np.bool_)
            is_new[1:] = probes[1:] != probes[:-1]
            unique, places = probes[is_new], np.cumsum(is_new) - 1
            step = max(1, _BATCH_VALUES // ((stored >> table.prefix_bits) + 1))
            for start in range(0, len(unique), step):
                keys = self.layout.keys(
                    np.full(len(unique[start : start + step]), number, dtype=np.intp),
                    unique[start : start + step],
                )
                blobs = dict(cursor.getmulti(keys))
                buckets = [blobs.get(key, b"") for key in keys]
                first, last = np.searchsorted(places, (start, start + step))
                chosen = places[first:last] - start
                sizes = np.fromiter(map(len, buckets), np.intp, len(buckets)) // _VALUE_BYTES
                counts = sizes[chosen]
                for part in _slices(counts, _BATCH_PAIRS):
                    here, those = counts[part], rows[first:last][part]
                    values = _joined_values([buckets[n] for n in chosen[part].tolist()])
                    distances = np.bitwise_count(values ^ np.repeat(own[those], here))
                    near = (distances <= self.k).nonzero()[0]
                    near_rows = those[np.searchsorted(np.cumsum(here), near, side="right")]
                    yield near_rows, table.restore_many(values[near]), distances[near]

    def _entries(self, fingerprint: int) -> Iterator[tuple[bytes, int]]:
        """Yield the key and the permuted fingerprint of each table."""
        shift, width = self._prefix_shift, self.layout.key_bytes - 1
        for number, table in enumerate(self.layout.tables):
            permuted = table.permute(fingerprint)
            prefix = (permuted & table.prefix_mask) >> shift
            yield number.to_bytes(1, "big") + prefix.to_bytes(width, "big"), permuted


def _find(blob: bytes, value: int) -> tuple[int, bool]:
    """Return where in a bucket *value* stands or belongs, in bytes, and whether it is there."""
    values = np.frombuffer(blob, dtype=_VALUES)
    place = int(values.searchsorted(np.uint64(value)))
    return place * _VALUE_BYTES, place < len(values) and int(values[place]) == value


def _parts(buckets: Buckets) -> Iterator[Buckets]:
    """Cut a list of buckets into lists of about ``_LOOKUP_BYTES``."""
    size = sum([len(blob) for _, blob in buckets])
    step = max(1, len(buckets) * _LOOKUP_BYTES // max(1, size))
    for start in range(0, len(buckets), step):
        yield buckets[start : start + step]


def _joined_values(blobs: Iterable[bytes | memoryview]) -> U64:
    return np.frombuffer(b"".join(blobs), dtype=_VALUES)


def _sorted_once(values: U64) -> U64:
    """Sort, and keep one of equals. numpy.unique hashes since 2.3, and takes 50 times as long."""
    values = np.sort(values)
    is_new = np.ones(len(values), dtype=np.bool_)
    np.not_equal(values[1:], values[:-1], out=is_new[1:])
    return values[is_new]


def _whole_buckets(permuted: U64, prefix_mask: int) -> Iterator[slice]:
    """Cut sorted permuted fingerprints into slices of about ``_WRITE_CHUNK``, at bucket borders."""
    start = 0
    while start < len(permuted):
        stop = min(start + _WRITE_CHUNK, len(permuted))
        if stop < len(permuted):
            last = np.uint64(int(permuted[stop - 1]) | (1 << BITS) - 1 ^ prefix_mask)
            stop = int(np.searchsorted(permuted, last, side="right"))
        yield slice(start, stop)
        start = stop


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


def _slices(counts: Indices, most: int) -> Iterator[slice]:
    """Cut *counts* into slices that add to about *most*, and nowhere within a count."""
    ends = np.cumsum(counts)
    start = 0
    while start < len(counts):
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + most, side="right")))
        yield slice(start, stop)
        start = stop
