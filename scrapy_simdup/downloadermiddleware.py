"""The downloader middleware: every downloaded page passes here once."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Any, Final

from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.http import TextResponse
from scrapy.settings import SETTINGS_PRIORITIES

from scrapy_simdup.config import ACTIONS, Config
from scrapy_simdup.downloads import Downloads
from scrapy_simdup.errors import ConfigError
from scrapy_simdup.printable import one_line

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from typing_extensions import Self

    from scrapy_simdup.session import Session
    from scrapy_simdup.verdict import Verdict

logger = logging.getLogger(__name__)

_LOOKING: Final = ("scrapy.commands.fetch", "scrapy.commands.parse")

#: Request.meta key with the user's wish: False, or {"action": …}.
OVERRIDE_KEY: Final = "simdup"
#: Request.meta key under which the page's verdict reaches the spider.
VERDICT_KEY: Final = "simdup_verdict"


class SimdupDownloaderMiddleware:
    """Judges each page and drops it, or passes it on with its verdict.

    What happens to a duplicate is set by ``SIMDUP_ACTION``, for one request by
    ``meta["simdup"] = {"action": "tag"}``; ``meta["simdup"] = False`` keeps us away from a page.
    Dropped pages raise :class:`~scrapy_simdup.DuplicatePage`, which goes to the errback. Others
    have their verdict in ``response.meta["simdup_verdict"]``; duplicates among them are flagged::

        Crawled (200) <GET https://example.org/b> (referer: None) ['simdup:near']

    A page that cannot be judged passes, and is counted as ``simdup/skipped/<reason>``; if we fail,
    it passes, too, and is counted as ``simdup/error/<stage>``.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self._config = session.config
        self._downloads = Downloads(session.crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        config = Config.from_settings(crawler.settings)
        if not config.enabled or not is_crawl(crawler):
            raise NotConfigured
        # Late, because every Scrapy command imports this module: it brings numpy and lmdb.
        from scrapy_simdup.session import Session

        self = cls(Session(crawler, config))
        crawler.signals.connect(self.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(self.spider_closed, signal=signals.spider_closed)
        return self

    def spider_opened(self) -> None:
        self.session.announce()

    def spider_closed(self) -> None:
        self.session.close()

    async def process_response(self, request: Request, response: Response) -> Response:
        # A spider may have copied the meta of another response.
        request.meta.pop(VERDICT_KEY, None)
        if self._config.item_fields:
            return response  # the pipeline judges items instead
        try:
            action = wanted_action(request, self._config)
            verdict = await self._judge(request, response)
            if verdict is None:
                return response
            request.meta[VERDICT_KEY] = verdict
            if action == "drop" and verdict.for_links:
                action = "drop_items"
            action = self._account(request, response, verdict, action)
        except Exception as error:  # no page is lost by us
            request.meta.pop(VERDICT_KEY, None)
            stage = "config" if isinstance(error, ConfigError) else "page"
            self.session.failed(stage, request.url, error)
            return response
        if not verdict.is_duplicate:
            return response
        if action == "drop":
            from scrapy_simdup.exceptions import DuplicatePage

            if response.request is None:
                response.request = request
            raise DuplicatePage(response, verdict)
        response.flags.append(f"simdup:{verdict.kind}")
        return response

    async def _judge(self, request: Request, response: Response) -> Verdict | None:
        from scrapy_simdup.charset import text_of
        from scrapy_simdup.eligibility import is_plain_text, skip_reason
        from scrapy_simdup.verdict import Verdict

        reason = skip_reason(request, response, self._config)
        if reason is not None:
            verdict = Verdict(kind="skipped", reason=reason)
            self.session.stats.verdict(verdict)
            return verdict
        fingerprinter = self.session.crawler.request_fingerprinter
        assert fingerprinter is not None
        arguments: dict[str, Any] = {"key": fingerprinter.fingerprint(request)}
        if isinstance(response, TextResponse):
            # Making text of it takes its time: not here, on the event loop.
            arguments["decode"] = text_of(response)
        arguments["text" if is_plain_text(response) else "html"] = response.body
        with self._downloads.go_on():
            return await self.session.judge(response.url, **arguments)

    def _account(self, request: Request, response: Response, verdict: Verdict, action: str) -> str:
        """Log and count; return what is done: nothing is dropped that could not be logged."""
        session = self.session
        facts = request_facts(request)
        if not session.record(verdict, action, url=response.url, bytes=len(response.body), **facts):
            action = "tag"
            if session.config.action != "tag":
                del request.meta[VERDICT_KEY]  # the items pass, too
        if not verdict.is_duplicate:
            return action
        if action == "drop":
            session.stats.count("dropped")
            session.stats.count("bytes_saved", len(response.body))
            session.last_dropped = response.url, verdict.duplicate_of
        else:
            session.stats.count("tagged")
        logger.debug(
            "%(what)s %(request)s: %(kind)s duplicate of %(original)s (%(reason)s)",
            {
                "what": "Dropped" if action == "drop" else "Tagged",
                "request": one_line(request),
                "kind": verdict.kind,
                "original": one_line(verdict.duplicate_of),
                "reason": verdict.reason,
            },
            extra={"spider": session.crawler.spider},
        )
        return action


def is_crawl(crawler: Crawler) -> bool:
    """False for ``scrapy check``, ``shell``, ``fetch`` and ``parse``, which look at single pages.

    ``fetch`` and ``parse`` with a spider are judged if the command line itself says
    ``-s SIMDUP_ENABLED=1``.
    """
    spider = crawler.spider
    if "SCRAPY_CHECK" in os.environ or spider is None or spider.name == "default":
        return False
    # These commands give the spider a `start` of their own.
    if getattr(type(spider).start, "__module__", "") not in _LOOKING:
        return True
    asked = crawler.settings.getpriority("SIMDUP_ENABLED")
    return asked is not None and asked >= SETTINGS_PRIORITIES["cmdline"]


def wanted_action(request: Request, config: Config) -> str:
    """Return what happens to a duplicate: the request's wish, or the action of the crawl.

    Raises :class:`ConfigError` for a wish that means nothing.
    """
    wish = request.meta.get(OVERRIDE_KEY)
    if wish is None or isinstance(wish, bool):
        return config.action
    if isinstance(wish, dict) and set(wish) <= {"action"}:
        action = wish.get("action", config.action)
        if action in ACTIONS:
            return str(action)
    raise ConfigError(
        f'meta["simdup"] = {wish!r}: must be False, or {{"action": …}} with one of '
        + ", ".join(ACTIONS)
    )


def request_facts(request: Request) -> dict[str, Any]:
    """Return what the dropped-page log says of a request: ``referer`` and ``depth``."""
    referer = request.headers.get("Referer")
    return {
        "referer": referer.decode("latin-1") if referer else None,
        # Scrapy gives start requests their depth, 0, only when the spider has seen the page.
        "depth": request.meta.get("depth", 0),
    }
