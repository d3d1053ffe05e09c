"""The pages of LMDB's data file, looked through before LMDB trusts them.

LMDB follows whatever a page says: one that is zeroed, swapped with another or filled with noise ends
the process, by an assertion or a signal that no ``except`` sees. So all that LMDB would follow is
followed here first, by plain reads: that every page is the one it should be, and of the kind it
should be; that what is said to be in it is in it; that no page is used twice, or used and free. What
keys and values mean is not looked at (``scrapy simdup doctor`` does).

Layout: mdb.c of LMDB 0.9 (data format 1) on little-endian machines of 64 bits.
"""

from __future__ import annotations

import struct
from typing import IO, NamedTuple

import numpy as np
import numpy.typing as npt

_BRANCH, _LEAF, _OVERFLOW, _LEAF2, _SUBPAGE = 0x01, 0x02, 0x04, 0x20, 0x40
_KIND = 0xFFFF - 0x10  # whether a page was dirty says nothing in a file
_BIG_DATA, _SUB_DATA, _DUP_DATA = 0x01, 0x02, 0x04
_DUPSORT = 0x04
_HEADER = 16
_NODE = 8
_TREE_BYTES = 48
_NO_PAGE = (1 << 64) - 1
_MAX_KEY = 511
_MAX_DEPTH = 32
_BATCH = 1024

# Page header; then magic, version, map address and size; two trees; last page, transaction.
_META = struct.Struct("<16xII8xQ48s48sQQ")
_TREE = struct.Struct("<IHHQQQQQ")

_FREE, _MAIN, _PLAIN, _SORTED, _VALUES = range(5)
"""Kinds of trees: of free pages; of databases; of single values; of several values a key; the values
of one key that are too many for its page."""

_FLAGS = {
    _FREE: (0, _BIG_DATA),
    _MAIN: (0, _BIG_DATA, _SUB_DATA),
    _PLAIN: (0, _BIG_DATA),
    _SORTED: (0, _DUP_DATA, _DUP_DATA | _SUB_DATA),
    _VALUES: (0,),
}
_ALLOWED = np.zeros((len(_FLAGS), 8), dtype=bool)
for _kind, _flags in _FLAGS.items():
    _ALLOWED[_kind, list(_flags)] = True

Integers = npt.NDArray[np.int64]
Pages = npt.NDArray[np.uint8]


class PageError(Exception):
    """A page is not what it should be; the message says which, and what is wrong with it."""


class BeyondEndError(PageError):
    """A page that is in use lies beyond the end of the file."""


class _Level(NamedTuple):
    """Pages to look at: their numbers, how many levels they and those below them have, and the
    kinds of their trees. int64[n] each.
    """

    page: Integers
    depth: Integers
    kind: Integers


