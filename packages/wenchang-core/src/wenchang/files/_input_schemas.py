"""The arguments of each file tool, as schema properties."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, get_args

from wenchang._json_schema import (
    JsonSchema,
    array_of,
    closed_object,
    count,
    one_of,
    optional,
    string,
)
from wenchang.files._arguments import MAX_VERSION_CHARS, VERSION_PATTERN
from wenchang.files.cursors import MAX_FILE_CURSOR_CHARS
from wenchang.files.edits import MAX_EDITS
from wenchang.files.globs import MAX_PATTERN_CHARS
from wenchang.files.listing import DEFAULT_LIST_PAGE, MAX_LIST_DEPTH, MAX_PAGE_SIZE, SortBy
from wenchang.files.paths import MAX_PATH_CHARS
from wenchang.files.reading import MAX_READ_FILES
from wenchang.files.search import (
    DEFAULT_SEARCH_PAGE,
    MAX_CONTEXT_LINES,
    MAX_SEARCH_TEXT_CHARS,
    SearchMode,
)

__all__ = ["INPUT_PROPERTIES"]

_Properties = dict[str, JsonSchema]

_MAX_GIVEN_PATH: Final = MAX_PATH_CHARS + 2
"""A path as it is sent may have a `/` at each end."""
_PATH_PATTERN: Final = r"^[^\\\x00-\x1f\x7f-\x9f]*$"


def _path(description: str, *, least: int = 1) -> JsonSchema:
    return string(description, minLength=least, maxLength=_MAX_GIVEN_PATH, pattern=_PATH_PATTERN)


def _file_path() -> JsonSchema:
    return _path("The file, relative to the root: notes/plan.md.")


def _folder() -> JsonSchema:
    return optional(_path("The folder; left out: the root.", least=0))


def _pattern(description: str) -> JsonSchema:
    return string(description, minLength=1, maxLength=MAX_PATTERN_CHARS, pattern=r"^[^\\]*$")


def _page(default: int) -> _Properties:
    return {
        "cursor": optional(
            string(
                "The cursor at the end of the page before; all other arguments as they were.",
                minLength=1,
                maxLength=MAX_FILE_CURSOR_CHARS,
                pattern="^[A-Za-z0-9_-]+$",
            )
        ),
        "pageSize": optional(
            count(
                f"The most entries, files or matches on this page; left out: {default}.",
                minimum=1,
                maximum=MAX_PAGE_SIZE,
            )
        ),
    }


def _text(description: str) -> JsonSchema:
    return string(description, pattern=r"^[^\x00]*$")


def _flag(description: str) -> JsonSchema:
    return optional({"type": "boolean", "description": description}, default=False)


def _given_version(description: str) -> JsonSchema:
    return string(
        description, minLength=1, maxLength=MAX_VERSION_CHARS, pattern=f"^{VERSION_PATTERN}$"
    )


def _list_input() -> _Properties:
    return {
        "path": _folder(),
        "depth": optional(
            count("How many levels to show.", minimum=1, maximum=MAX_LIST_DEPTH), default=1
        ),
        **_page(DEFAULT_LIST_PAGE),
    }


def _read_input() -> _Properties:
    line = "of the one file, from 1 on and included; goes with path."
    return {
        "path": optional(_file_path()),
        "paths": optional(
            array_of(
                "Several files, read whole; instead of path.",
                _file_path(),
                minItems=1,
                maxItems=MAX_READ_FILES,
            )
        ),
        "fromLine": optional(count(f"The first line {line}", minimum=1)),
        "toLine": optional(count(f"The last line {line}", minimum=1)),
    }


def _find_input() -> _Properties:
    return {
        "pattern": _pattern("Which files: *.md, or notes/**/*.md."),
        "path": _folder(),
        "sortBy": optional(
            one_of("By path, or the latest modified first.", get_args(SortBy)), default="path"
        ),
        **_page(DEFAULT_LIST_PAGE),
    }


def _search_input() -> _Properties:
    return {
        "text": string(
            "The literal text, within one line.",
            minLength=1,
            maxLength=MAX_SEARCH_TEXT_CHARS,
            pattern=r"^[^\n]*$",
        ),
        "path": _folder(),
        "glob": optional(_pattern("Only files that match this pattern of file_find.")),
        "caseSensitive": _flag("Whether case matters."),
        "mode": optional(one_of("The form of the answer.", get_args(SearchMode)), default="lines"),
        "context": optional(
            count("In mode lines: lines shown either side of a match.", maximum=MAX_CONTEXT_LINES),
            default=0,
        ),
        **_page(DEFAULT_SEARCH_PAGE),
    }


def _edit_input() -> _Properties:
    edit = closed_object(
        {
            "oldText": string("Text exactly as it is in the file.", minLength=1),
            "newText": _text("What takes its place; empty deletes it."),
            "replaceAll": _flag("Replace every occurrence."),
        },
        required=["oldText", "newText"],
    )
    return {
        "path": _file_path(),
        "edits": array_of("Applied in order, all or none.", edit, minItems=1, maxItems=MAX_EDITS),
        "version": optional(_given_version("Be refused unless the file is still at it.")),
    }


INPUT_PROPERTIES: Final[Mapping[str, Callable[[], _Properties]]] = {
    "file_list": _list_input,
    "file_read": _read_input,
    "file_find": _find_input,
    "file_search": _search_input,
    "file_create": lambda: {
        "path": _file_path(),
        "content": _text("The whole content; may be empty."),
    },
    "file_append": lambda: {
        "path": _file_path(),
        "text": _text("Added at the very end, with nothing between."),
    },
    "file_move": lambda: {
        "from": _path("The file or folder to move."),
        "to": _path("Its new path, where nothing may be yet."),
        "version": optional(_given_version("For a file: move it only if it is still at it.")),
    },
    "file_edit": _edit_input,
    "file_write": lambda: {
        "path": _file_path(),
        "content": _text("The whole new content."),
        "version": optional(_given_version("The version to replace; left out: only create.")),
    },
    "file_delete": lambda: {
        "path": _path("The file or folder to delete."),
        "recursive": _flag("Delete a folder with everything in it."),
        "version": optional(_given_version("For a file: delete it only if it is still at it.")),
    },
    "file_history": lambda: {"path": _file_path()},
    "file_restore": lambda: {
        "path": _file_path(),
        "version": _given_version("The version to bring back, from file_history."),
    },
}
