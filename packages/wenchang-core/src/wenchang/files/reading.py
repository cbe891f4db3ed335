"""What `file_read` shows: whole files or a range of lines, with numbers, within its bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from wenchang.files._answers import Room, file_row, json_chars
from wenchang.files._rules import no_file_text
from wenchang.files.errors import (
    InvalidArgumentError,
    LimitExceededError,
    NotFoundError,
    StaleSnapshotError,
    TreeStateError,
)
from wenchang.files.snapshot import Snapshot
from wenchang.files.values import FileEntry

__all__ = ["MAX_READ_BYTES", "MAX_READ_FILES", "LineRange", "ReadPage", "read_page"]

MAX_READ_BYTES: Final = 256 * 1024
"""Bytes of UTF-8, line ends included, that one call shows at most."""
MAX_READ_FILES: Final = 10

_RANGE_ADVICE: Final = "Read a range of lines of one file, with path, fromLine and toLine."


@dataclass(frozen=True, slots=True, kw_only=True)
class LineRange:
    """Lines to read, from 1 on and both included; None is the first or the last one."""

    first: int | None = None
    last: int | None = None


@dataclass(slots=True, kw_only=True)
class ReadPage:
    """The files that are shown, for programs and as text, and the paths left out for want of room."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    not_shown: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class _Shown:
    """Some lines of a file, as stored and as shown, and the number of the first that was not."""

    next_line: int
    stored: list[str] = field(default_factory=list)
    numbered: list[str] = field(default_factory=list)


def read_page(
    snapshot: Snapshot, paths: Sequence[str], wanted: LineRange | None, max_chars: int
) -> ReadPage:
    r"""Return the text of files, each line numbered; only `\n` ends a line.

    Without `wanted` the files are read whole, 256 KiB together at most; with it one file is read from
    line to line, as far as 256 KiB go. What is beyond `max_chars` characters of the answer is left
    out: the row of a file that was cut has `nextLine`, files after it are `not_shown`.

    Raises `NotFoundError`, `LimitExceededError` where files are too large or where not one line fits,
    `InvalidArgumentError` for a first line past the end, and `TreeStateError` that names the path of a
    file which cannot be read.
    """
    entries = [_file(snapshot, path) for path in paths]
    if wanted is None:
        total = sum(entry.size for entry in entries)
        if total > MAX_READ_BYTES:
            raise LimitExceededError(
                "readBytes",
                total,
                MAX_READ_BYTES,
                f"That is {total} bytes, and one call reads at most {MAX_READ_BYTES}. "
                + _RANGE_ADVICE,
            )
    page = ReadPage()
    # Each path may have to be named as not shown, whatever else the answer holds.
    room = Room(max_chars, reserved=200 + sum(json_chars(path) + 3 for path in paths))
    ranges = [_lines_wanted(entry, wanted or LineRange()) for entry in entries]
    whole = True
    for entry, text, (first, last) in zip(entries, _texts(snapshot, entries), ranges, strict=True):
        shown = len(page.rows)
        # What came after a file that was cut would look like its continuation.
        whole = whole and _show(page, room, entry, text, first, last)
        if len(page.rows) == shown:
            page.not_shown.append(entry.path)
    return page


def _file(snapshot: Snapshot, path: str) -> FileEntry:
    found = snapshot.lookup(path)
    if not isinstance(found, FileEntry):
        raise NotFoundError(path, no_file_text(path, found))
    return found


def _texts(snapshot: Snapshot, entries: Sequence[FileEntry]) -> list[str]:
    """Read all contents, side by side; an error names the file it is about."""
    texts: list[str] = []
    try:
        texts.extend(text for _, text in snapshot.read_many(entries))
    except TreeStateError as error:
        raise TreeStateError(error.reason, entries[len(texts)].path) from error
    except StaleSnapshotError as error:
        error.path = entries[len(texts)].path
        raise
    return texts


def _show(page: ReadPage, room: Room, entry: FileEntry, text: str, first: int, last: int) -> bool:
    """Add lines of a file to the page; return whether all of them are there."""
    row = {**file_row(entry), "fromLine": first, "toLine": last, "nextLine": last, "text": ""}
    if not room.take(len(_header(entry, first, last, last)) + 40, json_chars(row) + 1):
        return False
    lines = text.split("\n")
    shown = _take_lines(lines, first, last, room)
    complete = shown.next_line > last
    if not complete and not shown.numbered:
        if page.rows:
            return False
        raise _line_too_long(lines[first - 1], first, room)
    row |= {"toLine": shown.next_line - 1, "text": "".join(shown.stored)}
    if complete:
        del row["nextLine"]
    else:
        row["nextLine"] = shown.next_line
    page.rows.append(row)
    header = _header(entry, first, shown.next_line - 1, row.get("nextLine"))
    if complete and last == entry.lines and lines[-1]:
        header += " | no line break at the end"
    page.parts.append("\n".join([header, *shown.numbered]))
    return complete


def _lines_wanted(entry: FileEntry, wanted: LineRange) -> tuple[int, int]:
    """Return the first and the last line to show; 0 and 0 of a file without lines."""
    first = wanted.first or 1
    last = entry.lines if wanted.last is None else min(wanted.last, entry.lines)
    if first == 1 and entry.lines == 0:
        return 0, 0
    if first > entry.lines:
        held = "no lines" if entry.lines == 0 else f"{entry.lines} lines"
        raise InvalidArgumentError("fromLine", f"it is past the end; {entry.path} has {held}")
    return first, last


def _take_lines(lines: Sequence[str], first: int, last: int, room: Room) -> _Shown:
    """Take whole lines from `first` to `last`, as many as both bounds admit."""
    shown = _Shown(next_line=first or 1)
    left = MAX_READ_BYTES
    for number in range(first or 1, last + 1):
        line = lines[number - 1]
        # What follows the last line break is a line without one, or none at all.
        stored = line + "\n" if number < len(lines) else line
        numbered = f"{number}\t{line}"
        left -= len(stored.encode())
        if left < 0 or not room.take(len(numbered) + 1, json_chars(stored) - 2):
            break
        shown.stored.append(stored)
        shown.numbered.append(numbered)
        shown.next_line = number + 1
    return shown


def _line_too_long(line: str, number: int, room: Room) -> LimitExceededError:
    """Return the refusal of a line that fits into no answer."""
    size = len(line.encode()) + 1
    if size > MAX_READ_BYTES:
        limit, value, maximum, unit = "readBytes", size, MAX_READ_BYTES, "bytes"
    else:
        limit, value, maximum, unit = "answerChars", len(line), room.max_chars, "characters"
    return LimitExceededError(
        limit,
        value,
        maximum,
        f"Line {number} has {value} {unit} and cannot be shown: an answer has at most {maximum}. "
        "file_search shows the part of it around a match, and file_edit still changes it.",
    )


def _header(entry: FileEntry, first: int, last: int, rest: int | None) -> str:
    lines = f"lines {first}-{last} of {entry.lines}" if entry.lines else "0 lines"
    header = f"{entry.path} | {lines} | {entry.size} bytes | version {entry.version}"
    return header if rest is None else f"{header} | go on with fromLine {rest}"
