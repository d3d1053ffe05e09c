"""``doctor``, ``rollback``, ``purge`` and ``compact``: what is left is whole."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import lmdb
import msgspec
import pytest
from crawl_site import article

from scrapy_simdup import Detector, upkeep
from scrapy_simdup.config import Config
from scrapy_simdup.doctor import diagnose
from scrapy_simdup.store.lmdb import Writer
from scrapy_simdup.store.reading import StoreReader
from scrapy_simdup.store.records import Record
from scrapy_simdup.upkeep import Upkeep

from .conftest import FIRST, HOSTILE, SECOND, fill

ROOT = Path(__file__).parents[2]


def healthy(simdup, store):
    ran = simdup("doctor", "--store", store, "--json")
    assert ran.row["findings"] == []
    return ran.status == 0


def pages(store):
    """What is said of every page: its URL, and that of the page it duplicates."""
    with StoreReader(store) as reader:
        records = dict(reader.records())
    return {
        record.url: records[record.representative].url if record.representative else None
        for record in records.values()
    }


def raw(store, name, change):
    """Change a database by hand."""
    with (
        lmdb.open(str(store), max_dbs=20) as env,
        env.begin(write=True) as txn,
    ):
        dup = name in ("bodies", "texts", "holders", "aliases")
        database = env.open_db(name.encode(), txn=txn, create=False, dupsort=dup, dupfixed=dup)
        change(txn, database)


class TestDoctor:
    def test_finds_nothing_wrong_with_a_store_of_two_crawls(self, simdup, store):
        ran = simdup("doctor", "--store", store)
        assert (ran.status, ran.errors) == (0, "")
        assert ran.output.splitlines()[-1] == "nothing wrong"
        found = simdup("doctor", "--store", store, "--json").row
        assert (found["healthy"], found["pages"], found["duplicates"]) == (True, 4, 5)
        assert found["largest_bucket"] >= found["mean_bucket"] > 0
        assert found["planner"][0].startswith("distance 9, ")

    def test_of_a_store_without_pages(self, simdup, tmp_path):
        Detector(tmp_path / "empty").close()
        assert healthy(simdup, "empty")

    @pytest.mark.parametrize(
        ("name", "change", "message"),
        [
            (
                "keys",
                lambda t, d: t.delete(next(iter(t.cursor(d)))[0], db=d),
                "index keys: 1 entries",
            ),
            (
                "keys",
                lambda t, d: t.put(b"x", bytes(8), db=d),
                "index keys: 0 entries are missing, 1",
            ),
            ("bodies", lambda t, d: t.drop(d, delete=False), "index bodies: 4 entries are missing"),
            ("texts", lambda t, d: t.put(bytes(16), bytes(8), db=d), "index texts: 0 entries"),
            (
                "holders",
                lambda t, d: t.put(bytes(8), b"8 bytes.", db=d),
                "index holders: 0 entries",
            ),
            (
                "aliases",
                lambda t, d: t.drop(d, delete=False),
                "index aliases: 5 entries are missing",
            ),
            (
                "tables",
                lambda t, d: t.delete(list(t.cursor(d))[-1][0], db=d),
                "table 5: buckets of",
            ),
            ("tables", lambda t, d: t.put(b"\0", bytes(7) + b"\x09", db=d), "the tables count 9"),
            ("hosts", lambda t, d: t.put(b"h" * 16, b"odd", db=d), "what is learned of 1 hosts"),
            ("crawls", lambda t, d: t.put(b"c" * 16, b"\xc1", db=d), "damaged list of crawls"),
            (
                "pages",
                lambda t, d: t.put((4).to_bytes(8, "big"), b"\xc1", db=d),
                "the record of page 4",
            ),
            ("pages", lambda t, d: t.delete((1).to_bytes(8, "big"), db=d), "not kept"),
        ],
    )
    def test_finds_and_repairs_what_is_damaged(self, simdup, store, name, change, message):
        raw(store, name, change)
        ran = simdup("doctor", "--store", store)
        assert ran.status == 1
        assert message in ran.output
        assert "scrapy simdup doctor --repair" in ran.output
        repaired = simdup("doctor", "--store", store, "--repair", "--json")
        assert (repaired.status, repaired.row["findings"]) == (0, [])
        assert repaired.row["repaired"] is not None
        assert healthy(simdup, store)
        said = pages(store)
        assert all(of is None or said[of] is None for of in said.values())
        with Detector(store) as detector:
            assert detector.check("https://new.example/", article(4, edits=1)).kind == "near"

    @pytest.mark.parametrize(
        "change",
        [
            {"body_digest": b"abc"},
            {"body_digest": b""},
            {"representative": -3},
            {"representative": 4},
            {"simhash": -5},
            {"digest": b"x"},
            {"sketch": b"ab"},
            {"views": ()},
            {"key": b""},
            {"key": b"k" * 600},
        ],
        ids=str,
    )
    def test_finds_and_repairs_records_that_cannot_be(self, simdup, store, change):
        def damage(txn, database):
            page_id = (4).to_bytes(8, "big")
            record = msgspec.msgpack.decode(txn.get(page_id, db=database), type=Record)
            profile, [(name, value)] = record.profile, change.items()
            replace = msgspec.structs.replace
            if name in ("simhash", "digest", "sketch"):
                views = tuple(replace(view, **change) for view in profile.views)
                record = replace(record, profile=replace(profile, views=views))
            elif name == "views":
                record = replace(record, profile=replace(profile, views=value))
            else:
                record = replace(record, **change)
            txn.put(page_id, msgspec.msgpack.encode(record), db=database)

        raw(store, "pages", damage)
        ran = simdup("doctor", "--store", store)
        assert (ran.status, ran.errors) == (1, "")
        assert simdup("doctor", "--store", store, "--repair").status == 0
        assert healthy(simdup, store)

    @pytest.mark.parametrize("odd", [b"?", bytes(7) + b"\x04?"])
    def test_finds_and_repairs_what_is_no_page_id(self, simdup, store, odd):
        before = pages(store)
        raw(store, "pages", lambda txn, database: txn.put(odd, b"\xc1", db=database))
        ran = simdup("doctor", "--store", store)
        assert (ran.status, ran.errors) == (1, "")
        assert f"page id {odd.hex()}, which is none" in ran.output
        repaired = simdup("doctor", "--store", store, "--repair", "--json")
        assert repaired.row["repaired"]["records_forgotten"] == 1
        assert healthy(simdup, store)
        assert pages(store) == before

    def test_readers_of_killed_processes_are_told_of_and_cleared(self, simdup, store):
        script = (
            "import lmdb, os, sys\ntxn = lmdb.open(sys.argv[1], max_dbs=20).begin()\nos._exit(0)\n"
        )
        with StoreReader(store):  # the last one to close a store makes its list of readers anew
            subprocess.run([sys.executable, "-c", script, str(store)], check=True, timeout=60)
            found = simdup("doctor", "--store", store, "--json")
            assert (found.status, found.row["stale_readers"]) == (0, 1)
            assert "doctor --repair" in found.row["remarks"][-1]
            # In a process of its own: this one has the store open for reading.
            command = [sys.executable, "-m", "scrapy", "simdup", "doctor", "--repair", "--json"]
            done = subprocess.run(
                [*command, "--store", str(store)],
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                capture_output=True,
                timeout=60,
                check=True,
            )
            assert json.loads(done.stdout)["repaired"] == {"readers_cleared": 1}
            assert simdup("doctor", "--store", store, "--json").row["stale_readers"] == 0

    def test_all_at_once_and_hostile_addresses(self, simdup, store):
        for name in ("keys", "bodies", "texts", "holders", "tables", "aliases"):
            raw(store, name, lambda txn, database: txn.drop(database, delete=False))
        raw(store, "pages", lambda txn, database: txn.delete((5).to_bytes(8, "big"), db=database))
        assert simdup("doctor", "--store", store).status == 1
        assert simdup("doctor", "--store", store, "--repair").status == 0
        assert healthy(simdup, store)

    def test_remarks_on_a_store_that_was_killed_or_is_too_small(self, simdup, tmp_path):
        with Detector(tmp_path / "s", crawl="killed", expected_pages=10) as detector:
            detector.note_crawl("spider").result()
        [remark] = simdup("doctor", "--store", "s", "--json").row["remarks"]
        assert remark == "1 crawls have not ended: they run, or were killed (killed)"


class TestRollback:
    def test_takes_back_what_a_crawl_added(self, simdup, store):
        before = pages(store)
        ran = simdup("rollback", "second", "--store", store, "--dry-run", "--json")
        assert ran.row == {
            "crawl": "second",
            "kept": 1,
            "duplicates": 2,
            "renewed_only": 1,
            "dry_run": True,
        }
        assert pages(store) == before
        ran = simdup("rollback", "sec", "--store", store, "--json")
        assert (ran.status, ran.row["kept"], ran.row["duplicates"]) == (0, 1, 2)
        assert pages(store) == {
            url: of
            for url, of in before.items()
            if url not in SECOND or url == "https://example.org/2"
        }
        assert healthy(simdup, store)
        stats = simdup("stats", "--store", store, "--json").row
        assert "second" not in [crawl["id"] for crawl in stats["crawls"]]
        again = simdup("rollback", "second", "--store", store)
        assert again.status == 1
        assert "no crawl is called second; there are: first" in again.errors

    def test_finds_other_pages_for_duplicates_that_are_left(self, simdup, tmp_path):
        fill(tmp_path / "s", "a", {"https://a/1": article(1), "https://a/2": article(2)})
        near = {f"https://b/{n}": article(1, edits=1, variant=n) for n in range(5)}
        fill(tmp_path / "s", "b", {**near, "https://b/2": article(2)})
        ran = simdup("rollback", "a", "--store", "s", "--json")
        assert (ran.row["kept"], ran.row["promoted"], ran.row["resettled"]) == (2, 2, 3)
        said = pages(tmp_path / "s")
        assert [url for url, of in said.items() if of is None] == ["https://b/0", "https://b/2"]
        assert {of for of in said.values() if of} == {"https://b/0"}
        assert healthy(simdup, "s")
        with Detector(tmp_path / "s", expected_pages=1000) as detector:
            assert detector.check("https://c/", article(1)).duplicate_of == "https://b/0"

    def test_of_a_crawl_there_is_not_names_those_there_are(self, simdup, store):
        ran = simdup("rollback", "third", "--store", store)
        assert ran == (
            1,
            "",
            "scrapy simdup: no crawl is called third; there are: first, second\n",
        )
        fill(store, "seventh", {})
        assert "2 crawls begin with se" in simdup("rollback", "se", "--store", store).errors

    @pytest.mark.parametrize("seed", range(3))
    def test_of_any_crawl_leaves_a_whole_store(self, simdup, tmp_path, seed):
        chance = random.Random(seed)
        for crawl in "abcd":
            fill(
                tmp_path / "s",
                crawl,
                {
                    f"https://{chance.randrange(3)}.example/{chance.randrange(40)}": article(
                        chance.randrange(12), edits=chance.randrange(3), variant=chance.randrange(4)
                    )
                    for _ in range(25)
                },
            )
        for crawl in chance.sample("abcd", 3):
            assert simdup("rollback", crawl, "--store", "s").status == 0
            assert healthy(simdup, "s")
            said = pages(tmp_path / "s")
            assert all(of is None or said[of] is None for of in said.values())

    def test_killed_in_the_middle_it_goes_on_where_it_was(self, simdup, tmp_path):
        pages_of_a = {f"https://a/{n}": article(n) for n in range(30)}
        fill(tmp_path / "s", "a", pages_of_a)
        fill(tmp_path / "s", "b", {f"https://b/{n}": article(n, edits=1) for n in range(30)})
        script = (
            "import os, sys\n"
            "from scrapy_simdup import upkeep\n"
            "from scrapy_simdup.config import Config\n"
            "upkeep._BATCH = 7\n"
            "with upkeep.Upkeep.opened(sys.argv[1], Config()) as keep:\n"
            "    keep.remove(range(30, 0, -1), lambda done: done > 14 and os._exit(9))\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", script, str(tmp_path / "s")],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            timeout=60,
            check=False,
        )
        assert done.returncode == 9
        assert healthy(simdup, "s")
        with StoreReader(tmp_path / "s") as reader:
            left = sum(record.added_by == "a" for _, record in reader.records())
        assert left == 15
        assert simdup("rollback", "a", "--store", "s").status == 0
        assert healthy(simdup, "s")
        assert len(pages(tmp_path / "s")) == 30

    @pytest.mark.parametrize("alias", [9, 999])
    def test_of_a_damaged_store_says_to_repair_it(self, simdup, tmp_path, alias):
        fill(tmp_path / "s", "a", {f"https://a/{n}": article(n) for n in range(10)})
        entry = (1).to_bytes(8, "big"), alias.to_bytes(8, "big")
        raw(tmp_path / "s", "aliases", lambda txn, database: txn.put(*entry, db=database))
        ran = simdup("rollback", "a", "--store", "s")
        assert (ran.status, ran.errors.count("\n")) == (1, 1)
        assert "doctor --repair, then try again" in ran.errors
        assert simdup("doctor", "--repair", "--store", "s").status == 0
        assert simdup("rollback", "a", "--store", "s").status == 0
        assert pages(tmp_path / "s") == {}

    @pytest.mark.parametrize("batch", [2, 5])
    def test_a_large_cluster_takes_several_transactions(self, monkeypatch, tmp_path, simdup, batch):
        monkeypatch.setattr(upkeep, "_BATCH", batch)
        fill(tmp_path / "s", "a", {"https://a/0": article(0), "https://a/1": article(1)})
        near = {f"https://b/{n}": article(1, edits=1, variant=n) for n in range(11)}
        fill(tmp_path / "s", "b", near)
        written = []
        write = Writer.write

        def whole_after_each(self, job):
            result = write(self, job)
            with StoreReader(tmp_path / "s") as reader:
                written.append(diagnose(reader, 9, lambda done, total: None).findings)
            return result

        monkeypatch.setattr(Writer, "write", whole_after_each)
        ran = simdup("rollback", "a", "--store", "s", "--json")
        assert (ran.row["kept"], ran.row["promoted"], ran.row["resettled"]) == (2, 1, 10)
        assert len(written) > 11 / batch
        assert not any(written)
        said = pages(tmp_path / "s")
        assert said.pop("https://b/0") is None
        assert set(said.values()) == {"https://b/0"}

    def test_no_page_becomes_a_duplicate_of_one_that_is_leaving_as_well(self, simdup, tmp_path):
        far = {"min_resemblance": 0.8}
        fill(tmp_path / "s", "a", {"https://a/1": article(1)})
        with Detector(tmp_path / "s", crawl="a", max_distance=0, **far) as detector:
            detector.check("https://a/2", article(1, edits=1))  # kept beside the one it is like
        fill(tmp_path / "s", "b", {f"https://b/{n}": article(1, edits=n) for n in range(3)})
        ran = simdup("rollback", "a", "--store", "s", "--json")
        assert (ran.row["promoted"], ran.row["resettled"]) == (1, 2)
        said = pages(tmp_path / "s")
        assert list(said.values()).count(None) == 1
        assert healthy(simdup, "s")


class TestPurge:
    def test_by_host_and_its_subdomains(self, simdup, store):
        ran = simdup(
            "purge", "--host", "example.net", "--host", "EVIL.example", "--store", store, "--json"
        )
        assert (ran.status, ran.row["kept"], ran.row["duplicates"]) == (0, 1, 1)
        assert ran.row["promoted"] == 1  # what was a duplicate of the page at evil.example
        said = pages(store)
        assert said["https://example.org/3"] is None
        assert not [url for url in said if "example.net" in url or "evil" in url]
        assert healthy(simdup, store)

    def test_by_age(self, simdup, store):
        assert simdup("purge", "--older-than", "1h", "--store", store, "--json").row["kept"] == 0
        moment = time.time()
        fill(store, "third", {"https://example.org/1": article(1)})
        ran = simdup(
            "purge",
            "--older-than",
            time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment))
            + f".{int(moment % 1 * 1e6):06}",
            "--store",
            store,
            "--json",
        )
        assert ran.row["kept"] + ran.row["duplicates"] == 8
        assert list(pages(store)) == ["https://example.org/1"]
        assert healthy(simdup, store)

    def test_both_means_both(self, simdup, store):
        ran = simdup("purge", "--older-than", "1h", "--host", "example.org", "--store", store, "-n")
        assert ran.output.split() == ["kept", "0", "duplicates", "0", "dry", "run", "yes"]

    def test_of_nothing_is_wrong(self, simdup, store):
        assert simdup("purge", "--store", store).status == 2
        assert "is no time" in simdup("purge", "--older-than", "old", "--store", store).errors
        assert simdup("purge", "--host", "x", "--store", "none").status == 1

    def test_while_a_crawl_writes(self, simdup, tmp_path):
        script = (
            "import sys\n"
            "from scrapy_simdup import Detector\n"
            "with Detector(sys.argv[1], crawl='live') as detector:\n"
            "    for line in sys.stdin:\n"
            "        print(detector.check(*line.rstrip('\\n').split(' ', 1)).kind, flush=True)\n"
        )
        fill(tmp_path / "s", "a", {"https://a/1": article(1)})
        with subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path / "s")],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as crawl:

            def ask(url, html):
                crawl.stdin.write(f"{url} {' '.join(html.split())}\n")
                crawl.stdin.flush()
                return crawl.stdout.readline().strip()

            assert ask("https://b/1", article(1)) == "exact"
            assert simdup("purge", "--host", "a", "--store", "s", "--json").row["promoted"] == 1
            assert simdup("compact", "--store", "s").status == 1
            assert simdup("compact", "--store", "s", "--out", "copy").status == 0
            assert simdup("doctor", "--store", "s").status == 0
            assert ask("https://c/1", article(1)) == "exact"
            crawl.stdin.close()
            crawl.wait(30)
        assert pages(tmp_path / "s") == {"https://b/1": None, "https://c/1": "https://b/1"}
        assert healthy(simdup, "copy")


class TestCompact:
    def test_gives_space_back(self, simdup, tmp_path):
        fill(tmp_path / "s", "a", {f"https://a/{n}": article(n) for n in range(150)})
        fill(tmp_path / "s", "b", FIRST)
        simdup("rollback", "a", "--store", "s")
        before = pages(tmp_path / "s")
        ran = simdup("compact", "--store", "s", "--json")
        assert ran.status == 0
        assert ran.row["bytes"] < ran.row["bytes_before"] / 2
        assert (tmp_path / "s/data.mdb").stat().st_size == ran.row["bytes"]
        assert pages(tmp_path / "s") == before
        assert healthy(simdup, "s")
        assert sorted(path.name for path in (tmp_path / "s").iterdir()) == ["data.mdb", "lock.mdb"]

    def test_not_while_this_process_has_it_open(self, simdup, store):
        with Detector(store) as detector:
            ran = simdup("compact", "--store", store)
            assert (ran.status, ran.errors.count("\n")) == (1, 1)
            assert "is open in this process; close it" in ran.errors
            detector.check("https://new.example/", article(40))
        assert "https://new.example/" in pages(store)

    def test_a_copy_elsewhere(self, simdup, store, tmp_path):
        ran = simdup("compact", "--store", store, "--out", "copy", "--json")
        assert ran.status == 0
        assert pages(tmp_path / "copy") == pages(store)
        again = simdup("compact", "--store", store, "--out", "copy")
        assert "already; choose another folder" in again.errors
        assert simdup("compact", "--store", "none").status == 1


def test_another_configuration_is_refused(simdup, store):
    for arguments in (("rollback", "first"), ("purge", "--host", "example.org")):
        ran = simdup(*arguments, "--store", store, "-s", "SIMDUP_WEIGHTS=tf")
        assert (ran.status, ran.errors.count("\n")) == (1, 1)
        assert "weights" in ran.errors


def test_a_removal_says_what_it_did(store):
    with Upkeep.opened(store, Config()) as keep:
        done = []
        removal = keep.remove([1, 999], done.append)
    assert (removal.kept, removal.duplicates, done) == (1, 0, [2])
    assert json.dumps(vars(removal))
    assert HOSTILE
