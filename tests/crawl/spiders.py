"""Spiders that note what reaches them. They run in the child process."""

from __future__ import annotations

import asyncio
import gc
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import attrs
from scrapy import Field, FormRequest, Item, Request, Spider, signals
from scrapy.http import TextResponse

from scrapy_simdup import DuplicatePage
from scrapy_simdup.downloadermiddleware import SimdupDownloaderMiddleware
from scrapy_simdup.spidermiddleware import Origin

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.python.failure import Failure
    from typing_extensions import Self


class FieldItem(Item):
    path = Field()
    text = Field()
    simdup = Field()


class PlainItem(Item):
    path = Field()
    text = Field()


@dataclass
class FieldDataclass:
    path: str
    text: str
    simdup: dict[str, Any] | None = None


@dataclass
class PlainDataclass:
    path: str
    text: str


@attrs.define
class FieldAttrs:
    path: str
    text: str
    simdup: dict[str, Any] | None = None


@attrs.define
class PlainAttrs:
    path: str
    text: str


class Explosive:
    """A value that one cannot look at."""

    def __bool__(self) -> bool:
        raise ArithmeticError("bang")


ITEMS: dict[str, Any] = {
    "explosive": lambda path, text: {"path": path, "text": Explosive()},
    "dict": dict,
    "item": FieldItem,
    "dataclass": FieldDataclass,
    "attrs": FieldAttrs,
    "plain item": PlainItem,
    "plain dataclass": PlainDataclass,
    "plain attrs": PlainAttrs,
}


