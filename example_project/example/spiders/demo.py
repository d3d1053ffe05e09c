"""``scrapy crawl demo``: crawls the demo site, which the crawl itself serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import Request, Spider
from scrapy.http import TextResponse

from example.extensions import DemoSite, TruthReport
from example.items import PageItem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.http import Response
    from twisted.python.failure import Failure


class DemoSpider(Spider):
    """Follows every link, yields an item a page, and says to ``TruthReport`` what it sees."""

    name = "demo"
    custom_settings = {  # noqa: RUF012 (Scrapy's own type is no ClassVar)
        "EXTENSIONS": {DemoSite: 0, TruthReport: 0},
        # The site is on this machine, whatever proxy the environment names.
        "HTTPPROXY_ENABLED": False,
    }

    async def start(self) -> AsyncIterator[Request]:
        site = self.crawler.get_extension(DemoSite)
        assert site is not None
        yield Request(site.url, callback=self.parse, errback=self.failed)

    def parse(self, response: Response) -> Iterator[PageItem | Request]:
        assert isinstance(response, TextResponse)
        self.report.arrived(response)
        text = "".join(response.xpath("//body//text()").getall())
        yield PageItem(response.url, response.css("title::text").get(), len(text.strip()))
        yield from response.follow_all(css="a", callback=self.parse, errback=self.failed)

    def failed(self, failure: Failure) -> None:
        if not self.report.failed(failure):
            self.logger.error("%s: %s", failure.request.url, failure.getErrorMessage())  # type: ignore[attr-defined]

    @property
    def report(self) -> TruthReport:
        report = self.crawler.get_extension(TruthReport)
        assert report is not None
        return report
