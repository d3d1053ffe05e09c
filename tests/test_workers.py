"""Worker processes: whatever happens to one of them costs its task at most, and no other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import worker_tasks
from crawl_site import wait_until

from scrapy_simdup import workers as workers_module
from scrapy_simdup.workers import (
    NoWorkerError,
    WorkerDiedError,
    Workers,
    available_processors,
    is_starved,
    processor_seconds,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SOON = 60.0  # no test waits that long unless something hangs
LARGE = 300_000_000

pytestmark = pytest.mark.skipif(not workers_module.SUPPORTED, reason="workers need POSIX")


class Seen(list[tuple[str, str]]):
    """The events of workers."""

    def __call__(self, event: str, text: str) -> None:
        self.append((event, text))

    @property
    def names(self) -> list[str]:
        return [event for event, _ in self]


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture
def make_workers(seen: Seen) -> Iterator[Callable[..., Workers[Any, Any]]]:
    made: list[Workers[Any, Any]] = []

    def make(number: int = 1, make: Any = worker_tasks.make, **options: Any) -> Workers[Any, Any]:
        arguments = {"timeout": SOON, "max_bytes": 1 << 40, "on_event": seen, **options}
        made.append(Workers(make, number, name="test-workers", **arguments))
        return made[-1]

    yield make
    for workers in made:
        workers.close()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


class TestTasks:
    def test_are_done_elsewhere(self, make_workers) -> None:
        pid = make_workers().submit(("pid", None)).result(SOON)
        assert pid != os.getpid()

    def test_share_a_worker_one_after_another(self, make_workers) -> None:
        workers = make_workers()
        assert len({workers.submit(("pid", None)).result(SOON) for _ in range(5)}) == 1

    def test_that_wait_have_more_workers(self, make_workers) -> None:
        workers = make_workers(3)
        futures = [workers.submit(("sleep", 1.0)) for _ in range(3)]
        pids = {workers.submit(("pid", None)).result(SOON) for _ in range(30)}
        assert [future.result(SOON) for future in futures] == ["slept"] * 3
        assert 1 <= len(pids) <= 3

    @pytest.mark.parametrize("size", [0, 1, 70_000, 20_000_000])
    def test_may_be_of_any_size(self, make_workers, size: int) -> None:
        value = os.urandom(size)
        assert make_workers().submit(("echo", value)).result(SOON) == value

    def test_that_fail_say_why(self, make_workers) -> None:
        workers = make_workers()
        with pytest.raises(LookupError, match="a reason"):
            workers.submit(("fail", "a reason")).result(SOON)
        with pytest.raises(SystemExit):
            workers.submit(("leave", 3)).result(SOON)
        assert workers.submit(("echo", 1)).result(SOON) == 1

    def test_with_results_that_cannot_be_sent_fail(self, make_workers) -> None:
        with pytest.raises(RuntimeError, match="cannot be pickled"):
            make_workers().submit(("unpicklable", None)).result(SOON)

    def test_with_results_that_cannot_be_read_fail(self, make_workers) -> None:
        workers = make_workers()
        with pytest.raises(WorkerDiedError):
            workers.submit(("unreadable", None)).result(SOON)
        assert workers.submit(("echo", 1)).result(SOON) == 1

    def test_that_cannot_be_sent_fail(self, make_workers) -> None:
        with pytest.raises(NoWorkerError, match="cannot be pickled"):
            make_workers().submit(("echo", lambda: None)).result(SOON)

    def test_nobody_asks_for_start_nothing(self, make_workers) -> None:
        before = threading.active_count()
        make_workers(4)
        assert threading.active_count() == before


class TestAWorker:
    def test_that_dies_is_replaced_and_its_task_tried_again(
        self, make_workers, seen, tmp_path
    ) -> None:
        task = ("die_once", str(tmp_path / "died"))
        assert make_workers().submit(task).result(SOON) == "alive"
        assert seen.names == ["died"]
        assert "was ended by signal 9" in seen[0][1]

    def test_that_dies_twice_at_a_task_costs_this_one_only(self, make_workers, seen) -> None:
        workers = make_workers()
        deadly, other = workers.submit(("die", None)), workers.submit(("echo", "here"))
        with pytest.raises(WorkerDiedError):
            deadly.result(SOON)
        assert other.result(SOON) == "here"
        assert seen.names == ["died", "died"]

    def test_that_is_killed_while_idle_costs_nothing(self, make_workers, seen) -> None:
        workers = make_workers()
        for _ in range(3):
            os.kill(workers.submit(("pid", None)).result(SOON), signal.SIGKILL)
        assert workers.submit(("echo", "here")).result(SOON) == "here"
        assert set(seen.names) == {"died"}

    def test_that_hangs_is_ended_and_costs_its_task_only(self, make_workers, seen) -> None:
        workers = make_workers(timeout=1.0)
        pid = workers.submit(("pid", None)).result(SOON)
        hanging, other = workers.submit(("sleep", 60)), workers.submit(("pid", None))
        with pytest.raises(TimeoutError):
            hanging.result(SOON)
        assert other.result(SOON) != pid
        assert not is_alive(pid)
        assert seen.names == ["timeout"]

    @pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux tells processor times")
    def test_that_has_no_processor_time_is_waited_for(self) -> None:
        code = "print(flush=True)\nwhile True: pass"
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as busy:
            try:
                assert busy.stdout is not None
                busy.stdout.readline()
                began = processor_seconds(busy.pid)
                wait_until(lambda: is_starved(busy.pid, began, timeout=1_000))
                wait_until(lambda: not is_starved(busy.pid, began, timeout=0.1))
                busy.send_signal(signal.SIGSTOP)  # it does not want any
                wait_until(lambda: not is_starved(busy.pid, began, timeout=1_000))
            finally:
                busy.kill()
        assert not is_starved(busy.pid, began, timeout=1_000)
        assert processor_seconds(busy.pid) is None

    def test_that_is_stopped_is_as_one_that_hangs(self, make_workers) -> None:
        workers = make_workers(timeout=1.0)
        pid = workers.submit(("pid", None)).result(SOON)
        os.kill(pid, signal.SIGSTOP)
        with pytest.raises(TimeoutError):
            workers.submit(("echo", 1)).result(SOON)
        assert workers.submit(("echo", 1)).result(SOON) == 1

    def test_that_has_grown_too_large_is_replaced_after_its_task(self, make_workers, seen) -> None:
        workers = make_workers(max_bytes=LARGE)
        first = workers.submit(("grow", LARGE // 4)).result(SOON)
        assert workers.submit(("grow", LARGE)).result(SOON) == first
        assert workers.submit(("pid", None)).result(SOON) != first
        assert seen.names == ["memory"]

    @pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit is Linux's")
    def test_cannot_take_all_memory_for_one_task(self, make_workers, seen) -> None:
        workers = make_workers(max_bytes=LARGE)
        with pytest.raises(MemoryError):
            workers.submit(("explode", None)).result(SOON)
        assert workers.submit(("echo", 1)).result(SOON) == 1
        assert seen.names == ["memory"]

    def test_gives_way_to_the_process_that_started_it(self, make_workers) -> None:
        nice, autogroup = make_workers().submit(("priority", None)).result(SOON)
        assert nice == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10)
        assert autogroup is None or autogroup.endswith(" nice 10\n")

    def test_hears_nothing_of_ctrl_c(self, make_workers) -> None:
        pid, session, on_interrupt = make_workers().submit(("session", None)).result(SOON)
        assert (session, on_interrupt) == (pid, signal.SIG_IGN)
        assert session != os.getsid(0)

    def test_knows_nothing_of_the_script_and_imports_little(self, make_workers) -> None:
        assert make_workers().submit(("modules", None)).result(SOON) == ["__main__"]


class TestNoWorker:
    @pytest.mark.parametrize(
        "make",
        [worker_tasks.make_that_fails, worker_tasks.make_that_dies, worker_tasks.make_that_leaves],
    )
    def test_can_be_had_where_none_starts(self, make_workers, seen, make: Any) -> None:
        workers = make_workers(make=make)
        for _ in range(3):
            with pytest.raises(NoWorkerError):
                workers.submit(("echo", 1)).result(SOON)
        assert seen.names == ["unavailable"], "it is not tried again for every task"

    def test_that_cannot_find_its_function_says_so(self, make_workers, seen, monkeypatch) -> None:
        monkeypatch.setattr(worker_tasks.make, "__module__", "nowhere")
        monkeypatch.setitem(sys.modules, "nowhere", worker_tasks)
        with pytest.raises(NoWorkerError, match="ModuleNotFoundError: No module named 'nowhere'"):
            make_workers(make=worker_tasks.make).submit(("echo", 1)).result(SOON)

    def test_is_kept_from_starting_by_a_file_of_the_current_folder(
        self, make_workers, tmp_path, monkeypatch
    ) -> None:
        (tmp_path / "pickle.py").write_text("raise RuntimeError('not this one')")
        monkeypatch.chdir(tmp_path)
        assert make_workers().submit(("echo", 1)).result(SOON) == 1

    def test_can_be_had_without_an_interpreter(self, make_workers, seen, monkeypatch) -> None:
        monkeypatch.setattr(sys, "executable", "/nowhere/python")
        with pytest.raises(NoWorkerError, match="nowhere"):
            make_workers().submit(("echo", 1)).result(SOON)

    def test_is_left_when_they_are_closed(self, make_workers) -> None:
        workers = make_workers(2)
        futures = [workers.submit(("sleep", 0.2)) for _ in range(4)]
        pid = workers.submit(("pid", None))
        workers.close()
        assert [future.result(0) for future in futures] == ["slept"] * 4
        assert not is_alive(pid.result(0))
        workers.close()
        with pytest.raises(RuntimeError, match="the workers have ended"):
            workers.submit(("echo", 1))

    @pytest.mark.parametrize("task", [("echo", None), ("sleep", 60)], ids=["idle", "busy"])
    def test_survives_a_parent_that_is_killed(self, tmp_path, task: tuple[str, Any]) -> None:
        script = tmp_path / "parent.py"
        script.write_text(
            "import os, time, worker_tasks\n"
            "from scrapy_simdup.workers import Workers\n"
            "workers = Workers(worker_tasks.make, 1, timeout=9, max_bytes=1 << 40, name='w')\n"
            "print(workers.submit(('pid', None)).result(), flush=True)\n"
            f"workers.submit({task!r})\n"
            "time.sleep(0.3)\n"
            "os.kill(os.getpid(), 9)\n"
        )
        path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
        done = subprocess.run(
            [sys.executable, script],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            timeout=SOON,
            check=False,
        )
        pid = int(done.stdout)  # the script has no guard, and still ran once only
        deadline = time.monotonic() + SOON
        while is_alive(pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not is_alive(pid)


def test_there_is_at_least_one_processor() -> None:
    assert 1 <= available_processors() <= (os.cpu_count() or 1)


def test_a_quota_counts(monkeypatch) -> None:
    read_text = Path.read_text

    def read(path: Path, *args: Any, **options: Any) -> str:
        if str(path) == "/sys/fs/cgroup/cpu.max":
            return "150000 100000\n"
        return read_text(path, *args, **options)

    monkeypatch.setattr(Path, "read_text", read)
    assert available_processors() == 1
