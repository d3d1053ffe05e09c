"""What a profile is made of: which views a page has, what is remembered of them, and what is not."""

from __future__ import annotations

import random
import time
from hashlib import blake2b
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest
import slow_reference
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st
from material import chinese_story, story

from scrapy_simdup.page.content import Content, ContentExtractor
from scrapy_simdup.page.features import Tokenizer, compact, normalise, normalise_blocks
from scrapy_simdup.page.fingerprint import (
    Fingerprinter,
    blocks_digest,
    text_digest,
)
from scrapy_simdup.page.profile import (
    MAIN,
    MAX_BLOCKS,
    MAX_NUMBERS,
    PROSE,
    VIEWS,
    Profile,
    View,
    block_hashes,
    pack,
    unpack,
    upper_half,
)
from scrapy_simdup.page.profiler import Portrait, Profiler, Unfit
from scrapy_simdup.page.sketch import resemblance

if TYPE_CHECKING:
    from collections.abc import Sequence

quick = settings(derandomize=True, deadline=None, max_examples=60)

PROFILER = Profiler(Fingerprinter(), VIEWS)
MAIN_ONLY = Profiler(Fingerprinter(), (MAIN,))
EXTRACTOR = ContentExtractor()

TALE = tuple(story("tale", 90).split("\n\n"))
OTHER = tuple(story("other", 90).split("\n\n"))


def profile(content: Content, profiler: Profiler = PROFILER) -> Profile:
    return profiler.portrait(content).profile


def names(content: Content, profiler: Profiler = PROFILER) -> list[str]:
    return [view.name for view in profile(content, profiler).views]


def why_unfit(content: Content, profiler: Profiler = PROFILER) -> str:
    with pytest.raises(Unfit) as raised:
        profiler.portrait(content)
    return str(raised.value)


def words(count: int) -> str:
    return " ".join(f"word{number}" for number in range(count))


# ---- views ---------------------------------------------------------------------------------------


def test_a_page_has_the_views_that_its_content_has() -> None:
    assert names(Content(TALE, TALE, TALE)) == [MAIN, PROSE]
    assert names(Content((), TALE, TALE, no_main="thin")) == [PROSE]
    assert names(Content(TALE)) == [MAIN]
    assert names(Content(TALE, TALE, TALE), MAIN_ONLY) == [MAIN]


def test_a_view_that_is_too_short_is_left_out_and_the_other_stands() -> None:
    assert names(Content((words(19),), TALE, TALE)) == [PROSE]
    assert names(Content((words(20),), TALE, TALE)) == [MAIN, PROSE]
    assert names(Content(TALE, ("short",), TALE)) == [MAIN]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (Content((words(19),)), "too_short"),
        (Content(("… — !!!",)), "no_features"),
        (Content(("loading " * 500,)), "too_uniform"),
        (Content(("\ufffd\ufffd " * 20 + words(20),)), "unreadable"),
        (Content((), (words(19),), no_main="thin"), "thin"),
        (Content((), ("!",), no_main="no_text"), "no_text"),
        (Content((words(5),), ("!",)), "too_short"),
        (Content(()), "no_text"),
    ],
)
def test_a_page_without_a_view_says_why_for_its_main_text(content: Content, why: str) -> None:
    assert why_unfit(content) == why


def test_a_thin_page_has_nothing_to_say_where_only_the_main_text_is_asked_for() -> None:
    assert why_unfit(Content((), TALE, TALE, no_main="thin"), MAIN_ONLY) == "thin"


@pytest.mark.parametrize("least", [1, 2, 20, 60])
def test_the_least_number_of_tokens_is_an_option(least: int) -> None:
    profiler = Profiler(Fingerprinter(min_tokens=least), VIEWS)
    assert profile(Content((words(least),)), profiler).views[0].tokens == least
    if least > 1:
        assert why_unfit(Content((words(least - 1),)), profiler) == "too_short"


def test_a_plain_text_has_a_main_text_of_what_blank_lines_part() -> None:
    content = Content.of_text("\n \n".join(TALE) + "\n\n\n" + TALE[0] + "\r\n\r\nlast\nline")
    assert [block.strip() for block in content.main] == [*TALE, TALE[0], "last\nline"]
    found = profile(content)
    assert [view.name for view in found.views] == [MAIN]
    assert found.visible == b""
    assert len(unpack(found.blocks)) == len(TALE) + 1


