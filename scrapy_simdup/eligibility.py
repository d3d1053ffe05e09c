"""Which responses are pages that can be judged. Knows Scrapy; knows nothing of duplicates."""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING

from scrapy.http import HtmlResponse, XmlResponse
from scrapy.http.request import NO_CALLBACK

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

    from scrapy_simdup.config import Config

_HEAD = 2048
_HTML_TYPES = {"text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml"}
_XML_TYPES = {"text/xml", "application/xml"}
#: Labels that say nothing; the body decides.
_VAGUE_TYPES = {"", "application/octet-stream", "unknown/unknown", "*/*", "text"}
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# One way only to match a comment: with several, a page of comments takes time without end.
_COMMENT = r"<!--(?:(?!-->).)*-->"
_PROLOG = rf"\s*(?:{_COMMENT}\s*|<\?[^>]*>\s*)*"
_HTML_START = re.compile(
    _PROLOG + r"<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)
_XML_START = re.compile(
    r"\s*<\?xml\b|"
    + _PROLOG
    + r"<(?:!doctype\s+(?!html\b)\w|(?:\w+:)?(?:rss|feed|urlset|sitemapindex|rdf|opml)\b)",
    re.IGNORECASE | re.DOTALL,
)
_JSON_START = re.compile(r"""\s*(?:\{\s*"|\[\s*[\[{"])""")
#: Scrapy's flags of a body that was not received to its end.
_INCOMPLETE = {"dataloss", "partial", "download_stopped"}


def skip_reason(request: Request, response: Response, config: Config) -> str | None:
    """Return why *response* is not to be judged (one of ``SKIP_REASONS``), or None."""
    if request.meta.get("simdup") is False:
        return "opt_out"
    if request.callback is NO_CALLBACK:
        return "no_callback"
    if request.method not in {"GET", "POST"}:
        return "method"
    if response.status != 200:
        return "status"
    if not _INCOMPLETE.isdisjoint(response.flags):
        return "incomplete"
    if not response.body or response.body.isspace():  # unlike strip(), copies nothing
        return "empty_body"
    if len(response.body) > config.max_body_bytes:
        return "body_too_large"
    return _wrong_type(response, config.plain_text)


def _wrong_type(response: Response, plain_text: bool) -> str | None:
    label = media_type(response)
    head = _head(response.body)
    looks_html = _HTML_START.match(head) is not None
    labelled_xml = label in _XML_TYPES or (label.endswith("+xml") and label not in _HTML_TYPES)
    if not looks_html and (
        labelled_xml or isinstance(response, XmlResponse) or _XML_START.match(head)
    ):
        return "xml"
    if _JSON_START.match(head):
        return "not_html"
    if label in _HTML_TYPES:
        return None
    if isinstance(response, HtmlResponse) and not label.endswith("json"):
        return None  # Scrapy has found it to be HTML, if only by an "<html" somewhere in it
    if looks_html and (label in _VAGUE_TYPES or labelled_xml):
        return None
    if label == "text/plain" and plain_text:
        return None
    return "not_html"


def media_type(response: Response) -> str:
    """Return the media type of the Content-Type header in lower case, ``""`` without one."""
    header = response.headers.get("Content-Type") or b""
    return header.split(b";")[0].strip().lower().decode("latin-1")


def is_plain_text(response: Response) -> bool:
    return media_type(response) == "text/plain" and not isinstance(response, HtmlResponse)


def _head(body: bytes) -> str:
    start = body[:_HEAD]
    for bom, encoding in _BOMS:
        if start.startswith(bom):
            return start[len(bom) :].decode(encoding, "ignore")
    return start.decode("latin-1")
