"""What the store makes of many pages: check and insert, durably, with 16 pages in flight.

    python benchmarks/pages.py [--stored 100000 1000000] [--folder DIR]

Pages are made of random words, and analysed before anything is measured. The store is filled in
large transactions first. Then pages are decided about as a crawl does it: 16 at a time wait for their
verdict, and each transaction takes all that wait. Memory is that of the process alone
(``RssAnon``): the store's file is mapped, and its pages are the system's.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from scrapy_simdup import Detector
from scrapy_simdup.analysis import Analyser, Analysis, Material
from scrapy_simdup.config import Config
from scrapy_simdup.decision import Decision, Page

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy_simdup.store.records import PageTransaction, Record

IN_FLIGHT = 16
MEASURED = 3_000
GROUP = 5_000
HOSTS = 1_000


def words(chance: random.Random) -> list[str]:
    return [
        "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 9)))
        for _ in range(5_000)
    ]


def analysed(config: Config, number: int) -> list[Analysis]:
    chance = random.Random(1)
    known, analyser, found = words(chance), Analyser(config), []
    for n in range(number):
        parts = (" ".join(chance.choices(known, k=60)) for _ in range(5))
        body = f"<title>{n}</title><main>{''.join(f'<p>{part}</p>' for part in parts)}</main>"
        outcome = analyser(
            Material(f"<html><body>{body}</body></html>".encode(), bytes.decode, True)
        )
        assert outcome.analysis is not None, outcome.skipped
        found.append(outcome.analysis)
    return found


def other(record: Record, rng: np.random.Generator) -> Record:
    """Another page: the same sizes, other fingerprints, digests and sketches."""
    noise = rng.bytes(2_048)
    views = tuple(
        msgspec.structs.replace(
            view,
            simhash=int.from_bytes(noise[8 * n : 8 * n + 8], "big"),
            digest=noise[100 + 16 * n : 116 + 16 * n],
            sketch=noise[256 + 256 * n : 512 + 256 * n],
        )
        for n, view in enumerate(record.profile.views)
    )
    return msgspec.structs.replace(
        record,
        key=noise[1_000:1_020],
        body_digest=noise[1_040:1_056],
        profile=msgspec.structs.replace(record.profile, views=views, blocks=noise[1_100:1_120]),
    )


def fill(detector: Detector, example: Record, number: int) -> float:
    rng = np.random.default_rng(7)
    started = time.perf_counter()
    for start in range(0, number, GROUP):

        def job(txn: PageTransaction, size: int = min(GROUP, number - start)) -> None:
            for _ in range(size):
                txn.put(other(example, rng))

        detector._store.transact(job).result()
        if sys.stderr.isatty():
            print(f"\r{start:,} stored", end="", file=sys.stderr, flush=True)
    return number / (time.perf_counter() - started)


def decide(detector: Detector, analyses: list[Analysis], first: int) -> float:
    """Pages a second, with `IN_FLIGHT` pages waiting for their verdict at any time."""
    config = detector.config
    waiting: deque[Any] = deque()
    started = time.perf_counter()
    for n, analysis in enumerate(analyses, first):
        key = n.to_bytes(20, "big")
        material = Material(key, bytes.decode, True)
        page = Page(f"https://{n % HOSTS}.example/{n}", key, material, config.seed)
        decision = Decision(page, analysis, config, "benchmark", detector._profiler)
        waiting.append(detector._store.transact(decision))
        if len(waiting) >= IN_FLIGHT:
            assert waiting.popleft().result().kind == "unique"
    for future in waiting:
        future.result()
    return len(analyses) / (time.perf_counter() - started)


def own_memory() -> float:
    """Megabytes that are this process's own."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1000 for line in lines if line.startswith("RssAnon"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stored", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--distances", type=int, nargs="+", default=[3, 9])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", help="where there is room (default: the temporary folder)")
    options = parser.parse_args()
    print(
        f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}, Python {platform.python_version()}\n"
    )
    print(
        "| k | stored pages | filled at, pages/s | check and insert, pages/s | own memory, MB | bytes a page |"
    )
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    for distance in options.distances:
        for row in measured(distance, options):
            print(row, flush=True)


def measured(distance: int, options: argparse.Namespace) -> Iterator[str]:
    analyses = analysed(Config(max_distance=distance), options.rounds * MEASURED // 5)
    share = len(analyses) // options.rounds
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        with Detector(
            folder / "store", max_distance=distance, expected_pages=max(options.stored)
        ) as detector:
            detector.check("https://example.org", text=" ".join(words(random.Random(3))[:200]))
            example = detector._store.transact(lambda txn: txn.get(1)).result()
            stored, first = 1, 0
            for number in sorted(options.stored):
                speed = fill(detector, example, number - stored)
                stored = number
                rates = []
                for turn in range(options.rounds):
                    rates.append(
                        decide(detector, analyses[turn * share : (turn + 1) * share], first)
                    )
                    first += share
                stored += len(analyses)
                info = detector.info()
                yield (
                    f"| {distance} | {number:,} | {speed:,.0f} | {statistics.median(rates):,.0f} "
                    f"({min(rates):,.0f}–{max(rates):,.0f}) | {own_memory():,.0f} "
                    f"| {info.bytes / (info.pages + info.aliases):,.0f} |"
                )
                analyses = analysed(Config(max_distance=distance), len(analyses))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
