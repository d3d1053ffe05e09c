"""Texts and pages for tests: made up, deterministic, and unlike each other unless asked to be."""

from __future__ import annotations

import html as html_module
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import threading
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from scrapy_simdup.store.records import Record
from scrapy_simdup.store.tables import Layout

if TYPE_CHECKING:
    from scrapy_simdup.store.environment import Environment

# ruff: noqa: SIM905 - words are read more easily as text

_ONSETS = "b br c ch d dr f fl g gl h j k l m n p pl qu r s sh st t th tr v w z".split()
_NUCLEI = "a e i o u ai ea ou".split()
_CODAS = "n r l st m nd t ck sh ve ss".split()
_LITTLE = "the of and in to a is that on with for was at by from".split()
_CHINESE = (
    "我们 他们 昨天 今天 城市 乡村 老师 学生 图书馆 火车站 春天 秋天 河流 山顶 朋友 母亲 孩子 "
    "故事 历史 音乐 绘画 电影 新闻 报纸 工厂 农民 医生 警察 市场 商店 米饭 面条 茶叶 苹果 "
    "走过 看见 听说 忘记 想起 喜欢 讨厌 学习 工作 休息 旅行 回家 打开 关上 建造 修理 写信 "
    "非常 已经 慢慢 突然 终于 常常 仍然 美丽 安静 古老 寒冷 温暖 遥远 明亮 重要 简单 复杂"
).split()


@cache
def vocabulary(size: int = 4000) -> tuple[str, ...]:
    """Return *size* different words that look like English ones."""
    pick = random.Random("vocabulary")
    words: dict[str, None] = {}
    while len(words) < size:
        syllables = pick.choice((1, 2, 2, 2, 3))
        stem = "".join(pick.choice(_ONSETS) + pick.choice(_NUCLEI) for _ in range(syllables))
        words[stem + pick.choice(_CODAS)] = None
    return tuple(words)


def story(seed: int | str, words: int = 300) -> str:
    """Return prose of *words* words, in sentences and paragraphs; another *seed*, another story."""
    pick = random.Random(f"story {seed}")
    paragraphs: list[str] = []
    sentences: list[str] = []
    left = words
    while left > 0:
        length = min(left, pick.randint(9, 17))
        left -= length
        picked = [
            pick.choice(_LITTLE) if pick.random() < 0.3 else pick.choice(vocabulary())
            for _ in range(length)
        ]
        sentences.append(" ".join(picked).capitalize() + ".")
        if len(sentences) == 5 or left <= 0:
            paragraphs.append(" ".join(sentences))
            sentences = []
    return "\n\n".join(paragraphs)


