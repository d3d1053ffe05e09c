"""What the fast paths must equal: the same, one element at a time, with Python's integers."""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from typing import TYPE_CHECKING

import regex
import xxhash

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

MASK = 2**64 - 1

IGNORABLE = regex.compile(r"\p{Default_Ignorable_Code_Point}")
BIGRAM_SCRIPT = regex.compile(
    r"[\p{Hiragana}\p{Katakana}\p{Bopomofo}\u30fc\u3031-\u3035"
    r"\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tai_Le}\p{New_Tai_Lue}\p{Tai_Tham}\p{Tai_Viet}]"
)


# ---- text ----------------------------------------------------------------------------------------


def normalise(text: str) -> str:
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    kept = ""
    for character in text:
        if character.isspace():
            kept += " "
        elif not IGNORABLE.match(character) and unicodedata.category(character) != "Cc":
            kept += character
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", kept).casefold())
    words = folded.split()
    joined = words[0] if words else ""
    for word in words[1:]:
        gap = is_ideographic(joined[-1]) and is_ideographic(word[0])
        joined += word if gap else " " + word
    return joined


def is_ideographic(character: str) -> bool:
    return bool(regex.match(r"[\p{Han}\p{Hiragana}\p{Katakana}]", character))


def kind(character: str) -> str:
    if not regex.match(r"[\p{L}\p{M}\p{N}]", character):
        return "none"
    if regex.match(r"\p{Han}", character):
        return "han"
    return "bigrams" if BIGRAM_SCRIPT.match(character) else "words"


def tokens(normalised: str, cut_han: Callable[[str], Iterable[str]]) -> list[str]:
    """Tokens by script; `cut_han` cuts one run of Han characters into words."""
    found: list[str] = []
    for sort, run in runs(normalised, han_alone=not is_japanese(normalised)):
        if sort == "han":
            words = list(cut_han(run))
            single = len(words) > 1 and all(len(word) == 1 for word in words)
            found += bigrams(run) if single else words
        elif sort == "bigrams":
            found += bigrams(run)
        elif sort == "words":
            found.append(run)
    return found


def units(normalised: str) -> list[str]:
    """The same, with Han in the bigrams of the kana around it, whatever the language."""
    found: list[str] = []
    for sort, run in runs(normalised, han_alone=False):
        if sort == "bigrams":
            found += bigrams(run)
        elif sort == "words":
            found.append(run)
    return found


def is_japanese(normalised: str) -> bool:
    kana = sum(bool(regex.match(r"[\p{Hiragana}\p{Katakana}]", c)) for c in normalised)
    han = sum(bool(regex.match(r"\p{Han}", c)) for c in normalised)
    return kana > 0 and kana >= 0.1 * (kana + han)


def runs(normalised: str, *, han_alone: bool) -> list[list[str]]:
    """The runs of one kind, each as kind and characters; Han is one of its own or of the bigrams."""
    found: list[list[str]] = []
    for character in normalised:
        sort = kind(character)
        if sort == "han" and not han_alone:
            sort = "bigrams"
        # A mark belongs to the letter before it.
        if regex.match(r"\p{M}", character) and found and found[-1][0] in ("han", "bigrams"):
            sort = found[-1][0]
        if found and found[-1][0] == sort:
            found[-1][1] += character
        else:
            found.append([sort, character])
    return found


def bigrams(run: str) -> list[str]:
    characters: list[str] = []
    for character in run:
        if characters and regex.match(r"\p{M}", character):
            characters[-1] += character
        else:
            characters.append(character)
    if len(characters) == 1:
        return characters
    return [characters[i] + characters[i + 1] for i in range(len(characters) - 1)]


def weighted_features(words: Sequence[str], weights: str, seed: int) -> dict[int, float]:
    weigh = {
        "tf": float,
        "sqrt": math.sqrt,
        "log": lambda n: 1 + math.log(n),
        "binary": lambda n: 1.0,
    }
    return {token_hash(word, seed): weigh[weights](n) for word, n in Counter(words).items()}


def token_hash(token: str, seed: int) -> int:
    return xxhash.xxh3_64_intdigest(token.encode("utf-8", "surrogatepass"), seed)


# ---- simhash -------------------------------------------------------------------------------------


def simhash(features: Iterable[tuple[int, float]]) -> int:
    sums = [0] * 64
    for value, weight in features:
        for bit in range(64):
            sums[bit] += round(weight * 65536) * (1 if value >> bit & 1 else -1)
    return sum(1 << bit for bit in range(64) if sums[bit] > 0)


# ---- sketch --------------------------------------------------------------------------------------


def shingle_hashes(hashes: Sequence[int], size: int = 8) -> set[int]:
    size = min(size, len(hashes))
    return {
        mix(hashes[start : start + size]) for start in range(len(hashes) - size + 1) if size > 0
    }


def mix(window: Sequence[int]) -> int:
    value = len(window)
    for item in window:
        value = (value * 0x9E3779B97F4A7C15 + item) & MASK
    value = ((value ^ value >> 30) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ value >> 27) * 0x94D049BB133111EB) & MASK
    return value ^ value >> 31


def sketch(shingles: Iterable[int]) -> bytes:
    smallest: dict[int, int] = {}
    for value in shingles:
        place = value >> 55
        smallest[place] = min(value, smallest.get(place, MASK))
    bins = [smallest[place] % 15 + 1 if place in smallest else 0 for place in range(512)]
    return bytes(bins[place] << 4 | bins[place + 1] for place in range(0, 512, 2))


def resemblance(a: bytes, b: bytes) -> float:
    filled_in_either = filled_in_both = same = 0
    for x, y in zip(unpack(a), unpack(b), strict=True):
        filled_in_either += x > 0 or y > 0
        filled_in_both += x > 0 and y > 0
        same += x == y > 0
    if filled_in_either == 0:
        return 0.0
    true = (15 * same - filled_in_both) / 14
    return min(1.0, max(0.0, true / filled_in_either))


def unpack(sketched: bytes) -> list[int]:
    return [half for octet in sketched for half in (octet >> 4, octet & 15)]


def jaccard(a: set[int], b: set[int]) -> float:
    return len(a & b) / len(a | b) if a or b else 0.0
