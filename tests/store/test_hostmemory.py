"""The counters of a host against exact counts and the algorithm as a textbook has it."""

from __future__ import annotations

import struct
from collections import Counter

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_simdup.store.hostmemory import MAX_COUNT, MAX_COUNTERS, HostMemory

LARGEST = 2**32 - 1
#: A limit that is reached soon.
FEW = 5


def hashes(*values: int) -> npt.NDArray[np.uint32]:
    return np.array(values, dtype=np.uint32)


def packed(counters: dict[int, int]) -> bytes:
    """Pack counters as the documentation says it."""
    numbers = sorted(counters)
    return struct.pack(
        f"<{len(numbers)}I{len(numbers)}H", *numbers, *(counters[number] for number in numbers)
    )


def learned(*pages: tuple[int, ...], limit: int = MAX_COUNTERS) -> HostMemory:
    memory = HostMemory()
    for page in pages:
        memory.learn(hashes(*page), limit)
    return memory


def slowly(pages: list[set[int]], limit: int) -> Counter[int]:
    """Misra and Gries, a page at a time: as long as there are too many counters, one off each."""
    counters: Counter[int] = Counter()
    for page in pages:
        counters.update(page)
        while len(counters) > limit:
            counters -= Counter(dict.fromkeys(counters, 1))  # drops what is at zero
    return counters


def one_by_one(items: list[int], limit: int) -> dict[int, int]:
    """The algorithm of the paper: one item at a time."""
    counters: dict[int, int] = {}
    for item in items:
        if item in counters:
            counters[item] += 1
        elif len(counters) < limit:
            counters[item] = 1
        else:
            counters = {other: n - 1 for other, n in counters.items() if n > 1}
    return counters


few_hashes = st.sampled_from([*range(9), 2**31, LARGEST])
a_page = st.lists(few_hashes, max_size=11)
some_pages = st.lists(a_page, max_size=40)
limits = st.integers(1, 9)


def thorough(examples: int = 300) -> settings:
    return settings(derandomize=True, max_examples=examples, deadline=None, database=None)


class TestCounting:
    def test_says_on_how_many_pages_a_block_was(self) -> None:
        memory = learned((7, 3), (3, LARGEST), (0, 3))
        assert memory.count(hashes(3, 5, 0, LARGEST, 3, 7)).tolist() == [3, 0, 1, 1, 3, 1]

    def test_counts_a_block_once_a_page(self) -> None:
        assert learned((4, 4, 4)).count(hashes(4)).tolist() == [1]

    def test_of_nothing_gives_nothing(self) -> None:
        assert HostMemory().count(hashes(1, LARGEST)).tolist() == [0, 0]
        assert learned((1,)).count(hashes()).tolist() == []
        assert learned((), ()).encode() == b""

    def test_gives_an_array_of_its_own(self) -> None:
        counts = learned((1,)).count(hashes(1, 2))
        assert counts.dtype == np.uint16
        assert counts.flags.writeable

    def test_leaves_the_array_it_is_given(self) -> None:
        page = hashes(9, 1, 9)
        learned((1, 4)).learn(page)
        assert page.tolist() == [9, 1, 9]

    def test_stops_at_the_largest_number(self) -> None:
        memory = HostMemory.decode(packed({1: MAX_COUNT - 1, 2: MAX_COUNT, 3: 1}))
        for _ in range(3):
            memory.learn(hashes(1, 2, 3))
        assert memory.count(hashes(1, 2, 3)).tolist() == [MAX_COUNT, MAX_COUNT, 4]


class TestLimit:
    def test_is_kept_by_subtracting_from_all(self) -> None:
        memory = learned((1, 2), (1, 2), (1,), limit=2)
        memory.learn(hashes(3), 2)
        assert memory.encode() == packed({1: 2, 2: 1})

    def test_takes_as_much_as_is_needed_not_more(self) -> None:
        memory = HostMemory.decode(packed({1: 9, 2: 6, 3: 4, 4: 4, 5: 2}))
        memory.learn(hashes(6), 3)
        assert memory.encode() == packed({1: 5, 2: 2})  # by 4: with 3, four were left

    def test_drops_all_of_a_page_that_is_too_large_at_once(self) -> None:
        assert learned(tuple(range(FEW + 1)), limit=FEW).encode() == b""
        assert len(learned(tuple(range(FEW)), limit=FEW)) == FEW

    def test_is_1024_counters(self) -> None:
        rng = np.random.default_rng(1)
        memory = HostMemory()
        frequent = hashes(*range(20))
        for _ in range(400):
            rare = rng.integers(2**16, 2**32, 40, dtype=np.uint32)
            memory.learn(np.concatenate([frequent, rare]))
            assert len(memory) <= MAX_COUNTERS == 1024
        counts = memory.count(frequent)
        assert (counts <= 400).all()
        assert (counts >= 400 - 400 * 60 / 1025).all()
        assert len(memory.encode()) <= 6144


