"""The numbers of one crawl: ``simdup/…`` stats, and the closing line in words."""

from __future__ import annotations

import math
import threading
from bisect import bisect_left
from collections import Counter
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from scrapy.statscollectors import StatsCollector

    from scrapy_simdup.store.records import StoreInfo
    from scrapy_simdup.verdict import Verdict

#: The stats, without their prefix ``simdup/``.
STATS: Final[dict[str, str]] = {
    "checked": "pages (or items) judged: unique + duplicates + revisits",
    "unique": "pages that are new",
    "duplicate/exact": "duplicates with the same bytes or the same text",
    "duplicate/near": "near-duplicates",
    "dropped": "duplicates that were dropped (in action drop_items: items)",
    "tagged": "duplicates that were passed on with their verdict (actions tag and drop_items)",
    "revisit/unchanged": "kept pages visited again, with the same text",
    "revisit/minor": "kept pages visited again, near their former self",
    "revisit/changed": "kept pages visited again, with another text",
    "skipped/<reason>": "responses that were not judged",
    "near_miss": "pages with a candidate that was refused: within 3 bits, or half as alike as needed",
    "refused/<rule>": "the same by the rule that refused the most similar candidate",
    "distance/<d>": "near-duplicates at Hamming distance d",
    "bytes_saved": "bytes of the bodies of dropped pages",
    "error/<stage>": "failures in config, page, store, item, item_field, log; what failed passes",
    "alert/<kind>": "what an operator should look at, once each: see Alerts",
    "worker/<event>": "workers replaced (died, timeout, memory), or that could not start (unavailable)",
    "store/pages": "kept pages in the store",
    "store/bytes": "size of the store in bytes",
    "time/extract_ms/mean": "milliseconds to extract and fingerprint a page, mean",
    "time/extract_ms/p99": "the same, 99th percentile",
    "time/lookup_ms/mean": "milliseconds of a step at the store, queueing and commit included",
    "time/lookup_ms/p99": "the same, 99th percentile",
}


class Timing:
    """Mean and 99th percentile of many durations in constant memory.

    Durations are counted in classes that are 5 % wide, so the percentile is right to 5 %.
    """

    _WIDTH = math.log(1.05)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._classes: Counter[int] = Counter()
        self._seconds = 0.0

    def add(self, seconds: float) -> None:
        number = math.ceil(math.log(max(seconds, 1e-7)) / self._WIDTH)
        with self._lock:
            self._classes[number] += 1
            self._seconds += seconds

    def summary(self) -> dict[str, float]:
        """Return ``mean`` and ``p99`` in milliseconds; empty if nothing was added."""
        with self._lock:
            classes, seconds = sorted(self._classes.items()), self._seconds
        if not classes:
            return {}
        totals = list(accumulate(durations for _, durations in classes))
        count = totals[-1]
        number, _ = classes[bisect_left(totals, 0.99 * count)]
        return {
            "mean": round(seconds / count * 1000, 3),
            "p99": round(math.exp(number * self._WIDTH) * 1000, 3),
        }


class CrawlStats:
    """Counts verdicts into Scrapy's stats."""

    def __init__(self, stats: StatsCollector) -> None:
        self._stats = stats
        self._lock = threading.Lock()
        self._timings = {"extract": Timing(), "lookup": Timing()}

    def count(self, key: str, number: int = 1) -> None:
        self._stats.inc_value(f"simdup/{key}", number)

    def get(self, key: str) -> int:
        return int(self._stats.get_value(f"simdup/{key}", 0))

    def timing(self, step: str, seconds: float) -> None:
        """Add a duration; may be called from any thread."""
        self._timings[step].add(seconds)

    def worker(self, event: str) -> int:
        """Count what happened to a worker, from any thread; return how often it has happened."""
        with self._lock:
            self.count(f"worker/{event}")
            return self.get(f"worker/{event}")

    def verdict(self, verdict: Verdict) -> None:
        """Count what a page is; what is done with it is counted by whoever does it."""
        if verdict.kind == "skipped":
            self.count(f"skipped/{verdict.reason}")
            return
        self.count("checked")
        if verdict.kind == "revisit":
            self.count(f"revisit/{verdict.change}")
        elif verdict.is_duplicate:
            self.count(f"duplicate/{verdict.kind}")
            if verdict.kind == "near":
                self.count(f"distance/{verdict.distance}")
        else:
            self.count(verdict.kind)
        if verdict.near_miss is not None:
            self.count("near_miss")
            self.count(f"refused/{verdict.near_miss.rule}")

    def update(self, info: StoreInfo | None) -> None:
        """Set what is not counted but looked at: the store's size, and times."""
        if info is not None:
            self._stats.set_value("simdup/store/pages", info.pages)
            self._stats.set_value("simdup/store/bytes", info.bytes)
        for step, timing in self._timings.items():
            for name, value in timing.summary().items():
                self._stats.set_value(f"simdup/time/{step}_ms/{name}", value)

    def counts(self) -> dict[str, Any]:
        """All of them, without their prefix."""
        return {
            key.removeprefix("simdup/"): value
            for key, value in self._stats.get_stats().items()
            if key.startswith("simdup/")
        }

    def sentence(self, things: str) -> str:
        """Return the closing line: what was checked, found, not checked, and saved."""
        stats = self.counts()
        checked = stats.get("checked", 0)
        exact, near = stats.get("duplicate/exact", 0), stats.get("duplicate/near", 0)
        share = f"{100 * (exact + near) / checked:.1f} %" if checked else "0 %"
        parts = [
            f"checked {_plural(checked, things)}: {stats.get('unique', 0):,} unique",
            f"{_plural(exact + near, 'duplicate')} ({share}: {exact:,} exact, {near:,} near)",
            _listed(stats, "revisit/", "revisit"),
        ]
        text = ", ".join(part for part in parts if part)
        skipped = _listed(stats, "skipped/", "not checked", count_last=True)
        errors = _listed(stats, "error/", "error")
        tail = [part for part in (skipped, errors) if part]
        if tagged := stats.get("tagged", 0):
            tail.append(f"tagged {tagged:,}")
        tail.append(
            f"dropped {stats.get('dropped', 0):,}, {human_bytes(stats.get('bytes_saved', 0))} saved"
        )
        return "; ".join([text, *tail])


def _listed(stats: dict[str, Any], prefix: str, what: str, *, count_last: bool = False) -> str:
    """Return e.g. ``3 revisits (2 unchanged, 1 minor)``, the largest first; "" for none."""
    found = {key[len(prefix) :]: n for key, n in stats.items() if key.startswith(prefix)}
    if not found:
        return ""
    total = sum(found.values())
    ranked = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    detail = ", ".join(f"{number:,} {name}" for name, number in ranked)
    return f"{what} {total:,} ({detail})" if count_last else f"{_plural(total, what)} ({detail})"


def _plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def human_bytes(number: float) -> str:
    """Return a size with a unit: ``12 bytes``, ``3.4 MB``."""
    if number < 1000:
        return f"{number:.0f} bytes"
    for unit in ("kB", "MB", "GB"):
        number /= 1000
        if round(number, 1) < 1000:
            return f"{number:.1f} {unit}"
    return f"{number / 1000:.1f} TB"
