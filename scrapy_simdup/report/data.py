"""What the report shows, gathered from a store and from dropped-page logs in one pass over each.

Memory does not grow with them: pairs are sampled, the same ones every time.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from scrapy_simdup.sites import host_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from scrapy_simdup.store.crawls import Crawl
    from scrapy_simdup.store.reading import StoreReader
    from scrapy_simdup.store.records import Record, StoreInfo

T = TypeVar("T")

POINTS = 1_500
"""So many duplicates, and so many near misses, are drawn as points."""
PAIRS_A_DISTANCE = 12
"""So many pairs of each kind are shown for every Hamming distance."""
_HOSTS = 15
_CLUSTERS = 20
_SLOTS = 60
_MAX_HOSTS = 50_000


class Sample(Generic[T]):
    """*size* of the things that are added, each as likely as any other (reservoir sampling)."""

    def __init__(self, size: int, seed: str) -> None:
        self._size = size
        self._chance = random.Random(seed)  # noqa: S311 - the same pairs every time
        self.seen = 0
        self.chosen: list[T] = []

    def add(self, thing: T) -> None:
        self.seen += 1
        if len(self.chosen) < self._size:
            self.chosen.append(thing)
        elif (place := self._chance.randrange(self.seen)) < self._size:
            self.chosen[place] = thing


@dataclass(frozen=True, slots=True)
class Pair:
    """A page and the one that it duplicates, or nearly does (kind ``near_miss``).

    ``page`` and ``page_of`` are their ids in the store, 0 where they are not known.
    """

    kind: str
    url: str
    duplicate_of: str
    distance: int | None
    resemblance: float | None
    containment: float | None
    rule: str | None
    title: str | None
    title_of: str | None
    tokens: int | None
    tokens_of: int | None
    page: int = 0
    page_of: int = 0


@dataclass
class Summary:
    """All that the report shows but the texts. Numbers are of pages unless they say otherwise."""

    info: StoreInfo
    crawl: Crawl | None
    now: datetime
    kept: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    bytes_saved: int = 0
    hosts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    mirrors: Counter[tuple[str, str]] = field(default_factory=Counter)
    distances: dict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    rules: Counter[str] = field(default_factory=Counter)
    points: dict[str, Sample[tuple[int, float]]] = field(default_factory=dict)
    pairs: dict[tuple[str, int | None], Sample[Pair]] = field(default_factory=dict)
    clusters: list[dict[str, Any]] = field(default_factory=list)
    kept_times: list[float] = field(default_factory=list)
    timeline: list[tuple[str, int, int]] = field(default_factory=list)
    damaged_lines: int = 0

    @property
    def duplicates(self) -> int:
        return self.kinds["exact"] + self.kinds["near"]

    @property
    def counts(self) -> dict[str, int | float]:
        """The stats of the crawl; none of a whole store, or of one that has not ended."""
        return self.crawl.counts if self.crawl else {}

    def busiest_hosts(self) -> list[tuple[str, Counter[str]]]:
        """The hosts with the most duplicates."""
        ranked = sorted(
            self.hosts.items(), key=lambda item: (-(item[1]["exact"] + item[1]["near"]), item[0])
        )
        return [item for item in ranked if item[1]["exact"] + item[1]["near"]][:_HOSTS]

    def sampled_pairs(self) -> list[Pair]:
        """Duplicates from the farthest to the same, then near misses from the nearest."""
        order = {"near": 0, "exact": 1, "near_miss": 2}

        def key(item: tuple[tuple[str, int | None], Sample[Pair]]) -> tuple[int, int]:
            kind, distance = item[0]
            return order.get(kind, 3), (distance or 0) * (1 if kind == "near_miss" else -1)

        return [pair for _, sample in sorted(self.pairs.items(), key=key) for pair in sample.chosen]

    def note(self, pair: Pair) -> None:
        """Count a pair, and draw it among the samples."""
        if pair.distance is not None:
            self.distances[pair.kind][pair.distance] += 1
            if pair.resemblance is not None:
                group = "near_miss" if pair.kind == "near_miss" else "duplicate"
                points = self.points.setdefault(group, Sample(POINTS, group))
                points.add((pair.distance, pair.resemblance))
        place = pair.kind, pair.distance
        self.pairs.setdefault(place, Sample(PAIRS_A_DISTANCE, str(place))).add(pair)

    def note_hosts(self, url: str, original: str | None, kind: str) -> None:
        host = host_of(url)
        if host in self.hosts or len(self.hosts) < _MAX_HOSTS:
            self.hosts[host][kind] += 1
        if original is not None and (other := host_of(original)) != host:
            self.mirrors[min(host, other), max(host, other)] += 1


def gather(
    reader: StoreReader,
    crawl: Crawl | None,
    entries: Iterable[dict[str, Any]],
    on_progress: Callable[[int, int], object],
) -> Summary:
    """Gather what is shown of one crawl, or (None) of the whole store.

    *entries* are records of its dropped-page log: near misses are nowhere else.
    """
    summary = Summary(reader.info(), crawl, datetime.now(timezone.utc))
    total = summary.info.pages + summary.info.aliases
    times: Sample[tuple[float, bool]] = Sample(100_000, "times")
    for number, (page_id, record) in enumerate(reader.records(), 1):
        if crawl is None or crawl.id in (record.crawl, record.added_by):
            _add(summary, reader, page_id, record)
            times.add((record.last_seen if crawl else record.first_seen, not record.kept))
        if number % 1000 == 0 or number == total:
            on_progress(number, total)
    for entry in entries:
        if entry.get("kind") == "near_miss" and (crawl is None or entry.get("crawl") == crawl.id):
            pair = _near_miss(entry)
            summary.rules[str(entry.get("rule") or entry.get("reason"))] += 1
            summary.kinds["near_miss"] += 1
            summary.note(pair)
    summary.clusters = _clusters(reader)
    summary.timeline = _timeline(times)
    return summary


def _add(summary: Summary, reader: StoreReader, page_id: int, record: Record) -> None:
    if record.kept:
        summary.kept += 1
        summary.note_hosts(record.url, None, "kept")
        return
    kind = "near" if record.reason == "simhash" else "exact"
    original = reader.get(record.representative)
    summary.kinds[kind] += 1
    summary.bytes_saved += record.body_bytes
    summary.note_hosts(record.url, original.url, kind)
    view = record.profile.view(record.view or "") or record.views[0]
    view_of = original.profile.view(record.view or "") or original.views[0]
    summary.note(
        Pair(
            kind,
            record.url,
            original.url,
            record.distance,
            record.resemblance,
            record.containment,
            record.rule or record.reason,
            record.title,
            original.title,
            view.tokens,
            view_of.tokens,
            page_id,
            record.representative,
        )
    )


def _near_miss(entry: dict[str, Any]) -> Pair:
    def number(name: str, kind: type) -> Any:
        value = entry.get(name)
        return value if isinstance(value, (int, kind)) and not isinstance(value, bool) else None

    def text(name: str) -> str | None:
        value = entry.get(name)
        return value if isinstance(value, str) else None

    return Pair(
        "near_miss",
        text("url") or "",
        text("duplicate_of") or "",
        number("distance", int),
        number("resemblance", float),
        number("containment", float),
        text("rule") or text("reason"),
        text("title"),
        text("title_of"),
        number("tokens", int),
        number("tokens_of", int),
    )


def _clusters(reader: StoreReader) -> list[dict[str, Any]]:
    found = []
    for page_id, size in reader.clusters(_CLUSTERS):
        record = reader.get(page_id)
        found.append({"size": size, "url": record.url, "title": record.title})
    return found


def _timeline(times: Sample[tuple[float, bool]]) -> list[tuple[str, int, int]]:
    """(time, pages kept, duplicates) of equal stretches of the time in which pages came."""
    if len(times.chosen) < 2:
        return []
    first, last = (choose(when for when, _ in times.chosen) for choose in (min, max))
    width = max((last - first) / _SLOTS, 1e-6)
    scale = times.seen / len(times.chosen)
    slots = [[0, 0] for _ in range(_SLOTS)]
    for when, is_duplicate in times.chosen:
        slots[min(_SLOTS - 1, int((when - first) / width))][is_duplicate] += 1
    shown = "%H:%M:%S" if last - first < 86_400 else "%Y-%m-%d"
    return [
        (
            datetime.fromtimestamp(first + number * width, timezone.utc).strftime(shown),
            round(kept * scale),
            round(duplicates * scale),
        )
        for number, (kept, duplicates) in enumerate(slots)
    ]
