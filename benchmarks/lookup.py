"""What a look-up and an insert cost in the permuted tables, beside brute force and a peer.

    python benchmarks/lookup.py [--fingerprints 1000000] [--rounds 5]

Random 64-bit fingerprints; every round measures all rows in turn, so that a busy machine is busy
for all of them. The peers, all in memory and as far as they are installed, with the same pairs to
find: ``faiss.IndexBinaryMultiHash`` with 4 tables of 16 bits, in one thread; gaoya's simhash index
with 4 blocks, which makes fingerprints of texts only, so it gets words, and its hashing of one word
is part of its figures; PyPI's ``simhash``, with fewer fingerprints, as it takes 1 GB a million.
"""

from __future__ import annotations

import argparse
import logging
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from scrapy_simdup import FingerprintIndex
from scrapy_simdup.store.environment import Environment
from scrapy_simdup.store.permuted import PermutedTables
from scrapy_simdup.store.planner import plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Values: TypeAlias = npt.NDArray[np.uint64]

LOOKUPS = 500
BATCH = 20_000
BRUTE_FORCE_LOOKUPS = 20
FLIPPED_LOOKUPS = 10
PEER_LOOKUPS = 200
#: gaoya takes some 190 bytes a fingerprint, and minutes to load many.
GAOYA_MOST = 2_000_000
INSERTS = 320
#: Pages that the store's thread finds waiting and commits together, when a crawl is busy.
GROUP = 16


@dataclass
class Row:
    """One line of the result: a figure for every round."""

    unit: str
    more_is_better: bool = False
    figures: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.figures)


def progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def median_us(work: Callable[[Any], object], arguments: list[Any]) -> float:
    times = []
    for argument in arguments:
        start = time.perf_counter()
        work(argument)
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def near(values: Values, k: int, rng: np.random.Generator) -> Values:
    """Flip k random bits of each fingerprint."""
    bits = np.argsort(rng.random((len(values), 64)), axis=1)[:, :k].astype(np.uint64)
    flips: Values = np.bitwise_or.reduce(np.uint64(1) << bits, axis=1)
    return values ^ flips


@contextmanager
def loaded(folder: Path, k: int, stored: Values) -> Iterator[tuple[FingerprintIndex, float, float]]:
    """Fill an index in bulk; yield it with fingerprints a second and bytes a fingerprint."""
    with FingerprintIndex(folder, max_distance=k, expected=len(stored)) as index:
        start = time.perf_counter()
        index.add_many(stored)
        seconds = time.perf_counter() - start
        size = (folder / "data.mdb").stat().st_size
        yield index, len(stored) / seconds, size / len(stored)


def check(index: FingerprintIndex, stored: Values, rng: np.random.Generator) -> str:
    """Look for planted neighbours at every distance up to k, and one further."""
    k = index.max_distance
    wanted = stored[:1000]
    found = 0
    for distance in range(k + 2):
        rows, fingerprints, _ = index.query_many(near(wanted, distance, rng))
        hits = int((wanted[rows] == fingerprints).sum())
        if distance <= k:
            found += hits
        elif hits:
            raise SystemExit(f"{hits} fingerprints found at distance {distance}, k = {k}")
    if found != 1000 * (k + 1):
        raise SystemExit(f"only {found} of {1000 * (k + 1)} planted neighbours found, k = {k}")
    return f"k = {k}: all {found:,} planted neighbours found at distance 0 to {k}, none at {k + 1}"


