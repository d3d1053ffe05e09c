"""Which layout for which distance and how many fingerprints: a cost model, and its choice.

:mod:`scrapy_simdup.store.tables` knows what a layout is and what it probes; here it gets a price.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from scrapy_simdup.store.tables import MAX_PROBES, Layout, check_distance

#: What :func:`plan` chooses from: the paper's four designs (4c1, 5c2, 4c1/4c1, 6c3), and those
#: that multi-probe makes worthwhile. Fewer than 10 prefix bits would be a scan of the store.
LAYOUTS = tuple(
    Layout.parse(name)
    for name in ("2c1", "3c1", "4c1", "5c1", "6c1", "4c2", "5c2", "6c2", "6c3", "4c1/4c1")
)

# In µs, of benchmarks/planner.py, which also fits them: random fingerprints in a warm page cache, on
# the machine of the README's figures. They need not be exact: the layouts differ by factors.
_LOOKUP_US = (6.0, 8.5, 0.48, 1.0, 0.0045)  # for lookup_terms
_INSERT_US = (24.0, 0.03)  # for insert_terms
#: How many pages of a crawl are new; of the web, some 30 % are duplicates (paper, section 1).
_NEW = 0.7
#: What a byte on disk counts as, in µs a page: it is written, synced and cached. So of two layouts
#: that take about the same time, the smaller one is chosen.
_BYTE_US = 0.5
_PAGE = 4096
#: Inserted in random order, LMDB's pages are so full (measured); after a bulk load, nearly whole.
_FILL = 0.66


@dataclass(frozen=True)
class Plan:
    """What one layout costs at distance ``max_distance`` with ``expected`` fingerprints stored.

    ``candidates`` and times are estimates for random fingerprints and a warm page cache.
    """

    max_distance: int
    expected: int
    layout: Layout
    flips: int
    probes: int
    candidates: float
    lookup_us: float
    insert_us: float
    bytes_per_fingerprint: float

    @property
    def page_us(self) -> float:
        """Microseconds for a page of a crawl: all are looked up, some inserted."""
        return self.lookup_us + _NEW * self.insert_us

    @property
    def cost(self) -> float:
        """What plans are compared by: ``page_us``, and a little for the bytes."""
        return self.page_us + _BYTE_US * self.bytes_per_fingerprint

    def reasoning(self) -> str:
        """Say in a few lines what was chosen, what it costs, and what else there was."""
        lines = [
            f"distance {self.max_distance}, {self.expected:,} fingerprints expected",
            f"{self.layout.describe()}; up to {self.flips} bits of a prefix are flipped",
            f"lookup: {self.probes:,} keys probed, about {self.candidates:,.0f} candidates compared",
            f"time: about {self.lookup_us:,.0f} µs a lookup, {self.insert_us:,.0f} µs an insert",
            f"disk: about {self.bytes_per_fingerprint:.0f} bytes a fingerprint",
            "for random fingerprints in a warm page cache; those of real pages crowd: expect more",
        ]
        others = [p for p in estimates(self.max_distance, self.expected) if p != self][:3]
        lines += [
            f"instead of {other.layout.name}: {other.probes:,} probes, "
            f"{other.candidates:,.0f} candidates, {other.bytes_per_fingerprint:.0f} bytes, "
            f"{other.page_us:,.0f} µs a page instead of {self.page_us:,.0f}"
            for other in others
        ]
        return "\n".join(lines)


def estimate(layout: Layout, k: int, expected: int) -> Plan:
    """Return what *layout* costs at distance *k* with *expected* random fingerprints stored."""
    probes = sum(layout.probe_counts(k))
    candidates = layout.candidates(k, expected)
    return Plan(
        max_distance=k,
        expected=expected,
        layout=layout,
        flips=layout.flips(k),
        probes=probes,
        candidates=candidates,
        lookup_us=_sum(_LOOKUP_US, lookup_terms(layout, k, expected)),
        insert_us=_sum(_INSERT_US, insert_terms(layout, expected)),
        bytes_per_fingerprint=_bytes_per_fingerprint(layout, expected),
    )


def estimates(k: int, expected: int) -> list[Plan]:
    """Return the estimates of all :data:`LAYOUTS` that keep to ``MAX_PROBES``, cheapest first."""
    plans = [estimate(layout, k, expected) for layout in LAYOUTS]
    return sorted((p for p in plans if p.probes <= MAX_PROBES), key=lambda p: p.cost)


def plan(k: int, expected: int) -> Plan:
    """Choose the layout for distance *k* and *expected* stored fingerprints.

    The one with the lowest ``cost``: every page of a crawl is looked up, and inserted if new.
    ``ValueError`` if *k* is not from 0 to 16 or *expected* not from 1 to 2**40.
    """
    k = check_distance(k)
    number = isinstance(expected, (int, np.integer)) and not isinstance(expected, bool)
    if not number or not 1 <= expected <= 1 << 40:
        raise ValueError(f"expected is {expected!r}; allowed is an integer from 1 to 2**40")
    return estimates(k, int(expected))[0]


def outgrown(layout: Layout, k: int, stored: int) -> Plan | None:
    """Return the plan to lay out anew, or None if that does not pay.

    It pays where the planner would choose another layout for what is stored now, with which a page
    is expected to take half the time or less.
    """
    best = plan(k, max(1, stored))
    now = estimate(layout, k, max(1, stored))
    return best if now.page_us >= 2 * best.page_us else None


def _sum(constants: tuple[float, ...], terms: tuple[float, ...]) -> float:
    return sum(constant * term for constant, term in zip(constants, terms, strict=True))


def lookup_terms(layout: Layout, k: int, expected: int) -> tuple[float, ...]:
    """What the time of a lookup is a sum of: once, keys probed, buckets read, candidates.

    Of the keys probed also the square root: the more there are, the more lie in the same page.
    """
    probes = layout.probe_counts(k)
    buckets = sum(
        count * -math.expm1(-expected / 2.0**table.prefix_bits)
        for table, count in zip(layout.tables, probes, strict=True)
    )
    keys = float(sum(probes))
    return 1.0, math.sqrt(keys), keys, buckets, layout.candidates(k, expected)


def insert_terms(layout: Layout, expected: int) -> tuple[float, ...]:
    """What the time of an insert is a sum of: tables, and fingerprints in the buckets rewritten."""
    return (
        float(len(layout.tables)),
        sum(_bucket(expected, table.prefix_bits) for table in layout.tables),
    )


def _bucket(expected: int, prefix_bits: int) -> float:
    """Return how many of so many random fingerprints are in a bucket that is not empty."""
    prefixes = 2.0**prefix_bits
    return expected / (prefixes * -math.expm1(-expected / prefixes))


def _bytes_per_fingerprint(layout: Layout, expected: int) -> float:
    """Estimate LMDB's disk use a fingerprint, inserted in random order, as a crawl does.

    A bucket has a node of 10 bytes and its key. What it holds is in the node, too, up to some
    2 KB; beyond, in whole pages of its own.
    """
    node = 10 + layout.key_bytes
    total = 0.0
    for table in layout.tables:
        values = _bucket(expected, table.prefix_bits)
        if node + 8 * values <= _PAGE / 2:
            size = (node + 8 * values) / _FILL
        else:
            spread = math.sqrt(values)  # buckets differ, and pages are whole
            pages = [math.ceil((16 + 8 * (values + z * spread)) / _PAGE) for z in (-1, 0, 1)]
            size = (node + 8) / _FILL + _PAGE * sum(pages) / len(pages)
        total += size / values
    return total


def tables_needed(f: float, k: int, d: float, tau: float) -> int:
    """Return X(f, k, d): tables for 2**d random fingerprints of f bits (paper, section 3.1.2).

    *tau* is the log2 of the candidates a probe may have. One table if d < tau; otherwise cut into
    r > k blocks, of which k may differ, and go on with the rest:
    ``min over r of C(r, k) * X(f * k / r, k, d - (r - k) * f / r)``.
    """
    if d < tau:
        return 1
    if k == 0 or f <= k:
        raise ValueError(f"no tables for f={f}, k={k}, d={d}, tau={tau}: choose k >= 1, larger tau")
    best = 0
    for blocks in range(k + 1, int(f) + 1):
        choices = math.comb(blocks, k)
        if best and choices >= best:
            break
        needed = choices * tables_needed(f * k / blocks, k, d - (blocks - k) * f / blocks, tau)
        best = min(best or needed, needed)
    return best
