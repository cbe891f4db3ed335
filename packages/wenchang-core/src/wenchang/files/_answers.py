"""Answers of the file tools, and how much of one is still free.

An answer is a text for reading and an object with the same content for programs. Clients show one
or the other to a model, so both are kept below the same bound.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from wenchang.files.values import FileEntry, FolderEntry

__all__ = [
    "FileAnswer",
    "Room",
    "file_row",
    "file_text",
    "folder_row",
    "folder_text",
    "json_chars",
    "time_text",
]

FRAME_CHARS = 3_600
"""What is kept free for what stands around the entries: a path, the limits, a cursor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAnswer:
    """What a file tool answers: `text` for reading, `payload` as plain JSON values."""

    text: str
    payload: dict[str, Any]


class Room:
    """The characters left in an answer: of its text, and of its payload as compact JSON."""

    def __init__(self, max_chars: int, *, reserved: int = FRAME_CHARS) -> None:
        self.max_chars = max_chars
        self._text = self._json = max_chars - reserved

    def take(self, text: int, payload: int) -> bool:
        """Take room for so many characters of text and of JSON; without it, take none."""
        if text > self._text or payload > self._json:
            return False
        self._text -= text
        self._json -= payload
        return True

    def take_row(self, text: str, payload: object) -> bool:
        """Take room for one line of text and one element of a list."""
        return self.take(len(text) + 1, json_chars(payload) + 1)


def json_chars(payload: object) -> int:
    """Return the length of a payload as compact JSON."""
    return len(json.dumps(payload, ensure_ascii=False, separators=(",", ":")))


def time_text(moment: datetime) -> str:
    """Return a moment as agents see it: UTC, ISO 8601 to the microsecond, `Z` at the end."""
    return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def file_text(entry: FileEntry) -> str:
    """Return the line that shows a file."""
    return f"{entry.path}\t{entry.size} bytes\t{entry.version}\t{time_text(entry.modified)}"


def file_row(entry: FileEntry) -> dict[str, Any]:
    """Return what programs see of a file."""
    return {
        "path": entry.path,
        "size": entry.size,
        "lineCount": entry.lines,
        "version": entry.version,
        "modified": time_text(entry.modified),
    }


def folder_text(path: str) -> str:
    """Return how a folder is shown; the root is `/`."""
    return f"{path}/"


def folder_row(entry: FolderEntry) -> dict[str, Any]:
    """Return what programs see of a folder."""
    return {"path": entry.path, "kind": "folder"}
