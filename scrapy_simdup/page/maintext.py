"""A page's tree → its main text, found by trafilatura.

`trafilatura.bare_extraction` with `fast=True`, put together anew from its parts, since half of its
time goes into what a crawl has no use for: it copies the tree five times, and looks for comments
and measures the page with expressions that call back into Python for every element. The expressions
that are left are translated (`attributerules`). One thing is
decided in another way: how much of a page the main text covers, which calls for a second try, is
measured without menus, so that a menu alone does not change what the main text is.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import logging
import re
from typing import TYPE_CHECKING, Any

from scrapy_simdup.page.attributerules import translated
from scrapy_simdup.page.blocks import outermost

if TYPE_CHECKING:
    from collections.abc import Callable

    from lxml.etree import _Element
    from lxml.html import HtmlElement

RULES = "1"
"""Changes whenever the same tree has another main text, trafilatura's version aside."""

_ESCALATED = 3000
_COVERED = 0.2
_MAX_TABLES = 20
_LONGER = 1.5

# Neither main text nor anything that helps to find it.
_DROPPED = (
    *("style", "svg", "canvas", "template", "link", "iframe", "embed"),
    *("audio", "video", "track", "source", "param", "map", "area"),
    *("input", "button", "select", "option", "optgroup", "datalist", "textarea"),
)
_UNWANTED = "unwanted"
# What is shown instead is the text of the page where it is long, and else asks for scripts.
_INSTEAD = ("noscript", "object")
_HINT = 250
_FORUM = re.compile(r'"@type"\s*:\s*(?:\[[^\]]*)?"DiscussionForumPosting"')
_CONTAINERS = ("div", "section", "details", "ol", "ul", "aside")
# `commentary` is no comment.
_COMMENTS_ID = re.compile(r"[Cc]omment(?!ary)|comol|disqus_thread|dsq-comments")
_COMMENTS_CLASS = re.compile(r"\A[Cc]omment(?!ary)|(?:article|post)-comments")
# What a script puts below an article, as one scrolls: other articles.
_MORE_ARTICLES = re.compile(r"infinite-?scroll|mvp-post-add-(?:box|wrap)")
# Found in every id or class that one of these three finds.
_SUSPECT = re.compile(r"omment|comol|disqus_thread|infinite|mvp-post-add")


class MainText:
    """Finds the main text of pages, always in the same way. May be used from several threads.

    trafilatura is imported when an instance is made, which holds the GIL for some 150 ms.
    """

    def __init__(self) -> None:
        from trafilatura import baseline, utils
        from trafilatura.settings import Extractor
        from trafilatura.xml import xmltotxt

        for name in ("trafilatura", "htmldate", "courlan", "justext"):
            logger = logging.getLogger(name)
            # They log an error for every page without text. A level that somebody chose stays.
            if logger.level == logging.NOTSET:
                logger.setLevel(logging.CRITICAL)
        # Comments are off: they differ between two visits. So is deduplication, which depends on
        # the pages seen before.
        self._balanced = Extractor(output_format="python", fast=True, comments=False)
        self._recall = Extractor(output_format="python", fast=True, comments=False, recall=True)
        processing, extractor = _own("htmlprocessing"), _own("main_extractor")
        # It looks for each in a walk of its own, and these are gone already.
        processing.MANUALLY_CLEANED = [
            tag for tag in processing.MANUALLY_CLEANED if tag not in _DROPPED
        ]
        self._clean, self._convert = processing.tree_cleaning, processing.convert_tags
        self._content = extractor.extract_content
        self._baseline, self._as_text = baseline, xmltotxt
        # These two remember 1024 strings of any length, which may be hundreds of megabytes.
        self._forget = [
            getattr(cached, "cache_clear", None)
            for cached in (getattr(utils, name, None) for name in ("trim", "line_processing"))
        ]

    @staticmethod
    def identity() -> dict[str, str]:
        """All that decides which main text a tree has."""
        return {"main": RULES, "trafilatura": importlib.metadata.version("trafilatura")}

    def __call__(self, tree: HtmlElement, shown: int, again: Callable[[], HtmlElement]) -> str:
        """The main text of a page, or "".

        *tree*, a whole document, is taken to pieces; *again* gives another one, for the few pages
        that need a second try. *shown* is how many characters the page shows outside of menus,
        headers and footers.
        """
        try:
            return self._find(tree, shown, again)
        finally:
            for clear in self._forget:
                if clear is not None:
                    clear()

    def _find(self, tree: HtmlElement, shown: int, again: Callable[[], HtmlElement]) -> str:
        least = self._balanced.min_extracted_size
        body, text = self._main(_without_comments(tree), self._balanced)
        if len(text) < least:
            other, other_text, length = self._baseline(_without_comments(again(), but_data=True))
            if length > len(text):
                body, text = other, other_text
        if 0 < len(text) < _ESCALATED and len(text) < _COVERED * shown:
            other, other_text = self._main(_without_comments(again(), but_data=True), self._recall)
            if len(other_text) >= least and len(other_text) > _LONGER * len(text):
                body, text = other, other_text
        if len(text) < self._balanced.min_output_size:
            return ""
        found: str = self._as_text(body, self._balanced.formatting)
        return found

    def _main(self, tree: HtmlElement, options: Any) -> tuple[_Element, str]:
        _unnest_tables(tree)
        cleaned = self._convert(self._clean(tree, options), options)
        found: tuple[_Element, str] = self._content(cleaned, options)
        return found


