"""The storage contract on the emulator, with every hook."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from wenchang.storage.locations import StorageLocation
from wenchang_conformance.hooks import StorageHooks
from wenchang_conformance.suite import StorageConformance
from wenchang_gcs.hooks import hooks as hooks_of


class TestGcs(StorageConformance):
    @pytest.fixture
    def hooks(self, emulator: str, emulator_bucket: str) -> Iterator[StorageHooks]:
        location = StorageLocation.parse(
            f"gs://{emulator_bucket}/suite", options={"endpoint_url": emulator, "anonymous": True}
        )
        with hooks_of(location, secrets.token_hex(8)) as hooks:
            yield hooks
