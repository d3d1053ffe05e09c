"""Text → tokens, by script; and units, of which shingles are made.

Scripts with spaces are cut into words, Han by a dictionary (Japanese and the rest by pairs of
characters). All that decides which tokens a text has is counted in `Tokenizer.identity`.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import threading
import warnings
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import regex
import xxhash

from scrapy_simdup.errors import ConfigError
from scrapy_simdup.page.normalisation import BIGRAM_SCRIPTS, SCRIPT_WITHOUT_SPACES, without_ascii

if TYPE_CHECKING:
    from collections.abc import Sequence

SEGMENTERS = ("jieba", "rjieba", "bigrams")
RULES = "2"
"""Changes whenever `normalise` or `Tokenizer` gives other tokens or units for the same text."""

JAPANESE_SHARE = 0.1
"""Share of kana among Han and kana from which on a text counts as Japanese. Japanese prose has
0.4 … 0.7, its headlines 0.2; Chinese texts that quote Japanese stay below 0.05."""

_WORD_CLASS = r"\p{L}\p{M}\p{N}"
_HAN = rf"[[\p{{Han}}]&&[{_WORD_CLASS}]]\p{{M}}*+"
_BIGRAM = rf"[[{BIGRAM_SCRIPTS}]&&[{_WORD_CLASS}]]\p{{M}}*+"
_SPACED = rf"[[{_WORD_CLASS}]--[\p{{Han}}{BIGRAM_SCRIPTS}]]++"

_MAX_RUN = 1000
_UNIFICATION = "tw2sp"
"""OpenCC's conversion of characters and words from those of Taiwan to those of the mainland."""

_UNREADABLE = regex.compile(r"[\ufffd\p{Co}\p{Cn}\p{So}]+")
_KANA = regex.compile(r"[\p{Hiragana}\p{Katakana}]")
_IDEOGRAPH = regex.compile(r"\p{Han}")
_RUNS = regex.compile(
    rf"(?V1)(?P<han>(?:{_HAN})++)|(?P<bigrams>(?:{_BIGRAM})++)|(?P<words>{_SPACED})"
)
_RUNS_WITHOUT_WORDS = regex.compile(
    rf"(?V1)(?P<bigrams>(?:{_HAN}|{_BIGRAM})++)|(?P<words>{_SPACED})"
)
_CHARACTER = regex.compile(r"\P{M}\p{M}*|\p{M}+")
_SIGN = regex.compile(rf"[^{_WORD_CLASS}\x00-\x7f]")
_MAX_SIGNS = 50
_WORDS_AND_LINES = bytes(
    code if code >= 128 or chr(code).isalnum() or chr(code) == "\n" else 0x20 for code in range(256)
)
_SPACE, _NEWLINE = b" \n"


class Cut(NamedTuple):
    """All tokens of some blocks, in UTF-8, and where those of each block end: int[blocks]."""

    tokens: list[bytes]
    ends: npt.NDArray[np.intp]


