"""The checks of the core store's options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from wenchang.paths import segment_problem

__all__ = ["check_positive", "check_scope_priority", "check_storage", "stamp"]

_STORAGE_METHODS: Final = ("get", "put", "put_if_version", "delete_if_version", "list_page")


def check_positive(name: str, value: int) -> int:
    """Return `value`; TypeError unless it is an int (a bool is none), ValueError below 1."""
    if type(value) is not int:
        msg = f"{name} must be an int, not {type(value).__name__}"
        raise TypeError(msg)
    if value < 1:
        msg = f"{name} must be positive"
        raise ValueError(msg)
    return value


def check_scope_priority(scopes: Sequence[str]) -> tuple[str, ...]:
    """Return the scopes as a tuple.

    Raises TypeError for a bare str or bytes, no sequence, and a member that is no str; ValueError for
    one that is no path segment or is repeated.
    """
    if isinstance(scopes, str | bytes | bytearray) or not isinstance(scopes, Sequence):
        msg = f"scope_priority must be a sequence of str, not {type(scopes).__name__}"
        raise TypeError(msg)
    for scope in scopes:
        if not isinstance(scope, str):
            msg = f"scope_priority must hold str, not {type(scope).__name__}"
            raise TypeError(msg)
        problem = segment_problem(scope)
        if problem is not None:
            msg = f"an entry of scope_priority {problem}"
            raise ValueError(msg)
    if len(set(scopes)) != len(scopes):
        msg = "scope_priority must name each scope once"
        raise ValueError(msg)
    return tuple(scopes)


def check_storage(storage: object) -> None:
    """Raise TypeError unless `storage` has the five methods of the contract."""
    for method in _STORAGE_METHODS:
        # Not isinstance: a wrapper that forwards by __getattr__ is a storage too.
        if isinstance(storage, type) or not callable(getattr(storage, method, None)):
            msg = f"storage must be a Storage; {type(storage).__name__} has no method {method}"
            raise TypeError(msg)


def stamp(clock: Callable[[], datetime]) -> datetime:
    """Return the clock's time in UTC; TypeError or ValueError for a clock that gives no aware one."""
    moment = clock()
    if not isinstance(moment, datetime):
        msg = f"clock must return a datetime, not {type(moment).__name__}"
        raise TypeError(msg)
    if moment.utcoffset() is None:
        msg = "clock must return a datetime with a time zone"
        raise ValueError(msg)
    return moment.astimezone(UTC)
