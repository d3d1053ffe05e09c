"""A detector in memory that judges the pages of a set as a `Variant` says.

Whatever a variant leaves alone is the package's: profiles by its `Profiler`, decisions by its
`Decision`, host memory by its `HostMemory`. In memory are the store, where all fingerprints are
looked through, and what several variants need of a page. Its figures for the default variant are
those of the `Detector`; `check` tells whether they are.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.metadata
import itertools
import pickle
import time
from collections import defaultdict
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from unittest import mock

import msgspec
import numpy as np
import numpy.typing as npt
import xxhash
from extraction import PACKAGE, Extracted, extracted
from sets import Counts, PageSet, TextPair, judge_pairs

from scrapy_simdup import decision
from scrapy_simdup.analysis import Analysis, Material
from scrapy_simdup.decision import Decision, Page
from scrapy_simdup.detector import page_key
from scrapy_simdup.page import features, measure, sketch, surroundings
from scrapy_simdup.page import profiler as page_profiler
from scrapy_simdup.page.comparison import compare_profiles
from scrapy_simdup.page.content import Content
from scrapy_simdup.page.fingerprint import Fingerprint, Fingerprinter, blocks_digest, text_digest
from scrapy_simdup.page.profiler import Portrait, Profiler, Unfit
from scrapy_simdup.page.simhash import hamming_many, simhash
from scrapy_simdup.store.hostmemory import HostMemory
from scrapy_simdup.store.records import COMMON_PAGES, MAX_SAME_TEXT, Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from variants import Variant

    from scrapy_simdup.store.crawls import Crawl
    from scrapy_simdup.verdict import Verdict

Hashes = npt.NDArray[np.uint64]

_DUPLICATE: Final = ("exact", "near")
_ODD: Final = np.uint64(0x9E3779B97F4A7C15)
_WINDOW: Final = {"word pairs": 2, "3-shingles": 3}
_CHARACTERS: Final = "character 4-grams"
_STOP_LISTS: Final = {"de": "German", "en": "English", "es": "Spanish", "fr": "French"}
_CHINESE_STOP_WORDS: Final = (
    *"的了在是我有和就不人都一上也很到说要去你会着没看好这那与及或但被把从对为以等其之而则于所中",
    *(
        "一个",
        "自己",
        "没有",
        "我们",
        "你们",
        "他们",
        "可以",
        "这个",
        "因为",
        "所以",
        "如果",
        "就是",
    ),
)


@dataclass(frozen=True)
class Result:
    """What a variant makes of a set of pages.

    `seconds` of processor time are for all that follows extraction, `profile_bytes` what is kept of all `profiles`.
    """

    counts: Counts
    pages: int
    seconds: float
    extraction_seconds: float
    profiles: int
    profile_bytes: int


# ---- what is left of a page ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Profiled:
    """A page as a variant sees it; `seconds` says how long that takes."""

    portrait: Portrait | None
    reason: str
    seconds: float


class LabTokenizer(features.Tokenizer):
    """Cuts Han as `han` says, each run of characters once.

    `saved` are the seconds that it would have taken to cut the others, at the mean speed so far.
    """

    def __init__(self, han: str) -> None:
        super().__init__(segmenter=han)
        self.words: dict[str, list[str]] = {}
        self.saved = 0.0
        self._seconds = 0.0
        self._characters = 0

    def load(self, path: Path) -> None:
        """Take the words of an earlier run."""
        if path.exists():
            self.words, self._seconds, self._characters = pickle.loads(path.read_bytes())

    def save(self, path: Path) -> None:
        if self._characters:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(pickle.dumps((self.words, self._seconds, self._characters)))

    def _segment(self, runs: list[str]) -> list[list[str]]:
        new = [run for run in dict.fromkeys(runs) if run not in self.words]
        if new:
            self._dictionary()
            started = time.process_time()
            self.words.update(zip(new, super()._segment(new), strict=True))
            self._seconds += time.process_time() - started
            self._characters += sum(map(len, new))
        known = sum(map(len, runs)) - sum(map(len, new))
        if known:
            self.saved += known * self._seconds / self._characters
        return [self.words[run] for run in runs]


class Tokens:
    """Hashes of the tokens of pages: cutting a text is dear, and the same for most variants.

    `saved` sums up the seconds that remembering has saved.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.saved = 0.0
        self._folder = folder
        self._tokenizers: dict[str, LabTokenizer] = {}
        self._known: dict[tuple[str, bytes], tuple[list[Hashes], float]] = {}

    def tokenizer(self, han: str) -> LabTokenizer:
        if han not in self._tokenizers:
            self._tokenizers[han] = tokenizer = LabTokenizer(han)
            if self._folder is not None:
                tokenizer.load(self._path(han))
        return self._tokenizers[han]

    def hashes(
        self, kind: str, han: str, blocks: Sequence[str], make: Callable[[], list[Hashes]]
    ) -> list[Hashes]:
        """Those of one `kind`, which says how Han is cut, and Japanese; `han` cuts what is new."""
        started = time.process_time()
        key = kind, xxhash.xxh3_128_digest("\n".join(blocks).encode("utf-8", "surrogatepass"))
        if key in self._known:
            found, seconds = self._known[key]
            self.saved += seconds - (time.process_time() - started)
            return found
        tokenizer = self._tokenizers[han]
        saved, started = tokenizer.saved, time.process_time()
        made = make()
        cut = tokenizer.saved - saved
        self.saved += cut
        self._known[key] = made, time.process_time() - started + cut
        return made

    def save(self) -> None:
        if self._folder is not None:
            for han, tokenizer in self._tokenizers.items():
                tokenizer.save(self._path(han))

    def _path(self, han: str) -> Path:
        assert self._folder is not None
        version = "" if han == "bigrams" else importlib.metadata.version(han)
        return self._folder / f"{han}-{version}-{features.RULES}.pickle"


