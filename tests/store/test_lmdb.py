from __future__ import annotations

import itertools
from hashlib import blake2b
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from material import assert_consistent, run_script, start_script

from scrapy_simdup import StoreError
from scrapy_simdup.page.profile import VIEWS, Profile, View
from scrapy_simdup.store.environment import Environment
from scrapy_simdup.store.hostmemory import MAX_COUNT, MAX_COUNTERS, HostMemory
from scrapy_simdup.store.lmdb import KIND, LmdbPageStore, configuration_id, read_info
from scrapy_simdup.store.planner import plan
from scrapy_simdup.store.records import COMMON_PAGES, MAX_SAME_TEXT, Record

CONFIGURATION = {"extractor": "trial 1", "weights": "sqrt"}
SKETCH = bytes(256)


@pytest.fixture
def open_store(store_path):
    opened = []

    def open_(path=store_path, **options):
        options = {
            "configuration": CONFIGURATION,
            "max_distance": 3,
            "expected_pages": 1000,
            **options,
        }
        store = LmdbPageStore(path, **options)
        opened.append(store)
        return store

    yield open_
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store):
    return open_store()


def digest(number):
    return number.to_bytes(16, "big")


def record(name, *simhashes, body=None, text=None, prose=None, representative=0, **values):
    """Return a record with a view for each fingerprint, whose digests, unless given, are its own:
    *text* that of the view "main", *prose* that of the view "prose".
    """
    own = int.from_bytes(name.encode(), "big") << 8
    views = tuple(
        View(view, simhash, SKETCH, 100, 93, digest(own + n if given is None else given))
        for n, (view, simhash, given) in enumerate(
            zip(VIEWS, simhashes or (own % 2**64,), (text, prose), strict=False), start=2
        )
    )
    return Record(
        key=name.encode(),
        url=f"https://example.org/{name}",
        body_digest=digest(own + 1 if body is None else body),
        profile=Profile(views=views),
        representative=representative,
        **values,
    )


def blocks(*hashes):
    return np.array(hashes, dtype=np.uint32)


def do(store, method, *arguments):
    """Call a method of ``PageTransaction`` in a transaction of its own."""
    return store.transact(lambda txn: getattr(txn, method)(*arguments)).result()


def put(store, record, page_id=None):
    return do(store, "put", record, page_id)


def common(store, host, *hashes):
    return do(store, "common_blocks", host, blocks(*hashes)).tolist()


def counts(store, host, *hashes):
    """Return what the store's file says of *hashes*, hosts apart by the digest of their names."""
    key = blake2b(host.encode(), digest_size=16).digest()
    hosts = store._environment.database("hosts")
    memory = HostMemory.decode(store._environment.read(lambda txn: txn.get(key, b"", db=hosts)))
    return memory.count(blocks(*hashes)).tolist()


def overwrite(store, database, key, value):
    handle = store._environment.database(database)
    store._environment.write(lambda txn: txn.put(key, value, db=handle))


def check(store):
    assert_consistent(store._environment)


