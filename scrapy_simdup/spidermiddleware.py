"""The spider middleware: remembers from which page an item comes, until the pipeline asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.spidermiddlewares.base import BaseSpiderMiddleware

from scrapy_simdup.config import Config
from scrapy_simdup.downloadermiddleware import VERDICT_KEY, is_crawl

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from scrapy_simdup.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Origin:
    """The page that an item comes from, and its verdict."""

    response: Response
    verdict: Verdict | None


@dataclass(frozen=True, slots=True)
class _Pending:
    """An item on its way to the pipeline. Held by its page, it does not hold the page."""

    item: Any
    verdict: Verdict | None


class SimdupSpiderMiddleware(BaseSpiderMiddleware):
    """Keeps (item → its page) from the spider to the pipeline, and verdicts out of new requests.

    Items of any kind, dicts among them, cannot be given attributes or weak references; so an item
    is known by its identity, held until the pipeline takes it, Scrapy says that it is gone, or its
    page is: another pipeline may have put a new item in its place.
    """

    def __init__(self, crawler: Crawler) -> None:
        config = Config.from_settings(crawler.settings)
        if not config.enabled or not is_crawl(crawler):
            raise NotConfigured
        super().__init__(crawler)
        self._every_item = bool(config.item_fields)
        self._pending: WeakKeyDictionary[Response, dict[int, _Pending]] = WeakKeyDictionary()
        crawler.signals.connect(self.forget, signal=signals.item_dropped)
        crawler.signals.connect(self.forget, signal=signals.item_error)
        crawler.signals.connect(self.forget, signal=signals.item_scraped)

    def get_processed_request(self, request: Request, response: Response | None) -> Request:
        # The very request of this page, asked for again, still has to serve its items.
        if response is None or request is not response.request:
            request.meta.pop(VERDICT_KEY, None)
        return request

    def get_processed_item(self, item: Any, response: Response | None) -> Any:
        if response is None or response.request is None:
            return item
        verdict = response.request.meta.get(VERDICT_KEY)
        if self._every_item or (verdict is not None and verdict.is_duplicate):
            pending = self._pending.setdefault(response, {})
            pending[id(item)] = _Pending(item, verdict)
        return item

    def take(self, item: Any) -> Origin | None:
        """Return the origin of *item*, once."""
        for response, pending in self._pending.items():
            found = pending.pop(id(item), None)
            if found is not None:
                if not pending:
                    del self._pending[response]
                return Origin(response, found.verdict)
        return None

    def forget(self, item: Any) -> None:
        """An item that never reached our pipeline (signal handler)."""
        self.take(item)
