"""Which pairs of pages are near, and which rule says so: one pair for every rule, and its neighbour."""

from __future__ import annotations

import json
import pickle
import random
import re
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from material import edited, story, vocabulary

from scrapy_simdup.config import PRESETS, Config
from scrapy_simdup.page.comparison import RULES, compare_profiles
from scrapy_simdup.page.content import Content, ContentExtractor
from scrapy_simdup.page.features import normalise_blocks
from scrapy_simdup.page.fingerprint import Fingerprinter
from scrapy_simdup.page.kepttext import pack_texts, unpack_texts
from scrapy_simdup.page.measure import Comparison, closest, measure
from scrapy_simdup.page.profile import (
    MAIN,
    MAX_BLOCKS,
    MAX_NUMBERS,
    PROSE,
    VIEWS,
    Profile,
    View,
    block_hashes,
    pack,
)
from scrapy_simdup.page.profiler import Composition, Portrait, Profiler
from scrapy_simdup.page.sketch import COARSE_BINS, resemblance, shingle_hashes, sketch
from scrapy_simdup.page.thresholds import THRESHOLDS, Thresholds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    Common = Callable[[npt.NDArray[np.uint32]], npt.NDArray[np.bool_]]

NO_BLOCKS = np.empty(0, dtype=np.uint32)
EXTRACTOR = ContentExtractor()
PROFILER = Profiler(Fingerprinter(), VIEWS)
MAKING = ("same_text", "resemblance", "distance")
#: With these no rule refuses for what else the pages show.
BLIND = Thresholds(
    agrees_with_main=0.0,
    agrees_with_prose=0.0,
    contradicts_prose=0.0,
    same_title=0.0,
    other_title=0.0,
    visible_containment=0.0,
    site_containment=0.0,
    own_apart=10**9,
    own_entries=10**9,
    own_embeds=10**9,
)
LENIENT = replace(BLIND, contained=2.0)


@cache
def portrait(html: str) -> Portrait:
    return PROFILER.portrait(EXTRACTOR.extract(html))


def common_blocks(*texts: str) -> Common:
    """What a host's memory says where these blocks stand on many of its pages."""
    known = block_hashes(normalise_blocks(texts))
    return lambda blocks: np.isin(blocks, known)


def judge(
    a: str,
    b: str,
    *,
    same_site: bool = True,
    common: Common | None = None,
    thresholds: Thresholds = THRESHOLDS,
    **options: Any,
) -> Comparison:
    return compare_profiles(
        portrait(a),
        portrait(b).profile,
        Config.from_options(options),
        same_site=same_site,
        common=common,
        thresholds=thresholds,
    )


# ---- pages ---------------------------------------------------------------------------------------

TALE = story("tale", 240)


def paragraphs(text: str) -> str:
    return "".join(f"<p>{paragraph}</p>" for paragraph in text.split("\n\n"))


def page(title: str, body: str) -> str:
    return f"""<!DOCTYPE html><html lang="en"><head><title>{title}</title></head><body>
<nav><ul><li><a href="/">Home</a></li><li><a href="/n">News</a></li></ul></nav>
{body}
<footer><p>Printed by nobody, <a href="/i">imprint</a></p></footer></body></html>"""


def article(text: str, title: str = "The ferry", heading: str | None = None) -> str:
    return page(title, f"<main><h1>{heading or title}</h1>{paragraphs(text)}</main>")


def with_menu(*entries: str, text: str = TALE) -> str:
    menu = "".join(f"<div>{entry}</div>" for entry in entries)
    return page("The ferry", f"<div>{menu}</div><main><h1>The ferry</h1>{paragraphs(text)}</main>")


CREWS = (
    *("Abel", "Baker", "Carver", "Dunn", "Eccles", "Farrow", "Gale", "Hobbs", "Ives", "Jardine"),
    *("Kemp", "Lowe", "Marsh", "Noakes", "Orme", "Pyke", "Quill", "Reeve", "Stubbs", "Thorne"),
    *("Usher", "Vane", "Wicks", "Yates", "Ashby", "Birch", "Cole", "Dale", "Ellis", "Frost"),
)
DRAWN = random.Random(1).sample(CREWS, len(CREWS))


def regatta(crews: Sequence[str]) -> str:
    thanks = "The committee thanks all who rowed in the harbour regatta, and lists them here:"
    return article(f"{thanks}\n\n{', '.join(crews)}.", title="Crews of the regatta")


BOILERPLATE = story("on every page", 70)


def song(title: str, lyrics: str, lines: int = 14, *, last: str = "") -> str:
    """A page of which only the paragraph below the lyrics is found to be its main text."""
    verses = "<br>".join(story(f"{lyrics} {line}", 5) for line in range(lines)) + last
    return (
        f"<html><head><title>{title}</title></head><body><h1>{title}</h1><div>{verses}</div>"
        f"<div><p>{BOILERPLATE}</p></div></body></html>"
    )


