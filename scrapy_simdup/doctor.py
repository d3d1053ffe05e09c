"""Whether a store is whole, and how it is doing: every cross-reference, the tables, the file.

All is derived from the records: what ought to be in an index is made of them and compared with what
is there. So whatever is wrong with an index is repaired by making it anew.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from scrapy_simdup.errors import StoreError
from scrapy_simdup.store.hostmemory import HostMemory
from scrapy_simdup.store.planner import estimate, plan
from scrapy_simdup.store.records import MAX_CANDIDATES, MAX_HOLDERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from scrapy_simdup.store.reading import StoreReader
    from scrapy_simdup.store.records import Record
    from scrapy_simdup.store.tables import U64
    from scrapy_simdup.store.transaction import LmdbTransaction, StoredTransaction

_SHOWN = 20
#: The share of fingerprints in which a bit of random ones is set, and how far off is told of.
_BALANCE = 0.2
_FREE = 0.3
_HOT = 10
_CROWDED, _CROWDED_BY = 1_000, 50
_CRAFTED = (
    "; or a site makes them on purpose: of so many {} are compared, and a secret SIMDUP_SEED, "
    "with a new store, makes that impossible"
)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong. ``url`` is that of the page that it is about, if it is about one."""

    what: str
    advice: str
    url: str | None = None
    page: int | None = None


@dataclass
class Diagnosis:
    """``findings`` are what is wrong, ``remarks`` what one may want to do something about,
    ``figures`` how the store is doing.
    """

    findings: list[Finding] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    more: Counter[str] = field(default_factory=Counter)

    def found(self, what: str, advice: str, record: Record | None = None, page: int = 0) -> None:
        """Note what is wrong; of each kind of it the first ones."""
        self.more[advice] += 1
        if self.more[advice] <= _SHOWN:
            url = None if record is None else record.url
            self.findings.append(Finding(what, advice, url, page or None))


_REBUILD = "scrapy simdup doctor --repair makes the indexes anew from the records"
_FORGET = "scrapy simdup doctor --repair forgets the page; it is judged anew when it comes again"
_SETTLE = "scrapy simdup doctor --repair finds it another kept page, or keeps it"


def diagnose(
    reader: StoreReader, max_distance: int, on_progress: Callable[[int, int], object]
) -> Diagnosis:
    """Look at everything in a store, as it is at one moment.

    *max_distance* is that of the settings, for what the planner says. *on_progress* is told of the
    records looked at, and how many there are.
    """
    found = Diagnosis()
    info = reader.info()
    total = info.pages + info.aliases
    found.figures.update(
        pages=info.pages,
        duplicates=info.aliases,
        bytes=info.bytes,
        configuration_id=info.configuration_id,
        schema=reader.header().get("schema"),
    )
    with reader.snapshot() as txn:
        expected = _Expected()
        kept: set[int] = set()
        claimed: list[tuple[int, Record]] = []
        for number, (page_id, record) in enumerate(_records(txn, found), 1):
            expected.add(page_id, record)
            if record.kept:
                kept.add(page_id)
            else:
                claimed.append((page_id, _slim(record)))
            if number % 1000 == 0 or number == total:
                on_progress(number, total)
        for page_id, record in claimed:
            if record.representative not in kept:
                found.found("a duplicate of a page that is not kept", _SETTLE, record, page_id)
        _check_indexes(txn, expected, found)
        fingerprints = _distinct(expected.rows("holders", 2)[:, 0])
        _check_tables(txn, fingerprints, found)
        _check_memories(txn, found)
        _look_at_crawls(txn, found)
        _look_at_fingerprints(expected.rows("holders", 2)[:, 0], fingerprints, found)
    _look_at_layout(reader, max_distance, len(fingerprints), found)
    _look_at_file(reader, found)
    return found


def _slim(record: Record) -> Record:
    """What is left to say of a duplicate, without what takes the memory."""
    empty = msgspec.structs.replace(record.profile, views=(), blocks=b"", visible=b"")
    return msgspec.structs.replace(record, profile=empty, text=b"")


