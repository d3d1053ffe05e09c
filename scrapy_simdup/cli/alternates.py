"""``scrapy simdup alternates``: all addresses of a page, for when one of them is dead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from scrapy_simdup.cli.output import moment

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from scrapy_simdup.cli.context import Context
    from scrapy_simdup.store.reading import StoreReader
    from scrapy_simdup.store.records import Record

SUMMARY = "List all addresses that hold a page: what to follow when a link is dead"

_COLUMNS = ("kept", "kind", "distance", "resemblance", "url")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", metavar="URL", help="any address of the page")


def run(context: Context) -> None:
    from scrapy_simdup.errors import StoreError
    from scrapy_simdup.store.reading import StoreReader

    url, store = context.options.url, context.store()
    with StoreReader(store) as reader:
        found = reader.find_url(url)
        if not found:
            known = [other for other in _spellings(url) if reader.find_url(other)]
            hint = f"; there is {known[0]}" if known else ""
            raise StoreError(f"no page of store {store!r} has the address {url}{hint}")
        rows = [row for page_id, record in found for row in _rows(reader, page_id, record)]
        unique = {row["url"]: row for row in reversed(rows)}
        context.output.things(reversed(unique.values()), _COLUMNS)


def _rows(reader: StoreReader, page_id: int, record: Record) -> Iterator[dict[str, Any]]:
    """The kept page of the cluster, then its duplicates, the oldest first."""
    kept = record if record.kept else reader.get(record.representative)
    yield {"kept": True, "url": kept.url, "title": kept.title, "last_seen": moment(kept.last_seen)}
    for alias in reader.aliases(record.representative or page_id):
        other = reader.get(alias)
        yield {
            "kept": False,
            "kind": "near" if other.reason == "simhash" else "exact",
            "distance": other.distance,
            "resemblance": other.resemblance,
            "url": other.url,
            "title": other.title,
            "last_seen": moment(other.last_seen),
        }


def _spellings(url: str) -> Iterator[str]:
    """Other addresses that one may have meant."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return
    schemes = {"http": "https", "https": "http"}
    paths = (parts.path, parts.path.rstrip("/"), f"{parts.path.rstrip('/')}/")
    for scheme in (parts.scheme, schemes.get(parts.scheme, "https")):
        for path in paths:
            other = urlunsplit((scheme, parts.netloc, path, parts.query, ""))
            if other != url:
                yield other
