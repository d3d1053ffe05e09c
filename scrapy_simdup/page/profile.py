"""What is kept of a page to compare it by: its views, and what it says it is.

A *view* is one reading of a page: `main`, the text that the extractor found; `prose`, what is shown
outside of navigation and links. The two wobble on different pages, so a page is recognised by
either, and the other is asked whether it agrees (`comparison`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
import numpy.typing as npt

from scrapy_simdup.page.features import compact, token_hashes
from scrapy_simdup.page.sketch import distinct

if TYPE_CHECKING:
    from collections.abc import Sequence

MAIN = "main"
PROSE = "prose"
VIEWS = (MAIN, PROSE)

MAX_BLOCKS = 128
"""So many blocks of a page are remembered: those with the smallest hashes, so that pages with a
block in common remember the same ones."""
MAX_NUMBERS = 64
"""So many distinct numbers of a page are remembered, chosen in the same way."""

MIN_APART = 8
"""Fewer links, or shingles of texts apart, would be no evidence."""
MAX_IMAGES = 16
MAX_EMBEDS = 8
"""So many names of images and embeds, chosen in the same way."""

_PACKED = np.dtype("<u4")


class View(msgspec.Struct, frozen=True, array_like=True):
    """One reading of a page: name, 64-bit simhash, 256-byte sketch, numbers of tokens and of
    distinct shingles of 8 units, and a digest of its blocks in whatever order.
    """

    name: str
    simhash: int
    sketch: bytes
    tokens: int
    shingles: int
    digest: bytes


class Profile(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A page, as it is compared.

    `views` in the order of `VIEWS`; `visible` is the 64-byte sketch of all that the page shows or
    carries, `visible_shingles` the number of its shingles, `visible_blocks` a sketch of the same
    length whose shingles do not reach over the ends of blocks, so that their order is no matter,
    `block_shingles` the number of these; b"" and 0 where that is not known (plain text, an
    extractor of the user's own). `title` and `headings` (all `<h1>`) have at most 300 characters.
    `blocks` and `numbers` are the ascending hashes of the blocks of all views, and of the distinct
    tokens with digits; `embeds` and `images` those of the names of what the page embeds. `links` is
    the 64-byte sketch of the names of what it links to, `link_count` their number; `apart` that of
    its texts that stand apart from its views, `apart_shingles` the number of their shingles. Fewer
    than `MIN_APART` of either are not remembered. `japanese` says how its Han characters were cut.
    """

    views: tuple[View, ...]
    visible: bytes = b""
    visible_shingles: int = 0
    visible_blocks: bytes = b""
    block_shingles: int = 0
    title: str | None = None
    headings: tuple[str, ...] = ()
    blocks: bytes = b""
    numbers: bytes = b""
    embeds: bytes = b""
    images: bytes = b""
    links: bytes = b""
    link_count: int = 0
    apart: bytes = b""
    apart_shingles: int = 0
    japanese: bool = False

    def view(self, name: str) -> View | None:
        return next((view for view in self.views if view.name == name), None)


def upper_half(hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32]:
    """The upper 32 bits of 64-bit hashes, in their order."""
    return (hashes >> np.uint64(32)).astype(np.uint32)


def block_hashes(blocks: Sequence[str], seed: int = 0) -> npt.NDArray[np.uint32]:
    """32-bit hashes of normalised blocks without their white space, keyed by *seed*: uint32[n]."""
    return upper_half(token_hashes([compact(block) for block in blocks], seed))


def pack(hashes: npt.NDArray[np.uint32], limit: int) -> bytes:
    """The `limit` smallest of the distinct hashes, ascending, as little-endian bytes."""
    return distinct(hashes)[:limit].astype(_PACKED).tobytes()


def unpack(packed: bytes) -> npt.NDArray[np.uint32]:
    """The hashes that `pack` has made bytes of, as uint32[n]."""
    return np.frombuffer(packed, dtype=_PACKED).astype(np.uint32)


def own_hashes(
    a: bytes, b: bytes, limit: int
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], int]:
    """The hashes that only *a* has, those that only *b* has, and how many both have.

    As far as is known: *limit* is that of `pack`, and beyond it nothing is.
    """
    mine, theirs = unpack(a), unpack(b)
    if limit in (len(mine), len(theirs)):  # larger ones are not remembered
        known = min(hashes[-1] for hashes in (mine, theirs) if len(hashes) == limit)
        mine, theirs = mine[mine <= known], theirs[theirs <= known]
    both = is_among(mine, theirs)
    return mine[~both], theirs[~is_among(theirs, mine)], int(both.sum())


def is_among(
    hashes: npt.NDArray[np.uint32], ordered: npt.NDArray[np.uint32]
) -> npt.NDArray[np.bool_]:
    """Which of uint32[n] are among *ordered*, ascending: bool[n].

    As `np.isin`, which takes ten times as long for arrays as short as a profile's.
    """
    if not len(ordered):
        return np.zeros(len(hashes), dtype=np.bool_)
    places = np.searchsorted(ordered, hashes)
    places[places == len(ordered)] = 0
    found: npt.NDArray[np.bool_] = ordered[places] == hashes
    return found
