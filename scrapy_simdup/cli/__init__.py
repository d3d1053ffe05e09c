"""``scrapy simdup``: one module for each subcommand, and what they have in common.

A subcommand is a module of this package with ``SUMMARY``, one line; ``add_arguments(parser)``; and
``run(context)``, which returns the exit status, 0 if it returns None. It is listed in `SUBCOMMANDS`
under its name. Modules import what is heavy when they run: all are imported to show their options.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from scrapy_simdup.cli.context import Context

#: Name of a subcommand → the module of this package that does it, in the order of the help.
SUBCOMMANDS: Final[dict[str, str]] = {
    "stats": "stats",
    "log": "log",
    "check": "check",
    "explain": "explain",
    "clusters": "clusters",
    "alternates": "alternates",
    "report": "report",
    "calibrate": "calibrate",
    "export": "export",
    "import": "pages",
    "replay": "replay",
    "rollback": "rollback",
    "purge": "purge",
    "compact": "compact",
    "rebuild": "rebuild",
    "doctor": "doctor",
}

#: What the exit status says.
STATUSES: Final[dict[int, str]] = {
    0: "done",
    1: "something could not be read or written, or is wrong with the store",
    2: "the command line is wrong",
    130: "broken off by Ctrl-C; what was done is stored",
}


def add_subcommands(
    parser: argparse.ArgumentParser, add_common: Callable[[argparse.ArgumentParser], None]
) -> None:
    """Give *parser* the subcommands; *add_common* gives each of them what all have."""
    subparsers = parser.add_subparsers(
        dest="subcommand", metavar="SUBCOMMAND", title="subcommands", prog="scrapy simdup"
    )
    for name, module in SUBCOMMANDS.items():
        loaded = _module(module)
        subparser = subparsers.add_parser(
            name, help=loaded.SUMMARY, description=loaded.SUMMARY, conflict_handler="resolve"
        )
        loaded.add_arguments(subparser)
        add_common(subparser)


def run(name: str, context: Context) -> int:
    """Run a subcommand; its exit status. Raises ``UsageError`` and ``SimdupError``."""
    status: int | None = _module(SUBCOMMANDS[name]).run(context)
    return status or 0


def _module(name: str) -> Any:
    return importlib.import_module(f"{__name__}.{name}")
