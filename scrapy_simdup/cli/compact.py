"""``scrapy simdup compact``: give the space of what was taken out back to the system."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from scrapy_simdup.cli.context import Context

SUMMARY = "Write a store's file anew without the space that it does not use"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out",
        metavar="FOLDER",
        help="make a compact copy there, and leave the store alone; a crawl may be using it",
    )


def run(context: Context) -> None:
    from scrapy_simdup.store.compaction import compact, copy

    store, out = context.store(), context.options.out
    before, after = copy(store, out) if out else compact(store)
    context.output.thing(
        {"store": store, "out": out or store, "bytes_before": before, "bytes": after}
    )
