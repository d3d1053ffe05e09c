"""trafilatura's expressions in Python find what libxml2 finds by them."""

from __future__ import annotations

import random
import re

import pytest
import trafilatura.xpaths
from lxml.etree import Element, XPath, _Element

from scrapy_simdup.page import attributerules
from scrapy_simdup.page.attributerules import AttributeRule, NotTranslatableError, translated

EXPRESSIONS = {
    f"{name}-{n}": expression
    for name, group in vars(trafilatura.xpaths).items()
    if isinstance(group, list)
    for n, expression in enumerate(group)
}
TRANSLATED = {
    name: expression
    for name, expression in EXPRESSIONS.items()
    if isinstance(translated(expression), AttributeRule)
}
TAGS = ("div", "p", "span", "section", "article", "main", "list", "item", "aside", "header")
ATTRIBUTES = (
    *("class", "id", "role", "style", "itemprop", "aria-hidden", "data-component", "data-testid"),
    "data-lp-replacement-content",
)


def words_of(expression: XPath) -> list[str]:
    """What the expression looks for, each alternative of its patterns as a text that it matches."""
    literals = re.findall(r"'([^']*)'", expression.path)
    parts = [part for literal in literals for part in re.split(r"[|()]|\?:|\?!", literal) if part]
    return [re.sub(r"[\^$?\\]|\[(\w)[^\]]*\]", r"\1", part) for part in parts]


def some_tree(words: list[str], seed: int) -> _Element:
    """Elements in one another, whose attributes come in any order and often match."""
    choice = random.Random(seed)

    def value() -> str:
        prefix, suffix = choice.choice(("", "", " ", "x-")), choice.choice(("", "", " y", "-z"))
        word = choice.choice((*words, "true", "x", ""))
        return prefix + choice.choice((word, word, word.title(), word.upper())) + suffix

    def grow(depth: int) -> _Element:
        element = Element(choice.choice(TAGS))
        for name in choice.sample(ATTRIBUTES, choice.choice((0, 1, 1, 2, 3))):
            element.set(name, value())
        if depth:
            element.extend(grow(depth - 1) for _ in range(choice.randrange(6)))
        return element

    return grow(4)


@pytest.mark.parametrize("name", TRANSLATED)
def test_it_finds_what_the_expression_finds(name: str) -> None:
    expression = TRANSLATED[name]
    rule = translated(expression)
    words = words_of(expression)
    found = 0
    for seed in range(60):
        tree = some_tree(words, seed)
        expected = expression(tree)
        assert list(rule(tree)) == expected
        found += len(expected)
    assert found


def test_what_costs_most_is_translated() -> None:
    """Else a new version of trafilatura would be slow again, and nobody would know why."""
    assert {
        *("BODY_XPATH-0", "BODY_XPATH-2", "BODY_XPATH-3", "OVERALL_DISCARD_XPATH-0"),
        *("OVERALL_DISCARD_XPATH-1", "TEASER_DISCARD_XPATH-0", "DISCARD_IMAGE_ELEMENTS-0"),
    } <= set(TRANSLATED)


@pytest.mark.parametrize(
    "source",
    [
        ".//header",
        "//*[@id]",
        ".//*[@id]/p",
        ".//*[not(.//h1)]",
        ".//*[self::div and @id]",
        ".//*[@id and @class]",
        ".//*[@id='a'][2]",
        "(.//*[@id='a'])",
        "(.//*[@id='a'])[1]|.//p",
        ".//*[string-length(@id) > 3]",
        ".//*[contains(translate(@id, 'AB', 'a'), 'a')]",
        ".//*[re:test(@id, 'a', 'x')]",
        ".//*[contains(., 'a')]",
        ".//*[@id=@class]",
        ".//*[",
    ],
)
def test_what_is_not_understood_is_left_to_libxml2(source: str) -> None:
    with pytest.raises(NotTranslatableError):
        AttributeRule(source)


def test_an_expression_that_is_not_understood_is_itself() -> None:
    expression = XPath(".//*[not(.//h1)]")
    assert translated(expression) is expression


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attributerules, "_REMEMBERED", 8)
    rule = AttributeRule(".//*[contains(@class, 'b')]")
    root = Element("div")
    for n in range(100):
        root.append(Element("p", {"class": f"{'ab'[n % 2]}{n}", "id": str(n)}))
    root.append(Element("p", {"class": "b" * 10_000}))
    assert [element.get("class", "")[0] for element in rule(root)] == ["b"] * 51
    assert 0 < len(rule._known) <= 8
    assert all(len(value) < 1000 for key in rule._known for _, value in key)
