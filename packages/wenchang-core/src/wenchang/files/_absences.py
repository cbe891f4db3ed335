"""Refusals that say what is at a path instead of what was wanted; paths come canonical."""

from __future__ import annotations

from wenchang.files.backend import absolute
from wenchang.files.errors import (
    MAX_CONFLICT_CONTENT_BYTES,
    NotFoundError,
    VersionConflictError,
)

__all__ = ["no_file", "no_folder", "stale"]


def no_file(path: str, *, is_folder: bool) -> NotFoundError:
    """Return the refusal of a call that wants a file."""
    name = absolute(path)
    return NotFoundError(name, f"{name} is a folder, not a file." if is_folder else "")


def no_folder(path: str, *, is_file: bool) -> NotFoundError:
    """Return the refusal of a call that wants a folder."""
    name = absolute(path)
    if is_file:
        return NotFoundError(name, f"{name} is a file, not a folder.")
    return NotFoundError(name, f"There is no folder at {name}.")


def stale(path: str, version: str, text: str | None) -> VersionConflictError:
    """Return the refusal of a call at another version, with the text where it is known and short."""
    if text is not None and len(text.encode()) > MAX_CONFLICT_CONTENT_BYTES:
        text = None
    return VersionConflictError(absolute(path), version, text)