class Inserts:
    """Look-up and insert of single fingerprints in write transactions, with a durable commit."""

    def __init__(self, folder: Path, stored: Values, k: int) -> None:
        self.environment = Environment.open(folder, kind="benchmark")
        self.db = self.environment.database("tables")
        self.tables = PermutedTables(plan(k, len(stored)).layout, k)
        self.environment.write(lambda txn: self.tables.add(txn, self.db, stored))

    def run(self, values: Values, group: int) -> tuple[float, float]:
        """Commit *group* fingerprints at a time.

        Returns the medians, in µs a fingerprint, of the work in the transaction and of the rest.
        """
        inside: list[float] = []
        rest: list[float] = []

        def job(txn: Any) -> list[float]:
            times = []
            for one in together:
                start = time.perf_counter()
                self.tables.query(txn, self.db, int(one[0]))
                self.tables.add(txn, self.db, one)
                times.append(time.perf_counter() - start)
            return times

        for start_row in range(0, len(values), group):
            together = values[start_row : start_row + group].reshape(-1, 1)
            start = time.perf_counter()
            times = self.environment.write(job)
            rest.append((time.perf_counter() - start - sum(times)) / group)
            inside += times
        return statistics.median(inside) * 1e6, statistics.median(rest) * 1e6


def load_peer(stored: Values) -> tuple[Any, Any, float, float | None]:
    """Return Simhash, a filled SimhashIndex, fingerprints a second, bytes of RAM a fingerprint."""
    from simhash import Simhash, SimhashIndex  # type: ignore[import-untyped]

    logging.getLogger("simhash").setLevel(logging.ERROR)
    before = resident_bytes()
    start = time.perf_counter()
    # Made from the integers, so that none of it is the peer's own hashing of text.
    index = SimhashIndex([(str(i), Simhash(v)) for i, v in enumerate(stored.tolist())], k=3)
    seconds = time.perf_counter() - start
    after = resident_bytes()
    ram = (after - before) / len(stored) if before and after else None
    return Simhash, index, len(stored) / seconds, ram


class Faiss:
    """Exact at k = 3 as it is, at k up to 11 with two bits flipped: the same pigeonholes as ours."""

    def __init__(self, stored: Values) -> None:
        import faiss  # type: ignore[import-not-found]

        faiss.omp_set_num_threads(1)
        self.name = f"faiss {faiss.__version__} IndexBinaryMultiHash, in memory"
        self.index = faiss.IndexBinaryMultiHash(64, 4, 16)
        before, start = resident_bytes(), time.perf_counter()
        self.index.add(as_bytes(stored))
        self.rate = len(stored) / (time.perf_counter() - start)
        after = resident_bytes()
        self.ram = (after - before) / len(stored) if before and after else None

    def set_distance(self, k: int) -> None:
        self.index.nflip = 0 if k <= 3 else 1 if k <= 7 else 2
        self.radius = k + 1  # exclusive

    def query(self, query: npt.NDArray[np.uint8]) -> Any:
        return self.index.range_search(query, self.radius)

    def check(self, stored: Values, k: int, rng: np.random.Generator) -> None:
        wanted = stored[: 500 if k <= 3 else 20]  # with two bits flipped it takes its time
        for distance in range(k + 2):
            starts, _, found = self.query(as_bytes(near(wanted, distance, rng)))
            rows = np.repeat(np.arange(len(wanted)), np.diff(starts.astype(np.int64)))
            hits = int((rows == found).sum())
            if hits != (len(wanted) if distance <= k else 0):
                raise SystemExit(f"faiss finds {hits} at distance {distance}, k = {k}: unfair")


def as_bytes(values: Values) -> npt.NDArray[np.uint8]:
    return values.view(np.uint8).reshape(-1, 8)


class Gaoya:
    def __init__(self, count: int) -> None:
        from gaoya.simhash import SimHashStringIndex  # type: ignore[import-not-found]

        self.name = f"gaoya {version('gaoya')}, in memory"
        self.index = SimHashStringIndex(hash_size=64, num_blocks=4, hamming_distance=3)
        before, start = resident_bytes(), time.perf_counter()
        for number in range(count):
            self.index.insert_document(number, f"w{number}")
        self.rate = count / (time.perf_counter() - start)
        after = resident_bytes()
        self.ram = (after - before) / count if before and after else None
        self.query = self.index.query


