"""Reads the dropped-page log: what a record says, which records one wants, and new ones as they come."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import IO, TYPE_CHECKING, Any

from scrapy_simdup.errors import SimdupError
from scrapy_simdup.sites import is_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

Entry = dict[str, Any]

_PAUSE = 0.5
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


class LogError(SimdupError):
    """A log that cannot be read; the message says which and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which records are wanted: those for which all that is given is true.

    *hosts* are hosts, or domains that they end in; *kinds* are ``exact``, ``near``, ``near_miss``;
    bounds are inclusive, and a record without such a figure is outside of them; *since* and *until*
    are times with a zone.
    """

    hosts: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    crawl: str | None = None
    min_distance: int | None = None
    max_distance: int | None = None
    min_resemblance: float | None = None
    max_resemblance: float | None = None
    since: datetime | None = None
    until: datetime | None = None

    def __call__(self, entry: Entry) -> bool:
        return (
            (not self.kinds or entry.get("kind") in self.kinds)
            and (self.crawl is None or str(entry.get("crawl")).startswith(self.crawl))
            and _is_within(entry.get("distance"), self.min_distance, self.max_distance)
            and _is_within(entry.get("resemblance"), self.min_resemblance, self.max_resemblance)
            and (not self.hosts or is_of(str(entry.get("url")), self.hosts))
            and self._is_of_the_time(entry)
        )

    def _is_of_the_time(self, entry: Entry) -> bool:
        if self.since is None and self.until is None:
            return True
        try:
            when = datetime.fromisoformat(str(entry.get("time")))
            when = when if when.tzinfo else when.replace(tzinfo=timezone.utc)
        except ValueError:
            return False
        return _is_within(when, self.since, self.until)


def _is_within(value: Any, least: Any, most: Any) -> bool:
    if least is None and most is None:
        return True
    if value is None:
        return False
    try:
        return (least is None or value >= least) and (most is None or value <= most)
    except TypeError:
        return False


def moment(text: str, now: datetime | None = None) -> datetime:
    """A time, as ISO 8601 or as how long ago it was: ``2h``, ``30m``, ``7d``. Without a zone: UTC.

    Raises ValueError for anything else.
    """
    number, unit = text[:-1], text[-1:]
    try:
        if unit in _UNITS and number.replace(".", "", 1).isdecimal():
            ago = timedelta(seconds=float(number) * _UNITS[unit])
            return (now or datetime.now(timezone.utc)) - ago
        found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except (ValueError, OverflowError):
        raise ValueError(
            f"{text!r} is no time: give 2026-05-31, 2026-05-31T10:30, or how long ago: 2h, 7d"
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)


def read(paths: Iterable[Path], damaged: Callable[[Path, int], object]) -> Iterator[Entry]:
    """The records of some logs, in their order; *damaged* is told of each line that is none.

    Raises :class:`LogError` for a file that cannot be read.
    """
    for path in paths:
        with _opened(path) as file:
            yield from _entries(path, file, damaged)


def follow(
    path: Path,
    damaged: Callable[[Path, int], object],
    pause: float = _PAUSE,
    is_over: Callable[[], bool] = lambda: False,
) -> Iterator[Entry | None]:
    """All records of a log, then those that come, until *is_over*; None whenever there are no more.

    A log that is replaced or emptied is read anew from its beginning, after what was still written
    to the old one; a line is waited for until it is whole.
    """
    file, part, number = _opened(path), b"", 0
    try:
        while True:
            # Asked before reading: what is written until then is not missed.
            over, replaced = is_over(), _is_replaced(path, file)
            while chunk := file.readline():
                part += chunk
                if part.endswith(b"\n"):
                    number += 1
                    entry = _entry(part)
                    if entry is not None:
                        yield entry
                    elif not part.isspace():
                        damaged(path, number)
                    part = b""
            if over:
                return
            if replaced:
                if part:
                    damaged(path, number + 1)
                file.close()
                file, part, number = _opened(path), b"", 0
                continue
            yield None
            time.sleep(pause)
    finally:
        file.close()


def _opened(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise LogError(
            f"the log {str(path)!r} cannot be read ({error.strerror}); say which: FILE, or --spider"
        ) from error


def _is_replaced(path: Path, file: IO[bytes]) -> bool:
    try:
        now = path.stat()
    except OSError:  # it may be about to be made again
        return False
    mine = os.fstat(file.fileno())
    return (now.st_dev, now.st_ino) != (mine.st_dev, mine.st_ino) or now.st_size < file.tell()


def _entries(
    path: Path, file: IO[bytes], damaged: Callable[[Path, int], object]
) -> Iterator[Entry]:
    try:
        for number, line in enumerate(file, 1):
            entry = _entry(line)
            if entry is not None:
                yield entry
            elif not line.isspace():
                damaged(path, number)
    except OSError as error:
        raise LogError(f"the log {str(path)!r} cannot be read ({error.strerror})") from error


def _entry(line: bytes) -> Entry | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) and "url" in entry and "kind" in entry else None
