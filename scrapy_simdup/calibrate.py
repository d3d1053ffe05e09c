"""Pairs that a person has judged → the distance and the resemblance that would have judged so."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scrapy_simdup.errors import SimdupError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

LEAST = 20
"""Fewer judged pairs suggest nothing; and so do fewer than a quarter of it of either kind."""
_MAX_DISTANCE = 11
_RESEMBLANCES = tuple(round(0.5 + 0.05 * step, 2) for step in range(10))
_Z = 1.96


class LabelsError(SimdupError):
    """Labels that cannot be read or suggest nothing; the message says why."""


@dataclass(frozen=True, slots=True)
class Label:
    """A pair as it was judged: ``is_duplicate`` is the truth."""

    distance: int
    resemblance: float
    is_duplicate: bool


@dataclass(frozen=True, slots=True)
class Setting:
    """What one pair of thresholds makes of the labels. ``at_least`` is the lower end of the 95 %
    interval (Wilson 1927) of the precision.
    """

    max_distance: int
    min_resemblance: float
    precision: float
    at_least: float
    recall: float
    found: int


def read_labels(paths: Iterable[Path]) -> list[Label]:
    """The labels of files that the report has exported; those of the same bytes say nothing here.

    Of a near miss *right* means that it was rightly kept. Raises :class:`LabelsError`.
    """
    labels: dict[tuple[str, str], Label] = {}
    for path in paths:
        try:
            lines = path.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise LabelsError(f"{str(path)!r} cannot be read ({why})") from error
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    found = _label(json.loads(line))
                except (ValueError, KeyError, TypeError, AttributeError) as error:
                    raise LabelsError(
                        f"{str(path)!r}, line {number} is no label ({error}); give what the report "
                        "exports"
                    ) from error
                if found is not None:
                    labels[found[0]] = found[1]  # judged again: the last counts
    return [*labels.values()]


def _label(fields: dict[str, Any]) -> tuple[tuple[str, str], Label] | None:
    right = fields["right"]
    if not isinstance(right, bool):
        raise TypeError("right must be true or false")
    distance, resemblance = fields["distance"], fields["resemblance"]
    if distance is None or resemblance is None:
        return None
    truth = right != (fields["kind"] == "near_miss")
    key = str(fields["url"]), str(fields["duplicate_of"])
    return key, Label(int(distance), float(resemblance), truth)


def settings(labels: list[Label]) -> list[Setting]:
    """What each distance and resemblance of a grid makes of the labels.

    Recall is that among the labelled pairs: what was never a candidate is not among them.
    """
    true = sum(label.is_duplicate for label in labels)
    found = []
    for distance in range(_MAX_DISTANCE + 1):
        for resemblance in _RESEMBLANCES:
            chosen = [
                label.is_duplicate
                for label in labels
                if label.distance <= distance and label.resemblance >= resemblance
            ]
            if chosen:
                right = sum(chosen)
                found.append(
                    Setting(
                        distance,
                        resemblance,
                        right / len(chosen),
                        _lower_end(right, len(chosen)),
                        right / max(1, true),
                        len(chosen),
                    )
                )
    return found


def suggest(labels: list[Label], precision: float) -> Setting:
    """The setting that finds most with at least this precision; of equals the strictest.

    Raises :class:`LabelsError` where the labels are too few, or no setting is so precise.
    """
    true = sum(label.is_duplicate for label in labels)
    wanted = LEAST // 4
    if len(labels) < LEAST or min(true, len(labels) - true) < wanted:
        raise LabelsError(
            f"{len(labels)} judged pairs, {true} of them duplicates, are too few: judge at least "
            f"{LEAST}, {wanted} of each kind (near misses and high distances are where the others are)"
        )
    good = [setting for setting in settings(labels) if setting.precision >= precision]
    if not good:
        raise LabelsError(
            f"no distance and resemblance reach a precision of {precision:g} on these pairs; "
            "ask for less with --precision"
        )
    return max(good, key=lambda one: (one.recall, -one.max_distance, one.min_resemblance))


def _lower_end(right: int, of: int) -> float:
    share = right / of
    middle = share + _Z**2 / (2 * of)
    spread = _Z * math.sqrt(share * (1 - share) / of + _Z**2 / (4 * of**2))
    return max(0.0, (middle - spread) / (1 + _Z**2 / of))
