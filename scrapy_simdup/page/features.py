"""Text → tokens → weighted features.

Three steps, each deterministic and each counted in `Tokenizer.identity`: `normalise` makes what
reads alike equal (`normalisation` has it), `Tokenizer` cuts the text by script (`segmentation`),
`features` hashes and weighs. Nothing here knows HTML, and nothing here decides whether a text is
long enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import xxhash

from scrapy_simdup.page.normalisation import compact, normalise, normalise_blocks, normalise_each
from scrapy_simdup.page.segmentation import (
    RULES,
    SEGMENTERS,
    Cut,
    Tokenizer,
    is_japanese,
    is_readable,
)
from scrapy_simdup.page.sketch import first_of_each

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "RULES",
    "SEGMENTERS",
    "WEIGHTS",
    "Cut",
    "TokenMemo",
    "Tokenizer",
    "compact",
    "features",
    "is_japanese",
    "is_readable",
    "normalise",
    "normalise_blocks",
    "normalise_each",
    "term_frequencies",
    "token_hashes",
    "weigh",
]

WEIGHTS = ("tf", "sqrt", "log", "binary")
_MAX_TOKENS = 50_000
_MAX_REMEMBERED = 60
_DIGEST = np.dtype(">u8")


def token_hashes(tokens: Sequence[str], seed: int = 0) -> npt.NDArray[np.uint64]:
    """The 64-bit hash of every token, in order: uint64[n].

    xxh3-64 of the token's UTF-8 bytes, keyed by `seed` (0 … 2**64 - 1): without knowing it nobody
    can craft a page with the fingerprint of another.
    """
    return TokenMemo(seed).hashes(tokens)


class TokenMemo(dict[bytes, bytes]):
    """`token_hashes` with one seed, for texts that share most of their words: it remembers some
    50,000 of them (5 MB), which is several times as fast as hashing them.
    """

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self._seed = seed

    def hashes(self, tokens: Sequence[str]) -> npt.NDArray[np.uint64]:
        """The 64-bit hash of every token, in order: uint64[n]."""
        return self.hashes_of([token.encode("utf-8", "surrogatepass") for token in tokens])

    def hashes_of(self, tokens: Sequence[bytes]) -> npt.NDArray[np.uint64]:
        """The same of tokens in UTF-8."""
        # Joining eight bytes a token is faster than making an array of Python's integers.
        hashes = b"".join(map(self.__getitem__, tokens))
        return np.frombuffer(hashes, dtype=_DIGEST).astype(np.uint64)

    def __missing__(self, token: bytes) -> bytes:
        found = xxhash.xxh3_64_digest(token, self._seed)
        if len(token) <= _MAX_REMEMBERED:
            if len(self) >= _MAX_TOKENS:
                self.clear()
            self[token] = found
        return found


def term_frequencies(
    hashes: npt.NDArray[np.uint64],
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """The distinct hashes of uint64[n] token hashes, ascending, and how often each occurs."""
    ordered = np.sort(hashes)
    starts = np.flatnonzero(first_of_each(ordered))
    counts = np.empty(len(starts), dtype=np.int64)
    np.subtract(starts[1:], starts[:-1], out=counts[:-1])
    counts[-1:] = len(ordered) - starts[-1:]
    return ordered[starts], counts


def weigh(counts: npt.NDArray[np.int64], weights: str = "sqrt") -> npt.NDArray[np.float64]:
    """The weights of features that occur `counts` times: int64[n] → float64[n].

    `tf` the count itself, `sqrt` its square root, `log` 1 + ln(count), `binary` always 1. Raises
    ValueError for any other name.
    """
    if weights == "tf":
        return counts.astype(np.float64)
    if weights == "sqrt":
        return np.sqrt(counts, dtype=np.float64)
    if weights == "log":
        return 1.0 + np.log(counts, dtype=np.float64)
    if weights == "binary":
        return np.ones(len(counts), dtype=np.float64)
    raise ValueError(f"weights must be one of {', '.join(WEIGHTS)}, got {weights!r}")


def features(
    tokens: Iterable[str], weights: str = "sqrt", seed: int = 0
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.float64]]:
    """The features of a text: hashes of its distinct tokens, uint64[n], and weights, float64[n].

    The order of the tokens does not matter. Raises ValueError for unknown weights.
    """
    distinct, counts = term_frequencies(token_hashes(list(tokens), seed))
    return distinct, weigh(counts, weights)