class Inspection:
    """Looks through one snapshot of *file*, that of transaction *txn_id*."""

    def __init__(self, file: IO[bytes], txn_id: int) -> None:
        self._file = file
        head = self._bytes(0, _META.size)
        self.page_bytes = _TREE.unpack(_META.unpack(head)[3])[0]
        meta = _META.unpack(self._bytes((txn_id & 1) * self.page_bytes, _META.size))
        self.is_current = bool(meta[6] == txn_id)
        """False if newer transactions have overwritten what tells of this one."""
        self._roots = meta[3], meta[4]
        self._used = np.zeros(meta[5] + 1 if self.is_current else 0, dtype=bool)
        self._free: list[Integers] = []
        self._next: list[_Level] = []

    @property
    def pages(self) -> int:
        """How many pages the file has."""
        return len(self._used)

    def run(self, most: int | None = None) -> bool:
        """Look at all pages; of a file that has more than *most* leaves at that many of them.

        Whether all were looked at. Raises :class:`PageError`.
        """
        for kind, tree in zip((_FREE, _MAIN), self._roots, strict=True):
            _, depth, *_, root = _TREE.unpack(tree)[1:]
            self._add_tree(root, depth, kind)
        seen = 0
        while self._next:
            level = _Level(*map(np.concatenate, zip(*self._next, strict=True)))
            self._next = []
            self._use(level.page)
            level = _Level(*(column[np.argsort(level.page)] for column in level))
            for start in range(0, len(level.page), _BATCH):
                batch = _Level(*(column[start : start + _BATCH] for column in level))
                if most is not None and seen >= most:
                    batch = _Level(*(column[batch.depth > 1] for column in batch))
                seen += len(batch.page)
                self._look(batch)
        complete = most is None or seen < most
        if complete:
            self._check_free()
        return complete

    # ---- pages -----------------------------------------------------------------------------------

    def _look(self, level: _Level) -> None:
        """Check pages, note those below them, and the free pages that they list."""
        pages = self._read(level.page)
        words = pages.view("<u2").astype(np.int64)
        check = _Check(level.page, np.arange(len(pages)))
        check(pages.view("<u8")[:, 0] == level.page.astype(np.uint64), "is another page, or none")
        is_leaf = level.depth == 1
        flags = words[:, 5] & _KIND
        is_leaf2 = is_leaf & (level.kind == _VALUES) & (flags == _LEAF | _LEAF2)
        check((flags == np.where(is_leaf, _LEAF, _BRANCH)) | is_leaf2, "is of another kind")
        number, upper = _checked_bounds(check, words[:, 6], words[:, 7], self.page_bytes)
        check(number >= np.where(is_leaf | (level.kind == _FREE), 1, 2), "holds too little")
        fits = _HEADER + number * words[:, 4] <= self.page_bytes
        check(fits | ~is_leaf2, "holds more than it can")

        row, column = _spread(np.where(is_leaf2, 0, number))
        check = check.of(row)
        at = words[row, _HEADER // 2 + column]
        check(
            (at >= upper[row]) & (at + _NODE <= self.page_bytes) & (at % 2 == 0),
            "has an entry where there is none",
        )
        low, high, node_flags, key_bytes = (words[row, at // 2 + step] for step in range(4))
        size, body = low | high << 16, at + _NODE + key_bytes
        check((body <= self.page_bytes) & (key_bytes <= _MAX_KEY), "has a key that is too long")

        branch = ~is_leaf[row]
        below = (size | node_flags << 32)[branch]
        self._next.append(_Level(below, level.depth[row[branch]] - 1, level.kind[row[branch]]))
        leaf = is_leaf[row]
        self._look_at_values(
            pages,
            _Values(row[leaf], body[leaf], size[leaf], node_flags[leaf], level.kind[row[leaf]]),
            check.where(leaf),
        )

    def _look_at_values(self, pages: Pages, values: _Values, check: _Check) -> None:
        """Check the values of leaves; note the trees below them."""
        known = values.flags < _ALLOWED.shape[1]
        check(
            known & _ALLOWED[values.kind, values.flags % _ALLOWED.shape[1]],
            "has an entry of a kind that it cannot have",
        )
        is_big, is_tree = values.flags == _BIG_DATA, (values.flags & _SUB_DATA) > 0
        end = values.start + np.where(is_big, 8, values.size)
        check(end <= self.page_bytes, "has a value that is too long")
        check(~is_tree | (values.size == _TREE_BYTES), "has a tree that is none")
        _check_pages_within(pages, values, check.where(values.flags == _DUP_DATA))
        for row, start, _, flags, _ in zip(*values.where(is_tree), strict=True):
            sort, depth, *_, root = _unpacked_tree(pages[row, start : start + _TREE_BYTES])
            named = _SORTED if sort & _DUPSORT else _PLAIN
            self._add_tree(root, depth, _VALUES if flags & _DUP_DATA else named)
        big = values.where(is_big)
        first = pages[big.row[:, None], big.start[:, None] + np.arange(8)].view("<u8")[:, 0]
        first = first.astype(np.int64)
        self._look_at_large(first, big.size)
        large = iter(first)
        for row, start, size, flags, _ in zip(*values.where(values.kind == _FREE), strict=True):
            if flags == _BIG_DATA:
                listed = self._bytes(int(next(large)) * self.page_bytes + _HEADER, int(size))
            else:
                listed = pages[row, start : start + size].tobytes()
            self._note_free(listed)

    def _look_at_large(self, first: Integers, size: Integers) -> None:
        """Check values that have pages of their own."""
        number = (_HEADER - 1 + size) // self.page_bytes + 1
        row, step = _spread(number)
        self._use(first[row] + step)
        order = np.argsort(first)
        first, number = first[order], number[order]
        for start in range(0, len(first), _BATCH):
            some = slice(start, start + _BATCH)
            heads = self._read(first[some])
            check = _Check(first[some], np.arange(len(heads)))
            check(heads.view("<u8")[:, 0] == first[some].astype(np.uint64), "is another page")
            check(heads.view("<u2")[:, 5] & _KIND == _OVERFLOW, "is of another kind")
            check(heads.view("<u4")[:, 3] == number[some], "has another length")

    # ---- trees and pages that are free ----------------------------------------------------------

    def _add_tree(self, root: int, depth: int, kind: int) -> None:
        if root == _NO_PAGE:
            return
        if not 1 <= depth <= _MAX_DEPTH:
            raise PageError(f"the tree at page {root} has {depth} levels")
        self._next.append(
            _Level(*(np.array([min(value, 1 << 62)]) for value in (root, depth, kind)))
        )

    def _use(self, pages: Integers) -> None:
        """Note that pages are used, each once."""
        for bad in pages[(pages < 2) | (pages >= len(self._used))][:1]:
            raise PageError(f"page {bad} is referred to, of {len(self._used)}")
        order = np.sort(pages)
        for bad in (*order[1:][order[1:] == order[:-1]], *pages[self._used[pages]])[:1]:
            raise PageError(f"page {bad} is used twice")
        self._used[pages] = True

    def _note_free(self, listed: bytes) -> None:
        numbers = np.frombuffer(listed[: len(listed) // 8 * 8], dtype="<u8").astype(np.int64)
        if not len(numbers) or not 0 <= numbers[0] < len(numbers):
            raise PageError("the list of free pages is damaged")
        self._free.append(numbers[1 : numbers[0] + 1])

    def _check_free(self) -> None:
        if self._free:
            try:
                self._use(np.concatenate(self._free))
            except PageError as error:
                raise PageError(f"{error}; or it is listed as free") from None

    # ---- reading ---------------------------------------------------------------------------------

    def _read(self, numbers: Integers) -> Pages:
        """Pages, given in ascending order: uint8[n, page_bytes]."""
        pages = np.empty((len(numbers), self.page_bytes), dtype=np.uint8)
        borders = np.flatnonzero(np.diff(numbers) != 1) + 1
        for start, end in zip((0, *borders), (*borders, len(numbers)), strict=True):
            if start < end:
                self._file.seek(int(numbers[start]) * self.page_bytes)
                if self._file.readinto(pages[start:end]) < (end - start) * self.page_bytes:  # type: ignore[attr-defined]
                    raise BeyondEndError(
                        f"data.mdb ends before page {numbers[end - 1]} of {len(self._used)}"
                    )
        return pages

    def _bytes(self, start: int, number: int) -> bytes:
        self._file.seek(start)
        found = self._file.read(number)
        if len(found) < number:
            raise BeyondEndError(f"data.mdb ends before byte {start + number}")
        return found


class _Values(NamedTuple):
    """Values on leaves: rows of their pages, first bytes, sizes, flags, kinds of trees: int64[n]."""

    row: Integers
    start: Integers
    size: Integers
    flags: Integers
    kind: Integers

    def where(self, chosen: npt.NDArray[np.bool_]) -> _Values:
        return _Values(*(column[chosen] for column in self))


class _Check(NamedTuple):
    """Complains of the first page of which something is not so.

    *row* says to which page what is checked belongs.
    """

    pages: Integers
    row: Integers

    def __call__(self, good: npt.NDArray[np.bool_], what: str) -> None:
        if not good.all():
            raise PageError(f"page {self.pages[self.row[~good][0]]} {what}")

    def of(self, row: Integers) -> _Check:
        return self._replace(row=row)

    def where(self, chosen: npt.NDArray[np.bool_]) -> _Check:
        return self._replace(row=self.row[chosen])


def _checked_bounds(
    check: _Check, lower: Integers, upper: Integers, size: int | Integers
) -> tuple[Integers, Integers]:
    """How many entries pages have that are filled from both ends, and where the upper part begins."""
    good = (lower >= _HEADER) & (lower <= upper) & (upper <= size) & (lower % 2 == 0)
    check(good, "holds more than it can")
    return (lower - _HEADER) // 2, upper


def _check_pages_within(pages: Pages, values: _Values, check: _Check) -> None:
    """Check the pages that are values: they hold the values of one key, sorted."""
    row, start, size, *_ = values.where(values.flags == _DUP_DATA)

    def word(at: Integers, row: Integers = row) -> Integers:
        return pages[row, at] | pages[row, at + 1].astype(np.int64) << 8

    check(size >= _HEADER, "has values that are none")
    flags = word(start + 10) & _KIND
    is_leaf2 = flags == _LEAF | _SUBPAGE | _LEAF2
    check(is_leaf2 | (flags == _LEAF | _SUBPAGE), "has values of another kind")
    number, upper = _checked_bounds(check, word(start + 12), word(start + 14), size)
    check(number >= 1, "has no values")
    check((_HEADER + number * word(start + 8) <= size) | ~is_leaf2, "has too many values")
    inner, column = _spread(np.where(is_leaf2, 0, number))
    check = check.of(check.row[inner])
    row, start, size = row[inner], start[inner], size[inner]
    at = word(start + _HEADER + 2 * column, row)
    check((at >= upper[inner]) & (at + _NODE <= size), "has a value where there is none")
    check(at + _NODE + word(start + at + 6, row) <= size, "has a value that is too long")


def _spread(number: Integers) -> tuple[Integers, Integers]:
    """For *number* things in each row: the row of each thing, and its place there, from 0."""
    row = np.repeat(np.arange(len(number)), number)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(number) - number, number)


def _unpacked_tree(raw: Pages) -> tuple[int, ...]:
    """Flags, levels, …, root."""
    return _TREE.unpack(raw.tobytes())[1:]