def _records(txn: StoredTransaction, found: Diagnosis) -> Iterator[tuple[int, Record]]:
    """All records that can be read; the others are findings."""
    for raw in txn.odd_ids():
        found.found(f"a record has the page id {raw.hex()}, which is none", _FORGET)
    for page_id in txn.page_ids():
        try:
            record = txn.get_sound(page_id)
        except StoreError:
            found.found(f"the record of page {page_id} cannot be read", _FORGET, page=page_id)
            continue
        yield page_id, record


class _Expected:
    """What ought to be in the indexes: entries of fixed length, as bytes, in no order."""

    def __init__(self) -> None:
        self.keys: list[bytes] = []
        self._entries = {name: bytearray() for name in ("bodies", "texts", "holders", "aliases")}

    def add(self, page_id: int, record: Record) -> None:
        own = page_id.to_bytes(8, "big")
        self.keys.append(record.key + own)
        if not record.kept:
            self._entries["aliases"] += record.representative.to_bytes(8, "big") + own
            return
        self._entries["bodies"] += record.body_digest + own
        for digest in {view.digest for view in record.views}:
            self._entries["texts"] += digest + own
        for simhash in {view.simhash for view in record.views}:
            self._entries["holders"] += simhash.to_bytes(8, "big") + own

    def rows(self, name: str, words: int) -> npt.NDArray[np.uint64]:
        """The entries of an index, uint64[n, words], in the order of the index."""
        return _ordered(bytes(self._entries[name]), words)


def _ordered(entries: bytes, words: int) -> npt.NDArray[np.uint64]:
    rows = np.frombuffer(entries, dtype=">u8").astype(np.uint64).reshape(-1, words)
    return rows[np.lexsort(rows.T[::-1])]


def _distinct(ordered: U64) -> U64:
    return (
        ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))] if len(ordered) else ordered
    )


def _check_indexes(txn: StoredTransaction, expected: _Expected, found: Diagnosis) -> None:
    keys = {entry[:-8]: entry[-8:] for entry in expected.keys}
    if len(keys) != len(expected.keys):
        found.found("several pages have the same request", _REBUILD)
    actual = dict(txn.index("keys"))
    if actual != keys:
        missing = sum(actual.get(key) != page for key, page in keys.items())
        superfluous = sum(key not in keys for key in actual)
        _tell("keys", missing, superfluous, found)
    for name, words in (("bodies", 3), ("texts", 3), ("holders", 2), ("aliases", 2)):
        wanted = expected.rows(name, words)
        entries = b"".join(key + value for key, value in txn.index(name))
        there = len(entries) // (8 * words)
        if len(entries) % (8 * words) or not np.array_equal(wanted, _ordered(entries, words)):
            size = 8 * words
            mine = {row.astype(">u8").tobytes() for row in wanted}
            other = {entries[n * size : (n + 1) * size] for n in range(there)}
            _tell(name, len(mine - other), len(other - mine), found)


def _tell(name: str, missing: int, superfluous: int, found: Diagnosis) -> None:
    found.found(
        f"index {name}: {missing:,} entries are missing, {superfluous:,} too many", _REBUILD
    )


