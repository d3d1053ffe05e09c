"""What became of each page of the demo site, held against what should have. Knows no Scrapy."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from example.site import Page


@dataclass(frozen=True)
class Outcome:
    """A page of the crawl: did it pass, or was it called a duplicate, and of which page?"""

    page: Page
    passed: bool
    verdict: Any = None  # scrapy_simdup.Verdict, or None if there is none
    duplicate_of: Page | None = None

    @property
    def rightly_dropped(self) -> bool:
        of = self.duplicate_of
        return not self.passed and of is not None and self.page.story in {of.story} - {None}

    @property
    def falsely_dropped(self) -> bool:
        return not self.passed and not self.rightly_dropped


class Truth:
    """Knows the pages, is told what happens to them, and judges.

    Of the pages of one story the first that passes is the one to keep. The others are *found* if
    they are called duplicates of a page of their story, *missed* if they pass. Any other page that
    is called a duplicate is *falsely dropped*.
    """

    def __init__(self, pages: Iterable[Page]) -> None:
        self.pages = {page.path: page for page in pages}
        self.outcomes: dict[str, Outcome] = {}

    def passed(self, url: str, verdict: Any = None) -> None:
        self._outcome(url, passed=True, verdict=verdict)

    def dropped(self, url: str, verdict: Any) -> None:
        self._outcome(url, passed=False, verdict=verdict)

    @property
    def found(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes.values() if outcome.rightly_dropped]

    @property
    def missed(self) -> list[tuple[Outcome, Outcome]]:
        """Pairs of a page that should not have passed, and the one that passed before it."""
        groups = defaultdict(list)
        for outcome in self.outcomes.values():
            if outcome.passed and outcome.page.story is not None:
                groups[outcome.page.story].append(outcome)
        return [(late, first) for first, *others in groups.values() for late in others]

    @property
    def falsely_dropped(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes.values() if outcome.falsely_dropped]

    @property
    def not_seen(self) -> list[Page]:
        return [page for path, page in self.pages.items() if path not in self.outcomes]

    def report(self) -> str:
        """Return a table by form, a line for each mistake, and the sum."""
        found, missed, false = self.found, self.missed, self.falsely_dropped
        lines = [f"\n{'form':10}{'pages':>7}{'passed':>8}{'dropped':>9}{'missed':>8}{'falsely':>9}"]
        for form in dict.fromkeys(page.form for page in self.pages.values()):
            outcomes = [o for o in self.outcomes.values() if o.page.form == form]
            passed = sum(o.passed for o in outcomes)
            late = sum(o.page.form == form for o, _ in missed)
            wrong = sum(o.falsely_dropped for o in outcomes)
            pages = sum(page.form == form for page in self.pages.values())
            lines.append(f"{form:10}{pages:7}{passed:8}{len(outcomes) - passed:9}{late:8}{wrong:9}")
        lines.append("")
        lines += [f"not seen: {page.form} {page.path}" for page in self.not_seen]
        lines += [
            f"missed: {_name(late.page)} passed beside {_name(first.page)}{_apart(late, first)}"
            for late, first in missed
        ]
        lines += [
            f"falsely dropped: {_name(outcome.page)} as a duplicate of {_other(outcome)}"
            for outcome in false
        ]
        lines.append(
            f"found {len(found)} of {len(found) + len(missed)} duplicates, missed {len(missed)}, "
            f"falsely dropped {len(false)}"
        )
        return "\n".join(lines) + "\n"

    def _outcome(self, url: str, *, passed: bool, verdict: Any) -> None:
        page = self._page(url)
        if page is None:
            return
        of = None if passed else self._page(verdict.duplicate_of)
        self.outcomes.setdefault(page.path, Outcome(page, passed, verdict, of))

    def _page(self, url: str | None) -> Page | None:
        if url is None:
            return None
        parts = urlsplit(url)
        return self.pages.get(parts.path + (f"?{parts.query}" if parts.query else ""))


def _name(page: Page) -> str:
    return f"{page.form} {page.path}"


def _other(outcome: Outcome) -> str:
    verdict, of = outcome.verdict, outcome.duplicate_of
    name = _name(of) if of is not None else verdict.duplicate_of
    return f"{name} ({verdict.kind}, {verdict.reason}{_figures(verdict)})"


def _apart(late: Outcome, first: Outcome) -> str:
    """Return how far two pages are apart, as far as their verdicts tell."""
    miss = getattr(late.verdict, "near_miss", None)
    if miss is not None:  # a candidate that was looked at, and refused
        return f" (near miss of {miss.url}{_figures(miss)})"
    one, other = (getattr(outcome.verdict, "simhash", None) for outcome in (late, first))
    return "" if one is None or other is None else f" (distance {(one ^ other).bit_count()})"


def _figures(match: Any) -> str:
    figures = "" if match.distance is None else f", distance {match.distance}"
    return figures + ("" if match.resemblance is None else f", resemblance {match.resemblance:.2f}")
