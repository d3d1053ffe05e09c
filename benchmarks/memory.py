"""Whether anything grows by the page: memory of the process and its workers over many pages.

    python benchmarks/memory.py [--pages 100000] [--workers auto]

Pages are made up, each of its own words, a fifth of them copies; memory is what a process has for
itself (``RssAnon``), without the store's file, which is mapped. Linux only.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy_simdup import Detector

if TYPE_CHECKING:
    from collections.abc import Iterator

STEPS = 10


def made_up(number: int) -> Iterator[tuple[str, str]]:
    """Pages of 120 words with a menu that is the same on all."""
    menu = "".join(f"<li><a href=/{n}>Department {n}</a></li>" for n in range(20))
    for n in range(number):
        chance = random.Random(n - n % 5 if n % 5 == 4 else n)
        words = [f"{chance.getrandbits(40):x}" for _ in range(120)]
        parts = "".join(f"<p>{' '.join(words[start : start + 40])}.</p>" for start in (0, 40, 80))
        title = f"<title>Page {words[0]}</title>"
        yield (
            f"https://{n % 50}.example/{n}",
            f"<html><head>{title}</head><body><nav><ul>{menu}</ul></nav><main>{parts}</main></body>",
        )


def own_memory(pid: int) -> float:
    """Megabytes that a process has for itself."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1000 for line in lines if line.startswith("RssAnon"))


def workers() -> list[int]:
    """The processes that this one has started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # one that has just ended
            if path.read_text().rpartition(")")[2].split()[1] == str(os.getpid()):
                found.append(int(path.parent.name))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--workers", default="auto")
    options = parser.parse_args()
    print("| pages | pages/s | this process, MB | workers, MB each | store, MB |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    counts: Counter[str] = Counter()
    with (
        tempfile.TemporaryDirectory() as folder,
        Detector(Path(folder) / "store", workers=options.workers) as detector,
    ):
        started = time.perf_counter()
        for number, verdict in enumerate(detector.check_many(made_up(options.pages)), 1):
            counts[verdict.kind] += 1
            if number % max(1, options.pages // STEPS) == 0:
                speed = number / (time.perf_counter() - started)
                sizes = " + ".join(f"{own_memory(pid):.0f}" for pid in workers()) or "–"
                print(
                    f"| {number:,} | {speed:,.0f} | {own_memory(os.getpid()):.0f} | {sizes} | "
                    f"{detector.info().bytes / 1e6:,.0f} |",
                    flush=True,
                )
    print(f"\n{dict(counts)}", file=sys.stderr)


if __name__ == "__main__":
    main()
