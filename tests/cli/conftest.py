"""A store that two crawls have filled, with what the web may put into addresses and titles."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from crawl_site import article
from scrapy.cmdline import execute

from scrapy_simdup import Detector

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: Moves the cursor, turns the direction of text, ends a script, is no text at all, is endless.
HOSTILE = "https://evil.example/\x1b[31m\u202e<script>alert(1)</script>\ud800/" + "x" * 8_000
TITLE = "\u202e<script>alert(1)</script>[bold]"

FIRST: dict[str, str] = {
    "https://example.org/1": article(1),
    "https://example.org/1?print": article(1, edits=1),
    "https://www.example.net/1": article(1),
    "https://example.org/2": article(2),
    HOSTILE: article(3).replace("Story 3", TITLE),
    "https://example.org/3": article(3).replace("Story 3", TITLE) + " ",
}
SECOND: dict[str, str] = {
    "https://example.org/2": article(2),  # a revisit
    "https://example.org/2?print": article(2, edits=1),
    "https://example.org/4": article(4),
    "https://example.org/4?print": article(4, edits=2),
}


class Ran(NamedTuple):
    """What a command came to."""

    status: int
    output: str
    errors: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.output.splitlines()]

    @property
    def row(self) -> dict[str, Any]:
        (row,) = self.rows
        return row


def fill(path: Path, crawl: str, pages: dict[str, str], **options: Any) -> None:
    with Detector(path, crawl=crawl, keep_text=True, expected_pages=1000, **options) as detector:
        detector.note_crawl("spider").result()
        for url, html in pages.items():
            detector.check(url, html)
        detector.note_crawl("spider", {"checked": len(pages)}).result()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "store"
    fill(path, "first", FIRST)
    fill(path, "second", SECOND)
    return path


@pytest.fixture
def simdup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ran]:
    """Run ``scrapy simdup …`` in a folder that is no project."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Ran:
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            execute(["scrapy", "simdup", *map(str, arguments)])
        ran = Ran(int(left.value.code or 0), *capsys.readouterr())
        assert "Traceback" not in ran.errors
        shown = ran.output + ran.errors
        assert not {"\x1b", "\u202e", "\ud800"} & set(shown), "it could reach the terminal"
        return ran

    return run
