"""Answers of the file tools, made from pages and from what calls came to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wenchang.files._answers import FileAnswer, Room, folder_text, time_text
from wenchang.files.limits import TreeLimits
from wenchang.files.listing import EntryPage
from wenchang.files.paths import ROOT
from wenchang.files.reading import ReadPage
from wenchang.files.search import SearchMode, SearchPage
from wenchang.files.values import Deleted, Moved, PastVersion, Usage, Written

__all__ = [
    "deleted_answer",
    "found_answer",
    "history_answer",
    "listed_answer",
    "moved_answer",
    "read_answer",
    "search_answer",
    "written_answer",
]


def listed_answer(
    path: str, page: EntryPage, cursor: str | None, limits: TreeLimits, usage: Usage
) -> FileAnswer:
    """Return a page of a folder; that of the root shows the limits and what is used of them."""
    head = f"{folder_text(path)} | {_counted(len(page.rows), 'entry', 'entries')}"
    payload: dict[str, Any] = {"path": path, "entries": page.rows}
    tail = []
    if path == ROOT:
        shown = {
            "maxDepth": (limits.max_depth, usage.depth),
            "maxFileBytes": (limits.max_file_bytes, usage.largest),
            "maxTotalBytes": (limits.max_total_bytes, usage.bytes),
            "maxFileCount": (limits.max_file_count, usage.files),
        }
        payload["limits"] = {
            name: {"maximum": maximum, "used": used} for name, (maximum, used) in shown.items()
        }
        tail = [
            "",
            "Limits in force, and what is used of each:",
            *(f"{name}\t{maximum}\t{used} used" for name, (maximum, used) in shown.items()),
        ]
    return _page_answer([head, *page.lines, *tail], payload, cursor)


def found_answer(path: str, page: EntryPage, cursor: str | None) -> FileAnswer:
    """Return a page of files that match a pattern."""
    head = f"{folder_text(path)} | {_counted(len(page.rows), 'file', 'files')} found"
    return _page_answer([head, *page.lines], {"path": path, "files": page.rows}, cursor)


def search_answer(path: str, mode: SearchMode, page: SearchPage, cursor: str | None) -> FileAnswer:
    """Return a page of what was found inside files."""
    if mode == "files":
        found = f"{_counted(page.matches, 'file', 'files')} with a match"
    else:
        lines = _counted(page.matches, "matching line", "matching lines")
        found = f"{lines} in {_counted(len(page.rows), 'file', 'files')}"
    payload: dict[str, Any] = {"path": path, "mode": mode, "files": page.rows}
    text = [f"{folder_text(path)} | {found}", *page.lines]
    if page.unreadable:
        payload["unreadable"] = page.unreadable
        text += ["", "Damaged, not searched:", *page.unreadable]
    return _page_answer(text, payload, cursor)


def read_answer(page: ReadPage) -> FileAnswer:
    """Return what was read."""
    payload: dict[str, Any] = {"files": page.rows}
    text = "\n\n".join(page.parts)
    if page.not_shown:
        payload["notShown"] = page.not_shown
        text += "\n\nNo room for these, read them next:\n" + "\n".join(page.not_shown)
    return FileAnswer(text=text, payload=payload)


def written_answer(tool: str, written: Written) -> FileAnswer:
    """Return what a call that gave a file its content came to."""
    payload: dict[str, Any] = {
        "path": written.path,
        "size": written.size,
        "lineCount": written.lines,
        "version": written.version,
        "modified": time_text(written.modified),
        "created": written.created,
        "changed": written.changed,
    }
    verb = "Created" if written.created and tool != "file_restore" else _VERBS[tool]
    if not written.changed:
        verb = "Left as it was:"
    state = f"{written.size} bytes, {_counted(written.lines, 'line', 'lines')}"
    text = f"{verb} {written.path} | {state} | version {written.version}"
    if tool == "file_edit":
        payload["replacements"] = written.replacements
        text += f" | {_counted(written.replacements, 'replacement', 'replacements')}"
    return FileAnswer(text=text, payload=payload)


def moved_answer(moved: Moved) -> FileAnswer:
    """Return what a move came to."""
    payload = {
        "from": moved.source,
        "to": moved.target,
        "kind": moved.kind,
        "files": moved.files,
    }
    if moved.kind == "file":
        return FileAnswer(text=f"Moved {moved.source} to {moved.target}", payload=payload)
    files = _counted(moved.files, "file", "files")
    return FileAnswer(text=f"Moved {moved.source}/ to {moved.target}/ | {files}", payload=payload)


def deleted_answer(deleted: Deleted) -> FileAnswer:
    """Return what a delete came to."""
    payload = {"path": deleted.path, "kind": deleted.kind, "files": deleted.files}
    if deleted.kind == "file":
        return FileAnswer(text=f"Deleted {deleted.path}", payload=payload)
    files = _counted(deleted.files, "file", "files")
    return FileAnswer(text=f"Deleted {deleted.path}/ | {files}", payload=payload)


def history_answer(path: str, states: Sequence[PastVersion], room: Room) -> FileAnswer:
    """Return the versions of a path, the newest first, as many as there is room for."""
    rows: list[dict[str, Any]] = []
    lines = []
    for state in states:
        row = {
            "version": state.version,
            "size": state.size,
            "lineCount": state.lines,
            "modified": time_text(state.modified),
            "source": state.source,
            "current": state.current,
        }
        line = f"{state.version}\t{state.size} bytes\t{row['modified']}"
        line += f"\t{state.source}" if state.source else ""
        line += "\tcurrent" if state.current else ""
        if not room.take_row(line, row):
            break
        rows.append(row)
        lines.append(line)
    payload: dict[str, Any] = {"path": path, "versions": rows}
    omitted = len(states) - len(rows)
    if omitted:
        payload["omitted"] = omitted
        lines.append(f"and {_counted(omitted, 'older version', 'older versions')}")
    head = f"{path} | {_counted(len(states), 'version', 'versions')}"
    return FileAnswer(text="\n".join([head, *lines]), payload=payload)


def _page_answer(lines: list[str], payload: dict[str, Any], cursor: str | None) -> FileAnswer:
    if cursor is not None:
        payload["cursor"] = cursor
        lines += [
            "",
            "There is more. For the next page send the same arguments with",
            f"cursor: {cursor}",
        ]
    return FileAnswer(text="\n".join(lines), payload=payload)


def _counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


_VERBS = {
    "file_create": "Created",
    "file_append": "Appended to",
    "file_edit": "Edited",
    "file_write": "Replaced",
    "file_restore": "Restored",
}
