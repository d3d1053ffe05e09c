"""The report in a real browser: headless Chromium, driven by Playwright."""

from __future__ import annotations

import json
import shutil

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as running:
        # As root, and in containers, Chromium has no sandbox of its own.
        started = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def opened(browser, made):
    """Open the report at a width and in a scheme; what it asks for and complains of is noted."""
    pages = []

    def open_(width=1280, scheme="light"):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, accept_downloads=True
        )
        page = context.new_page()
        page.requested, page.complaints = [], []
        page.on("request", lambda request: page.requested.append(request.url))
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("dialog", lambda dialog: (page.complaints.append("dialog"), dialog.dismiss()))
        page.goto((made / "report.html").as_uri())
        pages.append(page)
        return page

    yield open_
    for page in pages:
        assert page.complaints == []
        assert {url for url in page.requested if not url.startswith("blob:")} == {
            (made / "report.html").as_uri()
        }, "a request left the file"
        page.context.close()


def count(page):
    return page.locator("#count").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_is_drawn_in_both_schemes_at_every_width(opened, scheme, width):
    page = opened(width, scheme)
    for name in ("distances", "scatter", "timeline", "hosts"):
        box = page.locator(f"#chart-{name} svg").bounding_box()
        assert box["width"] > 200
        assert box["height"] > 80
    colours = page.evaluate(
        "[getComputedStyle(document.body).backgroundColor,"
        " getComputedStyle(document.querySelector('#chart-distances svg rect.color-0, "
        "#chart-distances svg .color-0 rect')).fill]"
    )
    assert colours[0] == {"light": "rgb(251, 251, 250)", "dark": "rgb(21, 24, 28)"}[scheme]
    assert colours[1] not in ("none", "rgb(0, 0, 0)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_scheme_can_be_changed(opened):
    page = opened()
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 24, 28)"
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(251, 251, 250)"


def test_filters(opened):
    page = opened()
    assert count(page) == "34 of 34 pairs, 0 judged"
    page.select_option("#kind", "exact")
    assert count(page) == "5 of 34 pairs, 0 judged"
    assert page.locator("article:visible").count() == 5
    page.select_option("#host", "b.example")
    assert count(page) == "4 of 34 pairs, 0 judged"
    page.select_option("#kind", "")
    page.select_option("#host", "")
    page.select_option("#marked", "any")
    assert count(page) == "0 of 34 pairs, 0 judged"


def test_keyboard_marks_and_export(opened, tmp_path):
    page = opened()
    for key in ("j", "y", "n", "j", "y", "u", "y"):
        page.keyboard.press(key)
    assert count(page) == "34 of 34 pairs, 3 judged"
    page.locator("article").nth(10).get_by_role("button", name="wrong").click()
    with page.expect_download() as download:
        page.click("#export")
    path = tmp_path / "labels.jsonl"
    download.value.save_as(path)
    labels = [json.loads(line) for line in path.read_text().splitlines()]
    assert [label["right"] for label in labels] == [True, False, True, False]
    assert all(
        {"url", "duplicate_of", "kind", "distance", "resemblance"} <= {*label} for label in labels
    )
    page.reload()
    assert count(page) == "34 of 34 pairs, 4 judged", "marks stay in the browser"
    page.select_option("#marked", "wrong")
    assert page.locator("article:visible").count() == 2


def test_a_title_that_is_a_script_stays_text(opened):
    page = opened()
    assert page.get_by_text("<script>alert(1)</script>").first.is_visible()
    assert page.locator("script").count() == 1