class TestRecords:
    def test_come_back_as_they_were_put(self, store):
        full = Record(
            key=b"\0\xff" * 10,
            url="https://example.org/ü\n",
            body_digest=digest(1),
            profile=Profile(
                views=(
                    View("main", 2**64 - 1, bytes(range(256)), 5, 4, digest(2)),
                    View("prose", 0, SKETCH, 3, 2, digest(3)),
                ),
                visible=bytes(range(64)),
                title="题目",
                headings=("ü", "题目"),
                blocks=b"\0\1\2\xff" * 128,
                numbers=b"\xff\0\0\0" * 64,
            ),
            language="zh",
            body_bytes=2**40,
            first_seen=1.5,
            last_seen=2.25,
            crawl="news-1",
            text=b"\0compressed",
            representative=0,
        )
        page_id = put(store, full)
        assert do(store, "get", page_id) == full
        alias = record(
            "b",
            representative=page_id,
            reason="simhash",
            distance=3,
            resemblance=0.9,
            containment=0.95,
            rule="prose",
        )
        assert do(store, "get", put(store, alias)) == alias

    def test_give_views_and_title_of_their_profile(self):
        profile = Profile(views=(View("main", 1, SKETCH, 3, 2, digest(1)),), title="Ferry")
        page = Record(key=b"k", url="", body_digest=digest(1), profile=profile)
        assert (page.views, page.title) == (profile.views, "Ferry")
        with pytest.raises(AttributeError):
            page.title = "Harbour"

    def test_that_are_damaged_are_an_error_that_says_so(self, store, store_path):
        page_id = put(store, record("a"))
        overwrite(store, "pages", page_id.to_bytes(8, "big"), b"\x93\1\2")
        for method, argument in (("get", page_id), ("find", b"a")):
            with pytest.raises(StoreError) as refused:
                do(store, method, argument)
            message = str(refused.value)
            assert message.startswith(f"store '{store_path}' has a damaged record of page 1 (")
            assert message.endswith("); restore a copy, or use another store")

    def test_of_which_the_tables_are_damaged_are_an_error_that_says_so(self, store, store_path):
        put(store, record("a", 5))
        overwrite(store, "tables", bytes(3), b"12345")
        with pytest.raises(StoreError, match=r"has a damaged table of fingerprints \("):
            do(store, "candidates", [5])

    def test_are_numbered_in_their_order(self, store):
        assert [put(store, record(name)) for name in "abc"] == [1, 2, 3]

    def test_are_found_by_the_key_of_their_request(self, store):
        page_id = put(store, record("a"))
        assert do(store, "find", b"a") == (page_id, record("a"))
        assert do(store, "find", b"b") is None

    def test_that_are_not_there_are_key_errors(self, store):
        with pytest.raises(KeyError):
            do(store, "get", 7)

    def test_keep_their_number_when_they_are_replaced(self, store):
        page_id = put(store, record("a", 5))
        assert put(store, record("a", 9), page_id) == page_id
        assert do(store, "get", page_id) == record("a", 9)
        check(store)


class TestDigests:
    def test_of_kept_pages_are_found(self, store):
        page_id = put(store, record("a", body=1, text=2))
        assert do(store, "find_bodies", digest(1)) == [page_id]
        assert do(store, "find_texts", [digest(2)]) == [page_id]
        assert do(store, "find_bodies", digest(2)) == []
        assert do(store, "find_texts", [digest(1)]) == []

    def test_of_aliases_are_not_found(self, store):
        page_id = put(store, record("a", body=1, text=2))
        put(store, record("b", 5, 6, body=3, text=4, prose=5, representative=page_id))
        assert do(store, "find_bodies", digest(3)) == []
        assert do(store, "find_texts", [digest(4), digest(5)]) == []

    def test_that_several_pages_have_give_the_oldest_first(self, store):
        first, second = (put(store, record(name, body=1, text=2)) for name in "ab")
        assert do(store, "find_bodies", digest(1)) == [first, second]
        assert do(store, "find_texts", [digest(2)]) == [first, second]
        put(store, record("a", body=5, text=6), first)
        assert do(store, "find_bodies", digest(1)) == [second]
        assert do(store, "find_texts", [digest(2)]) == [second]
        assert do(store, "find_texts", [digest(6), digest(2)]) == [first, second]
        check(store)


