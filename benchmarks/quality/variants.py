"""What can be varied, and the grid: which variants stand in which table of the report.

A `Variant` says in full how pages are judged; its defaults are the package's. How it is done is
known to `lab`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Final

from extraction import PACKAGE

from scrapy_simdup.config import Config
from scrapy_simdup.page.sketch import SHINGLE_SIZE
from scrapy_simdup.page.thresholds import THRESHOLDS, Thresholds


@dataclass(frozen=True, kw_only=True)
class Variant:
    """`options` are the package's own, `thresholds` those of its rules; what differs from default.

    `feature` is what the simhash counts: words, "word pairs", "3-shingles", "character 4-grams",
    or "words, no stop words". `han` cuts Chinese: "jieba", "rjieba" or "bigrams";
    `han_in_shingles` is "bigrams", or "words" where shingles are made of what the simhash counts.
    `sketch` is bins × bits, or "exact" for the whole set of shingles of `shingle` tokens.
    """

    extractor: str = PACKAGE
    feature: str = "words"
    han: str = "jieba"
    han_in_shingles: str = "bigrams"
    sketch: str = "512×4"
    shingle: int = SHINGLE_SIZE
    block_order: bool = False
    host_memory: bool = True
    skips_boilerplate: bool = True
    options: tuple[tuple[str, Any], ...] = ()
    thresholds: tuple[tuple[str, float], ...] = ()

    @property
    def config(self) -> Config:
        return Config.from_options(dict(self.options))

    @property
    def limits(self) -> Thresholds:
        return replace(THRESHOLDS, **dict(self.thresholds))

    @property
    def profiled_by(self) -> tuple[Any, ...]:
        """All that the profiles of pages depend on."""
        config = self.config
        return (
            *(getattr(self, name) for name in _OF_PROFILES),
            *(getattr(config, name) for name in ("weights", "min_tokens", "views")),
        )

    @property
    def base(self) -> Variant:
        """The same profiles with the package's features, weights and sketch."""
        config = self.config
        options = (("min_tokens", config.min_tokens), ("views", config.views))
        return Variant(
            extractor=self.extractor,
            han=self.han,
            han_in_shingles=self.han_in_shingles,
            block_order=self.block_order,
            options=options,
        )

    @property
    def key(self) -> str:
        changed = {
            item.name: value
            for item in fields(self)
            if (value := getattr(self, item.name)) != item.default
        }
        return ", ".join(f"{name}={value}" for name, value in changed.items()) or "default"


_OF_PROFILES: Final = (
    *("extractor", "feature", "han", "han_in_shingles", "sketch", "shingle", "block_order"),
)


@dataclass(frozen=True)
class Row:
    label: str
    variant: Variant


@dataclass(frozen=True)
class Table:
    """`chinese` counts the sets in Chinese only."""

    name: str
    varies: str
    rows: tuple[Row, ...]
    chinese: bool = False


def _row(label: str, thresholds: dict[str, float] | None = None, **parts: Any) -> Row:
    own = {name: parts.pop(name) for name in tuple(parts) if name in _VARIANT_FIELDS}
    options = tuple(sorted(parts.items()))
    limits = tuple(sorted((thresholds or {}).items()))
    return Row(label, Variant(options=options, thresholds=limits, **own))


_VARIANT_FIELDS: Final = {item.name for item in fields(Variant)} - {"options", "thresholds"}

DEFAULT: Final = _row("**default**")
PAPER: Final = _row("`paper` preset", preset="paper")

_MAIN_ONLY: Final = ("main",)

CUTS: Final = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


def _named(label: str) -> Row:
    """The default, in a table of its neighbours."""
    return Row(f"**{label}: default**", DEFAULT.variant)


def _distances() -> tuple[Row, ...]:
    default = Config().max_distance
    return tuple(
        _named(f"k = {k}") if k == default else _row(f"k = {k}", max_distance=k)
        for k in range(3, 12)
    )


def _cuts() -> tuple[Row, ...]:
    default = Config().min_resemblance
    rows = [
        _named(f"{cut}") if cut == default else _row(f"{cut}", min_resemblance=cut) for cut in CUTS
    ]
    return (*rows, _row("none", min_resemblance=None))


def _lengths() -> tuple[Row, ...]:
    default = Config().min_tokens
    return tuple(
        _named(f"{length} tokens")
        if length == default
        else _row(f"{length} tokens", min_tokens=length)
        for length in (10, 20, 30, 50, 100)
    )


