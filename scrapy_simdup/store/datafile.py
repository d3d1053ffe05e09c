"""LMDB's data file as a file: can it be mapped without danger?

A file that is shorter than its own meta page says ends the process with SIGBUS when it is read
through the map. So its length is checked before, with plain reads.
"""

from __future__ import annotations

import errno
import os
import struct
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from scrapy_simdup.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

DATA_FILE = "data.mdb"
LOCK_FILE = "lock.mdb"

_ATTEMPTS = 6
#: Room for some 500 readers of 64 bytes each.
_LOCK_BYTES = 36_864

# mdb.c of LMDB 0.9 (data format 1): page header, then struct MDB_meta.
_META = struct.Struct("=16xII8xQI92xQQ")
_META_MAGIC = 0xBEEFC0DE
_META_SIZE = _META.size


def unreadable(folder: Path) -> StoreError:
    return StoreError(
        f"store {str(folder)!r} does not hold a readable store (data.mdb is damaged or of another "
        "program); nothing was changed. Restore a copy, move it away, or use another store"
    )


def not_writable(folder: Path) -> StoreError:
    return StoreError(
        f"store {str(folder)!r} is not writable for this user; change its permissions or "
        "choose another folder"
    )


def cannot_write(folder: Path, error: OSError) -> StoreError:
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return StoreError(
            f"store {str(folder)!r} cannot be opened: {error.strerror}; free some disk space"
        )
    return not_writable(folder)


def check_data_file(folder: Path) -> None:
    """Refuse a data file that cannot be mapped safely, before it is mapped."""
    data = folder / DATA_FILE
    for attempt in range(_ATTEMPTS):
        try:
            with data.open("rb") as file:
                head = file.read(2 * 65536)
                size = os.fstat(file.fileno()).st_size
        except FileNotFoundError:
            return
        except PermissionError as error:
            raise not_writable(folder) from error
        except OSError as error:
            raise unreadable(folder) from error
        wanted = _wanted_size(head)
        if wanted is not None and size >= wanted:
            return
        # Another process may be writing its first pages just now.
        time.sleep(0.02 * (attempt + 1))
    if wanted is None:
        raise unreadable(folder)
    if survives_reading(folder):
        # The last pages were given back before they were ever written: legal, and harmless.
        return
    raise StoreError(
        f"store {str(folder)!r} is truncated: data.mdb has {size} bytes of {wanted}; nothing was "
        "changed. Restore a copy, move it away, or use another store"
    )


def allocate_lock_file(folder: Path) -> None:
    """Give the lock file real space: LMDB maps it, and a full disk would end the process then."""
    if not hasattr(os, "posix_fallocate"):
        return
    handle = os.open(folder / "lock.mdb", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        os.posix_fallocate(handle, 0, _LOCK_BYTES)
    finally:
        os.close(handle)


def move_in(place: Path, folder: Path) -> bool:
    """Give the finished data file of *place* to *folder*; False if that has got one meanwhile."""
    try:
        os.link(place / DATA_FILE, folder / DATA_FILE)
    except FileExistsError:
        return False
    except OSError:  # a file system without hard links
        if (folder / DATA_FILE).exists():
            return False
        (place / DATA_FILE).replace(folder / DATA_FILE)
    if os.name != "nt":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    return True


def _wanted_size(head: bytes) -> int | None:
    """Return the file size that the newer of the two meta pages implies, None if there is none."""
    if len(head) < _META_SIZE:
        return None
    magic, version, _, page_size, last_page, txnid = _META.unpack_from(head)
    if magic != _META_MAGIC or page_size not in range(256, 65537):
        return None
    if version != 1:
        return 0  # LMDB 1.0 keeps other meta pages; the library checks them itself
    if len(head) < page_size + _META_SIZE:
        return None
    second = _META.unpack_from(head, page_size)
    if second[0] == _META_MAGIC and second[5] > txnid:
        last_page = second[4]
    return int((last_page + 1) * page_size)


_READ_ALL = """
import os, sys, lmdb
env = lmdb.open(sys.argv[1], readonly=True, max_dbs=32)
env.copyfd(os.open(os.devnull, os.O_WRONLY), compact=True)
"""


def survives_reading(folder: Path) -> bool:
    """Read every page, free list included, in a process that a hole in the file may end."""
    done = subprocess.run(  # noqa: S603 - our own interpreter, our own constant
        [sys.executable, "-c", _READ_ALL, str(folder)], capture_output=True, check=False
    )
    return done.returncode == 0
