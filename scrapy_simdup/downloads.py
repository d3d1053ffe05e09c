"""Downloads go on while pages wait for their verdicts."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.crawler import Crawler


class Downloads:
    """Lets a page that waits for its verdict take up no download.

    Scrapy counts a request among the ``CONCURRENT_REQUESTS`` until the last middleware is done with
    its response: of 16 pages at a time, those that are analysed would leave less than 16 to be
    downloaded. So the downloader's limit is one higher for each page that waits, and with it the
    pages in memory may be twice as many, not more; the limits of a domain count transfers only and
    need no such help. A limit of 1 stays one page at a time, in strict order. Where Scrapy's
    downloader or engine is another than this knows, pages wait as they do in any middleware.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._waiting = 0

    @contextmanager
    def go_on(self) -> Iterator[None]:
        """Let another download take this one's place, for as long as the block takes."""
        downloader: Any = getattr(self._crawler.engine, "downloader", None)
        limit = getattr(downloader, "total_concurrency", 0)  # ours included; 0: none
        allowed = limit - self._waiting
        if allowed < 2 or self._waiting >= allowed:
            yield
            return
        self._waiting += 1
        downloader.total_concurrency += 1
        self._start_another()
        try:
            yield
        finally:
            downloader.total_concurrency -= 1
            self._waiting -= 1

    def _start_another(self) -> None:
        """Tell the engine that there is room; it looks by itself only when a page is done."""
        slot = getattr(self._crawler.engine, "_slot", None)
        next_call = getattr(slot, "nextcall", None)
        if next_call is not None:
            next_call.schedule()
