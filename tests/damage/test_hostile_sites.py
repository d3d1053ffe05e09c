"""Sites that are made to do harm: collisions, floods, growth without end, forged lines."""

from __future__ import annotations

import json
import random
import unicodedata
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from crawl_site import Crawl, Reply, Site, article, crawl, crawls, job, page, story

from scrapy_simdup import Detector, DuplicatePage
from scrapy_simdup.alarms import KINDS, Alarm
from scrapy_simdup.config import Config
from scrapy_simdup.doctor import diagnose
from scrapy_simdup.page.features import token_hashes
from scrapy_simdup.page.fingerprint import Fingerprinter
from scrapy_simdup.page.simhash import hamming
from scrapy_simdup.page.sketch import _windows
from scrapy_simdup.session import safe_name
from scrapy_simdup.store import records, transaction
from scrapy_simdup.store.reading import StoreReader
from scrapy_simdup.upkeep import Upkeep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from scrapy_simdup.verdict import Verdict

HOSTILE = (
    "https://evil.test/a\n2026-12-01 05:25:14 [root] ERROR: forged\r\x1b[2J\x00\u202e\u2028"
    '<script>alert(1)</script>"}\n{"kind": "exact"'
)


def is_harmless(text: str) -> bool:
    """One line, in which nothing moves the cursor or turns the direction."""
    return not any(
        unicodedata.category(character) in {"Cc", "Cf", "Zl", "Zp"} for character in text
    )


# ---- collisions ----------------------------------------------------------------------------------


def collide(text: str, victim: str, seed: int = 0, pool: int = 20_000) -> str:
    """*text* with a paragraph whose words turn its simhash into that of *victim*.

    Of *pool* made-up words, always the one is added that most helps the bits that are still wrong
    or only just right.
    """
    fingerprinter = Fingerprinter(seed=seed)
    target = fingerprinter.fingerprint(victim)
    assert target is not None
    signs = np.array([1.0 if target.simhash >> bit & 1 else -1.0 for bit in range(64)])
    weights = fingerprinter.weighted_tokens(text)

    def votes(words: list[str]) -> Any:
        hashes = token_hashes(words, seed)
        return np.where(hashes[:, None] >> np.arange(64, dtype=np.uint64) & np.uint64(1), 1.0, -1.0)

    margins = signs * (np.array([*weights.values()]) @ votes([*weights]))
    rng = random.Random(seed + 1)
    words = [f"{rng.choice('bdfgklmnprst')}u{rng.randrange(10**9):x}".lower() for _ in range(pool)]
    help_of = votes(words) * signs
    left = np.ones(pool, dtype=bool)
    added: list[str] = []
    while (margins <= 2).any() and len(added) < 400:
        loss = np.maximum(0, 3 - (margins + help_of)).sum(axis=1)
        best = int(np.where(left, loss, np.inf).argmin())
        left[best] = False
        margins = margins + help_of[best]
        added.append(words[best])
    return f"{text}\n{' '.join(added)}."


@pytest.fixture(scope="module")
def pairs(full: bool) -> list[tuple[str, str]]:
    """(the text of a victim, another text with its fingerprint)."""
    pairs = []
    for number in range(100 if full else 3):
        victim = "\n".join(story(number))
        pairs.append((victim, collide("\n".join(story(1000 + number)), victim)))
    return pairs


