"""Uses that nobody meant: network disks, clocks that go backwards, moved folders, odd interpreters."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from crawl_site import (
    CHILD,
    HERE,
    SETTINGS,
    TIMEOUT,
    Site,
    article,
    crawl,
    crawls,
    environment,
    job,
    page,
    python,
    read_records,
    story,
    two_at_a_time,
)
from material import permissions_count
from scrapy.cmdline import execute

from scrapy_simdup import Detector
from scrapy_simdup.store.reading import StoreReader

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VISITS = ["/a", "/a-near", "/a-copy", "/b", "/b-near", "/short", "/c"]
KEPT = ["/a", "/b", "/short", "/c"]


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    pages: dict[str, Any] = {
        "/a": article(1),
        "/a-near": article(1, edits=2),
        "/a-copy": article(1),
        "/b": article(2),
        "/b-near": article(2, edits=1),
        "/short": page("Short", ["Too short."]),
        "/c": article(3),
    }
    for number in range(8):
        pages[f"/story-{number}-a"] = article(20 + number)
        pages[f"/story-{number}-b"] = article(20 + number, edits=1)
    links = [path for path in pages if path.startswith("/story-")]
    pages["/stories"] = page("All stories", story(99), links=links)
    with Site(pages) as running:
        yield running


# ---- network file systems ------------------------------------------------------------------------

ON_A_NETWORK = """
import sys
from scrapy_simdup.store import filesystem
filesystem._MOUNTINFO = sys.argv.pop(1)
"""
COMMAND = f"{ON_A_NETWORK}\nfrom scrapy.cmdline import execute\nexecute(['scrapy', *sys.argv[1:]])"


def test_a_store_on_a_network_file_system_is_warned_of_once(site: Site, tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"40 27 0:40 / {tmp_path} rw - nfs4 server:/x rw\n", "utf-8")
    spider = tmp_path / "spider.py"
    spider.write_text(
        "from scrapy import Spider\nclass S(Spider):\n    name = 's'\n"
        f"    start_urls = [{site.url('/a')!r}]\n    def parse(self, response): pass\n",
        "utf-8",
    )
    settings = [
        f"-s{name}={SETTINGS[name]}" for name in ("TELNETCONSOLE_ENABLED", "SIMDUP_WORKERS")
    ]
    addons = '-sADDONS={"scrapy_simdup.Addon": 500}'
    store = tmp_path / "store"
    run = python(
        *("-c", COMMAND, mounts, "runspider", spider, addons, f"-sSIMDUP_STORE={store}", *settings),
        cwd=tmp_path,
    )
    assert run.returncode == 0
    lines = [line for line in run.stderr.splitlines() if "WARNING" in line]
    [line] = [line for line in lines if "scrapy_simdup" in line]
    assert f"simdup: the store '{store}' is on a network file system (nfs4)" in line
    assert "checked 1 page: 1 unique" in run.stderr  # it is advice, and no more
    stats = python("-c", COMMAND, mounts, "simdup", "stats", "--store", store, cwd=tmp_path)
    assert stats.returncode == 0
    [line] = stats.stderr.splitlines()
    assert line.startswith(f"scrapy simdup: the store '{store}' is on a network file system (nfs4)")
    assert "pages" in stats.stdout


# ---- clocks --------------------------------------------------------------------------------------


class Clock:
    """The time of this process, some seconds off."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.off = 0.0
        now = time.time
        monkeypatch.setattr(time, "time", lambda: now() + self.off)


def test_a_clock_that_is_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    store = tmp_path / "store"
    for number, off in enumerate((400 * 86_400.0, 0.0, -30 * 86_400.0, -1.0)):
        clock.off = off
        with Detector(store, crawl=f"crawl-{number}") as detector:
            detector.note_crawl("spider").result()
            verdict = detector.check("https://a.test/1", article(1))
            assert (verdict.kind, verdict.change) == (
                ("revisit", "unchanged") if number else ("unique", None)
            )
            near = detector.check("https://a.test/1-near", article(1, edits=2))
            assert (near.kind, near.duplicate_of) == ("near", "https://a.test/1")
            clock.off = off - 86_400  # in the middle of a crawl
            assert detector.check(f"https://a.test/new-{number}", article(10 + number)).kind == (
                "unique"
            )
            detector.note_crawl("spider", {"checked": 3}).result()
    clock.off = 0.0
    with StoreReader(store) as reader:
        found = {record.url: record for _, record in reader.records()}
        assert all(record.first_seen <= record.last_seen for record in found.values())
        assert len(reader.crawls()) == 4
        assert {crawl.id for crawl in reader.crawls()} == {f"crawl-{n}" for n in range(4)}
        assert all(crawl.ended is not None for crawl in reader.crawls())


