"""Pages from files, judged in bulk: JSON Lines, or WARC.

No Scrapy here: `scrapy simdup import` is the face of it.
"""

from __future__ import annotations

import gzip
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec

from scrapy_simdup.analysis import Declared
from scrapy_simdup.errors import SimdupError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from scrapy_simdup.detector import Detector

_FIELDS = ("url", "html", "text", "title")
_HTML_TYPES = ("text/html", "application/xhtml+xml")
_GZIP = b"\x1f\x8b"


class ImportFileError(SimdupError):
    """A file that cannot be imported; the message says which and why."""


@dataclass
class Summary:
    """What an import came to. ``kinds`` counts verdicts, ``unreadable`` what was no page."""

    pages: int = 0
    resumed: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    unreadable: int = 0
    first_unreadable: str | None = None


def check_readable(paths: Iterable[Path]) -> None:
    """Raise :class:`ImportFileError` for a file that cannot be opened: before a store is made."""
    for path in paths:
        _readable(path).close()


def _readable(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise ImportFileError(f"{path} cannot be read ({error.strerror})") from error


class Source:
    """The pages of one file, in order; iterate once.

    ``read`` says how many of its ``size`` bytes are read so far; ``unreadable`` is told of what is
    no page. A file is WARC if its name says so (``.warc``, ``.warc.gz``), else JSON Lines, which
    may be compressed by gzip.
    """

    def __init__(self, path: str | Path, unreadable: Callable[[str], None]) -> None:
        self.path = Path(path)
        self._unreadable = unreadable
        self._file = _readable(self.path)
        self.size = self.path.stat().st_size

    @property
    def read(self) -> int:
        return self.size if self._file.closed else self._file.tell()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        suffixes = [suffix.lower() for suffix in self.path.suffixes]
        with self._file:
            try:
                yield from self._warc() if ".warc" in suffixes else self._json_lines()
            except (OSError, EOFError, gzip.BadGzipFile) as error:
                raise ImportFileError(f"{self.path} is damaged ({error})") from error

    def _json_lines(self) -> Iterator[dict[str, Any]]:
        compressed = self._file.peek(2)[:2] == _GZIP  # type: ignore[attr-defined]
        lines: Any = gzip.GzipFile(fileobj=self._file) if compressed else self._file
        for number, line in enumerate(lines, 1):
            if line.isspace():
                continue
            try:
                yield _page(msgspec.json.decode(line))
            except (ValueError, msgspec.DecodeError) as error:
                self._unreadable(f"{self.path}, line {number}: {error}")

    def _warc(self) -> Iterator[dict[str, Any]]:
        try:
            from warcio.archiveiterator import ArchiveIterator
            from warcio.exceptions import ArchiveLoadFailed
        except ImportError as error:
            raise ImportFileError(
                f"{self.path}: WARC files need warcio; install it with: "
                "pip install 'scrapy-simdup[warc]'"
            ) from error
        try:
            for record in ArchiveIterator(self._file):
                headers = record.http_headers
                if record.rec_type != "response" or headers is None:
                    continue
                kind = headers.get_header("Content-Type") or ""
                if headers.get_statuscode() != "200" or not kind.lower().startswith(_HTML_TYPES):
                    continue
                yield {
                    "url": record.rec_headers.get_header("WARC-Target-URI"),
                    "html": record.content_stream().read(),
                    "decode": Declared(kind),
                }
        except ArchiveLoadFailed as error:
            raise ImportFileError(f"{self.path} is no WARC file, or damaged ({error})") from error


def _page(record: Any) -> dict[str, Any]:
    if not isinstance(record, dict):
        raise ValueError("no JSON object")  # noqa: TRY004 - a wrong value, told as such
    page = {name: record[name] for name in _FIELDS if record.get(name) is not None}
    wrong = [name for name, value in page.items() if not isinstance(value, str)]
    if wrong:
        raise ValueError(f"{wrong[0]} must be a text")
    if "url" not in page or ("html" in page) == ("text" in page):
        raise ValueError("a page needs url, and html or text")
    return page


def import_files(
    detector: Detector,
    paths: list[Path],
    out: Path | None = None,
    on_progress: Callable[[Summary, int], None] | None = None,
) -> Summary:
    """Judge the pages of files, one after another; return what came of them.

    With *out*, each verdict becomes a line there, and an import that was broken off goes on where
    that file ends. *on_progress* is told the summary and the bytes read, after each page.
    """
    summary = Summary()

    def unreadable(text: str) -> None:
        summary.unreadable += 1
        summary.first_unreadable = summary.first_unreadable or text

    sources = [Source(path, unreadable) for path in paths]
    done = 0 if out is None else _whole_lines(out)

    def pages() -> Iterator[dict[str, Any]]:
        for source in sources:
            for page in source:
                if summary.resumed < done:
                    summary.resumed += 1
                    continue
                asked.append(page["url"])
                yield page

    asked: list[str] = []  # the URLs of pages whose verdicts are to come
    output = None if out is None else _opened(out)
    try:
        for verdict in detector.check_many(pages()):
            url = asked.pop(0)
            summary.pages += 1
            summary.kinds[verdict.kind] += 1
            if verdict.kind == "skipped":
                summary.reasons[str(verdict.reason)] += 1
            if output is not None:
                output.write(msgspec.json.encode({"url": url, **verdict.as_dict()}) + b"\n")
                output.flush()
            if on_progress is not None:
                on_progress(summary, sum(source.read for source in sources))
    finally:
        if output is not None:
            output.close()
    return summary


def _opened(out: Path) -> IO[bytes]:
    try:
        return out.open("ab")
    except OSError as error:
        raise ImportFileError(f"{out} cannot be written ({error.strerror})") from error


def _whole_lines(path: Path) -> int:
    """Count the lines of *path*, and cut off the last one if it was not finished."""
    if not path.exists():
        return 0
    try:
        with path.open("r+b") as file:
            lines, end = 0, 0
            for line in file:
                if line.endswith(b"\n"):
                    lines, end = lines + 1, end + len(line)
            file.truncate(end)
    except OSError as error:
        raise ImportFileError(f"{path} cannot be written ({error.strerror})") from error
    return lines
