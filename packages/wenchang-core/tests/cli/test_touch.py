"""`wenchang touch`: after a restore, nobody holds a version of anything any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from wenchang.cli.app import run
from wenchang.storage.filesystem import FilesystemStorage


def test_every_object_under_the_prefix_is_the_same_at_a_new_version(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    storage = FilesystemStorage(tmp_path)
    for key in ("user/a/x/1.md", "user/a/x/2.md", "user/b/x/1.md"):
        storage.put(key, key.encode(), {"description": key})
    before = dict(storage.list_versions("", None, 10))

    assert run(["touch", "user/a/", "--storage", f"file://{tmp_path}"]) == 0

    assert capsys.readouterr().out == "2 objects have new versions.\n"
    after = dict(storage.list_versions("", None, 10))
    assert {key for key in before if before[key] != after[key]} == {
        "user/a/x/1.md",
        "user/a/x/2.md",
    }
    for key in before:
        found = storage.get(key)
        assert found is not None
        assert (found.data, found.metadata) == (key.encode(), {"description": key})


def test_a_damaged_object_is_left_and_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    storage = FilesystemStorage(tmp_path)
    storage.put("a", b"1", {})
    storage.put("b", b"2", {})
    (tmp_path / "a%meta").write_text("{", encoding="utf-8")
    before = storage.get("a")

    assert run(["touch", "", "--storage", f"file://{tmp_path}"]) == 1

    shown = capsys.readouterr()
    assert shown.out == "1 objects have new versions.\n"
    assert shown.err == "1 damaged objects were left as they are.\n"
    assert storage.get("a") == before


def test_a_wrong_storage_or_prefix_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments in (["", "--storage", "nonsense"], ["\x00", "--storage", f"file://{tmp_path}"]):
        assert run(["touch", *arguments]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1
