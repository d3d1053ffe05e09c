"""Two pages → how alike they are, whether that is near, and which rule decided.

A page is near another when one view of it, `main` or `prose`, is within the Hamming distance and
resembles the same view of the other (Manku, Jain and Das Sarma 2007, with a verification). What
follows keeps apart what only looks alike. Each rule can only refuse; thresholds are those of the
ablation in docs/quality.md.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import numpy as np

from scrapy_simdup.page.features import normalise
from scrapy_simdup.page.profile import (
    MAIN,
    MAX_BLOCKS,
    MAX_EMBEDS,
    MAX_IMAGES,
    MAX_NUMBERS,
    PROSE,
    block_hashes,
    unpack,
)
from scrapy_simdup.page.simhash import hamming
from scrapy_simdup.page.sketch import containment, resemblance

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from scrapy_simdup.page.profile import Profile, View
    from scrapy_simdup.page.profiler import Portrait

#: Which rule decides about two pages, and what it says. The first three make a duplicate.
RULES: Final[dict[str, str]] = {
    "same_text": "the same blocks of text, in whatever order",
    "resemblance": "near: within the distance, and alike enough; refused: not alike enough",
    "distance": "near: within the distance, no verification wanted; refused: not within it",
    "other_view": "refused: alike in one view, but what else the pages show or hold differs",
    "containment": "refused: one page contains the other and much more",
    "boilerplate": "refused: what they share is what many pages of the host have in common",
    "siblings": "refused: one template, but other names, and other numbers, images or embeds",
}


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """What the rules compare with: shares and resemblances, 0 … 1.

    The defaults are what the ablation has shown to be best. They are no settings: one of them
    alone means little.
    """

    agrees_with_main: float = 0.6
    """Where the main text matches, prose or all that is shown must resemble so much."""
    agrees_with_prose: float = 0.6
    """Where the prose matches, main text or all that is shown must resemble so much."""
    contradicts_prose: float = 0.2
    """Main texts that resemble less than this outweigh a match of the prose."""
    same_title: float = 0.6
    """Where a text is the same, the blocks of all that is shown must resemble so much."""
    other_title: float = 0.7
    """The same, where the title is another one."""
    visible_containment: float = 0.3
    """So much of what the one page shows or carries must be on the other, whatever matches."""
    site_containment: float = 0.68
    """The same on one site, of blocks in whatever order: there the templates are no excuse."""
    contained: float = 0.9
    length_ratio: float = 0.85
    """Refused: so much of the shorter text is in the longer, and the lengths differ by more than
    this. A fifth is what people call a duplicate (legal texts); here nothing of it is missing."""
    boilerplate: float = 0.5
    """Share of boilerplate in what two texts share, from which on it can be refused."""
    own_apart: int = 30
    """So many shingles of their own in texts apart make another page, on both sides."""
    own_share: float = 0.2
    """And so much of all of them; less is lost in the sketches' error."""
    own_entries: int = 8
    """So many links, or images, of their own make another list, on both sides."""
    words_an_entry: int = 10
    """Of a text that has more words for each of them, they are an appendix."""
    own_embeds: int = 1
    words_an_embed: int = 200
    """The same for embeds."""
    same_numbers: float = 0.5
    """Titles that differ in numbers only are a version, unless fewer numbers than this are shared."""


THRESHOLDS: Final = Thresholds()

# Four standard errors of the sketches' estimate.
_MARGIN = 0.1


Words: TypeAlias = "Counter[str]"


class Criteria(Protocol):
    """What the user decides."""

    @property
    def max_distance(self) -> int: ...
    @property
    def min_resemblance(self) -> float | None: ...
    @property
    def keep_siblings(self) -> bool: ...


