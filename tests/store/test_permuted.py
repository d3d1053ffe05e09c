"""The tables in a real LMDB file give what comparing with every fingerprint gives."""

from __future__ import annotations

import random

import lmdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_simdup.store import permuted as module
from scrapy_simdup.store.permuted import PermutedTables
from scrapy_simdup.store.planner import LAYOUTS
from scrapy_simdup.store.tables import Layout

FULL = 2**64 - 1
#: k = 0 ... 7 as the paper's experiment, and the wider radii that verification makes usable.
DISTANCES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10)
#: Keeps the tests short; the arithmetic of more probes is tested without a store.
MOST_PROBES = 4_000

each_layout = pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)


@pytest.fixture
def store(tmp_path):
    """An environment and an empty database in it."""
    with lmdb.open(str(tmp_path / "lmdb"), max_dbs=8, map_size=1 << 28, sync=False) as env:
        yield env, env.open_db(b"tables")


def uint64(values):
    return np.array(values, dtype=np.uint64)


def brute_force(stored, query, k):
    """(distance, fingerprint) of all of *stored* within k, sorted."""
    stored = np.unique(uint64(stored))
    distances = np.bitwise_count(stored ^ np.uint64(query))
    near = distances <= k
    return sorted(zip(distances[near].tolist(), stored[near].tolist(), strict=True))


def looked_up(tables, txn, db, query):
    return tables.query(txn, db, query)


def looked_up_together(tables, txn, db, queries):
    rows, found, distances = tables.query_many(txn, db, uint64(queries))
    assert (rows.dtype, found.dtype, distances.dtype) == (np.intp, np.uint64, np.uint8)
    everything = zip(rows.tolist(), distances.tolist(), found.tolist(), strict=True)
    results = [[] for _ in queries]
    for row, distance, fingerprint in everything:
        results[row].append((distance, fingerprint))
    assert rows.tolist() == sorted(rows.tolist())
    return results


def flipped(rng, fingerprint, bits):
    for bit in rng.sample(range(64), bits):
        fingerprint ^= 1 << bit
    return fingerprint


def planted(seed, centres=25, farthest=11, others=1500):
    """Queries, and fingerprints with neighbours of every query at every distance."""
    rng = random.Random(seed)
    queries = [0, FULL, 0x00FF00FF00FF00FF, 0x8000000000000001]
    queries += [rng.getrandbits(64) for _ in range(centres - len(queries))]
    stored = [
        flipped(rng, query, distance)
        for query in queries
        for distance in range(farthest + 1)
        for _ in range(2)
    ]
    stored += [rng.getrandbits(64) for _ in range(others)]
    rng.shuffle(stored)
    return queries, stored


def everything(env, db):
    with env.begin() as txn:
        return list(txn.cursor(db))


