"""One LMDB environment: opening it safely, growing it, one transaction at a time.

What is stored is none of this module's business; it knows a ``header`` (who made the file, for
what, in which schema) and hands transactions to jobs. Facts about LMDB that shaped it:

- a process must not open the same file twice, so environments are shared and counted;
- the map can be full at any ``put`` *and at commit*, so a job is redone as a whole after growth;
- the map may only be resized while this process has no transaction, so one lock admits one
  transaction at a time (the store thread is the only regular customer anyway);
- an environment must not be used across ``fork``, so a child is told so;
- damaged pages end the process when they are read through the map, so all are looked at before.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import lmdb

from scrapy_simdup.errors import StoreError
from scrapy_simdup.store.datafile import (
    DATA_FILE,
    MOST_LEAVES,
    cannot_write,
    check_meta_pages,
    check_pages,
    keep_private,
    move_in,
)
from scrapy_simdup.store.opening import MAP_SIZE, file_key, open_lmdb, prepare_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")

#: Schema of everything in the store. A store with a higher number is refused.
SCHEMA = 4

_MAGIC = "scrapy-simdup"
_HEADER_KEY = b"header"
_MAX_GROWTHS = 24
_MOST_LOOKS = 20
_CLEAR_READERS = 1_000
"""After so many transactions the places of readers that were killed are given back."""

_registry: dict[tuple[int, int], Environment] = {}
_registry_lock = threading.Lock()


def _forget_parents_environments() -> None:
    """In a forked child, inherited environments are not ours, and their locks may be held."""
    global _registry_lock  # noqa: PLW0603 - the one place that replaces it
    _registry.clear()
    _registry_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parents_environments)


class Environment:
    """A shared, reference-counted LMDB environment with a header.

    Made by :meth:`open` only. Every ``open`` wants one :meth:`close`; the last one closes the file.
    """

    def __init__(
        self,
        env: lmdb.Environment,
        path: Path | None,
        kind: str,
        readonly: bool,
        reopen: Callable[[], lmdb.Environment] | None = None,
    ) -> None:
        self.path = path
        self.kind = kind
        self.readonly = readonly
        self._env: lmdb.Environment | None = env
        self._lock = threading.RLock()
        self._databases: dict[str, Any] = {}
        self._reopen_env = reopen
        self._on_reopened: list[Callable[[], object]] = []
        self._is_stale = False
        self._pid = os.getpid()
        self._users = 1
        self._begun = 0
        self._key: tuple[int, int] | None = None

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] | None,
        *,
        kind: str,
        map_size: int | None = None,
        sync: bool = True,
        readonly: bool = False,
        lock: bool = True,
        private: bool = False,
    ) -> Environment:
        """Open or create the environment in folder *path*.

        *kind* says what the store is for and must be the same every time. ``path=None`` makes a
        temporary one of which nothing remains, not even after ``kill -9`` where the system allows
        to remove open files. *map_size* in bytes; *sync* off gives up durability for speed. *lock*
        off is for a reader that keeps writers away by other means. *private* keeps other users from
        the files.

        Raises :class:`StoreError` if the folder cannot be used, or holds something else.
        """
        if path is None:
            return cls._open_temporary(kind, map_size)
        folder = prepare_folder(path, readonly)
        with _registry_lock:
            key = file_key(folder)
            known = _registry.get(key) if key else None
            if known is not None:
                known._check_kind(kind)
                if known.readonly and not readonly:
                    raise StoreError(f"{known.name} is open for reading in this process; close it")
                if not lock:
                    raise StoreError(f"{known.name} is open in this process; close it")
                known._users += 1
                return known
            if not readonly and not (folder / DATA_FILE).exists():
                cls._create(folder, kind, map_size)
            check_meta_pages(folder)

            def reopen() -> lmdb.Environment:
                size = map_size or MAP_SIZE
                return open_lmdb(folder, size, sync=sync, readonly=readonly, lock=lock)

            env = reopen()
            self = cls(env, folder, kind, readonly, reopen)
            try:
                self.check_pages()
                self._prepare(kind)
            except BaseException:
                env.close()
                raise
            if private:
                keep_private(folder)
            self._key = file_key(folder)
            if self._key is not None:
                _registry[self._key] = self
            return self

    @classmethod
    def _create(cls, folder: Path, kind: str, map_size: int | None) -> None:
        """Make a store beside and move it in whole, so that nobody ever finds half of one."""
        try:
            with tempfile.TemporaryDirectory(prefix=".new-", dir=folder) as place:
                env = open_lmdb(Path(place), map_size or MAP_SIZE, sync=True, readonly=False)
                try:
                    cls(env, Path(place), kind, readonly=False)._prepare(kind)
                finally:
                    env.close()
                move_in(Path(place), folder)
        except OSError as error:
            raise cannot_write(folder, error) from error

    @classmethod
    def _open_temporary(cls, kind: str, map_size: int | None) -> Environment:
        try:
            folder = Path(tempfile.mkdtemp(prefix="simdup-"))
        except OSError as error:
            raise StoreError(f"no temporary store: {error.strerror or error}") from error
        try:
            env = open_lmdb(folder, map_size or MAP_SIZE, sync=False, readonly=False)
        finally:
            if os.name != "nt":
                # The open file lives on without a name, and vanishes with the process.
                shutil.rmtree(folder, ignore_errors=True)
        self = cls(env, None if os.name != "nt" else folder, kind, readonly=False)
        self._prepare(kind)
        return self

    def check_pages(self, most: int | None = MOST_LEAVES) -> None:
        """Raise :class:`StoreError` if the file has pages that LMDB must not follow.

        Of a large one *most* leaves are looked at.
        """
        if self.path is None:
            return
        folder = self.path
        for _ in range(_MOST_LOOKS):
            # Only others that commit twice between two lines make it look again.
            if self.read(lambda txn: check_pages(folder, txn.id(), most)):
                return

    def _prepare(self, kind: str) -> None:
        env = self._environment()
        if not self.readonly:
            env.reader_check()
        header = self.read(_read_header)
        if header is None:
            if self.readonly:
                raise StoreError(f"{self.name} holds no scrapy-simdup store")
            self.write(lambda txn: self._create_header(txn, kind))
            return
        if header.get("magic") != _MAGIC:
            raise StoreError(
                f"{self.name} holds an LMDB environment that is not a scrapy-simdup store; "
                "give the store a folder of its own"
            )
        schema = header.get("schema")
        if schema != SCHEMA:
            older = isinstance(schema, int) and schema < SCHEMA
            raise StoreError(
                f"{self.name} was written by {'an older' if older else 'a newer'} scrapy-simdup "
                f"(schema {schema}, this version reads {SCHEMA}); "
                f"{'' if older else 'upgrade scrapy-simdup or '}use another store"
            )
        self._check_kind(kind)

    def _create_header(self, txn: lmdb.Transaction, kind: str) -> None:
        if _read_header(txn) is not None:  # another process was first
            return
        if txn.stat()["entries"]:
            raise StoreError(
                f"{self.name} holds an LMDB environment that is not a scrapy-simdup store; "
                "give the store a folder of its own"
            )
        _write_header(
            txn, {"magic": _MAGIC, "schema": SCHEMA, "kind": kind, "created": int(time.time())}
        )

    def _check_kind(self, kind: str) -> None:
        found = self.header().get("kind")
        if found != kind:
            raise StoreError(
                f"{self.name} holds {found!r}, not {kind!r}; give each store a folder of its own"
            )

    @property
    def name(self) -> str:
        """How messages call it."""
        return f"store {str(self.path)!r}" if self.path else "the temporary store"

    def check_process(self) -> None:
        """Raise :class:`StoreError` in a forked child. Takes no lock: a fork may inherit it held."""
        if os.getpid() != self._pid:
            raise StoreError(
                f"{self.name} was opened in process {self._pid} and cannot be used in its child "
                f"{os.getpid()}; fork first, then open it in each process"
            )

    def _environment(self) -> lmdb.Environment:
        if self._env is None:
            raise StoreError(f"{self.name} is closed")
        return self._env

    def database(self, name: str, *, dupsort: bool = False, dupfixed: bool = False) -> Any:
        """Return the handle of sub-database *name*, created on first use."""
        self.check_process()
        with self._lock:
            if name not in self._databases:
                env = self._environment()
                create = not self.readonly
                try:
                    self._databases[name] = env.open_db(
                        name.encode(), dupsort=dupsort, dupfixed=dupfixed, create=create
                    )
                except lmdb.Error as error:
                    raise StoreError(f"{self.name} has no database {name!r}: {error}") from error
            return self._databases[name]

    def write(self, job: Callable[[lmdb.Transaction], T]) -> T:
        """Run *job* in one write transaction and commit it, durably.

        *job* may run several times (map growth): it must depend on its transaction only. Whatever
        it raises aborts the transaction and is passed on; LMDB's own errors come as
        :class:`StoreError`.
        """
        self.check_process()
        with self._lock:
            for _ in range(_MAX_GROWTHS):
                txn: lmdb.Transaction | None = None
                try:
                    txn = self._begin(write=True)
                    result = job(txn)
                    txn.commit()
                except lmdb.MapFullError:
                    _abort(txn)
                    self._grow()
                except lmdb.Error as error:
                    _abort(txn)
                    raise self._store_error("write to", error) from error
                except BaseException:
                    _abort(txn)
                    raise
                else:
                    return result
            raise StoreError(f"{self.name} stays full after {_MAX_GROWTHS} enlargements")

    def read(self, job: Callable[[lmdb.Transaction], T]) -> T:
        """Run *job* in one read transaction."""
        self.check_process()
        with self._lock:
            try:
                with self._begin(write=False) as txn:
                    return job(txn)
            except lmdb.Error as error:
                raise self._store_error("read", error) from error

    @contextmanager
    def snapshot(self) -> Iterator[lmdb.Transaction]:
        """One read transaction for as long as the block takes, for what must see one moment.

        Meanwhile this process writes nothing to the store, and the file cannot use anew what others
        have freed: it grows instead.
        """
        self.check_process()
        with self._lock:
            try:
                with self._begin(write=False) as txn:
                    yield txn
            except lmdb.Error as error:
                raise self._store_error("read", error) from error

    def _begin(self, *, write: bool) -> lmdb.Transaction:
        env = self._environment() if not self._is_stale else self._reopened()
        self._begun += 1
        if self._begun % _CLEAR_READERS == 0:
            # A reader that was killed holds all pages of its moment, and its place in the list.
            env.reader_check()
        try:
            return env.begin(write=write)
        except lmdb.MapResizedError:
            # Another process made the map larger.
            env.set_mapsize(0)
        except lmdb.ReadersFullError:
            env.reader_check()
        except lmdb.PanicError:
            env = self._reopened()
        return env.begin(write=write)

    def _reopened(self) -> lmdb.Environment:
        """Open the file once more: LMDB does nothing in it after an I/O error at a meta page."""
        if self._reopen_env is None or self._env is None:
            raise StoreError(f"{self.name} cannot be used any more: its disk has failed")
        self._is_stale = True  # until all of this has succeeded
        self._env.close()
        self._databases.clear()
        self._env = self._reopen_env()
        for notify in self._on_reopened:
            notify()
        self._is_stale = False
        return self._env

    def when_reopened(self, notify: Callable[[], object]) -> None:
        """Call *notify* whenever handles of databases have to be asked for again."""
        self._on_reopened.append(notify)

    def _grow(self) -> None:
        env = self._environment()
        size = env.info()["map_size"] * 2
        try:
            env.set_mapsize(size)
        except (lmdb.Error, MemoryError, OverflowError) as error:
            raise StoreError(
                f"{self.name} is full and its map cannot grow to {size} bytes: {error}"
            ) from error

    def _store_error(self, what: str, error: lmdb.Error) -> StoreError:
        hint = ""
        number = error.args[1] if len(error.args) > 1 else None
        if number == errno.ENOSPC or "No space left" in str(error):
            hint = "; free some disk space"
        elif number == errno.EROFS or "Read-only file system" in str(error):
            hint = "; make its file system writable again"
        elif number == errno.EIO or "Input/output error" in str(error):
            hint = "; see whether its disk is sound"
        elif isinstance(error, (lmdb.CorruptedError, lmdb.PageNotFoundError, lmdb.PanicError)):
            hint = "; the store is damaged: restore a copy, or use another store"
        return StoreError(f"cannot {what} {self.name}: {error}{hint}")

    def header(self) -> dict[str, Any]:
        """Return the header: magic, schema, kind, created, and what the owner added."""
        return self.read(_read_header) or {}

    def complete_header(self, **values: Any) -> dict[str, Any]:
        """Set JSON-able header values that are not there yet; return the whole header."""

        def job(txn: lmdb.Transaction) -> dict[str, Any]:
            header = _read_header(txn) or {}
            completed = {**values, **header}
            if completed != header:
                _write_header(txn, completed)
            return completed

        return self.write(job)

    def info(self) -> dict[str, int]:
        """Return ``bytes`` and ``pages`` of the data file, ``map_size``, ``last_txnid``."""
        self.check_process()
        with self._lock:
            env = self._environment()
            info, stat = env.info(), env.stat()
            return {
                "bytes": (info["last_pgno"] + 1) * stat["psize"],
                "pages": info["last_pgno"] + 1,
                "map_size": info["map_size"],
                "last_txnid": info["last_txnid"],
            }

    def copy(self, folder: Path) -> None:
        """Write a compact copy of the file into *folder*, as it is at one moment."""
        self.check_process()
        with self._lock:
            try:
                self._environment().copy(str(folder), compact=True)
            except lmdb.Error as error:
                raise self._store_error("copy", error) from error

    def stale_readers(self) -> int:
        """How many readers belong to processes that have ended; opening the store clears them."""
        lines = self._environment().readers().splitlines()
        pids = {
            int(line.split()[0]) for line in lines if line.split()[:1] and line.split()[0].isdigit()
        }
        return sum(not _is_alive(pid) for pid in pids)

    @property
    def closed(self) -> bool:
        return self._env is None

    def close(self) -> None:
        """Give up one use; the last one closes the file. Never raises on a closed environment."""
        if os.getpid() != self._pid:
            return  # belongs to the parent: closing it here would release the parent's locks
        with _registry_lock, self._lock:
            if self._env is None:
                return
            self._users -= 1
            if self._users > 0:
                return
            if self._key is not None and _registry.get(self._key) is self:
                del _registry[self._key]
            env, self._env = self._env, None
            env.close()
            if self.path is not None and os.name == "nt" and self.path.name.startswith("simdup-"):
                shutil.rmtree(self.path, ignore_errors=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # of another user
        return True
    return True


def header_bytes(txn: lmdb.Transaction) -> bytes:
    """Return the header as it is stored, cheaply, to see whether it has changed."""
    return bytes(txn.get(_HEADER_KEY, b""))


def update_header(txn: lmdb.Transaction, **values: Any) -> None:
    """Set JSON-able header values in a transaction that changes what they describe."""
    _write_header(txn, {**(_read_header(txn) or {}), **values})


def _abort(txn: lmdb.Transaction | None) -> None:
    if txn is not None:
        txn.abort()  # does nothing where the commit itself has ended the transaction


def _read_header(txn: lmdb.Transaction) -> dict[str, Any] | None:
    raw = txn.get(_HEADER_KEY)
    if raw is None:
        return None
    try:
        header = json.loads(bytes(raw))
    except ValueError:
        return {}
    return header if isinstance(header, dict) else {}


def _write_header(txn: lmdb.Transaction, header: dict[str, Any]) -> None:
    txn.put(_HEADER_KEY, json.dumps(header, sort_keys=True).encode())
