"""``scrapy simdup replay``: what other options would change, decided from the stored records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.exceptions import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from scrapy_simdup.cli.context import Context
    from scrapy_simdup.config import Config
    from scrapy_simdup.replay import Change
    from scrapy_simdup.store.crawls import Crawl
    from scrapy_simdup.store.reading import StoreReader
    from scrapy_simdup.store.records import Record

SUMMARY = "Decide about the stored pages anew under other options, and say what would change"

_COLUMNS = ("was", "would_be", "distance", "resemblance", "why", "url", "duplicate_of")
#: Options that may be given here: they change no fingerprint.
_OPTIONS = ("max_distance", "min_resemblance", "min_tokens", "keep_siblings", "scope")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--max-distance", metavar="BITS")
    parser.add_argument("--min-resemblance", metavar="R", help="or None: no verification")
    parser.add_argument("--min-tokens", metavar="N")
    parser.add_argument("--keep-siblings", metavar="YES", help="True or False")
    parser.add_argument("--scope", metavar="SCOPE", help="all, same-site or cross-site")
    parser.add_argument(
        "--crawl", metavar="ID", help="only pages that this crawl found (default: all pages)"
    )


def run(context: Context) -> None:
    from scrapy_simdup.analysis import Analyser
    from scrapy_simdup.replay import Outcome, replay
    from scrapy_simdup.store.reading import StoreReader

    options = context.options
    given = {name: value for name in _OPTIONS if (value := getattr(options, name)) is not None}
    outcome = Outcome()
    with StoreReader(context.store()) as reader, context.progress() as progress:
        crawl = _crawl(reader, options.crawl)
        own = _own(context, crawl)
        wanted = _changed(own, given)
        analyser = Analyser(own)
        reader.check_configuration(analyser.identity)
        info = reader.info()
        total = info.pages + info.aliases
        changes = replay(
            _pages(reader, crawl.id if options.crawl and crawl else options.crawl),
            own,
            wanted,
            analyser.profiler,
            total,
            outcome,
            lambda done, of: progress.show(done, f"{done:,} of {of:,} pages", of),
        )
        rows = [_row(change) for change in changes]
    _show(context, rows, outcome, {name: getattr(own, name) for name in _OPTIONS}, given)


def _crawl(reader: StoreReader, name: str | None) -> Crawl | None:
    """The crawl that is named, or the last one there is."""
    crawls = reader.crawls()
    if name is not None:
        meant = [crawl for crawl in crawls if crawl.id.startswith(name)]
        exact = [crawl for crawl in meant if crawl.id == name]
        if len(exact or meant) != 1:
            shown = ", ".join(crawl.id for crawl in crawls) or "none"
            raise UsageError(f"--crawl {name}: {len(meant)} crawls begin so; there are: {shown}")
        return (exact or meant)[0]
    return crawls[-1] if crawls else None


def _own(context: Context, crawl: Crawl | None) -> Config:
    """The options of the crawl; where they are not known, those of the settings."""
    from scrapy_simdup.config import Config
    from scrapy_simdup.errors import ConfigError

    config = context.config()
    if crawl is None:
        return config
    try:
        return Config.from_options({**crawl.options, "seed": config.seed})
    except ConfigError as error:
        context.complain(f"the options of crawl {crawl.id} are of another version ({error})")
        return config


def _changed(own: Config, given: dict[str, str]) -> Config:
    """Other options for some; ``UsageError`` for one that is not allowed, by its name here."""
    from scrapy_simdup.errors import ConfigError

    try:
        return own.replace(**given)
    except ConfigError as error:
        name, equals, wrong = str(error).partition(" = ")
        raise UsageError(f"--{name.replace('_', '-')}{equals}{wrong}") from None


def _pages(reader: StoreReader, crawl: str | None) -> Iterator[tuple[Record, Record | None, bool]]:
    for _, record in reader.records():
        original = None if record.kept else reader.get(record.representative)
        yield record, original, crawl is None or record.added_by == crawl


def _row(change: Change) -> dict[str, Any]:
    fate = change.would_be
    return {
        "url": change.url,
        "was": change.was.kind,
        "would_be": fate.kind,
        "duplicate_of": fate.duplicate_of or change.was.duplicate_of,
        "was_duplicate_of": change.was.duplicate_of,
        "distance": fate.distance if fate.is_duplicate else change.was.distance,
        "resemblance": fate.resemblance if fate.is_duplicate else change.was.resemblance,
        "why": fate.why,
        "title": change.title,
    }


def _show(
    context: Context,
    rows: list[dict[str, Any]],
    outcome: Any,
    own: dict[str, Any],
    given: dict[str, Any],
) -> None:
    output = context.output
    summary = {
        "options": own,
        "wanted": given,
        "pages": outcome.pages,
        "changed": outcome.changed,
        "was": dict(outcome.was),
        "would_be": dict(outcome.would_be),
        "decided_otherwise_offline": outcome.deviating,
    }
    if output.as_json:
        output.thing({**summary, "changes": rows})
        return
    if rows:
        output.things(rows, _COLUMNS)
        output.text()
    output.thing(summary)
