"""What the last pages of a host raise, and that it is raised once."""

from __future__ import annotations

import pytest

from scrapy_simdup.alarms import ADVICE, KINDS, WINDOW, Alarms
from scrapy_simdup.config import ALERTS
from scrapy_simdup.verdict import NearMiss, Verdict

UNIQUE = Verdict(kind="unique")
REFUSED = Verdict(
    kind="unique",
    near_miss=NearMiss(
        url="https://a/x",
        rule="siblings",
        view="main",
        distance=3,
        resemblance=0.9,
        containment=0.9,
        length_ratio=1.0,
        simhash=1,
        tokens=100,
    ),
)
NO_TEXT = Verdict(kind="skipped", reason="no_text")


def duplicate(original="https://a/login", size=1):
    return Verdict(kind="exact", reason="body", duplicate_of=original, cluster_size=size)


def raised(verdicts, host="a", alarms=None):
    """All alarms that *verdicts* raise, in their order."""
    alarms = alarms or Alarms()
    found = []
    for number, verdict in enumerate(verdicts):
        found += alarms.see(f"https://{host}/{number}", host, verdict)
    return found


def spread(number):
    """Duplicates of as many pages."""
    return [duplicate(f"https://a/original/{n}") for n in range(number)]


def test_every_kind_has_its_advice_and_can_be_asked_for():
    assert tuple(KINDS) == tuple(ADVICE) == ALERTS


class TestOnePage:
    def test_is_raised_once_when_one_page_attracts_two_fifths(self):
        verdicts = [UNIQUE, UNIQUE, UNIQUE, duplicate(), duplicate()] * 40
        [alarm] = raised(verdicts)
        assert (alarm.kind, alarm.host, alarm.original) == ("one_page", "a", "https://a/login")
        assert (alarm.number, alarm.of, alarm.url) == (20, 50, "https://a/49")
        assert str(alarm) == (
            "20 of the last 50 pages of a are duplicates of https://a/login, the last is "
            "https://a/49; see whether it is a block, login, consent or not-found page, or whether "
            "the session has expired"
        )

    def test_is_not_raised_below_that_nor_by_few_pages(self):
        assert raised([*[UNIQUE] * 61, *[duplicate()] * 39] * 3) == []
        assert raised([duplicate()] * 49) == []

    def test_is_raised_when_a_site_changes_after_many_good_pages(self):
        kinds = [alarm.kind for alarm in raised([UNIQUE] * 1000 + [duplicate()] * 50)]
        assert kinds == ["one_page"]

    def test_is_raised_again_for_another_page(self):
        verdicts = [duplicate()] * WINDOW + [duplicate("https://a/consent")] * WINDOW
        assert [alarm.original for alarm in raised(verdicts)] == [
            "https://a/login",
            "https://a/consent",
        ]


class TestDuplicates:
    def test_are_raised_when_they_jump(self):
        [alarm] = raised([UNIQUE] * 500 + spread(WINDOW))
        assert (alarm.kind, alarm.number, alarm.of) == ("duplicates", 80, 100)

    def test_are_not_raised_where_a_site_always_had_many(self):
        always = [UNIQUE, UNIQUE, *spread(2)] * 100  # half of all: print versions
        assert raised([*always, *spread(75)]) == []

    def test_are_raised_from_the_first_hundred_pages_on(self):
        assert [alarm.kind for alarm in raised(spread(200))] == ["duplicates"]
        assert raised(spread(99)) == []


class TestRefusals:
    def test_of_half_of_the_pages_are_raised_once(self):
        [alarm] = raised([UNIQUE, REFUSED] * 100)
        assert (alarm.kind, alarm.number, alarm.of) == ("refusals", 25, 50)
        assert raised([UNIQUE, UNIQUE, REFUSED] * 100) == []


class TestNoText:
    def test_is_raised_after_twenty_pages(self):
        [alarm] = raised([NO_TEXT] * 300)
        assert (alarm.kind, alarm.number, alarm.of) == ("no_text", 20, 20)
        assert "scripts" in str(alarm)
        assert raised([*[UNIQUE] * 5, *[NO_TEXT] * 15] * 4) == []

    @pytest.mark.parametrize("reason", ["status", "opt_out", "too_short", "store_failed"])
    def test_other_skipped_pages_do_not_count(self, reason):
        assert raised([Verdict(kind="skipped", reason=reason)] * 300) == []


class TestLargeCluster:
    def test_is_raised_for_each_size_once(self):
        alarms = Alarms()
        found = raised([duplicate(size=size) for size in range(1, 1200)], alarms=alarms)
        # A page that attracts all the last ones is told of at 50, and not again at 100.
        kinds = [(alarm.kind, alarm.number) for alarm in found]
        assert kinds == [("one_page", 50), ("large_cluster", 1000)]
        slow = [
            verdict for size in range(1, 120) for verdict in (UNIQUE, UNIQUE, duplicate(size=size))
        ]
        assert [(alarm.kind, alarm.number) for alarm in raised(slow)] == [("large_cluster", 100)]
        known = Alarms()  # of an earlier crawl: said once in this one, too
        found = raised([duplicate(size=5000), duplicate(size=5001)], alarms=known)
        [alarm] = found
        assert str(alarm) == (
            "5000 pages are duplicates of https://a/login, the last is https://a/0; see whether it "
            "is a block, login, consent or not-found page"
        )


def test_revisits_raise_nothing():
    assert raised([Verdict(kind="revisit", change="unchanged", reason="body")] * 500) == []


def test_hosts_are_told_apart():
    alarms = Alarms()
    for number in range(60):
        for host in "abc":
            verdict = duplicate(f"https://{host}/login") if host == "b" else UNIQUE
            for alarm in alarms.see(f"https://{host}/{number}", host, verdict):
                assert alarm.host == "b"
    assert raised([UNIQUE] * 100, "a", alarms) == []


def test_memory_is_bounded_by_hosts_clusters_and_what_was_said():
    alarms = Alarms()
    for number in range(3000):
        alarms.see("https://x/", f"host{number}", duplicate(f"https://x/{number}", size=100))
    assert len(alarms._hosts) == 1_000
    for number in range(20_000):
        alarms.see("https://x/", "a", duplicate(f"https://x/{number}", size=100))
    assert len(alarms._clusters) == 10_000
    [host] = [host for name, host in alarms._hosts.items() if name == "a"]
    assert len(host.pages) == WINDOW
    assert len(host.originals) <= WINDOW
    for turn in range(500):
        raised([duplicate(f"https://x/{turn}")] * 60, "a", alarms)
    assert len(host.raised) <= WINDOW + 1
