"""``stats``, ``clusters``, ``alternates`` and ``explain``: what is in a store, and why."""

from __future__ import annotations

import math
import os
import subprocess
from datetime import datetime

import pytest
from crawl_site import article

from scrapy_simdup.cli.output import moment

from .conftest import HOSTILE, TITLE


class TestClusters:
    def test_are_listed_the_largest_first(self, simdup, store):
        rows = simdup("clusters", "--store", store, "--json").rows
        assert [(row["url"], row["duplicates"]) for row in rows[:1]] == [
            ("https://example.org/1", 2)
        ]
        assert rows[0]["hosts"] == {"example.org": 1, "www.example.net": 1}
        assert [row["duplicates"] for row in rows] == [2, 1, 1, 1]
        assert {row["url"] for row in rows[1:]} == {
            "https://example.org/2",
            "https://example.org/4",
            HOSTILE.replace("\ud800", "\\ud800")[:8192],
        }

    def test_limit_and_size(self, simdup, store):
        assert len(simdup("clusters", "--store", store, "--json", "--limit", 2).rows) == 2
        assert len(simdup("clusters", "--store", store, "--json", "--min-size", 2).rows) == 1
        ran = simdup("clusters", "--store", store, "--min-size", 9)
        assert ran == (0, "no page has so many duplicates\n", "")
        assert simdup("clusters", "--store", store, "--limit", 0).status == 2

    def test_in_a_table_what_comes_from_the_web_is_harmless(self, simdup, store):
        output = simdup("clusters", "--store", store).output
        assert len(output.splitlines()) == 5
        assert "https://evil.example/\\x1b[31m\\u202e<script>" in output
        assert TITLE.replace("\u202e", "\\u202e") in output


class TestAlternates:
    @pytest.mark.parametrize(
        "url", ["https://example.org/1", "https://example.org/1?print", "https://www.example.net/1"]
    )
    def test_are_the_whole_cluster_from_whichever_page(self, simdup, store, url):
        rows = simdup("alternates", url, "--store", store, "--json").rows
        assert [(row["url"], row["kept"]) for row in rows] == [
            ("https://example.org/1", True),
            ("https://example.org/1?print", False),
            ("https://www.example.net/1", False),
        ]
        assert [row.get("kind") for row in rows] == [None, "near", "exact"]

    def test_of_an_unknown_address_say_which_one_was_meant(self, simdup, store):
        ran = simdup("alternates", "http://example.org/2/", "--store", store)
        assert ran.status == 1
        assert ran.errors == (
            f"scrapy simdup: no page of store '{store}' has the address http://example.org/2/; "
            "there is https://example.org/2\n"
        )
        assert "there is" not in simdup("alternates", "http://[::1", "--store", store).errors


