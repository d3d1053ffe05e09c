"""``scrapy simdup rebuild``: lay the tables out anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.exceptions import UsageError

if TYPE_CHECKING:
    import argparse

    from scrapy_simdup.cli.context import Context

SUMMARY = "Lay the tables of a store out anew, for as many pages as it has by now"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--expected",
        metavar="N",
        type=int,
        help="fingerprints to lay the tables out for (default: those stored)",
    )


def run(context: Context) -> None:
    from scrapy_simdup.store.lmdb import rebuild

    expected = context.options.expected
    if expected is not None and expected < 1:
        raise UsageError(f"--expected {expected}: must be at least 1")
    store = context.store()
    with context.progress() as progress:
        before, after = rebuild(
            store,
            context.config().max_distance,
            expected,
            lambda done, total: progress.show(done, f"{done:,} of {total:,} entries", total),
        )
    context.output.thing({"store": store, "layout_before": before, "layout": after})
