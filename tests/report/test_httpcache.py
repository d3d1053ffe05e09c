"""Texts of pairs out of Scrapy's HTTP cache, where the store keeps none."""

from __future__ import annotations

import gzip
import shutil
import zlib
from typing import TYPE_CHECKING

import lxml.html
import pytest
from crawl_site import Crawl, Reply, Site, article, crawls, job, page

from scrapy_simdup.cli.httpcache import HttpCache

from .conftest import report

if TYPE_CHECKING:
    from pathlib import Path

WESTERN = "text/html; charset=windows-1252"
WORDS = " ".join(f"naïveté{number} café{number * 7 % 31}" for number in range(240))
PAGES = {
    "/plain": article(1),
    "/gzip": Reply(
        gzip.compress(article(1, edits=2).encode()), headers={"Content-Encoding": "gzip"}
    ),
    "/western": Reply(page("Kaffee", [WORDS]).encode("windows-1252"), WESTERN),
    "/deflate": Reply(
        zlib.compress(page("Kaffee", [WORDS + " crème"]).encode("windows-1252")),
        WESTERN,
        headers={"Content-Encoding": "deflate"},
    ),
}


@pytest.fixture(scope="module", params=[False, True], ids=["files", "packed files"])
def crawled(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Crawl, Path]:
    folder = tmp_path_factory.mktemp("cached")
    cache = {
        "HTTPCACHE_ENABLED": True,
        "HTTPCACHE_DIR": str(folder / "cache"),
        "HTTPCACHE_GZIP": request.param,
    }
    with Site(PAGES) as site:
        [done] = crawls(folder, site, [job("Visitor", cache, visits=[*PAGES])])
    return done, folder / "cache"


def pairs(folder: Path, *arguments: object) -> list[lxml.html.HtmlElement]:
    assert report(folder, *arguments) == 0
    parser = lxml.html.HTMLParser(encoding="utf-8")
    root = lxml.html.parse(str(folder / "report.html"), parser).getroot()
    return root.cssselect("article[data-pair]")


def test_texts_come_from_the_cache(crawled: tuple[Crawl, Path]) -> None:
    done, cache = crawled
    assert [path for path in PAGES if path not in done.paths] == ["/gzip", "/deflate"]
    assert all("texts are not known" in one.text_content() for one in pairs(done.folder))
    gzipped, deflated = pairs(done.folder, "--httpcache", cache)
    assert len(gzipped.cssselect("ins")) == 2
    assert [one.text.strip() for one in deflated.cssselect("del")] == ["crème"]
    assert "naïveté0" in deflated.text_content()


@pytest.mark.parametrize("damage", ["gone", "cut", "no headers"])
def test_a_damaged_cache_has_no_texts(
    crawled: tuple[Crawl, Path], tmp_path: Path, damage: str
) -> None:
    done, cache = crawled
    shutil.copytree(cache, tmp_path / "cache")
    for body in tmp_path.glob("cache/*/*/*/response_body"):
        if damage == "gone":
            body.unlink()
        elif damage == "cut":
            body.write_bytes(body.read_bytes()[:5])
        else:
            body.with_name("response_headers").write_bytes(b"\x1f\x8b\x00")
    shown = pairs(done.folder, "--httpcache", tmp_path / "cache")
    assert all("texts are not known" in one.text_content() for one in shown)


def test_a_page_that_is_not_there(tmp_path: Path) -> None:
    assert HttpCache(tmp_path, 1_000)(b"\x01" * 20) is None
