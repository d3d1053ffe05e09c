"""A store that has outgrown its layout gets another one, whole or not at all."""

from __future__ import annotations

import random
import signal
import time

import numpy as np
import pytest
from material import assert_consistent, run_script, start_script

from scrapy_simdup import FingerprintIndex, StoreError
from scrapy_simdup.page.profile import Profile, View
from scrapy_simdup.store.environment import Environment
from scrapy_simdup.store.lmdb import KIND, LmdbPageStore
from scrapy_simdup.store.planner import estimate, outgrown, plan
from scrapy_simdup.store.records import Record
from scrapy_simdup.store.tables import Layout

SMALL, LARGE = plan(9, 1).layout, plan(9, 10**8).layout
CONFIGURATION = {"weights": "sqrt"}


def fingerprints(count, seed=1):
    return np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64)


def near(values, bits):
    rng = random.Random(bits)
    return [value ^ sum(1 << bit for bit in rng.sample(range(64), bits)) for value in values]


def check(index, stored):
    """Everything is there once, and found at every distance."""
    assert len(index) == len(stored)
    assert np.array_equal(np.sort(index.fingerprints()), np.sort(stored))
    some = stored[:: max(1, len(stored) // 20)].tolist()
    for distance in range(index.max_distance + 2):
        for value, query in zip(some, near(some, distance), strict=True):
            found = {match.fingerprint: match.distance for match in index.query(query)}
            assert found.get(value) == (distance if distance <= index.max_distance else None)


def test_the_two_layouts_of_these_tests_differ():
    assert SMALL != LARGE


class TestOutgrown:
    @pytest.mark.parametrize("k", [0, 3, 9])
    def test_what_was_just_planned_is_not(self, k):
        for stored in (0, 1, 10**4, 10**6, 10**9):
            assert outgrown(plan(k, max(1, stored)).layout, k, stored) is None

    def test_a_layout_that_takes_twice_as_long_is(self):
        better = outgrown(SMALL, 9, 10**8)
        assert better == plan(9, 10**8)
        assert 2 * better.page_us <= estimate(SMALL, 9, 10**8).page_us

    def test_a_layout_that_is_a_little_slower_is_not(self):
        for exponent in range(4, 9):
            best = plan(9, 10**exponent)
            for name in ("4c1", "5c1", "6c1"):
                layout = Layout.parse(name)
                slower = estimate(layout, 9, 10**exponent).page_us / best.page_us
                assert (outgrown(layout, 9, 10**exponent) is not None) == (slower >= 2)

    def test_an_index_and_a_store_say_so(self, tmp_path, monkeypatch):
        with FingerprintIndex(tmp_path / "index", max_distance=9, expected=1) as index:
            index.add_many(fingerprints(10))
            assert index.outgrown() is None
            monkeypatch.setattr("scrapy_simdup.store.permuted.PermutedTables.count", count_of_many)
            assert index.outgrown() == plan(9, 10**8)
        with page_store(tmp_path / "pages") as store:
            assert store.outgrown() == plan(9, 10**8)


def count_of_many(tables, txn, db):
    return 10**8


class TestIndex:
    def test_has_the_new_layout_and_the_same_fingerprints(self, tmp_path):
        stored = fingerprints(3000)
        with FingerprintIndex(tmp_path / "index", max_distance=9, expected=1) as index:
            assert index.layout == SMALL
            index.add_many(stored)
            index.relayout(10**8)
            assert index.layout == LARGE
            check(index, stored)
            index.add(5)
            assert index.remove(5)
        with FingerprintIndex(tmp_path / "index", max_distance=9, expected=1) as index:
            assert index.layout == LARGE
            check(index, stored)
            index.relayout()
            assert index.layout == plan(9, 3000).layout
            check(index, stored)

    def test_an_empty_one_too(self):
        with FingerprintIndex(None, max_distance=9, expected=1) as index:
            index.relayout(10**8)
            assert (index.layout, len(index)) == (LARGE, 0)
            index.add(5)
            assert index.query(5)

    def test_the_bytes_are_those_of_an_index_made_so(self, tmp_path):
        stored = fingerprints(500)
        contents = []
        for expected in (1, 10**8):
            path = tmp_path / str(expected)
            with FingerprintIndex(path, max_distance=9, expected=expected) as index:
                index.add_many(stored)
                index.relayout(10**8)
                contents.append(index._read(lambda txn, db=index._db: list(txn.cursor(db))))
        assert contents[0] == contents[1]

    def test_progress_is_told(self):
        told = []
        with FingerprintIndex(None, max_distance=9, expected=1) as index:
            index.add_many(fingerprints(1000))
            index.relayout(10**8, lambda done, total: told.append((done, total)))
        total = 1000 * len(LARGE.tables)
        assert told[-1] == (total, total)
        assert len(told) >= len(LARGE.tables)
        assert told == sorted(told)

    def test_an_error_on_the_way_changes_nothing(self, tmp_path):
        stored = fingerprints(1000)

        def fails(done, total):
            if done > total / 2:
                raise KeyError("stop")

        with FingerprintIndex(tmp_path / "index", max_distance=9, expected=1) as index:
            index.add_many(stored)
            with pytest.raises(KeyError):
                index.relayout(10**8, fails)
            assert index.layout == SMALL
            check(index, stored)

    def test_another_one_of_the_process_goes_on(self, tmp_path):
        stored = fingerprints(1000)
        with (
            FingerprintIndex(tmp_path / "index", max_distance=9, expected=1) as one,
            FingerprintIndex(tmp_path / "index", max_distance=3) as other,
        ):
            one.add_many(stored[:-1])
            assert other.layout == SMALL
            one.relayout(10**8)
            other.add(int(stored[-1]))
            check(other, stored)
            check(one, stored)

    def test_another_process_goes_on(self, tmp_path):
        stored = fingerprints(1000)
        with FingerprintIndex(tmp_path / "index", max_distance=9, expected=1) as index:
            index.add_many(stored[:-1])
            run_script(RELAYOUT, tmp_path / "index", 10**8)
            index.add(int(stored[-1]))
            assert index.layout == LARGE
            check(index, stored)

    def test_a_layout_that_another_process_chose_may_ask_too_much(self, tmp_path):
        path = tmp_path / "index"
        with FingerprintIndex(path, max_distance=9) as index:
            index.add(1)
            with FingerprintIndex(path, max_distance=1) as other:
                other.relayout(1)
                assert other.layout.name == "2c1"
            with pytest.raises(StoreError, match=r"max_distance 9 would take .* probes"):
                index.query(1)


RELAYOUT = """
import sys
from scrapy_simdup import FingerprintIndex
with FingerprintIndex(sys.argv[1], max_distance=9) as index:
    print("ready", flush=True)
    index.relayout(int(sys.argv[2]))
    print("done", flush=True)
"""

KILLED = """
import os, signal, sys
from scrapy_simdup import FingerprintIndex
calls = 0
def kill(done, total):
    global calls
    calls += 1
    if calls == int(sys.argv[3]) or done == total:
        os.kill(os.getpid(), signal.SIGKILL)
with FingerprintIndex(sys.argv[1], max_distance=9) as index:
    index.relayout(int(sys.argv[2]), kill)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL")
class TestKilled:
    @pytest.mark.parametrize("call", [1, 2, 1000])
    def test_before_the_commit_the_old_tables_are_there(self, tmp_path, call):
        """In the first table, in the second, and when all is written but not committed."""
        stored, path = fingerprints(20_000), tmp_path / "index"
        with FingerprintIndex(path, max_distance=9, expected=1) as index:
            index.add_many(stored)
        with start_script(KILLED, path, 10**8, call) as process:
            process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL
        with FingerprintIndex(path, max_distance=9) as index:
            assert index.layout == SMALL
            check(index, stored)
            index.relayout(10**8)
            assert index.layout == LARGE
            check(index, stored)

    def test_at_any_time_the_old_or_the_new_tables_are_there(self, tmp_path):
        stored, path = fingerprints(200_000), tmp_path / "index"
        with FingerprintIndex(path, max_distance=9, expected=1) as index:
            index.add_many(stored)
        with start_script(RELAYOUT, path, 1) as process:
            process.stdout.readline()
            started = time.perf_counter()
            process.communicate(timeout=60)
            whole = time.perf_counter() - started
        layouts = []
        for part in (0.1, 0.4, 0.6, 0.8, 0.9, 0.95, 1.0, 1.1):
            wanted = LARGE if len(layouts) % 2 == 0 else SMALL
            with start_script(RELAYOUT, path, 10**8 if wanted == LARGE else 1) as process:
                process.stdout.readline()
                time.sleep(part * whole)
                process.kill()
                process.communicate(timeout=60)
            with FingerprintIndex(path, max_distance=9) as index:
                layouts.append(index.layout)
                assert index.layout in {SMALL, LARGE}
                assert len(index) == len(stored)
                check(index, stored)


# ---- the page store ------------------------------------------------------------------------------


def page_store(path, **options):
    options = {"max_distance": 9, "expected_pages": 1, **options}
    return Closing(LmdbPageStore(path, configuration=CONFIGURATION, **options))


class Closing:
    def __init__(self, store):
        self.store = store

    def __enter__(self):
        return self.store

    def __exit__(self, *exc_info):
        self.store.close()


def put_pages(store, values, first=0):
    def job(txn):
        for number, value in enumerate(values, first):
            raw = number.to_bytes(16, "big")
            view = View("main", int(value), bytes(256), 100, 93, raw)
            profile = Profile(views=(view,))
            txn.put(Record(key=raw, url="http://a.example/", body_digest=raw, profile=profile))

    store.transact(job).result()


def found(store, values, distance):
    queries = near(values, distance)
    return [store.transact(lambda txn, q=q: txn.candidates([q])).result() for q in queries]


KILLED_STORE = """
import os, signal, sys
from scrapy_simdup.store.lmdb import LmdbPageStore
def kill(done, total):
    if done >= total * float(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
store = LmdbPageStore(
    sys.argv[1], configuration={"weights": "sqrt"}, max_distance=9, expected_pages=1
)
store.relayout(10**8, kill)
"""


class TestPageStore:
    def test_has_the_new_layout_and_the_same_pages(self, tmp_path):
        values = fingerprints(300).tolist()
        with page_store(tmp_path / "pages") as store:
            put_pages(store, values)
            put_pages(store, values[:50], first=300)
            assert store.info().layout == SMALL.name
            told = []
            store.relayout(10**8, lambda done, total: told.append((done, total)))
            assert told[-1] == (300 * len(LARGE.tables),) * 2
            assert store.info().layout == LARGE.name
            assert_consistent(store._environment)
            for distance in (0, 5, 9):
                pages = found(store, values, distance)
                assert all(number + 1 in ids for number, ids in enumerate(pages))
            put_pages(store, fingerprints(10, seed=2), first=500)
            assert_consistent(store._environment)
        with page_store(tmp_path / "pages") as store:
            assert store.info().layout == LARGE.name
            assert store.info().pages == 360

    def test_another_store_of_the_process_goes_on(self, tmp_path):
        values = fingerprints(100).tolist()
        with page_store(tmp_path / "pages") as one, page_store(tmp_path / "pages") as other:
            put_pages(one, values[:90])
            one.relayout(10**8)
            put_pages(other, values[90:], first=90)
            assert_consistent(one._environment)
            assert all(n + 1 in ids for n, ids in enumerate(found(other, values, 9)))

    @pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL")
    @pytest.mark.parametrize("part", [0.01, 0.5, 1.0])
    def test_killed_it_is_whole(self, tmp_path, part):
        values = fingerprints(2000).tolist()
        with page_store(tmp_path / "pages") as store:
            put_pages(store, values)
        with start_script(KILLED_STORE, tmp_path / "pages", part) as process:
            process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL
        environment = Environment.open(tmp_path / "pages", kind=KIND)
        try:
            assert_consistent(environment)
        finally:
            environment.close()
        with page_store(tmp_path / "pages") as store:
            assert store.info().layout == SMALL.name
            store.relayout(10**8)
            assert_consistent(store._environment)
