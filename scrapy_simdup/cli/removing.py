"""What ``rollback`` and ``purge`` have in common: pages are looked for, and taken out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from scrapy_simdup.cli.context import Context
    from scrapy_simdup.store.records import Record


def add_dry_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-n", "--dry-run", action="store_true", help="say what would be taken out, and do nothing"
    )


def find(context: Context, is_meant: Callable[[Record], bool]) -> tuple[list[int], dict[str, int]]:
    """The ids of the pages that are meant, and how many of them are kept and duplicates."""
    from scrapy_simdup.store.reading import StoreReader

    found: list[int] = []
    kept = 0
    with StoreReader(context.store()) as reader, context.progress() as progress:
        info = reader.info()
        total = info.pages + info.aliases
        for number, (page_id, record) in enumerate(reader.records(), 1):
            if is_meant(record):
                found.append(page_id)
                kept += record.kept
            if number % 1000 == 0:
                progress.show(number, f"{len(found):,} of {number:,} pages", total)
    return found, {"kept": kept, "duplicates": len(found) - kept}


def remove(context: Context, page_ids: list[int], forget: str | None = None) -> dict[str, Any]:
    """Take pages out, the largest ids first: duplicates go before the pages that they duplicate."""
    from scrapy_simdup.upkeep import Upkeep

    config = context.config()
    with (
        Upkeep.opened(context.store(), config) as upkeep,
        context.progress(len(page_ids)) as progress,
    ):
        removal = upkeep.remove(
            sorted(page_ids, reverse=True),
            lambda done: progress.show(done, f"{done:,} of {len(page_ids):,} pages"),
        )
        if forget is not None:
            upkeep.forget_crawl(forget)
    return vars(removal)
