"""What reads alike becomes equal: the spelling that tokens and digests are made of.

It is counted in `features.Tokenizer.identity`; whoever uses features finds it there, too.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from typing import TYPE_CHECKING

import numpy as np
import regex

from scrapy_simdup.page.sketch import distinct

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Unicode's Default_Ignorable_Code_Point, which NFKC_Casefold removes as well: soft hyphen, zero
# width characters with ZWJ and ZWNJ (Persian writes the same word with and without ZWNJ), BOM,
# bidirectional controls, variation selectors, tags. Plus controls that are not white space: a
# stray NUL must not cut a word in two. Spelt out, since the property grows with Unicode.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
_ASCII = bytes(range(128))
_CONTROLS = bytes(code for code in _ASCII[1:] if _INVISIBLE.match(chr(code)))  # NUL is `_END`
_END = "\0"
_SMALL_LETTERS = bytes(
    0x20 if code < 128 and chr(code).isspace() else code for code in range(256)
).lower()
# Scripts that put no space between words, Han aside. The three marks of prolonged sound and
# repetition belong to kana but are Common to Unicode.
BIGRAM_SCRIPTS = (
    r"\p{Hiragana}\p{Katakana}\p{Bopomofo}\u30fc\u3031-\u3035"
    r"\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tai_Le}\p{New_Tai_Lue}\p{Tai_Tham}\p{Tai_Viet}"
)
SCRIPT_WITHOUT_SPACES = regex.compile(rf"[\p{{Han}}{BIGRAM_SCRIPTS}]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_BOUNDARY = "\ue000"
_NO_SPACES = r"\p{Han}\p{Hiragana}\p{Katakana}"
_IDEOGRAPHIC_GAP = regex.compile(rf"(?<=[{_NO_SPACES}]) (?=[{_NO_SPACES}])")
# Sorting the marks of one letter takes Python quadratic time, with the GIL held. No text has more
# than 30 (Unicode's stream-safe format).
_MANY_MARKS = regex.compile(r"(\p{M}{30})\p{M}+")
# Jamo join those before them, as marks do.
_JAMO = re.compile("[\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff]")
_MAX_RESPELT = 40


def normalise(text: str) -> str:
    """One spelling for what reads alike: the text that features and the text digest are made of.

    NFKC and case folding (so NFC and NFD, full and half width, ﬁ and fi, ß and ss are one), without
    invisible and control characters, white space collapsed to one space. White space between two
    Chinese or Japanese characters goes altogether: there it only stems from line breaks in markup.
    Surrogate pairs become the character they encode, lone surrogates U+FFFD. Idempotent.
    """
    if text.isascii():
        return _respelt([text], {})[0]
    alone = _normalise_alone([text])
    return alone[0] if alone is not None else _normalise_in_context(text)


def normalise_each(texts: Iterable[str]) -> list[str]:
    """`normalise` for every text, in one go."""
    normalised = list(texts)
    plain = [n for n, text in enumerate(normalised) if text.isascii()]
    rare = [n for n, text in enumerate(normalised) if not text.isascii()]
    for n, text in zip(plain, _respelt([normalised[n] for n in plain], {}), strict=True):
        normalised[n] = text
    if not rare:
        return normalised
    found = _normalise_alone([normalised[n] for n in rare])
    if found is None:
        # The boundary is a character that normalising leaves alone and never joins to another.
        joined = _BOUNDARY.join(normalised[n].replace(_BOUNDARY, " ") for n in rare)
        found = [text.strip() for text in _normalise_in_context(joined).split(_BOUNDARY)]
    for n, text in zip(rare, found, strict=True):
        normalised[n] = text
    return normalised


def normalise_blocks(texts: Iterable[str]) -> list[str]:
    """`normalise` for every block of a page; blocks of which nothing is left go."""
    return [text for text in normalise_each(texts) if text]


def compact(normalised: str) -> str:
    """A normalised text without any white space, so that markup which adds some changes nothing."""
    return normalised.replace(" ", "")


def _normalise_in_context(text: str) -> str:
    text = " ".join(text.split())
    rare = without_ascii(text)
    if not text.isprintable() or _INVISIBLE.search(rare):
        text = _without_invisible(text)
    if _MANY_MARKS.search(rare):
        text = _MANY_MARKS.sub(r"\1", text)
    text = " ".join(_folded(text).split())
    return _IDEOGRAPHIC_GAP.sub("", text) if SCRIPT_WITHOUT_SPACES.search(rare) else text


def _normalise_alone(texts: Sequence[str]) -> list[str] | None:
    """The same, by replacing single characters, which is faster; None where one of them depends on
    its neighbours, or many are replaced.
    """
    codes = np.frombuffer(
        without_ascii("".join(texts)).encode("utf-32-le", "surrogatepass"), dtype="<u4"
    )
    characters = distinct(codes).tobytes().decode("utf-32-le", "surrogatepass")
    spellings = list(map(_spelling, characters))
    if None in spellings:
        return None
    replaced = {
        character: spelling
        for character, spelling in zip(characters, spellings, strict=True)
        if spelling is not None and spelling != character
    }
    if len(replaced) > _MAX_RESPELT:
        return None
    found = _respelt(texts, replaced)
    if SCRIPT_WITHOUT_SPACES.search(characters):
        found = _IDEOGRAPHIC_GAP.sub("", _END.join(found)).split(_END)
    return found


def _respelt(texts: Sequence[str], replaced: dict[str, str]) -> list[str]:
    """Texts in small ASCII letters, without control characters, white space collapsed.

    *replaced* says what other characters become.
    """
    if not texts:
        return []
    joined = _END.join(texts)
    if joined.count(_END) >= len(texts):
        joined = _END.join(text.replace(_END, "") for text in texts)
    # In UTF-8, since bytes are translated without a look at each.
    octets = joined.encode().translate(_SMALL_LETTERS, _CONTROLS)
    for character, spelling in replaced.items():
        octets = octets.replace(character.encode(), spelling.encode())
    return [
        " ".join(text.split()) if "  " in text else text.strip()
        for text in octets.decode().split(_END)
    ]


@functools.lru_cache(maxsize=20_000)
def _spelling(character: str) -> str | None:
    """What a character beyond ASCII becomes, whatever stands beside it: normalising a text of such
    characters is normalising each. None for all others.
    """
    if character.isspace():
        return " "
    if _INVISIBLE.match(character):
        return ""
    category = unicodedata.category(character)
    if category[0] in "MC" or (character > "\uffff" and category != "So"):
        return None
    for text in (character, unicodedata.normalize("NFKC", character).casefold()):
        first = unicodedata.normalize("NFKD", text)[:1]
        if not first or _JAMO.match(first) or unicodedata.category(first)[0] in "MC":
            return None
    spelling = _folded(character)
    # None that another replacement would change again.
    if any(_folded(letter) != letter or letter.isspace() for letter in spelling):
        return None
    return None if _INVISIBLE.search(spelling) else spelling


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _without_invisible(text: str) -> str:
    # Before NFKC, since a zero width character keeps a letter and its accent apart.
    if _SURROGATE.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return " ".join(_INVISIBLE.sub("", text).split())


def without_ascii(text: str) -> str:
    """The characters of a text that are not ASCII."""
    # What is rare in most pages decides which path a page takes, and is quick to search.
    if text.isascii():
        return ""
    rare = text.encode("utf-8", "surrogatepass").translate(None, _ASCII)
    return rare.decode("utf-8", "surrogatepass")
