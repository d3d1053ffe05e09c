"""One crawl's detector, dropped-page log and stats, shared by the three components.

Everything that can go wrong with a page while it is judged ends here: the page passes, the failure
is counted, and each kind of failure is logged once.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from contextlib import suppress
from datetime import datetime, timezone
from hashlib import blake2b
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.project import data_path

from scrapy_simdup.alarms import Alarms
from scrapy_simdup.auditlog import AuditLog
from scrapy_simdup.config import PREFIX
from scrapy_simdup.crawlstats import CrawlStats
from scrapy_simdup.detector import MAX_URL, Detector
from scrapy_simdup.errors import ConfigError, StoreError
from scrapy_simdup.periodic import PeriodicLine
from scrapy_simdup.printable import one_line
from scrapy_simdup.sites import host_of
from scrapy_simdup.store.filesystem import warning_of
from scrapy_simdup.verdict import Verdict
from scrapy_simdup.work import ShortSwitchInterval

if TYPE_CHECKING:
    from concurrent.futures import Future

    from scrapy.crawler import Crawler

    from scrapy_simdup.alarms import Alarm
    from scrapy_simdup.config import Config
    from scrapy_simdup.store.records import StoreInfo

logger = logging.getLogger(__name__)

#: With what is put behind it, a file's name has 255 bytes at most.
_MAX_NAME = 150
_SHOWN = ("action", "max_distance", "min_resemblance", "min_tokens", "weights", "extractor")


class Session:
    """Opens store and log; raises ``ConfigError`` or ``StoreError`` if that is not possible."""

    def __init__(self, crawler: Crawler, config: Config) -> None:
        assert crawler.spider is not None
        assert crawler.stats is not None
        self.crawler = crawler
        self.config = config
        self.stats = CrawlStats(crawler.stats)
        self._failures: set[tuple[str, str]] = set()
        self._alarms = Alarms()
        self._closing = False
        #: The last page that was dropped, and what it duplicates.
        self.last_dropped: tuple[str, str | None] | None = None
        spider = safe_name(crawler.spider.name)
        now = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        self.crawl = f"{spider}-{now}-{secrets.token_hex(2)}"
        store = config.store or data_path(f"simdup/{spider}")
        self.log: AuditLog | None = None
        try:
            self.detector = Detector.from_config(store, config, self.crawl)
        except StoreError as error:
            raise StoreError(f"{PREFIX}STORE: {error}") from error
        except ConfigError as error:  # "extractor = …": here it is a setting
            name, rest = str(error).split(" ", 1)
            raise ConfigError(f"{PREFIX}{name.upper()} {rest}") from error
        try:
            if config.log is None:
                self.log = AuditLog(data_path(f"simdup/{spider}-dropped-{now}.jsonl"))
            elif config.log:
                self.log = AuditLog(config.log % {"spider": spider, "time": now})
        except BaseException:
            self.detector.close()
            raise
        self._quick_loop = ShortSwitchInterval()
        self._quick_loop.enter()
        self.detector.on_timing = self.stats.timing
        self.detector.on_worker_event = self._worker_event
        self.detector.load()
        self._periodic = PeriodicLine(self)

    def announce(self) -> None:
        """Log the effective configuration and what the store holds, and begin the periodic line."""
        self._periodic.start()
        self.detector.note_crawl(self._spider_name)
        info = self.detector.info()
        options = {name: getattr(self.config, name) for name in _SHOWN}
        options["workers"] = self.detector.workers
        options.update(
            (name, value)
            for name, value in self.config.changed().items()
            if name not in {"enabled", "store", "log", "seed", "workers"}
        )
        logger.info(
            "simdup: %(options)s; configuration %(id)s; store %(path)s holds %(pages)d pages and "
            "%(aliases)d duplicates (tables %(layout)s); log %(log)s",
            {
                "options": ", ".join(f"{name}={value}" for name, value in options.items()),
                "id": info.configuration_id,
                "path": info.path,
                "pages": info.pages,
                "aliases": info.aliases,
                "layout": info.layout,
                "log": self.log.path if self.log else "off",
            },
            extra={"spider": self.crawler.spider},
        )
        if info.path and (warning := warning_of(info.path)):
            logger.warning(
                "simdup: %(warning)s", {"warning": warning}, extra={"spider": self.crawler.spider}
            )
        if plan := self.detector.outgrown():
            logger.warning(
                "simdup: the tables of %(path)s were laid out for another number of pages; laid out anew "
                "(scrapy simdup rebuild --store %(path)s, as %(layout)s) a page would take some "
                "%(us)d µs, half of what it takes now, or less",
                {"path": info.path, "layout": plan.layout.name, "us": plan.page_us},
                extra={"spider": self.crawler.spider},
            )

    async def judge(self, url: str, **arguments: Any) -> Verdict | None:
        """Return the verdict, counted; None if there is none because something failed.

        *arguments* are those of ``Detector.submit``.
        """
        try:
            verdict = await _awaitable(self.detector.submit(url, **arguments))
        except StoreError as error:
            self.failed("store", url, error)
            verdict = Verdict(kind="skipped", reason="store_failed")
        except Exception as error:  # a page is never lost by an error of ours
            self.failed("page", url, error)
            return None
        self.stats.verdict(verdict)
        if verdict.reason == "store_full":
            self._warn_of_full_store()
        for alarm in self._alarms.see(url, host_of(url), verdict):
            self._alert(alarm)
        return verdict

    def record(self, verdict: Verdict, action: str, **facts: Any) -> bool:
        """Write a duplicate or a near miss to the dropped-page log.

        False if that failed: what is not explained must not be dropped.
        """
        miss = verdict.near_miss
        if self.log is None or not (verdict.is_duplicate or miss):
            return True
        record = {
            "time": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
            "crawl": self.crawl,
            "spider": self._spider_name,
            "simhash": _hex(verdict.simhash),
            "tokens": verdict.tokens,
            "title": verdict.title,
            "distance": (miss or verdict).distance,
            "resemblance": _rounded((miss or verdict).resemblance),
            "containment": _rounded((miss or verdict).containment),
            "length_ratio": _rounded((miss or verdict).length_ratio),
            "view": (miss or verdict).view,
            "rule": (miss or verdict).rule,
            "cut_off": verdict.cut_off,
            **facts,
        }
        for name in ("url", "referer"):
            record[name] = (record.get(name) or "")[:MAX_URL] or None
        if miss is not None:
            record.update(
                kind="near_miss",
                reason=miss.rule,
                action="pass",
                duplicate_of=miss.url,
                simhash_of=_hex(miss.simhash),
                tokens_of=miss.tokens,
                title_of=miss.title,
            )
        else:
            record.update(
                kind=verdict.kind,
                reason=verdict.reason,
                action=action,
                duplicate_of=verdict.duplicate_of,
                simhash_of=_hex(verdict.simhash_of),
                tokens_of=verdict.tokens_of,
                title_of=verdict.title_of,
            )
        try:
            self.log.write(record)
        except (OSError, ValueError) as error:
            self.failed("log", str(facts.get("url")), error, "which passes, as it is not listed")
            return False
        return True

    def failed(
        self, stage: str, url: str, error: Exception, outcome: str = "which passes unjudged"
    ) -> None:
        """Count a failure, and log the first of its kind with its traceback."""
        self.stats.count(f"error/{stage}")
        kind = (stage, type(error).__name__)
        if kind in self._failures:
            return
        self._failures.add(kind)
        logger.error(
            "simdup: %(stage)s failed for %(url)s, %(outcome)s: %(error)s (further ones are "
            "counted as simdup/error/%(stage)s, not logged)",
            {"stage": stage, "url": one_line(url), "outcome": outcome, "error": one_line(error)},
            exc_info=error,
            extra={"spider": self.crawler.spider},
        )

    def _worker_event(self, event: str, text: str) -> None:
        """Count it, and log the first of its kind. Called from the workers' threads."""
        if self.stats.worker(event) > 1:
            return
        if event == "unavailable":
            outcome = "a thread of this process extracts instead"
        else:
            outcome = "another one takes its place"
        logger.warning(
            "simdup: %(text)s; %(outcome)s (further ones are counted as simdup/worker/%(event)s, "
            "not logged)",
            {"text": text, "outcome": outcome, "event": event},
            extra={"spider": self.crawler.spider},
        )

    def _alert(self, alarm: Alarm) -> None:
        """Tell of an alarm, and end the crawl if the user wishes that."""
        self.stats.count(f"alert/{alarm.kind}")
        logger.warning(
            "simdup: %(alarm)s (simdup/alert/%(kind)s)",
            {"alarm": alarm, "kind": alarm.kind},
            extra={"spider": self.crawler.spider},
        )
        if alarm.kind in self.config.close_on_alert and not self._closing:
            self._closing = True
            assert self.crawler.engine is not None
            closing = self.crawler.engine.close_spider_async(reason=f"simdup_{alarm.kind}")
            deferred_from_coro(closing)

    def _warn_of_full_store(self) -> None:
        """Say once that new pages are not judged any more."""
        if self.stats.get("skipped/store_full") > 1:
            return
        logger.warning(
            "simdup: the store has reached SIMDUP_MAX_STORE_BYTES = %(limit)d: pages that are new to it "
            "pass unjudged from now on (counted as simdup/skipped/store_full); raise the limit, take "
            "another store, or make room with scrapy simdup purge",
            {"limit": self.config.max_store_bytes},
            extra={"spider": self.crawler.spider},
        )

    def _warn_of_nothing(self) -> None:
        """Say why a crawl came to nothing: its start page is in the store already."""
        dropped = self.stats.get("dropped")
        if self.last_dropped is None or dropped < self.stats.get("checked"):
            return
        url, original = self.last_dropped
        logger.warning(
            "simdup: no page of this crawl has passed: %(dropped)d were dropped, the last, %(url)s, "
            "as a duplicate of %(original)s, and links of dropped pages are not followed; to crawl "
            "on from there, take another store, set SIMDUP_ACTION = 'drop_items', or give the start "
            "request meta {'simdup': False}",
            {"dropped": dropped, "url": one_line(url), "original": one_line(original)},
            extra={"spider": self.crawler.spider},
        )

    @property
    def _spider_name(self) -> str | None:
        return self.crawler.spider.name if self.crawler.spider else None

    @property
    def things(self) -> str:
        """What is judged: ``pages``, or ``items``."""
        return "items" if self.config.item_fields else "pages"

    def update_stats(self) -> StoreInfo | None:
        """Set the stats that are not counted but looked at; return what the store holds."""
        try:
            info = self.detector.info()
        except StoreError:
            info = None  # it has failed before, and that was said
        self.stats.update(info)
        return info

    def close(self) -> None:
        """Set the last stats, log the closing line, close store and log."""
        self._periodic.stop()
        self.update_stats()
        with suppress(StoreError):  # it has failed before, and that was said
            self.detector.note_crawl(self._spider_name, self.stats.counts()).result()
        logger.info(
            "simdup: %(sentence)s; %(log)s",
            {
                "sentence": self.stats.sentence(self.things.removesuffix("s")),
                "log": f"duplicates are listed in {self.log.path}" if self.log else "no log",
            },
            extra={"spider": self.crawler.spider},
        )
        self._warn_of_nothing()
        self.detector.close()
        self._quick_loop.leave()
        if self.log is not None:
            self.log.close()


async def _awaitable(future: Future[Verdict]) -> Verdict:
    """Wait for a future of another thread, under any reactor or none."""
    if is_asyncio_available():
        return await asyncio.wrap_future(future)
    from twisted.internet import reactor
    from twisted.internet.defer import Deferred

    deferred: Deferred[None] = Deferred()
    future.add_done_callback(lambda _: reactor.callFromThread(deferred.callback, None))
    await deferred
    return future.result()


def safe_name(name: str) -> str:
    """Return *name* as one path component, different for different names.

    Long ones are cut off, with a digest of the whole name instead.
    """
    quoted = quote(name, safe="", errors="surrogatepass")
    if len(quoted) > _MAX_NAME:
        digest = blake2b(quoted.encode(), digest_size=16).hexdigest()
        return f"{quoted[: _MAX_NAME - 33]}%{digest}"
    if quoted.strip("."):
        return quoted
    return quoted.replace(".", "%2E") or "%"  # which is part of no other name


def _hex(fingerprint: int | None) -> str | None:
    return None if fingerprint is None else f"{fingerprint:016x}"


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 4)