def test_commands_cope_with_times_that_are_still_to_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock(monkeypatch)
    monkeypatch.chdir(tmp_path)
    store = tmp_path / "store"
    for number, off in enumerate((400 * 86_400.0, -40 * 86_400.0)):
        clock.off = off
        with Detector(store, crawl=f"crawl-{number}") as detector:
            detector.note_crawl("spider").result()
            detector.check(f"https://a.test/{number}", article(number))
            detector.check(f"https://a.test/{number}-near", article(number, edits=1))
            clock.off = -off
            detector.note_crawl("spider", {"checked": 2}).result()

    def simdup(*arguments: str) -> Any:
        with pytest.raises(SystemExit) as left:
            execute(["scrapy", "simdup", *arguments, "--store", str(store), "--json"])
        assert not left.value.code
        return json.loads(capsys.readouterr().out)

    clock.off = 0.0
    assert [crawl["id"] for crawl in simdup("stats")["crawls"]] == ["crawl-1", "crawl-0"]
    assert simdup("doctor")["findings"] == []
    purged = simdup("purge", "--older-than", "30d")
    assert (purged["kept"], purged["duplicates"]) == (1, 1)
    with StoreReader(store) as reader:
        assert {record.url for _, record in reader.records()} == {
            "https://a.test/0",
            "https://a.test/0-near",
        }


# ---- moved folders -------------------------------------------------------------------------------


def test_a_crawl_goes_on_where_its_folder_was_moved_to(site: Site, tmp_path: Path) -> None:
    settings = {"SIMDUP_STORE": None, "SIMDUP_LOG": None, "JOBDIR": "job"}
    visits: list[Any] = [{"path": "/stories", "dont_filter": True}]
    stop = {**settings, "CLOSESPIDER_ITEMCOUNT": 4}
    before, after = tmp_path / "before", tmp_path / "on another machine"
    first = crawl(before, site, "Visitor", stop, visits=visits, follow=True)
    assert 4 <= len(first.items) < 9
    shutil.move(before, after)
    second = crawl(after, site, "Visitor", settings, visits=visits, follow=True)
    assert second.error is None
    assert not before.exists()
    arrived = {path.rpartition("-")[0] for path in first.paths + second.paths if "story" in path}
    assert arrived == {f"/story-{number}" for number in range(8)}
    both = [path for path in first.paths + second.paths if "story" in path]
    assert len(both) == 8, "nothing twice"
    assert second.stat("revisit/unchanged") == 1, "the start page"
    place = str(before).encode()
    stored = [path for path in after.rglob("*") if path.is_file() and path.name != "task.json"]
    assert [path for path in stored if place in path.read_bytes()] == []


# ---- interpreters --------------------------------------------------------------------------------

