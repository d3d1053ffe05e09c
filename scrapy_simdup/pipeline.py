"""The item pipeline: what happens to the items of duplicate pages, or to duplicate items."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from itemadapter import ItemAdapter
from scrapy.exceptions import NotConfigured

from scrapy_simdup.config import Config
from scrapy_simdup.downloadermiddleware import (
    OVERRIDE_KEY,
    SimdupDownloaderMiddleware,
    is_crawl,
    request_facts,
    wanted_action,
)
from scrapy_simdup.errors import ConfigError
from scrapy_simdup.printable import one_line
from scrapy_simdup.spidermiddleware import SimdupSpiderMiddleware
from scrapy_simdup.verdict import Verdict

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.exceptions import DropItem
    from typing_extensions import Self

    from scrapy_simdup.session import Session
    from scrapy_simdup.spidermiddleware import Origin

logger = logging.getLogger(__name__)


class SimdupItemPipeline:
    """Drops the items of duplicate pages (action ``drop_items``) or gives them their verdict.

    The verdict goes into the field ``SIMDUP_ITEM_FIELD`` of the item (action ``tag``), as a dict.
    With ``SIMDUP_ITEM_FIELDS`` the items themselves are judged, by the text of these fields;
    actions ``drop`` and ``drop_items`` then mean the same. Dropped items raise
    :class:`~scrapy_simdup.DuplicateItem`, and each is one line at level INFO::

        Dropped item of <GET https://example.org/b>: near duplicate of https://example.org/a
        (distance 2, resemblance 0.93)
    """

    def __init__(self, crawler: Crawler, config: Config) -> None:
        self._crawler = crawler
        self._config = config
        self._session: Session | None = None
        self._origins: SimdupSpiderMiddleware | None = None
        self._warned: set[type] = set()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        config = Config.from_settings(crawler.settings)
        if not config.enabled or not is_crawl(crawler):
            raise NotConfigured
        return cls(crawler, config)

    def open_spider(self) -> None:
        middleware = self._crawler.get_downloader_middleware(SimdupDownloaderMiddleware)
        self._origins = self._crawler.get_spider_middleware(SimdupSpiderMiddleware)
        if middleware is None or self._origins is None:
            logger.warning(
                "simdup: the item pipeline needs SimdupDownloaderMiddleware and "
                "SimdupSpiderMiddleware, and one of them is not enabled: items pass unjudged",
                extra={"spider": self._crawler.spider},
            )
            return
        self._session = middleware.session

    async def process_item(self, item: Any) -> Any:
        if self._session is None or self._origins is None:
            return item
        origin = self._origins.take(item)
        if origin is None:
            if self._config.item_fields:
                self._session.stats.verdict(Verdict(kind="skipped", reason="no_page"))
            return item
        session, verdict = self._session, origin.verdict
        request = origin.response.request
        assert request is not None
        try:
            action = wanted_action(request, self._config)
            if self._config.item_fields:
                verdict = await self._judge(session, item, origin, action)
        except Exception as error:  # no item is lost by us
            stage = "config" if isinstance(error, ConfigError) else "item"
            session.failed(stage, origin.response.url, error)
            return item
        if verdict is None or not verdict.is_duplicate:
            return item
        if action == "tag":
            self._tag(session, item, verdict)
            return item
        raise self._dropped(session, request, verdict)

    async def _judge(
        self, session: Session, item: Any, origin: Origin, action: str
    ) -> Verdict | None:
        """Judge the item by its own text; one that an earlier crawl delivered is a revisit."""
        response = origin.response
        request = response.request
        assert request is not None
        if request.meta.get(OVERRIDE_KEY) is False:
            verdict = Verdict(kind="skipped", reason="opt_out")
            session.stats.verdict(verdict)
            return verdict
        adapter = ItemAdapter(item)
        if not any(name in adapter for name in self._config.item_fields):
            self._warn_once(
                item,
                "simdup: %(item)s has none of SIMDUP_ITEM_FIELDS = %(fields)s, it passes unjudged",
                fields=", ".join(self._config.item_fields),
            )
        parts = (adapter.get(name) for name in self._config.item_fields)
        text = "\n".join(str(part) for part in parts if part)
        fingerprinter = self._crawler.request_fingerprinter
        assert fingerprinter is not None
        key = fingerprinter.fingerprint(request)
        judged = await session.judge(response.url, text=text, key=key, item=True)
        if judged is not None:
            size = len(text.encode("utf-8", "replace"))
            facts = request_facts(request)
            if not session.record(judged, action, url=response.url, bytes=size, **facts):
                return None
        return judged

    def _dropped(self, session: Session, request: Request, verdict: Verdict) -> DropItem:
        """Count and log a dropped item; return what is to be raised."""
        from scrapy_simdup.exceptions import DuplicateItem

        error = DuplicateItem(verdict)
        session.stats.count("dropped")
        logger.info(
            "Dropped item of %(request)s: %(error)s",
            {"request": one_line(request), "error": error},
            extra={"spider": self._crawler.spider},
        )
        return error

    def _tag(self, session: Session, item: Any, verdict: Verdict) -> None:
        field = self._config.item_field
        try:
            ItemAdapter(item)[field] = verdict.as_dict()
        except Exception as error:  # KeyError mostly; whatever a class of items may raise
            session.stats.count("error/item_field")
            self._warn_once(
                item,
                "simdup: %(item)s has no field %(field)r for the verdict, it passes without; "
                "add the field or name another one in SIMDUP_ITEM_FIELD (%(error)s)",
                field=field,
                error=one_line(error),
            )
            return
        if self._config.item_fields:  # otherwise the page is what was tagged
            session.stats.count("tagged")

    def _warn_once(self, item: Any, message: str, **facts: Any) -> None:
        """Log a warning for the first item of its class."""
        if type(item) not in self._warned:
            self._warned.add(type(item))
            facts["item"] = type(item).__name__
            logger.warning(message, facts, extra={"spider": self._crawler.spider})
