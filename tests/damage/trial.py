"""Use a store as a crawl and its operator would, in processes that may die of it.

    python trial.py FOLDER…

Each folder is used by a forked process; a line of JSON says what came of it.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import sys
from pathlib import Path

from crawl_site import article
from scrapy.cmdline import execute

from scrapy_simdup import Detector
from scrapy_simdup.errors import SimdupError, StoreError

STORIES = 40
COPIES = 120
COMMANDS = (["doctor"], ["stats"], ["clusters"], ["export"], ["doctor"])
_SECONDS = 120


def fill(folder: Path) -> None:
    """A store with all there is in one: large clusters, texts of several pages, many sizes."""
    with Detector(folder, expected_pages=1000, keep_text=True, crawl="first") as detector:
        detector.note_crawl("spider").result()
        for number in range(STORIES):
            detector.check(f"https://example.org/{number}", article(number))
            detector.check(f"https://www.example.org/{number}", article(number, edits=1))
        for number in range(COPIES):
            copy = article(3, edits=number % 3) + f"<!--{number}-->"
            detector.check(f"https://{number}.example.net/", copy)


def use(folder: Path) -> dict[str, object]:
    """Crawl on with the store, then look after it."""
    failed = 0
    try:
        with Detector(folder, expected_pages=1000, keep_text=True) as detector:
            pages = detector.info().pages
            for number in range(8):
                for url, page in (
                    (f"https://example.org/{number}", article(number, edits=number % 3)),
                    (f"https://new.example.org/{number}", article(number + 1000)),
                ):
                    try:
                        detector.check(url, page)
                    except StoreError:
                        failed += 1
    except StoreError as error:
        return {"outcome": "refused", "message": str(error)}
    statuses = []
    for command in COMMANDS:
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()) as errors,
        ):
            try:
                execute(["scrapy", "simdup", *command, "--store", str(folder)])
            except SystemExit as left:
                statuses.append(left.code)
        if "Traceback" in errors.getvalue():
            raise RuntimeError(errors.getvalue())
    return {"outcome": "works", "pages": pages, "failed": failed, "statuses": statuses}


def tried(folder: Path) -> dict[str, object]:
    """What comes of it in a process of its own."""
    reading, writing = os.pipe()
    if not (pid := os.fork()):
        signal.alarm(_SECONDS)
        try:
            found = use(folder)
        except (Exception, SimdupError) as error:
            found = {"outcome": "raised", "message": repr(error)[-2000:]}
        os.write(writing, json.dumps(found).encode()[:60_000])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return {"outcome": "died", "message": signal.Signals(os.WTERMSIG(status)).name}
    return dict(json.loads(answer))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(json.dumps({"folder": name, **tried(Path(name))}), flush=True)
