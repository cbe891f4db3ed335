"""Deciding whether a recorded history is linearizable, and saying why not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from wenchang_conformance.linearizability.operations import (
    READS,
    Kind,
    Operation,
    Outcome,
    Presence,
    short,
)
from wenchang_conformance.linearizability.register import Register
from wenchang_conformance.linearizability.search import (
    OutOfBudget,
    Solved,
    Unsolvable,
    linearize,
)

DEFAULT_VISITS = 200_000
_CONTEXT = 24


class Verdict(StrEnum):
    """What can be said of a history. UNDECIDED is neither a pass nor a failure."""

    LINEARIZABLE = "linearizable"
    VIOLATION = "violation"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyReport:
    """The verdict on one key.

    `witness` is an order of the operations that took effect which explains every answer.
    On a violation `culprit` is the operation whose answer cannot be explained: up to its end the
    history is linearizable without its answer and not with it (unless the budget ends the search
    for it early: then it is one with which the history is certainly wrong). `context` are the operations that
    overlapped it or came right before, in order of their start. `visited` counts the positions
    that the search went through.
    """

    key: str
    verdict: Verdict
    operations: int
    visited: int
    witness: tuple[Operation, ...] = ()
    culprit: Operation | None = None
    clue: str = ""
    context: tuple[Operation, ...] = ()

    def explain(self) -> str:
        """Describe the verdict for a reader, over several lines on a violation."""
        title = f"{self.key}: {self.verdict}, {self.operations} operations"
        if self.verdict is Verdict.UNDECIDED:
            return f"{title}; the budget of {self.visited} positions was used up"
        if self.culprit is None:
            return title
        first = min(each.start for each in self.context)
        lines = [title, f"cannot be placed: {self.culprit}", f"because: {self.clue}", "around it:"]
        for each in self.context:
            end = "..." if each.end is None else f"{(each.end - first) / 1000:.1f}"
            mark = ">" if each == self.culprit else " "
            lines.append(f" {mark} {(each.start - first) / 1000:>10.1f} to {end:>10} us  {each}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The verdict on a history: a violation on any key, else undecided on any, else linearizable."""

    keys: tuple[KeyReport, ...]

    @property
    def verdict(self) -> Verdict:
        """The verdict on the whole history."""
        verdicts = {each.verdict for each in self.keys}
        for worst in (Verdict.VIOLATION, Verdict.UNDECIDED):
            if worst in verdicts:
                return worst
        return Verdict.LINEARIZABLE

    def explain(self) -> str:
        """Describe every key that is not linearizable, or say that all are."""
        bad = [each.explain() for each in self.keys if each.verdict is not Verdict.LINEARIZABLE]
        total = sum(each.operations for each in self.keys)
        return "\n\n".join(bad) or f"linearizable: {total} operations on {len(self.keys)} keys"


def check(
    history: Iterable[Operation],
    *,
    initial: Mapping[str, bytes] | None = None,
    answers_lost: bool = False,
    max_visits: int = DEFAULT_VISITS,
) -> Report:
    """Decide whether a history is linearizable, each key as a register of its own.

    Registers are created only when absent, replaced or deleted only at the expected write, put
    without condition, and read. A refusal means that the expected state was not there at some
    moment of the call. Unknown outcomes take effect at most once, at any time after their start,
    or never. Versions play no part: a write is its bytes.

    `initial` gives the bytes of keys that had an object when the recording began.
    With `answers_lost` a delete that returned proves only that the key was absent at some moment
    of its call; the removal is then an unknown outcome.
    `max_visits` bounds the positions visited for each key, and with them time and memory; a key
    that needs more is UNDECIDED.

    Raises ValueError if two writes to one key have the same bytes.
    """
    start = initial or {}
    by_key: dict[str, list[Operation]] = {}
    for operation in history:
        by_key.setdefault(operation.key, []).append(operation)
    return Report(
        keys=tuple(
            _check_key(key, by_key[key], start.get(key), answers_lost, max_visits)
            for key in sorted(by_key)
        )
    )


def assert_linearizable(
    history: Iterable[Operation],
    *,
    initial: Mapping[str, bytes] | None = None,
    answers_lost: bool = False,
    max_visits: int = DEFAULT_VISITS,
) -> Report:
    """As `check`, but raise AssertionError with the explanation unless it is linearizable.

    An undecided history raises too: it has not been shown to be right.
    """
    report = check(history, initial=initial, answers_lost=answers_lost, max_visits=max_visits)
    if report.verdict is not Verdict.LINEARIZABLE:
        raise AssertionError(report.explain())
    return report


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """What stays the same while prefixes of one key's history are tried."""

    initial: bytes | None
    answers_lost: bool
    max_visits: int

    def ask(
        self, operations: Sequence[Operation], max_visits: int
    ) -> Solved | Unsolvable | OutOfBudget:
        register = Register(operations, initial=self.initial, answers_lost=self.answers_lost)
        return linearize(register.steps, initial=register.initial, max_visits=max_visits)


