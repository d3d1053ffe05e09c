"""Worker processes, each with a thread that hands it one task at a time.

What happens to one worker concerns no other: each has a socket of its own, no lock or queue is
shared between processes, so one that is killed at any moment costs at most the task it was at. Pools
that share a queue do not have this: when an idle worker dies, pebble's `ProcessPool` fails all that
is waiting, and so does loky's executor, whose workers also outlive a parent that was killed
(`benchmarks/pools.py` shows both). A worker knows nothing of the script that started it, so no
unguarded script runs twice.
"""

from __future__ import annotations

import os
import pickle
import socket
import struct
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Generic, TypeVar

from scrapy_simdup.work import finish
from scrapy_simdup.worker import Reply, Setup

if TYPE_CHECKING:
    from collections.abc import Callable

Task = TypeVar("Task")
Result = TypeVar("Result")

#: Why a worker was replaced, or why there is none.
EVENTS = ("died", "timeout", "memory", "unavailable")

SUPPORTED = os.name == "posix"

_STARTS = 3
_START_TIMEOUT = 60.0
_PATIENCE = 4
"""A worker that has not had its processor time is waited for so many times as long."""
_END_TIMEOUT = 2.0
_PAUSE = 60.0
_BOOTSTRAP = (
    "import sys\n"
    "sys.path[:] = [path for path in sys.path if path]\n"  # not the current folder's pickle.py
    "import pickle\n"
    "from multiprocessing.connection import Connection\n"
    "connection = Connection(int(sys.argv[1]))\n"
    "sys.path[:] = pickle.loads(connection.recv_bytes())\n"
    "from scrapy_simdup.worker import serve\n"
    "serve(connection)\n"
)


class NoWorkerError(Exception):
    """A task could not be given to a worker: none can be started, or the task not be sent."""


class WorkerDiedError(Exception):
    """The worker died at this task, and so did the one that tried again."""


class _Died(Exception):
    """The worker died, at a task or while it started."""


