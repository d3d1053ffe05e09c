from __future__ import annotations

import json
import mmap
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import threading
from random import Random

import lmdb
import pytest
from material import permissions_count, run_script, start_script

from scrapy_simdup import StoreError
from scrapy_simdup.store import environment as environment_module
from scrapy_simdup.store.environment import SCHEMA, Environment

PAGE = mmap.PAGESIZE
TINY = 1 << 16
KIND = "trial"


@pytest.fixture
def open_environment(tmp_path):
    """Open environments in folders of ``tmp_path``; they are closed at the end."""
    opened = []

    def open_(name="store", **options):
        path = name if name is None else tmp_path / name
        environment = Environment.open(path, **{"kind": KIND, **options})
        opened.append(environment)
        return environment

    yield open_
    for environment in opened:
        environment.close()


def put(environment, **pairs):
    environment.write(
        lambda txn: [txn.put(key.encode(), value.encode()) for key, value in pairs.items()]
    )


def get(environment, key):
    return environment.read(lambda txn: txn.get(key.encode()))


def fill(environment, count, size, *, start=0):
    """Put *count* values of *size* bytes, all in one transaction; return how often it ran."""
    database = environment.database("data")
    runs = 0

    def job(txn):
        nonlocal runs
        runs += 1
        for n in range(start, start + count):
            txn.put(b"%08d" % n, b"x" * size, db=database)

    environment.write(job)
    return runs


def entries(environment):
    database = environment.database("data")
    return environment.read(lambda txn: txn.stat(database)["entries"])


class TestOpening:
    def test_makes_the_folder_and_those_above_it(self, open_environment, tmp_path):
        open_environment("a/b/c")
        assert sorted(path.name for path in (tmp_path / "a/b/c").iterdir()) == [
            "data.mdb",
            "lock.mdb",
        ]

    def test_writes_a_header_that_says_what_the_file_is(self, open_environment):
        header = open_environment().header()
        assert isinstance(header.pop("created"), int)
        assert header == {"magic": "scrapy-simdup", "schema": SCHEMA, "kind": KIND}

    def test_takes_a_map_as_large_as_the_system_gives(self, open_environment):
        assert 0 < open_environment(map_size=1 << 62).info()["map_size"] < 1 << 62

    def test_finds_what_was_written_before(self, open_environment):
        first = open_environment()
        put(first, a="1")
        first.close()
        assert get(open_environment(), "a") == b"1"


