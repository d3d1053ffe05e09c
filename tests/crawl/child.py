"""Runs the crawls of one task (a JSON file) and prints what came of them as JSON."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from itemadapter import ItemAdapter
from scrapy import signals
from scrapy.crawler import AsyncCrawlerRunner, Crawler, CrawlerRunner
from scrapy.settings import Settings
from scrapy.utils.reactor import install_reactor

if TYPE_CHECKING:
    from scrapy.crawler import CrawlerRunnerBase

ASYNCIO = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"


class Report(logging.Handler):
    """What one crawl did; hears its log lines, and those of nobody in particular."""

    def __init__(self, job: dict[str, Any], settings: Settings, root: str) -> None:
        super().__init__()
        from crawl import spiders

        self.root = root
        self.arguments = {"root": root, **job["arguments"]}
        self.crawler = Crawler(getattr(spiders, job["spider"]), settings.copy())
        self.crawler.settings.update(job["settings"], priority="cmdline")
        self.crawler.signals.connect(self.item_scraped, signal=signals.item_scraped)
        self.crawler.signals.connect(self.item_dropped, signal=signals.item_dropped)
        self.items: list[dict[str, Any]] = []
        self.dropped: list[dict[str, Any]] = []
        self.log: list[dict[str, Any]] = []
        self.error: str | None = None

    def emit(self, record: logging.LogRecord) -> None:
        spider = getattr(record, "spider", None)
        if spider is None or spider is self.crawler.spider:
            line = {"level": record.levelname, "logger": record.name}
            line["message"] = record.getMessage().replace(self.root, "")
            line["traceback"] = record.exc_info is not None
            self.log.append(line)

    def item_scraped(self, item: Any) -> None:
        self.items.append({"type": type(item).__name__, **ItemAdapter(item).asdict()})

    def item_dropped(self, item: Any, exception: Exception) -> None:
        self.dropped.append(
            {
                "type": type(exception).__name__,
                "message": str(exception).replace(self.root, ""),
                "kind": exception.verdict.kind if hasattr(exception, "verdict") else None,
                "item": ItemAdapter(item).asdict(),
            }
        )

    async def run(self, runner: CrawlerRunnerBase) -> None:
        logging.getLogger().addHandler(self)
        try:
            await runner.crawl(self.crawler, **self.arguments)
        except Exception as error:
            self.error = f"{type(error).__name__}: {error}"
        finally:
            logging.getLogger().removeHandler(self)

    def result(self) -> dict[str, Any]:
        spider = self.crawler.spider
        result = {
            "arrived": getattr(spider, "arrived", []),
            "failed": getattr(spider, "failed", []),
            "items": self.items,
            "dropped": self.dropped,
            "stats": self.crawler.stats.get_stats() if self.crawler.spider else {},
            "log": self.log,
            "error": self.error,
            "extra": getattr(spider, "extra", {}),
        }
        return self._relative(result)

    def _relative(self, value: Any) -> Any:
        """URLs of the site become paths; what JSON does not know becomes text."""
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            value = dataclasses.asdict(value)
        if isinstance(value, dict):
            return {str(key): self._relative(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._relative(item) for item in value]
        if isinstance(value, (bool, int, float, type(None))):
            return value
        return str(value).removeprefix(self.root)


def main() -> None:
    task = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    settings = Settings(task["settings"])
    logging.getLogger().setLevel(logging.DEBUG)
    if settings.getbool("TWISTED_REACTOR_ENABLED"):
        with warnings.catch_warnings():
            # Given another loop, Scrapy leaves the one that was there before unclosed.
            warnings.simplefilter("ignore", ResourceWarning)
            install_reactor(settings["TWISTED_REACTOR"] or ASYNCIO, settings["ASYNCIO_EVENT_LOOP"])
    reports = [Report(job, settings, task["root"]) for job in task["jobs"]]

    async def in_turn(runner: CrawlerRunnerBase) -> None:
        for report in reports:
            await report.run(runner)

    async def together(runner: CrawlerRunnerBase) -> None:
        await asyncio.gather(*(report.run(runner) for report in reports))

    run = {"in turn": in_turn, "together": together}[task["how"]]
    if not settings.getbool("TWISTED_REACTOR_ENABLED"):

        async def without_reactor() -> None:
            await run(AsyncCrawlerRunner(settings))

        asyncio.run(without_reactor())
    else:
        from scrapy.utils.defer import deferred_from_coro
        from scrapy.utils.reactor import is_asyncio_reactor_installed
        from twisted.internet import reactor

        runner = AsyncCrawlerRunner if is_asyncio_reactor_installed() else CrawlerRunner
        reactor.callWhenRunning(
            lambda: deferred_from_coro(run(runner(settings))).addBoth(lambda _: reactor.stop())
        )
        reactor.run()
    json.dump([report.result() for report in reports], sys.stdout)


if __name__ == "__main__":
    main()
