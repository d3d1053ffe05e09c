"""Texts to HTML: fills ``templates/*.html``, with the fixed words of a language from ``labels/``."""

from __future__ import annotations

import json
from functools import cache
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

HERE = Path(__file__).resolve().parent


@cache
def labels(lang: str) -> dict[str, Any]:
    """Return the fixed words of a language."""
    words: dict[str, Any] = json.loads((HERE / "labels" / f"{lang}.json").read_text("utf-8"))
    return words


def render(template: str, lang: str, **values: str) -> str:
    """Return the HTML of a page; *values* are HTML, labels and ``title`` are plain text."""
    words = {key: escape(word) for key, word in labels(lang).items() if isinstance(word, str)}
    values = {"charset": "utf-8", **values}
    if "title" in values:
        values["title"] = escape(values["title"])
    return _template(template).substitute(words, lang=lang, **values)


def paragraphs(texts: Iterable[str]) -> str:
    """Return one ``<p>`` a text."""
    return "\n".join(f"<p>{escape(text, quote=False)}</p>" for text in texts)


def links(targets: Mapping[str, str]) -> str:
    """Return one ``<li>`` for each address and the words of its link."""
    return "".join(f"<li>{link(path, words)}</li>" for path, words in targets.items())


def link(path: str, words: str) -> str:
    return f'<a href="{escape(path)}">{escape(words)}</a>'


@cache
def _template(name: str) -> Template:
    return Template((HERE / "templates" / f"{name}.html").read_text("utf-8"))
