"""``scrapy simdup stats``: what a store holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from scrapy_simdup.cli.context import Context

SUMMARY = "Say what a store holds"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    pass


def run(context: Context) -> None:
    from scrapy_simdup.store.lmdb import read_info

    info = read_info(context.store())
    total = info.pages + info.aliases
    context.output.thing(
        {
            "store": info.path,
            "pages": info.pages,
            "duplicates": info.aliases,
            "bytes": info.bytes,
            "bytes_per_page": round(info.bytes / total) if total else None,
            "layout": info.layout,
            "configuration_id": info.configuration_id,
            "configuration": info.configuration,
        }
    )
