from __future__ import annotations

import itertools

import pytest
from material import chinese_story, edited, page, run_script, story

from scrapy_simdup import ConfigError, Detector, Fingerprinter, compare
from scrapy_simdup.page.fingerprint import Fingerprint

TALE = story("tale")
SHELL = '<!doctype html><html><body><script src="{}.js"></script></body></html>'


class TestCompare:
    def test_the_same_text_is_near_in_all_figures(self):
        comparison = compare(TALE, TALE)
        assert (comparison.distance, comparison.resemblance, comparison.containment) == (0, 1, 1)
        assert comparison.near

    def test_an_edited_text_is_near(self):
        comparison = compare(TALE, edited(TALE, 1, words=2))
        assert 0 <= comparison.distance <= 4
        assert 0.85 < comparison.resemblance < comparison.containment < 1.0
        assert comparison.near

    def test_another_text_is_not(self):
        comparison = compare(TALE, story("another"))
        assert comparison.distance > 16
        assert comparison.resemblance < 0.1
        assert not comparison.near

    def test_an_excerpt_is_contained(self):
        comparison = compare(TALE, "\n\n".join(TALE.split("\n\n")[:2]))
        assert comparison.resemblance < 0.7
        assert comparison.containment > 0.9

    def test_chinese_is_compared_by_words(self):
        text = chinese_story("tale", 600)
        assert compare(text, text[30:]).near

    def test_pages_are_compared_by_their_main_text(self):
        comparison = compare(page("A tale", TALE, "blog"), page("A tale", TALE, "newspaper"))
        assert (comparison.distance, comparison.resemblance, comparison.near) == (0, 1.0, True)

    def test_a_page_may_be_compared_with_a_text(self):
        assert compare(page("A tale", TALE), TALE).near

    @pytest.mark.parametrize("start", ["", "\n ", "<?xml version='1.0'?>", "<!-- a --><!-- b -->"])
    def test_pages_are_told_from_texts_by_how_they_begin(self, start):
        html = start + page("A tale", TALE)
        assert compare(html, TALE).near
        assert compare("It is said: " + html, html).containment < 0.99

    def test_a_text_may_begin_with_many_comments(self):
        assert not compare("<!---->" * 5000 + TALE, story("another")).near

    def test_shared_shingles_are_counted(self):
        # Of 293 shingles of 8 words, 8 are lost with each word that is another one.
        words = TALE.split()[:300]
        other = [f"x{n}" if n % 60 == 30 else word for n, word in enumerate(words)]
        comparison = compare(" ".join(words), " ".join(other))
        assert comparison.resemblance == (293 - 40) / (293 + 40)
        assert comparison.containment == (293 - 40) / 293

    def test_the_order_does_not_matter(self):
        other = edited(TALE, 1, words=7)
        assert compare(TALE, other) == compare(other, TALE)

    def test_options_decide_what_is_near(self):
        other = edited(TALE, 1, words=12)
        alike = compare(TALE, other)
        assert not alike.near
        assert compare(TALE, other, min_resemblance=None).near
        assert compare(TALE, other, min_resemblance=alike.resemblance).near
        assert not compare(TALE, other, min_resemblance=None, max_distance=alike.distance - 1).near
        assert compare(TALE, other, min_resemblance=None, max_distance=alike.distance).near

    def test_unknown_options_are_errors(self):
        with pytest.raises(ConfigError, match="unknown option distance"):
            compare(TALE, TALE, distance=3)


def test_compare_is_the_function_in_whatever_order_names_are_imported():
    script = "from scrapy_simdup import Fingerprinter, compare; print(compare('a', 'a').near)"
    assert run_script(script) == "True\n"


class TestWhatTheDetectorWouldNotJudge:
    def test_is_near_only_if_it_is_the_same(self):
        short, other = story("tale", 15), edited(story("tale", 15), 1)
        assert compare(short, short).near
        assert compare(short, short.upper()).near
        assert not compare(short, other, min_resemblance=None, max_distance=11).near

    def test_has_figures_where_there_are_features(self):
        comparison = compare(story("tale", 15), story("another", 15))
        assert comparison.distance > 8
        assert comparison.resemblance < 0.2

    @pytest.mark.parametrize(
        ("a", "b", "near"),
        [
            ("", "", True),
            ("", TALE, False),
            ("?!", "…", False),
            ("😀", "😀", True),
            ("😀", "🎉", False),
            (SHELL.format("a"), SHELL.format("a"), True),
            (SHELL.format("a"), SHELL.format("b"), False),
            (SHELL.format("a"), "", False),
            (SHELL.format("a"), page("A tale", TALE), False),
        ],
    )
    def test_has_no_figures_where_there_are_none(self, a, b, near):
        comparison = compare(a, b)
        assert (comparison.distance, comparison.resemblance) == (None, None)
        assert comparison.containment is None
        assert comparison.near == near


class TestAgreementWithTheDetector:
    VERSIONS = (
        *(edited(TALE, n, words=n) for n in (1, 6, 8, 20)),
        TALE,
        story("tale", 250),
    )

    @pytest.mark.parametrize("options", [{"keep_text": True}, {"preset": "paper"}])
    def test_near_is_what_the_detector_says_of_b_after_a(self, options):
        for a, b in itertools.permutations(self.VERSIONS, 2):
            with Detector(None, **options) as detector:
                detector.check("https://example.org/a", text=a)
                verdict = detector.check("https://example.org/b", text=b)
            comparison = compare(a, b, **options)
            assert comparison.near == verdict.is_duplicate
            if verdict.is_duplicate:
                assert comparison.distance == verdict.distance
                assert comparison.resemblance == verdict.resemblance
                assert comparison.containment == verdict.containment


class TestFingerprinter:
    def test_gives_what_is_compared_of_a_text(self):
        fingerprint = Fingerprinter().fingerprint(TALE)
        assert isinstance(fingerprint, Fingerprint)
        assert 0 <= fingerprint.simhash < 2**64
        assert len(fingerprint.sketch) == 256
        assert (fingerprint.tokens, fingerprint.shingles) == (300, 293)

    def test_gives_nothing_for_a_text_without_features(self):
        assert Fingerprinter().fingerprint("… 😀 ?!") is None
        assert Fingerprinter().fingerprint("") is None

    def test_does_not_mind_how_short_a_text_is(self):
        assert Fingerprinter(min_tokens=100).fingerprint("two words").tokens == 2

    def test_follows_weights_preset_and_seed(self):
        text = TALE + " the" * 200
        default = Fingerprinter().fingerprint(text)
        assert Fingerprinter(weights="sqrt").fingerprint(text) == default
        by_frequency = Fingerprinter(weights="tf").fingerprint(text)
        assert by_frequency.simhash != default.simhash
        assert by_frequency.sketch == default.sketch
        assert Fingerprinter(preset="paper").fingerprint(text) == by_frequency
        assert Fingerprinter(seed=1).fingerprint(text).simhash != default.simhash

    def test_refuses_unknown_options_and_values(self):
        with pytest.raises(ConfigError, match="unknown option weigths: did you mean weights"):
            Fingerprinter(weigths="tf")
        with pytest.raises(ConfigError, match="weights = 'idf': must be one of"):
            Fingerprinter(weights="idf")