class TestTexts:
    """Pages are found by the digest of any of their views."""

    def test_of_every_view_are_found(self, store):
        page_id = put(store, record("a", 1, 2, text=1, prose=2))
        for wanted in ([1], [2], [2, 1], [3, 2]):
            assert do(store, "find_texts", list(map(digest, wanted))) == [page_id]
        assert do(store, "find_texts", []) == []

    def test_are_found_whatever_view_they_were(self, store):
        ids = [
            put(store, record("a", 1, 2, text=1, prose=2)),
            put(store, record("b", 3, 4, text=2, prose=3)),
            put(store, record("c", 5, text=2)),
        ]
        assert do(store, "find_texts", [digest(2)]) == ids
        assert do(store, "find_texts", [digest(3), digest(1)]) == ids[:2]

    def test_that_are_equal_in_one_page_name_it_once(self, store):
        page_id = put(store, record("a", 1, 2, text=7, prose=7))
        assert do(store, "find_texts", [digest(7), digest(7)]) == [page_id]
        check(store)
        put(store, record("a", 1, 2, text=7, prose=8), page_id)
        assert do(store, "find_texts", [digest(7)]) == [page_id]
        check(store)

    def test_of_a_view_that_is_gone_are_not_found(self, store):
        page_id = put(store, record("a", 1, 2, text=1, prose=2))
        put(store, record("a", 1, text=1), page_id)
        assert do(store, "find_texts", [digest(2)]) == []
        assert do(store, "find_texts", [digest(1)]) == [page_id]
        check(store)

    def test_that_change_their_view_stay(self, store):
        page_id = put(store, record("a", 1, 2, text=1, prose=2))
        put(store, record("a", 1, 2, text=2, prose=3), page_id)
        assert do(store, "find_texts", [digest(1)]) == []
        assert do(store, "find_texts", [digest(2)]) == [page_id]
        check(store)

    def test_of_another_page_stay_when_one_is_replaced(self, store):
        first, second = (put(store, record(n, 1, 2, text=1, prose=2)) for n in "ab")
        put(store, record("a", 1, 2, text=3, prose=4), first)
        assert do(store, "find_texts", [digest(1), digest(2)]) == [second]
        check(store)

    def test_are_not_found_after_their_page_has_become_an_alias(self, store):
        first, second = (put(store, record(n, 1, 2, text=1, prose=2)) for n in "ab")
        put(store, record("b", 1, 2, text=1, prose=2, representative=first), second)
        assert do(store, "find_texts", [digest(1), digest(2)]) == [first]
        check(store)

    def test_are_found_oldest_page_first_also_far_apart(self, store):
        for n in range(1, 130):
            put(store, record(f"p{n}", n, text=1 if n in {1, 8, 64, 129} else 2))
        assert do(store, "find_texts", [digest(1)]) == [1, 8, 64, 129]

    def test_that_very_many_pages_have_give_the_64_oldest(self, store):
        def job(txn):
            ids = [txn.put(record(f"p{n}", n, 2**40, text=1, prose=2 + n % 2)) for n in range(150)]
            return ids, txn.find_texts([digest(1)]), txn.find_texts([digest(3), digest(2)])

        ids, by_text, by_either = store.transact(job).result()
        assert MAX_SAME_TEXT == 64
        assert by_text == ids[:64]
        assert by_either == ids[:128]


