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

    from typing_extensions import Self

    from scrapy_simdup.store.reading import StoreReader

T = TypeVar("T")


MARK = "simdup_export"
"""The field of the first line by which an export is known; its value is the format's version."""
VERSION = 1

_BATCH = 5_000
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
    info, header = reader.info(), reader.header()
    total = info.pages + info.aliases
    yield _line(
        {
            MARK: VERSION,
            "schema": header["schema"],
            "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "pages": info.pages,
            "duplicates": info.aliases,
            "layout": header["layout"],
            "configuration_id": info.configuration_id,
            "configuration": header["configuration"],
        }
    )
    lines = 1
    with reader.snapshot() as txn:
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
        raise TransferError(
            f"there is a store at {str(folder)!r} already; import into another folder"
        )
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
            move_in(Path(place), folder)
    except OSError as error:
        if str(error.filename or "").startswith(str(folder)):
            raise cannot_write(folder, error) from error
        raise TransferError(f"{str(path)!r} cannot be read ({error.strerror or error})") from error
    except EOFError as error:
        raise TransferError(f"{str(path)!r} is cut off; export once more") from error
    return header


def _fill(place: Path, reading: _Reading, header: dict[str, Any]) -> None:
    environment = Environment.open(place, kind=KIND, sync=False)
    try:
        layout = Layout.from_dict(header["layout"])
        environment.complete_header(layout=layout.to_dict(), configuration=header["configuration"])
        databases = Databases(environment)
        entries = reading.entries()
        while batch := list(islice(entries, _BATCH)):
            environment.write(lambda txn: _write(StoredTransaction(txn, databases), batch))
        relayout(
            environment,
            databases.tables,
            layout,
            lambda txn: distinct_fingerprints(txn, databases.holders),
        )
    except ValueError as error:
        raise TransferError(f"{reading.name!r}, line 1: {error}") from error
    finally:
        environment.close()


def _write(txn: StoredTransaction, batch: list[tuple[str, Any]]) -> None:
    for kind, value in batch:
        if kind == "page":
            txn.restore(*value)
        elif kind == "crawl":
            txn.note_crawl(value)
        else:
            txn.put_memory(*value)


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
            raise self._wrong("is no export of scrapy simdup")
        if header[MARK] != VERSION or header.get("schema") != SCHEMA:
            raise self._wrong(
                f"was written by another version (format {header[MARK]}, schema "
                f"{header.get('schema')}; this one reads {VERSION} and {SCHEMA})"
            )
        configuration = header.get("configuration")
        if not isinstance(configuration, dict) or not isinstance(header.get("layout"), dict):
            raise self._wrong("lacks a configuration or a layout")
        if configuration_id(configuration) != header.get("configuration_id"):
            raise self._wrong("has a configuration that is not that of its configuration_id")
        return header

    def entries(self) -> Iterator[tuple[str, Any]]:
        """(``page``, (id, record)), (``crawl``, crawl) and (``host``, (key, memory))."""
        last = 0
        while fields := self._next():
            if "end" in fields:
                if fields["end"] != self._number - 1:
                    raise self._wrong(f"counts {fields['end']} lines before it")
                if self._lines.readline():
                    raise self._wrong("is not the last, though it says so")
                return
            try:
                entry = _entry(fields)
            except (msgspec.ValidationError, ValueError, KeyError, TypeError) as error:
                raise self._wrong(f"is damaged ({error})") from error
            if entry[0] == "page":
                if entry[1][0] <= last:
                    raise self._wrong("has a page id that is not larger than the one before")
                last = entry[1][0]
            yield entry
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
            raise self._wrong(f"is no JSON ({error})") from error
        if not isinstance(fields, dict):
            raise self._wrong("is no JSON object")
        return fields

    def _wrong(self, what: str) -> TransferError:
        return TransferError(f"{self.name!r}, line {max(1, self._number)}: {what}")


def _entry(fields: dict[str, Any]) -> tuple[str, Any]:
    if "page" in fields:
        page_id = fields.pop("page")
        if not isinstance(page_id, int) or not 0 < page_id < 1 << 63:
            raise ValueError(f"page id {page_id!r}")
        return "page", (page_id, msgspec.convert(_listed(Record, fields), Record))
    if "crawl" in fields:
        return "crawl", msgspec.convert(fields["crawl"], Crawl)
    return "host", tuple(
        base64.b64decode(fields[name], validate=True) for name in ("host", "memory")
    )


def _listed(kind: Any, value: Any) -> Any:
    """What `_named` made of a struct that is kept as an array, as that array."""
    fields = _fields(kind)
    if fields is not None:
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
