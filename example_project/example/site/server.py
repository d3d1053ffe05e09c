"""Serves pages on 127.0.0.1, from a thread of this process. Knows nothing of what they are."""

from __future__ import annotations

import socketserver
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from example.site.page import Page

ROBOTS_TXT = b"User-agent: *\nDisallow: /search\n"


class SiteServer(ThreadingHTTPServer):
    """Answers from the moment it is made until :meth:`stop`; the system chooses the port."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, pages: Iterable[Page]) -> None:
        self.pages = {page.path: page for page in pages}
        super().__init__(("127.0.0.1", 0), _Handler)
        self._thread = Thread(
            target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/"

    def server_bind(self) -> None:
        # HTTPServer's own looks up the name of the host, which may take long without a network.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "127.0.0.1", self.server_address[1]

    def stop(self) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: SiteServer
    protocol_version = "HTTP/1.1"  # connections are kept
    timeout = 10

    def do_GET(self) -> None:
        page = self.server.pages.get(self.path)
        if page is not None:
            self._answer(page.status, page.headers, page.body)
        elif self.path == "/robots.txt":
            self._answer(HTTPStatus.OK, {"Content-Type": "text/plain"}, ROBOTS_TXT)
        else:
            self._answer(HTTPStatus.NOT_FOUND, {"Content-Type": "text/plain"}, b"not found\n")

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing: the crawl has its own log."""