class TestBlocks:
    """What recurs on a host; how it is counted is tested with ``HostMemory``."""

    def learn(self, store, host, *hashes, times=1):
        for _ in range(times):
            do(store, "learn_blocks", host, blocks(*hashes))

    def test_are_common_from_the_eighth_page_on(self, store):
        assert COMMON_PAGES == 8
        self.learn(store, "example.org", 1, 2, times=7)
        assert common(store, "example.org", 1, 2) == [False, False]
        self.learn(store, "example.org", 2, 3)
        assert common(store, "example.org", 3, 2, 1, 2) == [False, True, False, True]

    def test_are_counted_once_a_page(self, store):
        self.learn(store, "example.org", *[1] * 20)
        assert common(store, "example.org", 1) == [False]
        assert counts(store, "example.org", 1) == [1]

    def test_of_one_host_are_none_of_another(self, store):
        hosts = ["example.org", "www.example.org", "EXAMPLE.org", "", "例.org", "x" * 5000]
        for n, host in enumerate(hosts):
            self.learn(store, host, 5, n, times=n + 6)
        for n, host in enumerate(hosts):
            assert counts(store, host, 5, n, 77) == [n + 6, n + 6, 0]
            assert common(store, host, 5) == [n + 6 >= 8]

    def test_of_a_host_never_seen_are_not_common(self, store):
        assert common(store, "example.org", 1, 2) == [False, False]
        assert do(store, "common_blocks", "example.org", blocks()).dtype == np.bool_

    def test_none_leave_the_store_as_it_is(self, store):
        self.learn(store, "example.org")
        hosts = store._environment.database("hosts")
        assert store._environment.read(lambda txn: txn.stat(hosts)["entries"]) == 0

    def test_may_have_a_host_that_is_no_text(self, store):
        self.learn(store, "\ud800", 1, times=8)
        assert common(store, "\ud800", 1) == [True]
        assert common(store, "\ud801", 1) == [False]

    def test_are_not_learned_by_putting_a_page(self, store):
        page = record("a")
        page.profile = Profile(views=page.views, blocks=blocks(1, 2).astype("<u4").tobytes())
        for _ in range(8):
            page_id = put(store, page)
            put(store, page, page_id)
        assert common(store, "example.org", 1, 2) == [False, False]

    def test_of_a_transaction_are_seen_by_itself(self, store):
        def job(txn):
            for _ in range(8):
                txn.learn_blocks("example.org", blocks(4))
            return txn.common_blocks("example.org", blocks(4, 5)).tolist()

        assert store.transact(job).result() == [True, False]

    def test_of_a_transaction_that_fails_are_forgotten(self, store):
        def job(txn):
            txn.learn_blocks("example.org", blocks(1))
            raise LookupError("half way")

        self.learn(store, "example.org", 1, times=7)
        futures = [store.transact(job) for _ in range(5)]
        for future in futures:
            with pytest.raises(LookupError, match="half way"):
                future.result()
        assert counts(store, "example.org", 1) == [7]

    def test_are_counted_once_when_the_map_grows(self, open_store):
        store = open_store(map_size=1 << 16)
        rng = np.random.default_rng(3)

        def job(txn, n, rare):
            txn.put(record(f"p{n}", n))
            txn.learn_blocks(f"host{n % 20}", np.concatenate([blocks(1, 2), rare]))

        futures = [
            store.transact(lambda txn, n=n, rare=rare: job(txn, n, rare))
            for n, rare in enumerate(rng.integers(3, 2**32, (400, 45), dtype=np.uint32))
        ]
        for future in futures:
            future.result()
        assert store.info().bytes > 1 << 16
        for n in range(20):
            assert counts(store, f"host{n}", 1, 2) == [20, 20]
        check(store)

    def test_are_known_after_opening_again(self, open_store):
        first = open_store()
        self.learn(first, "example.org", 1, times=8)
        first.close()
        second = open_store()
        assert common(second, "example.org", 1) == [True]
        self.learn(second, "example.org", 1)
        assert counts(second, "example.org", 1) == [9]

    def test_are_shared_by_the_stores_of_one_process(self, open_store):
        first, second = open_store(), open_store(max_distance=8)
        self.learn(first, "example.org", 1, times=4)
        self.learn(second, "example.org", 1, times=4)
        assert common(first, "example.org", 1) == common(second, "example.org", 1) == [True]

    def test_take_no_more_than_6_kb_a_host(self, store):
        rng = np.random.default_rng(4)

        def job(txn):
            for rare in rng.integers(0, 2**32, (100, 60), dtype=np.uint32):
                txn.learn_blocks("example.org", rare)

        store.transact(job).result()
        hosts = store._environment.database("hosts")
        sizes = store._environment.read(lambda txn: [len(value) for _, value in txn.cursor(hosts)])
        assert len(sizes) == 1
        assert sizes[0] <= 6 * MAX_COUNTERS

    def test_may_recur_without_end(self, store):
        key = blake2b(b"example.org", digest_size=16).digest()
        full = blocks(1).tobytes() + np.array([MAX_COUNT], dtype="<u2").tobytes()
        overwrite(store, "hosts", key, full)
        self.learn(store, "example.org", 1)
        assert common(store, "example.org", 1) == [True]

    def test_of_a_damaged_host_are_an_error_that_says_so(self, store, store_path):
        self.learn(store, "example.org", 1)
        self.learn(store, "other.example", 1, times=8)
        key = blake2b(b"example.org", digest_size=16).digest()
        overwrite(store, "hosts", key, b"\1\2\3")
        for method in ("common_blocks", "learn_blocks"):
            with pytest.raises(StoreError) as refused:
                do(store, method, "example.org", blocks(1))
            assert str(refused.value) == (
                f"store '{store_path}' has a damaged memory of host 'example.org' (3 bytes are "
                "not counters of 6 bytes); restore a copy, or use another store"
            )
        assert common(store, "other.example", 1) == [True]


