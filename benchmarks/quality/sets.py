"""Labelled sets of pages and of text pairs, and how a verdict on a page of them is judged.

A set of pages is a folder with `docs.jsonl` (a page a line, in the order of the crawl), `pairs.jsonl`
(`label` 1, 0 or null for two pages), `gold.jsonl` (the main text of pages), and the pages. A set of
text pairs has the texts instead. The sets are no part of this repository.

A page is judged as an operator of a crawl would judge it:

- TP: called a duplicate of an earlier page, and the labels agree; or that pair has no label, and
  both show the same text, or their gold texts have a Jaccard coefficient of 5-shingles ≥ 0.9
- FP: called a duplicate of an earlier page that it does not duplicate
- grey: called a duplicate of a page that is similar; not counted
- FN: passed, although a kept page before it has the same content
"""

from __future__ import annotations

import gzip
import json
import re
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

DEV: Final = (
    "phpunit-manual",
    "hexo-site",
    "wuchong-blog",
    "awslbc-docs",
    "weex-site",
    "trpl-zh",
    "wooyun-drops",
)
TEXT_PAIRS: Final = "copycat-human"

_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_WORD = re.compile(r"[^\W_]+")
_SILENT = re.compile(
    r"<(script|style|noscript|template|svg)\b.*?</\1\s*>|<!--.*?-->", re.DOTALL | re.IGNORECASE
)
_TAG = re.compile(r"<[^>]*>", re.DOTALL)


@dataclass
class Counts:
    """How the pages of a set were judged."""

    tp: int = 0
    fp: int = 0
    fn: int = 0
    grey: int = 0
    skipped: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, name) + getattr(other, name) for name in _COUNTED))

    @property
    def precision(self) -> float:
        return self.tp / (self.tp + self.fp) if self.tp + self.fp else 1.0

    @property
    def recall(self) -> float:
        return self.tp / (self.tp + self.fn) if self.tp + self.fn else 1.0

    @property
    def f1(self) -> float:
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


_COUNTED: Final = ("tp", "fp", "fn", "grey", "skipped")


@dataclass
class PageSet:
    """A folder of labelled pages. `group` says with which others it is counted together."""

    folder: Path
    group: str
    _outcomes: dict[tuple[str, str], str] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        return self.folder.name

    @cached_property
    def docs(self) -> list[dict[str, Any]]:
        return _rows(self.folder / "docs.jsonl")

    @cached_property
    def is_chinese(self) -> bool:
        found = sum(str(doc.get("lang") or "").lower().startswith("zh") for doc in self.docs)
        return 5 * found >= len(self.docs)

    def pages(self) -> Iterator[str]:
        """The HTML of every page, in the order of the crawl."""
        return map(self._html, self.docs)

    def judge(self, originals: Sequence[str | None], skipped: Sequence[bool]) -> Counts:
        """Count what was said of every page: the id of the page it duplicates, or None."""
        counts = Counts(skipped=sum(skipped))
        kept: set[str] = set()
        for doc, original in zip(self.docs, originals, strict=True):
            if original is not None:
                outcome = self._outcome(doc["id"], original)
                setattr(counts, outcome, getattr(counts, outcome) + 1)
            else:
                kept.add(doc["id"])
                counts.fn += bool((self._partners[doc["id"]] & kept) - {doc["id"]})
        return counts

    def _outcome(self, page: str, original: str) -> str:
        a, b = sorted((page, original))
        if (a, b) not in self._outcomes:
            self._outcomes[a, b] = self._judged(a, b)
        return self._outcomes[a, b]

    def _judged(self, a: str, b: str) -> str:
        if (a, b) in self._labels:
            return {1: "tp", 0: "fp", None: "grey"}[self._labels[a, b]]
        gold_a, gold_b = self._gold.get(a, ""), self._gold.get(b, "")
        if self._visible(a) == self._visible(b):
            return "tp"
        if gold_a and gold_b and _jaccard(_shingles(gold_a), _shingles(gold_b)) >= 0.9:
            return "tp"
        return "fp" if gold_a or gold_b else "grey"

    @cached_property
    def _labels(self) -> dict[tuple[str, str], int | None]:
        pairs = _rows(self.folder / "pairs.jsonl")
        return {_ordered(pair["a"], pair["b"]): pair["label"] for pair in pairs}

    @cached_property
    def _partners(self) -> dict[str, set[str]]:
        partners = defaultdict(set)
        for (a, b), label in self._labels.items():
            if label == 1:
                partners[a].add(b)
                partners[b].add(a)
        return partners

    @cached_property
    def _gold(self) -> dict[str, str]:
        return {row["id"]: row.get("text") or "" for row in _rows(self.folder / "gold.jsonl")}

    @cached_property
    def _by_id(self) -> dict[str, dict[str, Any]]:
        return {doc["id"]: doc for doc in self.docs}

    def _visible(self, page: str) -> str:
        html = self._html(self._by_id[page])
        return " ".join(_TAG.sub(" ", _SILENT.sub(" ", html)).split())

    def _html(self, doc: dict[str, Any]) -> str:
        raw: bytes = (self.folder / doc["path"]).read_bytes()
        if doc["path"].endswith(".gz"):
            raw = gzip.decompress(raw)
        encoding = (doc.get("charset_used") or "utf-8").split("+")[0]
        try:
            return str(raw, encoding, "replace")
        except LookupError:
            return str(raw, "utf-8", "replace")


@dataclass(frozen=True)
class TextPair:
    """Two texts. `human` is what a judge says (None: not sure), `s3` the 8-token shingles that they
    share over the mean number of shingles.
    """

    a: str
    b: str
    human: int | None
    s3: float


def text_pairs(folder: Path) -> list[TextPair]:
    docs = {doc["id"]: folder / doc["path"] for doc in _rows(folder / "docs.jsonl")}
    return [
        TextPair(
            docs[pair["a"]].read_text(encoding="utf-8"),
            docs[pair["b"]].read_text(encoding="utf-8"),
            pair.get("label"),
            pair["s3"],
        )
        for pair in _rows(folder / "pairs.jsonl")
    ]


def judge_pairs(pairs: Sequence[TextPair], near: Sequence[bool]) -> dict[str, Counts]:
    """By human judges, and by S3 ≥ 0.82, the cut of published studies."""
    sure = [
        (said, pair.human == 1)
        for said, pair in zip(near, pairs, strict=True)
        if pair.human in (0, 1)
    ]
    shared = [(said, pair.s3 >= 0.82) for said, pair in zip(near, pairs, strict=True)]
    return {"human": _counted(sure), "s3": _counted(shared)}


def _counted(judged: Sequence[tuple[bool, bool]]) -> Counts:
    return Counts(
        tp=sum(said and true for said, true in judged),
        fp=sum(said and not true for said, true in judged),
        fn=sum(true and not said for said, true in judged),
    )


def _ordered(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a <= b else (b, a)


def _shingles(text: str, size: int = 5) -> set[tuple[str, ...]]:
    tokens: list[str] = []
    for word in _WORD.findall(text.lower()):
        tokens += list(word) if _CJK.search(word) else [word]
    if not tokens:
        return set()
    return {tuple(tokens[i : i + size]) for i in range(max(1, len(tokens) - size + 1))}


def _jaccard(a: set[tuple[str, ...]], b: set[tuple[str, ...]]) -> float:
    union = len(a | b)
    return len(a & b) / union if union else 0.0


def _rows(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]