PAGE = (
    '<!DOCTYPE html><html lang="en"><head><title>The tale</title></head><body>'
    "<nav><a href='/'>Home</a></nav><main><h1>Of ferries</h1>"
    + "".join(f"<p>{paragraph}</p>" for paragraph in TALE)
    + "</main><footer>Imprint</footer></body></html>"
)
THIN = (
    "<html><head><title>A song</title></head><body><h1>A song</h1><div>"
    + "<br>".join(story(f"song {line}", 6) for line in range(36))
    + f"</div><div><p>{story('on every page', 70)}</p></div></body></html>"
)


def test_the_profile_of_a_page_tells_all_that_pages_are_compared_by() -> None:
    found = profile(EXTRACTOR.extract(PAGE))
    assert [view.name for view in found.views] == [MAIN, PROSE]
    assert (found.title, found.headings) == ("The tale", ("Of ferries",))
    assert len(found.visible) == 64
    assert found.visible_shingles > found.views[0].shingles
    paragraphs = set(block_hashes(normalise_blocks(TALE)).tolist())
    assert paragraphs <= set(unpack(found.blocks).tolist())


def test_a_thin_page_is_known_by_its_prose() -> None:
    assert names(EXTRACTOR.extract(THIN)) == [PROSE]


def test_an_extractor_of_ones_own_gives_the_main_text_only() -> None:
    content = ContentExtractor("html.unescape").extract(PAGE)
    found = profile(content)
    assert [view.name for view in found.views] == [MAIN]
    assert (found.visible, found.title, found.headings) == (b"", "The tale", ("Of ferries",))


# ---- figures of a view ---------------------------------------------------------------------------


def test_a_view_is_the_fingerprint_of_its_blocks() -> None:
    (main, prose) = profile(Content(TALE, OTHER, TALE + OTHER)).views
    for view, blocks in ((main, TALE), (prose, OTHER)):
        made = Fingerprinter().fingerprint("\n".join(blocks))
        assert made is not None
        assert (view.simhash, view.sketch) == (made.simhash, made.sketch)
        assert (view.tokens, view.shingles) == (made.tokens, made.shingles)


@quick
@given(
    st.lists(st.sampled_from(["one", "two three", "Four!", "漢字 かな", "… —", "5"]), max_size=9)
)
def test_shingles_run_on_over_the_end_of_a_block_and_words_do_not(blocks: list[str]) -> None:
    profiler = Profiler(Fingerprinter(min_tokens=1), VIEWS)
    tokenizer = Tokenizer()
    normalised = normalise_blocks(blocks)
    tokens = [token for block in tokenizer.tokens_by_block(normalised) for token in block]
    if not tokens:
        assert why_unfit(Content(tuple(blocks)), profiler) in ("no_features", "no_text")
        return
    (view,) = profile(Content(tuple(blocks)), profiler).views
    hashes = [slow_reference.token_hash(token, 0) for token in tokens]
    assert view.sketch == slow_reference.sketch(slow_reference.shingle_hashes(hashes))
    weighted = slow_reference.weighted_features(tokens, "sqrt", 0)
    assert view.simhash == slow_reference.simhash(weighted.items())


