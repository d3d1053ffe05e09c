"""Which responses of a real crawl are judged, and what becomes of the others."""

from __future__ import annotations

import importlib.util
import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from crawl_site import Crawl, Reply, Site, article, crawls, job, page, story

if TYPE_CHECKING:
    from collections.abc import Iterator

FILES = {"scrapy.pipelines.files.FilesPipeline": 1}
IMAGES = {"scrapy.pipelines.images.ImagesPipeline": 1}
PILLOW = importlib.util.find_spec("PIL") is not None


def moved(path: str, status: int) -> Reply:
    return Reply("", status=status, headers={"Location": path})


def failing_first(body: str) -> Any:
    return lambda visit: Reply("busy", status=503) if visit == 1 else body


def picture() -> Reply:
    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", (40, 40), "teal").save(file, "PNG")
    return Reply(file.getvalue(), "image/png")


def feed(number: int) -> str:
    entries = "".join(f"<item><description>{p}</description></item>" for p in story(number))
    return f'<?xml version="1.0"?><rss version="2.0"><channel>{entries}</channel></rss>'


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    text = " ".join(story(1))
    sitemap = "<urlset>" + "<url><loc>http://x/</loc></url>" * 60 + "</urlset>"
    pages: dict[str, Any] = {
        "/robots.txt": Reply(
            "User-agent: *\nDisallow: /private\n" + "# words\n" * 50, "text/plain"
        ),
        "/a": article(1),
        "/a-copy": article(1),
        "/private": article(8),
        # redirects
        "/moved": moved("/target-1", 301),
        "/found": moved("/target-2", 302),
        "/refreshed": '<html><head><meta http-equiv="refresh" content="0; url=/target-3"></head>'
        f"<body><p>{text}</p></body></html>",
        "/target-1": article(11),
        "/target-2": article(12),
        "/target-3": article(13),
        # retries
        "/busy": failing_first(article(14)),
        "/always-busy": Reply(article(15), status=503),
        # not HTML
        "/json": Reply(json.dumps({"text": text}), "application/json"),
        "/csv": Reply("a,b\n" * 100, "text/csv"),
        "/feed": Reply(feed(16), "application/rss+xml"),
        "/feed-as-html": Reply(feed(17), "text/html"),
        "/sitemap": Reply(sitemap, "application/xml"),
        "/binary": Reply(bytes(range(256)) * 4, "application/octet-stream"),
        "/text": Reply(text, "text/plain"),
        "/html-as-text": Reply(article(1), "text/plain"),
        # HTML that is not called so
        "/xhtml": Reply(article(18), "application/xhtml+xml"),
        "/no-type": Reply(article(19), None),
        "/stream": Reply(article(20), "application/octet-stream"),
        # no content
        "/empty": "",
        "/blank": "  \n ",
        "/shell": '<html><body><div id="app"></div></body></html>',
        "/head": article(21),
        "/form": article(22),
        "/gone": Reply(article(23), status=404),
        # media
        "/gallery": page(
            "Gallery",
            story(24),
            tail='<a class="file" href="/file-1.html">1</a><a class="file" href="/file-2.html">2</a>'
            '<img src="/image-1.png"><img src="/image-2.png">',
        ),
        "/file-1.html": article(25),
        "/file-2.html": article(25),
    }
    with Site(pages) as running:
        yield running


