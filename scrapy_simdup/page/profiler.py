"""`Content` → `Profile`: the texts of a page become what it is compared by."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from scrapy_simdup.page import features, sketch
from scrapy_simdup.page.fingerprint import blocks_digest
from scrapy_simdup.page.profile import (
    MAIN,
    MAX_BLOCKS,
    MAX_EMBEDS,
    MAX_IMAGES,
    MAX_NUMBERS,
    MIN_APART,
    PROSE,
    Profile,
    View,
    block_hashes,
    pack,
    unpack,
    upper_half,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from scrapy_simdup.page.content import Content
    from scrapy_simdup.page.fingerprint import Fingerprint, Fingerprinter
    from scrapy_simdup.page.resources import Resources

RULES = "3"
"""Changes whenever the same content gives another profile."""

_SLICE = 10_000
_SPACE, _ZERO = b" 0"
# A word with a digit, in whatever script; Han and kana run on without spaces and are no part of it.
# The look-behind keeps it from being tried over one long word again and again.
_LETTER = r"[^\W\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]"
_DIGIT = re.compile(r"\d")
_NUMBER = re.compile(rf"(?<!{_LETTER}){_LETTER}*?\d{_LETTER}*")


@dataclass(frozen=True, slots=True, eq=False)
class Composition:
    """What a view consists of: the hashes of its blocks, uint32[n], their characters, int64[n], and
    the hashes of its tokens and of its units in order, uint64[m] each.
    """

    hashes: npt.NDArray[np.uint32]
    characters: npt.NDArray[np.int64]
    tokens: npt.NDArray[np.uint64]
    units: npt.NDArray[np.uint64]

    def shingles(self) -> npt.NDArray[np.uint64]:
        """The hashes of its distinct shingles, ascending."""
        return sketch.shingle_hashes(self.units)


@dataclass(frozen=True, slots=True)
class Portrait:
    """A page before it is judged: its profile, and what only the page at hand needs to have.

    `own_blocks`, uint32[n], are the hashes of its blocks, title, headings, images and embeds: what
    its host's memory is told of it. `seed` keyed its hashes.
    """

    profile: Profile
    composition: Mapping[str, Composition]
    own_blocks: npt.NDArray[np.uint32]
    seed: int


class Unfit(Exception):
    """A page has no view that could be judged. The argument is why, for the main text if it has one."""


class Profiler:
    """Makes profiles with one `Fingerprinter`, and of the views in `views`."""

    def __init__(self, fingerprinter: Fingerprinter, views: Sequence[str]) -> None:
        self._fingerprinter = fingerprinter
        self._views = views

    @property
    def identity(self) -> dict[str, str]:
        """All that decides which profile a content has."""
        return {
            **self._fingerprinter.identity,
            "profile": RULES,
            "views": "+".join(self._views),
        }

    def portrait(self, content: Content) -> Portrait:
        """Make the profile of a page. Raises Unfit."""
        readings, visible, apart = self._read(content)
        japanese = features.is_japanese([*chain(*readings.values()), *visible, *apart])
        units = self._units((*readings.values(), visible, apart), japanese=japanese)
        tokens = self._tokens(readings.values(), units, japanese=japanese)
        views, composition, unfit = self._fit(readings, tokens, units)
        if not views:
            raise Unfit(content.no_main or (unfit[0] if unfit else "no_text"))
        shingles, inside = self._shingles(visible, units)
        profile = Profile(
            views=tuple(views),
            visible=sketch.sketch(shingles, bins=sketch.COARSE_BINS) if len(shingles) else b"",
            visible_shingles=len(shingles),
            visible_blocks=sketch.sketch(inside, bins=sketch.COARSE_BINS) if visible else b"",
            block_shingles=len(inside),
            title=content.title,
            headings=content.headings,
            blocks=pack(np.concatenate([part.hashes for part in composition.values()]), MAX_BLOCKS),
            numbers=self._numbers(readings.values()),
            japanese=japanese,
            **self._beside(content.resources, apart, units),
        )
        seed = self._fingerprinter.seed
        return Portrait(profile, composition, _own_blocks(profile, seed), seed)

    def _read(self, content: Content) -> tuple[dict[str, list[str]], list[str], list[str]]:
        """The normalised blocks of the views, of all that is shown, and of texts apart.

        They have most of their blocks in common, so each is normalised once. Blocks of which nothing
        is left go.
        """
        sources = {
            name: texts
            for name, texts in ((MAIN, content.main), (PROSE, content.prose))
            if name in self._views and texts
        }
        around = (content.visible, content.resources.apart) if PROSE in self._views else ((), ())
        distinct = list(dict.fromkeys(chain(*sources.values(), *around)))
        normalised = dict(zip(distinct, features.normalise_each(distinct), strict=True))

        def read(texts: Iterable[str]) -> list[str]:
            return [block for text in texts if (block := normalised[text])]

        visible, apart = map(read, around)
        return {name: read(texts) for name, texts in sources.items()}, visible, apart

    def _fit(
        self,
        readings: Mapping[str, list[str]],
        tokens: Mapping[str, npt.NDArray[np.uint64]],
        units: Mapping[str, npt.NDArray[np.uint64]],
    ) -> tuple[list[View], dict[str, Composition], list[str]]:
        """The readings that a page can be judged by, what they consist of, and why others cannot."""
        views: list[View] = []
        composition = {}
        unfit: list[str] = []
        hashes, characters = self._blocks(readings.values())
        for name, blocks in readings.items():
            own = _in_order(blocks, tokens), _in_order(blocks, units)
            fingerprint = self._fingerprinter.fingerprint_hashes(*own)
            if why := self._unfit(fingerprint, blocks):
                unfit.append(why)
                continue
            assert fingerprint is not None
            views.append(
                View(
                    name=name,
                    simhash=fingerprint.simhash,
                    sketch=fingerprint.sketch,
                    tokens=fingerprint.tokens,
                    shingles=fingerprint.shingles,
                    digest=blocks_digest(blocks, self._fingerprinter.seed),
                )
            )
            composition[name] = Composition(
                np.array([hashes[block] for block in blocks], dtype=np.uint32),
                np.array([characters[block] for block in blocks], dtype=np.int64),
                *own,
            )
        return views, composition, unfit

    def _blocks(self, readings: Iterable[Sequence[str]]) -> tuple[dict[str, int], dict[str, int]]:
        """The hash of every distinct block, and its number of characters."""
        distinct = list(dict.fromkeys(chain.from_iterable(readings)))
        hashes = block_hashes(distinct, self._fingerprinter.seed).tolist()
        characters = [len(block) - block.count(" ") for block in distinct]
        return (
            dict(zip(distinct, hashes, strict=True)),
            dict(zip(distinct, characters, strict=True)),
        )

    def _units(
        self, readings: Iterable[Sequence[str]], *, japanese: bool
    ) -> dict[str, npt.NDArray[np.uint64]]:
        """The unit hashes of every distinct block: the views have most of them in common."""
        distinct = list(dict.fromkeys(chain.from_iterable(readings)))
        units = self._fingerprinter.unit_hashes(distinct, japanese=japanese)
        return dict(zip(distinct, units, strict=True))

    def _tokens(
        self,
        readings: Iterable[Sequence[str]],
        units: Mapping[str, npt.NDArray[np.uint64]],
        *,
        japanese: bool,
    ) -> dict[str, npt.NDArray[np.uint64]]:
        """The same of tokens: only views have a simhash, so only their blocks are cut into words."""
        distinct = list(dict.fromkeys(chain.from_iterable(readings)))
        tokens = self._fingerprinter.token_hashes(
            distinct, [units[block] for block in distinct], japanese=japanese
        )
        return dict(zip(distinct, tokens, strict=True))

    def _unfit(self, fingerprint: Fingerprint | None, blocks: Sequence[str]) -> str | None:
        why: str | None = self._fingerprinter.state(fingerprint)
        if why is None and not features.is_readable("\n".join(blocks)):
            return "unreadable"
        return why

    def weighted_tokens(self, texts: Sequence[str]) -> dict[str, float]:
        """The distinct tokens of a text, given as its blocks, with their weights in its simhash."""
        return self._fingerprinter.weighted_tokens("\n".join(texts))

    def shingles(self, texts: Sequence[str], *, japanese: bool) -> npt.NDArray[np.uint64]:
        """The hashes of the distinct shingles of a text, given as its blocks: uint64[n], ascending.

        *japanese* is that of the page's profile.
        """
        blocks = features.normalise_blocks(texts)
        return sketch.shingle_hashes(_in_order(blocks, self._units([blocks], japanese=japanese)))

    def _shingles(
        self, blocks: Sequence[str], units: Mapping[str, npt.NDArray[np.uint64]]
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
        """The hashes of the distinct shingles of a text, and of those inside of its blocks, of which
        a short one is one of its own.
        """
        parts = [units[block] for block in blocks]
        shingles, inside = sketch.shingle_hashes_both(parts)
        size = sketch.SHINGLE_SIZE
        short = [block for block, part in zip(blocks, parts, strict=True) if 0 < len(part) < size]
        own = features.token_hashes(short, self._fingerprinter.seed)
        return shingles, sketch.distinct(np.concatenate((inside, own)))

    def _beside(
        self,
        resources: Resources,
        apart: Sequence[str],
        units: Mapping[str, npt.NDArray[np.uint64]],
    ) -> dict[str, Any]:
        """What is kept of the resources of a page. Texts apart that are short have no shingles."""
        if PROSE not in self._views:
            return {}
        shingles = sketch.shingle_hashes_inside([units[text] for text in dict.fromkeys(apart)])
        embeds, images, links = (
            features.token_hashes(list(names), self._fingerprinter.seed)
            for names in (resources.embeds, resources.images, resources.links)
        )
        return {
            "embeds": pack(upper_half(embeds), MAX_EMBEDS),
            "images": pack(upper_half(images), MAX_IMAGES),
            **_sketched("links", "link_count", links),
            **_sketched("apart", "apart_shingles", shingles),
        }

    def _numbers(self, readings: Iterable[Sequence[str]]) -> bytes:
        blocks = [
            block for block in dict.fromkeys(chain.from_iterable(readings)) if _DIGIT.search(block)
        ]
        found = {
            number.lstrip("0")  # 02.09. is 2.9.
            for text in _slices(blocks)
            for number in _NUMBER.findall(_with_digits(text))
        }
        hashes = features.token_hashes(list(found), self._fingerprinter.seed)
        return pack(upper_half(hashes), MAX_NUMBERS)


def _slices(blocks: Iterable[str]) -> Iterator[str]:
    """The text of blocks, in pieces: each search holds the interpreter's lock."""
    short: list[str] = []
    length = 0
    for block in blocks:
        if length + len(block) > _SLICE and short:
            yield "\n".join(short)
            short, length = [], 0
        if len(block) > _SLICE:
            yield from (block[start : start + _SLICE] for start in range(0, len(block), _SLICE))
        else:
            short.append(block)
            length += len(block)
    yield "\n".join(short)


