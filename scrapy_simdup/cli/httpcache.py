"""Pages of Scrapy's HTTP cache, as ``HTTPCACHE_STORAGE`` keeps them by default: folders of files."""

from __future__ import annotations

import gzip
import zlib
from typing import TYPE_CHECKING

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Headers, Response, TextResponse
from scrapy.responsetypes import responsetypes
from scrapy.statscollectors import DummyStatsCollector
from w3lib.http import headers_raw_to_dict

from scrapy_simdup.analysis import Material
from scrapy_simdup.charset import text_of

if TYPE_CHECKING:
    from pathlib import Path

_GZIP = b"\x1f\x8b"
_REQUEST = Request("http://localhost/")


class HttpCache:
    """The pages in *folder*, the ``HTTPCACHE_DIR`` of one or several spiders.

    Nothing is unpickled: what a page is, is told by its body and its headers. Bodies above
    *max_body_bytes* are not unpacked.
    """

    def __init__(self, folder: Path, max_body_bytes: int) -> None:
        self._folder = folder
        crawler = Crawler(Spider, {"DOWNLOAD_MAXSIZE": max_body_bytes})
        crawler.stats = DummyStatsCollector(crawler)
        self._decompression = HttpCompressionMiddleware(crawler=crawler)

    def __call__(self, key: bytes) -> Material | None:
        """The page of the request with fingerprint *key*; None if it is not there, or no text."""
        name = key.hex()
        for path in self._folder.glob(f"*/{name[:2]}/{name}"):
            response = self._response(path)
            if isinstance(response, TextResponse):
                return Material(response.body, text_of(response), is_html=True)
        return None

    def _response(self, path: Path) -> Response | None:
        """What the downloader middlewares after the cache made of the files in *path*."""
        try:
            body, raw = ((path / f"response_{part}").read_bytes() for part in ("body", "headers"))
            if raw.startswith(_GZIP):  # HTTPCACHE_GZIP; a body may also be packed by its server
                body, raw = gzip.decompress(body), gzip.decompress(raw)
            headers = Headers(headers_raw_to_dict(raw))
            kind = responsetypes.from_args(headers=headers, body=body)
            response = kind(_REQUEST.url, headers=headers, body=body)
            unpacked = self._decompression.process_response(_REQUEST, response)
        except (OSError, EOFError, zlib.error, ValueError, IgnoreRequest):
            return None
        return unpacked if isinstance(unpacked, Response) else None
