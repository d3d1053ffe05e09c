from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from material import page, story
from scrapy.cmdline import execute

from scrapy_simdup import Detector, FingerprintIndex, StoreError
from scrapy_simdup.cli import SUBCOMMANDS

ROOT = Path(__file__).parent.parent


@pytest.fixture
def store(tmp_path):
    with Detector(tmp_path / "pages", max_distance=8, expected_pages=1000) as detector:
        for n, template in ((1, "blog"), (1, "newspaper"), (2, "blog"), (1, "blog")):
            detector.check(
                f"https://example.org/{n}/{template}", page("A tale", story(n), template)
            )
        yield tmp_path / "pages"


@pytest.fixture
def scrapy(tmp_path, monkeypatch, capsys):
    """Run ``scrapy simdup …`` in a folder that is no project; return status, output, errors."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            execute(["scrapy", "simdup", *map(str, arguments)])
        return left.value.code, *capsys.readouterr()

    return run


@pytest.fixture
def scrapy_process(tmp_path):
    """The same, in a process of its own."""

    def run(*arguments):
        done = subprocess.run(
            [sys.executable, "-m", "scrapy", "simdup", *map(str, arguments)],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return done.returncode, done.stdout, done.stderr

    return run


class TestStats:
    def test_shows_what_a_store_holds(self, scrapy, store):
        status, output, errors = scrapy("stats", "--store", store)
        assert (status, errors) == (0, "")
        fields, crawls = output.split("\n\n")
        rows = dict(line.split("  ", 1) for line in fields.splitlines())
        rows = {name.strip(): value.strip() for name, value in rows.items()}
        assert list(rows) == [
            "store",
            "pages",
            "duplicates",
            "clusters",
            "bytes",
            "bytes per page",
            "layout",
            "configuration id",
            "configuration",
        ]
        assert (rows["store"], rows["pages"], rows["duplicates"]) == (str(store), "2", "1")
        assert "extractor trafilatura" in rows["configuration"]
        assert crawls.splitlines()[0].split()[:3] == ["id", "spider", "started"]

    def test_in_a_process_of_its_own(self, scrapy_process, store):
        status, output, errors = scrapy_process("stats", "--store", store)
        assert (status, errors) == (0, "")
        assert output.startswith(f"store             {store}\npages             2\n")

    def test_in_json(self, scrapy, store):
        status, output, errors = scrapy("stats", "--store", store, "--json")
        assert (status, errors) == (0, "")
        shown = json.loads(output)
        assert output.count("\n") == 1
        assert (shown["store"], shown["pages"], shown["duplicates"]) == (str(store), 2, 1)
        assert shown["bytes_per_page"] == round(shown["bytes"] / 3)
        assert shown["configuration"]["weights"] == "sqrt"
        assert len(shown["configuration_id"]) == 12

    def test_of_a_store_without_pages(self, scrapy, tmp_path):
        Detector(tmp_path / "pages").close()
        status, output, _ = scrapy("stats", "--store", "pages", "--json")
        shown = json.loads(output)
        assert (status, shown["pages"], shown["bytes_per_page"]) == (0, 0, None)

    def test_takes_the_store_of_the_settings(self, scrapy, store):
        status, output, _ = scrapy("stats", "-s", f"SIMDUP_STORE={store}", "--json")
        assert (status, json.loads(output)["pages"]) == (0, 2)

    def test_takes_options_before_and_behind_its_name(self, scrapy, store):
        settings = "-s", "SIMDUP_MIN_TOKENS=5"
        status, output, _ = scrapy(*settings, "--store", store, "--json", "stats", "-s", "A=b")
        assert (status, json.loads(output)["pages"]) == (0, 2)
        status, _, errors = scrapy("-s", "SIMDUP_MIN_TOKENS=0", "stats", "-s", "A=b")
        assert status == 1
        assert "SIMDUP_MIN_TOKENS" in errors

    def test_takes_the_default_store_of_a_spider(self, scrapy, tmp_path):
        with Detector(tmp_path / ".scrapy/simdup/a%2Fb") as detector:
            detector.check("https://example.org", text=story(1))
        status, output, _ = scrapy("stats", "--spider", "a/b", "--json")
        assert (status, json.loads(output)["pages"]) == (0, 1)


class TestRebuild:
    def test_lays_the_tables_out_anew_and_keeps_what_is_stored(self, scrapy, store):
        status, output, errors = scrapy(
            "rebuild", "--store", store, "--expected", "100000000", "--json"
        )
        assert (status, errors) == (0, "")
        shown = json.loads(output)
        assert shown["layout"] != shown["layout_before"]
        with Detector(store, max_distance=8) as detector:
            assert detector.info().layout == shown["layout"]
            copy = page("A tale", story(1), "newspaper") + " "
            assert detector.check("https://example.org/copy", copy).is_duplicate

    def test_serves_a_larger_distance_afterwards(self, scrapy, tmp_path):
        with Detector(tmp_path / "pages", max_distance=0, expected_pages=10**11) as detector:
            detector.check("https://example.org", text=story(1))
        with pytest.raises(StoreError, match="laid out for a smaller max_distance"):
            Detector(tmp_path / "pages", max_distance=11)
        arguments = ["rebuild", "--store", "pages", "-s", "SIMDUP_MAX_DISTANCE=11"]
        assert scrapy(*arguments)[0] == 0
        Detector(tmp_path / "pages", max_distance=11).close()

    def test_of_no_store_is_one_line(self, scrapy, tmp_path):
        status, output, errors = scrapy("rebuild", "--store", "none")
        assert (status, output, errors.count("\n")) == (1, "", 1)
        assert scrapy("rebuild", "--store", "none", "--expected", "0")[0] == 2


class TestFailures:
    def fails(self, result, status, message):
        found, output, errors = result
        assert (found, output, errors) == (status, "", message + "\n")

    def test_a_store_that_is_not_there_is_one_line_and_status_1(self, scrapy, tmp_path):
        result = scrapy("stats", "--store", tmp_path / "nowhere")
        self.fails(result, 1, f"scrapy simdup: there is no store at '{tmp_path}/nowhere'")
        assert not (tmp_path / "nowhere").exists()

    def test_have_their_status_in_a_process_of_its_own(self, scrapy_process, tmp_path):
        result = scrapy_process("stats", "--store", tmp_path / "nowhere")
        self.fails(result, 1, f"scrapy simdup: there is no store at '{tmp_path}/nowhere'")
        assert scrapy_process("stats", "--stroe", "pages")[0] == 2

    def test_a_store_that_is_damaged_is_one_line_and_status_1(self, scrapy, tmp_path):
        (tmp_path / "pages").mkdir()
        (tmp_path / "pages/data.mdb").write_bytes(b"garbage" * 5000)
        status, output, errors = scrapy("stats", "--store", "pages")
        assert (status, output, errors.count("\n")) == (1, "", 1)
        assert "does not hold a readable store" in errors

    def test_a_store_of_another_kind_is_one_line_and_status_1(self, scrapy, tmp_path):
        FingerprintIndex(tmp_path / "index").close()
        result = scrapy("stats", "--store", "index")
        self.fails(
            result,
            1,
            f"scrapy simdup: store '{tmp_path}/index' holds 'fingerprints', not 'pages'; give each "
            "store a folder of its own",
        )

    def test_a_setting_that_is_wrong_is_one_line_and_status_1(self, scrapy):
        result = scrapy("stats", "-s", "SIMDUP_MAX_DISTANCE=99")
        self.fails(
            result,
            1,
            "scrapy simdup: SIMDUP_MAX_DISTANCE = '99': must be a whole number from 0 to 11",
        )

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("wipe", "--store", "pages"), "invalid choice: 'wipe'"),
            (("stats", "wipe", "--store", "pages"), "unknown: wipe"),
            (("stats", "--stroe", "pages"), "unknown: --stroe pages"),
            (("stats", "--store", "pages", "-x"), "unknown: -x"),
            ((), f"say what; there is: {', '.join(SUBCOMMANDS)}"),
            (("stats",), "say which store: --store FOLDER, --spider NAME, or SIMDUP_STORE"),
        ],
    )
    def test_a_command_line_that_is_wrong_is_status_2(self, scrapy, arguments, message):
        status, output, errors = scrapy(*arguments)
        assert status == 2
        assert message in output + errors


class TestTheCommand:
    def test_says_what_it_can_do(self, scrapy):
        status, output, _ = scrapy("-h")
        assert status == 0
        assert "Lay the tables of a store out anew" in output

    def test_costs_other_commands_no_import_of_numpy_lmdb_or_trafilatura(self):
        script = (
            "import sys, scrapy_simdup.command;"
            "print(sorted({'numpy', 'lmdb', 'trafilatura', 'jieba'} & set(sys.modules)))"
        )
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert done.stdout == "[]\n"
