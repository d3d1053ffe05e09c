"""Opening an LMDB environment in a folder, with whatever may be wrong about the folder said."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import lmdb

from scrapy_simdup.errors import StoreError
from scrapy_simdup.store.datafile import (
    DATA_FILE,
    allocate_lock_file,
    cannot_write,
    not_writable,
    unreadable,
)

_GIB = 1 << 30
#: Sparse: only what is written takes space. Windows allocates more eagerly.
MAP_SIZE = 64 * _GIB if sys.maxsize > 1 << 32 and os.name != "nt" else _GIB
_SMALLEST_MAP = 1 << 20
_MAX_DATABASES = 16
_MAX_READERS = 510
_OPEN_ATTEMPTS = 6


def prepare_folder(path: str | os.PathLike[str], readonly: bool) -> Path:
    """Return the folder, made if need be."""
    try:
        folder = Path(path).expanduser().absolute()
        if folder.exists() and not folder.is_dir():
            raise StoreError(f"store {str(folder)!r} is a file; a store is a folder of its own")
        if readonly:
            if not (folder / DATA_FILE).exists():
                raise StoreError(f"there is no store at {str(folder)!r}")
        else:
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"store {str(path)!r} cannot be {'read' if readonly else 'created'}: "
            f"{error.strerror}; choose a folder that this user may {'read' if readonly else 'write'}"
        ) from error
    except (ValueError, RuntimeError) as error:  # NUL, lone surrogates; no home for ~
        raise StoreError(f"store {str(path)!r} is not a path: {error}") from error
    return folder


def file_key(folder: Path) -> tuple[int, int] | None:
    try:
        stat = (folder / DATA_FILE).stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino


def open_lmdb(
    folder: Path, map_size: int, *, sync: bool, readonly: bool, lock: bool = True
) -> lmdb.Environment:
    if not readonly:
        try:
            allocate_lock_file(folder)
        except OSError as error:
            raise cannot_write(folder, error) from error
    attempt = 0
    while True:
        attempt += 1
        try:
            return lmdb.open(
                str(folder),
                map_size=map_size,
                max_dbs=_MAX_DATABASES,
                max_readers=_MAX_READERS,
                sync=sync,
                metasync=False,
                readahead=False,
                readonly=readonly,
                create=not readonly,
                lock=lock,
            )
        except (lmdb.MemoryError, MemoryError) as error:
            map_size //= 2
            if map_size < _SMALLEST_MAP:
                raise StoreError(f"store {str(folder)!r}: no address space: {error}") from error
        except (lmdb.InvalidError, lmdb.VersionMismatchError, lmdb.CorruptedError) as error:
            raise unreadable(folder) from error
        except (lmdb.ReadonlyError, PermissionError) as error:
            raise not_writable(folder) from error
        except lmdb.Error as error:
            if "ermission denied" in str(error) or "Read-only" in str(error):
                raise not_writable(folder) from error
            if "already open" in str(error):
                raise StoreError(
                    f"store {str(folder)!r} is open in this process already, not by scrapy-simdup, "
                    "or was open when the process was forked; open it after the fork only"
                ) from error
            # LMDB: opening can fail while another process opens or closes the same file.
            if attempt >= _OPEN_ATTEMPTS:
                raise StoreError(f"store {str(folder)!r} cannot be opened: {error}") from error
            time.sleep(0.02 * attempt)
