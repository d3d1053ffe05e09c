"""No pattern of ours takes more than linear time, whatever the web sends."""

from __future__ import annotations

import importlib
import itertools
import pkgutil
import re
import time
from collections import deque
from pathlib import Path
from typing import Any

import pytest
import regex

import scrapy_simdup

LENGTH, FULL_LENGTH = 4_000, 20_000
MOST_SECONDS = 0.15
"""Of processor time; a linear pattern takes some 0.001 s, a quadratic one 0.2 s or more. In full five
times that, where a quadratic one takes 25 times as long."""
SOURCE = "\n".join(
    path.read_text("utf-8") for path in Path(scrapy_simdup.__file__).parent.rglob("*.py")
)
_METHODS = {
    "match": lambda pattern, text: pattern.match(text),
    "fullmatch": lambda pattern, text: pattern.fullmatch(text),
    "search": lambda pattern, text: pattern.search(text),
    "finditer": lambda pattern, text: deque(pattern.finditer(text), maxlen=0),
}
_ALSO = dict.fromkeys(("findall", "sub", "subn", "split"), "finditer")

_SIGNS = (
    "a", "A", "1", " ", "\n", "\t", "<", ">", "/", "=", '"', "'", "&", ";", "#", "x", "{", "[", "(", "\\",
    "-", "_", ":", ".", ",", "%", "!", "*", "é", "漢", "カ", "ก", "\u0301", "\u200b", "\u00a0", "😀", "\0",
)  # fmt: skip
_PIECES = (
    "<!--", "-->", "<a ", "</a>", "<p>", "a b", "a=", 'a="', "='", "&#", "&a", "//", "http://", "1.1", "{}",
    "[[", "\\\\", '\\"', "<script", "<br/>", "a\n", " \n", "漢 ", "e\u0301", "<html", "<!doctype",
)  # fmt: skip


def patterns() -> dict[str, Any]:
    """All compiled patterns in the modules of the package, by their places."""
    found: dict[str, Any] = {}

    def note(name: str, value: Any) -> None:
        if isinstance(value, re.Pattern | regex.Pattern):
            found[name] = value
        elif isinstance(value, (tuple, list)):
            for number, inner in enumerate(value):
                note(f"{name}[{number}]", inner)
        elif isinstance(value, dict):
            for key, inner in value.items():
                note(f"{name}[{key!r}]", inner)

    for module in pkgutil.walk_packages(scrapy_simdup.__path__, "scrapy_simdup."):
        if not module.name.endswith("__main__"):
            for name, value in vars(importlib.import_module(module.name)).items():
                note(f"{module.name}.{name}", value)
    return found


PATTERNS = patterns()


def attacks(source: str, full: bool) -> list[str]:
    """Endless repetitions of what the pattern is about, that end in what it cannot match."""
    words = [word for word in re.findall(r"[\w<>/=!-]{2,}", source) if len(word) < 30][:20]
    pairs = {"".join(pair) for pair in itertools.product(words[:4], (" ", "=", "a", '"', ">"))}
    units = sorted({*_PIECES, *words, *pairs} - {*_SIGNS})
    length = FULL_LENGTH if full else LENGTH
    chosen = [*_SIGNS, *(units if full else units[::4])]
    return [(unit * length)[:length] + "\0<" for unit in chosen]


def methods(name: str) -> set[str]:
    """How the package uses a pattern; one of many in a table in any way."""
    own = name.rpartition(".")[2].partition("[")[0]
    used = {_ALSO.get(word, word) for word in re.findall(rf"\b{own}\.(\w+)", SOURCE)}
    return used & set(_METHODS) or {"search", "finditer"}


def test_there_are_patterns() -> None:
    assert len(PATTERNS) > 30
    assert {type(pattern) for pattern in PATTERNS.values()} == {re.Pattern, regex.Pattern}


@pytest.mark.parametrize("name", PATTERNS)
def test_take_linear_time(name: str, full: bool) -> None:
    pattern = PATTERNS[name]
    for text in attacks(str(pattern.pattern), full):
        given: Any = text.encode() if isinstance(pattern.pattern, bytes) else text
        for method in methods(name):
            began = time.process_time()
            _METHODS[method](pattern, given)
            took = time.process_time() - began
            assert took < MOST_SECONDS * (5 if full else 1), (
                f"{method}: {took:.1f} s for {text[:20]!r} …"
            )