@pytest.fixture(scope="module")
def done(site: Site, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Crawl]:
    folder = tmp_path_factory.mktemp("eligibility")
    not_html = ["/json", "/csv", "/feed", "/feed-as-html", "/sitemap", "/binary", "/text"]
    jobs = [
        job(
            "Visitor",
            {"ROBOTSTXT_OBEY": True},
            visits=["/a", "/private", "/a-copy"],
            name="robots",
        ),
        job(
            "Downloader",
            {"ITEM_PIPELINES": FILES, "FILES_STORE": str(folder / "files")},
            visits=["/gallery"],
            name="files",
        ),
        job(visits=["/moved", "/found", "/refreshed"], name="redirects"),
        job(visits=["/target-1", "/moved"], name="redirect to a known page"),
        job("Tolerant", visits=["/busy", "/always-busy"], name="retries"),
        job(visits=[*not_html, "/html-as-text", "/a"], name="not html"),
        job("Visitor", {"SIMDUP_PLAIN_TEXT": True}, visits=["/a", "/text"], name="plain text"),
        job(visits=["/xhtml", "/no-type", "/stream"], name="html by another name"),
        job(
            "Visitor",
            {"DOWNLOADER_MIDDLEWARES": {"crawl.spiders.PlainTextMiddleware": 560}},
            visits=["/a", "/a-copy"],
            name="plain text responses",
        ),
        job(visits=["/empty", "/blank", "/shell", "/gone"], name="nothing in it"),
        job(visits=[{"path": "/head", "method": "HEAD"}, "/head"], name="head"),
        job(
            visits=[
                {"path": "/form", "form": {"page": "1"}},
                {"path": "/form", "form": {"page": "2"}},
                {"path": "/form", "form": {"page": "1"}, "dont_filter": True},
            ],
            name="forms",
        ),
        job(
            "Visitor",
            {"SIMDUP_MAX_BODY_BYTES": 500, "SIMDUP_MAX_ELEMENTS": 100},
            visits=["/a", "/shell"],
            name="too large",
        ),
    ]
    if PILLOW:
        site.pages["/image-1.png"] = site.pages["/image-2.png"] = picture()
        settings = {"ITEM_PIPELINES": IMAGES, "IMAGES_STORE": str(folder / "images")}
        jobs.append(job("Downloader", settings, visits=["/gallery"], name="images"))
    results = crawls(folder, site, jobs)
    return {one["arguments"]["name"]: result for one, result in zip(jobs, results, strict=True)}


def kinds(crawl: Crawl) -> dict[str, str]:
    """What each page is, or why it was skipped."""
    return {
        page["path"]: page["verdict"]["reason"]
        if page["verdict"]["kind"] == "skipped"
        else page["verdict"]["kind"]
        for page in crawl.arrived
    }


def skipped(crawl: Crawl) -> dict[str, int]:
    return {
        key.removeprefix("skipped/"): number
        for key, number in crawl.simdup_stats.items()
        if key.startswith("skipped/")
    }


def test_nothing_here_is_worth_a_warning(done: dict[str, Crawl]) -> None:
    ours = {
        name: crawl.said("WARNING") + crawl.said("ERROR")
        for name, crawl in done.items()
        if crawl.said("WARNING") + crawl.said("ERROR")
    }
    assert ours == {}


def test_every_response_is_judged_or_skipped_once(done: dict[str, Crawl]) -> None:
    for name in ("robots", "files", "not html", "nothing in it", "head", "forms"):
        crawl = done[name]
        total = crawl.stat("checked") + sum(skipped(crawl).values())
        assert crawl.stats["downloader/response_count"] == total, name


def test_robots_txt_is_no_page(done: dict[str, Crawl], site: Site) -> None:
    crawl = done["robots"]
    assert site.count("/robots.txt") == 1
    assert skipped(crawl) == {"no_callback": 1}
    assert (crawl.paths, crawl.failed_paths) == (["/a"], ["/private", "/a-copy"])
    assert [failure["type"] for failure in crawl.failed] == ["IgnoreRequest", "DuplicatePage"]
    assert (crawl.stat("checked"), crawl.stat("duplicate/exact")) == (2, 1)


def test_files_of_the_media_pipeline_are_no_pages(done: dict[str, Crawl], site: Site) -> None:
    crawl = done["files"]
    (item,) = crawl.items
    assert [file["status"] for file in item["files"]] == ["downloaded", "downloaded"]
    assert (site.count("/file-1.html"), site.count("/file-2.html")) == (1, 1)
    assert skipped(crawl) == {"no_callback": 2}
    assert crawl.stat("checked") == 1


