"""Pages of `file_list` and `file_find`: which entries they hold and where the next one begins.

Every page is read from one snapshot, in an order that does not depend on the pages before it, so a
position is all that a cursor has to say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

from wenchang.files._answers import Room, file_row, file_text, folder_row, folder_text
from wenchang.files._records import to_datetime, to_micros
from wenchang.files.cursors import invalid_cursor
from wenchang.files.errors import NotFoundError
from wenchang.files.globs import Glob
from wenchang.files.paths import ROOT, depth
from wenchang.files.snapshot import Snapshot, position
from wenchang.files.values import FileEntry, FolderEntry

__all__ = [
    "DEFAULT_LIST_PAGE",
    "MAX_EXAMINED",
    "MAX_LIST_DEPTH",
    "MAX_MATCHED_CHARS",
    "MAX_PAGE_SIZE",
    "EntryPage",
    "Examination",
    "SortBy",
    "check_folder",
    "find_page",
    "list_page",
    "relative_to",
]

MAX_LIST_DEPTH: Final = 5
MAX_PAGE_SIZE: Final = 200
DEFAULT_LIST_PAGE: Final = 100
MAX_EXAMINED: Final = 2_000
"""Files that one page looks at."""
MAX_MATCHED_CHARS: Final = 20_000_000
"""Characters of paths times characters of the pattern that one page looks at: matching costs that at
worst, which is about a second. 2,000 files meet it only with long paths and a long pattern."""

SortBy = Literal["path", "modified"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryPage:
    """One page: its entries for programs, the lines that show them, and the position after it.

    `position` is None at the end.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    position: str | None = None


class Examination:
    """Counts the files that one page looks at and tells when they are enough."""

    __slots__ = ("_files", "_matched", "_pattern")

    def __init__(self, glob: Glob | None) -> None:
        """Begin a page whose files are matched with `glob`, if with any."""
        self._files = self._matched = 0
        self._pattern = 0 if glob is None else len(glob.pattern)

    def permits(self, path: str) -> bool:
        """Count one more file, unless a bound is met; a page's first file is always permitted."""
        if self._files == MAX_EXAMINED or self._matched >= MAX_MATCHED_CHARS:
            return False
        self._files += 1
        self._matched += len(path) * self._pattern
        return True


def check_folder(snapshot: Snapshot, path: str) -> None:
    """Raise `NotFoundError` unless there is a folder; the root always is one."""
    found = snapshot.lookup(path)
    if isinstance(found, FileEntry):
        raise NotFoundError(path, f"{path} is a file, not a folder.")
    if found is None:
        raise NotFoundError(path, f"There is no folder at {path}.")


def list_page(
    snapshot: Snapshot, folder: str, levels: int, start: str | None, page_size: int, room: Room
) -> EntryPage:
    """Return the entries of a folder, `levels` deep, after the position `start`.

    Entries come in path order, a folder before what is in it. Raises `NotFoundError`.
    """
    check_folder(snapshot, folder)
    page = EntryPage()
    above = 0 if folder == ROOT else depth(folder) + 1
    last = start
    for entry in snapshot.children(folder, start, depth=levels):
        indent = "  " * (depth(entry.path) - above)
        if isinstance(entry, FolderEntry):
            row, line = folder_row(entry), indent + folder_text(entry.path)
        else:
            row, line = {**file_row(entry), "kind": "file"}, indent + file_text(entry)
        if len(page.rows) == page_size or not room.take_row(line, row):
            return EntryPage(rows=page.rows, lines=page.lines, position=last)
        page.rows.append(row)
        page.lines.append(line)
        last = position(entry)
    return page


def find_page(
    snapshot: Snapshot,
    folder: str,
    glob: Glob,
    sort_by: SortBy,
    start: str | None,
    page_size: int,
    room: Room,
) -> EntryPage:
    """Return the files below a folder that match, after the position `start`.

    At most 2,000 files are examined, fewer where paths and pattern are long; then the page ends,
    however many matched. Raises `NotFoundError`, and `InvalidArgumentError` for a position that this
    order does not have.
    """
    check_folder(snapshot, folder)
    page = EntryPage()
    last = start
    examination = Examination(glob)
    for entry in _ordered(snapshot, folder, sort_by, start):
        if not examination.permits(entry.path):
            return EntryPage(rows=page.rows, lines=page.lines, position=last)
        if glob.matches(relative_to(folder, entry.path)):
            row, line = file_row(entry), file_text(entry)
            # A page that is full goes on to the next match, so that a cursor promises one.
            if len(page.rows) == page_size or not room.take_row(line, row):
                return EntryPage(rows=page.rows, lines=page.lines, position=last)
            page.rows.append(row)
            page.lines.append(line)
        last = entry.path if sort_by == "path" else _place(entry)
    return page


def relative_to(folder: str, path: str) -> str:
    """Return a path below a folder as seen from it."""
    return path if folder == ROOT else path[len(folder) + 1 :]


def _ordered(
    snapshot: Snapshot, folder: str, sort_by: SortBy, start: str | None
) -> Iterator[FileEntry]:
    if sort_by == "path":
        return snapshot.walk(folder, start)
    return snapshot.walk_modified(folder, None if start is None else _time_and_path(start))


def _place(entry: FileEntry) -> str:
    return f"{to_micros(entry.modified)} {entry.path}"


def _time_and_path(place: str) -> tuple[datetime, str]:
    micros, separator, path = place.partition(" ")
    if not separator or not micros.isascii() or not micros.isdecimal():
        raise invalid_cursor()
    try:
        return to_datetime(int(micros)), path
    except (ValueError, OverflowError):
        raise invalid_cursor() from None
