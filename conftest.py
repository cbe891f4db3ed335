"""Fixtures for every test of the repository."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

_SIZES = Path(__file__).parent / "tests" / "sizes.toml"


@pytest.fixture(scope="session")
def size() -> Callable[[str], int]:
    """Return how large a sized test is to be, from the one table in `tests/sizes.toml`."""
    column = os.environ.get("WENCHANG_SIZES", "ci")
    table = tomllib.loads(_SIZES.read_text(encoding="utf-8"))

    def look_up(name: str) -> int:
        return int(table[name][column])

    return look_up
