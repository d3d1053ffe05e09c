"""Boilerplate: what two texts share because many pages of their host have it.

Legal texts, menus that look like prose, long introductions: they may be most of a text, and make
two of them resemble each other. What a host's pages have in common its memory knows, block by
block; so this is asked of blocks, and in numbers of tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from scrapy_simdup.page.profile import MAX_BLOCKS, is_among, unpack

if TYPE_CHECKING:
    from scrapy_simdup.page.measure import Comparison
    from scrapy_simdup.page.profile import Profile
    from scrapy_simdup.page.profiler import Composition, Portrait

Hashes: TypeAlias = npt.NDArray[np.uint32]
Mask: TypeAlias = npt.NDArray[np.bool_]
Common: TypeAlias = Callable[[Hashes], Mask]
"""Which blocks, given by their hashes, recur on the host."""


def is_boilerplate(
    a: Portrait, b: Profile, name: str, measured: Comparison, *, common: Common, share: float
) -> bool:
    """Whether what two views share is mostly the host's own, and what is theirs differs.

    At least *share* of it is. Of two estimates of what they share of their own, one from sketches
    and one from blocks, the larger counts; of those of what differs the smaller. So a page with one
    corrected paragraph is no victim.
    """
    mine, theirs = a.profile.view(name), b.view(name)
    assert mine is not None
    assert theirs is not None
    composition, remembered = a.composition.get(name), unpack(b.blocks)
    if composition is None or not len(composition.hashes) or not len(remembered):
        return False
    recurs = common(np.concatenate((composition.hashes, remembered)))
    here, there = recurs[: len(composition.hashes)], recurs[len(composition.hashes) :]
    if not here.any():
        return False
    tokens = mine.tokens + theirs.tokens
    alike = measured.resemblance or 0.0
    shared = alike / (1.0 + alike) * tokens
    split = _split(composition, here, remembered, mine.tokens)
    same = max(shared - split.common, split.shared)
    other = min(
        tokens / 2 - shared,
        split.other,
        _not_here(remembered, there, unpack(a.profile.blocks), theirs.tokens),
    )
    return split.common >= share * shared and other >= 1 and same < other


class _Split(NamedTuple):
    """A text's tokens: of boilerplate on both pages, of its own on both, of its own only here."""

    common: float
    shared: float
    other: float


def _split(composition: Composition, recurs: Mask, theirs: Hashes, tokens: int) -> _Split:
    """Split the text at hand by its blocks, given those that are remembered of the other page."""
    sampled = np.ones(len(composition.hashes), dtype=np.bool_)
    if len(theirs) == MAX_BLOCKS:  # larger hashes of theirs are not remembered
        sampled = composition.hashes <= theirs[-1]
    weight = composition.characters * sampled
    total = float(weight.sum())
    if not total:
        return _Split(0.0, 0.0, 0.0)
    in_both = is_among(composition.hashes, theirs)
    scale = tokens / total
    return _Split(
        common=float((weight * (in_both & recurs)).sum()) * scale,
        shared=float((weight * (in_both & ~recurs)).sum()) * scale,
        other=float((weight * (~in_both & ~recurs)).sum()) * scale,
    )


def _not_here(theirs: Hashes, recurs: Mask, mine: Hashes, tokens: int) -> float:
    """The other text's tokens of its own that are not on the page at hand.

    How long its blocks are is not remembered, so all count as equally long.
    """
    if len(mine) == MAX_BLOCKS:
        known = theirs <= mine[-1]
        theirs, recurs = theirs[known], recurs[known]
    if not len(theirs):
        return 0.0
    return float(np.mean(~is_among(theirs, mine) & ~recurs)) * tokens
