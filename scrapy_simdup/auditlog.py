"""The dropped-page log: JSON Lines, one record a duplicate, flushed as it happens.

A record is one line whatever stands in a URL or a title: control characters, line separators and
direction marks are written as escapes, so the file is safe to ``cat`` and to split at newlines.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from scrapy_simdup.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from io import FileIO

#: Fields of a record, in their order.
FIELDS: Final[dict[str, str]] = {
    "time": "when it was decided, ISO 8601, UTC",
    "crawl": "the crawl: spider, start time, a random part",
    "spider": "name of the spider",
    "url": "the page",
    "referer": "the page that linked to it, or null",
    "kind": "exact, near or near_miss",
    "reason": "body, text or simhash; for a near miss: the rule that refused it",
    "duplicate_of": "URL of the kept page (for a near miss: the candidate that was refused)",
    "distance": "Hamming distance in bits",
    "resemblance": "estimated Jaccard resemblance of the shingle sets, 0 to 1",
    "containment": "share of the smaller shingle set that the larger contains, 0 to 1",
    "length_ratio": "size of the smaller shingle set over that of the larger, 0 to 1",
    "view": "main or prose: the text that was compared",
    "rule": "the rule that decided, or null for the same bytes",
    "cut_off": "whether the document ends in the middle, so that what is left of it was judged",
    "simhash": "fingerprint of the page, 16 hexadecimal digits",
    "simhash_of": "fingerprint of the kept page",
    "tokens": "tokens of main text",
    "tokens_of": "tokens of main text of the kept page",
    "title": "title of the page, or null",
    "title_of": "title of the kept page, or null",
    "action": "drop, drop_items or tag; for a near miss: pass",
    "bytes": "size of the body",
    "depth": "depth of the request",
}

_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


class AuditLog:
    """Appends records to *path*, whose folder is made if need be.

    Raises :class:`ConfigError` if the file cannot be opened for writing.
    """

    def __init__(self, path: str | Path) -> None:
        try:
            self.path = Path(path).expanduser().absolute()
            self._file: FileIO | None = self._open()
        except (OSError, ValueError, RuntimeError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise ConfigError(
                f"SIMDUP_LOG: {str(path)!r} cannot be written: {reason}; "
                "choose another path, or False for no log"
            ) from error

    def write(self, record: Mapping[str, Any]) -> None:
        """Write one record with all of ``FIELDS``; raises ``OSError`` if that fails."""
        if self._file is None:
            raise ValueError("the log is closed")
        if os.fstat(self._file.fileno()).st_nlink == 0:  # somebody has deleted it
            self._file.close()
            self._file = self._open()
        line = encode({name: record.get(name) for name in FIELDS})
        if self._file.write(line) != len(line):
            raise OSError(errno.ENOSPC, "the record was not written to its end")

    def _open(self) -> FileIO:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Unbuffered: a record is one write, whoever else appends, and a failed one stays away.
        return self.path.open("ab", buffering=0)

    def close(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            with contextlib.suppress(OSError):  # of a record whose write has failed already
                file.close()


def encode(record: Mapping[str, Any]) -> bytes:
    """Return *record* as one line of UTF-8, its line end included."""
    line = json.dumps(record, ensure_ascii=False, separators=(", ", ": "))
    line = _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", line)
    # A lone surrogate becomes \udXXX, which is how JSON writes it.
    return line.encode("utf-8", "backslashreplace") + b"\n"
