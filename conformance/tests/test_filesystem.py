"""The storage in files conforms, with every hook that it can have."""

from __future__ import annotations

import pytest

from wenchang.storage.locations import StorageLocation
from wenchang_conformance.core_hooks import filesystem_hooks
from wenchang_conformance.locating import new_namespace
from wenchang_conformance.suite import StorageConformance


class TestFilesystemStorage(StorageConformance):
    @pytest.fixture
    def hooks(self, tmp_path):
        location = StorageLocation(scheme="file", address=str(tmp_path))
        with filesystem_hooks(location, new_namespace()) as hooks:
            yield hooks
