"""One key as a register: what each operation needs of the state, and what it makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wenchang_conformance.linearizability.operations import (
    READS,
    Kind,
    Operation,
    Outcome,
    Presence,
)

ABSENT = 0
"""The state of a key that has no object. Every write of the key has a state of its own."""

ANY = -1
KEEP = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One point in time at which an operation meets the state.

    It is legal in a state that equals `equals` and differs from `differs`; ANY asks nothing. It
    makes the state `effect`; KEEP leaves it. `end` is None for a step that may come at any time
    after `start`, or never (an unknown outcome).
    """

    operation: Operation
    start: int
    end: int | None
    equals: int = ANY
    differs: int = ANY
    effect: int = KEEP

    def legal(self, state: int) -> bool:
        """Whether the step can be taken in this state."""
        return self.equals in (ANY, state) and self.differs != state


class Register:
    """The steps of one key's operations, and the numbers that stand for its writes.

    With `answers_lost` a delete that returned proves only that the key was absent at some moment
    of the call; the removal itself is an unknown outcome.

    Raises ValueError when two writes share their bytes, which would make them one.
    """

    def __init__(
        self,
        operations: Sequence[Operation],
        *,
        initial: bytes | None = None,
        answers_lost: bool = False,
    ) -> None:
        """Number the writes and translate the operations."""
        self._states: dict[bytes, int] = {}
        self.initial = ABSENT if initial is None else self._state(initial)
        for operation in operations:
            if operation.wrote is not None:
                if operation.wrote in self._states:
                    raise ValueError("two writes to a key have the same bytes; make each unique")
                self._state(operation.wrote)
        self._answers_lost = answers_lost
        self.steps: list[Step] = []
        for operation in operations:
            self.steps += self._translate(operation)

    def _state(self, write: bytes) -> int:
        return self._states.setdefault(write, len(self._states) + 1)

    def _name(self, write: bytes | Presence | None) -> tuple[int, int]:
        """Return `equals` and `differs` for being at this write."""
        if write is None:
            return ABSENT, ANY
        return (ANY, ABSENT) if isinstance(write, Presence) else (self._state(write), ANY)

    def _translate(self, operation: Operation) -> list[Step]:
        outcome = operation.outcome
        if outcome is Outcome.NOT_APPLIED:
            return []
        if operation.kind in READS:
            return [self._read(operation)] if outcome is Outcome.OK else []
        equals, differs, effect = self._write(operation)
        if outcome is Outcome.REFUSED:
            # The very state that the write needed was not there. Of a precondition on a write
            # whose bytes the client never learned, a refusal says nothing.
            if equals == ANY:
                return []
            return [
                Step(operation=operation, start=operation.start, end=operation.end, differs=equals)
            ]
        removed = operation.kind is Kind.DELETE and outcome is Outcome.OK and self._answers_lost
        steps = [
            Step(
                operation=operation,
                start=operation.start,
                end=None if outcome is Outcome.UNKNOWN or removed else operation.end,
                equals=equals,
                differs=differs,
                effect=effect,
            )
        ]
        if removed:
            steps.append(
                Step(operation=operation, start=operation.start, end=operation.end, equals=ABSENT)
            )
        return steps

    def _read(self, operation: Operation) -> Step:
        equals, differs = self._name(operation.saw)
        return Step(
            operation=operation,
            start=operation.start,
            end=operation.end,
            equals=equals,
            differs=differs,
        )

    def _write(self, operation: Operation) -> tuple[int, int, int]:
        """Return `equals`, `differs` and `effect` of a write that takes effect."""
        effect = ABSENT if operation.wrote is None else self._state(operation.wrote)
        if operation.kind is Kind.PUT:
            return ANY, ANY, effect
        if operation.kind is Kind.CREATE:
            return ABSENT, ANY, effect
        return (*self._name(operation.expected), effect)
