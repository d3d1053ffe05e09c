"""The figures of all runs, kept in the cache folder so that a grid that was broken off goes on.

Figures of other code than that of now are left aside.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab import Result
from sets import Counts

import scrapy_simdup

if TYPE_CHECKING:
    from collections.abc import Iterable

    from variants import Variant

_OWN = ("sets.py", "extraction.py", "lab.py")


@dataclass
class Results:
    """By the name of a set and the key of a variant."""

    path: Path
    pages: dict[tuple[str, str], Result] = field(default_factory=dict)
    texts: dict[tuple[str, str], dict[str, Counts]] = field(default_factory=dict)

    @classmethod
    def load(cls, cache: Path) -> Results:
        self = cls(cache / f"results-{code_identity()}.jsonl")
        if self.path.exists():
            for line in self.path.read_text(encoding="utf-8").splitlines():
                entry = json.loads(line)
                key = entry["set"], entry["variant"]
                if "texts" in entry:
                    counts = {name: Counts(**own) for name, own in entry["texts"].items()}
                    self.texts[key] = counts
                else:
                    result = entry["pages"]
                    self.pages[key] = Result(**{**result, "counts": Counts(**result["counts"])})
        return self

    def add_pages(self, name: str, variant: Variant, result: Result) -> None:
        self.pages[name, variant.key] = result
        self._write(name, variant, {"pages": asdict(result)})

    def add_texts(self, name: str, variant: Variant, counts: dict[str, Counts]) -> None:
        self.texts[name, variant.key] = counts
        self._write(name, variant, {"texts": {key: asdict(own) for key, own in counts.items()}})

    def of(self, names: Iterable[str], variant: Variant) -> list[Result]:
        """The results of a variant; empty where one is missing."""
        found = [self.pages.get((name, variant.key)) for name in names]
        return [] if None in found else [result for result in found if result is not None]

    def _write(self, name: str, variant: Variant, figures: dict[str, Any]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"set": name, "variant": variant.key, **figures}) + "\n")


def code_identity() -> str:
    """A digest of all code that a figure depends on."""
    package, own = Path(scrapy_simdup.__file__).parent, Path(__file__).parent
    files = [
        *sorted((package / "page").glob("*.py")),
        *(package / name for name in ("decision.py", "config.py")),
        *(package / "store" / name for name in ("hostmemory.py", "records.py")),
        *(own / name for name in _OWN),
    ]
    digest = blake2b(digest_size=8)
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()
