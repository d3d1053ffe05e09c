"""Ctrl-C means what it means in Scrapy: once, finish what is in flight; twice, stop at once."""

from __future__ import annotations

import re
import sys
import time
from typing import TYPE_CHECKING

import pytest
from crawl_site import SETTINGS, Child, Site, article, wait_until

from scrapy_simdup import Detector

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for a child")

SCRIPT = """
from scrapy.crawler import AsyncCrawlerProcess
from crawl.spiders import Visitor

process = AsyncCrawlerProcess({settings!r})
process.crawl(Visitor, root={root!r}, visits={visits!r}, items=())
process.start()
"""


@pytest.fixture
def site() -> Iterator[Site]:
    def slowly(number: int) -> object:
        def answer(visit: int) -> str:
            time.sleep(0.3)
            return article(400 + number)

        return answer

    with Site({f"/{number}": slowly(number) for number in range(200)}) as running:
        yield running


@pytest.fixture
def child(site: Site, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Child]:
    settings = {
        **SETTINGS,
        "SIMDUP_STORE": str(tmp_path / "store"),
        "SIMDUP_LOG": False,
        "CONCURRENT_REQUESTS": 4,
        "LOG_LEVEL": "INFO",
        **request.param,
    }
    script = tmp_path / "script.py"
    text = SCRIPT.format(settings=settings, root=site.root, visits=list(site.pages))
    script.write_text(text, "utf-8")
    with Child(script, cwd=tmp_path) as running:
        wait_until(lambda: len(site.visits) >= 8)
        yield running


@pytest.mark.parametrize("child", [{}], indirect=True, ids=[""])
def test_once_finishes_what_is_in_flight_and_ends(child: Child, site: Site, tmp_path: Path) -> None:
    child.interrupt()
    output = child.wait(15)
    assert "shutting down gracefully" in output
    assert len(site.visits) < 50
    (checked,) = re.findall(r"simdup: checked (\d+) pages: \1 unique, 0 duplicates", output)
    assert int(checked) == len(site.visits)
    assert "'finish_reason': 'shutdown'" in output
    assert "ERROR" not in output
    with Detector(tmp_path / "store") as detector:
        assert detector.info().pages == len(site.visits)


STUCK = {"SIMDUP_EXTRACTOR": "crawl.extractors.stuck", "SIMDUP_TIMEOUT": 600}


@pytest.mark.parametrize("child", [STUCK], indirect=True, ids=["with an extractor that is stuck"])
def test_twice_ends_at_once_and_the_store_opens_again(
    child: Child, site: Site, tmp_path: Path
) -> None:
    child.interrupt()
    wait_until(lambda: "shutting down gracefully" in child.text)
    child.interrupt()
    output = child.wait(15)
    assert "forcing unclean shutdown" in output
    assert "Traceback" not in output
    with Detector(tmp_path / "store", extractor="crawl.extractors.stuck") as detector:
        assert detector.info().pages == 4
