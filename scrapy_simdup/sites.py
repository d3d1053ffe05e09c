"""Whose page a URL is: its host, and its site."""

from __future__ import annotations

import ipaddress
from functools import cache, lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from tldextract import TLDExtract

_PORTS = {"http": 80, "https": 443}


@lru_cache(maxsize=256)  # the page's own is asked for again and again
def host_of(url: str) -> str:
    """The host of a URL, in lower case, with its port unless that is the scheme's own.

    What is no URL that could be requested is its own host.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return url
    default = _PORTS.get(parts.scheme)
    return f"{parts.hostname or ''}{'' if port in (None, default) else f':{port}'}"


@lru_cache(maxsize=1024)
def site_of(url: str) -> str:
    """The site of a URL: its registered domain by the public suffix list, such as ``bbc.co.uk``.

    Domains under which anybody may have one, such as ``github.io``, count as suffixes. Where there
    is no registered domain (``localhost``, an address, a suffix alone) it is the host, with its
    port. The list is the one that tldextract brings: nothing is downloaded.
    """
    host = host_of(url)
    name = url if host == url else urlsplit(url).hostname or ""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return _suffixes()(name).top_domain_under_public_suffix or host
    return host


@cache
def _suffixes() -> TLDExtract:
    from tldextract import TLDExtract

    return TLDExtract(cache_dir=None, suffix_list_urls=(), include_psl_private_domains=True)


def is_of(url: str, names: tuple[str, ...]) -> bool:
    """Whether the host of a URL is one of *names*, or in one of these domains."""
    host = host_of(url)
    return any(host == name or host.endswith(f".{name}") for name in names)
