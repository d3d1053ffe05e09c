"""What workers do in the tests; they import it by its name."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any


def make() -> Any:
    return run


def make_that_fails() -> Any:
    raise LookupError("no such thing")


def make_that_leaves() -> Any:
    sys.exit(2)


class Unreadable:
    """Can be pickled, and not be unpickled."""

    def __reduce__(self) -> Any:
        return sys.exit, (3,)


def make_that_dies() -> Any:
    os._exit(3)


def run(task: tuple[str, Any]) -> Any:
    what, value = task
    return globals()[f"do_{what}"](value)


def do_echo(value: Any) -> Any:
    return value


def do_pid(_: Any) -> int:
    return os.getpid()


def do_session(_: Any) -> tuple[int, int, Any]:
    return os.getpid(), os.getsid(0), signal.getsignal(signal.SIGINT)


def do_priority(_: Any) -> tuple[int, str | None]:
    autogroup = Path("/proc/self/autogroup")
    return os.getpriority(os.PRIO_PROCESS, 0), autogroup.read_text() if autogroup.exists() else None


def do_sleep(seconds: float) -> str:
    time.sleep(seconds)
    return "slept"


def do_fail(text: str) -> None:
    raise LookupError(text)


def do_leave(code: int) -> None:
    sys.exit(code)


def do_die(_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def do_die_once(path: str) -> str:
    """Dies the first time."""
    try:
        Path(path).touch(exist_ok=False)
    except FileExistsError:
        return "alive"
    os.kill(os.getpid(), signal.SIGKILL)
    return "dead"


_kept: list[bytearray] = []


def do_grow(size: int) -> int:
    _kept.append(bytearray(os.urandom(1 << 20)) * (size >> 20))
    return os.getpid()


def do_explode(_: Any) -> None:
    while True:
        _kept.append(bytearray(os.urandom(1 << 20)) * 64)


def do_unpicklable(_: Any) -> Any:
    return lambda: None


def do_unreadable(_: Any) -> Any:
    return Unreadable()


def do_modules(_: Any) -> list[str]:
    return [name for name in ("__main__", "twisted", "scrapy", "jieba") if name in sys.modules]
