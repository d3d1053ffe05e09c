"""Who may read what we write: nobody whom the umask keeps out; where texts are kept, the owner only."""

from __future__ import annotations

import os
import stat
import sys
from typing import TYPE_CHECKING

import pytest
from crawl_site import Site, article, crawl, python

from scrapy_simdup import Detector

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no modes of files")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o022, 0o027, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_are_no_wider_than_the_umask(umask: int, tmp_path: Path) -> None:
    with Site({"/1": article(1), "/2": article(1, edits=1)}) as site:
        done = crawl(tmp_path, site, visits=["/1", "/2"])
    written = [path for path in done.folder.rglob("*") if path.is_file()]
    assert {"data.mdb", "lock.mdb", "dropped.jsonl"} <= {path.name for path in written}
    for path in written:
        assert mode(path) & umask == 0, path
        assert mode(path) & 0o111 == 0, path


def test_texts_are_for_their_owner(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with Detector(tmp_path / "store") as detector:
            detector.check("https://example.org/1", article(1))
        assert mode(tmp_path / "store/data.mdb") == 0o644
        with Detector(tmp_path / "store", keep_text=True) as detector:
            detector.check("https://example.org/2", article(2))
        for command in (
            ["export", "--out", "export.jsonl.gz"],
            ["report", "--out", "report.html"],
            ["compact"],
            ["compact", "--out", "copy"],
            ["import", "export.jsonl.gz", "--store", "imported"],
        ):
            store = [] if command[0] == "import" else ["--store", "store"]
            done = python("-m", "scrapy", "simdup", *command, *store, cwd=tmp_path)
            assert done.returncode == 0, done.stderr
    finally:
        os.umask(before)
    for name in (
        "store/data.mdb",
        "store/lock.mdb",
        "export.jsonl.gz",
        "report.html",
        "copy/data.mdb",
        "imported/data.mdb",
    ):
        assert mode(tmp_path / name) == 0o600, name
