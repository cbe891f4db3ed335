"""Every file backend of ours keeps the rules that all of them share, on every storage at hand.

Servers are tried by the packages of their storages.
"""

from __future__ import annotations

import pytest

from wenchang.files.composite import CompositeFileBackend
from wenchang.files.limits import TreeLimits
from wenchang.files.state_backend import StateFileBackend
from wenchang.storage import open_storage
from wenchang.testing import FileBackendConformance
from wenchang_conformance.file_backend.on_storage import (
    CoveredFilesConformance,
    MemoryFilesConformance,
    MountedFilesConformance,
    StoreFilesConformance,
)

LIMITS = TreeLimits(max_file_bytes=6000)


class _InMemory:
    @pytest.fixture
    def storage(self):
        with open_storage("memory://") as storage:
            yield storage


class _OnFiles:
    @pytest.fixture
    def storage(self, tmp_path):
        with open_storage(f"file://{tmp_path}") as storage:
            yield storage


class _OnSqlite:
    @pytest.fixture
    def storage(self, tmp_path):
        pytest.importorskip("wenchang_sql", reason="the SQL backend is not installed")
        with open_storage(f"sqlite:///{tmp_path}/files.db") as storage:
            yield storage


class TestStoreInMemory(_InMemory, StoreFilesConformance):
    pass


class TestStoreOnFiles(_OnFiles, StoreFilesConformance):
    pass


class TestStoreOnSqlite(_OnSqlite, StoreFilesConformance):
    pass


class TestMemoryInMemory(_InMemory, MemoryFilesConformance):
    pass


class TestMemoryOnFiles(_OnFiles, MemoryFilesConformance):
    pass


class TestMemoryOnSqlite(_OnSqlite, MemoryFilesConformance):
    pass


class TestMountedInMemory(_InMemory, MountedFilesConformance):
    pass


class TestMountedOnFiles(_OnFiles, MountedFilesConformance):
    pass


class TestMountedOnSqlite(_OnSqlite, MountedFilesConformance):
    pass


class TestCoveredInMemory(_InMemory, CoveredFilesConformance):
    pass


class TestCoveredOnFiles(_OnFiles, CoveredFilesConformance):
    pass


class TestCoveredOnSqlite(_OnSqlite, CoveredFilesConformance):
    pass


class TestState(FileBackendConformance):
    @pytest.fixture
    def state(self):
        return {}, {}

    @pytest.fixture
    def max_file_bytes(self):
        return LIMITS.max_file_bytes

    @pytest.fixture
    def backend(self, state):
        files, receipts = state
        return StateFileBackend(files, receipts=receipts, limits=LIMITS)

    @pytest.fixture
    def reopen(self, state):
        files, receipts = state
        return lambda: StateFileBackend(files, receipts=receipts, limits=LIMITS)

    @pytest.fixture
    def corrupt(self, state):
        def corrupt(path):
            state[0][path] = {"content": ["lines", "of", "an", "older", "form"]}

        return corrupt


class TestMountInAMount(TestState):
    """A composite in a composite: paths and errors get both prefixes."""

    @pytest.fixture
    def folder(self):
        return "/outer/inner"

    @pytest.fixture
    def hidden(self):
        return ("/outer/inner/b.md",)

    def composite(self, state):
        files, receipts = state
        inner = CompositeFileBackend(
            StateFileBackend({"/inner/b.md": {"content": "x"}}),
            {"/inner": StateFileBackend(files, receipts=receipts, limits=LIMITS)},
        )
        return CompositeFileBackend(StateFileBackend(), {"/outer": inner})

    @pytest.fixture
    def backend(self, state):
        return self.composite(state)

    @pytest.fixture
    def reopen(self, state):
        return lambda: self.composite(state)

    @pytest.fixture
    def corrupt(self, state):
        def corrupt(path):
            state[0][path.removeprefix("/outer/inner")] = {"content": None}

        return corrupt