def authors(letter: str, first: int) -> str:
    """A page of an index: the same frame everywhere, and a list of links."""
    words = vocabulary()
    entries = "".join(
        f"<li><a href=/{n}>{words[n]}, {words[n + 1]} {words[n + 2]}</a> (born {1700 + n})</li>"
        for n in range(first, first + 180, 3)
    )
    frame = f"<h1>Authors by letter</h1><p>{story('frame', 60)}</p>"
    return page(f"Authors: {letter}", f"<main>{frame}<ul>{entries}</ul></main>")


def quoting(comment: int) -> str:
    quoted = f"<blockquote>{paragraphs(TALE)}</blockquote>"
    return page(
        "The ferry",
        f"<main><h1>The ferry</h1>{quoted}<p>{story('comment', comment)}</p></main>",
    )


def retitled(html: str, title: str) -> str:
    return re.sub("<title>.*?</title>", f"<title>{title}</title>", html)


LEGAL = story("legal", 240)
LEGAL_BLOCKS = common_blocks(*LEGAL.split("\n\n"))


def recipe(text: str) -> str:
    return article(f"{text}\n\n{LEGAL}", title="Recipe")


SOUP, BREAD = story("soup", 45), story("bread", 45)
TERMS = story("terms", 150)


def offer(
    name: str, price: int, since: int, kilograms: int, number: str, *, shop: str = "Harbour Shop"
) -> str:
    facts = (
        f"The {name} weighs {kilograms} kg and has been sold since {since}. "
        f"Price {price} euro, article {number}."
    )
    return article(f"{facts}\n\n{TERMS}", f"{name} | {shop}", name)


LANTERN = offer("Lantern", 49, 1998, 3, "A-1201")
COMPASS = offer("Compass", 75, 2004, 1, "B-3377")


def job(town: str, reference: str = "R-4711") -> str:
    facts = f"The hospital in {town} looks for a nurse, 38 hours a week; reference {reference}."
    return article(f"{facts}\n\n{TERMS}", f"Nurse in {town} | Jobs", f"Nurse in {town}")


def manual(version: str, released: str = "2024") -> str:
    facts = (
        f"Released in {released}; needs 64 MB of memory, 200 MB of disk, ports 8080 and 9090, "
        "and 12 volts; the 3rd lamp flashes every 15 seconds."
    )
    return article(f"{facts}\n\n{TERMS}", f"Manual {version} | Docs", f"Manual, version {version}")


def flat(number: int | str, rooms: int, price: int, *, of: str = "Mill, flat {}") -> str:
    name = of.format(number)
    facts = (
        "The mill of 1894 has 24 flats with ceilings of 3.20 m, 2 lifts, 30 parking spaces, a roof "
        f"garden of 450 m², and 5 minutes to the station. No. {number}: {rooms} rooms, {price} euro."
    )
    return article(f"{facts}\n\n{TERMS}", f"{name} | Roof & Key", name)


INTRODUCTION = story("introduction", 70)


def holding(*parts: str, title: str = "Our collection", heading: str = "Our collection") -> str:
    """A page whose text is an introduction, with what it is about in no text of it."""
    return page(title, f"<main><h1>{heading}</h1>{''.join(parts)}{paragraphs(INTRODUCTION)}</main>")


def film(name: str, folder: str = "films") -> str:
    return f'<video src="/{folder}/{name}.mp4?session={folder}7f"></video>'


def entries(first: int, count: int = 12, more: str = "") -> str:
    words = vocabulary()
    items = (
        f'<li><a href="/{words[n]}{more}">{words[n]}</a></li>' for n in range(first, first + count)
    )
    return f"<ul>{''.join(items)}</ul>"


def pictures(*names: str, folder: str = "p") -> str:
    return "".join(f'<img src="/{folder}/{name}.jpg">' for name in names)


def aside(seed: str, words: int = 60) -> str:
    return f"<aside><p>{' '.join(story(seed, words).split())}</p></aside>"


SHARED_MENU = '<div><a href="/tea">Tea</a> <a href="/rope">Rope</a></div>'


# ---- one pair for every rule ---------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """Two pages, what is said of them, and what switches the rule off that says it."""

    rule: str
    near: bool
    a: str
    b: str
    given: dict[str, Any] = field(default_factory=dict)
    off: dict[str, Any] | None = None
    view: str | None = None


MENU = ("Rivers of the east", "Ferries and their crews", "Villages", "Weather in the estuary")
PAPER = {**PRESETS["paper"], "max_distance": 9}