class LabFingerprinter(Fingerprinter):
    def __init__(self, variant: Variant, tokens: Tokens) -> None:
        config = variant.config
        super().__init__(weights=config.weights, min_tokens=config.min_tokens, seed=config.seed)
        self._variant = variant
        self._tokens = tokens
        self._tokenizer = tokens.tokenizer(variant.han)
        self._is_package = (variant.feature, variant.sketch, variant.shingle) == (
            "words",
            f"{sketch.BINS}×4",
            sketch.SHINGLE_SIZE,
        )
        self.language = ""

    def unit_hashes(self, blocks: Sequence[str], *, japanese: bool) -> list[Hashes]:
        if self._variant.han_in_shingles == "words":
            return self._words(blocks, super().unit_hashes(blocks, japanese=japanese), japanese)
        make = functools.partial(super().unit_hashes, blocks, japanese=japanese)
        return self._tokens.hashes(f"bigrams {japanese}", self._variant.han, blocks, make)

    def token_hashes(
        self, blocks: Sequence[str], units: Sequence[Hashes], *, japanese: bool
    ) -> list[Hashes]:
        if self._variant.han_in_shingles == "words":
            return list(units)
        return self._words(blocks, units, japanese)

    def _words(
        self, blocks: Sequence[str], units: Sequence[Hashes], japanese: bool
    ) -> list[Hashes]:
        han = self._variant.han
        make = functools.partial(super().token_hashes, blocks, units, japanese=japanese)
        return self._tokens.hashes(f"{han} {japanese}", han, blocks, make)

    def fingerprint_hashes(self, tokens: Hashes, units: Hashes) -> Fingerprint | None:
        if self._is_package or not len(tokens):
            return super().fingerprint_hashes(tokens, units)
        shingles = sketch.shingle_hashes(units, self._variant.shingle)
        return Fingerprint(
            simhash=self._simhash(tokens),
            sketch=make_sketch(self._variant.sketch, shingles),
            tokens=len(tokens),
            shingles=len(shingles),
            distinct=len(np.unique(tokens)),
        )

    def _simhash(self, tokens: Hashes) -> int:
        feature = self._variant.feature
        if feature == _CHARACTERS:
            return 0  # of the characters, which are not known here
        if feature in _WINDOW:
            tokens = ngrams(tokens, _WINDOW[feature])
        elif feature == "words, no stop words":
            left = tokens[~np.isin(tokens, stop_words(self.language))]
            tokens = left if len(left) else tokens
        return self.weighed(tokens)

    def weighed(self, hashes: Hashes) -> int:
        distinct, counts = features.term_frequencies(hashes)
        return simhash(distinct, features.weigh(counts, self.weights))


