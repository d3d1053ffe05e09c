"""A labelled set of template siblings and of their true near-duplicates.

    python benchmarks/siblings.py OUT [SET ...]

Template siblings are pages of one site that share the template and much of the text and differ in
what matters: another lamp, flat, job, concert date, class, stop, person or town. They are *not*
duplicates. Among them are true duplicates of them: the same item at another URL, with the noise
that real sites add. The generator writes ``OUT/<set>/`` in the format that ``pagewise.py`` reads:

=============  ====================================================================================
docs.jsonl     one page a line, in the order of the crawl (originals and copies mixed): ``id``,
               ``path``, ``url``, ``lang``, ``title``, ``kind`` (``original``, or the kind of
               duplicate), ``group`` (pages of one item), ``sibling_group``
gold.jsonl     ``id`` and ``text``, the main text of the page
pairs.jsonl    ``a``, ``b``, ``jaccard8`` and ``label``: 1 for two pages of one item, 0 for siblings,
               null where an operator may see it either way; pages in no pair are unrelated
site/          the pages
=============  ====================================================================================

The same bytes come out of every run: nothing but ``random.Random(str).random()`` is drawn from. All
texts are invented, and so are all companies, people, places' details and numbers.

This file holds the machinery first, then one function for every set.
"""

from __future__ import annotations

import argparse
import html
import json
import random
import re
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

T = TypeVar("T")

#: The kinds of true duplicates; every set has each of them ``COPIES`` times.
KINDS = (
    "session",  # a session id or tracking parameters in all links
    "menu",  # the menus in another order
    "breadcrumb",  # reached through another category
    "counters",  # other counters, times and copyright year
    "combined",  # all of the above at once, and other related links
    "restyled",  # another generation of the template: other markup for the same content
    "print",  # the print version, without navigation
    "typo",  # a typing error in one word
    "sentence",  # one sentence added
    "dates",  # dates are written in another format
    "review",  # a reader's review or comment added at the end
)
COPIES = 2
#: What happens to pages of a few words: more would make another page of them.
THIN_KINDS = frozenset(("session", "menu", "breadcrumb", "counters", "restyled", "print"))
#: At most so many duplicates of one item.
MOST_COPIES = 3

_DATE = re.compile(r"@(\d{4})-(\d\d)-(\d\d)@")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_WORD = re.compile(r"[^\W_]+")


class Draw:
    """Seeded choices that are the same in every version of Python."""

    def __init__(self, *seed: str) -> None:
        self._random = random.Random("/".join(seed)).random

    def between(self, low: int, high: int) -> int:
        """A number from ``low`` to ``high``, both included."""
        return low + int(self._random() * (high - low + 1))

    def pick(self, values: Sequence[T]) -> T:
        return values[self.between(0, len(values) - 1)]

    def shuffled(self, values: Iterable[T]) -> list[T]:
        rest = list(values)
        return [rest.pop(self.between(0, len(rest) - 1)) for _ in range(len(rest))]

    def some(self, values: Sequence[T], count: int) -> list[T]:
        """``count`` different values, in the order they have."""
        chosen = sorted(self.shuffled(range(len(values)))[:count])
        return [values[index] for index in chosen]

    def digits(self, count: int) -> str:
        return "".join(str(self.between(0, 9)) for _ in range(count))

    def day(self, year: int) -> str:
        """A day of ``year``, marked as a date for the template to format."""
        return mark(date(year, 1, 1) + timedelta(days=self.between(0, 364)))


def mark(day: date) -> str:
    """``@2026-03-05@``: a date that the template formats in its own way."""
    return f"@{day.isoformat()}@"


# --- Content: what a page says, apart from how it is marked up ---------------------------------


@dataclass(frozen=True)
class Block:
    """A piece of main text.

    ``kind`` is ``head``, ``text``, ``list``, ``facts`` or ``code``; ``rows`` holds one cell a row,
    for facts two or more.
    """

    kind: str
    rows: tuple[tuple[str, ...], ...]

    @property
    def text(self) -> str:
        return "\n".join(" ".join(row) for row in self.rows)


def parse(text: str) -> list[Block]:
    """Read the notation the sets are written in.

    Blank lines end a block. ``# `` starts a heading, ``- `` a list item, ``> `` a line of code;
    ``a :: b`` is a row of facts; all other lines are running text.
    """
    blocks = []
    for chunk in re.split(r"\n\s*\n", text.strip()):
        lines = [line.strip() for line in chunk.splitlines()]
        if lines[0].startswith("# "):
            blocks.append(Block("head", ((lines[0][2:],),)))
        elif lines[0].startswith("- "):
            blocks.append(Block("list", tuple((line[2:],) for line in lines)))
        elif lines[0].startswith("> "):
            blocks.append(Block("code", tuple((line[2:],) for line in lines)))
        elif " :: " in lines[0]:
            blocks.append(Block("facts", tuple(tuple(line.split(" :: ")) for line in lines)))
        else:
            blocks.append(Block("text", (("".join(_spaced(lines)),),)))
    return blocks


def _spaced(lines: list[str]) -> Iterator[str]:
    """The lines of a paragraph; between Chinese characters there is no space."""
    for before, line in zip(["", *lines], lines, strict=False):
        if before and not _CJK.match(before[-1]) and before[-1] not in "，。；：、":
            yield " "
        yield line


@dataclass(frozen=True)
class Item:
    """One thing that a page is about."""

    family: str  # the sibling group
    name: str
    body: str  # in the notation of :func:`parse`
    ways: tuple[str, str]  # two categories that lead to it
    thin: bool = False
    same_as: str = ""  # items with one value here are duplicates or not, as you see it


@dataclass(frozen=True)
class Markup:
    """One generation of a site's template."""

    shell: str  # "semantic", "soup" or "layout"
    facts: str  # "table", "dl", "ul" or "divs"
    text: str = "p"  # "p", "div" or "br"
    code: str = "pre"  # "pre" or "table"
    prefix: str = ""  # of class names
    title_first: bool = True


@dataclass(frozen=True)
class Site:
    """A site: what all its pages have in common, and the items they are about."""

    name: str
    title: str
    lang: str
    menu: tuple[str, ...]
    sidebar: tuple[str, ...]
    footer: tuple[str, ...]
    cookie: str
    labels: tuple[str, str, str, str, str]  # home, related, reviews, printed on, accept
    counters: tuple[str, ...]  # with {n} {few} {when}; the first half stands above the text
    sentences: tuple[str, ...]  # that may be added to a page
    reviews: tuple[str, ...]
    dates: tuple[str, str]  # two formats, with {y} {m} {d} {mm} {dd} {month}
    markup: Markup
    restyled: Markup
    items: list[Item]
    months: tuple[str, ...] = (
        *("January", "February", "March", "April", "May", "June", "July"),
        *("August", "September", "October", "November", "December"),
    )

    def dated(self, text: str, style: int) -> str:
        """``text`` with its dates in the first or second format of the site."""

        def written(found: re.Match[str]) -> str:
            year, month, day = (int(part) for part in found.groups())
            return self.dates[style].format(
                y=year,
                m=month,
                d=day,
                mm=f"{month:02}",
                dd=f"{day:02}",
                month=self.months[month - 1],
            )

        return _DATE.sub(written, text)


@dataclass(frozen=True)
class Page:
    """A page of a set, with its labels."""

    set: str
    id: str
    path: str
    url: str
    html: str
    gold: str
    group: str
    sibling_group: str
    kind: str
    lang: str
    title: str
    same_as: str = field(default="", repr=False)


# --- Pages: items in a template, and their duplicates ------------------------------------------


@dataclass
class _Plan:
    """What one page will be."""

    item: Item
    kind: str
    seed: str
    id: str = ""


def _plans(site: Site) -> list[_Plan]:
    """One original for every item and the duplicates, in the order of the crawl."""
    draw = Draw(site.name, "plan")
    names = [(item.family, item.name) for item in site.items]
    assert len(set(names)) == len(names), Counter(names).most_common(1)
    plans = [_Plan(item, "original", f"{site.name}/{item.name}") for item in site.items]
    copies: Counter[str] = Counter()
    # The kinds that few items allow choose first.
    for kind in sorted(KINDS, key=lambda kind: kind in THIN_KINDS):
        allowed = [
            item
            for item in site.items
            if (not item.thin or kind in THIN_KINDS) and (kind != "dates" or "@" in item.body)
        ]
        for item in draw.shuffled(allowed):
            # Half of all copies go to items that have one already: groups of two, three and four.
            if copies[item.name] < draw.pick((1, 1, 2, MOST_COPIES)):
                copies[item.name] += 1
                plans.append(_Plan(item, kind, f"{site.name}/{item.name}/{kind}"))
                if sum(plan.kind == kind for plan in plans) == COPIES:
                    break
    plans = draw.shuffled(plans)
    for number, plan in enumerate(plans, 1):
        plan.id = f"{site.name}-{number:03}"
    return plans


#: Characters that Chinese writers mix up.
_ZH_TYPOS = (("的", "得"), ("在", "再"), ("和", "合"))


def _misspelt(blocks: list[Block], common: set[str], draw: Draw) -> list[Block]:
    """Swap two letters of a word that all siblings share: not of a name, number or colour."""
    for index in draw.shuffled(range(len(blocks))):
        block = blocks[index]
        row = draw.pick(block.rows)
        text = row[-1]
        if block.kind in ("head", "code") or len(text) < 40:
            continue
        if _CJK.search(text):
            found = [(right, wrong) for right, wrong in _ZH_TYPOS if right in text]
        else:
            words = [w for w in re.findall(r"\b[a-zäöüß]{6,}\b", text) if w in common]
            at = draw.between(1, 3)
            found = [(w, w[:at] + w[at + 1] + w[at] + w[at + 2 :]) for w in words]
        for right, wrong in draw.shuffled(found):
            if right != wrong:
                changed = (*row[:-1], text.replace(right, wrong, 1))
                rows = tuple(changed if each is row else each for each in block.rows)
                return [*blocks[:index], Block(block.kind, rows), *blocks[index + 1 :]]
    raise ValueError("no word to misspell")


def _extended(blocks: list[Block], sentence: str, draw: Draw) -> list[Block]:
    """``sentence`` behind one of the paragraphs."""
    index = draw.pick([i for i, b in enumerate(blocks) if b.kind == "text"])
    space = "" if _CJK.search(sentence) else " "
    row = (blocks[index].text + space + sentence,)
    return [*blocks[:index], Block("text", (row,)), *blocks[index + 1 :]]


def _tag(name: str, cls: str, inner: str) -> str:
    return f'<{name} class="{cls}">{inner}</{name}>' if cls else f"<{name}>{inner}</{name}>"


def _facts(markup: Markup, block: Block) -> str:
    cls, rows = markup.prefix, [[html.escape(cell, False) for cell in r] for r in block.rows]
    if markup.facts == "table":
        inner = "\n".join(
            f'<tr><th scope="row">{row[0]}</th>{"".join(f"<td>{c}</td>" for c in row[1:])}</tr>'
            for row in rows
        )
        return f'<table class="{cls}specs"><tbody>\n{inner}\n</tbody></table>'
    if markup.facts == "dl":
        inner = "\n".join(f"<dt>{row[0]}</dt><dd>{' '.join(row[1:])}</dd>" for row in rows)
        return f'<dl class="{cls}data">\n{inner}\n</dl>'
    if markup.facts == "ul":
        inner = "\n".join(f"<li><strong>{row[0]}</strong> {' '.join(row[1:])}</li>" for row in rows)
        return f'<ul class="{cls}facts">\n{inner}\n</ul>'
    return "\n".join(
        f'<div class="{cls}row"><span class="{cls}label">{row[0]}</span> '
        f'<span class="{cls}value">{" ".join(row[1:])}</span></div>'
        for row in rows
    )


def _content(markup: Markup, blocks: list[Block]) -> str:
    """The main text in the markup of one template."""
    parts, cls = [], markup.prefix
    for block in blocks:
        text = html.escape(block.text, False)
        if block.kind == "head":
            heading = _tag("div", f"{cls}headline", f"<b>{text}</b>")
            parts.append(heading if markup.text == "br" else f"<h2>{text}</h2>")
        elif block.kind == "list":
            inner = "".join(f"<li>{html.escape(row[0], False)}</li>\n" for row in block.rows)
            parts.append(_tag("ul", f"{cls}list", "\n" + inner))
        elif block.kind == "facts":
            parts.append(_facts(markup, block))
        elif block.kind == "code" and markup.code == "table":
            numbers = "\n".join(str(number) for number, _ in enumerate(block.rows, 1))
            parts.append(
                f'<table class="{cls}code"><tr><td class="gutter"><pre>{numbers}</pre></td>'
                f'<td class="code"><pre>{text}</pre></td></tr></table>'
            )
        elif block.kind == "code":
            parts.append(f"<pre><code>{text}</code></pre>")
        elif markup.text == "br":
            parts.append(f"{text}<br><br>")
        else:
            parts.append(_tag(markup.text, f"{cls}text" if markup.text == "div" else "", text))
    return "\n".join(parts)


def _slug(name: str) -> str:
    words = re.findall(r"[a-z0-9]+", name.lower())
    return "-".join(words) or quote(name)


@dataclass
class _Look:
    """The parts of a page that its duplicates may change."""

    crumbs: str
    above: list[str]
    below: list[str]
    menu: list[str]
    side: list[str]
    related: str
    footer: list[str]
    main: str
    heading: str


