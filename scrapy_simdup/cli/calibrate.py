"""``scrapy simdup calibrate``: a distance and a resemblance for a site, from judged pairs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.exceptions import UsageError

if TYPE_CHECKING:
    import argparse

    from scrapy_simdup.cli.context import Context

SUMMARY = "Suggest a distance and a resemblance for a site, from pairs judged in the report"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("labels", metavar="LABELS", nargs="+", help="what the report has exported")
    parser.add_argument(
        "--precision", metavar="P", type=float, default=0.99, help="share of right drops (0.99)"
    )


def run(context: Context) -> None:
    from scrapy_simdup.calibrate import read_labels, settings, suggest

    options = context.options
    if not 0 < options.precision <= 1:
        raise UsageError(f"--precision {options.precision:g}: must be above 0 up to 1")
    labels = read_labels(map(Path, options.labels))
    best = suggest(labels, options.precision)
    config = context.config()
    now = next(
        (
            one
            for one in settings(labels)
            if (one.max_distance, one.min_resemblance)
            == (config.max_distance, config.min_resemblance)
        ),
        None,
    )
    output = context.output
    if output.as_json:
        output.thing(
            {
                "labels": len(labels),
                "suggested": asdict(best),
                "now": None if now is None else asdict(now),
            }
        )
        return
    rows = [{"": "suggested", **asdict(best)}]
    if now is not None:
        rows.append({"": "now", **asdict(now)})
    output.things(rows, [*rows[0]])
    output.text()
    output.text(f"SIMDUP_MAX_DISTANCE = {best.max_distance}")
    output.text(f"SIMDUP_MIN_RESEMBLANCE = {best.min_resemblance}")
