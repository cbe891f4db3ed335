"""The storage in memory conforms, with every hook that it can have."""

from __future__ import annotations

import pytest

from wenchang.storage.memory import InMemoryStorage
from wenchang_conformance.hooks import StorageHooks
from wenchang_conformance.suite import StorageConformance


class TestInMemoryStorage(StorageConformance):
    @pytest.fixture
    def hooks(self):
        storage = InMemoryStorage()
        return StorageHooks(
            open=lambda: storage,
            local=True,
            durable=False,
            shared=False,
            unsupported={
                "obj-foreign": "nothing but the storage itself reaches the memory of its process",
                "format-guard": "nothing is stored beyond the process, so there is no format",
                "init-fail": "it has no options",
            },
            import_module="wenchang",
            sdk_modules=("boto3", "google", "azure", "sqlalchemy", "mcp"),
        )
