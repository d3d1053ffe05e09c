"""What the add-on costs a crawl: how late the event loop is, and how many pages a second come in.

    python benchmarks/loop_lag.py [--rounds 5] [--pages 60] [--kilobytes 150] [--concurrency 16]

Crawls a local server with and without the add-on, in turn, in processes of their own; the server is
in this one. ``at once``: pages come as fast as the crawl takes them, so the processor is what it
waits for. ``after 1–3 s``: every page takes its time, as on a network. ``example``: the crawl of
example_project, whose server shares the crawl's process. Lag is by how much a sleep of 5 ms is
late, in milliseconds. Figures are medians over the rounds, with the least and the largest.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "example_project"
sys.path.insert(0, str(ROOT / "tests"))

from crawl_site import SETTINGS, Site, environment, heavy_article

if TYPE_CHECKING:
    from collections.abc import Callable

COLUMNS = ("lag p50", "lag p99", "lag max", "pages/s", "extract ms")
ADDON = {"scrapy_simdup.Addon": 500}


def crawl(task: dict[str, Any]) -> None:
    """Run one crawl, in a process of its own, and print its figures as the last line."""
    from crawl.spiders import LagMeter, Visitor
    from scrapy.crawler import AsyncCrawlerProcess
    from scrapy.utils.project import get_project_settings

    settings = get_project_settings()
    settings.setdict(task["settings"], priority="cmdline")
    process = AsyncCrawlerProcess(settings)
    crawler = process.create_crawler("demo" if task["example"] else Visitor)
    meter = LagMeter.from_crawler(crawler)
    process.crawl(crawler, **task["arguments"])
    process.start()
    assert crawler.stats is not None
    stats = crawler.stats.get_stats()
    assert meter.late, "signals keep no extension alive"
    figures = {name: stats[f"lag/{name[4:]}"] for name in COLUMNS[:3]}
    figures["pages/s"] = stats["downloader/response_count"] / stats["elapsed_time_seconds"]
    figures["extract ms"] = stats.get("simdup/time/extract_ms/mean", 0.0)
    print(json.dumps(figures))


def run(task: dict[str, Any], addon: bool) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            **task["settings"],
            "ADDONS": ADDON if addon else {},
            "LOG_LEVEL": "WARNING",
            "SIMDUP_STORE": str(Path(folder) / "store"),
            "SIMDUP_LOG": str(Path(folder) / "dropped.jsonl"),
        }
        done = subprocess.run(
            [sys.executable, __file__, "--task", json.dumps({**task, "settings": settings})],
            cwd=EXAMPLE if task["example"] else folder,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def tasks(site: Site, slow: Site, concurrency: int) -> dict[str, dict[str, Any]]:
    settings = {
        **SETTINGS,
        "CONCURRENT_REQUESTS": concurrency,
        "CONCURRENT_REQUESTS_PER_DOMAIN": concurrency,
    }

    def of(server: Site) -> dict[str, Any]:
        arguments = {"root": server.root, "visits": list(server.pages), "items": []}
        return {"example": False, "settings": settings, "arguments": arguments}

    found = {"at once": of(site), "after 1–3 s": of(slow)}
    if (EXAMPLE / "scrapy.cfg").exists():
        found["example"] = {"example": True, "settings": {}, "arguments": {}}
    return found


def delayed(html: str) -> Callable[[int], str]:
    seconds = random.Random(html).uniform(1, 3)

    def answer(visit: int) -> str:
        time.sleep(seconds)
        return html

    return answer


def shown(figures: list[float]) -> str:
    median, digits = statistics.median(figures), 0 if statistics.median(figures) >= 100 else 1
    return f"{median:.{digits}f} ({min(figures):.{digits}f}–{max(figures):.{digits}f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pages", type=int, default=60)
    parser.add_argument("--kilobytes", type=int, default=150)
    parser.add_argument("--words", type=int, default=900, help="of main text in a page")
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--task", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        crawl(json.loads(options.task))
        return
    pages = {
        f"/{number}": heavy_article(number, options.kilobytes, options.words)
        for number in range(options.pages)
    }
    size = statistics.mean(map(len, pages.values())) / 1000
    print(
        f"{options.pages} pages of {size:.0f} kB ({options.words} words of main text), "
        f"{options.concurrency} at a time, "
        f"{options.rounds} rounds; {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; "
        f"Python {platform.python_version()}, Scrapy {version('Scrapy')}\n"
    )
    figures: dict[tuple[str, bool], list[dict[str, float]]] = {}
    with Site(pages) as site, Site({k: delayed(v) for k, v in pages.items()}) as slow:
        todo = tasks(site, slow, options.concurrency)
        for _ in range(options.rounds):
            for name, task in todo.items():
                for addon in (False, True):
                    figures.setdefault((name, addon), []).append(run(task, addon))
    print("| crawl | add-on | " + " | ".join(COLUMNS) + " |")
    print("| --- | --- | " + " | ".join("---:" for _ in COLUMNS) + " |")
    for (name, addon), rounds in figures.items():
        cells = [shown([one[column] for one in rounds]) for column in COLUMNS]
        if not addon:
            cells[-1] = "–"
        print(f"| {name} | {'with' if addon else 'without'} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
