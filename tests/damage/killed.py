"""A crawl that may be killed: what reaches it is on disk at once.

    python killed.py ROOT ACTION RUN [JOBDIR]

Every page that reaches the spider, and every item that is kept, is a line of ``seen.jsonl``.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import CrawlerProcess

WORKERS = 2


def note(run: str, what: str, url: str, kind: str | None) -> None:
    """Append a line, whole, whatever happens to this process next."""
    line = json.dumps({"run": run, "what": what, "url": url, "kind": kind}) + "\n"
    handle = os.open("seen.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, line.encode())
    os.close(handle)


class Walker(Spider):
    name = "walker"

    async def start(self) -> Any:
        yield Request(f"{self.root}/0", dont_filter=True)

    def parse(self, response: Any) -> Any:
        verdict = response.meta.get("simdup_verdict")
        note(self.run, "page", response.url, verdict and verdict.kind)
        yield {"url": response.url}
        yield from response.follow_all(css="a")


class Keep:
    """The last pipeline."""

    def __init__(self, run: str) -> None:
        self.run = run

    @classmethod
    def from_crawler(cls, crawler: Any) -> Keep:
        return cls(crawler.spider.run)

    def process_item(self, item: Any) -> Any:
        note(self.run, "item", item["url"], None)
        return item


if __name__ == "__main__":
    root, action, run, *jobdir = sys.argv[1:]
    process = CrawlerProcess(
        {
            "ADDONS": {"scrapy_simdup.Addon": 500},
            "CONCURRENT_REQUESTS": 8,
            "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
            "ITEM_PIPELINES": {Keep: 900},
            "JOBDIR": jobdir[0] if jobdir else None,
            "LOG_LEVEL": "WARNING",
            "SIMDUP_ACTION": action,
            "SIMDUP_LOG": "dropped.jsonl",
            "SIMDUP_STORE": "store",
            "SIMDUP_WORKERS": WORKERS,
            "TELNETCONSOLE_ENABLED": False,
        }
    )
    process.crawl(Walker, root=root, run=run)
    process.start()
