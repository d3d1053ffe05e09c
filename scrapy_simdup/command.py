"""``scrapy simdup``, as Scrapy sees it: it imports this module for every command, so little is here.

What it does is in the package `cli`.
"""

from __future__ import annotations

import argparse
import os
import sys

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from scrapy_simdup.errors import SimdupError


class SimdupCommand(ScrapyCommand):
    """The command. Its exit statuses are those of `cli.STATUSES`."""

    requires_crawler_process = False
    default_settings = {"LOG_ENABLED": False}  # noqa: RUF012 - Scrapy's own convention

    def syntax(self) -> str:
        return "SUBCOMMAND [--store FOLDER] [--json] …"

    def short_desc(self) -> str:
        return "Look into, judge by, and look after a store of near-duplicate detection"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        from scrapy_simdup.cli import add_subcommands
        from scrapy_simdup.cli.context import add_store_arguments

        def add_common(subparser: argparse.ArgumentParser) -> None:
            # What is not given there must not hide what is given before the subcommand.
            add_store_arguments(subparser, argparse.SUPPRESS)
            super(SimdupCommand, self).add_options(subparser)
            for action in subparser._actions:
                if action.dest in _GLOBAL:
                    action.default = action.help = argparse.SUPPRESS
                if action.dest == "set":
                    action.dest = "set_behind"

        super().add_options(parser)
        # Scrapy's parser looks at the subcommands' options, too: --log is no short --logfile.
        parser.allow_abbrev = False
        add_store_arguments(parser)
        add_subcommands(parser, add_common)

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        opts.set += getattr(opts, "set_behind", [])
        super().process_options(args, opts)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        from scrapy_simdup.cli import SUBCOMMANDS, run
        from scrapy_simdup.cli.context import Context
        from scrapy_simdup.cli.output import printable

        if args:
            raise UsageError(f"unknown: {' '.join(args)}")
        if opts.subcommand is None:
            raise UsageError(f"say what; there is: {', '.join(SUBCOMMANDS)}")
        assert self.settings is not None
        try:
            self.exitcode = run(opts.subcommand, Context(opts, self.settings))
            sys.stdout.flush()
        except BrokenPipeError:  # the reader, such as head, has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except SimdupError as error:
            print(f"scrapy simdup: {printable(error)}", file=sys.stderr)
            self.exitcode = 1
        except KeyboardInterrupt:
            print("scrapy simdup: broken off; what was done is stored", file=sys.stderr)
            self.exitcode = 130


_GLOBAL = ("logfile", "loglevel", "nolog", "profile", "pidfile", "set", "pdb")
