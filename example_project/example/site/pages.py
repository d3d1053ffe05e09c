"""The pages of the demo site, each with the truth about it."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import date, timedelta
from string import Template
from typing import TYPE_CHECKING

from example.site import texts
from example.site.page import Page
from example.site.templates import labels, link, links, paragraphs, render

if TYPE_CHECKING:
    from collections.abc import Iterable

    from example.site.texts import Article

LANGS = ("en", "zh", "zh-hant")
#: Languages that have more than articles.
FULL = ("en", "zh")
#: Of these forms every article gets three, by turns.
TURNS = ("copy", "session", "tracking", "print", "mirror", "refreshed")
#: Articles that are also served in an encoding of old.
LEGACY = {
    "umbrella-mender": "gbk",
    "abacus": "gbk",
    "tea-hill": "big5",
    "lighthouse-keeper": "big5",
}
FIRST_DAY = date(2024, 3, 1)
#: Seconds. Scrapy follows a refresh of at most 100 seconds, and takes others for pages.
SOON, LATE = 1, 300


def all_pages() -> list[Page]:
    """Return every page of the site, the front page first; always the same."""
    articles = [article for lang in LANGS for article in texts.articles(lang)]
    forms = {
        article.slug: _article_pages(article, number) for number, article in enumerate(articles)
    }
    pages = [_front_page(), *(page for group in forms.values() for page in group)]
    for lang in LANGS:
        pages += _article_lists(lang, articles, forms)
    for lang in FULL:
        pages += _objects(lang)
        pages += _products(lang)
        pages += _columns(lang, articles)
        pages += _notes(lang)
    return pages


# Articles and their forms


def _article_pages(article: Article, number: int) -> list[Page]:
    """Return the original, and three forms by turns; edited, extended, GBK, Big5 as there are."""
    forms = ["original", *(TURNS[(number + step) % len(TURNS)] for step in (0, 1, 3))]
    if article.edit:
        forms.append("edited")
    if article.added:
        forms.append("extended")
    if article.slug in LEGACY:
        forms.append(LEGACY[article.slug])
    return [_form(form, article, number) for form in forms]


def _form(form: str, article: Article, number: int) -> Page:
    lang, slug = article.lang, article.slug
    token = hashlib.sha256(slug.encode()).hexdigest()
    original = _page(f"/news/{lang}/{slug}.html", "original", _news(article, number), slug)
    if form == "original":
        return original
    if form == "copy":
        return replace(original, form=form, path=f"/archive/{lang}/{slug}.html")
    if form == "tracking":
        query = f"utm_source=letter&utm_medium=email&utm_campaign=week{number}"
        return replace(original, form=form, path=f"{original.path}?{query}")
    if form == "session":
        field = f'<input type="hidden" name="sid" value="{token[:24]}">'
        return _page(
            f"{original.path}?sid={token[:24]}", form, _news(article, number, session=field), slug
        )
    if form == "print":
        html = render("print", lang, title=article.title, body=paragraphs(article.paragraphs))
        return _page(f"/print/{lang}/{slug}.html", form, html, slug)
    if form == "mirror":
        return _page(f"/secondshelf/{lang}/{token[:4]}-{slug}/", form, _blog(article), slug)
    if form == "refreshed":
        return _page(f"/today/{lang}/{slug}.html", form, _news(article, number, later=True), slug)
    if form == "edited":
        html = _news(article, number, body=article.edited())
        return _page(f"/corrected/{lang}/{slug}.html", form, html, slug)
    if form == "extended":
        html = _news(article, number, body=article.extended())
        return _page(f"/evening/{lang}/{slug}.html", form, html, slug)
    html = _news(article, number, charset=form)
    # GBK is declared in the header, too; Big5 in the page alone.
    content_type = "text/html; charset=gbk" if form == "gbk" else "text/html"
    return _page(f"/{form}/{slug}.html", form, html, slug, charset=form, content_type=content_type)


def _news(
    article: Article,
    number: int,
    *,
    body: Iterable[str] | None = None,
    session: str = "",
    later: bool = False,
    charset: str = "utf-8",
) -> str:
    """Return the article in the paper's template; *later* there is another date and ad."""
    return _news_template(
        article.lang,
        article.title,
        paragraphs(article.paragraphs if body is None else body),
        number,
        session=session,
        later=later,
        charset=charset,
    )


