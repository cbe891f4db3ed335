"""How long a call waits: its deadline and the pauses between attempts."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from wenchang.files.policy import TreePolicy

__all__ = ["Patience"]


class Patience:
    """The clock and the pauses of one tree object; tests put their own in."""

    def __init__(
        self,
        policy: TreePolicy,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._policy = policy
        self._monotonic = monotonic
        self._sleep = sleep
        # The system's, since a forked child must not pause in step with its parent.
        self._rng = random.SystemRandom()

    def deadline(self) -> float:
        """Return the moment at which a call that begins now gives up."""
        return self._monotonic() + self._policy.deadline

    def is_over(self, deadline: float) -> bool:
        """Tell whether a deadline has passed."""
        return self._monotonic() >= deadline

    def remaining(self, deadline: float) -> float:
        """Return the seconds left."""
        return deadline - self._monotonic()

    def pause(self, attempt: int, deadline: float) -> None:
        """Wait before the next attempt, never past the deadline."""
        ceiling = min(self._policy.backoff_cap, self._policy.backoff_base * 2.0 ** min(attempt, 16))
        wait = min(self._rng.uniform(0, ceiling), max(0.0, self.remaining(deadline)))
        if wait > 0:
            self._sleep(wait)