def installed(make: Callable[[], Any], name: str) -> Any:
    """Return the peer, None (and say so) where it is not installed."""
    progress(f"filling {name}")
    try:
        return make()
    except ImportError:
        print(f'no row for {name}: pip install "scrapy-simdup[bench]"')
        return None


def resident_bytes() -> int | None:
    try:
        pages = Path("/proc/self/statm").read_text().split()[1]
    except OSError:
        return None
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def machine() -> str:
    model = platform.processor() or platform.machine()
    memory = ""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
        memory = f", {os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB"
    except (OSError, ValueError):
        pass
    return (
        f"{model}, {os.cpu_count()} cores{memory}, {platform.system()} {platform.machine()}\n"
        f"Python {platform.python_version()}, numpy {np.__version__}, lmdb {version('lmdb')}"
    )


def report(groups: dict[str, dict[str, Row]]) -> None:
    """Print the rows of each group; the ratio says how many times worse than the first row."""
    width = max(len(name) for rows in groups.values() for name in rows) + 4
    for group, rows in groups.items():
        print(f"\n{group:{width}}{'median':>12}   {'lowest - highest':<20}{'ratio':>8}")
        first = next(iter(rows.values()))
        for name, row in rows.items():
            ratio = row.median / first.median
            ratio = 1 / ratio if row.more_is_better else ratio
            spread = f"{min(row.figures):,.0f} - {max(row.figures):,.0f}"
            value = f"{row.median:,.0f} {row.unit}"
            print(f"  {name:{width - 2}}{value:>12}   {spread:<20}{ratio:>7.1f}x")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fingerprints", type=int, default=1_000_000, help="stored fingerprints")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--peer-fingerprints",
        type=int,
        default=200_000,
        help="stored in simhash's SimhashIndex, which takes about 1 GB of RAM a million",
    )
    parser.add_argument("--folder", type=Path, help="where the stores go; default: temporary")
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory(dir=arguments.folder, prefix="simdup-lookup-") as folder:
        run(Path(folder), arguments.fingerprints, arguments.peer_fingerprints, arguments.rounds)


