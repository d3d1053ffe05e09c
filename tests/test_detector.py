from __future__ import annotations

import os
import re
import signal
import threading
import time
from random import Random

import material
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from material import (
    assert_consistent,
    chinese_story,
    edited,
    page,
    run_script,
    start_script,
    story,
)
from scrapy import Request
from scrapy.utils.request import RequestFingerprinter

from scrapy_simdup import ConfigError, Detector, Fingerprinter, StoreError, compare
from scrapy_simdup.detector import page_key
from scrapy_simdup.page.fingerprint import text_digest
from scrapy_simdup.page.kepttext import unpack_texts
from scrapy_simdup.page.profile import Profile, View
from scrapy_simdup.store.records import Record
from scrapy_simdup.verdict import KINDS, MATCH_REASONS, SKIP_REASONS

A, B, C, D = (f"https://example.org/{name}" for name in "abcd")
TALE = story("tale")


def record_of(detector, url):
    """Return what the store keeps of a page, or None."""
    found = detector._store.transact(lambda txn: txn.find(page_key(url))).result()
    return None if found is None else found[1]


def holds(detector):
    """Return the numbers of kept pages and of duplicates, after a check of all indexes."""
    assert_consistent(detector._store._environment)
    info = detector.info()
    return info.pages, info.aliases


class TestUnique:
    def test_a_page_like_no_other_is_unique(self, detector):
        detector.check(A, page("A tale", TALE))
        verdict = detector.check(B, page("Another", story("another")))
        assert (verdict.kind, verdict.reason, verdict.duplicate_of) == ("unique", None, None)
        assert (verdict.distance, verdict.resemblance, verdict.containment) == (None, None, None)
        assert not verdict.is_duplicate
        assert holds(detector) == (2, 0)

    def test_the_verdict_has_the_figures_of_the_page(self, detector):
        verdict = detector.check(A, text=TALE, title="A tale")
        fingerprint = Fingerprinter().fingerprint(TALE)
        assert (verdict.simhash, verdict.tokens) == (fingerprint.simhash, fingerprint.tokens)
        assert verdict.title == "A tale"

    def test_the_title_is_that_of_the_page(self, detector):
        assert detector.check(A, page("A <tale>", TALE)).title == "A <tale>"

    def test_what_is_kept_of_it_is_enough_to_decide_again(self, detector):
        detector.check(A, page("A tale", TALE))
        kept = record_of(detector, A)
        assert kept.kept
        assert (kept.url, kept.title, kept.language) == (A, "A tale", "en")
        assert kept.body_bytes == len(page("A tale", TALE).encode())
        assert kept.first_seen == kept.last_seen > 0
        assert len(kept.views[0].sketch) == 256


class TestExact:
    def test_the_same_bytes_are_recognised_by_the_body(self, detector):
        detector.check(A, page("A tale", TALE))
        verdict = detector.check(B, page("A tale", TALE))
        assert (verdict.kind, verdict.reason, verdict.duplicate_of) == ("exact", "body", A)
        assert (verdict.distance, verdict.resemblance, verdict.containment) == (0, 1.0, 1.0)
        assert verdict.simhash == verdict.simhash_of
        assert verdict.is_duplicate
        assert holds(detector) == (1, 1)

    def test_the_same_text_under_another_template_is_recognised_by_the_text(self, detector):
        detector.check(A, page("A tale", TALE, "blog"))
        verdict = detector.check(B, page("A tale", TALE, "newspaper"))
        assert (verdict.kind, verdict.reason, verdict.duplicate_of) == ("exact", "text", A)
        assert (verdict.distance, verdict.resemblance) == (0, 1.0)
        assert verdict.title == "A tale | The Daily Lantern"

    def test_the_bytes_of_a_duplicate_lead_to_the_kept_page(self, detector):
        detector.check(A, page("A tale", TALE, "blog"))
        detector.check(B, page("A tale", TALE, "newspaper"))
        verdict = detector.check(C, page("A tale", TALE, "newspaper"))
        assert (verdict.kind, verdict.reason, verdict.duplicate_of) == ("exact", "text", A)

    def test_bytes_are_decoded_as_the_caller_wants(self, detector):
        html = page("A tale", TALE)
        detector.check(A, html)
        body = html.encode("utf-16-be")
        verdict = detector.submit(B, body, decode=lambda body: body.decode("utf-16-be")).result()
        assert (verdict.kind, verdict.reason) == ("exact", "text")