class TestLookup:
    @each_layout
    def test_equals_brute_force_at_every_planted_distance(self, store, layout):
        env, db = store
        queries, stored = planted(layout.name)
        with env.begin(write=True) as txn:
            PermutedTables(layout, 0).add(txn, db, uint64(stored))
        tried = 0
        for k in DISTANCES:
            if sum(layout.probe_counts(k)) > MOST_PROBES:
                continue
            tried += 1
            tables = PermutedTables(layout, k)
            wanted = [brute_force(stored, query, k) for query in queries]
            assert all({d for d, _ in near} == set(range(k + 1)) for near in wanted)
            with env.begin() as txn:
                assert [looked_up(tables, txn, db, query) for query in queries] == wanted
                assert looked_up_together(tables, txn, db, queries) == wanted
        assert tried >= 4

    @pytest.mark.parametrize("k", DISTANCES)
    def test_k_is_found_and_k_plus_one_is_not(self, store, k):
        env, db = store
        rng = random.Random(k)
        tables = PermutedTables(Layout.parse("4c1"), k)
        for _ in range(20):
            query = rng.getrandbits(64)
            inside, outside = flipped(rng, query, k), flipped(rng, query, k + 1)
            with env.begin(write=True) as txn:
                tables.add(txn, db, uint64([inside, outside]))
                assert looked_up(tables, txn, db, query) == [(k, inside)]
                txn.drop(db, delete=False)

    @each_layout
    def test_nothing_in_an_empty_database(self, store, layout):
        env, db = store
        tables = PermutedTables(layout, 3)
        with env.begin() as txn:
            assert looked_up(tables, txn, db, 5) == []
            assert looked_up_together(tables, txn, db, [5, 6]) == [[], []]
            assert tables.count(txn, db) == 0
            assert tables.fingerprints(txn, db).tolist() == []
            assert not tables.contains(txn, db, 5)

    def test_no_queries_no_matches(self, store):
        env, db = store
        tables = PermutedTables(Layout.parse("4c1"), 3)
        with env.begin(write=True) as txn:
            tables.add(txn, db, uint64([1, 2, 3]))
            assert [len(array) for array in tables.query_many(txn, db, uint64([]))] == [0, 0, 0]

    @pytest.mark.parametrize("k", [0, 3, 8])
    def test_byte_borders(self, store, k):
        env, db = store
        values = {0, FULL}
        for bit in range(64):
            values |= {1 << bit, (1 << bit) - 1, FULL - (1 << bit), (0xFF << bit) & FULL}
        stored = sorted(values)
        for layout in (Layout.parse("4c1"), Layout.parse("5c1"), Layout.parse("3c1")):
            tables = PermutedTables(layout, k)
            with env.begin(write=True) as txn:
                tables.add(txn, db, uint64(stored))
                wanted = [brute_force(stored, query, k) for query in stored]
                assert looked_up_together(tables, txn, db, stored) == wanted
                assert [looked_up(tables, txn, db, q) for q in stored[::5]] == wanted[::5]
                txn.drop(db, delete=False)

    @pytest.mark.parametrize("shared", [300, 3000])
    def test_one_bucket_larger_than_a_page(self, store, shared):
        """A key with more than some 250 values has a B-tree of its own, of several pages."""
        env, db = store
        rng = random.Random(shared)
        stored = [0xABCD << 48 | rng.getrandbits(48) for _ in range(shared)]
        tables = PermutedTables(Layout.parse("4c1"), 3)
        queries = [flipped(rng, value, 3) for value in stored[::30]]
        with env.begin(write=True) as txn:
            for value in stored:
                tables.add(txn, db, uint64([value]))
            wanted = [brute_force(stored, query, 3) for query in queries]
            assert [looked_up(tables, txn, db, query) for query in queries] == wanted
            assert looked_up_together(tables, txn, db, queries) == wanted

    def test_a_crowd_of_neighbours_comes_once_each_and_in_order(self, store):
        env, db = store
        stored = [1 << bit for bit in range(64)] + [0]
        tables = PermutedTables(Layout.parse("4c1"), 2)
        with env.begin(write=True) as txn:
            tables.add(txn, db, uint64(stored))
            assert looked_up(tables, txn, db, 0) == [(0, 0)] + [(1, 1 << bit) for bit in range(64)]
            of_one = [(0, 1), (1, 0)] + [(2, 1 << bit) for bit in range(1, 64)]
            assert looked_up(tables, txn, db, 1) == of_one

    @pytest.mark.parametrize("limit", [1, 5, 30, 10_000])
    def test_of_a_crowd_the_nearest_are_enough(self, store, limit):
        rng = random.Random(5)
        centre = rng.getrandbits(64)
        stored = [flipped(rng, centre, rng.randint(0, 9)) for _ in range(3_000)]
        env, db = store
        tables = PermutedTables(Layout.parse("5c1"), 9)
        with env.begin(write=True) as txn:
            tables.add(txn, db, uint64(stored))
            found = tables.query(txn, db, centre, limit)
        everything = brute_force(stored, centre, 9)
        assert [distance for distance, _ in found] == [n for n, _ in everything][:limit]
        assert set(found) <= set(everything)
        assert len(set(found)) == len(found)

    def test_batches_of_any_size_give_the_same(self, store, monkeypatch):
        env, db = store
        queries, stored = planted("batches")
        tables = PermutedTables(Layout.parse("5c1"), 7)
        with env.begin(write=True) as txn:
            tables.add(txn, db, uint64(stored))
        wanted = [brute_force(stored, query, 7) for query in queries]
        for keys, pairs in ((1, 1), (100, 7), (1000, 100)):
            monkeypatch.setattr(module, "_BATCH_KEYS", keys)
            monkeypatch.setattr(module, "_BATCH_PAIRS", pairs)
            with env.begin() as txn:
                assert looked_up_together(tables, txn, db, queries) == wanted

    def test_the_same_query_twice_in_a_batch(self, store):
        env, db = store
        tables = PermutedTables(Layout.parse("4c1"), 3)
        with env.begin(write=True) as txn:
            tables.add(txn, db, uint64([7, 8]))
            together = looked_up_together(tables, txn, db, [7, 7, 8])
            assert together[0] == together[1] == brute_force([7, 8], 7, 3)
            assert together[2] == brute_force([7, 8], 8, 3)

    def test_refuses_more_probes_than_bearable(self):
        with pytest.raises(ValueError, match="'6c3' would need 62,168 probes a lookup"):
            PermutedTables(Layout.parse("6c3"), 8)

    def test_refuses_keys_that_are_no_number(self):
        with pytest.raises(ValueError, match="prefixes of more than 56 bits"):
            PermutedTables(Layout.parse("64c63"), 0)


