"""Unrelated texts do not collide and edited ones are found, in every language and script.

The bank's phrases recur, so its texts have fewer distinct words than real ones (in English 128 of
317, against 159 of 314), and unrelated texts come nearer to each other.
"""

from __future__ import annotations

import functools
import importlib.metadata
import pickle
import statistics
import sys
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pytest
from page.languages import LANGUAGES, TOPICS, edited, text

from scrapy_simdup import ConfigError, compare
from scrapy_simdup.page import segmentation
from scrapy_simdup.page.features import Tokenizer, normalise
from scrapy_simdup.page.fingerprint import Fingerprinter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from scrapy_simdup.page.measure import Comparison

MAX_DISTANCE = 9  # the default of SIMDUP_MAX_DISTANCE
SEEDS = range(3)
UNIFYING = Tokenizer(unify_chinese=True)


@pytest.fixture(scope="module", autouse=True)
def one_dictionary() -> Iterator[None]:
    """Loading jieba's takes longer than a hundred comparisons."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segmentation, "_load_jieba", functools.cache(segmentation._load_jieba))
        yield


# ---- unrelated texts -----------------------------------------------------------------------------


@pytest.mark.parametrize("language", LANGUAGES)
def test_unrelated_texts_are_not_near(language: str) -> None:
    compared = [
        compare(text(language, one), text(language, other))
        for one, other in combinations(TOPICS, 2)
    ]
    assert not any(comparison.near for comparison in compared)
    assert max(comparison.resemblance for comparison in compared) < 0.15
    distances = sorted(comparison.distance for comparison in compared)
    assert statistics.median(distances) >= 16
    assert distances[1] > MAX_DISTANCE, "one pair of 15 may be a candidate"


@pytest.mark.parametrize("language", LANGUAGES)
def test_texts_on_one_topic_are_not_near(language: str) -> None:
    compared = [
        compare(text(language, topic, seed=0), text(language, topic, seed=1)) for topic in TOPICS
    ]
    assert not any(comparison.near for comparison in compared)
    assert max(comparison.resemblance for comparison in compared) < 0.35


def test_texts_of_different_languages_are_not_near() -> None:
    # The two versions of Chinese share what is written alike in both.
    for one, other in combinations(LANGUAGES, 2):
        comparison = compare(text(one, 0), text(other, 0))
        assert comparison.distance > MAX_DISTANCE, (one, other)
        assert comparison.resemblance < 0.1, (one, other)


# ---- edited texts --------------------------------------------------------------------------------


# 6 changed words of 300 lie in some 45 shingles of 8 words, which leaves a resemblance of 0.75 on
# average, two standard deviations above the default of SIMDUP_MIN_RESEMBLANCE, 0.7. In Chinese an
# edit of two characters changes three bigrams, and the texts have 1.5 times as many as words.
def edits(
    language: str,
    seeds: Iterable[int] = SEEDS,
    *,
    characters: bool = False,
    **options: str,
) -> list[Comparison]:
    return [
        compare(
            text(language, topic, seed),
            edited(language, text(language, topic, seed), seed, characters=characters),
            **options,
        )
        for topic in TOPICS
        for seed in seeds
    ]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_text_with_2_percent_of_its_words_edited_is_found(language: str) -> None:
    compared = edits(language)
    assert max(comparison.distance for comparison in compared) <= MAX_DISTANCE
    assert min(comparison.resemblance for comparison in compared) > 0.65
    assert all(comparison.near for comparison in compared)


@pytest.mark.parametrize("language", ["zh-Hans", "zh-Hant"])
def test_all_are_found_in_chinese_with_bigrams(language: str) -> None:
    assert all(comparison.near for comparison in edits(language, segmenter="bigrams"))


@pytest.mark.parametrize("language", ["zh-Hans", "zh-Hant", "ja", "th"])
def test_single_characters_edited_all_over_a_text_make_a_candidate(language: str) -> None:
    # Verification refuses many of them: with characters paired, each one changed is in 9 shingles.
    compared = edits(language, [0], characters=True)
    candidates = [comparison for comparison in compared if comparison.distance <= MAX_DISTANCE]
    assert len(candidates) >= 5
    assert min(comparison.resemblance for comparison in compared) > 0.45


# ---- traditional and simplified ------------------------------------------------------------------


def test_the_two_versions_of_a_chinese_text_are_near_only_if_that_is_wanted() -> None:
    for topic in TOPICS:
        pair = text("zh-Hans", topic), text("zh-Hant", topic)
        assert not compare(*pair).near
        unified = compare(*pair, unify_chinese=True)
        assert (unified.distance, unified.resemblance, unified.near) == (0, 1.0, True)


def test_an_edited_version_in_the_other_characters_is_near_too() -> None:
    for topic in TOPICS:
        other = edited("zh-Hant", text("zh-Hant", topic), seed=0, share=0.01)
        assert compare(text("zh-Hans", topic), other, unify_chinese=True).near


@pytest.mark.parametrize(
    ("traditional", "simplified"),
    [
        ("頭髮乾了，後來發現皇后的里程", "头发干了，后来发现皇后的里程"),
        ("裡面穿著毛衣", "里面穿着毛衣"),
        ("用滑鼠打開軟體", "用鼠标打开软件"),
        ("程式設計師寫程式", "程序员写程序"),
    ],
)
def test_characters_with_two_origins_and_words_of_taiwan_become_those_of_the_mainland(
    traditional: str, simplified: str
) -> None:
    unified = compare(traditional, simplified, unify_chinese=True)
    assert (unified.distance, unified.resemblance) == (0, 1.0)


@pytest.mark.parametrize("language", [name for name in LANGUAGES if not name.startswith("zh")])
def test_unifying_chinese_leaves_japanese_and_all_else_as_they_are(language: str) -> None:
    original = normalise(text(language, 4))
    assert UNIFYING.tokens(original) == Tokenizer().tokens(original)


def test_japanese_in_old_characters_is_not_converted() -> None:
    japanese = normalise("舊い圖書館の藏書を讀む學生")
    assert UNIFYING.tokens(japanese) == Tokenizer().tokens(japanese)


def test_unrelated_texts_stay_apart_when_chinese_is_unified() -> None:
    for one, other in combinations(TOPICS, 2):
        comparison = compare(text("zh-Hans", one), text("zh-Hant", other), unify_chinese=True)
        assert not comparison.near
        assert comparison.resemblance < 0.15


def test_opencc_is_part_of_the_identity_only_when_it_is_used() -> None:
    plain, unifying = Fingerprinter().identity, Fingerprinter(unify_chinese=True).identity
    assert unifying.pop("opencc") == f"{importlib.metadata.version('OpenCC')}/tw2sp"
    assert unifying == plain


def test_a_pickled_tokenizer_goes_on_unifying() -> None:
    pickled = pickle.dumps(UNIFYING)
    assert len(pickled) < 200
    assert pickle.loads(pickled).identity == UNIFYING.identity != Tokenizer().identity


@pytest.mark.parametrize("absent", ["the library", "its distribution"])
def test_a_missing_library_is_told_before_the_first_text(
    absent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> Any:
        raise importlib.metadata.PackageNotFoundError(name)

    if absent == "the library":
        monkeypatch.setitem(sys.modules, "opencc", None)
    else:
        monkeypatch.setattr(importlib.metadata, "version", missing)
    with pytest.raises(ConfigError, match=r"unify_chinese .* pip install 'OpenCC>=[\d.]+'$"):
        Fingerprinter(unify_chinese=True)


@pytest.mark.parametrize("segmenter", ["rjieba", "bigrams"])
@pytest.mark.parametrize("language", ["zh-Hans", "zh-Hant"])
def test_another_segmenter_finds_edits_and_keeps_texts_apart(language: str, segmenter: str) -> None:
    if segmenter == "rjieba":
        pytest.importorskip("rjieba", reason="needs rjieba: pip install rjieba")
    for topic in TOPICS:
        original = text(language, topic)
        assert compare(original, original[:90] + original[95:], segmenter=segmenter).near
    for one, other in combinations(TOPICS, 2):
        assert not compare(text(language, one), text(language, other), segmenter=segmenter).near


def test_which_segmenter_is_used_is_part_of_the_identity() -> None:
    assert "jieba" in Fingerprinter().identity
    bigrams = Fingerprinter(segmenter="bigrams").identity
    assert bigrams["segmenter"] == "bigrams"
    assert "jieba" not in bigrams
    with pytest.raises(ValueError, match="one of jieba, rjieba, bigrams, got 'Jieba'"):
        Fingerprinter(segmenter="Jieba")


def test_bigrams_take_no_dictionary() -> None:
    tokens = Tokenizer(segmenter="bigrams").tokens("图书馆 and ライブラリ")
    assert tokens == ["图书", "书馆", "and", "ライ", "イブ", "ブラ", "ラリ"]


def test_rjieba_that_is_missing_is_named_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rjieba", None)
    with pytest.raises(ConfigError, match=r"rjieba.* pip install 'rjieba>=[\d.]+'$"):
        Fingerprinter(segmenter="rjieba")
