"""A line on what was found so far, beside Scrapy's own on what was crawled."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

from scrapy.utils.asyncio import create_looping_call

from scrapy_simdup.crawlstats import human_bytes

if TYPE_CHECKING:
    from scrapy_simdup.session import Session

logger = logging.getLogger(__name__)


class PeriodicLine:
    """Logs, every ``LOGSTATS_INTERVAL`` seconds, how many pages were checked and are duplicates.

    At the same time it brings the stats of the store and of times up to date, so that Scrapy's
    ``PERIODIC_LOG_STATS = {"include": ["simdup/"]}`` shows them while the crawl runs, not at its end
    only. An interval of 0 means neither.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._interval = session.crawler.settings.getfloat("LOGSTATS_INTERVAL")
        self._loop: Any = None
        self._thread: threading.Thread | None = None
        self._checked = self._duplicates = 0

    def start(self) -> None:
        if self._interval > 0:
            self._loop = create_looping_call(self._tell_elsewhere)
            self._loop.start(self._interval, now=False)

    def stop(self) -> None:
        if self._loop is not None and self._loop.running:
            self._loop.stop()
        if self._thread is not None:
            self._thread.join()

    def _tell_elsewhere(self) -> None:
        """Not on the event loop: to look at the store, one waits for the commit under way."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._tell, name="simdup-periodic", daemon=True)
            self._thread.start()

    def _tell(self) -> None:
        session = self._session
        info = session.update_stats()
        stats = session.stats
        checked = stats.get("checked")
        duplicates = stats.get("duplicate/exact") + stats.get("duplicate/near")
        minutes = self._interval / 60
        logger.info(
            "simdup: checked %(checked)d %(things)s (at %(rate)d %(things)s/min), found "
            "%(duplicates)d duplicates (at %(found)d/min, %(share).1f %%); store %(store)s",
            {
                "checked": checked,
                "things": session.things,
                "rate": round((checked - self._checked) / minutes),
                "duplicates": duplicates,
                "found": round((duplicates - self._duplicates) / minutes),
                "share": 100 * duplicates / checked if checked else 0.0,
                "store": "not readable"
                if info is None
                else f"{info.pages:,} pages, {human_bytes(info.bytes)}",
            },
            extra={"spider": session.crawler.spider},
        )
        self._checked, self._duplicates = checked, duplicates