class TestWhatIsRefused:
    def refuse(self, open_environment, name="store", **options):
        with pytest.raises(StoreError) as refused:
            open_environment(name, **options)
        return str(refused.value)

    def test_a_path_that_is_a_file(self, open_environment, tmp_path):
        (tmp_path / "store").write_bytes(b"something")
        message = self.refuse(open_environment)
        assert message == f"store '{tmp_path}/store' is a file; a store is a folder of its own"
        assert (tmp_path / "store").read_bytes() == b"something"

    def test_a_folder_below_a_file(self, open_environment, tmp_path):
        (tmp_path / "file").write_bytes(b"something")
        message = self.refuse(open_environment, "file/store")
        assert "cannot be created: Not a directory; choose a folder that this user may" in message

    @pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
    def test_a_folder_that_nobody_may_write(self, open_environment):
        assert "cannot be created" in self.refuse(open_environment, "/proc/store")

    @pytest.mark.skipif(sys.platform != "linux", reason="/sys is Linux's")
    def test_a_folder_that_is_there_but_not_writable(self, open_environment):
        message = self.refuse(open_environment, "/sys/kernel")
        assert "is not writable for this user; change its permissions or choose" in message

    def test_a_name_that_is_too_long(self, open_environment):
        assert "File name too long" in self.refuse(open_environment, "x" * 300)

    @pytest.mark.parametrize("name", ["a\0b", "a\ud800b"])
    def test_a_name_that_no_file_system_takes(self, open_environment, name):
        assert "is not a path" in self.refuse(open_environment, name)

    def test_the_home_of_nobody(self):
        with pytest.raises(StoreError, match="is not a path: Could not determine home directory"):
            Environment.open("~no-such-user/store", kind=KIND)

    def test_a_data_file_that_is_a_folder(self, open_environment, tmp_path):
        (tmp_path / "store/data.mdb").mkdir(parents=True)
        assert "does not hold a readable store" in self.refuse(open_environment)

    @pytest.mark.parametrize(
        "content",
        [b"", b"garbage " * 4096, bytes(2 * PAGE)],
        ids=["nothing", "garbage", "zeros"],
    )
    def test_a_data_file_that_is_no_lmdb_file(self, open_environment, tmp_path, content):
        (tmp_path / "store").mkdir()
        data = tmp_path / "store/data.mdb"
        data.write_bytes(content)
        message = self.refuse(open_environment)
        assert message == (
            f"store '{tmp_path}/store' does not hold a readable store (data.mdb is damaged or of "
            "another program); nothing was changed. Restore a copy, move it away, or use another "
            "store"
        )
        assert data.read_bytes() == content

    @pytest.mark.parametrize(
        ("place", "order", "what"),
        [(16, "other", "byte order"), (12, "other", "byte order"), (12, "own", "word size")],
    )
    def test_a_store_of_another_machine(self, open_environment, tmp_path, place, order, what):
        open_environment().close()
        data = tmp_path / "store/data.mdb"
        content = bytearray(data.read_bytes())
        magic = bytes(content[16:20])
        for start in (0, PAGE):
            content[start + 16 : start + 20] = bytes(4)
            content[start + place : start + place + 4] = magic if order == "own" else magic[::-1]
        data.write_bytes(content)
        message = self.refuse(open_environment)
        assert message.startswith(
            f"store '{tmp_path}/store' was written on a machine of another {what}, and LMDB cannot "
            "read it here; nothing was changed. Take it along as JSON Lines: scrapy simdup export"
        )
        assert data.read_bytes() == content

    @pytest.mark.skipif(not permissions_count(), reason="root may read everything")
    @pytest.mark.parametrize("readonly", [False, True])
    def test_a_data_file_that_this_user_may_not_read(self, open_environment, tmp_path, readonly):
        open_environment().close()
        (tmp_path / "store/data.mdb").chmod(0)
        assert "change its permissions" in self.refuse(open_environment, readonly=readonly)

    @pytest.mark.parametrize("key", [b"whatever", b"header"])
    def test_an_lmdb_environment_of_another_program(self, open_environment, tmp_path, key):
        with lmdb.open(str(tmp_path / "store")) as foreign, foreign.begin(write=True) as txn:
            txn.put(key, b"of another program")
        before = (tmp_path / "store/data.mdb").read_bytes()
        message = self.refuse(open_environment)
        assert message == (
            f"store '{tmp_path}/store' holds an LMDB environment that is not a scrapy-simdup "
            "store; give the store a folder of its own"
        )
        assert (tmp_path / "store/data.mdb").read_bytes() == before

    def change_header(self, path, **values):
        with lmdb.open(str(path)) as env, env.begin(write=True) as txn:
            header = json.loads(txn.get(b"header"))
            txn.put(b"header", json.dumps({**header, **values}).encode())
        return (path / "data.mdb").read_bytes()

    def test_a_newer_schema(self, open_environment, tmp_path):
        open_environment().close()
        before = self.change_header(tmp_path / "store", schema=SCHEMA + 1)
        message = self.refuse(open_environment)
        assert message == (
            f"store '{tmp_path}/store' was written by a newer scrapy-simdup (schema {SCHEMA + 1}, "
            f"this version reads {SCHEMA}); upgrade scrapy-simdup or use another store"
        )
        assert (tmp_path / "store/data.mdb").read_bytes() == before

    def test_another_kind_of_store(self, open_environment, tmp_path):
        open_environment(kind="fingerprints").close()
        message = self.refuse(open_environment, kind="pages")
        assert message == (
            f"store '{tmp_path}/store' holds 'fingerprints', not 'pages'; give each store a folder "
            "of its own"
        )

    def test_another_kind_of_store_that_is_open_already(self, open_environment):
        open_environment(kind="fingerprints")
        assert "holds 'fingerprints', not 'pages'" in self.refuse(open_environment, kind="pages")

    def test_a_file_that_other_code_of_the_process_has_open(self, open_environment, tmp_path):
        open_environment().close()
        with lmdb.open(str(tmp_path / "store")):
            assert "is open in this process already" in self.refuse(open_environment)
        open_environment()

    def test_to_read_a_store_that_is_not_there(self, open_environment, tmp_path):
        message = self.refuse(open_environment, readonly=True)
        assert message == f"there is no store at '{tmp_path}/store'"
        assert not (tmp_path / "store").exists()

    def test_to_read_an_environment_that_is_empty(self, open_environment, tmp_path):
        with lmdb.open(str(tmp_path / "store")):
            pass
        assert "holds no scrapy-simdup store" in self.refuse(open_environment, readonly=True)

    def test_to_write_where_the_process_has_it_open_for_reading(self, open_environment):
        open_environment().close()
        reading = open_environment(readonly=True)
        assert "is open for reading in this process" in self.refuse(open_environment)
        reading.close()
        put(open_environment(), a="1")

    def test_no_place_for_a_temporary_store(self, open_environment, tmp_path, monkeypatch):
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
        assert "no temporary store: No such file" in self.refuse(open_environment, None)


