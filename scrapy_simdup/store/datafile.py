"""LMDB's data file as a file: can it be mapped and read without danger?

What LMDB reads through its map can end the process: a page that lies beyond the end of the file by
SIGBUS, one that is not what it should be by an assertion. So the file is looked at before, with plain
reads.
"""

from __future__ import annotations

import errno
import os
import struct
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from scrapy_simdup.errors import StoreError
from scrapy_simdup.store.filepages import BeyondEndError, Inspection, PageError

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
_FORMAT = 1

MOST_LEAVES = 200_000
"""So many pages are looked at when a store is opened: some 800 MB, which takes two or three seconds."""


def unreadable(folder: Path) -> StoreError:
    return StoreError(
        f"store {str(folder)!r} does not hold a readable store (data.mdb is damaged or of another "
        "program); nothing was changed. Restore a copy, move it away, or use another store"
    )


def of_another_machine(folder: Path, what: str) -> StoreError:
    return StoreError(
        f"store {str(folder)!r} was written on a machine of another {what}, and LMDB cannot read it "
        "here; nothing was changed. Take it along as JSON Lines: scrapy simdup export on that "
        "machine, import on this one; or use another store"
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


def check_meta_pages(folder: Path) -> None:
    """Refuse a data file that has no meta pages, before LMDB is given it."""
    data = folder / DATA_FILE
    for attempt in range(_ATTEMPTS):
        try:
            with data.open("rb") as file:
                head = file.read(2 * 65536)
        except FileNotFoundError:
            return
        except PermissionError as error:
            raise not_writable(folder) from error
        except OSError as error:
            raise unreadable(folder) from error
        if _has_meta_pages(head):
            return
        # Another process may be writing its first pages just now.
        time.sleep(0.02 * (attempt + 1))
    what = _other_machine(head)
    raise unreadable(folder) if what is None else of_another_machine(folder, what)


def check_pages(folder: Path, txn_id: int, most: int | None = MOST_LEAVES) -> bool:
    """Refuse a data file with pages that LMDB must not follow, of which *most* are looked at.

    The caller reads in transaction *txn_id* meanwhile, so that nobody overwrites the pages. False
    if that is not among the two newest any more: begin anew.
    """
    data = folder / DATA_FILE
    try:
        with data.open("rb", buffering=0) as file:
            if not _is_of_this_machine(file.read(_META_SIZE)):
                return True
            inspection = Inspection(file, txn_id)
            if inspection.is_current:
                inspection.run(most)
            return inspection.is_current
    except PageError as error:
        what = "truncated" if isinstance(error, BeyondEndError) else "damaged"
        raise StoreError(
            f"store {str(folder)!r} is {what}: {error}; nothing was changed. Restore a copy, move "
            "it away, or use another store"
        ) from error
    except OSError as error:
        raise StoreError(
            f"store {str(folder)!r} cannot be read: {error.strerror}; see whether its disk is sound"
        ) from error


def allocate_lock_file(folder: Path) -> None:
    """Give the lock file real space: LMDB maps it, and a full disk would end the process then."""
    if not hasattr(os, "posix_fallocate"):
        return
    handle = os.open(folder / "lock.mdb", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        os.posix_fallocate(handle, 0, _LOCK_BYTES)
    finally:
        os.close(handle)


def keep_private(folder: Path) -> None:
    """Let nobody but the owner of the files read them, where this process may say so."""
    for name in (DATA_FILE, LOCK_FILE):
        with suppress(OSError):
            (folder / name).chmod(0o600)


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


def _has_meta_pages(head: bytes) -> bool:
    if len(head) < _META_SIZE:
        return False
    magic, version, _, page_size, *_ = _META.unpack_from(head)
    if magic != _META_MAGIC or page_size not in range(256, 65537):
        return False
    # LMDB 1.0 keeps other meta pages; the library checks them itself.
    return version != _FORMAT or len(head) >= int(page_size) + _META_SIZE


def _is_of_this_machine(head: bytes) -> bool:
    """Whether pages are laid out as `filepages` reads them."""
    version: int = _META.unpack(head)[1]
    return version == _FORMAT and sys.byteorder == "little" and sys.maxsize > 1 << 32


def _other_machine(head: bytes) -> str | None:
    """What differs where a data file was written, None if this is no such file."""
    native, swapped = (_META_MAGIC.to_bytes(4, order) for order in _byte_orders())
    if swapped in (head[16:20], head[12:16]):
        return "byte order"
    # Numbers of pages, which are first in the header, have 4 bytes there.
    return "word size" if head[12:16] == native else None


def _byte_orders() -> tuple[Literal["little", "big"], Literal["little", "big"]]:
    return ("little", "big") if sys.byteorder == "little" else ("big", "little")
