"""``scrapy simdup export``: a store as JSON Lines."""

from __future__ import annotations

import gzip
import sys
from contextlib import contextmanager
from io import TextIOWrapper
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from scrapy_simdup.cli.context import Context

SUMMARY = "Write a store as JSON Lines, complete: import makes an equal store of it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", metavar="FILE", help="compressed if it ends in .gz (default: standard output)"
    )


def run(context: Context) -> None:
    from scrapy_simdup.store.reading import StoreReader
    from scrapy_simdup.transfer import export

    with StoreReader(context.store()) as reader, context.progress() as progress:
        lines = export(
            reader, lambda done, total: progress.show(done, f"{done:,} of {total:,} pages", total)
        )
        with _file(context.options.out) as file:
            for line in lines:
                file.write(line + "\n")


@contextmanager
def _file(name: str | None) -> Iterator[IO[str]]:
    from scrapy_simdup.cli.output import written

    if name is None:
        yield sys.stdout
        return
    with written(name) as raw:
        packed = gzip.GzipFile(fileobj=raw, mode="wb") if name.endswith(".gz") else raw
        with TextIOWrapper(packed, encoding="ascii") as file:
            yield file
