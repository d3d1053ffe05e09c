from __future__ import annotations

import pickle
from dataclasses import dataclass, replace

import numpy as np
import pytest

from scrapy_simdup.page.comparison import Comparison, compare_views
from scrapy_simdup.page.sketch import resemblance, sketch


@dataclass(frozen=True)
class Stored:
    simhash: int
    sketch: bytes
    shingles: int = 600


HASHES = np.random.default_rng(3).integers(0, 2**64, size=1200, dtype=np.uint64)
BASE = Stored(0, sketch(HASHES[:600]))
SAME = BASE
AKIN = Stored(0b111, sketch(HASHES[60:660]))  # J = 540 / 660
FOREIGN = Stored(0b1, sketch(HASHES[600:]))
FAR = Stored(2**64 - 1, BASE.sketch)


def compare(
    a: list[Stored], b: list[Stored], k: int = 3, verified: float | None = 0.7
) -> Comparison:
    return compare_views(a, b, max_distance=k, min_resemblance=verified)


def test_equal_views_are_near() -> None:
    assert compare([BASE], [SAME]) == Comparison(0, 1.0, 1.0, near=True)


def test_near_needs_the_distance() -> None:
    assert compare([BASE], [AKIN], k=3).near
    assert not compare([BASE], [AKIN], k=2).near
    assert not compare([BASE], [FAR], k=63).near
    assert compare([BASE], [FAR], k=64).near


def test_near_needs_the_resemblance() -> None:
    alike = resemblance(BASE.sketch, AKIN.sketch)
    assert compare([BASE], [AKIN], verified=alike).near
    assert not compare([BASE], [AKIN], verified=alike + 0.001).near
    assert not compare([BASE], [FOREIGN]).near


def test_without_verification_the_distance_decides_and_the_resemblance_is_told() -> None:
    comparison = compare([BASE], [FOREIGN], verified=None)
    assert comparison.near
    assert comparison.resemblance is not None
    assert comparison.resemblance < 0.1


def test_one_pair_of_views_is_enough() -> None:
    assert compare([FAR, BASE], [FOREIGN, AKIN]).near


def test_of_near_pairs_the_best_resemblance_counts_then_the_distance() -> None:
    near_by = replace(AKIN, simhash=0)
    assert compare([BASE], [near_by, SAME, FOREIGN], verified=None).resemblance == 1.0
    assert compare([BASE], [AKIN, near_by]).distance == 0


def test_without_a_near_pair_the_refused_candidate_shows() -> None:
    comparison = compare([BASE], [FAR, FOREIGN])
    assert comparison.distance == 1
    assert not comparison.near


def test_a_view_without_a_sketch_is_near_by_distance_only() -> None:
    bare = replace(BASE, sketch=b"")
    assert compare([BASE], [bare], verified=None) == Comparison(0, None, None, near=True)
    assert compare([BASE], [bare]) == Comparison(0, None, None, near=False)


def test_a_part_is_contained_in_the_whole() -> None:
    whole = Stored(0, sketch(HASHES), shingles=1200)
    comparison = compare([BASE], [whole])
    assert comparison.resemblance == pytest.approx(0.5, abs=0.07)
    assert comparison.containment == pytest.approx(1.0, abs=0.1)


def test_a_page_without_views_is_refused() -> None:
    with pytest.raises(ValueError, match="without a view"):
        compare([BASE], [])


def test_a_comparison_can_be_pickled() -> None:
    comparison = compare([BASE], [AKIN])
    assert pickle.loads(pickle.dumps(comparison)) == comparison