def _check_key(
    key: str,
    operations: Sequence[Operation],
    initial: bytes | None,
    answers_lost: bool,
    max_visits: int,
) -> KeyReport:
    question = _Question(initial=initial, answers_lost=answers_lost, max_visits=max_visits)
    answer = question.ask(operations, max_visits)
    if isinstance(answer, Solved):
        return KeyReport(
            key=key,
            verdict=Verdict.LINEARIZABLE,
            operations=len(operations),
            visited=answer.visited,
            witness=tuple(step.operation for step in answer.order),
        )
    if isinstance(answer, OutOfBudget):
        return KeyReport(
            key=key,
            verdict=Verdict.UNDECIDED,
            operations=len(operations),
            visited=answer.visited,
        )
    culprit = _culprit(question, operations)
    return KeyReport(
        key=key,
        verdict=Verdict.VIOLATION,
        operations=len(operations),
        visited=answer.visited,
        culprit=culprit,
        clue=_clue(culprit, operations, initial),
        context=_context(culprit, operations),
    )


def prefix(operations: Iterable[Operation], until: int) -> list[Operation]:
    """Return what had been told by a moment: later ends become unknown, later starts vanish.

    A prefix of a linearizable history is linearizable.
    """
    told: list[Operation] = []
    for each in operations:
        if each.start > until:
            continue
        if each.end is None or each.end <= until:
            told.append(each)
        elif each.kind not in READS and each.outcome in (Outcome.OK, Outcome.UNKNOWN):
            told.append(replace(each, outcome=Outcome.UNKNOWN, end=None))
    return told


def _culprit(question: _Question, operations: Sequence[Operation]) -> Operation:
    """Find the operation whose end turns the history into a wrong one, by bisection."""
    ended = sorted(
        (each for each in operations if each.outcome in (Outcome.OK, Outcome.REFUSED)),
        key=lambda each: each.end or 0,
    )
    low, high = 0, len(ended) - 1
    left = question.max_visits
    while low < high and left > 0:
        middle = (low + high) // 2
        answer = question.ask(prefix(operations, ended[middle].end or 0), left)
        left -= answer.visited
        if isinstance(answer, Unsolvable):
            high = middle
        else:
            low = middle + 1
    return ended[high]


def _context(culprit: Operation, operations: Sequence[Operation]) -> tuple[Operation, ...]:
    """Choose the operations that a reader needs to see, the latest before the culprit's end."""
    end = culprit.end or culprit.start
    near = sorted((each for each in operations if each.start <= end), key=lambda each: each.start)
    named = {
        each.wrote: each for each in operations if each.wrote in (culprit.saw, culprit.expected)
    }
    chosen = [*near[-_CONTEXT:], *(each for wrote, each in named.items() if wrote is not None)]
    if culprit not in chosen:
        chosen.append(culprit)
    return tuple(sorted(dict.fromkeys(chosen), key=lambda each: each.start))


def _clue(culprit: Operation, operations: Sequence[Operation], initial: bytes | None) -> str:
    """Say in a sentence what is known about the write that the culprit claims to have met."""
    if culprit.outcome is Outcome.REFUSED:
        if culprit.kind is Kind.CREATE:
            return "the key was absent during the whole call, yet the create was refused"
        return (
            f"the key was at {short(culprit.expected)} during the whole call, "
            "yet the precondition was said to have failed"
        )
    claimed = culprit.saw if culprit.kind in READS else culprit.expected
    if culprit.kind is Kind.CREATE or (culprit.kind in READS and claimed is None):
        return "the key was at no moment of the call absent"
    if claimed is None:
        return "the answers of the operations around it contradict each other"
    if isinstance(claimed, Presence):
        return "the key was absent during the whole call"
    if claimed == initial:
        return f"{short(claimed)} had been replaced or removed before the call began"
    writer = next((each for each in operations if each.wrote == claimed), None)
    if writer is None:
        return f"nobody wrote {short(claimed)}"
    if writer.outcome in (Outcome.REFUSED, Outcome.NOT_APPLIED):
        return f"{short(claimed)} belongs to a write that was reported as {writer.outcome}"
    if culprit.end is not None and writer.start > culprit.end:
        return f"{short(claimed)} was written only after the call had ended"
    return (
        f"the key was at no moment of the call at {short(claimed)}: it had been replaced or "
        "removed before the call began, or another operation took its place"
    )