#: The child's script, from wherever an isolated interpreter finds modules.
ISOLATED = (
    "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); "
    "sys.argv.pop(0); runpy.run_path(sys.argv[0], run_name='__main__')"
)
WAYS: dict[str, tuple[list[str], dict[str, str]]] = {
    "plain": ([], {}),
    "-OO": (["-OO"], {"PYTHONHASHSEED": "1"}),
    "-I": (["-I"], {}),
    "-O": (["-O"], {"PYTHONHASHSEED": "4294967295"}),
    "-X dev": (["-X", "dev"], {"PYTHONHASHSEED": "0"}),
    "-s -E -P": (["-s", "-E"], {}),
    "C locale": ([], {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    "other zone": ([], {"TZ": "Pacific/Kiritimati"}),
}


def test_verdicts_are_the_same_however_python_is_started(
    site: Site, tmp_path: Path, full: bool
) -> None:
    names = [*WAYS] if full else ["-OO", "-I"]

    def run(name: str) -> tuple[Any, ...]:
        flags, variables = WAYS[name]
        folder = tmp_path / name.replace(" ", "")
        folder.mkdir()
        workers = {"SIMDUP_WORKERS": 1 if full else 0}
        own = {"SIMDUP_STORE": str(folder / "store"), "SIMDUP_LOG": str(folder / "dropped.jsonl")}
        task = {
            "root": site.root,
            "how": "in turn",
            "settings": {**SETTINGS, **workers},
            "jobs": [{"spider": "Visitor", "settings": own, "arguments": {"visits": VISITS}}],
        }
        (folder / "task.json").write_text(json.dumps(task), "utf-8")
        done = subprocess.run(
            [sys.executable, "-W", "error", *flags, "-c", ISOLATED, HERE, CHILD, "task.json"],
            cwd=folder,
            env=environment(**variables),
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b""), done.stderr.decode()[-3000:]
        [report] = json.loads(done.stdout)
        said = [
            line
            for line in report["log"]
            # In development mode asyncio tells of callbacks that took long.
            if line["level"] in {"WARNING", "ERROR"} and line["logger"] != "asyncio"
        ]
        assert (said, report["error"]) == ([], None)
        records = [
            {key: value for key, value in record.items() if key not in {"time", "crawl"}}
            for record in read_records(folder / "dropped.jsonl", site.root)
        ]
        passed = [one["path"] for one in report["arrived"]]
        return passed, [one["path"] for one in report["failed"]], records

    done = two_at_a_time({name: lambda name=name: run(name) for name in names})
    passed, failed, records = done[names[0]]
    assert passed == KEPT
    assert failed == [record["url"] for record in records]
    assert len(records) == 3
    for name in names:
        assert done[name] == done[names[0]], name


# ---- event loops ---------------------------------------------------------------------------------

LOOPS: dict[str, dict[str, Any]] = {
    "uvloop": {"ASYNCIO_EVENT_LOOP": "uvloop.Loop"},
    "epoll": {"TWISTED_REACTOR": "twisted.internet.epollreactor.EPollReactor"},
    "poll": {"TWISTED_REACTOR": "twisted.internet.pollreactor.PollReactor"},
}


@pytest.mark.parametrize("loop", LOOPS)
def test_pages_are_judged_on_every_event_loop(
    site: Site, tmp_path: Path, loop: str, full: bool
) -> None:
    if loop == "uvloop" and importlib.util.find_spec("uvloop") is None:
        pytest.skip("uvloop is not installed")
    if loop == "epoll" and sys.platform != "linux":
        pytest.skip("epoll is Linux's")
    if loop != "uvloop" and not full:
        pytest.skip("with --full only")
    workers = {"SIMDUP_WORKERS": 1 if full else 0}
    jobs = [
        job("Visitor", workers, visits=VISITS, name="drop"),
        job("Visitor", {"SIMDUP_ITEM_FIELDS": ["text"]}, visits=VISITS, name="fields"),
    ]
    drop, fields = crawls(tmp_path, site, jobs, **LOOPS[loop])
    assert (drop.error, drop.paths, drop.stat("dropped")) == (None, KEPT, 3)
    assert (fields.error, len(fields.items), len(fields.dropped)) == (None, 4, 3)
    assert drop.complaints + fields.complaints == []


# ---- permissions ---------------------------------------------------------------------------------


@pytest.mark.skipif(not permissions_count(), reason="root may do everything")
@pytest.mark.parametrize(("name", "mode"), [("data.mdb", 0o000), ("data.mdb", 0o444), ("", 0o555)])
def test_a_store_that_this_user_may_not_write_stops_the_crawl_and_is_left_as_it_is(
    site: Site, tmp_path: Path, name: str, mode: int
) -> None:
    store = tmp_path / "store"
    with Detector(store) as detector:
        detector.check("https://a.test/", article(1))
    if not name:
        (store / "lock.mdb").unlink()
    (store / name).chmod(mode)
    result = crawl(tmp_path, site, visits=VISITS)
    (store / name).chmod(0o755)
    assert result.error is not None
    assert result.error.startswith(f"StoreError: SIMDUP_STORE: store '{store}' is not writable")
    assert result.arrived == []
    with StoreReader(store) as reader:
        assert reader.info().pages == 1
