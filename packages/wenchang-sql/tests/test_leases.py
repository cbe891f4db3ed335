"""What a caller's engine does after the answer must not change the answer."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest
import sqlalchemy as sa

from wenchang_sql import SqlStorage


def test_out_landed_a_connection_lost_while_it_is_given_back_changes_no_answer(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
):
    engine = sa.create_engine(f"sqlite:///{tmp_path}/x.db", pool_size=1, max_overflow=0)
    storage = SqlStorage(engine, deadline=5)
    storage.put("a", b"1", {})

    def lost(_raw: Any) -> None:
        raise sqlite3.OperationalError

    with monkeypatch.context() as patched:
        patched.setattr(engine.dialect, "reset_isolation_level", lost)
        versions = [storage.put("a", b"%d" % number, {}) for number in range(3)]

    found = storage.get("a")
    assert found is not None
    assert (found.data, found.version) == (b"2", versions[-1])
    assert engine.pool.checkedout() == 0
    engine.dispose()
