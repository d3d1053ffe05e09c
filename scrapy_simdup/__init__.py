"""Near-duplicate detection for Scrapy, while crawling.

The names below are imported on first use: Scrapy imports this package for every command.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scrapy_simdup.addon import Addon
    from scrapy_simdup.config import Config
    from scrapy_simdup.detector import Detector
    from scrapy_simdup.errors import ConfigError, SimdupError, StoreError
    from scrapy_simdup.exceptions import DuplicateItem, DuplicatePage
    from scrapy_simdup.page.fingerprint import Fingerprint
    from scrapy_simdup.page.measure import Comparison
    from scrapy_simdup.pairwise import Fingerprinter, compare
    from scrapy_simdup.store.index import FingerprintIndex, Match
    from scrapy_simdup.verdict import NearMiss, Verdict

__version__ = "0.1.0"

_HOMES = {
    "Addon": "addon",
    "Comparison": "page.measure",
    "Config": "config",
    "ConfigError": "errors",
    "Detector": "detector",
    "DuplicateItem": "exceptions",
    "DuplicatePage": "exceptions",
    "Fingerprint": "page.fingerprint",
    "FingerprintIndex": "store.index",
    "Fingerprinter": "pairwise",
    "Match": "store.index",
    "NearMiss": "verdict",
    "SimdupError": "errors",
    "StoreError": "errors",
    "Verdict": "verdict",
    "compare": "pairwise",
}

__all__ = [
    "Addon",
    "Comparison",
    "Config",
    "ConfigError",
    "Detector",
    "DuplicateItem",
    "DuplicatePage",
    "Fingerprint",
    "FingerprintIndex",
    "Fingerprinter",
    "Match",
    "NearMiss",
    "SimdupError",
    "StoreError",
    "Verdict",
    "compare",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
