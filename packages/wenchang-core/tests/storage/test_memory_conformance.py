"""The conformance suite on the storage in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from wenchang.storage.hooks import memory_hooks
from wenchang.storage.locations import StorageLocation
from wenchang_conformance.hooks import StorageHooks
from wenchang_conformance.suite import StorageConformance


class TestMemory(StorageConformance):
    @pytest.fixture
    def hooks(self) -> Iterator[StorageHooks]:
        with memory_hooks(StorageLocation.parse("memory://"), "check") as hooks:
            yield hooks