class TestNear:
    def test_an_edited_sentence_makes_a_near_duplicate(self, detector):
        detector.check(A, page("A tale", TALE))
        verdict = detector.check(B, page("A tale", edited(TALE, 1)))
        assert (verdict.kind, verdict.reason, verdict.duplicate_of) == ("near", "simhash", A)
        assert 0 <= verdict.distance <= 3
        assert 0.9 < verdict.resemblance < 1.0
        assert verdict.resemblance < verdict.containment < 1.0
        assert verdict.simhash_of == detector.check(A, page("A tale", TALE)).simhash
        assert holds(detector) == (1, 1)

    def test_how_it_was_recognised_is_kept(self, detector):
        detector.check(A, text=TALE)
        verdict = detector.check(B, text=edited(TALE, 1))
        alias = record_of(detector, B)
        assert not alias.kept
        assert (alias.reason, alias.distance) == ("simhash", verdict.distance)
        assert alias.resemblance == verdict.resemblance

    def test_a_candidate_that_verification_refuses_is_reported(self, detector):
        detector.check(A, text=TALE)
        text = edited(TALE, 1, words=12)
        alike = compare(TALE, text)
        assert alike.distance <= 8, "a candidate"
        assert alike.resemblance < 0.7, "but not a near-duplicate"
        verdict = detector.check(B, text=text)
        assert (verdict.kind, verdict.duplicate_of) == ("unique", None)
        miss = verdict.near_miss
        assert (miss.url, miss.distance, miss.resemblance) == (A, alike.distance, alike.resemblance)
        assert miss.containment == alike.containment
        assert (miss.simhash, miss.tokens) == (record_of(detector, A).views[0].simhash, 300)

    def test_without_verification_the_distance_alone_decides(self, make_detector):
        detector = make_detector(min_resemblance=None)
        detector.check(A, text=TALE)
        verdict = detector.check(B, text=edited(TALE, 1, words=12))
        assert (verdict.kind, verdict.duplicate_of, verdict.near_miss) == ("near", A, None)

    def test_beyond_the_distance_nothing_is_near(self, make_detector):
        text = edited(TALE, 1, words=12)
        distance = compare(TALE, text).distance
        detector = make_detector(min_resemblance=None, max_distance=distance - 1)
        detector.check(A, text=TALE)
        assert detector.check(B, text=text).kind == "unique"


@pytest.fixture(scope="module")
def chinese():
    """A detector that knows one Chinese page, A. The dictionary takes a second to load."""
    with Detector(None) as detector:
        detector.check(A, page("故事", chinese_story("tale", 800)))
        yield detector


class TestChinese:
    HTML = page("故事", chinese_story("tale", 800))

    @pytest.mark.parametrize("charset", ["gbk", "gb18030", "utf-16", "utf-8-sig"])
    def test_in_another_encoding_has_the_same_text(self, chinese, charset):
        body = self.HTML.replace('charset="utf-8"', f'charset="{charset}"').encode(charset)
        verdict = chinese.check(f"{B}/{charset}", body)
        assert (verdict.kind, verdict.reason, verdict.duplicate_of) == ("exact", "text", A)
        alias, kept = record_of(chinese, f"{B}/{charset}"), record_of(chinese, A)
        assert alias.views[0].digest == kept.views[0].digest

    def test_in_an_encoding_nobody_knows_is_read_as_utf_8(self, chinese):
        body = self.HTML.replace('charset="utf-8"', 'charset="x-unknown"').encode()
        verdict = chinese.check(C, body)
        assert (verdict.kind, verdict.reason, verdict.duplicate_of) == ("exact", "text", A)

    def test_in_utf_8_is_the_same_as_a_string(self, chinese):
        assert chinese.check(A, self.HTML.encode()).change == "unchanged"

    def test_with_another_beginning_is_near(self, chinese):
        verdict = chinese.check(D, page("故事", chinese_story("tale", 800)[40:]))
        assert (verdict.kind, verdict.duplicate_of) == ("near", A)

    def test_of_other_words_is_unique(self, chinese):
        text = page("故事", chinese_story("another", 800))
        assert chinese.check(f"{D}/another", text).kind == "unique"


class TestBestOfSeveralCandidates:
    def test_has_the_best_resemblance(self, detector):
        four, five = edited(TALE, 1, words=4), edited(TALE, 2, words=5)
        assert compare(TALE, four).resemblance > compare(TALE, five).resemblance > 0.7
        assert compare(four, five).resemblance < 0.7
        assert detector.check(A, text=five).kind == "unique"
        assert detector.check(B, text=four).kind == "unique"
        verdict = detector.check(C, text=TALE)
        assert (verdict.kind, verdict.duplicate_of) == ("near", B)
        assert verdict.resemblance == pytest.approx(compare(TALE, four).resemblance, abs=0.05)

    def test_has_it_even_at_a_larger_distance(self, detector):
        own, other = map(Fingerprinter().fingerprint, (TALE, edited(TALE, 1, words=4)))
        self.keep(detector, A, own.simhash, other.sketch)
        self.keep(detector, B, own.simhash ^ 0b1111, own.sketch)
        verdict = detector.check(C, text=TALE)
        assert (verdict.duplicate_of, verdict.distance, verdict.resemblance) == (B, 4, 1.0)

    def keep(self, detector, url, simhash, sketch):
        record = Record(
            key=page_key(url),
            url=url,
            body_digest=text_digest(url + " body"),
            profile=Profile(
                views=(View("main", simhash, sketch, 300, 293, text_digest(url + " text")),)
            ),
        )
        detector._store.transact(lambda txn: txn.put(record)).result()

    def test_of_the_same_resemblance_has_the_smallest_distance(self, detector):
        own = Fingerprinter().fingerprint(TALE)
        for url, flipped in ((A, 0b11), (B, 0b1), (C, 0b110)):
            self.keep(detector, url, own.simhash ^ flipped, own.sketch)
        verdict = detector.check(D, text=TALE)
        assert (verdict.kind, verdict.duplicate_of, verdict.distance) == ("near", B, 1)

    def test_of_the_same_distance_is_the_oldest(self, detector):
        own = Fingerprinter().fingerprint(TALE)
        for url, flipped in ((A, 0b11), (C, 0b10), (B, 0b1)):
            self.keep(detector, url, own.simhash ^ flipped, own.sketch)
        verdict = detector.check(D, text=TALE)
        assert (verdict.kind, verdict.duplicate_of, verdict.distance) == ("near", C, 1)

    def test_is_the_one_reported_where_all_are_refused(self, detector):
        ten, twelve = edited(TALE, 1, words=10), edited(TALE, 2, words=12)
        detector.check(A, text=twelve)
        detector.check(B, text=ten)
        verdict = detector.check(C, text=TALE)
        assert verdict.kind == "unique"
        assert verdict.near_miss.url == B


