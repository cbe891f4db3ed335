r"""Pages of `file_search`: literal text inside files, matched within one line.

Each character of the wanted text means itself. Ignoring case compares `str.casefold()` of both sides,
unnormalised. Folding keeps every `\n`, so lines have the same numbers folded or not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Final, Literal

from wenchang.files._answers import Room, json_chars
from wenchang.files.cursors import invalid_cursor
from wenchang.files.errors import TreeStateError
from wenchang.files.globs import Glob
from wenchang.files.listing import Examination, check_folder, relative_to
from wenchang.files.paths import is_below
from wenchang.files.snapshot import Snapshot
from wenchang.files.values import FileEntry

__all__ = [
    "DEFAULT_SEARCH_PAGE",
    "MAX_CONTEXT_LINES",
    "MAX_OPENED",
    "MAX_REPORTED_CHARS",
    "MAX_SEARCHED_BYTES",
    "MAX_SEARCH_TEXT_CHARS",
    "SearchMode",
    "SearchPage",
    "SearchQuery",
    "search_page",
]

MAX_SEARCH_TEXT_CHARS: Final = 500
MAX_CONTEXT_LINES: Final = 10
DEFAULT_SEARCH_PAGE: Final = 50
MAX_SEARCHED_BYTES: Final = 4 * 1024 * 1024
"""Bytes of content that one page reads."""
MAX_OPENED: Final = 100
"""Files that one page reads."""
MAX_REPORTED_CHARS: Final = 262_144
"""Characters of matching and context lines after which a page ends."""

SearchMode = Literal["lines", "files", "counts"]

# How long the lines of a match may be shown that fits into no answer whole; the last always fits.
_CUT_LINES: Final = (20_000, 2_000, 200, 50)
_CUT_MARK: Final = "[...]"
_LINE_DIGITS: Final = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """What is looked for, where, and in which form it is answered."""

    text: str
    folder: str = ""
    glob: Glob | None = None
    mode: SearchMode = "lines"
    context: int = 0
    case_sensitive: bool = False


@dataclass(slots=True, kw_only=True)
class SearchPage:
    """One page: the files with what was found in each, the lines that show it, where it ended.

    `matches` counts matching lines in the modes lines and counts, files in the mode files.
    `unreadable` are files whose content is not text any more. `position` is None at the end.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    matches: int = 0
    unreadable: list[str] = field(default_factory=list)
    position: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """One line that is reported; `number` counts from 1."""

    number: int
    text: str
    match: bool


def search_page(
    snapshot: Snapshot, query: SearchQuery, start: str | None, page_size: int, room: Room
) -> SearchPage:
    """Search files in path order, from the position `start` on, until the first bound is met.

    Raises `NotFoundError` for a folder that is none, and `InvalidArgumentError` for a position that
    is none.
    """
    check_folder(snapshot, query.folder)
    after, lines_done = _place(query, start)
    files = snapshot.walk(query.folder, after)
    if lines_done and after is not None:
        begun = snapshot.lookup(after)
        # A file that went away meanwhile is done.
        files = chain([begun] if isinstance(begun, FileEntry) else [], files)
    searcher = _Searcher(snapshot, query, page_size, room)
    return searcher.run(_Plan(query, files), start, (after, lines_done))


def _place(query: SearchQuery, start: str | None) -> tuple[str | None, int]:
    """Return the path to go on after, and how many of its lines are done (0: it is done itself)."""
    if start is None:
        return None, 0
    path, separator, number = start.partition("\0")
    if not separator:
        return path, 0
    if query.mode != "lines" or not is_below(path, query.folder):
        raise invalid_cursor()
    if not (number.isascii() and number.isdecimal() and len(number) <= _LINE_DIGITS):
        raise invalid_cursor()
    return path, int(number)


class _Plan:
    """The files that a page opens, chosen one by one as they are asked for, within the bounds.

    `last` is the last path that was examined, `cut` tells that a bound ended it with files left.
    """

    def __init__(self, query: SearchQuery, files: Iterator[FileEntry]) -> None:
        self.last: str | None = None
        self.cut = False
        self._query = query
        self._files = files

    def __iter__(self) -> Iterator[FileEntry]:
        opened = read = 0
        examination = Examination(self._query.glob)
        for entry in self._files:
            if not examination.permits(entry.path):
                self.cut = True
                return
            wanted = entry.size > 0 and self._is_wanted(entry)
            # A first file is opened whatever its size, which the tree bounds: a page always
            # gets on.
            full = opened == MAX_OPENED or (opened and read + entry.size > MAX_SEARCHED_BYTES)
            if wanted and full:
                self.cut = True
                return
            self.last = entry.path
            if wanted:
                opened += 1
                read += entry.size
                yield entry

    def _is_wanted(self, entry: FileEntry) -> bool:
        glob = self._query.glob
        return glob is None or glob.matches(relative_to(self._query.folder, entry.path))


