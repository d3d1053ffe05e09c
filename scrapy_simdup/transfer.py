"""A store as JSON Lines, complete, and back: to move it, keep it, or look into it with other tools.

The first line says what it is, then come the records, each with its page id and all its fields, the
crawls and what was learned of hosts; the last line counts the others, so that a file that was cut
off is found out. Bytes are base64.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import tempfile
from datetime import datetime, timezone
from functools import cache
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar, get_args

import msgspec

from scrapy_simdup.errors import SimdupError
from scrapy_simdup.page.fingerprint import DIGEST_BYTES
from scrapy_simdup.page.sketch import BINS, COARSE_BINS
from scrapy_simdup.store.crawls import Crawl
from scrapy_simdup.store.datafile import DATA_FILE, cannot_write, move_in
from scrapy_simdup.store.environment import SCHEMA, Environment
from scrapy_simdup.store.layouts import relayout
from scrapy_simdup.store.lmdb import KIND, configuration_id, distinct_fingerprints
from scrapy_simdup.store.records import Record
from scrapy_simdup.store.tables import Layout
from scrapy_simdup.store.transaction import Databases, StoredTransaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import lmdb
    from typing_extensions import Self

    from scrapy_simdup.store.reading import StoreReader

T = TypeVar("T")


MARK = "simdup_export"
"""The field of the first line by which an export is known; its value is the format's version."""
VERSION = 1

_BATCH = 5_000
_MAX_KEY = 511  # LMDB's
_GZIP = b"\x1f\x8b"


class TransferError(SimdupError):
    """An export that cannot be written or read; the message says which and why."""