def _shell(site: Site, markup: Markup, look: _Look) -> str:
    """Put the main text into the page: header, menu, breadcrumb, sidebar, footer, cookie notice."""
    cls, site_title = markup.prefix, html.escape(site.title, False)
    menu = "".join(f"<li>{link}</li>" for link in look.menu)
    notes = [_tag("p", f"{cls}meta", line) for line in look.above]
    ends = [_tag("p", f"{cls}meta", line) for line in look.below]
    story = "\n".join([*notes, look.main, *ends])
    cookie = (
        f'<div id="{cls}cookie-notice" class="cookie" role="dialog">{site.cookie} '
        f"<button>{site.labels[4]}</button></div>"
    )
    heading = f"<h1>{look.heading}</h1>"
    if markup.shell == "semantic":
        body = f"""<header class="{cls}header"><a href="/">{site_title}</a>
<nav><ul>{menu}</ul></nav></header>
<nav class="{cls}breadcrumb" aria-label="breadcrumb">{look.crumbs}</nav>
<main><article>
{heading}
{story}
</article>
<aside class="{cls}side">{"".join(f"<p>{line}</p>" for line in look.side)}</aside>
<section class="{cls}related"><h2>{site.labels[1]}</h2>{look.related}</section></main>
<footer>{"".join(f"<p>{line}</p>" for line in look.footer)}</footer>
{cookie}"""
    elif markup.shell == "soup":
        body = f"""<div id="wrap"><div class="{cls}top"><div class="{cls}logo">{site_title}</div>
<div class="{cls}menu"><ul>{menu}</ul></div></div>
<div class="{cls}crumbs">{look.crumbs}</div>
<div class="{cls}left">{"".join(_tag("div", f"{cls}box", line) for line in look.side)}</div>
<div class="{cls}content">
{heading}
<div class="{cls}inner">
{story}
</div>
<div class="{cls}more"><div class="{cls}boxtitle">{site.labels[1]}</div>{look.related}</div>
</div>
<div class="{cls}foot">{"".join(f"<div>{line}</div>" for line in look.footer)}</div></div>
{cookie}"""
    else:
        cells = "".join(f"<td>{link}</td>" for link in look.menu)
        body = f"""{cookie}
<table width="100%" cellpadding="2"><tr><td colspan="9">{site_title}</td></tr><tr>{cells}</tr></table>
<table width="100%"><tr><td width="20%" valign="top">{"<br>".join(look.side)}<hr>
<b>{site.labels[1]}</b>{look.related}</td>
<td valign="top"><small>{look.crumbs}</small>
{heading}
{story}
</td></tr></table>
<hr><center><small>{" | ".join(look.footer)}</small></center>"""
    return body


def _render(site: Site, plan: _Plan, links: dict[str, str], common: set[str]) -> tuple[str, str]:
    """The HTML of a page, and its main text."""
    item, kind = plan.item, plan.kind
    everything = kind == "combined"
    base, draw = Draw(site.name, item.name), Draw(plan.seed)
    blocks = parse(item.body)
    if kind == "typo":
        blocks = _misspelt(blocks, common, draw)
    elif kind == "sentence":
        blocks = _extended(blocks, draw.pick(site.sentences), draw)
    if kind == "review":
        blocks += [
            Block("head", ((site.labels[2],),)),
            Block("text", ((draw.pick(site.reviews),),)),
        ]
    style = 1 if kind == "dates" else 0
    blocks = [
        Block(b.kind, tuple(tuple(site.dated(c, style) for c in row) for row in b.rows))
        for b in blocks
    ]
    query = ""
    if kind == "session" or everything:
        token = "".join(draw.pick("0123456789abcdef") for _ in range(16))
        query = draw.pick((f"?sid={token}", f"?utm_source=letter&amp;utm_campaign={token[:6]}"))

    def link(text: str, target: str = "") -> str:
        return (
            f'<a href="{target or "/" + _slug(text) + "/"}{query}">{html.escape(text, False)}</a>'
        )

    menu = list(site.menu)
    side = list(site.sidebar)
    if kind == "menu" or everything:
        menu, side = draw.shuffled(menu), side[::-1]
    way = (site.labels[0], item.ways[1 if kind == "breadcrumb" or everything else 0])
    count = draw if kind == "counters" or everything else base
    day = date(2026, 1, 1) + timedelta(days=count.between(0, 320))
    when = site.dated(mark(day), style) + f" {count.between(0, 23):02}:{count.between(0, 59):02}"
    notes = [
        text.format(n=count.between(11, 4800), few=count.between(2, 19), when=when)
        for text in site.counters
    ]
    half = len(notes) // 2
    year = 2026 if count is base else 2027
    names = [other.name for other in site.items if other.family == item.family]
    near = (draw if everything else base).some([n for n in names if n != item.name], 5)
    related = "".join(f"<li>{link(name, links[name])}</li>" for name in near)
    markup = site.restyled if kind == "restyled" else site.markup
    name = html.escape(item.name, False)
    brand = html.escape(site.title, False)
    title = f"{name} – {brand}" if markup.title_first else f"{brand} | {name}"
    main = _content(markup, blocks)
    gold = "\n".join([item.name, *(block.text for block in blocks)])
    if kind == "print":
        printed = site.dated(mark(day), 0)
        body = (
            f"<p>{brand}</p>\n<h1>{name}</h1>\n{main}\n<hr>\n"
            f"<p>{site.labels[3]} {printed} · https://{site.name}.example/{links[item.name]}</p>"
        )
    else:
        look = _Look(
            crumbs=" › ".join([*(link(step) for step in way), name]),
            above=notes[:half],
            below=notes[half:],
            menu=[link(entry) for entry in menu],
            side=side,
            related=f"<ul>{related}</ul>",
            footer=[*site.footer, f"© {year} {brand}"],
            main=main,
            heading=name,
        )
        body = _shell(site, markup, look)
    return (
        f'<!DOCTYPE html>\n<html lang="{site.lang}">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{title}</title>\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<link rel="stylesheet" href="/css/{markup.prefix or "main-"}site.css">\n</head>\n'
        f"<body>\n{body}\n</body>\n</html>\n"
    ), gold


_QUERIES = {
    "session": "?sid=7f3a",
    "print": "?print=1",
    "breadcrumb": "?from=offers",
    "restyled": "?theme=new",
    "combined": "?sid=91c0&view=list",
}


def site_pages(site: Site) -> Iterator[Page]:
    """The pages of one site, in the order of the crawl."""
    plans = _plans(site)
    links = {plan.item.name: f"{plan.id}.html" for plan in plans if plan.kind == "original"}
    common: dict[str, set[str]] = {}
    for item in site.items:
        words = set(_WORD.findall(item.body))
        common[item.family] = common.get(item.family, words) & words
    numbers = {item.name: number for number, item in enumerate(site.items, 1)}
    for plan in plans:
        item = plan.item
        text, gold = _render(site, plan, links, common[item.family])
        query = _QUERIES.get(plan.kind, "" if plan.kind == "original" else f"?v={plan.kind}")
        yield Page(
            set=site.name,
            id=plan.id,
            path=f"site/{plan.id}.html",
            url=f"https://{site.name}.example/{_slug(item.name)}-{numbers[item.name]}{query}",
            html=text,
            gold=gold,
            group=f"{site.name}/{item.family}/{numbers[item.name]}",
            sibling_group=f"{site.name}/{item.family}",
            kind=plan.kind,
            lang=site.lang,
            title=item.name,
            same_as=item.same_as,
        )


def pages(*names: str) -> Iterator[Page]:
    """All pages of the sets ``names`` (default: of all sets)."""
    for name in names or SETS:
        yield from site_pages(SETS[name]())


# --- Labels, files and the command ---------------------------------------------------------------


def label(a: Page, b: Page) -> int | None:
    """1: two pages of one item; 0: siblings; None: grey. For pages of one sibling group."""
    if a.group == b.group:
        return 1
    return None if a.same_as and a.same_as == b.same_as else 0


def labelled(of: Iterable[Page]) -> Iterator[tuple[Page, Page, int | None]]:
    """All pairs of pages within the sibling groups of one set, the smaller id first."""
    members: dict[str, list[Page]] = defaultdict(list)
    for page in of:
        members[page.sibling_group].append(page)
    for group in members.values():
        for a, b in combinations(sorted(group, key=lambda page: page.id), 2):
            yield a, b, label(a, b)


def shingles(text: str, size: int = 8) -> set[tuple[str, ...]]:
    """The token shingles of ``text``: words, and single characters of Chinese."""
    tokens: list[str] = []
    for word in _WORD.findall(text.lower()):
        tokens.extend(word) if _CJK.search(word) else tokens.append(word)
    return {tuple(tokens[at : at + size]) for at in range(max(1, len(tokens) - size + 1))}


def jaccard(a: set[tuple[str, ...]], b: set[tuple[str, ...]]) -> float:
    union = len(a | b)
    return len(a & b) / union if union else 0.0


def write(of: list[Page], folder: Path) -> list[tuple[Page, Page, int | None, float]]:
    """Write one set into ``folder``; returns its pairs with their 8-shingle Jaccard."""
    (folder / "site").mkdir(parents=True, exist_ok=True)
    cut = {page.id: shingles(page.gold) for page in of}
    pairs = [(a, b, lab, jaccard(cut[a.id], cut[b.id])) for a, b, lab in labelled(of)]
    docs = [
        {
            "id": page.id,
            "path": page.path,
            "url": page.url,
            "lang": page.lang,
            "charset_declared": "utf-8",
            "charset_used": "utf-8",
            "title": page.title,
            "kind": page.kind,
            "group": page.group,
            "sibling_group": page.sibling_group,
        }
        for page in of
    ]
    gold = [{"id": page.id, "text": page.gold} for page in of]
    rows = [{"a": a.id, "b": b.id, "jaccard8": round(j, 4), "label": lab} for a, b, lab, j in pairs]
    for name, records in (("docs", docs), ("gold", gold), ("pairs", rows)):
        lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        (folder / f"{name}.jsonl").write_bytes(lines.encode())
    for page in of:
        (folder / page.path).write_bytes(page.html.encode())
    return pairs


def histogram(values: Iterable[float]) -> str:
    """Counts in steps: below 0.4, in tenths to 0.9, in hundredths of two above."""
    edges = (0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.925, 0.95, 0.975)
    counts = Counter(sum(value >= edge for edge in edges) for value in values)
    names = [f"<{edges[0]:g}", *(f"{edge:g}+" for edge in edges)]
    return "  ".join(f"{name}:{counts[at]}" for at, name in enumerate(names))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for the sets")
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(SETS)}")
    options = parser.parse_args(arguments)
    unknown = set(options.sets) - set(SETS)
    if unknown:
        parser.error(f"no set {', '.join(sorted(unknown))}; there are {', '.join(SETS)}")
    print("8-shingle Jaccard of main texts: originals of different items, then pages of one item")
    for name in options.sets or SETS:
        of = list(pages(name))
        pairs = write(of, options.out / name)
        copies = sum(page.kind != "original" for page in of)
        labels = Counter(lab for _, _, lab, _ in pairs)
        print(
            f"{name}: {len(of)} pages ({copies} copies), pairs: {labels[1]} duplicates, "
            f"{labels[0]} siblings, {labels[None]} grey"
        )
        first = [p for p in pairs if p[2] == 0 and p[0].kind == p[1].kind == "original"]
        print(f"  siblings    {histogram(j for *_, j in first)}")
        print(f"  duplicates  {histogram(j for _, _, lab, j in pairs if lab == 1)}")
    return 0


# --- The sets ------------------------------------------------------------------------------------

_COOKIE = "We use cookies to keep your basket and to count visits. You can change this at any time."


_CARE = """
# Care and repair

Dust the shade with a dry brush, never with water, and let it cool first. If a joint has become
loose after some years, take off the cap with the shorter end of the key, put in a new washer, and turn
the screw until the arm stays up by itself. It takes five minutes and no skill. The dimmer is held by
two clips; squeeze them together and pull it out downwards, but draw the plug before. Bulbs of
all makes fit as long as they can be dimmed; those that cannot will flicker, which harms neither them
nor the lamp. In damp rooms it should not be used. Scratches in the coating can be touched up with
the little bottle that lies under the foam in the box, and which most people throw away: we send
you another one. If you no longer want the lamp, bring it back to us. We take it apart, put it in order
and sell it a second time with a note on who has owned it before, if you wish so.

# Who makes it

The tubes are bent in a workshop of eleven people that used to make handlebars, and they say that
it is the same thing only smaller. Turned parts come from a village where every other family has a
lathe. The lamps are put together by hand in our own yard, and each is lit for one night before it
is packed. Whoever has assembled a lamp signs the card that comes with it.
"""

_SHIPPING = """
# Delivery and returns

Orders that reach us before noon on a working day leave our warehouse the same afternoon. Parcels
arrive within two to three working days, to islands and mountain villages within five. Delivery
is free from 60 euros; below that we charge 4.90 euros, whatever the weight. You may send back
anything you do not like within thirty days, as long as it is unused and in its own box. Print the
label from your account, stick it over the old one, and hand the parcel in at any post counter.
We pay you back the full price within a week, in the way you paid. If something arrives broken,
send a photo instead of the parcel: we replace it without further questions.
"""


