"""What the calls of a file backend are given: checked alike by every backend, before anything is read.

Each function returns the canonical path, without the leading `/`, and raises `InvalidArgumentError`.
"""

from __future__ import annotations

from wenchang.files.backend import check_at_least, to_file, to_folder
from wenchang.files.edits import Edit
from wenchang.files.errors import InvalidArgumentError
from wenchang.files.texts import check_text

__all__ = ["check_limit", "to_edit", "to_listed", "to_read", "to_searched", "to_written"]


def check_limit(limit: int | None) -> None:
    """Refuse a limit below 1."""
    if limit is not None:
        check_at_least("limit", limit, 1)


def to_listed(path: str, limit: int | None) -> str:
    """Return the folder that `ls` is asked for."""
    folder = to_folder(path)
    check_limit(limit)
    return folder


def to_searched(under: str) -> str:
    """Return where `glob` and `grep` look."""
    return to_folder(under, argument="under")


def to_read(path: str, offset: int, limit: int) -> str:
    """Return the file that `read` is asked for."""
    wanted = to_file(path)
    check_at_least("offset", offset, 0)
    check_at_least("limit", limit, 1)
    return wanted


def to_written(path: str, content: str, version: str | None, *, create_only: bool) -> str:
    """Return where `write` puts text; a version and that there is no file cannot both be wanted."""
    wanted = to_file(path)
    if version is not None and create_only:
        raise InvalidArgumentError("create_only", "a file that is created has no version yet")
    check_text(content, "content")
    return wanted


def to_edit(path: str, old: str, new: str, *, replace_all: bool) -> tuple[str, Edit]:
    """Return the file that `edit` is asked for, and the replacement."""
    wanted = to_file(path)
    check_text(old, "old")
    check_text(new, "new")
    if not old:
        raise InvalidArgumentError("old", "it must not be empty")
    return wanted, Edit(old_text=old, new_text=new, replace_all=replace_all)
