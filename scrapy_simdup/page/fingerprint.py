"""Text → `Fingerprint`, and the two digests that recognise identical pages."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import numpy as np

from scrapy_simdup.page import features, simhash, sketch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy.typing as npt

Hashes: TypeAlias = "npt.NDArray[np.uint64]"
Unfit = Literal["no_features", "too_short", "too_uniform"]

DIGEST_BYTES = 16

_DIGIT = re.compile(r"\d")
# A space without a letter before or behind it. It begins with a literal, to be searched quickly.
_BESIDE_SIGNS = re.compile(r" (?:(?!\w)|(?<!\w ))")
_MAX_KNOWN = 20_000
_MAX_KNOWN_BLOCK = 200


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What is compared of one view of a page.

    `simhash` has 64 bits, `sketch` 256 bytes. `tokens` counts all tokens, `distinct` the distinct
    ones, `shingles` the distinct runs of 8 units (`features.Tokenizer` says what they are).
    """

    simhash: int
    sketch: bytes
    tokens: int
    shingles: int
    distinct: int


class Options(Protocol):
    """What the user decides; `Fingerprinter` says what is allowed."""

    @property
    def weights(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def min_tokens(self) -> int: ...
    @property
    def segmenter(self) -> str: ...
    @property
    def unify_chinese(self) -> bool: ...


class Fingerprinter:
    """Fingerprints texts, always in the same way.

    `weights` is one of `features.WEIGHTS`; `seed`, 0 … 2**64 - 1, keys all hashes; a text with
    fewer than `min_tokens` tokens has a fingerprint too unstable to go by (`state`);
    `segmenter`, one of `features.SEGMENTERS`, cuts Chinese text into tokens; `unify_chinese` gives
    traditional and simplified versions of one text the same fingerprint.

    Raises ValueError for other weights or segmenters, a seed out of range, or `min_tokens` below 1;
    ConfigError for `unify_chinese` without OpenCC, and the segmenter `rjieba` without rjieba.
    """

    def __init__(
        self,
        *,
        weights: str = "sqrt",
        seed: int = 0,
        min_tokens: int = 20,
        segmenter: str = "jieba",
        unify_chinese: bool = False,
    ) -> None:
        if weights not in features.WEIGHTS:
            raise ValueError(
                f"weights must be one of {', '.join(features.WEIGHTS)}, got {weights!r}"
            )
        if min_tokens < 1:
            raise ValueError(f"min_tokens must be at least 1, got {min_tokens!r}")
        self.weights = weights
        self.seed = _checked_seed(seed)
        self.min_tokens = min_tokens
        self._tokenizer = features.Tokenizer(segmenter=segmenter, unify_chinese=unify_chinese)
        self._memo = features.TokenMemo(self.seed)
        self._known_units: dict[tuple[str, bool], Hashes] = {}
        self._known_tokens: dict[tuple[str, bool], Hashes] = {}

    def __getstate__(self) -> dict[str, object]:
        memo = features.TokenMemo(self.seed)
        return {**self.__dict__, "_memo": memo, "_known_units": {}, "_known_tokens": {}}

    @classmethod
    def of(cls, options: Options) -> Fingerprinter:
        """The fingerprinter with these options. Raises as the constructor does."""
        return cls(
            weights=options.weights,
            seed=options.seed,
            min_tokens=options.min_tokens,
            segmenter=options.segmenter,
            unify_chinese=options.unify_chinese,
        )

    @property
    def identity(self) -> dict[str, str]:
        """All that decides which fingerprint a text has. `min_tokens` does not."""
        return {
            **self._tokenizer.identity,
            "weights": self.weights,
            "seed": _shown_seed(self.seed),
            "simhash": f"{simhash.RULES}/{simhash.BITS}",
            "sketch": f"{sketch.RULES}/{sketch.BINS}x4/{sketch.SHINGLE_SIZE}",
        }

    def fingerprint(self, text: str) -> Fingerprint | None:
        """The fingerprint of a text, or None when it has no features at all."""
        return self.fingerprint_normalised(features.normalise(text))

    def weighted_tokens(self, text: str) -> dict[str, float]:
        """The distinct tokens of a text with their weights in its simhash, as they come."""
        counts = Counter(self._tokenizer.tokens(features.normalise(text)))
        weights = features.weigh(np.array([*counts.values()], dtype=np.int64), self.weights)
        return dict(zip(counts, weights.tolist(), strict=True))

    def fingerprint_normalised(self, normalised: str) -> Fingerprint | None:
        """As `fingerprint`, of a text that went through `features.normalise` already."""
        japanese = features.is_japanese([normalised])
        units = self.unit_hashes([normalised], japanese=japanese)
        [tokens] = self.token_hashes([normalised], units, japanese=japanese)
        return self.fingerprint_hashes(tokens, units[0])

    def unit_hashes(self, blocks: Sequence[str], *, japanese: bool) -> list[Hashes]:
        """The hashes of the units of every block, in order; the blocks are normalised.

        *japanese* says whether their page is. Short blocks recur on the pages of a site: those of
        the last pages that are slow to cut, being not ASCII, are remembered.
        """
        return self._hashes(blocks, japanese, self._tokenizer.cut_units, self._known_units)

    def token_hashes(
        self, blocks: Sequence[str], units: Sequence[Hashes], *, japanese: bool
    ) -> list[Hashes]:
        """The same of their tokens, given the hashes of their units: most blocks have no others."""
        found = list(units)
        han = self._tokenizer.cuts_into_words(blocks, japanese=japanese)
        if han:
            tokens = self._hashes(
                [blocks[n] for n in han], japanese, self._tokenizer.cut_tokens, self._known_tokens
            )
            for n, own in zip(han, tokens, strict=True):
                found[n] = own
        return found

    def _hashes(
        self,
        blocks: Sequence[str],
        japanese: bool,
        cut: Callable[..., features.Cut],
        known: dict[tuple[str, bool], Hashes],
    ) -> list[Hashes]:
        rare = [block for block in blocks if not block.isascii()]
        found = {
            block: hashes for block in rare if (hashes := known.get((block, japanese))) is not None
        }
        new = [block for block in blocks if block not in found] if found else blocks
        tokens, ends = cut(new, japanese=japanese)
        hashes = self._memo.hashes_of(tokens)
        bounds = ends.tolist()
        parts = [hashes[start:end] for start, end in zip([0, *bounds], bounds, strict=False)]
        if not rare:
            return parts
        own = dict(zip(new, parts, strict=True))
        if len(known) + len(rare) > _MAX_KNOWN:
            known.clear()
        for block in rare[:_MAX_KNOWN]:
            if len(block) <= _MAX_KNOWN_BLOCK and block in own:
                known[block, japanese] = own[block].copy()  # not a view of the whole page
        own.update(found)
        return [own[block] for block in blocks]

    def fingerprint_hashes(self, tokens: Hashes, units: Hashes) -> Fingerprint | None:
        """As `fingerprint`, of the hashes of a text's tokens and units, in order."""
        if len(tokens) == 0:
            return None
        distinct, counts = features.term_frequencies(tokens)
        shingles = sketch.shingle_hashes(units)
        return Fingerprint(
            simhash=simhash.simhash(distinct, features.weigh(counts, self.weights)),
            sketch=sketch.sketch(shingles),
            tokens=len(tokens),
            shingles=len(shingles),
            distinct=len(distinct),
        )

    def state(self, fingerprint: Fingerprint | None) -> Unfit | None:
        """Why a page cannot be judged by this fingerprint, or None when it can.

        `no_features`: the text has no word at all. `too_short`: fewer than `min_tokens` tokens.
        `too_uniform`: fewer than a third of `min_tokens` distinct ones, such as one word repeated.
        """
        if fingerprint is None:
            return "no_features"
        if fingerprint.tokens < self.min_tokens:
            return "too_short"
        if fingerprint.distinct < self.min_tokens // 3:
            return "too_uniform"
        return None


def text_digest(text: str, seed: int = 0) -> bytes:
    """16 bytes that are equal for texts that read alike, in whatever encoding or markup.

    Raises ValueError for a seed outside 0 … 2**64 - 1.
    """
    return blocks_digest([features.normalise(text)], seed)


def blocks_digest(blocks: Iterable[str], seed: int = 0) -> bytes:
    """16 bytes that are equal for the same normalised blocks, in whatever order.

    blake2b, keyed by `seed`: a menu or a list that is sorted otherwise on the next visit does not
    make another text. Blocks with digits, and those that occur more than once, keep their order: of
    a table of results it is part of what it says. Raises ValueError for a seed outside
    0 … 2**64 - 1.
    """
    compacted = _compact(list(blocks))
    often = Counter(compacted)
    ordered = [block for block in compacted if often[block] > 1 or _DIGIT.search(block)]
    free = sorted(set(compacted).difference(ordered))
    return body_digest("\n".join((*free, "\n", *ordered)).encode(), seed)


def _compact(blocks: Sequence[str]) -> list[str]:
    """Blocks without the white space beside signs, which markup adds and takes away."""
    # All at once: to the pattern the end of a line is like the end of a text.
    return _BESIDE_SIGNS.sub("", "\n".join(blocks)).split("\n") if blocks else []


def body_digest(body: bytes, seed: int = 0) -> bytes:
    """16 bytes that are equal for equal bodies: blake2b of the bytes, keyed by `seed`.

    Raises ValueError for a seed outside 0 … 2**64 - 1.
    """
    key = _checked_seed(seed).to_bytes(8, "little")
    return blake2b(body, digest_size=DIGEST_BYTES, key=key).digest()


def _shown_seed(seed: int) -> str:
    """A seed is a secret: what is written into stores and messages tells seeds apart, no more."""
    return blake2b(b"%d" % seed, digest_size=8).hexdigest() if seed else "0"


def _checked_seed(seed: int) -> int:
    if not 0 <= seed < 2**64:
        raise ValueError(f"seed must be from 0 to 2**64 - 1, got {seed!r}")
    return seed
