"""``scrapy simdup log``: every filter, damaged lines, and a log that grows."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from scrapy_simdup.auditlog import AuditLog
from scrapy_simdup.logreader import Filter, follow, moment, read

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
NOW = datetime.now(timezone.utc)


def entry(number: int, **fields: Any) -> dict[str, Any]:
    made = {
        "time": (NOW - timedelta(hours=number)).isoformat(),
        "crawl": "first-x" if number < 3 else "second-y",
        "url": f"https://{'a.' if number % 2 else ''}example.org/{number}",
        "kind": ("exact", "near", "near_miss")[number % 3],
        "duplicate_of": "https://example.org/0",
        "distance": number,
        "resemblance": 1 - number / 10,
    }
    return {**made, **fields}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "dropped.jsonl"
    written = AuditLog(path)
    for number in range(6):
        written.write(entry(number))
    written.write(entry(6, distance=None, resemblance=None, url="https://evil/\x1b[2J\u202e"))
    written.close()
    return path


@pytest.mark.parametrize(
    ("arguments", "numbers"),
    [
        ("", [0, 1, 2, 3, 4, 5, 6]),
        ("--host a.example.org", [1, 3, 5]),
        ("--host example.org", [0, 1, 2, 3, 4, 5]),
        ("--host EXAMPLE.org --host evil", [0, 1, 2, 3, 4, 5, 6]),
        ("--host ample.org", []),
        ("--kind near --kind near_miss", [1, 2, 4, 5]),
        ("--crawl second", [3, 4, 5, 6]),
        ("--min-distance 2 --max-distance 4", [2, 3, 4]),
        ("--min-resemblance 0.75", [0, 1, 2]),
        ("--max-resemblance 0.55", [5]),
        ("--since 210m", [0, 1, 2, 3]),
        ("--until 3.5h", [4, 5, 6]),
        ("--since 5.5h --until 2.5h --kind exact", [3]),
        ("--limit 2", [5, 6]),
        ("--kind exact --limit 1", [6]),
    ],
)
def test_filters(simdup, log, arguments, numbers):
    ran = simdup("log", log, "--json", *arguments.split())
    assert ran.status == 0
    found = [6 if "evil" in row["url"] else int(row["url"].rsplit("/", 1)[1]) for row in ran.rows]
    assert found == numbers


def test_a_table_for_people(simdup, log):
    lines = simdup("log", log).output.splitlines()
    assert lines[0].split() == ["time", "kind", "distance", "resemblance", "url", "duplicate", "of"]
    assert len(lines) == 8
    assert "https://evil/\\x1b[2J\\u202e" in lines[-1]
    assert simdup("log", log, "--host", "nobody").output == "no such record\n"


def test_lines_that_are_no_records_are_counted(simdup, log):
    with log.open("ab") as file:
        file.write(b'\n{"url": 1\n[1]\n{}\n\xff\xfe\n' + b"[" * 100_000 + b"\n" + b'{"url": "half')
    ran = simdup("log", log, "--json")
    assert (ran.status, len(ran.rows)) == (0, 7)
    assert ran.errors == (f"scrapy simdup: 6 lines are no records, the first: {log}, line 9\n")


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("none.jsonl",), 1, "the log 'none.jsonl' cannot be read (No such file or directory)"),
        ((), 1, "there is no log here; say which: FILE, or --spider NAME"),
        (("x", "--since", "yesterday"), 2, "'yesterday' is no time: give 2026-05-31"),
        (("x", "--limit", "0"), 2, "--limit 0: must be at least 1"),
        (("x", "y", "--follow"), 2, "--follow goes with one log"),
        (("x", "--follow", "--limit", "0"), 2, "--limit 0: must be at least 1"),
        (("x", "--since", "99999999999d"), 2, "'99999999999d' is no time"),
        (("x", "--kind", "far"), 2, "invalid choice: 'far'"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(simdup, arguments, status, message):
    ran = simdup("log", *arguments)
    assert ran.status == status
    assert message in ran.errors + ran.output


def test_the_last_log_of_a_spider_is_found(simdup, log, tmp_path):
    folder = tmp_path / ".scrapy/simdup"
    folder.mkdir(parents=True)
    for name, number in (("a%2Fb-dropped-1.jsonl", 1), ("other-dropped-2.jsonl", 2)):
        (folder / name).write_text(json.dumps(entry(number)) + "\n")
    urls = [row["url"] for row in simdup("log", "--spider", "a/b", "--json").rows]
    assert urls == [entry(1)["url"]]
    pattern = f"SIMDUP_LOG={tmp_path}/%(spider)s.jsonl"
    assert len(simdup("log", "-s", pattern, "--spider", "dropped", "--json").rows) == 7


def test_times():
    assert moment("2026-05-31") == datetime(2026, 5, 31, tzinfo=timezone.utc)
    assert moment("2026-05-31T10:30Z") == datetime(2026, 5, 31, 10, 30, tzinfo=timezone.utc)
    assert moment("1.5h", NOW) == NOW - timedelta(hours=1.5)
    for wrong in (
        "",
        "h",
        "x",
        "-1h",
        "1y",
        "\u00b2d",
        "9" * 11 + "d",
        "9" * 400 + "w",
        "2026-13-01",
    ):
        with pytest.raises(ValueError, match="is no time"):
            moment(wrong)


def test_records_that_make_no_sense_match_no_bound():
    odd = {"url": 5, "kind": None, "distance": "far", "time": 7}
    assert Filter()(odd)
    for wanted in (Filter(min_distance=1), Filter(since=NOW), Filter(hosts=("a",))):
        assert not wanted(odd)


def test_follow_goes_on_with_what_comes_and_with_a_log_that_is_replaced(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps(entry(0)) + "\n")
    damaged: list[int] = []
    over = threading.Event()
    entries: Iterator[dict[str, Any]] = filter(
        None,
        follow(path, lambda _, number: damaged.append(number), pause=0.01, is_over=over.is_set),
    )
    assert next(entries)["distance"] == 0
    with path.open("a") as file:
        line = json.dumps(entry(1)) + "\n"
        file.write(line[:20])
        file.flush()
        threading.Timer(0.05, lambda: (file.write(line[20:]), file.flush())).start()
        assert next(entries)["distance"] == 1  # waited for until it was whole
    path.write_text("")  # emptied
    threading.Timer(0.05, lambda: path.write_text("none\n" + json.dumps(entry(2)) + "\n")).start()
    assert next(entries)["distance"] == 2
    assert damaged == [1]
    new = tmp_path / "new"
    new.write_text(json.dumps(entry(3)) + "\n")
    new.rename(path)  # rotated
    assert next(entries)["distance"] == 3
    over.set()
    assert list(entries) == []
    assert list(read([path], lambda *_: None)) == [entry(3)]


def test_follow_reads_to_its_end_what_is_rotated_away(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps(entry(0)) + "\n")
    damaged: list[int] = []
    entries = follow(path, lambda _, number: damaged.append(number), pause=0)
    assert [next(entries), next(entries)] == [entry(0), None]
    with path.open("a") as file:
        file.write("\n" + json.dumps(entry(1)) + "\n" + '{"half')
    path.rename(tmp_path / "log.1")
    path.write_text(json.dumps(entry(2)) + "\n")
    assert [next(entries), next(entries)] == [entry(1), entry(2)]
    assert damaged == [4]


@pytest.mark.parametrize(
    ("arguments", "there"),
    [((), [0, 1, 2, 3, 4, 5]), (("--limit", "2", "--host", "a.example.org"), [3, 5])],
)
@pytest.mark.skipif(os.name == "nt", reason="no SIGINT for one process")
def test_follow_through_a_pipe_ends_with_ctrl_c(log, arguments, there):
    with log.open("a") as file:
        file.write("no record\n")
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(
        [sys.executable, "-m", "scrapy", "simdup", "log", "-f", log, "--json", *arguments],
        cwd=log.parent,
        env={**buffered, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        killer = threading.Timer(60, running.kill)
        killer.start()
        found = [json.loads(running.stdout.readline())["distance"] for _ in there]
        assert found == there
        if not arguments:
            assert "evil" in running.stdout.readline()
        with log.open("a") as file:
            file.write(json.dumps(entry(7)) + "\n")
        assert json.loads(running.stdout.readline()) == entry(7)
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate()
        killer.cancel()
    assert running.returncode == 0
    assert errors == f"scrapy simdup: 1 lines are no records, the first: {log}, line 8\n"