def shop() -> Site:
    """Products of a household shop; variants by colour or by size and count are siblings."""
    draw = Draw("shop", "items")
    items = []
    colours = (
        "black",
        "white",
        "silver",
        "copper",
        "moss",
        "navy",
        "sand",
        "plum",
        "cream",
        "slate",
        "coral",
        "mint",
    )
    for colour in colours:
        body = f"""
        A lamp that stays where you put it. The two joints of the Orla are braked by felt washers
        rather than springs, so the arm does not creep down in the course of the evening, and there
        is nothing that squeaks. The head turns all the way round and throws its light on the desk
        or against the wall behind it. A dimmer sits in the foot, where your hand finds it without
        looking; the lamp remembers the last setting when it is switched off.

        The arm is drawn from a single steel tube, bent cold and coated twice. The foot weighs
        almost three kilograms and has a cork sole, so that it neither tips nor scratches. The cable
        is covered with cotton and long enough for a socket behind a cupboard. All parts can be
        changed with the key that comes with it, and we keep spare parts for at least ten years.

        Colour :: {colour}
        Article number :: OR-54, in the colour above
        Price :: 89.00 euros
        Height :: 54 cm
        Bulb :: E27, up to 11 watts, not included
        In our range since :: @2024-09-02@
        {_CARE}
        {_SHIPPING}"""
        items.append(_item("lamp", f"Orla desk lamp, {colour}", body, "Lighting", "Home office"))
    sizes = [(length, count) for length in (30, 40, 50, 60) for count in (50, 100, 250)]
    for length, count in sizes:
        body = f"""
        Wood screws with a countersunk head and a thread that cuts its own way. The tip has a notch
        that takes up the chips, so thin boards do not split even near the edge, and in soft wood
        you need not drill first. The yellow coating is free of chromium and keeps the screws from
        rusting in damp cellars; for use outdoors take the stainless ones. A bit that fits is in
        every box. The boxes are made of card and can be stacked, and the size is printed on the
        narrow side, where you see it on the shelf.

        Length :: {length} mm
        Contents :: {count} pieces
        Price :: {0.02 * count + length * count / 4000:.2f} euros
        Article number :: WS{length}{count}
        Diameter :: 4 mm
        Drive :: star, size 20
        Listed :: @2023-03-14@
        {_SHIPPING}"""
        name = f"Wood screws 4 x {length} mm, {count} pieces"
        items.append(_item("screws", name, body, "Hardware", "Offers of the week"))
    own = (
        "The spout is bent like a swan's neck, for those who pour coffee by hand.",
        "A small window at the back shows how much water is left.",
        "The handle folds flat, so that the kettle fits into a drawer.",
        "It whistles in two notes, a third apart, and stops as soon as you lift it.",
        "The inside is enamelled white and shows lime before you taste it.",
        "The lid comes off entirely for cleaning and clicks back into place.",
        "Its broad bottom takes heat quickly even from a small flame.",
        "A thermometer in the lid is marked for green tea, white tea and coffee.",
        "The base has a drawer for the cable, and the plug parks in it.",
        "With its second wall it keeps water hot for an hour.",
    )
    for model in (
        "Brisa",
        "Calda",
        "Delmo",
        "Fento",
        "Gilda",
        "Hesper",
        "Ilmar",
        "Jarno",
        "Kelda",
        "Lomax",
        "Merrin",
    ):
        extra = " ".join(draw.some(own, draw.between(0, 4)))
        code = f"{model[:2].upper()}{draw.between(100, 990)}"
        litres = f"{draw.between(9, 24) / 10:.1f}"
        body = f"""
        The {model} boils water for a pot of tea in about four minutes. It is made of steel that
        does not taste, and it has no plastic on the inside. {extra} The handle stays cool, the foot
        does not slide, and it switches itself off when it is lifted empty. We have tested the
        {model} for a winter in our own kitchen, with hard water, and descaled it once a month
        with vinegar. It came out as it went in.

        Model :: {code}
        Capacity :: {litres} litres
        Power :: {draw.between(14, 30) * 100} watts
        Weight :: {draw.between(700, 1500)} g
        Price :: {draw.between(29, 119)}.90 euros
        In our range since :: {draw.day(2025)}
        {_SHIPPING}"""
        items.append(_item("kettle", f"Kettle {model} {code}", body, "Kitchen", "Gifts"))
    for model in (
        "Alder",
        "Birch",
        "Cedar",
        "Dogwood",
        "Elm",
        "Fir",
        "Gorse",
        "Hazel",
        "Ivy",
        "Juniper",
        "Larch",
    ):
        volume, price = draw.between(16, 55), draw.between(69, 189)
        pockets = draw.pick(("two", "three", "four", "five"))
        body = f"""
        The {model} is a rucksack for long days. It holds {volume} litres, in one large
        compartment and {pockets} pockets, and rides close to the back without touching it: a net
        keeps air in between. You can load the {model} from the top or through the long zip at the
        front. The straps are padded where they need to be, and the hip belt comes off in town.

        The cloth is woven from recycled yarn and waxed by hand; it darkens with the years.
        If a seam of your {model} opens, send it in and our tailor closes it for nothing, however
        old it is. A rain cover is in the bottom pocket. At {price} euros it is not cheap, but
        it is the last one you need to buy.

        Volume :: {volume} litres
        Weight :: {draw.between(620, 1600)} g
        Price :: {price}.00 euros
        Article number :: {draw.digits(6)}
        New since :: {draw.day(2026)}
        {_SHIPPING}"""
        items.append(_item("rucksack", f"Rucksack {model} {volume}", body, "Outdoor", "Travel"))
    return Site(
        name="shop",
        title="Hollin & Daughter",
        lang="en",
        menu=("Kitchen", "Lighting", "Hardware", "Outdoor", "Garden", "Gifts", "Sale", "Contact"),
        sidebar=(
            "Our shop in the old tannery is open from Tuesday to Saturday.",
            "Subscribe to our letter: four times a year, no more.",
            "Vouchers from ten euros can be printed at home.",
        ),
        footer=("Terms and conditions", "Privacy", "All prices include value-added tax."),
        cookie=_COOKIE,
        labels=("Home", "You may also like", "What customers say", "Printed on", "Fine"),
        counters=(
            "Viewed {n} times",
            "{few} people are looking at this right now",
            "Only {few} left in stock",
            "Last updated {when}",
        ),
        sentences=(
            "A short film on our site shows how it is made.",
            "On request we wrap it as a present and put a card of your choice in the box.",
            "The guarantee is three years and needs no paper other than the invoice.",
        ),
        reviews=(
            (
                "Four stars. Came quickly and well packed, and does what it says. My neighbour has "
                "ordered the same one after she saw mine. Beate K."
            ),
            (
                "Five stars. I was not sure at first, but after half a year I would buy it again. "
                "One star less for the box, one more for the friendly note in it. Tomas"
            ),
            "Three stars. Good quality, but the parcel was left in the rain. Nothing broken. R. O.",
        ),
        dates=("{d} {month} {y}", "{y}-{mm}-{dd}"),
        markup=Markup("semantic", "table", prefix="hd-"),
        restyled=Markup("semantic", "ul", text="div", prefix="shop2-", title_first=False),
        items=items,
    )


def _item(
    family: str,
    name: str,
    body: str,
    way: str,
    other: str,
    *,
    same_as: str = "",
    thin: bool = False,
) -> Item:
    return Item(family, name, body, (way, other), thin, same_as)


_TENANCY = """
# Good to know

Roof & Key looks after houses, not only after contracts. A key that is lost, a tap that drips, a
neighbour who practises the trombone: there is one number for all of it, and somebody who picks up.
Rents are raised at most every two years and never by more than the index. Deposits lie in an account
of their own and bear interest. When you move out we look at the rooms together and write down what
we see; you get a copy on the spot and your deposit within two months. Walls may be painted in any
colour as long as they are white again at the end. Bicycles, prams and walking frames have a place on
the ground floor. Music is welcome until ten. Whoever wants to keep a dog asks first, whoever keeps
bees asks everybody. Please tell us early if the rent is difficult for a while: we have always found
a way so far.
"""


def flats() -> Site:
    """Ads for flats in two buildings: in the first only figures, floor and side differ."""
    draw = Draw("flats", "items")
    items = []
    floors = ("ground", "first", "second", "third", "fourth", "fifth", "sixth")
    sides = (("left", 3, 74), ("right", 3, 71), ("middle", 1, 34))
    for at, floor in enumerate(floors):
        for side, rooms, size in sides:
            # All flats of one side have one plan; the rent rises every other floor.
            rent = size * 12 + at // 2 * 15
            body = f"""
            Flat on the {floor} floor, {side}, of a house of seven storeys built in 1968 and
            renovated from the cellar to the roof four years ago. The flat has a fitted kitchen, a
            bathroom with a shower, built-in cupboards in the hall, and a cellar compartment. The
            floors are oiled oak, the windows have three panes. Heating and hot water come from
            the district network, the meters are read by radio.

            Rooms :: {rooms}
            Size :: {size} m²
            Rent :: {rent} euros a month
            Heating and water :: {size * 3} euros a month
            Deposit :: {rent * 3} euros
            Free from :: @2026-0{draw.pick("468")}-01@
            Reference :: KS14-{draw.digits(4)}

            # The house

            Two lifts stop on every floor, and one of them reaches the garage. In the yard there are
            bicycle racks under a roof, a sandpit, and a plane tree with a bench around it. A
            caretaker lives in the house and takes in parcels. Tram and bus stop in front of the
            door and need nine minutes to the main station; two supermarkets, a school and a
            chemist are in the next street.

            # How to apply

            Please write to us with the reference above, the number of people who will move in,
            and two dates that suit you for a visit. We show the flat in small groups. Bring proof
            of income for the last three months; you get an answer within a week. There is no fee
            for you, neither for the visit nor for the contract.
            {_TENANCY}"""
            name = f"Flat to let, {floor} floor {side}, {rooms} rooms, {size} m²"
            items.append(_item("tower", name, body, "To let", "Kranich Street 14"))
    own = (
        "The large room looks east, over the allotments to the hills.",
        "The balcony gets the sun from noon and has room for a table and four chairs.",
        "The kitchen was put in last spring and has never been used since.",
        "A second lavatory next to the entrance is a blessing with children.",
        "The bath has a window, a tub and a place for the washing machine.",
        "Behind the bedroom there is a small chamber that the last tenant used as a study.",
        "From the hall a ladder leads to the attic, where you can dry your washing.",
        "The stove in the living room works and was swept in autumn.",
        "Stucco and double doors have survived all the wars and all the painters.",
        "On clear days you see the snow on the Arnstock from the bathtub.",
    )
    for number in range(1, 25):
        rooms, size = draw.between(2, 4), draw.pick((48, 64, 64, 82, 82, 110))
        price = size * draw.pick((32, 36, 40)) * 100
        extra = " ".join(draw.some(own, draw.between(0, 3)))
        body = f"""
        For sale: flat number {number} in the former button factory on the canal. The building was
        put up in 1894, of brick and cast iron, and is listed. Over the last two years it has been
        divided into twenty-four flats, no two of them alike. {extra} All flats have ceilings of
        more than three metres, underfloor heating, and a share in the roof garden.

        Flat :: {number}
        Rooms :: {rooms}
        Living space :: {size} m²
        Price :: {price} euros
        Service charge :: {size * 4} euros a month
        Parking space :: {draw.pick(("yes", "no", "on request"))}
        Ready :: {draw.pick(("@2027-04-01@", "@2027-09-15@"))}

        The buyer pays land tax and notary; there is no commission. We show the flats every
        Saturday from ten to one, without appointment, at the gate on the towpath. Drawings and the
        declaration of division can be read there, or are sent by mail. The energy certificate gives
        71 kilowatt-hours per square metre and year, class B. The works are supervised by an
        engineer whom the buyers choose, and the last instalment is due when she has signed. Until
        then a bank vouches for what has been paid. Changes to the plan are possible as long as the
        walls are open: sockets, tiles, and the place of doors that carry no load. A model of the
        house stands in the porter's lodge, where you will also find samples of the floors.
        {_TENANCY}"""
        name = f"Button factory, flat {number}: {rooms} rooms on the canal"
        items.append(_item("factory", name, body, "For sale", "Button factory"))
    return Site(
        name="flats",
        title="Roof & Key",
        lang="en",
        menu=("To let", "For sale", "Houses", "Offices", "Garages", "Valuation", "About us"),
        sidebar=(
            "You want to sell? Ask us what your flat is worth, for nothing.",
            "Search profile: tell us what you look for and we write when it comes in.",
            "Our office: Mill Lane 3, Monday to Friday, nine to five.",
        ),
        footer=("Imprint", "Privacy", "All details come from the owners, without guarantee."),
        cookie="This site stores what you have put on your list. Nothing is passed on.",
        labels=("Home", "More in this building", "Comments", "Exposé printed on", "Agree"),
        counters=(
            "This ad was opened {n} times.",
            "{few} people have put it on their list.",
            "{few} inquiries today.",
            "Ad changed: {when}",
        ),
        sentences=(
            "Pets are welcome after a word with the neighbours.",
            "A plan of the rooms can be downloaded below.",
            "Fibre is in the house and can be ordered from any provider.",
        ),
        reviews=(
            (
                "We have lived in this house for eight years and can only recommend it: quiet, "
                "friendly, and repairs are done within days. The tram can be heard in summer."
            ),
            (
                "The visit was well organised, and all our questions were answered. In the end it was "
                "too small for us, but we shall look at the next one. Family A."
            ),
        ),
        dates=("{dd}.{mm}.{y}", "{d} {month} {y}"),
        markup=Markup("soup", "divs", text="div", prefix="rk-"),
        restyled=Markup("semantic", "dl", prefix="expose-", title_first=False),
        items=items,
    )


