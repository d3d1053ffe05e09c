"""The arithmetic of the tables, against enumeration and against the paper."""

from __future__ import annotations

import random
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_simdup.store.planner import LAYOUTS, estimate, estimates, plan, tables_needed
from scrapy_simdup.store.tables import BITS, MAX_DISTANCE, MAX_PROBES, Layout

FULL = 2**64 - 1
MORE_LAYOUTS = [Layout.parse(name) for name in ("7c1", "3c2", "5c3", "4c1/3c1", "3c1/4c2", "8c1")]
ALL_LAYOUTS = [*LAYOUTS, *MORE_LAYOUTS]
DISTANCES = range(MAX_DISTANCE + 1)

each_layout = pytest.mark.parametrize("layout", ALL_LAYOUTS, ids=lambda layout: layout.name)
fingerprints = st.integers(0, FULL)
deterministic = settings(derandomize=True, deadline=None, database=None, max_examples=12)


def spreads(k: int, blocks: int):
    """Every way to spread k differing bits over blocks."""
    if blocks == 1:
        yield (k,)
        return
    for here in range(k + 1):
        for rest in spreads(k - here, blocks - 1):
            yield (here, *rest)


class TestLayout:
    @pytest.mark.parametrize(
        ("name", "tables", "prefix_bits"),
        [
            ("4c1", 4, {16}),
            ("5c2", 10, {25, 26}),
            ("4c1/4c1", 16, {28}),
            ("6c3", 20, {31, 32, 33}),
        ],
    )
    def test_the_four_designs_of_the_paper(self, name, tables, prefix_bits):
        layout = Layout.parse(name)
        assert layout in LAYOUTS
        assert len(layout.tables) == tables
        assert {table.prefix_bits for table in layout.tables} == prefix_bits
        assert layout.flips(3) == 0
        assert layout.probe_counts(3) == (1,) * tables

    @each_layout
    def test_survives_its_name_and_its_dict(self, layout):
        assert Layout.parse(layout.name) == layout
        assert Layout.from_dict(layout.to_dict()) == layout
        assert layout.describe().startswith(f"{len(layout.tables)} tables of ")

    @pytest.mark.parametrize(
        "levels", [(), ((4, 4),), ((4, 0),), ((1, 1),), ((65, 1),), ((9, 5),) * 2]
    )
    def test_refuses_what_cannot_be_built(self, levels):
        with pytest.raises(ValueError, match="layout"):
            Layout(levels)

    @pytest.mark.parametrize("name", ["", "4", "4x16", "4c", "c1", "4c1/", "fourc1"])
    def test_refuses_other_names(self, name):
        with pytest.raises(ValueError, match="layout"):
            Layout.parse(name)

    @pytest.mark.parametrize("data", [{}, {"levels": 4}, {"levels": [[4]]}, {"levels": [["a", 1]]}])
    def test_refuses_other_dicts(self, data):
        with pytest.raises(ValueError, match="no layout"):
            Layout.from_dict(data)


