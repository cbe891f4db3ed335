"""Errors as text for a model, with nothing in it that is not the model's business.

What the agent did wrong, or what another agent did meanwhile, is told in full. Of an outage it is told
that there is one and whether the change was made; of anything unforeseen nothing at all: that text may
hold a path of the host, a URL or a key, and goes to the log of the process instead.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from wenchang.errors import BackendUnavailableError, WenchangError
from wenchang.files.errors import InvalidArgumentError, TreeStateError

__all__ = ["refusal_text", "unforeseen_text"]

_log = logging.getLogger(__name__)

_UNFORESEEN: Final = (
    "The files failed in an unforeseen way. Whether a change was made is not known: read the file "
    "before repeating one. Tell the user if it happens again."
)


def refusal_text(error: WenchangError, arguments: Mapping[str, str]) -> str:
    """Return what a model reads of an error; `arguments` are the harness's names for our arguments."""
    if isinstance(error, BackendUnavailableError):
        # Made anew: the detail came from a storage, and not every storage is careful with it.
        return BackendUnavailableError(error.reason, outcome=error.outcome).message
    if isinstance(error, TreeStateError):
        return TreeStateError(error.reason, error.path).message
    if isinstance(error, InvalidArgumentError):
        name = arguments.get(error.argument, error.argument)
        before = f"Argument {error.argument} is invalid"
        return error.message.replace(before, f"Argument {name} is invalid", 1)
    return error.message


def unforeseen_text(error: Exception) -> str:
    """Log an error that no adapter knows, and return what a model may read of it."""
    _log.error("an adapter met an error that it does not know", exc_info=error)
    return _UNFORESEEN
