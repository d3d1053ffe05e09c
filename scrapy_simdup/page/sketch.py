"""Shingles → a 256-byte sketch, and the resemblance of two texts estimated from their sketches.

A shingle is a run of 8 consecutive tokens, of those that `features.Tokenizer` calls units; the
resemblance of two texts is the Jaccard coefficient of their sets of shingles (Broder 1997). The
simhash proposes candidates, this verifies them.

**Sketch.** One-permutation hashing (Li, Owen and Zhang 2012): the upper 9 bits of a shingle's
64-bit hash put it into one of 512 bins, and the smallest hash of each bin stands for the bin. Of
that only a 4-bit value is kept (as in b-bit minwise hashing, Li and König 2010): 0 for an empty
bin, else 1 … 15.

**Estimator.** Let N be the number of bins that are not empty in both sketches, E the number filled
in both, M the number that hold the same value in both. The smallest hash of a bin in the *union*
of the two sets is a uniformly drawn shingle of it, and lies in both sets with probability J; so
with T bins whose smallest shingle is the same, T/N is an unbiased estimate of J. Two different
shingles get the same value with probability 1/15, so E[M] = T + (E - T)/15, and

    T = (15 M - E) / 14        J ≈ T / N, clipped to 0 … 1.

**Standard error.** With p = J + (1 - J)/15 the chance that a filled bin agrees,
sqrt(p (1 - p) / N) · 15/14: at most 0.024 with all 512 bins filled, 0.020 at J = 0.75, 0.008 at
J = 0.97. N grows with the text: about 512 (1 - exp(-n/512)) bins for n shingles in the union. A
text of far fewer than 512 shingles is sketched nearly completely, and then the error is smaller.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

Integers = TypeVar("Integers", np.uint32, np.uint64)

SHINGLE_SIZE = 8
BINS = 512
COARSE_BINS = 128
"""Bins of the 64-byte sketch that is kept of all a page shows: enough to say whether two pages look
alike, with a standard error of 0.05."""
RULES = "1"
"""Changes whenever the same tokens give another sketch."""

_VALUES = 15
_ODD = 0x9E3779B97F4A7C15
_SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)
_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)

# How many of a byte's two bins are filled.
_FILLED = np.array([(octet >> 4 > 0) + (octet & 15 > 0) for octet in range(256)], dtype=np.uint8)


def shingle_hashes(
    token_hashes: npt.NDArray[np.uint64], size: int = SHINGLE_SIZE
) -> npt.NDArray[np.uint64]:
    """The hashes of the distinct shingles of `size` tokens, ascending: uint64[n] → uint64[m].

    `token_hashes` is one hash a token, in the order of the text; their order within a shingle
    matters. Fewer than `size` tokens are one shingle, no tokens none. Raises ValueError for a
    size below 1.
    """
    if size < 1:
        raise ValueError(f"a shingle has at least 1 token, got size {size}")
    count = len(token_hashes)
    if count == 0:
        return np.empty(0, dtype=np.uint64)
    mixed = _windows(token_hashes, min(size, count))
    return distinct(mixed)


def shingle_hashes_inside(
    parts: Sequence[npt.NDArray[np.uint64]], size: int = SHINGLE_SIZE
) -> npt.NDArray[np.uint64]:
    """The hashes of the distinct shingles of all parts, none of which reaches over the end of one.

    uint64[n] each → uint64[m], ascending; the same as `shingle_hashes` of every part that has at
    least `size` token hashes, in one go.
    """
    return distinct(_shingles_of_parts(parts, size)[1])


def shingle_hashes_both(
    parts: Sequence[npt.NDArray[np.uint64]], size: int = SHINGLE_SIZE
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Those of the text of all parts, as `shingle_hashes`, and those inside of parts: in one go."""
    both, inside = _shingles_of_parts(parts, size)
    return distinct(both), distinct(inside)


