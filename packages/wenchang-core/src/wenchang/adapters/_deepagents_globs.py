"""The glob patterns of deepagents, translated into predicates on our paths.

A pattern without `/` is for names at any depth, one with `/` for paths relative to the folder that is
searched, and a leading `/` only says so. `{a,b}` are alternatives, nested ones too. A name that begins
with a dot matches only where its part of the pattern does, so `**` does not go into such folders. `..`
is refused. What is left of a pattern, name by name, is what `wenchang.files.globs` takes.

Matching costs at most the product of the lengths of pattern and path, for each of at most 64
alternatives, and one call may take so much time for it: patterns come from models.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

from wenchang.files.backend import Accept
from wenchang.files.errors import InvalidArgumentError
from wenchang.files.globs import MAX_PATTERN_CHARS, Glob, compile_glob
from wenchang.files.paths import is_below, name_of

__all__ = ["MATCHING_SECONDS", "MAX_ALTERNATIVES", "accepting"]

MAX_ALTERNATIVES: Final = 64
"""Patterns that the braces of one may stand for."""
MATCHING_SECONDS: Final = 10.0
"""Time of the processor that one call may spend on matching; what is no attack takes far less."""


@dataclass(frozen=True, slots=True)
class _Name:
    """A part of a pattern between slashes."""

    glob: Glob
    dotted: bool

    def matches(self, name: str) -> bool:
        return (self.dotted or not name.startswith(".")) and self.glob.matches(name)


# Of the parts between slashes, None stands for `**`.
_Parts: TypeAlias = tuple[_Name | None, ...]


def accepting(pattern: str, folder: str, *, argument: str) -> Accept:
    """Return the predicate on absolute paths for a pattern applied to a canonical folder.

    Raises `InvalidArgumentError` that names `argument` and the rule that the pattern breaks; the
    predicate does once it has taken `MATCHING_SECONDS`.
    """
    if not isinstance(pattern, str):
        raise InvalidArgumentError(argument, "it must be text")
    if not 1 <= len(pattern) <= MAX_PATTERN_CHARS:
        raise InvalidArgumentError(argument, f"it has 1 to {MAX_PATTERN_CHARS} characters")
    if ".." in pattern.replace("\\", "/").split("/"):
        raise InvalidArgumentError(argument, "it must not hold .. as a name")
    names_only = "/" not in pattern
    alternatives: list[_Parts] = []
    for plain in _expanded(pattern.lstrip("/")):
        if len(alternatives) == MAX_ALTERNATIVES:
            raise InvalidArgumentError(
                argument, f"its braces stand for more than {MAX_ALTERNATIVES} patterns"
            )
        # A folder of no name, as `{,a}/b` has, is none that a file could be in.
        nowhere = plain.startswith("/")
        parts = () if nowhere else _compiled(plain, argument, names_only=names_only)
        alternatives.append(parts)

    spent = 0.0

    def accept(path: str) -> bool:
        nonlocal spent
        if spent > MATCHING_SECONDS:
            raise InvalidArgumentError(
                argument, "it takes too long to match; use fewer alternatives and fewer *"
            )
        started = time.thread_time()
        accepted = matches(path)
        spent += time.thread_time() - started
        return accepted

    def matches(path: str) -> bool:
        inside = path.removeprefix("/")
        if names_only or inside == folder:
            names = [name_of(inside)]
        elif is_below(inside, folder):
            names = inside[len(folder) :].lstrip("/").split("/")
        else:
            return False
        return any(_matches(parts, names) for parts in alternatives)

    return accept


def _compiled(pattern: str, argument: str, *, names_only: bool) -> _Parts:
    if names_only:
        # `**` that is no whole part is two `*`.
        return (_name(pattern, argument),)
    parts = pattern.split("/")
    if parts[-1] == "**":
        # What is in a folder, not what may stand in its place.
        parts.append("*")
    return tuple(None if part == "**" else _name(part, argument) for part in parts)


def _name(part: str, argument: str) -> _Name:
    if part == "**":
        part = "*"
    glob = compile_glob(_translated(part), argument=argument)
    return _Name(glob=glob, dotted=part.startswith((".", "\\.")))


def _translated(part: str) -> str:
    r"""Write `[^a]` as `[!a]`, and an escaped character as itself or as a set of one."""
    written: list[str] = []
    position = 0
    while position < len(part):
        char = part[position]
        if char == "\\" and position + 1 < len(part):
            escaped = part[position + 1]
            written.append(f"[{escaped}]" if escaped in "*?[" else escaped)
            position += 2
        elif part.startswith("[^", position):
            written.append("[!")
            position += 2
        else:
            written.append(char)
            position += 1
    return "".join(written)


def _matches(parts: _Parts, names: list[str]) -> bool:
    """Match names against parts: which beginnings of the names each beginning of the parts takes."""
    reached = [True] + [False] * len(names)
    for part in parts:
        if part is None:
            following = list(reached)
            for index, name in enumerate(names):
                if following[index] and not name.startswith("."):
                    following[index + 1] = True
        else:
            following = [False] + [
                reached[index] and part.matches(name) for index, name in enumerate(names)
            ]
        reached = following
    return reached[-1]


def _expanded(pattern: str) -> Iterator[str]:
    """Yield what braces stand for; a brace without a partner or without a comma is itself."""
    start = 0
    while True:
        opened = _find_brace(pattern, start)
        if opened < 0:
            yield pattern
            return
        closed, commas = _partner(pattern, opened)
        if closed >= 0 and commas:
            break
        start = opened + 1
    before, after = pattern[:opened], pattern[closed + 1 :]
    edges = [opened, *commas, closed]
    for left, right in pairwise(edges):
        # The alternative may hold braces itself, and so may what follows.
        for choice in _expanded(pattern[left + 1 : right]):
            for rest in _expanded(after):
                yield before + choice + rest


def _find_brace(pattern: str, start: int) -> int:
    position = start
    while position < len(pattern):
        if pattern[position] == "\\":
            position += 2
            continue
        if pattern[position] == "{":
            return position
        position += 1
    return -1


def _partner(pattern: str, opened: int) -> tuple[int, list[int]]:
    """Return where the brace is closed, or -1, and where the commas between its alternatives are."""
    depth = 0
    commas: list[int] = []
    position = opened
    while position < len(pattern):
        char = pattern[position]
        if char == "\\":
            position += 1
        elif char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            if depth == 0:
                return position, commas
        elif char == "," and depth == 1:
            commas.append(position)
        position += 1
    return -1, []