DECIDED = {
    "the menu in another order": Case(
        "same_text", True, with_menu(*MENU), with_menu(*reversed(MENU))
    ),
    "one block said otherwise": Case(
        "resemblance", True, with_menu(*MENU), with_menu(*MENU, text=edited(TALE, 1))
    ),
    "the same words in another order": Case(
        "resemblance",
        False,
        regatta(CREWS),
        regatta(DRAWN),
        off={"min_resemblance": 0.05, "thresholds": BLIND},
    ),
    "some of the words in another order": Case(
        "resemblance", True, regatta(CREWS), regatta([*CREWS[:-3], *CREWS[:-4:-1]])
    ),
    "another text": Case("distance", False, article(TALE), article(story("no tale", 240))),
    "another text of the same words, not verified": Case(
        "distance", True, regatta(CREWS), regatta(DRAWN), given=PAPER
    ),
    "another text, not verified": Case(
        "distance", False, article(TALE), article(story("no tale", 240)), given=PAPER
    ),
    "one footer as the main text of two pages": Case(
        "other_view",
        False,
        song("A song", "herring"),
        song("Another tune", "mackerel"),
        off={"thresholds": BLIND, "keep_siblings": False},
        view=MAIN,
    ),
    "one footer as the main text of one page with two endings": Case(
        "same_text", True, song("A song", "herring"), song("A song", "herring", last="<br>la la")
    ),
    "one footer as the main text of two pages under the site's title": Case(
        "other_view",
        False,
        retitled(song("A song", "herring"), "Songbook"),
        retitled(song("Another tune", "mackerel"), "Songbook"),
        off={"thresholds": BLIND, "keep_siblings": False},
    ),
    "one frame around two lists": Case(
        "other_view",
        False,
        authors("A", 0),
        authors("B", 600),
        off={"thresholds": BLIND},
        view=PROSE,
    ),
    "one frame around a list with one more entry": Case(
        "same_text", True, authors("A", 0), authors("A", 3)
    ),
    "the print version of the whole book": Case(
        "containment",
        False,
        article(TALE),
        article(f"{TALE}\n\n{story('second part', 60)}"),
        off={"thresholds": LENIENT},
    ),
    "the print version with one more sentence": Case(
        "resemblance", True, article(TALE), article(f"{TALE}\n\n{story('second part', 25)}")
    ),
    "a page that quotes the other and comments on it": Case(
        "containment", False, article(TALE), quoting(60), off={"thresholds": LENIENT}
    ),
    "a page that quotes the other": Case("resemblance", True, article(TALE), quoting(20)),
    "different recipes above one legal text": Case(
        "boilerplate",
        False,
        recipe(SOUP),
        recipe(BREAD),
        given={"common": LEGAL_BLOCKS},
        off={"common": None},
    ),
    "one recipe, corrected, above the legal text": Case(
        "resemblance",
        True,
        recipe(SOUP),
        recipe(edited(SOUP, 1, words=2)),
        given={"common": LEGAL_BLOCKS},
    ),
    "different recipes above a text that is not known": Case(
        "resemblance",
        True,
        recipe(SOUP),
        recipe(BREAD),
        given={"common": common_blocks("something else")},
    ),
    "different recipes above a text of which little is known": Case(
        "resemblance",
        True,
        recipe(SOUP),
        recipe(BREAD),
        given={"common": common_blocks(LEGAL.split("\n\n")[0])},
    ),
    "the legal texts of two hosts": Case(
        "resemblance",
        True,
        recipe(SOUP),
        recipe(BREAD),
        given={"common": LEGAL_BLOCKS, "same_site": False},
    ),
    "two offers": Case("siblings", False, LANTERN, COMPASS, off={"keep_siblings": False}),
    "one offer at another price": Case(
        "resemblance", True, LANTERN, offer("Lantern", 55, 2001, 4, "A-1201")
    ),
    "one offer under another name": Case(
        "resemblance", True, LANTERN, offer("Storm lamp", 49, 1998, 3, "A-1201")
    ),
    "one job in two towns": Case("resemblance", True, job("Leeds"), job("York")),
    "two jobs in two towns": Case(
        "siblings", False, job("Leeds"), job("York", "R-5822"), off={"keep_siblings": False}
    ),
    "two versions of a manual": Case("resemblance", True, manual("2.1"), manual("2.2")),
    "two versions of a manual, released in other years": Case(
        "resemblance", True, manual("2.1"), manual("3.0", "2029")
    ),
    "two sizes of one offer, with hardly a number in common": Case(
        "siblings",
        False,
        offer("Lantern 200", 49, 1998, 3, "A-1201"),
        offer("Lantern 300", 75, 2004, 1, "B-3377"),
        off={"keep_siblings": False},
    ),
    "two flats of one house, with most numbers in common": Case(
        "siblings", False, flat(7, 4, 310), flat(12, 6, 415), off={"keep_siblings": False}
    ),
    "two flats of one house, offered on two sites": Case(
        "resemblance", True, flat(7, 4, 310), flat(12, 6, 415), given={"same_site": False}
    ),
    "two versions of a manual, with most numbers in common": Case(
        "resemblance",
        True,
        flat("9.5", 4, 310, of="Mill {}"),
        flat("10.6", 6, 415, of="Mill {}"),
    ),
    "a chapter that has become another one": Case(
        "resemblance",
        True,
        flat(7, 4, 310, of="Chapter {}. Mills"),
        flat(12, 6, 415, of="Chapter {}. Mills"),
    ),
    "two offers of two shops": Case(
        "siblings",
        False,
        LANTERN,
        offer("Compass", 75, 2004, 1, "B-3377", shop="Quay Store"),
        given={"same_site": False},
        off={"keep_siblings": False},
    ),
    "one offer in two shops": Case(
        "same_text",
        True,
        LANTERN,
        offer("Lantern", 49, 1998, 3, "A-1201", shop="Quay Store"),
        given={"same_site": False},
    ),
    "one offer in two shops, in another currency": Case(
        "resemblance",
        True,
        LANTERN,
        offer("Lantern", 57, 1998, 6, "A-1201", shop="Quay Store"),
        given={"same_site": False},
    ),
    "one story under two headlines on two sites": Case(
        "resemblance",
        True,
        article(f"In 1998 it sank.\n\n{TALE}", "Ferry sinks | Lantern", "Ferry sinks"),
        article(f"In 1998 it sank.\n\n{edited(TALE, 1)}", "Chain breaks | Post", "Chain breaks"),
        given={"same_site": False},
    ),
    "one story under two headlines on two sites, with another number on each": Case(
        "resemblance",
        True,
        article(f"In 1998 it sank.\n\n{TALE}", "Ferry sinks | Lantern", "Ferry sinks"),
        article(f"In 1999 it sank.\n\n{TALE}", "Chain breaks | Post", "Chain breaks"),
        given={"same_site": False},
    ),
    "two stories under two headlines on one site, with another number each": Case(
        "siblings",
        False,
        article(f"In 1998 it sank.\n\n{TALE}", "Ferry sinks | Lantern", "Ferry sinks"),
        article(f"In 1999 it sank.\n\n{TALE}", "Chain breaks | Lantern", "Chain breaks"),
        off={"keep_siblings": False},
    ),
    "two films under one description": Case(
        "other_view",
        False,
        holding(film("gulls")),
        holding(film("tides")),
        off={"thresholds": BLIND},
    ),
    "one film at two places": Case(
        "same_text", True, holding(film("gulls")), holding(film("gulls", "mirror"))
    ),
    "two films on two sites": Case(
        "same_text", True, holding(film("gulls")), holding(film("tides")), {"same_site": False}
    ),
    "another film beside a long text": Case(
        "same_text",
        True,
        holding(film("gulls"), paragraphs(TALE)),
        holding(film("tides"), paragraphs(TALE)),
    ),
    "two galleries under one description": Case(
        "other_view",
        False,
        holding(pictures(*CREWS[:12])),
        holding(pictures(*CREWS[12:24])),
        off={"thresholds": BLIND},
    ),
    "one gallery at two places": Case(
        "same_text",
        True,
        holding(pictures(*CREWS[:12])),
        holding(pictures(*CREWS[:12], folder="img/v2")),
    ),
    "another icon or two": Case(
        "same_text",
        True,
        holding(pictures("home", "search", *CREWS[:5])),
        holding(pictures("house", "lens", *CREWS[:5])),
    ),
    "two lists of links under one introduction": Case(
        "other_view",
        False,
        holding(SHARED_MENU, entries(0)),
        holding(SHARED_MENU, entries(100)),
        off={"thresholds": BLIND},
    ),
    "one list of links with a session in each": Case(
        "same_text",
        True,
        holding(SHARED_MENU, entries(0)),
        holding(SHARED_MENU, entries(0, more="?session=4f2a")),
    ),
    "other related links": Case(
        "same_text",
        True,
        holding(entries(0), entries(50, 5)),
        holding(entries(0), entries(100, 5)),
    ),
    "two stories in asides to one text": Case(
        "other_view",
        False,
        holding(paragraphs(TALE), aside("gulls")),
        holding(paragraphs(TALE), aside("tides")),
        off={"thresholds": BLIND},
    ),
    "other short notes in asides": Case(
        "same_text",
        True,
        holding(paragraphs(TALE), aside("gulls", 20)),
        holding(paragraphs(TALE), aside("tides", 20)),
    ),
    "an aside on one of the pages": Case(
        "same_text",
        True,
        holding(paragraphs(TALE), aside("gulls")),
        holding(paragraphs(TALE)),
    ),
    "two names and a photograph of each": Case(
        "siblings",
        False,
        holding(pictures("anna"), paragraphs(TALE), title="Anna", heading="Anna"),
        holding(pictures("berta"), paragraphs(TALE), title="Berta", heading="Berta"),
        off={"keep_siblings": False},
    ),
    "two names and one photograph": Case(
        "resemblance",
        True,
        holding(pictures("anna"), paragraphs(TALE), title="Anna", heading="Anna"),
        holding(pictures("anna"), paragraphs(TALE), title="Berta", heading="Berta"),
    ),
    "main texts that are the same since they lack the songs": Case(
        "siblings",
        False,
        song("A song", "herring", lines=3),
        song("Another tune", "mackerel", lines=3),
        off={"keep_siblings": False},
        view=MAIN,
    ),
}
REFUSED = [name for name, case in DECIDED.items() if case.off]


