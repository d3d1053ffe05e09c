"""Permuted tables as arithmetic: how fingerprints are cut, permuted and probed.

Nothing here touches a store. A :class:`Layout` is plain data; :mod:`scrapy_simdup.store.permuted`
keeps its tables in LMDB.

Source: Manku, Jain, Das Sarma, *Detecting Near-Duplicates for Web Crawling*, WWW 2007, section 3.
A fingerprint is cut into r blocks; a table for every choice of c blocks brings those to the front
and is looked up by them. With at most k = r - c differing bits, c blocks are untouched, so one
table has the wanted fingerprint under the query's own prefix. The rest can be cut again (nested).

Multi-probe: with more differing bits than that, some prefix differs in a few bits only, so probing
the prefixes with a few bits flipped finds the fingerprint as well. How far each table must be
probed is uneven: with 4 blocks and k = 8, if the first block differs in 3 bits or more, one of
the others differs in at most 1, so one table is probed at radius 2 and three at radius 1 (Norouzi,
Punjani, Fleet, *Fast Search in Hamming Space with Multi-Index Hashing*, CVPR 2012, section 3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: uint64 array of fingerprints or permuted fingerprints.
U64: TypeAlias = npt.NDArray[np.uint64]
#: Array of indices.
Indices: TypeAlias = npt.NDArray[np.intp]

BITS = 64
#: The largest Hamming distance that a layout is planned for.
MAX_DISTANCE = 16
#: The largest number of keys a lookup may probe, some 10 ms of work.
MAX_PROBES = 10_000

_ALL = (1 << BITS) - 1
#: Uneven radii are searched for while there are at most so many ways to spread k bits over blocks.
_MAX_SPREADS = 5_000


@dataclass(frozen=True)
class Table:
    """One permutation of the 64 bits.

    ``pieces`` are pairs (rotation to the right, mask): the permuted fingerprint is the OR of all
    ``rotate_right(fingerprint, rotation) & mask``. Its top ``prefix_bits`` bits are the prefix.
    """

    prefix_bits: int
    pieces: tuple[tuple[int, int], ...]

    @property
    def prefix_mask(self) -> int:
        """The prefix bits set, all others clear."""
        return _ALL ^ (_ALL >> self.prefix_bits)

    def permute(self, fingerprint: int) -> int:
        """Return *fingerprint* with its bits in this table's order."""
        twice = fingerprint << BITS | fingerprint
        permuted = 0
        for rotation, mask in self.pieces:
            permuted |= twice >> rotation & mask
        return permuted

    def restore(self, permuted: int) -> int:
        """Return the fingerprint of *permuted*, the inverse of :meth:`permute`."""
        fingerprint = 0
        for rotation, mask in self.pieces:
            value = permuted & mask
            fingerprint |= (value << BITS | value) >> (BITS - rotation)
        return fingerprint & _ALL

    def permute_many(self, fingerprints: U64) -> U64:
        """uint64[n] -> uint64[n], the same in this table's order."""
        permuted = np.zeros(len(fingerprints), dtype=np.uint64)
        for rotation, mask in self.pieces:
            permuted |= _rotate_right(fingerprints, rotation) & np.uint64(mask)
        return permuted

    def restore_many(self, permuted: U64) -> U64:
        """uint64[n] -> uint64[n], the inverse of :meth:`permute_many`."""
        fingerprints = np.zeros(len(permuted), dtype=np.uint64)
        for rotation, mask in self.pieces:
            fingerprints |= _rotate_right(permuted & np.uint64(mask), BITS - rotation)
        return fingerprints


