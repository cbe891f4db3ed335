"""The arguments of one call of a file tool, checked one by one.

Agents send whatever a model wrote. Everything is checked here or in the tree, whatever a schema
says; an argument that may be left out may be null too. No error repeats a value of unbounded length.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

from wenchang.files.cursors import MAX_FILE_CURSOR_CHARS, invalid_cursor
from wenchang.files.edits import MAX_EDITS, Edit
from wenchang.files.errors import InvalidArgumentError
from wenchang.files.globs import Glob, compile_glob
from wenchang.files.listing import MAX_PAGE_SIZE
from wenchang.files.paths import canonical, canonical_file
from wenchang.files.reading import MAX_READ_FILES, LineRange
from wenchang.files.search import MAX_SEARCH_TEXT_CHARS
from wenchang.files.texts import check_text
from wenchang.tools._arguments import quote

__all__ = ["MAX_VERSION_CHARS", "VERSION_PATTERN", "Arguments"]

MAX_VERSION_CHARS: Final = 64
VERSION_PATTERN: Final = "[!-~]+"
_VERSION: Final = re.compile(VERSION_PATTERN)
_MAX_LINE: Final = 2**53 - 1
_EDIT_FIELDS: Final = ("oldText", "newText", "replaceAll")

_ChoiceT = TypeVar("_ChoiceT", bound=str)


class Arguments:
    """The arguments of a call. Each method takes one and raises `InvalidArgumentError` that names it."""

    def __init__(
        self, given: Mapping[str, object], known: Sequence[str], required: Sequence[str]
    ) -> None:
        """Refuse an unknown argument, named escaped and cut, then a missing one."""
        _check_names(given, known, required, where="")
        self._given = {name: value for name, value in given.items() if value is not None}
        for name in required:
            if name not in self._given:
                raise InvalidArgumentError(name, "it is required")

    def folder(self) -> str:
        """Return `path` of a folder, in canonical form; the root if it is left out."""
        return canonical(self._text("path"))

    def file(self, name: str = "path") -> str:
        """Return the path of a file or folder below the root, in canonical form."""
        return canonical_file(self._text(name) or "", argument=name)

    def content(self, name: str) -> str:
        """Return text that a file may hold."""
        text = self._text(name) or ""
        check_text(text, name)
        return text

    def version(self) -> str | None:
        """Return `version`, a token as answers show it."""
        version = self._text("version")
        if version is None:
            return None
        if len(version) > MAX_VERSION_CHARS or not _VERSION.fullmatch(version):
            raise InvalidArgumentError("version", "it is not a version token that a read returned")
        return version

    def cursor(self) -> str | None:
        """Return `cursor`; whether it fits the call is judged later."""
        cursor = self._text("cursor")
        if cursor is not None and len(cursor) > MAX_FILE_CURSOR_CHARS:
            raise invalid_cursor()
        return cursor

    def page_size(self, default: int) -> int:
        """Return `pageSize`."""
        size = self.whole("pageSize", 1, MAX_PAGE_SIZE)
        return default if size is None else size

    def whole(self, name: str, least: int, most: int) -> int | None:
        """Return a whole number within bounds, None if it is left out."""
        value = self._given.get(name)
        if value is None:
            return None
        if type(value) is not int:
            raise InvalidArgumentError(name, f"it must be a whole number, not {_kind(value)}")
        if not least <= value <= most:
            raise InvalidArgumentError(name, f"it must be {least} to {most}")
        return value

    def flag(self, name: str) -> bool:
        """Return a boolean, False if it is left out."""
        return _flag(self._given.get(name, False), name)

    def choice(self, name: str, choices: tuple[_ChoiceT, ...]) -> _ChoiceT:
        """Return one of a closed list of words, the first if it is left out."""
        value = self._text(name)
        if value is None:
            return choices[0]
        for choice in choices:
            if value == choice:
                return choice
        raise InvalidArgumentError(name, f"it must be one of: {', '.join(choices)}")

    def pattern(self, name: str) -> tuple[str | None, Glob | None]:
        """Return a find pattern as it was sent and compiled; a leading `/` means nothing."""
        pattern = self._text(name)
        if pattern is None:
            return None, None
        glob = compile_glob(pattern, argument=name)
        return pattern.removeprefix("/"), glob

    def search_text(self) -> str:
        r"""Return `text` to search for: 1 to 500 characters of one line; `\r` is one of them."""
        text = self._text("text") or ""
        if not 1 <= len(text) <= MAX_SEARCH_TEXT_CHARS:
            raise InvalidArgumentError("text", f"it has 1 to {MAX_SEARCH_TEXT_CHARS} characters")
        if "\n" in text:
            raise InvalidArgumentError(
                "text", "it is matched within one line, so it must not hold a line break"
            )
        _check_utf8(text, "text")
        return text

    def read_wanted(self) -> tuple[list[str], LineRange | None]:
        """Return the paths to read, and the lines of the one path if a range is wanted."""
        first, last = (self.whole(name, 1, _MAX_LINE) for name in ("fromLine", "toLine"))
        if first is not None and last is not None and last < first:
            raise InvalidArgumentError("toLine", "it must not be before fromLine")
        ranged = first is not None or last is not None
        if "paths" not in self._given:
            if "path" not in self._given:
                raise InvalidArgumentError("path", "give path for one file, or paths for several")
            return [self.file()], LineRange(first=first, last=last) if ranged else None
        if "path" in self._given:
            raise InvalidArgumentError("paths", "give either path or paths, not both")
        if ranged:
            raise InvalidArgumentError(
                "fromLine" if first is not None else "toLine",
                "a range goes with path; files named in paths are read whole",
            )
        return self._paths(), None

    def edits(self) -> list[Edit]:
        """Return `edits`, 1 to 20 of them."""
        value = self._given["edits"]
        if isinstance(value, str | bytes) or not isinstance(value, Sequence):
            raise InvalidArgumentError("edits", f"it must be an array, not {_kind(value)}")
        if not 1 <= len(value) <= MAX_EDITS:
            raise InvalidArgumentError("edits", f"a call takes 1 to {MAX_EDITS} edits")
        return [_edit(index, item) for index, item in enumerate(value)]

    def _paths(self) -> list[str]:
        value = self._given["paths"]
        if isinstance(value, str | bytes) or not isinstance(value, Sequence):
            raise InvalidArgumentError("paths", f"it must be an array, not {_kind(value)}")
        if not 1 <= len(value) <= MAX_READ_FILES:
            raise InvalidArgumentError("paths", f"it names 1 to {MAX_READ_FILES} files")
        paths: list[str] = []
        for index, item in enumerate(value):
            if not isinstance(item, str):
                raise InvalidArgumentError("paths", f"item {index} must be text, not {_kind(item)}")
            path = canonical_file(item, argument="paths")
            if path in paths:
                raise InvalidArgumentError("paths", f"it names {path} twice")
            paths.append(path)
        return paths

    def _text(self, name: str) -> str | None:
        value = self._given.get(name)
        if value is not None and not isinstance(value, str):
            raise InvalidArgumentError(name, f"it must be text, not {_kind(value)}")
        return None if value is None else str.__str__(value)


def _edit(index: int, item: object) -> Edit:
    where = f"edits[{index}]"
    if not isinstance(item, Mapping):
        raise InvalidArgumentError(where, f"it must be an object, not {_kind(item)}")
    _check_names(item, _EDIT_FIELDS, _EDIT_FIELDS[:2], where=f"{where}.")
    texts = []
    for name in _EDIT_FIELDS[:2]:
        if not isinstance(item[name], str):
            raise InvalidArgumentError(
                f"{where}.{name}", f"it must be text, not {_kind(item[name])}"
            )
        texts.append(str.__str__(item[name]))
    replace_all = item.get("replaceAll")
    flag = _flag(False if replace_all is None else replace_all, f"{where}.replaceAll")
    return Edit(old_text=texts[0], new_text=texts[1], replace_all=flag)


def _check_names(
    given: Mapping[str, object], known: Sequence[str], required: Sequence[str], *, where: str
) -> None:
    for name in given:
        if name not in known:
            shown = quote(name) if isinstance(name, str) else _kind(name)
            takes = f"its arguments are: {', '.join(known)}"
            raise InvalidArgumentError(
                where + (shown or "''"), f"there is no such argument; {takes}"
            )
    for name in required:
        if name not in given:
            raise InvalidArgumentError(where + name, "it is required")


def _check_utf8(text: str, argument: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidArgumentError(
            argument, "it must be valid UTF-8; it holds an unpaired surrogate"
        ) from None


def _flag(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidArgumentError(name, f"it must be true or false, not {_kind(value)}")
    return value


# How JSON calls the types that a tool call can carry.
_KINDS: Final[Mapping[type, str]] = {
    type(None): "null",
    bool: "a boolean",
    int: "a number",
    float: "a fraction",
    str: "text",
    list: "an array",
    tuple: "an array",
    dict: "an object",
}


def _kind(value: object) -> str:
    return _KINDS.get(type(value), type(value).__name__)
