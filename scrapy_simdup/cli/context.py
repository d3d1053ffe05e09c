"""What a subcommand is given: its options, the settings, the store, and where its result goes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import UsageError

from scrapy_simdup.cli.output import Output, Progress

if TYPE_CHECKING:
    import argparse

    from scrapy.settings import BaseSettings

    from scrapy_simdup.config import Config


class Context:
    """One run of a subcommand. ``options`` are its arguments, ``output`` takes its result."""

    def __init__(self, options: argparse.Namespace, settings: BaseSettings) -> None:
        self.options = options
        self.settings = settings
        self.output = Output(sys.stdout, as_json=options.json)
        self._has_warned = False

    def config(self, **changed: Any) -> Config:
        """The settings of the project and of ``-s``, validated; *changed* options instead of theirs.

        Raises ``ConfigError``.
        """
        from scrapy_simdup.config import Config

        config = Config.from_settings(self.settings)
        return config.replace(**changed) if changed else config

    def store(self) -> str:
        """The folder of the store; says so, once, if it is in a place where a store must not be.

        Raises ``UsageError`` where nothing says which.
        """
        from scrapy_simdup.store.filesystem import warning_of

        folder = self._folder()
        if not self._has_warned and (warning := warning_of(folder)):
            self._has_warned = True
            self.complain(warning)
        return folder

    def _folder(self) -> str:
        if self.options.store:
            return str(self.options.store)
        if self.options.spider:
            return self._of_spider(f"simdup/{self._spider_name()}")
        store = self.config().store
        if store is None:
            raise UsageError("say which store: --store FOLDER, --spider NAME, or SIMDUP_STORE")
        return store

    def logs(self) -> list[Path]:
        """The dropped-page logs there are, the last one first: where ``SIMDUP_LOG`` says, or by
        default in the data folder; of ``--spider``, if that is given.
        """
        config = self.config()
        if config.log:
            name = self._spider_name() if self.options.spider else "*"
            pattern = Path(config.log % {"spider": name, "time": "*"})
            folder, name = pattern.parent, pattern.name
        else:
            folder = Path(self._of_spider("simdup"))
            name = f"{self._spider_name() if self.options.spider else '*'}-dropped-*.jsonl"
        found = [path for path in folder.glob(name) if path.is_file()]
        return sorted(found, key=lambda path: (path.stat().st_mtime, path.name), reverse=True)

    def progress(self, total: int = 0) -> Progress:
        """A bar on standard error, if that is a terminal."""
        return Progress(sys.stderr, total)

    def complain(self, message: str) -> None:
        """Say something about the result that is not part of it, on standard error."""
        print(f"scrapy simdup: {message}", file=sys.stderr)

    def _spider_name(self) -> str:
        from scrapy_simdup.session import safe_name

        return safe_name(self.options.spider)

    def _of_spider(self, path: str) -> str:
        from scrapy.utils.project import data_path

        return str(data_path(path))


def add_store_arguments(parser: argparse.ArgumentParser, default: Any = None) -> None:
    """Add the options by which every subcommand finds its store, and ``--json``."""
    group = parser.add_argument_group(title="Store and output")
    group.add_argument(
        "--store", metavar="FOLDER", default=default, help="the store (default: SIMDUP_STORE)"
    )
    group.add_argument(
        "--spider",
        metavar="NAME",
        default=default,
        help="the default store of this spider, in .scrapy/simdup",
    )
    group.add_argument(
        "--json", action="store_true", default=default or False, help="print JSON, or JSON Lines"
    )
