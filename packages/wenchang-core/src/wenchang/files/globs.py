"""The pattern language of find and search, compiled once and matched without regular expressions.

`*` is any run of characters within one name, `?` one character, `[abc]`, `[a-z]` and `[!abc]` one
character of a set, and `**` as a whole segment any number of folders, none included. Everything
else is literal and matching is case-sensitive. A pattern without `/` is matched against each
file's name at any depth, one with `/` against its path relative to the folder that is searched.

Matching costs at most the product of the lengths of pattern and path: patterns come from models.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias, TypeVar

from wenchang.files.errors import InvalidArgumentError
from wenchang.files.paths import name_of

__all__ = ["MAX_PATTERN_CHARS", "Glob", "compile_glob"]

MAX_PATTERN_CHARS: Final = 200


class _Char(Protocol):
    """A part of a name pattern that stands for exactly one character."""

    def accepts(self, char: str) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Literal:
    char: str

    def accepts(self, char: str) -> bool:
        return char == self.char


@dataclass(frozen=True, slots=True, kw_only=True)
class _Set:
    """Inclusive ranges of code points; `negated` accepts everything else."""

    ranges: tuple[tuple[str, str], ...]
    negated: bool

    def accepts(self, char: str) -> bool:
        return any(low <= char <= high for low, high in self.ranges) != self.negated


@dataclass(frozen=True, slots=True, kw_only=True)
class _One:
    def accepts(self, char: str) -> bool:  # noqa: ARG002 - any character will do
        return True


# In a name, None stands for `*`; among segments, None stands for `**`.
_Name: TypeAlias = tuple[_Char | None, ...]
_Segments: TypeAlias = tuple[_Name | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Glob:
    """A compiled pattern."""

    pattern: str
    _segments: _Segments
    _name_only: bool

    def matches(self, path: str) -> bool:
        """Tell whether a file matches; `path` is canonical and relative to the searched folder."""
        if self._name_only:
            segment = self._segments[0]
            return segment is None or _name_matches(segment, name_of(path))
        return _matches(self._segments, path.split("/"), _name_matches)


def compile_glob(pattern: str, *, argument: str = "pattern") -> Glob:
    """Compile a pattern of 1 to 200 characters; `InvalidArgumentError` names the rule it breaks."""
    if not isinstance(pattern, str):
        raise InvalidArgumentError(argument, "it must be text")
    if not 1 <= len(pattern) <= MAX_PATTERN_CHARS:
        raise InvalidArgumentError(argument, f"it has 1 to {MAX_PATTERN_CHARS} characters")
    if "\\" in pattern:
        raise InvalidArgumentError(argument, "it must not hold a backslash")
    trimmed = pattern.removeprefix("/")
    segments = trimmed.split("/")
    if not all(segments):
        raise InvalidArgumentError(argument, "it must not hold an empty name")
    return Glob(
        pattern=pattern,
        _segments=tuple(_compile_segment(segment, argument) for segment in segments),
        _name_only="/" not in trimmed,
    )


def _compile_segment(segment: str, argument: str) -> _Name | None:
    if segment == "**":
        return None
    tokens: list[_Char | None] = []
    position = 0
    while position < len(segment):
        char = segment[position]
        if char == "[":
            token, position = _compile_set(segment, position, argument)
            tokens.append(token)
            continue
        if char == "*":
            # A glued `**` is two `*`, and two in a row match what one does.
            if not tokens or tokens[-1] is not None:
                tokens.append(None)
        elif char == "?":
            tokens.append(_One())
        else:
            tokens.append(_Literal(char=char))
        position += 1
    return tuple(tokens)


def _compile_set(segment: str, start: int, argument: str) -> tuple[_Set, int]:
    """Compile the set that opens at `start`; return it and the position after it."""
    end = segment.find("]", start + 1)
    if end < 0:
        raise InvalidArgumentError(argument, "a set opened by [ must be closed by ] in its name")
    body = segment[start + 1 : end]
    negated = body.startswith("!")
    body = body.removeprefix("!")
    if not body:
        raise InvalidArgumentError(argument, "a set must not be empty")
    ranges: list[tuple[str, str]] = []
    position = 0
    while position < len(body):
        low = body[position]
        if body[position + 1 : position + 2] == "-" and position + 2 < len(body):
            high = body[position + 2]
            if high < low:
                raise InvalidArgumentError(argument, "a range in a set must not be reversed")
            ranges.append((low, high))
            position += 3
        else:
            ranges.append((low, low))
            position += 1
    return _Set(ranges=tuple(ranges), negated=negated), end + 1


def _name_matches(tokens: _Name, name: str) -> bool:
    return _matches(tokens, name, _accepts)


def _accepts(token: _Char, char: str) -> bool:
    return token.accepts(char)


_Token = TypeVar("_Token")
_Item = TypeVar("_Item")


def _matches(
    tokens: Sequence[_Token | None],
    items: Sequence[_Item],
    accepts: Callable[[_Token, _Item], bool],
) -> bool:
    """Match items against tokens, of which None accepts any run of items.

    Only the last None met is ever returned to: an earlier one could not match more than it.
    """
    token = item = 0
    star = star_item = -1
    while item < len(items):
        wanted = tokens[token] if token < len(tokens) else None
        if token < len(tokens) and wanted is None:
            star, star_item = token, item
            token += 1
        elif wanted is not None and accepts(wanted, items[item]):
            token += 1
            item += 1
        elif star >= 0:
            star_item += 1
            token, item = star + 1, star_item
        else:
            return False
    return all(left is None for left in tokens[token:])
