"""The way of a page: skipped, revisit, exact, near or unique.

::

    eligible? ─ same URL? ─ same bytes? ─ main text ─ long enough? ─ same text? ─ candidates ─ verify

Two steps touch the store, each one transaction on the store's thread. The first sees what the
bytes alone decide (a revisit, an exact duplicate); only if they do not, the text is extracted and
fingerprinted in a worker process, or on the analyst's thread, and the second decides by it. Both
decide and write in one step, and the second looks again at all that the first has seen.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import time
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any

from w3lib.encoding import html_to_unicode
from w3lib.url import canonicalize_url

from scrapy_simdup.analysis import Analyser, Material, storable
from scrapy_simdup.config import Config
from scrapy_simdup.decision import Decision, Page
from scrapy_simdup.errors import ConfigError, StoreError
from scrapy_simdup.store.lmdb import LmdbPageStore
from scrapy_simdup.verdict import Verdict
from scrapy_simdup.work import Analyst
from scrapy_simdup.workers import (
    SUPPORTED,
    NoWorkerError,
    WorkerDiedError,
    Workers,
    available_processors,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from typing_extensions import Self

    from scrapy_simdup.analysis import Analysis, Outcome
    from scrapy_simdup.store.records import PageStore, StoreInfo

_MAX_KEY = 64
_MAX_URL = 8_192


def page_key(url: str) -> bytes:
    """Return the key of a page that is known by its URL only.

    It is what Scrapy's default request fingerprinter gives for a GET request, so that a store that
    a crawl has filled knows the page.
    """
    try:
        canonical = canonicalize_url(url, keep_fragments=False)
    except ValueError:  # no URL that could be requested
        canonical = url
    request = {"method": "GET", "url": canonical, "body": "", "headers": {}}
    return hashlib.sha1(
        json.dumps(request, sort_keys=True).encode(), usedforsecurity=False
    ).digest()


class Detector:
    """Judges pages against a store of the pages before. Usable from any thread.

    *path* is the folder of the store; None keeps nothing on disk. *crawl* names this run in the
    records. Options are the ``SIMDUP_`` settings in lower case; unknown ones and values that are
    not allowed raise :class:`ConfigError`, a store that cannot be used :class:`StoreError`. One
    page at a time needs no worker processes, so *workers* is 0 here unless it is given.

    >>> with Detector("pages", max_distance=3) as detector:  # doctest: +SKIP
    ...     verdict = detector.check("https://example.org/a", html)
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, *, crawl: str = "", **options: Any
    ) -> None:
        if "store" in options:
            raise ConfigError("the store is Detector's first argument, not an option")
        self._set_up(path, crawl, Config.from_options({"workers": 0, **options}))

    @classmethod
    def from_config(
        cls, path: str | os.PathLike[str] | None, config: Config, crawl: str = ""
    ) -> Self:
        """Make a detector from options that are validated already."""
        self = cls.__new__(cls)
        self._set_up(path, crawl, config)
        return self

    def _set_up(self, path: str | os.PathLike[str] | None, crawl: str, config: Config) -> None:
        self.config = config
        self._crawl = crawl
        self._analyser = Analyser(config)
        self._store: PageStore = LmdbPageStore(
            path,
            configuration=self._analyser.identity,
            max_distance=config.max_distance,
            expected_pages=config.expected_pages,
        )
        self._analyst = Analyst(config.timeout, name="simdup-analyst")
        #: Processes that extract and fingerprint; 0: a thread of this one does.
        self.workers = _number_of_workers(config)
        self._workers: Workers[Material, Outcome] | None = (
            Workers(
                functools.partial(Analyser, config),
                self.workers,
                timeout=config.timeout,
                max_bytes=config.max_worker_bytes,
                name="simdup-workers",
                on_event=self._worker_event,
            )
            if self.workers
            else None
        )
        self._unfinished: set[Future[Verdict]] = set()
        self._pid = os.getpid()
        #: Called with ("extract" | "lookup", seconds) for every step; for stats.
        self.on_timing: Callable[[str, float], None] | None = None
        #: Called with one of ``workers.EVENTS`` and a text when a worker is replaced, or none can
        #: be had; from any thread.
        self.on_worker_event: Callable[[str, str], None] | None = None

    def info(self) -> StoreInfo:
        """Return what the store holds."""
        return self._store.info()

    def load(self) -> None:
        """Import now what the first page would import, so that nothing waits for it later."""
        if self._workers is None:
            self._analyser.load()

    def check(
        self,
        url: str,
        html: str | bytes | None = None,
        *,
        text: str | None = None,
        title: str | None = None,
        key: bytes | None = None,
    ) -> Verdict:
        """Judge a page, given as *html* or as its main *text*, and remember it.

        *key* identifies the request; by default it is made of the URL. Raises
        :class:`StoreError` if the store cannot be read or written.
        """
        return self.submit(url, html, text=text, title=title, key=key).result()

    def submit(
        self,
        url: str,
        html: str | bytes | None = None,
        *,
        text: str | bytes | None = None,
        title: str | None = None,
        key: bytes | None = None,
        decode: Callable[[bytes], str] | None = None,
        item: bool = False,
    ) -> Future[Verdict]:
        """Like :meth:`check`, but returns at once; the future has the verdict when it is durable.

        Both *html* and *text* may be bytes here, and *decode* makes text of them where it may take
        its time; by default the bytes' own declaration is followed. What cannot be pickled of it
        runs on a thread of this process, as all does without workers.

        An *item* is one of several on its page and is known by its content, not by its request. If
        an earlier crawl has kept it on this host, edited or elsewhere on the site, it is a revisit.
        """
        if (html is None) == (text is None):
            raise TypeError("give either html or text")
        verdict: Future[Verdict] = Future()
        verdict.set_running_or_notify_cancel()
        page = self._page(url, html, text, title, key, decode, item)
        size = len(page.body)
        if size > self.config.max_body_bytes:
            verdict.set_result(Verdict(kind="skipped", reason="body_too_large"))
        elif not page.body or page.body.isspace():
            reason = "no_text" if html is None else "empty_body"
            verdict.set_result(Verdict(kind="skipped", reason=reason))
        else:
            self._unfinished.add(verdict)
            verdict.add_done_callback(self._unfinished.discard)
            try:
                self._judge(page, None, verdict)
            except StoreError as error:
                verdict.set_exception(error)
        return verdict

    def _page(
        self,
        url: str,
        html: str | bytes | None,
        text: str | bytes | None,
        title: str | None,
        key: bytes | None,
        decode: Callable[[bytes], str] | None,
        item: bool,
    ) -> Page:
        content = html if html is not None else text
        if isinstance(content, str):
            body, decode = content.encode("utf-8", "surrogatepass"), _as_it_was
        else:
            assert content is not None
            body, decode = content, decode or _as_declared
        key = page_key(url) if key is None else key
        if item:
            key += b"#" + body
        if not 0 < len(key) <= _MAX_KEY:
            key = hashlib.blake2b(key, digest_size=20).digest()
        return Page(
            url=storable(url)[:_MAX_URL],
            key=key,
            material=Material(body, decode, html is not None, title),
            seed=self.config.seed,
            is_item=item,
        )

    def _judge(self, page: Page, analysis: Analysis | None, verdict: Future[Verdict]) -> None:
        """Send the page to the store's thread, and on to the analyst if that cannot tell yet.

        Whatever goes wrong on the way ends in *verdict*: nobody waits for ever.
        """
        started = time.perf_counter()

        def decided(future: Future[Verdict | None]) -> None:
            try:
                if self.on_timing is not None:
                    self.on_timing("lookup", time.perf_counter() - started)
                found = future.result()
                if found is not None:
                    verdict.set_result(found)
                else:
                    self._analysis(page.material).add_done_callback(analysed)
            except Exception as error:
                verdict.set_exception(error)

        def analysed(future: Future[Outcome]) -> None:
            try:
                outcome = future.result()
                if self.on_timing is not None:
                    self.on_timing("extract", outcome.seconds)
                if outcome.analysis is not None:
                    self._judge(page, outcome.analysis, verdict)
                else:
                    verdict.set_result(Verdict(kind="skipped", reason=outcome.skipped))
            except NoWorkerError:
                self._on_thread(page.material).add_done_callback(analysed)
            except TimeoutError:
                verdict.set_result(Verdict(kind="skipped", reason="timeout"))
            except (WorkerDiedError, MemoryError):
                verdict.set_result(Verdict(kind="skipped", reason="extraction_failed"))
            except Exception as error:
                verdict.set_exception(error)

        decision = Decision(page, analysis, self.config, self._crawl, self._analyser.profiler)
        self._store.transact(decision, prepare=lambda: page.body_digest).add_done_callback(decided)

    def _analysis(self, material: Material) -> Future[Outcome]:
        try:
            if self._workers is not None:
                return self._workers.submit(material)
            return self._on_thread(material)
        except RuntimeError as error:
            raise StoreError("the detector is closed") from error

    def _on_thread(self, material: Material) -> Future[Outcome]:
        return self._analyst.submit(lambda: self._analyser(material))

    def _worker_event(self, event: str, text: str) -> None:
        if self.on_worker_event is not None:
            self.on_worker_event(event, text)

    def close(self) -> None:
        """Finish what was asked for, then close the store. May be called again."""
        if os.getpid() != self._pid:
            return  # the threads and the file are the parent's
        while self._unfinished:
            wait(list(self._unfinished))
        if self._workers is not None:
            self._workers.close()
        self._analyst.close()
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _number_of_workers(config: Config) -> int:
    if config.workers == "auto":
        return available_processors() if SUPPORTED else 0
    if config.workers and not SUPPORTED:
        raise ConfigError(f"workers = {config.workers}: must be 0 or auto on this system")
    return config.workers


def _as_it_was(body: bytes) -> str:
    """The text that was encoded here."""
    return body.decode("utf-8", "surrogatepass")


def _as_declared(body: bytes) -> str:
    return html_to_unicode(None, body)[1]
