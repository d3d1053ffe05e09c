"""``scrapy simdup replay``: the crawl's own options change nothing, others what they would."""

from __future__ import annotations

import random

import pytest
from crawl_site import article

from scrapy_simdup import Detector

from .conftest import FIRST, SECOND, fill


def replayed(simdup, store, *arguments):
    ran = simdup("replay", "--store", store, "--json", *arguments)
    assert (ran.status, ran.errors) == (0, "")
    return ran.row


def test_the_crawls_own_options_change_nothing(simdup, store):
    found = replayed(simdup, store)
    assert (found["pages"], found["changed"], found["changes"]) == (9, 0, [])
    assert found["decided_otherwise_offline"] == 0
    assert found["was"] == found["would_be"] == {"unique": 4, "exact": 2, "near": 3}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "options",
    [{}, {"max_distance": 3, "min_resemblance": None}, {"keep_siblings": False, "min_tokens": 5}],
)
def test_nor_in_any_store_whatever_the_settings_are_now(simdup, tmp_path, seed, options):
    chance = random.Random(seed)
    pages = {
        f"https://{chance.randrange(3)}.example/{n}": article(
            chance.randrange(8), edits=chance.randrange(9), variant=chance.randrange(4)
        )
        for n in range(60)
    }
    fill(tmp_path / "s", "a", pages, **options)
    found = replayed(simdup, "s", "-s", "SIMDUP_MAX_DISTANCE=1", "-s", "SIMDUP_MIN_TOKENS=30")
    assert (found["pages"], found["changed"]) == (60, 0)
    assert found["decided_otherwise_offline"] <= 6  # where shingles were counted, not estimated


def test_a_smaller_distance_keeps_what_is_not_within_it(simdup, store):
    found = replayed(simdup, store, "--max-distance", "0")
    near = {change["url"] for change in found["changes"]}
    assert near <= {
        "https://example.org/1?print",
        "https://example.org/2?print",
        "https://example.org/4?print",
    }
    assert near
    for change in found["changes"]:
        assert (change["was"], change["would_be"]) == ("near", "unique")
        assert change["duplicate_of"] == change["was_duplicate_of"]
        assert change["distance"] > 0
    assert found["wanted"] == {"max_distance": "0"}


def test_it_says_what_a_crawl_with_these_options_says(simdup, tmp_path):
    chance = random.Random(7)
    pages = {
        f"https://example.org/{n}": article(n % 15, edits=chance.choice((0, 2, 6, 12)), variant=n)
        for n in range(60)
    }
    fill(tmp_path / "s", "a", pages)
    wanted = {"max_distance": 4, "min_resemblance": 0.85}
    with Detector(tmp_path / "other", expected_pages=1000, keep_text=True, **wanted) as detector:
        truth = {url: detector.check(url, html) for url, html in pages.items()}
    found = replayed(simdup, "s", "--max-distance", "4", "--min-resemblance", "0.85")
    assert 0 < found["changed"] < 60
    changes = {change["url"]: change for change in found["changes"]}
    with Detector(None, expected_pages=1000, keep_text=True) as detector:
        for url, html in pages.items():
            was = detector.check(url, html)
            change = changes.get(url)
            now = truth[url]
            if change is None:
                assert (was.is_duplicate, was.duplicate_of) == (now.is_duplicate, now.duplicate_of)
            else:
                assert (change["was"], change["would_be"]) == (was.kind, now.kind)


def test_more_tokens_are_asked_for(simdup, store):
    found = replayed(simdup, store, "--min-tokens", "5000")
    assert found["would_be"] == {"skipped": 9}
    assert {change["why"] for change in found["changes"]} == {"too_short"}


def test_another_scope(simdup, store):
    found = replayed(simdup, store, "--scope", "same-site")
    changes = {change["url"]: change["would_be"] for change in found["changes"]}
    assert changes["https://www.example.net/1"] == "unique"
    assert "https://example.org/1?print" not in changes


def test_one_crawl_only(simdup, store):
    found = replayed(simdup, store, "--crawl", "second", "--max-distance", "0")
    assert found["pages"] == 3
    assert {change["url"] for change in found["changes"]} <= set(SECOND)
    assert replayed(simdup, store, "--crawl", "first")["pages"] == len(FIRST)


def test_for_people(simdup, store):
    ran = simdup("replay", "--store", store, "--min-resemblance", "0.999")
    lines = ran.output.splitlines()
    assert lines[0].split()[:3] == ["was", "would", "be"]
    assert any(line.startswith("changed ") for line in lines)
    assert "changed                    0" in simdup("replay", "--store", store).output


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--max-distance", "99"), 2, "--max-distance = '99': must be a whole number"),
        (("--min-resemblance", "2"), 2, "--min-resemblance = '2'"),
        (("--scope", "site"), 2, "must be one of all, same-site, cross-site"),
        (("--crawl", "third"), 2, "--crawl third: 0 crawls begin so; there are: first, second"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(simdup, store, arguments, status, message):
    ran = simdup("replay", "--store", store, *arguments)
    assert ran.status == status
    assert message in ran.errors + ran.output
