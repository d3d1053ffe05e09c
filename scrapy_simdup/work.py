"""Where work runs that must not run in the caller's thread.

``GroupCommitter`` is the store's thread: it takes what is queued, runs it in one transaction, and
answers when that is durable. ``Analyst`` is the thread that extracts and fingerprints, with a limit
of time for each page. Neither knows what the work is about.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

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
        except BaseException as error:  # noqa: BLE001 - whatever it is belongs to the caller
            job.future.set_exception(error)
            return False
        return True

    def _run(self, group: list[_Job[Transaction]]) -> None:
        if not group:
            return
        try:
            results = self._write(lambda transaction: [job.run(transaction) for job in group])
        except BaseException as error:  # noqa: BLE001 - see _prepared
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
    deadline: float


@dataclass(eq=False)
class _Worker:
    """A thread of the analyst, and the task it is at."""

    thread: threading.Thread | None = None
    task: _Task | None = None
    abandoned: bool = field(default=False)


class Analyst:
    """One thread that works tasks off in order, each within *timeout* seconds of its coming in.

    A Python thread cannot be ended. One that is stuck in a task is left to itself and another one
    takes its place, so that a page that hangs costs itself and no other. Its future has
    ``TimeoutError``.
    """

    def __init__(self, timeout: float, name: str) -> None:
        self._timeout = timeout
        self._name = name
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._waiting: deque[_Task] = deque()  # same timeout for all: the oldest is due first
        self._changed = threading.Condition()
        self._closed = False
        self._worker: _Worker | None = None
        self._watchdog: threading.Thread | None = None

    def submit(self, run: Callable[[], T]) -> Future[T]:
        """Queue *run*; RuntimeError after :meth:`close`."""
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()
        task = _Task(run, future, time.monotonic() + self._timeout)
        with self._changed:
            if self._closed:
                raise RuntimeError("the analyst's thread has ended")
            if self._worker is None:
                self._start_worker()
                self._watchdog = threading.Thread(
                    target=self._watch, name=f"{self._name}-watchdog", daemon=True
                )
                self._watchdog.start()
            self._waiting.append(task)
            self._tasks.put(task)
            self._changed.notify()
        return future

    def close(self) -> None:
        """Finish what is queued (each task within its time), and end the threads."""
        with self._changed:
            if not self._closed:
                self._closed = True
                self._tasks.put(None)
                self._changed.notify()
            watchdog = self._watchdog
        if watchdog is not None:
            watchdog.join()

    def _start_worker(self) -> None:
        worker = _Worker()
        worker.thread = threading.Thread(
            target=self._work, args=(worker,), name=self._name, daemon=True
        )
        self._worker = worker
        worker.thread.start()

    def _work(self, worker: _Worker) -> None:
        while not worker.abandoned:
            task = self._tasks.get()
            if task is None:
                return
            if task.future.done():
                continue
            with self._changed:
                worker.task = task
            try:
                result = task.run()
            except BaseException as error:  # noqa: BLE001 - belongs to the caller
                _finish(task.future, error=error)
            else:
                _finish(task.future, result=result)
            with self._changed:
                worker.task = None
                self._changed.notify()

    def _watch(self) -> None:
        with self._changed:
            while True:
                while self._waiting and self._waiting[0].future.done():
                    self._waiting.popleft()
                if not self._waiting:
                    if self._closed:
                        return
                    self._changed.wait()
                    continue
                task = self._waiting[0]
                left = task.deadline - time.monotonic()
                if left > 0:
                    self._changed.wait(left)
                    continue
                self._waiting.popleft()
                if self._worker is not None and self._worker.task is task:
                    self._worker.abandoned = True
                    self._start_worker()
                _finish(task.future, error=TimeoutError(f"not done after {self._timeout:g} s"))


def _finish(future: Future[Any], *, result: Any = None, error: BaseException | None = None) -> None:
    """Answer, unless the other thread was first."""
    try:
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
    except InvalidStateError:
        pass