class TestCandidates:
    @pytest.mark.parametrize("max_distance", [0, 1, 3, 8, 11])
    def test_are_those_that_brute_force_finds(self, open_store, max_distance):
        store = open_store(None, max_distance=max_distance)
        pick = Random(max_distance)
        centres = [pick.getrandbits(64) for _ in range(5)]

        def near_a_centre():
            simhash = pick.choice(centres)
            for bit in pick.sample(range(64), pick.randint(0, 12)):
                simhash ^= 1 << bit
            return simhash

        pages = {}
        for n in range(150):
            views = [near_a_centre() for _ in range(pick.choice((1, 1, 2)))]
            pages[put(store, record(f"p{n}", *views))] = views
        found_any = 0
        for _ in range(50):
            query = [near_a_centre() for _ in range(pick.choice((1, 2)))]
            expected = [
                page_id
                for page_id, views in pages.items()
                if any(
                    (one ^ other).bit_count() <= max_distance
                    for one, other in itertools.product(views, query)
                )
            ]
            assert do(store, "candidates", query) == expected
            found_any += bool(expected)
        assert found_any
        check(store)

    def test_are_named_once_whichever_views_match(self, store):
        page_id = put(store, record("a", 0b0001, 0b0010))
        assert do(store, "candidates", [0b0001, 0b0011, 0b0001]) == [page_id]

    def test_of_nothing_are_none(self, store):
        put(store, record("a", 0))
        assert do(store, "candidates", []) == []

    def test_are_never_aliases(self, store):
        page_id = put(store, record("a", 0))
        put(store, record("b", 0b1111, representative=page_id))
        assert do(store, "candidates", [0b11111]) == []

    def test_with_the_same_fingerprint_are_all_named(self, store):
        ids = [put(store, record(name, 77)) for name in "abc"]
        assert do(store, "candidates", [77]) == ids

    def test_stay_when_another_page_with_the_fingerprint_goes(self, store):
        first, second = (put(store, record(name, 77)) for name in "ab")
        put(store, record("a", 2**63), first)
        assert do(store, "candidates", [77]) == [second]
        check(store)
        put(store, record("b", 2**62), second)
        assert do(store, "candidates", [77]) == []
        check(store)

    def test_may_be_all_ones_and_all_zeros(self, store):
        ids = [put(store, record("a", 0)), put(store, record("b", 2**64 - 1))]
        assert do(store, "candidates", [2**64 - 1, 0]) == ids