@pytest.mark.skipif(not PILLOW, reason="Pillow is not installed")
def test_images_of_the_media_pipeline_are_no_pages(done: dict[str, Crawl]) -> None:
    crawl = done["images"]
    assert len(crawl.items[0]["images"]) == 2
    assert skipped(crawl) == {"no_callback": 2}


def test_only_the_end_of_a_redirect_is_judged(done: dict[str, Crawl]) -> None:
    crawl = done["redirects"]
    assert kinds(crawl) == dict.fromkeys(["/target-1", "/target-2", "/target-3"], "unique")
    assert crawl.simdup_stats == {"checked": 3, "unique": 3}


def test_a_redirect_to_a_known_page_is_never_its_duplicate(done: dict[str, Crawl]) -> None:
    crawl = done["redirect to a known page"]
    assert set(crawl.paths) == {"/target-1"}
    assert crawl.failed == []
    assert crawl.stat("duplicate/exact") == 0


def test_a_retried_page_is_judged_once(done: dict[str, Crawl], site: Site) -> None:
    crawl = done["retries"]
    assert site.count("/busy") == 2
    assert kinds(crawl)["/busy"] == "unique"
    assert crawl.stat("checked") == 1


def test_a_page_given_up_passes_to_a_spider_that_wants_it(
    done: dict[str, Crawl], site: Site
) -> None:
    crawl = done["retries"]
    assert site.count("/always-busy") == 3
    assert kinds(crawl)["/always-busy"] == "status"
    assert skipped(crawl) == {"status": 1}


def test_what_is_not_html_passes_by_its_kind(done: dict[str, Crawl]) -> None:
    crawl = done["not html"]
    assert kinds(crawl) == {
        "/json": "not_html",
        "/csv": "not_html",
        "/feed": "xml",
        "/feed-as-html": "xml",
        "/sitemap": "xml",
        "/binary": "not_html",
        "/text": "not_html",
        "/html-as-text": "not_html",
        "/a": "unique",
    }
    assert skipped(crawl) == {"not_html": 5, "xml": 3}


def test_plain_text_is_judged_on_request(done: dict[str, Crawl]) -> None:
    crawl = done["plain text"]
    assert crawl.stat("checked") == 2
    assert skipped(crawl) == {}


def test_html_under_another_name_is_judged(done: dict[str, Crawl]) -> None:
    crawl = done["html by another name"]
    assert kinds(crawl) == dict.fromkeys(["/xhtml", "/no-type", "/stream"], "unique")


def test_html_in_a_plain_text_response_is_judged(done: dict[str, Crawl]) -> None:
    crawl = done["plain text responses"]
    assert [page["class"] for page in crawl.arrived] == ["TextResponse"]
    assert (crawl.paths, crawl.failed_paths) == (["/a"], ["/a-copy"])


def test_pages_without_content_are_never_each_others_duplicates(done: dict[str, Crawl]) -> None:
    crawl = done["nothing in it"]
    assert kinds(crawl) == {"/empty": "empty_body", "/blank": "empty_body", "/shell": "no_text"}
    assert skipped(crawl) == {"empty_body": 2, "no_text": 1, "status": 1}
    assert crawl.stat("checked") == 0


def test_head_is_no_page_and_does_not_make_one_known(done: dict[str, Crawl]) -> None:
    crawl = done["head"]
    reasons = [page["verdict"]["reason"] for page in crawl.arrived]
    assert reasons == ["method", None]
    assert skipped(crawl) == {"method": 1}
    assert crawl.stat("unique") == 1


def test_forms_are_known_by_what_was_posted(done: dict[str, Crawl]) -> None:
    crawl = done["forms"]
    assert [page["verdict"]["kind"] for page in crawl.arrived] == ["unique", "revisit"]
    assert crawl.failed_paths == ["/form"]
    assert (crawl.stat("revisit/unchanged"), crawl.stat("duplicate/exact")) == (1, 1)


def test_pages_above_the_limit_pass(done: dict[str, Crawl]) -> None:
    assert kinds(done["too large"]) == {"/a": "body_too_large", "/shell": "no_text"}