class TestExplain:
    def test_says_which_rule_decided_and_by_what(self, simdup, store):
        pair = "https://example.org/1", "https://example.org/1?print"
        found = simdup("explain", *pair, "--store", store, "--json").row
        assert found["near"] is True
        assert [found[name]["stored"] for name in "ab"] == ["kept", "duplicate"]
        main = found["views"][0]
        assert main["rule"] == "resemblance"
        assert main["rule_says"] == "within the distance, and alike enough"
        assert len(main["bits"]) == main["distance"] > 0
        a, b = (int(found[name]["views"]["main"]["simhash"], 16) for name in "ab")
        assert sum(1 << bit for bit in main["bits"]) == a ^ b
        assert len(found["tokens"]["only_b"]) == found["tokens"]["distinct"]["only_b"] == 1
        [(edited, weight)] = found["tokens"]["only_b"].items()
        assert (edited.startswith("edited1of1"), weight) == (True, 1.0)
        signs = [sign for sign, _ in found["diff"]]
        assert (signs.count("-"), signs.count("+")) == (1, 1)

    def test_for_people_with_the_differences(self, simdup, store):
        output = simdup(
            "explain", "https://example.org/1", "https://example.org/1?print", "--store", store
        ).output
        assert "\nduplicates: within the distance, and alike enough\n" in output
        assert "\ndifferences of the texts (- A, + B):\n" in output
        assert sum(line.startswith("+ ") for line in output.splitlines()) == 1

    def test_of_files_as_compare_has_it(self, simdup, store, tmp_path):
        from scrapy_simdup import compare

        for name, html in (("a", article(7)), ("b", article(7, edits=3)), ("c", article(8))):
            (tmp_path / f"{name}.html").write_text(html)
        found = simdup("explain", "a.html", "b.html", "--store", store, "--json").row
        wanted = compare(article(7), article(7, edits=3))
        main = found["views"][0]
        assert (main["distance"], main["resemblance"]) == (wanted.distance, wanted.resemblance)
        assert (found["near"], main["rule"]) == (wanted.near, wanted.rule)
        found = simdup("explain", "a.html", "c.html", "--store", store, "--json").row
        assert (found["near"], found["views"][0]["rule"]) == (False, "distance")
        assert found["reason"] == "not within it"

    def test_hostile_pages(self, simdup, store):
        ran = simdup(
            "explain",
            HOSTILE.replace("\ud800", "\\ud800")[:8192],
            "https://example.org/3",
            "--store",
            store,
        )
        assert ran.status == 0
        assert "duplicates: " in ran.output
        assert "[bold]" in ran.output

    def test_of_a_page_that_is_skipped_or_not_there_is_one_line(self, simdup, store, tmp_path):
        (tmp_path / "short.html").write_text("<p>Too short.")
        ran = simdup("explain", "short.html", "https://example.org/1", "--store", store)
        assert ran == (
            1,
            "",
            (
                "scrapy simdup: short.html would be skipped: fewer than SIMDUP_MIN_TOKENS tokens of "
                "text (too_short)\n"
            ),
        )
        assert simdup("explain", "none.html", "x", "--store", store).status == 1


def test_stats_tell_of_crawls_and_clusters(simdup, store):
    found = simdup("stats", "--store", store, "--json").row
    assert (found["pages"], found["duplicates"], found["clusters"]) == (4, 5, 4)
    assert [(crawl["id"], crawl["added"], crawl["checked"]) for crawl in found["crawls"]] == [
        ("first", 6, 6),
        ("second", 3, 4),
    ]
    output = simdup("stats", "--store", store).output
    assert "clusters          4\n" in output
    assert "first   spider" in output


def test_a_file_that_cannot_be_written(simdup, store, tmp_path):
    for command in ("export", "report"):
        for name in ("", "/", "no/such/folder/file", "x" * 300, tmp_path):
            ran = simdup(command, "--store", store, "--out", name)
            assert ran.status == 1, (command, name)
            assert "cannot be written" in ran.errors or "is no name of a file" in ran.errors
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_times_are_written_down(simdup, store):
    rows = simdup("alternates", "https://example.org/1", "--store", store, "--json").rows
    assert all(datetime.fromisoformat(row["last_seen"]).year >= 2026 for row in rows)
    assert moment(1e300) is None
    assert moment(math.nan) is None
    assert moment(None) is None


def test_what_is_no_number_is_null_in_json(simdup, tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_text('{"kind": "near", "url": "https://a.example/", "distance": NaN, "x": [1e999]}\n')
    ran = simdup("log", log, "--json")
    assert ran.row["distance"] is None
    assert ran.row["x"] == [None]


@pytest.mark.skipif(os.name == "nt", reason="no pipes with names")
def test_links_are_followed_and_pipes_and_devices_written_to(simdup, store, tmp_path):
    target, link = tmp_path / "target.jsonl", tmp_path / "link.jsonl"
    target.write_text("old")
    link.symlink_to(target)
    assert simdup("export", "--store", store, "--out", link).status == 0
    assert link.is_symlink()
    assert target.read_text().startswith('{"simdup_export"')
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
        assert simdup("export", "--store", store, "--out", pipe).status == 0
        assert reader.communicate(timeout=30)[0].count(b"\n") == target.read_bytes().count(b"\n")
    assert pipe.is_fifo()
