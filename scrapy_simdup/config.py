"""SIMDUP_* settings and the same options in lower case -> one frozen, validated ``Config``.

What an option is called, what it may be and what it is by default stands here and nowhere else.
The same values serve the Scrapy settings, :class:`~scrapy_simdup.Detector`,
:func:`~scrapy_simdup.compare` and :class:`~scrapy_simdup.Fingerprinter`. No other module of the
package is imported here, and no Scrapy: settings come as a mapping.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from scrapy_simdup.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

PREFIX: Final = "SIMDUP_"

VIEWS: Final = ("main", "prose")
ACTIONS: Final = ("drop", "drop_items", "tag")
WEIGHTS: Final = ("tf", "sqrt", "log", "binary")
SEGMENTERS: Final = ("jieba", "rjieba", "bigrams")

SCOPES: Final = ("all", "same-site", "cross-site")
ALERTS: Final = ("large_cluster", "one_page", "duplicates", "refusals", "no_text")

#: What a preset sets, unless the option itself is given.
PRESETS: Final[dict[str, dict[str, Any]]] = {
    "paper": {
        "max_distance": 3,
        "min_resemblance": None,
        "weights": "tf",
        "views": ("main",),
        "keep_siblings": False,
    },
}

_TRUE: Final = {"1", "true", "yes", "on"}
_FALSE: Final = {"0", "false", "no", "off", ""}
_NONE: Final = {"", "none", "null"}

_LOG_PATH: Final = re.compile(r"(?:[^%]|%%|%\((?:spider|time)\)s)+")
_LOG_ALLOWED: Final = (
    "a path that may hold %(spider)s and %(time)s, None for the default path, or False for no log"
)


class _Wrong(Exception):
    """Says what is allowed; the caller adds the option's name and the value."""


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise _Wrong("True or False")


def _number(value: Any, convert: Callable[[Any], Any], what: str) -> Any:
    if isinstance(value, bool):
        raise _Wrong(what)
    try:
        number = convert(value)
    except (TypeError, ValueError, OverflowError):
        raise _Wrong(what) from None
    if isinstance(number, float) and not math.isfinite(number):
        raise _Wrong(what)
    if not isinstance(value, str) and number != value:
        raise _Wrong(what)
    return number


def _integer(low: int, high: int | None = None) -> Callable[[Any], int]:
    what = f"a whole number from {low} to {high}" if high is not None else f"a whole number ≥ {low}"

    def check(value: Any) -> int:
        number = int(_number(value, int, what))
        if number < low or (high is not None and number > high):
            raise _Wrong(what)
        return number

    return check


def _real(low: float, high: float, *, above: bool = False) -> Callable[[Any], float]:
    what = f"a number {'above' if above else 'from'} {low:g} {'up ' if above else ''}to {high:g}"

    def check(value: Any) -> float:
        number = float(_number(value, float, what))
        if not low <= number <= high or (above and number == low):
            raise _Wrong(what)
        return number

    return check


def _one_of(*allowed: str) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if value not in allowed:
            raise _Wrong("one of " + ", ".join(allowed))
        return str(value)

    return check