INSIDE = """
import sys
from scrapy_simdup.store.environment import Environment
environment = Environment.open(sys.argv[1], kind="trial")
def job(txn):
    print("inside", flush=True)
    sys.stdin.read()
environment.read(job)
"""

READ_ALL = """
import os, sys, lmdb
env = lmdb.open(sys.argv[1], readonly=True, max_dbs=16)
env.copyfd(os.open(os.devnull, os.O_WRONLY), compact=True)
"""

OPEN_EACH = """
import sys
from pathlib import Path
from scrapy_simdup import StoreError
from scrapy_simdup.store.environment import Environment

for path in map(Path, sys.argv[1:]):
    before = (path / "data.mdb").read_bytes()
    try:
        environment = Environment.open(path, kind="trial")
    except StoreError as error:
        unchanged = (path / "data.mdb").read_bytes() == before
        print(path.name, "refused" if unchanged else "changed", error)
    else:
        database = environment.database("data")
        def job(txn):
            for n in range(200):
                txn.put(b"new %d" % n, b"y" * 3000, db=database)
            txn.put(b"large", b"y" * 2_000_000, db=database)
        environment.write(job)
        environment.close()
        print(path.name, "works")
"""


def newest_meta(data):
    """Return (root page of the free list, last page) of an LMDB 0.9 file."""
    metas = [data[: PAGE + 512], data[PAGE : 2 * PAGE + 512]]
    newest = max(metas, key=lambda meta: struct.unpack_from("<Q", meta, 144))
    return struct.unpack_from("<Q", newest, 80)[0], struct.unpack_from("<Q", newest, 136)[0]


def copies(tmp_path, data, sizes):
    """Write the first *size* bytes of *data* into a store of its own each; return the folders."""
    folders = []
    for name, size in sizes.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "data.mdb").write_bytes(data[:size])
        folders.append(folder)
    return folders


