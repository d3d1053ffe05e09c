"""``scrapy simdup import``: judge the pages of files and fill a store with them, or restore one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.exceptions import UsageError

if TYPE_CHECKING:
    import argparse

    from scrapy_simdup.batch import Summary
    from scrapy_simdup.cli.context import Context

SUMMARY = "Fill a store with the pages of JSON Lines or WARC files, or with a store's export"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        help="pages as JSON Lines (also .gz) or WARC; or one export",
    )
    parser.add_argument(
        "--out", metavar="FILE", help="write each verdict there; go on where it ends"
    )


def run(context: Context) -> None:
    from scrapy_simdup.transfer import is_export

    files = context.options.files
    exports = [file for file in files if is_export(file)]
    if not exports:
        _judge(context)
    elif len(files) > 1 or context.options.out:
        raise UsageError(f"{exports[0]} is the export of a store: it goes alone, without --out")
    else:
        _restore(context, exports[0])


def _restore(context: Context, file: str) -> None:
    """Make a store of an export, if this configuration can use it."""
    from scrapy_simdup.analysis import Analyser
    from scrapy_simdup.store.lmdb import check_configuration
    from scrapy_simdup.transfer import restore

    wanted = Analyser(context.config()).identity
    store = context.store()
    with context.progress() as progress:
        header = restore(
            file,
            store,
            lambda name, found: check_configuration(name, wanted, found),
            lambda done, total: progress.show(done, "restoring", total),
        )
    names = ("pages", "duplicates", "created", "configuration_id")
    context.output.thing({"store": store, **{name: header.get(name) for name in names}})


def _judge(context: Context) -> None:
    from scrapy_simdup.batch import check_readable, import_files
    from scrapy_simdup.detector import Detector

    files, out = context.options.files, context.options.out
    check_readable(map(Path, files))
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
