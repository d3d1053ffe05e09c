"""``scrapy simdup check``: the detector's verdict, and nothing stored."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from crawl_site import article
from scrapy.cmdline import execute

from scrapy_simdup import Detector
from scrapy_simdup.store.reading import StoreReader

HOSTILE = "\x1b[31mred\u202e"
PAGES = {
    "https://example.org/1": article(1),
    "https://example.org/1?print": article(1, edits=1),
    "https://example.org/2": article(2),
    f"https://example.org/{HOSTILE}": article(3).replace("Story 3", f"Story {HOSTILE}"),
}
NEW = {
    "copy": article(1),
    "near": article(1, edits=2, variant=5),
    "near of a hostile one": article(3, edits=2),
    "unlike": article(4),
    "short": "<p>too short",
    "empty": " ",
}


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("check") / "store"
    with Detector(folder, crawl="first") as detector:
        for url, html in PAGES.items():
            detector.check(url, html)
    return folder


@pytest.fixture
def check(filled, tmp_path, monkeypatch, capsys):
    """Run ``scrapy simdup check``; return status, output, errors. Files of NEW are in its folder."""
    monkeypatch.chdir(tmp_path)
    for name, html in NEW.items():
        (tmp_path / f"{name}.html").write_text(html, "utf-8")

    def run(*arguments, store=filled):
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            execute(["scrapy", "simdup", "check", "--store", str(store), *map(str, arguments)])
        return left.value.code, *capsys.readouterr()

    return run


def contents(store):
    with StoreReader(store) as reader:
        return reader.info(), list(reader.records()), reader.crawls()


@pytest.mark.parametrize("name", NEW)
def test_says_what_a_detector_would_and_stores_nothing(check, filled, tmp_path, name):
    before = contents(filled)
    status, output, errors = check(f"{name}.html", "--json", "--url", "https://example.org/new")
    assert (status, errors) == (0, "")
    shown = json.loads(output)
    assert contents(filled) == before
    with Detector(tmp_path / "own") as detector:
        for url, html in PAGES.items():
            detector.check(url, html)
        verdict = detector.check("https://example.org/new", NEW[name])
    for field in ("kind", "reason", "distance", "resemblance", "rule", "cluster_size", "title"):
        assert shown[field] == getattr(verdict, field), field
    assert shown["duplicate_of"] == verdict.duplicate_of


def test_of_a_stored_page_it_is_a_revisit(check):
    url = "https://example.org/2"
    for name, change in (("copy", "changed"), ("unlike", "changed")):
        shown = json.loads(check(f"{name}.html", "--json", "--url", url)[1])
        # A copy of another kept page at this address: the page has changed, and passes.
        assert (shown["kind"], shown["change"]) == ("revisit", change)
        assert all(row["url"] != url for row in shown["nearest"])


def test_the_nearest_pages_say_why_they_are_none(check):
    status, output, _ = check("near.html", "--nearest", "3")
    assert status == 0
    table = output.split("\n\n")[1].splitlines()
    assert table[0].split() == [
        "near",
        "distance",
        "resemblance",
        "containment",
        "rule",
        "url",
        "title",
    ]
    assert table[1].split()[:2] == ["yes", table[1].split()[1]]
    assert "https://example.org/1 " in table[1]
    assert "no stored page is near" in check("unlike.html")[1]


def test_what_comes_from_the_web_cannot_reach_the_terminal(check):
    _, output, _ = check("near of a hostile one.html")
    assert "https://example.org/\\x1b[31mred\\u202e" in output
    assert not {"\x1b", "\u202e"} & set(output)
    _, output, _ = check("near of a hostile one.html", "--json")
    assert output.isascii()


def test_several_pages_are_json_lines(check):
    status, output, _ = check("copy.html", "unlike.html", "--json")
    assert [json.loads(line)["kind"] for line in output.splitlines()] == ["exact", "unique"]
    assert status == 0


def test_an_address_is_fetched(check):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path == "/moved":
                self.send_response(302)
                self.send_header("Location", "/gbk")
                self.end_headers()
            elif self.path == "/evil":
                self.send_response(302)
                self.send_header("Location", "file:///etc/passwd")
                self.end_headers()
            elif self.path == "/gbk":
                body = article(1).replace('<meta charset="utf-8">', "").encode("gbk")
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=gbk")
                self.end_headers()
                self.wfile.write(body)
            else:
                self.send_error(404)

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        root = f"http://127.0.0.1:{server.server_port}"
        try:
            shown = json.loads(check(f"{root}/moved", "--json")[1])
            assert (shown["url"], shown["kind"]) == (f"{root}/gbk", "exact")
            assert check(f"{root}/none") == (
                1,
                "",
                f"scrapy simdup: {root}/none cannot be fetched (status 404)\n",
            )
            status, output, errors = check(f"{root}/evil")
            assert (status, output, errors.count("\n")) == (1, "", 1)
        finally:
            server.shutdown()
            thread.join()


def test_while_a_crawl_writes(check, tmp_path):
    with Detector(tmp_path / "live") as detector:
        detector.check("https://example.org/1", article(1))
        assert (
            json.loads(check("near.html", "--json", store=tmp_path / "live")[1])["kind"] == "near"
        )
        assert detector.check("https://example.org/2", article(2)).kind == "unique"


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("none.html",), 1, "'none.html' cannot be read (No such file or directory)"),
        (("copy.html", "unlike.html", "--url", "https://a"), 2, "--url says where one page stands"),
        (("copy.html", "--within", "12"), 2, "--within from 0 to 11"),
        (("copy.html", "-s", "SIMDUP_WEIGHTS=tf"), 1, "made with another configuration"),
        ((), 2, "the following arguments are required: URL-OR-FILE"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(check, arguments, status, message):
    found, output, errors = check(*arguments)
    assert found == status
    assert message in output + errors
    assert "Traceback" not in errors
