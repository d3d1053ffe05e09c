from __future__ import annotations

import codecs
import time

import pytest
from material import page, story
from scrapy import Request
from scrapy.http import HtmlResponse, Response, TextResponse, XmlResponse
from scrapy.http.request import NO_CALLBACK
from scrapy.responsetypes import responsetypes

from scrapy_simdup.config import Config
from scrapy_simdup.eligibility import is_plain_text, media_type, skip_reason
from scrapy_simdup.verdict import SKIP_REASONS

URL = "https://example.org/a"
HTML = page("A tale", story("tale", 40)).encode()
XHTML = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n'
    b'<?xml-stylesheet href="style.css"?>\n<!-- a comment -->\n'
    b'<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "xhtml1-strict.dtd">\n'
    b'<html xmlns="http://www.w3.org/1999/xhtml"><body><p>A tale</p></body></html>'
)
FRAGMENT = b"<div><p>A fragment that some script puts into a page</p></div>"
RSS = b'<?xml version="1.0"?>\n<rss version="2.0"><channel><title>News</title></channel></rss>'
BARE_RSS = b'<rss version="2.0"><channel><title>News</title></channel></rss>'
ATOM = b'<!-- atom --> <feed xmlns="http://www.w3.org/2005/Atom"><title>News</title></feed>'
SITEMAP = b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url></url></urlset>'
JSON = b'{"title": "A tale", "html": "<html>"}'
TEXT = b"A tale in plain text."


def response_of(content_type, body, *, status=200, url=URL):
    """Return a response of the class that Scrapy's downloader would choose."""
    headers = {} if content_type is None else {"Content-Type": content_type}
    cls = responsetypes.from_args(
        headers=Response(url, headers=headers).headers, url=url, body=body
    )
    return cls(url, status=status, headers=headers, body=body)


def reason(response, request=None, **options):
    found = skip_reason(request or Request(URL), response, Config.from_options(options))
    assert found is None or found in SKIP_REASONS
    return found


class TestContentTypes:
    @pytest.mark.parametrize(
        ("content_type", "body", "expected"),
        [
            ("text/html", HTML, None),
            ("text/html; charset=utf-8", HTML, None),
            ("TEXT/HTML;charset=UTF-8", HTML, None),
            ("text/html", FRAGMENT, None),
            ("text/html", b"just words", None),
            ("text/html", b"[Home] just words", None),
            ("text/html", b'{"price": 1}', "not_html"),
            ("text/html", b' [{"price": 1}]', "not_html"),
            ("text/html", b'<!DOCTYPE rss PUBLIC "x"><rss><channel/></rss>', "xml"),
            ("text/html", b'<sm:urlset xmlns:sm="x"></sm:urlset>', "xml"),
            ("text/html", b"\n\n  " + HTML, None),
            ("text/html", b"<!-- " + b"x" * 5000 + b" -->" + HTML, None),
            ("application/xhtml+xml", XHTML, None),
            ("application/xhtml+xml", HTML, None),
            ("application/vnd.wap.xhtml+xml", XHTML, None),
            ("text/html", XHTML, None),
            ("text/xml", XHTML, None),
            ("application/xml", HTML, None),
            ("text/xml", RSS, "xml"),
            ("application/xml", SITEMAP, "xml"),
            ("application/rss+xml", RSS, "xml"),
            ("application/atom+xml", ATOM, "xml"),
            ("application/rss+xml", BARE_RSS, "xml"),
            ("image/svg+xml", b"<svg xmlns='http://www.w3.org/2000/svg'></svg>", "xml"),
            ("text/html", RSS, "xml"),
            ("text/html", BARE_RSS, "xml"),
            ("text/html", ATOM, "xml"),
            ("text/html", SITEMAP, "xml"),
            ("text/html", codecs.BOM_UTF8 + RSS, "xml"),
            ("text/plain", RSS, "xml"),
            ("application/json", JSON, "not_html"),
            ("application/json", HTML, "not_html"),
            ("application/ld+json", JSON, "not_html"),
            ("application/pdf", b"%PDF-1.7 \x00\x01", "not_html"),
            ("image/png", b"\x89PNG\r\n\x1a\n\x00", "not_html"),
            ("text/css", b"p { color: red }", "not_html"),
            ("text/javascript", b"alert('<html>')", "not_html"),
            ("text/plain", TEXT, "not_html"),
            (None, HTML, None),
            (None, XHTML, None),
            ("", HTML, None),
            ("application/octet-stream", HTML, None),
            (None, RSS, "xml"),
            (None, b"\x00\x01\x02\x03", "not_html"),
            (None, TEXT, "not_html"),
            ("application/octet-stream", b"\x00\x01\x02\x03", "not_html"),
        ],
        ids=lambda value: repr(value)[:50],
    )
    def test_and_the_body_decide(self, content_type, body, expected):
        assert reason(response_of(content_type, body)) == expected

    @pytest.mark.parametrize(
        ("cls", "content_type", "body", "expected"),
        [
            (TextResponse, "text/html", HTML, None),
            (TextResponse, "text/html", FRAGMENT, None),
            (Response, "text/html", HTML, None),
            (HtmlResponse, None, FRAGMENT, None),
            (HtmlResponse, "text/plain", FRAGMENT, None),
            (HtmlResponse, "text/html", RSS, "xml"),
            (XmlResponse, None, RSS, "xml"),
            (XmlResponse, "text/html", b"<catalogue></catalogue>", "xml"),
            (TextResponse, None, TEXT, "not_html"),
            (TextResponse, None, HTML, None),
            (Response, None, HTML, None),
        ],
        ids=lambda value: repr(value)[:50],
    )
    def test_decide_whatever_class_the_response_has(self, cls, content_type, body, expected):
        headers = {} if content_type is None else {"Content-Type": content_type}
        assert reason(cls(URL, headers=headers, body=body)) == expected

    @pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be"])
    @pytest.mark.parametrize(
        ("body", "expected"), [(HTML, None), (XHTML, None), (RSS, "xml"), (SITEMAP, "xml")]
    )
    def test_decide_in_utf_16_with_a_mark(self, codec, body, expected):
        marks = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}
        encoded = marks.get(codec, b"") + body.decode().encode(codec)
        assert reason(response_of("text/html", encoded)) == expected
        assert reason(response_of("text/xml", encoded)) == expected

    def test_plain_text_is_judged_where_that_is_asked_for(self):
        assert reason(response_of("text/plain", TEXT), plain_text=True) is None
        assert reason(response_of("text/plain; charset=gbk", TEXT), plain_text=True) is None
        assert reason(response_of("text/css", TEXT), plain_text=True) == "not_html"
        assert reason(response_of("text/plain", RSS), plain_text=True) == "xml"

    @pytest.mark.parametrize(
        ("response", "plain"),
        [
            (response_of("text/plain", TEXT), True),
            (response_of("Text/Plain; charset=utf-8", TEXT), True),
            (response_of("text/html", HTML), False),
            (HtmlResponse(URL, headers={"Content-Type": "text/plain"}, body=HTML), False),
        ],
        ids=str,
    )
    def test_tell_plain_text_from_html(self, response, plain):
        assert is_plain_text(response) == plain

    @pytest.mark.parametrize(
        ("header", "expected"),
        [
            ("text/html", "text/html"),
            (" Text/HTML ; charset=x", "text/html"),
            (b"text/\xe9", "text/é"),
            (None, ""),
        ],
    )
    def test_are_read_without_parameters_in_lower_case(self, header, expected):
        headers = {} if header is None else {"Content-Type": header}
        assert media_type(Response(URL, headers=headers)) == expected

    @pytest.mark.parametrize("part", [b"<!---->", b"<!-- -->\n", b"<??>", b"<!--", b"<?xml ", b" "])
    def test_are_decided_at_once_whatever_the_body_begins_with(self, part):
        started = time.perf_counter()
        assert reason(response_of("text/html", part * 5000 + b"x")) in {None, "xml"}
        assert time.perf_counter() - started < 1.0


