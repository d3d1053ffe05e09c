"""What two pages show or hold besides the view in which they match.

A view may match by what no reader would call the page: its footer, its frame, an introduction. So
all else is asked whether it agrees. Names and numbers are asked in `siblings`.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from scrapy_simdup.page.features import normalise
from scrapy_simdup.page.profile import MAIN, MAX_EMBEDS, MAX_IMAGES, PROSE, own_hashes
from scrapy_simdup.page.sketch import containment, resemblance

if TYPE_CHECKING:
    from scrapy_simdup.page.profile import Profile
    from scrapy_simdup.page.thresholds import Thresholds


class Surroundings:
    """Of two pages, what is around the view that matches. Every question has the same answer
    whichever page comes first.
    """

    def __init__(self, a: Profile, b: Profile, *, same_site: bool, thresholds: Thresholds) -> None:
        self._a, self._b = a, b
        self._same_site = same_site
        self._limits = thresholds

    def agree(self, name: str) -> bool:
        """Whether two pages with the same text agree in what else they show, in whatever order.

        And in prose, if both have it: the same terms and conditions may be the main text of many
        pages. A main text may well be another choice of the same prose.
        """
        a, b = self._a.visible_blocks, self._b.visible_blocks
        same_title = normalise(self._a.title or "") == normalise(self._b.title or "")
        least = self._limits.same_title if same_title else self._limits.other_title
        if a and b and resemblance(a, b) < least:
            return False
        return name == PROSE or self._view_alike(PROSE) is None or self.other_view_agrees(MAIN)

    def other_view_agrees(self, name: str) -> bool:
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

    @cached_property
    def shows_something_else(self) -> bool:
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
    def holds_something_else(self) -> bool:
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

    @cached_property
    def prose_differs(self) -> bool:
        """Whether the same main text on one site misses a passage of prose that each page has."""
        a, b = self._a.view(PROSE), self._b.view(PROSE)
        if not self._same_site or a is None or b is None:
            return False
        return self._have_own(
            (a.sketch, a.shingles), (b.sketch, b.shingles), self._limits.own_apart
        )

    @cached_property
    def _visible_alike(self) -> float | None:
        if not self._a.visible or not self._b.visible:
            return None
        return resemblance(self._a.visible, self._b.visible)

    def _view_alike(self, name: str) -> float | None:
        a, b = self._a.view(name), self._b.view(name)
        return None if a is None or b is None else resemblance(a.sketch, b.sketch)

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


def _are_other_names(a: bytes, b: bytes, limit: int, least: float) -> bool:
    """Whether either has so many hashes of its own, and more than they share."""
    if not a or not b:
        return False
    mine, theirs, both = own_hashes(a, b, limit)
    own = min(len(mine), len(theirs))
    return own >= least and own > both