class TestClusters:
    def chain(self):
        """Return texts whose neighbours are near (k = 3) and whose ends are not."""
        rules = Fingerprinter(preset="paper")

        def distance(a, b):
            return (rules.fingerprint(a).simhash ^ rules.fingerprint(b).simhash).bit_count()

        for seed in range(200):
            first = story(f"chain {seed}")
            second = edited(first, seed, words=7)
            third = edited(second, seed, words=8)
            if max(distance(first, second), distance(second, third)) <= 3 < distance(first, third):
                return first, second, third
        raise AssertionError("no chain found")

    def test_do_not_drift_as_duplicates_are_no_candidates(self, make_detector):
        first, second, third = self.chain()
        detector = make_detector(preset="paper")
        assert detector.check(A, text=first).kind == "unique"
        assert detector.check(B, text=second).duplicate_of == A
        assert detector.check(C, text=third).kind == "unique"
        assert holds(detector) == (2, 1)

    def test_in_another_order_have_another_page_in_their_middle(self, make_detector):
        first, second, third = self.chain()
        detector = make_detector(preset="paper")
        assert detector.check(B, text=second).kind == "unique"
        assert detector.check(A, text=first).duplicate_of == B
        assert detector.check(C, text=third).duplicate_of == B

    def test_are_counted(self, detector):
        detector.check(A, text=TALE)
        verdicts = [detector.check(f"{B}/{n}", text=edited(TALE, n)) for n in range(3)]
        verdicts.append(detector.check(C, text=TALE))
        assert [verdict.cluster_size for verdict in verdicts] == [1, 2, 3, 4]

    def test_count_a_page_that_comes_again_once(self, detector):
        detector.check(A, text=TALE)
        assert detector.check(B, text=TALE).cluster_size == 1
        assert detector.check(B, text=edited(TALE, 1)).cluster_size == 1

    def test_are_always_those_of_a_kept_page(self, detector):
        pick = Random("clusters")
        tales = [story(n, 120) for n in range(4)]
        texts = [edited(tale, seed, words=2) for tale in tales for seed in range(3)] + tales
        seen = set()
        for _ in range(150):
            url = f"{A}/{pick.randrange(12)}"
            verdict = detector.check(url, text=pick.choice(texts))
            seen.add((verdict.kind, verdict.reason, verdict.change))
            if verdict.is_duplicate:
                assert verdict.duplicate_of != url
                assert record_of(detector, verdict.duplicate_of).kept
                assert not record_of(detector, url).kept
            else:
                assert record_of(detector, url).kept
        assert {kind for kind, _, _ in seen} == {"unique", "exact", "near", "revisit"}
        assert sum(holds(detector)) == 12


