"""What Scrapy sees when something is dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.exceptions import DropItem, IgnoreRequest

from scrapy_simdup.printable import one_line

if TYPE_CHECKING:
    from scrapy.http import Response

    from scrapy_simdup.verdict import Verdict


class DuplicatePage(IgnoreRequest):
    """A page that duplicates a kept one; its request's errback gets it.

    ``response`` is the page itself, ``verdict`` says what it duplicates and how that is known.
    """

    def __init__(self, response: Response, verdict: Verdict) -> None:
        self.response = response
        self.verdict = verdict
        super().__init__(explain(verdict))


class DuplicateItem(DropItem):
    """An item of a duplicate page, or one that duplicates another item."""

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict
        # Scrapy logs the whole item with its message; the pipeline's own line, at INFO, is short.
        super().__init__(explain(verdict), log_level="DEBUG")


def explain(verdict: Verdict) -> str:
    """Return one sentence: of what it is a duplicate, and how that is known."""
    how = {"body": "same bytes", "text": "same main text"}.get(verdict.reason or "")
    if how is None:
        how = f"distance {verdict.distance}"
        if verdict.resemblance is not None:
            how += f", resemblance {verdict.resemblance:.2f}"
    return f"{verdict.kind} duplicate of {one_line(verdict.duplicate_of)} ({how})"