class Workers(Generic[Task, Result]):
    """*number* processes that run the function made by *make*, started when there is work for them.

    A task that is not done within *timeout* seconds has ``TimeoutError``, and its worker is
    replaced; so is one that occupies more than *max_bytes* of memory, after its task, and one that
    died, whose task is tried once again. *make* and tasks must be picklable. *on_event* is told of
    ``EVENTS``, with a text, from any thread.
    """

    def __init__(
        self,
        make: Callable[[], Callable[[Task], Result]],
        number: int,
        *,
        timeout: float,
        max_bytes: int,
        name: str,
        on_event: Callable[[str, str], None] | None = None,
    ) -> None:
        self._setup = Setup(make, timeout, max_bytes)
        self._number = number
        self._name = name
        self._on_event = on_event
        self._jobs: SimpleQueue[_Job[Task, Result] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._waiting = 0
        self._idle = 0
        self._closed = False
        self._none_until = 0.0

    def submit(self, task: Task) -> Future[Result]:
        """Queue *task*; RuntimeError after :meth:`close`. May fail with ``NoWorkerError``."""
        future: Future[Result] = Future()
        future.set_running_or_notify_cancel()
        with self._lock:
            if self._closed:
                raise RuntimeError("the workers have ended")
            self._jobs.put(_Job(task, future))
            self._waiting += 1
            if self._waiting > self._idle and len(self._threads) < self._number:
                self._start_thread()
        return future

    def close(self) -> None:
        """Finish what is queued, and end the processes."""
        with self._lock:
            if not self._closed:
                self._closed = True
                for _ in self._threads:
                    self._jobs.put(None)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()

    def _start_thread(self) -> None:
        thread = threading.Thread(
            target=self._work, name=f"{self._name}-{len(self._threads) + 1}", daemon=True
        )
        self._threads.append(thread)
        thread.start()

    def _work(self) -> None:
        process: _Process | None = None
        try:
            while True:
                with self._lock:
                    self._idle += 1
                job = self._jobs.get()
                with self._lock:
                    self._idle -= 1
                    self._waiting -= job is not None
                if job is None:
                    return
                process = self._run(job, process)
        finally:
            if process is not None:
                process.end()

    def _run(self, job: _Job[Task, Result], process: _Process | None) -> _Process | None:
        """Get *job* done, by *process* or a new one; return the process that is left.

        Whatever happens, somebody waits for the future.
        """
        try:
            return self._do(job, process)
        except BaseException as error:
            finish(job.future, error=WorkerDiedError(f"{type(error).__name__}: {error}"))
            return None

    def _do(self, job: _Job[Task, Result], process: _Process | None) -> _Process | None:
        try:
            message = pickle.dumps(job.task, protocol=pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            finish(job.future, error=NoWorkerError(f"the task cannot be pickled ({error})"))
            return process
        try:
            try:
                process, reply = self._ask(message, process)
            except _Died:
                process, reply = self._ask(message, None)
        except (NoWorkerError, TimeoutError) as error:
            finish(job.future, error=error)
            return None
        except _Died:
            finish(job.future, error=WorkerDiedError("two workers died at this task"))
            return None
        if reply.is_full:
            self._tell("memory", f"worker {process.pid} had grown too large")
            process.end()
        finish(job.future, result=reply.result, error=reply.error)
        return None if reply.is_full else process

    def _ask(self, message: bytes, process: _Process | None) -> tuple[_Process, Reply]:
        """The answer of *process*, or of a new one. If there is none, the process is gone."""
        if process is None:
            process = self._start()
        try:
            return process, process.ask(message)
        except TimeoutError:
            process.kill()
            self._tell("timeout", f"worker {process.pid} was not done in time")
            raise
        except BaseException as error:  # it is gone, or its answer cannot be read
            self._tell("died", f"worker {process.pid} {process.how_it_ended()}")
            raise _Died from error

    def _start(self) -> _Process:
        if self._none_until > time.monotonic():
            raise NoWorkerError("no worker could be started a moment ago")
        try:
            for _ in range(_STARTS - 1):
                with suppress(_Died):  # killed while it started
                    return _Process(self._setup)
            return _Process(self._setup)
        except BaseException as error:  # the extractor's module may call sys.exit()
            self._none_until = time.monotonic() + _PAUSE
            why = str(error) if isinstance(error, _Died) else f"{type(error).__name__}: {error}"
            text = f"a worker does not start ({why})"
            self._tell("unavailable", text)
            raise NoWorkerError(text) from error

    def _tell(self, event: str, text: str) -> None:
        if self._on_event is not None:
            with suppress(Exception):
                self._on_event(event, text)


@dataclass(slots=True)
class _Job(Generic[Task, Result]):
    task: Task
    future: Future[Result]


class _Process:
    """A process that runs `scrapy_simdup.worker.serve`. Raises whatever keeps it from starting."""

    def __init__(self, setup: Setup) -> None:
        self._timeout = setup.timeout
        mine, theirs = socket.socketpair()
        try:
            # No answer to Ctrl-C in the terminal, from the first moment on: it has its own session.
            self._process = subprocess.Popen(  # noqa: S603 - nothing in it comes from outside
                [sys.executable, "-c", _BOOTSTRAP, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            )
        except BaseException:
            mine.close()
            raise
        finally:
            theirs.close()
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            # A worker that was stopped in the middle of a message must not stop us.
            mine.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", int(_START_TIMEOUT), 0))
        self._connection = Connection(mine.detach())
        try:
            self._connection.send_bytes(pickle.dumps(_search_path()))
            self._connection.send_bytes(pickle.dumps(setup))
            reply = self._receive(_START_TIMEOUT)
            if reply.error is not None:
                raise reply.error
        except (EOFError, ConnectionError) as error:
            raise _Died(f"it {self.how_it_ended()}") from error
        except BaseException:
            self.kill()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, message: bytes) -> Reply:
        """Raises TimeoutError, or if the process is gone EOFError or OSError."""
        began = processor_seconds(self.pid)
        try:
            self._connection.send_bytes(message)
        except BlockingIOError as error:
            raise TimeoutError("the worker does not read") from error
        return self._receive(self._timeout, lambda: is_starved(self.pid, began, self._timeout))

    def _receive(self, timeout: float, may_go_on: Callable[[], bool] = lambda: False) -> Reply:
        for _ in range(_PATIENCE):
            if self._connection.poll(timeout):
                break
            if not may_go_on():
                raise TimeoutError(f"not done after {timeout:g} s")
        else:
            raise TimeoutError(f"not done after {_PATIENCE * timeout:g} s")
        try:
            reply: Reply = pickle.loads(self._connection.recv_bytes())  # noqa: S301 - our own child
        except BlockingIOError as error:
            raise TimeoutError("the worker stopped in the middle of its answer") from error
        return reply

    def how_it_ended(self) -> str:
        code = self.kill()
        return f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"

    def kill(self) -> int:
        self._connection.close()
        with suppress(subprocess.TimeoutExpired):  # it may be about to end by itself, and say why
            return self._process.wait(0.1)
        self._process.kill()
        return self._process.wait()

    def end(self) -> None:
        """Let it end by itself; it does when nobody can ask any more."""
        self._connection.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_TIMEOUT)
            return
        self._process.kill()
        self._process.wait()


def processor_seconds(pid: int) -> float | None:
    """The processor time that a process has had; None where the system does not tell (Linux does)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks = int(fields[11]) + int(fields[12])
    except (OSError, ValueError, IndexError):
        return None
    return ticks / os.sysconf("SC_CLK_TCK")


def is_starved(pid: int, began: float | None, timeout: float) -> bool:
    """Whether a process wants to run, and has had less than half of *timeout* since *began*.

    That is of a machine that has too much to do, not of an extraction that hangs.
    """
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    now = processor_seconds(pid)
    return state == "R" and began is not None and now is not None and now - began < timeout / 2


def available_processors() -> int:
    """How many processors this process may use, the quota of its control group included."""
    if hasattr(os, "sched_getaffinity"):
        number = len(os.sched_getaffinity(0))
    else:
        number = os.cpu_count() or 1
    with suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        number = min(number, max(1, int(quota) // int(period)))  # "max" is no number
    return number


def _search_path() -> list[str]:
    """Where modules are found, a folder of our own script included. "" means the current one."""
    return [path or str(Path.cwd()) for path in sys.path if isinstance(path, str)]
