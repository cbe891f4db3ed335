"""Pools of a caller's engine that would break what is promised, and how memory is shared instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.pool import SingletonThreadPool, StaticPool

from wenchang.storage import StorageConfigurationError
from wenchang_sql import SqlStorage, create_engine


@pytest.mark.parametrize("pool", [StaticPool, SingletonThreadPool])
def test_threads_a_pool_that_shares_one_connection_or_splits_memory_is_refused(pool: Any):
    engine = sa.create_engine("sqlite://", poolclass=pool)
    with pytest.raises(StorageConfigurationError, match=pool.__name__):
        SqlStorage(engine)


def test_threads_in_memory_see_every_acknowledged_write(race: Callable[..., list[Any]]):
    storage = SqlStorage(create_engine("sqlite:///:memory:"))
    storage.put("a", b"", {})

    def write() -> int:
        return sum(storage.put("a", b"x", {}) != storage.get("a").version for _ in range(50))

    def read() -> int:
        return sum(storage.get("a") is None for _ in range(100))

    assert race([write, read, read, read]) == [0, 0, 0, 0]
