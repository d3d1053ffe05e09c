"""``scrapy simdup doctor``: whether a store is whole, and how it is doing."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from scrapy_simdup.cli.context import Context
    from scrapy_simdup.doctor import Diagnosis

SUMMARY = "Look for what is wrong with a store, and repair it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repair", action="store_true", help="put right what can be put right")


def run(context: Context) -> int:
    from scrapy_simdup.upkeep import Upkeep

    found = _look(context)
    repaired = None
    if context.options.repair and (found.findings or found.figures["stale_readers"]):
        # Opening the store to write clears the stale readers.
        with Upkeep.opened(context.store(), context.config()) as upkeep:
            repaired = upkeep.repair() if found.findings else {}
        repaired["readers_cleared"] = found.figures["stale_readers"]
        found = _look(context)
    _show(context, found, repaired)
    return 1 if found.findings else 0


def _look(context: Context) -> Diagnosis:
    from scrapy_simdup.doctor import diagnose
    from scrapy_simdup.store.reading import StoreReader

    distance = context.config().max_distance
    with StoreReader(context.store()) as reader, context.progress() as progress:
        return diagnose(
            reader,
            distance,
            lambda done, total: progress.show(done, f"{done:,} of {total:,} pages", total),
        )


def _show(context: Context, found: Diagnosis, repaired: dict[str, int] | None) -> None:
    output = context.output
    if output.as_json:
        findings = [asdict(finding) for finding in found.findings]
        output.thing(
            {
                "healthy": not findings,
                "findings": findings,
                "remarks": found.remarks,
                "repaired": repaired,
                **found.figures,
            }
        )
        return
    planner = found.figures.pop("planner", [])
    output.thing(found.figures)
    if planner:
        output.text()
        output.text("planner:")
        for line in planner:
            output.text(f"  {line}")
    output.text()
    if repaired is not None:
        output.thing(repaired)
        output.text()
    for remark in found.remarks:
        output.text(f"note: {remark}")
    if not found.findings:
        output.text("nothing wrong")
        return
    rows = [asdict(finding) for finding in found.findings]
    output.things(rows, ("what", "page", "url", "advice"))
    hidden = sum(found.more.values()) - len(found.findings)
    if hidden:
        output.text(f"and {hidden:,} more of these kinds")
