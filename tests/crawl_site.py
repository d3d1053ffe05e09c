"""What crawl tests are made of: texts, a local site, and crawls in processes of their own."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from typing_extensions import Self

T = TypeVar("T")

HERE = Path(__file__).parent
CHILD = HERE / "crawl" / "child.py"
TIMEOUT = 60

#: Every crawl of the tests: nothing but our local server, strict order.
SETTINGS: dict[str, Any] = {
    "ADDONS": {"scrapy_simdup.Addon": 500},
    "SIMDUP_WORKERS": 0,  # a second less for each of them
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "COOKIES_ENABLED": False,
    "CONCURRENT_REQUESTS": 1,
    "DOWNLOAD_DELAY": 0,
    "DOWNLOAD_TIMEOUT": 30,
    "RETRY_TIMES": 2,
    "LOG_LEVEL": "DEBUG",
}

# ruff: noqa: SIM905 - syllables are read more easily as text
_ONSETS = "b bl br d dr f fl g gl gr h k kl l m n p pl pr r s st t tr v w z".split()
_VOWELS = "a e i o u ai ea ou".split()
_CODAS = "l m n r s t nd rk st x".split()


def _vocabulary(size: int) -> list[str]:
    rng = random.Random(20070508)
    words: dict[str, None] = {}
    while len(words) < size:
        syllables = rng.randint(1, 3)
        word = "".join(rng.choice(_ONSETS) + rng.choice(_VOWELS) for _ in range(syllables))
        words[word + rng.choice(_CODAS)] = None
    return list(words)


_WORDS = _vocabulary(3000)


def story(number: int, edits: int = 0, words: int = 240, variant: int = 0) -> list[str]:
    """Return the paragraphs of story *number*, *edits* of its words replaced by others.

    The same arguments give the same text; stories of different numbers have little in common, and
    another *variant* has other words at the places that are edited.
    """
    rng = random.Random(number)
    tokens = [rng.choice(_WORDS) for _ in range(words)]
    for place in range(edits):
        tokens[(place * 53 + 7) % words] = f"edited{number}of{edits}at{place}in{variant}"
    paragraphs, start = [], 0
    while start < words:
        sentences = []
        for length in (11, 9, 14, 10):
            part = tokens[start : start + length]
            start += length
            if part:
                sentences.append(" ".join(part).capitalize() + ".")
        paragraphs.append(" ".join(sentences))
    return paragraphs


def page(
    title: str, paragraphs: Iterable[str], links: Iterable[str] = (), head: str = "", tail: str = ""
) -> str:
    """Return an HTML page: an article, and a list of *links*."""
    text = "\n".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    anchors = "".join(f'<li><a href="{link}">{link.strip("/")}</a></li>' for link in links)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>{head}'
        f"</head>\n<body><main><article><h1>{title}</h1>\n{text}\n</article></main>\n"
        f"<nav><ul>{anchors}</ul></nav>{tail}</body></html>\n"
    )


def article(number: int, edits: int = 0, variant: int = 0, **parts: Any) -> str:
    """Return the page of story *number*; see :func:`story` and :func:`page`."""
    return page(f"Story {number}", story(number, edits, variant=variant), **parts)


def heavy_article(number: int, kilobytes: int, words: int = 900) -> str:
    """Return a page as they are on the web: a story of *words* words in *kilobytes* kB of HTML.

    About half of the rest are menus and teasers, the other half scripts and styles.
    """
    rng = random.Random(-number)
    rest = (kilobytes * 1000 - 7 * words) // 2
    script = ["<script>window.state = {"]
    while sum(map(len, script)) < rest:
        values = ", ".join(str(rng.randrange(10**9)) for _ in range(40))
        script.append(f'"{rng.choice(_WORDS)}{rng.randrange(1000)}": [{values}],\n')
    script.append("};</script>")
    menu: list[str] = []
    while sum(map(len, menu)) < rest:
        name = " ".join(rng.choices(_WORDS, k=4))
        menu.append(
            f'<div class="teaser card card--small" data-id="{rng.randrange(10**6)}"><a class="link" '
            f'href="/section/{name.replace(" ", "-")}?ref=menu"><img src="/i/{name[:9]}.jpg" alt="">'
            f'<span class="label">{name}</span></a></div>\n'
        )
    half = len(menu) // 2
    head = "".join(script) + f'</head><body><div id="menu">{"".join(menu[:half])}</div>'
    tail = f'<aside class="related">{"".join(menu[half:])}</aside>'
    return page(f"Story {number}", story(number, words=words), head=head, tail=tail).replace(
        "</head>\n<body>", "", 1
    )


@dataclass
class Reply:
    """What the site answers."""

    body: str | bytes
    type: str | None = "text/html; charset=utf-8"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


class Site:
    """A quiet local server: ``site.pages[path]`` is HTML, a ``Reply``, or a callable for one.

    A callable is given the number of the visit, 1 for the first. ``visits`` lists (method, path).
    """

    def __init__(self, pages: Mapping[str, Any] | None = None) -> None:
        self.pages: dict[str, Any] = dict(pages or {})
        self.visits: list[tuple[str, str]] = []
        self._lock = threading.Lock()
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site._answer(self)

            do_HEAD = do_POST = do_GET

            def log_message(self, *args: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False
            request_queue_size = 256

            def handle_error(self, *args: object) -> None:
                """A crawl that is killed does not say goodbye."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.root = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def url(self, path: str) -> str:
        return self.root + path

    def count(self, path: str) -> int:
        return [visited for _, visited in self.visits].count(path)

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        path = handler.path
        length = int(handler.headers.get("Content-Length") or 0)
        handler.rfile.read(length)
        with self._lock:
            self.visits.append((handler.command, path))
            visit = self.count(path)
        answer = self.pages.get(path, Reply("Not found", "text/plain", 404))
        if callable(answer):
            answer = answer(visit)
        if not isinstance(answer, Reply):
            answer = Reply(answer)
        body = answer.body.encode() if isinstance(answer.body, str) else answer.body
        handler.send_response(answer.status)
        if answer.type is not None:
            handler.send_header("Content-Type", answer.type)
        for name, value in answer.headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(body)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@dataclass
