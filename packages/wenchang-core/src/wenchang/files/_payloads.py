"""What an agent sees of a failed call: one JSON object, made of listed fields only."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from wenchang import errors as general
from wenchang.errors import ErrorCategory, WenchangError
from wenchang.files import errors
from wenchang.files._answers import json_chars

__all__ = ["FILE_ERROR_CODES", "FILE_ERROR_NAMES", "render_error"]

_logger = logging.getLogger(__name__)

_FILE_ERRORS: Final = (
    errors.VersionConflictError,
    errors.NotFoundError,
    errors.AlreadyExistsError,
    errors.EditMatchError,
    errors.LimitExceededError,
    errors.InvalidArgumentError,
    errors.EffectKeyReusedError,
    errors.TreeStateError,
    errors.NoFilesError,
)

# For each class its `code` and the attributes that an agent needs beside the message. The first class
# of an error's ancestry that stands here gives its `error`.
_KNOWN: Final[Mapping[type[WenchangError], tuple[str, tuple[str, ...]]]] = {
    **{cls: (cls.code, cls.FIELDS) for cls in _FILE_ERRORS},
    # What the surfaces around the tools raise.
    general.InvalidArgumentError: (errors.InvalidArgumentError.code, ("argument",)),
    general.RestrictedScopeError: ("RESTRICTED", ("scope", "reason", "required_roles")),
    general.ResolverFailureError: ("NO_IDENTITY", ()),
    general.IdentityUnavailableError: ("UNAVAILABLE", ()),
    general.BackendUnavailableError: ("UNAVAILABLE", ("reason", "outcome")),
    # An adopter's own error is shown under the name of its category's class.
    general.RecoverableError: ("REFUSED", ()),
    general.PermanentError: ("REFUSED", ()),
    general.TransientError: ("UNAVAILABLE", ()),
}
_INTERNAL_NAME: Final = "InternalError"
_INTERNAL_CODE: Final = "INTERNAL"

FILE_ERROR_NAMES: Final = tuple(dict.fromkeys([*(cls.__name__ for cls in _KNOWN), _INTERNAL_NAME]))
"""Every `error` that a payload can have."""
FILE_ERROR_CODES: Final = tuple(
    dict.fromkeys([*(code for code, _ in _KNOWN.values()), _INTERNAL_CODE])
)
"""Every `code` that a payload can have."""


def render_error(error: Exception, *, max_chars: int | None = None) -> dict[str, Any]:
    """Return the payload of a failed call. Accepts every exception and never raises.

    `code` is stable and tells what happened, `category` what to do. What is none of our errors is
    `INTERNAL`, without its own text. With `max_chars` the content that a conflict brings along is
    left out where the payload would be longer than that as compact JSON.
    """
    try:
        payload = _render(error)
    except Exception:
        # Only a subclass that overrides our properties gets here; it must not hide the failure.
        _logger.exception("an error of type %s cannot be rendered", type(error).__name__)
        payload = _internal()
    if max_chars is not None and "content" in payload and json_chars(payload) > max_chars:
        del payload["content"]
    return payload


def _render(error: Exception) -> dict[str, Any]:
    for cls in type(error).__mro__:
        if cls in _KNOWN and isinstance(error, WenchangError):
            code, fields = _KNOWN[cls]
            payload: dict[str, Any] = {
                "error": cls.__name__,
                "category": str(error.category),
                "code": code,
                "message": error.message,
            }
            for name in fields:
                value = getattr(error, name, None)
                if value is not None:
                    payload[name] = sorted(value) if isinstance(value, frozenset) else value
            return payload
    return _internal()


def _internal() -> dict[str, Any]:
    return {
        "error": _INTERNAL_NAME,
        "category": str(ErrorCategory.INTERNAL),
        "code": _INTERNAL_CODE,
        "message": (
            "An internal error occurred. Do not repeat the call; carry on without this file or "
            "result."
        ),
    }
