"""Files for agent harnesses in a bucket: they behave as everywhere, and outlive killed processes."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from wenchang_conformance.file_backend.on_storage import (
    MemoryFilesConformance,
    StoreFilesConformance,
)
from wenchang_conformance.file_backend.replay import ReplayConformance
from wenchang_conformance.hooks import StorageHooks
from wenchang_s3.hooks import hooks as hooks_of


class TestStoreOnMinistack(StoreFilesConformance):
    @pytest.fixture
    def storage(self, bucket: Any) -> Any:
        return bucket.open()


class TestMemoryOnMinistack(MemoryFilesConformance):
    @pytest.fixture
    def storage(self, bucket: Any) -> Any:
        return bucket.open()


class TestReplayOnMinistack(ReplayConformance):
    @pytest.fixture
    def hooks(self, bucket_on: Callable[[str], Any]) -> Iterator[StorageHooks]:
        bucket = bucket_on("ministack")
        with hooks_of(bucket.location("base"), secrets.token_hex(8)) as hooks:
            assert hooks.spawn
            yield hooks
