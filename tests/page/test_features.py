from __future__ import annotations

import pickle
import subprocess
import sys
import tempfile
import threading
import unicodedata
from typing import TYPE_CHECKING

import numpy as np
import pytest
import slow_reference
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_simdup.page import features, segmentation
from scrapy_simdup.page.features import Tokenizer, compact, normalise

if TYPE_CHECKING:
    from pathlib import Path

quick = settings(derandomize=True, deadline=None, max_examples=100)

SAMPLES = (
    "The 3rd ferry’s late",
    "Straße ﬁel",
    "ΟΔΟΣ",
    "ёлка",
    "הבאר",
    "الماء",
    "गाँव में",
    "ที่น้ำ",
    "ប្រាសាទ",
    "ပန်းချီ",
    "ຫຼວງ",
    "山駅",
    "の列車がー",
    "ｶﾞﾗｽ",
    "ㄅㄆ",
    "제주",
    "𠮷野",
    "々〇",
)
scripts = st.lists(
    st.one_of(
        st.sampled_from(SAMPLES),
        st.sampled_from(" \n\t\u3000\xa0\xad\u200b\u200d\u0301\u0e49\u3099\x00\x1c。、-“\ud800😀"),
        st.text(max_size=3),
    ),
    max_size=20,
).map("".join)


TOKENIZER = Tokenizer()


# ---- normalisation -------------------------------------------------------------------------------


def test_composed_and_decomposed_letters_are_one(texts: dict[str, tuple[str, str]]) -> None:
    for pair in texts.values():
        for text in pair:
            nfc, nfd = unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)
            assert normalise(nfd) == normalise(nfc)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ＲＧ－２０４　ﾃﾞｰﾀ", "RG-204 データ"),
        ("ﬁnal ﬂoor", "FINAL FLOOR"),
        ("Straße", "STRASSE"),
        ("Σίσυφος", "ΣΊΣΥΦΟΣ"),
        ("Donau\xaddampf\u200bschiff\u2060fahrt", "Donaudampfschifffahrt"),
        ("می\u200cخواهم", "میخواهم"),
        ("\ufeffshalom \u202bשלום\u202c\u200f", "shalom שלום"),
        ("e\u200b\u0301te\u034f\u0301", "été"),
        ("☺\ufe0f ok", "☺ ok"),
        ("half\x00way", "halfway"),
        ("a \x00 b", "a b"),
        ("one\ttwo\r\n\u2028three\xa0four", "one two three four"),
        ("  padded \n", "padded"),
        ("中文\n  网页", "中文网页"),
        ("山の\nカラス", "山のカラス"),
        ("\ud83d\ude00 smile", "😀 smile"),
    ],
)
def test_what_reads_alike_is_normalised_alike(one: str, other: str) -> None:
    assert normalise(one) == normalise(other)


def test_white_space_between_other_scripts_stays() -> None:
    assert normalise("中文 web 网页\none two") == "中文 web 网页one two".replace("页one", "页 one")
    assert normalise("서울 시민") == "서울 시민"


def test_a_lone_surrogate_becomes_a_replacement_character() -> None:
    assert normalise("a\ud800b") == "a\ufffdb"


@quick
@given(scripts)
def test_normalising_equals_the_slow_reference(text: str) -> None:
    assert normalise(text) == slow_reference.normalise(text)


@quick
@given(scripts)
def test_normalising_twice_changes_nothing(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


def test_compact_text_has_no_white_space() -> None:
    assert compact(normalise(" one\n two　三 ")) == "onetwo三"


# ---- segmentation --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The ferry's 3rd chain – it broke.", "the ferry s 3rd chain it broke"),
        ("Łódź naïve Ünlü", "łódź naïve ünlü"),
        ("गाँव की चिट्ठियों में", "गाँव की चिट्ठियों में"),
        ("وَلَدٌ صغير", "وَلَدٌ صغير"),
        ("서울 시민이", "서울 시민이"),
        ("ที่น้ำ", "ที่น้ํ น้ํา"),
        ("ຫຼວງພະ", "ຫຼວ ວງ ງພ ພະ"),
        ("ភាសា", "ភាសា"),
        ("カラス", "カラ ラス"),
        ("山の駅へ", "山の の駅 駅へ"),
        ("iPhoneを買う", "iphone を買 買う"),
        ("老城区的修伞匠 iPhone 15", "老城区 的 修伞匠 iphone 15"),
        ("☺ 😀 … —", ""),
        ("", ""),
    ],
)
def test_text_is_cut_by_its_script(text: str, expected: str) -> None:
    assert TOKENIZER.tokens(normalise(text)) == [normalise(token) for token in expected.split()]


