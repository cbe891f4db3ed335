"""The storage in memory conforms, with every hook that it can have."""

from __future__ import annotations

import pytest

from wenchang.storage.locations import StorageLocation
from wenchang_conformance.core_hooks import memory_hooks
from wenchang_conformance.locating import new_namespace
from wenchang_conformance.suite import StorageConformance


class TestInMemoryStorage(StorageConformance):
    @pytest.fixture
    def hooks(self):
        location = StorageLocation(scheme="memory", address="")
        with memory_hooks(location, new_namespace()) as hooks:
            yield hooks
