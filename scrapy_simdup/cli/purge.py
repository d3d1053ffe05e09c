"""``scrapy simdup purge``: take out pages that are old, or of a host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.exceptions import UsageError

from scrapy_simdup.cli.removing import add_dry_run, find, remove

if TYPE_CHECKING:
    import argparse

    from scrapy_simdup.cli.context import Context
    from scrapy_simdup.store.records import Record

SUMMARY = "Take out pages that were not seen for long, or that are of a host"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--older-than", metavar="AGE", help="not seen for so long: 90d, 12h; or since a time"
    )
    parser.add_argument(
        "--host", metavar="HOST", action="append", default=[], help="of this host or domain"
    )
    add_dry_run(parser)


def run(context: Context) -> None:
    from scrapy_simdup.logreader import moment
    from scrapy_simdup.sites import is_of

    options = context.options
    if options.older_than is None and not options.host:
        raise UsageError("say which pages: --older-than AGE, --host HOST, or both")
    try:
        limit = moment(options.older_than).timestamp() if options.older_than else None
    except ValueError as error:
        raise UsageError(str(error)) from error
    hosts = tuple(host.lower() for host in options.host)

    def is_meant(record: Record) -> bool:
        return (limit is None or record.last_seen < limit) and (
            not hosts or is_of(record.url, hosts)
        )

    page_ids, found = find(context, is_meant)
    done = found if options.dry_run else remove(context, page_ids)
    context.output.thing({**done, "dry_run": options.dry_run})
