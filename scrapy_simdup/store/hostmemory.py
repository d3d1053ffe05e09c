"""The blocks that recur on a host: how many of its pages had them, in bounded memory.

Frequent items after Misra and Gries, *Finding Repeated Elements* (Science of Computer Programming
2, 1982), for a page of blocks at once as in Agarwal et al., *Mergeable Summaries* (PODS 2012,
section 2). Where the memory is kept is not known here.

Guarantee. Let a host have shown `n` blocks in all (each once a page), and one of them on `f` pages.
Its count is never more than `f`, and less than min(`f`, `MAX_COUNT`) by at most
`n` / (`MAX_COUNTERS` + 1): whatever is subtracted, is subtracted from at least so many counters at
once, and there is no more than `n` to subtract. With 40 blocks a page that is 4 % of the pages: a
block on a larger share of them is counted, a rarer one may be forgotten again and again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from scrapy_simdup.page.sketch import distinct

if TYPE_CHECKING:
    from typing_extensions import Self

MAX_COUNTERS = 1024
"""So many blocks of a host are counted: 6 kB."""
MAX_COUNT = 0xFFFF
"""Counts stop here."""

_HASH = np.dtype("<u4")
_COUNT = np.dtype("<u2")
_COUNTER_BYTES = _HASH.itemsize + _COUNT.itemsize


class HostMemory:
    """Counters of 32-bit hashes. Packed: all hashes, ascending, then their counts; 6 bytes each,
    little-endian.
    """

    __slots__ = ("_counts", "_hashes")

    def __init__(self) -> None:
        self._hashes: npt.NDArray[np.uint32] = np.empty(0, dtype=_HASH)
        self._counts: npt.NDArray[np.uint16] = np.empty(0, dtype=_COUNT)

    @classmethod
    def decode(cls, packed: bytes) -> Self:
        """Unpack what `encode` has returned; ValueError if these bytes cannot be that."""
        counters, rest = divmod(len(packed), _COUNTER_BYTES)
        if rest:
            raise ValueError(f"{len(packed)} bytes are not counters of {_COUNTER_BYTES} bytes")
        self = cls()
        self._hashes = np.frombuffer(packed, dtype=_HASH, count=counters)
        self._counts = np.frombuffer(packed, dtype=_COUNT, offset=counters * _HASH.itemsize)
        if not (self._hashes[1:] > self._hashes[:-1]).all():
            raise ValueError("its hashes are not in ascending order")
        if not self._counts.all():
            raise ValueError("a counter is zero")
        return self

    @classmethod
    def can_read(cls, packed: bytes) -> bool:
        """Whether :meth:`decode` can read it."""
        try:
            cls.decode(packed)
        except ValueError:
            return False
        return True

    def encode(self) -> bytes:
        return self._hashes.tobytes() + self._counts.tobytes()

    def __len__(self) -> int:
        """The number of counters."""
        return len(self._hashes)

    def count(self, hashes: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint16]:
        """On how many pages each of uint32[n] was, at least, as uint16[n]; 0 where not known."""
        places, known = self._find(hashes)
        counts = np.zeros(len(hashes), dtype=_COUNT)
        counts[known] = self._counts[places[known]]
        return counts

    def learn(self, hashes: npt.NDArray[np.uint32], limit: int = MAX_COUNTERS) -> None:
        """Count the distinct ones of uint32[n] for one more page.

        Where that makes more than *limit* counters, the smallest number that brings them down to it
        is subtracted from all, and those at zero are dropped.
        """
        hashes = distinct(hashes)
        places, known = self._find(hashes)
        counts, seen = self._counts.copy(), places[known]
        counts[seen] += counts[seen] < MAX_COUNT
        new = hashes[~known]
        merged = np.concatenate((self._hashes, new))
        order = np.argsort(merged)  # several times as fast as `np.insert`
        self._hashes = merged[order]
        self._counts = np.concatenate((counts, np.ones(len(new), dtype=_COUNT)))[order]
        excess = len(self._counts) - limit
        if excess > 0:
            subtracted = np.partition(self._counts, excess - 1)[excess - 1]
            left = self._counts > subtracted
            self._hashes = self._hashes[left]
            self._counts = self._counts[left] - subtracted

    def _find(
        self, hashes: npt.NDArray[np.uint32]
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
        """Where each hash is or would be inserted, and whether it is there."""
        places = np.searchsorted(self._hashes, hashes)
        known = places < len(self._hashes)
        known[known] = self._hashes[places[known]] == hashes[known]
        return places, known
