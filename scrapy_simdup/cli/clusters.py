"""``scrapy simdup clusters``: the pages with the most duplicates."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from scrapy_simdup.cli.context import Context
    from scrapy_simdup.store.reading import StoreReader

SUMMARY = "List the pages with the most duplicates"

_COLUMNS = ("duplicates", "url", "title", "hosts")
_SAMPLE = 10_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--limit", metavar="N", type=int, default=20, help="so many (20)")
    parser.add_argument(
        "--min-size", metavar="N", type=int, default=1, help="with so many duplicates at least (1)"
    )


def run(context: Context) -> None:
    from scrapy_simdup.store.reading import StoreReader

    options = context.options
    if options.limit < 1 or options.min_size < 1:
        raise UsageError("--limit and --min-size must be at least 1")
    with StoreReader(context.store()) as reader:
        rows = _rows(reader, options.limit, options.min_size)
        context.output.things(rows, _COLUMNS, none="no page has so many duplicates")


def _rows(reader: StoreReader, limit: int, least: int) -> Iterator[dict[str, Any]]:
    from scrapy_simdup.sites import host_of

    for page_id, size in reader.clusters(limit):
        if size < least:
            return
        record = reader.get(page_id)
        hosts: Counter[str] = Counter()
        for alias in reader.aliases(page_id)[:_SAMPLE]:
            hosts[host_of(reader.get(alias).url)] += 1
        yield {
            "duplicates": size,
            "url": record.url,
            "title": record.title,
            "hosts": dict(hosts.most_common(5)),
            "first_seen": record.first_seen,
            "crawl": record.added_by,
        }