class Crawl:
    """What a crawl reported. URLs are paths of the site."""

    arrived: list[dict[str, Any]]
    failed: list[dict[str, Any]]
    items: list[dict[str, Any]]
    dropped: list[dict[str, Any]]
    stats: dict[str, Any]
    log: list[dict[str, Any]]
    error: str | None
    extra: dict[str, Any]
    root: str = ""
    folder: Path = Path()

    @property
    def paths(self) -> list[str]:
        """The paths of the pages that reached a callback, in their order."""
        return [page["path"] for page in self.arrived]

    @property
    def failed_paths(self) -> list[str]:
        return [failure["path"] for failure in self.failed]

    def verdict(self, path: str) -> dict[str, Any] | None:
        """The verdict with which *path* arrived."""
        (found,) = [page["verdict"] for page in self.arrived if page["path"] == path]
        return found

    def stat(self, key: str) -> Any:
        return self.stats.get(f"simdup/{key}", 0)

    @property
    def simdup_stats(self) -> dict[str, Any]:
        """Our counters: without their prefix, and without sizes and times."""
        return {
            key[len("simdup/") :]: value
            for key, value in self.stats.items()
            if key.startswith("simdup/") and not key.startswith(("simdup/time/", "simdup/store/"))
        }

    def said(self, level: str, logger: str = "scrapy_simdup") -> list[str]:
        """The messages of *level*, of our loggers."""
        return [
            line["message"]
            for line in self.log
            if line["level"] == level and line["logger"].startswith(logger)
        ]

    @property
    def complaints(self) -> list[str]:
        """All that anybody logged at WARNING or above."""
        return [
            f"{line['level']} {line['logger']}: {line['message']}"
            for line in self.log
            if line["level"] in {"WARNING", "ERROR", "CRITICAL"}
        ]

    def records(self, path: Path | None = None) -> list[dict[str, Any]]:
        """The records of the dropped-page log, URLs as paths."""
        return read_records(path or self.folder / "dropped.jsonl", self.root)


