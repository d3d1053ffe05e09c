"""How alike two texts are, in figures, and no judgement: the rules are in `comparison`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from scrapy_simdup.page.simhash import hamming
from scrapy_simdup.page.sketch import containment, resemblance

if TYPE_CHECKING:
    import numpy.typing as npt

    from scrapy_simdup.page.profile import Profile


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
    All are None where one of the two has no features at all. `rule` is one of `comparison.RULES`,
    or None where neither page could be judged.
    """

    distance: int | None
    resemblance: float | None
    containment: float | None
    near: bool
    length_ratio: float | None = None
    view: str | None = None
    rule: str | None = None


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


def counted(
    measured: Comparison, mine: npt.NDArray[np.uint64], theirs: npt.NDArray[np.uint64]
) -> Comparison:
    """The same figures, but counted from all shingles, uint64[n] each and distinct, where the
    sketches estimate.
    """
    both = len(np.intersect1d(mine, theirs, assume_unique=True))
    return replace(
        measured,
        resemblance=both / max(1, len(mine) + len(theirs) - both),
        containment=both / max(1, min(len(mine), len(theirs))),
    )


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
