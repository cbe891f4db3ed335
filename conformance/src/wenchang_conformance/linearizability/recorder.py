"""Recording operations while they happen, from any number of threads."""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from wenchang_conformance.linearizability.operations import (
    SOME,
    History,
    Kind,
    Operation,
    Outcome,
    Presence,
    encoded,
    to_fields,
)


class Pending:
    """An operation that has begun. It stays unknown until `finish` is called."""

    __slots__ = ("number", "operation", "recorder")

    def __init__(self, recorder: Recorder, number: int, operation: Operation) -> None:
        """Made by `Recorder.begin`."""
        self.recorder = recorder
        self.number = number
        self.operation = operation

    def finish(self, outcome: Outcome, *, saw: bytes | Presence | None = None) -> Operation:
        """Record what the client was told, and when. Call it as soon as the answer is there."""
        return self.recorder.finish(self, outcome, saw=saw)


class Recorder:
    """A thread-safe list of operations with one clock.

    Each event gets its own point in time: the machine's monotonic clock, moved on by a
    nanosecond where two events would share a reading. So times order the events of one recorder
    strictly, and can be compared between the recorders of several processes.

    With `journal`, each event is also appended to that file before the call goes on, so that the
    history of a process that is killed can be read with `History.from_journal`.
    """

    def __init__(self, *, journal: Path | None = None) -> None:
        """Begin with an empty history, and an empty journal."""
        self._lock = threading.Lock()
        self._last = 0
        self._operations: list[Operation] = []
        self._by_version: dict[tuple[str, str], set[bytes]] = {}
        self._by_tag: dict[tuple[str, str], bytes] = {}
        self._unresolved: list[tuple[int, str]] = []
        self._journal = (
            None
            if journal is None
            else os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        )

    def __enter__(self) -> Self:
        """Return the recorder."""
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the journal."""
        self.close()

    def close(self) -> None:
        """Close the journal; what has been recorded stays. Idempotent."""
        if self._journal is not None:
            os.close(self._journal)
            self._journal = None

    def now(self) -> int:
        """Return a new point in time, later than every one before."""
        with self._lock:
            return self._tick()

    def _tick(self) -> int:
        self._last = max(self._last + 1, time.monotonic_ns())
        return self._last

    def _write(self, number: int, fields: dict[str, Any]) -> None:
        if self._journal is not None:
            os.write(self._journal, f"{json.dumps([number, fields])}\n".encode("ascii"))

    def begin(
        self,
        kind: Kind,
        key: str,
        *,
        wrote: bytes | None = None,
        expected: bytes | Presence | None = None,
        client: str = "",
    ) -> Pending:
        """Record that an operation begins. Call it right before the operation."""
        with self._lock:
            operation = Operation(
                key=key,
                kind=kind,
                outcome=Outcome.UNKNOWN,
                start=self._tick(),
                wrote=wrote,
                expected=expected,
                client=client,
            )
            number = len(self._operations)
            self._operations.append(operation)
            self._write(number, to_fields(operation))
            return Pending(self, number, operation)

    def finish(
        self, pending: Pending, outcome: Outcome, *, saw: bytes | Presence | None = None
    ) -> Operation:
        """Record the end of an operation; see `Pending.finish`."""
        with self._lock:
            operation = replace(pending.operation, outcome=outcome, saw=saw, end=self._tick())
            self._operations[pending.number] = operation
            fields: dict[str, Any] = {"outcome": outcome, "end": operation.end}
            if saw is not None:
                fields["saw"] = encoded(saw)
            self._write(pending.number, fields)
            return operation

    def add(self, operation: Operation, *, version: str | None = None) -> None:
        """Record an operation that is over, at times taken from `now`.

        With `version`, a read that saw `SOME` write is completed by `history`, if by then exactly
        one write is known to have been given that version.
        """
        with self._lock:
            number = len(self._operations)
            self._operations.append(operation)
            if version is not None:
                self._unresolved.append((number, version))
            self._write(number, to_fields(operation))

    def handed_out(self, key: str, version: str, wrote: bytes) -> None:
        """Remember that the storage gave this version for this write."""
        with self._lock:
            self._by_version.setdefault((key, version), set()).add(wrote)

    def write_at(self, key: str, version: str) -> bytes | Presence:
        """Return the one write known at this version, else `SOME`."""
        with self._lock:
            return self._write_at(key, version)

    def _write_at(self, key: str, version: str) -> bytes | Presence:
        writes = self._by_version.get((key, version), ())
        return next(iter(writes)) if len(writes) == 1 else SOME

    def tagged(self, key: str, tag: str, wrote: bytes) -> None:
        """Remember that the write of these bytes carries this unique tag in its metadata."""
        with self._lock:
            self._by_tag[key, tag] = wrote

    def write_tagged(self, key: str, tag: str) -> bytes | Presence:
        """Return the write that carries this tag, `SOME` if this recorder does not know it."""
        with self._lock:
            return self._by_tag.get((key, tag), SOME)

    def history(self) -> History:
        """Return everything recorded so far; what is under way has an unknown outcome."""
        with self._lock:
            operations = list(self._operations)
            for number, version in self._unresolved:
                operations[number] = replace(
                    operations[number], saw=self._write_at(operations[number].key, version)
                )
            return History(tuple(operations))
