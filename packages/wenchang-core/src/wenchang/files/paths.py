"""Paths of the file tree: one string relative to the root, `/` between names.

Every function that takes a caller's path returns the canonical form, in which each path appears in
every answer and can be sent back unchanged. The root is the empty string.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from wenchang.files.errors import InvalidArgumentError

__all__ = [
    "MAX_NAME_CHARS",
    "MAX_PATH_CHARS",
    "ROOT",
    "ancestors",
    "canonical",
    "canonical_file",
    "depth",
    "is_below",
    "name_of",
    "parent_of",
]

MAX_NAME_CHARS: Final = 255
"""Code points in one name."""
MAX_PATH_CHARS: Final = 400
"""Code points in a whole path."""
ROOT: Final = ""

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_BIDI_CONTROL: Final = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# Code points that show nothing although their category is not one of the invisible ones.
_BLANK_LETTERS: Final = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5")
_INVISIBLE_CATEGORIES: Final = frozenset({"Cf", "Cc", "Cn", "Co", "Zs", "Zl", "Zp", "Mn", "Me"})


def canonical(path: str | None, *, argument: str = "path") -> str:
    """Return the canonical form of a path that may be the root (None, `""` or `/`).

    One leading and one trailing `/` come off. Raises `InvalidArgumentError` that names `argument` and
    the rule for everything else that is not already canonical.
    """
    if path is None:
        return ROOT
    if not isinstance(path, str):
        raise InvalidArgumentError(argument, "it must be text")
    if path in ("", "/"):
        return ROOT
    trimmed = path.removeprefix("/").removesuffix("/")
    problem = _problem(trimmed)
    if problem is not None:
        raise InvalidArgumentError(argument, problem)
    return trimmed


def canonical_file(path: str, *, argument: str = "path") -> str:
    """Return the canonical form of a path that must name something below the root."""
    trimmed = canonical(path, argument=argument)
    if path is None or trimmed == ROOT:
        raise InvalidArgumentError(argument, "it must name a file or folder below the root")
    return trimmed


def _problem(path: str) -> str | None:
    """Name the rule that a trimmed path breaks, or None."""
    if _SURROGATE.search(path):
        return "it must be valid UTF-8; it holds an unpaired surrogate"
    if len(path) > MAX_PATH_CHARS:
        return f"a path has at most {MAX_PATH_CHARS} characters"
    if "\\" in path:
        return "a path must not hold a backslash; use / between names"
    for name in path.split("/"):
        problem = _name_problem(name)
        if problem is not None:
            return problem
    return None


def _name_problem(name: str) -> str | None:
    if not name:
        return "a path must not hold an empty name (two slashes in a row)"
    if name in (".", ".."):
        return "a path must not hold . or .. as a name"
    if len(name) > MAX_NAME_CHARS:
        return f"a name has at most {MAX_NAME_CHARS} characters"
    if any(unicodedata.category(char) == "Cc" for char in name):
        return "a name must not hold control characters"
    if name[0].isspace() or name[-1].isspace():
        return "a name must not begin or end with a space"
    if _BIDI_CONTROL.search(name):
        return "a name must not hold characters that change the direction of text"
    if all(_is_invisible(char) for char in name):
        return "a name must hold a visible character"
    if not unicodedata.is_normalized("NFC", name):
        return "a name must be in Unicode normalisation form NFC"
    return None


def _is_invisible(char: str) -> bool:
    return char in _BLANK_LETTERS or unicodedata.category(char) in _INVISIBLE_CATEGORIES


def name_of(path: str) -> str:
    """Return the last name of a canonical path."""
    return path.rpartition("/")[2]


def parent_of(path: str) -> str:
    """Return the folder that holds a canonical path; the root for a path of one name."""
    return path.rpartition("/")[0]


def ancestors(path: str) -> Iterator[str]:
    """Yield the folders above a canonical path, the nearest first, the root left out."""
    folder = parent_of(path)
    while folder != ROOT:
        yield folder
        folder = parent_of(folder)


def depth(path: str) -> int:
    """Return the number of folders above a canonical path."""
    return path.count("/")


def is_below(path: str, folder: str) -> bool:
    """Tell whether a canonical path lies below a folder (at any depth, the folder itself left out)."""
    return folder == ROOT or path.startswith(folder + "/")