@functools.cache
def stop_words(language: str) -> Hashes:
    """The hashes of a language's stop words, of English ones where there is no list."""
    import justext  # type: ignore[import-untyped]

    if language == "zh":
        return features.token_hashes(_CHINESE_STOP_WORDS)
    return features.token_hashes(sorted(justext.get_stoplist(_STOP_LISTS.get(language, "English"))))


def ngrams(values: Hashes, size: int) -> Hashes:
    """The hashes of all runs of `size` values, in order."""
    size = min(size, len(values))
    count = len(values) - size + 1
    mixed = np.full(count, size, dtype=np.uint64)
    for offset in range(size):
        mixed = mixed * _ODD + values[offset : offset + count]
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ mixed >> np.uint64(shift)) * np.uint64(factor)
    hashes: Hashes = mixed ^ mixed >> np.uint64(31)
    return hashes


def _character_hashes(blocks: Sequence[str]) -> Hashes:
    text = "\n".join(blocks).encode("utf-32-le", "surrogatepass")
    return ngrams(np.frombuffer(text, dtype="<u4").astype(np.uint64), 4)


class Profiling:
    """Contents → profiles, as a variant says."""

    def __init__(self, variant: Variant, tokens: Tokens) -> None:
        self._variant = variant
        self._tokens = tokens
        self._fingerprinter = LabFingerprinter(variant, tokens)
        self._package = Fingerprinter()
        self.profiler = Profiler(self._fingerprinter, variant.config.views)

    def profiled(self, content: Content) -> Profiled:
        """Make the profile of a page; features, weights and sketch are the package's."""
        portrait, reason = None, ""
        saved, started = self._tokens.saved, time.process_time()
        try:
            portrait = self.profiler.portrait(content)
        except Unfit as unfit:
            reason = str(unfit)
        seconds = time.process_time() - started + self._tokens.saved - saved
        return Profiled(portrait, reason, seconds)

    def derived(self, base: Profiled, content: Content | None) -> Profiled:
        """The same profile, but with the variant's features, weights and sketch."""
        if base.portrait is None or content is None:
            return base
        self._fingerprinter.language = (content.language or "").partition("-")[0].lower()
        composition = base.portrait.composition
        views, seconds = [], base.seconds
        for view in base.portrait.profile.views:
            own = composition[view.name].tokens, composition[view.name].units
            texts: list[str] = []
            if self._variant.feature == _CHARACTERS:
                texts = features.normalise_blocks(getattr(content, view.name))
            begin = time.process_time()
            self._package.fingerprint_hashes(*own)
            middle = time.process_time()
            made = self._fingerprinter.fingerprint_hashes(*own)
            assert made is not None
            value = made.simhash
            if texts:
                value = self._fingerprinter.weighed(_character_hashes(texts))
            seconds += time.process_time() - middle - (middle - begin)
            views.append(
                msgspec.structs.replace(
                    view, simhash=value, sketch=made.sketch, shingles=made.shingles
                )
            )
        profile = msgspec.structs.replace(base.portrait.profile, views=tuple(views))
        return Profiled(dataclasses.replace(base.portrait, profile=profile), "", seconds)


def _ordered_digest(blocks: Iterable[str], seed: int = 0) -> bytes:
    return text_digest("\n".join(blocks), seed)


# ---- other sketches ------------------------------------------------------------------------------

# The package's sketches have an even number of bytes; these are told apart by their length.
_EXACT_MARK: Final = b"exa"
_WIDE_MARK: Final = b"w"