def _shingles_of_parts(
    parts: Sequence[npt.NDArray[np.uint64]], size: int
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """The hashes of all shingles of a text, and of those that lie within one of its parts."""
    none = np.empty(0, dtype=np.uint64)
    tokens = np.concatenate(parts) if parts else none
    if len(tokens) < size:
        return (_windows(tokens, len(tokens)) if len(tokens) else none), none
    mixed = _windows(tokens, size)
    lengths = np.fromiter(map(len, parts), dtype=np.intp, count=len(parts))
    part_of = np.repeat(np.arange(len(parts)), lengths)
    return mixed, mixed[part_of[: len(mixed)] == part_of[size - 1 :]]


def _windows(token_hashes: npt.NDArray[np.uint64], size: int) -> npt.NDArray[np.uint64]:
    """The hash of every run of `size` tokens, in order.

    It is a polynomial in `_ODD`, for a run of 2n tokens made of those for its two halves.
    """
    runs, length = token_hashes, 1
    for bit in f"{size:b}"[1:]:
        runs = runs[:-length] * _power(length) + runs[length:]
        length *= 2
        if bit == "1":
            runs = runs[:-1] * _power(1) + token_hashes[length:]
            length += 1
    mixed = runs + np.uint64(size * int(_power(size)) % 2**64)
    _finalise(mixed)
    return mixed


@functools.cache
def _power(exponent: int) -> np.uint64:
    return np.uint64(pow(_ODD, exponent, 2**64))


def _finalise(hashes: npt.NDArray[np.uint64]) -> None:
    """The finaliser of splitmix64 (Steele, Lea and Flood 2014), in place.

    The polynomial above leaves the low bits of neighbouring shingles related.
    """
    shifted = hashes >> _SHIFTS[0]
    hashes ^= shifted
    hashes *= _FACTORS[0]
    hashes ^= np.right_shift(hashes, _SHIFTS[1], out=shifted)
    hashes *= _FACTORS[1]
    hashes ^= np.right_shift(hashes, _SHIFTS[2], out=shifted)


def distinct(values: npt.NDArray[Integers]) -> npt.NDArray[Integers]:
    """The distinct ones of some integers, ascending: [n] → [m].

    Several times as fast as `np.unique`, which looks them up in a hash table.
    """
    ordered = np.sort(values)
    return ordered[first_of_each(ordered)]


def first_of_each(ordered: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Where a new value starts in an ordered array."""
    first = np.empty(len(ordered), dtype=np.bool_)
    first[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return first


def sketch(shingle_hashes: npt.NDArray[np.uint64], bins: int = BINS) -> bytes:
    """The sketch of a set of shingles, given as well-mixed uint64[m] hashes in any order.

    `bins` is a power of 2, at least 2. Two bins a byte, so 256 bytes for 512: bin 2i in the upper
    half of byte i, bin 2i + 1 in the lower.
    """
    ordered = shingle_hashes
    if (ordered[1:] < ordered[:-1]).any():
        ordered = np.sort(ordered)
    shift = np.uint64(65 - bins.bit_length())
    smallest = ordered[first_of_each(ordered >> shift)]
    values = np.zeros(bins, dtype=np.uint8)
    # The smallest hash of a bin is small in its upper bits; its remainder is still uniform.
    values[(smallest >> shift).astype(np.intp)] = smallest % np.uint64(_VALUES) + np.uint64(1)
    return (values[0::2] << 4 | values[1::2]).tobytes()


def resemblance(a: bytes, b: bytes) -> float:
    """The estimated resemblance of two sketched texts, 0 … 1; 1.0 for equal sketches.

    0.0 when both are sketches of nothing: that is no evidence that two texts are alike. Raises
    ValueError unless both have the same number of bytes, at least one.
    """
    if not a or len(a) != len(b):
        raise ValueError(f"sketches of different sizes: {len(a)} and {len(b)} bytes")
    # As `resemblance_many`, in whole numbers: for a single pair calls of numpy take fifteen times as
    # long as the work.
    own, other = int.from_bytes(a, "big"), int.from_bytes(b, "big")
    ones = int.from_bytes(b"\x11" * len(a), "big")
    filled_in_either = _count_filled_bins(own | other, ones)
    filled_in_both = (
        _count_filled_bins(own, ones) + _count_filled_bins(other, ones) - filled_in_either
    )
    same = filled_in_either - _count_filled_bins(own ^ other, ones)
    true = (_VALUES * same - filled_in_both) / (_VALUES - 1)
    return min(1.0, max(0.0, true / max(filled_in_either, 1)))


def resemblance_many(a: bytes, others: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    """The estimated resemblance of one sketch to each row of uint8[n, bytes], as float64[n].

    Raises ValueError unless `a` has as many bytes as `others` has columns, at least one.
    """
    if not a or others.ndim != 2 or others.shape[1] != len(a):
        raise ValueError(
            f"sketches of different sizes: {len(a)} bytes and an array of {others.shape}"
        )
    own = np.frombuffer(a, dtype=np.uint8)
    filled_in_either = _count_filled(own | others)
    different = _count_filled(own ^ others)
    filled_in_both = _count_filled(own) + _count_filled(others) - filled_in_either
    same = filled_in_either - different
    true = (_VALUES * same - filled_in_both) / (_VALUES - 1)
    estimate = true / np.maximum(filled_in_either, 1)
    clipped: npt.NDArray[np.float64] = np.clip(estimate, 0.0, 1.0)
    return clipped


def _count_filled_bins(sketch: int, ones: int) -> int:
    """How many of the 4-bit digits of a number are not 0; *ones* has a 1 in each."""
    sketch |= sketch >> 2
    return ((sketch | sketch >> 1) & ones).bit_count()


def _count_filled(sketches: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    counted: npt.NDArray[np.int64] = _FILLED[sketches].sum(axis=-1, dtype=np.int64)
    return counted


def containment(resemblance: float, shingles_a: int, shingles_b: int) -> float:
    """Which share of the smaller text's shingles the larger one contains, 0 … 1.

    From J = i / (a + b - i) follows i = J (a + b) / (1 + J), and containment = i / min(a, b)
    (Broder 1997). `shingles_a` and `shingles_b` are the numbers of distinct shingles; 0.0 when one
    of them is 0.
    """
    smaller = min(shingles_a, shingles_b)
    if smaller <= 0:
        return 0.0
    shared = resemblance * (shingles_a + shingles_b) / (1.0 + resemblance)
    return min(1.0, shared / smaller)