class TestReplacing:
    """A page that comes again has its record replaced; all that led to the old one is gone."""

    def test_kept_by_kept(self, store):
        page_id = put(store, record("a", 0, body=1, text=2))
        put(store, record("a", 2**64 - 1, body=3, text=4), page_id)
        check(store)
        assert do(store, "find_bodies", digest(1)) == []
        assert do(store, "candidates", [0]) == []
        assert do(store, "candidates", [2**64 - 1]) == [page_id]

    def test_kept_by_kept_leaves_its_aliases(self, store):
        page_id = put(store, record("a", 0))
        put(store, record("b", representative=page_id))
        put(store, record("a", 1), page_id)
        check(store)
        assert do(store, "aliases", page_id) == 1

    def test_alias_by_kept(self, store):
        page_id = put(store, record("a", 0))
        alias_id = put(store, record("b", 1, representative=page_id))
        put(store, record("b", 2**64 - 1), alias_id)
        check(store)
        assert do(store, "aliases", page_id) == 0
        assert do(store, "candidates", [2**64 - 1]) == [alias_id]

    def test_alias_by_alias_of_another(self, store):
        first, second = put(store, record("a", 0)), put(store, record("b", 2**64 - 1))
        alias_id = put(store, record("c", representative=first))
        put(store, record("c", representative=second), alias_id)
        check(store)
        assert (do(store, "aliases", first), do(store, "aliases", second)) == (0, 1)

    def test_touches_no_index_where_all_it_is_found_by_is_the_same(self, store, monkeypatch):
        first = do(store, "put", record("a", 1, 2, body=3))
        alias = do(store, "put", record("b", 1, representative=first))

        def no(*arguments):
            raise AssertionError("an index was touched")

        monkeypatch.setattr("scrapy_simdup.store.transaction.LmdbTransaction._withdraw", no)
        monkeypatch.setattr("scrapy_simdup.store.transaction.LmdbTransaction._enter", no)
        do(store, "put", record("a", 1, 2, body=3, crawl="later"), first)
        do(store, "put", record("b", 9, representative=first, crawl="later"), alias)
        assert do(store, "get", first).crawl == do(store, "get", alias).crawl == "later"
        for changed in (
            record("a", 1, 3, body=3),
            record("a", 1, 2, body=4),
            record("a", 1, 2, body=3, text=77),
            record("a", 1, 2, body=3, representative=alias),
        ):
            with pytest.raises(AssertionError, match="an index was touched"):
                do(store, "put", changed, first)


SIMHASHES = [0, 0b1, 0b11, 0b1111, 0b11111111, 2**64 - 1, 2**64 - 2, 0xF0F0F0F0F0F0F0F0]

steps = st.lists(
    st.tuples(
        st.integers(0, 7),  # which request
        st.booleans(),  # kept, if it may be an alias
        st.lists(st.sampled_from(SIMHASHES), min_size=1, max_size=2),
        st.integers(0, 3),  # body digest
        st.integers(0, 3),  # digest of the view "main"
        st.integers(0, 3),  # digest of the view "prose", if there is one
        st.integers(0, 7),  # which representative
    ),
    max_size=25,
)


class TestAnySequenceOfPuts:
    @settings(derandomize=True, max_examples=60, deadline=None, database=None)
    @given(steps=steps)
    def test_leaves_what_a_dictionary_would_hold(self, steps):
        store = LmdbPageStore(
            None, configuration=CONFIGURATION, max_distance=3, expected_pages=1000
        )
        model: dict[int, Record] = {}
        try:
            for step in steps:
                self.step(store, model, *step)
            check(store)
            self.compare(store, model)
        finally:
            store.close()

    def step(self, store, model, request, wants_kept, simhashes, body, text, prose, which):
        name = f"r{request}"
        page_id = next((n for n, former in model.items() if former.key == name.encode()), None)
        kept = [n for n, former in model.items() if former.kept and n != page_id]
        must_be_kept = not kept or (page_id is not None and model[page_id].kept)
        representative = 0 if wants_kept or must_be_kept else kept[which % len(kept)]
        new = record(
            name, *simhashes, body=body, text=text, prose=prose, representative=representative
        )
        put_id = put(store, new, page_id)
        assert put_id == (page_id or max(model, default=0) + 1)
        model[put_id] = new

    def compare(self, store, model):
        kept = {n: page for n, page in model.items() if page.kept}
        for n, page in model.items():
            assert do(store, "find", page.key) == (n, page)
            assert do(store, "aliases", n) == sum(
                other.representative == n for other in model.values()
            )
        for number in range(4):
            assert do(store, "find_bodies", digest(number)) == sorted(
                n for n, page in kept.items() if page.body_digest == digest(number)
            )
        for wanted in itertools.chain.from_iterable(
            itertools.combinations(map(digest, range(4)), size) for size in (1, 2)
        ):
            assert do(store, "find_texts", wanted) == sorted(
                n for n, page in kept.items() if {view.digest for view in page.views} & {*wanted}
            )
        for simhash in SIMHASHES:
            assert do(store, "candidates", [simhash]) == sorted(
                n
                for n, page in kept.items()
                if any((view.simhash ^ simhash).bit_count() <= 3 for view in page.views)
            )
        info = store.info()
        assert (info.pages, info.aliases) == (len(kept), len(model) - len(kept))