class TestGuarantee:
    @thorough()
    @given(pages=some_pages, limit=limits)
    def test_a_count_is_never_too_high_and_too_low_by_n_through_k_plus_1_at_most(
        self, pages: list[list[int]], limit: int
    ) -> None:
        memory, exact, shown = HostMemory(), Counter[int](), 0
        for page in pages:
            memory.learn(hashes(*page), limit)
            exact.update(set(page))
            shown += len(set(page))
            assert len(memory) <= limit
            for block in (*exact, 12345):
                (count,) = memory.count(hashes(block)).tolist()
                assert exact[block] - shown / (limit + 1) <= count <= exact[block]

    @thorough()
    @given(pages=some_pages, limit=limits)
    def test_counts_are_those_of_the_slow_algorithm(
        self, pages: list[list[int]], limit: int
    ) -> None:
        memory = learned(*map(tuple, pages), limit=limit)
        assert memory.encode() == packed(slowly([set(page) for page in pages], limit))

    @thorough()
    @given(items=st.lists(few_hashes, max_size=80), limit=limits)
    def test_pages_of_one_block_are_the_paper_s_algorithm(
        self, items: list[int], limit: int
    ) -> None:
        memory = learned(*((item,) for item in items), limit=limit)
        assert memory.encode() == packed(one_by_one(items, limit))

    @thorough()
    @given(before=some_pages, page=st.permutations(range(8)), limit=limits)
    def test_the_order_of_the_blocks_of_a_page_does_not_matter(
        self, before: list[list[int]], page: list[int], limit: int
    ) -> None:
        one, other = (learned(*map(tuple, before), limit=limit) for _ in range(2))
        one.learn(hashes(*page, page[0]), limit)
        other.learn(hashes(*sorted(page)), limit)
        assert one.encode() == other.encode()

    @thorough()
    @given(
        counts=st.dictionaries(few_hashes, st.integers(MAX_COUNT - 3, MAX_COUNT), max_size=9),
        pages=some_pages,
        limit=limits,
    )
    def test_holds_up_to_the_largest_number(
        self, counts: dict[int, int], pages: list[list[int]], limit: int
    ) -> None:
        """Counters that start near their end; what came before is exact."""
        memory, exact = HostMemory.decode(packed(counts)), Counter(counts)
        for page in pages:
            memory.learn(hashes(*page), limit)
            exact.update(set(page))
        allowed = sum(exact.values()) / (limit + 1)
        for block in exact:
            (count,) = memory.count(hashes(block)).tolist()
            assert min(exact[block], MAX_COUNT) - allowed <= count
            assert count <= min(exact[block], MAX_COUNT)

    @thorough(100)
    @given(pages=some_pages, others=some_pages)
    def test_one_memory_does_not_touch_another(
        self, pages: list[list[int]], others: list[list[int]]
    ) -> None:
        """Both go on from the same bytes, which stay as they are."""
        common = learned((1, 2, 3), (2, 3)).encode()
        kept = bytes(bytearray(common))
        one, other = HostMemory.decode(common), HostMemory.decode(common)
        for page in pages:
            one.learn(hashes(*page), FEW)
        for page in others:
            other.learn(hashes(*page), FEW)
        alone = HostMemory.decode(kept)
        for page in pages:
            alone.learn(hashes(*page), FEW)
        assert common == kept
        assert one.encode() == alone.encode()


class TestPacking:
    @thorough()
    @given(
        counters=st.dictionaries(st.integers(0, LARGEST), st.integers(1, MAX_COUNT), max_size=50)
    )
    def test_comes_back(self, counters: dict[int, int]) -> None:
        memory = HostMemory.decode(packed(counters))
        assert memory.encode() == packed(counters)
        assert memory.count(hashes(*counters)).tolist() == list(counters.values())

    def test_takes_six_bytes_a_counter(self) -> None:
        assert learned((LARGEST, 1), (1,)).encode() == bytes.fromhex("01000000 ffffffff 0200 0100")

    @thorough(100)
    @given(pages=some_pages, limit=limits)
    def test_between_any_two_pages_changes_nothing(
        self, pages: list[list[int]], limit: int
    ) -> None:
        stored = b""
        for page in pages:
            memory = HostMemory.decode(stored)
            memory.learn(hashes(*page), limit)
            stored = memory.encode()
        assert stored == learned(*map(tuple, pages), limit=limit).encode()

    @pytest.mark.parametrize(
        ("damaged", "reason"),
        [
            (b"\1", "1 bytes are not counters of 6 bytes"),
            (packed({1: 1, 2: 2})[:-1], "11 bytes are not counters of 6 bytes"),
            (bytes.fromhex("02000000 01000000 0100 0100"), "its hashes are not in ascending order"),
            (bytes.fromhex("01000000 01000000 0100 0100"), "its hashes are not in ascending order"),
            (bytes.fromhex("01000000 02000000 0100 0000"), "a counter is zero"),
        ],
    )
    def test_refuses_what_it_cannot_have_packed(self, damaged: bytes, reason: str) -> None:
        with pytest.raises(ValueError, match=f"^{reason}$"):
            HostMemory.decode(damaged)

    @thorough()
    @given(junk=st.binary(max_size=60))
    def test_of_any_bytes_gives_a_memory_or_a_value_error(self, junk: bytes) -> None:
        try:
            memory = HostMemory.decode(junk)
        except ValueError:
            return
        assert memory.encode() == junk
        memory.learn(hashes(1, 2, 3))
        HostMemory.decode(memory.encode())