def make_sketch(kind: str, shingles: Hashes) -> bytes:
    if kind == "exact":
        return shingles.tobytes() + _EXACT_MARK
    bins, bits = map(int, kind.split("×"))
    return sketch.sketch(shingles, bins) if bits == 4 else _wide_sketch(shingles, bins) + _WIDE_MARK


def _wide_sketch(shingles: Hashes, bins: int) -> bytes:
    """As the package's, but with a byte for each bin."""
    ordered = np.sort(shingles)
    places = (ordered >> np.uint64(65 - bins.bit_length())).astype(np.intp)
    _, first = np.unique(places, return_index=True)
    values = np.zeros(bins, dtype=np.uint8)
    values[places[first]] = ordered[first] % np.uint64(255) + np.uint64(1)
    return values.tobytes()


def resemblance(a: bytes, b: bytes) -> float:
    if len(a) % 8 == len(_EXACT_MARK):
        one, other = (np.frombuffer(s[:-3], dtype=np.uint64) for s in (a, b))
        both = len(np.intersect1d(one, other, assume_unique=True))
        return both / max(1, len(one) + len(other) - both)
    if len(a) % 8 == len(_WIDE_MARK):
        left, right = (np.frombuffer(s[:-1], dtype=np.uint8) for s in (a, b))
        in_both = int(((left > 0) & (right > 0)).sum())
        same = int(((left > 0) & (left == right)).sum())
        either = int(((left > 0) | (right > 0)).sum())
        return float(np.clip((255 * same - in_both) / 254 / max(1, either), 0.0, 1.0))
    return sketch.resemblance(a, b)


def _has_own_sketch(variant: Variant) -> bool:
    return not variant.sketch.endswith("×4")


@contextmanager
def _parts_of(variant: Variant) -> Iterator[None]:
    """The package's modules with those of their functions exchanged that are no parameters."""
    order = _ordered_digest if variant.block_order else blocks_digest
    with ExitStack() as exchanged:
        exchanged.enter_context(mock.patch.object(page_profiler, "blocks_digest", order))
        if _has_own_sketch(variant):
            for module in (measure, surroundings):  # all that compare sketches
                exchanged.enter_context(mock.patch.object(module, "resemblance", resemblance))
        yield


# ---- the store and the decision ------------------------------------------------------------------