def test_all_that_is_shown_has_a_coarse_sketch_of_its_own() -> None:
    many = tuple(story("long", 900).split("\n\n"))
    whole = profile(Content(many, many, many)).visible
    half = profile(Content(many, many, (*many[: len(many) // 2], *OTHER))).visible
    assert resemblance(whole, whole) == 1.0
    assert resemblance(whole, half) == pytest.approx(0.47, abs=0.1)


# ---- digests -------------------------------------------------------------------------------------


def digest(*blocks: str) -> bytes:
    return profile(Content(blocks)).views[0].digest


def test_the_digest_does_not_depend_on_the_order_of_blocks() -> None:
    assert digest(*TALE) == digest(*reversed(TALE))
    assert digest(*TALE) == blocks_digest(map(normalise, TALE))
    assert digest(*TALE) != digest(*TALE, TALE[0])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("Ajax", "Bayern", "2", "1"), ("Ajax", "Bayern", "1", "2")),
        (("Ajax", "Bayern", "2", "1"), ("Bayern", "Ajax", "1", "2")),
        (
            ("Anna", "yes", "Berta", "yes", "Carl", "no"),
            ("Anna", "yes", "Berta", "no", "Carl", "no"),
        ),
        (("take 1 0.5 mg tablet",), ("take 10.5 mg tablet",)),
        (("12 3",), ("1 23",)),
    ],
)
def test_the_order_of_results_is_part_of_what_they_say(
    one: tuple[str, ...], other: tuple[str, ...]
) -> None:
    assert blocks_digest(map(normalise, one)) != blocks_digest(map(normalise, other))


def test_the_digest_does_not_depend_on_white_space_and_spelling() -> None:
    assert digest(*TALE) == digest(*(paragraph.upper() for paragraph in TALE))
    assert digest(*TALE) == digest(*("\n ".join(paragraph.split()) for paragraph in TALE), " \n")
    assert digest(*TALE) == digest("\ufeff" + TALE[0], *TALE[1:], "\u200b")


def test_one_word_or_one_block_more_makes_another_digest() -> None:
    first, *rest = TALE
    others = [(*TALE, "more"), (first + " more", *rest), tuple(rest), (first + "!", *rest)]
    assert len({digest(*blocks) for blocks in (TALE, *others)}) == 5


def test_blocks_joined_are_not_the_blocks() -> None:
    assert blocks_digest(["one", "two"]) != blocks_digest(["onetwo"])
    assert blocks_digest(["one two"]) == text_digest("One\n TWO") != blocks_digest(["onetwo"])
    assert blocks_digest(["one , two"]) == blocks_digest(["one, two"])


# ---- blocks --------------------------------------------------------------------------------------


def test_the_blocks_of_all_views_are_remembered_once() -> None:
    shared, *rest = TALE
    found = unpack(profile(Content((shared, *OTHER), (shared, *rest))).blocks)
    assert sorted(found.tolist()) == found.tolist()
    assert set(found.tolist()) == set(block_hashes(normalise_blocks((*TALE, *OTHER))).tolist())


def test_a_block_is_hashed_without_its_white_space() -> None:
    assert (
        block_hashes(["one two", "onetwo"]).tolist()
        == [xxhash.xxh3_64_intdigest(b"onetwo") >> 32] * 2
    )
    assert len(block_hashes([])) == 0


def test_no_more_blocks_are_remembered_than_the_smallest() -> None:
    blocks = tuple(f"block number {number} of many" for number in range(3 * MAX_BLOCKS))
    found = profile(Content(blocks)).blocks
    assert len(found) == 4 * MAX_BLOCKS
    smallest = sorted(set(block_hashes(list(blocks)).tolist()))[:MAX_BLOCKS]
    assert unpack(found).tolist() == smallest


def test_pages_with_blocks_in_common_remember_the_same_ones() -> None:
    blocks = tuple(f"block number {number} of many" for number in range(3 * MAX_BLOCKS))
    one, other = (
        set(unpack(profile(Content(part)).blocks).tolist()) for part in (blocks, blocks[9:])
    )
    assert len(one & other) > 0.9 * MAX_BLOCKS


def test_the_blocks_of_a_view_that_cannot_be_judged_are_not_remembered() -> None:
    found = unpack(profile(Content(("too short to be judged",), TALE)).blocks).tolist()
    assert found == sorted(block_hashes(normalise_blocks(TALE)).tolist())


def test_a_portrait_knows_what_each_view_consists_of() -> None:
    portrait = PROFILER.portrait(Content(TALE, OTHER))
    assert portrait.composition.keys() == {MAIN, PROSE}
    main = portrait.composition[MAIN]
    assert main.hashes.tolist() == block_hashes(normalise_blocks(TALE)).tolist()
    assert main.characters.tolist() == [len(compact(normalise(block))) for block in TALE]


def test_title_and_headings_are_blocks_that_the_host_is_told_of() -> None:
    portrait = PROFILER.portrait(Content(TALE, title="The Tale", headings=("Of  ferries", "!")))
    own = portrait.own_blocks
    assert own.dtype == np.uint32
    names = block_hashes(["the tale", "of ferries", "!"])
    assert own.tolist() == [*unpack(portrait.profile.blocks).tolist(), *names.tolist()]
    assert len(PROFILER.portrait(Content(TALE)).own_blocks) == len(TALE)


@quick
@given(st.lists(st.integers(0, 2**32 - 1), max_size=20), st.integers(1, 8))
def test_packed_hashes_are_the_smallest_distinct_ones_in_order(
    hashes: list[int], limit: int
) -> None:
    packed = pack(np.array(hashes, dtype=np.uint32), limit)
    assert unpack(packed).tolist() == sorted(set(hashes))[:limit]
    assert packed == b"".join(n.to_bytes(4, "little") for n in sorted(set(hashes))[:limit])


def test_the_upper_half_of_a_hash_is_its_first_32_bits() -> None:
    assert upper_half(np.array([0x123456789ABCDEF0], dtype=np.uint64)).tolist() == [0x12345678]


# ---- numbers -------------------------------------------------------------------------------------


def numbers(*blocks: str, filler: Sequence[str] = TALE) -> set[int]:
    return set(unpack(profile(Content((*filler, *blocks))).numbers).tolist())


def hashed(*found: str) -> set[int]:
    return {xxhash.xxh3_64_intdigest(number.encode()) >> 32 for number in found}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("no number at all", []),
        ("Price 49 euro, article A-1201", ["49", "1201"]),
        ("model RG204b, b2b and 3rd", ["rg204b", "b2b", "3rd"]),
        ("on 02.09.2024 and on 2.9.2024", ["2", "9", "2024"]),
        ("0 and 00 and 007", ["", "7"]),
        ("1,250.50", ["1", "250", "50"]),
        ("１２ and Ⅷ and ２", ["12", "2"]),
        ("价格１２元，共3件，型号ab12型", ["12", "3", "ab12"]),
        ("令和6年に3つ", ["6", "3"]),
        ("제3회 대회", ["제3회"]),
        ("عام ٢٠٢٤", ["٢٠٢٤"]),
        ("x²", ["x2"]),
    ],
)
def test_a_number_is_a_word_with_a_digit(text: str, found: list[str]) -> None:
    assert numbers(text) == hashed(*found)


