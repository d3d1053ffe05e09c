"""The text of a response is the same, wherever it is made of the body."""

from __future__ import annotations

import pickle

import pytest
from scrapy.http import HtmlResponse, TextResponse, XmlResponse

from scrapy_simdup.charset import text_of

BODY = "<html><head>{}</head><body><h1>Größe, naïve façade – 东京 – “quoted”</h1></body></html>"
META = '<meta charset="{}">'
CHARSETS = ["utf-8", "utf-16", "utf-16-le", "gb18030", "gbk", "big5", "shift_jis", "cp1252"]


class OddResponse(HtmlResponse):
    @property
    def text(self) -> str:
        return super().text.upper()


def check(response: TextResponse) -> None:
    make = pickle.loads(pickle.dumps(text_of(response)))
    fresh = response.replace()  # nothing cached by asking
    assert make(response.body) == fresh.text


@pytest.mark.parametrize("charset", CHARSETS)
@pytest.mark.parametrize("kind", [HtmlResponse, TextResponse, XmlResponse, OddResponse])
@pytest.mark.parametrize("declared", ["header", "meta", "explicitly", "not", "wrongly", "unknown"])
def test_is_that_of_the_response(kind: type[TextResponse], charset: str, declared: str) -> None:
    meta = {"meta": META.format(charset), "unknown": META.format("klingon")}.get(declared, "")
    body = BODY.format(meta).encode(charset, "ignore")
    headers = {}
    if declared in ("header", "wrongly"):
        name = charset if declared == "header" else "ascii"
        headers["Content-Type"] = f"text/html; charset={name}"
    elif declared == "unknown":
        headers["Content-Type"] = b"text/html; charset=\xff\xfe"
    explicit = charset if declared == "explicitly" else None
    check(kind("http://a.example/", body=body, headers=headers, encoding=explicit))


@pytest.mark.parametrize(
    "body", [b"", b"\xef\xbb\xbf<p>bom", b"\xff\xfe<\0p\0>\0", b"\xff\xff\xff"]
)
def test_is_that_of_the_response_for_odd_bodies(body: bytes) -> None:
    check(HtmlResponse("http://a.example/", body=body))


def test_needs_no_scrapy_where_the_charset_is_declared() -> None:
    response = HtmlResponse(
        "http://a.example/", body=BODY.format(META.format("gbk")).encode("gb18030")
    )
    assert b"scrapy_simdup.charset" not in pickle.dumps(text_of(response))