class TestPermutations:
    def test_choosing_one_block_brings_it_to_the_front(self):
        tables = Layout.parse("4c1").tables
        fingerprint = 0x1111_2222_3333_4444
        assert [table.permute(fingerprint) >> 48 for table in tables] == [
            0x1111,
            0x2222,
            0x3333,
            0x4444,
        ]

    def test_choosing_three_of_six_unequal_blocks(self):
        sizes = [11, 11, 11, 11, 10, 10]
        blocks, end = [], 64
        for size in sizes:
            blocks.append(((1 << size) - 1) << (end - size))
            end -= size
        for table, choice in zip(
            Layout.parse("6c3").tables, combinations(range(6), 3), strict=True
        ):
            chosen = sum(blocks[block] for block in choice)
            assert table.prefix_bits == sum(sizes[block] for block in choice)
            assert table.permute(chosen) == table.prefix_mask
            assert table.permute(FULL ^ chosen) == FULL ^ table.prefix_mask

    @each_layout
    def test_every_bit_has_one_place(self, layout):
        single_bits = np.uint64(1) << np.arange(64, dtype=np.uint64)
        for row in layout.permute(single_bits):
            assert sorted(row.tolist()) == single_bits.tolist()

    @each_layout
    @deterministic
    @given(values=st.lists(fingerprints, max_size=20))
    def test_round_trip(self, layout, values):
        array = np.array(values, dtype=np.uint64)
        permuted = layout.permute(array)
        assert permuted.shape == (len(layout.tables), len(values))
        assert permuted.dtype == np.uint64
        for number, table in enumerate(layout.tables):
            assert permuted[number].tolist() == [table.permute(value) for value in values]
            assert table.restore_many(permuted[number]).tolist() == values
            assert [table.restore(value) for value in permuted[number].tolist()] == values
        numbers = np.repeat(np.arange(len(layout.tables)), len(values))
        restored = layout.restore(numbers, permuted.ravel())
        assert restored.tolist() == values * len(layout.tables)

    @each_layout
    def test_zero_and_all_ones_stay(self, layout):
        for value in (0, FULL):
            assert {table.permute(value) for table in layout.tables} == {value}
            array = np.array([value], dtype=np.uint64)
            assert set(layout.permute(array).ravel().tolist()) == {value}


class TestKeys:
    @each_layout
    @deterministic
    @given(values=st.lists(st.tuples(st.integers(0, 255), fingerprints), min_size=1, max_size=20))
    def test_bytes_sort_as_tables_and_prefixes(self, layout, values):
        numbers = np.array([n % len(layout.tables) for n, _ in values], dtype=np.intp)
        permuted = np.array([value for _, value in values], dtype=np.uint64)
        keys = layout.keys(numbers, permuted)
        assert {len(key) for key in keys} == {layout.key_bytes}
        prefixes = [
            value & layout.tables[number].prefix_mask
            for number, value in zip(numbers.tolist(), permuted.tolist(), strict=True)
        ]
        as_numbers = list(zip(numbers.tolist(), prefixes, strict=True))
        assert [int.from_bytes(key, "big") for key in keys] == [
            number << 8 * (layout.key_bytes - 1) | prefix >> (BITS - 8 * (layout.key_bytes - 1))
            for number, prefix in as_numbers
        ]
        by_number = sorted(range(len(keys)), key=as_numbers.__getitem__)
        assert [keys[i] for i in by_number] == sorted(keys)

    def test_trailing_zero_bytes_are_kept(self):
        layout = Layout.parse("4c1")
        assert layout.keys(np.array([2]), np.array([0], dtype=np.uint64)) == [b"\x02\x00\x00"]


class TestFlips:
    @pytest.mark.parametrize(
        ("blocks", "chosen"),
        [(2, 1), (3, 1), (4, 1), (5, 1), (6, 1), (3, 2), (4, 2), (5, 2), (6, 2), (5, 3), (6, 3)],
    )
    def test_is_the_worst_spread_of_the_bits(self, blocks, chosen):
        layout = Layout(((blocks, chosen),))
        for k in range(11):
            worst = max(sum(sorted(spread)[:chosen]) for spread in spreads(k, blocks))
            assert layout.flips(k) == worst

    @pytest.mark.parametrize("name", ["4c1/4c1", "3c1/3c1"])
    def test_is_enough_for_nested_blocks_and_reached(self, name):
        layout = Layout.parse(name)
        masks = [
            int(table.restore_many(np.array([table.prefix_mask], dtype=np.uint64))[0])
            for table in layout.tables
        ]
        # The finest parts: bits that are in the prefixes of the same tables.
        parts: dict[tuple[int, ...], int] = {}
        for bit in range(64):
            member = tuple(mask >> bit & 1 for mask in masks)
            parts[member] = parts.get(member, 0) + 1
        members, sizes = np.array(list(parts)), np.array(list(parts.values()))
        for k in range(5):
            possible = np.array(list(spreads(k, len(sizes))))
            possible = possible[(possible <= sizes).all(axis=1)]
            assert (possible @ members).min(axis=1).max() == layout.flips(k)

    def test_four_tables_of_sixteen_bits(self):
        flips = [Layout.parse("4c1").flips(k) for k in range(12)]
        assert flips == [0] * 4 + [1] * 4 + [2] * 4