def test_numbers_of_all_views_count() -> None:
    assert set(
        unpack(profile(Content((*TALE, "12 lamps"), (*TALE, "13 lamps"))).numbers).tolist()
    ) == hashed("12", "13")


def test_no_more_numbers_are_remembered_than_the_smallest() -> None:
    many = [str(number) for number in range(1000, 1200)]
    found = unpack(profile(Content((*TALE, " ".join(many)))).numbers)
    assert found.tolist() == sorted(hashed(*many))[:MAX_NUMBERS]


@pytest.mark.parametrize("word", ["a", "ab1", "漢", "漢1", "é", "1", "के", "'1"])
def test_a_long_word_does_not_take_quadratic_time(word: str) -> None:
    def seconds(length: int) -> float:
        text = word * (length // len(word))
        content = Content((*TALE, text))
        started = time.perf_counter()
        PROFILER.portrait(content)
        return time.perf_counter() - started

    seconds(1000)
    # By the square, 50,000 letters take from 15 seconds to minutes.
    assert seconds(50_000) < 6


# ---- seed, round trips, golden values ------------------------------------------------------------


def parts(found: Profile) -> list[object]:
    views = [value for view in found.views for value in (view.simhash, view.sketch, view.digest)]
    return [*views, found.visible, *unpack(found.blocks), *unpack(found.numbers)]


def test_another_seed_makes_other_hashes_of_everything() -> None:
    content = Content((*TALE, "in 1998"), (*TALE, "in 1998"), (*TALE, "in 1998"), title="Tale")
    portraits = [Profiler(Fingerprinter(seed=seed), VIEWS).portrait(content) for seed in (0, 1)]
    one, other = (parts(portrait.profile) for portrait in portraits)
    assert len(one) == len(other)
    assert not set(one) & set(other)
    own = [set(portrait.own_blocks.tolist()) for portrait in portraits]
    assert len(own[0]) == len(own[1]) == len(TALE) + 2
    assert not own[0] & own[1]
    assert [portrait.seed for portrait in portraits] == [0, 1]


def test_the_identity_names_the_views() -> None:
    assert PROFILER.identity.keys() == Fingerprinter().identity.keys() | {"profile", "views"}
    assert PROFILER.identity["views"] == "main+prose"
    assert MAIN_ONLY.identity["views"] == "main"


@pytest.mark.parametrize("html", [PAGE, THIN])
def test_a_profile_comes_back_from_a_store_as_it_was(html: str) -> None:
    found = profile(EXTRACTOR.extract(html))
    for codec in (msgspec.json, msgspec.msgpack):
        assert codec.decode(codec.encode(found), type=Profile) == found
    assert found.view(PROSE) == found.views[-1]
    assert found.view("no such view") is None


def test_a_profile_of_text_has_an_empty_sketch_of_what_is_shown_and_comes_back_too() -> None:
    found = profile(Content.of_text("\n\n".join(TALE)))
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=Profile)
    assert again == found
    assert again.visible == b""


def test_the_same_page_has_the_same_profile_each_time() -> None:
    again = Profiler(Fingerprinter(), VIEWS)
    assert profile(EXTRACTOR.extract(PAGE), again) == profile(EXTRACTOR.extract(PAGE))


