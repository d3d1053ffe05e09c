"""Many pages at once: the verdicts are those of one after another."""

from __future__ import annotations

import gzip
import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from material import edited, page, story
from scrapy.cmdline import execute

from scrapy_simdup import Detector, StoreError
from scrapy_simdup.batch import ImportFileError, import_files
from scrapy_simdup.store.lmdb import read_info

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SITE = "https://a.example"


def pages() -> list[dict[str, Any]]:
    """Stories, their copies, edited ones, revisits, and what is no page."""
    found: list[dict[str, Any]] = []
    for number in range(12):
        text = story(number)
        found += [
            {"url": f"{SITE}/{number}", "html": page("A tale", text)},
            {"url": f"{SITE}/{number}/copy", "html": page("A tale", text)},
            {"url": f"{SITE}/{number}/edited", "html": page("A tale", edited(text, number))},
            {"url": f"{SITE}/{number}", "html": page("A tale", edited(text, number, 3))},
            {"url": f"{SITE}/{number}/text", "text": text, "title": "A tale"},
        ]
    found.insert(7, {"url": f"{SITE}/short", "text": "Too short."})
    found.insert(9, {"url": f"{SITE}/empty", "html": " "})
    return found


def one_by_one(some: list[dict[str, Any]]) -> list[Any]:
    with Detector(None) as detector:
        return [detector.check(**one) for one in some]


@pytest.mark.parametrize("workers", [0, 2])
class TestCheckMany:
    def test_says_what_check_would_have_said(self, workers: int) -> None:
        with Detector(None, workers=workers) as detector:
            assert list(detector.check_many(pages())) == one_by_one(pages())

    def test_takes_pairs_of_url_and_html(self, workers: int) -> None:
        pairs = [(one["url"], one["html"]) for one in pages() if "html" in one]
        with Detector(None, workers=workers) as detector:
            verdicts = list(detector.check_many(pairs))
        assert verdicts == one_by_one([{"url": url, "html": html} for url, html in pairs])

    def test_reads_some_pages_ahead_and_no_more(self, workers: int) -> None:
        read = []

        def reading() -> Iterator[dict[str, Any]]:
            for one in pages():
                read.append(one)
                yield one

        with Detector(None, workers=workers) as detector:
            verdicts = detector.check_many(reading())
            next(verdicts)
            assert 1 < len(read) <= 9 * max(1, workers)
            verdicts.close()

    def test_passes_on_what_the_pages_raise(self, workers: int) -> None:
        def failing() -> Iterator[dict[str, Any]]:
            yield from pages()[:3]
            raise LookupError("of the reader")

        with Detector(None, workers=workers) as detector:
            with pytest.raises(LookupError, match="of the reader"):
                list(detector.check_many(failing()))
            assert detector.check(SITE, text=story("another")).kind == "unique"


def test_check_many_of_a_closed_detector_is_an_error() -> None:
    detector = Detector(None)
    detector.close()
    with pytest.raises(StoreError, match="closed"):
        list(detector.check_many(pages()))


def json_lines(some: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in some)


def warc(some: list[dict[str, Any]]) -> bytes:
    warcwriter = pytest.importorskip("warcio.warcwriter")
    headers = pytest.importorskip("warcio.statusandheaders").StatusAndHeaders
    file = io.BytesIO()
    writer = warcwriter.WARCWriter(file, gzip=True)
    writer._create_temp_file = io.BytesIO  # it leaves files to the garbage collector

    def write(url: str, status: str, kind: str, body: bytes, *more: tuple[str, str]) -> None:
        http = headers(status, [("Content-Type", kind), *more], protocol="HTTP/1.1")
        record = writer.create_warc_record(url, "response", io.BytesIO(body), http_headers=http)
        writer.write_record(record)

    for number, one in enumerate(some):
        charset = ("utf-8", "cp1252")[number % 2]
        body = one["html"].encode(charset, "xmlcharrefreplace")
        packed = (gzip.compress(body), ("Content-Encoding", "gzip"))
        content, *more = packed if number % 3 else (body,)
        write(one["url"], "200 OK", f"text/html; charset={charset}", content, *more)
    write(f"{SITE}/gone", "404 Not Found", "text/html", b"<p>gone")
    write(f"{SITE}/image", "200 OK", "image/png", b"\x89PNG")
    return file.getvalue()


HTML_PAGES = [one for one in pages() if "html" in one]