def _unnest_tables(tree: HtmlElement) -> None:
    """Make divisions of tables in very many others: trafilatura takes cubic time for those.

    A page of 12 kB, 2,000 tables one within the other, took 46 s.
    """
    levels: dict[HtmlElement, int] = {}
    for table in [*tree.iter("table")]:
        around = next(table.iterancestors("table"), None)
        levels[table] = 1 if around is None else levels[around] + 1
    for table, level in levels.items():
        if level > _MAX_TABLES:
            table.tag = "div"


def _own(name: str) -> Any:
    """An instance of a module of trafilatura that is ours alone, with its expressions translated.

    Ours alone, so that nothing changes for who uses trafilatura beside us.
    """
    from lxml.etree import XPath

    spec = importlib.util.find_spec(f"trafilatura.{name}")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for key, value in list(vars(module).items()):
        if isinstance(value, list) and all(isinstance(item, XPath) for item in value):
            setattr(module, key, [translated(expression) for expression in value])
    return module


def _without_comments(tree: HtmlElement, *, but_data: bool = False) -> HtmlElement:
    """A page without what readers wrote below it, other articles, drawings, controls and scripts.

    Scripts with data for search engines may stay: a rescue looks there.
    """
    from lxml.etree import strip_elements

    unwanted = [*_unwanted(tree), *filter(_is_hint, outermost(tree, *_INSTEAD))]
    if but_data:
        unwanted += [script for script in tree.iter("script") if not _is_data(script)]
    # All at once: taking them out one by one copies the text behind them each time.
    for element in unwanted:
        element.tag = _UNWANTED
    strip_elements(tree, _UNWANTED, *_DROPPED, *(() if but_data else ("script",)), with_tail=False)
    return tree


def _is_hint(element: HtmlElement) -> bool:
    return len(element.text_content()) < _HINT


def _unwanted(tree: HtmlElement) -> list[HtmlElement]:
    """Comments, and other articles."""
    suspects = [
        element
        for element in tree.iter(*_CONTAINERS)
        if _SUSPECT.search(f"{element.get('id')} {element.get('class')}")
    ]
    if not suspects:
        return []
    is_forum = any(
        _FORUM.search(script.text or "") for script in tree.iter("script") if _is_data(script)
    )
    with_heading = _with_heading(tree)
    return [
        element
        for element in suspects
        if _is_unwanted(element, is_forum=is_forum, has_heading=element in with_heading)
    ]


def _with_heading(tree: HtmlElement) -> set[HtmlElement]:
    """All elements that hold an `<h1>`."""
    found: set[HtmlElement] = set()
    for heading in tree.iter("h1"):
        for ancestor in heading.iterancestors():
            if ancestor in found:
                break
            found.add(ancestor)
    return found


def _is_data(script: HtmlElement) -> bool:
    return bool(script.get("type") == "application/ld+json")


def _is_unwanted(element: HtmlElement, *, is_forum: bool, has_heading: bool) -> bool:
    name, kind = element.get("id", ""), element.get("class", "")
    if element.tag in ("div", "section", "aside") and (
        _MORE_ARTICLES.search(name) or _MORE_ARTICLES.search(kind)
    ):
        return "mvp-post-add" in name + kind or not has_heading
    if is_forum or element.tag == "aside":  # there the comments are the content
        return False
    return bool(_COMMENTS_ID.match(name) or _COMMENTS_CLASS.search(kind))
