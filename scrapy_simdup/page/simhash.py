"""Weighted features → 64 bits, and the Hamming distance between two such fingerprints.

What a feature is, and how it is weighted, is decided in `features`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

BITS = 64
RULES = "1"
"""Changes whenever `simhash` gives other bits for the same features."""

_SCALE = 1 << 16
# Sums of integers below 2**53 are exact in float64, in whatever order BLAS adds them.
_EXACT = float(1 << 53)


def simhash(hashes: npt.NDArray[np.uint64], weights: npt.NDArray[np.float64]) -> int:
    """The simhash of weighted features (Charikar 2002; Manku, Jain and Das Sarma 2007, section 2).

    `hashes` is uint64[n], one 64-bit hash a feature, and `weights` float64[n]. Bit i of the result
    is 1 where the weights of the features whose hash has bit i outweigh those of the others; a tie
    gives 0. Bit 0 is the least significant one.

    Weights are rounded to 1/65536, so that every sum is exact: neither the order of the features
    nor the platform's way of adding floats can turn a bit.

    Raises ValueError without features ("no features" is a state, not a fingerprint), when the two
    arrays differ in length, and when the weights are not finite or sum up to 2**37 or more.
    """
    if len(hashes) == 0:
        raise ValueError("simhash needs at least one feature")
    if len(hashes) != len(weights):
        raise ValueError(f"{len(hashes)} hashes but {len(weights)} weights")
    scaled = np.rint(np.asarray(weights, dtype=np.float64) * _SCALE)
    total = float(np.abs(scaled).sum())
    if not total < _EXACT:  # also true of NaN
        raise ValueError(f"weights must be finite and sum up to less than 2**37, got {weights!r}")
    octets = hashes.astype(">u8").view(np.uint8).reshape(-1, 8)
    bits = np.unpackbits(octets, axis=1)  # uint8[n, 64], most significant bit first
    ones = scaled @ bits.astype(np.float64)
    return int.from_bytes(np.packbits(2.0 * ones > scaled.sum()).tobytes(), "big")


def hamming(a: int, b: int) -> int:
    """In how many bits two fingerprints differ."""
    return (a ^ b).bit_count()


def hamming_many(fingerprints: npt.NDArray[np.uint64], query: int) -> npt.NDArray[np.uint8]:
    """The Hamming distances of uint64[n] fingerprints to `query`, as uint8[n]."""
    distances: npt.NDArray[np.uint8] = np.bitwise_count(fingerprints ^ np.uint64(query))
    return distances
