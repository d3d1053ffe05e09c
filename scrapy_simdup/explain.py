"""Why two pages are duplicates of each other, or are not: all that was compared, and what came of it."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from scrapy_simdup.page.comparison import RULES, compare_views
from scrapy_simdup.page.kepttext import unpack_texts
from scrapy_simdup.page.profiler import portrait_of
from scrapy_simdup.sites import host_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import numpy.typing as npt

    from scrapy_simdup.analysis import Analysis
    from scrapy_simdup.config import Config
    from scrapy_simdup.page.boilerplate import Common
    from scrapy_simdup.page.measure import Comparison
    from scrapy_simdup.page.profile import Profile
    from scrapy_simdup.page.profiler import Portrait, Profiler
    from scrapy_simdup.store.records import Record

_TOKENS = 12
_NO_COMPARISON = "the pages have no view in common: one has a main text only, the other prose only"


@dataclass(frozen=True)
class Subject:
    """A page to explain. ``texts`` are the blocks of its views, by their names, where they are known."""

    url: str
    portrait: Portrait
    body_digest: bytes
    language: str | None
    texts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    stored: str | None = None
    """``kept`` or ``duplicate`` if it is in the store."""

    @property
    def profile(self) -> Profile:
        return self.portrait.profile

    @classmethod
    def of_record(cls, record: Record, seed: int) -> Subject:
        """A stored page. Its text is known if the crawl kept it."""
        try:
            texts = unpack_texts(record.text) if record.text else {}
        except ValueError:  # damaged; the profile is still there
            texts = {}
        return cls(
            record.url,
            portrait_of(record.profile, seed),
            record.body_digest,
            record.language,
            texts,
            "kept" if record.kept else "duplicate",
        )

    @classmethod
    def of_analysis(cls, url: str, analysis: Analysis, body_digest: bytes) -> Subject:
        """A page at hand, analysed with ``keep_text``."""
        texts = unpack_texts(analysis.text) if analysis.text else {}
        return cls(url, analysis.portrait, body_digest, analysis.language, texts)

    def facts(self) -> dict[str, Any]:
        """What it is: JSON-able, digests and fingerprints in hexadecimal digits."""
        return {
            "url": self.url,
            "stored": self.stored,
            "title": self.profile.title,
            "headings": list(self.profile.headings),
            "language": self.language,
            "body_digest": self.body_digest.hex(),
            "views": {
                view.name: {
                    "simhash": f"{view.simhash:016x}",
                    "text_digest": view.digest.hex(),
                    "tokens": view.tokens,
                    "shingles": view.shingles,
                }
                for view in self.profile.views
            },
            "text_known": bool(self.texts),
        }


@dataclass(frozen=True)
class Explanation:
    """Two pages compared: ``near`` is what the detector would say of *b* after *a*."""

    a: Subject
    b: Subject
    near: bool
    reason: str
    comparisons: list[Comparison]
    tokens: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """All of it, JSON-able."""
        return {
            "a": self.a.facts(),
            "b": self.b.facts(),
            "near": self.near,
            "reason": self.reason,
            "same_bytes": self.a.body_digest == self.b.body_digest,
            "views": [self.view(comparison) for comparison in self.comparisons],
            "tokens": self.tokens,
        }

    def view(self, comparison: Comparison) -> dict[str, Any]:
        """The figures of one view, the bits that differ (0: the lowest), and the rule."""
        bits: list[int] = []
        mine = self.a.profile.view(comparison.view or "")
        theirs = self.b.profile.view(comparison.view or "")
        if mine is not None and theirs is not None:
            differing = mine.simhash ^ theirs.simhash
            bits = [bit for bit in range(64) if differing >> bit & 1]
        return {
            "view": comparison.view,
            "near": comparison.near,
            "distance": comparison.distance,
            "bits": bits,
            "resemblance": comparison.resemblance,
            "containment": comparison.containment,
            "length_ratio": comparison.length_ratio,
            "rule": comparison.rule,
            "rule_says": _says(comparison),
        }

    def text_view(self) -> str | None:
        """The view whose texts are both known; of several the one that decided."""
        names = [comparison.view for comparison in self.comparisons]
        return next((name for name in names if name in self.a.texts and name in self.b.texts), None)

    def diff(self) -> list[tuple[str, str]]:
        """The texts, line by line: (``" "``, ``"-"`` or ``"+"``, line); empty if one is not known.

        A block is a line. Lines that both have are left out where there are more than a few.
        """
        name = self.text_view()
        if name is None:
            return []
        lines = difflib.unified_diff(
            list(self.a.texts[name]), list(self.b.texts[name]), lineterm="", n=1
        )
        return [(line[:1], line[1:]) for line in lines if not line.startswith(("---", "+++"))]


def explain(
    a: Subject, b: Subject, config: Config, profiler: Profiler, common: Common | None = None
) -> Explanation:
    """Compare two pages as the detector would *b* with the kept page *a*.

    *common* says which blocks recur on their host, where a store knows it.
    """

    def shingles(view: str) -> npt.NDArray[np.uint64] | None:
        texts = a.texts.get(view)
        if texts is None:
            return None
        return profiler.shingles(texts, japanese=a.profile.japanese)

    found = compare_views(
        b.portrait,
        a.profile,
        config,
        same_site=host_of(a.url) == host_of(b.url),
        common=common,
        exact=shingles,
    )
    if a.body_digest == b.body_digest:
        near, reason = True, "same bytes"
    elif not found:
        near, reason = False, _NO_COMPARISON
    else:
        near, reason = found[0].near, _says(found[0])
    explanation = Explanation(a, b, near, reason, found, {})
    return Explanation(a, b, near, reason, found, _tokens(explanation, profiler))


def _says(comparison: Comparison) -> str:
    """What the rule says that decided; some may say either of two things."""
    says = RULES[comparison.rule or "distance"]
    near, parted, refused = says.partition("; refused: ")
    if not parted:
        return says.removeprefix("refused: ")
    return near.removeprefix("near: ") if comparison.near else refused


def _tokens(explanation: Explanation, profiler: Profiler) -> dict[str, Any]:
    """The tokens that tell the texts apart most: only in one, or with another weight in each."""
    name = explanation.text_view()
    if name is None:
        return {}
    mine = profiler.weighted_tokens(explanation.a.texts[name])
    theirs = profiler.weighted_tokens(explanation.b.texts[name])
    only_a = {token: weight for token, weight in mine.items() if token not in theirs}
    only_b = {token: weight for token, weight in theirs.items() if token not in mine}
    both = {
        token: (weight, theirs[token])
        for token, weight in mine.items()
        if token in theirs and theirs[token] != weight
    }
    by_difference = sorted(both.items(), key=lambda item: -abs(item[1][0] - item[1][1]))
    return {
        "view": name,
        "only_a": dict(sorted(only_a.items(), key=lambda item: -item[1])[:_TOKENS]),
        "only_b": dict(sorted(only_b.items(), key=lambda item: -item[1])[:_TOKENS]),
        "other_weight": dict(by_difference[:_TOKENS]),
        "distinct": {
            "only_a": len(only_a),
            "only_b": len(only_b),
            "both": len(mine.keys() & theirs.keys()),
        },
    }
