from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_simdup import ConfigError
from scrapy_simdup.auditlog import FIELDS, AuditLog, encode

RECORD = {
    "time": "2026-11-30T12:00:00.000+00:00",
    "crawl": "news-20261130T120000-ab12",
    "spider": "news",
    "url": "https://example.org/b?q=ü",
    "referer": None,
    "kind": "near",
    "reason": "simhash",
    "duplicate_of": "https://example.org/a",
    "distance": 2,
    "resemblance": 0.9312,
    "containment": 0.97,
    "length_ratio": 0.99,
    "view": "main",
    "rule": "resemblance",
    "cut_off": False,
    "simhash": "00000000000000ff",
    "simhash_of": "00000000000000f8",
    "tokens": 301,
    "tokens_of": 300,
    "title": "故事",
    "title_of": None,
    "action": "drop",
    "bytes": 12345,
    "depth": 3,
}


@pytest.fixture
def log(tmp_path):
    log = AuditLog(tmp_path / "dropped.jsonl")
    yield log
    log.close()


def lines(log):
    return log.path.read_bytes().decode("utf-8").splitlines(keepends=True)


class TestAuditLog:
    def test_writes_one_line_of_json_a_record_at_once(self, log):
        for n in range(3):
            log.write({**RECORD, "distance": n})
            assert len(lines(log)) == n + 1
        assert [json.loads(line) for line in lines(log)] == [
            {**RECORD, "distance": n} for n in range(3)
        ]

    def test_goes_on_in_a_new_file_where_the_old_one_was_deleted(self, log):
        log.write(RECORD)
        log.path.unlink()
        log.write({**RECORD, "distance": 5})
        assert [json.loads(line)["distance"] for line in lines(log)] == [5]

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
    def test_says_when_a_record_could_not_be_written(self):
        log = AuditLog("/dev/full")
        for _ in range(2):
            with pytest.raises(OSError, match="No space left"):
                log.write(RECORD)
        log.close()

    def test_writes_all_fields_in_their_order(self, log):
        log.write({"url": "https://example.org/b", "kind": "exact", "unheard_of": 1})
        (line,) = lines(log)
        record = json.loads(line)
        assert list(record) == list(FIELDS)
        assert {name for name, value in record.items() if value is not None} == {"url", "kind"}

    def test_leaves_text_readable(self, log):
        log.write(RECORD)
        assert '"title": "故事"' in lines(log)[0]
        assert '"url": "https://example.org/b?q=ü"' in lines(log)[0]

    def test_makes_the_folder_of_its_file(self, tmp_path):
        log = AuditLog(tmp_path / "a/b/dropped.jsonl")
        log.close()
        assert (tmp_path / "a/b/dropped.jsonl").read_bytes() == b""

    def test_appends_to_what_is_there(self, tmp_path):
        for n in range(2):
            log = AuditLog(tmp_path / "dropped.jsonl")
            log.write({**RECORD, "distance": n})
            log.close()
        assert [json.loads(line)["distance"] for line in lines(log)] == [0, 1]

    def test_understands_a_path_in_the_home_folder(self, tmp_path, monkeypatch):
        monkeypatch.setenv("HOME", str(tmp_path))
        log = AuditLog("~/dropped.jsonl")
        log.close()
        assert log.path == tmp_path / "dropped.jsonl"
        assert log.path.exists()

    def test_knows_its_path_wherever_the_process_goes(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        log = AuditLog("dropped.jsonl")
        log.close()
        assert log.path == tmp_path / "dropped.jsonl"

    def test_writes_nothing_after_closing(self, log):
        log.close()
        log.close()
        with pytest.raises(ValueError, match="the log is closed"):
            log.write(RECORD)

    def test_may_be_written_by_several_logs_at_once(self, tmp_path):
        logs = [AuditLog(tmp_path / "dropped.jsonl") for _ in range(4)]
        threads = [
            threading.Thread(target=lambda log=log: [log.write(RECORD) for _ in range(50)])
            for log in logs
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for log in logs:
            log.close()
        assert [json.loads(line) for line in lines(logs[0])] == [RECORD] * 200


class TestFailures:
    def test_a_path_that_cannot_be_written_is_a_config_error(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(ConfigError) as refused:
            AuditLog(tmp_path / "file/sub/dropped.jsonl")
        assert str(refused.value) == (
            f"SIMDUP_LOG: '{tmp_path}/file/sub/dropped.jsonl' cannot be written: Not a directory; "
            "choose another path, or False for no log"
        )

    def test_a_path_that_is_a_folder_is_a_config_error(self, tmp_path):
        with pytest.raises(ConfigError, match="cannot be written: Is a directory; choose another"):
            AuditLog(tmp_path)

    @pytest.mark.parametrize("name", ["x" * 300, "a\0b", "a\ud800b"])
    def test_a_name_that_no_file_system_takes_is_a_config_error(self, tmp_path, name):
        with pytest.raises(ConfigError, match="cannot be written: "):
            AuditLog(tmp_path / name)

    @pytest.mark.skipif(sys.platform != "linux", reason="/dev/full is Linux's")
    def test_a_full_disk_is_an_os_error_and_closing_none(self):
        log = AuditLog("/dev/full")
        with pytest.raises(OSError, match="No space left on device"):
            log.write(RECORD)
        log.close()


class TestEncode:
    @pytest.mark.parametrize(
        "text",
        [
            "a\nb\r\nc",
            "\u2028 \u2029",
            "\x85",
            "\x1b[31mred\x1b[0m",
            "\x00\x07\x7f\x9f",
            "\u202eevil\u2066",
            "\ufeff\u200e\u061c",
            '"quoted" \\ and \\n',
            "😀 and 𝔘",
        ],
    )
    def test_is_one_line_that_is_safe_to_show_and_reads_back(self, text):
        line = encode({"url": text, "title": text})
        decoded = line.decode("utf-8")
        assert decoded.splitlines() == [decoded[:-1]]
        assert decoded.endswith("}\n")
        assert decoded[:-1].isprintable()
        assert json.loads(line) == {"url": text, "title": text}

    @pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\\\ud800"])
    def test_writes_lone_surrogates_as_escapes(self, text):
        line = encode({"title": text})
        line.decode("utf-8")
        assert json.loads(line) == {"title": text}

    @settings(derandomize=True, max_examples=200, deadline=None, database=None)
    @given(st.text(st.characters(exclude_categories=["Cs"])))
    def test_of_any_text_is_one_line_that_reads_back(self, text):
        line = encode({"title": text})
        assert json.loads(line) == {"title": text}
        assert len(line.decode("utf-8").splitlines()) == 1