def jobs() -> Site:
    """Job ads of two employers; one job in two towns is grey."""
    draw = Draw("jobs", "items")
    items = []
    towns = ("Ostholm", "Lindau-West", "Marburg-Nord", "Karlsund", "Velden", "Ahrbeck", "Steinach")
    roles = {
        "Dispatcher": (
            "You plan the tours of thirty vans and keep the drivers informed by radio.",
            "You answer customers who want to know where their goods are.",
            "You know the region's roads and its bridges that are too low.",
        ),
        "Electrician": (
            "You wire switch cabinets from drawings and test them.",
            "You look after conveyor belts, gates and lighting in our halls.",
            "You have finished an apprenticeship and may work on live parts.",
        ),
        "Warehouse clerk": (
            "You receive goods, check them against the note and book them in.",
            "You drive a forklift, or are ready to learn it with us.",
            "You count one aisle a week and find out why a figure is wrong.",
        ),
        "Accountant": (
            "You post incoming invoices and prepare the monthly closing.",
            "You talk to suppliers when a reminder comes too early.",
            "You are at home in a spreadsheet and patient with receipts.",
        ),
        "Van driver": (
            "You deliver to shops in the early morning and are home by two.",
            "You load your van yourself and keep it clean.",
            "You have held a driving licence for at least two years.",
        ),
        "Software tester": (
            "You think of what users will do wrong, and write it down as a test.",
            "You run the tests of our tour planner before each release.",
            "You have a feeling for what developers want to read in a report.",
        ),
    }
    frame = """
    Brandt Haulage moves parcels and pallets for four thousand shops between the coast and the
    mountains. We are a family business in the third generation, with 640 people at seven places,
    and we are looking for you as {role} ({hours}) in {town}.

    # What you do

    {tasks}

    # What we offer

    - A permanent contract from the first day, with a trial period of three months
    - Thirty days of leave, and the days around New Year on top
    - Pay according to the agreement of the trade, with a thirteenth month
    - A ticket for bus and train, or a bicycle on lease
    - Training in working hours, and an exam fee that we pay
    - Coffee, fruit, and a canteen whose cook used to run a restaurant of her own

    # How to apply

    Send us a few lines and your curriculum vitae; we need neither a photo nor a covering letter of
    two pages. Write the number {number} in the subject line and tell us when you could start; we
    should like to fill the post by {start}. We answer within ten days and invite you to a
    conversation and a day of trial work. Ms Ilse Brandt answers questions on the telephone between
    eight and four. We are glad of applications from people of any age, origin and sex; people with a
    disability are preferred where they are equally qualified.

    # A day at Brandt

    The first vans are loaded at four, the last letter is franked at seven in the evening, and in
    between nobody eats at a desk. We say first names to each other, the boss included. What goes
    wrong is put on a board in the hall, without names, and talked about on Friday. Two of our seven
    places make their own electricity, and a third of the vans run on it. In the summer there is a
    race with pallet trucks, which accounts usually wins. Children may come along when school is
    closed. Those who have been with us for ten years get a month off, and those who leave get a
    party. We keep your documents for six months and then delete them; the details are in our notice
    on data protection, which can be read on the page of the company and at every gate.
    """
    starts = ("@2026-04-01@", "@2026-07-01@", "@2026-10-15@")
    hours = ("full time", "part time, early shift", "part time, late shift")
    for role, tasks in roles.items():
        town = draw.pick(towns)
        for work in draw.some(hours, draw.between(1, 3)):
            number, start = f"BH-{draw.digits(4)}", draw.pick(starts)
            text = "\n".join(f"- {task}" for task in tasks)
            slots = {"role": role, "hours": work, "number": number, "start": start}
            key = f"{role}/{work}"
            body = frame.format(town=town, tasks=text, **slots)
            name = f"{role} ({work}) in {town}"
            items.append(_item("brandt", name, body, "Transport", town, same_as=key))
            if work == "full time" or role == "Dispatcher":
                elsewhere = draw.pick([t for t in towns if t != town])
                body = frame.format(town=elsewhere, tasks=text, **slots)
                body += f"""
                Our place in {elsewhere} was opened last year and lies next to the railway station.
                """
                name = f"{role} ({work}) in {elsewhere}"
                items.append(_item("brandt", name, body, "Transport", elsewhere, same_as=key))
    wards = (
        ("Surgical ward", "After an operation you watch over people until they can stand again."),
        ("Children's ward", "You dress wounds, read stories, and calm parents."),
        ("Intensive care", "You keep two beds in view, and every alarm means something."),
        ("Maternity ward", "You help with the first bath and the first night."),
        ("Dialysis", "You connect twelve patients each morning and know all of them."),
        ("Emergency room", "You decide who must be seen at once and who can wait."),
        ("Geriatric ward", "You practise walking, dressing and patience."),
        ("Day clinic", "Your patients come at seven and go home at four."),
        ("Eye clinic", "You measure, you drip, you explain in a clear voice."),
        ("Home visits", "You drive to eight households a day in a small car."),
        ("Stroke unit", "You notice the drooping mouth before the doctor does."),
        ("Night team", "You step in wherever the bell rings most."),
    )
    for ward, sentence in wards:
        grade = draw.between(11, 16)
        start = draw.pick(starts)
        for percent in draw.some((50, 75, 100), 2):
            body = f"""
            The Saint Verena Hospital has 410 beds and serves the valley from the source to the
            lake. For our {ward.lower()} we are looking for a registered nurse at {percent} percent,
            to start on {start} or when you can.

            {sentence} You work in a team that has been together for a long time and laughs
            a lot. Rosters are made six weeks ahead and kept. You need a diploma that is recognised
            here, good German or French, and the readiness to work one weekend in three.

            Post number :: {draw.digits(5)}
            Percentage :: {percent} percent
            Pay grade :: {grade}
            Contact :: extension {grade}40

            We offer a day nursery on the grounds, rooms for staff with a view of the lake, four
            days of training a year, meals at a reduced price, and a wage for changing clothes: the
            ten minutes at the beginning and end of a shift count as work. Please apply through the
            form on this page. Documents on paper cannot be sent back. Applications through
            agencies are not taken into account.

            The hospital was founded by the villages of the valley and still belongs to them. It
            trains forty nurses a year, many of whom stay. The kitchen cooks for staff and patients
            alike, from what the farms around us deliver. There is a choir, a football team without
            ambition, and a hut in the mountains that can be booked by everyone who works here. New
            colleagues have a godmother or godfather for the first hundred days. After that we ask
            what we should do otherwise, and quite a number of things have been changed in this way.
            Those who come from abroad get a language course and help with the authorities.
            """
            name = f"Registered nurse, {ward.lower()}, {percent} %"
            items.append(_item("verena", name, body, "Health", "Saint Verena Hospital"))
    return Site(
        name="jobs",
        title="Valley Jobs",
        lang="en",
        menu=("Find a job", "Employers", "Apprenticeships", "Pay check", "For companies", "Help"),
        sidebar=(
            "Get new jobs by mail, once a day or once a week.",
            "Upload your curriculum vitae and be found.",
        ),
        footer=("Imprint", "Privacy", "Valley Jobs is a service of the valley's newspapers."),
        cookie=_COOKIE,
        labels=("Home", "Similar jobs", "Questions and answers", "Printed on", "Accept all"),
        counters=(
            "{n} people have seen this job",
            "{few} people have applied today",
            "Online since {when}",
        ),
        sentences=(
            "Those who like may look at the place of work before they apply.",
            "A talk with the works council is part of the first week.",
            "If you move here for the job, we help to find a flat.",
        ),
        reviews=(
            (
                "Is it possible to start two months later? Answer of the employer: yes, please write it "
                "in your application, and we shall find a way."
            ),
            (
                "I have worked here for three years and can say that the roster is really kept. The "
                "parking spaces are too few, so come by bicycle."
            ),
        ),
        dates=("{d} {month} {y}", "{dd}/{mm}/{y}"),
        markup=Markup("semantic", "ul", prefix="vj-"),
        restyled=Markup("soup", "table", text="div", prefix="job-", title_first=False),
        items=items,
    )


_VISITORS = """
# For visitors

Tickets can be bought in the box office, in all bookshops of the shires, and at home on your own
printer. They can be given back until three days before the date; after that you may pass them on.
If an event is cancelled you hear from us by mail and get your money without asking. Coats and
umbrellas are looked after for nothing. Telephones are switched off, cameras stay in their bags,
and sweets are unwrapped beforehand. People who need a seat near the aisle, a ramp, or a companion
who does not pay should tell us when they book. Trains and buses are listed in the timetable on our
page, and for the way home there is a board on which those who have a car and those who have
none find each other. Lost gloves are kept for a year.
"""


def events() -> Site:
    """One concert, one course and one walk, each at many dates and places."""
    draw = Draw("events", "items")
    items = []
    towns = (
        *("Aldmoor", "Bexley Green", "Corrin", "Dunmere", "Easting", "Farrow", "Glenby", "Harle"),
        *("Inverloch", "Jessop", "Kirkholm", "Lanrick", "Melby", "Norham", "Oxley", "Penrose"),
    )
    halls = ("Town Hall", "Corn Exchange", "Playhouse", "Grange", "Assembly Rooms", "Old Mill")
    for town in towns:
        hall, price = draw.pick(halls), draw.pick((24, 28, 32))
        when = draw.day(2026)
        body = f"""
        Date :: {when}
        Venue :: {hall}, {town}
        Doors :: {draw.pick(("18:30", "19:00", "19:30"))}
        Tickets :: {price} pounds

        The Threnody Quartet plays three string quartets that were written within twelve years and
        might come from three planets. The evening opens with a piece that its composer called a
        conversation in which nobody listens: four voices start one after another, interrupt each
        other, and fall silent at the same moment. The second quartet was lost for seventy years and
        came to light in a piano stool; its slow movement is among the quietest music that can
        still be heard. After the interval the players stand up, as they always do for the last
        piece, which begins in the dark and ends in a dance.

        The four musicians met at school and have played together for nineteen years. They live in
        four villages, rehearse in a barn, and play from parts that they have copied by hand. Their
        recordings have won prizes, which they keep in the barn as well. Before the concert there is
        a talk of half an hour, open to all who hold a ticket. The programme lasts about two hours
        with one interval. There is no admission after the beginning. Children under twelve pay
        half; school classes are asked to write to us beforehand. Returned tickets are sold at
        the door.
        {_VISITORS}"""
        name = f"Threnody Quartet: Lost and Found, {town}"
        items.append(_item("concert", name, body, "Music", town))
    rooms = ("Studio 1", "Studio 2", "the garden studio", "the cellar kiln")
    for number in range(1, 16):
        first = date(2026, 1, 12) + timedelta(days=21 * number)
        room, teacher = draw.pick(rooms), draw.pick(("Oda", "Milan", "Perpetua", "Joss"))
        body = f"""
        In this course you learn to throw a bowl on the wheel, to turn its foot, and to glaze it. No
        experience is needed. We start with cylinders, which are cut open so that you see how thick
        the wall has become, and nobody takes a pot home from the first evening. From the third
        evening on you keep what you like.

        Course :: {number}
        First evening :: {mark(first)}
        Last evening :: {mark(first + timedelta(days=35))}
        Place :: {room}
        Teacher :: {teacher}
        Fee :: 165 pounds

        The fee includes ten kilograms of clay, glazes and two firings. Please bring an apron, a
        towel and short nails. There are eight wheels, so the course is full with eight people; if
        fewer than five enrol, it is cancelled and you get your money back. An evening that you
        miss can be made up on a Saturday. Your pots are ready three weeks after the last evening
        and are kept for two months.
        {_VISITORS}"""
        name = f"Throwing for beginners, course {number} from {first.day}/{first.month}"
        items.append(_item("course", name, body, "Courses", "Arts and crafts"))
    sights = (
        "We see the bridge that the masons built twice.",
        "We climb the tower, if the keeper is at home.",
        "The last baker in the lane lets us look into his oven.",
        "We hear why the clock strikes thirteen on one day of the year.",
        "In the cloister we stand still for a minute and listen.",
        "Of the harbour only a ring in a wall is left, and we shall find it.",
        "The walk ends under the lime tree where the court used to meet.",
        "A door in the churchyard leads to a garden that hardly anyone knows.",
    )
    for town in draw.shuffled(towns)[:15]:
        when, guide = draw.day(2026), draw.pick(("Hugh", "Nesta", "Rowan", "Sybil", "Alban"))
        extra = " ".join(draw.some(sights, draw.between(1, 3)))
        body = f"""
        A walk through the old town of {town} with a lantern, after the shops have closed. {guide}
        leads us through lanes and yards and tells what the guidebooks leave out. {extra}

        When :: {when}, {draw.pick(("20:00", "20:30", "21:00"))}
        Where :: at the fountain in {town}
        Price :: {draw.pick((8, 9))} pounds

        The walk takes two hours, is about three kilometres long, and has a number of steps. It
        takes place in any weather except a storm. Please wear shoes with good soles and leave
        dogs at home, because of the cats. Groups of more than ten people should book a date of
        their own. The lanterns are provided, and everybody carries one. Payment is in cash at the
        beginning; those who are bored get their money back at the end, which has happened once.
        {_VISITORS}"""
        items.append(_item("walk", f"Lantern walk in {town}", body, "Walks", town))
    return Site(
        name="events",
        title="What's On in the Shires",
        lang="en",
        menu=("Today", "This week", "Music", "Courses", "Walks", "Theatre", "Children", "Submit"),
        sidebar=(
            "Enter your own event here, free of charge.",
            "Our printed calendar lies in libraries and inns.",
            "Tickets: ring the box office from ten to six.",
        ),
        footer=("About the calendar", "Privacy", "Details as given by the organisers."),
        cookie="We remember your town in a cookie, if you let us.",
        labels=("Home", "Other dates", "Visitors' comments", "Printed on", "OK"),
        counters=(
            "{n} people are interested",
            "{few} people have put this in their diary today",
            "{few} seats left",
            "Entry last changed {when}",
        ),
        sentences=(
            "The organisers ask you to come on foot or by bus, since parking is scarce.",
            "There is a small bar that takes cash only.",
            "Places for wheelchairs can be reserved by telephone.",
        ),
        reviews=(
            (
                "We were there last year and still talk about it. Come early, for the best places go "
                "fast, and take a jacket. Marjorie and Len"
            ),
            (
                "A lovely evening, though it ended later than announced and the last bus had gone. "
                "Somebody gave us a lift. Thank you, whoever you are!"
            ),
        ),
        dates=("{d} {month} {y}", "{mm}/{dd}/{y}"),
        markup=Markup("soup", "dl", prefix="wo-"),
        restyled=Markup("layout", "table", prefix="cal-", title_first=False),
        items=items,
    )