class TestChanges:
    @each_layout
    def test_every_order_of_insertion_makes_the_same_database(self, tmp_path, layout):
        _, stored = planted("orders", others=200)
        tables = PermutedTables(layout, 0)
        orders = {
            "bulk": [stored],
            "one by one": [[value] for value in stored],
            "backwards": [[value] for value in reversed(stored)],
            "sorted": [[value] for value in sorted(stored)],
            "two bulks": [stored[::2], stored[1::2]],
            "one, then a bulk with it in": [stored[:1], stored],
            "bulk, then one by one": [stored[:300], *([value] for value in stored[300:])],
        }
        contents = {}
        for name, steps in orders.items():
            with lmdb.open(str(tmp_path / name), max_dbs=1, map_size=1 << 26, sync=False) as env:
                db = env.open_db(b"tables")
                with env.begin(write=True) as txn:
                    for step in steps:
                        tables.add(txn, db, uint64(step))
                contents[name] = everything(env, db)
        values = b"".join(value for key, value in contents["bulk"] if len(key) > 1)
        assert len(values) == 8 * len(set(stored)) * len(layout.tables)
        for name, content in contents.items():
            assert content == contents["bulk"], name

    def test_adding_again_changes_nothing(self, store):
        env, db = store
        tables = PermutedTables(Layout.parse("4c1"), 3)
        for values in ([1, 2, 3], [2], [3, 2, 1, 1], []):
            with env.begin(write=True) as txn:
                tables.add(txn, db, uint64(values))
                assert tables.count(txn, db) == 3
                assert sorted(tables.fingerprints(txn, db).tolist()) == [1, 2, 3]

    @pytest.mark.parametrize("new", [10, 199, 3000])
    def test_a_bulk_into_a_filled_one(self, store, new):
        """Into the buckets that are there, or all of it anew; some are there already."""
        env, db = store
        _, stored = planted("filled", others=3000)
        tables = PermutedTables(Layout.parse("4c1"), 3)
        rng = random.Random(new)
        more = [rng.getrandbits(64) for _ in range(new - 5)] + stored[:5]
        with env.begin(write=True) as txn:
            tables.add(txn, db, uint64(stored))
            tables.add(txn, db, uint64(more))
            everything_added = {*stored, *more}
            assert tables.count(txn, db) == len(everything_added)
            assert sorted(tables.fingerprints(txn, db).tolist()) == sorted(everything_added)
            for query in more[:20]:
                assert looked_up(tables, txn, db, query) == brute_force(
                    [*everything_added], query, 3
                )

    def test_a_crowd_is_cut_and_found_whole(self, store, monkeypatch):
        env, db = store
        monkeypatch.setattr(module, "_WRITE_CHUNK", 7)
        monkeypatch.setattr(module, "_LOOKUP_BYTES", 64)
        _, stored = planted("cut", others=300)
        stored += [1 << bit for bit in range(64)]
        tables = PermutedTables(Layout.parse("5c1"), 7)
        with env.begin(write=True) as txn:
            tables.add(txn, db, uint64(stored))
            for query in [0, *stored[:30]]:
                assert looked_up(tables, txn, db, query) == brute_force(stored, query, 7)

    @each_layout
    def test_removing(self, store, layout):
        env, db = store
        queries, stored = planted("removing", centres=6, others=100)
        tables = PermutedTables(layout, 0)
        gone, kept = set(stored[::3]), set(stored) - set(stored[::3])
        with env.begin(write=True) as txn:
            tables.add(txn, db, uint64(stored))
            assert all(tables.contains(txn, db, value) for value in stored)
            assert all(tables.remove(txn, db, value) for value in gone)
            assert not any(tables.remove(txn, db, value) for value in gone)
            assert not any(tables.contains(txn, db, value) for value in gone)
            assert tables.count(txn, db) == len(kept)
            assert set(tables.fingerprints(txn, db).tolist()) == kept
        with env.begin() as txn:
            wanted = [brute_force(list(kept), query, 3) for query in queries]
            assert looked_up_together(PermutedTables(layout, 3), txn, db, queries) == wanted

    def test_removing_all_leaves_nothing(self, store):
        env, db = store
        tables = PermutedTables(Layout.parse("5c2"), 3)
        with env.begin(write=True) as txn:
            tables.add(txn, db, uint64([0, FULL]))
            assert tables.remove(txn, db, 0)
            assert tables.remove(txn, db, FULL)
        assert everything(env, db) == []

    def test_an_aborted_transaction_leaves_no_trace(self, store):
        env, db = store
        tables = PermutedTables(Layout.parse("4c1"), 3)
        with env.begin(write=True) as txn:
            tables.add(txn, db, uint64([4]))
            assert looked_up(tables, txn, db, 4) == [(0, 4)]
            txn.abort()
        assert everything(env, db) == []

    @settings(derandomize=True, deadline=None, database=None, max_examples=40)
    @given(data=st.data())
    def test_any_history_equals_a_set(self, tmp_path_factory, data):
        # Few set bits, so that fingerprints are near each other and share prefixes.
        sparse = st.sets(st.integers(0, 63), max_size=4).map(lambda bits: sum(1 << b for b in bits))
        near = st.one_of(sparse, sparse.map(lambda value: FULL ^ value))
        k = data.draw(st.sampled_from(DISTANCES))
        name = data.draw(st.sampled_from(["2c1", "3c1", "4c1", "5c1", "6c1", "5c2"]))
        layout = Layout.parse(name)
        if sum(layout.probe_counts(k)) > MOST_PROBES:
            layout = Layout.parse("4c1")
        tables, model = PermutedTables(layout, k), set()
        path = str(tmp_path_factory.mktemp("history"))
        with lmdb.open(path, max_dbs=1, map_size=1 << 24, sync=False) as env:
            db = env.open_db(b"tables")
            for _ in range(data.draw(st.integers(1, 6))):
                step = data.draw(st.one_of(st.lists(near, max_size=12), near))
                with env.begin(write=True) as txn:
                    if isinstance(step, list):
                        tables.add(txn, db, uint64(step))
                        model |= set(step)
                    else:
                        assert tables.remove(txn, db, step) == (step in model)
                        model -= {step}
            queries = data.draw(st.lists(near, min_size=1, max_size=5))
            with env.begin() as txn:
                wanted = [brute_force(list(model), query, k) for query in queries]
                assert [looked_up(tables, txn, db, query) for query in queries] == wanted
                assert looked_up_together(tables, txn, db, queries) == wanted
                assert tables.count(txn, db) == len(model)
