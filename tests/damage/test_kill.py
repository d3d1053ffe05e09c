"""Crawls that are killed at any moment, and crawls whose workers are: nothing is lost by us.

Scrapy itself forgets its queue when it is killed, even with JOBDIR (it is written down at the end),
so after some kills a crawl without JOBDIR goes over the site once more, with the same store, as an
operator would do it.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from crawl_site import Child, Site, article
from scrapy.cmdline import execute

from scrapy_simdup.store.reading import StoreReader

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGES = 120
KILLS_A_ROUND = 5
RUNNER = Path(__file__).parent / "killed.py"
_LONGEST = 60.0

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL on this system")


def content(number: int) -> int:
    """The first page with the content of this one: three of ten are copies, all without links."""
    return number - 1 - number % 3 if number % 10 in {4, 7, 9} else number


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    inner = [number for number in range(PAGES) if content(number) == number]
    pages: dict[str, Any] = {}
    for number in range(PAGES):
        links = []
        if content(number) == number:
            place = inner.index(number)
            links = [*inner[2 * place + 1 : 2 * place + 3]]
            links += [one for one in range(number - 4, number + 5) if 0 < one < PAGES]
        copy = content(number) != number
        pages[f"/{number}"] = article(
            content(number), edits=number % 3 if copy else 0, links=[f"/{link}" for link in links]
        )
    with Site(pages) as running:
        yield running


def lines(folder: Path) -> list[dict[str, Any]]:
    path = folder / "seen.jsonl"
    return [*map(json.loads, path.read_text().splitlines())] if path.exists() else []


def number_of(line: dict[str, Any]) -> int:
    return int(line["url"].rpartition("/")[2])


def start(folder: Path, site: Site, action: str, run: int, jobdir: str | None) -> Child:
    more = [jobdir] if jobdir else []
    return Child(RUNNER, site.root, action, str(run), *more, cwd=folder)


def kill_at_some_moment(child: Child, folder: Path, chance: random.Random) -> bool:
    """Kill the crawl when it has got so far, or a little later. False if it had ended before."""
    wanted = len(lines(folder)) + chance.choice((0, 0, 1, 2, 5, 10, 20, 40, 80))
    end = time.monotonic() + _LONGEST
    while len(lines(folder)) < wanted and child.process.poll() is None:
        assert time.monotonic() < end, child.text
        time.sleep(0.005)
    time.sleep(chance.uniform(0, 1.5) if wanted == len(lines(folder)) else chance.uniform(0, 0.05))
    ended = child.process.poll() is not None
    child.process.kill()
    child.process.wait()
    return not ended


def check_store(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It opens, doctor has nothing to say, and what was said of pages is in it."""
    if not (folder / "store/data.mdb").exists():
        return
    capsys.readouterr()
    with pytest.raises(SystemExit) as left:
        execute(["scrapy", "simdup", "doctor", "--store", str(folder / "store"), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert (left.value.code, found["findings"]) == (0, [])
    with StoreReader(folder / "store") as reader:
        stored = {record.url: record for _, record in reader.records()}
    for line in lines(folder):
        if line["what"] == "page" and line["kind"] not in {None, "skipped"}:
            record = stored[line["url"]]
            assert record.kept == (line["kind"] in {"unique", "revisit"}), line


def check_sum(folder: Path) -> None:
    """Every content has arrived as an item; in one run once, and always from the same page."""
    arrived: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for line in lines(folder):
        if line["what"] == "item":
            arrived[content(number_of(line))].append(line)
    assert set(arrived) == {content(number) for number in range(PAGES)}
    for items in arrived.values():
        assert len({item["url"] for item in items}) == 1
        assert max(Counter(item["run"] for item in items).values()) == 1


@pytest.mark.parametrize("action", ["drop", "drop_items"])
def test_at_any_moment_costs_no_page(
    site: Site, tmp_path: Path, action: str, full: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    kills, chance = 0, random.Random(action)
    for number in range(100 // KILLS_A_ROUND if full else 1):
        folder = tmp_path / str(number)
        folder.mkdir()
        for run in range(KILLS_A_ROUND if full else 1):
            with start(folder, site, action, run, "job") as child:
                kills += kill_at_some_moment(child, folder, chance)
            check_store(folder, capsys)
        with start(folder, site, action, KILLS_A_ROUND, None) as child:
            output = child.wait(_LONGEST)
        assert child.process.returncode == 0, output
        assert "ERROR" not in output
        check_store(folder, capsys)
        check_sum(folder)
    with capsys.disabled():
        print(f" {kills} kills, nothing lost", end="")
    assert kills > (50 if full else 0)


def workers_of(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


@pytest.mark.skipif(sys.platform != "linux", reason="children are found in Linux's /proc")
def test_of_workers_costs_no_page(
    site: Site, tmp_path: Path, full: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    kills, chance = 0, random.Random(5)
    for number in range(25 if full else 1):
        folder = tmp_path / str(number)
        folder.mkdir()
        with start(folder, site, "drop", 0, None) as child:
            end = time.monotonic() + _LONGEST
            while child.process.poll() is None and time.monotonic() < end:
                time.sleep(chance.uniform(0.02, 0.4))
                with contextlib.suppress(OSError):  # they end by themselves, too
                    if found := workers_of(child.process.pid):
                        os.kill(chance.choice(found), signal.SIGKILL)
                        kills += 1
            output = child.wait(_LONGEST)
        assert child.process.returncode == 0, output
        assert "ERROR" not in output
        check_store(folder, capsys)
        # A page that is there when its worker dies twice passes unjudged.
        arrived = Counter(content(number_of(one)) for one in lines(folder) if one["what"] == "item")
        assert set(arrived) == {content(number) for number in range(PAGES)}
    with capsys.disabled():
        print(f" {kills} workers killed, nothing lost", end="")
    assert kills > (50 if full else 0)