_INHERITED = """
All exceptions of the library are checked at compile time unless they are marked otherwise. They can
be sent from one controller to another; the stack trace is kept, and the frames of the sender are
shown in front of those of the receiver. A handler that has been registered with the scheduler is
called first, on the thread of the component, and may replace the exception by another one or
swallow it. What is not handled ends the step of the recipe, never the whole batch, and is written
to the journal with the state of all valves. Messages are meant for operators and are translated;
do not parse them, use the code instead.

# Methods inherited from class Throwable

addSuppressed :: Appends the given exception to those that were suppressed to deliver this one.
fillInStackTrace :: Records the state of the stack frames of the current thread.
getCause :: Returns the cause of this throwable, or null if it is unknown or does not exist.
getLocalizedMessage :: Creates a description in the language of the user.
getMessage :: Returns the detail message string.
getStackTrace :: Gives access to the frames that were recorded when it was thrown.
initCause :: Sets the cause to the given value, once.
printStackTrace :: Prints this throwable and its backtrace to the error stream.
setStackTrace :: Replaces the frames that will be returned and printed.
toString :: Returns a short description.

# Methods inherited from class Object

clone :: Creates and returns a copy of this object.
equals :: Tells whether some other object is equal to this one.
getClass :: Returns the runtime class of this object.
hashCode :: Returns a hash code value.
notify :: Wakes up a single thread that waits on this object.
wait :: Causes the current thread to wait until it is woken up.
"""


_PORT = """
Instances are created by the module and handed out once; whoever holds one has the port to itself
until it is closed or the lease runs out. A port is an input after a restart. It becomes an output
when a level is written for the first time, and it goes back to being an input when it is closed,
so that nothing stays under current by mistake. Levels are read without delay from the last picture
of the module, which is taken every ten milliseconds; use the blocking variant if you need a fresh
one. Edges are counted in hardware and are not lost between two pictures.

Changed :: @2025-06-30@
Thread safety :: safe

# Methods

read() :: Returns the level in the last picture.
readNow() :: Takes a new picture and returns the level in it.
write(boolean) :: Sets the level, and turns the port into an output.
pulse(Duration) :: Sets the level for the given time, and then back.
count() :: Returns the number of rising edges since the last reset.
resetCount() :: Sets the counter to zero and returns its former value.
onChange(Listener) :: Calls the listener after each change, on the thread of the component.
close() :: Makes the port an input and gives it back to the module.

All methods throw LeaseExpiredException when the lease has run out. Methods that write throw
PermissionMissingException for users who may only look. Pulses that are shorter than one picture are
lengthened to one; pulses of more than a minute are refused. The listener must return quickly, since
all ports of a module share one thread. In simulation the level follows what was written last, and
the counter counts what was written.
"""


def api() -> Site:
    """The reference of a library: exception classes, thin function pages, pages of boilerplate."""
    draw = Draw("api", "items")
    items = []
    reasons = {
        "ValveBlocked": "a valve does not reach its end position within the time allowed",
        "SensorMissing": "a channel that the recipe names is not connected",
        "PressureLimit": "the pressure in a vessel exceeds the limit of its class",
        "RecipeSyntax": "a recipe cannot be read because of an error in its text",
        "LeaseExpired": "a lease was not renewed before it ran out",
        "PumpStall": "the current of a pump rises while its flow falls",
        "BatchAborted": "an operator or another component has aborted the batch",
        "ClockSkew": "the clocks of two controllers differ by more than a tick",
        "TankOverflow": "the upper float of a tank reports contact",
        "ChecksumMismatch": "a block that was received does not have the announced sum",
        "PermissionMissing": "the user's role does not include the operation",
        "HeaterTimeout": "a heater does not reach its set point in time",
    }
    for number, (stem, reason) in enumerate(reasons.items()):
        name = f"{stem}Exception"
        since = f"{draw.between(1, 5)}.{draw.between(0, 9)}"
        package = draw.pick(("control", "recipe", "core"))
        remark = (
            "The operation may be tried again after the cause has been removed. "
            "Callers that hold locks should release them first."
            if number % 2
            else ""
        )
        body = f"""
        > java.lang.Object
        >   java.lang.Throwable
        >     com.brewline.{package}.BrewException
        >       com.brewline.{package}.{name}

        > public class {name}
        > extends BrewException

        Thrown when {reason}. {remark}

        Since :: {since}
        Changed :: {draw.pick(("@2025-03-18@", "@2025-11-02@"))}
        All implemented interfaces :: Serializable
        See also :: Serialized form

        # Constructors

        {name}() :: Constructs the exception without a detail message.
        {name}(String) :: Constructs the exception with the given detail message.
        {name}(String, Throwable) :: Constructs the exception with a detail message and a cause.
        {_INHERITED}"""
        items.append(_item("exceptions", name, body, "All classes", f"Package {package}"))
    functions = {
        "openValve": "Opens the valve and returns at once.",
        "closeValve": "Closes the valve and returns at once.",
        "drain": "Empties the vessel.",
        "isEmpty": "Tells whether the vessel is empty.",
        "level": "Returns the level in litres.",
        "setLevel": "Sets the level that is aimed at, in litres.",
        "temperature": "Returns the temperature in degrees.",
        "setTemperature": "Sets the temperature that is aimed at.",
        "start": "Starts the stirrer.",
        "stop": "Stops the stirrer.",
    }
    for name, line in functions.items():
        kind = draw.pick(("void", "double", "boolean", "int"))
        body = f"""
        > public {kind} {name}()

        {line}
        """
        items.append(_item("functions", f"Vessel.{name}", body, "Vessel", "Index", thin=True))
    for name in ("Batch", "Valve", "Tank", "Pump", "Sensor", "Recipe", "Lease", "Heater"):
        package = draw.pick(("control", "recipe", "core"))
        body = f"""
        No usage of com.brewline.{package}.{name}

        This page lists the packages, classes, methods and fields that use the class. Classes that
        are not public are left out, and so are uses within the same class.
        """
        title = f"Uses of Class com.brewline.{package}.{name}"
        items.append(_item("uses", title, body, "Uses", f"Package {package}", thin=True))
    for number in range(1, 13):
        name = f"Port{number:02}"
        body = f"""
        > public final class {name}
        > extends DigitalPort

        Port {number} of the input and output module, at address 0x{0x1400 + 4 * number:X}.
        {_PORT}"""
        items.append(_item("ports", name, body, "All classes", "Package control"))
    for name, what, unit in (
        ("Pressure", "pressure", "pascal"),
        ("Flow", "flow", "litres per second"),
        ("Mass", "mass", "kilograms"),
        ("Density", "density", "grams per litre"),
        ("Volume", "volume", "litres"),
        ("Energy", "energy", "joules"),
        ("Current", "current", "amperes"),
    ):
        body = f"""
        > public final class {name}
        > extends Quantity<{name}>

        A value of the dimension {what}, with its uncertainty. Instances cannot be changed and may
        be shared between threads. Two instances are equal if their values and their uncertainties
        are equal after conversion to {unit}; they are compared by value only, so that the order
        is not consistent with equals.

        Unit :: {unit}
        Since :: {draw.between(1, 4)}.{draw.between(0, 9)}
        Last change :: {draw.day(2024)}

        # Methods

        of(double) :: Creates an instance from a value in {unit}, without uncertainty.
        of(double, double) :: Creates an instance from a value and its uncertainty.
        plus({name}) :: Adds, and combines the uncertainties as if they were independent.
        minus({name}) :: Subtracts, and combines the uncertainties in the same way.
        times(double) :: Multiplies value and uncertainty by a factor.
        value() :: Returns the value in the base unit.
        uncertainty() :: Returns the standard uncertainty in the base unit.
        compareTo({name}) :: Compares by value.
        toString() :: Writes value, uncertainty and unit with as many digits as make sense.

        The methods throw a NullPointerException when they are given null, and never return it. An
        infinite value or one that is not a number is refused with an IllegalArgumentException when
        the instance is created. Rounding follows the rules of the floating-point arithmetic of
        the platform.

        > {name} a = {name}.of({draw.between(2, 90)}.0);
        > {name} b = a.plus({name}.of({draw.between(2, 90)}.5, 0.1)).times(2);
        > System.out.println(b);
        """
        items.append(_item("quantities", name, body, "All classes", "Package units"))
    return Site(
        name="api",
        title="Brewline 5 API",
        lang="en",
        menu=("Overview", "Package", "Class", "Use", "Tree", "Deprecated", "Index", "Help"),
        sidebar=("All classes", "Packages: control, core, recipe, units", "Search the reference"),
        footer=("Report a bug or suggest an improvement.", "Licence"),
        cookie="The reference keeps your theme and your last search in local storage.",
        labels=("Home", "See also in this package", "User notes", "Printed on", "Understood"),
        counters=("{n} readers found this page helpful.", "Generated on {when}"),
        sentences=(
            "The guide has a chapter with worked examples.",
            "Before version 3 it lived in another package.",
        ),
        reviews=(
            (
                "A note from a user: with older controllers you have to call it twice before the "
                "message arrives, which is a matter of the driver and not of this class."
            ),
            (
                "A note from a user: if you build with modules, do not forget to require the package, "
                "or you will see nothing but a warning at start."
            ),
        ),
        dates=("{y}-{mm}-{dd}", "{month} {d}, {y}"),
        markup=Markup("layout", "table", text="div", prefix="jd-"),
        restyled=Markup("semantic", "dl", code="table", prefix="ref-", title_first=False),
        items=items,
    )


