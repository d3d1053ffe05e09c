"""What each part of the detector is worth: an ablation over labelled sets.

    python benchmarks/quality --data DIR [--held-out DIR] [--check] [--rows REGEX] [--out docs]

`--data` holds the unpacked sets `phpunit-manual`, `hexo-site`, `wuchong-blog`, `awslbc-docs`,
`weex-site`, `trpl-zh`, `wooyun-drops` and `copycat-human`; they are no part of this repository.
`--held-out` may name a folder of more sets in the same format (`sets`), on which nothing was tuned.
Template siblings are made by benchmarks/siblings.py. The report goes to `--out` as quality.md and
quality.svg, and is written again after every part of the grid; texts that were extracted and
figures that are known are kept in `--cache`, so that a second run is short.

`--check` compares the lab, which judges in memory, with the `Detector`: all counts must be equal.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import extraction
from lab import Result, judged, run_pages, run_text_pairs, url_of
from report import Report
from results import Results
from sets import DEV, TEXT_PAIRS, Counts, PageSet, judge_pairs, text_pairs
from variants import CURVES, DEFAULT, PAPER, TABLES, Row, Variant

from scrapy_simdup import Detector, compare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

CHECKED_SETS = ("phpunit-manual", "trpl-zh")


@dataclass(frozen=True)
class Task:
    """A set and the variants it is judged by; without `pages`, the pairs of texts."""

    pages: PageSet | None
    data: Path
    variants: tuple[Variant, ...]
    cache: Path


def judge(task: Task) -> list[tuple[str, Variant, Result | dict[str, Counts]]]:
    if task.pages is None:
        pairs = text_pairs(task.data / TEXT_PAIRS)
        return [(TEXT_PAIRS, *found) for found in run_text_pairs(pairs, task.variants)]
    return [(task.pages.name, *found) for found in run_pages(task.pages, task.variants, task.cache)]


def extract(task: tuple[PageSet, str, Path]) -> None:
    extraction.extracted(*task)


class Grid:
    """Runs the grid part by part and writes the report after each."""

    def __init__(self, arguments: argparse.Namespace, command: str) -> None:
        self._arguments = arguments
        self._cache: Path = arguments.cache
        self._sets = page_sets(arguments)
        self._has_texts = (arguments.data / TEXT_PAIRS).is_dir()
        self._results = Results.load(self._cache)
        self._report = Report(self._results, self._sets, command)

    def run(self) -> None:
        wanted = re.compile(self._arguments.rows)
        for name, rows, chinese in _parts():
            chosen = [row for row in rows if wanted.search(f"{name}: {row.label}")]
            sets = [pages for pages in self._sets if pages.is_chinese or not chinese]
            variants = [row.variant for row in chosen]
            self._extract(sets, variants)
            self._judge(name, sets, variants)
            if self._arguments.out is not None:
                self._report.write(self._arguments.out)

    def _extract(self, sets: Sequence[PageSet], variants: Sequence[Variant]) -> None:
        sources = dict.fromkeys(extraction.source_of(variant.extractor) for variant in variants)
        tasks = [
            (pages, source, self._cache)
            for source in sources
            for pages in sets
            if not extraction.is_cached(pages, source, self._cache)
        ]
        self._work("extraction", extract, tasks, lambda _: None)

    def _judge(self, name: str, sets: Sequence[PageSet], variants: Sequence[Variant]) -> None:
        data, known = self._arguments.data, self._results
        tasks = []
        for pages in sorted(sets, key=lambda pages: -len(pages.docs)):
            own = tuple(v for v in variants if (pages.name, v.key) not in known.pages)
            tasks.append(Task(pages, data, own, self._cache))
        if self._has_texts:
            own = tuple(v for v in variants if (TEXT_PAIRS, v.key) not in known.texts)
            tasks.insert(0, Task(None, data, own, self._cache))
        self._work(name, judge, [task for task in tasks if task.variants], self._take)

    def _take(self, found: list[tuple[str, Variant, Result | dict[str, Counts]]]) -> None:
        for name, variant, result in found:
            if isinstance(result, Result):
                self._results.add_pages(name, variant, result)
            else:
                self._results.add_texts(name, variant, result)

    def _work(
        self,
        what: str,
        function: Callable[[Any], Any],
        tasks: Sequence[Any],
        take: Callable[[Any], None],
    ) -> None:
        if not tasks:
            return
        started = time.perf_counter()
        with multiprocessing.Pool(self._arguments.jobs, maxtasksperchild=4) as pool:
            done = pool.imap_unordered(function, tasks)
            for number, found in enumerate(done, 1):
                take(found)
                seconds = time.perf_counter() - started
                end = "\n" if number == len(tasks) else "\r"
                if sys.stderr.isatty() or end == "\n":
                    line = f"{what}: {number} of {len(tasks)} sets, {seconds:.0f} s"
                    print(f"{line:60}", end=end, file=sys.stderr, flush=True)


def _parts() -> list[tuple[str, tuple[Row, ...], bool]]:
    """The grid in the order of what matters most; the third says: Chinese sets only."""
    tables = {table.name: table for table in TABLES}
    parts: list[tuple[str, tuple[Row, ...], bool]] = [("default", (DEFAULT, PAPER), False)]
    for names in (
        ("parts", "distance", "cut"),
        ("features", "sketches"),
        ("extractors",),
        ("chinese",),
        ("length",),
    ):
        rows = tuple(row for name in names for row in tables[name].rows)
        if names == ("extractors",):
            rows += tuple(row for curve in CURVES for row in curve.rows)
        parts.append((", ".join(names), rows, tables[names[0]].chinese))
    return parts


def page_sets(arguments: argparse.Namespace) -> list[PageSet]:
    data: Path = arguments.data
    missing = [name for name in DEV if not (data / name / "docs.jsonl").exists()]
    if missing:
        sys.exit(
            f"{data} has no {', '.join(missing)}: --data must name the folder in which the labelled "
            "sets are unpacked, each with docs.jsonl, pairs.jsonl and gold.jsonl"
        )
    found = [PageSet(data / name, "dev") for name in DEV]
    if arguments.held_out is not None:
        for folder in sorted(arguments.held_out.iterdir()):
            if (folder / "docs.jsonl").exists() and folder.name not in arguments.leave_out:
                group = "held-out, apart" if folder.name in arguments.apart else "held-out"
                found.append(PageSet(folder, group))
    siblings = arguments.cache / "siblings"
    maker = Path(__file__).resolve().parent.parent / "siblings.py"
    subprocess.run([sys.executable, maker, siblings], check=True, stdout=subprocess.DEVNULL)
    found += [PageSet(folder, "siblings") for folder in sorted(siblings.iterdir())]
    if arguments.sets:
        found = [pages for pages in found if pages.name in arguments.sets]
    return found


def check(sets: Iterable[PageSet], data: Path, cache: Path) -> None:
    """Compare the lab with the `Detector`. Raises SystemExit where a figure differs."""
    for row in (DEFAULT, PAPER):
        options = dict(row.variant.options)
        for pages in sets:
            [(_, result)] = run_pages(pages, [row.variant], cache)
            with Detector(None, **options) as detector:
                verdicts = [
                    detector.check(url_of(pages, doc["id"]), html)
                    for doc, html in zip(pages.docs, pages.pages(), strict=True)
                ]
            _agree(
                f"{pages.name}, {row.label}", result.counts, pages.judge(*judged(pages, verdicts))
            )
        if (data / TEXT_PAIRS).is_dir():
            pairs = text_pairs(data / TEXT_PAIRS)
            [(_, counts)] = run_text_pairs(pairs, [row.variant])
            near = [compare(pair.a, pair.b, **options).near for pair in pairs]
            _agree(f"{TEXT_PAIRS}, {row.label}", counts, judge_pairs(pairs, near))


def _agree(what: str, lab: object, detector: object) -> None:
    if lab != detector:
        sys.exit(f"{what}: the lab has {lab}, the detector {detector}")
    print(f"{what}: lab and detector agree: {lab}", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python benchmarks/quality",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the unpacked sets")
    parser.add_argument("--held-out", type=Path, help="folder of more sets")
    parser.add_argument("--leave-out", nargs="*", default=[], metavar="SET")
    parser.add_argument("--apart", nargs="*", default=[], metavar="SET", help="not in the sums")
    parser.add_argument("--sets", nargs="*", default=[], metavar="SET", help="only these")
    parser.add_argument("--rows", default="", metavar="REGEX", help="only these, as table: label")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, help="folder of the report, such as docs")
    parser.add_argument(
        "--cache", type=Path, default=Path(tempfile.gettempdir()) / "simdup-quality"
    )
    parser.add_argument("--check", action="store_true", help="only compare lab and Detector")
    arguments = parser.parse_args()
    if arguments.check:
        names = arguments.sets or CHECKED_SETS
        sets = [pages for pages in page_sets(arguments) if pages.name in names]
        check(sets, arguments.data, arguments.cache)
        return
    Grid(arguments, command(arguments)).run()


def command(arguments: argparse.Namespace) -> str:
    """The command for the whole report, with folders of the reader's own."""
    words = ["python benchmarks/quality --data DIR"]
    if arguments.held_out is not None:
        words.append("--held-out DIR")
    for option, names in (("--leave-out", arguments.leave_out), ("--apart", arguments.apart)):
        if names:
            words.append(" ".join((option, *names)))
    return " ".join((*words, "--out docs"))


if __name__ == "__main__":
    main()