class TestImportOfFiles:
    @pytest.mark.parametrize(
        ("name", "make"),
        [
            ("pages.jsonl", json_lines),
            ("pages.jsonl.gz", lambda some: gzip.compress(json_lines(some))),
            ("pages.warc.gz", warc),
        ],
    )
    def test_judges_every_page(self, tmp_path: Path, name: str, make: Callable[..., bytes]) -> None:
        path, out = tmp_path / name, tmp_path / "out.jsonl"
        path.write_bytes(make(HTML_PAGES))
        told: list[int] = []
        with Detector(None) as detector:
            summary = import_files(detector, [path], out, lambda _, read: told.append(read))
        verdicts = one_by_one(HTML_PAGES)
        assert summary.pages == len(HTML_PAGES)
        assert summary.kinds == {
            kind: sum(verdict.kind == kind for verdict in verdicts) for kind in summary.kinds
        }
        lines = [json.loads(line) for line in out.read_text().splitlines()]
        assert [(line["url"], line["kind"]) for line in lines] == [
            (one["url"], verdict.kind) for one, verdict in zip(HTML_PAGES, verdicts, strict=True)
        ]
        assert told == sorted(told)
        assert told[-1] == path.stat().st_size

    @pytest.mark.parametrize("cut", [0, 1, 30])
    def test_goes_on_where_it_was_broken_off(self, tmp_path: Path, cut: int) -> None:
        path, out, whole = tmp_path / "a.jsonl", tmp_path / "out.jsonl", tmp_path / "whole.jsonl"
        path.write_bytes(json_lines(HTML_PAGES))
        with Detector(None) as detector:
            import_files(detector, [path], whole)

        def stop(summary: Any, read: int) -> None:
            if summary.pages == 20:
                raise KeyboardInterrupt

        with Detector(tmp_path / "store") as detector, pytest.raises(KeyboardInterrupt):
            import_files(detector, [path], out, stop)
        if cut:
            out.write_bytes(out.read_bytes()[:-cut])  # the last line was half written
        with Detector(tmp_path / "store") as detector:
            summary = import_files(detector, [path], out)
        done = 20 - bool(cut)
        assert (summary.resumed, summary.pages) == (done, len(HTML_PAGES) - done)
        urls = [
            [json.loads(line)["url"] for line in file.read_text().splitlines()]
            for file in (whole, out)
        ]
        assert urls[0] == urls[1]

    def test_skips_lines_that_are_no_pages_and_says_so(self, tmp_path: Path) -> None:
        path = tmp_path / "a.jsonl"
        bad = b'{"url": 5, "html": "<p>"}\nnot json\n[1]\n{"url": "a"}\n\n{"html": "\xff"}\n'
        path.write_bytes(bad + json_lines(HTML_PAGES[:2]))
        with Detector(None) as detector:
            summary = import_files(detector, [path])
        assert (summary.pages, summary.unreadable) == (2, 5)
        assert summary.first_unreadable == f"{path}, line 1: url must be a text"

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("missing.jsonl", None, "cannot be read"),
            ("cut.jsonl.gz", gzip.compress(json_lines(HTML_PAGES), mtime=0)[:500], "is damaged"),
            ("no.warc", b"no archive at all\n", "no WARC file"),
        ],
    )
    def test_names_a_file_that_cannot_be_read(
        self, tmp_path: Path, name: str, content: bytes | None, message: str
    ) -> None:
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)
        with Detector(None) as detector, pytest.raises(ImportFileError, match=message) as refused:
            import_files(detector, [path])
        assert str(path) in str(refused.value)


class TestTheCommand:
    @pytest.fixture
    def scrapy(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)

        def run(*arguments: Any) -> tuple[int, str, str]:
            capsys.readouterr()
            with pytest.raises(SystemExit) as left:
                execute(["scrapy", "simdup", *map(str, arguments)])
            return left.value.code, *capsys.readouterr()

        return run

    def test_imports_files_and_says_what_came_of_them(self, scrapy, tmp_path) -> None:
        (tmp_path / "a.jsonl").write_bytes(json_lines(HTML_PAGES))
        arguments = ["import", "a.jsonl", "--store", "pages", "-s", "SIMDUP_WORKERS=1"]
        status, output, errors = scrapy(*arguments, "--json", "--out", "verdicts.jsonl")
        assert (status, errors) == (0, "")
        shown = json.loads(output)
        assert (shown["pages"], shown["unique"], shown["revisit"]) == (len(HTML_PAGES), 12, 12)
        assert read_info(tmp_path / "pages").pages == 12
        assert len((tmp_path / "verdicts.jsonl").read_text().splitlines()) == len(HTML_PAGES)
        status, output, _ = scrapy(*arguments, "--out", "verdicts.jsonl")
        assert (status, output.split()[:4]) == (0, ["pages", "0", "done", "before"])

    def test_says_in_one_line_what_is_wrong(self, scrapy) -> None:
        status, output, errors = scrapy("import", "none.jsonl", "--store", "pages")
        assert (status, output, errors.count("\n")) == (1, "", 1)
        assert "none.jsonl cannot be read" in errors
        assert scrapy("import", "--store", "pages")[0] == 2
