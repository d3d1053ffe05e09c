"""The permuted tables alone, on disk: a set of fingerprints that is searched by Hamming distance.

For users who have fingerprints already, from this package or from elsewhere. Pages, records and
verdicts are not known here.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from scrapy_simdup.errors import StoreError
from scrapy_simdup.store.environment import Environment
from scrapy_simdup.store.layouts import CurrentTables, relayout
from scrapy_simdup.store.permuted import Pairs, PermutedTables
from scrapy_simdup.store.planner import Plan, outgrown, plan
from scrapy_simdup.store.tables import (
    MAX_PROBES,
    U64,
    Layout,
    check_distance,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping

    import lmdb
    from typing_extensions import Self

T = TypeVar("T")

_KIND = "fingerprints"


class Match(NamedTuple):
    """A stored fingerprint and its Hamming distance, in bits, from the query."""

    fingerprint: int
    distance: int


class FingerprintIndex:
    """A set of 64-bit fingerprints in folder *path*; ``path=None`` keeps nothing.

    Every stored fingerprint within *max_distance* bits (0 to 16) of a query is found, none beyond.
    *expected* fingerprints decide the layout of the tables (:func:`scrapy_simdup.store.planner.plan`)
    when the index is made; later it is as it is, until :meth:`relayout`, and any other *max_distance*
    that it can serve with ``MAX_PROBES`` probes a lookup may be asked of it. *map_size*: bytes of address space.

    Every ``add``, ``add_many`` and ``remove`` is one durable transaction: all of it or nothing.
    Several processes may use an index at the same time; use it as a context manager, or close it.

    Raises ``ValueError`` for a distance or size out of range, :class:`StoreError` for a folder that
    cannot be used and, from every method, after :meth:`close`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        max_distance: int = 3,
        expected: int = 1_000_000,
        map_size: int | None = None,
    ) -> None:
        self.max_distance = check_distance(max_distance)
        planned = plan(self.max_distance, expected).layout
        self._closed = False
        self._env = Environment.open(path, kind=_KIND, map_size=map_size)
        try:
            self._env.database("tables")
            # What it was made with; if it is being made now, *planned*.
            self._env.complete_header(layout=planned.to_dict())
            self._tables = CurrentTables(self._permuted_tables)
            self._env.read(self._tables.of)
        except BaseException:
            self._env.close()
            raise

    @property
    def _db(self) -> Any:
        return self._env.database("tables")

    def _permuted_tables(self, header: Mapping[str, Any]) -> PermutedTables:
        layout = Layout.from_dict(header["layout"])
        probes = sum(layout.probe_counts(self.max_distance))
        if probes > MAX_PROBES:
            raise StoreError(
                f"this index has {layout.describe()}; max_distance {self.max_distance} would "
                f"take {probes:,} probes a lookup, more than {MAX_PROBES:,}. Open it with a smaller "
                "max_distance, and rebuild it for the larger one in another folder: "
                "new.add_many(old.fingerprints())"
            )
        return PermutedTables(layout, self.max_distance)

    @property
    def layout(self) -> Layout:
        """The layout of the tables, which :meth:`relayout` may change."""
        return self._read(lambda txn: self._tables.of(txn).layout)

    def outgrown(self) -> Plan | None:
        """Return the plan of a layout that halves the time of a page, None if there is none."""
        return self._read(
            lambda txn: outgrown(
                self._tables.of(txn).layout,
                self.max_distance,
                self._tables.of(txn).count(txn, self._db),
            )
        )

    def relayout(
        self, expected: int | None = None, on_progress: Callable[[int, int], object] | None = None
    ) -> None:
        """Lay the tables out anew for *expected* fingerprints, by default for those stored.

        One transaction, written in bulk: afterwards, or killed at any moment, the index is whole.
        Other processes may go on using it. *on_progress(done, total)*, in entries of tables, must
        not use the index. The file grows by the size of the new tables.
        """
        planned = plan(self.max_distance, expected or max(1, len(self)))
        relayout(
            self._env,
            self._db,
            planned.layout,
            lambda txn: self._tables.of(txn).fingerprints(txn, self._db),
            on_progress,
        )

    def add(self, fingerprint: int) -> None:
        """Store one fingerprint; nothing changes if it is stored already."""
        value = np.array([_fingerprint(fingerprint)], dtype=np.uint64)
        self._write(lambda txn: self._tables.of(txn).add(txn, self._db, value))

    def add_many(self, fingerprints: npt.ArrayLike | Iterable[int]) -> None:
        """Store an integer array [n] or integers; sorted and written in one transaction."""
        values = _fingerprints(fingerprints)
        self._write(lambda txn: self._tables.of(txn).add(txn, self._db, values))

    def remove(self, fingerprint: int) -> bool:
        """Forget one fingerprint; False if it was not stored."""
        value = _fingerprint(fingerprint)
        return self._write(lambda txn: self._tables.of(txn).remove(txn, self._db, value))

    def query(self, fingerprint: int) -> list[Match]:
        """Return all stored fingerprints within ``max_distance``, nearest first, then smallest."""
        value = _fingerprint(fingerprint)
        found = self._read(lambda txn: self._tables.of(txn).query(txn, self._db, value))
        return [Match(fingerprint, distance) for distance, fingerprint in found]

    def query_many(self, fingerprints: npt.ArrayLike | Iterable[int]) -> Pairs:
        """Look up an integer array [n] or integers.

        Returns three arrays of the same length: row of the query, stored fingerprint, distance;
        ordered by row, distance, fingerprint.
        """
        values = _fingerprints(fingerprints)
        return self._read(lambda txn: self._tables.of(txn).query_many(txn, self._db, values))

    def fingerprints(self) -> U64:
        """Return all stored fingerprints, uint64[n], in no particular order."""
        return self._read(lambda txn: self._tables.of(txn).fingerprints(txn, self._db))

    def __len__(self) -> int:
        return self._read(lambda txn: self._tables.of(txn).count(txn, self._db))

    def __contains__(self, fingerprint: int) -> bool:
        value = _fingerprint(fingerprint)
        return self._read(lambda txn: self._tables.of(txn).contains(txn, self._db, value))

    def __bool__(self) -> bool:
        return True  # an empty index is an index

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the files back. May be called again."""
        if not self._closed:
            self._closed = True
            self._env.close()

    def _read(self, job: Callable[[lmdb.Transaction], T]) -> T:
        self._check_open()
        return self._env.read(job)

    def _write(self, job: Callable[[lmdb.Transaction], T]) -> T:
        self._check_open()
        return self._env.write(job)

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("this FingerprintIndex is closed; open it again")


def _fingerprint(value: Any) -> int:
    """Return *value* as an int of 64 bits; ``TypeError`` or ``ValueError`` naming it."""
    try:
        if isinstance(value, (bool, np.ndarray)):
            raise TypeError  # both have an index, and neither is meant as a fingerprint
        fingerprint = operator.index(value)
    except TypeError:
        raise TypeError(
            f"fingerprint {value!r} is a {type(value).__name__}; an integer is needed"
        ) from None
    if not 0 <= fingerprint < 1 << 64:
        raise ValueError(
            f"fingerprint {fingerprint} is not an unsigned 64-bit integer, 0 to 2**64 - 1"
        )
    return fingerprint


def _fingerprints(values: Any) -> U64:
    """Return *values* as uint64[n]; ``TypeError`` or ``ValueError`` naming what does not fit."""
    if not isinstance(values, np.ndarray):
        if isinstance(values, (str, bytes, bytearray)) or not hasattr(values, "__iter__"):
            raise TypeError(f"fingerprints {values!r}: an array or integers are needed")
        # Not numpy.asarray: it would turn large integers among small ones into floats.
        return np.array([_fingerprint(value) for value in values], dtype=np.uint64)
    if values.ndim != 1:
        raise ValueError(f"fingerprints have shape {values.shape}; one dimension is needed")
    if values.dtype.kind == "O":
        return np.array([_fingerprint(value) for value in values], dtype=np.uint64)
    if values.dtype.kind not in "ui":
        example = f" (the first is {values[0]!r})" if len(values) else ""
        raise TypeError(
            f"fingerprints have dtype {values.dtype}{example}; uint64 is needed, as other types "
            "do not hold 64 bits exactly"
        )
    if values.dtype.kind == "i" and len(values) and values.min() < 0:
        row = int(np.flatnonzero(values < 0)[0])
        raise ValueError(
            f"fingerprint {values[row]} at row {row} is negative; if these are 64 bits read as "
            "signed, pass values.view(numpy.uint64)"
        )
    return np.ascontiguousarray(values, dtype=np.uint64)
