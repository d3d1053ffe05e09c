from __future__ import annotations

import pickle
import unicodedata
from hashlib import blake2b
from itertools import combinations

import pytest
import slow_reference
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_simdup.page.features import WEIGHTS, Tokenizer, normalise
from scrapy_simdup.page.fingerprint import (
    Fingerprint,
    Fingerprinter,
    body_digest,
    text_digest,
)
from scrapy_simdup.page.simhash import hamming
from scrapy_simdup.page.sketch import resemblance

quick = settings(derandomize=True, deadline=None, max_examples=50)

FINGERPRINTER = Fingerprinter()


def fingerprint(text: str, by: Fingerprinter = FINGERPRINTER) -> Fingerprint:
    found = by.fingerprint(text)
    assert found is not None
    return found


EMOJI = "☀️🌊👩‍👩‍👧 محطة №5 ⚙️\u200f"

GOLDEN = {
    "en": ("e61683ebe8d6dddc", "810134f5ed1b9ec7"),
    "de": ("64152f9021bc7d92", "832b76138fbc6464"),
    "zh-Hans": ("1c16dcad8b378a7f", "792d5df4ed03f60a"),
    "ja": ("584909d7a1eb28e3", "3ad353416ab01b80"),
    "th": ("4fb8bbf80ef0c034", "d03964bda37e72b6"),
    "ar": ("a9bd03dd82b723b8", "50d083f23e3e64bf"),
}


@pytest.mark.parametrize("language", GOLDEN)
def test_fingerprints_are_the_same_on_every_platform(
    language: str, texts: dict[str, tuple[str, str]]
) -> None:
    text = "\n".join(texts[language]) + (EMOJI if language == "ar" else "")
    found = fingerprint(text)
    sketched = blake2b(found.sketch, digest_size=8).hexdigest()
    assert (f"{found.simhash:016x}", sketched) == GOLDEN[language]


@quick
@given(
    st.lists(
        st.sampled_from(
            ["the", "ferry", "across", "an", "estuary", "stopped", "for", "nine", "weeks"]
        )
    ),
    st.sampled_from(WEIGHTS),
    st.integers(0, 2**64 - 1),
)
def test_a_fingerprint_is_made_of_the_slow_references(
    words: list[str], weights: str, seed: int
) -> None:
    found = Fingerprinter(weights=weights, seed=seed).fingerprint(" ".join(words))
    if not words:
        assert found is None
        return
    hashes = [slow_reference.token_hash(word, seed) for word in words]
    shingles = slow_reference.shingle_hashes(hashes)
    assert found == Fingerprint(
        simhash=slow_reference.simhash(
            slow_reference.weighted_features(words, weights, seed).items()
        ),
        sketch=slow_reference.sketch(shingles),
        tokens=len(words),
        shingles=len(shingles),
        distinct=len(set(words)),
    )


@pytest.mark.parametrize("segmenter", ["jieba", "bigrams"])
def test_simhash_counts_the_words_of_chinese_and_shingles_are_made_of_its_bigrams(
    segmenter: str,
) -> None:
    text = "他在北京的清华大学读书，毕业之后回到家乡，开了一家叫の屋的 book 店。"
    tokens = Tokenizer(segmenter=segmenter).tokens(normalise(text))
    hashes = [slow_reference.token_hash(unit, 0) for unit in slow_reference.units(normalise(text))]
    shingles = slow_reference.shingle_hashes(hashes)
    assert fingerprint(text, Fingerprinter(segmenter=segmenter)) == Fingerprint(
        simhash=slow_reference.simhash(slow_reference.weighted_features(tokens, "sqrt", 0).items()),
        sketch=slow_reference.sketch(shingles),
        tokens=len(tokens),
        shingles=len(shingles),
        distinct=len(set(tokens)),
    )


def test_unrelated_texts_of_any_language_do_not_come_near_each_other(
    texts: dict[str, tuple[str, str]],
) -> None:
    found = [(language, fingerprint(text)) for language, pair in texts.items() for text in pair]
    for (language, a), (other, b) in combinations(found, 2):
        assert hamming(a.simhash, b.simhash) > 10, (language, other)
        assert resemblance(a.sketch, b.sketch) < 0.2, (language, other)


def test_a_note_before_and_after_a_text_moves_it_little(texts: dict[str, tuple[str, str]]) -> None:
    for language, pair in texts.items():
        text = " ".join(pair)
        words = pair[0].split()
        note = " ".join(words[:3]) if len(words) > 10 else pair[0][:6]
        a, b = fingerprint(text), fingerprint(f"{note} {text} {note}")
        assert hamming(a.simhash, b.simhash) <= 8, language
        assert resemblance(a.sketch, b.sketch) > 0.8, language


def test_what_reads_alike_has_one_fingerprint_and_one_digest(
    texts: dict[str, tuple[str, str]],
) -> None:
    for language, pair in texts.items():
        text = " ".join(pair)
        spellings = [
            unicodedata.normalize("NFD", text),
            "\u200b".join(text),
            text.replace(" ", " \n\t "),
            text.upper().lower() if language != "el" else text.upper(),
            "\ufeff" + text + "\x00",
        ]
        for spelling in spellings:
            assert fingerprint(spelling) == fingerprint(text), language
            assert text_digest(spelling) == text_digest(text), language


