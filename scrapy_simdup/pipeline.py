"""The item pipeline: what happens to the items of duplicate pages, or to duplicate items."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Any

from itemadapter import ItemAdapter
from scrapy.exceptions import NotConfigured

from scrapy_simdup.config import ACTIONS, Config
from scrapy_simdup.downloadermiddleware import OVERRIDE_KEY, SimdupDownloaderMiddleware
from scrapy_simdup.spidermiddleware import SimdupSpiderMiddleware

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from typing_extensions import Self

    from scrapy_simdup.session import Session
    from scrapy_simdup.spidermiddleware import Origin
    from scrapy_simdup.verdict import Verdict

logger = logging.getLogger(__name__)


class SimdupItemPipeline:
    """Drops the items of duplicate pages (action ``drop_items``) or gives them their verdict.

    The verdict goes into the field ``SIMDUP_ITEM_FIELD`` of the item (action ``tag``), as a dict.
    With ``SIMDUP_ITEM_FIELDS`` the items themselves are judged, by the text of these fields;
    actions ``drop`` and ``drop_items`` then mean the same. Dropped items raise
    :class:`~scrapy_simdup.DuplicateItem`::

        Dropped: near duplicate of https://example.org/a (distance 2, resemblance 0.93)
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
        if not config.enabled or "SCRAPY_CHECK" in os.environ:
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
            return item
        action = self._action(origin)
        verdict = origin.verdict
        if self._config.item_fields:
            try:
                verdict = await self._judge(self._session, item, origin, action)
            except Exception as error:  # no item is lost by us
                self._session.failed("item", origin.response.url, error)
        if verdict is None or not verdict.is_duplicate:
            return item
        if action != "tag":
            from scrapy_simdup.exceptions import DuplicateItem

            self._session.stats.count("dropped")
            raise DuplicateItem(verdict)
        self._tag(self._session, item, verdict)
        return item

    def _action(self, origin: Origin) -> str:
        wish = origin.response.meta.get(OVERRIDE_KEY)
        if isinstance(wish, dict) and wish.get("action") in ACTIONS:
            return str(wish["action"])
        return self._config.action

    async def _judge(
        self, session: Session, item: Any, origin: Origin, action: str
    ) -> Verdict | None:
        """Judge the item by its own text; the same item of the same page again is a revisit."""
        response = origin.response
        adapter = ItemAdapter(item)
        parts = (adapter.get(name) for name in self._config.item_fields)
        text = "\n".join(str(part) for part in parts if part)
        fingerprinter = self._crawler.request_fingerprinter
        assert fingerprinter is not None
        assert response.request is not None
        key = fingerprinter.fingerprint(response.request) + b"#%d" % origin.number
        verdict = await session.judge(response.url, text=text, key=key)
        if verdict is not None:
            session.record(
                verdict,
                action,
                url=response.url,
                bytes=len(text.encode("utf-8", "replace")),
                depth=response.meta.get("depth"),
            )
        return verdict

    def _tag(self, session: Session, item: Any, verdict: Verdict) -> None:
        field = self._config.item_field
        try:
            ItemAdapter(item)[field] = verdict.as_dict()
        except (KeyError, TypeError, AttributeError) as error:
            session.stats.count("error/item_field")
            if type(item) not in self._warned:
                self._warned.add(type(item))
                logger.warning(
                    "simdup: %(item)s has no field %(field)r for the verdict, it passes without; "
                    "add the field or name another one in SIMDUP_ITEM_FIELD (%(error)s)",
                    {"item": type(item).__name__, "field": field, "error": error},
                    extra={"spider": self._crawler.spider},
                )
