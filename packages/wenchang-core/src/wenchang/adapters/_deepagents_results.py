"""Values of wenchang as those of deepagents. Paths of folders end in `/`, as deepagents wants them.

deepagents 0.7 gained fields from release to release; one that it does not have is left out.
"""

from __future__ import annotations

from typing import Final

from deepagents.backends.protocol import FileInfo, GlobResult, ReadResult

from wenchang.files.backend import BackendEntry, Listing, ReadWindow

__all__ = ["file_info", "glob_result", "literal", "nothing_read", "read_result"]

_META: Final = frozenset("\\.+*?()|[]{}^$")


def read_result(window: ReadWindow) -> ReadResult:
    """Return lines of a file; where none are shown no field tells which they are."""
    result = ReadResult(file_data={"content": window.text, "encoding": "utf-8"})
    if result.file_data is not None and window.modified is not None:
        result.file_data["modified_at"] = window.modified.isoformat()
    if window.lines:
        result.start_line = window.offset + 1
        result.end_line = window.offset + window.lines
        result.total_lines = window.total_lines
        result.next_offset = window.next_offset
    return result


def nothing_read() -> ReadResult:
    """Return the answer to a read of no lines, for which no file was looked at."""
    result = ReadResult(file_data={"content": "", "encoding": "utf-8"})
    if hasattr(result, "no_lines_requested"):
        result.no_lines_requested = True
    return result


def glob_result(listing: Listing) -> GlobResult:
    """Return the files that were found, and whether there may be more."""
    result = GlobResult(
        matches=[file_info(entry) for entry in listing.entries], truncated=listing.truncated
    )
    if listing.truncated and hasattr(result, "truncation_reason"):
        result.truncation_reason = "budget"
    return result


def file_info(entry: BackendEntry) -> FileInfo:
    """Return an entry with what is known of it."""
    if entry.kind == "folder":
        return {"path": entry.path + "/", "is_dir": True}
    info: FileInfo = {"path": entry.path, "is_dir": False}
    if entry.size is not None:
        info["size"] = entry.size
    if entry.modified is not None:
        info["modified_at"] = entry.modified.isoformat()
    return info


def literal(text: str) -> str:
    """Return the RE2 pattern for exactly this text; what is no text is left to be refused."""
    if not isinstance(text, str):
        return text
    return "".join("\\" + char if char in _META else char for char in text)