def timetable() -> Site:
    """Stops with departures, survey marks with coordinates, branches with opening hours."""
    draw = Draw("timetable", "items")
    items = []
    stops = (
        *("Abbey Gate", "Basin", "Chalk Pit", "Dairy", "East Lock", "Ferry House", "Gasworks"),
        *("Hop Market", "Ice House", "Jetty", "Kiln Row", "Long Acre", "Maltings", "Nook"),
        *("Orchard", "Parade", "Quarry"),
    )
    first, step = 2, 7
    for at, stop in enumerate(stops):
        # Neighbouring stops of one run share most hours; the minutes move on every sixth stop.
        shift = first + at // 6
        rows = []
        for hour in range(5, 24):
            gap = 10 if 7 <= hour <= 18 else 20
            # One hour in six has a minute more, where the run waits for a connection.
            wait = int((hour + at * step) % 6 == 0)
            minutes = " ".join(f"{(shift + wait + m) % 60:02}" for m in range(0, 60, gap))
            rows.append(f"{hour:02} :: {minutes}")
        lat, lon = 5123000 + draw.between(0, 9999), 231000 + draw.between(0, 9999)
        body = f"""
        Stop number :: {draw.digits(6)}
        Latitude :: {lat / 100000:.5f}
        Longitude :: {lon / 100000:.5f}
        Zone :: {draw.between(1, 3)}
        Valid from :: @2026-04-05@

        # Line 12 towards Harbour Cross, Monday to Friday

        {chr(10).join(rows)}

        On Saturdays line 12 runs every twenty minutes from six to midnight, on Sundays every thirty
        minutes from seven. In school holidays the holiday timetable applies. Buses wait for trains
        at Harbour Cross for up to five minutes. Times are given without guarantee.

        Tickets are sold by the driver and by the machine on board, which gives no change. A single
        ticket is valid for ninety minutes in one direction, with any number of changes; a day
        ticket until four the next morning. Children under six travel free of charge, dogs in the
        arm as well, and bicycles only outside the rush hours. At night the driver stops between two
        stops if you ask him one stop before. Lost property is brought to the depot in the evening.
        If a bus is more than twenty minutes late you may take a taxi and send us the bill, up to
        the amount that is printed on the ticket. Shelters are cleaned on the first of the month.
        """
        items.append(_item("stops", f"{stop}: line 12", body, "Line 12", "Stops from A to Z"))
    for _ in range(15):
        number = f"{draw.between(3, 9)}{draw.digits(3)}.{draw.digits(2)}"
        east, north = draw.between(612000, 698000), draw.between(5410000, 5490000)
        kind = draw.pick(("granite pillar", "brass bolt"))
        body = f"""
        Mark :: {number}
        Easting :: {east}.{draw.digits(3)} m
        Northing :: {north}.{draw.digits(3)} m
        Height :: {draw.between(112, 890)}.{draw.digits(3)} m
        Accuracy :: {draw.pick((5, 8))} mm
        Kind :: {kind}
        Set :: @1974-05-20@
        Last measured :: @2019-08-1{draw.between(2, 4)}@

        The coordinates are given in the national system, zone 32, and the heights above the mean
        level of the sea at the old gauge. The mark is protected by law: whoever removes, buries or
        damages it pays for its restoration. If you find that a mark is loose, leaning or gone,
        please report it to the survey office with a photo. Before you measure from it, check the
        distance to at least one neighbouring mark. Sketches of the surroundings can be had from the
        office for a small fee; access across private ground needs the consent of the owner.

        Marks of the first and second order are measured again every fifteen years, those of lower
        order when there is a reason. After an earthquake, a landslide or the digging of a tunnel
        the office may publish provisional values, which are printed in italics. Older values stay
        in the register and can be asked for, since deeds refer to them. The transformation between
        the old and the new system is good to five centimetres in the plain and to two decimetres
        in the mountains. Values from satellite receivers agree with the sheet only if the receiver
        has been set to the same ellipsoid; most complaints that reach us have this cause.
        """
        items.append(_item("marks", f"Survey mark {number}", body, "Survey", "Sheet index"))
    streets = ("Alma Road", "Brook Street", "Castle Hill", "Dean Lane", "Elm Grove", "Foundry Row")
    districts = (
        *("Ashfield", "Bridgend", "Colwick", "Denholm", "Eastwood", "Fenton", "Garth", "Hillside"),
        *("Irwell", "Kelham", "Lenton", "Moorside", "Netherby", "Overton"),
    )
    for district in districts:
        late = draw.pick(("Tuesday", "Thursday"))
        body = f"""
        Address :: {draw.pick(streets)} {draw.between(1, 180)}, {district}
        Telephone :: 0555 {draw.digits(3)} {draw.digits(4)}
        Position :: 51.{draw.digits(4)} N, 2.{draw.digits(4)} W
        Shelf metres :: {draw.between(200, 2100)}

        # Opening hours

        Monday :: closed
        Tuesday :: 10:00 to {"20:00" if late == "Tuesday" else "18:00"}
        Wednesday :: 10:00 to 18:00
        Thursday :: 10:00 to {"20:00" if late == "Thursday" else "18:00"}
        Friday :: 10:00 to 18:00
        Saturday :: 10:00 to 14:00
        Sunday :: closed
        Closed for stocktaking :: @2026-07-{draw.pick(("06", "13"))}@

        Books can be returned at any time through the flap beside the door. A card costs 12 pounds
        a year and is valid in all branches; it is free for anybody under eighteen or out of
        work. You may borrow twenty things at once and keep them for four weeks, films for one.
        Readings for children begin on Wednesday at four. The photocopier takes coins, the wireless
        network takes nothing, and the librarians take their time. For the mobile library see its
        own page. What a branch does not have comes from another one within two days. Scores, maps
        and board games can be borrowed like books; sewing machines, drills and telescopes need a
        deposit. Whoever keeps a thing too long pays twenty pence a day and never more than it has
        cost. Donated books are gladly taken if they are dry. The reading rooms are quiet in the
        morning and lively in the afternoon, and food is allowed as long as it does not smell.
        """
        items.append(_item("branches", f"{district} branch library", body, "Libraries", district))
    return Site(
        name="timetable",
        title="City of Harbour Cross: Services",
        lang="en",
        menu=("Buses", "Libraries", "Baths", "Survey", "Waste", "Registry", "Council", "Search"),
        sidebar=("Service number: 115", "News by letter", "Plain language", "Sign language"),
        footer=("Accessibility", "Imprint", "City of Harbour Cross, Council Square 1"),
        cookie="The city sets one cookie, for the language.",
        labels=("Home", "Others nearby", "Remarks", "Sheet printed on", "Close"),
        counters=("Page called {n} times", "As of {when}"),
        sentences=(
            "The lift is out of order until further notice.",
            "A version in large print can be had at the counter.",
        ),
        reviews=(
            (
                "Remark by a citizen: the sign is hidden behind a lime tree in summer. Answer of the "
                "office: thank you, the gardeners will cut it back in the coming week."
            ),
            (
                "Remark by a citizen: the telephone number was engaged all morning. Answer of the "
                "office: we are sorry, two of three people were ill."
            ),
        ),
        dates=("{d} {month} {y}", "{dd}.{mm}.{y}"),
        markup=Markup("layout", "table", text="br", prefix="hc-"),
        restyled=Markup("soup", "divs", text="div", prefix="new-", title_first=False),
        items=items,
    )


_ADVISER = """
The friends of the club help members who are looking for something: a flat, a trainee's place, a
second-hand bicycle, somebody to practise German or fractions with. Our advisers do this in their
spare time and know a great many people. They give no legal advice, lend no money and sell nothing.
What you tell them stays with them, unless you wish otherwise.

# How it works

You ring, and if nobody answers you leave your number; you are called back in the evening, seldom on
the same one. Then you meet in the hall, at a table behind the stand with the sausages, and talk
for as long as it takes. Bring along what you have: letters, certificates, photographs. Within two
weeks you hear who could help. Often it is enough that two people who ought to know each other sit
down together. Sometimes it takes three attempts, and now and then nothing comes of it at all.

# What we ask in return

Nothing, to begin with. Those who have found what they were looking for are put on the list of
those who can be asked, and most are glad of it. The list has more than four hundred names by now,
from plumbers to a retired judge. Once a year all of them are invited to the lake, where there is
soup. Statutes and accounts are laid out in the office. Last audited on @2025-10-04@.
"""

_MATCHDAY = """
# On match days

The hall opens an hour and a half before the throw-off. Season tickets are valid for all matches in
the league and, with a surcharge, in the cup. Drums are allowed in block C, trumpets nowhere. The
stand at the north entrance sells what the parents of the youth teams have baked, and it is usually
gone by half-time. After the last whistle the players come to the barrier for as long as
there are children left. Those who travel to matches away from home meet at the old fire station; the
coach waits for nobody, not even for the president, as he has learnt. Results, tables and reports are
on the notice board the next morning and on this page a little earlier.
"""


def people() -> Site:
    """Profiles of a club's players and of an institute's staff in equal frames."""
    draw = Draw("people", "items")
    items = []
    given = (
        *("Anka", "Birger", "Celia", "Dorte", "Emeka", "Fenja", "Goran", "Hilde", "Ines", "Jonna"),
        *("Kaito", "Lotta", "Mirek", "Nuria", "Olaf", "Petra", "Quentin", "Runa", "Sanna", "Tarek"),
        *("Ulla", "Veit", "Wanda", "Yusuf"),
    )
    family = (
        *("Abelsen", "Brockmann", "Castell", "Dragan", "Eklund", "Farkas", "Grawert", "Holm"),
        *("Ivarsson", "Jelinek", "Kowal", "Lorenzen", "Madaki", "Norling", "Okafor", "Paulsen"),
        *("Quast", "Rebane", "Sundgren", "Thorup", "Ungar", "Vesely", "Wirth", "Zander"),
    )
    surnames = draw.shuffled(family)
    positions = ("goalkeeper", "left wing", "right wing", "left back", "right back", "pivot")
    for first, last in list(zip(given, surnames, strict=True))[:17]:
        goals, matches = draw.between(3, 240), draw.between(12, 160)
        body = f"""
        Name :: {first} {last}
        Position :: {draw.pick(positions)}
        Number :: {draw.between(1, 99)}
        Born :: {draw.day(draw.between(1994, 2006))}
        Height :: {draw.between(168, 201)} cm
        Weight :: {draw.between(62, 104)} kg

        {last} joined the club in {draw.between(2017, 2025)} and has since played {matches} matches
        in the league, with {goals} goals. Before that the way led through the youth teams of the
        region, as it does for nearly all of our squad.

        At the Harriers nobody is a professional. Training is on Monday, Wednesday and Friday
        evening, matches are on Saturday, and on Sunday the team meets at the lake, in winter
        too. All players give one afternoon a month to the schools of the town, where they
        teach children to throw, to fall and to lose. The shirts can be bought at the desk in the
        hall, with any name and number; half of the price goes to the youth section. Cards with an
        autograph are sent free of charge to everybody who encloses a stamped envelope.
        {_MATCHDAY}"""
        items.append(_item("players", f"{first} {last}", body, "Squad", "Archive"))
    fields = ("peat soils", "river ice", "lichens", "sea fog", "drifting snow", "moraines")
    own = (
        "Two winters on a drifting ship have left a liking for tinned pears.",
        "The doctoral thesis was about the sound that thawing ground makes.",
        "Students praise the excursions, and fear the packing list.",
        "Since last year the group has had a measuring hut of its own.",
        "The textbook on the subject is in its third edition.",
        "Outside the institute there is a choir, a boat and a large dog.",
        "Earlier posts were at two universities and one weather station.",
    )
    for first, last in list(zip(draw.shuffled(given), draw.shuffled(family), strict=True))[:14]:
        body = f"""
        {first} {last} is your adviser at the friends of the club, under 0555 71 {draw.digits(4)}.
        {_ADVISER}"""
        items.append(_item("advisers", f"{first} {last}, adviser", body, "Contact", "Shop"))
    for first, last in list(zip(draw.shuffled(given), draw.shuffled(family), strict=True))[:17]:
        field_, room = draw.pick(fields), f"{draw.pick('ABC')} {draw.between(100, 460)}"
        extra = " ".join(draw.some(own, draw.between(0, 3)))
        body = f"""
        Room :: {room}
        Telephone :: 0555 70 {draw.digits(4)}
        Mail :: {last.lower()}@polar.example
        At the institute since :: {draw.day(draw.between(2004, 2025))}

        {first} {last} works on {field_} in the section for cold landscapes. {extra} Like all members
        of the section, {last} takes part in the long-term measurements at the three field sites
        and looks after one of them in turn.

        # Office hours and theses

        Office hours are on Thursday from two to four in the term and by arrangement in the
        vacation. Topics for theses are posted on the board next to the lift in March and September;
        please come with an idea of your own if you have one. Letters of reference are written only
        for people who have attended a seminar. Publications are listed in the catalogue of the
        library and, as far as the publishers allow, can be read there. Data from the field
        sites is open to everybody after two years; the section's data manager answers questions
        about formats, units and gaps. For the press, the institute's office arranges interviews.
        Guests are welcome at the colloquium on Tuesday at five, which begins with tea and ends when
        the tea is finished. School classes can spend a day in the cold laboratory; coats are lent.
        Those who would like to come along to a field site as helpers need a certificate from their
        doctor, a good sleeping bag, and the ability to be silent at breakfast. The institute pays
        for the journey and the food. Applications are collected until the end of January.
        """
        items.append(_item("staff", f"Dr {first} {last}", body, "Section", "Staff from A to Z"))
    return Site(
        name="people",
        title="Faces of the North",
        lang="en",
        menu=("Squad", "Fixtures", "Section", "Research", "News", "Shop", "Contact"),
        sidebar=("Next home match on Saturday at seven.", "Open day at the institute in June."),
        footer=("Imprint", "Privacy", "Photos: the club, the institute"),
        cookie=_COOKIE,
        labels=("Home", "More faces", "Guest book", "Printed on", "Yes"),
        counters=("Profile viewed {n} times", "{few} followers this week", "Updated {when}"),
        sentences=(
            "A longer conversation can be heard in the podcast of the house.",
            "The picture was taken on the roof by a colleague.",
        ),
        reviews=(
            (
                "Guest book: greetings from the whole third form, who still talk about your visit and "
                "have hung your picture over the blackboard!"
            ),
            (
                "Guest book: we met on the night train and you lent me a pencil. I have it still and "
                "would like to give it back one day."
            ),
        ),
        dates=("{d} {month} {y}", "{y}-{mm}-{dd}"),
        markup=Markup("semantic", "dl", text="div", prefix="fn-"),
        restyled=Markup("semantic", "table", prefix="prof-", title_first=False),
        items=items,
    )