def test_every_rule_has_pairs_that_it_decides_and_pairs_that_it_does_not() -> None:
    assert {case.rule for case in DECIDED.values()} == RULES.keys()
    assert {case.rule for case in DECIDED.values() if case.near} == set(MAKING)
    refusing = RULES.keys() - {"same_text"}
    assert {case.rule for case in DECIDED.values() if not case.near} == refusing


@pytest.mark.parametrize("name", DECIDED)
def test_the_rule_decides(name: str) -> None:
    case = DECIDED[name]
    found = judge(case.a, case.b, **case.given)
    assert (found.rule, found.near) == (case.rule, case.near), found
    assert case.view in (None, found.view)


@pytest.mark.parametrize("name", REFUSED)
def test_nothing_but_that_rule_keeps_the_pages_apart(name: str) -> None:
    case = DECIDED[name]
    assert case.off is not None
    assert judge(case.a, case.b, **{**case.given, **case.off}).near


@pytest.mark.parametrize("name", DECIDED)
def test_the_order_of_the_pages_does_not_matter(name: str) -> None:
    case = DECIDED[name]
    assert judge(case.a, case.b, **case.given) == judge(case.b, case.a, **case.given)


@pytest.mark.parametrize("name", DECIDED)
def test_a_page_is_near_itself(name: str) -> None:
    case = DECIDED[name]
    found = judge(case.a, case.a, **{**case.given, "min_resemblance": 1.0})
    assert (found.near, found.distance, found.resemblance) == (True, 0, 1.0)


