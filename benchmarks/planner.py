"""Measure look-ups and inserts over layouts, and fit the planner's cost model to them.

    python benchmarks/planner.py [--fingerprints 100000 1000000 10000000] [--rounds 3]
    python benchmarks/planner.py --document

The first prints what was measured beside what the planner predicts now, and the constants that fit
best (least squares of the relative errors); they belong into ``scrapy_simdup/store/planner.py``.
The second writes the planner's table into ``docs/index.md``, without measuring anything.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from scrapy_simdup.store import planner
from scrapy_simdup.store.environment import Environment
from scrapy_simdup.store.permuted import PermutedTables
from scrapy_simdup.store.planner import LAYOUTS, Plan, estimate, plan
from scrapy_simdup.store.tables import MAX_PROBES, Layout

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Values: TypeAlias = npt.NDArray[np.uint64]

DISTANCES = (0, 3, 5, 7, 9, 11)
LOOKUPS = 100
INSERTS = 320
#: Pages that the store's thread finds waiting and commits together, when a crawl is busy.
GROUP = 16
#: So many entries a layout may have on disk: 20 tables of 10 million would be half an hour.
MOST_BUCKETS = 8_000_000

DOCUMENT = Path(__file__).parents[1] / "docs" / "index.md"
BEGIN, END = "<!-- planner: begin -->\n", "<!-- planner: end -->\n"


@dataclass(frozen=True)
class Measured:
    """The medians for one layout, in µs, beside what was predicted."""

    predicted: Plan
    lookup_us: float | None
    insert_us: float | None


def measure(folder: Path, layout: Layout, stored: Values, rounds: int) -> Iterator[Measured]:
    environment = Environment.open(folder, kind="benchmark", sync=False)
    try:
        db = environment.database("tables")
        filling = PermutedTables(layout, 0)
        environment.write(lambda txn: filling.add(txn, db, stored))
        rng = np.random.default_rng(2)
        for k in DISTANCES:
            predicted = estimate(layout, k, len(stored))
            if predicted.probes > MAX_PROBES or predicted.lookup_us > 20_000:
                continue
            tables = PermutedTables(layout, k)
            # The lowest of the rounds' medians: other programs only ever make it slower.
            medians = []
            for _ in range(rounds + 1):
                times = []
                for query in rng.integers(0, 2**64, LOOKUPS, dtype=np.uint64).tolist():
                    start = time.perf_counter()
                    environment.read(lambda txn, q=query, t=tables: t.query(txn, db, q))
                    times.append(time.perf_counter() - start)
                medians.append(statistics.median(times) * 1e6)
            yield Measured(predicted, min(medians[1:]), None)
        medians = []
        for _ in range(rounds):
            times = []
            values = rng.integers(0, 2**64, INSERTS, dtype=np.uint64).reshape(-1, 1)
            for start_row in range(0, INSERTS, GROUP):
                together = values[start_row : start_row + GROUP]
                start = time.perf_counter()
                environment.write(lambda txn, v=together: add_each(filling, txn, db, v))
                times.append((time.perf_counter() - start) / GROUP)
            medians.append(statistics.median(times) * 1e6)
        yield Measured(estimate(layout, 0, len(stored)), None, min(medians))
    finally:
        environment.close()


def add_each(tables: PermutedTables, txn: object, db: object, values: Values) -> None:
    for value in values:
        tables.add(txn, db, value)  # type: ignore[arg-type]


def fitted(rows: Sequence[Sequence[float]], measured: Sequence[float]) -> Values:
    """Return the coefficients >= 0 with the least squares of the relative errors."""
    weighted = np.array(rows) / np.array(measured)[:, np.newaxis]
    used = list(range(weighted.shape[1]))
    coefficients = np.zeros(weighted.shape[1])
    while used:
        found = np.linalg.lstsq(weighted[:, used], np.ones(len(measured)), rcond=None)[0]
        if (found >= 0).all():
            coefficients[used] = found
            break
        used.remove(used[int(np.argmin(found))])
    return coefficients


def report(results: Sequence[Measured]) -> None:
    print(f"{'stored':>11} {'layout':>8} {'k':>3} {'probes':>7} {'candidates':>11}", end="")
    print(f" {'measured µs':>12} {'predicted':>10} {'ratio':>6}")
    for row in results:
        p = row.predicted
        kind = f"{p.max_distance:>3} {p.probes:>7,} {p.candidates:>11,.0f}"
        us, predicted = row.lookup_us, p.lookup_us
        if us is None:
            kind, us, predicted = f"{'insert':>23}", row.insert_us or 0.0, p.insert_us
        print(f"{p.expected:>11,} {p.layout.name:>8} {kind}", end="")
        print(f" {us:>12,.0f} {predicted:>10,.0f} {predicted / us:>6.2f}")
    lookups = [row for row in results if row.lookup_us is not None]
    constants = fitted(
        [
            planner.lookup_terms(p.layout, p.max_distance, p.expected)
            for p in (row.predicted for row in lookups)
        ],
        [row.lookup_us or 0.0 for row in lookups],
    )
    inserts = [row for row in results if row.insert_us is not None]
    more = fitted(
        [planner.insert_terms(row.predicted.layout, row.predicted.expected) for row in inserts],
        [row.insert_us or 0.0 for row in inserts],
    )
    errors = np.array(
        [abs(row.predicted.lookup_us / (row.lookup_us or 1.0) - 1) for row in lookups]
    )
    print(
        f"\npredicted now: off by {np.median(errors):.0%} in the median, {errors.max():.0%} at most"
    )
    print("best fit of look-ups:", ", ".join(f"{value:.4g}" for value in constants))
    print("best fit of inserts:", ", ".join(f"{value:.4g}" for value in more))


def table() -> str:
    """Return the planner's choices as Markdown."""
    lines = [
        "| fingerprints | k | layout | probes | candidates | µs a look-up | bytes a fingerprint |",
        "| ---: | ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    for exponent in range(4, 10):
        for k in range(3, 12):
            chosen = plan(k, 10**exponent)
            lines.append(
                f"| {10**exponent:,} | {k} | `{chosen.layout.name}` | {chosen.probes:,} | "
                f"{_rounded(chosen.candidates)} | {_rounded(chosen.lookup_us)} | "
                f"{chosen.bytes_per_fingerprint:.0f} |"
            )
    return "\n".join(lines) + "\n"


def _rounded(value: float) -> str:
    """Two digits are more than an estimate is worth."""
    return f"{float(f'{value:.2g}'):,.0f}" if value >= 10 else f"{value:.1g}"


def document(text: str) -> str:
    """Return *text* with the table between the marks as the planner has it now."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{table()}{END}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--fingerprints", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000]
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the stores go; default: temporary")
    parser.add_argument("--document", action="store_true", help="write the table in docs/index.md")
    arguments = parser.parse_args()
    if arguments.document:
        DOCUMENT.write_text(document(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
        return
    results: list[Measured] = []
    for count in arguments.fingerprints:
        stored = np.random.default_rng(2007).integers(0, 2**64, count, dtype=np.uint64)
        for layout in LAYOUTS:
            if sum(min(count, 2**t.prefix_bits) for t in layout.tables) > MOST_BUCKETS:
                continue
            with tempfile.TemporaryDirectory(dir=arguments.folder, prefix="simdup-") as folder:
                results += measure(Path(folder), layout, stored, arguments.rounds)
    report(results)


if __name__ == "__main__":
    main()
