"""Alarms: what the verdicts of a host's last pages say about the site, each once.

A block page, a login wall, a calendar without end: an operator should hear of them while the crawl
runs, not read of them in its log. Per host the last pages are looked at; hosts that were not seen
for long are forgotten, so memory is bounded.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from scrapy_simdup.printable import one_line

if TYPE_CHECKING:
    from scrapy_simdup.verdict import Verdict

#: Kinds of alarms, and what each means; `simdup/alert/<kind>` counts them.
KINDS: Final[dict[str, str]] = {
    "large_cluster": "one page has 100, 1,000, … duplicates",
    "one_page": "one page attracts two fifths of a host's last pages",
    "duplicates": "duplicates jump above four fifths of a host's last pages",
    "refusals": "verification refuses the candidates of half of a host's last pages",
    "no_text": "nothing can be extracted from four fifths of a host's last pages",
}

#: What an operator may do about each.
ADVICE: Final[dict[str, str]] = {
    "large_cluster": "see whether it is a block, login, consent or not-found page",
    "one_page": "see whether it is a block, login, consent or not-found page, or whether the "
    "session has expired",
    "duplicates": "see whether session ids, a calendar or filters give one page many addresses",
    "refusals": "pages of one template that differ in names and numbers; they pass, but see a few "
    "in the dropped-page log (kind near_miss)",
    "no_text": "its pages may be made by scripts: render them, or crawl its API",
}

#: Clusters of this many duplicates raise an alarm, once each.
CLUSTER_SIZES: Final = (100, 1_000, 10_000, 100_000)

WINDOW: Final = 100
"""So many of a host's last pages are looked at."""

_LEAST = 50
_LEAST_WITHOUT_TEXT = 20
_ONE_PAGE = 0.4
_DUPLICATES = 0.8
_JUMP = 2.0
_REFUSALS = 0.5
_NO_TEXT = 0.8
_MAX_HOSTS = 1_000
_MAX_CLUSTERS = 10_000

_WITHOUT_TEXT = frozenset({"no_text", "thin", "empty_body", "no_features"})


@dataclass(frozen=True, slots=True)
class Alarm:
    """An alarm, raised by the page at *url*: *number* of the last *of* pages of *host*.

    *original* is the page whose duplicates they are, where it is about one.
    """

    kind: str
    host: str
    url: str
    number: int
    of: int
    original: str | None = None

    def __str__(self) -> str:
        return one_line(f"{self._what()}; {ADVICE[self.kind]}")

    def _what(self) -> str:
        if self.kind == "large_cluster":
            return f"{self.number} pages are duplicates of {self.original}, the last is {self.url}"
        pages = f"{self.number} of the last {self.of} pages of {self.host}"
        last = f"the last is {self.url}"
        if self.kind == "one_page":
            return f"{pages} are duplicates of {self.original}, {last}"
        if self.kind == "duplicates":
            return f"{pages} are duplicates, {last}"
        if self.kind == "refusals":
            return f"{pages} resemble another one, but not enough to be a duplicate, {last}"
        return f"{pages} have no text that could be extracted, {last}"


@dataclass(slots=True)
class _Host:
    """The last pages of a host, and what was said of it. A page is its original, or how it passed."""

    pages: deque[str] = field(default_factory=lambda: deque(maxlen=WINDOW))
    kinds: Counter[str] = field(default_factory=Counter)
    originals: Counter[str] = field(default_factory=Counter)
    seen: int = 0
    duplicates: int = 0
    raised: set[str] = field(default_factory=set)

    def add(self, kind: str, original: str) -> None:
        if len(self.pages) == WINDOW:
            former_kind, _, former = self.pages[0].partition(" ")
            self.kinds[former_kind] -= 1
            if former:
                self.originals[former] -= 1
                if not self.originals[former]:
                    del self.originals[former]
        self.pages.append(f"{kind} {original}")
        self.kinds[kind] += 1
        if original:
            self.originals[original] += 1
        self.seen += 1
        self.duplicates += kind == "duplicate"