def test_the_shell_around_two_stories_in_scripts_is_no_page() -> None:
    def shell(title: str, text: str) -> str:
        data = json.dumps({"@type": "NewsArticle", "articleBody": text})
        return page(
            title, f"<p>{BOILERPLATE}</p><script type='application/ld+json'>{data}</script>"
        )

    for words in (150, 700):
        one, other = (shell(name, story(name, words)) for name in ("Herring", "Mackerel"))
        assert not judge(one, other).near
        assert judge(one, shell("Herring again", story("Herring", words))).near


def test_the_same_main_text_may_miss_a_passage_that_each_page_has() -> None:
    main = tuple(TALE.split("\n\n"))

    def missing(seed: str, words: int) -> Portrait:
        texts = (*main, " ".join(story(seed, words).split()))
        return PROFILER.portrait(Content(main, texts, texts, title="The ferry"))

    def near(words: int, same_site: bool = True, thresholds: Thresholds = THRESHOLDS) -> bool:
        a, b = missing("gulls", words), missing("tides", words).profile
        return compare_profiles(a, b, Config(), same_site=same_site, thresholds=thresholds).near

    assert not near(75)
    assert near(75, thresholds=replace(THRESHOLDS, own_apart=10**9))
    assert near(75, same_site=False)
    assert near(25)


def test_a_heading_of_the_whole_host_does_not_name_the_page() -> None:
    shop = [html.replace("<h1>", "<h1>Harbour Shop</h1><h2>").replace("</h1>\n", "</h2>\n")
            for html in (LANTERN, COMPASS)]  # fmt: skip
    assert portrait(shop[0]).profile.headings == ("Harbour Shop",)
    assert judge(*shop).near
    assert judge(*shop, common=common_blocks("Something else")).near
    assert judge(*shop, common=common_blocks("Harbour  SHOP")).rule == "siblings"


def test_titles_alone_do_not_tell_the_pages_of_two_sites_apart() -> None:
    bare = [html.replace("<h1>", "<h3>").replace("</h1>", "</h3>") for html in (LANTERN, COMPASS)]
    assert judge(*bare).rule == "siblings"
    assert judge(*bare, same_site=False).near


def test_a_number_in_the_title_alone_may_be_a_version() -> None:
    offers = flat(7, 4, 310), flat(12, 6, 415)
    assert judge(*offers).rule == "siblings"
    assert judge(*(html.replace("h1>", "h3>") for html in offers)).near


def test_a_name_with_another_number_and_no_number_of_its_own_is_no_sibling() -> None:
    one, other = (
        of(AKIN, title=name, headings=(name,), numbers=pack(np.arange(count), MAX_NUMBERS))
        for name, count in (("Flat 7", 9), ("Flat 12", 12))
    )
    assert compare(one, other).near
    assert compare(other, one).near


def test_the_paper_asks_for_nothing_but_the_distance() -> None:
    refused = {DECIDED[name].rule: DECIDED[name] for name in REFUSED}
    for rule in ("resemblance", "other_view", "containment", "boilerplate", "siblings"):
        case = refused[rule]
        found = judge(case.a, case.b, **{**case.given, **PAPER})
        assert found.near
        assert found.rule in ("same_text", "distance")
        assert found.resemblance is not None


# ---- views, one by one ---------------------------------------------------------------------------

HASHES = np.random.default_rng(3).integers(0, 2**64, size=1200, dtype=np.uint64)


def view(
    name: str = MAIN,
    simhash: int = 0,
    hashes: slice = slice(0, 600),
    digest: bytes = b"a",
    tokens: int = 600,
) -> View:
    own = HASHES[hashes]
    return View(name, simhash, sketch(own), tokens, len(own), digest)


BASE = view()
AKIN = view(simhash=0b111, hashes=slice(60, 660), digest=b"b")  # J = 540 / 660
FOREIGN = view(simhash=0b1, hashes=slice(600, 1200), digest=b"c")
FAR = view(simhash=2**64 - 1, digest=b"d")


