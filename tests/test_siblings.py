"""The generator of template siblings: the same bytes each time, labels that hold, a known format."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from types import ModuleType

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "siblings.py"


@pytest.fixture(scope="module")
def siblings() -> ModuleType:
    spec = importlib.util.spec_from_file_location("benchmark_siblings", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def sets(siblings: ModuleType) -> dict[str, list[Any]]:
    return {name: list(siblings.pages(name)) for name in siblings.SETS}


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_pages_are_the_same_each_time(siblings, sets):
    for name in ("jobs", "zh-shop"):
        assert list(siblings.pages(name)) == sets[name]


def test_every_platform_generates_these_bytes(sets):
    digest = hashlib.sha256()
    for page in (page for pages in sets.values() for page in pages):
        digest.update(f"{page.id}\0{page.kind}\0{page.html}\0{page.gold}\0".encode())
    assert digest.hexdigest()[:16] == "971df908cb1d8684"


def test_there_are_enough_pages_and_a_third_are_copies(sets):
    assert len(sets) == 10
    assert sum(map(len, sets.values())) >= 600
    for pages in sets.values():
        copies = sum(page.kind != "original" for page in pages)
        assert len(pages) >= 40
        assert 0.25 <= copies / len(pages) <= 0.4


def test_every_set_has_every_kind(siblings, sets):
    for pages in sets.values():
        kinds = Counter(page.kind for page in pages)
        assert {kinds[kind] for kind in siblings.KINDS} == {siblings.COPIES}
        assert set(kinds) == {"original", *siblings.KINDS}


def test_originals_and_copies_mix(sets):
    for pages in sets.values():
        first = {}
        for page in pages:
            first.setdefault(page.group, page.kind)
        assert any(kind != "original" for kind in first.values())
        assert any(page.kind != "original" for page in pages[: len(pages) // 3])


def test_a_copy_differs_from_its_original_in_html_and_hardly_in_text(siblings, sets):
    for pages in sets.values():
        originals = {page.group: page for page in pages if page.kind == "original"}
        for page in pages:
            if page.kind == "original":
                continue
            original = originals[page.group]
            assert page.html != original.html
            same_text = page.kind not in ("typo", "sentence", "dates", "review")
            assert (page.gold == original.gold) is same_text


def test_siblings_differ_and_unlisted_pages_are_not_alike(siblings, sets):
    for pages in sets.values():
        originals = [page for page in pages if page.kind == "original"]
        assert len({page.gold for page in originals}) == len(originals)
        cut = {page.id: siblings.shingles(page.gold, 5) for page in originals[::3]}
        for a, b in combinations(originals[::3], 2):
            if a.sibling_group != b.sibling_group:
                assert siblings.jaccard(cut[a.id], cut[b.id]) < 0.7


def test_similarity_of_siblings_varies(siblings, sets):
    seen = Counter()
    for name in ("shop", "events", "cities"):
        pages = [page for page in sets[name] if page.kind == "original"][::2]
        cut = {page.id: siblings.shingles(page.gold) for page in pages}
        for a, b, _ in siblings.labelled(pages):
            seen[int(20 * siblings.jaccard(cut[a.id], cut[b.id]))] += 1
    assert set(range(10, 20)) <= set(seen)  # from 0.5 to 0.95 and above


def test_labels_are_symmetric_and_follow_the_groups(siblings, sets):
    grey = 0
    for name, pages in sets.items():
        listed = set()
        for a, b, label in siblings.labelled(pages):
            assert siblings.label(b, a) == label
            assert (label == 1) is (a.group == b.group)
            assert a.sibling_group == b.sibling_group
            assert (a.id, b.id) not in listed
            listed.add((a.id, b.id))
            assert label is not None or name == "jobs"
            grey += label is None
        sizes = Counter(page.sibling_group for page in pages)
        assert len(listed) == sum(size * (size - 1) // 2 for size in sizes.values())
    assert grey > 5


def test_files_are_what_pagewise_reads(siblings, sets, tmp_path):
    pairs = siblings.write(sets["jobs"], tmp_path)
    docs, gold = rows(tmp_path / "docs.jsonl"), rows(tmp_path / "gold.jsonl")
    assert [doc["id"] for doc in docs] == [row["id"] for row in gold]
    assert [doc["id"] for doc in docs] == [page.id for page in sets["jobs"]]
    for doc, page in zip(docs, sets["jobs"], strict=True):
        assert (tmp_path / doc["path"]).read_bytes().decode(doc["charset_used"]) == page.html
        assert doc["kind"] == page.kind
    stored = rows(tmp_path / "pairs.jsonl")
    assert {row["label"] for row in stored} == {0, 1, None}
    assert len(stored) == len(pairs)
    assert {row["a"] for row in stored} | {row["b"] for row in stored} <= {d["id"] for d in docs}


def test_the_command_names_sets_and_prints_a_histogram(siblings, tmp_path, capsys):
    assert siblings.main([str(tmp_path), "api"]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["api"]
    assert "0.9+:" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        siblings.main([str(tmp_path), "nothing"])
