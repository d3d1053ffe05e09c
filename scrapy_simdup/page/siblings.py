"""Siblings: pages of one template that differ in little more than what they are about.

Two offers of a shop are alike in everything but name and number; so are two versions of one page,
which are duplicates. Titles, headings and numbers tell them apart.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from scrapy_simdup.page.features import normalise, token_hashes
from scrapy_simdup.page.profile import (
    MAIN,
    MAX_EMBEDS,
    MAX_IMAGES,
    MAX_NUMBERS,
    PROSE,
    block_hashes,
    is_among,
    own_hashes,
    upper_half,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from scrapy_simdup.page.boilerplate import Common
    from scrapy_simdup.page.profile import Profile
    from scrapy_simdup.page.profiler import Portrait
    from scrapy_simdup.page.thresholds import Thresholds

Words: TypeAlias = "Counter[str]"

_WORD = re.compile(r"\w+")
_DIGIT = re.compile(r"\d")
# A word with a digit and a dot after it, or after a digit and a dot.
# With \w*\d\w* an endless number takes quadratic time.
_DOTTED = re.compile(r"\b(?:(?<=\d\.)\w+|(?=[^\W\d]*\d)\w+(?=\.(?:\w|\s|$)))")


class Siblings:
    """Of two pages, the names and numbers."""

    def __init__(
        self,
        a: Portrait,
        b: Profile,
        *,
        same_site: bool,
        common: Common | None,
        thresholds: Thresholds,
    ) -> None:
        self._a, self._b = a.profile, b
        self._seed = a.seed
        self._same_site = same_site
        self._common = common
        self._limits = thresholds

    def differ_in_name_and_number(self) -> bool:
        """Whether two pages of a template are two offers, not one.

        Versions of one page differ in the numbers of their titles, too, but hardly in those of
        their texts; so where names are the same, most numbers have to be others. So they have on
        two sites, which may well give one story two headlines. Numbers of versions and chapters
        have a dot, though; "flat 7" and "flat 12" are two offers, even if all other numbers are
        those of the house, as long as one is not; but the next page of a list is another number and
        nothing else. On one site, an image or an embed is as good as a number.
        """
        if not self._differences:
            return False
        a, b = self._a, self._b
        mine, theirs, both = own_hashes(a.numbers, b.numbers, MAX_NUMBERS)
        own = min(len(mine), len(theirs))
        if self._same_site and (self._names_differ or self._differ_in_plain_numbers):
            if not self._names_differ:
                named = np.sort(self._numbers_of_names())
                own = min((~is_among(hashes, named)).sum() for hashes in (mine, theirs))
            return bool(
                own >= 1
                or self._each_has(a.embeds, b.embeds, MAX_EMBEDS)
                or self._each_has(a.images, b.images, MAX_IMAGES)
            )
        return own >= 2 and both < self._limits.same_numbers * (both + len(mine) + len(theirs))

    def text_lacks_the_name(self, name: str) -> bool:
        """Whether a text is the same only because it misses what the pages are about.

        Then they have other headings, and more to say than this view has of it. Where the headings
        differ in numbers only, what more they say must be there to see.
        """
        if not self._same_site or len(self._differences) < 2:
            return False
        other = PROSE if name == MAIN else MAIN
        a, b = self._a.view(other), self._b.view(other)
        if a is None or b is None:
            return self._names_differ
        return a.digest != b.digest

    @cached_property
    def _differences(self) -> list[tuple[Words, Words]]:
        """The words that only one of the pages has, in the titles and, if both have some, in the
        headings; empty unless each side has a word of its own in all of them.

        How often a word occurs counts: "4 x 50 mm, 50 pieces" is not "4 x 30 mm, 50 pieces". A
        heading that many pages of the host share names the site, not the page.
        """
        if self._a.title == self._b.title:  # most often
            return []
        pairs = [(_words(self._a.title), _words(self._b.title))]
        mine, theirs = self._own_headings(self._a), self._own_headings(self._b)
        if mine and theirs:
            pairs.append((mine, theirs))
        elif not self._same_site:  # titles of two sites differ in the sites' names
            return []
        differences = [(one - other, other - one) for one, other in pairs]
        return differences if all(one and other for one, other in differences) else []

    def _own_headings(self, page: Profile) -> Words:
        headings = page.headings
        if self._common is not None and headings:
            known = self._common(block_hashes([*map(normalise, headings)], self._seed))
            headings = tuple(h for h, common in zip(headings, known, strict=True) if not common)
        return _words(" ".join(headings))

    @cached_property
    def _names_differ(self) -> bool:
        """Whether the pages call themselves by other words, not only by other numbers."""
        differences = self._differences
        return bool(differences) and all(
            _has_word(one) and _has_word(other) for one, other in differences
        )

    @property
    def _differ_in_plain_numbers(self) -> bool:
        """Whether titles and headings differ, and in no number with a dot, such as 9.6 and 36.54."""
        return len(self._differences) == 2 and all(
            self._dotted.isdisjoint(words) for words in chain.from_iterable(self._differences)
        )

    def _numbers_of_names(self) -> npt.NDArray[np.uint32]:
        """The hashes of the numbers in which the names differ, as those of a profile are."""
        words = {word.lstrip("0") for pair in self._differences for words in pair for word in words}
        return upper_half(token_hashes(sorted(words), self._seed))

    @cached_property
    def _dotted(self) -> set[str]:
        names = (self._a.title, self._b.title, *self._a.headings, *self._b.headings)
        return {word for name in names for word in _DOTTED.findall(_plain(name))}

    def _each_has(self, a: bytes, b: bytes, limit: int) -> bool:
        """Whether each page has an image or embed that the other has not, and that is no icon."""
        mine, theirs, _ = own_hashes(a, b, limit)
        if self._common is not None and len(mine) and len(theirs):
            mine, theirs = mine[~self._common(mine)], theirs[~self._common(theirs)]
        return len(mine) > 0 and len(theirs) > 0


def _plain(text: str | None) -> str:
    return normalise(text or "")


def _words(text: str | None) -> Words:
    return Counter(_WORD.findall(_plain(text)))


def _has_word(words: Words) -> bool:
    return any(not _DIGIT.search(word) for word in words)