class TestRevisit:
    def test_with_the_same_bytes_is_unchanged(self, detector):
        detector.check(A, page("A tale", TALE))
        verdict = detector.check(A, page("A tale", TALE))
        assert (verdict.kind, verdict.change, verdict.reason) == ("revisit", "unchanged", "body")
        assert (verdict.distance, verdict.resemblance, verdict.containment) == (0, 1.0, 1.0)
        assert verdict.duplicate_of is None
        assert not verdict.is_duplicate
        assert holds(detector) == (1, 0)

    def test_with_the_same_text_is_unchanged(self, detector):
        detector.check(A, page("A tale", TALE))
        verdict = detector.check(A, page("A tale", TALE, "newspaper"))
        assert (verdict.kind, verdict.change, verdict.reason) == ("revisit", "unchanged", "text")
        assert (verdict.distance, verdict.resemblance) == (0, 1.0)

    def test_with_a_near_text_is_a_minor_change(self, detector):
        detector.check(A, page("A tale", TALE))
        verdict = detector.check(A, page("A tale", edited(TALE, 1, words=2)))
        assert (verdict.kind, verdict.change, verdict.reason) == ("revisit", "minor", "simhash")
        assert 0.8 < verdict.resemblance < 1.0

    def test_with_another_text_is_changed(self, detector):
        detector.check(A, page("A tale", TALE))
        verdict = detector.check(A, page("Another", story("another")))
        assert (verdict.kind, verdict.change, verdict.reason) == ("revisit", "changed", "url")
        assert verdict.distance > 8
        assert verdict.resemblance < 0.1
        assert (verdict.tokens, verdict.title) == (
            record_of(detector, A).views[0].tokens,
            "Another",
        )

    def test_is_compared_with_the_last_visit(self, detector):
        detector.check(A, text=TALE)
        detector.check(A, text=story("another"))
        assert detector.check(A, text=story("another")).change == "unchanged"
        assert detector.check(A, text=TALE).change == "changed"

    def test_replaces_what_others_are_compared_with(self, detector):
        detector.check(A, text=TALE)
        detector.check(A, text=story("another"))
        assert detector.check(B, text=TALE).kind == "unique"
        assert detector.check(C, text=story("another")).duplicate_of == A
        assert holds(detector) == (2, 1)

    def test_keeps_when_the_page_was_first_seen(self, make_detector):
        first = make_detector(crawl="first")
        first.check(A, text=TALE)
        before = record_of(first, A)
        first.close()
        second = make_detector(crawl="second")
        second.check(A, text=TALE)
        after = record_of(second, A)
        assert after.first_seen == before.first_seen < after.last_seen
        assert (before.crawl, after.crawl) == ("first", "second")

    def test_with_the_text_of_another_kept_page_is_a_revisit_still(self, detector):
        detector.check(A, text=TALE)
        detector.check(B, text=story("another"))
        verdict = detector.check(B, text=TALE)
        assert (verdict.kind, verdict.change) == ("revisit", "changed")
        assert holds(detector) == (2, 0)

    def test_without_text_is_skipped_and_the_page_kept_as_it_was(self, detector):
        detector.check(A, page("A tale", TALE))
        assert detector.check(A, page("Under construction", "")).kind == "skipped"
        assert detector.check(A, page("A tale", TALE)).change == "unchanged"

    def test_of_a_duplicate_is_none_it_is_judged_anew(self, detector):
        detector.check(A, page("A tale", TALE))
        assert detector.check(B, page("A tale", TALE)).kind == "exact"
        assert detector.check(B, page("A tale", TALE)).kind == "exact"
        assert detector.check(B, page("A tale", edited(TALE, 1))).kind == "near"
        assert holds(detector) == (1, 1)
        assert detector.check(B, page("Another", story("another"))).kind == "unique"
        assert holds(detector) == (2, 0)
        assert detector.check(B, page("Another", story("another"))).kind == "revisit"


class TestSkipped:
    @pytest.mark.parametrize(
        ("reason", "arguments"),
        [
            ("empty_body", {"html": ""}),
            ("empty_body", {"html": b" \r\n\t "}),
            ("no_text", {"text": " \n "}),
            ("no_text", {"html": "<html><head><title>A</title></head><body></body></html>"}),
            ("no_text", {"html": '<html><body><script src="app.js"></script></body></html>'}),
            ("no_text", {"html": "\N{IDEOGRAPHIC SPACE}"}),
            ("no_features", {"text": "\N{GRINNING FACE}\N{PARTY POPPER} " * 200}),
            ("no_features", {"text": "?! — … * " * 200}),
            ("unreadable", {"text": story("tale", 42) + "\ufffd\ufffd \ufffd" * 400}),
            ("unreadable", {"text": story("tale", 42) + "\ue000\ue001 " * 400}),
            ("unreadable", {"text": story("tale", 42) + "\N{GRINNING FACE} " * 400}),
            ("too_short", {"html": page("A tale", story("tale", 8))}),
            ("too_short", {"text": "Page not found."}),
            ("too_uniform", {"text": "again " * 500}),
            ("too_uniform", {"html": page("Again", "again and again and " * 200)}),
        ],
    )
    def test_with_a_reason(self, detector, reason, arguments):
        verdict = detector.check(A, **arguments)
        assert (verdict.kind, verdict.reason) == ("skipped", reason)
        assert reason in SKIP_REASONS
        assert holds(detector) == (0, 0)

    def test_pages_are_no_duplicates_of_each_other(self, detector):
        for url in (A, B):
            assert detector.check(url, page("A tale", story("tale", 8))).kind == "skipped"

    def test_if_the_body_is_too_large(self, make_detector):
        detector = make_detector(max_body_bytes=1000)
        assert detector.check(A, b"x" * 1001).reason == "body_too_large"
        assert detector.check(A, "ü" * 501).reason == "body_too_large", "bytes count"
        assert detector.check(A, b"x" * 1000).reason != "body_too_large"
        assert holds(detector) == (0, 0)

    def test_if_there_are_too_many_elements(self, make_detector):
        detector = make_detector(max_elements=100)
        html = page("A tale", TALE)
        assert detector.check(A, html.replace("<main>", "<main>" + "<br>" * 100)).reason == (
            "too_many_elements"
        )
        assert holds(detector) == (0, 0)
        assert detector.check(A, html).kind == "unique"

    def test_if_the_extractor_takes_too_long(self, make_detector):
        material.extractors_may_go_on.clear()
        detector = make_detector(timeout=0.5, extractor="material.blocking_extractor")
        try:
            verdict = detector.check(A, "block " + TALE)
            assert (verdict.kind, verdict.reason) == ("skipped", "timeout")
            assert detector.check(B, "go on " + TALE).kind == "unique"
        finally:
            material.extractors_may_go_on.set()
        detector.close()
        assert holds(make_detector(extractor="material.blocking_extractor")) == (1, 0)

    @pytest.mark.parametrize("extractor", ["failing", "leaving", "late"])
    def test_if_the_extractor_fails(self, make_detector, extractor):
        detector = make_detector(extractor=f"material.{extractor}_extractor")
        for url in (A, B):
            verdict = detector.check(url, page("A tale", TALE))
            assert (verdict.kind, verdict.reason) == ("skipped", "extraction_failed")
        assert holds(detector) == (0, 0)

    @pytest.mark.parametrize("charset", ["base64", "rot13", "punycode", "idna", "undefined"])
    def test_if_the_charset_is_none_of_a_text(self, detector, charset):
        html = page("A tale", TALE + " é").replace('charset="utf-8"', f'charset="{charset}"')
        verdict = detector.check(A, html.encode())
        assert (verdict.kind, verdict.reason) == ("skipped", "extraction_failed")

    def test_the_number_of_tokens_that_is_enough_is_an_option(self, make_detector):
        detector = make_detector(min_tokens=10)
        assert detector.check(A, text=story("tale", 9)).reason == "too_short"
        assert detector.check(A, text=story("tale", 10)).kind == "unique"


