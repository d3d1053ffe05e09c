from __future__ import annotations

import itertools
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from material import assert_consistent, run_script, start_script

from scrapy_simdup import StoreError
from scrapy_simdup.store.environment import Environment
from scrapy_simdup.store.lmdb import KIND, LmdbPageStore, configuration_id, read_info
from scrapy_simdup.store.records import Record, View

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


def record(name, *simhashes, body=None, text=None, representative=0, **values):
    """Return a record whose digests, unless given, are its own."""
    own = int.from_bytes(name.encode(), "big") << 8
    return Record(
        key=name.encode(),
        url=f"https://example.org/{name}",
        body_digest=digest(own + 1 if body is None else body),
        text_digest=digest(own + 2 if text is None else text),
        views=[View(simhash, SKETCH, 100, 93) for simhash in simhashes or (own % 2**64,)],
        representative=representative,
        **values,
    )


def do(store, method, *arguments):
    """Call a method of ``PageTransaction`` in a transaction of its own."""
    return store.transact(lambda txn: getattr(txn, method)(*arguments)).result()


def put(store, record, page_id=None):
    return do(store, "put", record, page_id)


def check(store):
    assert_consistent(store._environment)


class TestRecords:
    def test_come_back_as_they_were_put(self, store):
        full = Record(
            key=b"\0\xff" * 10,
            url="https://example.org/ü\n",
            body_digest=digest(1),
            text_digest=digest(2),
            views=[View(2**64 - 1, bytes(range(256)), 5, 4), View(0, SKETCH, 3, 2)],
            title="题目",
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
        alias = record("b", representative=page_id, reason="simhash", distance=3, resemblance=0.9)
        assert do(store, "get", put(store, alias)) == alias

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
        assert do(store, "find_body", digest(1)) == page_id
        assert do(store, "find_text", digest(2)) == page_id
        assert do(store, "find_body", digest(2)) is None
        assert do(store, "find_text", digest(1)) is None

    def test_of_aliases_are_not_found(self, store):
        page_id = put(store, record("a", body=1, text=2))
        put(store, record("b", body=3, text=4, representative=page_id))
        assert do(store, "find_body", digest(3)) is None
        assert do(store, "find_text", digest(4)) is None

    def test_that_several_pages_have_give_the_oldest(self, store):
        first, second = (put(store, record(name, body=1, text=2)) for name in "ab")
        assert do(store, "find_body", digest(1)) == do(store, "find_text", digest(2)) == first
        put(store, record("a", body=5, text=6), first)
        assert do(store, "find_body", digest(1)) == do(store, "find_text", digest(2)) == second
        check(store)


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
        assert do(store, "find_body", digest(1)) is None
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


SIMHASHES = [0, 0b1, 0b11, 0b1111, 0b11111111, 2**64 - 1, 2**64 - 2, 0xF0F0F0F0F0F0F0F0]

steps = st.lists(
    st.tuples(
        st.integers(0, 7),  # which request
        st.booleans(),  # kept, if it may be an alias
        st.lists(st.sampled_from(SIMHASHES), min_size=1, max_size=2),
        st.integers(0, 3),  # body digest
        st.integers(0, 3),  # text digest
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
            for request, wants_kept, simhashes, body, text, which in steps:
                self.step(store, model, request, wants_kept, simhashes, body, text, which)
            check(store)
            self.compare(store, model)
        finally:
            store.close()

    def step(self, store, model, request, wants_kept, simhashes, body, text, which):
        name = f"r{request}"
        page_id = next((n for n, former in model.items() if former.key == name.encode()), None)
        kept = [n for n, former in model.items() if former.kept and n != page_id]
        must_be_kept = not kept or (page_id is not None and model[page_id].kept)
        representative = 0 if wants_kept or must_be_kept else kept[which % len(kept)]
        new = record(name, *simhashes, body=body, text=text, representative=representative)
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
            for method, field in (("find_body", "body_digest"), ("find_text", "text_digest")):
                oldest = min(
                    (n for n, page in kept.items() if getattr(page, field) == digest(number)),
                    default=None,
                )
                assert do(store, method, digest(number)) == oldest
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
            return txn.find(b"a")[0] == txn.find_body(digest(1)) == txn.find_text(
                digest(2)
            ) == page_id and txn.candidates([0]) == [page_id]

        assert store.transact(job).result()

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
            f"store '{store_path}' was made with another configuration (seed: 5 here, None in the "
            "store, weights: tf here, sqrt in the store); its fingerprints cannot be compared with "
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
from scrapy_simdup.store.lmdb import LmdbPageStore
from scrapy_simdup.store.records import Record, View
store = LmdbPageStore(
    sys.argv[1],
    configuration={"extractor": "trial 1", "weights": "sqrt"},
    max_distance=3,
    expected_pages=1000,
)
for n in range(100):
    record = Record(
        key=b"theirs %d" % n, url="", body_digest=b"b" * 16, text_digest=b"t" * 16,
        views=[View(n << 32, bytes(256), 1, 1)],
    )
    store.transact(lambda txn: txn.put(record)).result()
store.close()
""",
            store_path,
        )
        with other:
            ours = [put(store, record(f"ours {n}", n)) for n in range(100)]
            _, errors = other.communicate(timeout=60)
        assert (other.returncode, errors) == (0, "")
        assert len(set(ours)) == 100
        assert store.info().pages == 200
        check(store)


class TestInfo:
    def test_says_what_the_store_holds(self, store, store_path):
        page_id = put(store, record("a"))
        for name in "bc":
            put(store, record(name, representative=page_id))
        info = store.info()
        assert (info.pages, info.aliases, info.layout) == (1, 2, "4c1")
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