class _Searcher:
    """Makes one page."""

    def __init__(self, snapshot: Snapshot, query: SearchQuery, page_size: int, room: Room) -> None:
        self._snapshot = snapshot
        self._query = query
        self._page_size = page_size
        self._room = room
        self._needle = query.text if query.case_sensitive else query.text.casefold()
        self._reported = 0
        self._page = SearchPage()

    def run(self, plan: _Plan, start: str | None, begun: tuple[str | None, int]) -> SearchPage:
        """Search until a bound is met; `begun` is a file and its lines that an earlier page showed."""
        page, waiting = self._page, deque[FileEntry]()
        wanted = iter(plan)
        done = start
        for entry, text in _texts(self._snapshot, wanted, waiting):
            if text is None:
                fits, shown = self._add_unreadable(entry)
            elif self._query.mode == "lines":
                fits, shown = self._add_lines(
                    entry, text, begun[1] if entry.path == begun[0] else 0
                )
            else:
                fits, shown = self._add_file(entry, text)
            if shown is not None:
                # The page ended inside this file, or before it.
                page.position = f"{entry.path}\0{shown}" if shown else done
                return page
            done = entry.path
            if not fits:
                more = waiting or next(wanted, None) is not None or plan.cut
                page.position = done if more else None
                return page
        page.position = plan.last if plan.cut else None
        return page

    def _add_unreadable(self, entry: FileEntry) -> tuple[bool, int | None]:
        """Name a file that cannot be searched; return as `_add_file` does."""
        if not self._room.take_row(entry.path, entry.path):
            return False, 0
        self._page.unreadable.append(entry.path)
        return True, None

    def _add_file(self, entry: FileEntry, text: str) -> tuple[bool, int | None]:
        """Add the row of a file; return whether there is a place for another, and as `_add_lines`."""
        numbers = self._matching_lines(text)
        row = _file_head(entry)
        if self._query.mode == "files":
            count = 0 if next(numbers, None) is None else 1
            line = entry.path
        else:
            count = sum(1 for _ in numbers)
            row["matchingLines"] = count
            line = f"{entry.path}:{count}"
        if not count:
            return True, None
        if not self._room.take_row(line, row):
            return False, 0
        self._page.rows.append(row)
        self._page.lines.append(line)
        self._page.matches += count
        return len(self._page.rows) < self._page_size, None

    def _add_lines(self, entry: FileEntry, text: str, skipped: int) -> tuple[bool, int | None]:
        """Add the matching lines of a file, with context, from the line after `skipped` on.

        Return whether there is a place for more, and how many lines of the file are done if the page
        ended inside it (0: before it), None if not.
        """
        done = skipped
        for index, (block, is_last) in enumerate(self._blocks(text, skipped)):
            if not self._add_block(entry, block, first=index == 0, follows=done):
                return False, done
            done = block[-1].number
            full = self._page.matches >= self._page_size or self._reported >= MAX_REPORTED_CHARS
            if full:
                return False, None if is_last else done
        return True, None

    def _add_block(
        self, entry: FileEntry, block: Sequence[_Line], *, first: bool, follows: int
    ) -> bool:
        """Add one match with its context; return False where there is no room for it."""
        page = self._page
        head = _file_head(entry) | {"lines": []}
        shown = self._fitting(entry, block, json_chars(head) if first else 0)
        if shown is None:
            return False
        if first:
            page.rows.append(head)
        if page.lines and self._query.context and (first or shown[0].number != follows + 1):
            page.lines.append("--")
        for line, original in zip(shown, block, strict=True):
            page.rows[-1]["lines"].append(_line_row(line, cut=line.text != original.text))
            page.lines.append(_line_text(entry.path, line))
            self._reported += len(line.text)
        page.matches += 1
        return True

    def _fitting(
        self, entry: FileEntry, block: Sequence[_Line], head: int
    ) -> Sequence[_Line] | None:
        """Return the block as it fits: as it is, or with its lines cut if the page is empty."""
        if self._take(entry, block, head):
            return block
        if self._page.lines:
            return None
        for width in _CUT_LINES:
            cut = [self._cut(line, width) for line in block]
            if self._take(entry, cut, head):
                return cut
        return None

    def _take(self, entry: FileEntry, block: Sequence[_Line], head: int) -> bool:
        text = sum(len(_line_text(entry.path, line)) + 1 for line in block) + len("--\n")
        payload = sum(json_chars(_line_row(line, cut=True)) + 1 for line in block)
        return self._room.take(text, payload + head + 1)

    def _cut(self, line: _Line, width: int) -> _Line:
        """Return a line of at most `width` characters, with the match in it."""
        if len(line.text) <= width:
            return line
        at = _place_in_line(line.text, self._needle, self._query.case_sensitive)
        begin = max(0, min(at - width // 4, len(line.text) - width))
        end = begin + width
        before = _CUT_MARK if begin else ""
        after = _CUT_MARK if end < len(line.text) else ""
        return replace(line, text=f"{before}{line.text[begin:end]}{after}")

    def _blocks(self, text: str, skipped: int) -> Iterator[tuple[list[_Line], bool]]:
        """Yield each match after line `skipped` with its context, and whether it is the last.

        No line is in two blocks: context before a match begins after the last block, and context
        after it ends before the next match.
        """
        numbers = (number for number in self._matching_lines(text) if number > skipped)
        match = next(numbers, None)
        if match is None:
            return
        lines = text.split("\n")
        count = len(lines) if lines[-1] else len(lines) - 1
        context = self._query.context
        done = skipped
        while match is not None:
            following = next(numbers, None)
            first = max(done + 1, match - context)
            done = min(match + context, count if following is None else following - 1)
            yield (
                [
                    _Line(number=number, text=lines[number - 1], match=number == match)
                    for number in range(first, done + 1)
                ],
                following is None,
            )
            match = following

    def _matching_lines(self, text: str) -> Iterator[int]:
        """Yield the numbers, from 1 on, of the lines that hold the wanted text."""
        searched = text if self._query.case_sensitive else text.casefold()
        number, counted = 1, 0
        found = searched.find(self._needle)
        while found >= 0:
            number += searched.count("\n", counted, found)
            yield number
            counted = searched.find("\n", found)
            found = -1 if counted < 0 else searched.find(self._needle, counted)


def _texts(
    snapshot: Snapshot, wanted: Iterator[FileEntry], waiting: deque[FileEntry]
) -> Iterator[tuple[FileEntry, str | None]]:
    """Yield each file with its text, read ahead side by side; None where it is not text any more.

    `waiting` holds the files that are being read and were not yielded yet.
    """

    def noted(entries: Iterator[FileEntry]) -> Iterator[FileEntry]:
        for entry in entries:
            waiting.append(entry)
            yield entry

    rest: list[FileEntry] = []
    while True:
        try:
            for entry, text in snapshot.read_many(noted(chain(rest, wanted))):
                waiting.popleft()
                yield entry, text
            return
        except TreeStateError as error:
            if error.reason != "unreadable_content":
                raise
        # One file that is damaged must not hide what the others hold.
        yield waiting.popleft(), None
        rest = list(waiting)
        waiting.clear()


def _file_head(entry: FileEntry) -> dict[str, Any]:
    return {"path": entry.path, "version": entry.version}


def _line_row(line: _Line, *, cut: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"line": line.number, "text": line.text, "match": line.match}
    return row | {"cut": True} if cut else row


def _line_text(path: str, line: _Line) -> str:
    mark = ":" if line.match else "-"
    return f"{path}{mark}{line.number}{mark}{line.text}"


def _place_in_line(line: str, needle: str, case_sensitive: bool) -> int:
    """Return where in a line the wanted text begins; 0 where it is not in it."""
    if case_sensitive:
        return max(0, line.find(needle))
    folded = line.casefold()
    found = max(0, folded.find(needle))
    if len(folded) == len(line):
        return found
    # Folding made some characters longer: count them up to the place.
    length = 0
    for index, char in enumerate(line):
        if length >= found:
            return index
        length += len(char.casefold())
    return 0