CHINESE = tuple(chinese_story("tale", 200).split("\n\n"))
GOLDEN = {
    "en": "16b46beda0090fed",
    "zh": "96196e29c391c514",
}


def shown(portrait: Portrait) -> str:
    """A digest of all that is compared, but not of how it is stored."""
    found = portrait.profile
    compared = [
        *found.views,
        *(found.visible, found.visible_shingles, found.visible_blocks, found.block_shingles),
        *(found.blocks, found.numbers),
    ]
    return blake2b(msgspec.msgpack.encode(compared), digest_size=8).hexdigest()


@pytest.mark.parametrize("language", GOLDEN)
def test_profiles_are_the_same_on_every_platform(language: str) -> None:
    blocks = {"en": (*TALE, "Sold since 1998, 3rd edition."), "zh": (*CHINESE, "2024年3月第12期")}
    main = blocks[language]
    content = Content(
        main, main[1:], ("Home", *main), title="The Tale / 故事", headings=("Of ferries", "渡船")
    )
    portrait = PROFILER.portrait(content)
    assert shown(portrait) == GOLDEN[language]


def test_a_view_says_how_it_is_stored() -> None:
    """Another order of these fields would be read from old stores without an error."""
    assert View.__struct_fields__ == ("name", "simhash", "sketch", "tokens", "shingles", "digest")
    assert Profile.__struct_fields__ == (
        *("views", "visible", "visible_shingles", "visible_blocks", "block_shingles"),
        *("title", "headings", "blocks", "numbers"),
        *("embeds", "images", "links", "link_count", "apart", "apart_shingles"),
        "japanese",
    )


# ---- many blocks at once -------------------------------------------------------------------------


@settings(derandomize=True, deadline=None, max_examples=150)
@given(
    st.lists(
        st.one_of(
            st.text(max_size=6),
            st.sampled_from(
                ["Plain text", " 漢字\n漢", "かな ", "\u0301e", "ﬁ", "ΟΔΟΣ", "\ud800", "\udc00"]
            ),
            st.sampled_from(["\u200b", "", " \x00 ", "ᄀ", "ᅡ", "\u0301" * 40, "e" + "\u0301" * 40]),
        ),
        max_size=8,
    )
)
def test_blocks_are_normalised_together_as_each_by_itself(texts: list[str]) -> None:
    texts = [text.replace("\ue000", "") for text in texts]
    alone = [normalised for text in texts if (normalised := normalise(text))]
    assert normalise_blocks(texts) == alone


def test_a_text_that_has_the_mark_between_blocks_is_still_one_block() -> None:
    assert normalise_blocks(["one\ue000two", "three\ue000"]) == ["one two", "three"]
    assert normalise_blocks(["né\ue000two", "three"]) == ["né two", "three"]


def test_the_tokens_of_blocks_are_those_of_each_where_no_japanese_is_mixed_in() -> None:
    tokenizer = Tokenizer()
    pick = random.Random(2)
    blocks = [normalise(text) for text in (*TALE, *CHINESE, "ที่น้ำ", "“quoted” – dash", "15 %")]
    for _ in range(10):
        pick.shuffle(blocks)
        assert tokenizer.tokens_by_block(blocks) == [tokenizer.tokens(block) for block in blocks]


def test_whether_characters_are_japanese_is_judged_from_all_blocks_together() -> None:
    tokenizer = Tokenizer()
    heading, body = "図書館入口", "山あいの小さな駅では一日に三本しか列車が止まらない"
    together = tokenizer.tokens_by_block([heading, body])
    assert together[0] == slow_reference.bigrams(heading)
    assert tokenizer.tokens(heading) != together[0]


def test_only_the_views_are_cut_into_words_and_their_short_blocks_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    segment = Tokenizer._segment

    def recorded(self: Tokenizer, runs: list[str]) -> list[list[str]]:
        asked.extend(runs)
        return segment(self, runs)

    monkeypatch.setattr(Tokenizer, "_segment", recorded)
    profiler = Profiler(Fingerprinter(), VIEWS)
    short = "每天早上把工具箱摆到桥头"
    content = Content((*CHINESE, short), (*CHINESE, short), ("首页菜单", *CHINESE, short))
    first = profiler.portrait(content)
    assert asked.count(short) == 1
    assert "首页菜单" not in asked
    assert shown(profiler.portrait(content)) == shown(first)
    assert asked.count(short) == 1