def read_records(path: Path, root: str) -> list[dict[str, Any]]:
    records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    for record in records:
        for name in ("url", "referer", "duplicate_of"):
            if record[name]:
                record[name] = record[name].removeprefix(root)
    return records


def environment(**more: str) -> dict[str, str]:
    """The environment of a child: that of this process, our modules, no project."""
    names = ("PATH", "HOME", "LANG", "SYSTEMROOT", "TEMP", "TMP", "COVERAGE_PROCESS_START")
    kept = {name: os.environ[name] for name in names if name in os.environ}
    return {**kept, "PYTHONPATH": str(HERE), "PYTHONUTF8": "1", **more}


def python(
    *arguments: str | Path, cwd: Path, timeout: float = TIMEOUT, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run Python with our warnings as errors; the result has its output, whatever its exit code."""
    return subprocess.run(
        [sys.executable, "-W", "error", *map(str, arguments)],
        cwd=cwd,
        env=environment(**more),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=timeout,
        check=False,
    )


def crawl(
    folder: Path,
    site: Site,
    spider: str = "Visitor",
    settings: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> Crawl:
    """Run one crawl in a process of its own; store and log are in *folder*."""
    (result,) = crawls(folder, site, [job(spider, settings, **arguments)])
    return result


def job(
    spider: str = "Visitor",
    settings: Mapping[str, Any] | None = None,
    place: str | None = None,
    **arguments: Any,
) -> dict[str, Any]:
    """One crawl: store and log are in the folder *place*, by default named like the spider."""
    if place is None:
        place = arguments.get("name", "")
    settings = dict(settings or {})
    return {"spider": spider, "settings": settings, "place": place, "arguments": arguments}


def crawls(
    folder: Path,
    site: Site,
    jobs: list[dict[str, Any]],
    how: str = "in turn",
    timeout: float = TIMEOUT,
    **settings: Any,
) -> list[Crawl]:
    """Run several crawls in one process, ``in turn`` or ``together``.

    *settings* are for all of them. Paths in a spider's arguments ``start`` are those of *site*.
    """
    folder.mkdir(parents=True, exist_ok=True)
    task = {
        "root": site.root,
        "how": how,
        "settings": {**SETTINGS, **settings},
        "jobs": [_placed(one, folder) for one in jobs],
    }
    file = folder / "task.json"
    file.write_text(json.dumps(task), "utf-8")
    done = python(CHILD, file, cwd=folder, timeout=timeout)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    assert not done.stderr, done.stderr[-6000:]
    reports = json.loads(done.stdout)
    return [
        Crawl(**report, root=site.root, folder=Path(one["folder"]))
        for report, one in zip(reports, task["jobs"], strict=True)
    ]


def _placed(one: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Give a job its store and log, where it does not name its own."""
    own = folder / one["place"]
    own.mkdir(parents=True, exist_ok=True)
    settings = {"SIMDUP_STORE": str(own / "store"), "SIMDUP_LOG": str(own / "dropped.jsonl")}
    return {**one, "folder": str(own), "settings": {**settings, **one["settings"]}}


def two_at_a_time(runs: Mapping[str, Callable[[], T]]) -> dict[str, T]:
    """Call all *runs*, which are crawls mostly, two of them at the same time."""
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(runs, pool.map(lambda run: run(), runs.values()), strict=True))


class Child:
    """A crawl that the test interferes with while it runs."""

    def __init__(self, *arguments: str | Path, cwd: Path, **more: str) -> None:
        self.output = cwd / "output.txt"
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-W", "error", *map(str, arguments)],
                cwd=cwd,
                env=environment(**more),
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def wait(self, timeout: float) -> str:
        """Return all output once the process has ended; kill it and fail after *timeout*."""
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"still running after {timeout} s:\n{self.text}") from None
        return self.text

    @property
    def text(self) -> str:
        return self.output.read_text("utf-8", "replace")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def wait_until(condition: Callable[[], bool], timeout: float = 30) -> None:
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)