def _news_template(
    lang: str,
    title: str,
    body: str,
    number: int,
    *,
    session: str = "",
    later: bool = False,
    charset: str = "utf-8",
) -> str:
    words = labels(lang)
    day = FIRST_DAY + timedelta(days=3 * number + (41 if later else 0))
    popular = texts.articles(lang)[:4]
    return render(
        "news",
        lang,
        charset=charset,
        title=title,
        nav=_nav(lang),
        session=session,
        date=day.isoformat(),
        body=body,
        readers=words["readers"].format(count=137 + 61 * number + (2048 if later else 0)),
        ad=words["ads"][(number + later) % len(words["ads"])],
        most_read_links=links({f"/news/{lang}/{a.slug}.html": a.title for a in popular}),
    )


def _blog(article: Article) -> str:
    months = "".join(f"<li>{month}</li>" for month in labels(article.lang)["blog_months"])
    return render(
        "blog",
        article.lang,
        title=article.title,
        nav=_nav(article.lang),
        months=months,
        body=paragraphs(article.paragraphs),
    )


# List pages. They link every page, so none is reached through a duplicate only.


def _front_page() -> Page:
    entries = []
    for lang in LANGS:
        for record in texts.records(f"lists.{lang}"):
            path, title = _list_path(lang, record.head["slug"]), record.head["title"]
            entries.append(_entry(path, title, texts.teaser(record.paragraphs[0], lang)))
    for lang in FULL:
        words = labels(lang)
        entries.append(
            _entry(_list_path(lang, "shop"), words["shop_title"], words["shop_line"])
            + _entry(_list_path(lang, "objects"), words["objects_title"], words["objects_intro"])
            + _entry(_list_path(lang, "columns"), words["columns_title"], words["columns_intro"])
            + _entry(_list_path(lang, "notes"), words["notes_title"], words["notes_intro"])
        )
    words = labels("en")
    html = render(
        "list",
        "en",
        title=words["front_page"],
        intro=words["front_intro"],
        entries="\n".join(entries),
    )
    return _page("/", "list", html)


def _article_lists(
    lang: str, articles: list[Article], forms: dict[str, list[Page]]
) -> Iterable[Page]:
    by_slug = {article.slug: article for article in articles}
    words = labels(lang)["form"]
    for record in texts.records(f"lists.{lang}"):
        entries = []
        for slug in record.head["articles"].split():
            article, (original, *others) = by_slug[slug], forms[slug]
            more = {page.path: words[page.form] for page in others}
            entries.append(
                _entry(
                    original.path,
                    article.title,
                    texts.teaser(article.paragraphs[0], lang),
                    f'<ul class="more">{links(more)}</ul>',
                )
            )
        yield _list(lang, record.head["slug"], record.head["title"], record.paragraphs[0], entries)


def _list(lang: str, slug: str, title: str, intro: str, entries: list[str]) -> Page:
    html = render("list", lang, title=title, intro=intro, entries="\n".join(entries))
    return _page(_list_path(lang, slug), "list", html)


def _entry(path: str, title: str, teaser: str = "", more: str = "") -> str:
    return f"<h2>{link(path, title)}</h2>\n" + paragraphs([teaser] if teaser else []) + more


def _nav(lang: str) -> str:
    lists = {
        _list_path(lang, record.head["slug"]): record.head["title"]
        for record in texts.records(f"lists.{lang}")
    }
    return links({"/": labels(lang)["front_page"], **lists})


def _list_path(lang: str, slug: str) -> str:
    return f"/lists/{lang}/{slug}.html"


# What must always pass


