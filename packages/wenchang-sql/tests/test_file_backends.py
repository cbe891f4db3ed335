"""Files for agent harnesses on a database: they behave as everywhere, and outlive killed processes."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from wenchang.storage.locations import StorageLocation
from wenchang_conformance.file_backend.on_storage import (
    MemoryFilesConformance,
    StoreFilesConformance,
)
from wenchang_conformance.file_backend.replay import ReplayConformance
from wenchang_conformance.hooks import StorageHooks
from wenchang_sql import SqlStorage
from wenchang_sql.hooks import hooks as hooks_of


class _OnPostgresql:
    @pytest.fixture
    def storage(self, place_of: Callable[[str], Any]) -> SqlStorage:
        return place_of("postgresql").open()


class TestStoreOnPostgresql(_OnPostgresql, StoreFilesConformance):
    pass


class TestMemoryOnPostgresql(_OnPostgresql, MemoryFilesConformance):
    pass


def _hooks(url: str) -> Iterator[StorageHooks]:
    with hooks_of(StorageLocation.parse(url), secrets.token_hex(8)) as hooks:
        assert hooks.spawn
        yield hooks


class TestReplayOnSqlite(ReplayConformance):
    @pytest.fixture
    def hooks(self, tmp_path: Path) -> Iterator[StorageHooks]:
        yield from _hooks(f"sqlite:///{tmp_path / 'memory.db'}")


class TestReplayOnPostgresql(ReplayConformance):
    @pytest.fixture
    def hooks(self, url_of: Callable[[str], str]) -> Iterator[StorageHooks]:
        yield from _hooks(url_of("postgresql"))


class TestReplayOnMariadb(ReplayConformance):
    @pytest.fixture
    def hooks(self, url_of: Callable[[str], str]) -> Iterator[StorageHooks]:
        yield from _hooks(url_of("mariadb"))
