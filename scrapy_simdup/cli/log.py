"""``scrapy simdup log``: the duplicates that a crawl has found, one by one."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from scrapy_simdup.cli.context import Context
    from scrapy_simdup.logreader import Entry, Filter

SUMMARY = "List the duplicates and near misses of the dropped-page log"

_COLUMNS = ("time", "kind", "distance", "resemblance", "url", "duplicate_of")
_KINDS = ("exact", "near", "near_miss")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="*",
        help="logs (default: the last one of --spider, or the last one there is)",
    )
    parser.add_argument("--host", metavar="HOST", action="append", default=[], help="or its domain")
    parser.add_argument("--kind", action="append", default=[], choices=_KINDS)
    parser.add_argument(
        "--crawl", metavar="ID", help="of this crawl; the beginning of its id will do"
    )
    parser.add_argument("--min-distance", metavar="BITS", type=int)
    parser.add_argument("--max-distance", metavar="BITS", type=int)
    parser.add_argument("--min-resemblance", metavar="R", type=float)
    parser.add_argument("--max-resemblance", metavar="R", type=float)
    parser.add_argument("--since", metavar="TIME", help="2026-05-31T10:30, or how long ago: 2h, 7d")
    parser.add_argument("--until", metavar="TIME")
    parser.add_argument(
        "--limit", metavar="N", type=int, help="the last N; of those there are, with --follow"
    )
    parser.add_argument(
        "-f", "--follow", action="store_true", help="go on with those that come, until Ctrl-C"
    )


def run(context: Context) -> None:
    from scrapy_simdup import logreader

    options = context.options
    wanted = _filter(options)
    if options.limit is not None and options.limit < 1:
        raise UsageError(f"--limit {options.limit}: must be at least 1")
    if options.follow and len(options.files) > 1:
        raise UsageError("--follow goes with one log")
    paths = [*map(Path, options.files)] or [_last(context)]
    damaged: list[str] = []
    note = lambda path, line: damaged.append(f"{path}, line {line}")
    if options.follow:
        with suppress(KeyboardInterrupt):
            for entry in _newest(logreader.follow(paths[0], note), wanted, options.limit):
                _line(context, entry)
    else:
        entries: Iterator[Entry] = filter(wanted, logreader.read(paths, note))
        if options.limit is not None:
            entries = _last_ones(entries, options.limit)
        context.output.things(entries, _COLUMNS, none="no such record")
    if damaged:
        context.complain(f"{len(damaged):,} lines are no records, the first: {damaged[0]}")


def _last_ones(entries: Iterator[Entry], number: int) -> Iterator[Entry]:
    return iter(deque(entries, number))


def _newest(followed: Iterator[Entry | None], wanted: Filter, limit: int | None) -> Iterator[Entry]:
    """The last *limit* of the records there are, then all that come."""
    there: deque[Entry] = deque(maxlen=limit)
    for entry in followed:
        if entry is None:
            break
        if wanted(entry):
            if limit is None:
                yield entry
            else:
                there.append(entry)
    yield from there
    yield from (entry for entry in followed if entry is not None and wanted(entry))


def _line(context: Context, entry: Entry) -> None:
    """One record as it comes: a table would have to wait for the last."""
    if context.output.as_json:
        context.output.thing(entry)
    else:
        from scrapy_simdup.cli.output import printable

        context.output.text("  ".join(printable(entry.get(name)) for name in _COLUMNS))
    context.output.flush()


def _filter(options: Any) -> Filter:
    from scrapy_simdup.logreader import Filter, moment

    try:
        since, until = (text and moment(text) for text in (options.since, options.until))
    except ValueError as error:
        raise UsageError(str(error)) from error
    return Filter(
        hosts=tuple(host.lower() for host in options.host),
        kinds=tuple(options.kind),
        crawl=options.crawl,
        min_distance=options.min_distance,
        max_distance=options.max_distance,
        min_resemblance=options.min_resemblance,
        max_resemblance=options.max_resemblance,
        since=since or None,
        until=until or None,
    )


def _last(context: Context) -> Path:
    """The log that was written to last: that of the settings, or in the project's data folder."""
    from scrapy_simdup.logreader import LogError

    found = context.logs()
    if not found:
        raise LogError("there is no log here; say which: FILE, or --spider NAME")
    return found[0]
