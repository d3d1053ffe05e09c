"""``scrapy crawl site -a url=https://example.org/``: crawls any one site."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapy import Request, Spider
from scrapy.exceptions import CloseSpider
from scrapy.http import HtmlResponse
from scrapy.linkextractors import LinkExtractor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.http import Response


class SiteSpider(Spider):
    """Follows links from ``url`` on the same host, and yields the address and title of each page.

    ``max_pages`` limits how many addresses are requested. If the first page redirects to another
    host (``www.``, say), that host is the one to stay on.
    """

    name = "site"

    def __init__(self, url: str = "", max_pages: str = "1000", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.url = url
        self.max_pages = max_pages
        self.host = ""
        self.seen: set[str] = set()
        self.links = LinkExtractor()

    async def start(self) -> AsyncIterator[Request]:
        parts = urlsplit(self.url)
        if parts.scheme not in {"http", "https"} or not parts.netloc:
            self._give_up("say which site: scrapy crawl site -a url=https://example.org/")
        if not str(self.max_pages).isdecimal() or int(self.max_pages) < 1:
            self._give_up(f"max_pages={self.max_pages}: must be a whole number of at least 1")
        self.seen.add(self.url)
        yield Request(self.url, callback=self.parse)

    def parse(self, response: Response) -> Iterator[dict[str, str | None] | Request]:
        host = urlsplit(response.url).netloc
        self.host = self.host or host
        if host != self.host or not isinstance(response, HtmlResponse):
            return
        yield {"url": response.url, "title": response.css("title::text").get()}
        for link in self.links.extract_links(response):
            if len(self.seen) >= int(self.max_pages):
                return
            address = link.url.partition("#")[0]
            if urlsplit(address).netloc == self.host and address not in self.seen:
                self.seen.add(address)
                yield Request(address, callback=self.parse)

    def _give_up(self, why: str) -> None:
        self.logger.error(why)
        raise CloseSpider("usage")
