"""The storage in memory conforms, found by its URL and with the hooks that its descriptor names."""

from __future__ import annotations

import pytest

from wenchang.storage.locations import StorageLocation
from wenchang_conformance.locating import hooks_at
from wenchang_conformance.suite import StorageConformance


class TestInMemoryStorage(StorageConformance):
    # The unit tests of the core run the larger profile.
    profile = "quick"

    @pytest.fixture
    def hooks(self):
        with hooks_at(StorageLocation.parse("memory://")) as hooks:
            yield hooks
