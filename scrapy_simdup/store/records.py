"""What is kept of a page, and the interface of the stores that keep it.

Everything needed to decide again offline is here: digests, counts, and the profile with its
fingerprints and sketches. The text itself is kept on request only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from scrapy_simdup.page.profile import Profile  # noqa: TC001 - msgspec reads the annotations

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future

    import numpy as np
    import numpy.typing as npt

    from scrapy_simdup.page.profile import View
    from scrapy_simdup.store.crawls import Crawl
    from scrapy_simdup.store.planner import Plan

T = TypeVar("T")

MAX_SAME_TEXT = 64
"""So many pages with the same text are named, the oldest: a site that has one text under many
titles must not make a look-up long."""

MAX_HOLDERS = 256
MAX_CANDIDATES = 1024
"""Of a look-up so many pages are named at most, the nearest, and of each fingerprint so many, the
oldest: a site that makes pages with the fingerprints of others must not make a look-up long."""

COMMON_PAGES = 8
"""A block on so many kept pages of a host is common there: it says nothing about one page."""


class Record(msgspec.Struct, kw_only=True, array_like=True):
    """A page. ``representative`` is 0 for a kept page, else the page id of the one it duplicates.

    ``key`` is the fingerprint of the request; digests have 16 bytes; times are seconds since the
    epoch; ``crawl`` names the crawl that wrote this version of the record, ``added_by`` the one that
    found the page. The fields from ``reason`` on say how a duplicate was recognised; ``judged`` is a
    digest of what that was seen from.
    """

    key: bytes
    url: str
    body_digest: bytes
    profile: Profile
    language: str | None = None
    body_bytes: int = 0
    first_seen: float = 0.0
    last_seen: float = 0.0
    crawl: str = ""
    text: bytes = b""
    representative: int = 0
    reason: str | None = None
    distance: int | None = None
    resemblance: float | None = None
    containment: float | None = None
    length_ratio: float | None = None
    view: str | None = None
    rule: str | None = None
    cut_off: bool = False
    judged: bytes = b""
    added_by: str = ""

    @property
    def views(self) -> tuple[View, ...]:
        return self.profile.views

    @property
    def title(self) -> str | None:
        return self.profile.title

    @property
    def kept(self) -> bool:
        return self.representative == 0


class StoreInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a store holds: numbers of kept pages and of aliases, size, and how it is laid out."""

    path: str | None
    pages: int
    aliases: int
    bytes: int
    layout: str
    configuration_id: str
    configuration: dict[str, str]


class PageTransaction(Protocol):
    """What a job may do. It sees its own writes; all or nothing of them becomes durable."""

    def get(self, page_id: int) -> Record:
        """Return the record of *page_id*; KeyError if there is none."""

    def find(self, key: bytes) -> tuple[int, Record] | None:
        """Return (page id, record) of the page with this request fingerprint."""

    def find_bodies(self, digest: bytes) -> list[int]:
        """Return the ids of the kept pages with this body digest, the ``MAX_SAME_TEXT`` oldest."""

    def find_texts(self, digests: Sequence[bytes]) -> list[int]:
        """Return the ids of the kept pages, oldest first, that have a view with one of *digests*;
        of each digest the ``MAX_SAME_TEXT`` oldest.
        """

    def candidates(self, simhashes: Sequence[int]) -> list[int]:
        """Return the ids of the kept pages, oldest first, that have a view within the Hamming
        distance of one of *simhashes*: all, or where there are more the ``MAX_CANDIDATES`` nearest,
        of each fingerprint the ``MAX_HOLDERS`` oldest.
        """

    def common_blocks(self, host: str, blocks: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
        """Say of each of *blocks*, hashes uint32[n] in any order, whether it is known to recur on
        at least ``COMMON_PAGES`` kept pages of *host*. False may also mean forgotten
        (``hostmemory``), True is certain but for the collisions of 32 bits.
        """

    def learn_blocks(self, host: str, blocks: npt.NDArray[np.uint32]) -> None:
        """Count the distinct ones of *blocks*, hashes uint32[n], for one more kept page of *host*.

        Nothing is ever taken back: a page that is replaced must not be learned again.
        """

    def put(self, record: Record, page_id: int | None = None) -> int:
        """Store a new record, or another version of *page_id*; return its id.

        Its blocks are not learned.
        """

    def bytes_used(self) -> int:
        """Return how many bytes of the store's file are in use, those of this transaction included."""

    def aliases(self, page_id: int) -> int:
        """Return how many pages are recorded as duplicates of *page_id*."""

    def aliases_of(self, page_id: int, limit: int | None = None) -> list[int]:
        """Return the ids of these, oldest first; not more than *limit*."""

    def records(self, after: int, limit: int) -> list[tuple[int, Record]]:
        """Return the first *limit* of (page id, record) above the id *after*, ascending."""

    def delete(self, page_id: int) -> None:
        """Take a page out of the store; KeyError if there is none.

        What was learned of its host stays. A page with duplicates leaves them without their
        representative: whoever deletes it has to find them another one.
        """

    def note_crawl(self, crawl: Crawl) -> None:
        """Keep what is known of a crawl, instead of what was known of it before."""


class PageStore(Protocol):
    """Where the detector keeps pages. Check and insert are one job, so they are one step."""

    def transact(
        self, job: Callable[[PageTransaction], T], prepare: Callable[[], Any] | None = None
    ) -> Future[T]:
        """Run *job* in a transaction; the future is done when its writes are durable.

        *job* must be repeatable. *prepare* runs before the transaction begins.
        """

    def info(self) -> StoreInfo: ...

    def outgrown(self) -> Plan | None:
        """Return the plan of a layout that halves the time of a page, None if there is none."""

    def close(self) -> None:
        """Finish what was asked for, then close. May be called again."""
