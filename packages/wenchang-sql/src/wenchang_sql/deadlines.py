"""The moment at which the running attempt of this thread has to end, for the drivers to see.

Neither libpq nor PyMySQL can bound a whole exchange: their time-outs begin anew with every byte
or end with the connection's own. The drivers' connections (`postgresql`, `mysql`) therefore ask here
whenever they wait. It is per thread because connecting happens deep inside the pool.
"""

from __future__ import annotations

import math
import threading
import time
from types import TracebackType

__all__ = ["AttemptTimedOut", "Until", "remaining"]

_current = threading.local()


class AttemptTimedOut(TimeoutError):  # noqa: N818 - what happened to the attempt
    """The time of the running attempt is over."""

    def __init__(self) -> None:
        super().__init__("the database did not answer in time")


class Until:
    """A context in which `remaining` counts down to `ends` (on the monotonic clock)."""

    __slots__ = ("_before", "_ends")

    def __init__(self, ends: float) -> None:
        """Keep the moment."""
        self._ends = ends
        self._before = math.inf

    def __enter__(self) -> None:
        """Begin to count."""
        self._before = getattr(_current, "ends", math.inf)
        _current.ends = self._ends

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Return to what held before."""
        _current.ends = self._before


def remaining() -> float:
    """Return the seconds left to the running attempt: infinite outside of one, never negative.

    Raises `AttemptTimedOut` when none are left.
    """
    ends: float = getattr(_current, "ends", math.inf)
    left = ends - time.monotonic()
    if left <= 0:
        raise AttemptTimedOut
    return left
