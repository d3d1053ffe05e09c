"""A disk that is full, fails, or may not be written: pages pass, and all goes on afterwards."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from crawl_site import article
from material import run_script

from scrapy_simdup import Detector, StoreError
from scrapy_simdup.store.environment import Environment
from scrapy_simdup.store.lmdb import KIND

from . import trial

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
CRAWL = """
import json, sys
from pathlib import Path
from crawl_site import article
from scrapy_simdup import Detector, StoreError

store, control, fault = sys.argv[1:]
phases = []

def check(numbers):
    verdicts = []
    for number in numbers:
        try:
            verdicts.append(detector.check(f"https://example.org/{number}", article(number)).kind)
        except StoreError as error:
            verdicts.append(str(error))
    phases.append(verdicts)

with Detector(store, expected_pages=1000) as detector:
    check(range(10))
    Path(control).write_text(fault)
    check(range(10, 16))
    Path(control).unlink()
    check(range(10, 20))
    check(range(20))
print(json.dumps(phases))
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("no C compiler to make calls of the system fail with, or no Linux")
    made = tmp_path_factory.mktemp("shim") / "faults.so"
    command = [compiler, "-shared", "-fPIC", "-o", made, HERE / "faults.c", "-ldl"]
    subprocess.run(command, check=True)
    return made


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (f"write {errno.ENOSPC}", "No space left on device; free some disk space"),
        (f"write {errno.EIO}", "Input/output error; see whether its disk is sound"),
        (f"write {errno.EIO} 1000", "Input/output error"),  # half a page, then nothing
        (f"write {errno.EROFS}", "Read-only file system; make its file system writable again"),
        (f"sync {errno.EIO}", "Input/output error; see whether its disk is sound"),
        (f"meta {errno.EIO}", "cannot write to store"),
        (f"meta {errno.ENOSPC}", "cannot write to store"),
    ],
)
def test_that_fails_costs_the_pages_of_that_time_only(
    shim: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, message: str
) -> None:
    monkeypatch.setenv("LD_PRELOAD", str(shim))
    monkeypatch.setenv("FAULTS", str(tmp_path / "control"))
    store = tmp_path / "store"
    phases = json.loads(run_script(CRAWL, store, tmp_path / "control", fault))
    monkeypatch.undo()
    assert phases[0] == ["unique"] * 10
    assert all(message in answer for answer in phases[1]), phases[1]
    assert set(phases[2]) == {"unique"}, "nothing half-written is taken for a page"
    assert phases[3] == ["revisit"] * 20
    assert_sound(store, 20)


def assert_sound(store: Path, pages: int) -> None:
    found = trial.tried(store)
    assert found["outcome"] == "works", found
    assert (found["pages"], found["failed"], set(found["statuses"])) == (pages, 0, {0})  # type: ignore[arg-type]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", place]
    if sys.platform != "linux" or not shutil.which("mount"):
        pytest.skip("no small file system can be made here")
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("only root may mount a small file system")
    yield place
    subprocess.run(["umount", place], check=True)


def fill_up(place: Path) -> Path:
    filler = place / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while file.write(b"x" * size):
                    pass
            except OSError as error:
                assert error.errno == errno.ENOSPC
    return filler


def test_that_is_full_and_then_has_room_again(small_disk: Path) -> None:
    store = small_disk / "store"
    with Detector(store, expected_pages=1000) as detector:
        for number in range(10):
            assert detector.check(f"https://example.org/{number}", article(number)).kind == "unique"
        filler = fill_up(small_disk)
        failed = 0
        for number in range(10, 200):  # pages that were freed before are used first
            try:
                detector.check(f"https://example.org/{number}", article(number))
            except StoreError as error:
                assert "No space left on device; free some disk space" in str(error)
                failed += 1
        assert failed > 100
        before = detector.info().pages
        filler.unlink()
        for number in range(200):
            kind = detector.check(f"https://example.org/{number}", article(number)).kind
            assert kind in {"unique", "revisit"}
        assert detector.info().pages == 200
        assert before == 200 - failed
    assert_sound(store, 200)


def test_that_is_full_when_a_store_is_made_or_opened(small_disk: Path) -> None:
    filler = fill_up(small_disk)
    with pytest.raises(StoreError, match="free some disk space"):
        Detector(small_disk / "store")
    assert not (small_disk / "store/data.mdb").exists()
    filler.unlink()
    Detector(small_disk / "store").close()
    (small_disk / "store/lock.mdb").unlink()
    fill_up(small_disk)
    with pytest.raises(StoreError, match="free some disk space"):
        Detector(small_disk / "store")
    (small_disk / "filler").unlink()
    with Detector(small_disk / "store") as detector:
        assert detector.check("https://example.org/1", article(1)).kind == "unique"


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs a system with users")
def test_that_may_only_be_read_is_named_when_a_store_is_opened(small_disk: Path) -> None:
    store = small_disk / "store"
    trial.fill(store)
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    try:
        with pytest.raises(StoreError, match="is not writable for this user"):
            Detector(store)
        # Whoever only reads may do so.
        environment = Environment.open(store, kind=KIND, readonly=True, lock=False)
        assert environment.header()["kind"] == KIND
        environment.close()
    finally:
        subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)
