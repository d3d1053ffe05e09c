"""``scrapy simdup check``: what the verdict on a page would be, without storing it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.exceptions import UsageError

if TYPE_CHECKING:
    import argparse

    from scrapy_simdup.cli.context import Context
    from scrapy_simdup.page.measure import Comparison
    from scrapy_simdup.store.records import Record
    from scrapy_simdup.trial import Trial

SUMMARY = "Say what the verdict on a page would be, with the nearest stored pages; store nothing"

_COLUMNS = ("near", "distance", "resemblance", "containment", "rule", "url", "title")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "pages", metavar="URL-OR-FILE", nargs="+", help="pages; - is standard input"
    )
    parser.add_argument("--url", metavar="URL", help="where the page of a file stands")
    parser.add_argument(
        "--nearest", metavar="N", type=int, default=5, help="stored pages to compare with (5)"
    )
    parser.add_argument(
        "--within",
        metavar="BITS",
        type=int,
        default=11,
        help="Hamming distance up to which they are looked for (11)",
    )


def run(context: Context) -> None:
    from scrapy_simdup.cli.sources import read
    from scrapy_simdup.store.reading import StoreReader
    from scrapy_simdup.trial import Judge

    options, config = context.options, context.config()
    if options.url and len(options.pages) > 1:
        raise UsageError("--url says where one page stands; give one page")
    if options.nearest < 0 or not 0 <= options.within <= 11:
        raise UsageError("--nearest must be at least 0, --within from 0 to 11")
    agent = context.settings.get("USER_AGENT") or ""
    with (
        StoreReader(context.store(), config.max_distance) as reader,
        reader.within(max(options.within, config.max_distance)) as wider,
    ):
        judge, look = Judge(reader, config), Judge(wider, config)
        for name in options.pages:
            source = read(name, config, url=options.url, user_agent=agent)
            trial = judge.judge(source.url, source.material)
            _show(context, trial, look.nearest(trial, options.nearest))


def _show(context: Context, trial: Trial, nearest: list[tuple[Record, Comparison]]) -> None:
    result = {"url": trial.page.url, **_verdict(trial)}
    rows = [_row(*pair) for pair in nearest]
    if context.output.as_json:
        context.output.thing({**result, "nearest": rows})
        return
    context.output.thing({name: value for name, value in result.items() if value is not None})
    context.output.text()
    context.output.things(rows, _COLUMNS, none="no stored page is near")


def _verdict(trial: Trial) -> dict[str, Any]:
    """The verdict's fields that say something, simhashes in hexadecimal digits."""
    verdict = trial.verdict
    names = (
        *("kind", "reason", "change", "duplicate_of", "distance", "resemblance", "containment"),
        *(
            "length_ratio",
            "view",
            "rule",
            "cluster_size",
            "title",
            "title_of",
            "tokens",
            "tokens_of",
        ),
    )
    return {
        **{name: getattr(verdict, name) for name in names},
        "simhash": None if verdict.simhash is None else f"{verdict.simhash:016x}",
        "simhash_of": None if verdict.simhash_of is None else f"{verdict.simhash_of:016x}",
    }


def _row(record: Record, comparison: Comparison) -> dict[str, Any]:
    return {
        "near": comparison.near,
        "distance": comparison.distance,
        "resemblance": comparison.resemblance,
        "containment": comparison.containment,
        "view": comparison.view,
        "rule": comparison.rule,
        "url": record.url,
        "title": record.title,
    }
