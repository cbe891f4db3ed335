"""What an agent sees: results and errors as plain JSON objects.

Only fields from fixed lists are ever copied, so nothing that an object happens to carry (a storage
path, an entity id, an exception's own text) can reach an agent by accident.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any, Final

from wenchang.errors import (
    BackendUnavailableError,
    ErrorCategory,
    FileQuotaExceededError,
    IdentityUnavailableError,
    InvalidArgumentError,
    MetadataFormatError,
    NotFoundError,
    OversizeWriteError,
    PermanentError,
    RecoverableError,
    ReplaceFactMatchError,
    ResolverFailureError,
    RestrictedScopeError,
    TransientError,
    VersionConflictError,
    WenchangError,
)
from wenchang.paths import parse_path, parse_prefix
from wenchang.records import (
    CappedPrefix,
    ListPage,
    MemoryFile,
    MemoryIndex,
    render_entry,
    render_file,
)

__all__ = [
    "ERROR_NAMES",
    "INTERNAL_ERROR_NAME",
    "Payload",
    "render_error",
    "render_result",
    "to_json",
]

_logger = logging.getLogger(__name__)

Payload = dict[str, Any]
"""A JSON object, made anew for each call."""

INTERNAL_ERROR_NAME: Final = "InternalError"
"""The `error` of a failure that is none of ours; its own class and text are not for agents."""

_INTERNAL_MESSAGE: Final = (
    "An internal error occurred. Do not repeat the call; carry on without this file or result."
)
_CORRUPT_GUIDANCE: Final = (
    "write_file with the version shown in the index replaces it, delete_file removes it."
)

# For each error class the attributes an agent needs beside the message, in the order shown. The
# first class of an error's ancestry that stands here gives its `error`.
_FIELDS: Final[Mapping[type, tuple[str, ...]]] = {
    VersionConflictError: ("content", "version", "description", "aliases"),
    OversizeWriteError: ("size", "limit"),
    FileQuotaExceededError: ("limit",),
    ReplaceFactMatchError: ("content", "version", "match_count"),
    InvalidArgumentError: ("argument",),
    NotFoundError: ("reason",),
    RestrictedScopeError: ("scope", "reason", "required_roles"),
    ResolverFailureError: (),
    IdentityUnavailableError: (),
    BackendUnavailableError: ("reason", "outcome"),
    # An adopter's own error is shown under the name of its category's class.
    RecoverableError: (),
    PermanentError: (),
    TransientError: (),
}


ERROR_NAMES: Final = (
    *(cls.__name__ for cls in _FIELDS),
    "MetadataFormatError",
    "UnicodeDecodeError",
    INTERNAL_ERROR_NAME,
)
"""Every `error` that a payload can have."""


def render_result(value: MemoryFile | MemoryIndex | ListPage | None) -> Payload:
    """Return the payload of a successful call: a file, an index, a page, or `{"ok": true}` for None.

    Raises TypeError for anything else and ValueError where a client returned an impossible path.
    """
    if value is None:
        return {"ok": True}
    if isinstance(value, MemoryFile):
        return render_file(value)
    if isinstance(value, MemoryIndex):
        return {
            "entries": [render_entry(entry) for entry in value.entries],
            "capped": [_render_capped(row) for row in value.capped],
        }
    if isinstance(value, ListPage):
        return {
            "entries": [render_entry(entry) for entry in value.entries],
            "next_cursor": value.next_cursor,
        }
    msg = f"not the result of a memory tool: {type(value).__name__}"
    raise TypeError(msg)


def render_error(error: Exception) -> Payload:
    """Return the payload of a failed call. Accepts every exception and never raises.

    `error` is one of the names that `wenchang.schemas.error_schema` lists. Whatever is not a
    `WenchangError` is `internal`: with a generic message, or one that says which metadata key or
    which byte of a stored file is corrupt.
    """
    try:
        return _render(error)
    except Exception:
        # Only a subclass that overrides our properties gets here; it must not hide the failure.
        _logger.exception("an error of type %s cannot be rendered", type(error).__name__)
        return _internal(INTERNAL_ERROR_NAME, _INTERNAL_MESSAGE)


def to_json(payload: Mapping[str, Any]) -> str:
    """Return the text of a payload: compact JSON with non-ASCII characters as they are."""
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":"))


def _render_capped(row: CappedPrefix) -> Payload:
    parts = parse_prefix(row.prefix)
    if parts.area is None:
        msg = "a capped row names no area"
        raise ValueError(msg)
    return {"scope": parts.scope, "area": parts.area, "omitted": row.omitted}


def _location(location: object) -> dict[str, str]:
    """Return what an agent may see of a path or a prefix (never the entity), nothing of others."""
    if not isinstance(location, str):
        return {}
    try:
        if location.endswith("/"):
            prefix = parse_prefix(location)
            area = {} if prefix.area is None else {"area": prefix.area}
            return {"scope": prefix.scope, **area}
        path = parse_path(location)
    except ValueError:
        return {}
    return {"scope": path.scope, "area": path.area, "name": path.name}


def _render(error: Exception) -> Payload:
    if isinstance(error, WenchangError):
        for cls in type(error).__mro__:
            if cls in _FIELDS:
                return _render_known(error, cls, _FIELDS[cls])
    if isinstance(error, MetadataFormatError):
        return _internal("MetadataFormatError", f"The {error}. {_CORRUPT_GUIDANCE}")
    if isinstance(error, UnicodeDecodeError):
        return _internal(
            "UnicodeDecodeError",
            "The stored content of the file is not valid UTF-8: the first bad byte is at offset "
            f"{error.start}. {_CORRUPT_GUIDANCE}",
        )
    return _internal(INTERNAL_ERROR_NAME, _INTERNAL_MESSAGE)


def _render_known(
    error: WenchangError, known: type[WenchangError], fields: tuple[str, ...]
) -> Payload:
    location = _location(getattr(error, "path", None))
    where = ", ".join(f"{key} {value}" for key, value in location.items())
    payload: Payload = {
        "error": known.__name__,
        "category": str(known.category),
        "message": f"{where}: {error.message}" if where else error.message,
        **location,
    }
    for field in fields:
        value = getattr(error, field, None)
        if isinstance(value, frozenset | set):
            value = sorted(value)
        elif isinstance(value, tuple):
            value = list(value)
        if value is not None:
            payload[field] = value
    return payload


def _internal(name: str, message: str) -> Payload:
    return {"error": name, "category": str(ErrorCategory.INTERNAL), "message": message}
