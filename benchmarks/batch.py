"""How much of what the workers allow `check_many` and `scrapy simdup import` reach.

    python benchmarks/batch.py --pages DIR [--rounds 5] [--workers auto]

`--pages` is a folder of HTML files (``*.html``, ``*.html.gz``), of which the first 200 are used, three
times over with a number in each, so that every page is new. ``workers`` analyse them and nothing
else; ``check_many`` also decides and stores; ``import`` reads them from a JSON Lines file as well.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

from w3lib.encoding import html_to_unicode

from scrapy_simdup import Detector
from scrapy_simdup.analysis import Analyser, Charset, Material
from scrapy_simdup.batch import import_files
from scrapy_simdup.config import Config
from scrapy_simdup.workers import Workers, available_processors

COPIES = 3


def read_pages(folder: Path) -> list[str]:
    found = []
    for path in sorted((*folder.rglob("*.html"), *folder.rglob("*.html.gz")))[:200]:
        body = path.read_bytes()
        found.append(
            html_to_unicode(None, gzip.decompress(body) if path.suffix == ".gz" else body)[1]
        )
    return [
        html.replace("</body>", f"<p>Visit {turn} today.</p></body>", 1)
        for turn in range(1, COPIES + 1)
        for html in found
    ]


def by_workers(pages: list[str], number: int) -> float:
    config = Config()
    workers = Workers(
        functools.partial(Analyser, config), number, timeout=60, max_bytes=1 << 32, name="bench"
    )
    warm = [
        workers.submit(Material(pages[0].encode(), Charset("utf-8"), True))
        for _ in range(4 * number)
    ]
    for future in warm:
        future.result()
    started = time.perf_counter()
    futures = [workers.submit(Material(page.encode(), Charset("utf-8"), True)) for page in pages]
    for future in futures:
        future.result()
    seconds = time.perf_counter() - started
    workers.close()
    return len(pages) / seconds


def by_check_many(pages: list[str], number: int) -> float:
    with tempfile.TemporaryDirectory() as folder, Detector(folder, workers=number) as detector:
        warm_up(detector, number)
        started = time.perf_counter()
        for _ in detector.check_many(
            (f"https://a.example/{n}", page) for n, page in enumerate(pages)
        ):
            pass
        return len(pages) / (time.perf_counter() - started)


def by_import(pages: list[str], number: int) -> float:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        with (folder / "pages.jsonl").open("w") as file:
            for n, page in enumerate(pages):
                file.write(json.dumps({"url": f"https://a.example/{n}", "html": page}) + "\n")
        with Detector(folder / "store", workers=number) as detector:
            warm_up(detector, number)
            started = time.perf_counter()
            import_files(detector, [folder / "pages.jsonl"], folder / "out.jsonl")
            return len(pages) / (time.perf_counter() - started)


def warm_up(detector: Detector, number: int) -> None:
    some = [
        (f"https://warm.example/{n}", f"<html><body><p>{n} " + "word " * 50)
        for n in range(4 * number)
    ]
    list(detector.check_many(some))


def shown(figures: list[float]) -> str:
    return f"{statistics.median(figures):.2f} ({min(figures):.2f}–{max(figures):.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=available_processors())
    options = parser.parse_args()
    pages = read_pages(options.pages)
    print(f"{len(pages)} pages, {options.workers} workers, load {os.getloadavg()[0]:.1f}\n")
    ways = {"workers": by_workers, "check_many": by_check_many, "import": by_import}
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(options.rounds):
        for name, way in ways.items():
            rates[name].append(way(pages, options.workers))
    print("| | pages/s | of what the workers allow |")
    print("| --- | ---: | ---: |")
    for name, found in rates.items():
        ratios = [a / b for a, b in zip(found, rates["workers"], strict=True)]
        print(f"| {name} | {shown(found)} | {shown(ratios)} |")


if __name__ == "__main__":
    main()
