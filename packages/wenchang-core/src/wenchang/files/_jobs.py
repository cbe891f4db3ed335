"""What a batch of the commit queue is made of, and the errors that calls end in."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Final, Protocol

from wenchang.errors import BackendUnavailableError
from wenchang.files._rules import Desk
from wenchang.files.errors import StaleSnapshotError, TreeStateError

__all__ = ["NO_RESULT", "Job", "Request", "not_applied", "own_copy"]

NO_RESULT: Final = object()


class Request(Protocol):
    """What a batch decides: a call (`_calls`), or the work of garbage collection and purge."""

    @property
    def path(self) -> str:
        """The path it is about; "" for none."""
        ...

    @property
    def effect_key(self) -> str | None:
        """The caller's key for its outcome."""
        ...

    @property
    def operation(self) -> str:
        """Its name."""
        ...

    def digest(self) -> str:
        """Return a digest of its arguments."""
        ...

    def decide(self, desk: Desk) -> object:
        """Carry it out on the working state, or raise a refusal."""
        ...


@dataclass(eq=False, slots=True, kw_only=True)
class Job:
    """A request on its way. It ends in a result or an error, once."""

    request: Request
    deadline: float
    result: object = NO_RESULT
    error: BaseException | None = None
    in_flight: bool = False
    """Whether a commit that carries it was sent and its outcome is not known yet."""

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self.error is not None or self.result is not NO_RESULT


def not_applied(error: Exception) -> Exception:
    """Return the error for a call that certainly changed nothing, whatever became of its uploads."""
    if isinstance(error, StaleSnapshotError):
        return TreeStateError("missing_object")
    if isinstance(error, BackendUnavailableError) and error.outcome != "not_applied":
        plain = BackendUnavailableError(error.reason, outcome="not_applied")
        plain.__cause__ = error
        return plain
    return error


def own_copy(error: Exception) -> Exception:
    """Return a copy for one caller: an exception raised in two threads mixes up their tracebacks."""
    try:
        own = copy.copy(error)
    except Exception:  # noqa: BLE001 - somebody else's exception; the original does then
        return error
    own.__cause__ = error.__cause__ or error
    return own
