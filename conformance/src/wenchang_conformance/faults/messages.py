"""Reading and writing HTTP/1.1 messages without changing a byte that matters.

Bodies are kept as they came over the wire, chunk sizes and trailers included, next to their
decoded bytes, so that a forwarded message still fits every signature made over it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import unquote_plus

if TYPE_CHECKING:
    from collections.abc import Callable

Headers = tuple[tuple[str, str], ...]

_LINE_LIMIT = 65_536
_HEADER_LIMIT = 256
_BODYLESS = frozenset({204, 304})
_SWITCHING_PROTOCOLS = 101
_FINAL = 200
# The connection on each side is the proxy's own, so these never cross it.
_HOP_BY_HOP = frozenset({"connection", "keep-alive", "proxy-connection"})


class MalformedMessageError(Exception):
    """The peer does not speak the HTTP/1.1 that this proxy understands."""


class ConnectionEndedError(Exception):
    """The peer ended the connection in the middle of a message."""


def header(headers: Headers, name: str) -> str | None:
    """Return the first value of a header, its name in any case, or None."""
    wanted = name.lower()
    return next((value for each, value in headers if each.lower() == wanted), None)


def _mentions(headers: Headers, name: str, token: str) -> bool:
    values = ",".join(value for each, value in headers if each.lower() == name)
    return token in {part.strip().lower() for part in values.split(",")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A whole request. `target` is path and query as sent; `body` is decoded, `wire_body` not."""

    method: str
    target: str
    version: str
    headers: Headers
    body: bytes = field(default=b"", repr=False)
    wire_body: bytes = field(default=b"", repr=False)

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        """The query as sent, without the question mark."""
        return self.target.partition("?")[2]

    def header(self, name: str) -> str | None:
        """Return the first value of a header, its name in any case, or None."""
        return header(self.headers, name)

    @property
    def keeps_alive(self) -> bool:
        """Whether the client means to send another request on the same connection."""
        if self.version == "HTTP/1.0":
            return _mentions(self.headers, "connection", "keep-alive")
        return not _mentions(self.headers, "connection", "close")

    def without(self, headers: frozenset[str], parameters: frozenset[str]) -> Request:
        """Return the request without these headers (lower case) and query parameters."""
        kept = tuple(pair for pair in self.headers if pair[0].lower() not in headers)
        path, mark, query = self.target.partition("?")
        parts = [
            part
            for part in query.split("&")
            if unquote_plus(part.partition("=")[0]) not in parameters
        ]
        target = f"{path}?{'&'.join(parts)}" if mark and parts != [""] and parts else path
        return replace(self, headers=kept, target=target)

    def to_wire(self) -> bytes:
        """Return the bytes to send to a server on a connection made for this one request."""
        dropped = _HOP_BY_HOP | {"expect"}
        lines = [f"{self.method} {self.target} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in self.headers if name.lower() not in dropped]
        lines += ["Connection: close", "", ""]
        return "\r\n".join(lines).encode("latin-1") + self.wire_body


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A whole answer. `delimited` is False if only the connection's end ends its body."""

    status: int
    reason: str
    headers: Headers
    wire_body: bytes = field(default=b"", repr=False)
    delimited: bool = True

    def head(self) -> bytes:
        """Return the head's bytes, the empty line included."""
        lines = [f"HTTP/1.1 {self.status} {self.reason}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")

    def to_wire(self) -> bytes:
        """Return the bytes to send to the client."""
        return self.head() + self.wire_body


def canned(method: str, status: int, headers: Headers, body: bytes) -> Answer:
    """Make an answer of the proxy's own; the length is added, a HEAD gets no body."""
    bodyless = status in _BODYLESS
    named = header(headers, "content-length") is not None
    length = () if named or bodyless else (("Content-Length", str(len(body))),)
    return Answer(
        status=status,
        reason="Injected",
        headers=(*headers, *length),
        wire_body=b"" if bodyless or method == "HEAD" else body,
    )


def _line(stream: BinaryIO) -> bytes:
    line = stream.readline(_LINE_LIMIT + 1)
    if not line.endswith(b"\n"):
        if len(line) > _LINE_LIMIT:
            msg = "a line of the head is too long"
            raise MalformedMessageError(msg)
        raise ConnectionEndedError
    return line


def _headers(stream: BinaryIO) -> Headers:
    pairs: list[tuple[str, str]] = []
    while (line := _line(stream)) not in (b"\r\n", b"\n"):
        name, colon, value = line.decode("latin-1").rstrip("\r\n").partition(":")
        if not colon or not name or name != name.strip() or len(pairs) >= _HEADER_LIMIT:
            msg = "a header line cannot be understood"
            raise MalformedMessageError(msg)
        pairs.append((name, value.strip(" \t")))
    return tuple(pairs)


def _exactly(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise ConnectionEndedError
    return data


def _number(text: str, base: int) -> int:
    try:
        value = int(text.strip(), base)
    except ValueError:
        value = -1
    if value < 0:
        msg = "a length cannot be understood"
        raise MalformedMessageError(msg)
    return value


def _chunked(stream: BinaryIO) -> tuple[bytes, bytes]:
    """Read a chunked body: (decoded, as it came)."""
    decoded: list[bytes] = []
    wire: list[bytes] = []
    while True:
        line = _line(stream)
        wire.append(line)
        size = _number(line.split(b";")[0].decode("latin-1"), 16)
        if size == 0:
            break
        chunk = _exactly(stream, size)
        decoded.append(chunk)
        wire += [chunk, _line(stream)]
    while True:
        trailer = _line(stream)
        wire.append(trailer)
        if trailer in (b"\r\n", b"\n"):
            return b"".join(decoded), b"".join(wire)


def _framed(stream: BinaryIO, headers: Headers) -> tuple[bytes, bytes] | None:
    """Read a body whose length the head gives: (decoded, as it came), else None."""
    if _mentions(headers, "transfer-encoding", "chunked"):
        return _chunked(stream)
    length = header(headers, "content-length")
    if length is None:
        return None
    body = _exactly(stream, _number(length, 10))
    return body, body


def read_request(stream: BinaryIO, send_continue: Callable[[], None]) -> Request | None:
    """Read one request; None if the client ended the connection between two of them.

    `send_continue` is called when the client waits for `100 Continue` before its body.
    Raises MalformedMessageError, ConnectionEndedError.
    """
    first = stream.readline(_LINE_LIMIT + 1)
    if first in (b"\r\n", b"\n"):
        first = stream.readline(_LINE_LIMIT + 1)
    if not first:
        return None
    parts = first.decode("latin-1").rstrip("\r\n").split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        msg = "not an HTTP/1.1 request line"
        raise MalformedMessageError(msg)
    headers = _headers(stream)
    if _mentions(headers, "expect", "100-continue"):
        send_continue()
    body, wire_body = _framed(stream, headers) or (b"", b"")
    return Request(
        method=parts[0],
        target=parts[1],
        version=parts[2],
        headers=headers,
        body=body,
        wire_body=wire_body,
    )


def read_answer(stream: BinaryIO, method: str) -> Answer:
    """Read the final answer to a request with this method, skipping interim (1xx) ones.

    Raises MalformedMessageError, ConnectionEndedError.
    """
    while True:
        parts = _line(stream).decode("latin-1").rstrip("\r\n").split(" ", 2)
        if len(parts) < 2 or not parts[0].startswith("HTTP/1."):
            msg = "not an HTTP/1.1 status line"
            raise MalformedMessageError(msg)
        status = _number(parts[1], 10)
        headers = _headers(stream)
        if status == _SWITCHING_PROTOCOLS:
            msg = "the server wants another protocol"
            raise MalformedMessageError(msg)
        if status >= _FINAL:
            break
    delimited = True
    wire_body = b""
    if method != "HEAD" and status not in _BODYLESS:
        framed = _framed(stream, headers)
        delimited = framed is not None
        wire_body = stream.read() if framed is None else framed[1]
    return Answer(
        status=status,
        reason=parts[2] if len(parts) > 2 else "",
        headers=tuple(pair for pair in headers if pair[0].lower() not in _HOP_BY_HOP),
        wire_body=wire_body,
        delimited=delimited,
    )
