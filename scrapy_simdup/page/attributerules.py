"""XPath expressions that ask for tags and attributes only → the same in Python.

trafilatura finds and drops elements by such expressions. libxml2 needs some 15 µs for an element,
since every `re:test` calls back into Python and hands over its attributes anew. Here an expression
is compiled from its own source, and evaluated once for attributes that come again, as they do
within a page and within a site. What is not understood is left to libxml2, so that another version
of trafilatura may be slower but finds the same.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from lxml.etree import XPath, _Element

    Attributes: TypeAlias = dict[str, str]
    Test: TypeAlias = Callable[[Attributes], bool]
    Text: TypeAlias = Callable[[Attributes], str]

_REMEMBERED = 4096
_MEMORABLE = 500  # characters

_TOKEN = re.compile(
    r"""\s*(?:'(?P<literal>[^']*)'|@(?P<attribute>[\w-]+)|self::(?P<tag>\w+)"""
    r"""|(?P<other>\.//|[\w:-]+|[*|=,()\[\]]))\s*"""
)


class NotTranslatableError(ValueError):
    """An expression asks for something else than tags and attributes."""


def translated(expression: XPath) -> AttributeRule | XPath:
    """An expression in Python, or the expression itself where that is not possible."""
    try:
        return AttributeRule(expression.path)
    except NotTranslatableError:
        return expression


class AttributeRule:
    """A compiled expression, called with an element as lxml's XPath is.

    Understood are `.//*[self::a or self::b][CONDITION]`, with or without the first condition, and
    with a `[1]` behind it or around it; where there is such a `[1]`, elements are found one by one,
    as they are asked for. Raises NotTranslatableError for anything else.
    """

    def __init__(self, source: str) -> None:
        parsed = _Parser(source)
        self._tags, self._names, self._test = parsed.tags, frozenset(parsed.names), parsed.test
        self._first, self._first_child = parsed.first, parsed.first_child
        self._known: dict[tuple[tuple[str, str], ...], bool] = {}

    def __call__(self, tree: _Element) -> Iterable[_Element]:
        matches = self._matches(tree)
        if self._first:
            return (found for found in (next(matches, None),) if found is not None)
        return _first_children(matches) if self._first_child else list(matches)

    def _matches(self, tree: _Element) -> Iterator[_Element]:
        names, known = self._names, self._known
        for element in tree.iterdescendants(*self._tags):
            attributes = tuple([item for item in element.items() if item[0] in names])
            matches = known.get(attributes)
            if matches is None:
                matches = self._test(dict(attributes))
                if sum(len(value) for _, value in attributes) <= _MEMORABLE:
                    if len(known) >= _REMEMBERED:
                        known.clear()
                    known[attributes] = matches
            if matches:
                yield element


def _first_children(elements: Iterator[_Element]) -> Iterator[_Element]:
    """The first of the elements under each parent."""
    parents: set[_Element | None] = set()
    for element in elements:
        parent = element.getparent()
        if parent not in parents:
            parents.add(parent)
            yield element


class _Parser:
    """Reads an expression by recursive descent; attributes come in the order of the document."""

    def __init__(self, source: str) -> None:
        self._tokens = list(_tokens(source))
        self.names: set[str] = set()
        self.first = self._accept("(")
        self._expect(".//", "*", "[")
        self.tags = self._tags()
        self.test = self._any()
        self._expect("]")
        if self.first:
            self._expect(")")
        one = self._accept("[", "1", "]")
        if self._tokens or self.first > one:
            raise NotTranslatableError
        self.first_child = one and not self.first

    # Each token is a kind and its text. What stands next is last in the list.

    def _accept(self, *others: str) -> bool:
        ahead = [("other", other) for other in reversed(others)]
        if self._tokens[-len(ahead) :] != ahead:
            return False
        del self._tokens[-len(ahead) :]
        return True

    def _expect(self, *others: str) -> None:
        if not self._accept(*others):
            raise NotTranslatableError

    def _take(self, kind: str) -> str:
        if not self._tokens or self._tokens[-1][0] != kind:
            raise NotTranslatableError
        return self._tokens.pop()[1]

    def _tags(self) -> tuple[str, ...]:
        if not self._tokens or self._tokens[-1][0] != "tag":
            return ("*",)
        tags = [self._take("tag")]
        while self._accept("or"):
            tags.append(self._take("tag"))
        self._expect("]", "[")
        return tuple(tags)

    def _any(self) -> Test:
        tests = [self._condition()]
        while self._accept("or"):
            tests.append(self._condition())

        def test(attributes: Attributes) -> bool:
            return any(condition(attributes) for condition in tests)

        return test

    def _condition(self) -> Test:
        if self._accept("contains", "("):
            text, part = self._text(), self._literal_argument()
            test: Test = lambda attributes: part in text(attributes)
        elif self._accept("starts-with", "("):
            text, start = self._text(), self._literal_argument()
            test = lambda attributes: text(attributes).startswith(start)
        elif self._accept("re:test", "("):
            text, pattern = self._text(), self._literal_argument()
            flags = self._literal_argument() if self._tokens[-1:] == [("other", ",")] else ""
            if flags not in ("", "i"):
                raise NotTranslatableError
            search = re.compile(pattern, re.IGNORECASE if flags else 0).search
            test = lambda attributes: search(text(attributes)) is not None
        else:
            return self._comparison()
        self._expect(")")
        return test

    def _comparison(self) -> Test:
        name = self._name()
        if not self._accept("="):
            return lambda attributes: name in attributes
        value = self._take("literal")
        return lambda attributes: attributes.get(name) == value

    def _literal_argument(self) -> str:
        self._expect(",")
        return self._take("literal")

    def _name(self) -> str:
        name = self._take("attribute")
        self.names.add(name)
        return name

    def _text(self) -> Text:
        if self._accept("translate", "("):
            text, old, new = self._text(), self._literal_argument(), self._literal_argument()
            self._expect(")")
            if len(old) != len(new):
                raise NotTranslatableError
            table = str.maketrans(old, new)
            return lambda attributes: text(attributes).translate(table)
        names = [self._name()]
        while self._accept("|"):
            names.append(self._name())
        if len(names) == 1:
            return lambda attributes: attributes.get(names[0], "")
        # The text of several nodes is that of the first in the document.
        return lambda attributes: next(
            (attributes[name] for name in attributes if name in names), ""
        )


def _tokens(source: str) -> Iterator[tuple[str, str]]:
    """The tokens of an expression, from behind."""
    found = []
    position = 0
    while position < len(source):
        token = _TOKEN.match(source, position)
        if token is None or token.lastgroup is None:
            raise NotTranslatableError
        found.append((token.lastgroup, token[token.lastgroup]))
        position = token.end()
    return reversed(found)
