"""The text of a response, made of its bytes somewhere else than on the event loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from scrapy.http import TextResponse
from w3lib.encoding import html_body_declared_encoding, http_content_type_encoding, read_bom

from scrapy_simdup.analysis import Charset

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class ResponseText:
    """Makes of a body what the response's ``text`` is. It can be pickled, and holds no body.

    *encoding* is what the response was made with, *content_type* its header.
    """

    kind: type[TextResponse]
    encoding: str | None
    content_type: bytes | None

    def __call__(self, body: bytes) -> str:
        headers = {} if self.content_type is None else {"Content-Type": self.content_type}
        response = self.kind(
            "http://localhost/", body=body, headers=headers, encoding=self.encoding
        )
        return response.text


def text_of(response: TextResponse) -> Callable[[bytes], str]:
    """What makes the text of *response* from its body, when it is called; it can be pickled.

    Where the charset is declared, it needs no Scrapy, which takes half a second to import.
    """
    kind = type(response)
    encoding: str | None = getattr(response, "_encoding", None)
    content_type = response.headers.get("Content-Type")
    if kind.text is TextResponse.text and kind.encoding is TextResponse.encoding:
        declared = (
            encoding
            or read_bom(response.body)[0]
            or http_content_type_encoding((content_type or b"").decode("latin-1"))
            or html_body_declared_encoding(response.body)
        )
        if declared:
            return Charset(declared)
    return ResponseText(kind, encoding, content_type)
