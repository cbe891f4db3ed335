"""What each file tool answers, as schemas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, get_args

from wenchang._json_schema import JsonSchema, array_of, closed_object, count, one_of, string
from wenchang.files._arguments import MAX_VERSION_CHARS
from wenchang.files.edits import MAX_REPLACEMENTS
from wenchang.files.errors import EntryKind
from wenchang.files.paths import MAX_PATH_CHARS
from wenchang.files.search import SearchMode

__all__ = ["OUTPUT_SCHEMAS"]

_Properties = dict[str, JsonSchema]

_TIME_PATTERN: Final = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$"


def _shown_path(description: str) -> JsonSchema:
    return string(description, maxLength=MAX_PATH_CHARS)


def _file_properties() -> _Properties:
    return {
        "path": _shown_path("The file, as it can be sent back."),
        "size": count("Bytes of UTF-8."),
        "lineCount": count("Lines; a last one without line break counts."),
        "version": _version(),
        "modified": _time("When the content last changed."),
    }


def _version() -> JsonSchema:
    return string("The version token.", minLength=1, maxLength=MAX_VERSION_CHARS)


def _time(description: str) -> JsonSchema:
    return string(f"{description} UTC, ISO 8601.", pattern=_TIME_PATTERN)


def _cursor() -> JsonSchema:
    return string("There is more: pass it back for the next page.")


def _open_ended(properties: _Properties, *sometimes: str) -> JsonSchema:
    """Return an object of which some properties may be missing."""
    required = [name for name in properties if name not in sometimes]
    return closed_object(properties, required=required, root=True)


def _list_output() -> JsonSchema:
    entry = closed_object(
        {**_file_properties(), "kind": one_of("File or folder.", get_args(EntryKind))},
        required=["path", "kind"],
    )
    limit = {
        "maximum": count("What is allowed at most."),
        "used": count("What the files have come to."),
    }
    limits = closed_object(
        {
            "maxDepth": closed_object(limit, description="Folders above a file."),
            "maxFileBytes": closed_object(limit, description="Bytes of one file."),
            "maxTotalBytes": closed_object(limit, description="Bytes of all files."),
            "maxFileCount": closed_object(limit, description="Number of files."),
        },
        description="The limits in force; shown with the root.",
    )
    return _open_ended(
        {
            "path": _shown_path('The folder; "" is the root.'),
            "entries": array_of("The entries, in path order.", entry),
            "limits": limits,
            "cursor": _cursor(),
        },
        "limits",
        "cursor",
    )


def _read_output() -> JsonSchema:
    row = {
        **_file_properties(),
        "fromLine": count("The first line shown; 0 if there is none."),
        "toLine": count("The last line shown; 0 if there is none."),
        "text": string("The lines exactly as stored, without numbers."),
        "nextLine": count("The answer was cut: go on with this as fromLine.", minimum=1),
    }
    required = [name for name in row if name != "nextLine"]
    return _open_ended(
        {
            "files": array_of(
                "The files, in the order asked for.", closed_object(row, required=required)
            ),
            "notShown": array_of(
                "Files that the answer had no room for: read them next.", _shown_path("A file.")
            ),
        },
        "notShown",
    )


def _find_output() -> JsonSchema:
    return _open_ended(
        {
            "path": _shown_path('The folder; "" is the root.'),
            "files": array_of("The files that match.", closed_object(_file_properties())),
            "cursor": _cursor(),
        },
        "cursor",
    )


def _search_output() -> JsonSchema:
    line = closed_object(
        {
            "line": count("Its number.", minimum=1),
            "text": string("The line, without its line break."),
            "match": {"type": "boolean", "description": "Whether it matches, or is context."},
            "cut": {
                "type": "boolean",
                "const": True,
                "description": "The line is too long and only a part of it is shown.",
            },
        },
        required=["line", "text", "match"],
    )
    row = closed_object(
        {
            "path": _shown_path("The file."),
            "version": _version(),
            "lines": array_of("In mode lines: what was found, with context.", line),
            "matchingLines": count("In mode counts: how many lines match.", minimum=1),
        },
        required=["path", "version"],
    )
    return _open_ended(
        {
            "path": _shown_path('The folder; "" is the root.'),
            "mode": one_of("The form of the answer.", get_args(SearchMode)),
            "files": array_of("The files with a match, in path order.", row),
            "unreadable": array_of(
                "Files that could not be searched: their content is damaged.",
                _shown_path("A file."),
            ),
            "cursor": _cursor(),
        },
        "unreadable",
        "cursor",
    )


def _written_output(**more: JsonSchema) -> JsonSchema:
    return closed_object(
        {
            **_file_properties(),
            "created": {"type": "boolean", "description": "Whether the file is new."},
            "changed": {
                "type": "boolean",
                "description": "False where the file held this already and was left as it was.",
            },
            **more,
        },
        root=True,
    )


def _edit_output() -> JsonSchema:
    return _written_output(
        replacements=count("How many occurrences were replaced.", maximum=MAX_REPLACEMENTS)
    )


def _files_affected() -> _Properties:
    return {
        "kind": one_of("What it is.", get_args(EntryKind)),
        "files": count("How many files it is.", minimum=1),
    }


def _history_output() -> JsonSchema:
    row = closed_object(
        {
            "version": _version(),
            "size": count("Bytes of UTF-8."),
            "lineCount": count("Lines."),
            "modified": _time("When this version was written."),
            "source": string("Who wrote it, as far as known."),
            "current": {"type": "boolean", "description": "Whether the file is at it now."},
        }
    )
    return _open_ended(
        {
            "path": _shown_path("The file."),
            "versions": array_of("The newest first.", row),
            "omitted": count("Older versions that the answer had no room for.", minimum=1),
        },
        "omitted",
    )


OUTPUT_SCHEMAS: Final[Mapping[str, Callable[[], JsonSchema]]] = {
    "file_list": _list_output,
    "file_read": _read_output,
    "file_find": _find_output,
    "file_search": _search_output,
    "file_create": _written_output,
    "file_append": _written_output,
    "file_move": lambda: closed_object(
        {
            "from": _shown_path("Where it was."),
            "to": _shown_path("Where it is."),
            **_files_affected(),
        },
        root=True,
    ),
    "file_edit": _edit_output,
    "file_write": _written_output,
    "file_delete": lambda: closed_object(
        {"path": _shown_path("What is gone."), **_files_affected()}, root=True
    ),
    "file_history": _history_output,
    "file_restore": _written_output,
}
