"""``scrapy simdup``: what a store holds, and pages from files. Scrapy imports this for every command.

So it imports late.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from scrapy_simdup.errors import SimdupError

if TYPE_CHECKING:
    import argparse

    from scrapy_simdup.batch import Summary
    from scrapy_simdup.config import Config
    from scrapy_simdup.store.records import StoreInfo


class SimdupCommand(ScrapyCommand):
    """The command; each subcommand is a method named ``_<subcommand>``.

    Exit status: 0 done, 1 something could not be read or written, 2 the command line is wrong, 130
    broken off by Ctrl-C.
    """

    requires_crawler_process = False
    default_settings = {"LOG_ENABLED": False}  # noqa: RUF012 - Scrapy's own convention

    def syntax(self) -> str:
        return (
            "stats | import FILE... [--out FILE] | rebuild [--expected N]  "
            "[--store FOLDER] [--spider NAME] [--json]"
        )

    def short_desc(self) -> str:
        return "Look into a store of near-duplicate detection, or fill one from files"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        group = parser.add_argument_group(title="Near-duplicate detection")
        group.add_argument("--store", metavar="FOLDER", help="the store (default: SIMDUP_STORE)")
        group.add_argument(
            "--spider", metavar="NAME", help="the default store of this spider, in .scrapy/simdup"
        )
        group.add_argument("--json", action="store_true", help="print JSON")
        group.add_argument(
            "--out", metavar="FILE", help="import: write each verdict there; go on where it ends"
        )

        group.add_argument(
            "--expected",
            metavar="N",
            type=int,
            help="rebuild: fingerprints to lay the tables out for (default: those stored)",
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        try:
            if args[:1] in (["stats"], ["rebuild"]):
                if args[1:]:
                    raise UsageError(f"unknown: {' '.join(args[1:])}")
                (self._stats if args == ["stats"] else self._rebuild)(opts)
            elif args[:1] == ["import"]:
                self._import(args[1:], opts)
            else:
                what = f"unknown: {' '.join(args)}" if args else "say what"
                raise UsageError(f"{what}; there is: stats, import, rebuild")
        except SimdupError as error:
            print(f"scrapy simdup: {error}", file=sys.stderr)
            self.exitcode = 1
        except KeyboardInterrupt:
            print("scrapy simdup: broken off; what was done is stored", file=sys.stderr)
            self.exitcode = 130

    def _stats(self, opts: argparse.Namespace) -> None:
        info = _held(self._store(opts))
        print(json.dumps(info) if opts.json else _table(info))

    def _import(self, files: list[str], opts: argparse.Namespace) -> None:
        from scrapy_simdup.batch import import_files
        from scrapy_simdup.detector import Detector

        if not files:
            raise UsageError("say which files: import FILE...")
        store, config = self._store(opts), self._config()
        progress = _Progress(sys.stderr, sum(map(_size, files)))

        def show(summary: Summary, read: int) -> None:
            duplicates = summary.kinds["exact"] + summary.kinds["near"]
            progress.show(read, f"{summary.pages:,} pages, {duplicates:,} duplicates")

        out = Path(opts.out) if opts.out else None
        with progress, Detector.from_config(store, config, crawl="import") as detector:
            summary = import_files(detector, [*map(Path, files)], out, show)
        if summary.unreadable:
            print(
                f"scrapy simdup: {summary.unreadable:,} lines are no pages, the first: "
                f"{summary.first_unreadable}",
                file=sys.stderr,
            )
        result = _imported(summary)
        print(json.dumps(result) if opts.json else _table(result))

    def _rebuild(self, opts: argparse.Namespace) -> None:
        from scrapy_simdup.store.lmdb import rebuild

        if opts.expected is not None and opts.expected < 1:
            raise UsageError(f"--expected {opts.expected}: must be at least 1")
        store, progress = self._store(opts), _Progress(sys.stderr, 0)
        with progress:
            before, after = rebuild(
                store,
                self._config().max_distance,
                opts.expected,
                lambda done, total: progress.show(done, f"{done:,} of {total:,} entries", total),
            )
        result = {"store": store, "layout_before": before, "layout": after}
        print(json.dumps(result) if opts.json else _table(result))

    def _config(self) -> Config:
        from scrapy_simdup.config import Config

        assert self.settings is not None
        return Config.from_settings(self.settings)

    def _store(self, opts: argparse.Namespace) -> str:
        if opts.store:
            return str(opts.store)
        if opts.spider:
            from scrapy.utils.project import data_path

            from scrapy_simdup.session import safe_name

            return str(data_path(f"simdup/{safe_name(opts.spider)}"))
        store = self._config().store
        if store is None:
            raise UsageError("say which store: --store FOLDER, --spider NAME, or SIMDUP_STORE")
        return store


def _held(store: str) -> dict[str, Any]:
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


def _imported(summary: Summary) -> dict[str, Any]:
    kinds = {
        kind: summary.kinds[kind] for kind in ("unique", "exact", "near", "revisit", "skipped")
    }
    return {
        "pages": summary.pages,
        "done_before": summary.resumed,
        **kinds,
        "unreadable": summary.unreadable,
        "skipped_because": dict(summary.reasons.most_common()),
    }


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0  # whoever opens it says why


class _Progress:
    """A bar on a terminal; elsewhere nothing."""

    def __init__(self, file: Any, total: int) -> None:
        self._bar: Any = None
        if file.isatty():
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                Progress,
                TaskProgressColumn,
                TextColumn,
                TimeRemainingColumn,
            )

            columns = BarColumn(), TaskProgressColumn(), TextColumn("{task.description}")
            self._bar = Progress(*columns, TimeRemainingColumn(), console=Console(file=file))
            self._task = self._bar.add_task("", total=total)

    def __enter__(self) -> None:
        if self._bar is not None:
            self._bar.start()

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, done: int, text: str, total: int | None = None) -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=done, description=text, total=total)


def _table(info: dict[str, Any]) -> str:
    rows = {name.replace("_", " "): value for name, value in info.items()}
    for name, value in rows.items():
        if isinstance(value, dict):
            rows[name] = ", ".join(f"{k} {v}" for k, v in value.items()) or "–"
    width = max(map(len, rows))
    return "\n".join(f"{name:{width}}  {value}" for name, value in rows.items())