def chinese_story(seed: int | str, characters: int = 400) -> str:
    """Return Chinese prose of about *characters* characters, made of common words."""
    pick = random.Random(f"chinese story {seed}")
    sentences: list[str] = []
    while sum(map(len, sentences)) < characters:
        length = pick.randint(6, 12)
        clause = "".join(pick.choice(_CHINESE) for _ in range(length // 2))
        sentences.append(
            clause + "，" + "".join(pick.choice(_CHINESE) for _ in range(length)) + "。"
        )
    return "\n\n".join(
        "".join(sentences[start : start + 5]) for start in range(0, len(sentences), 5)
    )


def edited(text: str, seed: int | str, words: int = 1) -> str:
    """Return *text* with *words* of its words, far apart, replaced by others."""
    pick = random.Random(f"edit {seed}")
    paragraphs = [paragraph.split(" ") for paragraph in text.split("\n\n")]
    places = [(p, w) for p, paragraph in enumerate(paragraphs) for w in range(len(paragraph))]
    for n in range(words):
        p, w = places[(2 * n + 1) * len(places) // (2 * words)]
        paragraphs[p][w] = pick.choice(vocabulary())
    return "\n\n".join(" ".join(paragraph) for paragraph in paragraphs)


_BLOG = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>
<body>
<header><nav><ul><li><a href="/">Home</a></li><li><a href="/about">About</a></li></ul></nav></header>
<main><article><h1>{title}</h1>
{paragraphs}
</article></main>
<footer><p>Blog of the harbour. All rights reserved.</p></footer>
</body></html>
"""

_NEWSPAPER = """<!doctype html>
<html><head><title>{title} | The Daily Lantern</title>
<script>window.dataLayer = [];</script><style>.menu {{ color: red }}</style></head>
<body class="article-page">
<div id="menu" class="menu"><a href="/politics">Politics</a> <a href="/sport">Sport</a></div>
<div id="content" class="content"><div class="article-body">
<h1>{title}</h1>
{paragraphs}
</div></div>
<div id="footer" class="footer"><a href="/imprint">Imprint</a> <a href="/terms">Terms</a></div>
</body></html>
"""

TEMPLATES = {"blog": _BLOG, "newspaper": _NEWSPAPER}


def page(title: str, body: str, template: str = "blog") -> str:
    """Return an HTML page with the paragraphs of *body*, in one of :data:`TEMPLATES`."""
    paragraphs = "\n".join(
        f"<p>{html_module.escape(paragraph)}</p>" for paragraph in body.split("\n\n") if paragraph
    )
    return TEMPLATES[template].format(title=html_module.escape(title), paragraphs=paragraphs)


def start_script(source: str, *arguments: object) -> subprocess.Popen[str]:
    """Start *source* in a Python of its own that can import the package and this module."""
    paths = [str(Path(__file__).parent.parent), str(Path(__file__).parent)]
    return subprocess.Popen(
        [sys.executable, "-c", source, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_script(source: str, *arguments: object, timeout: float = 60.0) -> str:
    """Run *source* as in :func:`start_script` to its end; return what it printed."""
    with start_script(source, *arguments) as process:
        try:
            output, errors = process.communicate(timeout=timeout)
        finally:
            process.kill()
    assert process.returncode == 0, f"exit status {process.returncode}: {errors}"
    return output


@cache
def permissions_count() -> bool:
    """Whether this user can be kept from a file by its permissions: root mostly cannot."""
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).chmod(0)
        return os.name != "nt" and not os.access(file.name, os.R_OK)


def assert_consistent(environment: Environment) -> None:
    """Check every cross-reference of a page store: nothing missing, nothing left over."""
    pages, indexes = _dump(environment)
    kept = {page_id: record for page_id, record in pages.items() if record.kept}
    assert indexes["keys"] == {(record.key, page_id) for page_id, record in pages.items()}
    assert indexes["bodies"] == {(record.body_digest, page_id) for page_id, record in kept.items()}
    assert indexes["texts"] == {
        (view.digest, page_id) for page_id, record in kept.items() for view in record.views
    }
    assert indexes["aliases"] == {
        (record.representative.to_bytes(8, "big"), page_id)
        for page_id, record in pages.items()
        if not record.kept
    }
    assert {record.representative for record in pages.values()} <= {0, *kept}
    assert indexes["holders"] == {
        (view.simhash.to_bytes(8, "big"), page_id)
        for page_id, record in kept.items()
        for view in record.views
    }
    layout = Layout.from_dict(environment.header()["layout"])
    simhashes = {view.simhash for record in kept.values() for view in record.views}
    assert indexes["tables"] == {
        (
            bytes([number])
            + ((permuted & table.prefix_mask) >> 64 - 8 * (layout.key_bytes - 1)).to_bytes(
                layout.key_bytes - 1, "big"
            ),
            permuted,
        )
        for number, table in enumerate(layout.tables)
        for permuted in map(table.permute, simhashes)
    }


def _dump(environment: Environment) -> tuple[dict[int, Record], dict[str, set[tuple[bytes, int]]]]:
    """Return all records by page id, and the (key, number) pairs of every index."""
    plain = ("keys",)
    sorted_duplicates = ("bodies", "texts", "holders", "aliases")
    handles = {name: environment.database(name) for name in plain}
    for name in sorted_duplicates:
        handles[name] = environment.database(name, dupsort=True, dupfixed=True)
    pages, tables = environment.database("pages"), environment.database("tables")

    def job(txn):
        records = {
            int.from_bytes(key, "big"): msgspec.msgpack.decode(value, type=Record)
            for key, value in txn.cursor(pages)
        }
        indexes = {
            name: [(bytes(key), int.from_bytes(value, "big")) for key, value in txn.cursor(handle)]
            for name, handle in handles.items()
        }
        buckets = [(bytes(key), bytes(value)) for key, value in txn.cursor(tables)]
        indexes["tables"] = [
            (key, fingerprint)
            for key, value in buckets
            if len(key) > 1
            for fingerprint in struct.unpack(f"<{len(value) // 8}Q", value)
        ]
        layout = Layout.from_dict(json.loads(bytes(txn.get(b"header")))["layout"])
        counts = [int.from_bytes(value, "big") for key, value in buckets if len(key) == 1]
        assert sum(counts) * len(layout.tables) == len(indexes["tables"])
        return records, indexes

    records, indexes = environment.read(job)
    assert all(len(entries) == len(set(entries)) for entries in indexes.values())
    return records, {name: set(entries) for name, entries in indexes.items()}


# ---- extractors, for the option of that name -----------------------------------------------------

#: What :func:`blocking_extractor` waits for.
extractors_may_go_on = threading.Event()


def blocking_extractor(html: str) -> str:
    """Return *html* as it is, but not before it may go on if it says "block"."""
    if "block" in html:
        assert extractors_may_go_on.wait(60)
    return html


def failing_extractor(html: str) -> str:
    raise LookupError("this extractor fails on every page")


def leaving_extractor(html: str) -> str:
    raise SystemExit("this extractor thinks it is a program")


def late_extractor(html: str) -> str:
    raise TimeoutError("this extractor has a limit of its own")