#: ``[in {city}|in town]``: a place where the town's name may stand.
_REMOVALS = """
Moving house is among the things that people put off until it cannot be put off any longer. We have
moved households[ in {city}| in this region] for more than thirty years, and what we have learnt
is that a good move is decided before the first box is carried. That is why one of us comes to
your home, looks into every cupboard, and writes down what is there. You get a price in writing, and
that price holds, whatever the day of the move may bring.

# What we take off your hands

On the day itself three or four of us arrive at half past seven. We lay felt on the floors, take
doors off their hinges where necessary, and start with the heavy things. Pianos, safes and aquariums
are carried by people who do nothing else. [Our vans know the narrow streets of {city}|Our vans fit
into narrow streets] and have a permit to stop there. If you like, we pack as well: a flat of three
rooms takes two of us a day, and the crockery survives it. Lamps, curtains and kitchens are
taken down by our own joiner and put up again[ in your new home in {city}| in your new home] the
same evening.

# Storage

If the new place is not ready yet, your things can wait in our store[ on the edge of {city}|]. Every
household gets a wooden container of its own, which is closed in front of your eyes and opened only
when you are there. The store is dry, heated in winter and guarded at night. You pay by the week.
Books and pictures are kept on the upper floor, since warm air rises and damp does not.

# What it costs

[A move within {city}|A move within the town] with three rooms costs between 900 and 1400 euros,
with packing between 1300 and 2000. Long distances are charged by the kilometre, and return loads
are cheaper, so ask us if your date is not fixed. Boxes are lent free of charge for a month. All
goods are insured at their present value; for antiques we take out a policy of their own.
[Students of the colleges in {city}|Students] get a tenth off in the last week of every month.

# How to reach us

Ring us under {phone} on any working day between eight and six[, or come by at our office in {city}|],
or write a few lines with your address, the floor, and the date you have in mind. We call back
within a day. [Many families in {city} have moved with us more than once|Many families have
moved with us more than once], and [the largest employers of {city}|some large employers] send us
their new colleagues. [People in {city} say|People say] that we are not the cheapest, and that is
true. [In {city} we are known|We are known] for leaving nothing behind but empty rooms.
{last}
"""

_LOCKS = """
It always happens at the wrong moment: the door falls shut, the key is inside, the soup is on the
stove. Our locksmiths[ in {city}|] are on duty at any hour of the day and night, and as a rule they
open a door that has fallen shut without leaving a scratch. It takes a bent piece of wire, a
thin sheet of plastic, and the patience of somebody who has done it a thousand times.

# The price, before we start

You hear the price on the telephone, and you hear it again at the door before the tool box is
opened. During the day it is 79 euros[ anywhere in {city}|], at night and on Sundays 119, with the
drive included. We do not drill unless there is no other way, and if we have to, you get a new
cylinder at the price of the catalogue. Pay when the door is open, in cash or by card, and
keep the invoice: many household policies pay for it. [Beware of numbers that promise {city} and answer
from far away|Beware of numbers that answer from far away].

# More than emergencies

On quiet days we do what locksmiths have always done. We cut keys from a pattern or a number, repair
locks that are older than we are, and build in bolts, chains and spyholes. [Shops and offices in
{city}|Shops and offices] have their master-key systems planned and looked after by us, from
six doors to six hundred. We also advise tenants and owners about burglary: most burglars come
through a window on the garden side, and most give up after three minutes. A visit
[to your home in {city}|to your home] costs nothing and ends with a list of what is worth
doing, in order.

# Who we are

We are nine, all trained in the trade, and each of us carries a card with a photo, which you should
ask to see. [The workshop behind the market in {city}|The workshop] has been in the same hands
since it was founded. [The police in {city}|The police] know us, and so do caretakers and the fire
brigade. We do not buy addresses, we do not advertise on the radio, and we have never opened a
door for somebody who could not show that he lived behind it. Apprentices start with padlocks and
end with safes, and take an examination after three years. The oldest of us began when keys were still
filed by hand, and can do it to this day. Once a year we open the workshop to everybody and let people
try for themselves; about one in five gets a simple lock open within ten minutes, children
sooner than their parents. The collection on the wall holds four hundred locks, among them
one that nobody has opened yet. A round of drinks is waiting for the person who does. We have no
branches and sell no franchise. Complaints go to the master, whose name is on every invoice, and are
answered by her in person. The guild's board of arbitration has never had to deal with us.

# Call us

Under {phone} you speak to one of us, not to an exchange. Tell us the street, the floor, and whether the
door is locked or only shut. [In {city} we are usually there|We are usually there] within half an
hour; [in the villages around {city}|in the villages] it may take a little longer. Until then,
sit down on the stairs and do not try it with a credit card. It only works in films, and it breaks
the card. [Save the number of the locksmiths of {city}|Save the number] in your telephone now,
while your door is open.
{last}
"""


def _placed(text: str, places: int, city: str, order: Sequence[int]) -> str:
    """``text`` with the town's name in the first ``places`` of ``order``."""
    spots = len(re.findall(r"\[", text))
    named = set(order[:places])
    at = iter(range(spots))

    def chosen(found: re.Match[str]) -> str:
        with_name, _, without = found[1].partition("|")
        return with_name if next(at) in named else without

    return re.sub(r"\[([^\]]*)\]", chosen, text).replace("{city}", city)


def cities() -> Site:
    """Landing pages: one text for every town, with the town's name in 3 to 12 places."""
    draw = Draw("cities", "items")
    items = []
    towns = (
        *("Aarlund", "Bremsted", "Cullera", "Dornheim", "Esbeck", "Fallow", "Grenna", "Hattem"),
        *(
            "Illnau",
            "Jarmen",
            "Kolding-Ost",
            "Lessing",
            "Mirow",
            "Neubrück",
            "Osthafen",
            "Pirna-Au",
        ),
        *("Ravensholm", "Salzach", "Torgelow", "Uhlbach", "Varel", "Wismar-Süd", "Zarrentin"),
    )
    for family, text, what, telephone in (
        ("removals", _REMOVALS, "Removals in {}", 6),
        ("locks", _LOCKS, "Locksmith in {}: day and night", 8),
    ):
        # The first place is the one next to the telephone number.
        spots = range(len(re.findall(r"\[", text)))
        order = [telephone, *draw.shuffled(spot for spot in spots if spot != telephone)]
        for at, town in enumerate(towns):
            # With the heading, the name stands in 3 to 12 places; few are more common.
            places = (2, 2, 3, 2, 5, 3, 8, 2, 11)[at % 9]
            last = "This page was checked on @2026-02-11@." if at % 3 else ""
            body = _placed(text, places, town, order).replace(
                "{phone}", f"0{draw.between(30, 99)} {draw.digits(7)}"
            )
            body = body.replace("{last}", last)
            items.append(_item(family, what.format(town), body, "Services", "Towns from A to Z"))
    return Site(
        name="cities",
        title="Handfest Services",
        lang="en",
        menu=("Removals", "Locksmiths", "Drains", "Gardens", "Towns", "Prices", "About", "Jobs"),
        sidebar=("Call back service: leave your number.", "Rated very good by our customers."),
        footer=("Imprint", "Privacy", "Terms of business"),
        cookie="Cookies help us to see which towns are asked for.",
        labels=("Home", "Also in these towns", "Customers write", "Printed on", "Allow"),
        counters=(
            "{few} people are looking at this page",
            "{n} customers this year",
            "As of {when}",
        ),
        sentences=(
            "On request you can have our references from the last twelve months.",
            "We speak six languages between us, and all of them on the telephone.",
            "Our work is guaranteed for two years.",
        ),
        reviews=(
            (
                "Friendly, on time, and cheaper than expected. The youngest of them even watered the "
                "plants before he left. I can recommend them without reserve. G. H."
            ),
            (
                "There was a misunderstanding about the date, but they put it right the same day and "
                "did not charge the drive. So it can be done. Anonymous"
            ),
        ),
        dates=("{d} {month} {y}", "{mm}/{dd}/{y}"),
        markup=Markup("soup", "divs", text="br", prefix="hs-"),
        restyled=Markup("semantic", "table", prefix="lp-", title_first=False),
        items=items,
    )


_ZH_SERVICE = """
# 配送与售后

每天下午四点以前付款的订单当天发货，其余订单次日发货。江浙沪地区一般两天送达，其他省份三到五天，偏远山区可能需要一周。单笔满九十九元免运费，
不满的收八元。收到货以后请当着快递员的面打开箱子检查，如有破损可以拒收，我们马上补发，不用您承担任何费用。七天之内不喜欢可以退，
只要没有用过、包装齐全就行，退货的运费由我们出。质量问题一年之内免费换新，超过一年只收零件的成本。有事请先联系客服，客服早上九点上班，晚上十点下班，
节假日也有人值班。发票随箱寄出，需要公司抬头的请在备注里写清楚。

# 关于小店

巷口杂货铺开了十一年，最早只有一间门面，卖的是邻居用得上的东西。后来有搬走的老顾客写信来问能不能寄，我们才学着打包，学着拍照，慢慢有了这个网站。
店里现在一共九个人，四个管仓库，两个回答问题，一个记账，剩下两个常年在外面跑，去山里、去作坊、去小工厂，看东西是怎么做出来的，
也看做东西的人愿不愿意把名字写在上面。凡是我们自己不想用的，一律不卖；凡是卖过的，坏了都能找到人修。每一样东西上架以前，
都要在我们自己家里放上三个月，孩子摔过，老人用过，猫也踩过，没有问题才拍照。所以新东西来得很慢，请不要催。

# 常见问题

问：照片和实物有没有色差？答：照片都是在窗户边上拍的，没有修过，不过各人的屏幕不一样，差一点是难免的，介意的话可以先问我们要一张白纸上的照片。
问：可以批发吗？答：可以，十件以上请直接打电话，价钱好商量，但是交货要多等几天。问：能不能送人？答：当然能，我们有三种包装纸，
都是附近印刷厂的边角料，图案随机，不另收钱。问：你们的实体店在哪里？答：从老城区的钟楼往南走，看见卖豆腐的左转，门口有一棵石榴树的就是，
周一休息，其余的日子从早上十点开到天黑。
"""


def zh_shop() -> Site:
    """Chinese product pages."""
    draw = Draw("zh-shop", "items")
    items = []
    for colour in ("墨黑", "月白", "天青", "藕粉", "松绿", "砂金"):
        for size in (350, 500):
            body = f"""
            这款保温杯的内胆用食品级不锈钢一次拉伸成型，没有焊缝，不容易藏污垢，也没有异味。杯盖里有一圈可以拆下来的硅胶垫，倒着放一整天也不漏水。
            早上装进去的开水，到了晚上还是烫嘴的；夏天放冰块，第二天早上还能听见响声。杯口磨得很圆，喝水的时候不硌嘴唇。外壁喷了一层细砂，握在手里不滑，
            也不会留下指印。杯底贴着软垫，放在桌上没有声音。清洗的时候用温水和软布就可以了，请不要放进微波炉，也不要用钢丝球刷。

            颜色 :: {colour}
            容量 :: {size}毫升
            货号 :: BW2509
            价格 :: {69 if size == 350 else 89}元
            上架日期 :: @2025-09-12@
            {_ZH_SERVICE}"""
            items.append(_item("cup", f"听雨保温杯 {colour} {size}毫升", body, "水杯", "礼品"))
    teas = (
        ("云岭毛尖", "汤色浅绿，入口有一点豆香，第三泡最好喝。"),
        ("石门银针", "芽头肥壮，立在水里像一片小树林。"),
        ("溪口红茶", "甜味来得慢，走得也慢，适合下雨天。"),
        ("老屋岩茶", "焙火偏重，放了半年火气才退干净。"),
        ("半山白茶", "第一年喝鲜，第三年喝甜，第七年可以煮。"),
        ("双溪乌龙", "香气高扬，凉了以后杯底还有花香。"),
        ("古渡熟普", "不酸不腻，饭后来一杯胃里很舒服。"),
        ("雾隐黄茶", "闷黄的火候全凭经验，一年只做几十斤。"),
        ("桂岭花茶", "窨了五遍，只闻花香不见花。"),
        ("青塘龙井", "炒茶的师傅今年七十一岁，还是用手试锅温。"),
        ("东坡绿雪", "叶背有一层白毛，像落了一场小雪。"),
        ("南涧滇红", "金毫很多，奶茶店也来我们这里拿货。"),
    )
    for name, line in teas:
        height, price = draw.between(600, 1900), draw.between(48, 398)
        more = line if draw.between(0, 2) else ""
        body = f"""
        {name}来自海拔{height}米的茶园，茶树都是本地的老品种，不打农药，草靠人来锄。{more}每年清明前后开采，只要一芽一叶，当天采的叶子当天做完，
        不过夜。做好以后要在陶缸里放二十天，让火气退一退，再分装到小罐里。泡的时候水不要太滚，八十五度就够了；茶叶放三克，头一泡十秒钟出汤，
        以后每一泡多等五秒钟，一共可以泡六七次。没喝完的请封好口放在冰箱里，离开有味道的东西。

        品名 :: {name}
        净重 :: {draw.pick((50, 100, 125, 250))}克
        价格 :: {price}元
        批号 :: {draw.digits(8)}
        生产日期 :: {draw.day(2026)}
        保质期 :: 十八个月
        {_ZH_SERVICE}"""
        items.append(_item("tea", f"{name} 手工茶", body, "茶叶", "产地直供"))
    own = (
        "耳罩里的海绵是记忆棉，戴两个小时也不夹头。",
        "折叠起来只有巴掌大，随箱附一个麻布袋子。",
        "盒子上的小灯会告诉你还剩几格电。",
        "通话的时候有三个麦克风一起工作，地铁里也听得清。",
        "左边的按键可以自己定义，比如拍照或者翻页。",
        "低音比上一代收敛了一些，听人声更干净。",
        "进了水也不怕，晾干就能继续用。",
        "可以同时连接手机和电脑，来了电话会自动切换。",
    )
    for _ in range(11):
        model = f"{draw.pick('QRSTX')}{draw.between(10, 99)}"
        extra = "".join(draw.some(own, draw.between(0, 3)))
        hours = draw.between(18, 60)
        body = f"""
        闻笛{model}是一款无线耳机，给每天上下班路上要听点东西的人用。充满一次电可以用{hours}个小时，充十分钟也能听两个小时。{extra}连接很简单，
        打开盖子，手机上点一下确认就好了，以后每次打开会自动连上。声音的调校由我们自己的工程师完成，没有故意加重低音，听久了不累。
        戴着{model}跑步也不会掉，因为盒子里有四种大小的耳塞，总有一种合适。

        型号 :: {model}
        续航 :: {hours}小时
        重量 :: {draw.between(38, 260)}克
        蓝牙版本 :: 5.{draw.between(0, 4)}
        价格 :: {draw.between(159, 899)}元
        发布日期 :: {draw.day(2025)}
        {_ZH_SERVICE}"""
        items.append(_item("phones", f"闻笛无线耳机{model}", body, "数码", "新品"))
    for wood in ("榆木", "橡木", "白蜡木", "胡桃木", "榉木", "樱桃木"):
        for height in (42, 45):
            body = f"""
            这把{wood}餐椅高{height}厘米，全身没有一颗钉子，靠榫头和木楔咬在一起，用得越久咬得越紧。靠背的弧度按照人的脊柱一点一点修出来，
            坐满一顿饭的时间也不觉得累。木料在窑里烘了四十天，又在车间里放了两个月，含水率降到百分之八，北方暖气房里也不会开裂。
            表面只擦了三遍木蜡油，摸得到木头的纹路；沾了油渍用湿布擦一擦就好，一年上一次油，可以用几十年。
            每把椅子底下都刻着做它的木匠的名字。

            材质 :: {wood}
            座高 :: {height}厘米
            价格 :: {draw.between(380, 1280)}元
            货号 :: MY{draw.digits(4)}
            上架日期 :: {draw.day(2024)}
            {_ZH_SERVICE}"""
            items.append(_item("chair", f"木言{wood}餐椅 座高{height}", body, "家具", "餐厅"))
    return Site(
        name="zh-shop",
        title="巷口杂货铺",
        lang="zh-CN",
        menu=("首页", "水杯", "茶叶", "数码", "家具", "礼品", "我的订单", "联系客服"),
        sidebar=("新客立减十元", "关注店铺领优惠券", "实体店：老城区巷口三号"),
        footer=("关于我们", "隐私政策", "营业执照公示"),
        cookie="本站使用必要的小型文本文件来记住您的购物车。",
        labels=("首页", "看了又看", "买家评价", "打印日期", "知道了"),
        counters=("浏览{n}次", "{few}人正在看", "库存仅剩{few}件", "最后更新 {when}"),
        sentences=("下单时备注一声，可以免费刻字。", "随箱附赠一张手写的卡片。", "支持到店自提。"),
        reviews=(
            "用了一个星期才来评价，做工很好，没有味道，快递也快，下次还来买，给五星。",
            "给父母买的，他们很喜欢，就是包装盒压扁了一个角，客服主动退了两块钱，态度不错。",
        ),
        dates=("{y}年{m}月{d}日", "{y}-{mm}-{dd}"),
        markup=Markup("soup", "divs", text="div", prefix="xk-"),
        restyled=Markup("semantic", "table", prefix="pc-", title_first=False),
        items=items,
    )


