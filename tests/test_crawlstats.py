from __future__ import annotations

import threading

import numpy as np
import pytest
from scrapy.statscollectors import StatsCollector
from scrapy.utils.test import get_crawler

from scrapy_simdup import NearMiss, Verdict
from scrapy_simdup.crawlstats import STATS, CrawlStats, Timing, human_bytes
from scrapy_simdup.store.records import StoreInfo
from scrapy_simdup.verdict import CHANGES, SKIP_REASONS

INFO = StoreInfo(
    path="pages",
    pages=120,
    aliases=30,
    bytes=98304,
    layout="5c1",
    configuration_id="0123456789ab",
    configuration={},
)


@pytest.fixture
def collector():
    return StatsCollector(get_crawler())


@pytest.fixture
def stats(collector):
    return CrawlStats(collector)


def documented(key):
    """Whether a stat is in the reference, where <…> stands for a name or number."""
    patterns = {name.split("<")[0] for name in STATS if "<" in name}
    return key in STATS or any(key.startswith(pattern) for pattern in patterns)


class TestTiming:
    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("count", [1, 2, 99, 100, 101, 10_000])
    def test_is_right_to_five_percent(self, seed, count):
        durations = np.random.default_rng(seed).lognormal(mean=-4, sigma=1.5, size=count)
        timing = Timing()
        for duration in durations:
            timing.add(float(duration))
        summary = timing.summary()
        p99 = np.percentile(durations, 99, method="inverted_cdf") * 1000
        assert p99 - 0.001 <= summary["p99"] <= p99 * 1.05 + 0.001
        assert summary["mean"] == pytest.approx(durations.mean() * 1000, abs=0.001)

    def test_of_nothing_is_nothing(self):
        assert Timing().summary() == {}

    @pytest.mark.parametrize("duration", [0.0, 1e-12])
    def test_takes_durations_below_the_clock(self, duration):
        timing = Timing()
        timing.add(duration)
        assert timing.summary() == {"mean": 0.0, "p99": 0.0}

    def test_may_be_added_to_from_many_threads_while_it_is_read(self):
        timing = Timing()

        def add(number):
            for n in range(1000):
                timing.add(1e-6 * 1.06 ** (n % 300) * number)

        threads = [threading.Thread(target=add, args=(number,)) for number in range(1, 5)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            timing.summary()
        assert sum(timing._classes.values()) == 4000


class TestCounting:
    @pytest.mark.parametrize(
        ("verdict", "counted"),
        [
            (Verdict(kind="unique"), {"checked": 1, "unique": 1}),
            (Verdict(kind="exact", distance=0), {"checked": 1, "duplicate/exact": 1}),
            (
                Verdict(kind="near", distance=5),
                {"checked": 1, "duplicate/near": 1, "distance/5": 1},
            ),
            *[
                (
                    Verdict(kind="revisit", change=change, distance=2),
                    {"checked": 1, f"revisit/{change}": 1},
                )
                for change in CHANGES
            ],
            *[
                (Verdict(kind="skipped", reason=reason), {f"skipped/{reason}": 1})
                for reason in SKIP_REASONS
            ],
            (
                Verdict(
                    kind="unique",
                    near_miss=NearMiss(
                        url="u",
                        rule="siblings",
                        view="main",
                        distance=5,
                        resemblance=0.5,
                        containment=0.6,
                        length_ratio=0.9,
                        simhash=1,
                        tokens=300,
                    ),
                ),
                {"checked": 1, "unique": 1, "near_miss": 1, "refused/siblings": 1},
            ),
        ],
        ids=lambda value: str(value)[:60],
    )
    def test_a_verdict_is_counted_by_its_kind(self, stats, collector, verdict, counted):
        stats.verdict(verdict)
        assert collector.get_stats() == {f"simdup/{key}": n for key, n in counted.items()}
        assert all(documented(key) for key in counted)

    def test_counts_add_up(self, stats, collector):
        for kind in ("unique", "unique", "exact"):
            stats.verdict(Verdict(kind=kind))
        stats.count("bytes_saved", 500)
        stats.count("bytes_saved", 700)
        assert collector.get_stats() == {
            "simdup/checked": 3,
            "simdup/unique": 2,
            "simdup/duplicate/exact": 1,
            "simdup/bytes_saved": 1200,
        }
        assert (stats.get("unique"), stats.get("dropped")) == (2, 0)

    def test_at_the_end_come_the_store_and_the_times(self, stats, collector):
        stats.timing("extract", 0.25)
        stats.update(INFO)
        found = collector.get_stats()
        assert found == {
            "simdup/store/pages": 120,
            "simdup/store/bytes": 98304,
            "simdup/time/extract_ms/mean": 250.0,
            "simdup/time/extract_ms/p99": pytest.approx(250, rel=0.05),
        }
        assert all(documented(key.removeprefix("simdup/")) for key in found)

    def test_at_the_end_a_store_that_cannot_be_read_has_no_numbers(self, stats, collector):
        stats.update(None)
        assert collector.get_stats() == {}


class TestSentence:
    def test_says_what_was_checked_found_skipped_and_saved(self, stats, collector):
        for key, number in {
            "simdup/checked": 1_234,
            "simdup/unique": 1_000,
            "simdup/duplicate/exact": 150,
            "simdup/duplicate/near": 73,
            "simdup/distance/0": 40,
            "simdup/distance/3": 33,
            "simdup/dropped": 223,
            "simdup/bytes_saved": 12_345_678,
            "simdup/revisit/unchanged": 8,
            "simdup/revisit/minor": 1,
            "simdup/revisit/changed": 2,
            "simdup/skipped/not_html": 12,
            "simdup/skipped/too_short": 40,
            "simdup/skipped/no_callback": 12,
            "simdup/near_miss": 9,
            "simdup/error/page": 1,
            "simdup/alert/large_cluster": 1,
            "simdup/store/pages": 1_000,
            "downloader/response_count": 1_300,
        }.items():
            collector.set_value(key, number)
        assert stats.sentence("page") == (
            "checked 1,234 pages: 1,000 unique, 223 duplicates (18.1 %: 150 exact, 73 near), "
            "11 revisits (8 unchanged, 2 changed, 1 minor); "
            "not checked 64 (40 too_short, 12 no_callback, 12 not_html); 1 error (1 page); "
            "dropped 223, 12.3 MB saved"
        )

    def test_of_a_crawl_without_any_page(self, stats):
        assert stats.sentence("page") == (
            "checked 0 pages: 0 unique, 0 duplicates (0 %: 0 exact, 0 near); "
            "dropped 0, 0 bytes saved"
        )

    def test_in_the_singular_and_of_items(self, stats):
        stats.verdict(Verdict(kind="exact"))
        assert stats.sentence("item") == (
            "checked 1 item: 0 unique, 1 duplicate (100.0 %: 1 exact, 0 near); "
            "dropped 0, 0 bytes saved"
        )


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (12_345, "12.3 kB"),
        (12_345_678, "12.3 MB"),
        (5 * 10**9, "5.0 GB"),
        (7 * 10**15, "7000.0 TB"),
    ],
)
def test_sizes_have_a_unit(number, text):
    assert human_bytes(number) == text
