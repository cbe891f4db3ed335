"""Checks of single tool arguments. Each returns the checked value or raises `InvalidArgumentError`.

Agents send whatever a model wrote, so types are checked at run time, whatever the annotations say.
The texts say which rule was broken and what would be accepted; none repeats a long value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from wenchang.errors import InvalidArgumentError
from wenchang.facts import fact_line_problem, single_line_problem, text_problem
from wenchang.paths import segment_problem
from wenchang.tools._names import area_problem, name_problem, suggest_area, suggest_name

__all__ = [
    "check_aliases",
    "check_area",
    "check_content",
    "check_cursor",
    "check_description",
    "check_granted",
    "check_line",
    "check_name",
    "check_names_of_arguments",
    "check_new_string",
    "check_old_string",
    "check_optional_aliases",
    "check_optional_description",
    "check_optional_version",
    "check_segment",
    "check_text",
    "check_version",
    "quote",
]

MAX_QUOTED: Final = 64
"""Characters of a caller's own text that an error repeats."""


def quote(text: str) -> str:
    """Return `text` escaped to printable ASCII, without quotes, at most 64 characters long."""
    escaped = text.encode("unicode_escape").decode("ascii")
    return escaped if len(escaped) <= MAX_QUOTED else escaped[: MAX_QUOTED - 3] + "..."


def check_names_of_arguments(
    given: Mapping[str, object], known: Sequence[str], required: Iterable[str]
) -> None:
    """Refuse an unknown argument (named escaped, at most 64 characters), then a missing one."""
    for name in given:
        if name not in known:
            takes = f"its arguments are: {', '.join(known)}" if known else "it takes no arguments"
            raise InvalidArgumentError(
                quote(name) or "''", f"the tool has no such argument; {takes}"
            )
    for name in required:
        if name not in given:
            raise InvalidArgumentError(name, "it is required")


def check_text(argument: str, value: object) -> str:
    """Return `value` as an exact str of valid UTF-8."""
    if not isinstance(value, str):
        raise InvalidArgumentError(argument, f"it must be a string, not {_kind(value)}")
    try:
        value.encode()
    except UnicodeEncodeError:
        problem = "it must be valid UTF-8; it holds a lone surrogate"
        raise InvalidArgumentError(argument, problem) from None
    return str.__str__(value)


def check_granted(scope: str, available: Iterable[str]) -> None:
    """Refuse a scope that is not among the caller's; the text lists those, sorted."""
    scopes = sorted(available)
    if scope in scopes:
        return
    listed = f"available scopes: {', '.join(scopes)}" if scopes else "no scope is available"
    raise InvalidArgumentError(
        "scope", f"scope '{quote(scope)}' is not available in this session; {listed}"
    )


def check_segment(argument: str, value: str) -> None:
    """Refuse an area or a name that cannot be one segment of a location."""
    problem = segment_problem(value)
    if problem is not None:
        suggest = suggest_area if argument == "area" else suggest_name
        raise _with_spelling(argument, f"it {problem}", suggest(value))


def check_area(value: str) -> None:
    """Refuse a segment that is no slug, matched over its whole text."""
    problem = area_problem(value)
    if problem is not None:
        raise _with_spelling("area", problem, suggest_area(value))


def check_name(value: str) -> None:
    """Refuse a segment that holds what cannot be seen, an outer space, or another normal form."""
    problem = name_problem(value)
    if problem is not None:
        raise _with_spelling("name", problem, suggest_name(value))


def check_content(value: object) -> str:
    """Return a body: any text without NUL, kept as it is."""
    return _check_body("content", value)


def check_line(value: object) -> str:
    """Return the one fact line that is appended."""
    text = check_text("line", value)
    return _refuse_if("line", fact_line_problem(text), text)


def check_new_string(value: object) -> str:
    """Return a replacement: any text without NUL, also none."""
    return _check_body("new_string", value)


def check_old_string(value: object) -> str:
    """Return a quote: any string that is not empty. One that no body can hold never matches."""
    if not isinstance(value, str):
        raise InvalidArgumentError("old_string", f"it must be a string, not {_kind(value)}")
    if not value:
        raise InvalidArgumentError("old_string", "it must not be empty: quote the text to replace")
    return str.__str__(value)


def check_description(value: object) -> str:
    """Return a description: one line, also an empty one."""
    text = check_text("description", value)
    return _refuse_if("description", single_line_problem(text), text)


def check_optional_description(value: object) -> str | None:
    """Return a description or None, which leaves the stored one."""
    return None if value is None else check_description(value)


def check_aliases(value: object) -> tuple[str, ...]:
    """Return aliases: a list of single lines, in the given order."""
    if isinstance(value, str | bytes | bytearray) or not isinstance(value, Sequence):
        raise InvalidArgumentError(
            "aliases", f'it must be an array of strings such as ["tea"], not {_kind(value)}'
        )
    aliases = []
    for index, alias in enumerate(value):
        problem = (
            single_line_problem(alias)
            if isinstance(alias, str)
            else f"it must be a string, not {_kind(alias)}"
        )
        if problem is not None:
            raise InvalidArgumentError("aliases", f"item {index}: {problem}")
        aliases.append(str.__str__(alias))
    return tuple(aliases)


def check_optional_aliases(value: object) -> tuple[str, ...] | None:
    """Return aliases or None, which adds none."""
    return None if value is None else check_aliases(value)


def check_version(value: object) -> str:
    """Return a version: any string, since one that was never issued is merely a stale one."""
    if value is None:
        raise InvalidArgumentError(
            "expected_version",
            "it must be the version that was read, not null; only write_file takes null, to create",
        )
    return _check_opaque("expected_version", value)


def check_optional_version(value: object) -> str | None:
    """Return a version, or None for a create."""
    return None if value is None else _check_opaque("expected_version", value)


def check_cursor(value: object) -> str | None:
    """Return a cursor or None; whether it is a valid one is for the store to say."""
    return None if value is None else check_text("cursor", value)


def _check_opaque(argument: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidArgumentError(argument, f"it must be a string, not {_kind(value)}")
    return str.__str__(value)


def _check_body(argument: str, value: object) -> str:
    text = check_text(argument, value)
    return _refuse_if(argument, text_problem(text), text)


def _refuse_if(argument: str, problem: str | None, text: str) -> str:
    if problem is not None:
        raise InvalidArgumentError(argument, problem)
    return text


def _with_spelling(argument: str, problem: str, spelling: str | None) -> InvalidArgumentError:
    """Make the error, with an accepted spelling to copy where there is one."""
    if spelling is None:
        spelling_text = "choose another, such as 'preferences'"
    else:
        spelling_text = f"an accepted spelling is '{spelling}'"
    return InvalidArgumentError(argument, f"{problem}; {spelling_text}")


# How JSON calls the types that a tool call can carry.
_KINDS: Mapping[type, str] = {
    type(None): "null",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "an array",
    tuple: "an array",
    dict: "an object",
}


def _kind(value: object) -> str:
    return _KINDS.get(type(value), type(value).__name__)