@dataclass(frozen=True)
class Layout:
    """A set of tables: ``levels`` are pairs (r blocks, choose c), the second within the rest.

    ``Layout(((4, 1),))`` is 4 tables with prefixes of 16 bits; ``Layout(((4, 1), (4, 1)))`` the
    paper's 16 tables with prefixes of 16 + 12 bits. Raises ``ValueError`` if it cannot be built.
    """

    levels: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        rest, tables = BITS, 1
        for blocks, chosen in self.levels:
            if not 1 <= chosen < blocks <= rest:
                raise ValueError(
                    f"layout level {blocks} choose {chosen}: choose at least 1 of more blocks, "
                    f"and no more blocks than the {rest} bits there are"
                )
            tables *= math.comb(blocks, chosen)
            rest -= sum(_block_sizes(rest, blocks)[:chosen])
        if not 1 <= tables <= 256 or not self.levels:
            raise ValueError(f"layout {self.name!r} has {tables} tables, allowed are 2 to 256")

    @property
    def name(self) -> str:
        """Compact form, for people and options: ``"4c1"``, ``"6c3"``, ``"4c1/4c1"``."""
        return "/".join(f"{blocks}c{chosen}" for blocks, chosen in self.levels)

    @classmethod
    def parse(cls, name: str) -> Layout:
        """Return the layout with this :attr:`name`; ``ValueError`` if it is none."""
        try:
            levels = tuple(
                (int(blocks), int(chosen))
                for blocks, chosen in (level.split("c") for level in name.split("/"))
            )
        except ValueError:
            raise ValueError(f"layout {name!r}: expected a name like '4c1' or '4c1/4c1'") from None
        return cls(levels)

    def to_dict(self) -> dict[str, list[list[int]]]:
        """Return the layout as JSON-able data, for a store's header."""
        return {"levels": [list(level) for level in self.levels]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Layout:
        """Return the layout of a header; ``ValueError`` if it is none."""
        try:
            levels = tuple((int(blocks), int(chosen)) for blocks, chosen in data["levels"])
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"{data!r} is no layout; expected {{'levels': [[4, 1]]}}") from None
        return cls(levels)

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        return tuple(
            Table(len(prefix), _pieces(prefix + rest))
            for prefix, rest in _bit_orders(tuple(range(BITS)), self.levels)
        )

    @cached_property
    def key_bytes(self) -> int:
        """Length of every key: the table's number and the longest prefix, in whole bytes."""
        return 1 + (max(table.prefix_bits for table in self.tables) + 7) // 8

    @cached_property
    def prefix_masks(self) -> U64:
        """uint64[t]: the prefix bits of each table."""
        return np.array([table.prefix_mask for table in self.tables], dtype=np.uint64)

    def permute_one(self, fingerprint: int) -> list[int]:
        """Return *fingerprint* with its bits in the order of each table."""
        twice = fingerprint << BITS | fingerprint
        orders = []
        for pieces in self._pieces:
            permuted = 0
            for rotation, mask in pieces:
                permuted |= twice >> rotation & mask
            orders.append(permuted)
        return orders

    def permute(self, fingerprints: U64) -> U64:
        """uint64[n] -> uint64[t, n]: row i is in the bit order of table i."""
        return np.stack([table.permute_many(fingerprints) for table in self.tables])

    def restore(self, numbers: Indices, permuted: U64) -> U64:
        """intp[n] table numbers, uint64[n] permuted fingerprints -> uint64[n] fingerprints."""
        fingerprints = np.zeros(len(permuted), dtype=np.uint64)
        for rotations, masks in self._piece_arrays:
            values, rotation = permuted & masks[numbers], rotations[numbers]
            # Shifted by 64 bits, numpy's integers are 0.
            fingerprints |= values << rotation | values >> (np.uint64(BITS) - rotation)
        return fingerprints

    @cached_property
    def _pieces(self) -> list[tuple[tuple[int, int], ...]]:
        return [table.pieces for table in self.tables]

    @cached_property
    def _piece_arrays(self) -> list[tuple[U64, U64]]:
        """Rotations and masks, uint64[t] each, of the first pieces, the second pieces and so on."""
        most = max(len(table.pieces) for table in self.tables)
        padded = [(*table.pieces, *[(0, 0)] * most)[:most] for table in self.tables]
        return [
            (
                np.array([pieces[place][0] for pieces in padded], dtype=np.uint64),
                np.array([pieces[place][1] for pieces in padded], dtype=np.uint64),
            )
            for place in range(most)
        ]

    def keys(self, numbers: Indices, permuted: U64) -> list[bytes]:
        """intp[n] table numbers, uint64[n] permuted fingerprints -> n keys of ``key_bytes`` bytes.

        Table number, then the prefix, big-endian and left-aligned, so that the order of the bytes
        is the order of the numbers.
        """
        width = self.key_bytes
        rows = np.empty((len(permuted), width), dtype=np.uint8)
        rows[:, 0] = numbers
        prefixes = (permuted & self.prefix_masks[numbers]).astype(">u8")
        rows[:, 1:] = prefixes.view(np.uint8).reshape(-1, 8)[:, : width - 1]
        keys: list[bytes] = rows.view(f"V{width}").ravel().tolist()
        return keys

    def flips(self, k: int) -> int:
        """Return how many bits of a prefix may differ in the best table, at distance *k* or less.

        Worst case: the differing bits are spread evenly, and c blocks with the fewest of them are
        the prefix. ``Layout(((4, 1),))``: 0 up to k = 3, 1 up to 7, 2 up to 11.
        """
        flips, rest = 0, k
        for blocks, chosen in self.levels:
            here = _even_share(blocks, chosen, rest)
            # d + flips(rest - d) grows with d: the worst case below is the worst case here.
            flips, rest = flips + here, rest - here
        return flips

    def probe_counts(self, k: int) -> tuple[int, ...]:
        """Return for each table the number of keys to probe at distance *k*."""
        return tuple(
            sum(math.prod(map(math.comb, table.widths, weights)) for weights in table.flips)
            for table in _probe_patterns(self.levels, BITS, k)
        )

    def probes(self, k: int) -> tuple[Indices, U64]:
        """Return all probes at distance *k*: intp[m] table numbers, uint64[m] bits to flip.

        The flips are in the table's bit order and within its prefix. Every fingerprint within *k*
        of the query has, in one of these tables, the query's prefix with these bits flipped.
        """
        tables: list[int] = []
        flips: list[int] = []
        for number, table in enumerate(_probe_patterns(self.levels, BITS, k)):
            for weights in table.flips:
                masks = list(_masks(table.widths, weights))
                tables += [number] * len(masks)
                flips += masks
        return np.array(tables, dtype=np.intp), np.array(flips, dtype=np.uint64)

    def candidates(self, k: int, fingerprints: int) -> float:
        """Return how many of so many *random* fingerprints a lookup compares, on average."""
        return sum(
            fingerprints * count / 2.0**table.prefix_bits
            for table, count in zip(self.tables, self.probe_counts(k), strict=True)
        )

    def describe(self) -> str:
        """Return the layout in words: ``"4 tables of 16 bits (4 blocks choose 1)"``."""
        widths = sorted({table.prefix_bits for table in self.tables})
        bits = f"{widths[0]}" if len(widths) == 1 else f"{widths[0]}-{widths[-1]}"
        cut = ", the rest in ".join(f"{r} blocks choose {c}" for r, c in self.levels)
        return f"{len(self.tables)} tables of {bits} bits ({cut})"


