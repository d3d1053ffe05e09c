"""``scrapy simdup explain``: why two pages are duplicates of each other, or are not."""

from __future__ import annotations

import difflib
import sys
from typing import TYPE_CHECKING, Any

from scrapy_simdup.cli.output import printable

if TYPE_CHECKING:
    import argparse

    from scrapy_simdup.cli.context import Context
    from scrapy_simdup.explain import Explanation, Subject
    from scrapy_simdup.store.reading import StoreReader
    from scrapy_simdup.trial import Judge

SUMMARY = "Explain why two pages are duplicates of each other, or are not"

_PAGE = ("url", "stored", "title", "language", "body_digest", "text_known")
_VIEW = (
    *("view", "near", "distance", "bits", "resemblance", "containment", "length_ratio"),
    *("rule", "rule_says"),
)
_NO_TEXT = "texts are not known: crawl with SIMDUP_KEEP_TEXT, or give files or addresses to fetch"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="A", help="address in the store, file, or address to fetch")
    parser.add_argument("b", metavar="B", help="the page that comes after it")
    parser.add_argument(
        "--no-diff", action="store_true", help="leave out the differences of the texts"
    )


def run(context: Context) -> None:
    from scrapy_simdup.explain import explain
    from scrapy_simdup.sites import host_of
    from scrapy_simdup.store.reading import StoreReader
    from scrapy_simdup.trial import Judge

    options, config = context.options, context.config(keep_text=True)
    with StoreReader(context.store()) as reader:
        judge = Judge(reader, config)
        a, b = (_subject(context, judge, reader, name) for name in (options.a, options.b))
        host = host_of(b.url)
        explanation = explain(
            a,
            b,
            config,
            judge.profiler,
            lambda blocks: reader.transaction(lambda txn: txn.common_blocks(host, blocks)),
        )
    if context.output.as_json:
        context.output.thing({**explanation.as_dict(), "diff": explanation.diff()})
    else:
        _show(context, explanation)


def _subject(context: Context, judge: Judge, reader: StoreReader, name: str) -> Subject:
    from scrapy_simdup.cli.sources import SourceError, read
    from scrapy_simdup.explain import Subject
    from scrapy_simdup.page.fingerprint import body_digest
    from scrapy_simdup.verdict import SKIP_REASONS

    config = judge.config
    if "://" in name and (found := reader.find_url(name)):
        return Subject.of_record(found[0][1], config.seed)
    source = read(name, config, user_agent=context.settings.get("USER_AGENT") or "")
    analysis = judge.analyse(source.material)
    if isinstance(analysis, str):
        raise SourceError(f"{name} would be skipped: {SKIP_REASONS[analysis]} ({analysis})")
    digest = body_digest(source.material.body, config.seed)
    return Subject.of_analysis(source.url, analysis, digest)


def _show(context: Context, explanation: Explanation) -> None:
    output = context.output
    for letter, subject in (("A", explanation.a), ("B", explanation.b)):
        facts = subject.facts()
        output.text(letter)
        output.thing({name: facts[name] for name in _PAGE})
        rows = [{"view": name, **view} for name, view in facts["views"].items()]
        output.text()
        output.things(rows, ("view", "simhash", "text_digest", "tokens", "shingles"))
        output.text()
    verdict = "duplicates" if explanation.near else "no duplicates"
    output.text(f"{verdict}: {explanation.reason}")
    for comparison in explanation.comparisons:
        view = explanation.view(comparison)
        output.text()
        output.thing({name: view[name] for name in _VIEW})
    if not explanation.tokens:
        output.text()
        output.text(_NO_TEXT)
        return
    _show_tokens(context, explanation.tokens)
    if not context.options.no_diff:
        _show_diff(context, explanation)


def _show_tokens(context: Context, tokens: dict[str, Any]) -> None:
    output = context.output
    output.text()
    counts = tokens["distinct"]
    output.text(
        f"distinct tokens of {tokens['view']}: {counts['both']:,} in both, {counts['only_a']:,} "
        f"only in A, {counts['only_b']:,} only in B; those with the largest weights:"
    )
    rows = [
        {"in": where, "token": token, "weight_in_A": a, "weight_in_B": b}
        for where, found in (
            ("A", [(token, weight, None) for token, weight in tokens["only_a"].items()]),
            ("B", [(token, None, weight) for token, weight in tokens["only_b"].items()]),
            ("both", [(token, *pair) for token, pair in tokens["other_weight"].items()]),
        )
        for token, a, b in found
    ]
    output.things(rows, ("in", "token", "weight_in_A", "weight_in_B"), none="there are none")


def _show_diff(context: Context, explanation: Explanation) -> None:
    output = context.output
    lines = explanation.diff()
    output.text()
    output.text("differences of the texts (- A, + B):" if lines else "the texts are the same")
    if not output.is_terminal:
        for sign, line in lines:
            output.text(f"{sign} {printable(line)}")
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(file=sys.stdout)
    for number, (sign, line) in enumerate(lines):
        colour = {"-": "red", "+": "green", "@": "cyan"}.get(sign, "")
        shown = Text(f"{sign} ", style=colour)
        other = (
            lines[number - 1] if sign == "+" and number and lines[number - 1][0] == "-" else None
        )
        if other is None:
            shown.append(printable(line), style=colour)
        else:
            for words, changed in _changed(other[1], line):
                shown.append(printable(words), style=f"{colour} reverse" if changed else colour)
        console.print(shown)


def _changed(before: str, after: str) -> list[tuple[str, bool]]:
    """The words of a line that replaces another one, and whether they are new in it."""
    old, new = before.split(" "), after.split(" ")
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return [
        (" ".join(new[start:end]) + " ", tag != "equal")
        for tag, _, _, start, end in matcher.get_opcodes()
        if start < end
    ]