def _check_tables(txn: LmdbTransaction, fingerprints: U64, found: Diagnosis) -> None:
    sizes = []
    for number, (wanted, there) in enumerate(txn.compared_tables(fingerprints), 1):
        sizes += [len(blob) // 8 for blob in there.values()]
        if wanted == there:
            continue
        missing = sum(len(blob) for key, blob in wanted.items() if there.get(key) != blob) // 8
        found.found(f"table {number}: buckets of {missing:,} fingerprints are not right", _REBUILD)
    if txn.fingerprint_count() != len(fingerprints):
        found.found(
            f"the tables count {txn.fingerprint_count():,} fingerprints, there are "
            f"{len(fingerprints):,}",
            _REBUILD,
        )
    if sizes:
        largest = sorted(sizes, reverse=True)
        found.figures.update(
            buckets=len(sizes),
            largest_bucket=largest[0],
            mean_bucket=round(sum(sizes) / len(sizes), 2),
            share_of_ten_largest=round(sum(largest[:10]) / sum(sizes), 4),
        )
        if largest[0] > max(_CROWDED, _CROWDED_BY * sum(sizes) / len(sizes)):
            found.remarks.append(
                f"one bucket of the tables holds {largest[0]:,} fingerprints, the mean "
                f"{sum(sizes) / len(sizes):,.1f}: a template"
                + _CRAFTED.format(f"the nearest {MAX_CANDIDATES:,}")
            )


def _check_memories(txn: StoredTransaction, found: Diagnosis) -> None:
    readable = [HostMemory.can_read(memory) for _, memory in txn.memories()]
    hosts, damaged = len(readable), readable.count(False)
    found.figures["hosts"] = hosts
    if damaged:
        advice = "scrapy simdup doctor --repair forgets what is learned of them"
        found.found(f"what is learned of {damaged:,} hosts cannot be read", advice)


def _look_at_crawls(txn: StoredTransaction, found: Diagnosis) -> None:
    try:
        crawls = txn.crawls()
    except StoreError as error:
        found.found(
            str(error), "scrapy simdup doctor --repair forgets the crawls that it cannot read"
        )
        return
    found.figures["crawls"] = len(crawls)
    if open_ones := [crawl.id for crawl in crawls if crawl.ended is None]:
        shown = ", ".join(open_ones[:3]) + (", …" if len(open_ones) > 3 else "")
        found.remarks.append(
            f"{len(open_ones):,} crawls have not ended: they run, or were killed ({shown})"
        )


def _look_at_fingerprints(held: U64, fingerprints: U64, found: Diagnosis) -> None:
    if len(fingerprints) >= 100:
        _look_at_bits(fingerprints, found)
    if not len(held):
        return
    starts = np.flatnonzero(np.concatenate(([True], held[1:] != held[:-1])))
    holders = np.diff(np.append(starts, len(held)))
    hottest = int(holders.max())
    found.figures["most_pages_of_a_fingerprint"] = hottest
    if hottest >= _HOT:
        value = int(held[starts[int(holders.argmax())]])
        found.remarks.append(
            f"{hottest:,} kept pages have the fingerprint {value:016x}: same words in another order "
            "or number, or a template"
            + (_CRAFTED.format(f"the oldest {MAX_HOLDERS}") if hottest > MAX_HOLDERS else "")
        )


def _look_at_bits(fingerprints: U64, found: Diagnosis) -> None:
    bits = np.unpackbits(fingerprints.astype(">u8").view(np.uint8).reshape(-1, 8), axis=1)
    shares = bits.mean(axis=0)
    odd = [63 - int(place) for place in np.flatnonzero(abs(shares - 0.5) > 0.5 - _BALANCE)]
    found.figures["bit_balance"] = [round(float(shares.min()), 3), round(float(shares.max()), 3)]
    if odd:
        found.remarks.append(
            f"bits {', '.join(map(str, sorted(odd)))} are nearly always the same: pages are much "
            "alike, and the tables find more candidates than they should"
        )


def _look_at_layout(reader: StoreReader, k: int, stored: int, found: Diagnosis) -> None:
    layout = reader.layout()
    best = plan(k, max(1, stored))
    found.figures["layout"] = layout.name
    try:
        now = estimate(layout, k, max(1, stored))
    except ValueError as error:
        found.remarks.append(f"the tables do not reach distance {k} ({error}): rebuild")
        return
    found.figures["planner"] = [
        *now.reasoning().splitlines()[:5],
        (
            f"best for so many: {best.layout.name}, {best.page_us:,.0f} µs a page instead of "
            f"{now.page_us:,.0f}"
        ),
    ]
    if now.page_us >= 2 * best.page_us:
        found.remarks.append(
            f"laid out as {best.layout.name}, a page would take half the time: scrapy simdup rebuild"
        )


def _look_at_file(reader: StoreReader, found: Diagnosis) -> None:
    pages, free, stale = reader.file_figures()
    found.figures.update(file_pages=pages, free_file_pages=free, stale_readers=stale)
    if pages and free / pages > _FREE and pages > 1000:
        found.remarks.append(
            f"{100 * free / pages:.0f} % of the file are free: scrapy simdup compact"
        )
    if stale:
        found.remarks.append(
            f"{stale} readers belong to processes that have ended, and keep the file from being used "
            "again: they go when a crawl opens the store, or with scrapy simdup doctor --repair"
        )
