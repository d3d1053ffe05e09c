"""``scrapy simdup report``: one HTML file that shows what was dropped, to be looked at and judged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from scrapy_simdup.cli.context import Context
    from scrapy_simdup.cli.httpcache import HttpCache
    from scrapy_simdup.store.crawls import Crawl
    from scrapy_simdup.store.reading import StoreReader

SUMMARY = "Write an HTML report of a crawl: what was saved, and pairs to judge"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", metavar="FILE", default="report.html", help="(report.html)")
    parser.add_argument("--crawl", metavar="ID", help="of this crawl (default: the last one)")
    parser.add_argument("--all", action="store_true", help="of the whole store")
    parser.add_argument(
        "--log",
        metavar="FILE",
        action="append",
        default=[],
        help="dropped-page log, for near misses (default: those of the spider)",
    )
    parser.add_argument(
        "--httpcache", metavar="FOLDER", help="HTTPCACHE_DIR, for texts that are not kept"
    )


def run(context: Context) -> None:
    from scrapy_simdup.analysis import Analyser
    from scrapy_simdup.cli.output import written
    from scrapy_simdup.logreader import read
    from scrapy_simdup.report.data import gather
    from scrapy_simdup.report.render import render
    from scrapy_simdup.report.texts import Texts
    from scrapy_simdup.store.reading import StoreReader

    options = context.options
    if options.all and options.crawl:
        raise UsageError("--all and --crawl exclude each other")
    cache = _http_cache(context)
    damaged: list[str] = []
    with StoreReader(context.store()) as reader, context.progress() as progress:
        crawl = None if options.all else _crawl(reader, options.crawl)
        logs = [*map(Path, options.log)] or context.logs()
        entries: Iterator[dict[str, Any]] = read(
            logs, lambda path, line: damaged.append(f"{path}, line {line}")
        )
        summary = gather(
            reader,
            crawl,
            entries,
            lambda done, total: progress.show(done, f"{done:,} of {total:,} pages", total),
        )
        texts = Texts(reader, Analyser(context.config(keep_text=True)), cache)
        html = render(
            summary,
            texts,
            lambda done, total: progress.show(done, f"{done:,} of {total:,} pairs", total),
        )
    with written(options.out) as file:
        file.write(html.encode())
    if damaged:
        context.complain(f"{len(damaged):,} lines are no records, the first: {damaged[0]}")
    context.output.thing(
        {
            "report": options.out,
            "crawl": crawl.id if crawl else None,
            "pages": summary.kept + summary.duplicates,
            "duplicates": summary.duplicates,
            "near_misses": summary.kinds["near_miss"],
            "pairs": len(summary.sampled_pairs()),
            "bytes": len(html.encode()),
        }
    )


def _http_cache(context: Context) -> HttpCache | None:
    folder = context.options.httpcache
    if not folder:
        return None
    if not Path(folder).is_dir():
        raise UsageError(f"--httpcache {folder}: there is no such folder")
    from scrapy_simdup.cli.httpcache import HttpCache

    return HttpCache(Path(folder), context.config().max_body_bytes)


def _crawl(reader: StoreReader, name: str | None) -> Crawl | None:
    """The crawl that is named, or the last one; None if the store knows of none."""
    crawls = reader.crawls()
    if name is None:
        return crawls[-1] if crawls else None
    meant = [crawl for crawl in crawls if crawl.id.startswith(name)]
    if len(meant) != 1:
        shown = ", ".join(crawl.id for crawl in crawls) or "none"
        raise UsageError(f"--crawl {name}: {len(meant)} crawls begin so; there are: {shown}")
    return meant[0]
