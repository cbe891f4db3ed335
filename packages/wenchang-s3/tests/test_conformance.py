"""The storage contract on each emulator, with every hook."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from wenchang_conformance.hooks import StorageHooks
from wenchang_conformance.suite import StorageConformance
from wenchang_s3.hooks import hooks as hooks_of


def _hooks(bucket: Any) -> Iterator[StorageHooks]:
    with hooks_of(bucket.location("base"), secrets.token_hex(8)) as hooks:
        yield hooks


class TestMinistack(StorageConformance):
    @pytest.fixture
    def hooks(self, bucket_on: Callable[[str], Any]) -> Iterator[StorageHooks]:
        yield from _hooks(bucket_on("ministack"))


class TestMoto(StorageConformance):
    @pytest.fixture
    def hooks(self, bucket_on: Callable[[str], Any]) -> Iterator[StorageHooks]:
        yield from _hooks(bucket_on("moto"))
