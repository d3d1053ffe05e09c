"""Damage done on purpose: a little of it in every run, all of it with ``--full``."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def full(pytestconfig: pytest.Config) -> bool:
    """Whether to do all the damage: minutes instead of seconds."""
    return bool(pytestconfig.getoption("--full"))
