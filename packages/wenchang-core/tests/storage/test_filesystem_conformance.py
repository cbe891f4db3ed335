"""The conformance suite on the storage in files, with every hook."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from wenchang.storage.hooks import file_hooks
from wenchang.storage.locations import StorageLocation
from wenchang_conformance.hooks import StorageHooks
from wenchang_conformance.suite import StorageConformance


class TestFilesystem(StorageConformance):
    @pytest.fixture
    def hooks(self, tmp_path: Path) -> Iterator[StorageHooks]:
        with file_hooks(StorageLocation.parse(f"file://{tmp_path}"), "check") as hooks:
            yield hooks
