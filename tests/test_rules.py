"""The rules of comparison where they need a store: what a host has in common, and the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from material import edited, story

from scrapy_simdup import Detector

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SITE = "https://shop.example"
MENU = "".join(
    f'<li><a href="/{n}">Department {n} of the house</a></li>' for n in ("tea", "rope", "oil")
)
NOTICE = (
    "<p>Our shop in the harbour lane is open from Monday to Saturday, and by appointment on Sunday "
    f"mornings. Parcels leave the house every evening at six.</p><p>{story('notice', 80)}</p>"
)


def html(title: str, body: str, heading: str | None = None) -> str:
    return (
        f'<html lang="en"><head><title>{title}</title></head><body><nav><ul>{MENU}</ul></nav>'
        f"<main><h1>{heading or title}</h1>{body}</main></body></html>"
    )


def offer(name: str, number: int) -> str:
    return html(
        f"Lamp {name} – The Wharf",
        f"<p>Model {number}, {number % 90} watts, {number % 700} euros.</p>" + story_html("lamp"),
        f"Lamp {name}",
    )


def kinds(*visits: tuple[str, str]) -> list[str]:
    """What is said of pages of the site, given by path and HTML, one after another."""
    with Detector(None) as detector:
        return [detector.check(f"{SITE}{path}", page).kind for path, page in visits]


def story_html(seed: int | str, words: int = 200) -> str:
    return "".join(f"<p>{part}</p>" for part in story(seed, words).split("\n\n"))


class TestBoilerplateOfAHost:
    def learn(self, detector: Detector, pages: int = 9) -> None:
        for n in range(pages):
            verdict = detector.check(
                f"{SITE}/{n}", html(f"Word {n}", NOTICE + story_html(f"page {n}", 60))
            )
            assert verdict.kind == "unique"

    def test_is_learned_from_kept_pages_and_then_no_evidence(self) -> None:
        stubs = [html("Stub", NOTICE + f"<p>{story(f'stub {n}', 7)}</p>") for n in range(2)]
        with Detector(None) as new:
            new.check(f"{SITE}/a", stubs[0])
            assert new.check(f"{SITE}/b", stubs[1]).kind == "near", "nothing is known of the host"
        with Detector(None) as detector:
            self.learn(detector)
            detector.check(f"{SITE}/a", stubs[0])
            verdict = detector.check(f"{SITE}/b", stubs[1])
            assert verdict.kind == "unique"
            assert verdict.near_miss is not None
            assert verdict.near_miss.rule == "boilerplate"
            assert verdict.near_miss.url == f"{SITE}/a"

    def test_does_not_stand_in_the_way_of_a_copy(self) -> None:
        with Detector(None) as detector:
            self.learn(detector)
            text = NOTICE + story_html("a page", 60)
            detector.check(f"{SITE}/a", html("A page", text))
            copy = detector.check(f"{SITE}/b", html("A page", text + "<p>Seen 17 times.</p>"))
            assert (copy.kind, copy.duplicate_of) == ("near", f"{SITE}/a")

    def test_is_that_of_one_host_only(self) -> None:
        with Detector(None) as detector:
            self.learn(detector)
            stubs = [html("Stub", NOTICE + f"<p>{story(f'stub {n}', 7)}</p>") for n in range(2)]
            detector.check("https://elsewhere.example/a", stubs[0])
            assert detector.check("https://elsewhere.example/b", stubs[1]).kind == "near"

    def test_a_page_of_nothing_else_is_skipped(self) -> None:
        with Detector(None) as detector:
            for n in range(9):
                body = f"<h2>Notice</h2>{NOTICE}" + story_html(f"page {n}", 60)
                detector.check(f"{SITE}/{n}", html("The Wharf", body))
            verdict = detector.check(f"{SITE}/empty", html("The Wharf", f"<h2>Notice</h2>{NOTICE}"))
            assert (verdict.kind, verdict.reason) == ("skipped", "boilerplate")
            again = detector.check(f"{SITE}/empty2", html("The Wharf", f"<h2>Notice</h2>{NOTICE}"))
            assert again.kind == "skipped", "it has not become a page that others duplicate"

    def test_is_remembered_by_the_store(self, tmp_path: object) -> None:
        path = f"{tmp_path}/store"
        with Detector(path) as detector:
            self.learn(detector)
        with Detector(path) as detector:
            stubs = [html("Stub", NOTICE + f"<p>{story(f'stub {n}', 7)}</p>") for n in range(2)]
            detector.check(f"{SITE}/a", stubs[0])
            assert detector.check(f"{SITE}/b", stubs[1]).kind == "unique"

    def test_fingerprints_do_not_depend_on_it(self) -> None:
        stub = html("Stub", NOTICE + f"<p>{story('stub', 30)}</p>")
        found = []
        for learned in (False, True):
            with Detector(None) as detector:
                if learned:
                    self.learn(detector)
                found.append(detector.check(f"{SITE}/a", stub).simhash)
        assert found[0] == found[1]


class TestSiblings:
    def test_are_kept_by_default(self) -> None:
        with Detector(None) as detector:
            detector.check(f"{SITE}/1", offer("Anna", 2041))
            verdict = detector.check(f"{SITE}/2", offer("Berta", 3572))
            assert verdict.kind == "unique"
            assert verdict.near_miss is not None
            assert verdict.near_miss.rule == "siblings"
            again = detector.check(f"{SITE}/2?from=mail", offer("Berta", 3572) + " ")
            assert again.duplicate_of == f"{SITE}/2"

    def test_are_duplicates_on_request(self) -> None:
        with Detector(None, keep_siblings=False) as detector:
            detector.check(f"{SITE}/1", offer("Anna", 2041))
            assert detector.check(f"{SITE}/2", offer("Berta", 3572)).kind == "near"

    def test_fifty_of_one_template_are_fifty_pages(self) -> None:
        names = [f"{a}{b}" for a in ("An", "Ber", "Cla", "Do", "El") for b in "abcdefghij"]
        with Detector(None) as detector:
            kinds = [
                detector.check(f"{SITE}/{n}", offer(name, 1000 + 37 * n)).kind
                for n, name in enumerate(names)
            ]
            assert kinds == ["unique"] * 50
            copies = [
                detector.check(f"{SITE}/{n}?copy", offer(name, 1000 + 37 * n) + " ").duplicate_of
                for n, name in enumerate(names)
            ]
            assert copies == [f"{SITE}/{n}" for n in range(50)]


class TestThePaper:
    def test_has_no_verification_and_no_rules(self) -> None:
        with Detector(None, preset="paper") as detector:
            assert detector.config.max_distance == 3
            assert detector.config.views == ("main",)
            detector.check(f"{SITE}/1", offer("Anna", 2041))
            verdict = detector.check(f"{SITE}/2", offer("Anna", 2041).replace("euros", "pounds"))
            assert (verdict.kind, verdict.rule, verdict.view) == ("near", "distance", "main")

    def test_explicit_options_win(self) -> None:
        with Detector(None, preset="paper", views=["main", "prose"], weights="log") as detector:
            assert detector.config.views == ("main", "prose")
            assert (detector.config.weights, detector.config.max_distance) == ("log", 3)


class TestWhatTheVerdictSays:
    def test_of_a_near_duplicate(self) -> None:
        with Detector(None) as detector:
            detector.check(f"{SITE}/a", text=story("tale"))
            verdict = detector.check(f"{SITE}/b", text=edited(story("tale"), 1))
            assert (verdict.rule, verdict.view) == ("resemblance", "main")
            assert verdict.length_ratio == pytest.approx(1.0, abs=0.05)
            assert 0.7 <= verdict.resemblance <= verdict.containment <= 1.0

    def test_of_a_page_that_is_part_of_another(self) -> None:
        with Detector(None) as detector:
            detector.check(f"{SITE}/chapter", text=story("chapter", 300))
            book = "\n\n".join(story(part, 150) for part in ("chapter two", "end"))
            verdict = detector.check(
                f"{SITE}/more", text=story("chapter", 300) + "\n\n" + book[:700]
            )
            assert verdict.kind == "unique"
            assert verdict.near_miss is not None
            assert verdict.near_miss.rule == "containment"
            assert verdict.near_miss.length_ratio < 0.85
            assert verdict.near_miss.containment >= 0.9

    def test_of_a_page_that_was_cut_off(self) -> None:
        whole = html("A tale", story_html("tale", 300))
        with Detector(None) as detector:
            assert not detector.check(f"{SITE}/a", whole).cut_off
            verdict = detector.check(f"{SITE}/b", whole[: len(whole) - 60])
            assert verdict.cut_off
            assert verdict.duplicate_of == f"{SITE}/a"

    def test_of_the_same_blocks_in_another_order(self) -> None:
        parts = story("tale", 300).split("\n\n")
        with Detector(None) as detector:
            detector.check(f"{SITE}/a", text="\n\n".join(parts))
            verdict = detector.check(f"{SITE}/b", text="\n\n".join(reversed(parts)))
            assert (verdict.kind, verdict.reason, verdict.rule) == ("exact", "text", "same_text")


class TestImages:
    def person(self, name: str, image: str) -> str:
        return html(name, f'<img src="/img/{image}.png">' + story_html("about us"))

    def test_of_its_own_make_a_page_of_another_name_another_page(self) -> None:
        with Detector(None) as detector:
            detector.check(f"{SITE}/1", self.person("Anna", "anna"))
            verdict = detector.check(f"{SITE}/2", self.person("Berta", "berta"))
            assert (verdict.kind, verdict.near_miss.rule) == ("unique", "siblings")
            copy = detector.check(f"{SITE}/2?from=mail", self.person("Berta", "berta") + " ")
            assert copy.duplicate_of == f"{SITE}/2"

    def test_that_many_pages_of_the_host_have_are_icons(self) -> None:
        with Detector(None) as detector:
            for n in range(9):
                for icon in ("brush", "clipboard"):
                    body = f'<img src="/img/{icon}.png">' + story_html(f"{icon} {n}")
                    detector.check(f"{SITE}/{icon}{n}", html(f"Word {icon} {n}", body))
            detector.check(f"{SITE}/1", self.person("Anna", "brush"))
            assert detector.check(f"{SITE}/2", self.person("Berta", "clipboard")).kind == "near"


class TestPages:
    """Of one site, with a text that all of them share."""

    def test_of_a_list_in_parts_are_kept_and_their_copies_are_not(self) -> None:
        def part(number: int) -> str:
            names = story(f"part {number}", 60).split()
            links = "".join(f'<li><a href="/{name}-{number}">{name}</a></li>' for name in names)
            return html(f"Directory, page {number}", f"<ul>{links}</ul>" + NOTICE, "Directory")

        with Detector(None) as detector:
            kinds = [detector.check(f"{SITE}/{n}", part(n)).kind for n in range(5)]
            assert kinds == ["unique"] * 5
            copies = [detector.check(f"{SITE}/{n}?x", part(n) + " ") for n in range(5)]
            assert [copy.duplicate_of for copy in copies] == [f"{SITE}/{n}" for n in range(5)]

    def test_with_a_passage_that_the_main_text_misses_are_kept(self) -> None:
        def page(seed: str) -> str:
            passage = f"<div>{' '.join(story(seed, 90).split())}</div>"
            return html("Notes", f"{passage}{story_html('all', 150)}")

        with Detector(None) as detector:
            detector.check(f"{SITE}/1", page("gulls"))
            assert detector.check(f"{SITE}/2", page("tides")).kind == "unique"
            assert detector.check(f"{SITE}/3", page("tides") + " ").duplicate_of == f"{SITE}/2"


class TestManyCandidates:
    def test_only_the_most_similar_are_compared_in_full(self, monkeypatch) -> None:
        from scrapy_simdup import decision

        monkeypatch.setattr(decision, "MAX_COMPARED", 5)
        with Detector(None, min_resemblance=0.99) as detector:
            for n in range(12):
                detector.check(f"{SITE}/{n}", text=edited(story("tale"), n))
            verdict = detector.check(f"{SITE}/x", text=edited(story("tale"), 7) + " x")
            assert verdict.duplicate_of == f"{SITE}/7"


SHARED = story_html("shared", 300)


class TestVerdictsOfEarlierCrawls:
    """A duplicate that has not changed stays one, whatever is learned of its host in the meantime."""

    def page(self, n: int, text: str = SHARED, more: str = "") -> str:
        """A page whose heading is the name of the site, as the detector finds out in time."""
        return html(f"Topic {'abc'[n]}", f"<p>Of {1900 + n}.</p>{text}{more}", "The Wharf Courier")

    @pytest.fixture
    def detector(self) -> Iterator[Detector]:
        """It has judged page 1 as a duplicate of page 0, before it knew what it would refuse it for."""
        with Detector(None, max_distance=9) as detector:
            detector.check(f"{SITE}/0", self.page(0))
            self.first = detector.check(f"{SITE}/1", self.page(1))
            assert self.first.kind == "near"
            for n in range(9):
                other = html(f"Other {n}", story_html(f"other {n}"), "The Wharf Courier")
                assert detector.check(f"{SITE}/other/{n}", other).kind == "unique"
            assert detector.check(f"{SITE}/2", self.page(2)).kind == "unique", "now it knows"
            yield detector

    def test_is_repeated_by_the_same_bytes(self, detector: Detector) -> None:
        for _ in range(2):
            assert detector.check(f"{SITE}/1", self.page(1)) == self.first

    def test_is_repeated_by_the_same_text_in_other_markup(self, detector: Detector) -> None:
        verdict = detector.check(f"{SITE}/1", self.page(1).replace("<main>", "<main id=x>"))
        assert verdict == self.first

    def test_is_given_anew_if_the_page_has_changed(self, detector: Detector) -> None:
        changed = self.page(1, more="<p>Reviewed since, by the editor.</p>")
        assert detector.check(f"{SITE}/1", changed).kind == "unique"

    def test_is_given_anew_if_the_kept_page_has_changed(self, detector: Detector) -> None:
        detector.check(f"{SITE}/0", self.page(0, more="<p>Reviewed since, by the editor.</p>"))
        assert detector.check(f"{SITE}/1", self.page(1)).kind == "unique"

    def test_is_given_anew_if_the_kept_page_has_another_text(self, detector: Detector) -> None:
        detector.check(f"{SITE}/0", self.page(0, story_html("another", 300)))
        assert detector.check(f"{SITE}/1", self.page(1)).kind == "unique"

    @pytest.mark.parametrize(
        "made",
        [
            lambda n: "".join(
                f"<iframe src=https://film.example/{n}{m}></iframe>" for m in "abcde"
            ),
            lambda n: f"<aside>{story(f'aside {n}', 120)}</aside>",
            lambda n: "".join(f"<li><a href=/{n}/{m}>{story(n * m, 3)}</a>" for m in range(1, 60)),
        ],
        ids=["embed", "aside", "links"],
    )
    @pytest.mark.parametrize("changed", [0, 1], ids=["the kept page", "the duplicate"])
    def test_is_given_anew_if_anything_changed_that_rules_look_at(self, made, changed: int) -> None:
        def page(n: int) -> str:
            return html("A topic", SHARED + made(n))

        with Detector(None) as detector:
            detector.check(f"{SITE}/0", page(1))
            assert detector.check(f"{SITE}/1", page(1) + " ").is_duplicate
            detector.check(f"{SITE}/0", page(2 if changed == 0 else 1))
            again = detector.check(f"{SITE}/1", page(2 if changed == 1 else 1) + " ")
            new = detector.check(f"{SITE}/2", page(2 if changed == 1 else 1) + "  ")
        assert (again.kind, new.kind) == ("unique", "exact"), "of the one before"

    def test_tells_anew_whether_the_page_is_cut_off(self) -> None:
        whole = html("A topic", SHARED)
        with Detector(None) as detector:
            detector.check(f"{SITE}/0", whole)
            seen = [
                detector.check(f"{SITE}/1", page).cut_off
                for page in (whole.replace("</body></html>", ""), whole + " ", whole + "  ")
            ]
        assert seen == [True, False, False]

    def test_is_given_anew_on_another_host(self) -> None:
        pages = [
            html(f"Lamp {name}", f"<p>Model {n}.</p>{SHARED}") for n, name in ((12, "A"), (34, "B"))
        ]
        with Detector(None) as detector:
            detector.check(f"{SITE}/0", pages[0])
            key = b"a key of one's own"
            assert detector.check("https://other.example/1", pages[1], key=key).kind == "near"
            assert detector.check(f"{SITE}/1", pages[1], key=key).kind == "unique"

    def test_is_given_anew_by_other_criteria(self, tmp_path: Path) -> None:
        with Detector(tmp_path / "store") as detector:
            detector.check(f"{SITE}/0", self.page(0))
            assert detector.check(f"{SITE}/1", self.page(1)).kind == "near"
        with Detector(tmp_path / "store", min_resemblance=1.0) as detector:
            assert detector.check(f"{SITE}/1", self.page(1)).kind == "unique"


class TestSiblingsInFolders:
    """Offers and forecasts that are called the same in two folders."""

    @pytest.mark.parametrize(
        ("paths", "names", "facts"),
        [
            (
                ("/2024-05-12/draw.html", "/2024-06-15/draw.html"),
                ("Numbers of 12.05.2024", "Numbers of 15.06.2024"),
                ("3, 9, 17, 24, 31 and 48, bonus 5", "2, 11, 19, 26, 35 and 42, bonus 8"),
            ),
            (
                ("/52.52/13.40/forecast", "/48.13/11.57/forecast"),
                ("Forecast 52.52, 13.40", "Forecast 48.13, 11.57"),
                ("14 degrees, wind 23, 1013 hPa", "18 degrees, wind 9, 1021 hPa"),
            ),
            (
                ("/flats/4.1/overview", "/flats/4.2/overview"),
                ("Flat 4.1", "Flat 4.2"),
                ("73 square metres, 980 euros", "81 square metres, 1120 euros"),
            ),
            (
                ("/a1/buy", "/a2/buy"),
                ("Voucher 9.99", "Voucher 12.49"),
                ("code 4711, valid 30 days", "code 8215, valid 60 days"),
            ),
        ],
    )
    def test_dates_places_and_prices_tell_pages_apart(
        self, paths: tuple[str, str], names: tuple[str, str], facts: tuple[str, str]
    ) -> None:
        pages = [
            html(name, story_html("shared", 300) + f"<p>{fact}</p>")
            for name, fact in zip(names, facts, strict=True)
        ]
        assert kinds(*zip(paths, pages, strict=True)) == ["unique", "unique"]


class TestNumberedPages:
    """Their names differ in a number, as those of two flats do."""

    def verdict(self, one: str, other: str) -> str:
        return kinds(("/a?n=1", one), ("/a?n=2", other))[-1]

    def test_the_next_page_of_a_list_is_a_duplicate_if_it_is_the_same_list(self) -> None:
        pages = [html(f"All ropes, page {n}", story_html("list", 400)) for n in (4, 5)]
        assert self.verdict(*pages) == "near"

    def test_another_offer_of_the_same_house_is_none(self) -> None:
        pages = [
            html(f"Mill, flat {n}", f"<p>{price} euros.</p>" + story_html("mill", 400))
            for n, price in ((4, 1250), (14, 1900))
        ]
        assert self.verdict(*pages) == "unique"


def test_texts_that_are_kept_are_cut_as_their_page_was() -> None:
    """A Japanese menu makes a page Japanese; its Chinese text alone is not."""
    menu = "".join(f"<li><a href=/{n}>サイトのメニューとおしらせ{n}</a></li>" for n in range(40))
    sentences = [f"第{n}位修伞匠今年{n + 40}岁，每天早上把工具箱摆到{n}号桥头。" for n in range(40)]

    def page(text: str) -> str:
        return f"<html><body><ul>{menu}</ul><main><h1>修伞匠</h1><p>{text}</p></main></body></html>"

    with Detector(None, keep_text=True) as detector:
        detector.check(f"{SITE}/a", page("".join(sentences)))
        verdict = detector.check(f"{SITE}/b", page("".join([*sentences, "下雨的日子人更多。"])))
        assert verdict.kind == "near"
        assert verdict.resemblance > 0.9
