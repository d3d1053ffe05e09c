"""``scrapy simdup stats``: what a store holds."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from scrapy_simdup.cli.output import moment

if TYPE_CHECKING:
    import argparse

    from scrapy_simdup.cli.context import Context
    from scrapy_simdup.store.reading import StoreReader

SUMMARY = "Say what a store holds"

_CRAWL = ("id", "spider", "started", "ended", "checked", "added", "duplicates")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--fast", action="store_true", help="do not look at every page: no figures of crawls"
    )


def run(context: Context) -> None:
    from scrapy_simdup.store.reading import StoreReader

    output = context.output
    with StoreReader(context.store()) as reader:
        info = reader.info()
        total = info.pages + info.aliases
        fields: dict[str, Any] = {
            "store": info.path,
            "pages": info.pages,
            "duplicates": info.aliases,
            "clusters": len(reader.clusters()),
            "bytes": info.bytes,
            "bytes_per_page": round(info.bytes / total) if total else None,
            "layout": info.layout,
            "configuration_id": info.configuration_id,
            "configuration": info.configuration,
        }
        crawls = [] if context.options.fast else _crawls(context, reader, total)
    if output.as_json:
        output.thing({**fields, "crawls": crawls})
        return
    output.thing(fields)
    if crawls:
        output.text()
        output.things(crawls, _CRAWL)


def _crawls(context: Context, reader: StoreReader, total: int) -> list[dict[str, Any]]:
    """What each crawl has added; those that are not noted come first."""
    added: Counter[str] = Counter()
    duplicates: Counter[str] = Counter()
    with context.progress(total) as progress:
        for number, (_, record) in enumerate(reader.records(), 1):
            added[record.added_by] += 1
            duplicates[record.added_by] += not record.kept
            if number % 1000 == 0:
                progress.show(number, f"{number:,} pages")
    noted = {crawl.id: crawl for crawl in reader.crawls()}
    rows = []
    for name in (*(name for name in added if name not in noted), *noted):
        crawl = noted.get(name)
        rows.append(
            {
                "id": name,
                "spider": crawl.spider if crawl else None,
                "started": moment(crawl.started) if crawl else None,
                "ended": moment(crawl.ended) if crawl else None,
                "checked": crawl.counts.get("checked") if crawl else None,
                "added": added[name],
                "duplicates": duplicates[name],
                "version": crawl.version if crawl else None,
                "options": crawl.options if crawl else {},
            }
        )
    return rows