def test_chinese_that_quotes_some_kana_is_still_cut_by_the_dictionary() -> None:
    text = "这家店名叫の屋，老板从北京的清华大学毕业之后就回到家乡开了这家书店，一直营业到今天。"
    tokens = TOKENIZER.tokens(normalise(text))
    assert "清华大学" in tokens
    assert "の" in tokens


def test_han_the_dictionary_does_not_know_gives_bigrams() -> None:
    assert TOKENIZER.tokens("𠮷𠮶𠮵") == ["𠮷𠮶", "𠮶𠮵"]


def test_a_run_longer_than_any_sentence_is_cut_in_pieces_and_loses_nothing() -> None:
    short = "老城区的修伞匠今年七十三岁每天早上六点就把工具箱摆到桥头"
    tokens = TOKENIZER.tokens(short * 100)
    assert "".join(tokens) == short * 100
    assert set(TOKENIZER.tokens(short)) <= set(tokens)
    assert TOKENIZER.tokens("漢" * 2500 + " word " + "漢" * 3)[-2:] == ["word", "漢漢漢"]


def test_no_language_gives_single_characters_only(
    texts: dict[str, tuple[str, str]],
) -> None:
    for language, pair in texts.items():
        for text in pair:
            tokens = TOKENIZER.tokens(normalise(text))
            assert len(tokens) > 40, language
            assert sum(len(token) > 1 for token in tokens) > len(tokens) / 3, language


@quick
@given(scripts)
def test_tokens_equal_the_slow_reference(text: str) -> None:
    normalised = normalise(text)
    cut = TOKENIZER._dictionary().cut
    assert TOKENIZER.tokens(normalised) == slow_reference.tokens(normalised, cut)


@quick
@given(scripts)
def test_units_equal_the_slow_reference_and_take_no_dictionary(text: str) -> None:
    normalised = normalise(text)
    tokenizer = Tokenizer()
    assert tokenizer.units_by_block([normalised]) == [slow_reference.units(normalised)]
    assert tokenizer._words is None


@quick
@given(scripts)
def test_only_blocks_with_han_that_is_not_japanese_have_tokens_other_than_units(text: str) -> None:
    block = normalise(text)
    for japanese in (False, True):
        if not TOKENIZER.cuts_into_words(block, japanese=japanese):
            tokens = TOKENIZER.tokens_by_block([block], japanese=japanese)
            assert tokens == TOKENIZER.units_by_block([block], japanese=japanese)


def test_units_are_the_tokens_of_the_segmenter_bigrams(texts: dict[str, tuple[str, str]]) -> None:
    bigrams = Tokenizer(segmenter="bigrams")
    blocks = [normalise(text) for pair in texts.values() for text in pair]
    for block in blocks:
        [units] = TOKENIZER.units_by_block([block])
        assert units == bigrams.tokens(block) == bigrams.units_by_block([block])[0]
        assert not bigrams.cuts_into_words(block, japanese=False)


