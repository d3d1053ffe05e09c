from __future__ import annotations

import gc
import sys
import threading
from typing import Any

import pytest

from scrapy_simdup.work import Analyst, GroupCommitter, ShortSwitchInterval

SOON = 20.0  # no test waits that long unless something hangs
LIMIT = 0.3  # for a task that hangs; others must be done within


class Log:
    """A transactional resource that is simple to look at: a list that grows by commits."""

    def __init__(self) -> None:
        self.entries: list[Any] = []
        self.commits: list[list[Any]] = []
        self.error: BaseException | None = None
        self.threads: set[str] = set()

    def write(self, run: Any) -> Any:
        self.threads.add(threading.current_thread().name)
        uncommitted: list[Any] = []
        results = run(uncommitted)
        if self.error is not None:
            raise self.error
        self.entries += uncommitted
        self.commits.append(uncommitted)
        return results


@pytest.fixture
def log():
    return Log()


@pytest.fixture
def committer(log):
    made: GroupCommitter[list[Any]] = GroupCommitter(log.write, name="test-committer")
    yield made
    made.close()


class Gate:
    """A job that keeps its thread busy until it is told to go on."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.open = threading.Event()

    def __call__(self, *_: Any) -> str:
        self.entered.set()
        assert self.open.wait(SOON)
        return "through the gate"


def append(value: Any) -> Any:
    def job(entries: list[Any]) -> Any:
        entries.append(value)
        return value

    return job


def fail(entries: list[Any]) -> None:
    entries.append("half done")
    raise LookupError("of this job only")


def behind_a_gate(committer, jobs):
    """Queue *jobs* while the thread is busy, so that they wait together; return their futures."""
    gate = Gate()
    committer.submit(gate)
    assert gate.entered.wait(SOON)
    futures = [committer.submit(job) for job in jobs]
    gate.open.set()
    return futures


class TestGroupCommitter:
    def test_runs_jobs_in_the_order_they_came_in(self, committer, log):
        futures = [committer.submit(append(n)) for n in range(500)]
        assert [future.result(SOON) for future in futures] == list(range(500))
        assert log.entries == list(range(500))

    def test_runs_everything_on_one_thread_of_its_own(self, committer, log):
        for n in range(3):
            committer.submit(append(n)).result(SOON)
        assert log.threads == {"test-committer"}

    def test_commits_what_is_waiting_in_one_transaction(self, committer, log):
        futures = behind_a_gate(committer, [append(n) for n in range(10)])
        assert [future.result(SOON) for future in futures] == list(range(10))
        assert log.commits == [[], list(range(10))]

    def test_bounds_the_size_of_a_group(self, committer, log):
        futures = behind_a_gate(committer, [append(n) for n in range(300)])
        for future in futures:
            future.result(SOON)
        assert [len(group) for group in log.commits] == [0, 128, 128, 44]

    def test_a_failing_job_does_not_spoil_its_group(self, committer, log):
        before, failing, after = behind_a_gate(committer, [append("a"), fail, append("b")])
        assert (before.result(SOON), after.result(SOON)) == ("a", "b")
        with pytest.raises(LookupError, match="of this job only"):
            failing.result(SOON)
        assert log.entries == ["a", "b"]

    def test_answers_only_after_the_commit(self, committer, log):
        committed_at_answer = []
        future = committer.submit(append("a"))
        future.add_done_callback(lambda _: committed_at_answer.append(list(log.entries)))
        future.result(SOON)
        committer.close()
        assert committed_at_answer == [["a"]]

    def test_an_error_of_the_commit_is_the_error_of_every_job(self, committer, log):
        log.error = OSError("disk full")
        for future in behind_a_gate(committer, [append("a"), append("b")]):
            with pytest.raises(OSError, match="disk full"):
                future.result(SOON)
        log.error = None
        assert committer.submit(append("c")).result(SOON) == "c"
        assert log.entries == ["c"]

    def test_prepares_a_job_before_the_transaction(self, committer, log):
        prepared_in = []
        future = committer.submit(append("a"), prepare=lambda: prepared_in.append(len(log.threads)))
        assert future.result(SOON) == "a"
        assert prepared_in == [0]

    def test_a_job_whose_preparation_fails_is_not_run(self, committer, log):
        future = committer.submit(append("a"), prepare=lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            future.result(SOON)
        assert log.entries == []

    def test_a_cancelled_job_is_not_run(self, committer, log):
        gate = Gate()
        committer.submit(gate)
        assert gate.entered.wait(SOON)
        cancelled, other = committer.submit(append("a")), committer.submit(append("b"))
        assert cancelled.cancel()
        gate.open.set()
        assert other.result(SOON) == "b"
        assert log.entries == ["b"]

    def test_close_finishes_what_is_queued(self, committer, log):
        gate = Gate()
        committer.submit(gate)
        assert gate.entered.wait(SOON)
        futures = [committer.submit(append(n)) for n in range(200)]
        gate.open.set()
        committer.close()
        assert all(future.done() for future in futures)
        assert log.entries == list(range(200))

    def test_close_may_be_called_again(self, committer):
        committer.close()
        committer.close()

    def test_close_may_be_called_by_whoever_is_answered(self, committer):
        closed = threading.Event()
        gate = Gate()
        future = committer.submit(gate)
        future.add_done_callback(lambda _: (committer.close(), closed.set()))
        gate.open.set()
        assert closed.wait(SOON)

    def test_refuses_jobs_after_close(self, committer):
        committer.close()
        with pytest.raises(RuntimeError, match="the store's thread has ended"):
            committer.submit(append("a"))


@pytest.fixture
def make_analyst():
    made = []

    def make(timeout=SOON):
        analyst = Analyst(timeout, name="test-analyst")
        made.append(analyst)
        return analyst

    yield make
    for analyst in made:
        analyst.close()


class TestAnalyst:
    def test_gives_the_result_of_a_task(self, make_analyst):
        assert make_analyst().submit(lambda: 6 * 7).result(SOON) == 42

    def test_passes_on_whatever_a_task_raises(self, make_analyst):
        analyst = make_analyst()
        with pytest.raises(ZeroDivisionError):
            analyst.submit(lambda: 1 / 0).result(SOON)

        def leave():
            raise SystemExit("an extractor that thinks it is a program")

        with pytest.raises(SystemExit):
            analyst.submit(leave).result(SOON)
        assert analyst.submit(lambda: "still there").result(SOON) == "still there"

    def test_works_in_order_on_one_thread(self, make_analyst):
        analyst, done = make_analyst(), []

        def task(n):
            done.append((n, threading.current_thread().name))

        for future in [analyst.submit(lambda n=n: task(n)) for n in range(50)]:
            future.result(SOON)
        assert done == [(n, "test-analyst") for n in range(50)]

    def test_a_task_over_its_time_has_a_timeout_error(self, make_analyst):
        analyst, gate = make_analyst(timeout=LIMIT), Gate()
        with pytest.raises(TimeoutError, match=r"not done after 0\.3 s"):
            analyst.submit(gate).result(SOON)
        gate.open.set()

    def test_a_stuck_thread_is_replaced_and_the_next_task_runs(self, make_analyst):
        analyst, gate = make_analyst(timeout=LIMIT), Gate()
        stuck_in = []

        def stuck():
            stuck_in.append(threading.current_thread())
            gate()

        with pytest.raises(TimeoutError):
            analyst.submit(stuck).result(SOON)
        other = analyst.submit(threading.current_thread).result(SOON)
        assert other is not stuck_in[0]
        gate.open.set()
        stuck_in[0].join(SOON)
        assert not stuck_in[0].is_alive(), "the old thread takes no more tasks"
        assert analyst.submit(threading.current_thread).result(SOON) is other

    def test_a_stuck_task_costs_none_of_those_that_wait_behind_it(self, make_analyst):
        analyst, gate = make_analyst(timeout=LIMIT), Gate()
        stuck = analyst.submit(gate)
        waiting = [analyst.submit(lambda n=n: n) for n in range(16)]
        assert [future.result(SOON) for future in waiting] == list(range(16))
        with pytest.raises(TimeoutError):
            stuck.result(SOON)
        gate.open.set()

    def test_several_stuck_tasks_in_a_row_each_time_out(self, make_analyst):
        analyst, gates = make_analyst(timeout=LIMIT), [Gate() for _ in range(4)]
        for future in [analyst.submit(gate) for gate in gates]:
            with pytest.raises(TimeoutError):
                future.result(SOON)
        assert analyst.submit(lambda: "free").result(SOON) == "free"
        for gate in gates:
            gate.open.set()

    def test_whoever_is_told_of_a_timeout_may_wait_for_the_next_task(self, make_analyst):
        analyst, gate = make_analyst(timeout=LIMIT), Gate()
        seen, told = [], threading.Event()

        def follow(_):
            seen.append(analyst.submit(lambda: "next").result(SOON))
            told.set()

        analyst.submit(gate).add_done_callback(follow)
        assert told.wait(SOON)
        assert seen == ["next"]
        gate.open.set()

    def test_the_result_of_a_task_that_is_late_is_ignored(self, make_analyst):
        analyst, gate = make_analyst(timeout=LIMIT), Gate()
        future = analyst.submit(gate)
        with pytest.raises(TimeoutError):
            future.result(SOON)
        gate.open.set()
        analyst.close()
        assert isinstance(future.exception(), TimeoutError)

    def test_close_finishes_what_is_queued(self, make_analyst):
        analyst, gate = make_analyst(), Gate()
        analyst.submit(gate)
        futures = [analyst.submit(lambda n=n: n) for n in range(20)]
        gate.open.set()
        analyst.close()
        assert [future.result(0) for future in futures] == list(range(20))

    def test_close_waits_for_a_stuck_task_no_longer_than_its_time(self, make_analyst):
        analyst, gate = make_analyst(timeout=LIMIT), Gate()
        stuck, queued = analyst.submit(gate), analyst.submit(lambda: "queued")
        analyst.close()
        assert isinstance(stuck.exception(0), TimeoutError)
        assert queued.result(0) == "queued"
        gate.open.set()

    def test_close_may_be_called_again_and_before_any_task(self, make_analyst):
        analyst = make_analyst()
        analyst.close()
        analyst.close()

    def test_refuses_tasks_after_close(self, make_analyst):
        analyst = make_analyst()
        analyst.close()
        with pytest.raises(RuntimeError, match="the analyst's thread has ended"):
            analyst.submit(lambda: None)

    def test_starts_no_thread_before_the_first_task(self, make_analyst):
        gc.collect()
        before = threading.active_count()
        make_analyst()
        assert threading.active_count() == before


class TestShortSwitchInterval:
    def test_holds_until_the_last_one_leaves(self):
        before = sys.getswitchinterval()
        first, second = ShortSwitchInterval(), ShortSwitchInterval()
        first.enter()
        second.enter()
        first.leave()
        assert sys.getswitchinterval() == pytest.approx(0.0002, rel=0.02)
        second.leave()
        assert sys.getswitchinterval() == pytest.approx(before, rel=0.02)

    def test_never_makes_it_longer(self):
        before = sys.getswitchinterval()
        sys.setswitchinterval(0.0001)
        try:
            interval = ShortSwitchInterval()
            interval.enter()
            assert sys.getswitchinterval() == pytest.approx(0.0001, rel=0.02)
            interval.leave()
            assert sys.getswitchinterval() == pytest.approx(0.0001, rel=0.02)
        finally:
            sys.setswitchinterval(before)
