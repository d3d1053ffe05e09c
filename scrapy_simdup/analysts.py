"""Who analyses pages: worker processes, or a thread of this process."""

from __future__ import annotations

import functools
from concurrent.futures import Future
from typing import TYPE_CHECKING

from scrapy_simdup.analysis import Analyser, Outcome
from scrapy_simdup.errors import ConfigError
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

    from scrapy_simdup.analysis import Material
    from scrapy_simdup.config import Config


class Analysts:
    """Analyses pages as *config* says; what cannot go to a worker is done on the thread.

    ``number`` of workers, 0 for none. Raises ``ConfigError`` for an unusable extractor, and for
    workers where there can be none.
    """

    def __init__(self, config: Config, on_event: Callable[[str, str], None]) -> None:
        self.analyser = Analyser(config)
        self.number = _number_of_workers(config)
        self._thread = Analyst(config.timeout, name="simdup-analyst")
        self._workers: Workers[Material, Outcome] | None = None
        if self.number:
            self._workers = Workers(
                functools.partial(Analyser, config),
                self.number,
                timeout=config.timeout,
                max_bytes=config.max_worker_bytes,
                name="simdup-worker",
                on_event=on_event,
            )

    def load(self) -> None:
        """Import now what the first page would import, so that nothing waits for it later."""
        if self._workers is None:
            self.analyser.load()

    def submit(self, material: Material) -> Future[Outcome]:
        """Analyse a page; a failure is an outcome, too. RuntimeError after :meth:`close`."""
        outcome: Future[Outcome] = Future()
        outcome.set_running_or_notify_cancel()

        def done(future: Future[Outcome]) -> None:
            try:
                outcome.set_result(future.result())
            except NoWorkerError:
                self._on_thread(material).add_done_callback(done)
            except TimeoutError:
                outcome.set_result(Outcome(None, "timeout"))
            except (WorkerDiedError, MemoryError):
                outcome.set_result(Outcome(None, "extraction_failed"))
            except BaseException as error:
                outcome.set_exception(error)

        by = self._on_thread if self._workers is None else self._workers.submit
        by(material).add_done_callback(done)
        return outcome

    def _on_thread(self, material: Material) -> Future[Outcome]:
        return self._thread.submit(lambda: self.analyser(material))

    def close(self) -> None:
        """Finish what is queued, and end workers and thread."""
        if self._workers is not None:
            self._workers.close()
        self._thread.close()


def _number_of_workers(config: Config) -> int:
    if config.workers == "auto":
        return available_processors() if SUPPORTED else 0
    if config.workers and not SUPPORTED:
        raise ConfigError(f"workers = {config.workers}: must be 0 or auto on this system")
    return config.workers
