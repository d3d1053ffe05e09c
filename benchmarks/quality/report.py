"""Results → docs/quality.md and docs/quality.svg."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from sets import TEXT_PAIRS, Counts
from variants import CURVES, CUTS, DEFAULT, PAPER, TABLES, Row, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lab import Result
    from results import Results
    from sets import PageSet

GROUPS = ("dev", "held-out", "siblings")
_MISSING = "–"


@dataclass(frozen=True)
class Report:
    """`sets` are all that were run, in the order they are shown."""

    results: Results
    sets: Sequence[PageSet]
    command: str

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        template = Path(__file__).with_name("quality.template.md").read_text(encoding="utf-8")
        text = Template(template).substitute(
            command=self.command,
            cuts=", ".join(map(str, CUTS)),
            machine=_machine(),
            versions=_versions(),
            sets=self._set_counts(),
            by_set=self._by_set(),
            better=self._better(),
            **{table.name: self._table(table) for table in TABLES},
        )
        (folder / "quality.md").write_text(text, encoding="utf-8")
        self._draw(folder / "quality.svg")

    def _names(self, group: str, *, chinese: bool = False) -> list[str]:
        return [
            pages.name
            for pages in self.sets
            if pages.group == group and (pages.is_chinese or not chinese)
        ]

    def _table(self, table: Table) -> str:
        with_texts = any(
            (TEXT_PAIRS, row.variant.key) in self.results.texts for row in table.rows[1:]
        )
        with_extraction = table.name == "extractors"
        groups = [name for name in GROUPS if self._names(name, chinese=table.chinese)]
        header = [table.varies, *(f"{group} P / R" for group in groups)]
        if with_texts:
            header += ["texts F1", "texts S3 P / R"]
        if with_extraction:
            header.append("extraction, pages/s")
        header += ["then, pages/s", "bytes a page"]
        lines = []
        for row in table.rows:
            cells = [row.label]
            everything: list[Result] = []
            for group in groups:
                found = self.results.of(self._names(group, chinese=table.chinese), row.variant)
                everything += found
                cells.append(_rates(found))
            if with_texts:
                cells += self._text_rates(row)
            if not everything:
                continue
            pages = sum(result.pages for result in everything)
            if with_extraction:
                seconds = sum(result.extraction_seconds for result in everything)
                cells.append(f"{pages / seconds:.0f}")
            cells.append(f"{pages / sum(result.seconds for result in everything):.0f}")
            profiles = sum(result.profiles for result in everything)
            size = sum(result.profile_bytes for result in everything)
            cells.append(f"{size / max(1, profiles):.0f}")
            lines.append(cells)
        return _markdown(header, lines)

    def _text_rates(self, row: Row) -> list[str]:
        counts = self.results.texts.get((TEXT_PAIRS, row.variant.key))
        if counts is None:
            return [_MISSING, _MISSING]
        s3 = counts["s3"]
        return [f"{counts['human'].f1:.3f}", f"{s3.precision:.3f} / {s3.recall:.3f}"]

    def _set_counts(self) -> str:
        lines = []
        for group in dict.fromkeys(pages.group for pages in self.sets):
            names = self._names(group)
            found = self.results.of(names, DEFAULT.variant)
            lines.append([group, str(len(names)), str(sum(result.pages for result in found))])
        return _markdown(["", "sets", "pages"], lines)

    def _by_set(self) -> str:
        header = ["set", "pages", "default P / R", "FP", "FN", "grey", "not judged"]
        header += ["paper P / R", "FP", "FN"]
        lines = []
        for group in dict.fromkeys(pages.group for pages in self.sets):
            names = self._names(group)
            lines += [self._set_line(name, [name]) for name in names]
            if len(names) > 1:
                lines.append(self._set_line(f"**{group} together**", names))
        return _markdown(header, [line for line in lines if line])

    def _set_line(self, label: str, names: Sequence[str]) -> list[str]:
        default = self.results.of(names, DEFAULT.variant)
        paper = self.results.of(names, PAPER.variant)
        if not default or not paper:
            return []
        own, other = _together(default), _together(paper)
        return [
            label,
            str(sum(result.pages for result in default)),
            _rates(default),
            *map(str, (own.fp, own.fn, own.grey, own.skipped)),
            _rates(paper),
            *map(str, (other.fp, other.fn)),
        ]

    def _better(self) -> str:
        """The rows that beat the default on real sites, however little."""
        names = [*self._names("dev"), *self._names("held-out")]
        rows = {
            row.variant.key: (table, row)
            for table in TABLES
            for row in table.rows
            if not table.chinese and row.variant != DEFAULT.variant
        }
        lines = []
        for table, row in rows.values():
            # Where the held-out sites were not run, the dev sites decide.
            on = next((on for on in (names, self._names("dev")) if self._has(on, row)), [])
            f1, least = (_together(self.results.of(on, own.variant)).f1 for own in (row, DEFAULT))
            if f1 > least:
                label = f"{table.varies}: {row.label}"
                lines.append([label, f"{f1 - least:+.4f}", *self._all_rates(row)])
        lines.sort(key=lambda line: line[1], reverse=True)
        header = ["row", "F1", *(f"{group} P / R" for group in GROUPS)]
        return _markdown(header, [*lines, ["**default**", "", *self._all_rates(DEFAULT)]])

    def _has(self, names: Sequence[str], row: Row) -> bool:
        return all(self.results.of(names, own.variant) for own in (row, DEFAULT))

    def _all_rates(self, row: Row) -> list[str]:
        return [_rates(self.results.of(self._names(group), row.variant)) for group in GROUPS]

    def _draw(self, path: Path) -> None:
        import matplotlib as mpl

        mpl.use("svg")
        mpl.rcParams.update({"svg.hashsalt": "quality", "font.size": 9})
        from matplotlib import pyplot

        groups = [group for group in GROUPS if self._names(group)]
        figure, panels = pyplot.subplots(
            1, len(groups), figsize=(4.2 * len(groups), 4.2), squeeze=False, layout="constrained"
        )
        for panel, group in zip(panels[0], groups, strict=True):
            for curve in CURVES:
                counts = [
                    _together(found)
                    for row in curve.rows
                    if (found := self.results.of(self._names(group), row.variant))
                ]
                panel.plot(
                    [own.recall for own in counts],
                    [own.precision for own in counts],
                    marker="o",
                    markersize=3,
                    linewidth=1.2,
                    label=curve.label,
                )
            default = self.results.of(self._names(group), DEFAULT.variant)
            if default:
                own = _together(default)
                panel.plot(own.recall, own.precision, "k*", markersize=11, label="the defaults")
            panel.set(title=group, xlabel="recall")
            panel.grid(visible=True, linewidth=0.3)
        panels[0][0].set_ylabel("precision")
        handles, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
        figure.savefig(path, metadata={"Date": None})
        pyplot.close(figure)


def _together(found: Iterable[Result]) -> Counts:
    return reduce(add, (result.counts for result in found), Counts())


def _rates(found: Sequence[Result]) -> str:
    if not found:
        return _MISSING
    counts = _together(found)
    return f"{counts.precision:.3f} / {counts.recall:.3f}"


def _markdown(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    aligned = ["---", *("---:" for _ in header[1:])]
    rows = [header, aligned, *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _machine() -> str:
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors"


def _versions() -> str:
    names = ("trafilatura", "resiliparse", "lxml", "jieba", "rjieba", "numpy")
    found = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)
    return f"Python {platform.python_version()}, {found}"
