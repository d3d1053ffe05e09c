"""Two pages, each with one or more views → how alike they are, and whether that is near."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from scrapy_simdup.page.simhash import hamming
from scrapy_simdup.page.sketch import containment, resemblance

if TYPE_CHECKING:
    from collections.abc import Sequence


class View(Protocol):
    """What is compared of a view: a `Fingerprint`, or what a store kept of one."""

    @property
    def simhash(self) -> int: ...
    @property
    def sketch(self) -> bytes: ...
    @property
    def shingles(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Comparison:
    """How alike two pages are, in their most similar pair of views.

    `distance` in bits; `resemblance` and `containment` 0 … 1, or None where a view has no sketch.
    All three are None where one of the two has no features at all.
    """

    distance: int | None
    resemblance: float | None
    containment: float | None
    near: bool


def compare_views(
    a: Sequence[View],
    b: Sequence[View],
    *,
    max_distance: int,
    min_resemblance: float | None,
) -> Comparison:
    """Compare every view of one page with every view of another.

    A pair of views is near when it is within `max_distance` bits and, unless `min_resemblance` is
    None, its sketches estimate at least that resemblance; a pair without sketches is then not near.
    Of several near pairs the one with the best resemblance counts, then the one with the smallest
    distance. When no pair is near, those within `max_distance` come first, so that a refused
    candidate shows as the near miss it is.

    Raises ValueError when a page has no view.
    """
    if not a or not b:
        raise ValueError("a page without a view cannot be compared")
    pairs = [_compare(one, other, max_distance, min_resemblance) for one in a for other in b]
    return max(pairs, key=lambda pair: _rank(pair, max_distance))


def _rank(pair: Comparison, max_distance: int) -> tuple[bool, bool, float, int]:
    assert pair.distance is not None, "both have features"
    alike = -1.0 if pair.resemblance is None else pair.resemblance
    return pair.near, pair.distance <= max_distance, alike, -pair.distance


def _compare(a: View, b: View, max_distance: int, min_resemblance: float | None) -> Comparison:
    distance = hamming(a.simhash, b.simhash)
    alike = resemblance(a.sketch, b.sketch) if a.sketch and b.sketch else None
    return Comparison(
        distance=distance,
        resemblance=alike,
        containment=None if alike is None else containment(alike, a.shingles, b.shingles),
        near=distance <= max_distance
        and (min_resemblance is None or (alike is not None and alike >= min_resemblance)),
    )
