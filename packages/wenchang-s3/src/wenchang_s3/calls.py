"""One call of a caller, which may take several requests: all of them end by one deadline."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeVar

from wenchang.storage import BackendUnavailableError
from wenchang.storage.outcomes import ReadAttempt, RetryPolicy, Settler

__all__ = ["Call"]

T = TypeVar("T")

# Jitter only spreads retries; it protects nothing.
_RNG: Final = random.Random()  # noqa: S311 - not a secret


class Call:
    """Owns the deadline of one call."""

    __slots__ = ("_attempt", "_ends", "_policy")

    def __init__(self, policy: RetryPolicy) -> None:
        """Begin now."""
        self._policy = policy
        # A third of the whole, also when little is left: see `RetryPolicy`.
        self._attempt = min(policy.attempt_timeout, policy.deadline / 3)
        self._ends = time.monotonic() + policy.deadline

    def remaining(self) -> float:
        """Return the seconds left; raise `BackendUnavailableError` if there are none.

        For use between requests: nothing of this call can then be under way.
        """
        remaining = self._ends - time.monotonic()
        if remaining <= 0:
            raise BackendUnavailableError("timeout", outcome="not_applied")
        return remaining

    def attempt(self) -> float:
        """Return the seconds that the next single request may take; raises as `remaining` does."""
        return min(self._attempt, self.remaining())

    def settler(self) -> Settler:
        """Return what settles the next step of the call, within what is left of its time."""
        policy = replace(self._policy, deadline=self.remaining(), attempt_timeout=self._attempt)
        return Settler(policy, confirm_refusals=True, rng=_RNG)

    def read(self, attempt: Callable[[float], ReadAttempt[T]]) -> T:
        """Repeat a read until it is answered; see `Settler.read`."""
        return self.settler().read(attempt)