def _optional(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def check_or_none(value: Any) -> Any:
        if value is None or (isinstance(value, str) and value.strip().lower() in _NONE):
            return None
        try:
            return check(value)
        except _Wrong as wrong:
            raise _Wrong(f"{wrong}, or None") from None

    return check_or_none


def _workers(value: Any) -> int | Literal["auto"]:
    if isinstance(value, str) and value.strip().lower() == "auto":
        return "auto"
    try:
        return _integer(0, 1_000)(value)
    except _Wrong as wrong:
        raise _Wrong(f"{wrong}, or auto") from None


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _Wrong("a text that is not empty")
    return value


def _path(value: Any) -> str:
    if hasattr(value, "__fspath__"):
        value = value.__fspath__()
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise _Wrong("a path")
    if value.startswith(("redis://", "rediss://", "unix://")):
        raise _Wrong("the path of a folder; shared stores are not part of this version")
    return value


def _log(value: Any) -> str | None:
    if value is False or (isinstance(value, str) and value.strip().lower() in _FALSE):
        return ""
    try:
        path: str | None = _optional(_path)(value)
    except _Wrong:
        raise _Wrong(_LOG_ALLOWED) from None
    if path is not None and not _LOG_PATH.fullmatch(path):
        raise _Wrong(_LOG_ALLOWED)
    return path


def _names(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [name.strip() for name in value.split(",") if name.strip()]
    if not isinstance(value, (list, tuple)) or not all(
        isinstance(name, str) and name for name in value
    ):
        raise _Wrong("a list of field names")
    return tuple(value)


def _views(value: Any) -> tuple[str, ...]:
    what = "main, or main and prose (a list, or main,prose)"
    try:
        names = _names(value)
    except _Wrong:
        raise _Wrong(what) from None
    if set(names) not in ({"main"}, set(VIEWS)):
        raise _Wrong(what)
    return tuple(name for name in VIEWS if name in names)


def _alarms(value: Any) -> tuple[str, ...]:
    """Kinds of alarms; True means all of them, False none."""
    with suppress(_Wrong):
        return ALERTS if _boolean(value) else ()
    what = f"True, False, or a list of {', '.join(ALERTS)}"
    try:
        names = _names(value)
    except _Wrong:
        raise _Wrong(what) from None
    if not set(names) <= set(ALERTS):
        raise _Wrong(what)
    return names


def _option(default: Any, check: Callable[[Any], Any], doc: str) -> Any:
    return field(default=default, metadata={"check": check, "doc": doc})


@dataclass(frozen=True, kw_only=True)
class Config:
    """All options, validated. Make it with :meth:`from_options` or :meth:`from_settings`."""

    enabled: bool = _option(True, _boolean, "switch the plugin on or off")
    action: str = _option("drop", _one_of(*ACTIONS), "what happens to a duplicate")
    cluster_links: int = _option(
        0,
        _integer(0),
        "action drop: so many duplicates of each page still reach the spider, for their links",
    )
    store: str | None = _option(
        None, _optional(_path), "folder of the store; None: .scrapy/simdup/<spider>"
    )
    max_distance: int = _option(
        9, _integer(0, 11), "Hamming distance in bits up to which fingerprints are candidates (k)"
    )
    min_resemblance: float | None = _option(
        0.7,
        _optional(_real(0.0, 1.0, above=True)),
        "shingle resemblance that a candidate needs; None: no verification",
    )
    min_tokens: int = _option(
        20, _integer(1, 100_000), "pages with fewer tokens of text are not judged"
    )
    views: tuple[str, ...] = _option(
        VIEWS,
        _views,
        "main: the text that the extractor finds; prose: what stands outside of links",
    )
    scope: str = _option(
        "all",
        _one_of(*SCOPES),
        "which pages may be duplicates of each other; a site is a registered domain",
    )
    keep_siblings: bool = _option(
        True, _boolean, "pages of one template with other names and numbers are not duplicates"
    )
    expected_pages: int = _option(
        1_000_000,
        _integer(1, 10**11),
        "pages the store is laid out for, at its creation; more do fit, but look-ups get slower",
    )
    weights: str = _option("sqrt", _one_of(*WEIGHTS), "weight of a token from its frequency")
    segmenter: str = _option(
        "jieba",
        _one_of(*SEGMENTERS),
        "what cuts Chinese text into features: words of jieba or rjieba, or bigrams of characters",
    )
    unify_chinese: bool = _option(
        False, _boolean, "traditional and simplified versions of a text are duplicates; OpenCC"
    )
    extractor: str = _option(
        "trafilatura", _text, "trafilatura, or the dotted path of a callable html -> text or None"
    )
    plain_text: bool = _option(False, _boolean, "judge text/plain responses, too")
    workers: int | Literal["auto"] = _option(
        "auto",
        _workers,
        "processes that extract and fingerprint; 0: a thread does; auto: as many as processors",
    )
    max_worker_bytes: int = _option(
        1_000_000_000, _integer(100_000_000), "a worker that occupies more memory is replaced"
    )
    timeout: float = _option(
        30.0,
        _real(0.0, 86_400.0, above=True),
        "seconds that the extraction of a page may take, from its turn on; then it goes on unjudged. A "
        "worker that other processes leave no processor time has up to four times as long",
    )
    max_body_bytes: int = _option(5_000_000, _integer(1), "larger bodies are not judged")
    max_store_bytes: int | None = _option(
        None,
        _optional(_integer(1_000_000)),
        "a store with so many bytes in use takes no new pages: they pass unjudged; None: no limit",
    )
    max_elements: int = _option(100_000, _integer(1), "pages with more tags are not judged")
    item_field: str = _option("simdup", _text, "item field that gets the verdict, action tag")
    item_fields: tuple[str, ...] = _option(
        (), _names, "judge items by the text of these fields, instead of pages"
    )
    keep_text: bool = _option(False, _boolean, "keep the main text in the store, compressed")
    log: str | None = _option(
        None,
        _log,
        "dropped-page log; may hold %(spider)s and %(time)s; "
        "None: .scrapy/simdup/<spider>-dropped-<time>.jsonl; False: none",
    )
    close_on_alert: tuple[str, ...] = _option(
        (), _alarms, "kinds of alerts that end the crawl, with the reason simdup_<kind>; True: all"
    )
    seed: int = _option(
        0, _integer(0, 2**63 - 1), "keys all hashes, so that nobody can craft collisions"
    )
    preset: str | None = _option(
        None, _optional(_one_of(*PRESETS)), "defaults of a published method"
    )

    @classmethod
    def from_options(cls, options: Mapping[str, Any], *, prefix: str = "") -> Config:
        """Validate *options*, given by their lower-case names.

        Raises :class:`ConfigError` for an unknown option or a value that is not allowed; *prefix*
        is put before names in its message.
        """
        known = {item.name: item for item in dataclasses.fields(cls)}
        values: dict[str, Any] = {}
        for name, value in options.items():
            if name not in known:
                raise ConfigError(_unknown(name, known, prefix))
            try:
                values[name] = known[name].metadata["check"](value)
            except _Wrong as wrong:
                raise ConfigError(f"{_shown(name, prefix)} = {value!r}: must be {wrong}") from None
        preset = values.get("preset")
        return cls(**{**PRESETS.get(preset or "", {}), **values})

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Config:
        """Read all ``SIMDUP_`` keys of a Scrapy ``Settings`` (or any mapping).

        Raises :class:`ConfigError` for an unknown ``SIMDUP_`` setting or a value that is not
        allowed.
        """
        options = {
            name[len(PREFIX) :].lower() if name == name.upper() else name: settings[name]
            for name in settings
            if isinstance(name, str) and name.startswith(PREFIX)
        }
        return cls.from_options(options, prefix=PREFIX)

    def options(self) -> dict[str, Any]:
        """Return all options by name."""
        return dataclasses.asdict(self)

    def replace(self, **options: Any) -> Config:
        """Return these options with other values for some of them, validated."""
        return self.from_options({**self.changed(), **options})

    def changed(self) -> dict[str, Any]:
        """Return the options that are not what they are by default."""
        return {
            item.name: getattr(self, item.name)
            for item in dataclasses.fields(self)
            if getattr(self, item.name) != item.default
        }


def option_docs() -> list[tuple[str, Any, str]]:
    """Return (setting name, default, description) of every option, for the reference."""
    return [
        (PREFIX + item.name.upper(), item.default, item.metadata["doc"])
        for item in dataclasses.fields(Config)
    ]


def _shown(name: str, prefix: str) -> str:
    return prefix + name.upper() if prefix and not name.startswith(prefix) else name


def _unknown(name: str, known: Iterable[str], prefix: str) -> str:
    names = sorted(known)
    close = difflib.get_close_matches(name.removeprefix(prefix).lower(), names, n=1, cutoff=0.7)
    if close:
        hint = f"did you mean {_shown(close[0], prefix)}?"
    else:
        hint = "known are " + ", ".join(_shown(other, prefix) for other in names)
    what = "setting" if prefix else "option"
    return f"unknown {what} {_shown(name, prefix)}: {hint}"
