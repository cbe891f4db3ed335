"""The file tools: their names, their order, and what an agent reads about each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from wenchang.files.edits import MAX_EDITS
from wenchang.files.reading import MAX_READ_BYTES

__all__ = [
    "CHANGING_TOOLS",
    "FILE_GUIDANCE",
    "FILE_TOOL_NAMES",
    "HISTORY_TOOL_NAMES",
    "file_tool_descriptions",
    "file_tool_names",
]

FILE_TOOL_NAMES: Final = (
    "file_list",
    "file_read",
    "file_find",
    "file_search",
    "file_create",
    "file_append",
    "file_move",
    "file_edit",
    "file_write",
    "file_delete",
)
"""The tools in the order in which they are registered, listed and described."""

HISTORY_TOOL_NAMES: Final = ("file_history", "file_restore")
"""The tools that are there as well where past versions are kept."""

CHANGING_TOOLS: Final = frozenset(
    {
        "file_create",
        "file_append",
        "file_move",
        "file_edit",
        "file_write",
        "file_delete",
        "file_restore",
    }
)
"""The tools that change something."""

FILE_GUIDANCE: Final = """\
The file_ tools work on one private folder of plain text files that all agents of this account
share. Keep there what a later session needs: notes, drafts, findings, work in progress.
1. A path is relative to the root, with / between names: notes/plan.md. Paths are case-sensitive;
answers show them as they can be sent back. A folder exists while a file is in it.
2. Read before you change: file_read shows the version token of a file, and a change that names it is
refused if someone else changed the file meanwhile. Read again, merge and repeat; that is routine.
3. Line numbers in answers are no part of a file. Leave them out of any text you send.
4. When an answer ends with a cursor there is more: send the same arguments again with it."""
"""What an agent must know beside the descriptions; the instructions of a server of these tools."""

_NO_UNDO: Final = "What is replaced or removed cannot be recovered."
_UNDO: Final = "file_history lists past versions and file_restore brings one back."

_PAGES: Final = (
    "If the answer ends with a cursor, pass it as cursor, with every other argument unchanged, for "
    "the next page. pageSize (up to 200) is not kept in a cursor: send it with each page."
)

_PATTERN: Final = (
    "In a pattern * is any run of characters within a name, ** as a whole segment any number of "
    "folders, ? one character, [abc], [a-z] and [!abc] one character of a set; all else is literal, "
    "and case matters. Without / it is matched against file names, with / against the path below the "
    "folder."
)

_TEXTS: Final[Mapping[str, str]] = {
    "file_list": f"""\
List a folder: its entries, or with depth (1 to 5) a tree that many levels deep.
Entries come in path order; folders end in /, files show size, version token and time of change.
Leave path out for the root, where the limits in force and what is used of each are shown too.
{_PAGES}""",
    "file_read": f"""\
Read a file with numbered lines (number, tab, text), or up to 10 files at once.
Give path for one file, whole or from fromLine to toLine, or paths for several read whole; never
both. A header shows path, lines, size and version token. One call reads at most
{MAX_READ_BYTES} bytes: for a larger file read a range of lines. If the header says
"go on with fromLine N", the answer was cut there.""",
    "file_find": f"""\
Find files by name or path, anywhere below a folder (the root by default).
{_PATTERN}
Files come sorted by path, or with sortBy "modified" the latest changed first.
A page looks at no more than 2,000 files, so it can end with a cursor and few or no files.
{_PAGES}""",
    "file_search": f"""\
Find literal text inside the files below a folder (the root by default).
text is matched within one line and each character means itself; case is ignored unless
caseSensitive is true. glob restricts the files by the patterns of file_find.
mode "lines" shows each matching line as path:line:text, with up to 10 lines of context; "files"
the files that hold a match; "counts" the number of matching lines of each file.
A page reads a bounded amount, so it can end with a cursor and few or no matches: go on from it.
{_PAGES}""",
    "file_create": """\
Make a new file with its first content, which may be empty.
Refused where anything is at the path already: edit or write that file instead. Folders named in the
path come into being with it.""",
    "file_append": """\
Add text at the very end of a file, or make the file where there is none.
Nothing is put between: begin the text with a line break if it starts a new line. It needs no
version, and calling it twice appends twice. A VERSION_CONFLICT means that many agents wrote at once
and nothing was written: repeat the call.""",
    "file_move": """\
Move or rename a file, or a folder with everything in it, as one step.
Never overwrites: refused where anything is at `to`. Files keep their content, version token and time
of change. With version, a file is moved only if it is still at it.""",
    "file_edit": f"""\
Replace exact text in a file: up to {MAX_EDITS} edits, in order, all or none.
oldText is copied exactly from the file, spaces and line breaks included, without line numbers. It
must occur exactly once, unless replaceAll is true. An empty newText deletes the text. If an edit
does not match, nothing is changed and the answer says which one and how often it was found.
Pass version, as read, to be refused if the file changed since.""",
    "file_write": """\
Create a file, or replace its whole content.
Replacing takes the version that you read; without version the call only creates, and is refused
where a file is. To change a part, use file_edit.""",
    "file_delete": """\
Delete a file, or with recursive a folder and everything in it, as one step.
A folder without recursive is refused with its number of entries. The root cannot be deleted. With
version, a file is deleted only if it is still at it.""",
    "file_history": """\
List the versions of a file that can be restored, the newest first, deleted files included.
Each has its token, size, line count, time and who wrote it.""",
    "file_restore": """\
Bring a past version of a file back, as a new version; a deleted file comes back too.
Take path and version from file_history.""",
}

_LOSES_CONTENT: Final = ("file_edit", "file_write", "file_delete")


def file_tool_names(*, history: bool) -> tuple[str, ...]:
    """Return the names of the tools, with those for past versions where such are kept."""
    return (*FILE_TOOL_NAMES, *HISTORY_TOOL_NAMES) if history else FILE_TOOL_NAMES


def file_tool_descriptions(*, history: bool = False) -> Mapping[str, str]:
    """Return what an agent reads about each tool, by name, in the order of `file_tool_names`."""
    undo = _UNDO if history else _NO_UNDO
    return MappingProxyType(
        {
            name: f"{_TEXTS[name]}\n{undo}" if name in _LOSES_CONTENT else _TEXTS[name]
            for name in file_tool_names(history=history)
        }
    )
