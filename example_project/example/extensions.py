"""Two extensions of the demo crawl: the site itself, and the judgement of what was dropped."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.utils.project import data_path

from example.site import SiteServer, all_pages
from example.truth import Truth

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.python.failure import Failure
    from typing_extensions import Self


class DemoSite:
    """Serves the demo site on 127.0.0.1 while the spider is open; its address is in ``url``.

    The port is another one each time, and with it every URL. So the crawl starts with an empty
    store: what ``.scrapy/simdup/demo`` holds of earlier runs is deleted, unless ``SIMDUP_STORE``
    names another place.
    """

    def __init__(self) -> None:
        self._server: SiteServer | None = None
        self._pages = all_pages()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        self = cls()
        crawler.signals.connect(self.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(self.spider_closed, signal=signals.spider_closed)
        if not crawler.settings.get("SIMDUP_STORE"):
            # Extensions are made before the middleware that opens the store.
            shutil.rmtree(data_path("simdup/demo"), ignore_errors=True)
        return self

    @property
    def url(self) -> str:
        if self._server is None:
            raise RuntimeError("the demo site is served while its spider is open only")
        return self._server.url

    def spider_opened(self) -> None:
        self._server = SiteServer(self._pages)

    def spider_closed(self) -> None:
        if self._server is not None:
            self._server.stop()
            self._server = None


class TruthReport:
    """Prints, at the end of the crawl, how many duplicates were found, missed and invented.

    The spider says what it sees: ``arrived`` in its callback, ``failed`` in its errback. Sets the
    stats ``example/found``, ``example/missed`` and ``example/falsely_dropped``.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self.truth = Truth(all_pages())

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        self = cls(crawler)
        crawler.signals.connect(self.spider_closed, signal=signals.spider_closed)
        return self

    def arrived(self, response: Response) -> None:
        """Note a page that reached the spider, perhaps tagged as a duplicate."""
        for url in response.meta.get("redirect_urls", ()):
            self.truth.passed(url)
        verdict = response.meta.get("simdup_verdict")
        if verdict is not None and verdict.is_duplicate:
            self.truth.dropped(response.url, verdict)
        else:
            self.truth.passed(response.url, verdict)

    def failed(self, failure: Failure) -> bool:
        """Note a page that was dropped; return False if that is not what has happened."""
        verdict = getattr(failure.value, "verdict", None)  # of a DuplicatePage
        if verdict is None:
            return False
        for url in failure.request.meta.get("redirect_urls", ()):  # type: ignore[attr-defined]
            self.truth.passed(url)
        self.truth.dropped(failure.value.response.url, verdict)  # type: ignore[union-attr]
        return True

    def spider_closed(self) -> None:
        assert self._crawler.stats is not None
        for name in ("found", "missed", "falsely_dropped"):
            self._crawler.stats.set_value(f"example/{name}", len(getattr(self.truth, name)))
        sys.stdout.write(self.truth.report())
        sys.stdout.flush()