# ---------------------------------------------------------------------------- cutting, permuting


def _block_sizes(bits: int, blocks: int) -> list[int]:
    """Sizes of *blocks* blocks of *bits* bits, as equal as possible, larger ones first."""
    size, larger = divmod(bits, blocks)
    return [size + (number < larger) for number in range(blocks)]


def _bit_orders(
    bits: tuple[int, ...], levels: tuple[tuple[int, int], ...]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield (prefix, rest) of every table; *bits* are bit numbers, 0 the most significant.

    The rest goes on after the last chosen block and round: choosing one block is a rotation.
    """
    if not levels:
        yield (), bits
        return
    (blocks, chosen), below = levels[0], levels[1:]
    cut: list[tuple[int, ...]] = []
    start = 0
    for size in _block_sizes(len(bits), blocks):
        cut.append(bits[start : start + size])
        start += size
    for choice in combinations(range(blocks), chosen):
        front = tuple(bit for block in choice for bit in cut[block])
        after = [*range(choice[-1] + 1, blocks), *range(choice[-1])]
        others = tuple(bit for block in after if block not in choice for bit in cut[block])
        for prefix, rest in _bit_orders(others, below):
            yield front + prefix, rest


def _pieces(order: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Turn an order of 64 bit numbers into (rotation to the right, mask) pairs."""
    masks: dict[int, int] = {}
    for place, bit in enumerate(order):
        rotation = (place - bit) % BITS
        masks[rotation] = masks.get(rotation, 0) | 1 << (BITS - 1 - place)
    return tuple(masks.items())


def _rotate_right(values: U64, rotation: int) -> U64:
    if rotation % BITS == 0:
        return values
    return values >> np.uint64(rotation) | values << np.uint64(BITS - rotation)


# ---------------------------------------------------------------------------- probing


@dataclass(frozen=True)
class _Pattern:
    """What to probe in one table: prefix bits per level, and the numbers of bits to flip there."""

    widths: tuple[int, ...]
    flips: tuple[tuple[int, ...], ...]


def _even_share(blocks: int, chosen: int, k: int) -> int:
    """Return the largest possible sum of the *chosen* smallest of *blocks* numbers that add to *k*.

    It is reached by the even spread.
    """
    share, larger = divmod(k, blocks)
    return chosen * share + max(0, larger - (blocks - chosen))


@lru_cache(maxsize=256)
def _radii(blocks: int, chosen: int, k: int) -> tuple[int, ...]:
    """Return for each choice of blocks how many flipped bits to probe, -1 for none at all.

    Enough that however *k* bits or fewer are spread over the blocks, some choice has no more than
    its radius. Starts from the same radius everywhere and takes away what is not needed, from the
    last choice to the first. Fewer bits never need more, so spreads of exactly *k* suffice.
    """
    if chosen == 1:
        # Not covered only if every block has radius + 1 bits, together more than k.
        share, larger = divmod(k, blocks)
        return tuple(share if number <= larger else share - 1 for number in range(blocks))
    choices = list(combinations(range(blocks), chosen))
    radii = np.full(len(choices), _even_share(blocks, chosen, k))
    if math.comb(k + blocks - 1, blocks - 1) > _MAX_SPREADS:
        return tuple(radii.tolist())
    spreads = np.array(list(_spreads(k, blocks)))
    sums = np.stack([spreads[:, choice].sum(axis=1) for choice in choices], axis=1)
    lowered = True
    while lowered:
        lowered = False
        for number in reversed(range(len(choices))):
            radii[number] -= 1
            if radii[number] >= -1 and (sums <= radii).any(axis=1).all():
                lowered = True
            else:
                radii[number] += 1
    return tuple(radii.tolist())


def _spreads(k: int, blocks: int) -> Iterator[tuple[int, ...]]:
    """Yield every tuple of *blocks* numbers >= 0 that add to *k*."""
    for bars in combinations(range(k + blocks - 1), blocks - 1):
        edges = (-1, *bars, k + blocks - 1)
        yield tuple(edges[i + 1] - edges[i] - 1 for i in range(blocks))


def _probe_patterns(levels: tuple[tuple[int, int], ...], bits: int, k: int) -> list[_Pattern]:
    """Return the pattern of each table, in the tables' order.

    w bits flipped at one level leave k - w for the levels below, which are cut from the rest.
    """
    if not levels:
        return [_Pattern((), ((),))]
    (blocks, chosen), below = levels[0], levels[1:]
    sizes = _block_sizes(bits, blocks)
    patterns: list[_Pattern] = []
    for choice, radius in zip(
        combinations(range(blocks), chosen), _radii(blocks, chosen, k), strict=True
    ):
        width = sum(sizes[block] for block in choice)
        weights = range(min(radius, width) + 1)
        inner = [_probe_patterns(below, bits - width, k - weight) for weight in weights]
        for number, table in enumerate(_probe_patterns(below, bits - width, 0)):
            flips = tuple(
                (weight, *more) for weight in weights for more in inner[weight][number].flips
            )
            patterns.append(_Pattern((width, *table.widths), flips))
    return patterns


def _masks(widths: tuple[int, ...], weights: tuple[int, ...]) -> Iterator[int]:
    """Yield every 64-bit mask with weights[i] of the widths[i] bits of level i set, from the top."""
    starts = [sum(widths[:level]) for level in range(len(widths))]
    for picks in product(
        *(
            combinations(range(start, start + width), weight)
            for start, width, weight in zip(starts, widths, weights, strict=True)
        )
    ):
        yield sum(1 << (BITS - 1 - place) for pick in picks for place in pick)


def check_distance(k: int) -> int:
    """Return *k*; ``ValueError`` unless it is an integer from 0 to ``MAX_DISTANCE``."""
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 0 <= k <= MAX_DISTANCE:
        raise ValueError(f"max_distance is {k!r}; allowed is an integer from 0 to {MAX_DISTANCE}")
    return int(k)
