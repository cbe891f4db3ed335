"""PostgreSQL's protocol 3, as far as a proxy needs it: simple and extended queries."""

from __future__ import annotations

import struct

from wenchang_conformance.faults.wire import (
    ClientPiece,
    ServerPiece,
    Statement,
    UnreadableStreamError,
    whole_messages,
)

_SSL_REQUEST = 80877103
_GSS_REQUEST = 80877104
_LONGEST_STARTUP = 10_000
_LONGEST_MESSAGE = 1 << 30


class PostgreSQL:
    """One connection. Requests for encryption are refused by the proxy, as a plain server does.

    Messages of the extended protocol are kept back until the client synchronises or flushes, so
    that a dropped request is dropped whole.
    """

    def __init__(self) -> None:
        """Begin before the start-up message."""
        self._started = False
        self._client = b""
        self._server = b""
        self._group: list[bytes] = []
        self._batch: list[bytes] = []
        self._executed: list[bytes] = []
        self._prepared: dict[bytes, bytes] = {}
        self._portals: dict[bytes, bytes] = {}

    def from_client(self, data: bytes) -> list[ClientPiece]:
        """Split what the client sent."""
        self._client += data
        pieces: list[ClientPiece] = []
        while not self._started:
            piece = self._startup()
            if piece is None:
                return pieces
            pieces.append(piece)
        messages, self._client = whole_messages(self._client, _length_at)
        pieces += filter(None, map(self._message, messages))
        return pieces

    def _startup(self) -> ClientPiece | None:
        if len(self._client) < 8:
            return None
        length, code = struct.unpack_from("!ii", self._client)
        if not 8 <= length <= _LONGEST_STARTUP:
            msg = "not a start-up message; the client must connect without direct TLS"
            raise UnreadableStreamError(msg)
        if len(self._client) < length:
            return None
        message, self._client = self._client[:length], self._client[length:]
        if code in (_SSL_REQUEST, _GSS_REQUEST):
            return ClientPiece(wire=message, reply=b"N")
        self._started = True
        return ClientPiece(wire=message)

    def _message(self, message: bytes) -> ClientPiece | None:
        kind, payload = message[:1], message[5:]
        if kind == b"Q":
            sql = payload.rstrip(b"\0")
            return ClientPiece(wire=message, statement=Statement(sql=sql, wire=message))
        if kind not in b"PBDECHS":
            return ClientPiece(wire=message)
        self._group.append(message)
        self._batch.append(message)
        if kind == b"P":
            name, sql, _ = payload.split(b"\0", 2)
            self._prepared[name] = sql
        elif kind == b"B":
            portal, name, _ = payload.split(b"\0", 2)
            self._portals[portal] = self._prepared.get(name, b"")
        elif kind == b"E":
            self._executed.append(self._portals.get(payload.split(b"\0", 1)[0], b""))
        if kind not in b"HS":
            return None
        wire = b"".join(self._group)
        self._group = []
        if kind == b"H":
            return ClientPiece(wire=wire)
        # Also a synchronisation without a statement is answered; see `from_server`.
        statement = Statement(sql=b";\n".join(self._executed), wire=b"".join(self._batch))
        self._executed = []
        self._batch = []
        return ClientPiece(wire=wire, statement=statement)

    def from_server(self, data: bytes) -> list[ServerPiece]:
        """Split what the server sent: ReadyForQuery ends each answer."""
        self._server += data
        messages, self._server = whole_messages(self._server, _length_at)
        return [ServerPiece(wire=each, completes=each[:1] == b"Z") for each in messages]


def _length_at(data: bytes, start: int) -> int | None:
    """Tell the length of a message, its type byte included."""
    if len(data) < start + 5:
        return None
    length: int = struct.unpack_from("!i", data, start + 1)[0] + 1
    if not 5 <= length <= _LONGEST_MESSAGE:
        msg = "not a message of PostgreSQL's protocol 3; is the connection encrypted?"
        raise UnreadableStreamError(msg)
    return length
