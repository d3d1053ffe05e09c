"""The way of a page: skipped, revisit, exact, near or unique.

::

    eligible? ─ same URL? ─ same bytes? ─ main text ─ long enough? ─ same text? ─ candidates ─ verify

Two steps touch the store, each one transaction on the store's thread. The first sees what the
bytes alone decide (a revisit, an exact duplicate); only if they do not, the text is extracted and
fingerprinted in a worker process, or on the analyst's thread, and the second decides by it. Both
decide and write in one step, and the second looks again at all that the first has seen.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any

from w3lib.url import canonicalize_url

from scrapy_simdup.analysis import Analysis, Declared, Material, storable
from scrapy_simdup.analysts import Analysts
from scrapy_simdup.config import Config
from scrapy_simdup.decision import VERSION, Decision, Page
from scrapy_simdup.errors import ConfigError, StoreError
from scrapy_simdup.store.crawls import Crawl
from scrapy_simdup.store.lmdb import LmdbPageStore
from scrapy_simdup.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType

    from typing_extensions import Self

    from scrapy_simdup.analysis import Outcome
    from scrapy_simdup.store.planner import Plan
    from scrapy_simdup.store.records import PageStore, StoreInfo

_MAX_KEY = 64
#: So much of an address is kept, in the store and in the dropped-page log.
MAX_URL = 8_192
#: Options that are not kept with a crawl: a secret, and where and how large things are here.
_NOT_KEPT = frozenset({"seed", "store", "log", "enabled", "max_store_bytes"})
#: Pages that `check_many` reads ahead for each worker, so that none waits for work.
_AHEAD = 8


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
        self._started = time.time()
        self._analysts = Analysts(config, self._worker_event)
        self._profiler = self._analysts.analyser.profiler
        self._store: PageStore = LmdbPageStore(
            path,
            configuration=self._analysts.analyser.identity,
            max_distance=config.max_distance,
            expected_pages=config.expected_pages,
            private=config.keep_text,
        )
        self._unfinished: set[Future[Verdict]] = set()
        self._pid = os.getpid()
        #: Called with ("extract" | "lookup", seconds) for every step; for stats.
        self.on_timing: Callable[[str, float], None] | None = None
        #: Called with one of ``workers.EVENTS`` and a text when a worker is replaced, or none can
        #: be had; from any thread.
        self.on_worker_event: Callable[[str, str], None] | None = None

    @property
    def workers(self) -> int:
        """Processes that extract and fingerprint; 0: a thread of this one does."""
        return self._analysts.number

    def info(self) -> StoreInfo:
        """Return what the store holds."""
        return self._store.info()

    def outgrown(self) -> Plan | None:
        """Return the layout in which a page would take half the time, if there is one by now.

        The store's was chosen for ``expected_pages``; ``scrapy simdup rebuild`` chooses anew.
        """
        return self._store.outgrown()

    def note_crawl(
        self, spider: str | None = None, counts: Mapping[str, float] | None = None
    ) -> Future[None]:
        """Keep in the store that this crawl runs; with *counts*, its stats, that it has ended.

        The crawl is the one that the detector was made with. Options are kept with it, for
        ``scrapy simdup replay``; the seed is a secret and is not.
        """
        options = self.config.changed()
        crawl = Crawl(
            id=self._crawl,
            spider=spider,
            started=self._started,
            ended=None if counts is None else time.time(),
            version=VERSION,
            options={name: value for name, value in options.items() if name not in _NOT_KEPT},
            counts=dict(counts or {}),
        )
        return self._store.transact(lambda txn: txn.note_crawl(crawl))

    def load(self) -> None:
        """Import now what the first page would import, so that nothing waits for it later."""
        self._analysts.load()

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
        page = self._page(url, html, text, title=title, key=key, decode=decode, item=item)
        verdict: Future[Verdict] = Future()
        verdict.set_running_or_notify_cancel()
        self._unfinished.add(verdict)
        verdict.add_done_callback(self._unfinished.discard)

        def seen(first: Future[Verdict | Analysis]) -> None:
            try:
                found = first.result()
                if isinstance(found, Analysis):
                    self._decide(page, found).add_done_callback(
                        lambda last: _pass_on(last, verdict)
                    )
                else:
                    verdict.set_result(found)
            except Exception as error:
                verdict.set_exception(error)

        self._look(page).add_done_callback(seen)
        return verdict

    def check_many(
        self, pages: Iterable[tuple[str, str | bytes] | Mapping[str, Any]]
    ) -> Iterator[Verdict]:
        """Judge many pages, each as (url, html) or as a mapping of :meth:`check`'s arguments.

        Yields the verdicts in the order of the pages, and they are what :meth:`check` would have
        said of one after another. Pages are read ahead, some for each worker (make the detector
        with ``workers="auto"``); so a verdict may be stored that was not yielded, if you stop.
        """
        waiting: deque[tuple[Page, Future[Verdict | Analysis]]] = deque()
        ahead = _AHEAD * max(1, self.workers)
        for given in pages:
            arguments = (
                dict(given)
                if isinstance(given, Mapping)
                else dict(zip(("url", "html"), given, strict=True))
            )
            page = self._page(**arguments)
            if any(page.key == other.key for other, _ in waiting):
                yield from self._in_order(waiting, 0)  # the same request again: it is a revisit
            waiting.append((page, self._look(page)))
            yield from self._in_order(waiting, ahead)
        yield from self._in_order(waiting, 0)

    def _in_order(
        self, waiting: deque[tuple[Page, Future[Verdict | Analysis]]], most: int
    ) -> Iterator[Verdict]:
        """Decide about the first of those that wait, until at most *most* are left.

        Those that are ready as well go with them, into one transaction.
        """
        while len(waiting) > most:
            decided: list[Verdict | Future[Verdict]] = []
            while waiting and (not decided or waiting[0][1].done()):
                page, first = waiting.popleft()
                found = first.result()
                decided.append(self._decide(page, found) if isinstance(found, Analysis) else found)
            for verdict in decided:
                yield verdict if isinstance(verdict, Verdict) else verdict.result()

    def _page(
        self,
        url: str,
        html: str | bytes | None = None,
        text: str | bytes | None = None,
        *,
        title: str | None = None,
        key: bytes | None = None,
        decode: Callable[[bytes], str] | None = None,
        item: bool = False,
    ) -> Page:
        if (html is None) == (text is None):
            raise TypeError("give either html or text")
        content = html if html is not None else text
        if isinstance(content, str):
            body, decode = content.encode("utf-8", "surrogatepass"), _as_it_was
        else:
            assert content is not None
            body, decode = content, decode or Declared()
        key = page_key(url) if key is None else key
        if item:
            key += b"#" + body
        if not 0 < len(key) <= _MAX_KEY:
            key = hashlib.blake2b(key, digest_size=20).digest()
        return Page(
            url=storable(url)[:MAX_URL],
            key=key,
            material=Material(body, decode, html is not None, title),
            seed=self.config.seed,
            is_item=item,
        )

    def _look(self, page: Page) -> Future[Verdict | Analysis]:
        """The verdict where the bytes alone decide, or the page is skipped; else its analysis."""
        first: Future[Verdict | Analysis] = Future()
        first.set_running_or_notify_cancel()
        if reason := self._unfit(page):
            first.set_result(Verdict(kind="skipped", reason=reason))
            return first

        def decided(future: Future[Verdict | None]) -> None:
            try:
                found = future.result()
            except Exception as error:
                first.set_exception(error)
                return
            if found is not None:
                first.set_result(found)
                return
            try:
                self._analysts.submit(page.material).add_done_callback(analysed)
            except RuntimeError:
                first.set_exception(StoreError("the detector is closed"))

        def analysed(future: Future[Outcome]) -> None:
            try:
                outcome = future.result()
                if outcome.seconds is not None and self.on_timing is not None:
                    self.on_timing("extract", outcome.seconds)
                skipped = Verdict(kind="skipped", reason=outcome.skipped)
                first.set_result(outcome.analysis or skipped)
            except Exception as error:
                first.set_exception(error)

        try:
            self._transact(page, None).add_done_callback(decided)
        except StoreError as error:
            first.set_exception(error)
        return first

    def _unfit(self, page: Page) -> str | None:
        if len(page.body) > self.config.max_body_bytes:
            return "body_too_large"
        if not page.body or page.body.isspace():
            return "empty_body" if page.material.is_html else "no_text"
        return None

    def _decide(self, page: Page, analysis: Analysis) -> Future[Verdict]:
        return self._transact(page, analysis)  # type: ignore[return-value]  # None is for the bytes

    def _transact(self, page: Page, analysis: Analysis | None) -> Future[Verdict | None]:
        started = time.perf_counter()
        decision = Decision(page, analysis, self.config, self._crawl, self._profiler)
        future = self._store.transact(decision, prepare=lambda: page.body_digest)
        if self.on_timing is not None:
            tell = self.on_timing
            future.add_done_callback(lambda _: tell("lookup", time.perf_counter() - started))
        return future

    def _worker_event(self, event: str, text: str) -> None:
        if self.on_worker_event is not None:
            self.on_worker_event(event, text)

    def close(self) -> None:
        """Finish what was asked for, then close the store. May be called again."""
        if os.getpid() != self._pid:
            return  # the threads and the file are the parent's
        while self._unfinished:
            wait(list(self._unfinished))
        self._analysts.close()
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


def _pass_on(done: Future[Verdict], verdict: Future[Verdict]) -> None:
    error = done.exception()
    if error is None:
        verdict.set_result(done.result())
    else:
        verdict.set_exception(error)


def _as_it_was(body: bytes) -> str:
    """The text that was encoded here."""
    return body.decode("utf-8", "surrogatepass")