class TestTransactions:
    def test_see_their_own_writes(self, store):
        def job(txn):
            page_id = txn.put(record("a", 0, body=1, text=2))
            return (
                [page_id],
                [txn.find(b"a")[0]],
                [*txn.find_bodies(digest(1))],
                txn.find_texts([digest(2)]),
                txn.candidates([0]),
            )

        assert store.transact(job).result() == ([1],) * 5

    def test_that_fail_leave_nothing(self, store):
        def job(txn):
            txn.put(record("a"))
            raise LookupError("half way")

        with pytest.raises(LookupError, match="half way"):
            store.transact(job).result()
        assert store.info().pages == 0
        check(store)

    def test_are_complete_after_the_map_grew(self, open_store):
        store = open_store(map_size=1 << 16)
        futures = [
            store.transact(lambda txn, n=n: txn.put(record(f"p{n}", n * 2**20, text=n)))
            for n in range(500)
        ]
        assert [future.result() for future in futures] == list(range(1, 501))
        assert store.info().bytes > 1 << 16
        check(store)


class TestOpening:
    def test_finds_the_pages_of_before(self, open_store):
        first = open_store()
        page_id = put(first, record("a", 5))
        first.close()
        assert do(open_store(), "candidates", [4]) == [page_id]

    def test_another_configuration_is_refused_with_what_differs(self, open_store, store_path):
        open_store().close()
        with pytest.raises(StoreError) as refused:
            open_store(configuration={"weights": "tf", "extractor": "trial 1", "seed": "5"})
        assert str(refused.value) == (
            f"store '{store_path}' was made with another configuration (seed: 5 here, not used "
            "in the store, weights: tf here, sqrt in the store); its fingerprints cannot be compared with "
            "new ones. Use the same options and versions, or another store"
        )
        open_store()

    def test_another_distance_finds_by_that_distance(self, open_store):
        first = open_store(max_distance=3)
        page_id = put(first, record("a", 0b1111_1111))
        assert do(first, "candidates", [0]) == []
        first.close()
        wider = open_store(max_distance=8)
        assert do(wider, "candidates", [0]) == [page_id]
        assert do(wider, "candidates", [2**63]) == []
        wider.close()
        assert do(open_store(max_distance=0), "candidates", [0b1111_1111, 0]) == [page_id]

    def test_a_distance_that_its_tables_cannot_serve_is_refused(self, open_store, store_path):
        open_store(max_distance=0).close()
        with pytest.raises(StoreError) as refused:
            open_store(max_distance=11)
        message = str(refused.value)
        assert message.startswith(
            f"store '{store_path}' was laid out for a smaller max_distance than 11 ("
        )
        assert message.endswith("); use a smaller one, or another store")
        open_store(max_distance=0)

    def test_other_expected_pages_leave_the_layout_as_it_is(self, open_store):
        first = open_store(max_distance=8, expected_pages=1000)
        layout = first.info().layout
        first.close()
        second = open_store(max_distance=8, expected_pages=10**9)
        assert second.info().layout == layout
        assert open_store(None, max_distance=8, expected_pages=10**9).info().layout != layout

    def test_an_index_of_fingerprints_is_refused(self, open_store, store_path):
        from scrapy_simdup import FingerprintIndex

        with FingerprintIndex(store_path) as index:
            index.add(5)
        with pytest.raises(StoreError, match="holds 'fingerprints', not 'pages'"):
            open_store()


