from __future__ import annotations

import random
import statistics

import numpy as np
import pytest
import slow_reference
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_simdup.page.features import token_hashes
from scrapy_simdup.page.sketch import (
    COARSE_BINS,
    containment,
    distinct,
    resemblance,
    resemblance_many,
    shingle_hashes,
    shingle_hashes_inside,
    sketch,
)

quick = settings(derandomize=True, deadline=None, max_examples=60)
words64 = st.integers(0, 2**64 - 1)


def uint64(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.uint64)


def shingles(tokens: list[str]) -> np.ndarray:
    return shingle_hashes(token_hashes(tokens))


@quick
@given(st.lists(st.one_of(words64, st.sampled_from([0, 1, 2**64 - 1])), max_size=60))
def test_shingles_equal_the_slow_reference(hashes: list[int]) -> None:
    found = shingle_hashes(uint64(hashes)).tolist()
    assert found == sorted(slow_reference.shingle_hashes(hashes))


def test_a_text_of_n_tokens_has_n_minus_7_shingles() -> None:
    assert len(shingles([str(i) for i in range(100)])) == 93


def test_a_repeated_shingle_counts_once() -> None:
    assert len(shingles(["ferry"] * 50)) == 1


def test_the_order_of_tokens_within_a_shingle_matters() -> None:
    assert shingles(list("abcdefgh")) != shingles(list("abcdefhg"))


def test_a_text_shorter_than_a_shingle_is_one_shingle() -> None:
    assert len(shingles(["one", "two"])) == 1
    assert shingles(["one", "two"]) != shingles(["two", "one"])
    assert len(shingles([])) == 0


@quick
@given(st.sets(words64, max_size=900))
def test_a_sketch_equals_the_slow_reference(hashes: set[int]) -> None:
    made = sketch(uint64(list(hashes)))
    assert len(made) == 256
    assert made == slow_reference.sketch(hashes)


@quick
@given(st.sets(words64, max_size=400), st.sets(words64, max_size=400), st.integers(0, 400))
def test_resemblance_equals_the_slow_reference(a: set[int], b: set[int], shared: int) -> None:
    b = b | set(list(a)[:shared])
    one, other = sketch(uint64(list(a))), sketch(uint64(list(b)))
    found = resemblance(one, other)
    assert found == pytest.approx(slow_reference.resemblance(one, other))
    assert found == resemblance(other, one)
    assert 0.0 <= found <= 1.0


@pytest.mark.parametrize("tokens", [1, 5, 30, 300, 5000])
def test_equal_sketches_resemble_each_other_wholly(tokens: int) -> None:
    made = sketch(shingles([str(i) for i in range(tokens)]))
    assert resemblance(made, made) == 1.0


def test_sketches_of_nothing_are_no_evidence() -> None:
    nothing = sketch(shingles([]))
    assert nothing == bytes(256)
    assert resemblance(nothing, nothing) == 0.0


def test_many_resemblances_are_those_of_each() -> None:
    rng = np.random.default_rng(7)
    hashes = rng.integers(0, 2**64, size=1000, dtype=np.uint64)
    sketches = [sketch(hashes[start : start + 600]) for start in range(0, 400, 40)]
    rows = np.frombuffer(b"".join(sketches), dtype=np.uint8).reshape(-1, 256)
    found = resemblance_many(sketches[0], rows)
    assert found.dtype == np.float64
    assert found.tolist() == [resemblance(sketches[0], other) for other in sketches]
    assert len(resemblance_many(sketches[0], rows[:0])) == 0


def test_a_sketch_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match="256 and 128 bytes"):
        resemblance(bytes(256), bytes(128))
    with pytest.raises(ValueError, match="128 and 256 bytes"):
        resemblance(bytes(128), bytes(256))
    with pytest.raises(ValueError, match=r"256 bytes and an array of \(1, 128\)"):
        resemblance_many(bytes(256), np.zeros((1, 128), dtype=np.uint8))
    with pytest.raises(ValueError, match="0 bytes"):
        resemblance(b"", b"")