PARTS: Final = Table(
    "parts",
    "switched off",
    (
        DEFAULT,
        PAPER,
        _row("all of the below but verification; main text only",
             {"agrees_with_main": 0, "agrees_with_prose": 0, "contradicts_prose": 0,
              "same_title": 0, "other_title": 0, "length_ratio": 0,
              "visible_containment": 0, "site_containment": 0},
             host_memory=False, keep_siblings=False, views=_MAIN_ONLY),
        _row("view `prose` (main text only)", views=_MAIN_ONLY),
        _row("view `main` (prose only)", extractor="prose", views=_MAIN_ONLY),
        _row("verification by sketch", min_resemblance=None),
        _row("rule `other_view`", {"agrees_with_main": 0, "agrees_with_prose": 0,
                                   "contradicts_prose": 0, "same_title": 0, "other_title": 0,
                                   "visible_containment": 0, "site_containment": 0}),
        _row("… its part for all that is shown", {"visible_containment": 0, "site_containment": 0}),
        _row("… its part for what is in no view", {"own_apart": 10**9, "own_entries": 10**9,
                                                   "own_embeds": 10**9}),
        _row("… its part for a match of the main text", {"agrees_with_main": 0}),
        _row("… its part for a match of the prose",
             {"agrees_with_prose": 0, "contradicts_prose": 0}),
        _row("… its part for equal texts", {"same_title": 0, "other_title": 0}),
        _row("rule `containment`", {"length_ratio": 0}),
        _row("rule `boilerplate`", {"boilerplate": 1e9}),
        _row("rule `siblings`", keep_siblings=False),
        _row("host memory", host_memory=False),
        _row("skipping of pages that are all boilerplate", skips_boilerplate=False),
        _row("blocks in any order (equal texts)", block_order=True),
    ),
)  # fmt: skip

TABLES: Final = (
    PARTS,
    Table("distance", "k", _distances()),
    Table("cut", "least resemblance", _cuts()),
    Table(
        "extractors",
        "text of a page",
        (
            _named("two views: main text, prose"),
            _row("main view of the package", views=_MAIN_ONLY),
            _row("prose", extractor="prose", views=_MAIN_ONLY),
            _row("all visible text", extractor="visible text", views=_MAIN_ONLY),
            _row("two views, title before each", extractor="title and text"),
            _row("title and main text", extractor="title and text", views=_MAIN_ONLY),
            _row(
                "trafilatura `fast`, no fallbacks", extractor="trafilatura fast", views=_MAIN_ONLY
            ),
            _row("trafilatura default", extractor="trafilatura default", views=_MAIN_ONLY),
            _row("trafilatura `baseline`", extractor="trafilatura baseline", views=_MAIN_ONLY),
            _row("resiliparse main content", extractor="resiliparse", views=_MAIN_ONLY),
            _row("resiliparse main content and prose", extractor="resiliparse and prose"),
            _row(
                "… all text where it finds little", extractor="resiliparse or all text, and prose"
            ),
            _row(
                "… trafilatura where it finds little",
                extractor="resiliparse or trafilatura, and prose",
            ),
        ),
    ),
    Table(
        "features",
        "feature, weight",
        (
            _named("words, sqrt"),
            *(_row(f"words, {weights}", weights=weights) for weights in ("tf", "log", "binary")),
            _row("words without stop words, sqrt", feature="words, no stop words"),
            _row("word pairs, sqrt", feature="word pairs"),
            _row("3-shingles, sqrt", feature="3-shingles"),
            _row("character 4-grams, sqrt", feature="character 4-grams"),
            _row("character 4-grams, tf", feature="character 4-grams", weights="tf"),
        ),
    ),
    Table(
        "chinese",
        "Han text is cut into",
        (
            _named("words by jieba, in shingles bigrams"),
            _row("words by rjieba, in shingles bigrams", han="rjieba"),
            _row("words by jieba, in shingles too", han_in_shingles="words"),
            _row("bigrams, in shingles too", han="bigrams"),
        ),
        chinese=True,
    ),
    Table(
        "sketches",
        "sketch",
        (
            _named("512 bins × 4 bits (256 bytes), shingles of 8"),
            _row("256 bins × 4 bits (128 bytes)", sketch="256×4"),
            _row("128 bins × 8 bits (128 bytes)", sketch="128×8"),
            _row("128 bins × 4 bits (64 bytes)", sketch="128×4"),
            _row("no sketch: all shingles, exact", sketch="exact"),
            _row("shingles of 5 tokens", shingle=5),
            _row("shingles of 6 tokens", shingle=6),
            _row("shingles of 10 tokens", shingle=10),
        ),
    ),
    Table("length", "least length", _lengths()),
)


@dataclass(frozen=True)
class Curve:
    label: str
    rows: tuple[Row, ...]


def _over_cuts(label: str, **parts: Any) -> Curve:
    return Curve(label, tuple(_row(f"{cut}", min_resemblance=cut, **parts) for cut in CUTS))


def _default_curve() -> Curve:
    default = Config().min_resemblance
    rows = (DEFAULT if cut == default else _row(f"{cut}", min_resemblance=cut) for cut in CUTS)
    return Curve("default", tuple(rows))


CURVES: Final = (
    _default_curve(),
    _over_cuts("main view only", views=_MAIN_ONLY),
    _over_cuts("all visible text", extractor="visible text", views=_MAIN_ONLY),
    _over_cuts("trafilatura baseline", extractor="trafilatura baseline", views=_MAIN_ONLY),
    Curve(
        "paper: words, tf, no verification, by k",
        tuple(
            PAPER if k == 3 else _row(f"k = {k}", preset="paper", max_distance=k)
            for k in (0, 1, 2, 3, 4, 5, 6, 8)
        ),
    ),
)
