"""Records: what a tree knows of one path, and the lines they are stored as.

A record with an empty `key` is a path whose file was deleted and of which only past states are kept.
Keys are relative to the tree's base, `<incarnation>/<epoch>/<random>`; in a line the incarnation of
the page is left out.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from json.encoder import encode_basestring
from typing import Any, Final, NamedTuple

__all__ = [
    "PAST_OVERHEAD",
    "Record",
    "State",
    "decode_record",
    "encode_record",
    "to_datetime",
    "to_micros",
]

PAST_OVERHEAD: Final = 256
"""Bytes that a past state is charged with beside its content."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class State(NamedTuple):
    """One content that a path had or has. `number` is what its version token is made of."""

    key: str
    size: int
    lines: int
    number: int
    modified: int
    source: str = ""

    @property
    def charge(self) -> int:
        """What it takes from the room for history once it is past."""
        return self.size + PAST_OVERHEAD


class Record(NamedTuple):
    """A path, its present state, and the past ones that are kept, the newest first."""

    path: str
    key: str
    size: int
    lines: int
    number: int
    modified: int
    source: str = ""
    history: tuple[State, ...] = ()

    @property
    def live(self) -> bool:
        """Whether there is a file at the path."""
        return self.key != ""

    @property
    def past_charge(self) -> int:
        """What its past states take from the room for history."""
        return sum(state.charge for state in self.history)

    def state(self) -> State:
        """Return the present state."""
        return State(self.key, self.size, self.lines, self.number, self.modified, self.source)

    def all_keys(self) -> list[str]:
        """Return the keys of all contents that the record refers to."""
        keys = [state.key for state in self.history]
        if self.key:
            keys.append(self.key)
        return keys


def with_state(path: str, state: State, history: tuple[State, ...] = ()) -> Record:
    """Return the record of a file in the given state."""
    return Record(path, *state, history)


def deleted(path: str, history: tuple[State, ...]) -> Record:
    """Return the record of a deleted file of which past states are kept."""
    return Record(path, "", 0, 0, 0, 0, "", history)


def encode_record(record: Record, incarnation: str) -> bytes:
    """Return the line of a record, without its end."""
    path, key, size, lines, number, modified, source, history = record
    if source or history:
        row: list[Any] = [path, *_encode_state(record.state(), incarnation)]
        if history:
            if not source:
                row.append("")
            row.append([_encode_state(state, incarnation) for state in history])
        return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode()
    # The usual line, put together by hand: a commit writes hundreds of them.
    key = key.removeprefix(incarnation + "/")
    return f'[{encode_basestring(path)},"{key}",{size},{lines},{number},{modified}]'.encode()


def decode_record(row: Sequence[Any], incarnation: str) -> Record:
    """Return the record of a decoded line; ValueError or TypeError where it is none."""
    path, key, size, lines, number, modified = row[:6]
    source = row[6] if len(row) > 6 else ""
    history = row[7] if len(row) > 7 else ()
    if key and "/" in key and key.count("/") == 1:
        key = f"{incarnation}/{key}"
    past = tuple(_decode_state(state, incarnation) for state in history)
    return Record(path, key, int(size), int(lines), int(number), int(modified), source, past)


def _encode_state(state: State, incarnation: str) -> list[Any]:
    row: list[Any] = [
        state.key.removeprefix(incarnation + "/"),
        state.size,
        state.lines,
        state.number,
        state.modified,
    ]
    if state.source:
        row.append(state.source)
    return row


def _decode_state(row: Sequence[Any], incarnation: str) -> State:
    key = row[0]
    if key.count("/") == 1:
        key = f"{incarnation}/{key}"
    size, lines, number, modified = row[1:5]
    source = row[5] if len(row) > 5 else ""
    return State(key, int(size), int(lines), int(number), int(modified), source)


def to_micros(moment: datetime) -> int:
    """Return a moment as microseconds since 1970; an aware datetime is required."""
    return (moment - _EPOCH) // _MICROSECOND


def to_datetime(micros: int) -> datetime:
    """Return the moment, in UTC."""
    return _EPOCH + micros * _MICROSECOND