class Alarms:
    """Looks at every verdict; not to be used from several threads at once."""

    def __init__(self) -> None:
        self._hosts: OrderedDict[str, _Host] = OrderedDict()
        self._clusters: OrderedDict[str, int] = OrderedDict()

    def see(self, url: str, host: str, verdict: Verdict) -> list[Alarm]:
        """The alarms that this page raises. Revisits raise none."""
        kind = _kind(verdict)
        if kind is None:
            return []
        original = verdict.duplicate_of or ""
        known = self._hosts.get(host)
        if known is None:
            known = self._hosts[host] = _Host()
            if len(self._hosts) > _MAX_HOSTS:
                self._hosts.popitem(last=False)
        self._hosts.move_to_end(host)
        known.add(kind, original)
        alarms = [alarm for alarm in self._of_host(known, url, host) if _is_new(known, alarm)]
        alarms += self._of_cluster(url, host, original, verdict.cluster_size or 0)
        # Of one page one need not hear in two ways so soon.
        if _said("one_page", original) in known.raised:
            alarms = [alarm for alarm in alarms if alarm.number != CLUSTER_SIZES[0]]
        return alarms

    def _of_host(self, host: _Host, url: str, name: str) -> list[Alarm]:
        """What is true of a host's last pages, said or not."""
        of = len(host.pages)
        found = []
        without_text = host.kinds["no_text"]
        if of >= _LEAST_WITHOUT_TEXT and without_text >= _NO_TEXT * of:
            found.append(Alarm("no_text", name, url, without_text, of))
        if of < _LEAST:
            return found
        refused, duplicates = host.kinds["refused"], host.kinds["duplicate"]
        if refused >= _REFUSALS * of:
            found.append(Alarm("refusals", name, url, refused, of))
        if duplicates < _ONE_PAGE * of:
            return found
        [(original, number)] = host.originals.most_common(1)
        if number >= _ONE_PAGE * of:
            if original not in self._clusters:  # else it was told of
                found.append(Alarm("one_page", name, url, number, of, original))
        elif of == WINDOW and duplicates >= _DUPLICATES * of and _jumped(host):
            found.append(Alarm("duplicates", name, url, duplicates, of))
        return found

    def _of_cluster(self, url: str, host: str, original: str, size: int) -> list[Alarm]:
        """Of each cluster one for every size that it reaches."""
        reached = max((alarm for alarm in CLUSTER_SIZES if alarm <= size), default=0)
        if reached <= self._clusters.get(original, 0):
            return []
        self._clusters[original] = reached
        if len(self._clusters) > _MAX_CLUSTERS:
            self._clusters.popitem(last=False)
        return [Alarm("large_cluster", host, url, size, size, original)]


def _kind(verdict: Verdict) -> str | None:
    """How a page counts, None if it does not."""
    if verdict.is_duplicate:
        return "duplicate"
    if verdict.kind == "skipped":
        return "no_text" if verdict.reason in _WITHOUT_TEXT else None
    if verdict.kind != "unique":
        return None
    return "unique" if verdict.near_miss is None else "refused"


def _is_new(host: _Host, alarm: Alarm) -> bool:
    """Whether this was not said of the host yet; then it counts as said."""
    said = _said(alarm.kind, alarm.original or "")
    if said in host.raised or len(host.raised) > WINDOW:
        return False
    host.raised.add(said)
    return True


def _said(kind: str, original: str) -> str:
    return f"{kind} {original}"


def _jumped(host: _Host) -> bool:
    """Whether the last pages have at least twice as many duplicates as those before them."""
    before = host.seen - len(host.pages)
    if before < WINDOW:
        return True
    of_these = host.kinds["duplicate"]
    return of_these / len(host.pages) >= _JUMP * (host.duplicates - of_these) / before