def _with_digits(text: str) -> str:
    """What of a text, between white space, may hold digits: has one of ASCII, or a letter beyond."""
    data = text.encode("utf-8", "surrogatepass")
    octets = np.frombuffer(data, dtype=np.uint8)
    gaps = np.flatnonzero(octets <= _SPACE)
    some = np.searchsorted(gaps, np.flatnonzero((octets - _ZERO < 10) | (octets >= 128)))
    edges = np.concatenate(([-1], gaps, [len(data)]))
    kept = some[sketch.first_of_each(some)]
    pieces = zip((edges[kept] + 1).tolist(), edges[kept + 1].tolist(), strict=True)
    return b" ".join([data[start:end] for start, end in pieces]).decode("utf-8", "surrogatepass")


def portrait_of(profile: Profile, seed: int) -> Portrait:
    """The portrait of a page of which only the profile is left: what it consists of is not known.

    So shingles are not counted out, and a text that is mostly boilerplate is not seen to be so.
    """
    return Portrait(profile, {}, _own_blocks(profile, seed), seed)


def _own_blocks(profile: Profile, seed: int) -> npt.NDArray[np.uint32]:
    names = features.normalise_blocks((profile.title or "", *profile.headings))
    packed = map(unpack, (profile.blocks, profile.embeds, profile.images))
    return np.concatenate((*packed, block_hashes(names, seed)))


def _sketched(name: str, count: str, hashes: npt.NDArray[np.uint64]) -> dict[str, Any]:
    """A coarse sketch of distinct hashes and their number, as fields of a profile."""
    if len(hashes) < MIN_APART:
        return {}
    return {name: sketch.sketch(hashes, bins=sketch.COARSE_BINS), count: len(hashes)}


def _in_order(
    blocks: Sequence[str], hashes: Mapping[str, npt.NDArray[np.uint64]]
) -> npt.NDArray[np.uint64]:
    """The hashes of a text, given as its blocks and the hashes of each."""
    if not blocks:
        return np.empty(0, dtype=np.uint64)
    return np.concatenate([hashes[block] for block in blocks])