class TestProbes:
    @pytest.mark.parametrize(
        ("name", "k", "counts"),
        [
            ("4c1", 0, (1, 0, 0, 0)),
            ("4c1", 2, (1, 1, 1, 0)),
            ("4c1", 3, (1, 1, 1, 1)),
            ("4c1", 4, (17, 1, 1, 1)),
            ("4c1", 7, (17, 17, 17, 17)),
            ("4c1", 8, (137, 17, 17, 17)),
            ("4c1", 11, (137, 137, 137, 137)),
            ("3c1", 3, (23, 1, 1)),
            ("5c1", 3, (1, 1, 1, 1, 0)),
        ],
    )
    def test_tables_are_probed_unevenly(self, name, k, counts):
        assert Layout.parse(name).probe_counts(k) == counts

    @each_layout
    def test_every_difference_of_k_bits_is_probed_and_nothing_useless(self, layout):
        rng = random.Random(layout.name)
        for k in DISTANCES:
            counts = layout.probe_counts(k)
            if sum(counts) > MAX_PROBES:
                continue
            numbers, flips = layout.probes(k)
            assert tuple(np.bincount(numbers, minlength=len(counts)).tolist()) == counts
            assert not (flips & ~layout.prefix_masks[numbers]).any()
            weights = np.bitwise_count(flips)
            assert weights.max() <= layout.flips(k)
            assert len(set(zip(numbers.tolist(), flips.tolist(), strict=True))) == len(flips)
            differences = np.array(
                [
                    sum(1 << bit for bit in rng.sample(range(64), k - (n % 4 == 3 and k > 0)))
                    for n in range(400)
                ],
                dtype=np.uint64,
            )
            covered = np.zeros(len(differences), dtype=bool)
            for number, row in enumerate(layout.permute(differences)):
                prefixes = row & layout.prefix_masks[number]
                covered |= np.isin(prefixes, flips[numbers == number])
            assert covered.all(), k

    @pytest.mark.parametrize(("blocks", "chosen"), [(4, 1), (6, 1), (4, 2), (5, 2), (6, 2), (6, 3)])
    def test_every_spread_of_the_bits_is_covered(self, blocks, chosen):
        from scrapy_simdup.store.tables import _radii

        for k in range(11):
            radii = np.array(_radii(blocks, chosen, k))
            assert radii.max() <= Layout(((blocks, chosen),)).flips(k)
            everything = np.array([s for j in range(k + 1) for s in spreads(j, blocks)])
            sums = np.stack(
                [everything[:, c].sum(axis=1) for c in combinations(range(blocks), chosen)], axis=1
            )
            assert (sums <= radii).any(axis=1).all(), k

    def test_too_many_spreads_to_try_get_one_radius(self):
        layout = Layout.parse("8c2")
        assert len(set(layout.probe_counts(12))) <= len({t.prefix_bits for t in layout.tables})

    def test_candidates_of_random_fingerprints(self):
        rng = np.random.default_rng(5)
        stored = rng.integers(0, 2**64, 20_000, dtype=np.uint64)
        layout = Layout.parse("5c1")
        numbers, flips = layout.probes(5)
        compared = 0
        for query in rng.integers(0, 2**64, 20, dtype=np.uint64):
            own = layout.permute(np.array([query]))[:, 0]
            for number, row in enumerate(layout.permute(stored)):
                probes = (own[number] ^ flips[numbers == number]) & layout.prefix_masks[number]
                compared += np.isin(row & layout.prefix_masks[number], probes).sum()
        assert compared / 20 == pytest.approx(layout.candidates(5, 20_000), rel=0.1)


