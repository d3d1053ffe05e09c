"""Stores whose file was damaged: refused or used, never the end of the process, never emptied."""

from __future__ import annotations

import json
import mmap
import os
import random
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from crawl_site import python

from . import trial

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = mmap.PAGESIZE
KINDS = ("zeros", "ones", "swapped", "copied", "noise", "bits", "bytes", "header")
_AT_A_TIME = 40

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("sound") / "store"
    trial.fill(folder)
    return (folder / "data.mdb").read_bytes()


def damaged(sound: bytes, kind: str, chance: random.Random) -> bytes:
    """The file with one to five of its pages damaged, the meta pages now and then among them."""
    data, last = bytearray(sound), len(sound) // PAGE
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        page = chance.randrange(0 if chance.random() < 0.1 else 2, last)
        start, end = page * PAGE, page * PAGE + PAGE
        other = chance.randrange(2, last) * PAGE
        if kind == "zeros":
            data[start:end] = bytes(PAGE)
        elif kind == "ones":
            data[start:end] = b"\xff" * PAGE
        elif kind == "swapped":
            kept = data[start:end]
            data[start:end] = data[other : other + PAGE]
            data[other : other + PAGE] = kept
        elif kind == "copied":  # all but the page's own number
            data[start + 8 : end] = data[other + 8 : other + PAGE]
        elif kind == "noise":
            sector = start + 512 * chance.randrange(PAGE // 512)
            data[sector : sector + 512] = chance.randbytes(512)
        elif kind == "bits":
            for _ in range(chance.randrange(1, 20)):
                data[start + chance.randrange(PAGE)] ^= 1 << chance.randrange(8)
        elif kind == "bytes":
            place = start + chance.randrange(PAGE - 8)
            data[place : place + 8] = chance.randbytes(8)
        else:
            place = start + chance.randrange(80)
            data[place : place + 2] = chance.randbytes(2)
    return bytes(data)


def outcomes(folder: Path, files: dict[str, bytes]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Use each file as a store, in processes that may die of it."""
    names = list(files)
    for start in range(0, len(names), _AT_A_TIME):
        folders = []
        for name in names[start : start + _AT_A_TIME]:
            (folder / name).mkdir()
            (folder / name / "data.mdb").write_bytes(files[name])
            folders.append(folder / name)
        done = python(Path(trial.__file__), *folders, cwd=folder, timeout=600)
        assert done.returncode == 0, done.stderr[-3000:]
        for line in done.stdout.splitlines():
            found = json.loads(line)
            yield Path(found["folder"]).name, found
        for used in folders:
            shutil.rmtree(used)


@pytest.mark.parametrize("kind", KINDS)
def test_never_end_the_process(
    sound: bytes, tmp_path: Path, kind: str, full: bool, record_property: Any
) -> None:
    number = 150 if full else 3
    files = {
        f"{kind}-{n}": damaged(sound, kind, random.Random(f"{kind}{n}")) for n in range(number)
    }
    found = dict(outcomes(tmp_path, files))
    counts = Counter(str(one["outcome"]) for one in found.values())
    record_property("outcomes", dict(counts))
    print(kind, dict(counts))
    assert len(found) == number
    assert {name: one for name, one in found.items() if one["outcome"] in {"died", "raised"}} == {}
    for name, one in found.items():
        if one["outcome"] == "refused":
            assert f"store '{tmp_path / name}'" in one["message"]


def test_cut_off_at_any_page_are_refused_or_whole(sound: bytes, tmp_path: Path, full: bool) -> None:
    pages = len(sound) // PAGE
    step = 1 if full else 9
    files = {f"{n} pages": sound[: n * PAGE] for n in range(pages - 1, 0, -step)}
    files["half a page more"] = sound[: pages // 2 * PAGE + PAGE // 2]
    files["all"] = sound
    found = dict(outcomes(tmp_path, files))
    whole = found.pop("all")
    assert (whole["outcome"], whole["failed"], set(whole["statuses"])) == ("works", 0, {0})
    for name, one in found.items():
        if one["outcome"] == "works":
            assert one == {**whole, "folder": one["folder"]}, name
        else:
            assert one["outcome"] == "refused", (name, one)
            assert "is truncated" in one["message"] or "does not hold" in one["message"]


def test_refused_ones_are_left_as_they_are(sound: bytes, tmp_path: Path) -> None:
    data = bytearray(sound)
    data[3 * PAGE : 9 * PAGE] = bytes(6 * PAGE)
    (tmp_path / "data.mdb").write_bytes(data)
    found = trial.tried(tmp_path)
    assert found["outcome"] == "refused"
    assert f"store '{tmp_path}' is damaged: page " in str(found["message"])
    assert "nothing was changed. Restore a copy, move it away" in str(found["message"])
    assert (tmp_path / "data.mdb").read_bytes() == data
    assert {path.name for path in tmp_path.iterdir()} <= {"data.mdb", "lock.mdb"}


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may be another"
)
def test_a_lock_file_of_another_user_is_named(sound: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "data.mdb").write_bytes(sound)
        (folder / "data.mdb").chmod(0o666)
        (folder / "lock.mdb").write_bytes(b"")
        (folder / "lock.mdb").chmod(0o600)
        reading, writing = os.pipe()
        if not (pid := os.fork()):
            os.setuid(65534)
            os.write(writing, json.dumps(trial.use(folder)).encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            found = json.loads(pipe.read())
        os.waitpid(pid, 0)
        assert found["outcome"] == "refused"
        assert f"store '{folder}' is not writable for this user" in found["message"]
        assert (folder / "data.mdb").read_bytes() == sound
