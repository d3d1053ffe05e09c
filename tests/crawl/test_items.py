"""``SIMDUP_ITEM_FIELDS``: items are judged by their own text, pages are not."""

from __future__ import annotations

from typing import Any

import pytest
from crawl_site import Crawl, Reply, Site, crawls, job, story

FIELDS = {"SIMDUP_ITEM_FIELDS": ["title", "body"]}


def listing(*rows: tuple[str | None, str | None, str]) -> str:
    """A page with several items: title, body, and a price that is not compared."""
    parts = []
    for title, body, price in rows:
        row = f'<i class="price">{price}</i>'
        row += f'<b class="title">{title}</b>' if title else ""
        row += f'<p class="body">{body}</p>' if body else ""
        parts.append(f"<li>{row}</li>")
    return f"<html><body><ul>{''.join(parts)}</ul></body></html>"


def text(number: int, edits: int = 0) -> str:
    return " ".join(story(number, edits, words=120))


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Crawl]:
    pages: dict[str, Any] = {
        "/1": listing(("One", text(1), "10"), ("Two", text(2), "20"), ("One", text(1), "11")),
        "/2": listing(("Two", text(2, edits=1), "21"), ("Three", text(3), "30")),
        "/1-again": listing(("One", text(1), "10"), ("Two", text(2), "20"), ("One", text(1), "11")),
        "/bare": listing((None, None, "1"), (None, None, "1"), ("Short", "Too short.", "2")),
        "/alone": listing(("One", text(1), "10")),
        "/json": Reply("{}", "application/json"),
    }
    news = [(f"News {number}", text(10 + number), str(number)) for number in range(4)]
    pages["/moving"] = lambda visit: listing(*(news[:3] if visit == 1 else news[3:] + news[:3]))
    visits: list[Any] = ["/1", "/2", "/1-again", "/bare"]
    wishes = [
        "/1",
        {"path": "/alone", "meta": {"simdup": False}},
        {"path": "/alone?tag", "meta": {"simdup": {"action": "tag"}}},
        {"path": "/alone?drop", "meta": {"simdup": {"action": "drop"}}},
        {"path": "/alone?bad", "meta": {"simdup": {"action": "explode"}}},
    ]
    for name in ("tag", "drop", "bad"):
        pages[f"/alone?{name}"] = pages["/alone"]
    jobs = [
        job("Lister", FIELDS, visits=visits, name="lister"),
        job("Lister", FIELDS, visits=visits, name="lister"),
        job("Lister", {**FIELDS, "SIMDUP_ACTION": "tag"}, visits=visits, name="tag"),
        job("Lister", FIELDS, visits=wishes, name="wishes"),
        job("Lister", {"SIMDUP_ITEM_FIELDS": "text"}, visits=["/1"], name="other fields"),
        job(
            "Visitor",
            {"SIMDUP_ITEM_FIELDS": "text"},
            visits=["/1", "/2"],
            items=["explosive"],
            name="explosive",
        ),
        *[job("Lister", FIELDS, visits=["/moving"], name="moving")] * 2,
    ]
    names = ["first", "second", "tag", "wishes", "other fields", "explosive", "before", "after"]
    with Site(pages) as site:
        results = crawls(tmp_path_factory.mktemp("items"), site, jobs)
    return dict(zip(names, results, strict=True))


def prices(crawl: Crawl) -> list[str]:
    """Which items were delivered. Items are judged side by side: their order is not strict."""
    return sorted(item["price"] for item in crawl.items)


def test_each_text_is_delivered_once(done: dict[str, Crawl]) -> None:
    assert prices(done["first"]) == ["1", "1", "10", "2", "20", "30"]


def test_duplicates_are_dropped_as_duplicate_items(done: dict[str, Crawl]) -> None:
    crawl = done["first"]
    assert sorted((drop["item"]["price"], drop["kind"]) for drop in crawl.dropped) == [
        ("10", "exact"),
        ("11", "exact"),
        ("11", "exact"),
        ("20", "exact"),
        ("21", "near"),
    ]
    assert {drop["type"] for drop in crawl.dropped} == {"DuplicateItem"}
    (near,) = [drop for drop in crawl.dropped if drop["kind"] == "near"]
    assert near["message"].startswith("near duplicate of /1 (distance ")
    assert crawl.stats["item_dropped_reasons_count/DuplicateItem"] == 5


