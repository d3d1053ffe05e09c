"""The layout that a store has: following the header, and changing it together with the tables.

A store's layout stands in its header, is chosen when the store is made, and may outgrow what it was
chosen for. What a layout is, is :mod:`scrapy_simdup.store.tables`'; which one pays,
:mod:`scrapy_simdup.store.planner`'s.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from scrapy_simdup.store.environment import header_bytes, update_header
from scrapy_simdup.store.permuted import PermutedTables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import lmdb

    from scrapy_simdup.store.environment import Environment
    from scrapy_simdup.store.tables import U64, Layout


class CurrentTables:
    """The tables as the header has them now: another process may have laid them out anew.

    *make* turns a header into tables, and raises what is to be said if it cannot.
    """

    def __init__(self, make: Callable[[Mapping[str, Any]], PermutedTables]) -> None:
        self._make = make
        self._header = b""
        self._tables: PermutedTables | None = None

    def of(self, txn: lmdb.Transaction) -> PermutedTables:
        """Return the tables that are valid in this transaction."""
        header = header_bytes(txn)
        if self._tables is None or header != self._header:
            self._tables, self._header = self._make(json.loads(header)), header
        return self._tables


def relayout(
    environment: Environment,
    db: Any,
    layout: Layout,
    fingerprints: Callable[[lmdb.Transaction], U64],
    on_progress: Callable[[int, int], object] | None = None,
) -> None:
    """Write the tables anew in *layout*, sorted, and the header, in one transaction.

    Killed at any moment, the store has its old header and tables, or the new ones. *fingerprints*
    reads all of them, 8 bytes each and twice that to sort them; the file grows by the new tables,
    and the old ones' pages are used again later. *on_progress* is called with the entries written
    and their number; it must not use the store, which is locked meanwhile.
    """

    def job(txn: lmdb.Transaction) -> None:
        everything = fingerprints(txn)
        txn.drop(db, delete=False)
        PermutedTables(layout, 0).add(txn, db, everything, on_progress)
        update_header(txn, layout=layout.to_dict())

    environment.write(job)