def run(folder: Path, count: int, peer_count: int, rounds: int) -> None:
    rng = np.random.default_rng(2007)
    stored = rng.integers(0, 2**64, count, dtype=np.uint64)
    # For brute force: without them, it would mostly wait for fresh memory.
    differences, distances = np.empty_like(stored), np.empty(count, dtype=np.uint8)
    groups: dict[str, dict[str, Row]] = {}

    def note(group: str, name: str, unit: str, figure: float, *, more: bool = False) -> None:
        rows = groups.setdefault(group, {})
        rows.setdefault(name, Row(unit, more)).figures.append(figure)

    print(machine())
    print(f"{count:,} random fingerprints of 64 bits, {rounds} rounds")
    try:
        peer_name = f"simhash {version('simhash')}, {peer_count:,} stored, in memory"
    except PackageNotFoundError:
        peer_name = ""
        print('no row for simhash: pip install "scrapy-simdup[bench]"')
    peer = None
    if peer_name:
        progress(f"filling {peer_name}")
        peer = load_peer(stored[:peer_count])
    faiss = installed(lambda: Faiss(stored), "faiss")
    gaoya = installed(lambda: Gaoya(count), "gaoya") if count <= GAOYA_MOST else None
    for k in (3, 9) if faiss else ():
        faiss.set_distance(k)
        faiss.check(stored, k, rng)
    progress("filling the tables for single inserts")
    inserts = Inserts(folder / "inserts", stored, 3)

    for number in range(rounds):
        for k in (3, 9):
            progress(f"round {number + 1} of {rounds}: k = {k}")
            lookup, load, size = f"look-up, k = {k}", f"bulk load, k = {k}", f"size, k = {k}"
            hit, together = f"{lookup}, that finds one", f"{lookup}, {BATCH:,} together"
            with loaded(folder / f"{number}-{k}", k, stored) as (index, rate, per_fingerprint):
                if number == 0:
                    checked = check(index, stored, rng)
                    progress("")
                    print(f"{checked}; {index.layout.describe()}")
                queries = rng.integers(0, 2**64, LOOKUPS, dtype=np.uint64).tolist()
                median_us(index.query, queries)  # warm
                note(lookup, "scrapy-simdup, on disk", "µs", median_us(index.query, queries))
                note(load, "scrapy-simdup, on disk", "/s", rate, more=True)
                batch = rng.integers(0, 2**64, BATCH, dtype=np.uint64)
                start = time.perf_counter()
                index.query_many(batch)
                each = (time.perf_counter() - start) / BATCH * 1e6
                note(together, "scrapy-simdup, on disk", "µs", each)
                duplicates = near(stored[:LOOKUPS], min(k, 3), rng)
                note(
                    hit, "scrapy-simdup, on disk", "µs", median_us(index.query, duplicates.tolist())
                )
                more = rng.integers(0, 2**64, count // 10, dtype=np.uint64)
                start = time.perf_counter()
                index.add_many(more)
                second = len(more) / (time.perf_counter() - start)
                note(load, "the same, 10 % more into the filled one", "/s", second, more=True)
            shutil.rmtree(folder / f"{number}-{k}")

            def scan(query: int, k: int = k) -> Values:
                np.bitwise_xor(stored, np.uint64(query), out=differences)
                np.bitwise_count(differences, out=distances)
                return stored[distances <= k]

            slow = median_us(scan, queries[:BRUTE_FORCE_LOOKUPS])
            note(lookup, "numpy, every fingerprint compared", "µs", slow)
            note(size, "scrapy-simdup, on disk", "B", per_fingerprint)
            if faiss:
                faiss.set_distance(k)
                few = LOOKUPS if k == 3 else FLIPPED_LOOKUPS
                asked = [as_bytes(np.array([query], dtype=np.uint64)) for query in queries[:few]]
                median_us(faiss.query, asked)  # warm
                note(lookup, faiss.name, "µs", median_us(faiss.query, asked))
                asked = [as_bytes(duplicates[n : n + 1]) for n in range(few)]
                note(hit, faiss.name, "µs", median_us(faiss.query, asked))
                if k == 3:
                    start = time.perf_counter()
                    faiss.query(as_bytes(batch))
                    each = (time.perf_counter() - start) / BATCH * 1e6
                    note(together, faiss.name, "µs", each)
                    note(load, faiss.name, "/s", faiss.rate, more=True)
                    if faiss.ram:
                        note(size, faiss.name, "B", faiss.ram)
            if gaoya and k == 3:
                words = [f"x{number}-{n}" for n in range(LOOKUPS)]
                median_us(gaoya.query, words)  # warm
                note(lookup, gaoya.name, "µs", median_us(gaoya.query, words))
                note(load, gaoya.name, "/s", gaoya.rate, more=True)
                if gaoya.ram:
                    note(size, gaoya.name, "B", gaoya.ram)
            if peer and k == 3:
                simhash, peer_index, peer_rate, peer_ram = peer
                hashes = [simhash(query) for query in queries[:PEER_LOOKUPS]]
                note(lookup, peer_name, "µs", median_us(peer_index.get_near_dups, hashes))
                note(load, peer_name, "/s", peer_rate, more=True)
                if peer_ram:
                    note(size, peer_name, "B", peer_ram)
        progress(f"round {number + 1} of {rounds}: single inserts")
        for group in (GROUP, 1):
            values = rng.integers(0, 2**64, INSERTS, dtype=np.uint64)
            inside, rest = inserts.run(values, group)
            title = f"look-up and insert, k = 3, pages a transaction: {group}"
            note(title, "a page, beside the commit", "µs", inside)
            note(title, "its share of the durable commit", "µs", rest)

    inserts.environment.close()
    progress("")
    report(groups)


if __name__ == "__main__":
    main()