class TestTruncatedFiles:
    """They would end the process with SIGBUS, so another process opens them here."""

    def test_are_refused_wherever_they_end_and_left_as_they_are(self, open_environment, tmp_path):
        environment = open_environment(sync=False)
        for start in range(0, 400, 20):
            fill(environment, 20, 700, start=start)
        environment.close()
        data = (tmp_path / "store/data.mdb").read_bytes()
        last = newest_meta(data)[1]
        pages = {f"{n} pages": n * PAGE for n in (2, 3, last // 2, last - 2)}
        sizes = {**pages, "half a page more": (last // 2) * PAGE + PAGE // 2}
        answers = run_script(OPEN_EACH, *copies(tmp_path, data, sizes)).splitlines()
        assert len(answers) == len(sizes)
        for answer, name in zip(answers, sizes, strict=True):
            assert re.fullmatch(
                rf"{name} refused store '{tmp_path}/{name}' is truncated: data\.mdb ends before page "
                rf"\d+ of {len(data) // PAGE}; nothing was changed. Restore a copy, move it away, or "
                "use another store",
                answer,
            )

    def test_are_refused_where_only_the_header_is_left(self, open_environment, tmp_path):
        open_environment().close()
        data = (tmp_path / "store/data.mdb").read_bytes()
        sizes = {"one page": PAGE, "less": 100}
        for answer in run_script(OPEN_EACH, *copies(tmp_path, data, sizes)).splitlines():
            assert "refused" in answer
            assert "does not hold a readable store" in answer

    def test_are_refused_where_only_the_list_of_free_pages_is_missing(
        self, open_environment, tmp_path
    ):
        environment, pick = open_environment(sync=False), Random(1)
        for _ in range(200):
            fill(environment, pick.randint(1, 20), 300, start=pick.randrange(1000))
            data = (tmp_path / "store/data.mdb").read_bytes()
            free_list, last = newest_meta(data)
            if free_list == last:
                break
        assert free_list == last
        (folder,) = copies(tmp_path, data, {"cut": last * PAGE})
        assert run_script(OPEN_EACH, folder).startswith("cut refused")

    def test_are_accepted_where_only_free_pages_are_missing(self, open_environment, tmp_path):
        environment, pick = open_environment(sync=False), Random(2)
        database = environment.database("data")
        for _ in range(300):
            start = pick.randrange(1000)
            fill(environment, 20, 300, start=start)
            environment.write(
                lambda txn, start=start: [
                    txn.delete(b"%08d" % n, db=database) for n in range(start, start + 60)
                ]
            )
            data = (tmp_path / "store/data.mdb").read_bytes()
            last = newest_meta(data)[1]
            if last_page_is_free(tmp_path / "store", last):
                break
        else:
            pytest.fail("no state with a free page at the end")
        (folder,) = copies(tmp_path, data, {"cut": last * PAGE})
        assert run_script(OPEN_EACH, folder).strip() == "cut works"


def last_page_is_free(folder, last):
    """Whether LMDB reads all there is without the last page (tried in a copy, as it may kill)."""
    copy = folder.parent / "last page"
    copy.mkdir(exist_ok=True)
    (copy / "lock.mdb").unlink(missing_ok=True)
    data = (folder / "data.mdb").read_bytes()
    root_pages = (struct.unpack_from("<Q", data, offset + 80)[0] for offset in (0, PAGE))
    if last in root_pages:
        return False
    (copy / "data.mdb").write_bytes(data[: last * PAGE])
    command = [sys.executable, "-c", READ_ALL, copy]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


class TestWriting:
    def test_all_or_nothing_of_a_job_is_written(self, open_environment):
        environment = open_environment()
        put(environment, a="1")

        def job(txn):
            txn.put(b"a", b"2")
            txn.put(b"b", b"2")
            raise LookupError("half way")

        with pytest.raises(LookupError, match="half way"):
            environment.write(job)
        assert (get(environment, "a"), get(environment, "b")) == (b"1", None)

    def test_gives_back_what_the_job_returns(self, open_environment):
        assert open_environment().write(lambda txn: txn.put(b"a", b"1")) is True

    def test_errors_of_lmdb_come_as_store_errors(self, open_environment):
        with pytest.raises(StoreError, match=r"cannot write to store '.*': "):
            open_environment().write(lambda txn: txn.put(b"k" * 1000, b"1"))
        with pytest.raises(StoreError, match=r"cannot read store '.*': "):
            open_environment().read(lambda txn: txn.put(b"a", b"1"))

    def test_the_header_is_completed_but_not_changed(self, open_environment):
        environment = open_environment()
        assert environment.complete_header(layout="4c1")["layout"] == "4c1"
        completed = environment.complete_header(layout="6c3", kind="other", more=[1])
        assert (completed["layout"], completed["kind"], completed["more"]) == ("4c1", KIND, [1])
        assert environment.header() == completed

    def test_threads_take_turns(self, open_environment):
        environment = open_environment(sync=False)
        put(environment, count="0")

        def count_up(txn):
            txn.put(b"count", b"%d" % (int(txn.get(b"count")) + 1))

        threads = [
            threading.Thread(target=lambda: [environment.write(count_up) for _ in range(25)])
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert get(environment, "count") == b"200"


class TestGrowth:
    def test_a_put_into_a_full_map_redoes_the_whole_job(self, open_environment):
        environment = open_environment(map_size=TINY, sync=False)
        runs = [fill(environment, 50, 1000, start=50 * n) for n in range(20)]
        assert sum(runs) > len(runs), "nothing was redone: the map was large enough"
        assert entries(environment) == 1000
        assert environment.info()["map_size"] > TINY

    def test_a_map_that_is_full_at_the_commit_redoes_the_whole_job(self, open_environment):
        environment = open_environment(map_size=TINY, sync=False)
        finished, committed = 0, 0
        database = environment.database("data")
        for n in range(300):

            def job(txn, n=n):
                nonlocal finished
                txn.put(b"%08d" % n, b"x" * 3000, db=database)
                finished += 1

            environment.write(job)
            committed += 1
        assert finished > committed == 300, "no commit failed"
        assert entries(environment) == 300

    def test_one_job_may_need_many_enlargements(self, open_environment):
        environment = open_environment(map_size=TINY, sync=False)
        assert fill(environment, 1, 20_000_000) > 5
        assert entries(environment) == 1

    def test_a_temporary_store_grows_too(self, open_environment):
        environment = open_environment(None, map_size=TINY)
        fill(environment, 500, 1000)
        assert entries(environment) == 500

    def test_growth_by_another_process_is_followed(self, open_environment, tmp_path):
        environment = open_environment(map_size=TINY, sync=False)
        fill(environment, 1, 100)
        output = run_script(
            """
import sys
from scrapy_simdup.store.environment import Environment
environment = Environment.open(sys.argv[1], kind="trial", sync=False)
database = environment.database("data")
environment.write(
    lambda txn: [txn.put(b"theirs %d" % n, b"x" * 1000, db=database) for n in range(5000)]
)
print(environment.info()["map_size"])
environment.close()
""",
            tmp_path / "store",
        )
        assert int(output) > environment.info()["map_size"] == TINY
        assert entries(environment) == 5001
        fill(environment, 1, 100, start=1)
        assert entries(environment) == 5002

    def test_two_processes_may_grow_it_in_turns(self, open_environment, tmp_path):
        environment = open_environment(map_size=TINY, sync=False)
        other = start_script(
            """
import sys
from scrapy_simdup.store.environment import Environment
environment = Environment.open(sys.argv[1], kind="trial", map_size=1 << 16, sync=False)
database = environment.database("data")
for n in range(40):
    environment.write(
        lambda txn: [txn.put(b"theirs %d %d" % (n, m), b"x" * 500, db=database) for m in range(20)]
    )
environment.close()
""",
            tmp_path / "store",
        )
        with other:
            for n in range(40):
                fill(environment, 20, 500, start=20 * n)
            _, errors = other.communicate(timeout=60)
        assert (other.returncode, errors) == (0, "")
        assert entries(environment) == 1600


class TestSharing:
    def test_one_path_is_opened_once_a_process(self, open_environment, tmp_path):
        first, second = open_environment(), open_environment()
        assert first is second
        (tmp_path / "link").symlink_to(tmp_path / "store")
        assert open_environment("link") is first
        assert open_environment("store/../store") is first

    def test_the_last_user_closes_it(self, open_environment):
        first, second = open_environment(), open_environment()
        first.close()
        assert not second.closed
        put(second, a="1")
        second.close()
        assert second.closed
        assert open_environment() is not second

    def test_whoever_only_reads_shares_the_one_that_writes(self, open_environment):
        assert open_environment() is open_environment(readonly=True)

    def test_temporary_stores_are_not_shared(self, open_environment):
        first, second = open_environment(None), open_environment(None)
        put(first, a="1")
        assert get(second, "a") is None

    def test_closing_again_does_nothing(self, open_environment):
        environment = open_environment()
        environment.close()
        environment.close()
        again = open_environment()
        environment.close()
        put(again, a="1")

    def test_nothing_works_after_closing(self, open_environment, tmp_path):
        environment = open_environment()
        environment.close()
        message = f"store '{tmp_path}/store' is closed"
        for use in (
            environment.header,
            environment.info,
            lambda: environment.database("data"),
            lambda: environment.read(lambda txn: None),
            lambda: environment.write(lambda txn: None),
        ):
            with pytest.raises(StoreError) as refused:
                use()
            assert str(refused.value) == message

    def test_a_store_that_was_removed_and_made_anew_is_another_one(
        self, open_environment, tmp_path
    ):
        first = open_environment()
        put(first, a="1")
        for file in (tmp_path / "store").iterdir():
            file.unlink()
        assert get(open_environment(), "a") is None


class TestReadingOnly:
    def test_sees_what_is_there_and_may_not_write(self, open_environment):
        environment = open_environment()
        put(environment, a="1")
        environment.close()
        reading = open_environment(readonly=True)
        assert get(reading, "a") == b"1"
        with pytest.raises(StoreError, match="cannot write to store"):
            put(reading, a="2")

    def test_makes_no_databases(self, open_environment):
        open_environment().close()
        with pytest.raises(StoreError, match="has no database 'data'"):
            open_environment(readonly=True).database("data")


class TestTemporaryStores:
    def test_leave_nothing_behind_not_even_while_open(
        self, open_environment, tmp_path, monkeypatch
    ):
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        environment = open_environment(None)
        put(environment, a="1")
        assert get(environment, "a") == b"1"
        assert environment.path is None
        assert list(tmp_path.iterdir()) == []
        environment.close()
        assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
class TestAfterFork:
    """In a process of their own: pytest's has threads, and its children would run its clean-up."""

    SCRIPT = """
import os, sys
from scrapy_simdup import StoreError
from scrapy_simdup.store.environment import Environment

environment = Environment.open(sys.argv[1], kind="trial")
environment.write(lambda txn: txn.put(b"a", b"1"))
if os.fork() == 0:
    for use in (
        environment.header,
        environment.info,
        lambda: environment.read(lambda txn: txn.get(b"a")),
        lambda: environment.write(lambda txn: txn.put(b"a", b"2")),
        lambda: environment.database("data"),
        lambda: Environment.open(sys.argv[1], kind="trial"),
    ):
        try:
            use()
        except StoreError as error:
            print("child:", error)
        else:
            print("child: no error")
    environment.close()
    other = Environment.open(sys.argv[1] + "-of-the-child", kind="trial")
    other.write(lambda txn: txn.put(b"a", b"3"))
    print("child:", other.read(lambda txn: txn.get(b"a")))
    other.close()
    sys.stdout.flush()
    os._exit(0)
assert os.wait()[1] == 0
environment.write(lambda txn: txn.put(b"b", b"1"))
print("parent:", environment.read(lambda txn: (txn.get(b"a"), txn.get(b"b"))))
environment.close()
again = Environment.open(sys.argv[1], kind="trial")
print("parent:", again.read(lambda txn: (txn.get(b"a"), txn.get(b"b"))))
"""

    def test_the_child_is_told_and_the_parent_goes_on(self, tmp_path):
        lines = run_script(self.SCRIPT, tmp_path / "store").splitlines()
        used, opened, own, parent, reopened = lines[:5], *lines[5:]
        assert all(
            "was opened in process" in line and "fork first, then open it" in line for line in used
        )
        assert "was open when the process was forked; open it after the fork only" in opened
        assert own == "child: b'3'"
        assert parent == reopened == "parent: (b'1', b'1')"


class TestKilledProcesses:
    SCRIPT = """
import sys
from scrapy_simdup.store.environment import Environment

environment = Environment.open(sys.argv[1], kind="trial")
environment.write(lambda txn: txn.put(b"committed", b"1"))
def job(txn):
    txn.put(b"committed", b"2")
    txn.put(b"uncommitted", b"2" * 100_000)
    print("inside", flush=True)
    sys.stdin.read()
environment.write(job)
"""

    def test_leave_what_they_committed_and_no_lock(self, open_environment, tmp_path):
        with start_script(self.SCRIPT, tmp_path / "store") as process:
            assert process.stdout.readline() == "inside\n"
            process.send_signal(signal.SIGKILL)
            process.wait(60)
        environment = open_environment()
        assert get(environment, "committed") == b"1"
        assert get(environment, "uncommitted") is None
        put(environment, committed="3")
        assert get(environment, "committed") == b"3"

    def test_may_be_survived_by_others_that_wait_to_write(self, open_environment, tmp_path):
        environment = open_environment()
        with start_script(self.SCRIPT, tmp_path / "store") as process:
            assert process.stdout.readline() == "inside\n"
            waiting = threading.Thread(target=lambda: put(environment, ours="1"))
            waiting.start()
            process.send_signal(signal.SIGKILL)
            process.wait(60)
            waiting.join(60)
        assert not waiting.is_alive()
        assert (get(environment, "ours"), get(environment, "committed")) == (b"1", b"1")

    def test_give_their_places_as_readers_back(self, open_environment, tmp_path):
        environment = open_environment()  # while it is open, nobody makes the list anew
        with start_script(INSIDE, tmp_path / "store") as process:
            assert process.stdout.readline() == "inside\n"
            process.send_signal(signal.SIGKILL)
            process.wait(60)
        assert str(process.pid) in environment._env.readers()
        run_script(
            "import sys; from scrapy_simdup.store.environment import Environment;"
            "Environment.open(sys.argv[1], kind='trial').close()",
            tmp_path / "store",
        )
        assert str(process.pid) not in environment._env.readers()

    def test_hold_no_pages_of_a_long_crawl(self, open_environment, tmp_path, monkeypatch):
        """A reader that was killed would make the file grow until the crawl ends."""
        monkeypatch.setattr(environment_module, "_CLEAR_READERS", 50)
        environment = open_environment(sync=False)
        fill(environment, 20, 700)
        with start_script(INSIDE, tmp_path / "store") as process:
            assert process.stdout.readline() == "inside\n"
            process.send_signal(signal.SIGKILL)
            process.wait(60)
        for _ in range(50):
            fill(environment, 20, 700)
        grown = environment.info()["pages"]
        assert environment.stale_readers() == 0
        for _ in range(50):
            fill(environment, 20, 700)
        assert environment.info()["pages"] <= grown

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
    def test_may_fill_the_list_of_readers(self, open_environment, tmp_path):
        environment = open_environment()
        places = 600
        run_script(
            """
import os, signal, sys, lmdb
for _ in range(int(sys.argv[2])):
    if not os.fork():
        try:
            txn = lmdb.open(sys.argv[1], readonly=True, max_readers=510).begin()
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    os.wait()
""",
            tmp_path / "store",
            places,
        )
        assert environment.stale_readers() > 500
        assert get(environment, "header")
        assert environment.stale_readers() == 0