@pytest.fixture(scope="module")
def fuzzed():
    """One detector for all examples: each is judged against those before."""
    with Detector(None, min_tokens=1) as detector:
        yield detector
        holds(detector)


class TestHostilePages:
    @pytest.mark.parametrize(
        "html",
        ["<html " * 3000 + " " * 50_000, "<p>a" + "\u0301\u0323" * 100_000, "<!doctype " * 9000],
        ids=["html tags", "combining marks", "doctypes"],
    )
    def test_do_not_take_quadratic_time(self, detector, html):
        began = time.perf_counter()
        detector.check(A, html=html + story("tale", 60))
        assert time.perf_counter() - began < 5  # they took minutes

    @pytest.mark.parametrize(
        "html",
        [
            page("A tale", TALE).replace(" ", " \0", 50),
            page("A tale", TALE.replace(".", ".\ud800")),
            "<div>" * 100_000 + TALE,
            "<div>" * 90_000 + TALE,
            "</p>" * 50_000 + page("A tale", TALE),
            "<!---->" * 50_000 + page("A tale", TALE),
            "<!doctype html><![CDATA[" + TALE,
            "<html " + 'a="b" ' * 20_000 + ">" + TALE,
            "<html/>" + TALE,
            page("A tale", TALE)[:-400],
            page("A tale", "<script>" + TALE),
            "<?xml version='1.0' encoding='ebcdic'?>" + page("A tale", TALE),
            "&#0;&#xD800;&#x110000;&bogus;" * 1000,
            "<" * 99_000,
            "%PDF-1.7\n" + "\ufffd\x01\x02" * 5000,
        ],
        ids=lambda html: html[:20].encode("ascii", "replace").decode(),
    )
    def test_have_a_verdict(self, detector, html):
        verdict = detector.check(A, html)
        assert verdict.kind in {"unique", "skipped"}
        assert detector.check(B, page("Another", story("another"))).kind == "unique"

    @pytest.mark.parametrize(
        "body",
        [
            Random(1).randbytes(100_000),
            b"\xff\xfe" + Random(2).randbytes(10_001),
            b"\x1f\x8b" + bytes(1000),
            page("A tale", TALE).replace("utf-8", "x-unknown").encode(),
            page("A tale", TALE).replace("utf-8", "\0").encode(),
            page("A tale", TALE).encode("utf-16-le"),
            page("A tale", TALE).encode("utf-32"),
        ],
        ids=lambda body: repr(body[:10]),
    )
    def test_in_bytes_have_a_verdict(self, fuzzed, body):
        assert fuzzed.check(C, body).kind in {"unique", "skipped", "exact", "near", "revisit"}

    def test_with_nul_bytes_are_the_same_as_without(self, detector):
        detector.check(A, page("A tale", TALE))
        verdict = detector.check(B, page("A tale", TALE.replace(" ", " \0")))
        assert (verdict.kind, verdict.reason) == ("exact", "text")

    def test_of_20_megabytes_are_skipped(self, detector):
        assert detector.check(A, b"<p>" + b"x" * 20_000_000).reason == "body_too_large"

    def test_of_20_megabytes_come_to_an_end_if_they_are_allowed(self, make_detector):
        detector = make_detector(max_body_bytes=10**8)
        html = page("A tale", TALE).replace("<main>", f"<script>{'x' * 20_000_000}</script><main>")
        assert detector.check(A, html).kind == "unique"

    def test_of_digits_only_are_judged(self, detector):
        pick = Random("digits")
        text = " ".join(str(pick.randrange(10**6)) for _ in range(300))
        assert detector.check(A, page("1", text)).kind == "unique"
        assert detector.check(B, page("2", text)).kind in {"exact", "near"}

    markup = st.lists(
        st.one_of(
            st.sampled_from(
                [
                    "<p>", "</p>", "<div class='", "<html", "<!--", "-->", "<![CDATA[", "]]>",
                    "<script>", "</script>", "<table><td>", "<a href=x>", "<svg><title>", "&", "&#",
                    "<?xml ", "?>", "<!doctype", "<body", ">", "<", "'", '"', "\0", "<article>",
                    "<template>", "<noscript>", "<frameset>", "<title>", "<wbr/>", "<h1>", "<br/>",
                ]
            ),
            st.text(st.characters(exclude_categories=()), max_size=30),
            st.integers(0, 20).map(lambda n: story(n, 25)),
        ),
        max_size=25,
    ).map("".join)  # fmt: skip

    @settings(derandomize=True, max_examples=100, deadline=None, database=None)
    @given(html=markup, title=st.none() | st.text(st.characters(exclude_categories=())))
    def test_never_raise_an_exception(self, fuzzed, html, title):
        for form in (html, html.encode("utf-8", "replace")):
            verdict = fuzzed.check(A + html[:20], form, title=title)
            assert verdict.kind in KINDS
            assert verdict.reason in {None, *SKIP_REASONS, *MATCH_REASONS}


