"""Two pages → how alike they are, whether that is near, and which rule decided.

A page is near another when one view of it, `main` or `prose`, is within the Hamming distance and
resembles the same view of the other (Manku, Jain and Das Sarma 2007, with a verification). What
follows keeps apart what only looks alike. Each rule can only refuse; thresholds are those of the
ablation in docs/quality.md.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from scrapy_simdup.page.boilerplate import is_boilerplate
from scrapy_simdup.page.measure import Comparison, counted, measure
from scrapy_simdup.page.profile import MAIN, PROSE
from scrapy_simdup.page.siblings import Siblings
from scrapy_simdup.page.surroundings import Surroundings
from scrapy_simdup.page.thresholds import THRESHOLDS, Thresholds

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import numpy.typing as npt

    from scrapy_simdup.page.boilerplate import Common
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

# Four standard errors of the sketches' estimate.
_MARGIN = 0.1

Exact: TypeAlias = "Callable[[str], npt.NDArray[np.uint64] | None]"
"""The shingles of a view of the other page, by its name; None where they are not known."""


class Criteria(Protocol):
    """What the user decides."""

    @property
    def max_distance(self) -> int: ...
    @property
    def min_resemblance(self) -> float | None: ...
    @property
    def keep_siblings(self) -> bool: ...


def compare_profiles(
    a: Portrait,
    b: Profile,
    criteria: Criteria,
    *,
    same_site: bool,
    common: Common | None = None,
    exact: Exact | None = None,
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
    found = compare_views(
        a,
        b,
        criteria,
        same_site=same_site,
        common=common,
        exact=exact,
        thresholds=thresholds,
    )
    if not found:
        # One page has only a main text, the other only prose: nothing to compare.
        return Comparison(None, None, None, near=False, rule="distance")
    return found[0]


def compare_views(
    a: Portrait,
    b: Profile,
    criteria: Criteria,
    *,
    same_site: bool,
    common: Common | None = None,
    exact: Exact | None = None,
    thresholds: Thresholds = THRESHOLDS,
) -> list[Comparison]:
    """As :func:`compare_profiles`, of each view that both pages have, the one that counts first."""
    pair = _Pair(a, b, criteria, same_site, common, exact, thresholds)
    found = [pair.judge(name) for name in (MAIN, PROSE) if pair.has(name)]
    return sorted(found, key=_rank, reverse=True)


def _rank(comparison: Comparison) -> tuple[bool, bool, bool, float, int]:
    return (
        comparison.near,
        comparison.rule == "same_text",
        comparison.rule != "distance",
        -1.0 if comparison.resemblance is None else comparison.resemblance,
        -(comparison.distance or 0),
    )


class _Pair:
    """Two pages, and the rules in their order."""

    def __init__(
        self,
        a: Portrait,
        b: Profile,
        criteria: Criteria,
        same_site: bool,
        common: Common | None,
        exact: Exact | None,
        thresholds: Thresholds,
    ) -> None:
        self._portrait = a
        self._a, self._b = a.profile, b
        self._criteria = criteria
        self._common = common if same_site else None
        self._exact = exact
        self._limits = thresholds
        self._surroundings = Surroundings(a.profile, b, same_site=same_site, thresholds=thresholds)
        self._siblings = Siblings(
            a,
            b,
            same_site=same_site,
            common=self._common,
            thresholds=thresholds,
        )

    def has(self, name: str) -> bool:
        return self._a.view(name) is not None and self._b.view(name) is not None

    def judge(self, name: str) -> Comparison:
        a, b = self._a.view(name), self._b.view(name)
        assert a is not None
        assert b is not None
        measured = measure(a, b, name)
        near, rule = self._rule(name, a, b, measured)
        if near or rule == "resemblance":
            exact = self._counted_out(name, measured)
            if exact is not measured:
                measured = exact
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
        return counted(measured, composition.shingles(), theirs)

    def _rule(self, name: str, a: View, b: View, measured: Comparison) -> tuple[bool, str]:
        """Whether two views are near, and which rule says so."""
        criteria, around, siblings = self._criteria, self._surroundings, self._siblings
        assert measured.distance is not None
        same_text = a.digest == b.digest
        if not same_text and measured.distance > criteria.max_distance:
            return False, "distance"
        if criteria.min_resemblance is None:
            return (True, "same_text") if same_text else (True, "distance")
        alike = measured.resemblance
        if not same_text and (alike is None or alike < criteria.min_resemblance):
            return False, "resemblance"
        if around.shows_something_else or around.holds_something_else:
            return False, "other_view"
        if same_text and name == MAIN and around.prose_differs:
            return False, "other_view"
        if not (same_text and around.agree(name)):
            if not around.other_view_agrees(name):
                return False, "other_view"
            if self._is_contained(measured):
                return False, "containment"
            if self._is_boilerplate(name, measured):
                return False, "boilerplate"
        if criteria.keep_siblings and (
            siblings.differ_in_name_and_number()
            or (same_text and siblings.text_lacks_the_name(name))
        ):
            return False, "siblings"
        return True, "same_text" if same_text else "resemblance"

    def _is_contained(self, measured: Comparison) -> bool:
        """Whether one view holds the other and clearly more: a quotation, a book's print version."""
        return (
            measured.length_ratio is not None
            and measured.length_ratio < self._limits.length_ratio
            and (measured.containment or 0.0) >= self._limits.contained
        )

    def _is_boilerplate(self, name: str, measured: Comparison) -> bool:
        return self._common is not None and is_boilerplate(
            self._portrait,
            self._b,
            name,
            measured,
            common=self._common,
            share=self._limits.boilerplate,
        )