class Measurable(Protocol):
    """A fingerprint, or a view, which is what is kept of one."""

    @property
    def simhash(self) -> int: ...
    @property
    def sketch(self) -> bytes: ...
    @property
    def shingles(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Comparison:
    """How alike two pages are, in the view that decided.

    `distance` in bits; `resemblance`, `containment` and `length_ratio` 0 … 1, of the shingle sets.
    All are None where one of the two has no features at all. `rule` is one of `RULES`, or None
    where neither page could be judged.
    """

    distance: int | None
    resemblance: float | None
    containment: float | None
    near: bool
    length_ratio: float | None = None
    view: str | None = None
    rule: str | None = None


def compare_profiles(
    a: Portrait,
    b: Profile,
    criteria: Criteria,
    *,
    same_site: bool,
    common: Callable[[npt.NDArray[np.uint32]], npt.NDArray[np.bool_]] | None = None,
    exact: Callable[[str], npt.NDArray[np.uint64] | None] | None = None,
    thresholds: Thresholds = THRESHOLDS,
) -> Comparison:
    """Compare the page at hand with another one.

    *same_site* says whether both come from one host: only there titles and numbers tell siblings
    apart. *common* says which blocks, given as uint32[n], recur on that host. *exact* gives the
    shingles of a view of the other page, uint64[n] ascending, or None where its text is not kept;
    where it is, they are counted out wherever the sketches are not too far below the threshold to
    matter. Of several views the one that makes the pages near counts, then the one with the best
    resemblance.
    """
    pair = _Pair(a, b, criteria, same_site, common, exact, thresholds)
    found = [pair.judge(name) for name in (MAIN, PROSE) if pair.has(name)]
    if not found:
        # One page has only a main text, the other only prose: nothing to compare.
        return Comparison(None, None, None, near=False, rule="distance")
    return max(found, key=_rank)


def closest(a: Profile, b: Profile) -> Comparison:
    """How alike two pages are in their most similar views, without a judgement."""
    same = [
        measure(view, other, view.name)
        for view in a.views
        if (other := b.view(view.name)) is not None
    ]
    return max(
        same or [measure(a.views[0], b.views[0])],
        key=lambda pair: (pair.resemblance or 0.0, -(pair.distance or 0)),
    )


def measure(a: Measurable, b: Measurable, view: str | None = None) -> Comparison:
    """How alike two texts are, without a judgement: `near` is False, `rule` None."""
    alike = resemblance(a.sketch, b.sketch) if a.sketch and b.sketch else None
    most = max(a.shingles, b.shingles)
    return Comparison(
        distance=hamming(a.simhash, b.simhash),
        resemblance=alike,
        containment=None if alike is None else containment(alike, a.shingles, b.shingles),
        near=False,
        length_ratio=min(a.shingles, b.shingles) / most if most else None,
        view=view,
    )


def _rank(comparison: Comparison) -> tuple[bool, bool, bool, float, int]:
    return (
        comparison.near,
        comparison.rule == "same_text",
        comparison.rule != "distance",
        -1.0 if comparison.resemblance is None else comparison.resemblance,
        -(comparison.distance or 0),
    )


class _Pair:
    """Two pages, and all that the rules ask of them."""

    def __init__(
        self,
        a: Portrait,
        b: Profile,
        criteria: Criteria,
        same_site: bool,
        common: Callable[[npt.NDArray[np.uint32]], npt.NDArray[np.bool_]] | None,
        exact: Callable[[str], npt.NDArray[np.uint64] | None] | None,
        thresholds: Thresholds,
    ) -> None:
        self._portrait = a
        self._a, self._b = a.profile, b
        self._criteria = criteria
        self._same_site = same_site
        self._common = common if same_site else None
        self._exact = exact
        self._limits = thresholds

    def has(self, name: str) -> bool:
        return self._a.view(name) is not None and self._b.view(name) is not None

    def judge(self, name: str) -> Comparison:
        a, b = self._a.view(name), self._b.view(name)
        assert a is not None
        assert b is not None
        measured = measure(a, b, name)
        near, rule = self._rule(name, a, b, measured)
        if near or rule == "resemblance":
            counted = self._counted_out(name, measured)
            if counted is not measured:
                measured = counted
                near, rule = self._rule(name, a, b, measured)
        return replace(measured, near=near, rule=rule)

    def _counted_out(self, name: str, measured: Comparison) -> Comparison:
        """The same figures from the shingles themselves, if they are there and could matter."""
        least, estimate = self._criteria.min_resemblance, measured.resemblance
        if self._exact is None or least is None or estimate is None or estimate < least - _MARGIN:
            return measured
        composition, theirs = self._portrait.composition.get(name), self._exact(name)
        if composition is None or theirs is None:
            return measured
        mine = composition.shingles()
        both = len(np.intersect1d(mine, theirs, assume_unique=True))
        return replace(
            measured,
            resemblance=both / max(1, len(mine) + len(theirs) - both),
            containment=both / max(1, min(len(mine), len(theirs))),
        )

    def _rule(self, name: str, a: View, b: View, measured: Comparison) -> tuple[bool, str]:
        """Whether two views are near, and which rule says so."""
        criteria = self._criteria
        assert measured.distance is not None
        same_text = a.digest == b.digest
        if not same_text and measured.distance > criteria.max_distance:
            return False, "distance"
        if criteria.min_resemblance is None:
            return (True, "same_text") if same_text else (True, "distance")
        alike = measured.resemblance
        if not same_text and (alike is None or alike < criteria.min_resemblance):
            return False, "resemblance"
        if self._shows_something_else() or self._holds_something_else:
            return False, "other_view"
        if same_text and name == MAIN and self._prose_differs():
            return False, "other_view"
        if not (same_text and self._surroundings_agree(name)):
            if not self._other_view_agrees(name):
                return False, "other_view"
            if self._is_contained(measured):
                return False, "containment"
            if self._is_boilerplate(name, a, b, measured):
                return False, "boilerplate"
        if criteria.keep_siblings and (
            self._are_siblings() or (same_text and self._text_lacks_the_name(name))
        ):
            return False, "siblings"
        return True, "same_text" if same_text else "resemblance"

    # ---- what else the pages show ----------------------------------------------------------------

    @cached_property
    def _visible_alike(self) -> float | None:
        if not self._a.visible or not self._b.visible:
            return None
        return resemblance(self._a.visible, self._b.visible)

    def _view_alike(self, name: str) -> float | None:
        a, b = self._a.view(name), self._b.view(name)
        return None if a is None or b is None else resemblance(a.sketch, b.sketch)

    def _other_view_agrees(self, name: str) -> bool:
        """Whether the rest of the pages does not belie a match in one view.

        The same footer extracted as the main text of two pages, or the same frame around lists of
        links, is found out here. A page that has one view only is not asked.
        """
        shown = self._visible_alike
        if name == MAIN:
            prose = self._view_alike(PROSE)
            others = [alike for alike in (prose, shown) if alike is not None]
            return not others or max(others) >= self._limits.agrees_with_main
        main = self._view_alike(MAIN)
        if main is not None and main < self._limits.contradicts_prose:
            return False
        others = [alike for alike in (main, shown) if alike is not None]
        return not others or max(others) >= self._limits.agrees_with_prose

    def _surroundings_agree(self, name: str) -> bool:
        """Whether two pages with the same text agree in what else they show, in whatever order.

        And in prose, if both have it: the same terms and conditions may be the main text of many
        pages. A main text may well be another choice of the same prose.
        """
        a, b = self._a.visible_blocks, self._b.visible_blocks
        same_title = _plain(self._a.title) == _plain(self._b.title)
        least = self._limits.same_title if same_title else self._limits.other_title
        if a and b and resemblance(a, b) < least:
            return False
        return name == PROSE or self._view_alike(PROSE) is None or self._other_view_agrees(MAIN)

    def _shows_something_else(self) -> bool:
        """Whether too little of what either page shows or carries is on the other one.

        Of the smaller page, since a print version lacks the menus. The same introduction above two
        lists of links is found out here.
        """
        a, b = self._a, self._b
        shown = self._visible_alike
        if shown is None:
            return False
        if self._same_site and a.visible_blocks and b.visible_blocks:
            shown = resemblance(a.visible_blocks, b.visible_blocks)
            common = containment(shown, a.block_shingles, b.block_shingles)
            return common < self._limits.site_containment
        common = containment(shown, a.visible_shingles, b.visible_shingles)
        return common < self._limits.visible_containment

    @cached_property
    def _holds_something_else(self) -> bool:
        """Whether either page of one site has something of its own that is in no view of it.

        Two films under one description, two lists under one introduction, two stories in an
        `<aside>`. Related links below a text, its illustrations and advertisements are no evidence:
        there must be many for so few words, and most must be others. On two sites they would be.
        """
        if not self._same_site:
            return False
        a, b, limits = self._a, self._b, self._limits
        words = min(max(view.tokens for view in page.views) for page in (a, b))
        embeds = max(limits.own_embeds, words / limits.words_an_embed)
        entries = max(limits.own_entries, words / limits.words_an_entry)
        return (
            _are_other_names(a.embeds, b.embeds, MAX_EMBEDS, embeds)
            or _are_other_names(a.images, b.images, MAX_IMAGES, entries)
            or self._have_own((a.links, a.link_count), (b.links, b.link_count), entries)
            or self._have_own(
                (a.apart, a.apart_shingles), (b.apart, b.apart_shingles), limits.own_apart
            )
        )

    def _prose_differs(self) -> bool:
        """Whether the same main text on one site misses a passage of prose that each page has."""
        a, b = self._a.view(PROSE), self._b.view(PROSE)
        if not self._same_site or a is None or b is None:
            return False
        return self._have_own(
            (a.sketch, a.shingles), (b.sketch, b.shingles), self._limits.own_apart
        )

    def _have_own(self, a: tuple[bytes, int], b: tuple[bytes, int], least: float) -> bool:
        """Whether each of two sets, given as sketch and size, has so many of its own.

        And a share of it, since the estimate is as wrong as the sets are large.
        """
        if not a[0] or not b[0]:
            return False
        alike = resemblance(a[0], b[0])
        both = alike / (1.0 + alike) * (a[1] + b[1])
        return all(
            size - both >= max(least, self._limits.own_share * size) for size in (a[1], b[1])
        )

    def _is_contained(self, measured: Comparison) -> bool:
        """Whether one view holds the other and clearly more: a quotation, a book's print version."""
        return (
            measured.length_ratio is not None
            and measured.length_ratio < self._limits.length_ratio
            and (measured.containment or 0.0) >= self._limits.contained
        )

    # ---- boilerplate -----------------------------------------------------------------------------

    def _is_boilerplate(self, name: str, a: View, b: View, measured: Comparison) -> bool:
        """Whether what two views share is mostly the host's own, and what is theirs differs.

        Of two estimates of what they share of their own, one from sketches and one from blocks,
        the larger counts; of those of what differs the smaller. So a page with one corrected
        paragraph is no victim.
        """
        composition = self._portrait.composition.get(name)
        if self._common is None or composition is None or not len(composition.hashes):
            return False
        shared = (measured.resemblance or 0.0) / (1.0 + (measured.resemblance or 0.0))
        shared *= a.tokens + b.tokens
        differing = (a.tokens + b.tokens) / 2 - shared
        theirs = unpack(self._b.blocks)
        known = self._common(np.concatenate((composition.hashes, theirs)))
        mine_common, theirs_common = known[: len(composition.hashes)], known[-len(theirs) :]
        if not mine_common.any() or not len(theirs):
            return False
        sampled = np.ones(len(composition.hashes), dtype=np.bool_)
        if len(theirs) == MAX_BLOCKS:  # larger hashes of theirs are not remembered
            sampled = composition.hashes <= theirs[-1]
        weight = composition.characters * sampled
        total = float(weight.sum())
        if not total:
            return False
        in_both = np.isin(composition.hashes, theirs)
        tokens = a.tokens / total
        common = float((weight * (in_both & mine_common)).sum()) * tokens
        own_shared = float((weight * (in_both & ~mine_common)).sum()) * tokens
        own_other = float((weight * (~in_both & ~mine_common)).sum()) * tokens
        mine = unpack(self._a.blocks)
        if len(mine) == MAX_BLOCKS:
            kept = theirs <= mine[-1]
            theirs, theirs_common = theirs[kept], theirs_common[kept]
        if not len(theirs):
            return False
        their_other = float(np.mean(~np.isin(theirs, mine) & ~theirs_common)) * b.tokens
        same = max(shared - common, own_shared)
        other = min(differing, own_other, their_other)
        return common >= self._limits.boilerplate * shared and other >= 1 and same < other

    # ---- names and numbers -----------------------------------------------------------------------

    @cached_property
    def _differences(self) -> list[tuple[Words, Words]]:
        """The words that only one of the pages has, in the titles and, if both have some, in the
        headings; empty unless each side has a word of its own in all of them.

        How often a word occurs counts: "4 x 50 mm, 50 pieces" is not "4 x 30 mm, 50 pieces". A
        heading that many pages of the host share names the site, not the page.
        """
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
            known = self._common(block_hashes([*map(normalise, headings)], self._portrait.seed))
            headings = tuple(h for h, common in zip(headings, known, strict=True) if not common)
        return _words(" ".join(headings))

    def _names_differ(self) -> bool:
        """Whether the pages call themselves by other words, not only by other numbers."""
        differences = self._differences
        return bool(differences) and all(
            _has_word(one) and _has_word(other) for one, other in differences
        )

    def _text_lacks_the_name(self, name: str) -> bool:
        """Whether a text is the same only because it misses what the pages are about.

        Then they have other headings, and more to say than this view has of it. Where the headings
        differ in numbers only, what more they say must be there to see.
        """
        if not self._same_site or len(self._differences) < 2:
            return False
        other = PROSE if name == MAIN else MAIN
        a, b = self._a.view(other), self._b.view(other)
        if a is None or b is None:
            return self._names_differ()
        return a.digest != b.digest

    def _are_siblings(self) -> bool:
        """Whether two pages of a template differ in name and number: two offers, not one.

        Versions of one page differ in the numbers of their titles, too, but hardly in those of
        their texts; so where names are the same, most numbers have to be others. So they have on
        two sites, which may well give one story two headlines. Numbers of versions and chapters
        have a dot, though; "flat 7" and "flat 12" are two offers, even if all other numbers are
        those of the house. On one site, an image or an embed is as good as a number.
        """
        if not self._differences:
            return False
        a, b = self._a, self._b
        mine, theirs, both = _own(a.numbers, b.numbers, MAX_NUMBERS)
        own = min(len(mine), len(theirs))
        if self._same_site and (self._names_differ() or self._differ_in_plain_numbers()):
            return (
                own >= 1
                or self._each_has(a.embeds, b.embeds, MAX_EMBEDS)
                or self._each_has(a.images, b.images, MAX_IMAGES)
            )
        return own >= 2 and both < self._limits.same_numbers * (both + len(mine) + len(theirs))

    def _differ_in_plain_numbers(self) -> bool:
        """Whether titles and headings differ, and in no number with a dot, such as 9.6 and 36.54."""
        if len(self._differences) < 2:
            return False
        names = (self._a.title, self._b.title, *self._a.headings, *self._b.headings)
        dotted = {word for name in names for word in _DOTTED.findall(_plain(name))}
        return all(dotted.isdisjoint(words) for words in chain.from_iterable(self._differences))

    def _each_has(self, a: bytes, b: bytes, limit: int) -> bool:
        """Whether each page has an image or embed that the other has not, and that is no icon."""
        mine, theirs, _ = _own(a, b, limit)
        if self._common is not None and len(mine) and len(theirs):
            mine, theirs = mine[~self._common(mine)], theirs[~self._common(theirs)]
        return len(mine) > 0 and len(theirs) > 0


def _own(
    a: bytes, b: bytes, limit: int
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], int]:
    """The packed hashes that only the one has, only the other, and how many both, as far as known."""
    mine, theirs = unpack(a), unpack(b)
    if limit in (len(mine), len(theirs)):  # larger ones are not remembered
        known = min(hashes[-1] for hashes in (mine, theirs) if len(hashes) == limit)
        mine, theirs = mine[mine <= known], theirs[theirs <= known]
    both = np.intersect1d(mine, theirs, assume_unique=True)
    return (
        np.setdiff1d(mine, both, assume_unique=True),
        np.setdiff1d(theirs, both, assume_unique=True),
        len(both),
    )


def _are_other_names(a: bytes, b: bytes, limit: int, least: float) -> bool:
    """Whether either has so many hashes of its own, and more than they share."""
    if not a or not b:
        return False
    mine, theirs, both = _own(a, b, limit)
    own = min(len(mine), len(theirs))
    return own >= least and own > both


_WORD = re.compile(r"\w+")
_DIGIT = re.compile(r"\d")
# A word with a digit and a dot after it, or after a digit and a dot.
_DOTTED = re.compile(r"\b(?:(?<=\d\.)\w+|\w*\d\w*(?=\.(?:\w|\s|$)))")


def _plain(text: str | None) -> str:
    return normalise(text or "")


def _words(text: str | None) -> Words:
    return Counter(_WORD.findall(_plain(text)))


def _has_word(words: Words) -> bool:
    return any(not _DIGIT.search(word) for word in words)