_KITCHEN = """
# Aus unserer Küche

Alle Rezepte werden in einer gewöhnlichen Wohnküche gekocht, auf einem Herd mit vier Platten und von
Leuten, die danach auch abwaschen. Mengen sind gewogen, Zeiten mit der Uhr gemessen; trotzdem ist
jeder Ofen anders, und wer früher nachsieht, hat mehr davon. Wo nichts anderes steht, sind Eier
mittelgroß, Löffel gestrichen und Kräuter frisch. Butter lässt sich meistens durch Öl ersetzen,
Zucker fast nie ganz. Fragen beantworten wir am Donnerstag zwischen zehn und zwölf am Telefon. Wer ein
eigenes Rezept einsenden möchte, schreibt bitte dazu, von wem er es hat: Geschichten drucken wir
mit ab, und für jedes gedruckte Rezept kommt ein Glas Honig mit der Post.
"""


def de_recipes() -> Site:
    """German recipes: one method for every fruit or vegetable."""
    draw = Draw("de-recipes", "items")
    items = []
    grams, sugar = 0, 0
    fruits = (
        *("Erdbeeren", "Himbeeren", "Brombeeren", "Stachelbeeren", "Aprikosen", "Pfirsiche"),
        *("Zwetschgen", "Mirabellen", "Quitten", "Heidelbeeren", "Sauerkirschen", "Feigen"),
        *("Holunderbeeren", "Birnen", "Johannisbeeren", "Rhabarber"),
    )
    for fruit in fruits:
        amount, sugar = draw.pick((1000, 1500)), draw.pick((500, 750))
        body = f"""
        Eingekocht wird bei uns seit drei Generationen nach derselben Methode, und sie gelingt
        mit {fruit} genauso gut wie mit jeder anderen Frucht. Wichtig sind reifes Obst, saubere
        Gläser und ein Topf, der höchstens zur Hälfte gefüllt ist, damit nichts überkocht.

        {fruit} :: {amount} g
        Gelierzucker :: {sugar} g
        Zitronensaft :: {draw.between(2, 3)} EL
        Kochzeit :: {draw.pick((4, 6))} Minuten
        Ergibt :: {draw.between(5, 6)} Gläser
        Eingetragen am :: @2025-06-{draw.between(12, 14)}@

        # Zubereitung

        Die Früchte waschen, putzen und abwiegen. Mit dem Zucker in einem großen Topf mischen und
        zugedeckt über Nacht an einen kühlen Ort stellen. Am nächsten Morgen den Saft der Zitrone
        dazugeben und alles unter ständigem Rühren zum Kochen bringen. Sobald die Masse sprudelt,
        die Uhr stellen und weiterrühren. Den Schaum mit einem Löffel abnehmen. Für die Gelierprobe
        einen Tropfen auf einen kalten Teller geben: Wird er nach einer Minute fest, ist die
        Konfitüre fertig. Sofort bis zum Rand in heiß ausgespülte Gläser füllen, verschließen, und
        auf einem feuchten Tuch abkühlen lassen. Kühl und dunkel aufbewahrt hält sie mindestens ein
        Jahr; ein offenes Glas gehört in den Kühlschrank und sollte in drei Wochen gegessen sein.
        {_KITCHEN}"""
        items.append(_item("jam", f"Konfitüre: {fruit}", body, "Eingemachtes", "Sommer"))
    for fruit, form in (
        *(
            ("Äpfel", "Blech"),
            ("Äpfel", "Springform"),
            ("Birnen", "Blech"),
            ("Birnen", "Springform"),
        ),
        *(("Pflaumen", "Blech"), ("Pflaumen", "Springform"), ("Kirschen", "Blech")),
        *(("Kirschen", "Springform"), ("Trauben", "Blech"), ("Trauben", "Springform")),
        *(("Aprikosen", "Blech"), ("Aprikosen", "Springform"), ("Orangen", "Blech")),
        *(("Orangen", "Springform"), ("Mangos", "Blech")),
    ):
        if form == "Blech":  # one recipe, and what is drawn holds for both forms
            grams, sugar = draw.pick((800, 900, 1000)), draw.pick((160, 180))
        body = f"""
        Ein Rührkuchen, den man auch an einem Wochentag noch schnell backen kann. Die {fruit} sinken
        beim Backen ein Stück in den Teig und halten ihn saftig, und am zweiten Tag schmeckt er
        besser als am ersten.

        Form :: {form}
        {fruit} :: {grams} g
        Mehl :: 400 g
        Butter :: 250 g
        Zucker :: {sugar} g
        Eier :: 5
        Backzeit :: {draw.pick((40, 45))} Minuten
        Eingetragen am :: @2024-09-2{draw.between(1, 3)}@

        # Zubereitung

        Den Ofen auf 180 Grad vorheizen. Butter und Zucker schaumig rühren, bis man die Körner nicht
        mehr hört, dann die Eier einzeln unterrühren. Mehl und Backpulver darübersieben und mit einem
        Schuss Milch kurz zu einem Teig verarbeiten, der schwer vom Löffel fällt. Die Form fetten und
        mit Bröseln ausstreuen, den Teig hineingeben und glatt streichen. Das vorbereitete Obst dicht
        darauf verteilen und leicht andrücken. Auf der mittleren Schiene goldbraun backen; wenn an
        einem Hölzchen nichts mehr klebt, ist er fertig. Eine Viertelstunde in der Form stehen lassen,
        mit Puderzucker bestäuben und lauwarm mit geschlagener Sahne servieren.
        {_KITCHEN}"""
        items.append(_item("cake", f"{fruit}kuchen ({form})", body, "Kuchen", "Für Gäste"))
    own = (
        "Wer es schärfer mag, gibt ein Stück Ingwer dazu.",
        "Geröstete Kerne obenauf sorgen für den Biss.",
        "Mit einem Löffel Meerrettich wird daraus ein Essen für kalte Tage.",
        "Kinder essen sie lieber mit Buchstabennudeln.",
        "Ein Apfel, mitgekocht, nimmt ihr die Schwere.",
        "Dazu passt ein Brot mit viel Kümmel.",
    )
    for vegetable in (
        *("Kürbis", "Möhren", "Lauch", "Sellerie", "Pastinaken", "Brokkoli", "Blumenkohl"),
        *("Erbsen", "Spinat", "Fenchel", "Rote Bete", "Kohlrabi", "Topinambur", "Zucchini"),
    ):
        extra = " ".join(draw.some(own, draw.between(0, 2)))
        body = f"""
        Diese Suppe ist in einer halben Stunde auf dem Tisch. {vegetable} bekommt man das ganze Jahr,
        am besten vom Markt. {extra}

        {vegetable} :: {draw.between(4, 12) * 100} g
        Kartoffeln :: {draw.between(2, 3) * 100} g
        Brühe :: {draw.between(6, 14) * 100} ml
        Sahne :: {draw.between(1, 4) * 50} ml
        Portionen :: 4
        Eingetragen am :: @2026-01-{draw.between(17, 19)}@

        Zwiebel und Knoblauch fein würfeln und in Butter glasig werden lassen, ohne dass sie Farbe
        nehmen. Das Gemüse putzen, in Stücke schneiden und mit den Kartoffeln kurz mitdünsten.
        Mit der Brühe ablöschen, Lorbeer und Pfeffer zugeben und zugedeckt köcheln lassen, bis alles
        weich ist. Den Lorbeer herausnehmen, die Suppe pürieren, bis sie glatt ist, die Sahne
        einrühren und mit Salz, Muskat und etwas Zitrone abschmecken. Nicht mehr kochen lassen. In
        vorgewärmten Tellern anrichten und mit Schnittlauch bestreuen. Reste lassen sich gut einfrieren
        und schmecken mit Wasser verdünnt noch am dritten Tag.
        {_KITCHEN}"""
        items.append(_item("soup", f"{vegetable}-Cremesuppe", body, "Suppen", "Schnelle Küche"))
    return Site(
        name="de-recipes",
        title="Kochlöffel & Kelle",
        lang="de",
        menu=("Suppen", "Kuchen", "Eingemachtes", "Salate", "Brot", "Saison", "Über uns", "Suche"),
        sidebar=(
            "Rezept der Woche per E-Mail bestellen.",
            "Unser Kochbuch ist im Buchhandel erhältlich.",
        ),
        footer=("Impressum", "Datenschutz", "Alle Angaben ohne Gewähr"),
        cookie="Diese Seite merkt sich Ihre Lieblingsrezepte in einem Cookie.",
        labels=(
            "Startseite",
            "Das könnte auch schmecken",
            "Kommentare",
            "Gedruckt am",
            "Einverstanden",
        ),
        counters=(
            "{n} Mal aufgerufen",
            "{few} Personen kochen das gerade",
            "Zuletzt geändert am {when}",
        ),
        sentences=(
            "Ein Video dazu folgt im Herbst.",
            "Wir haben das Rezept in der Redaktion dreimal nachgekocht.",
            "Die Mengen lassen sich ohne Weiteres verdoppeln.",
        ),
        reviews=(
            (
                "Fünf Sterne! Ich habe die Hälfte des Zuckers genommen, und es war uns immer noch süß "
                "genug. Wird es wieder geben. Liebe Grüße, Gerda"
            ),
            (
                "Vier Sterne. Bei mir hat es zehn Minuten länger gedauert, aber das lag wohl am Herd. "
                "Die Nachbarn waren begeistert und wollten das Rezept."
            ),
        ),
        dates=("{d}. {month} {y}", "{y}-{mm}-{dd}"),
        markup=Markup("semantic", "ul", prefix="kk-"),
        restyled=Markup("layout", "table", text="div", prefix="rezept-", title_first=False),
        items=items,
        months=(
            *("Januar", "Februar", "März", "April", "Mai", "Juni", "Juli"),
            *("August", "September", "Oktober", "November", "Dezember"),
        ),
    )


SETS: dict[str, Callable[[], Site]] = {
    "shop": shop,
    "flats": flats,
    "jobs": jobs,
    "events": events,
    "api": api,
    "timetable": timetable,
    "people": people,
    "cities": cities,
    "zh-shop": zh_shop,
    "de-recipes": de_recipes,
}

if __name__ == "__main__":
    sys.exit(main())
