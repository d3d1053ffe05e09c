"""The texts of a pair of pages side by side, their differences marked, as far as they are known."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scrapy_simdup.page.kepttext import unpack_texts

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy_simdup.analysis import Analyser, Material
    from scrapy_simdup.store.reading import StoreReader
    from scrapy_simdup.store.records import Record

Piece = tuple[bool, str]
"""Whether a piece of text differs from the other one, and the text."""

# White space; one sign of a script without spaces; a word.
_WORD = re.compile(
    r"\s+|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
    r"|[^\s\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_WORDS = 1_200
_GAP = " … "
_AROUND = 24


@dataclass(frozen=True, slots=True)
class Both:
    """The pieces of two texts, and whether they were cut."""

    left: list[Piece]
    right: list[Piece]
    cut: bool


class Texts:
    """Finds the texts of stored pages: kept in the store, or made of what *cache* has.

    *cache* gives the page of a request, by its fingerprint; *analyser* extracts from that, and keeps
    texts.
    """

    def __init__(
        self,
        reader: StoreReader,
        analyser: Analyser,
        cache: Callable[[bytes], Material | None] | None = None,
    ) -> None:
        self._reader = reader
        self._analyser = analyser
        self._cache = cache

    def of(self, page: int, other: int) -> Both | None:
        """The texts of two pages, given by their ids; None where one is not known."""
        if not page or not other:
            return None
        texts = [self._text(self._reader.get(page_id)) for page_id in (page, other)]
        if texts[0] is None or texts[1] is None:
            return None
        name = next((name for name in texts[0] if name in texts[1]), None)
        return None if name is None else marked(texts[0][name], texts[1][name])

    def _text(self, record: Record) -> dict[str, list[str]] | None:
        packed = record.text or self._extracted(record)
        try:
            return unpack_texts(packed) if packed else None
        except ValueError:  # damaged
            return None

    def _extracted(self, record: Record) -> bytes:
        material = self._cache(record.key) if self._cache else None
        analysis = self._analyser(material).analysis if material else None
        return analysis.text if analysis else b""


def marked(a: list[str], b: list[str]) -> Both:
    """Two texts, given as their blocks, word by word; what both have is cut where it is long."""
    left, right = (_WORD.findall("\n".join(blocks)) for blocks in (a, b))
    cut = len(left) > 4 * _WORDS or len(right) > 4 * _WORDS
    left, right = left[: 4 * _WORDS], right[: 4 * _WORDS]
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    pieces: tuple[list[Piece], list[Piece]] = ([], [])
    words = 0
    for tag, *places in matcher.get_opcodes():
        parts = left[places[0] : places[1]], right[places[2] : places[3]]
        for side, part in zip(pieces, parts, strict=True):
            if part:
                side.append((tag != "equal", "".join(_shortened(part, tag == "equal"))))
        words += max(map(len, (_shortened(part, tag == "equal") for part in parts)))
        if words > _WORDS:
            cut = True
            break
    return Both(*pieces, cut)


def _shortened(words: list[str], is_equal: bool) -> list[str]:
    if not is_equal or len(words) <= 3 * _AROUND:
        return words[:_WORDS]
    return [*words[:_AROUND], _GAP, *words[-_AROUND:]]
