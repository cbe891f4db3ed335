"""Where a memory file lives: `{scope}/{entity_id}/{area}/{name}.md`.

Building and parsing are exact inverses. This module knows nothing of grants, storage or agents,
and imports nothing of the package. No error text repeats an entity id.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

__all__ = [
    "MAX_PATH_BYTES",
    "MAX_SEGMENT_BYTES",
    "RESERVED_SCOPE_PREFIX",
    "PathParts",
    "PrefixParts",
    "build_path",
    "build_prefix",
    "is_area_slug",
    "is_valid_path",
    "is_valid_prefix",
    "is_valid_segment",
    "parse_path",
    "parse_prefix",
    "segment_problem",
]

MAX_SEGMENT_BYTES: Final = 200
"""Bytes of UTF-8 in a scope, an entity id, an area or a name (without its `.md`)."""
MAX_PATH_BYTES: Final = 900
"""Bytes of UTF-8 in a whole path. Four segments and their separators always stay below it."""

RESERVED_SCOPE_PREFIX: Final = "@"
"""What no scope begins with: keys that do belong to something else, such as file trees."""

_SUFFIX: Final = ".md"
# C0 controls, DEL and C1 controls are exactly the characters of category Cc.
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_NONCHARACTER: Final = re.compile(
    "[\ufdd0-\ufdef"
    + "".join(chr(plane << 16 | 0xFFFE) + chr(plane << 16 | 0xFFFF) for plane in range(17))
    + "]"
)
# What nearly every segment consists of, told at once: whole listings are checked segment by segment.
_PLAIN: Final = re.compile(rf"[A-Za-z0-9_-][A-Za-z0-9_. -]{{0,{MAX_SEGMENT_BYTES - 1}}}")
_AREA: Final = re.compile(r"[a-z0-9][a-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class PathParts:
    """The four segments of a file's path; `name` is without `.md`."""

    scope: str
    entity_id: str
    area: str
    name: str


@dataclass(frozen=True, slots=True)
class PrefixParts:
    """The one to three segments of a prefix; None for those that it leaves open."""

    scope: str
    entity_id: str | None = None
    area: str | None = None


def segment_problem(text: str) -> str | None:
    """Say which rule of a path segment `text` breaks, or None where it keeps them all.

    The text completes "it ..." and never repeats the value. Raises nothing for any str.
    """
    if _PLAIN.fullmatch(text):
        return None
    if not text:
        return "must not be empty"
    if text in {".", ".."}:
        return "must not be '.' or '..'"
    if "/" in text or "\\" in text:
        return "must not hold a slash or a backslash"
    if _CONTROL.search(text):
        return "must not hold a control character"
    if _SURROGATE.search(text):
        return "must be valid UTF-8; it holds a lone surrogate"
    if _NONCHARACTER.search(text):
        return "must not hold a noncharacter"
    size = len(text.encode())
    if size > MAX_SEGMENT_BYTES:
        return f"has {size} bytes of UTF-8, and at most {MAX_SEGMENT_BYTES} are possible"
    return None


def is_valid_segment(text: str) -> bool:
    """Tell whether `text` may be a scope, an entity id, an area or a name."""
    return segment_problem(text) is None


def is_area_slug(text: str) -> bool:
    """Tell whether all of `text` is a lower-case slug, which agents need to address an area.

    Only the exact word `system` is the system area, so look-alikes must not be addressable at all.
    """
    return _AREA.fullmatch(text) is not None


def build_path(scope: str, entity_id: str, area: str, name: str) -> str:
    """Return the path of the file `name`; `.md` is always added, whatever the name ends in.

    Raises ValueError that names the first argument which is no valid segment, TypeError for a
    value that is no str.
    """
    segments = {"scope": scope, "entity_id": entity_id, "area": area, "name": name}
    for argument, value in segments.items():
        _check_segment(argument, value)
    return "/".join(segments.values()) + _SUFFIX


def build_prefix(scope: str, entity_id: str | None = None, area: str | None = None) -> str:
    """Return the prefix of a scope, an entity or an area, with its final `/`.

    None leaves a segment out; an empty string does not. Raises ValueError for a segment that is not
    valid and for an area without an entity, TypeError for a value that is no str.
    """
    if area is not None and entity_id is None:
        msg = "area needs an entity_id"
        raise ValueError(msg)
    prefix = ""
    for argument, value in {"scope": scope, "entity_id": entity_id, "area": area}.items():
        if value is None and argument != "scope":
            continue
        _check_segment(argument, value)
        prefix += f"{value}/"
    return prefix


def parse_path(path: str) -> PathParts:
    """Take a path apart. Raises ValueError unless `build_path` could have made it."""
    segments = path.split("/")
    if len(segments) == 4 and segments[3].endswith(_SUFFIX):
        segments[3] = segments[3].removesuffix(_SUFFIX)
        if _is_scope(segments[0]) and all(map(is_valid_segment, segments)):
            return PathParts(*segments)
    msg = "not the path of a memory file"
    raise ValueError(msg)


def parse_prefix(prefix: str) -> PrefixParts:
    """Take a prefix apart. Raises ValueError unless `build_prefix` could have made it."""
    segments = prefix.split("/")
    if (
        2 <= len(segments) <= 4
        and not segments.pop()
        and _is_scope(segments[0])
        and all(map(is_valid_segment, segments))
    ):
        return PrefixParts(*segments)
    msg = "not the prefix of memory files"
    raise ValueError(msg)


def is_valid_path(path: str) -> bool:
    """Tell whether `path` is one that `build_path` makes."""
    try:
        parse_path(path)
    except ValueError:
        return False
    return True


def is_valid_prefix(prefix: str) -> bool:
    """Tell whether `prefix` is one that `build_prefix` makes."""
    try:
        parse_prefix(prefix)
    except ValueError:
        return False
    return True


def _is_scope(text: str) -> bool:
    return not text.startswith(RESERVED_SCOPE_PREFIX)


def _check_segment(argument: str, value: object) -> None:
    """Raise for the first rule that one argument breaks, without repeating its value."""
    if not isinstance(value, str):
        msg = f"{argument} must be a str, not {type(value).__name__}"
        raise TypeError(msg)
    problem = segment_problem(value)
    if problem is None and argument == "scope" and not _is_scope(value):
        problem = f"must not begin with {RESERVED_SCOPE_PREFIX!r}"
    if problem is not None:
        msg = f"{argument} {problem}"
        raise ValueError(msg)
