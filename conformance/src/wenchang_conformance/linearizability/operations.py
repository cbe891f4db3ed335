"""What clients did to a storage and what they were told: one value for each operation."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

_COARSE_NS = 1_000


class Kind(StrEnum):
    """What was asked for. LIST is one key's part of a listing, otherwise a read."""

    CREATE = "create"
    REPLACE = "replace"
    PUT = "put"
    DELETE = "delete"
    READ = "read"
    LIST = "list"


class Outcome(StrEnum):
    """What the client was told.

    REFUSED is `PreconditionFailedError`. NOT_APPLIED is any error that promises no effect. UNKNOWN
    promises nothing: the operation takes effect at most once, at any time after its start, even
    long after its end, or never.
    """

    OK = "ok"
    REFUSED = "refused"
    NOT_APPLIED = "not_applied"
    UNKNOWN = "unknown"


class Presence(StrEnum):
    """Stands for a write that was there, but of which the client did not learn the bytes."""

    SOME = "some"


SOME = Presence.SOME
READS = frozenset({Kind.READ, Kind.LIST})
_WRITES = frozenset({Kind.CREATE, Kind.REPLACE, Kind.PUT})
_CONDITIONED = frozenset({Kind.REPLACE, Kind.DELETE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation on one key.

    A write is identified by its bytes, which no other write to the key may share. `wrote` are the
    bytes a create, replace or put tried to store; `expected` is the write that a replace or delete
    meant to meet, named by *its* bytes (`SOME` if the client never learned them): the write whose
    version was handed back, not the version. `saw` is what a read found: bytes, None for an absent
    key, or `SOME`.

    `start` and `end` are points of one monotonic clock, in nanoseconds; `end` is None when no
    answer ever came. An operation precedes another only if its end is less than the other's start.

    Raises ValueError for a combination that no client can report.
    """

    key: str
    kind: Kind
    outcome: Outcome
    start: int
    end: int | None = None
    wrote: bytes | None = None
    expected: bytes | Presence | None = None
    saw: bytes | Presence | None = None
    client: str = ""

    def __post_init__(self) -> None:
        """Refuse what no client can report."""
        problem = self._problem()
        if problem:
            raise ValueError(f"{self.kind} of a history: {problem}")

    def _problem(self) -> str:
        if (self.kind in _WRITES) != (self.wrote is not None):
            return "`wrote` belongs to create, replace and put, and only to them"
        if (self.kind in _CONDITIONED) != (self.expected is not None):
            return "`expected` belongs to replace and delete, and only to them"
        if self.kind not in READS and self.saw is not None:
            return "only reads see something"
        if self.outcome is Outcome.REFUSED and self.kind in READS | {Kind.PUT}:
            return "it has no precondition that could be refused"
        if self.end is None and self.outcome is not Outcome.UNKNOWN:
            return "without an end the outcome is unknown"
        if self.end is not None and self.end < self.start:
            return "it ends before it starts"
        return ""

    def __str__(self) -> str:
        """Describe the operation for a reader of a failing history."""
        parts = [self.client or "?", str(self.kind), self.key]
        if self.expected is not None:
            parts.append(f"expecting {short(self.expected)}")
        if self.wrote is not None:
            parts.append(f"writing {short(self.wrote)}")
        if self.kind in READS and self.outcome is Outcome.OK:
            parts.append(f"saw {short(self.saw)}")
        else:
            parts.append(f"-> {self.outcome}")
        return " ".join(parts)


def short(value: bytes | Presence | None) -> str:
    """Name a write, or what was seen, in a few characters."""
    if value is None:
        return "nothing"
    if isinstance(value, Presence):
        return "some write"
    shown = value if len(value) <= 24 else value[:20] + b"..."
    return ascii(shown.decode("latin-1"))


@dataclass(frozen=True, slots=True)
class History:
    """Operations of any number of clients and processes, in no particular order."""

    operations: tuple[Operation, ...] = ()

    def __iter__(self) -> Iterator[Operation]:
        """Iterate over the operations."""
        return iter(self.operations)

    def __len__(self) -> int:
        """Return the number of operations."""
        return len(self.operations)

    def merged(self, *others: History) -> History:
        """Return one history of several processes of one machine.

        Their times must come from the machine's monotonic clock, which all processes share (on
        Linux CLOCK_MONOTONIC). Where that clock is coarse, operations are widened by its
        resolution, so that nothing is taken for ordered that was not.
        """
        slack = round(time.get_clock_info("monotonic").resolution * 1e9)
        operations: Iterable[Operation] = (
            each for history in (self, *others) for each in history.operations
        )
        if slack > _COARSE_NS:
            operations = (
                replace(
                    each,
                    start=each.start - slack,
                    end=None if each.end is None else each.end + slack,
                )
                for each in operations
            )
        return History(tuple(operations))

    def to_json(self) -> str:
        """Return the history as JSON text, for another process."""
        return json.dumps([to_fields(each) for each in self.operations])

    @staticmethod
    def from_json(text: str) -> History:
        """Read what `to_json` wrote."""
        return History(tuple(from_fields(fields) for fields in json.loads(text)))

    @staticmethod
    def from_journal(path: Path) -> History:
        """Read a recorder's journal, also that of a process that was killed.

        Operations that were under way have an unknown outcome. A last line cut short by the kill
        is ignored: what it would have told did not reach the client's caller either.
        """
        operations: dict[int, dict[str, Any]] = {}
        for line in path.read_text(encoding="ascii").splitlines(keepends=True):
            if not line.endswith("\n"):
                break
            number, fields = json.loads(line)
            operations.setdefault(number, {}).update(fields)
        return History(tuple(from_fields(fields) for fields in operations.values()))


def to_fields(operation: Operation) -> dict[str, Any]:
    """Return an operation as JSON-ready fields."""
    return {
        "key": operation.key,
        "kind": operation.kind,
        "outcome": operation.outcome,
        "start": operation.start,
        "end": operation.end,
        "client": operation.client,
        **{
            name: encoded(value)
            for name, value in (
                ("wrote", operation.wrote),
                ("expected", operation.expected),
                ("saw", operation.saw),
            )
            if value is not None
        },
    }


def from_fields(fields: Mapping[str, Any]) -> Operation:
    """Read what `to_fields` wrote."""
    wrote = _decoded(fields.get("wrote"))
    return Operation(
        key=fields["key"],
        kind=Kind(fields["kind"]),
        outcome=Outcome(fields["outcome"]),
        start=fields["start"],
        end=fields["end"],
        client=fields["client"],
        wrote=wrote if isinstance(wrote, bytes) else None,
        expected=_decoded(fields.get("expected")),
        saw=_decoded(fields.get("saw")),
    )


def encoded(value: bytes | Presence | None) -> str | bool | None:
    """Return a name of a write as JSON: base64 for bytes, true for `SOME`."""
    if value is None:
        return None
    return True if isinstance(value, Presence) else base64.b64encode(value).decode("ascii")


def _decoded(value: str | bool | None) -> bytes | Presence | None:
    if value is None:
        return None
    return SOME if value is True else base64.b64decode(str(value))