def is_export(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as an export does. False for what cannot be read."""
    try:
        with _opened(Path(path)) as file:
            return MARK.encode() in file.readline(1 << 20)[:200]
    except OSError:
        return False


# ---- export --------------------------------------------------------------------------------------


def export(reader: StoreReader, on_progress: Callable[[int, int], object]) -> Iterator[str]:
    """The lines of a store, without their ends, as it is at one moment.

    *on_progress* is told of the records so far, and how many there are.
    """
    header = reader.header()
    with reader.snapshot() as txn:
        pages, duplicates = txn.counts()
        total = pages + duplicates
        yield _line(
            {
                MARK: VERSION,
                "schema": header["schema"],
                "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
                "pages": pages,
                "duplicates": duplicates,
                "layout": header["layout"],
                "configuration_id": configuration_id(header["configuration"]),
                "configuration": header["configuration"],
            }
        )
        lines = 1
        for number, (page_id, record) in enumerate(txn.all_records(), 1):
            yield _line({"page": page_id, **_named(record)})
            lines += 1
            if number % 1000 == 0 or number == total:
                on_progress(number, total)
        for crawl in txn.crawls():
            yield _line({"crawl": _named(crawl)})
            lines += 1
        for key, memory in txn.memories():
            yield _line({"host": _text(key), "memory": _text(memory)})
            lines += 1
    yield _line({"end": lines})


def _line(fields: dict[str, Any]) -> str:
    return json.dumps(fields, ensure_ascii=True, separators=(",", ":"))


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _named(value: Any) -> Any:
    """A struct as a dict of its fields, whatever is in it likewise."""
    if isinstance(value, msgspec.Struct):
        return {name: _named(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, bytes):
        return _text(value)
    if isinstance(value, tuple):
        return [_named(item) for item in value]
    return value


# ---- import --------------------------------------------------------------------------------------


def restore(
    path: str | os.PathLike[str],
    store: str | os.PathLike[str],
    check: Callable[[str, dict[str, str]], object],
    on_progress: Callable[[int, int], object],
) -> dict[str, Any]:
    """Make the store that the export at *path* was made of, in the folder *store*, which has none.

    *check* is given the store's name and configuration, and may raise. The store is made elsewhere
    and moved in whole. *on_progress* is told of the bytes read, and how many there are. Returns what
    the first line says. Raises :class:`TransferError` and ``StoreError``.
    """
    file, folder = Path(path), Path(store).expanduser().absolute()
    if (folder / DATA_FILE).exists():
        raise _there_already(folder)
    try:
        size = file.stat().st_size
        folder.mkdir(parents=True, exist_ok=True)
        with (
            _opened(file) as lines,
            tempfile.TemporaryDirectory(prefix=".import-", dir=folder) as place,
        ):
            reading = _Reading(str(path), lines, lambda: on_progress(lines.tell_raw(), size))
            header = reading.header()
            check(f"the export {str(path)!r}", header["configuration"])
            _fill(Path(place), reading, header)
            with (Path(place) / DATA_FILE).open("rb+") as data:
                os.fsync(data.fileno())
            if not move_in(Path(place), folder):
                raise _there_already(folder)
    except OSError as error:
        if str(error.filename or "").startswith(str(folder)):
            raise cannot_write(folder, error) from error
        raise TransferError(f"{str(path)!r} cannot be read ({error.strerror or error})") from error
    except EOFError as error:
        raise TransferError(f"{str(path)!r} is cut off; export once more") from error
    return header


def _there_already(folder: Path) -> TransferError:
    return TransferError(f"there is a store at {str(folder)!r} already; import into another folder")


def _fill(place: Path, reading: _Reading, header: dict[str, Any]) -> None:
    environment = Environment.open(place, kind=KIND, sync=False, private=True)
    try:
        layout = _layout(reading, header)
        environment.complete_header(layout=layout.to_dict(), configuration=header["configuration"])
        databases = Databases(environment)
        entries = reading.entries()
        while batch := list(islice(entries, _BATCH)):
            environment.write(lambda txn: _write(StoredTransaction(txn, databases), batch, reading))
        _check_whole(environment, databases, reading, header)
        relayout(
            environment,
            databases.tables,
            layout,
            lambda txn: distinct_fingerprints(txn, databases.holders),
        )
    finally:
        environment.close()


def _layout(reading: _Reading, header: dict[str, Any]) -> Layout:
    try:
        return Layout.from_dict(header["layout"])
    except (ValueError, TypeError) as error:
        raise reading.wrong(f"has a damaged layout ({error})", 1) from error


def _write(txn: StoredTransaction, batch: list[tuple[int, str, Any]], reading: _Reading) -> None:
    line = 0
    try:
        for line, kind, value in batch:  # noqa: B007 - for the message
            if kind == "page":
                txn.restore(*value)
            elif kind == "crawl":
                txn.note_crawl(value)
            else:
                txn.put_memory(*value)
    except (ValueError, OverflowError) as error:
        raise reading.wrong(f"is damaged ({error})", line) from error


def _check_whole(
    environment: Environment, databases: Databases, reading: _Reading, header: dict[str, Any]
) -> None:
    """Raise :class:`TransferError` unless all pages are there that anything is said of."""

    def job(txn: lmdb.Transaction) -> tuple[tuple[int, int], tuple[int, int] | None]:
        stored = StoredTransaction(txn, databases)
        return stored.counts(), stored.lost_alias()

    counts, lost = environment.read(job)
    wanted = header.get("pages"), header.get("duplicates")
    if counts != wanted:
        raise TransferError(
            f"{reading.name!r} has {counts[0]:,} pages and {counts[1]:,} duplicates, and says that "
            f"it has {wanted[0]!r} and {wanted[1]!r}; export once more"
        )
    if lost is not None:
        raise TransferError(
            f"{reading.name!r}: page {lost[0]} duplicates page {lost[1]}, which is no kept page; "
            "repair the store (scrapy simdup doctor --repair), and export once more"
        )


class _Reading:
    """The lines of an export, checked. Raises :class:`TransferError` with the line's number."""

    def __init__(self, name: str, lines: _Lines, on_line: Callable[[], object]) -> None:
        self.name = name
        self._lines = lines
        self._on_line = on_line
        self._number = 0

    def header(self) -> dict[str, Any]:
        header = self._next()
        if header is None or MARK not in header:
            raise self.wrong("is no export of scrapy simdup")
        if header[MARK] != VERSION or header.get("schema") != SCHEMA:
            raise self.wrong(
                f"was written by another version (format {header[MARK]}, schema "
                f"{header.get('schema')}; this one reads {VERSION} and {SCHEMA})"
            )
        configuration = header.get("configuration")
        if not isinstance(configuration, dict) or not isinstance(header.get("layout"), dict):
            raise self.wrong("lacks a configuration or a layout")
        if configuration_id(configuration) != header.get("configuration_id"):
            raise self.wrong("has a configuration that is not that of its configuration_id")
        return header

    def entries(self) -> Iterator[tuple[int, str, Any]]:
        """The number of the line, and what it is: ``page`` and (id, record), ``crawl`` and the
        crawl, or ``host`` and (key, memory).
        """
        last = 0
        while fields := self._next():
            if "end" in fields:
                if fields["end"] != self._number - 1:
                    raise self.wrong(f"counts {fields['end']} lines before it")
                if self._lines.readline():
                    raise self.wrong("is not the last, though it says so")
                return
            try:
                kind, value = _entry(fields)
            except (msgspec.ValidationError, ValueError, KeyError, TypeError) as error:
                raise self.wrong(f"is damaged ({error})") from error
            if kind == "page":
                if value[0] <= last:
                    raise self.wrong("has a page id that is not larger than the one before")
                last = value[0]
            yield self._number, kind, value
        raise TransferError(f"{self.name!r} is cut off after line {self._number}; export once more")

    def _next(self) -> dict[str, Any] | None:
        line = self._lines.readline()
        if not line.endswith(b"\n"):
            return None  # also half a line
        self._number += 1
        if self._number % 1000 == 0:
            self._on_line()
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise self.wrong(f"is no JSON ({error})") from error
        if not isinstance(fields, dict):
            raise self.wrong("is no JSON object")
        return fields

    def wrong(self, what: str, line: int | None = None) -> TransferError:
        """The error that says what is wrong with a line, by default with the last that was read."""
        return TransferError(f"{self.name!r}, line {line or max(1, self._number)}: {what}")


def _entry(fields: dict[str, Any]) -> tuple[str, Any]:
    if "page" in fields:
        page_id = fields.pop("page")
        if not isinstance(page_id, int) or not 0 < page_id < 1 << 63:
            raise ValueError(f"page id {page_id!r}")
        record = msgspec.convert(_listed(Record, fields), Record)
        _check_sizes(record)
        return "page", (page_id, record)
    if "crawl" in fields:
        return "crawl", msgspec.convert(fields["crawl"], Crawl)
    host, memory = (base64.b64decode(fields[name], validate=True) for name in ("host", "memory"))
    if len(host) != DIGEST_BYTES:
        raise ValueError(f"a host of {len(host)} bytes")
    return "host", (host, memory)


def _check_sizes(record: Record) -> None:
    """Raise ValueError for what no store has, or a look-up would stumble over."""
    profile = record.profile
    wholes = (profile.visible, profile.visible_blocks, profile.links, profile.apart)
    if not 0 < len(record.key) <= _MAX_KEY:
        raise ValueError(f"a key of {len(record.key)} bytes")
    if not 0 <= record.representative < 1 << 63:
        raise ValueError(f"representative {record.representative}")
    if {len(view.digest) for view in record.views} | {len(record.body_digest)} != {DIGEST_BYTES}:
        raise ValueError(f"a digest that has not {DIGEST_BYTES} bytes")
    if any(len(view.sketch) != BINS // 2 for view in record.views) or any(
        len(whole) not in (0, COARSE_BINS // 2) for whole in wholes
    ):
        raise ValueError("a sketch of another size")
    if any(not 0 <= view.simhash < 1 << 64 for view in record.views):
        raise ValueError("a simhash that has not 64 bits")


def _listed(kind: Any, value: Any) -> Any:
    """What `_named` made of a struct that is kept as an array, as that array."""
    fields = _fields(kind)
    if fields is not None:
        if not isinstance(value, dict):
            raise ValueError(f"{kind.__name__} is no JSON object")
        if len(value) != len(fields) and (unknown := value.keys() - fields.keys()):
            raise ValueError(f"unknown fields {', '.join(sorted(unknown))}")
        return [_listed(inner, value[name]) for name, inner in fields.items()]
    if isinstance(value, list) and (inner := get_args(kind)):
        return [_listed(inner[0], item) for item in value]
    return value


@cache
def _fields(kind: Any) -> dict[str, Any] | None:
    """The fields of a struct and their types, None for what is no struct."""
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return None
    return {field.name: field.type for field in msgspec.structs.fields(kind)}


# ---- files ---------------------------------------------------------------------------------------


class _Lines:
    """The lines of a file that may be compressed; knows how far it is in the file itself."""

    def __init__(self, raw: IO[bytes], file: Any) -> None:
        self._raw, self._file = raw, file

    def readline(self, limit: int = -1) -> bytes:
        line: bytes = self._file.readline(limit)
        return line

    def tell_raw(self) -> int:
        return self._raw.tell()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()
        self._raw.close()


def _opened(path: Path) -> _Lines:
    raw = path.open("rb")
    compressed = raw.read(2) == _GZIP
    raw.seek(0)
    return _Lines(raw, gzip.GzipFile(fileobj=raw) if compressed else raw)
