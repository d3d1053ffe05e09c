"""Reports of stores with what the web may put into addresses and titles."""

from __future__ import annotations

import pytest
from crawl_site import article
from scrapy.cmdline import execute

from scrapy_simdup import Detector
from scrapy_simdup.auditlog import AuditLog

TITLE = "<script>alert(1)</script>"
PAGES = {
    **{f"https://a.example/{n}": article(n) for n in range(12)},
    **{f"https://b.example/{n}?copy": article(n) for n in range(4)},
    **{f"https://b.example/{n}": article(n, edits=n % 3 + 1) for n in range(4, 12)},
    "https://evil.example/</script><img src=https://leak.example/x>\u202e": article(20).replace(
        "Story 20", TITLE
    ),
    "https://evil.example/javascript:alert(1)": article(20, edits=2).replace("Story 20", TITLE),
    "javascript:alert(1)//": article(20).replace("Story 20", TITLE) + " ",
}


def fill(folder, pages=PAGES):
    with Detector(folder / "store", crawl="crawl", keep_text=True) as detector:
        detector.note_crawl("spider").result()
        for url, html in pages.items():
            detector.check(url, html)
        counts = {"checked": len(pages), "skipped/no_text": 3, "alert/one_page": 1}
        detector.note_crawl("spider", counts).result()
    log = AuditLog(folder / "dropped.jsonl")
    for number in range(30):
        log.write(
            {
                "time": "2026-05-31T10:00:00+00:00",
                "crawl": "crawl" if number % 3 else "another",
                "url": f"https://c.example/{number}",
                "kind": "near_miss",
                "reason": "siblings",
                "rule": "siblings",
                "duplicate_of": "https://a.example/0",
                "distance": number % 9,
                "resemblance": 0.5,
                "title": TITLE,
            }
        )
    log.close()


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """The folder of a store, a log and ``report.html``."""
    folder = tmp_path_factory.mktemp("report")
    fill(folder)
    report(folder)
    return folder


def report(folder, *arguments):
    names = "--store", folder / "store", "--log", folder / "dropped.jsonl"
    out = "--out", folder / "report.html"
    with pytest.raises(SystemExit) as left:
        execute(["scrapy", "simdup", "report", *map(str, (*names, *out, *arguments))])
    return left.value.code