class TestTablesNeeded:
    @pytest.mark.parametrize(
        ("tau", "tables"), [(4, 20), (6, 20), (7, 16), (8, 16), (9, 10), (18, 10), (19, 4)]
    )
    def test_the_papers_scale(self, tau, tables):
        """2**34 fingerprints of 64 bits, k = 3: the designs of section 3.1.2."""
        assert tables_needed(64, 3, 34, tau) == tables

    def test_few_fingerprints_need_one_table(self):
        assert tables_needed(64, 3, 5, 6) == 1

    def test_a_million_pages(self):
        assert tables_needed(64, 3, 20, 7) == 4

    def test_says_when_there_is_no_way(self):
        with pytest.raises(ValueError, match="tau"):
            tables_needed(64, 0, 34, 5)


class TestPlan:
    @pytest.mark.parametrize("k", DISTANCES)
    def test_is_the_cheapest_and_bounded(self, k):
        for expected in (1, 10**4, 10**6, 10**8, 2**40):
            chosen = plan(k, expected)
            assert chosen.layout in LAYOUTS
            assert chosen == estimates(k, expected)[0]
            assert chosen.cost == min(p.cost for p in estimates(k, expected))
            assert chosen.probes == sum(chosen.layout.probe_counts(k)) <= MAX_PROBES
            assert chosen.flips == chosen.layout.flips(k)
            assert min(table.prefix_bits for table in chosen.layout.tables) >= 10
            assert len(chosen.layout.tables) <= 20
            assert 0 < chosen.bytes_per_fingerprint < 1000

    def test_the_papers_four_tables_for_a_usual_crawl(self):
        for expected in (10**5, 10**6, 10**7):
            assert plan(3, expected).layout.name == "4c1"

    def test_wider_prefixes_for_more_pages(self):
        for k in (3, 8, 10):
            prefixes = [plan(k, 10**e).layout.tables[0].prefix_bits for e in range(5, 9)]
            assert prefixes == sorted(prefixes)

    def test_default_distances_stay_within_milliseconds(self):
        assert plan(3, 10**8).lookup_us < 200
        assert plan(8, 10**6).lookup_us < 500
        assert plan(10, 10**7).lookup_us < 3000

    @pytest.mark.parametrize("k", [-1, 17, 3.0, True, None, "3", float("nan")])
    def test_refuses_other_distances(self, k):
        with pytest.raises(
            ValueError, match=r"max_distance is .*; allowed is an integer from 0 to 16"
        ):
            plan(k, 1000)

    @pytest.mark.parametrize("expected", [0, -5, 2**40 + 1, 1e6, True, None])
    def test_refuses_other_sizes(self, expected):
        with pytest.raises(ValueError, match=r"expected is .*; allowed is an integer from 1"):
            plan(3, expected)

    def test_takes_numpy_integers(self):
        assert plan(np.int64(3), np.int32(1000)) == plan(3, 1000)

    def test_reasoning_is_for_people(self):
        text = plan(8, 10**6).reasoning()
        assert "distance 8, 1,000,000 fingerprints expected" in text
        assert "random fingerprints" in text
        assert "instead of 4c1:" in text
        assert max(map(len, text.splitlines())) < 120

    @pytest.mark.parametrize(
        ("name", "expected", "measured"),
        [
            ("4c1", 10**5, 92.4),
            ("4c1", 250_000, 69.4),
            ("4c1", 500_000, 55.6),
            ("3c1", 10**6, 85.4),
        ],
    )
    def test_disk_use_is_about_what_lmdb_takes(self, name, expected, measured):
        """Measured with random inserts, pages in use: a file has free ones, too."""
        estimated = estimate(Layout.parse(name), 3, expected).bytes_per_fingerprint
        assert estimated == pytest.approx(measured, rel=0.15)