class TestUrlsTitlesAndKeys:
    @pytest.mark.parametrize(
        ("url", "shown"),
        [
            ("https://example.org/a\nb\r\u2028", "https://example.org/a\nb\r\u2028"),
            ("https://example.org/\ud800", "https://example.org/\\ud800"),
            ("http://[::1", "http://[::1"),
            ("http://example.org:port/", "http://example.org:port/"),
            ("no url at all\0", "no url at all\0"),
            ("", ""),
            ("https://example.org/" + "x" * 100_000, "https://example.org/" + "x" * 8172),
        ],
        ids=lambda value: repr(value)[:40],
    )
    def test_a_strange_url_is_kept_as_a_text(self, detector, url, shown):
        assert detector.check(url, text=TALE).kind == "unique"
        assert detector.check(url, text=TALE).kind == "revisit"
        assert detector.check(B, text=TALE).duplicate_of == shown

    @pytest.mark.parametrize(
        ("title", "shown"),
        [("A\ntale\u2028", "A\ntale\u2028"), ("A \udfff", "A \\udfff"), ("x" * 999, "x" * 300)],
    )
    def test_a_strange_title_is_kept_as_a_text(self, detector, title, shown):
        assert detector.check(A, text=TALE, title=title).title == shown
        assert record_of(detector, A).title == shown

    @pytest.mark.parametrize(
        "url",
        [
            "https://example.org",
            "https://example.org/",
            "https://example.org:443/a/",
            "HTTP://Example.ORG:8080/a",
            "https://example.org/a?b=2&a=1&a=0&c",
            "https://example.org/a#fragment",
            "https://example.org/#!/ajax=1",
            "https://example.org/über/路径?q=ñ&路=径",
            "https://例え.jp/ü",
            "https://example.org/a b/%7Euser/%e4?q=a+b%20c",
            "https://user:pass word@example.org/",
            "https://example.org/?a=%zz&b=|^`{}",
            "https://example.org/a\tb\n",
            "  https://example.org/  ",
            "http://[::1]:80/",
            "data:text/html,<p>a b</p>",
            "file:///tmp/a b.html",
        ],
    )
    def test_the_key_of_a_page_is_the_fingerprint_that_scrapy_gives_its_request(self, url):
        assert page_key(url) == RequestFingerprinter().fingerprint(Request(url))

    def test_the_same_request_in_another_spelling_is_a_revisit(self, detector):
        detector.check("https://example.org/?b=2&a=1#top", text=TALE)
        assert detector.check("https://example.org/?a=1&b=2", text=TALE).kind == "revisit"

    def test_a_key_that_is_given_counts_instead_of_the_url(self, detector):
        detector.check(A, text=TALE, key=b"one")
        assert detector.check(B, text=TALE, key=b"one").kind == "revisit"
        assert detector.check(A, text=TALE, key=b"two").kind == "exact"

    @pytest.mark.parametrize("key", [b"", b"k" * 64, b"k" * 65, b"k" * 10_000])
    def test_a_key_may_have_any_length(self, detector, key):
        assert detector.check(A, text=TALE, key=key).kind == "unique"
        assert detector.check(B, text=TALE, key=key).kind == "revisit"
        assert detector.check(C, text=TALE, key=key + b"!").kind == "exact"


