"""``scrapy simdup``: what a store holds. Imported by every Scrapy command, so it imports late."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from scrapy_simdup.errors import SimdupError

if TYPE_CHECKING:
    import argparse

    from scrapy_simdup.store.records import StoreInfo


class SimdupCommand(ScrapyCommand):
    """The command; each subcommand is a method named ``run_<subcommand>``.

    Exit status: 0 done, 1 the store cannot be read, 2 the command line is wrong.
    """

    requires_crawler_process = False
    default_settings = {"LOG_ENABLED": False}  # noqa: RUF012 - Scrapy's own convention

    def syntax(self) -> str:
        return "stats [--store FOLDER] [--spider NAME] [--json]"

    def short_desc(self) -> str:
        return "Look into a store of near-duplicate detection"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        group = parser.add_argument_group(title="Near-duplicate detection")
        group.add_argument("--store", metavar="FOLDER", help="the store (default: SIMDUP_STORE)")
        group.add_argument(
            "--spider", metavar="NAME", help="the default store of this spider, in .scrapy/simdup"
        )
        group.add_argument("--json", action="store_true", help="print JSON")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if args != ["stats"]:
            unknown = [arg for arg in args if arg != "stats"]
            raise UsageError(f"unknown: {' '.join(unknown)}" if unknown else "say what: stats")
        try:
            info = self._stats(self._store(opts))
        except SimdupError as error:
            print(f"scrapy simdup: {error}", file=sys.stderr)
            self.exitcode = 1
            return
        print(json.dumps(info) if opts.json else _table(info))

    def _store(self, opts: argparse.Namespace) -> str:
        from scrapy_simdup.config import Config

        assert self.settings is not None
        if opts.store:
            return str(opts.store)
        if opts.spider:
            from scrapy.utils.project import data_path

            from scrapy_simdup.session import safe_name

            return str(data_path(f"simdup/{safe_name(opts.spider)}"))
        store = Config.from_settings(self.settings).store
        if store is None:
            raise UsageError("say which store: --store FOLDER, --spider NAME, or SIMDUP_STORE")
        return store

    def _stats(self, store: str) -> dict[str, Any]:
        from scrapy_simdup.store.lmdb import read_info

        info: StoreInfo = read_info(store)
        total = info.pages + info.aliases
        return {
            "store": info.path,
            "pages": info.pages,
            "duplicates": info.aliases,
            "bytes": info.bytes,
            "bytes_per_page": round(info.bytes / total) if total else None,
            "layout": info.layout,
            "configuration_id": info.configuration_id,
            "configuration": info.configuration,
        }


def _table(info: dict[str, Any]) -> str:
    rows = {name.replace("_", " "): value for name, value in info.items()}
    rows["configuration"] = ", ".join(f"{k} {v}" for k, v in info["configuration"].items())
    width = max(map(len, rows))
    return "\n".join(f"{name:{width}}  {value}" for name, value in rows.items())
