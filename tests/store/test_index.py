"""FingerprintIndex: what a user of the tables alone relies on."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading

import numpy as np
import pytest

from scrapy_simdup import FingerprintIndex, Match, StoreError
from scrapy_simdup.store import index as module
from scrapy_simdup.store.planner import plan

FULL = 2**64 - 1


def brute_force(stored, query, k):
    near = {(value ^ query).bit_count(): [] for value in stored}
    for value in sorted(set(stored)):
        near[(value ^ query).bit_count()].append(value)
    return [
        Match(v, distance) for distance in sorted(near) if distance <= k for v in near[distance]
    ]


def flipped(rng, fingerprint, bits):
    for bit in rng.sample(range(64), bits):
        fingerprint ^= 1 << bit
    return fingerprint


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fps"


class TestUse:
    def test_first_steps(self, path):
        with FingerprintIndex(path, max_distance=3) as index:
            index.add(0b1000)
            index.add_many(np.array([0b1011, 2**63], dtype=np.uint64))
            assert len(index) == 3
            assert 0b1011 in index
            assert 0b1010 not in index
            assert index.query(0b1010) == [
                Match(fingerprint=0b1000, distance=1),
                Match(fingerprint=0b1011, distance=1),
                Match(fingerprint=2**63, distance=3),
            ]
            assert all(type(number) is int for match in index.query(0) for number in match)
            rows, fingerprints, distances = index.query_many([0b1010, 0b11111])
            assert rows.tolist() == [0, 0, 0, 1]
            assert fingerprints.tolist() == [0b1000, 0b1011, 2**63, 0b1011]
            assert distances.tolist() == [1, 1, 3, 2]
            assert index.remove(0b1011) is True
            assert index.remove(0b1011) is False
            assert sorted(index.fingerprints().tolist()) == [0b1000, 2**63]

    @pytest.mark.parametrize("k", [0, 1, 3, 7, 10])
    def test_equals_brute_force_before_and_after_reopening(self, path, k):
        rng = random.Random(k)
        queries = [0, FULL, *(rng.getrandbits(64) for _ in range(18))]
        stored = [flipped(rng, query, d) for query in queries for d in range(k + 2)]
        stored += [rng.getrandbits(64) for _ in range(500)]
        wanted = [brute_force(stored, query, k) for query in queries]
        with FingerprintIndex(path, max_distance=k) as index:
            for value in stored[:20]:
                index.add(value)
            index.add_many(stored[20:])
            assert [index.query(query) for query in queries] == wanted
        with FingerprintIndex(path, max_distance=k) as index:
            assert len(index) == len(set(stored))
            assert [index.query(query) for query in queries] == wanted
            rows, fingerprints, distances = index.query_many(queries)
            flat = [(row, *match) for row, near in enumerate(wanted) for match in near]
            assert list(zip(rows, fingerprints, distances, strict=True)) == flat

    def test_without_a_path_nothing_is_kept(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with FingerprintIndex(None) as index:
            index.add(1)
            assert index.query(1) == [Match(1, 0)]
        with FingerprintIndex(None) as index:
            assert len(index) == 0
        assert list(tmp_path.iterdir()) == []

    def test_two_temporary_ones_are_apart(self):
        with FingerprintIndex(None) as one, FingerprintIndex(None) as other:
            one.add(1)
            assert (len(one), len(other)) == (1, 0)

    def test_an_empty_index_is_true(self):
        with FingerprintIndex(None) as index:
            assert index
            assert index.query(0) == []

    def test_adding_twice_is_adding_once(self):
        with FingerprintIndex(None) as index:
            index.add(5)
            index.add(5)
            index.add_many([5, 5, 6])
            assert len(index) == 2

    def test_the_map_grows(self, path):
        values = np.random.default_rng(1).integers(0, 2**64, 60_000, dtype=np.uint64)
        with FingerprintIndex(path, map_size=1 << 20) as index:
            index.add_many(values)
            assert len(index) == 60_000
            assert Match(int(values[7]), 0) in index.query(values[7])


class TestValues:
    @pytest.mark.parametrize(
        "value", [np.uint64(FULL), np.int64(7), np.uint8(255), np.int32(0), 0, FULL]
    )
    def test_any_integer_is_taken(self, value):
        with FingerprintIndex(None) as index:
            index.add(value)
            assert index.query(value) == [Match(int(value), 0)]
            assert value in index
            assert index.remove(value)

    @pytest.mark.parametrize(
        "values",
        [
            np.array([1, 2], dtype=np.uint64),
            np.array([1, 2], dtype=">u8"),
            np.array([9, 1, 9, 2], dtype=np.int64)[1::2],
            np.array([1, 2], dtype=np.uint16),
            np.array([1, np.uint64(2)], dtype=object),
            [1, np.uint64(2)],
            (1, 2),
            {1, 2},
            range(1, 3),
            (value for value in (1, 2)),
        ],
    )
    def test_any_integers_are_taken(self, values):
        with FingerprintIndex(None) as index:
            index.add_many(values)
            assert sorted(index.fingerprints().tolist()) == [1, 2]

    def test_large_and_small_integers_in_one_list(self):
        with FingerprintIndex(None) as index:
            index.add_many([FULL, 0, 2**53 + 1])
            assert sorted(index.fingerprints().tolist()) == [0, 2**53 + 1, FULL]

    @pytest.mark.parametrize("empty", [[], np.array([], dtype=np.uint64), ()])
    def test_nothing_is_taken(self, empty):
        with FingerprintIndex(None) as index:
            index.add_many(empty)
            assert len(index) == 0
            assert [len(array) for array in index.query_many(empty)] == [0, 0, 0]

    @pytest.mark.parametrize(
        ("value", "error", "said"),
        [
            (-1, ValueError, "fingerprint -1 is not"),
            (2**64, ValueError, "18446744073709551616"),
            (np.int64(-5), ValueError, "-5"),
            (1.0, TypeError, "1.0 is a float"),
            (float("nan"), TypeError, "nan is a float"),
            (np.float64("nan"), TypeError, "nan"),
            ("ff", TypeError, "'ff' is a str"),
            (b"12345678", TypeError, "is a bytes"),
            (None, TypeError, "None"),
            (True, TypeError, "True is a bool"),
            (np.array(5), TypeError, "ndarray"),
        ],
    )
    def test_what_is_no_fingerprint_is_named(self, value, error, said):
        with FingerprintIndex(None) as index:
            for method in (index.add, index.query, index.remove, index.__contains__):
                with pytest.raises(error, match=said):
                    method(value)
            with pytest.raises(error, match=said):
                index.add_many([1, value])
            assert len(index) == 0

    @pytest.mark.parametrize(
        ("values", "error", "said"),
        [
            (np.array([1.0, np.nan]), TypeError, "dtype float64 .*uint64 is needed"),
            (np.array([np.nan]), TypeError, "nan"),
            (np.array([]), TypeError, "float64"),
            (np.array([True]), TypeError, "bool"),
            (np.array(["a"]), TypeError, "dtype <U1"),
            (np.array([3, -7, -8]), ValueError, "-7 at row 1 is negative.*view"),
            (np.array([[1, 2]], dtype=np.uint64), ValueError, r"shape \(1, 2\)"),
            (np.uint64(7), TypeError, "an array or integers"),
            (7, TypeError, "an array or integers"),
            ("12", TypeError, "'12'"),
            (b"12", TypeError, "b'12'"),
            (None, TypeError, "None"),
        ],
    )
    def test_what_is_no_array_of_fingerprints_is_named(self, values, error, said):
        with FingerprintIndex(None) as index:
            for method in (index.add_many, index.query_many):
                with pytest.raises(error, match=said):
                    method(values)
            assert len(index) == 0

    def test_the_callers_array_is_left_alone(self):
        values = np.array([3, 1, 2], dtype=np.uint64)
        with FingerprintIndex(None) as index:
            index.add_many(values)
        assert values.tolist() == [3, 1, 2]

    @pytest.mark.parametrize("k", [-1, 17, 2.5, True, None])
    def test_distances_out_of_range_are_named(self, path, k):
        with pytest.raises(ValueError, match=r"max_distance is .* from 0 to 16"):
            FingerprintIndex(path, max_distance=k)
        assert not path.exists()

    def test_sizes_out_of_range_are_named(self, path):
        with pytest.raises(ValueError, match="expected is 0"):
            FingerprintIndex(path, expected=0)
        assert not path.exists()


class TestLayout:
    def test_is_planned_once(self, path):
        with FingerprintIndex(path, max_distance=3, expected=1_000_000) as index:
            assert index.layout == plan(3, 1_000_000).layout
            index.add(0)
        with FingerprintIndex(path, max_distance=8, expected=10**8) as index:
            assert index.layout == plan(3, 1_000_000).layout
            assert index.max_distance == 8

    @pytest.mark.parametrize("k", [0, 2, 5, 8, 11])
    def test_serves_other_distances(self, path, k):
        rng = random.Random(k)
        queries = [rng.getrandbits(64) for _ in range(20)]
        stored = [flipped(rng, query, d) for query in queries for d in range(13)]
        with FingerprintIndex(path, max_distance=3) as index:
            index.add_many(stored)
        with FingerprintIndex(path, max_distance=k) as index:
            for query in queries:
                assert index.query(query) == brute_force(stored, query, k)

    def test_refuses_a_distance_it_cannot_serve_and_says_how_to_rebuild(self, path, tmp_path):
        with FingerprintIndex(path, max_distance=1) as index:
            assert index.layout.name == "2c1"
            index.add_many([0, 3])
        with pytest.raises(
            StoreError, match=r"max_distance 12 .* new\.add_many\(old\.fingerprints"
        ):
            FingerprintIndex(path, max_distance=12)
        with (
            FingerprintIndex(path, max_distance=1) as old,
            FingerprintIndex(tmp_path / "new", max_distance=12) as new,
        ):
            new.add_many(old.fingerprints())
            assert new.query(1) == [Match(0, 1), Match(3, 1)]

    def test_two_at_the_same_time_in_one_process(self, path):
        with FingerprintIndex(path, max_distance=3) as one:
            with FingerprintIndex(path, max_distance=8) as other:
                one.add(0)
                assert other.query(0xFF) == [Match(0, 8)]
                assert one.query(0xFF) == []
            assert one.query(1) == [Match(0, 1)]


class TestLife:
    def test_close_may_be_called_again(self, path):
        index = FingerprintIndex(path)
        index.close()
        index.close()

    def test_use_after_close_is_an_error(self, path):
        with FingerprintIndex(path) as index:
            index.add(1)
        for use in (
            lambda: index.add(2),
            lambda: index.add_many([2]),
            lambda: index.remove(1),
            lambda: index.query(1),
            lambda: index.query_many([1]),
            index.fingerprints,
            lambda: len(index),
            lambda: 1 in index,
        ):
            with pytest.raises(StoreError, match="closed"):
                use()

    def test_closing_one_leaves_the_other_open(self, path):
        one, other = FingerprintIndex(path), FingerprintIndex(path)
        one.close()
        one.close()
        other.add(1)
        assert len(other) == 1
        other.close()
        with FingerprintIndex(path) as index:
            assert 1 in index

    def test_an_exception_closes_it_and_keeps_what_was_added(self, path):
        def fails():
            with FingerprintIndex(path) as index:
                index.add(1)
                raise KeyError

        with pytest.raises(KeyError):
            fails()
        with FingerprintIndex(path) as index:
            assert 1 in index

    def test_a_file_in_the_way_is_an_error(self, path):
        path.write_text("mine")
        with pytest.raises(StoreError):
            FingerprintIndex(path)
        assert path.read_text() == "mine"

    def test_a_failed_add_many_adds_nothing(self, path, monkeypatch):
        with FingerprintIndex(path) as index:
            index.add(1)
            tables = index._tables
            add = module.PermutedTables.add

            def fails(self, txn, db, values):
                add(self, txn, db, values)
                raise OSError("disk on fire")

            with monkeypatch.context() as patch:
                patch.setattr(module.PermutedTables, "add", fails)
                with pytest.raises(OSError, match="on fire"):
                    index.add_many([2, 3])
            assert tables is index._tables
            assert index.fingerprints().tolist() == [1]

    def test_threads_may_share_it(self, path):
        values = list(range(0, 4000, 10))
        with FingerprintIndex(None) as index:
            failures = []

            def work(part):
                try:
                    for value in part:
                        index.add(value)
                        assert index.query(value)[0] == Match(value, 0)
                except Exception as error:
                    failures.append(error)

            threads = [threading.Thread(target=work, args=(values[n::4],)) for n in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert failures == []
            assert sorted(index.fingerprints().tolist()) == values


ADDING = """
import sys
from scrapy_simdup import FingerprintIndex

with FingerprintIndex(sys.argv[1], max_distance=int(sys.argv[2]), expected=int(sys.argv[3])) as index:
    for value in range(int(sys.argv[4]), 200, 2):
        index.add(value)
    print(index.layout.name)
"""


def start(*arguments):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, "-c", ADDING, *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


class TestProcesses:
    def test_two_make_and_fill_the_same_index(self, path):
        """Different plans, made at the same time: there is one layout, and it holds for both."""
        started = [start(path, 3, 10**4, 0), start(path, 8, 10**8, 1)]
        layouts = [process.communicate(timeout=30)[0].strip() for process in started]
        assert [process.returncode for process in started] == [0, 0]
        assert layouts[0] == layouts[1]
        with FingerprintIndex(path, max_distance=3) as index:
            assert index.layout.name == layouts[0]
            assert sorted(index.fingerprints().tolist()) == list(range(200))
            assert index.query(77) == brute_force(range(200), 77, 3)

    def test_one_sees_what_the_other_adds(self, path):
        with FingerprintIndex(path) as index:
            index.add(1000)
            process = start(path, 3, 10**6, 0)
            process.communicate(timeout=30)
            assert process.returncode == 0
            assert len(index) == 101
            assert index.query(198)[0] == Match(198, 0)
