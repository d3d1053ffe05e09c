"""What the spiders bring home."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class PageItem:
    """A page; ``simdup`` is filled in by scrapy_simdup (action ``tag``) if it is a duplicate."""

    url: str
    title: str | None
    text_length: int
    simdup: dict[str, Any] | None = None
