"""What a web server may send: pages made up, damaged, or meant to do harm."""

from __future__ import annotations

import gzip
import random
from pathlib import Path
from typing import TYPE_CHECKING

from crawl_site import article, heavy_article

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CHARSETS = (
    "utf-8", "utf-16", "utf-16-le", "utf-7", "utf-32", "gbk", "gb18030", "big5", "shift_jis",
    "euc-jp", "iso-2022-jp", "iso-2022-kr", "euc-kr", "koi8-r", "windows-1252", "iso-8859-8",
    "tis-620", "hz-gb-2312", "x-user-defined", "unicode", "none", "ascii", "'", "\\x00", "utf8;q=1",
)  # fmt: skip
TAGS = (
    "div", "p", "table", "tr", "td", "li", "ul", "a", "span", "b", "font", "form", "select", "option",
    "textarea", "script", "style", "noscript", "template", "iframe", "object", "svg", "math", "title",
    "head", "body", "html", "frameset", "plaintext", "xmp", "listing", "pre", "h1", "article", "main",
    "aside", "nav", "details", "ruby", "rt", "br", "img", "input", "x-y", "a:b", "é", "1", "",
)  # fmt: skip
ATTRIBUTES = (
    "href=javascript:alert(1)", 'href="//["', "href=http://[::1", "class=content", 'style="display:none',
    "hidden", "id=main", 'src="data:text/html,<p>x"', "onclick='x", "=", '"', "aria-hidden=true",
    "itemprop=articleBody", "lang=zh", "dir=rtl", "content='0;url=x'", 'data-x="&#x0;"',
)  # fmt: skip
PIECES = (
    "<!--", "-->", "<![CDATA[", "]]>", "<?xml version='1.0' encoding='utf-16'?>", "<!DOCTYPE",
    "<!ENTITY a '&b;&b;'>", "&#0;", "&#x110000;", "&#xD800;", "&#x10FFFF;", "&amp", "&lt;script&gt;",
    "&nosuch;", "&#9999999999999999999;", "</", "<", ">", "<>", "</>", "<a", "\0", "\x0b", "\x1b[2J",
    "\u202e", "\u200b" * 50, "\ufeff", "\ufffe", "\ud800", "\U000e0001", "\u0301" * 200, "ﷺ" * 20,
    "𒐫" * 20, "a" * 5000, "ก" * 3000, "漢" * 3000, " " * 5000, "\n" * 5000, "1" * 5000, "☃" * 500,
    "x&" * 500, "{" * 500, '{"articleBody": "' + "word " * 50 + '"}', "<base href='http://[/'>",
    "<meta charset=", "<meta http-equiv=refresh content='0;url=data:,'>",
)  # fmt: skip


