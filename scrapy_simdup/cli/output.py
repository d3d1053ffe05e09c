"""What subcommands print: tables for people, JSON for programs, bars on a terminal.

Addresses and titles come from the web: whatever would move the cursor, hide text or turn its
direction is shown as an escape.
"""

from __future__ import annotations

import json
import math
import os
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from scrapy_simdup.errors import SimdupError
from scrapy_simdup.printable import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from typing_extensions import Self

_NONE = "–"


class OutputError(SimdupError):
    """A file cannot be written; the message says which and why."""


@contextmanager
def written(name: str) -> Iterator[IO[bytes]]:
    """The file *name*, to write to; it is there once it is whole.

    Only its owner may read it: it may have the texts of pages. A link leads to its target; a device
    or a pipe is written to as it is. Raises :class:`OutputError`.
    """
    path = Path(name)
    if not path.name:
        raise OutputError(f"{name!r} is no name of a file")
    try:
        path = path.resolve()
        is_special = path.exists() and not path.is_file() and not path.is_dir()
    except (OSError, ValueError, RuntimeError) as error:
        raise OutputError(f"{name!r} cannot be written ({error})") from error
    if is_special:
        with path.open("wb") as file:
            yield file
        return
    part = path.with_name(f"{path.name}.part")
    try:
        with open(part, "wb", opener=_private) as file:
            yield file
        part.replace(path)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise OutputError(f"{name!r} cannot be written ({why})") from error
    finally:
        with suppress(OSError, ValueError):
            part.unlink()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def moment(seconds: float | None) -> str | None:
    """A time as it is written down, in UTC; None for none, and for what no calendar has."""
    try:
        when = datetime.fromtimestamp(seconds, timezone.utc)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError, OSError):
        return None
    return when.isoformat(timespec="seconds")


def printable(value: Any) -> str:
    """A value as one line of text that is harmless on a terminal."""
    if value is None:
        return _NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return one_line(value)


class Output:
    """Prints results to *file*: one thing as a list of its fields, many things as a table.

    With *as_json* one thing is one line of JSON, and many are JSON Lines.
    """

    def __init__(self, file: IO[str], *, as_json: bool) -> None:
        self._file = file
        self.as_json = as_json

    def thing(self, fields: Mapping[str, Any]) -> None:
        """Print one thing."""
        if self.as_json:
            self._json(fields)
            return
        rows = {name.replace("_", " "): _cell(value) for name, value in fields.items()}
        width = max(map(len, rows), default=0)
        for name, value in rows.items():
            self._line(f"{name:{width}}  {value}")

    def things(
        self, rows: Iterable[Mapping[str, Any]], columns: Sequence[str], none: str = "none"
    ) -> None:
        """Print many things as they come (JSON, which has all their fields) or as a table of *columns*.

        On a terminal a table is as wide as that, else as wide as it needs to be. *none* is printed
        where there are no rows.
        """
        if self.as_json:
            for row in rows:
                self._json(row)
            return
        cells = [[_cell(row.get(name)) for name in columns] for row in rows]
        if not cells:
            self._line(none)
        elif self.is_terminal:
            self._rich_table(cells, columns)
        else:
            self._plain_table(cells, columns)

    def text(self, line: str = "") -> None:
        """Print a line for people; nothing in JSON."""
        if not self.as_json:
            self._line(line)

    def flush(self) -> None:
        """Send on what was printed: a pipe would keep it until there is more."""
        self._file.flush()

    @property
    def is_terminal(self) -> bool:
        return self._file.isatty()

    def _plain_table(self, cells: Sequence[Sequence[str]], columns: Sequence[str]) -> None:
        heads = [name.replace("_", " ") for name in columns]
        widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
        for row in (heads, *cells):
            line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            self._line(line.rstrip())

    def _rich_table(self, cells: Sequence[Sequence[str]], columns: Sequence[str]) -> None:
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for name in columns:
            table.add_column(name.replace("_", " "), overflow="fold")
        for row in cells:
            table.add_row(*map(Text, row))  # no markup in what comes from the web
        Console(file=self._file).print(table)

    def _json(self, fields: Mapping[str, Any]) -> None:
        # ASCII: lone surrogates and directional marks cannot do harm.
        self._line(json.dumps(_finite(fields), ensure_ascii=True, default=str, allow_nan=False))

    def _line(self, line: str) -> None:
        print(line, file=self._file)


def _finite(value: Any) -> Any:
    """A value without NaN and infinity, which are no JSON: a log may have them."""
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [*map(_finite, value)]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{printable(k)} {printable(v)}" for k, v in value.items()) or _NONE
    if isinstance(value, (list, tuple)):
        return ", ".join(map(printable, value)) or _NONE
    return printable(value)


class Progress:
    """A bar on a terminal; elsewhere nothing."""

    def __init__(self, file: IO[str], total: int) -> None:
        self._bar: Any = None
        if file.isatty():
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                TaskProgressColumn,
                TextColumn,
                TimeRemainingColumn,
            )
            from rich.progress import Progress as Bar

            columns = BarColumn(), TaskProgressColumn(), TextColumn("{task.description}")
            self._bar = Bar(*columns, TimeRemainingColumn(), console=Console(file=file))
            self._task = self._bar.add_task("", total=total)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, done: int, text: str, total: int | None = None) -> None:
        """Say that *done* of *total* is done."""
        if self._bar is not None:
            self._bar.update(self._task, completed=done, description=text, total=total)
