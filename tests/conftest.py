"""Fixtures that more than one test module uses."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from scrapy_simdup import Detector


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="do all of tests/damage: many minutes")
    parser.addoption(
        "--pages", action="append", default=[], help="folder of pages for tests/damage to harm"
    )


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    """The folder of a store that is not there yet."""
    return tmp_path / "pages"


@pytest.fixture
def make_detector(store_path: Path) -> Iterator[Callable[..., Detector]]:
    """Open detectors on ``store_path``; those still open at the end are closed."""
    from scrapy_simdup import Detector

    with contextlib.ExitStack() as stack:

        def make(**options: Any) -> Detector:
            return stack.enter_context(Detector(store_path, **options))

        yield make


@pytest.fixture
def detector(make_detector: Callable[..., Detector]) -> Detector:
    """A detector with the default options."""
    return make_detector()