def bombs(scale: float = 1) -> Iterator[tuple[str, bytes]]:
    """Pages that are too much of one thing; *scale* 1 makes some hundred kB of each."""
    many = int(20_000 * scale)
    text = "The ferry across the estuary stopped for nine weeks while its chain was replaced. "
    yield "entities", ("&amp;&lt;&#65;" * many).encode()
    yield "unclosed entities", ("<p>" + "&" * many * 5).encode()
    doctype = "".join(f"<!ENTITY e{n} '{f'&e{n - 1};' * 10}'>" for n in range(1, 20))
    yield "doctype", f"<!DOCTYPE html [<!ENTITY e0 'ha'>{doctype}]><p>&e19; {text * 20}".encode()
    yield (
        "attributes",
        ("<p " + " ".join(f"a{n}=1" for n in range(many)) + f">{text * 20}").encode(),
    )
    yield "one attribute", f'<p title="{"x" * many * 10}">{text * 20}'.encode()
    for tag in ("div", "b", "table", "li", "a", "font", "form", "select", "svg", "p", "span"):
        yield f"nested {tag}", (f"<{tag}>" * many + text * 20).encode()
        yield f"closed {tag}", (f"</{tag}>" * many + text * 20).encode()
    yield "misnested", ("<b><i><p></b></i>" * (many // 5) + text * 20).encode()
    yield "tables", ("<table><tr><td>" * (many // 10) + text * 20).encode()
    yield "blocks", ("<p>" * many + text * 20).encode()
    yield "empty blocks", ("<p></p>" * many + text * 20).encode()
    yield "short blocks", "".join(f"<p>word{n} and more</p>" for n in range(many)).encode()
    yield "links", "".join(f"<a href='/{n}'>to {n}</a> " for n in range(many)).encode()
    yield "images", "".join(f"<img src='/{n}.jpg' alt='picture {n}'>" for n in range(many)).encode()
    yield "comments", ("<!-- -- -->" * many + text * 20).encode()
    yield "open comment", ("<!--" + "-" * many * 10 + text * 20).encode()
    yield "scripts", ("<script>var a = '<p>';</script>" * (many // 2) + text * 20).encode()
    yield "one word", ("<p>" + "a" * many * 20).encode()
    yield "one line", ("<p>" + text * (many // 4)).encode()
    yield "one sentence", ("<p>" + "word " * many * 4).encode()
    yield "han", ("<p>" + "渡口的老船停了九个星期" * many).encode()
    yield "han without end", ("<p>" + "漢" * many * 5).encode()
    yield "thai", ("<p>" + "เรือข้ามฟากหยุด" * many).encode()
    yield "marks", ("<p>e" + "\u0301" * many * 5 + text * 20).encode()
    yield "invisible", ("<p>" + "\u200b\u200d" * many * 3 + text * 20).encode()
    yield "spaces", ("<p>" + " \t\n\u00a0\u3000" * many * 3 + text * 20).encode()
    yield "digits", ("<p>" + "123,456.789 " * many).encode()
    yield "emoji", ("<p>" + "👩‍👩‍👧‍👦" * many).encode()
    yield "noise", random.Random(1).randbytes(many * 20)
    yield "zeros", bytes(many * 20)
    yield "ones", b"\xff" * many * 20
    yield "json", ('{"articleBody":"' * many).encode()
    ld = '<script type="application/ld+json">' + '{"a":[' * many + "</script>" + text * 20
    yield "nested json", ld.encode()
    yield "json in attributes", f"<div data-x='{'[' * many}'>{text * 20}".encode()
    yield "styles", (f"<p style='{'a:b;' * many}'>" + text * 20).encode()
    yield "url", f"<a href='http://x/{'%00/../' * many}'>{text * 20}</a>".encode()
    yield "utf-16", ("<p>" + text * 200).encode("utf-16-le")
    yield "meta", ("<meta charset=gbk>" * many + text * 20).encode()


def grown(chance: random.Random) -> bytes:
    """A page of tags, texts and what may go wrong, in any order."""
    parts, sources = [], (article(chance.randrange(50)), heavy_article(chance.randrange(9), 4))
    for _ in range(chance.randrange(1, 120)):
        kind, tag = chance.random(), chance.choice(TAGS)
        if kind < 0.35:
            parts.append(f"<{tag} {' '.join(chance.choices(ATTRIBUTES, k=chance.randrange(3)))}>")
        elif kind < 0.5:
            parts.append(f"</{tag}>")
        elif kind < 0.65:
            parts.append(chance.choice(PIECES))
        else:
            source = chance.choice(sources)
            start = chance.randrange(len(source))
            parts.append(source[start : start + chance.randrange(400)])
    text = "".join(parts)
    if chance.random() < 0.3:
        text = f"<meta charset={chance.choice(CHARSETS)}>{text}"
    charset = chance.choice(("utf-8", "utf-8", "utf-16", "gb18030", "utf-7", "utf-32-be"))
    return text.encode(charset, "surrogatepass" if charset.startswith("utf-") else "replace")


def harmed(page: bytes, other: bytes, chance: random.Random) -> bytes:
    """A page cut, mixed with another, with bits, bytes and tags changed."""
    data = bytearray(page[:200_000])
    for _ in range(chance.choice((1, 1, 2, 3, 8))):
        if not data:
            break
        kind, place = chance.randrange(8), chance.randrange(len(data))
        size = chance.choice((1, 4, 30, 400, 4000))
        if kind == 0:
            del data[place:]
        elif kind == 1:
            del data[:place]
        elif kind == 2:
            for _ in range(min(size, 400)):
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        elif kind == 3:
            data[place : place + size] = chance.randbytes(size)
        elif kind == 4:
            start = chance.randrange(len(other) + 1)
            data[place:place] = other[start : start + size * 10]
        elif kind == 5:
            data[place:place] = data[place : place + size] * chance.choice((2, 10))
        elif kind == 6:
            piece = chance.choice(
                (*PIECES, f"<{chance.choice(TAGS)}>", f"</{chance.choice(TAGS)}>")
            )
            data[place:place] = piece.encode("utf-8", "surrogatepass")
        else:
            where = data.find(b">", place)
            del data[place : where + 1 if where > 0 else place + 1]
    return bytes(data[:400_000])


def headers(chance: random.Random) -> dict[str, str]:
    kind = chance.random()
    if kind < 0.3:
        return {}
    if kind < 0.5:
        return {"Content-Type": "text/html"}
    return {"Content-Type": f"text/html; charset={chance.choice(CHARSETS)}"}


def files(folders: Sequence[str]) -> list[bytes]:
    """The pages in some folders, unpacked, in one order on all machines."""
    found = []
    for folder in folders:
        for path in sorted(Path(folder).rglob("*")):
            if path.is_file() and path.suffix not in {".jsonl", ".md"}:
                data = path.read_bytes()
                found.append(gzip.decompress(data) if path.suffix == ".gz" else data)
    return found
