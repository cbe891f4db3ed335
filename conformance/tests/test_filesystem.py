"""The storage in files conforms, found by its URL and with the hooks that its descriptor names."""

from __future__ import annotations

import pytest

from wenchang.storage.locations import StorageLocation
from wenchang_conformance.locating import hooks_at
from wenchang_conformance.suite import StorageConformance


class TestFilesystemStorage(StorageConformance):
    # The unit tests of the core run the larger profile.
    profile = "quick"

    @pytest.fixture
    def hooks(self, tmp_path):
        with hooks_at(StorageLocation.parse(f"file://{tmp_path}")) as hooks:
            yield hooks
