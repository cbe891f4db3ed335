"""Telemetry: one record for each tool call, handed to a function of the adopter's.

An observer sees the whole conversation with the memory, contents included. It runs on the thread
of the call, before the answer goes out, so it has to be fast and safe over threads.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from wenchang.identity import is_async_callable

__all__ = ["CallObserver", "ToolCallRecord", "check_observer", "notify"]

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ToolCallRecord:
    """What one tool call was asked and what it answered.

    Over MCP: `tool` is the registered name with its prefix, `arguments` are those received, `result`
    is a copy of the payload sent, `request_id` is the request's, and `duration_s` covers the whole
    call: credentials, identity, tool and rendering. In a direct call: the bare name, every parameter
    with defaults filled in, the rendered result or error, None, and the time of the method alone.
    `is_error` tells whether `result` is a rendered error. `operation` is the name under which the
    call is metered, where the tool has one.

    `arguments` and `result` are read-only and made from deep copies: nothing that an observer does
    reaches the tool or the client. A value that cannot be copied is shown as its type's name.
    """

    tool: str
    arguments: Mapping[str, Any]
    result: Mapping[str, Any]
    is_error: bool
    request_id: str | None
    duration_s: float
    operation: str | None = None

    def __post_init__(self) -> None:
        """Replace both mappings by read-only deep copies."""
        object.__setattr__(self, "arguments", _frozen_copy(self.arguments))
        object.__setattr__(self, "result", _frozen_copy(self.result))


CallObserver = Callable[[ToolCallRecord], object]
"""What `on_call` takes: a plain function; what it returns is ignored."""


def check_observer(on_call: CallObserver | None) -> CallObserver | None:
    """Return `on_call`; raise TypeError unless it is None or a plain callable."""
    if on_call is None:
        return None
    if not callable(on_call):
        msg = f"on_call must be callable or None, not {type(on_call).__name__}"
        raise TypeError(msg)
    if is_async_callable(on_call):
        msg = "on_call must be a plain function, not async"
        raise TypeError(msg)
    return on_call


def notify(on_call: CallObserver | None, make_record: Callable[[], ToolCallRecord]) -> None:
    """Make the record and hand it to the observer; without one, do nothing.

    An exception of the observer is logged at ERROR and goes no further: a fault in telemetry must
    not fail a call that has already taken effect.
    """
    if on_call is None:
        return
    try:
        on_call(make_record())
    except Exception:
        _logger.exception("the on_call observer raised")


def _frozen_copy(mapping: Mapping[str, Any]) -> Mapping[str, Any]:
    return MappingProxyType({key: _copy(value) for key, value in mapping.items()})


def _copy(value: Any) -> Any:
    try:
        return copy.deepcopy(value)
    except Exception:  # noqa: BLE001 - an argument may be of any class, with any fault
        return f"<{type(value).__name__}>"