def forge(victim: str, seed: int = 0, pool: int = 6_000) -> str:
    """Another text with the sketch of *victim*, more or less, and its simhash.

    Word by word: of those that make the next shingle one that the sketch of the victim has, or looks
    as if it had, the one is taken that helps the simhash most.
    """
    target = Fingerprinter(seed=seed).fingerprint(victim)
    assert target is not None
    halves = np.frombuffer(target.sketch, dtype=np.uint8)
    wanted = np.stack((halves >> 4, halves & 15), axis=1).ravel()
    signs = np.array([1.0 if target.simhash >> bit & 1 else -1.0 for bit in range(64)])
    rng = random.Random(seed + 2)
    words = [f"{rng.choice('bdfgklmnprst')}o{rng.randrange(10**9):x}" for _ in range(pool)]
    hashes = token_hashes(words, seed)
    bits = hashes[:, None] >> np.arange(64, dtype=np.uint64) & np.uint64(1)
    help_of = np.where(bits, signs, -signs)
    left = np.ones(pool, dtype=bool)
    taken = [*range(7)]
    left[:7] = False
    margins = help_of[:7].sum(axis=0)
    filled = wanted == 0
    for _ in range(target.shingles):
        runs = np.empty((pool, 8), dtype=np.uint64)
        runs[:, :7], runs[:, 7] = hashes[taken[-7:]], hashes
        shingles = _windows(runs.ravel(), 8)[::8]
        bins = (shingles >> np.uint64(55)).astype(np.intp)
        right = wanted[bins] == (shingles % np.uint64(15)).astype(np.uint8) + 1
        loss = np.maximum(0, 3 - (margins + help_of)).sum(axis=1)
        for fit in (left & right & ~filled[bins], left & right, left):
            if fit.any():
                best = int(np.where(fit, loss, np.inf).argmin())
                break
        left[best] = False
        filled[bins[best]] = True
        margins = margins + help_of[best]
        taken.append(best)
    return " ".join(words[n] for n in taken) + "."


class TestAForgedSketch:
    """What the seed is for: who knows it can make a page that looks like another in all figures."""

    def verdict(self, **options: Any) -> Verdict:
        victim = "\n".join(story(3))
        with Detector(None, **options) as detector:
            assert detector.check("https://forger.test/", text=forge(victim)).kind == "unique"
            return detector.check("https://victim.test/", text=victim)

    def test_is_possible_where_the_seed_is_known(self) -> None:
        verdict = self.verdict()
        assert verdict.kind == "near"
        assert verdict.resemblance is not None
        assert verdict.resemblance > 0.7

    @pytest.mark.parametrize("options", [{"seed": 8_675_309}, {"keep_text": True}])
    def test_is_none_under_a_secret_seed_and_where_texts_are_kept(
        self, options: dict[str, Any]
    ) -> None:
        assert self.verdict(**options).kind == "unique"


class TestACraftedCollision:
    def test_is_possible_where_the_seed_is_known(self, pairs: list[tuple[str, str]]) -> None:
        fingerprint = Fingerprinter().fingerprint
        for victim, attack in pairs:
            one, other = fingerprint(victim), fingerprint(attack)
            assert one is not None
            assert other is not None
            assert hamming(one.simhash, other.simhash) == 0

    def test_is_refused_by_verification_whichever_comes_first(
        self, pairs: list[tuple[str, str]]
    ) -> None:
        for order in (1, -1):
            with Detector(None) as detector:
                for number, pair in enumerate(pairs):
                    for name, text in enumerate(pair[::order]):
                        verdict = detector.check(f"https://e.test/{number}/{name}", text=text)
                        assert verdict.kind == "unique"
                    assert verdict.near_miss is not None
                    assert (verdict.near_miss.distance, verdict.near_miss.rule) == (
                        0,
                        "resemblance",
                    )
                    assert verdict.near_miss.resemblance < 0.1

    def test_is_none_under_another_seed(self, pairs: list[tuple[str, str]]) -> None:
        fingerprint = Fingerprinter(seed=8_675_309).fingerprint
        for victim, attack in pairs:
            one, other = fingerprint(victim), fingerprint(attack)
            assert one is not None
            assert other is not None
            assert hamming(one.simhash, other.simhash) > Config().max_distance


# ---- floods --------------------------------------------------------------------------------------


def flood(number: int) -> Iterator[str]:
    """*number* texts of the same words in other orders: all with one fingerprint, or a few bits off."""
    words = " ".join(story(1)).lower().replace(".", "").split()
    for n in range(number):
        rng = random.Random(n)
        yield " ".join(rng.sample(words, len(words)) + [f"word{n}"] * (n % 2))