class Tokenizer:
    """Cuts normalised text into tokens and into units, script by script and run by run.

    *Tokens* are what the simhash counts:

    - Han: words from the dictionary of jieba, or of rjieba, the same in Rust. Where it knows none
      and gives single characters only, the run's overlapping bigrams, since single characters say
      little about a text. With the segmenter `bigrams` always these, together with kana.
    - Kana, bopomofo, Thai, Lao, Khmer, Burmese and Tai: overlapping bigrams of characters, a
      character being a letter with its marks. A run of one character is a token of its own.
    - All else: words, that is runs of letters, marks and digits. Symbols, emoji and punctuation
      are no tokens.

    In Japanese text, where at least a tenth of Han and kana is kana (`JAPANESE_SHARE`), Han joins
    the bigrams of the kana around it: a Chinese dictionary cuts Japanese words at random.

    *Units* are what a shingle is a run of: the same, but Han is always cut into bigrams, as with
    the segmenter `bigrams`. An edit of two characters often lies across the dictionary's words and
    changes two of them, and what is around them may be cut otherwise; that is little among all
    words, but too much for runs of 8. Units take no dictionary.

    With `unify_chinese`, Chinese text in traditional characters and Taiwanese words becomes
    simplified and mainland ones first, so that the two versions of a text have the same tokens.

    A library that is wanted but not installed (OpenCC, rjieba) raises ConfigError, here and not
    with the first text; another segmenter than those of `SEGMENTERS` ValueError.

    jieba's dictionary takes about a second and 100 MB; it loads with the first Han text, once an
    instance. Instances may be used from several threads; pickled, they travel without it.
    """

    def __init__(self, *, segmenter: str = "jieba", unify_chinese: bool = False) -> None:
        if segmenter not in SEGMENTERS:
            raise ValueError(f"segmenter must be one of {', '.join(SEGMENTERS)}, got {segmenter!r}")
        self.segmenter = segmenter
        self._lock = threading.Lock()
        self._words: Any = _load_rjieba() if segmenter == "rjieba" else None
        self._opencc = _load_opencc() if unify_chinese else None

    def __reduce__(self) -> tuple[functools.partial[Tokenizer], tuple[()]]:
        unify_chinese = self._opencc is not None
        return (
            functools.partial(Tokenizer, segmenter=self.segmenter, unify_chinese=unify_chinese),
            (),
        )

    @property
    def identity(self) -> dict[str, str]:
        """All that decides which tokens a text has."""
        identity = {"tokens": RULES, "characters": _character_classes()}
        if self.segmenter == "bigrams":
            identity["segmenter"] = self.segmenter
        else:
            identity[self.segmenter] = importlib.metadata.version(self.segmenter)
        if self._opencc is not None:
            identity["opencc"] = f"{importlib.metadata.version('OpenCC')}/{_UNIFICATION}"
        return identity

    def tokens(self, normalised: str) -> list[str]:
        """The tokens of a text that went through `normalise`, in reading order."""
        return self.tokens_by_block([normalised])[0]

    def tokens_by_block(
        self, blocks: Sequence[str], *, japanese: bool | None = None
    ) -> list[list[str]]:
        """The tokens of every block of one page; no token reaches over the end of a block.

        The blocks went through `normalise` or `normalise_blocks`. Whether their Han characters are
        Japanese is judged from all of them together (`is_japanese`), or said by *japanese*, where
        they are not the whole page.
        """
        return _by_block(self.cut_tokens(blocks, japanese=japanese))

    def units_by_block(
        self, blocks: Sequence[str], *, japanese: bool | None = None
    ) -> list[list[str]]:
        """As `tokens_by_block`, the units."""
        return _by_block(self.cut_units(blocks, japanese=japanese))

    def cut_tokens(self, blocks: Sequence[str], *, japanese: bool | None = None) -> Cut:
        """As `tokens_by_block`, all in one list, in UTF-8: the quickest to hash."""
        return self._cut(blocks, japanese, in_words=self.segmenter != "bigrams")

    def cut_units(self, blocks: Sequence[str], *, japanese: bool | None = None) -> Cut:
        """As `cut_tokens`, the units."""
        return self._cut(blocks, japanese, in_words=False)

    def cuts_into_words(self, blocks: Sequence[str], *, japanese: bool) -> list[int]:
        """Which blocks of such a page have Han for the dictionary; of the others the tokens are the
        units.
        """
        if japanese or self.segmenter == "bigrams":
            return []
        if not _IDEOGRAPH.search(without_ascii("".join(blocks))):
            return []
        return [n for n, block in enumerate(blocks) if _has(_IDEOGRAPH, block)]

    def _cut(self, blocks: Sequence[str], japanese: bool | None, *, in_words: bool) -> Cut:
        rare = without_ascii("".join(blocks))
        if not SCRIPT_WITHOUT_SPACES.search(rare):
            return _cut_at_signs(blocks, rare)
        if japanese is None:
            japanese = is_japanese(blocks)
        # OpenCC is given whatever stands on such a page.
        scripts = [
            n
            for n, block in enumerate(blocks)
            if (not block.isascii() if self._opencc else _has(SCRIPT_WITHOUT_SPACES, block))
        ]
        found = self._tokens_by_script([blocks[n] for n in scripts], japanese, in_words)
        others = list(blocks)
        for n in scripts:
            others[n] = ""
        tokens, ends = _cut_at_signs(others, rare)
        return _with_blocks(tokens, ends, dict(zip(scripts, found, strict=True)))

    def _tokens_by_script(
        self, blocks: Sequence[str], japanese: bool, in_words: bool
    ) -> list[list[bytes]]:
        if self._opencc is not None and not japanese:
            # Twice, since some words mean one thing in Taiwan and another on the mainland: 程式
            # becomes 程序, and 程序 becomes 进程, there as in the mainland's text.
            convert = self._opencc.convert
            blocks = [convert(convert(block)) for block in blocks]
        find = (_RUNS if in_words and not japanese else _RUNS_WITHOUT_WORDS).finditer
        runs: list[list[tuple[str | None, str]]] = []
        for block in blocks:
            own: list[tuple[str | None, str]] = []
            for piece in _parted(block).decode().split():
                if piece.isascii():
                    own.append(("words", piece))
                else:
                    own += [(match.lastgroup, match[0]) for match in find(piece)]
            runs.append(own)
        han = iter(self._segment([run for block in runs for kind, run in block if kind == "han"]))
        tokens: list[list[bytes]] = []
        for block_runs in runs:
            words: list[str] = []
            for kind, run in block_runs:
                if kind == "words":
                    words.append(run)
                elif kind == "bigrams":
                    words += _bigrams(run)
                else:
                    words += next(han)
            tokens.append("\n".join(words).encode().split(b"\n") if words else [])
        return tokens

    def _segment(self, runs: list[str]) -> list[list[str]]:
        if not runs:
            return []
        # One call for all runs: no word reaches across white space, and it is given back.
        segmented: list[list[str]] = [[]]
        for word in self._dictionary().cut("\n".join(map(_spaced_out, runs))):
            if word == "\n":
                segmented.append([])
            elif word != " ":
                segmented[-1].append(word)
        return [
            words if len(words) == 1 or any(len(word) > 1 for word in words) else _bigrams(run)
            for words, run in zip(segmented, runs, strict=True)
        ]

    def _dictionary(self) -> Any:
        if self._words is None:
            with self._lock:
                if self._words is None:
                    self._words = _load_jieba()
        return self._words


