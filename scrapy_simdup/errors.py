"""The errors a user can meet. Each message names the thing, the value and the way out."""

from __future__ import annotations


class SimdupError(Exception):
    """Base of all errors that scrapy-simdup raises on purpose."""


class ConfigError(SimdupError, ValueError):
    """An option is unknown, of the wrong type or out of range."""


class StoreError(SimdupError):
    """A store cannot be opened, read or written."""