def of(*views: View, **more: Any) -> Portrait:
    return Portrait(Profile(views=views, **more), {}, NO_BLOCKS, 0)


@dataclass(frozen=True)
class Options:
    max_distance: int = 3
    min_resemblance: float | None = 0.7
    keep_siblings: bool = True


def compare(a: View | Portrait, b: View | Portrait, **options: Any) -> Comparison:
    one, other = (pair if isinstance(pair, Portrait) else of(pair) for pair in (a, b))
    return compare_profiles(one, other.profile, Options(**options), same_site=True)


def test_equal_views_are_near() -> None:
    assert compare(BASE, BASE) == Comparison(
        0, 1.0, 1.0, near=True, length_ratio=1.0, view=MAIN, rule="same_text"
    )


def test_near_needs_the_distance() -> None:
    assert compare(BASE, AKIN, max_distance=3).near
    assert not compare(BASE, AKIN, max_distance=2).near
    assert not compare(BASE, FAR, max_distance=63).near
    assert compare(BASE, FAR, max_distance=64).near


def test_near_needs_the_resemblance() -> None:
    alike = resemblance(BASE.sketch, AKIN.sketch)
    assert compare(BASE, AKIN, min_resemblance=alike).near
    assert not compare(BASE, AKIN, min_resemblance=alike + 0.001).near
    assert not compare(BASE, FOREIGN).near


def test_the_same_digest_needs_neither() -> None:
    same = msgspec.structs.replace(FAR, digest=BASE.digest, sketch=FOREIGN.sketch)
    assert compare(BASE, same).rule == "same_text"
    assert compare(BASE, same, min_resemblance=None).rule == "same_text"


def test_without_verification_the_distance_decides_and_the_resemblance_is_told() -> None:
    found = compare(BASE, FOREIGN, min_resemblance=None)
    assert (found.near, found.rule) == (True, "distance")
    assert found.resemblance is not None
    assert found.resemblance < 0.1


def test_views_are_compared_with_those_of_the_same_name_only() -> None:
    found = compare(BASE, view(PROSE))
    assert found == Comparison(None, None, None, near=False, rule="distance")


PROSE_BASE, PROSE_AKIN, PROSE_FAR = (
    msgspec.structs.replace(one, name=PROSE, digest=b"p" + one.digest) for one in (BASE, AKIN, FAR)
)


def test_one_view_is_enough() -> None:
    assert compare(of(FAR, PROSE_BASE), of(BASE, PROSE_AKIN)).view == PROSE
    assert compare(of(BASE, PROSE_FAR), of(AKIN, PROSE_BASE)).view == MAIN


def test_a_near_view_goes_before_a_refused_one_that_resembles_more() -> None:
    found = compare(of(BASE, PROSE_FAR), of(AKIN, PROSE_BASE), max_distance=3)
    assert (found.view, found.near) == (MAIN, True)
    assert found.resemblance is not None
    assert found.resemblance < 0.9


def test_of_two_near_views_the_same_text_counts_then_the_resemblance_then_the_distance() -> None:
    same_prose = msgspec.structs.replace(AKIN, name=PROSE, digest=b"s")
    assert compare(of(BASE, same_prose), of(AKIN, same_prose)).view == PROSE
    assert compare(of(BASE, PROSE_BASE), of(AKIN, msgspec.structs.replace(PROSE_BASE, digest=b"o"))
    ).view == PROSE  # fmt: skip
    nearer = msgspec.structs.replace(PROSE_AKIN, simhash=0b1)
    assert compare(of(BASE, PROSE_BASE), of(AKIN, nearer)).view == PROSE
    assert compare(of(BASE, PROSE_BASE), of(AKIN, PROSE_AKIN)).view == MAIN
    edited_main = msgspec.structs.replace(BASE, digest=b"e")
    assert compare(of(BASE, same_prose), of(edited_main, same_prose)).view == PROSE


def test_the_same_prose_outweighs_a_main_text_that_was_chosen_otherwise() -> None:
    one, other = of(BASE, PROSE_BASE), of(FOREIGN, PROSE_BASE)
    assert compare(one, other).rule == "same_text"
    alike = msgspec.structs.replace(PROSE_BASE, digest=b"nearly")
    assert compare(one, of(FOREIGN, alike)).rule == "other_view"
    assert compare(one, of(AKIN, alike)).view == PROSE
    assert compare(of(PROSE_BASE), of(FOREIGN, alike)).near, "who has no main text, is not asked"


def test_a_refused_view_within_the_distance_shows_before_one_beyond_it() -> None:
    found = compare(of(FOREIGN, PROSE_FAR), of(BASE, PROSE_BASE))
    assert (found.near, found.rule, found.view, found.distance) == (False, "resemblance", MAIN, 1)


