"""The texts of a page, as `SIMDUP_KEEP_TEXT` keeps them: compressed, and back."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import msgspec

from scrapy_simdup.page.profile import MAIN, PROSE

if TYPE_CHECKING:
    from scrapy_simdup.page.content import Content

_decode = msgspec.msgpack.Decoder(dict[str, list[str]]).decode


def pack_texts(content: Content) -> bytes:
    """The blocks of main text and prose, as zlib-compressed MessagePack."""
    texts = {
        name: [block.encode("utf-8", "replace").decode() for block in blocks]
        for name, blocks in ((MAIN, content.main), (PROSE, content.prose))
        if blocks
    }
    return zlib.compress(msgspec.msgpack.encode(texts))


def unpack_texts(packed: bytes) -> dict[str, list[str]]:
    """The blocks of every view, by its name. Raises ValueError for what `pack_texts` did not make."""
    try:
        return _decode(zlib.decompress(packed))
    except (zlib.error, msgspec.DecodeError) as error:
        raise ValueError(f"not the kept text of a page: {error}") from error
