"""The storage contract on each database, with every hook."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from wenchang.storage.locations import StorageLocation
from wenchang_conformance.hooks import StorageHooks
from wenchang_conformance.suite import StorageConformance
from wenchang_sql.hooks import hooks as hooks_of


def _hooks(url: str) -> Iterator[StorageHooks]:
    with hooks_of(StorageLocation.parse(url), secrets.token_hex(8)) as hooks:
        yield hooks


class TestSqliteFile(StorageConformance):
    @pytest.fixture
    def hooks(self, tmp_path: Path) -> Iterator[StorageHooks]:
        yield from _hooks(f"sqlite:///{tmp_path / 'memory.db'}")


class TestSqliteMemory(StorageConformance):
    @pytest.fixture
    def hooks(self) -> Iterator[StorageHooks]:
        yield from _hooks("sqlite:///:memory:")


class TestPostgresql(StorageConformance):
    @pytest.fixture
    def hooks(self, url_of: Callable[[str], str]) -> Iterator[StorageHooks]:
        yield from _hooks(url_of("postgresql"))


class TestPostgresqlNewer(StorageConformance):
    @pytest.fixture
    def hooks(self, url_of: Callable[[str], str]) -> Iterator[StorageHooks]:
        yield from _hooks(url_of("postgresql-newer"))


class TestMariadb(StorageConformance):
    @pytest.fixture
    def hooks(self, url_of: Callable[[str], str]) -> Iterator[StorageHooks]:
        yield from _hooks(url_of("mariadb"))
