"""``drop_items`` and ``tag``, items of every kind, and the wish of a single request."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from crawl_site import Crawl, Site, article, crawls, job, page, story

if TYPE_CHECKING:
    from collections.abc import Iterator

TAG = {"SIMDUP_ACTION": "tag"}
VISITS = ["/a", "/a-copy", "/a-near", "/b"]
BAD_WISHES: dict[str, Any] = {
    "unknown action": {"action": "explode"},
    "text": "yes",
    "unknown key": {"foo": 1},
    "number": 0,
    "list as action": {"action": ["tag"]},
}


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    first = article(1)
    pages: dict[str, Any] = {
        "/a": first,
        "/a-copy": first,
        "/a-near": article(1, edits=2, links=["/linked"]),
        "/b": article(2),
        "/linked": article(3),
        # For the spider that copies meta: a duplicate that links to a page of its own, and so on.
        "/copied": article(1, edits=1, links=["/own"]),
        "/own": article(4, links=["/short"]),
        "/short": page("Short", ["Too short."], links=["/last"]),
        "/last": page("Last", story(5)),
    }
    with Site(pages) as running:
        yield running


@pytest.fixture(scope="module")
def done(site: Site, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Crawl]:
    wish: dict[str, Any] = {
        "tagged": {"action": "tag"},
        "not judged": False,
        "items": {"action": "drop_items"},
        "empty": {},
    }
    kinds = ["dict", "item", "dataclass", "attrs"]
    plain = ["plain item", "plain dataclass", "plain attrs"]
    bad = [
        job(visits=["/a", {"path": "/a-copy", "meta": {"simdup": value}}], name=f"bad {name}")
        for name, value in BAD_WISHES.items()
    ]
    jobs = [
        job("Visitor", {"SIMDUP_ACTION": "drop_items"}, visits=VISITS, follow=True, name="items"),
        job("Visitor", TAG, visits=VISITS, follow=True, items=kinds, name="tag"),
        job("Visitor", TAG, visits=VISITS, items=[*plain, "dict"], name="plain"),
        job(
            "Visitor",
            {**TAG, "SIMDUP_ITEM_FIELD": "duplicate"},
            visits=VISITS,
            items=["dict", "item"],
            name="renamed",
        ),
        job(
            "Visitor",
            visits=[
                "/a",
                {"path": "/a-copy", "meta": {"simdup": wish["not judged"]}},
                {"path": "/a-copy?tag", "meta": {"simdup": wish["tagged"]}},
                {"path": "/a-copy?items", "meta": {"simdup": wish["items"]}},
                {"path": "/a-copy?empty", "meta": {"simdup": wish["empty"]}},
                {"path": "/a-copy?true", "meta": {"simdup": True}},
                {"path": "/a-copy?none", "meta": {"simdup": None}},
            ],
            name="wishes in drop",
        ),
        job(
            "Visitor",
            TAG,
            visits=["/a", "/a-copy", {"path": "/a-near", "meta": {"simdup": {"action": "drop"}}}],
            name="wishes in tag",
        ),
        job("MetaCopier", TAG, visits=["/a", "/copied"], follow=True, name="metacopier"),
        job("Again", TAG, visits=["/a", "/a-copy"], name="again"),
        *bad,
    ]
    for path in ("tag", "items", "empty", "true", "none"):
        site.pages[f"/a-copy?{path}"] = site.pages["/a"]
    results = crawls(tmp_path_factory.mktemp("actions"), site, jobs)
    return {one["arguments"]["name"]: result for one, result in zip(jobs, results, strict=True)}


class TestDropItems:
    def test_duplicate_pages_reach_the_spider(self, done: dict[str, Crawl]) -> None:
        assert done["items"].paths == [*VISITS, "/linked"]
        assert done["items"].failed == []

    def test_their_links_are_followed(self, done: dict[str, Crawl]) -> None:
        assert "/linked" in done["items"].paths

    def test_their_items_are_dropped_as_duplicate_items(self, done: dict[str, Crawl]) -> None:
        crawl = done["items"]
        assert [item["path"] for item in crawl.items] == ["/a", "/b", "/linked"]
        assert [(drop["item"]["path"], drop["type"], drop["kind"]) for drop in crawl.dropped] == [
            ("/a-copy", "DuplicateItem", "exact"),
            ("/a-near", "DuplicateItem", "near"),
        ]
        assert crawl.stats["item_dropped_reasons_count/DuplicateItem"] == 2

    def test_each_dropped_item_is_one_short_line_at_info(self, done: dict[str, Crawl]) -> None:
        crawl = done["items"]
        exact, near = [
            line["message"]
            for line in crawl.log
            if line["level"] == "INFO" and line["message"].startswith("Dropped")
        ]
        assert exact == "Dropped item of <GET /a-copy>: exact duplicate of /a (same bytes)"
        assert re.fullmatch(
            r"Dropped item of <GET /a-near>: near duplicate of /a "
            r"\(distance [0-8], resemblance [01]\.\d\d\)",
            near,
        )
        assert crawl.complaints == []

    def test_pages_count_as_tagged_and_items_as_dropped(self, done: dict[str, Crawl]) -> None:
        crawl = done["items"]
        assert (crawl.stat("tagged"), crawl.stat("dropped")) == (2, 2)
        assert crawl.stat("bytes_saved") == 0
        assert {record["action"] for record in crawl.records()} == {"drop_items"}


class TestTag:
    def test_every_page_and_every_item_is_delivered(self, done: dict[str, Crawl]) -> None:
        crawl = done["tag"]
        assert crawl.paths == [*VISITS, "/linked"]
        assert len(crawl.items) == 5 * 4
        assert (crawl.dropped, crawl.failed, crawl.complaints) == ([], [], [])
        assert (crawl.stat("tagged"), crawl.stat("dropped")) == (2, 0)
        assert {record["action"] for record in crawl.records()} == {"tag"}

    @pytest.mark.parametrize("kind", ["dict", "FieldItem", "FieldDataclass", "FieldAttrs"])
    def test_items_of_duplicates_carry_the_verdict(self, done: dict[str, Crawl], kind: str) -> None:
        found = {
            item["path"]: item.get("simdup") for item in done["tag"].items if item["type"] == kind
        }
        assert found["/a-copy"] == {
            "kind": "exact",
            "reason": "body",
            "duplicate_of": "/a",
            "distance": 0,
            "resemblance": 1.0,
            "containment": 1.0,
        }
        near = found["/a-near"]
        assert near is not None
        assert (near["kind"], near["reason"], near["duplicate_of"]) == ("near", "simhash", "/a")
        assert (found["/a"], found["/b"], found["/linked"]) == (None, None, None)

    def test_the_field_can_have_another_name(self, done: dict[str, Crawl]) -> None:
        crawl = done["renamed"]
        tagged = {item["path"]: item for item in crawl.items if item["type"] == "dict"}
        assert tagged["/a-copy"]["duplicate"]["kind"] == "exact"
        assert all("simdup" not in item for item in tagged.values())
        # FieldItem has a field "simdup", which is now of no concern to us, and no "duplicate".
        assert crawl.stat("error/item_field") == 2

    @pytest.mark.parametrize("kind", ["PlainItem", "PlainDataclass", "PlainAttrs"])
    def test_items_without_the_field_pass_unchanged(
        self, done: dict[str, Crawl], kind: str, site: Site
    ) -> None:
        items = [item for item in done["plain"].items if item["type"] == kind]
        assert items == [
            {"type": kind, "path": path, "text": site.pages[path].replace(site.root, "")}
            for path in VISITS
        ]

    def test_items_without_the_field_are_counted_and_named_once_a_class(
        self, done: dict[str, Crawl]
    ) -> None:
        crawl = done["plain"]
        assert crawl.stat("error/item_field") == 2 * 3
        warnings = crawl.said("WARNING")
        assert [warning.split()[1] for warning in warnings] == [
            "PlainItem",
            "PlainDataclass",
            "PlainAttrs",
        ]
        assert all("'simdup'" in text and "SIMDUP_ITEM_FIELD" in text for text in warnings)
        assert crawl.said("ERROR") == []
        assert crawl.said("INFO")[-1].count("6 errors (6 item_field)") == 1

    def test_verdict_and_flag_of_a_response_are_as_documented(self, done: dict[str, Crawl]) -> None:
        arrived = {page["path"]: page for page in done["tag"].arrived}
        assert {path: page["flags"] for path, page in arrived.items()} == {
            "/a": [],
            "/a-copy": ["simdup:exact"],
            "/a-near": ["simdup:near"],
            "/b": [],
            "/linked": [],
        }
        assert arrived["/a-near"]["verdict"]["duplicate_of"] == "/a"

    def test_the_flag_is_in_scrapys_crawled_line(self, done: dict[str, Crawl]) -> None:
        lines = [line["message"] for line in done["tag"].log]
        assert "Crawled (200) <GET /a-near> (referer: None) ['simdup:near']" in lines


class TestWishes:
    def test_a_page_can_be_left_alone(self, done: dict[str, Crawl]) -> None:
        crawl = done["wishes in drop"]
        verdict = crawl.verdict("/a-copy")
        assert verdict is not None
        assert (verdict["kind"], verdict["reason"]) == ("skipped", "opt_out")
        assert crawl.stat("skipped/opt_out") == 1

    def test_one_page_is_tagged_in_a_drop_crawl(self, done: dict[str, Crawl]) -> None:
        crawl = done["wishes in drop"]
        items = {item["path"]: item for item in crawl.items}
        assert items["/a-copy?tag"]["simdup"]["duplicate_of"] == "/a"
        assert crawl.stat("tagged") == 2

    def test_the_items_of_one_page_are_dropped_in_a_drop_crawl(
        self, done: dict[str, Crawl]
    ) -> None:
        crawl = done["wishes in drop"]
        assert "/a-copy?items" in crawl.paths
        assert [drop["item"]["path"] for drop in crawl.dropped] == ["/a-copy?items"]

    def test_no_wish_is_the_action_of_the_crawl(self, done: dict[str, Crawl]) -> None:
        crawl = done["wishes in drop"]
        assert crawl.failed_paths == ["/a-copy?empty", "/a-copy?true", "/a-copy?none"]
        assert crawl.stat("dropped") == 3 + 1

    def test_the_log_has_the_action_of_each_page(self, done: dict[str, Crawl]) -> None:
        records = done["wishes in drop"].records()
        assert [record["action"] for record in records] == ["tag", "drop_items", *["drop"] * 3]

    def test_one_page_is_dropped_in_a_tag_crawl(self, done: dict[str, Crawl]) -> None:
        crawl = done["wishes in tag"]
        assert crawl.paths == ["/a", "/a-copy"]
        assert crawl.failed_paths == ["/a-near"]
        assert (crawl.stat("tagged"), crawl.stat("dropped")) == (1, 1)

    @pytest.mark.parametrize("name", BAD_WISHES)
    def test_a_wish_that_means_nothing_is_an_error_and_the_page_passes(
        self, done: dict[str, Crawl], name: str
    ) -> None:
        crawl = done[f"bad {name}"]
        assert crawl.paths == ["/a", "/a-copy"]
        assert len(crawl.items) == 2
        assert crawl.verdict("/a-copy") is None
        assert crawl.stat("error/config") == 1
        assert crawl.stat("checked") == 1
        (error,) = crawl.said("ERROR")
        assert f'meta["simdup"] = {BAD_WISHES[name]!r}' in error
        assert "must be False" in error
        assert "drop, drop_items, tag" in error
        assert "/a-copy" in error


class TestCopiedMeta:
    def test_no_verdict_leaks_to_the_next_page(self, done: dict[str, Crawl]) -> None:
        crawl = done["metacopier"]
        kinds = {page["path"]: page["verdict"]["kind"] for page in crawl.arrived}
        assert kinds == {
            "/a": "unique",
            "/copied": "near",
            "/own": "unique",
            "/short": "skipped",
            "/last": "unique",
        }
        assert all(page["flags"] == [] for page in crawl.arrived if page["path"] != "/copied")

    def test_no_verdict_leaks_to_the_items_of_the_next_page(self, done: dict[str, Crawl]) -> None:
        tagged = [item["path"] for item in done["metacopier"].items if "simdup" in item]
        assert tagged == ["/copied"]

    def test_asking_again_with_the_same_request_does_not_take_the_verdict_from_the_items(
        self, done: dict[str, Crawl]
    ) -> None:
        crawl = done["again"]
        assert sorted(crawl.paths) == ["/a"] * 3 + ["/a-copy"] * 3
        tagged = [item["path"] for item in crawl.items if "simdup" in item]
        assert tagged == ["/a-copy"] * 3
