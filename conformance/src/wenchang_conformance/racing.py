"""Threads that start together, end in bounded time, and report whatever they met."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from wenchang_conformance.bench import Bench, ContractViolation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["Result", "fine_switching", "race", "run_threads"]

T = TypeVar("T")

_GRACE_SECONDS: Final = 60.0


class Result(Generic[T]):
    """What became of one racer: its value, or the error it raised."""

    __slots__ = ("error", "value")

    def __init__(self, value: T | None, error: Exception | None) -> None:
        """Keep one of the two."""
        self.value = value
        self.error = error

    def __repr__(self) -> str:
        return (
            f"{self.value!r}"
            if self.error is None
            else f"{type(self.error).__name__}: {self.error}"
        )


def race(bench: Bench, racers: Sequence[Callable[[], T]]) -> list[Result[T]]:
    """Run each racer in a thread of its own, all starting together; return their results in order.

    Raises `ContractViolation` if one has not ended when the case's time and a grace are over.
    """
    barrier = threading.Barrier(len(racers))
    results: list[Result[T] | None] = [None] * len(racers)

    def run(index: int, racer: Callable[[], T]) -> None:
        barrier.wait(_GRACE_SECONDS)
        try:
            results[index] = Result(racer(), None)
        except Exception as error:  # noqa: BLE001 - a racer reports whatever it met
            results[index] = Result(None, error)

    threads = [
        threading.Thread(target=run, args=(index, racer), daemon=True, name=f"racer {index}")
        for index, racer in enumerate(racers)
    ]
    for thread in threads:
        thread.start()
    patience = bench.sizes.race_seconds + bench.hooks.deadline + _GRACE_SECONDS
    for thread in threads:
        thread.join(patience)
    hung = [thread.name for thread in threads if thread.is_alive()]
    if hung:
        msg = f"{len(hung)} of {len(threads)} threads that share the storage did not come back: a call hangs"
        raise ContractViolation(msg)
    return [result for result in results if result is not None]


def run_threads(bench: Bench, tasks: Sequence[Callable[[], None]]) -> None:
    """Run the tasks as `race` does and raise the first error that one of them raised."""
    for result in race(bench, tasks):
        if result.error is not None:
            raise result.error


@contextmanager
def fine_switching() -> Iterator[None]:
    """Let threads take turns often, so that a gap between two steps is found."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
