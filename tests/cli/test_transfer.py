"""``export`` and ``import``: an equal store, or none."""

from __future__ import annotations

import gzip
import json
import shutil

import lmdb
import pytest
from crawl_site import article

from scrapy_simdup import Detector
from scrapy_simdup.store.environment import Environment
from scrapy_simdup.store.lmdb import KIND
from scrapy_simdup.store.reading import StoreReader
from scrapy_simdup.transfer import MARK, TransferError, export, restore

from .conftest import HOSTILE


def databases(path):
    """All that a store holds, tables as what they find, not how their buckets are filled."""
    with lmdb.open(str(path), max_dbs=20, readonly=True, lock=False) as env:
        found = {}
        with env.begin() as txn:
            names = [bytes(name) for name, _ in txn.cursor() if name != b"header"]
        for name in names:
            database = env.open_db(name, create=False)
            with env.begin(db=database) as txn:
                found[name.decode()] = [(bytes(k), bytes(v)) for k, v in txn.cursor()]
    environment = Environment.open(path, kind=KIND, readonly=True)
    header = {name: value for name, value in environment.header().items() if name != "created"}
    environment.close()
    return found, header


@pytest.fixture
def exported(simdup, store, tmp_path):
    path = tmp_path / "export.jsonl"
    ran = simdup("export", "--store", store, "--out", path)
    assert ran == (0, "", "")
    return path


def test_a_round_trip_makes_an_equal_store(simdup, store, tmp_path, exported):
    ran = simdup("import", exported, "--store", "copy", "--json")
    assert ran.status == 0
    assert (ran.row["pages"], ran.row["duplicates"]) == (4, 5)
    assert databases(tmp_path / "copy") == databases(store)
    again = simdup("export", "--store", "copy").output.splitlines()
    before = exported.read_text().splitlines()
    assert again[1:] == before[1:]
    with Detector(tmp_path / "copy", expected_pages=1000) as detector:
        assert detector.check("https://new.example/", article(1, edits=2)).kind == "near"
        assert detector.check("https://example.org/2", article(2)).kind == "revisit"


def test_it_is_readable(exported):
    header, *lines = map(json.loads, exported.read_text().splitlines())
    assert (header[MARK], header["pages"], header["duplicates"]) == (1, 4, 5)
    pages = [line for line in lines if "page" in line]
    assert [page["page"] for page in pages] == list(range(1, 10))
    assert pages[0]["url"] == "https://example.org/1"
    assert {view["name"] for view in pages[0]["profile"]["views"]} == {"main", "prose"}
    assert HOSTILE.replace("\ud800", "\\ud800")[:8192] in {page["url"] for page in pages}
    crawls = [line["crawl"] for line in lines if "crawl" in line and "page" not in line]
    assert [crawl["id"] for crawl in crawls] == ["first", "second"]
    assert lines[-1] == {"end": len(lines)}
    assert exported.read_text().isascii()


def test_compressed_and_through_standard_output(simdup, store, tmp_path, exported):
    simdup("export", "--store", store, "--out", "export.jsonl.gz")
    assert (
        gzip.decompress((tmp_path / "export.jsonl.gz").read_bytes()).splitlines()[1:]
        == (exported.read_bytes().splitlines()[1:])
    )
    assert simdup("import", "export.jsonl.gz", "--store", "copy").status == 0
    assert databases(tmp_path / "copy") == databases(store)
    assert (
        simdup("export", "--store", store).output.splitlines()[1:]
        == (exported.read_text().splitlines()[1:])
    )


def test_of_a_store_without_pages(simdup, tmp_path):
    Detector(tmp_path / "empty").close()
    simdup("export", "--store", "empty", "--out", "empty.jsonl")
    assert simdup("import", "empty.jsonl", "--store", "copy").status == 0
    assert databases(tmp_path / "copy") == databases(tmp_path / "empty")


def changed(path, number, **fields):
    """The export with other fields in one line."""
    lines = path.read_text().splitlines()
    lines[number] = json.dumps({**json.loads(lines[number]), **fields})
    return "\n".join(lines) + "\n"


def viewed(path, number, **fields):
    """The export with other fields in the first view of a page."""
    profile = json.loads(path.read_text().splitlines()[number])["profile"]
    profile["views"][0].update(fields)
    return changed(path, number, profile=profile)