@quick
@given(st.sets(words64, max_size=300), st.sampled_from([2, 16, 128]))
def test_a_sketch_may_have_fewer_bins(hashes: set[int], bins: int) -> None:
    smallest: dict[int, int] = {}
    for value in sorted(hashes, reverse=True):
        smallest[value * bins >> 64] = value % 15 + 1
    values = [smallest.get(place, 0) for place in range(bins)]
    made = sketch(uint64(list(hashes)), bins)
    assert made == bytes(values[n] << 4 | values[n + 1] for n in range(0, bins, 2))


def test_resemblance_is_estimated_from_coarse_sketches_too() -> None:
    rng = np.random.default_rng(5)
    found = []
    for _ in range(40):
        hashes = rng.integers(0, 2**64, size=800, dtype=np.uint64)
        a, b = (sketch(part, COARSE_BINS) for part in (hashes[:600], hashes[200:]))
        assert len(a) == 64
        found.append(resemblance(a, b))  # J = 400 / 800
    assert statistics.mean(found) == pytest.approx(0.5, abs=0.03)
    assert statistics.pstdev(found) < 0.07


def edited(rng: random.Random, tokens: list[str], share: float) -> list[str]:
    return [f"new{rng.random()}" if rng.random() < share else token for token in tokens]


@pytest.mark.parametrize("length", [60, 400, 2000])
@pytest.mark.parametrize("share", [0.003, 0.02, 0.05, 0.1])
def test_the_estimate_is_unbiased_and_as_exact_as_derived(length: int, share: float) -> None:
    rng = random.Random(f"{length} {share}")
    errors, bounds = [], []
    for _ in range(80):
        a = [f"w{rng.randrange(10**6)}" for _ in range(length)]
        b = edited(rng, a, share)
        sets = [set(shingles(tokens).tolist()) for tokens in (a, b)]
        exact = slow_reference.jaccard(*sets)
        filled = 512 * (1 - np.exp(-len(sets[0] | sets[1]) / 512))
        agree = exact + (1 - exact) / 15
        bounds.append((agree * (1 - agree) / filled) ** 0.5 * 15 / 14)
        errors.append(resemblance(*(sketch(uint64(list(one))) for one in sets)) - exact)
    expected = statistics.mean(bounds)
    # The mean of 80 has a ninth of their standard error; three of that, and the clip at 1.
    assert abs(statistics.mean(errors)) < 3 * expected / 80**0.5 + 0.001
    assert statistics.pstdev(errors) < 1.25 * expected


def test_texts_with_nothing_in_common_resemble_each_other_hardly_at_all() -> None:
    rng = random.Random(11)
    made = [sketch(shingles([f"w{rng.random()}" for _ in range(800)])) for _ in range(60)]
    found = [resemblance(a, b) for i, a in enumerate(made) for b in made[:i]]
    assert max(found) < 0.06
    assert statistics.mean(found) < 0.01


def test_containment_is_the_share_of_the_smaller_text_in_the_larger() -> None:
    # 100 of the 100 shingles of a are among the 400 of b: J = 100 / 400.
    assert containment(0.25, 100, 400) == pytest.approx(1.0)
    # 50 shared of 100 and 200: J = 50 / 250.
    assert containment(0.2, 100, 200) == pytest.approx(0.5)
    assert containment(0.2, 200, 100) == pytest.approx(0.5)
    assert containment(0.0, 100, 100) == 0.0
    assert containment(0.9, 10, 1000) == 1.0
    assert containment(0.5, 0, 10) == 0.0


@settings(derandomize=True, deadline=None)
@given(st.lists(st.lists(st.integers(0, 5), min_size=8, max_size=14), max_size=6))
def test_shingles_inside_parts_are_those_of_every_part(parts: list[list[int]]) -> None:
    arrays = [np.array(part, dtype=np.uint64) for part in parts]
    found = shingle_hashes_inside(arrays)
    assert found.tolist() == sorted({n for a in arrays for n in shingle_hashes(a).tolist()})


@given(st.lists(st.integers(0, 50)))
def test_distinct_is_unique(values: list[int]) -> None:
    for kind in (np.uint32, np.uint64):
        array = np.array(values, dtype=kind)
        assert distinct(array).tolist() == sorted(set(values))
        assert distinct(array).dtype == kind