class MemoryStore:
    """A `PageTransaction` that looks through all fingerprints; no page comes again."""

    def __init__(self, variant: Variant, size: int) -> None:
        self._max_distance = variant.config.max_distance
        self._has_memory = variant.host_memory
        self._records: dict[int, Record] = {}
        self._keys: dict[bytes, int] = {}
        self._bodies: dict[bytes, int] = {}
        self._texts: dict[bytes, list[int]] = defaultdict(list)
        self._aliases: dict[int, int] = defaultdict(int)
        self._simhashes = np.zeros(2 * size, dtype=np.uint64)
        self._holders = np.zeros(2 * size, dtype=np.int64)
        self._used = 0
        self._hosts: dict[str, HostMemory] = defaultdict(HostMemory)

    def get(self, page_id: int) -> Record:
        return self._records[page_id]

    def find(self, key: bytes) -> tuple[int, Record] | None:
        page_id = self._keys.get(key)
        return None if page_id is None else (page_id, self._records[page_id])

    def find_bodies(self, digest: bytes) -> list[int]:
        return [self._bodies[digest]] if digest in self._bodies else []

    def find_texts(self, digests: Sequence[bytes]) -> list[int]:
        found = (self._texts[digest][:MAX_SAME_TEXT] for digest in set(digests))
        return sorted(set(itertools.chain.from_iterable(found)))

    def candidates(self, simhashes: Sequence[int]) -> list[int]:
        found: set[int] = set()
        for value in set(simhashes):
            near = hamming_many(self._simhashes[: self._used], value) <= self._max_distance
            found.update(self._holders[: self._used][near].tolist())
        return sorted(found)

    def common_blocks(self, host: str, blocks: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
        if not self._has_memory:
            return np.zeros(len(blocks), dtype=np.bool_)
        return self._hosts[host].count(blocks) >= COMMON_PAGES

    def learn_blocks(self, host: str, blocks: npt.NDArray[np.uint32]) -> None:
        self._hosts[host].learn(blocks)

    def put(self, record: Record, page_id: int | None = None) -> int:
        assert page_id is None, record.url
        page_id = len(self._records) + 1
        self._records[page_id] = record
        self._keys[record.key] = page_id
        if not record.kept:
            self._aliases[record.representative] += 1
            return page_id
        self._bodies.setdefault(record.body_digest, page_id)
        for digest in {view.digest for view in record.views}:
            self._texts[digest].append(page_id)
        for value in {view.simhash for view in record.views}:
            self._simhashes[self._used] = value
            self._holders[self._used] = page_id
            self._used += 1
        return page_id

    def aliases(self, page_id: int) -> int:
        return self._aliases[page_id]

    def aliases_of(self, page_id: int, limit: int | None = None) -> list[int]:
        found = [n for n, record in self._records.items() if record.representative == page_id]
        return found[:limit]

    def records(self, after: int, limit: int) -> list[tuple[int, Record]]:
        return [item for item in self._records.items() if item[0] > after][:limit]

    def delete(self, page_id: int) -> None:
        raise NotImplementedError("nothing is taken back in the lab")

    def note_crawl(self, crawl: Crawl) -> None:
        """There is one crawl only."""


@dataclass(frozen=True)
class LabDecision(Decision):
    """A decision by the rules as a variant has them."""

    variant: Variant = dataclasses.field(kw_only=True)

    def _is_boilerplate(self, txn: Any) -> bool:
        return self.variant.skips_boilerplate and super()._is_boilerplate(txn)

    def _most_similar(self, txn: Any, profile: Any) -> list[tuple[int, Record]]:
        if not _has_own_sketch(self.variant):
            return super()._most_similar(txn, profile)
        ids = {
            *txn.find_texts([view.digest for view in profile.views]),
            *txn.candidates([view.simhash for view in profile.views]),
        }
        found = [(page_id, txn.get(page_id)) for page_id in sorted(ids)]
        found.sort(key=lambda item: -_best_resemblance(profile, item[1].profile))
        return found[: decision.MAX_COMPARED]


def _best_resemblance(profile: Any, other: Any) -> float:
    return max(
        (
            resemblance(view.sketch, same.sketch)
            for view in profile.views
            if (same := other.view(view.name)) is not None
        ),
        default=-1.0,
    )


# ---- runs ----------------------------------------------------------------------------------------


def url_of(pages: PageSet, page: str) -> str:
    return f"http://{pages.name}.example/{page}"


def run_pages(
    pages: PageSet, variants: Iterable[Variant], cache: Path
) -> Iterator[tuple[Variant, Result]]:
    """Judge a set by each of the variants; those with the same profiles come together."""
    tokens = Tokens(cache / "words" / pages.name)
    for base in _grouped(variants, lambda variant: variant.base):
        found = extracted(pages, base[0].extractor, cache)
        contents = [page.content for page in found]
        for group, profiling, profiled in _profiles(contents, base, tokens):
            made = [page.portrait.profile for page in profiled if page.portrait is not None]
            size = sum(len(msgspec.msgpack.encode(profile)) for profile in made)
            for variant in group:
                with _parts_of(variant):
                    verdicts, seconds = _verdicts(
                        pages, variant, found, profiled, profiling.profiler
                    )
                yield (
                    variant,
                    Result(
                        counts=pages.judge(*judged(pages, verdicts)),
                        pages=len(found),
                        seconds=seconds + sum(page.seconds for page in profiled),
                        extraction_seconds=sum(page.seconds for page in found),
                        profiles=len(made),
                        profile_bytes=size,
                    ),
                )
    tokens.save()


def _profiles(
    contents: Sequence[Content | None], variants: Iterable[Variant], tokens: Tokens
) -> Iterator[tuple[list[Variant], Profiling, list[Profiled]]]:
    """The profiles of pages for variants of one base, by groups with the same profiles."""
    groups = _grouped(variants, lambda variant: variant.profiled_by)
    base = groups[0][0].base
    profiling = Profiling(base, tokens)
    with _parts_of(base):
        profiled = [
            Profiled(None, "", 0.0) if content is None else profiling.profiled(content)
            for content in contents
        ]
    for group in groups:
        if group[0].profiled_by == base.profiled_by:
            yield group, profiling, profiled
            continue
        other = Profiling(group[0], tokens)
        derived = [
            other.derived(page, content) for page, content in zip(profiled, contents, strict=True)
        ]
        yield group, other, derived


def judged(
    pages: PageSet, verdicts: Sequence[Verdict | None]
) -> tuple[list[str | None], list[bool]]:
    """Which page each duplicates, by id, and which were skipped: None, or a verdict of that kind."""
    ids = {url_of(pages, doc["id"]): doc["id"] for doc in pages.docs}
    originals = [
        ids[verdict.duplicate_of or ""] if verdict and verdict.kind in _DUPLICATE else None
        for verdict in verdicts
    ]
    return originals, [verdict is None or verdict.kind == "skipped" for verdict in verdicts]


def run_text_pairs(
    pairs: Sequence[TextPair], variants: Iterable[Variant]
) -> Iterator[tuple[Variant, dict[str, Counts]]]:
    """The same for pairs of texts; variants of extraction have no say there."""
    tokens = Tokens()
    texts = list(dict.fromkeys(text for pair in pairs for text in (pair.a, pair.b)))
    contents = [Content.of_text(text) for text in texts]
    wanted = [variant for variant in variants if variant.extractor == PACKAGE]
    for base in _grouped(wanted, lambda variant: variant.base):
        for group, _, profiled in _profiles(contents, base, tokens):
            known = {text: page.portrait for text, page in zip(texts, profiled, strict=True)}
            for variant in group:
                with _parts_of(variant):
                    near = [_near(pair, known[pair.a], known[pair.b], variant) for pair in pairs]
                yield variant, judge_pairs(pairs, near)


def _near(pair: TextPair, a: Portrait | None, b: Portrait | None, variant: Variant) -> bool:
    if pair.a == pair.b:
        return True
    if a is None or b is None:
        texts = ([*Content.of_text(text).main] for text in (pair.a, pair.b))
        one, other = (blocks_digest(features.normalise_blocks(blocks)) for blocks in texts)
        return one == other
    counted = None
    if (variant.sketch, variant.shingle) == (f"{sketch.BINS}×4", sketch.SHINGLE_SIZE):
        counted = {name: part.shingles() for name, part in a.composition.items()}.get
    return compare_profiles(
        b, a.profile, variant.config, same_site=True, exact=counted, thresholds=variant.limits
    ).near


def _grouped(variants: Iterable[Variant], key: Callable[[Variant], object]) -> list[list[Variant]]:
    groups: dict[object, list[Variant]] = defaultdict(list)
    for variant in dict.fromkeys(variants):
        groups[key(variant)].append(variant)
    return list(groups.values())


def _verdicts(
    pages: PageSet,
    variant: Variant,
    found: Sequence[Extracted],
    profiled: Sequence[Profiled],
    profiler: Profiler,
) -> tuple[list[Verdict | None], float]:
    """What is said of every page, None where it cannot be judged; and the seconds that took."""
    store: Any = MemoryStore(variant, len(found))
    config = variant.config
    started = time.process_time()
    verdicts = []
    for doc, page, reading in zip(pages.docs, found, profiled, strict=True):
        url = url_of(pages, doc["id"])
        # The digest stands for the body: equal for equal ones.
        material = Material(page.body_digest, bytes.decode, is_html=True)
        seen = Page(url, page_key(url), material, config.seed)
        analysis = None
        if reading.portrait is not None:
            assert page.content is not None
            analysis = Analysis(reading.portrait, page.content.language, b"")
        judge = LabDecision(
            seen, analysis, config, "", profiler, thresholds=variant.limits, variant=variant
        )
        verdicts.append(judge(store))
    return verdicts, time.process_time() - started
