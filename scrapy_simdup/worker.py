"""What runs in a worker process: it answers one message after another until nobody asks any more.

The process is started by `scrapy_simdup.workers`, with nothing of the user's script in it.
"""

from __future__ import annotations

import gc
import os
import pickle
import resource
import select
import signal
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

#: Seconds that a worker outlives a task that nobody waits for any more.
_GRACE = 10
_NICE = 10


@dataclass(frozen=True, slots=True)
class Setup:
    """What a worker is told first. *make* makes the function that it is there for.

    *timeout* is in seconds, *max_bytes* of memory.
    """

    make: Callable[[], Callable[[Any], Any]]
    timeout: float
    max_bytes: int


@dataclass(frozen=True, slots=True)
class Reply:
    """A result, or an error. ``is_full``: the process has grown past its bound."""

    result: Any = None
    error: BaseException | None = None
    is_full: bool = False


def serve(connection: Connection) -> None:
    """Answer what comes through *connection*, until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the crawl, which ends us
    _give_way()
    threading.Thread(target=_end_with_parent, args=(connection.fileno(),), daemon=True).start()
    message = connection.recv_bytes()
    try:
        setup: Setup = pickle.loads(message)  # noqa: S301 - of our own parent
        work = setup.make()
    except BaseException as error:
        _send(connection, Reply(error=error))
        return
    _send(connection, Reply())
    _limit_memory(setup.max_bytes)
    patience = int(setup.timeout) + _GRACE
    while True:
        try:
            message = connection.recv_bytes()
        except (EOFError, OSError):
            return
        # If the parent is killed while a page hangs here, and holds the interpreter's lock so that
        # the thread cannot end us, nobody else does.
        signal.alarm(patience)
        reply = _answer(work, message)
        del message
        signal.alarm(0)
        if memory_in_use() > setup.max_bytes:
            gc.collect()
            reply = Reply(reply.result, reply.error, is_full=memory_in_use() > setup.max_bytes)
        try:
            _send(connection, reply)
        except OSError:
            return


def _give_way() -> None:
    """Leave the processor to the crawl's event loop when it has something to do.

    Where Linux schedules by sessions (autogroup), and this process has its own, being nice to the
    others of the session is nothing: the session must be nice. Measured with as many workers as
    processors, the loop was up to 27 ms late (99th percentile), and 9 ms with this.
    """
    os.nice(_NICE)
    with suppress(OSError), open("/proc/self/autogroup", "w") as autogroup:  # noqa: PTH123
        autogroup.write(str(_NICE))


def _end_with_parent(descriptor: int) -> None:
    """End this process, whatever it is at, when the other end of its socket is closed."""
    poll = select.poll()
    poll.register(descriptor, 0)  # 0: wait for the end only
    poll.poll()
    os._exit(0)


def _answer(work: Callable[[Any], Any], message: bytes) -> Reply:
    try:
        return Reply(work(pickle.loads(message)))  # noqa: S301
    except MemoryError as error:
        return Reply(error=error, is_full=True)
    except BaseException as error:
        return Reply(error=error)


def _send(connection: Connection, reply: Reply) -> None:
    try:
        message = pickle.dumps(reply, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        told = RuntimeError(f"a worker's answer cannot be pickled: {reply.error or error!r}")
        message = pickle.dumps(Reply(error=told), protocol=pickle.HIGHEST_PROTOCOL)
    connection.send_bytes(message)


def _limit_memory(max_bytes: int) -> None:
    """Let allocations fail that would take the process far past its bound, on Linux.

    What it has by now, much of it only reserved, does not count.
    """
    if not sys.platform.startswith("linux"):
        return
    with open("/proc/self/status", "rb") as status:  # noqa: PTH123
        data = next((line for line in status if line.startswith(b"VmData:")), b"VmData: 0 kB")
    limit = int(data.split()[1]) * 1024 + 2 * max_bytes
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard == resource.RLIM_INFINITY or limit < hard:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def memory_in_use() -> int:
    """Bytes of memory that this process occupies (where the system does not tell: at most so far)."""
    try:
        with open("/proc/self/statm", "rb") as statm:  # noqa: PTH123
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