def _objects(lang: str) -> Iterable[Page]:
    """Yield pages that share a template; some are reached by a redirect only."""
    entries = []
    for record in texts.records(f"objects.{lang}"):
        title, path = record.head["title"], f"/objects/{lang}/{record.head['slug']}.html"
        html = render("object", lang, title=title, body=paragraphs(record.paragraphs))
        yield _page(path, "sibling", html)
        if "via" in record.head:
            kind, via = record.head["via"].split()
            yield _stub(lang, via, path) if kind == "refresh" else _redirect(int(kind), via, path)
            path = via
        entries.append(_entry(path, title, texts.teaser(record.paragraphs[0], lang)))
    words = labels(lang)
    yield _list(lang, "objects", words["objects_title"], words["objects_intro"], entries)


def _products(lang: str) -> Iterable[Page]:
    """Yield pages that differ in name, model, colour and price only."""
    pattern, *products = texts.records(f"products.{lang}")
    description = Template(pattern.paragraphs[0])
    entries = []
    for product in products:
        path = f"/shop/{lang}/{product.head['model'].lower()}.html"
        html = render(
            "product", lang, description=description.substitute(product.head), **product.head
        )
        yield _page(path, "product", html)
        entries.append(_entry(path, product.head["name"], product.head["price"]))
    words = labels(lang)
    yield _list(lang, "shop", words["shop_title"], words["shop_note"], entries)


def _columns(lang: str, articles: list[Article]) -> Iterable[Page]:
    """Yield pages in the paper's template that quote an article at length."""
    by_slug = {article.slug: article for article in articles}
    entries = []
    for number, record in enumerate(texts.records(f"columns.{lang}"), start=len(articles)):
        path, title = f"/columns/{lang}/{record.head['slug']}.html", record.head["title"]
        first, last = map(int, record.head["paragraphs"].split("-"))
        quoted = by_slug[record.head["quotes"]].paragraphs[first - 1 : last]
        mark = record.paragraphs.index(">>>")
        body = (
            paragraphs(record.paragraphs[:mark])
            + f"\n<blockquote>\n{paragraphs(quoted)}\n</blockquote>\n"
            + paragraphs(record.paragraphs[mark + 1 :])
        )
        yield _page(path, "quote", _news_template(lang, title, body, number))
        entries.append(_entry(path, title, texts.teaser(record.paragraphs[0], lang)))
    words = labels(lang)
    yield _list(lang, "columns", words["columns_title"], words["columns_intro"], entries)


def _notes(lang: str) -> Iterable[Page]:
    """Yield pages of a few words, bare or in the paper's template, and stubs that wait."""
    entries = []
    for number, record in enumerate(texts.records(f"short.{lang}")):
        path, title = f"/notes/{lang}/{record.head['slug']}.html", record.head["title"]
        body = paragraphs(record.paragraphs)
        if record.head.get("layout") == "news":
            html = _news_template(lang, title, body, number)
        else:
            html = render("short", lang, title=title, body=body)
        yield _page(path, "short", html)
        entries.append(_entry(path, title))
    words = labels(lang)
    for record in texts.records(f"lists.{lang}")[:2]:
        slug = record.head["slug"]
        path = f"/old/{lang}/{slug}.html"
        yield _stub(lang, path, _list_path(lang, slug), delay=LATE)
        entries.append(_entry(path, f"{words['moved_title']}: {record.head['title']}"))
    yield _list(lang, "notes", words["notes_title"], words["notes_intro"], entries)


def _stub(lang: str, path: str, target: str, delay: int = SOON) -> Page:
    return _page(path, "redirect", render("moved", lang, delay=str(delay), target=target))


def _redirect(status: int, path: str, target: str) -> Page:
    page = _page(path, "redirect", f"<p>{status} {link(target, 'moved')}</p>\n")
    return replace(page, status=status, headers={**page.headers, "Location": target})


def _page(
    path: str,
    form: str,
    html: str,
    story: str | None = None,
    *,
    charset: str = "utf-8",
    content_type: str = "text/html; charset=utf-8",
) -> Page:
    return Page(path, form, html.encode(charset), story, headers={"Content-Type": content_type})