def _spaced_out(run: str) -> str:
    """A run with a space after every 1,000 characters: for words that it does not know, jieba needs
    time by the square of their length, minutes for a page of nothing else. No sentence is as long.
    """
    if len(run) <= _MAX_RUN:
        return run
    return " ".join(run[start : start + _MAX_RUN] for start in range(0, len(run), _MAX_RUN))


def _load_jieba() -> Any:
    with warnings.catch_warnings():
        # jieba 0.42 has invalid escapes in its source and imports pkg_resources.
        warnings.simplefilter("ignore")
        jieba = importlib.import_module("jieba")
    segmenter = jieba.Tokenizer()
    # Not `initialize()`: that trusts any file named jieba.cache in the shared temporary folder,
    # whatever dictionary and whoever wrote it, and logs to stderr.
    segmenter.FREQ, segmenter.total = segmenter.gen_pfdict(segmenter.get_dict_file())
    segmenter.initialized = True
    return segmenter


def _load_rjieba() -> Any:
    try:
        return importlib.import_module("rjieba")
    except ImportError as error:
        raise ConfigError(
            "segmenter = 'rjieba' needs rjieba, which is not installed or does not load; "
            "install it with: pip install 'rjieba>=0.2'"
        ) from error


def _load_opencc() -> Any:
    try:
        # Another distribution, opencc-python-reimplemented, has a module of the same name.
        importlib.metadata.version("OpenCC")
        return importlib.import_module("opencc").OpenCC(_UNIFICATION)
    except ImportError as error:  # PackageNotFoundError is one
        raise ConfigError(
            "unify_chinese = True needs OpenCC, which is not installed or does not load; "
            "install it with: pip install 'OpenCC>=1.1.9'"
        ) from error


