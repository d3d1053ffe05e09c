"""Pages from the command line: addresses that are fetched, files, standard input."""

from __future__ import annotations

import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy_simdup.analysis import Declared, Material
from scrapy_simdup.errors import SimdupError

if TYPE_CHECKING:
    from scrapy_simdup.config import Config

_TIMEOUT = 30.0
_TEXT_SUFFIXES = (".txt", ".text", ".md")


class SourceError(SimdupError):
    """A page that cannot be had; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Source:
    """A page: where it stands, and what it is judged by."""

    url: str
    material: Material


def is_address(name: str) -> bool:
    """Whether a name on the command line is to be fetched."""
    return name.lower().startswith(("http://", "https://"))


def read(name: str, config: Config, *, url: str | None = None, user_agent: str = "") -> Source:
    """The page *name*: ``-`` for standard input, an address, or a file.

    *url* says where a file stands; by default it is its own ``file:`` address. Files named
    ``.txt`` are plain text, others HTML. Raises :class:`SourceError`.
    """
    if name == "-":
        body = sys.stdin.buffer.read(config.max_body_bytes + 1)
        return Source(url or "file:///dev/stdin", Material(body, Declared(), is_html=True))
    if is_address(name):
        return _fetched(name, config, url, user_agent)
    path = Path(name)
    try:
        with path.open("rb") as file:
            body = file.read(config.max_body_bytes + 1)
        address = url or path.absolute().as_uri()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise SourceError(
            f"{name!r} cannot be read ({why}); give a file, - or an http(s) address"
        ) from error
    is_html = path.suffix.lower() not in _TEXT_SUFFIXES
    return Source(address, Material(body, Declared(), is_html))


def _fetched(address: str, config: Config, url: str | None, user_agent: str) -> Source:
    headers = {"User-Agent": user_agent} if user_agent else {}
    try:
        request = urllib.request.Request(address, headers=headers)  # noqa: S310 - http(s) only
        with _opener().open(request, timeout=_TIMEOUT) as answer:
            body = answer.read(config.max_body_bytes + 1)
            content_type = answer.headers.get("Content-Type")
            final = answer.geturl()
    except (OSError, ValueError, urllib.error.URLError) as error:
        raise SourceError(f"{address} cannot be fetched ({_why(error)})") from error
    is_html = not (content_type or "").lower().startswith("text/plain")
    return Source(url or final, Material(body, Declared(content_type), is_html))


def _opener() -> urllib.request.OpenerDirector:
    """One that follows redirects to http and https only, and reads no files."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPRedirectHandler,
        urllib.request.HTTPErrorProcessor,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.UnknownHandler,
    ):
        opener.add_handler(handler())
    return opener


def _why(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"status {error.code}"
    reason = getattr(error, "reason", None) or error
    return str(getattr(reason, "strerror", None) or reason).replace("\n", " ")
