"""What a store remembers of each crawl: when it ran, under which options, what it came to."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec


class Crawl(msgspec.Struct, kw_only=True, frozen=True):
    """A crawl. ``started`` and ``ended`` are seconds since the epoch; ``ended`` is None while it runs
    and where it was killed.

    ``options`` are those of its ``Config`` that are not the default, by their names; ``counts`` its
    stats at the end, without their prefix ``simdup/``; ``version`` that of scrapy-simdup.
    """

    id: str
    spider: str | None = None
    started: float
    ended: float | None = None
    version: str = ""
    options: dict[str, Any] = {}
    counts: dict[str, int | float] = {}


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Crawl).decode


def crawl_key(crawl: Crawl) -> bytes:
    """16 bytes, the same for a crawl at its start and at its end; they sort by the start."""
    milliseconds = max(0, int(crawl.started * 1000))
    digest = hashlib.blake2b(crawl.id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return milliseconds.to_bytes(8, "big") + digest


def encode_crawl(crawl: Crawl) -> bytes:
    return _encode(crawl)


def decode_crawl(raw: bytes) -> Crawl:
    """Raises ``msgspec.DecodeError`` for what is no crawl."""
    return _decode(raw)
