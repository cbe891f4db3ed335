"""The storage contract on Azurite, with every hook."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from wenchang.storage.locations import StorageLocation
from wenchang_azure.hooks import hooks as hooks_of
from wenchang_conformance.hooks import StorageHooks
from wenchang_conformance.suite import StorageConformance


class TestAzurite(StorageConformance):
    @pytest.fixture
    def hooks(self, location: StorageLocation) -> Iterator[StorageHooks]:
        with hooks_of(location, secrets.token_hex(8)) as hooks:
            yield hooks
