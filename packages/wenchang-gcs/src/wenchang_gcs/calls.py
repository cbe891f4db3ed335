"""One call of a caller: whatever requests it takes, they end by one deadline."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeVar

from wenchang.storage import BackendUnavailableError
from wenchang.storage.outcomes import ReadAttempt, RetryPolicy, Settler

__all__ = ["Call", "Timer"]

T = TypeVar("T")

_SHORTEST: Final = 0.001
# It spreads repetitions and protects nothing.
_JITTER: Final = random.Random()  # noqa: S311 - not a secret


class Timer:
    """Seconds that run out, shared by the requests of one attempt."""

    __slots__ = ("_ends",)

    def __init__(self, seconds: float) -> None:
        """Begin now."""
        self._ends = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds left, but never none: a client takes no time-out of 0."""
        return max(_SHORTEST, self._ends - time.monotonic())


class Call:
    """The deadline of one call, which may have several steps one after the other."""

    __slots__ = ("_ends", "_policy")

    def __init__(self, policy: RetryPolicy) -> None:
        """Begin now."""
        self._policy = policy
        self._ends = time.monotonic() + policy.deadline

    def settler(self) -> Settler:
        """Return what settles the next step within the time that is left.

        Raises `BackendUnavailableError` when none is. For use between steps, when nothing of the call
        is under way.
        """
        left = self._ends - time.monotonic()
        if left <= 0:
            raise BackendUnavailableError("timeout", outcome="not_applied")
        return Settler(replace(self._policy, deadline=left), confirm_refusals=True, rng=_JITTER)

    def read(self, attempt: Callable[[float], ReadAttempt[T]]) -> T:
        """Carry out one step that only reads; see `Settler.read`."""
        return self.settler().read(attempt)
