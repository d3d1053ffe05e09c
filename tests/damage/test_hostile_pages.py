"""Whatever a server sends has a verdict, in time, and costs no worker."""

from __future__ import annotations

import os
import random
import time
from collections import Counter, deque
from typing import TYPE_CHECKING

import pytest
from scrapy.responsetypes import responsetypes

from scrapy_simdup import Detector
from scrapy_simdup.charset import text_of

from . import pages

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

    from scrapy.http import Response

    from scrapy_simdup import Verdict

WORKERS = 2
AT_A_TIME = 24
FULL = 50_000
_LONGEST = 3_000.0

Input = tuple[str, bytes, dict[str, str]]


def inputs(number: int, own: list[bytes]) -> Iterator[Input]:
    """*number* of them, the same in every run; *own* pages are harmed, too."""
    sources = [*(body for _, body in pages.bombs(0.05 if number < FULL else 1)), *own]
    sources += [pages.grown(random.Random(n)) for n in range(50)]
    for n in range(number):
        chance = random.Random(n)
        if n < len(own):
            body = own[n]
        elif chance.random() < 0.4:
            body = pages.grown(chance)
        else:
            body = pages.harmed(chance.choice(own or sources), chance.choice(sources), chance)
        yield f"input {n}", body, pages.headers(chance)


def submit(detector: Detector, one: Input) -> Future[Verdict] | None:
    """As the downloader middleware does it. None for what Scrapy takes for no text."""
    name, body, headers = one
    url = f"https://example.org/{name.replace(' ', '-')}"
    raw = {key: [value.encode("latin-1")] for key, value in headers.items()}
    response: Response = responsetypes.from_args(headers=raw, url=url, body=body)(
        url, headers=raw, body=body
    )
    if not hasattr(response, "text"):
        return None
    return detector.submit(url, response.body, decode=text_of(response))  # type: ignore[arg-type]


def judge(detector: Detector, given: Iterator[Input]) -> dict[str, Verdict]:
    verdicts: dict[str, Verdict] = {}
    waiting: deque[tuple[str, Future[Verdict]]] = deque()
    end = time.monotonic() + _LONGEST
    for one in given:
        future = submit(detector, one)
        if future is not None:
            waiting.append((one[0], future))
        while len(waiting) >= AT_A_TIME:
            name, first = waiting.popleft()
            verdicts[name] = first.result(max(1.0, end - time.monotonic()))
    for name, last in waiting:
        verdicts[name] = last.result(max(1.0, end - time.monotonic()))
    return verdicts


@pytest.fixture(scope="module")
def watched() -> Iterator[tuple[Detector, list[float], Counter[str]]]:
    """A detector with workers; how long its extractions took; what happened to its workers."""
    seconds: list[float] = []
    events: Counter[str] = Counter()
    with Detector(None, workers=WORKERS if hasattr(os, "fork") else 0) as detector:
        detector.on_timing = lambda step, took: seconds.append(took) if step == "extract" else None
        detector.on_worker_event = lambda event, _: events.update([event])
        yield detector, seconds, events


def test_have_verdicts_in_time(
    watched: tuple[Detector, list[float], Counter[str]],
    full: bool,
    pytestconfig: pytest.Config,
    capsys: pytest.CaptureFixture[str],
) -> None:
    detector, seconds, events = watched
    events.clear()
    own = pages.files(pytestconfig.getoption("--pages"))
    verdicts = judge(detector, inputs(FULL + len(own) if full else 150, own))
    kinds = Counter(verdict.reason or verdict.kind for verdict in verdicts.values())
    with capsys.disabled():
        print(
            f" {len(verdicts):,} pages, slowest {max(seconds):.2f} s, workers {dict(events)}, "
            f"{dict(kinds)}",
            end="",
        )
    assert events == {}, "no worker died, took too much memory, or was not done in time"
    assert kinds["extraction_failed"] < len(verdicts) / 10


@pytest.mark.parametrize("name", [name for name, _ in pages.bombs(0)])
def test_bombs_have_a_verdict(
    watched: tuple[Detector, list[float], Counter[str]], name: str, full: bool
) -> None:
    detector, _, events = watched
    events.clear()
    body = dict(pages.bombs(10 if full else 0.1))[name][:4_900_000]
    first = submit(detector, (name, body, {"Content-Type": "text/html"}))
    if first is None:
        return  # Scrapy takes it for no text
    verdict = first.result(_LONGEST)
    assert verdict.reason != "timeout", f"{name}: {events}"
    again = submit(detector, (f"{name} again", body, {"Content-Type": "text/html"}))
    assert again is not None
    repeated = again.result(_LONGEST)
    assert repeated.is_duplicate == (verdict.kind != "skipped")
    assert not events, name