class TestOptions:
    def test_that_are_unknown_are_errors(self, store_path):
        with pytest.raises(ConfigError, match="unknown option max_distanse: did you mean max_dist"):
            Detector(store_path, max_distanse=3)
        assert not store_path.exists()

    def test_that_are_out_of_range_are_errors(self, store_path):
        with pytest.raises(ConfigError, match="max_distance = 99: must be a whole number from"):
            Detector(store_path, max_distance=99)

    def test_do_not_include_the_store(self, store_path):
        with pytest.raises(ConfigError, match="the store is Detector's first argument"):
            Detector(store_path, store="elsewhere")

    @pytest.mark.parametrize("extractor", ["no.such.module", "os.path", "nonsense", "os.no_such"])
    def test_name_an_extractor_that_can_be_called(self, store_path, extractor):
        with pytest.raises(ConfigError, match=f"extractor = '{extractor}': "):
            Detector(store_path, extractor=extractor)
        assert not store_path.exists()

    def test_either_html_or_text_is_given(self, detector):
        with pytest.raises(TypeError, match="give either html or text"):
            detector.check(A)
        with pytest.raises(TypeError, match="give either html or text"):
            detector.check(A, "<p>html", text="text")

    def test_keep_text_keeps_the_text_of_every_view(self, make_detector):
        detector = make_detector(keep_text=True)
        detector.check(A, text=TALE + "\ud800")
        detector.check(B, page("Another", story("another")))
        paragraphs = TALE.split("\n\n")
        assert unpack_texts(record_of(detector, A).text) == {
            "main": [*paragraphs[:-1], paragraphs[-1] + "?"]
        }
        kept = unpack_texts(record_of(detector, B).text)
        assert set(kept) == {"main", "prose"}
        assert story("another").split("\n")[0] in kept["main"]
        assert story("another").split("\n")[0] in kept["prose"]

    def test_kept_text_is_counted_out_where_sketches_only_estimate(self, make_detector):
        tale, corrected = TALE, edited(TALE, 1, words=6)
        figures = {}
        for keep in (False, True):
            with Detector(None, keep_text=keep) as detector:
                detector.check(A, text=tale)
                figures[keep] = detector.check(B, text=corrected).resemblance
        windows = [
            {tuple(words[n : n + 8]) for n in range(len(words) - 7)}
            for words in (re.findall(r"\w+", text.lower()) for text in (tale, corrected))
        ]
        exact = len(windows[0] & windows[1]) / len(windows[0] | windows[1])
        assert figures[True] == pytest.approx(exact)
        assert figures[False] != figures[True]
        assert figures[False] == pytest.approx(exact, abs=0.08)

    def test_without_keep_text_no_text_is_kept(self, detector):
        detector.check(A, text=TALE)
        assert record_of(detector, A).text == b""

    def test_another_seed_gives_other_fingerprints_and_digests(self, store_path):
        with Detector(None) as one, Detector(None, seed=7) as other:
            verdicts = [detector.check(A, text=TALE) for detector in (one, other)]
            distance = (verdicts[0].simhash ^ verdicts[1].simhash).bit_count()
            assert 16 < distance < 48
            records = [record_of(detector, A) for detector in (one, other)]
            assert records[0].views[0].digest != records[1].views[0].digest
            assert records[0].body_digest != records[1].body_digest
            assert other.check(B, text=edited(TALE, 1)).kind == "near"

    def test_another_seed_is_refused_on_a_store_that_is_there(self, make_detector):
        make_detector(seed=7).close()
        with pytest.raises(
            StoreError, match=r"another configuration \(seed: 0 here, \w{16} in the st"
        ):
            make_detector()

    def test_other_distances_resemblances_and_limits_are_accepted_on_it(self, make_detector):
        make_detector().check(A, text=TALE)
        other = make_detector(max_distance=3, min_resemblance=None, min_tokens=5, timeout=9)
        assert other.check(B, text=edited(TALE, 1)).duplicate_of == A


