"""Where work runs that must not run in the caller's thread.

``GroupCommitter`` is the store's thread: it takes what is queued, runs it in one transaction, and
answers when that is durable. ``Analyst`` is the thread that extracts and fingerprints, with a limit
of time for each page. ``ShortSwitchInterval`` keeps an event loop beside them quick. None of them
knows what the work is about.
"""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

#: Seconds after which a busy thread gives way, while an event loop runs beside it.
_SWITCH_INTERVAL = 0.0002

T = TypeVar("T")
Transaction = TypeVar("Transaction")

#: Jobs in one transaction at most: bounds how long the first one waits for the last.
_GROUP = 128


@dataclass(slots=True)
class _Job(Generic[Transaction]):
    run: Callable[[Transaction], Any]
    prepare: Callable[[], Any] | None
    future: Future[Any]


class GroupCommitter(Generic[Transaction]):
    """One thread that runs queued jobs in transactions, as many as are waiting in each.

    *write* runs a callable with a transaction and commits durably, or raises. A job that raises
    does not spoil the others: the group is then redone one by one.
    """

    def __init__(self, write: Callable[[Callable[[Transaction], Any]], Any], name: str) -> None:
        self._write = write
        self._queue: SimpleQueue[_Job[Transaction] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._loop, name=name, daemon=True)
        self._thread.start()

    def submit(
        self, run: Callable[[Transaction], T], prepare: Callable[[], Any] | None = None
    ) -> Future[T]:
        """Queue *run*; RuntimeError after :meth:`close`."""
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("the store's thread has ended")
            self._queue.put(_Job(run, prepare, future))
        return future

    def close(self) -> None:
        """Finish what is queued, and end the thread."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _loop(self) -> None:
        ended = False
        while not ended:
            group: list[_Job[Transaction]] = []
            job = self._queue.get()
            while True:
                if job is None:
                    ended = True
                    break
                group.append(job)
                if len(group) >= _GROUP or self._queue.empty():
                    break
                job = self._queue.get()
            self._run([job for job in group if self._prepared(job)])

    def _prepared(self, job: _Job[Transaction]) -> bool:
        if not job.future.set_running_or_notify_cancel():
            return False
        try:
            if job.prepare is not None:
                job.prepare()
        except BaseException as error:
            job.future.set_exception(error)
            return False
        return True

    def _run(self, group: list[_Job[Transaction]]) -> None:
        if not group:
            return
        try:
            results = self._write(lambda transaction: [job.run(transaction) for job in group])
        except BaseException as error:
            if len(group) == 1:
                group[0].future.set_exception(error)
                return
            for job in group:
                self._run([job])
            return
        for job, result in zip(group, results, strict=True):
            job.future.set_result(result)


@dataclass(slots=True)
class _Task:
    run: Callable[[], Any]
    future: Future[Any]


@dataclass(eq=False)
class _Worker:
    """A thread of the analyst, the task it is at, and when that is due."""

    thread: threading.Thread | None = None
    task: _Task | None = None
    due: float = 0.0
    ended: bool = False


class Analyst:
    """One thread that works tasks off in order, each within *timeout* seconds from its turn on.

    A Python thread cannot be ended. One that is stuck in a task is left to itself and another one
    takes its place, so that a page that hangs costs itself and no other. Its future has
    ``TimeoutError``.
    """

    def __init__(self, timeout: float, name: str) -> None:
        self._timeout = timeout
        self._name = name
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._changed = threading.Condition()
        self._closed = False
        self._worker = _Worker()
        self._watchdog: threading.Thread | None = None
        self._watchdog_idle = False

    def submit(self, run: Callable[[], T]) -> Future[T]:
        """Queue *run*; RuntimeError after :meth:`close`."""
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()
        with self._changed:
            if self._closed:
                raise RuntimeError("the analyst's thread has ended")
            if self._watchdog is None:
                self._start_worker()
                self._watchdog = threading.Thread(
                    target=self._watch, name=f"{self._name}-watchdog", daemon=True
                )
                self._watchdog.start()
            self._tasks.put(_Task(run, future))
        return future

    def close(self) -> None:
        """Finish what is queued (each task within its time), and end the threads."""
        with self._changed:
            if not self._closed:
                self._closed = True
                self._tasks.put(None)
            watchdog, worker = self._watchdog, self._worker.thread
        if watchdog is not None and threading.current_thread() not in {watchdog, worker}:
            watchdog.join()

    def _start_worker(self) -> None:
        worker = _Worker()
        worker.thread = threading.Thread(
            target=self._work, args=(worker,), name=self._name, daemon=True
        )
        self._worker = worker
        worker.thread.start()

    def _work(self, worker: _Worker) -> None:
        while True:
            task = self._tasks.get()
            with self._changed:
                worker.task = task
                worker.due = time.monotonic() + self._timeout
                worker.ended = task is None
                if worker.ended or self._watchdog_idle:
                    self._changed.notify()
            if task is None:
                return
            try:
                result = task.run()
            except BaseException as error:
                finish(task.future, error=error)
            else:
                finish(task.future, result=result)
            with self._changed:
                worker.task = None
                if self._worker is not worker:  # another one has taken its place
                    return

    def _watch(self) -> None:
        while (stuck := self._next_stuck()) is not None:
            # Not under the lock: whoever waits for the answer may come with the next task.
            finish(stuck.future, error=TimeoutError(f"not done after {self._timeout:g} s"))

    def _next_stuck(self) -> _Task | None:
        """Wait for a task that is overdue, and replace its worker; None when all is done."""
        with self._changed:
            while not self._worker.ended:
                task = self._worker.task
                # A later task is due later, so there is no need to hear of every one.
                left = self._worker.due - time.monotonic()
                if task is not None and left <= 0:
                    self._start_worker()
                    return task
                self._watchdog_idle = task is None
                self._changed.wait(None if task is None else left)
        return None


def finish(future: Future[Any], *, result: Any = None, error: BaseException | None = None) -> None:
    """Answer, unless the other thread was first."""
    try:
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
    except InvalidStateError:
        pass


class ShortSwitchInterval:
    """While at least one is entered, a busy thread gives the GIL away after 0.2 ms, not after 5 ms.

    An event loop gives it away with every system call, some ten a page, and would each time wait
    for the analyst's thread: measured in a crawl at full load, the loop was up to 80 ms late, and
    20 ms with this, at the same pages a second. The interval is one for the whole process.
    """

    _lock = threading.Lock()
    _entered = 0
    _before = 0.0

    def enter(self) -> None:
        with self._lock:
            if ShortSwitchInterval._entered == 0:
                ShortSwitchInterval._before = sys.getswitchinterval()
                sys.setswitchinterval(min(self._before, _SWITCH_INTERVAL))
            ShortSwitchInterval._entered += 1

    def leave(self) -> None:
        with self._lock:
            ShortSwitchInterval._entered -= 1
            if ShortSwitchInterval._entered == 0:
                sys.setswitchinterval(self._before)