def test_a_view_without_a_sketch_is_near_by_distance_only() -> None:
    bare = msgspec.structs.replace(BASE, sketch=b"", digest=b"b")
    found = compare(BASE, bare, min_resemblance=None)
    assert (found.distance, found.resemblance, found.near) == (0, None, True)
    assert compare(BASE, bare).rule == "resemblance"


def test_a_part_is_contained_in_the_whole() -> None:
    whole = view(hashes=slice(0, 1200), digest=b"w", tokens=1200)
    found = measure(BASE, whole)
    assert found.resemblance == pytest.approx(0.5, abs=0.07)
    assert found.containment == pytest.approx(1.0, abs=0.1)
    assert (found.length_ratio, found.near, found.rule) == (0.5, False, None)


def test_a_comparison_can_be_pickled() -> None:
    found = compare(BASE, AKIN)
    assert pickle.loads(pickle.dumps(found)) == found


def test_the_closest_views_are_those_that_resemble_most() -> None:
    prose = msgspec.structs.replace(FOREIGN, name=PROSE)
    assert closest(of(BASE, prose).profile, of(AKIN, prose).profile).view == PROSE
    found = closest(of(BASE, prose).profile, of(AKIN, PROSE_FAR).profile)
    assert (found.view, found.distance, found.near, found.rule) == (MAIN, 3, False, None)
    assert closest(of(BASE).profile, of(prose).profile).distance == 1


def test_shingles_that_were_kept_are_counted_out() -> None:
    """Seven in ten are shared; the sketches say so with a standard error of 0.02."""
    asked: list[str] = []

    def exactly(shared: int, least: float = 0.7) -> Comparison:
        tokens = np.arange(1000, dtype=np.uint64)
        theirs = shingle_hashes(tokens[: shared + 7])
        union = 993
        composition = Composition(
            HASHES[:0].astype(np.uint32), np.empty(0, np.int64), tokens, tokens
        )
        mine = View(MAIN, 0, sketch(composition.shingles()), 1000, union, b"a")
        other = View(MAIN, 0, sketch(theirs), shared + 7, shared, b"b")

        def exact(name: str) -> npt.NDArray[np.uint64]:
            asked.append(name)
            return theirs

        return compare_profiles(
            Portrait(Profile(views=(mine,)), {MAIN: composition}, NO_BLOCKS, 0),
            Profile(views=(other,)),
            Options(min_resemblance=least),
            same_site=True,
            exact=exact,
            thresholds=LENIENT,
        )

    for shared in (696, 700, 800, 993):
        found = exactly(shared)
        assert found.resemblance == shared / 993
        assert found.containment == 1.0
        assert found.near is (shared / 993 >= 0.7)
    assert set(asked) == {MAIN}
    asked.clear()
    assert not exactly(500).near
    assert asked == [], "too far below the threshold to matter"


def test_where_no_text_was_kept_the_sketches_count() -> None:
    one = of(BASE)
    for composition in (
        {},
        {MAIN: Composition(HASHES[:0].astype(np.uint32), np.empty(0, np.int64), HASHES, HASHES)},
    ):
        found = compare_profiles(
            Portrait(one.profile, composition, NO_BLOCKS, 0),
            of(AKIN).profile,
            Options(),
            same_site=True,
            exact=lambda name: None,
        )
        assert found == compare(BASE, AKIN)


def test_the_shingles_of_kept_texts_are_those_of_the_page() -> None:
    html = article(TALE + "\n\n老城区的修伞匠今年七十三岁。\n\nGröße\u2028 ﬁn")
    content = EXTRACTOR.extract(html)
    made = PROFILER.portrait(content)
    kept = unpack_texts(pack_texts(content))
    assert kept.keys() == made.composition.keys() == set(VIEWS)
    for name, blocks in kept.items():
        shingles = PROFILER.shingles(blocks, japanese=made.profile.japanese)
        assert shingles.tolist() == made.composition[name].shingles().tolist()
    with pytest.raises(ValueError, match="not the kept text"):
        unpack_texts(b"something else")
    with pytest.raises(ValueError, match="not the kept text"):
        unpack_texts(pack_texts(content)[:-9])


def test_numbers_that_are_not_remembered_tell_no_pages_apart() -> None:
    rng = np.random.default_rng(5)
    numbers = rng.choice(2**32, size=MAX_NUMBERS + 40, replace=False).astype(np.uint32)

    def part(title: str, kept: npt.NDArray[np.uint32]) -> Portrait:
        return of(AKIN, title=title, headings=(title,), numbers=pack(kept, MAX_NUMBERS))

    few, many = part("Part 1", numbers[: MAX_NUMBERS - 4]), part("Part 2", numbers)
    other = part("Part 3", rng.choice(2**32, size=60).astype(np.uint32))
    assert compare(few, many).near
    assert compare(many, few).near
    assert compare(many, other).rule == "siblings"
    assert compare(few, other).rule == "siblings"


# ---- what holds of all pages ---------------------------------------------------------------------

COARSE = (b"", *(sketch(HASHES[part], COARSE_BINS) for part in (
    slice(0, 600), slice(100, 700), slice(300, 900), slice(600, 1200),
)))  # fmt: skip
BLOCKS = range(100, 116)
SKETCHED = tuple(
    (sketch(HASHES[part]), len(HASHES[part]))
    for part in (slice(0, 600), slice(30, 630), slice(0, 680), slice(0, 800), slice(600, 1200))
)