class Visitor(Spider):
    """Visits *visits* in their order: paths, or dicts of a path and arguments of the request.

    Yields an item of each kind in *items* a page, then the page's links if *follow*. Priorities
    make the order strict: a page's links come after everything that was asked for before.
    """

    name = "visitor"

    def __init__(
        self,
        *,
        root: str,
        visits: list[str | dict[str, Any]],
        follow: bool = False,
        items: tuple[str, ...] = ("dict",),
        errback: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.root = root
        self.visits = visits
        self.follow = follow
        self.kinds = items
        self.default_errback = errback
        self.arrived: list[dict[str, Any]] = []
        self.failed: list[dict[str, Any]] = []
        self.extra: dict[str, Any] = {}
        self._asked = 0

    async def start(self) -> AsyncIterator[Any]:
        for visit in self.visits:
            yield self.request(**({"path": visit} if isinstance(visit, str) else visit))

    def request(
        self, path: str, *, errback: bool | None = None, form: Any = None, **arguments: Any
    ) -> Request:
        self._asked += 1
        arguments.setdefault("priority", -self._asked)
        if self.default_errback if errback is None else errback:
            arguments["errback"] = self.errback
        if form is not None:
            return FormRequest(self.root + path, formdata=form, **arguments)
        return Request(self.root + path, **arguments)

    def parse(self, response: Response, **kwargs: Any) -> Any:
        self.note(response)
        for kind in self.kinds:
            yield ITEMS[kind](path=self.path(response.url), text=self.text(response))
        if self.follow:
            yield from self.links(response)

    def links(self, response: Response) -> Iterator[Request]:
        for link in response.css("a::attr(href)").getall():
            yield self.request(link)

    def path(self, url: str) -> str:
        return url.removeprefix(self.root)

    def text(self, response: Response) -> str:
        return response.text if isinstance(response, TextResponse) else ""

    def note(self, response: Response) -> None:
        self.arrived.append(
            {
                "path": self.path(response.url),
                "status": response.status,
                "method": response.request.method,
                "class": type(response).__name__,
                "flags": list(response.flags),
                "verdict": response.meta.get("simdup_verdict"),
            }
        )

    def errback(self, failure: Failure) -> Any:
        error = failure.value
        noted = {"path": self.path(failure.request.url), "type": type(error).__name__}
        if isinstance(error, DuplicatePage):
            noted.update(
                message=str(error).replace(self.root, ""),
                response=error.response.url,
                response_class=type(error.response).__name__,
                request=error.response.request.url,
                same_request=error.response.request is failure.request,
                verdict=error.verdict,
            )
        self.failed.append(noted)


class Salvager(Visitor):
    """Its errback makes an item and a request of a dropped page."""

    name = "salvager"

    def errback(self, failure: Failure) -> Any:
        super().errback(failure)
        yield {"path": self.path(failure.value.response.url), "salvaged": True}
        yield self.request("/salvaged")


class MetaCopier(Visitor):
    """Gives the whole meta of a page to its links, as many spiders do."""

    name = "metacopier"

    def links(self, response: Response) -> Iterator[Request]:
        for link in response.css("a::attr(href)").getall():
            yield self.request(link, meta=response.meta.copy())


class Again(Visitor):
    """Asks for every page once more with the very same request, and only then makes its item."""

    name = "again"

    def parse(self, response: Response, **kwargs: Any) -> Any:
        self.note(response)
        request = response.request
        if not request.meta.get("again"):
            request.meta["again"] = True
            yield request.replace(dont_filter=True)
            request.dont_filter = True
            yield request
        yield {"path": self.path(response.url)}


class Downloader(Visitor):
    """Leaves files and images to Scrapy's media pipelines."""

    name = "downloader"

    def parse(self, response: Response, **kwargs: Any) -> Any:
        self.note(response)
        files = [response.urljoin(link) for link in response.css("a.file::attr(href)").getall()]
        images = [response.urljoin(link) for link in response.css("img::attr(src)").getall()]
        yield {"path": self.path(response.url), "file_urls": files, "image_urls": images}


class Tolerant(Visitor):
    """Takes 503 pages, too."""

    name = "tolerant"
    handle_httpstatus_list = (503,)


class PlainTextMiddleware:
    """A downloader middleware that hands on every page as a plain ``TextResponse``."""

    def process_response(self, request: Request, response: Response) -> Response:
        return TextResponse(
            response.url,
            status=response.status,
            headers=response.headers,
            body=response.body,
            request=request,
        )


class Faulty(Visitor):
    """Its callback raises, without having made an item."""

    name = "visitor"

    def parse(self, response: Response, **kwargs: Any) -> Any:
        self.note(response)
        raise RuntimeError("callback")


class Lister(Visitor):
    """Yields an item for every <li>: *fields* are the classes of its parts."""

    name = "lister"

    def parse(self, response: Response, **kwargs: Any) -> Any:
        self.note(response)
        for row in response.css("li"):
            item = {part.attrib["class"]: part.css("::text").get() for part in row.css("[class]")}
            yield item if self.kinds == ("dict",) else ITEMS[self.kinds[0]](**item)


class Replacer:
    """A pipeline that makes new items; at the end it counts what our middleware still holds."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_item(self, item: Any) -> Any:
        return {**item}

    def close_spider(self) -> None:
        held = [found for found in gc.get_objects() if isinstance(found, Origin)]
        self.crawler.spider.extra["held"] = len(held)


class Saboteur:
    """A downloader middleware next to ours that breaks it after five kept pages (log: two)."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.way = crawler.settings["SABOTAGE"]
        self.seen = 0
        crawler.signals.connect(self.closed, signal=signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_response(self, request: Request, response: Response) -> Response:
        self.seen += 1
        if self.seen == (2 if self.way == "log" else 5):
            middleware = self.crawler.get_downloader_middleware(SimdupDownloaderMiddleware)
            getattr(self, self.way)(middleware.session)
        if self.seen == 9 and self.way == "space":
            self.lift()
        return response

    def close(self, session: Any) -> None:
        session.detector._store.close()

    def log(self, session: Any) -> None:
        session.log.close()

    def record(self, session: Any) -> None:
        def record(*arguments: Any, **more: Any) -> None:
            raise ZeroDivisionError("nobody thought of this")

        session.record = record

    def judge(self, session: Any) -> None:
        def submit(*arguments: Any, **more: Any) -> None:
            raise ZeroDivisionError("nobody thought of this")

        session.detector.submit = submit

    def disk(self, session: Any) -> None:
        """As on a full disk, no file can grow beyond its first 8 KB."""
        import resource

        self.limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, self.limits[1]))

    def space(self, session: Any) -> None:
        """As `disk`, until some space is made."""
        self.disk(session)

    def lift(self) -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, self.limits)

    def closed(self) -> None:
        if self.way == "disk":
            self.lift()


class LagMeter:
    """An extension that measures by how much the event loop is late for a sleep of 5 ms.

    Sets the stats ``lag/samples``, and in milliseconds ``lag/p50``, ``lag/p99`` and ``lag/max``.
    """

    STEP = 0.005

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.late: list[float] = []
        crawler.signals.connect(self.start, signal=signals.spider_opened)
        crawler.signals.connect(self.stop, signal=signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def start(self) -> None:
        self.task = asyncio.get_running_loop().create_task(self.measure())

    async def measure(self) -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(self.STEP)
            self.late.append(time.perf_counter() - before - self.STEP)

    def stop(self) -> None:
        self.task.cancel()
        late = sorted(1000 * seconds for seconds in self.late)
        stats = self.crawler.stats
        stats.set_value("lag/samples", len(late))
        stats.set_value("lag/p50", round(late[len(late) // 2], 2))
        stats.set_value("lag/p99", round(late[int(len(late) * 0.99)], 2))
        stats.set_value("lag/max", round(late[-1], 2))