class TestRequests:
    @pytest.mark.parametrize(
        ("request_", "expected"),
        [
            (Request(URL), None),
            (Request(URL, method="POST", body=b"q=1"), None),
            (Request(URL, method="HEAD"), "method"),
            (Request(URL, method="PUT"), "method"),
            (Request(URL, callback=NO_CALLBACK), "no_callback"),
            (Request(URL, callback=print), None),
            (Request(URL, dont_filter=True), None),
            (Request(URL, meta={"simdup": False}), "opt_out"),
            (Request(URL, meta={"simdup": True}), None),
            (Request(URL, meta={"simdup": None}), None),
            (Request(URL, meta={"simdup": 0}), None),
            (Request(URL, meta={"simdup": {"action": "tag"}}), None),
        ],
        ids=lambda value: f"{value!r} {getattr(value, 'meta', '')}",
    )
    def test_that_are_no_pages_or_not_to_be_judged_are_skipped(self, request_, expected):
        assert reason(response_of("text/html", HTML), request_) == expected


class TestResponses:
    @pytest.mark.parametrize("status", [201, 204, 206, 301, 304, 403, 404, 429, 500, 503])
    def test_that_are_not_200_are_skipped(self, status):
        assert reason(response_of("text/html", HTML, status=status)) == "status"

    @pytest.mark.parametrize("body", [b"", b" \r\n\t\v\f "])
    def test_without_a_body_are_skipped(self, body):
        assert reason(response_of("text/html", body)) == "empty_body"

    def test_that_are_too_large_are_skipped(self):
        response = response_of("text/html", HTML)
        assert reason(response, max_body_bytes=len(HTML)) is None
        assert reason(response, max_body_bytes=len(HTML) - 1) == "body_too_large"

    def test_have_the_first_reason_of_several(self):
        request = Request(URL, method="HEAD", callback=NO_CALLBACK, meta={"simdup": False})
        assert reason(response_of("image/png", b"", status=404), request) == "opt_out"


@pytest.mark.parametrize("flag", ["dataloss", "partial", "download_stopped"])
def test_a_body_that_was_not_received_to_its_end_is_not_judged(flag):
    response = response_of("text/html", HTML)
    response.flags.append(flag)
    assert reason(response) == "incomplete"
