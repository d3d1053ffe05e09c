"""A large index: how long it takes to build, how large it is, how fast warm and cold.

    python benchmarks/hundred_million.py [10000000 | 100000000] [--folder /tmp]

Random 64-bit fingerprints, distance k = 3, in 4 tables, loaded in bulk. Cold: the data file is dropped
from the page cache before every look-up (POSIX_FADV_DONTNEED), so that each reads from the disk.
LMDB maps the file: of the resident memory of a process that looks up, most is the page cache.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from lookup import machine, near, resident_bytes

from scrapy_simdup.store.environment import Environment
from scrapy_simdup.store.permuted import PermutedTables
from scrapy_simdup.store.planner import estimate
from scrapy_simdup.store.tables import Layout

LAYOUT = Layout.parse("4c1")
LOOKUPS = 2_000
COLD_LOOKUPS = 100
BATCH = 20_000


def drop_from_cache(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(handle)


def quantiles(times: list[float]) -> str:
    ordered = sorted(times)
    middle, high = statistics.median(ordered), ordered[int(len(ordered) * 0.99)]
    return f"median {middle * 1e6:,.0f} µs, 99th percentile {high * 1e6:,.0f} µs"


def resident() -> str:
    return f"{(resident_bytes() or 0) / 1e6:,.0f} MB"


def build(folder: Path, count: int) -> None:
    start = time.perf_counter()
    stored = np.random.default_rng(2007).integers(0, 2**64, count, dtype=np.uint64)
    environment = Environment.open(folder, kind="benchmark")
    db = environment.database("tables")
    start = time.perf_counter()
    environment.write(lambda txn: PermutedTables(LAYOUT, 3).add(txn, db, stored))
    seconds = time.perf_counter() - start
    size = environment.info()["bytes"]
    print(f"built in {seconds:,.0f} s: {count / seconds:,.0f} fingerprints/s")
    print(f"on disk {size / 1e9:.1f} GB: {size / count:.1f} bytes a fingerprint")
    environment.close()


def look_up(folder: Path, count: int) -> None:
    environment = Environment.open(folder, kind="benchmark")
    db = environment.database("tables")
    tables = PermutedTables(LAYOUT, 3)
    rng = np.random.default_rng(1)
    before = resident()

    def timed(query: int) -> float:
        start = time.perf_counter()
        environment.read(lambda txn: tables.query(txn, db, query))
        return time.perf_counter() - start

    planned = estimate(LAYOUT, 3, count)
    print(
        f"{planned.candidates:,.0f} candidates a look-up; the planner says {planned.lookup_us:,.0f} µs"
    )
    for _ in range(3):
        queries = rng.integers(0, 2**64, LOOKUPS, dtype=np.uint64).tolist()
        for query in queries:  # the first time from wherever the kernel has it
            timed(query)
        print(f"warm: {quantiles([timed(query) for query in queries])}")
    batch = rng.integers(0, 2**64, BATCH, dtype=np.uint64)
    for _ in range(2):
        start = time.perf_counter()
        environment.read(lambda txn: tables.query_many(txn, db, batch))
        each = (time.perf_counter() - start) / BATCH
        print(f"warm, {BATCH:,} together: {each * 1e6:,.0f} µs each")
    wanted = np.random.default_rng(2007).integers(0, 2**64, 1000, dtype=np.uint64)  # the first ones
    for distance in range(5):
        rows, found, _ = environment.read(
            lambda txn, d=distance: tables.query_many(txn, db, near(wanted, d, rng))
        )
        print(f"distance {distance}: {int((wanted[rows] == found).sum())} of 1000 found")
    print(f"resident memory: {before} before, {resident()} after these")
    environment.close()  # mapped pages are not dropped

    cold = []
    for query in rng.integers(0, 2**64, COLD_LOOKUPS, dtype=np.uint64).tolist():
        drop_from_cache(folder / "data.mdb")
        environment = Environment.open(folder, kind="benchmark")
        db = environment.database("tables")
        cold.append(timed(query))
        environment.close()
    print(f"cold: {quantiles(cold)}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("fingerprints", type=int, nargs="?", default=10_000_000)
    parser.add_argument("--folder", type=Path, help="where the store goes; default: temporary")
    arguments = parser.parse_args()
    count = arguments.fingerprints
    with tempfile.TemporaryDirectory(dir=arguments.folder, prefix="simdup-large-") as place:
        free = shutil.disk_usage(place).free
        if free < 80 * count:
            raise SystemExit(
                f"{80 * count / 1e9:.0f} GB of disk are needed, {free / 1e9:.0f} are free"
            )
        print(f"{machine()}\n{count:,} random fingerprints, k = 3, {LAYOUT.describe()}")
        folder = Path(place) / "store"
        build(folder, count)
        look_up(folder, count)


if __name__ == "__main__":
    main()
