"""The storage in memory conforms."""

from __future__ import annotations

import pytest

from wenchang.storage.memory import InMemoryStorage
from wenchang_conformance.suite import StorageConformance


class TestInMemoryStorage(StorageConformance):
    @pytest.fixture
    def make_storage(self):
        storage = InMemoryStorage()
        return lambda: storage
