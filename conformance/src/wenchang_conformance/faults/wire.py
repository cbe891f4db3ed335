"""What a database proxy must know of a wire protocol, and predicates on statements."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

_LEADING_NOISE = re.compile(rb"(?:\s+|/\*.*?\*/|--[^\n]*\n|#[^\n]*\n|\()+", re.DOTALL)
_WORD = re.compile(rb"[A-Za-z]+")


class UnreadableStreamError(Exception):
    """The stream is not the protocol it was announced as: probably TLS, or compressed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One request of a client to run SQL.

    `sql` is the text; for prepared statements the text given when they were prepared, for a batch
    that ends in one synchronisation the texts joined by `;` and a newline. `wire` is everything
    that is sent for it, bound parameters included, so a predicate can look for a key in it.
    """

    sql: bytes
    wire: bytes = field(repr=False)

    @property
    def verb(self) -> str:
        """The first keyword in upper case, `""` if there is none."""
        noise = _LEADING_NOISE.match(self.sql)
        word = _WORD.match(self.sql, noise.end() if noise else 0)
        return word.group().decode("ascii").upper() if word else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientPiece:
    """Whole messages of the client: to forward, unless the proxy itself replies to them."""

    wire: bytes
    statement: Statement | None = None
    reply: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPiece:
    """One message of the server, as the client is to see it.

    `completes` is True when with it the answer to the oldest unanswered statement is complete,
    which is the moment its effect is final.
    """

    wire: bytes
    completes: bool = False


class Dialect(Protocol):
    """The state of one connection in one wire protocol; no input or output of its own.

    Both methods take bytes as they come, keep what is incomplete, and raise
    UnreadableStreamError.
    """

    def from_client(self, data: bytes) -> list[ClientPiece]:
        """Split what the client sent."""
        ...

    def from_server(self, data: bytes) -> list[ServerPiece]:
        """Split what the server sent."""
        ...


def whole_messages(
    data: bytes, length_at: Callable[[bytes, int], int | None]
) -> tuple[list[bytes], bytes]:
    """Cut the whole messages off the front of `data`: (messages, rest).

    `length_at` tells the length of the message that begins at an offset, None if too little of it
    is there to know.
    """
    messages: list[bytes] = []
    start = 0
    while (length := length_at(data, start)) is not None and start + length <= len(data):
        messages.append(data[start : start + length])
        start += length
    return messages, data[start:]


def is_commit(statement: Statement) -> bool:
    """Match COMMIT and PostgreSQL's other word for it, END."""
    return statement.verb in {"COMMIT", "END"}


def statements(*verbs: str, pattern: str | None = None) -> Callable[[Statement], bool]:
    """Build a predicate: one of these verbs (none: all), and a regular expression in the SQL.

    `statements("INSERT", "UPDATE", "DELETE")` is what a connection in autocommit mode writes by.
    """
    wanted = frozenset(verbs)
    compiled = None if pattern is None else re.compile(pattern.encode())

    def matches(statement: Statement) -> bool:
        if wanted and statement.verb not in wanted:
            return False
        return compiled is None or compiled.search(statement.sql) is not None

    return matches


def carrying(data: bytes) -> Callable[[Statement], bool]:
    """Build a predicate: the statement's messages contain these bytes, in text or parameters."""
    return lambda statement: data in statement.wire
