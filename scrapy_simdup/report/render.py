"""A summary and the texts of its pairs → one HTML file that needs nothing but itself."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapy_simdup.crawlstats import human_bytes
from scrapy_simdup.page.comparison import RULES
from scrapy_simdup.report.charts import MissingLibraryError, charts
from scrapy_simdup.sites import host_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy_simdup.report.data import Pair, Summary
    from scrapy_simdup.report.texts import Both, Texts

MAX_BYTES = 2_800_000
"""The file is kept below this: from there on pairs come without their texts."""

_PER_PAIR = 2_000


def render(summary: Summary, texts: Texts, on_progress: Callable[[int, int], object]) -> str:
    """The report. *on_progress* is told of the pairs whose texts are compared, and how many there are.

    Raises :class:`MissingLibraryError` without the extra ``report``.
    """
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise MissingLibraryError("Jinja2") from error
    environment = Environment(
        loader=PackageLoader("scrapy_simdup.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(size=human_bytes, link=link, figure=_figure)
    drawn = charts(summary)
    used = sum(map(len, drawn.values())) + 60_000
    pairs, without = [], 0
    chosen = summary.sampled_pairs()
    for number, pair in enumerate(chosen, 1):
        both = texts.of(pair.page, pair.page_of) if used < MAX_BYTES else None
        without += both is None and used >= MAX_BYTES
        shown = _shown(number, pair, both)
        used += _PER_PAIR + 3 * len(shown["label"]) + _bytes(both)
        pairs.append(shown)
        on_progress(number, len(chosen))
    script = _source(environment, "report.js")
    return environment.get_template("report.html.j2").render(
        summary=summary,
        title=_title(summary),
        charts=drawn,
        pairs=pairs,
        without_texts=without,
        distances=sorted({pair.distance for pair in chosen if pair.distance is not None}),
        hosts=sorted({host_of(pair.url) for pair in chosen})[:500],
        mirrors=summary.mirrors.most_common(15),
        alerts={
            name.removeprefix("alert/"): number
            for name, number in summary.counts.items()
            if name.startswith("alert/")
        },
        skipped={
            name.removeprefix("skipped/"): number
            for name, number in summary.counts.items()
            if name.startswith("skipped/")
        },
        rules=RULES,
        style=_source(environment, "report.css"),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _bytes(both: Both | None) -> int:
    """About how many bytes two texts take in the file, with their marks."""
    if both is None:
        return 0
    return sum(len(text.encode("utf-8", "replace")) + 16 for _, text in (*both.left, *both.right))


def link(url: str) -> str | None:
    """A URL that may be followed, None for what is no http address."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return url if parts.scheme in ("http", "https") and parts.hostname else None


def _source(environment: Any, name: str) -> str:
    source: str = environment.loader.get_source(environment, name)[0]
    return source


def _title(summary: Summary) -> str:
    crawl = summary.crawl
    return f"Crawl {crawl.id}" if crawl else f"Store {summary.info.path}"


def _figure(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


def _shown(number: int, pair: Pair, both: Any) -> dict[str, Any]:
    return {
        "number": number,
        "pair": pair,
        "host": host_of(pair.url),
        "both": both,
        # What the marks are exported with; in an attribute, where it is escaped.
        "label": json.dumps(
            {
                "url": pair.url,
                "duplicate_of": pair.duplicate_of,
                "kind": pair.kind,
                "distance": pair.distance,
                "resemblance": pair.resemblance,
                "containment": pair.containment,
                "rule": pair.rule,
            }
        ),
    }
