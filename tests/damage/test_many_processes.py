"""One store, many processes: each content is kept once, whoever dies on the way.

Two crawlers of one process are in crawl/test_reactors.py, a fork with an open store in
store/test_environment.py.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from crawl_site import python
from material import start_script

from scrapy_simdup.store.reading import StoreReader

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

PROCESSES = 4
_LONGEST = 900.0

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL on this system")

JUDGE = """
import json, os, random, signal, sys
from crawl_site import story
from scrapy_simdup import Detector
from scrapy_simdup.store import environment

environment.MAP_SIZE = 1 << 20  # it must grow while others use it
path, output, own, contents, visits, dies_at = *sys.argv[1:3], *map(int, sys.argv[3:])
chance = random.Random(own)

def die(txn):  # while the write lock is held
    os.kill(os.getpid(), signal.SIGKILL)

with open(output, "w") as said, Detector(path, crawl=f"crawl-{own}") as detector:
    order = [number % contents for number in range(visits)]
    chance.shuffle(order)
    for visit, content in enumerate(order):
        if visit == dies_at:
            detector._store.transact(die).result()
        text = "\\n".join(story(content, edits=chance.randrange(2), words=120))
        url = f"https://{own}.example/{content}/{visit}"
        kind = detector.check(url, text=text).kind
        print(json.dumps([content, kind, url]), file=said, flush=True)
"""


def test_keep_each_content_once(tmp_path: Path, full: bool) -> None:
    contents, visits = (1_500, 5_000) if full else (40, 100)
    store = tmp_path / "store"
    outputs = [tmp_path / f"{own}.jsonl" for own in range(PROCESSES)]
    with ExitStack() as stack:
        processes = []
        for own, output in enumerate(outputs):
            dies_at = visits // 2 if own == 0 else -1
            arguments = store, output, own, contents, visits, dies_at
            processes.append(stack.enter_context(start_script(JUDGE, *arguments)))
        looks = read_meanwhile(store, processes)
        for own, process in enumerate(processes):
            _, errors = process.communicate(timeout=60)
            assert process.returncode == (-signal.SIGKILL if own == 0 else 0), errors
    verdicts = [json.loads(line) for path in outputs for line in path.read_text().splitlines()]
    assert len(verdicts) == visits * (PROCESSES - 1) + visits // 2
    kept = Counter(content for content, kind, _ in verdicts if kind == "unique")
    assert kept == Counter(range(contents))
    assert {kind for _, kind, _ in verdicts} == {"unique", "near", "exact"}
    with StoreReader(store) as reader:
        assert reader.info().pages == contents
        assert reader.info().pages + reader.info().aliases == len(verdicts)
        urls = {record.url for _, record in reader.records() if record.kept}
    assert urls == {url for _, kind, url in verdicts if kind == "unique"}
    assert simdup(store, "doctor")["findings"] == []
    assert looks > 0


def simdup(store: Path, command: str) -> dict[str, Any]:
    done = python("-m", "scrapy", "simdup", command, "--store", store, "--json", cwd=store.parent)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return dict(json.loads(done.stdout))


def read_meanwhile(store: Path, processes: list[subprocess.Popen[str]]) -> int:
    """Run reading commands until all processes have ended; return how often."""
    looks, end = 0, time.monotonic() + _LONGEST
    while any(process.poll() is None for process in processes):
        assert time.monotonic() < end, "they wait for each other"
        if (store / "data.mdb").exists():
            found = simdup(store, ("stats", "doctor")[looks % 2])
            assert found.get("findings", []) == []
            looks += 1
        time.sleep(0.05)
    return looks