class TestSharing:
    def test_two_stores_of_one_process_see_each_other(self, open_store):
        first, second = open_store(), open_store(max_distance=8)
        page_id = put(first, record("a", 0))
        assert do(second, "find", b"a") == (page_id, record("a", 0))
        other_id = put(second, record("b", 0b11))
        first.close()
        assert do(second, "candidates", [0]) == [page_id, other_id]
        with pytest.raises(StoreError, match="is closed"):
            put(first, record("c"))

    def test_two_processes_share_one_store(self, open_store, store_path):
        store = open_store()
        other = start_script(
            """
import sys
import numpy as np
from scrapy_simdup.page.profile import Profile, View
from scrapy_simdup.store.lmdb import LmdbPageStore
from scrapy_simdup.store.records import Record
store = LmdbPageStore(
    sys.argv[1],
    configuration={"extractor": "trial 1", "weights": "sqrt"},
    max_distance=3,
    expected_pages=1000,
)
for n in range(100):
    record = Record(
        key=b"theirs %d" % n, url="", body_digest=b"b" * 16,
        profile=Profile(views=(
            View("main", n << 32, bytes(256), 1, 1, b"t" * 16),
            View("prose", n << 33, bytes(256), 1, 1, b"%16d" % n),
        )),
    )
    def job(txn):
        txn.put(record)
        txn.learn_blocks("example.org", np.array([1, 2 + n], dtype=np.uint32))
    store.transact(job).result()
store.close()
""",
            store_path,
        )
        with other:
            ours = []
            for n in range(100):
                ours.append(put(store, record(f"ours {n}", n, n << 8)))
                do(store, "learn_blocks", "example.org", blocks(1, 1000 + n))
            _, errors = other.communicate(timeout=60)
        assert (other.returncode, errors) == (0, "")
        assert len(set(ours)) == 100
        assert store.info().pages == 200
        assert len(do(store, "find_texts", [b"t" * 16])) == 64
        assert len(do(store, "find_texts", [b"%16d" % 99])) == 1
        assert counts(store, "example.org", 1, 2, 101, 1000, 1099) == [200, 1, 1, 1, 1]
        check(store)


class TestInfo:
    def test_says_what_the_store_holds(self, store, store_path):
        page_id = put(store, record("a"))
        for name in "bc":
            put(store, record(name, representative=page_id))
        info = store.info()
        assert (info.pages, info.aliases, info.layout) == (1, 2, plan(3, 1000).layout.name)
        assert info.path == str(store_path)
        assert info.configuration == CONFIGURATION
        assert info.configuration_id == configuration_id(CONFIGURATION)
        assert 0 < info.bytes <= (store_path / "data.mdb").stat().st_size

    def test_can_be_read_while_the_store_is_in_use(self, store, store_path):
        put(store, record("a"))
        assert read_info(store_path) == store.info()

    def test_can_be_read_by_another_process(self, store, store_path):
        put(store, record("a"))
        script = (
            "import sys; from scrapy_simdup.store.lmdb import read_info;"
            "print(read_info(sys.argv[1]).pages)"
        )
        assert run_script(script, store_path) == "1\n"

    def test_of_a_temporary_store_has_no_path(self, open_store):
        assert open_store(None).info().path is None

    def test_of_a_store_without_any_page_can_be_read(self, open_store, store_path):
        open_store().close()
        assert read_info(store_path).pages == 0

    def test_of_a_store_that_was_never_set_up_is_an_error(self, store_path):
        Environment.open(store_path, kind=KIND).close()
        with pytest.raises(StoreError, match="has no database 'pages'"):
            read_info(store_path)

    def test_configuration_ids_depend_on_names_and_values_not_on_their_order(self):
        assert configuration_id({"a": "1", "b": "2"}) == configuration_id({"b": "2", "a": "1"})
        assert configuration_id({"a": "1"}) != configuration_id({"a": "2"})
        assert len(configuration_id({})) == 12


class TestClosing:
    def test_finishes_what_was_asked_for(self, open_store):
        store = open_store()
        futures = [store.transact(lambda txn, n=n: txn.put(record(f"p{n}"))) for n in range(50)]
        store.close()
        assert [future.result(0) for future in futures] == list(range(1, 51))
        assert open_store().info().pages == 50

    def test_may_be_done_again(self, store):
        store.close()
        store.close()

    def test_ends_all_use(self, open_store, store_path):
        store = open_store()
        store.close()
        for use in (store.info, lambda: store.transact(lambda txn: None)):
            with pytest.raises(StoreError) as refused:
                use()
            assert str(refused.value) == f"store '{store_path}' is closed"