TITLES = (None, "Lantern 1", "Lantern 2", "Compass 3")
HEADINGS = ((), ("Lantern 1",), ("Compass 3",), ("Shop",))


def random_portrait(pick: random.Random) -> Portrait:
    views, composition = [], {}
    for name in pick.choice([(MAIN,), (PROSE,), VIEWS, VIEWS, VIEWS]):
        sketched, shingles = pick.choice(SKETCHED)
        simhash = pick.choice([0, 0b1, 0b11, 0b1111111, 2**20 - 1])
        tokens = pick.choice([20, 200, 600])
        views.append(
            View(name, simhash, sketched, tokens, shingles, pick.choice([b"a", b"b", b"c"]))
        )
        hashes = np.array(pick.sample(BLOCKS, pick.randint(1, 8)), dtype=np.uint32)
        composition[name] = Composition(
            hashes, np.full(len(hashes), 40, dtype=np.int64), HASHES[:tokens], HASHES[:tokens]
        )
    numbers = pick.sample(range(6), pick.randint(0, 5))
    visible = pick.choice(COARSE)
    profile = Profile(
        views=tuple(views),
        visible=visible,
        visible_shingles=600 if visible else 0,
        title=pick.choice(TITLES),
        headings=pick.choice(HEADINGS),
        blocks=pack(np.concatenate([part.hashes for part in composition.values()]), MAX_BLOCKS),
        numbers=pack(np.array(numbers, dtype=np.uint32), MAX_NUMBERS),
    )
    return Portrait(profile, composition, NO_BLOCKS, 0)


#: Random parts and not strategies, since these would take fifty times as long to draw.
pairs = st.randoms(use_true_random=True).map(
    lambda pick: (random_portrait(pick), random_portrait(pick))
)
criteria = st.builds(
    Options,
    max_distance=st.sampled_from([0, 3, 9]),
    min_resemblance=st.sampled_from([0.7, 0.7, 0.4, None]),
    keep_siblings=st.booleans(),
)
known_blocks = st.sampled_from([BLOCKS[:0], BLOCKS[:6], BLOCKS[:12], BLOCKS])
many = settings(derandomize=True, deadline=None, max_examples=300)
Pair = tuple[Portrait, Portrait]


def knows(blocks: range) -> Common:
    return lambda asked: np.isin(asked, blocks)


@many
@given(pairs, criteria, st.booleans(), known_blocks)
def test_no_pages_are_near_but_by_a_view_that_is(
    pair: Pair, given: Options, same_site: bool, known: range
) -> None:
    a, b = pair
    found = compare_profiles(a, b.profile, given, same_site=same_site, common=knows(known))
    assert found.rule in RULES
    if found.near:
        assert found.rule in MAKING
        assert found.view is not None
        one, other = a.profile.view(found.view), b.profile.view(found.view)
        assert one is not None
        assert other is not None
        measured = measure(one, other)
        assert measured.distance is not None
        assert measured.resemblance is not None
        verified = measured.resemblance >= (given.min_resemblance or 0.0)
        within = measured.distance <= given.max_distance and verified
        assert within or one.digest == other.digest
        assert (found.rule == "same_text") is (one.digest == other.digest)


@many
@given(pairs, criteria, st.booleans(), known_blocks)
def test_a_rule_that_refuses_makes_no_pages_near(
    pair: Pair, given: Options, same_site: bool, known: range
) -> None:
    a, b = pair

    def near(common: Common | None, thresholds: Thresholds, keep_siblings: bool) -> bool:
        return compare_profiles(
            a,
            b.profile,
            replace(given, keep_siblings=keep_siblings),
            same_site=same_site,
            common=common,
            thresholds=thresholds,
        ).near

    commons = (None, knows(known))
    strictness = (LENIENT, replace(LENIENT, contained=THRESHOLDS.contained), THRESHOLDS)
    for common, thresholds, keep in product(commons, strictness, (False, True)):
        # The memory of the host takes away headings, and so may let siblings be told apart or not;
        # everything else only refuses.
        if near(common, thresholds, keep):
            assert near(common, thresholds, False)
            assert near(common, LENIENT, keep)
            assert near(None, thresholds, False)


@many
@given(pairs, criteria, st.booleans())
def test_no_page_comes_first(pair: Pair, given: Options, same_site: bool) -> None:
    a, b = pair
    found = compare_profiles(a, b.profile, given, same_site=same_site)
    assert compare_profiles(b, a.profile, given, same_site=same_site) == found


@many
@given(pairs, criteria, st.booleans(), known_blocks)
def test_whatever_is_asked_for_a_page_is_near_itself(
    pair: Pair, given: Options, same_site: bool, known: range
) -> None:
    a, _ = pair
    found = compare_profiles(a, a.profile, given, same_site=same_site, common=knows(known))
    assert (found.near, found.rule) == (True, "same_text")
