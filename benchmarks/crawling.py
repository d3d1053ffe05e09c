"""What the add-on costs a crawl: pages a second, processor time, and how late the event loop is.

    python benchmarks/crawling.py [--pages DIR] [--rounds 5] [--only REGEX]

Every crawl runs in a process of its own against a server in another one, in turn, so that noise
meets all alike; figures are medians over the rounds, with the least and the largest.

- ``processor``: pages come as fast as the crawl takes them. They differ, in bytes and in a number,
  so that all are extracted; peers are Scrapy alone and the same trafilatura call within
  ``process_response``, which is what people write by hand.
- ``network``: every response takes 200 ms, as on a network.
- ``copies``: the same pages under many addresses, so that all but the first are known by their bytes.
- ``example``: the crawl of example_project, whose server shares the crawl's process.

`--pages` is a folder of HTML files (``*.html``, or ``*.html.gz``); without it, pages are made up.
``lag`` is by how many milliseconds a sleep of 5 ms on the event loop is late. ``CPU`` is processor
time a page, of the crawl and its workers together; ``use`` the share of all processors' time.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import platform
import re
import resource
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

from crawl_site import SETTINGS, environment, heavy_article

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Self

COLUMNS = ("pages/s", "CPU ms", "use %", "lag p50", "lag p99", "lag max", "extract ms")
NETWORK_DELAY = 0.2
CONCURRENCY = 16
ALONE, INLINE = "Scrapy alone", "trafilatura in process_response"


# ---- the crawl, in a process of its own ----------------------------------------------------------


class Inline:
    """What people write by hand: the main text, found within ``process_response``."""

    def process_response(self, request: Any, response: Any) -> Any:
        import trafilatura

        trafilatura.extract(response.text, fast=True, include_comments=False)
        return response


def crawl(task: dict[str, Any]) -> None:
    """Run one crawl and print its figures as the last line."""
    from crawl.spiders import LagMeter, Visitor
    from scrapy import signals
    from scrapy.crawler import AsyncCrawlerProcess
    from scrapy.utils.project import get_project_settings

    settings = get_project_settings()
    settings.setdict(task["settings"], priority="cmdline")
    if task["inline"]:
        settings["DOWNLOADER_MIDDLEWARES"] = {Inline: 545}
        import trafilatura  # noqa: F401 - not within the time that is measured
    process = AsyncCrawlerProcess(settings)
    crawler = process.create_crawler("demo" if task["example"] else Visitor)
    meter = LagMeter.from_crawler(crawler)
    times: list[float] = []
    crawler.signals.connect(
        lambda **_: times.append(time.perf_counter()),
        signal=signals.response_downloaded,
        weak=False,
    )
    process.crawl(crawler, **task["arguments"])
    process.start()
    assert crawler.stats is not None
    stats = crawler.stats.get_stats()
    assert meter.late, "signals keep no extension alive"
    pages = stats["downloader/response_count"]
    seconds = stats["elapsed_time_seconds"]
    used = sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )
    # Without the first pages, while workers start.
    warm = times[len(times) // 5 :]
    figures = {name: stats[f"lag/{name[4:]}"] for name in COLUMNS if name.startswith("lag")}
    figures["pages/s"] = (len(warm) - 1) / (warm[-1] - warm[0])
    figures["CPU ms"] = 1000 * used / pages
    figures["use %"] = 100 * used / seconds / (os.cpu_count() or 1)
    figures["extract ms"] = stats.get("simdup/time/extract_ms/mean", 0.0)
    figures["seconds"] = seconds
    print(json.dumps(figures))


def run(task: dict[str, Any]) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            **task["settings"],
            "LOG_LEVEL": "WARNING",
            "SIMDUP_STORE": str(Path(folder) / "store"),
            "SIMDUP_LOG": str(Path(folder) / "dropped.jsonl"),
        }
        file = Path(folder) / "task.json"
        file.write_text(json.dumps({**task, "settings": settings}), "utf-8")
        done = subprocess.run(
            [sys.executable, __file__, "--task", str(file)],
            cwd=EXAMPLE if task["example"] else folder,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
    if done.returncode:
        sys.exit(done.stderr)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


# ---- the server, in a process of its own ---------------------------------------------------------


def serve(folder: Path, delay: float) -> None:
    """Serve ``/NUMBER/NAME``: the file NAME, made another page by NUMBER; ``/same/NAME``: as it is."""
    pages = {path.name: path.read_bytes() for path in folder.iterdir()}

    def page(path: str) -> bytes:
        _, number, name = path.split("/")
        if number == "same":
            return pages[name]
        # Other bytes, and so another page to extract: the number stands at its end.
        return pages[name].replace(b"</body>", f"<p>Visit {number} today.</p></body>".encode(), 1)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await reader.readuntil(b"\r\n\r\n"):
                if delay:
                    await asyncio.sleep(delay)
                body = page(request.split(b" ", 2)[1].decode())
                head = (
                    "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
                    f"Content-Length: {len(body)}\r\n\r\n"
                )
                writer.write(head.encode() + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, limit=1 << 20)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()

    asyncio.run(main())


class Server:
    def __init__(self, folder: Path, delay: float) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--serve", str(folder), str(delay)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.root = f"http://127.0.0.1:{int(self._process.stdout.readline())}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.wait()


# ---- the comparison ------------------------------------------------------------------------------


def write_pages(source: Path | None, folder: Path) -> None:
    if source is None:
        for number in range(60):
            (folder / f"{number}.html").write_text(heavy_article(number, 150, 900), "utf-8")
        return
    for path in sorted((*source.rglob("*.html"), *source.rglob("*.html.gz"))):
        body = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        (folder / f"{len(list(folder.iterdir()))}.html").write_bytes(body)


def variants(workers: list[str]) -> dict[str, dict[str, Any]]:
    ours = {
        f"simdup, {number} workers": {
            "ADDONS": {"scrapy_simdup.Addon": 500},
            "SIMDUP_WORKERS": number,
        }
        for number in workers
    }
    return {ALONE: {"ADDONS": {}}, INLINE: {"ADDONS": {}}, **ours}


def scenarios(
    server: Server, slow: Server, names: list[str], options: argparse.Namespace
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(scenario, variant, task) of all that is measured in a round."""
    common = {
        **SETTINGS,
        "CONCURRENT_REQUESTS": CONCURRENCY,
        "CONCURRENT_REQUESTS_PER_DOMAIN": CONCURRENCY,
    }

    def visits(number: int, *, same: bool = False) -> list[str]:
        paths = []
        while len(paths) < number:
            turn = "same" if same else str(1000 + len(paths) // len(names))
            paths += [f"/{turn}/{name}" for name in names]
        return paths[:number]

    plans = {
        "processor": (server, visits(options.visits)),
        "network": (slow, visits(options.slow_visits)),
        "copies": (server, visits(4 * options.visits, same=True)),
    }
    for scenario, (at, paths) in plans.items():
        for variant, settings in variants(options.workers).items():
            if scenario == "network" and variant == INLINE:
                continue
            arguments = {
                "root": at.root,
                # One priority, as spiders have it: a queue for each of them would cost Scrapy its time.
                "visits": [{"path": path, "dont_filter": True, "priority": 0} for path in paths],
                "items": [],
            }
            yield (
                scenario,
                variant,
                {
                    "example": False,
                    "inline": variant == INLINE,
                    "settings": {**common, **settings},
                    "arguments": arguments,
                },
            )
    if (EXAMPLE / "scrapy.cfg").exists():
        for variant, settings in variants(options.workers).items():
            if variant != INLINE:
                yield (
                    "example",
                    variant,
                    {
                        "example": True,
                        "inline": False,
                        "settings": settings,
                        "arguments": {},
                    },
                )


def shown(figures: list[float]) -> str:
    median = statistics.median(figures)
    digits = 0 if median >= 100 else 1 if median >= 10 else 2
    return f"{median:.{digits}f} ({min(figures):.{digits}f}–{max(figures):.{digits}f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=Path, help="folder of HTML files")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--visits", type=int, default=724)
    parser.add_argument("--slow-visits", type=int, default=724)
    parser.add_argument("--workers", nargs="+", default=["0", "1", "2"])
    parser.add_argument("--only", default="", help="scenarios and variants that match")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        crawl(json.loads(Path(options.task).read_text("utf-8")))
        return
    if options.serve:
        serve(Path(options.serve[0]), float(options.serve[1]))
        return
    measured: dict[tuple[str, str], list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write_pages(options.pages, folder)
        names = sorted(path.name for path in folder.iterdir())
        size = statistics.mean(path.stat().st_size for path in folder.iterdir()) / 1000
        print(
            f"{len(names)} pages of {size:.0f} kB on average, {CONCURRENCY} at a time, "
            f"{options.rounds} rounds; {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; "
            f"Python {platform.python_version()}, Scrapy {version('Scrapy')}, "
            f"trafilatura {version('trafilatura')}\n",
            flush=True,
        )
        with Server(folder, 0.0) as server, Server(folder, NETWORK_DELAY) as slow:
            for turn in range(options.rounds):
                for scenario, variant, task in scenarios(server, slow, names, options):
                    if not re.search(options.only, f"{scenario}: {variant}"):
                        continue
                    if sys.stderr.isatty():
                        line = f"round {turn + 1} of {options.rounds}, {scenario}: {variant}"
                        print(f"\r{line:70}", end="", file=sys.stderr, flush=True)
                    measured.setdefault((scenario, variant), []).append(run(task))
    print(table(measured))


def table(measured: dict[tuple[str, str], list[dict[str, float]]]) -> str:
    lines = [
        "| crawl | | " + " | ".join(COLUMNS) + " | × its first row |",
        "| --- | --- | " + " | ".join("---:" for _ in COLUMNS) + " | ---: |",
    ]
    for (scenario, variant), rounds in measured.items():
        first = next(found for (name, _), found in measured.items() if name == scenario)
        cells = [shown([one[column] for one in rounds]) for column in COLUMNS]
        ratios = [a["pages/s"] / b["pages/s"] for a, b in zip(rounds, first, strict=True)]
        lines.append(f"| {scenario} | {variant} | {' | '.join(cells)} | {shown(ratios)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
