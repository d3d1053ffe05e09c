"""One long crawl: whether it stays as fast and as small as it begins, and loses nothing.

    python benchmarks/soak.py [--pages 200000] [--words 160]

A server in a process of its own makes up a site; 30 % of its pages are near or exact duplicates of
others, in one of three templates, and which ones is known. The crawl runs in another process, with
the default settings, and every twentieth of it is reported: pages a second, processor time a page,
and the memory that the crawl and its workers have for themselves (``RssAnon``). Linux only. At the end every cluster of pages
with one content must have had exactly one page that passed, and the stats must add up.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from crawl_site import environment, page, story
from memory import own_memory, workers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

STEPS = 20
SHARE = 0.3
WINDOW = 64
_FAR = 10_000
"""A page duplicates one of at most so many before it."""


def origin(number: int) -> int:
    """The first page with the content of page *number*."""
    while number:
        chance = random.Random(number)
        if chance.random() >= SHARE:
            break
        number = chance.randrange(max(0, number - _FAR), number)
    return number


def made_up(number: int, words: int) -> bytes:
    """Page *number*: a story, edited in up to two words, in one of three templates."""
    content, chance = origin(number), random.Random(-number)
    edits = 0 if content == number else chance.randrange(3)
    links = [f"/section/{chance.randrange(50)}" for _ in range(20)]
    head, tail = (
        ("", ""),
        ("<style>p { margin: 1em }</style>", "<footer>All rights reserved by the paper.</footer>"),
        ("", f"<aside>Read more: {number % 97}, {number % 89}</aside>"),
    )[number % 3]
    paragraphs = story(content, edits, words, variant=number)
    return page(f"Story {content}", paragraphs, links, head, tail).encode()


async def serve(words: int) -> None:
    """Answer ``/<number>`` until the process is ended; print the port first."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split(b" ", 2)[1].removeprefix(b"/")
                known = path.isdigit()
                body = made_up(int(path), words) if known else b""
                status = b"200 OK" if known else b"404 Not Found"
                writer.write(
                    b"HTTP/1.1 %b\r\nContent-Type: text/html; charset=utf-8\r\n"
                    b"Content-Length: %d\r\n\r\n%b" % (status, len(body), body)
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def processor_time() -> float:
    """Seconds that this process and its workers have had."""
    ticks = os.sysconf("SC_CLK_TCK")
    stats = (Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in workers())
    return time.process_time() + sum(int(stat[11]) + int(stat[12]) for stat in stats) / ticks


def crawl(root: str, pages: int, folder: str) -> None:
    """Crawl the site in this process; print a line of the table for each step, then the sums."""
    from scrapy import Request, Spider
    from scrapy.crawler import CrawlerProcess

    from scrapy_simdup import DuplicatePage

    passed = bytearray(pages)
    step = max(1, pages // STEPS)

    class Soak(Spider):
        name = "soak"
        seen = 0
        failed = 0
        last, used = time.perf_counter(), processor_time()

        asked = 0

        async def start(self) -> AsyncIterator[Any]:
            for _ in range(WINDOW):
                yield self.next()

        def next(self) -> Any:
            """The request of the next page: one for each that is done, so that none queue up."""
            number, self.asked = self.asked, self.asked + 1
            if number < pages:
                yielded = {"cb_kwargs": {"number": number}, "errback": self.lost}
                return Request(f"{root}/{number}", **yielded)
            return None

        def parse(self, response: Any, number: int) -> Any:
            content = origin(number)
            passed[content] = min(255, passed[content] + 1)
            self.count()
            return self.next()

        def lost(self, failure: Any) -> Any:
            self.failed += not failure.check(DuplicatePage)
            self.count()
            return self.next()

        def count(self) -> None:
            self.seen += 1
            if self.seen % step == 0:
                store_bytes = Path(folder, "store/data.mdb").stat().st_blocks * 512
                now, used = time.perf_counter(), processor_time()
                sizes = " + ".join(f"{own_memory(pid):.0f}" for pid in workers()) or "–"
                print(
                    f"| {self.seen:,} | {step / (now - self.last):,.0f} | "
                    f"{(used - self.used) / step * 1000:.1f} | "
                    f"{own_memory(os.getpid()):.0f} | {sizes} | "
                    f"{store_bytes / 1e6:,.0f} |",
                    flush=True,
                )
                self.last, self.used = now, used

    process = CrawlerProcess(
        {
            "ADDONS": {"scrapy_simdup.Addon": 500},
            "CONCURRENT_REQUESTS": 32,
            "CONCURRENT_REQUESTS_PER_DOMAIN": 32,
            # Scrapy's own remembers all requests; what grows here shall be ours.
            "DUPEFILTER_CLASS": "scrapy.dupefilters.BaseDupeFilter",
            "LOG_LEVEL": "WARNING",
            "ROBOTSTXT_OBEY": False,
            "SIMDUP_STORE": f"{folder}/store",
            "SIMDUP_LOG": f"{folder}/dropped.jsonl",
            "TELNETCONSOLE_ENABLED": False,
        }
    )
    crawler = process.create_crawler(Soak)
    process.crawl(crawler)
    process.start()
    stats = {
        name.removeprefix("simdup/"): value
        for name, value in crawler.stats.get_stats().items()
        if name.startswith("simdup/")
    }
    contents = [content for content in range(pages) if origin(content) == content]
    skipped = sum(value for name, value in stats.items() if name.startswith("skipped/"))
    with Path(folder, "dropped.jsonl").open(encoding="utf-8") as log:
        listed = sum(json.loads(line)["kind"] != "near_miss" for line in log)
    print(
        json.dumps(
            {
                "pages": pages,
                "duplicates there are": pages - len(contents),
                "dropped": stats["dropped"],
                "listed in the log": listed,
                "contents of which no page passed": sum(not passed[one] for one in contents),
                "duplicates that passed": sum(max(0, passed[one] - 1) for one in contents),
                "failed": crawler.spider.failed,
                "responses": crawler.stats.get_value("response_received_count", 0)
                + stats["dropped"],
                "checked + skipped": stats["checked"] + skipped,
                "unique + duplicates + revisits": sum(
                    value
                    for name, value in stats.items()
                    if name == "unique" or name.startswith(("duplicate/", "revisit/"))
                ),
                "errors": sum(
                    value for name, value in stats.items() if name.startswith(("error/", "worker/"))
                ),
            },
            indent=1,
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=200_000)
    parser.add_argument("--words", type=int, default=160)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--crawl", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve(options.words))
    elif options.crawl:
        crawl(options.crawl[0], options.pages, options.crawl[1])
    else:
        own = [sys.executable, __file__, "--pages", str(options.pages)]
        more = {"env": environment(), "text": True}
        with (
            tempfile.TemporaryDirectory() as folder,
            subprocess.Popen(
                [*own, "--words", str(options.words), "--serve"], stdout=subprocess.PIPE, **more
            ) as server,
        ):
            try:
                root = f"http://127.0.0.1:{server.stdout.readline().strip()}"
                print(
                    "| pages | pages/s | CPU, ms a page | crawl, MB | workers, MB each | store, MB |"
                )
                print("| ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
                subprocess.run([*own, "--crawl", root, folder], check=True, **more)
            finally:
                server.kill()


if __name__ == "__main__":
    main()
