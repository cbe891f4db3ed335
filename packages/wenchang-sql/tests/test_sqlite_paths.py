"""Where a SQLite file cannot be: told at once, without the path."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

from wenchang.storage import StorageRejectedError, open_storage


@pytest.mark.parametrize(
    ("name", "kind"), [("x" * 300 + ".db", "invalid"), ("file/below/memory.db", "invalid")]
)
def test_init_fail_a_path_that_no_file_can_have_is_refused_at_once(
    tmp_path: Path, name: str, kind: str
):
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    storage = open_storage(f"sqlite:///{tmp_path / name}")
    with pytest.raises(StorageRejectedError) as caught:
        storage.get("a")
    assert caught.value.kind == kind
    shown = "".join(traceback.format_exception_only(caught.value)) + repr(caught.value.__cause__)
    shown += str(caught.value.__cause__)
    assert str(tmp_path) not in shown
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