def test_pages_are_not_judged(done: dict[str, Crawl]) -> None:
    crawl = done["first"]
    assert crawl.paths == ["/1", "/2", "/1-again", "/bare"]
    assert crawl.failed == []
    assert [page["verdict"] for page in crawl.arrived] == [None] * 4


def test_items_without_the_fields_or_with_little_text_pass(done: dict[str, Crawl]) -> None:
    crawl = done["first"]
    assert [price for price in prices(crawl) if len(price) == 1] == ["1", "1", "2"]
    assert (crawl.stat("skipped/no_text"), crawl.stat("skipped/too_short")) == (2, 1)
    assert done["other fields"].stat("skipped/no_text") == 3
    assert prices(done["other fields"]) == ["10", "11", "20"]


def test_the_stats_count_items(done: dict[str, Crawl]) -> None:
    crawl = done["first"]
    (distance,) = [key for key in crawl.simdup_stats if key.startswith("distance/")]
    assert crawl.simdup_stats == {
        "checked": 8,
        "unique": 3,
        "duplicate/exact": 4,
        "duplicate/near": 1,
        distance: 1,
        "dropped": 5,
        "skipped/no_text": 2,
        "skipped/too_short": 1,
    }
    end = crawl.said("INFO")[-1]
    assert "simdup: checked 8 items: 3 unique, 5 duplicates (62.5 %: 4 exact, 1 near)" in end


def test_the_log_names_the_page_of_each_item(done: dict[str, Crawl]) -> None:
    records = done["first"].records()[:5]  # those of the second run follow
    assert sorted(record["url"] for record in records) == ["/1", *["/1-again"] * 3, "/2"]
    assert {record["duplicate_of"] for record in records} == {"/1"}
    assert {record["action"] for record in records} == {"drop"}
    assert [record["depth"] for record in records] == [0] * 5
    sizes = {record["url"]: record["bytes"] for record in records}
    assert sizes["/1"] == len("One\n" + text(1))


def test_nothing_delivered_first_is_dropped_by_the_second_run(done: dict[str, Crawl]) -> None:
    first, second = done["first"], done["second"]
    assert prices(second) == prices(first)
    assert second.stat("revisit/unchanged") == 3
    assert second.stat("dropped") == 5


def test_an_item_that_a_new_one_pushes_down_is_not_its_own_duplicate(
    done: dict[str, Crawl],
) -> None:
    assert prices(done["before"]) == ["0", "1", "2"]
    assert prices(done["after"]) == ["0", "1", "2", "3"]


def test_an_item_that_cannot_be_read_passes(done: dict[str, Crawl]) -> None:
    crawl = done["explosive"]
    assert sorted(item["path"] for item in crawl.items) == ["/1", "/2"]
    assert (crawl.stat("error/item"), crawl.stat("checked")) == (2, 0)
    (error,) = crawl.said("ERROR")
    assert "simdup: item failed for /1, which passes unjudged: bang" in error


def test_tagged_items_carry_their_own_verdict(done: dict[str, Crawl]) -> None:
    crawl = done["tag"]
    kinds = [(item["price"], item.get("simdup", {}).get("kind", "")) for item in crawl.items]
    assert sorted(kinds) == [
        ("1", ""),
        ("1", ""),
        *[("10", ""), ("10", "exact"), ("11", "exact"), ("11", "exact")],
        *[("2", ""), ("20", ""), ("20", "exact"), ("21", "near"), ("30", "")],
    ]
    assert (crawl.stat("tagged"), crawl.stat("dropped")) == (5, 0)
    assert crawl.dropped == []


def test_the_wish_of_a_request_is_for_its_items(done: dict[str, Crawl]) -> None:
    crawl = done["wishes"]
    # From /1, from the page not to be judged, tagged, and from the page with a senseless wish.
    assert prices(crawl) == ["10", "10", "10", "10", "20"]
    assert [item["simdup"]["kind"] for item in crawl.items if "simdup" in item] == ["exact"]
    assert (crawl.stat("skipped/opt_out"), crawl.stat("error/config")) == (1, 1)
    (error,) = crawl.said("ERROR")
    assert "meta[\"simdup\"] = {'action': 'explode'}" in error
    assert sorted(drop["item"]["price"] for drop in crawl.dropped) == ["10", "11"]


def test_only_items_without_any_of_the_fields_are_worth_a_warning(done: dict[str, Crawl]) -> None:
    for name in ("first", "second", "tag", "other fields"):
        (warning,) = done[name].complaints
        assert "simdup: dict has none of SIMDUP_ITEM_FIELDS = " in warning
