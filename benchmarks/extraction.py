"""What a page costs before it is looked up, beside trafilatura and resiliparse on the same pages.

    python benchmarks/extraction.py [FOLDER] [--pages 150] [--rounds 5]

FOLDER holds pages, `*.html` or `*.html.gz`, at any depth; without it, pages are made by
benchmarks/siblings.py, which are small. Every round measures every page by all rows in turn, from
another row on each time, so that a busy machine is busy for all of them. Figures are processor time
a page; ratios are to trafilatura with `fast=True`, round by round.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import logging
import os
import platform
import statistics
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import siblings

from scrapy_simdup.page.content import ContentExtractor, NoContent
from scrapy_simdup.page.fingerprint import Fingerprinter
from scrapy_simdup.page.profile import VIEWS
from scrapy_simdup.page.profiler import Profiler, Unfit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scrapy_simdup.page.content import Content

PEER = "trafilatura fast"
#: Loads what is loaded once: libraries, jieba's dictionary.
WARM_UP = f"<html><body><p>{'近重复网页检测在抓取时进行。' * 20}</p></body></html>"


def read_pages(folder: Path, most: int) -> list[str]:
    """At most so many pages of a folder, spread over it."""
    paths = sorted((*folder.rglob("*.html"), *folder.rglob("*.html.gz")))
    if not paths:
        raise SystemExit(f"{folder} holds neither *.html nor *.html.gz")
    chosen = paths[:: max(1, len(paths) // most)][:most]
    return [
        (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8", "replace")
        for path in chosen
        for data in (path.read_bytes(),)
    ]


class Rows:
    """What is measured: each takes a page's HTML."""

    def __init__(self) -> None:
        import trafilatura
        from resiliparse.extract.html2text import extract_plain_text

        self._extractor = ContentExtractor()
        self._extractor.load()
        self._profiler = Profiler(Fingerprinter(), VIEWS)
        self._contents: dict[str, Content | None] = {}
        self.by_name: dict[str, Callable[[str], object]] = {
            "scrapy-simdup: content": self._content,
            "scrapy-simdup: profile": self._profile,
            PEER: lambda html: trafilatura.extract(html, fast=True),
            "trafilatura baseline": trafilatura.baseline,
            "resiliparse main content": lambda html: extract_plain_text(html, main_content=True),
        }

    def _content(self, html: str) -> None:
        try:
            self._contents[html] = self._extractor.extract(html)
        except NoContent:
            self._contents[html] = None

    def _profile(self, html: str) -> None:
        content = self._contents[html]
        if content is not None:
            with contextlib.suppress(Unfit):
                self._profiler.portrait(content)


def measure(pages: Sequence[str], rounds: int) -> dict[str, list[float]]:
    """Milliseconds a page, by row and round."""
    figures: dict[str, list[float]] = {}
    for round_ in range(rounds):
        rows = Rows()  # anew, since a profiler remembers the short blocks of the pages before
        names = list(rows.by_name)
        for html in (WARM_UP, *pages[:3]):
            for work in rows.by_name.values():
                work(html)
        seconds = dict.fromkeys(names, 0.0)
        for n, html in enumerate(pages):
            if sys.stderr.isatty():
                print(f"\r\x1b[Kround {round_ + 1}, page {n + 1}", end="", file=sys.stderr)
            first = 2 + (n + round_) % 3  # content comes before its profile
            for name in (*names[first:], *names[:first]):
                start = time.thread_time()
                rows.by_name[name](html)
                seconds[name] += time.thread_time() - start
        for name, spent in seconds.items():
            figures.setdefault(name, []).append(1e3 * spent / len(pages))
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    return figures


def table(figures: dict[str, list[float]]) -> str:
    lines = ["| | ms a page | of trafilatura fast |", "| --- | ---: | ---: |"]
    for name, spent in figures.items():
        ratios = [one / peer for one, peer in zip(spent, figures[PEER], strict=True)]
        lines.append(f"| {name} | {_spread(spent, 1)} | {_spread(ratios, 2)} |")
    return "\n".join(lines)


def _spread(figures: Sequence[float], digits: int) -> str:
    low, high = min(figures), max(figures)
    return f"{statistics.median(figures):.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, metavar="FOLDER")
    parser.add_argument("--pages", type=int, default=150)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    if given.folder is not None:
        pages = read_pages(given.folder, given.pages)
    else:
        with tempfile.TemporaryDirectory() as made:
            with contextlib.redirect_stdout(io.StringIO()):
                siblings.main([made])
            pages = read_pages(Path(made), given.pages)
    size = sum(map(len, pages)) / len(pages) / 1000
    libraries = ", ".join(
        f"{name} {version(name)}" for name in ("trafilatura", "resiliparse", "lxml")
    )
    print(
        f"{len(pages)} pages of {size:.0f} thousand characters, median of {given.rounds} rounds "
        f"(lowest-highest). {platform.system()} {platform.machine()}, {os.cpu_count()} processors, "
        f"Python {platform.python_version()}, {libraries}.\n"
    )
    print(table(measure(pages, given.rounds)))


if __name__ == "__main__":
    main()
