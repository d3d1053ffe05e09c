"""Reads the texts that the demo site shows. Knows no HTML.

Articles stand one a file, ``articles/<language>/<slug>.txt``: the title, then paragraphs. At the
end may follow what other forms of the article need: ``== edited``, a sentence and the sentence
that replaces it, and ``== added``, a paragraph. All other texts stand in ``texts/``, several a
file, each with a head of ``key: value`` lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Article:
    slug: str
    lang: str
    title: str
    paragraphs: tuple[str, ...]
    edit: tuple[str, str] | None = None
    added: str | None = None

    def edited(self) -> tuple[str, ...]:
        """Return the paragraphs with one sentence changed."""
        assert self.edit is not None
        return tuple(paragraph.replace(*self.edit) for paragraph in self.paragraphs)

    def extended(self) -> tuple[str, ...]:
        """Return the paragraphs with one more, before the last."""
        assert self.added is not None
        return (*self.paragraphs[:-1], self.added, self.paragraphs[-1])


@dataclass(frozen=True)
class Record:
    """Any other text: a head of ``key: value`` lines, and paragraphs."""

    head: dict[str, str]
    paragraphs: tuple[str, ...]


@cache
def articles(lang: str) -> tuple[Article, ...]:
    """Return the articles of one language, in the order of their file names."""
    paths = sorted((HERE / "articles" / lang).glob("*.txt"))
    return tuple(_article(path, lang) for path in paths)


@cache
def records(name: str) -> tuple[Record, ...]:
    """Return the records of ``texts/<name>.txt``."""
    text = (HERE / "texts" / f"{name}.txt").read_text("utf-8")
    return tuple(_record(block) for block in text.split("\n----\n"))


def teaser(text: str, lang: str) -> str:
    """Return the first sentence, and the second if the first is short."""
    sentences = re.findall(r"[^.?!。？！]+(?:[.?!](?:\s|$)|[。？！])", text)
    long_enough = 20 if lang.startswith("zh") else 80
    return "".join(sentences[: 1 if len(sentences[0]) >= long_enough else 2]).strip()


def _article(path: Path, lang: str) -> Article:
    main, *rest = re.split(r"^== (\w+)$", path.read_text("utf-8"), flags=re.MULTILINE)
    parts = dict(zip(rest[::2], rest[1::2], strict=True))
    title, *paragraphs = _paragraphs(main)
    edit = None
    if "edited" in parts:
        old, new = parts["edited"].strip().splitlines()
        if main.count(old) != 1:
            raise ValueError(f"{path}: the sentence to edit is not there just once: {old!r}")
        edit = (old, new)
    added = parts["added"].strip() if "added" in parts else None
    return Article(path.stem, lang, title, tuple(paragraphs), edit, added)


def _record(block: str) -> Record:
    head, _, text = block.strip().partition("\n\n")
    pairs = (line.partition(":") for line in head.splitlines())
    values = {key.strip(): value.strip() for key, _, value in pairs}
    return Record(values, tuple(_paragraphs(text)))


def _paragraphs(text: str) -> list[str]:
    return [part.strip() for part in text.split("\n\n") if part.strip()]