def test_full_width_text_is_the_same_as_half_width_text() -> None:
    half = "Model RG-204 costs 1,250 yen until 31 March; orders after 18:00 ship a day later."
    full = "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else "\u3000" for c in half)
    assert fingerprint(full) == fingerprint(half)
    assert text_digest(full) == text_digest(half)


# ---- what cannot be judged -----------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", " \n ", "… — !!! ☺", "\x00\u200b"])
def test_a_text_without_words_has_no_fingerprint(text: str) -> None:
    assert FINGERPRINTER.fingerprint(text) is None
    assert FINGERPRINTER.state(None) == "no_features"


def test_the_least_number_of_tokens_decides_what_is_too_short() -> None:
    words = [f"word{i}" for i in range(20)]
    assert FINGERPRINTER.state(fingerprint(" ".join(words))) is None
    assert FINGERPRINTER.state(fingerprint(" ".join(words[1:]))) == "too_short"
    assert Fingerprinter(min_tokens=19).state(fingerprint(" ".join(words[1:]))) is None


def test_a_page_of_one_repeated_word_is_too_uniform() -> None:
    assert FINGERPRINTER.state(fingerprint("loading " * 500)) == "too_uniform"
    for different, state in ((5, "too_uniform"), (6, None)):
        text = " ".join(f"word{i % different}" for i in range(40))
        assert FINGERPRINTER.state(fingerprint(text)) == state


# ---- options -------------------------------------------------------------------------------------


def test_weights_and_seed_are_part_of_the_fingerprint(texts: dict[str, tuple[str, str]]) -> None:
    text = " ".join(texts["en"])
    makers = [Fingerprinter(weights=weights) for weights in WEIGHTS] + [Fingerprinter(seed=5)]
    assert len({fingerprint(text, by).simhash for by in makers}) == len(makers)
    assert len({tuple(by.identity.items()) for by in makers}) == len(makers)
    assert hamming(fingerprint(text).simhash, fingerprint(text, makers[-1]).simhash) > 10
    assert fingerprint(text).sketch != fingerprint(text, makers[-1]).sketch


def test_the_identity_names_all_that_changes_a_fingerprint() -> None:
    identity = Fingerprinter(seed=7).identity
    assert identity.keys() == Tokenizer().identity.keys() | {
        "weights",
        "seed",
        "simhash",
        "sketch",
    }
    assert identity["seed"] not in ("0", "7"), "it is a secret"
    assert identity["seed"] != Fingerprinter(seed=8).identity["seed"]
    assert Fingerprinter(seed=7, min_tokens=99).identity == identity


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": "idf"}, "weights must be one of tf, sqrt, log, binary, got 'idf'"),
        ({"seed": -1}, "seed must be from 0 to .*, got -1"),
        ({"seed": 2**64}, "seed must be from 0 to .*, got 18446744073709551616"),
        ({"min_tokens": 0}, "min_tokens must be at least 1, got 0"),
    ],
)
def test_an_option_out_of_range_is_refused_by_name_and_value(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Fingerprinter(**options)  # type: ignore[arg-type]


def test_fingerprints_and_their_makers_can_be_pickled(texts: dict[str, tuple[str, str]]) -> None:
    text = texts["en"][0]
    maker = Fingerprinter(weights="tf", seed=3, min_tokens=12)
    found = fingerprint(text, maker)
    again = pickle.loads(pickle.dumps(maker))
    assert pickle.loads(pickle.dumps(found)) == found == again.fingerprint(text)
    assert again.identity == maker.identity
    assert again.min_tokens == 12


# ---- digests -------------------------------------------------------------------------------------


def test_digests_have_16_bytes_and_depend_on_the_seed() -> None:
    for digest in (text_digest("ferry"), body_digest(b"ferry")):
        assert len(digest) == 16
    assert text_digest("ferry") != text_digest("ferry", seed=1)
    assert body_digest(b"ferry") != body_digest(b"ferry", seed=1)
    with pytest.raises(ValueError, match="seed"):
        text_digest("ferry", seed=-1)


def test_different_texts_have_different_digests() -> None:
    assert text_digest("The ferry stopped.") != text_digest("The ferry stopped!")
    assert text_digest("") != text_digest("a")
    assert body_digest(b"") != body_digest(b"\x00")


def test_the_text_digest_does_not_depend_on_encoding_or_white_space() -> None:
    text = "Die Fähre über die Mündung"
    for encoding in ("utf-8", "utf-16", "latin-1", "cp1252"):
        assert text_digest(text.encode(encoding).decode(encoding)) == text_digest(text)
    assert text_digest("Die Fähre\n  über die Mün\xaddung") == text_digest(text)


def test_a_lone_surrogate_does_no_harm() -> None:
    assert text_digest("a\ud800b") == text_digest("a\udfffb")
    assert fingerprint("ferry \ud800 chain") == fingerprint("ferry chain")


@quick
@given(st.text(max_size=50))
def test_a_normalised_text_keeps_its_digest(text: str) -> None:
    assert text_digest(normalise(text)) == text_digest(text)
