"""Why the workers are our own: pebble's and loky's pools beside them, in what a crawl asks of a pool.

    pip install ".[bench]" && python benchmarks/pools.py

- ``per task``: microseconds from handing a body of 150 kB to having an answer of 8 kB; and the
  processor time of the crawl's own process for it.
- ``lost``: of 40 short tasks that wait, how many fail when one of two idle workers has been killed
  before, and when one that is at work is killed.
- ``orphans``: workers that are still there 3 seconds after the process that started them was killed.
- ``script``: how often a script without ``if __name__ == "__main__"`` runs, the first time included;
  "ends" where it fails.
- ``a page that hangs``: whether it can be ended without the others.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

BODY = b"x" * 150_000
HANGS = {"pebble": "yes", "loky": "no", "ours": "yes"}


# ---- what workers do -----------------------------------------------------------------------------


def work(task: tuple[str, Any]) -> Any:
    what, value = task
    if what == "pid":
        return os.getpid()
    if what == "sleep":
        time.sleep(value)
        return os.getpid()
    return value[:8_000]


def make() -> Callable[[Any], Any]:
    return work


# ---- the pools -----------------------------------------------------------------------------------


class Pool:
    """One of the pools, asked in the same way."""

    def __init__(self, name: str) -> None:
        self.name = name
        if name == "pebble":
            from pebble import ProcessPool

            self._pool: Any = ProcessPool(2, context=multiprocessing.get_context("spawn"))
            self.submit = lambda task: self._pool.schedule(work, (task,), timeout=30)
        elif name == "loky":
            from loky import ProcessPoolExecutor

            self._pool = ProcessPoolExecutor(2)
            self.submit = lambda task: self._pool.submit(work, task)
        else:
            from scrapy_simdup.workers import Workers

            self._pool = Workers(make, 2, timeout=30, max_bytes=1 << 40, name="workers")
            self.submit = self._pool.submit

    def pids(self) -> list[int]:
        futures = [self.submit(("sleep", 0.3)) for _ in range(8)]
        return sorted({future.result(30) for future in futures})

    def close(self) -> None:
        if self.name == "pebble":
            self._pool.stop()
            self._pool.join()
        elif self.name == "loky":
            self._pool.shutdown(kill_workers=True)
        else:
            self._pool.close()


def per_task(name: str, number: int = 1_000) -> tuple[float, float]:
    pool = Pool(name)
    pool.pids()
    times, used = [], time.process_time()
    for _ in range(number):
        started = time.perf_counter()
        pool.submit(("echo", BODY)).result(30)
        times.append(time.perf_counter() - started)
    used = time.process_time() - used
    pool.close()
    return 1e6 * statistics.median(times), 1e6 * used / number


def lost(name: str, *, busy: bool) -> int:
    pool = Pool(name)
    pids = pool.pids()
    futures = []
    if busy:
        futures = [pool.submit(("sleep", 0.1)) for _ in range(40)]
        time.sleep(0.25)
    os.kill(pids[0], signal.SIGKILL)
    time.sleep(1)
    failed = 0
    for n in range(40):
        try:
            future = futures[n] if busy else pool.submit(("sleep", 0.01))
            future.result(10)
        except Exception:  # noqa: PERF203
            failed += 1
    try:
        pool.close()
    except Exception:
        print(f"{name} does not close after that", file=sys.stderr)
    return failed


SCRIPT = """
import os, sys, time
sys.path.insert(0, {folder!r})
print("runs", flush=True)
import pools
pool = pools.Pool({name!r})
print("pids", *pool.pids(), flush=True)
if {kill}:
    os.kill(os.getpid(), 9)
pool.close()
"""


def script(name: str, *, kill: bool) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "script.py"
        text = SCRIPT.format(folder=str(Path(__file__).parent), name=name, kill=kill)
        # Guarded where the question is another one.
        path.write_text(
            text
            if not kill
            else "def main():\n    "
            + text.replace("\n", "\n    ")
            + "\nif __name__ == '__main__':\n    main()\n"
        )
        output = Path(folder) / "output"
        with output.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, path], stdout=file, stderr=subprocess.DEVNULL, cwd=folder
            )
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
        time.sleep(3)
        lines = output.read_text().splitlines()
        pids = [int(pid) for line in lines if line.startswith("pids") for pid in line.split()[1:]]
        if not kill:
            return f"{lines.count('runs')}{'' if pids else ', ends'}"
        left = [pid for pid in pids if alive(pid)]
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        return str(len(left))


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(
        "| pool | per task, µs | of it in the crawl's process, µs | lost: idle worker killed | "
        "lost: busy worker killed | orphans | script | a page that hangs can be ended |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |")
    for name in ("ours", "pebble", "loky"):
        rounds = [per_task(name) for _ in range(options.rounds)]
        cells = [
            *(
                f"{statistics.median(one):.0f} ({min(one):.0f}–{max(one):.0f})"
                for one in zip(*rounds, strict=True)
            ),
            f"{lost(name, busy=False)} of 40",
            f"{lost(name, busy=True)} of 40",
            script(name, kill=True),
            script(name, kill=False),
            HANGS[name],
        ]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    import pools  # workers find functions by the name of their module

    pools.main()
