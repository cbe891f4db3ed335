"""Drawn examples in a case: the settings that all of them share, and a bound on the search for a small one.

Hypothesis looks for a smaller example once it has found one that fails. Over a slow service that would
take minutes and end as a case that hangs, so the search is ended and the smallest one so far reported.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from hypothesis import HealthCheck, settings
from hypothesis.errors import HypothesisException

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from wenchang_conformance.trace import Trace

__all__ = ["Exploration", "drawing"]

SHRINK_SECONDS: Final = 10.0


def drawing(examples: int, *, steps: int = 50) -> settings:
    """Return the settings of a case that draws `examples` examples, the same ones in each run.

    A state machine takes up to `steps` steps in each of them.
    """
    return settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),  # pyright: ignore[reportArgumentType] # an enumeration to run time
        report_multiple_bugs=False,
        stateful_step_count=steps,
    )


class Exploration:
    """The examples of one case. The steps in a report are those of the example that failed."""

    def __init__(self, trace: Trace, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Begin without examples; each begins with an empty `trace`."""
        self._trace = trace
        self._monotonic = monotonic
        self._until = 0.0
        self._first: _Failure | None = None
        self._last: _Failure | None = None

    def begin(self) -> None:
        """Begin an example; ends the search where it has taken long enough."""
        if self._first is not None and self._monotonic() > self._until:
            raise _SearchEnded
        self._trace.clear()

    @contextmanager
    def step(self) -> Iterator[None]:
        """Carry out a part of an example and remember how it fails."""
        try:
            yield
        except HypothesisException:
            raise
        except Exception as error:
            self._last = _Failure(error, self._trace.text())
            if self._first is None:
                self._first = self._last
                self._until = self._monotonic() + SHRINK_SECONDS
            raise

    def run(self, explore: Callable[[], object]) -> None:
        """Explore, and raise the smallest failure that was found.

        It is the first one where the storage answers one example in different ways: then what was
        found later may come of what earlier examples left behind.
        """
        try:
            explore()
        except _SearchEnded:
            self._report(self._last)
            raise
        except HypothesisException:
            self._report(self._first)
            raise

    def _report(self, failure: _Failure | None) -> None:
        """Raise a failure with its steps; return where there is none."""
        if failure is not None:
            self._trace.replace(failure.steps)
            raise failure.error from failure.error.__cause__


class _Failure(NamedTuple):
    """How an example failed, and the steps that led there."""

    error: Exception
    steps: str


class _SearchEnded(BaseException):
    """Enough time was spent on looking for a smaller example."""