def twice(path):
    """The export with the request of the first page in the second, too."""
    return changed(path, 2, key=json.loads(path.read_text().splitlines()[1])["key"])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.read_text()[:-30], "is cut off after line"),
        (
            lambda path: "\n".join(path.read_text().splitlines()[:-1]) + "\n",
            "is cut off after line",
        ),
        (
            lambda path: "\n".join(path.read_text().splitlines()[:4]) + "\n",
            "is cut off after line 4",
        ),
        (lambda path: changed(path, -1, end=5), "counts 5 lines before it"),
        (lambda path: path.read_text() + "{}\n", "is not the last, though it says so"),
        (
            lambda path: changed(path, 0, schema=3),
            "was written by another version (format 1, schema 3",
        ),
        (
            lambda path: changed(path, 0, simdup_export=2),
            "was written by another version (format 2",
        ),
        (lambda path: changed(path, 0, layout={"levels": [[3, 9]]}), "line 1: "),
        (lambda path: changed(path, 0, layout=None), "lacks a configuration or a layout"),
        (lambda path: changed(path, 0, configuration={}), "is not that of its configuration_id"),
        (lambda path: changed(path, 2, url=None), "line 3: is damaged"),
        (lambda path: changed(path, 2, body_digest="no base64!"), "line 3: is damaged"),
        (lambda path: changed(path, 2, more=1), "line 3: is damaged (unknown fields more)"),
        (lambda path: changed(path, 2, page=1), "not larger than the one before"),
        (lambda path: changed(path, 2, page=0), "line 3: is damaged (page id 0)"),
        (lambda path: changed(path, 2, profile={}), "line 3: is damaged"),
        (lambda path: changed(path, 2, profile=[]), "line 3: is damaged (Profile is no JSON"),
        (lambda path: changed(path, 2, key=""), "line 3: is damaged (a key of 0 bytes)"),
        (lambda path: changed(path, 2, body_digest="AA=="), "line 3: is damaged (a digest that"),
        (lambda path: changed(path, 2, url="\ud800"), "line 3: is damaged ('utf-8' codec"),
        (lambda path: changed(path, 2, body_bytes=1 << 70), "line 3: is damaged (can't serialize"),
        (lambda path: changed(path, 2, representative=-1), "line 3: is damaged (representative -1"),
        (lambda path: changed(path, 2, representative=9), "page 2 duplicates page 9, which is no"),
        (lambda path: viewed(path, 2, simhash=1 << 64), "line 3: is damaged (a simhash that"),
        (lambda path: viewed(path, 2, sketch="AA=="), "line 3: is damaged (a sketch of another"),
        (lambda path: changed(path, -2, memory="AA=="), "is damaged (1 bytes are not counters"),
        (
            lambda path: changed(path, 0, pages=5),
            "4 pages and 5 duplicates, and says that it has 5",
        ),
        (twice, "line 3: is damaged (page 2 is of the same request as another one)"),
        (lambda path: path.read_text().replace('"page":2', '"page":'), "line 3: is no JSON"),
        (lambda path: path.read_text().replace('{"page":2', '["page",2'), "line 3: is no JSON"),
    ],
)
def test_a_damaged_export_makes_no_store(simdup, exported, tmp_path, damage, message):
    text = damage(exported)
    exported.write_text(text)
    ran = simdup("import", exported, "--store", "copy")
    assert (ran.status, ran.output, ran.errors.count("\n")) == (1, "", 1)
    assert message in ran.errors
    assert not list((tmp_path / "copy").iterdir())


def test_a_compressed_export_that_is_cut_off(simdup, store, tmp_path):
    simdup("export", "--store", store, "--out", "export.jsonl.gz")
    whole = (tmp_path / "export.jsonl.gz").read_bytes()
    (tmp_path / "export.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    ran = simdup("import", "export.jsonl.gz", "--store", "copy")
    assert (ran.status, ran.errors.count("\n")) == (1, 1)
    assert not list((tmp_path / "copy").iterdir())


def test_a_store_that_is_there_is_left_alone(simdup, store, exported):
    before = databases(store)
    ran = simdup("import", exported, "--store", store)
    assert ran.status == 1
    assert "already; import into another folder" in ran.errors
    assert databases(store) == before


def test_a_store_that_is_made_meanwhile_is_left_alone(exported, tmp_path):
    def made_meanwhile(*_):
        Detector(tmp_path / "copy", expected_pages=1000).close()

    with pytest.raises(TransferError, match="already; import into another folder"):
        restore(exported, tmp_path / "copy", made_meanwhile, lambda *_: None)
    with StoreReader(tmp_path / "copy") as reader:
        assert reader.info().pages == 0


def test_the_first_line_counts_what_is_exported_while_a_crawl_goes_on(store, tmp_path):
    with Detector(store, expected_pages=1000) as detector, StoreReader(store) as reader:
        header = reader.header

        def then_a_page_comes():
            detector.check("https://late.example/", article(9))
            return header()

        reader.header = then_a_page_comes
        lines = [*export(reader, lambda *_: None)]
    first = json.loads(lines[0])
    assert first["pages"] + first["duplicates"] == 10 == sum('"page":' in line for line in lines)
    (tmp_path / "export.jsonl").write_text("\n".join(lines) + "\n")
    restore(tmp_path / "export.jsonl", tmp_path / "copy", lambda *_: None, lambda *_: None)


def test_another_configuration_is_refused_with_what_differs(simdup, exported, tmp_path):
    ran = simdup("import", exported, "--store", "copy", "-s", "SIMDUP_WEIGHTS=tf")
    assert ran.status == 1
    assert "weights: tf here, sqrt in the store" in ran.errors
    shutil.rmtree(tmp_path / "copy", ignore_errors=True)


def test_an_export_goes_alone(simdup, exported):
    ran = simdup("import", exported, "other.jsonl", "--store", "copy")
    assert ran.status == 2
    assert "it goes alone, without --out" in ran.errors + ran.output


def test_a_file_that_cannot_be_written_leaves_nothing(simdup, store, tmp_path):
    ran = simdup("export", "--store", store, "--out", "no/such/folder.jsonl")
    assert ran.status == 1
    assert "'no/such/folder.jsonl' cannot be written (No such file or directory)" in ran.errors
    assert not list(tmp_path.glob("*.part"))


def test_a_file_that_is_not_there_makes_no_store(simdup, tmp_path):
    ran = simdup("import", tmp_path / "none.jsonl", "--store", tmp_path / "imported")
    assert ran.status == 1
    assert "cannot be read (No such file or directory)" in ran.errors
    assert not (tmp_path / "imported").exists()