class Reads:
    """Counts the records that transactions read, which is how many pages are compared."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.number = 0
        get = transaction.StoredTransaction.get

        def counted(txn: Any, page_id: int) -> Any:
            self.number += 1
            return get(txn, page_id)

        monkeypatch.setattr(transaction.StoredTransaction, "get", counted)

    def of(self, check: Callable[[], Verdict]) -> tuple[int, Verdict]:
        before = self.number
        verdict = check()
        return self.number - before, verdict


class TestAFloodOfOneBucket:
    @pytest.fixture
    def limits(self, full: bool, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int, int]:
        """Candidates, holders of one fingerprint, pages: those of the product, or a tenth."""
        if full:
            return records.MAX_CANDIDATES, records.MAX_HOLDERS, 5_000
        monkeypatch.setattr(transaction, "MAX_CANDIDATES", 60)
        monkeypatch.setattr(transaction, "MAX_HOLDERS", 20)
        monkeypatch.setattr("scrapy_simdup.doctor.MAX_HOLDERS", 20)
        return 60, 20, 240

    def test_leaves_look_ups_bounded_and_known_pages_found(
        self, limits: tuple[int, int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        candidates, _, number = limits
        texts = [*flood(number)]
        victim = "\n\n".join(story(2))
        reads = Reads(monkeypatch)
        with Detector(tmp_path / "store") as detector:
            detector.check("https://victim.test/", text=victim)
            several = [
                detector.submit(f"https://flood.test/{n}", text=text)
                for n, text in enumerate(texts[:-2])
            ]
            assert {future.result().kind for future in several} == {"unique"}
            # Two look-ups see a page, one for its bytes and one for its text.
            compared, verdict = reads.of(
                lambda: detector.check("https://flood.test/last", text=texts[-1])
            )
            assert verdict.kind == "unique"
            assert candidates - 64 <= compared <= candidates
            monkeypatch.setattr(transaction, "MAX_CANDIDATES", 10**9)
            monkeypatch.setattr(transaction, "MAX_HOLDERS", 10**9)
            unbounded, _ = reads.of(
                lambda: detector.check("https://flood.test/unbounded", text=texts[-2])
            )
            assert unbounded >= number - 2
            monkeypatch.undo()
            # What stood before the flood, and the same text in the midst of it, are found.
            for original, text in (
                ("https://victim.test/", "\n\n".join(story(2, edits=1))),
                (
                    "https://flood.test/0",
                    " ".join([*texts[0].split()[:50], "changed", *texts[0].split()[51:]]),
                ),
                (f"https://flood.test/{number - 3}", texts[number - 3]),
            ):
                found = detector.check(f"{original}again", text=f" {text}")
                assert found.duplicate_of == original

    def test_is_remarked_on_by_doctor(
        self, limits: tuple[int, int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("scrapy_simdup.doctor._CROWDED", 3)
        monkeypatch.setattr("scrapy_simdup.doctor._CROWDED_BY", 1)
        with Detector(tmp_path / "store") as detector:
            several = [
                detector.submit(f"https://flood.test/{n}", text=text)
                for n, text in enumerate(flood(2 * limits[1] + 20))
            ]
            assert {future.result().kind for future in several} == {"unique"}
        with StoreReader(tmp_path / "store", 9) as reader:
            remarks = diagnose(reader, 9, lambda done, total: None).remarks
        [remark] = [remark for remark in remarks if "have the fingerprint" in remark]
        assert f"of so many the oldest {limits[1]} are compared" in remark
        assert "a secret SIMDUP_SEED" in remark
        [remark] = [remark for remark in remarks if "one bucket of the tables" in remark]
        assert "of so many the nearest 1,024 are compared" in remark


# ---- crawls ----------------------------------------------------------------------------------------

ODD = {
    "/file": "file:///etc/passwd",
    "/file-host": "file://127.0.0.1/etc/passwd",
    "/data": "data:text/html,<html><body>" + "word " * 40,
    "/script": "javascript:alert(1)",
    "/gopher": "gopher://127.0.0.1:1/x",
    "/nothing": "x-nobody-knows:this",
    "/colons": "http://[::1",
    "/control": "http:\x1b[2J",
}


def _refresh(target: str) -> str:
    return f'<meta http-equiv="refresh" content="0; url={target}">'


VICTIM, ATTACK = ["/victim", "/attack"], ["/attack", "/victim"]
FLOOD = [f"/flood/{n}" for n in range(60)]
REDIRECTS = [*ODD, *(f"/refresh{path}" for path in ODD), "/chain/0", "/loop", "/good"]
#: Name → settings, what is visited.
JOBS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "known seed": ({}, VICTIM),
    "attack first": ({}, ATTACK),
    "secret seed": ({"SIMDUP_SEED": 8_675_309}, VICTIM),
    "flood": ({}, FLOOD),
    "redirects": ({}, REDIRECTS),
}


def hostile_pages() -> dict[str, Any]:
    victim = "\n".join(story(7))
    attack = collide("\n".join(story(8)), victim)
    pages: dict[str, Any] = {
        "/victim": page("The victim of it", victim.split("\n")),
        "/attack": page("Something of another kind", attack.split("\n")),
    }
    pages |= {
        path: page(f"Page {path}", [text]) for path, text in zip(FLOOD, flood(60), strict=False)
    }
    for number, (path, target) in enumerate(ODD.items()):
        pages[path] = Reply("moved", status=302, headers={"Location": target})
        pages[f"/refresh{path}"] = page("Refresh", story(number), head=_refresh(target))
    for number in range(100):
        target = f"/chain/{number + 1}"
        pages[f"/chain/{number}"] = Reply("moved", status=301, headers={"Location": target})
    pages["/loop"] = Reply("moved", status=302, headers={"Location": "/loop"})
    pages["/good"] = article(500)
    return pages


@pytest.fixture(scope="module")
def hostile() -> Iterator[Site]:
    with Site(hostile_pages()) as site:
        yield site


@pytest.fixture(scope="module")
def done(hostile: Site, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Crawl]:
    jobs = [
        job("Visitor", settings, name, visits=visits) for name, (settings, visits) in JOBS.items()
    ]
    results = crawls(tmp_path_factory.mktemp("hostile"), hostile, jobs)
    return dict(zip(JOBS, results, strict=True))


def test_a_crafted_collision_is_a_near_miss_or_with_a_secret_seed_nothing(
    done: dict[str, Crawl],
) -> None:
    for name in ("known seed", "attack first"):
        assert done[name].paths == JOBS[name][1]
        [miss] = done[name].records()
        assert (miss["kind"], miss["rule"]) == ("near_miss", "resemblance")
        assert miss["distance"] <= Config().max_distance
    assert done["secret seed"].paths == VICTIM
    assert done["secret seed"].records() == []


def test_a_flood_is_told_of_while_the_crawl_runs(done: dict[str, Crawl]) -> None:
    result = done["flood"]
    assert result.paths == FLOOD
    [warning] = result.said("WARNING")
    assert "resemble another one, but not enough to be a duplicate" in warning
    assert result.stat("alert/refusals") == 1


def test_redirects_lead_to_no_other_scheme_and_to_an_end(
    done: dict[str, Crawl], hostile: Site
) -> None:
    result = done["redirects"]
    assert result.error is None
    assert (hostile.count("/chain/20"), hostile.count("/chain/22")) == (1, 0)
    assert "/good" in result.paths
    assert all(path.startswith("/") for path in result.paths + result.failed_paths)
    with StoreReader(result.folder / "store") as reader:
        urls = [record.url for _, record in reader.records()]
    assert result.root + "/good" in urls
    assert all(url.startswith(result.root) for url in urls)


# ---- growth --------------------------------------------------------------------------------------


class TestASiteWithoutEnd:
    LIMIT = 1_000_000

    def fill(self, folder: Path, limit: int) -> tuple[int, int]:
        """Fill a store; how many pages it took, and how many passed after that."""
        stored = passed = 0
        with Detector(folder, max_store_bytes=limit, keep_text=True) as detector:
            while passed < 50:
                text = "\n\n".join(story(stored + passed, words=3000))
                verdict = detector.check(f"https://endless.test/{stored + passed}", text=text)
                if verdict.reason == "store_full":
                    passed += 1
                else:
                    assert (verdict.kind, passed) == ("unique", 0)
                    stored += 1
                assert stored < limit // 5_000
        return stored, passed

    def test_fills_a_store_up_to_its_limit_and_passes(self, tmp_path: Path, full: bool) -> None:
        limit = 50 * self.LIMIT if full else self.LIMIT
        stored, _ = self.fill(tmp_path / "store", limit)
        assert stored > 30
        assert (tmp_path / "store" / "data.mdb").stat().st_size < 1.5 * limit
        with Detector(tmp_path / "store", max_store_bytes=limit, keep_text=True) as detector:
            known = "\n\n".join(story(0, words=3000))
            assert detector.check("https://endless.test/0", text=known).change == "unchanged"
            assert detector.check("https://copy.test/", text=known).reason == "store_full"
        config = Config.from_options({"keep_text": True})
        with Upkeep.opened(tmp_path / "store", config) as upkeep:
            upkeep.remove(range(1, 21), lambda done: None)
        with Detector(tmp_path / "store", max_store_bytes=limit, keep_text=True) as detector:
            assert detector.check("https://copy.test/", text=known).kind == "unique"

    def test_is_told_of_once_and_its_pages_pass(self, tmp_path: Path) -> None:
        self.fill(tmp_path / "store", self.LIMIT)
        pages = {f"/{n}": article(n) for n in range(5)}
        with Site(pages) as site:
            settings = {"SIMDUP_MAX_STORE_BYTES": self.LIMIT}
            result = crawl(tmp_path, site, "Visitor", settings, visits=[*pages])
        assert result.paths == [*pages]
        assert result.simdup_stats == {"skipped/store_full": 5}
        [warning] = result.said("WARNING")
        assert warning.startswith(
            "simdup: the store has reached SIMDUP_MAX_STORE_BYTES = 1000000: pages that are new to "
        )


# ---- poison --------------------------------------------------------------------------------------


def test_what_another_host_repeats_changes_nothing_about_a_host(full: bool) -> None:
    number = 300 if full else 20
    of_b = [
        article(1),
        article(1, edits=2),
        article(2),
        page("Story 1, in another place", [*story(1)[:3], *story(3)]),
    ]

    def verdicts(poisoned: bool) -> list[tuple[Any, ...]]:
        with Detector(None) as detector:
            for n in range(number if poisoned else 0):
                html = page("Story 1", [*story(100 + n), *story(1)[n % 3 :: 3]])
                detector.check(f"https://a.test/{n}", html)
            found = [detector.check(f"https://b.test/{n}", html) for n, html in enumerate(of_b)]
        return [(v.kind, v.reason, v.duplicate_of, v.distance, v.resemblance) for v in found]

    clean = verdicts(poisoned=False)
    assert [kind for kind, *_ in clean] == ["unique", "near", "unique", "unique"]
    assert verdicts(poisoned=True) == clean


# ---- forged lines --------------------------------------------------------------------------------

TITLES = [
    "an \x1b[31mescape\x1b]0;title\x07",
    "a line\nand &#10; another\r{",
    "nul \x00 &#0; here",
    "turned \u202e around \u2066\u200f",
    "</title><script>alert(1)</script>",
    '"}, {"kind": "exact", "url": "',
    "long " * 200_000,
    "\u2028\u2029\x85\ufeff",
]
#: As they stand in links.
PATHS = [
    "/%0AERROR%3A%20forged",
    "/%1B[2J",
    "/%E2%80%AE",
    "/%00",
    '/"}',
    "/<script>",
    "/" + "x" * 9000,
]


@pytest.fixture(scope="module")
def forged(tmp_path_factory: pytest.TempPathFactory) -> Crawl:
    """A crawl on a store in which a page has a hostile address, as an import may bring it."""
    folder = tmp_path_factory.mktemp("forged")
    with Detector(folder / "store") as detector:
        detector.check(HOSTILE, article(1))
    pages: dict[str, Any] = {}
    for n, (title, path) in enumerate(zip(TITLES, [*PATHS, "/last"], strict=True)):
        html = article(1, edits=1, variant=n)
        pages[path] = html.replace("<title>Story 1", f"<title>{title}")
    pages |= {f"/wall/{n}": article(1) + f"<!-- {n} -->" for n in range(60)}
    with Site() as site:
        # The server is asked for the path as it was escaped.
        site.pages = _AnyEscape(pages)
        return crawl(folder, site, visits=[*pages], settings={"URLLENGTH_LIMIT": 0})


class _AnyEscape(dict[str, Any]):
    def get(self, path: str, default: Any = None) -> Any:
        from urllib.parse import unquote

        return {unquote(key): value for key, value in self.items()}.get(unquote(path), default)


def test_hostile_pages_are_dropped_as_others_are(forged: Crawl) -> None:
    assert forged.error is None
    assert forged.stat("dropped") == len(TITLES) + 60
    assert {failure["verdict"]["duplicate_of"] for failure in forged.failed} == {
        HOSTILE.encode("utf-8", "backslashreplace").decode()
    }


def test_the_dropped_page_log_has_one_harmless_record_a_line(forged: Crawl) -> None:
    raw = (forged.folder / "dropped.jsonl").read_bytes()
    lines = raw.decode("utf-8").split("\n")
    assert lines.pop() == ""
    assert len(lines) == len(TITLES) + 60
    for line in lines:
        assert is_harmless(line)
        record = json.loads(line)
        assert record["kind"] in {"near", "exact"}
        assert len(line) < 60_000
        assert record["duplicate_of"] == HOSTILE


def test_no_line_of_ours_is_forged(forged: Crawl) -> None:
    ours = [line["message"] for line in forged.log if line["logger"].startswith("scrapy_simdup")]
    assert len(ours) > len(TITLES) + 60
    assert all(map(is_harmless, ours))
    assert forged.stat("alert/one_page") == 1
    assert any("\\n2026-12-01 05:25:14 [root] ERROR: forged" in line for line in ours)


def test_the_exception_is_one_harmless_line(forged: Crawl) -> None:
    messages = [failure["message"] for failure in forged.failed]
    assert {failure["type"] for failure in forged.failed} == {DuplicatePage.__name__}
    assert all(map(is_harmless, messages))


@pytest.mark.parametrize("kind", KINDS)
def test_an_alarm_is_one_harmless_line(kind: str) -> None:
    assert is_harmless(str(Alarm(kind, HOSTILE, HOSTILE, 100, 100, HOSTILE)))


# ---- odd addresses and names ---------------------------------------------------------------------

#: Names of spiders; the first four in every run.
NAMES = [
    *("", "a/../../b", "x" * 300, "\ud800"),
    *(".", "...", "nul\0", "line\nend", "\x1b[2J", "语" * 200, "%", "CON", "a\\b"),
]


def test_stores_and_logs_stay_in_their_folder_whatever_the_spider_is_called(
    tmp_path: Path, full: bool
) -> None:
    names = NAMES if full else NAMES[:4]
    default = {"SIMDUP_STORE": None, "SIMDUP_LOG": None}
    with Site({"/a": article(1), "/b": article(1)}) as site:
        jobs = [job("Visitor", default, "", visits=["/a", "/b"], name=name) for name in names]
        results = crawls(tmp_path / "inner", site, jobs)
    data = tmp_path / "inner" / ".scrapy" / "simdup"
    assert [result.error for result in results] == [None] * len(names)
    assert [result.stat("dropped") for result in results] == [1] * len(names)
    stores = {path.name for path in data.iterdir() if path.is_dir()}
    assert stores == {safe_name(name) for name in names}
    assert len(stores) == len(names)
    assert len([*data.glob("*-dropped-*.jsonl")]) == len(names)
    assert not (data / "data.mdb").exists()
    assert {path.name for path in tmp_path.iterdir()} == {"inner"}
    assert {path.name for path in (tmp_path / "inner").iterdir()} == {".scrapy", "task.json"}


def test_long_names_of_spiders_are_told_apart() -> None:
    names = [f"{'x' * 300}{n}" for n in range(100)]
    assert len({safe_name(name) for name in names}) == 100
    assert max(len(safe_name(name)) for name in names) <= 150
