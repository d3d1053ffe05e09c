"""Extractors of one's own, as SIMDUP_EXTRACTOR names them: HTML in, main text or None out."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path


def text(html: str) -> str | None:
    paragraphs = re.findall("<p>(.*?)</p>", html, re.DOTALL)
    return "\n".join(paragraphs) or None


def raising(html: str) -> str | None:
    """Fails on every fifth of the stories 300, 301, …"""
    if re.search(r"<h1>Story \d+[05]</h1>", html):
        raise ValueError("this one not")
    return text(html)


def hanging(html: str) -> str | None:
    """Needs seconds for story 301."""
    if "<h1>Story 301</h1>" in html:
        time.sleep(3)
    return text(html)


def stuck(html: str) -> str | None:
    """Never ends for story 404."""
    if "<h1>Story 404</h1>" in html:
        time.sleep(10_000)
    return text(html)


def slow(html: str) -> str | None:
    """Needs a while for each page, so that there is time to disturb it."""
    time.sleep(0.1)
    return text(html)


def patient(html: str) -> str | None:
    """Waits until there is a file ``go`` in the current folder, though not for ever."""
    end = time.monotonic() + 20
    while not Path("go").exists() and time.monotonic() < end:
        time.sleep(0.01)
    return text(html)


if "scrapy" in sys.modules:  # in a worker it is not

    def only_in_the_crawl(html: str) -> str | None:
        return text(html)