def _by_block(cut: Cut) -> list[list[str]]:
    tokens = [token.decode() for token in cut.tokens]
    ends = cut.ends.tolist()
    return [tokens[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def _has(pattern: regex.Pattern[str], block: str) -> bool:
    """Whether a pattern of characters beyond ASCII is found in a block."""
    return not block.isascii() and pattern.search(block) is not None


def _cut_at_signs(blocks: Sequence[str], rare: str) -> Cut:
    """The words of blocks in scripts with spaces; *rare* has all their characters beyond ASCII."""
    if rare and (signs := set(_SIGN.findall(rare))):
        blocks = _without_signs(blocks, signs)
    text = "\n".join(blocks)
    if text.count("\n") >= max(1, len(blocks)):  # not normalised
        text = "\n".join(block.replace("\n", " ") for block in blocks)
    parted = _parted(text)
    tokens = parted.split()
    if len(blocks) == 1:
        return Cut(tokens, np.array([len(tokens)]))
    octets = np.frombuffer(parted, dtype=np.uint8)
    starts = octets > _SPACE
    starts[1:] &= octets[:-1] <= _SPACE
    ends = np.searchsorted(np.flatnonzero(starts), np.flatnonzero(octets == _NEWLINE))
    return Cut(tokens, np.append(ends, len(tokens))[: len(blocks)])


def _without_signs(blocks: Sequence[str], signs: set[str]) -> list[str]:
    """Blocks with a space for every sign beyond ASCII; *signs* has at least those that they have."""
    without = list(blocks)
    for n, block in enumerate(blocks):
        if not block.isascii():
            if len(signs) > _MAX_SIGNS:
                without[n] = _SIGN.sub(" ", block)
            else:
                for sign in signs:
                    without[n] = without[n].replace(sign, " ")
    return without


def _with_blocks(
    tokens: list[bytes], ends: npt.NDArray[np.intp], found: dict[int, list[bytes]]
) -> Cut:
    """The tokens of blocks, with those *found* in place of blocks that have none, by number."""
    together: list[bytes] = []
    counts = np.diff(ends, prepend=0)
    start = 0
    for n, own in found.items():
        end = int(ends[n])
        together += tokens[start:end]
        together += own
        counts[n] = len(own)
        start = end
    together += tokens[start:]
    return Cut(together, counts.cumsum())


def _parted(text: str) -> bytes:
    """A text in UTF-8, with a space for every ASCII character that is no letter or digit.

    A line break stays one.
    """
    return text.encode("utf-8", "surrogatepass").translate(_WORDS_AND_LINES)


def _bigrams(run: str) -> list[str]:
    # A run of letters alone has no marks.
    characters = run if run.isalpha() else _CHARACTER.findall(run)
    return list(map(add, characters, characters[1:])) if len(characters) > 1 else [run]


def is_readable(normalised: str) -> bool:
    """Whether less than a fifth of a text's characters are such that nobody can read.

    U+FFFD of a wrong charset, private and unassigned characters, symbols and emoji are no tokens;
    what is left of such a text, often the boilerplate, does not stand for it.
    """
    if normalised.isascii():
        return True
    unreadable = sum(map(len, _UNREADABLE.findall(without_ascii(normalised))))
    return 5 * unreadable < len(normalised)


def is_japanese(blocks: Sequence[str]) -> bool:
    """Whether at least a tenth of the Han and kana of a page, given as its blocks, is kana."""
    rare = without_ascii("".join(blocks))
    kana = len(_KANA.findall(rare))
    return kana > 0 and kana >= JAPANESE_SHARE * (kana + len(_IDEOGRAPH.findall(rare)))


@functools.cache
def _character_classes() -> str:
    """A digest of the character classes that segmentation uses.

    They follow the Unicode version of the `regex` library, which does not tell it; its own version
    number changes every month, and would make stores look foreign for no reason.
    """
    # No letter lies beyond plane 3.
    text = "".join(map(chr, range(0x40000)))
    found = [(match.lastgroup, match.span()) for match in _RUNS.finditer(text)]
    return xxhash.xxh3_64_hexdigest(repr(found).encode())[:8]
