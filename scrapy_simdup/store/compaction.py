"""A store's file written anew, without the pages that are free.

LMDB never gives space back by itself: pages that were freed are used again, and the file stays as
large as it was at its largest.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy_simdup.errors import StoreError
from scrapy_simdup.store.datafile import DATA_FILE, LOCK_FILE, cannot_write, move_in
from scrapy_simdup.store.environment import Environment
from scrapy_simdup.store.lmdb import KIND

if TYPE_CHECKING:
    from collections.abc import Iterator


def copy(path: str | os.PathLike[str], out: str | os.PathLike[str]) -> tuple[int, int]:
    """Make a compact copy of the store at *path* in the folder *out*, which has none.

    Returns the bytes of both. It is the store of one moment; a crawl may go on writing to it.
    """
    source, target = Path(path).expanduser().absolute(), Path(out).expanduser().absolute()
    if (target / DATA_FILE).exists():
        raise StoreError(f"there is a store at {str(target)!r} already; choose another folder")
    environment = Environment.open(path, kind=KIND, readonly=True)
    try:
        target.mkdir(parents=True, exist_ok=True)
        with _compacted(environment, target) as place:
            move_in(place, target)
    except OSError as error:
        raise cannot_write(target, error) from error
    finally:
        environment.close()
    return (source / DATA_FILE).stat().st_size, (target / DATA_FILE).stat().st_size


def compact(path: str | os.PathLike[str]) -> tuple[int, int]:
    """Write the store at *path* anew in its place; returns its bytes before and after.

    Raises :class:`StoreError` while another process has it open. Killed at any moment, there is
    the old file or the new one.
    """
    folder = Path(path).expanduser().absolute()
    environment = Environment.open(path, kind=KIND, readonly=True, lock=False)
    try:
        before = (folder / DATA_FILE).stat().st_size
        with _alone(folder), _compacted(environment, folder) as place:
            (place / DATA_FILE).replace(folder / DATA_FILE)
            _sync(folder)
    except OSError as error:
        raise cannot_write(folder, error) from error
    finally:
        environment.close()
    return before, (folder / DATA_FILE).stat().st_size


@contextmanager
def _compacted(environment: Environment, folder: Path) -> Iterator[Path]:
    """A folder within *folder* that has a compact copy, on the disk."""
    needed, free = environment.info()["bytes"], shutil.disk_usage(folder).free
    if needed > free:
        raise StoreError(
            f"a copy of {environment.name} may take {needed:,} bytes, and {free:,} are free in "
            f"{str(folder)!r}; free some disk space, or compact --out to another disk"
        )
    with tempfile.TemporaryDirectory(prefix=".compact-", dir=folder) as made:
        place = Path(made)
        environment.copy(place)
        assert environment.path is not None
        shutil.copymode(environment.path / DATA_FILE, place / DATA_FILE)
        with (place / DATA_FILE).open("rb+") as data:
            os.fsync(data.fileno())
        yield place


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep others from opening the store, as LMDB itself does while it makes its lock file.

    Whoever has it open holds a shared lock on the first byte of that file.
    """
    try:
        import fcntl
    except ImportError:  # Windows replaces no file that is open, and says so
        yield
        return
    with (folder / LOCK_FILE).open("ab+") as lock:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
        except OSError as error:
            raise StoreError(
                f"store {str(folder)!r} is in use by another process; wait until it ends, or make a "
                "copy with --out"
            ) from error
        yield


def _sync(folder: Path) -> None:
    if os.name != "nt":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
