"""``scrapy simdup import``: judge the pages of files, and fill a store with them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from scrapy_simdup.batch import Summary
    from scrapy_simdup.cli.context import Context

SUMMARY = "Judge the pages of JSON Lines or WARC files, and fill a store with them"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+", help="JSON Lines (also .gz), or WARC")
    parser.add_argument(
        "--out", metavar="FILE", help="write each verdict there; go on where it ends"
    )


def run(context: Context) -> None:
    from scrapy_simdup.batch import import_files
    from scrapy_simdup.detector import Detector

    files, out = context.options.files, context.options.out
    with (
        context.progress(sum(map(_size, files))) as progress,
        Detector.from_config(context.store(), context.config(), crawl="import") as detector,
    ):

        def show(summary: Summary, read: int) -> None:
            duplicates = summary.kinds["exact"] + summary.kinds["near"]
            progress.show(read, f"{summary.pages:,} pages, {duplicates:,} duplicates")

        summary = import_files(detector, [*map(Path, files)], Path(out) if out else None, show)
    if summary.unreadable:
        context.complain(
            f"{summary.unreadable:,} lines are no pages, the first: {summary.first_unreadable}"
        )
    kinds = ("unique", "exact", "near", "revisit", "skipped")
    context.output.thing(
        {
            "pages": summary.pages,
            "done_before": summary.resumed,
            **{kind: summary.kinds[kind] for kind in kinds},
            "unreadable": summary.unreadable,
            "skipped_because": dict(summary.reasons.most_common()),
        }
    )


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0  # whoever opens it says why