class TestTheStore:
    def test_may_be_nowhere(self):
        with Detector(None) as detector:
            assert detector.check(A, text=TALE).kind == "unique"
            assert detector.check(B, text=TALE).kind == "exact"
            assert detector.info().path is None

    def test_is_there_again_after_closing(self, make_detector):
        make_detector().check(A, page("A tale", TALE))
        reopened = make_detector()
        assert reopened.check(A, page("A tale", TALE)).kind == "revisit"
        assert reopened.check(B, page("A tale", edited(TALE, 1))).duplicate_of == A

    def test_is_shared_by_the_detectors_of_a_process(self, make_detector):
        first, second = make_detector(), make_detector()
        first.check(A, text=TALE)
        assert second.check(B, text=TALE).duplicate_of == A
        first.close()
        assert second.check(C, text=TALE).duplicate_of == A

    def test_that_cannot_be_opened_is_a_store_error(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(StoreError, match="is a file; a store is a folder of its own"):
            Detector(tmp_path / "file")

    def test_closing_finishes_what_was_asked_for(self, make_detector):
        detector = make_detector()
        futures = [detector.submit(f"{A}/{n}", page(f"Tale {n}", story(n, 100))) for n in range(20)]
        detector.close()
        assert {future.result(0).kind for future in futures} == {"unique"}
        assert make_detector().info().pages == 20

    def test_closing_again_does_nothing(self, detector):
        detector.close()
        detector.close()

    def test_after_closing_every_use_is_a_store_error(self, detector, store_path):
        detector.close()
        for use in (lambda: detector.check(A, text=TALE), detector.info):
            with pytest.raises(StoreError) as refused:
                use()
            assert str(refused.value) == f"store '{store_path}' is closed"

    def test_timings_of_each_step_are_reported(self, detector):
        steps = []
        detector.on_timing = lambda step, seconds: steps.append((step, seconds >= 0))
        detector.check(A, page("A tale", TALE))
        detector.check(B, page("A tale", TALE))
        detector.close()
        assert steps == [("lookup", True), ("extract", True), ("lookup", True), ("lookup", True)]


class TestAtTheSameTime:
    def verdicts(self, detector, bodies):
        """Check all *bodies*, each in a thread of its own, all at once."""
        barrier = threading.Barrier(len(bodies))
        verdicts = []

        def check(n, body):
            barrier.wait(30)
            verdicts.append(detector.check(f"{A}/{n}", body))

        threads = [threading.Thread(target=check, args=(n, body)) for n, body in enumerate(bodies)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(verdicts) == len(bodies)
        return verdicts

    def test_exactly_one_of_many_copies_passes(self, detector):
        verdicts = self.verdicts(detector, [page("A tale", TALE)] * 12)
        assert sorted(verdict.kind for verdict in verdicts) == ["exact"] * 11 + ["unique"]
        assert holds(detector) == (1, 11)

    def test_exactly_one_of_many_near_duplicates_passes(self, detector):
        bodies = [page("A tale", edited(TALE, n)) for n in range(12)]
        verdicts = self.verdicts(detector, bodies)
        assert sorted(verdict.kind for verdict in verdicts) == ["near"] * 11 + ["unique"]
        (kept,) = {verdict.duplicate_of for verdict in verdicts if verdict.is_duplicate}
        assert record_of(detector, kept).kept

    def test_the_same_request_several_times_is_kept_once(self, detector):
        futures = [detector.submit(A, page("A tale", TALE)) for _ in range(10)]
        kinds = [future.result(60).kind for future in futures]
        assert sorted(kinds) == ["revisit"] * 9 + ["unique"]
        assert holds(detector) == (1, 0)

    def test_different_pages_all_pass(self, detector):
        verdicts = self.verdicts(detector, [page(f"{n}", story(n, 100)) for n in range(12)])
        assert {verdict.kind for verdict in verdicts} == {"unique"}


class TestProcesses:
    CHECK = """
import sys
from material import page, story
from scrapy_simdup import Detector
detector = Detector(sys.argv[1])
for n in range(3):
    print(detector.check(f"https://example.org/{n}", page("A tale", story(n))).kind, flush=True)
sys.stdin.read()
"""

    def test_a_verdict_outlives_the_process_that_gave_it(self, make_detector, store_path):
        with start_script(self.CHECK, store_path) as process:
            for _ in range(3):
                assert process.stdout.readline() == "unique\n"
            process.send_signal(signal.SIGKILL)
            process.wait(60)
        detector = make_detector()
        for n in range(3):
            verdict = detector.check(f"https://example.org/{n}", page("A tale", story(n)))
            assert (verdict.kind, verdict.change) == ("revisit", "unchanged")
        assert holds(detector) == (3, 0)

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
    def test_a_forked_child_is_told_so_and_does_not_hang(self, store_path):
        output = run_script(
            """
import os, sys
import material
from material import story
from scrapy_simdup import Detector, StoreError
detector = Detector(sys.argv[1], extractor="material.blocking_extractor")
print(detector.check("https://example.org/a", text=story("tale")).kind, flush=True)
unfinished = detector.submit("https://example.org/block", "block " + story("block"))
if os.fork() == 0:
    for use in (lambda: detector.check("https://example.org/b", text=story("b")), detector.info):
        try:
            use()
        except StoreError as error:
            print("child:", "cannot be used in its child" in str(error), flush=True)
    detector.close()
    print("child closed", flush=True)
    os._exit(0)
assert os.wait()[1] == 0
material.extractors_may_go_on.set()
print(unfinished.result().kind)
print(detector.check("https://example.org/b", text=story("tale")).kind)
detector.close()
""",
            store_path,
        )
        assert output.split("\n") == [
            "unique", "child: True", "child: True", "child closed", "unique", "exact", "",
        ]  # fmt: skip

    def test_two_processes_may_crawl_into_one_store(self, make_detector, store_path):
        detector = make_detector()
        detector.check("https://example.org/1", page("A tale", story(1)))
        with start_script(self.CHECK, store_path) as process:
            kinds = [process.stdout.readline().strip() for _ in range(3)]
            process.stdin.close()
            process.wait(60)
        assert kinds == ["unique", "revisit", "unique"]
        assert detector.check(D, page("A tale", story(2))).duplicate_of == "https://example.org/2"


class TestVerdicts:
    def test_of_the_detector_can_be_written_down(self, detector):
        detector.check(A, text=TALE)
        for text in (TALE, edited(TALE, 1), edited(TALE, 1, words=12)):
            verdict = detector.check(B, text=text)
            assert msgspec.json.decode(msgspec.json.encode(verdict.as_dict())) == verdict.as_dict()
