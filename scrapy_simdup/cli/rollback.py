"""``scrapy simdup rollback``: take back what one crawl added."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_simdup.cli.removing import add_dry_run, find, remove

if TYPE_CHECKING:
    import argparse

    from scrapy_simdup.cli.context import Context
    from scrapy_simdup.store.records import Record

SUMMARY = "Take back what one crawl added to a store"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "crawl", metavar="CRAWL_ID", help="as stats and the log have it; its beginning will do"
    )
    add_dry_run(parser)


def run(context: Context) -> None:
    crawl = _crawl(context, context.options.crawl)
    renewed = 0

    def is_meant(record: Record) -> bool:
        nonlocal renewed
        renewed += record.crawl == crawl != record.added_by
        return record.added_by == crawl

    page_ids, found = find(context, is_meant)
    done = found if context.options.dry_run else remove(context, page_ids, forget=crawl)
    context.output.thing(
        {"crawl": crawl, **done, "renewed_only": renewed, "dry_run": context.options.dry_run}
    )


def _crawl(context: Context, name: str) -> str:
    """The crawl whose id begins so. Raises ``StoreError`` unless there is one."""
    from scrapy_simdup.errors import StoreError
    from scrapy_simdup.store.reading import StoreReader

    with StoreReader(context.store()) as reader:
        known = {crawl.id for crawl in reader.crawls()}
        if name not in known:  # one that was not noted, such as a detector's
            known |= {record.added_by for _, record in reader.records()}
    if name in known:
        return name
    meant = sorted(crawl for crawl in known if name and crawl.startswith(name))
    if len(meant) == 1:
        return meant[0]
    what = f"{len(meant)} crawls begin with {name}" if meant else f"no crawl is called {name}"
    shown = ", ".join((meant or sorted(known))[:10])
    raise StoreError(f"{what}; there are: {shown or 'none'}")