def test_threads_share_one_dictionary_and_get_the_same_tokens(
    texts: dict[str, tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = []
    load = segmentation._load_jieba

    def counted() -> object:
        loaded.append(1)
        return load()

    monkeypatch.setattr(segmentation, "_load_jieba", counted)
    shared = Tokenizer()
    text = normalise(texts["zh-Hans"][0])
    results: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda: results.append(shared.tokens(text))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert loaded == [1]
    assert results == [TOKENIZER.tokens(text)] * 4


def test_the_dictionary_neither_trusts_nor_writes_a_cache_in_the_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "jieba.cache").write_bytes(b"planted")
    assert "清华大学" in Tokenizer().tokens("他在清华大学读书")
    assert [path.name for path in tmp_path.iterdir()] == ["jieba.cache"]
    assert (tmp_path / "jieba.cache").read_bytes() == b"planted"
    assert capfd.readouterr() == ("", "")


def test_a_pickled_tokenizer_leaves_the_dictionary_behind() -> None:
    TOKENIZER.tokens("清华大学")
    pickled = pickle.dumps(TOKENIZER)
    assert len(pickled) < 200
    assert pickle.loads(pickled).tokens("ferry") == ["ferry"]


def test_heavy_libraries_load_only_when_a_page_needs_them() -> None:
    script = """
import sys
from scrapy_simdup.page import comparison, content, features, fingerprint, simhash, sketch
content.ContentExtractor()
fingerprint.Fingerprinter().fingerprint("the ferry across the estuary stopped")
heavy = {"trafilatura", "lxml", "jieba"} & set(sys.modules)
sys.exit(", ".join(heavy) or 0)
"""
    command = [sys.executable, "-W", "error", "-c", script]
    run = subprocess.run(command, capture_output=True, check=False)
    assert run.returncode == 0, run.stderr.decode()


def test_the_identity_names_all_that_changes_tokens() -> None:
    assert Tokenizer().identity.keys() == {"tokens", "jieba", "characters"}
    assert Tokenizer().identity == TOKENIZER.identity


# ---- features ------------------------------------------------------------------------------------


@quick
@given(
    st.lists(
        st.sampled_from(["ferry", "chain", "bank", "boat", "駅", "น้ำ", "\ud800"]), max_size=40
    ),
    st.sampled_from(features.WEIGHTS),
    st.integers(0, 2**64 - 1),
)
def test_features_equal_the_slow_reference(tokens: list[str], weights: str, seed: int) -> None:
    hashes, weighed = features.features(tokens, weights, seed)
    assert (hashes.dtype.name, weighed.dtype.name) == ("uint64", "float64")
    found = dict(zip(hashes.tolist(), weighed.tolist(), strict=True))
    assert found == pytest.approx(slow_reference.weighted_features(tokens, weights, seed))


@pytest.mark.parametrize(
    ("weights", "expected"),
    [("tf", [4, 1]), ("sqrt", [2, 1]), ("log", [1 + np.log(4), 1]), ("binary", [1, 1])],
)
def test_weights_grow_with_the_count_as_named(weights: str, expected: list[float]) -> None:
    assert features.weigh(np.array([4, 1]), weights) == pytest.approx(expected)


def test_unknown_weights_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"one of tf, sqrt, log, binary, got 'idf'"):
        features.features(["ferry"], "idf")


def test_the_order_of_tokens_does_not_change_features() -> None:
    one = features.features(["ferry", "chain", "ferry"])
    other = features.features(["chain", "ferry", "ferry"])
    assert np.array_equal(one[0], other[0])
    assert np.array_equal(one[1], other[1])


def test_every_position_of_a_token_has_the_same_hash_and_another_seed_another_one() -> None:
    hashes = features.token_hashes(["ferry", "chain", "ferry"])
    assert hashes[0] == hashes[2] != hashes[1]
    assert not np.isin(features.token_hashes(["ferry", "chain"], seed=1), hashes).any()


def test_no_tokens_have_no_features() -> None:
    assert len(features.token_hashes([])) == 0
    assert [len(array) for array in features.features([])] == [0, 0]


def test_a_memo_gives_the_hashes_of_tokens_and_forgets_in_time(monkeypatch) -> None:
    monkeypatch.setattr(features, "_MAX_TOKENS", 5)
    texts = [["a", "b", "a"], ["long" * 20, "c", "d", "e"], ["f", "\ud800", "a", "g"], [], ["a"]]
    for seed in (0, 7):
        memo = features.TokenMemo(seed)
        for tokens in texts * 2:
            assert memo.hashes(tokens).tolist() == features.token_hashes(tokens, seed).tolist()
            assert memo.hashes(tokens).dtype == np.uint64
            assert len(memo) <= 5
