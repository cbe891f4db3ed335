"""MySQL's and MariaDB's protocol, as far as a proxy needs it: text queries and their answers."""

from __future__ import annotations

from wenchang_conformance.faults.wire import ClientPiece, ServerPiece, Statement, whole_messages

_COM_QUERY = 0x03
_OK, _EOF, _ERROR, _LOCAL_INFILE = 0x00, 0xFE, 0xFF, 0xFB
_FULL_PACKET = 0xFFFFFF
_MORE_RESULTS = 0x0008
_SHORT_EOF = 9
_GREETING = 10
# Capabilities that would hide the stream (compression, TLS, zstd) or change the frames that are
# counted here (no EOF packets, query attributes). The greeting is changed so that the server
# seems not to have them.
_HIDDEN = (1 << 5) | (1 << 11) | (1 << 24) | (1 << 26) | (1 << 27)


class MySQL:
    """One connection. Statements prepared on the server (binary protocol) pass unseen."""

    def __init__(self) -> None:
        """Begin before the server's greeting."""
        self._client = b""
        self._server = b""
        self._greeted = False
        self._answer = _AnswerState()

    def from_client(self, data: bytes) -> list[ClientPiece]:
        """Split what the client sent."""
        self._client += data
        packets, self._client = whole_messages(self._client, _length_at)
        return [self._command(packet) for packet in packets]

    def _command(self, packet: bytes) -> ClientPiece:
        # Commands are numbered 0; log-in packets and later parts of a command are not.
        if packet[3] != 0 or packet[4:5] != bytes([_COM_QUERY]):
            return ClientPiece(wire=packet)
        self._answer.begin()
        return ClientPiece(wire=packet, statement=Statement(sql=packet[5:], wire=packet))

    def from_server(self, data: bytes) -> list[ServerPiece]:
        """Split what the server sent."""
        self._server += data
        packets, self._server = whole_messages(self._server, _length_at)
        return [self._told(packet) for packet in packets]

    def _told(self, packet: bytes) -> ServerPiece:
        if self._greeted:
            return ServerPiece(wire=packet, completes=self._answer.ends_with(packet))
        self._greeted = True
        return ServerPiece(wire=_plain_greeting(packet))


class _AnswerState:
    """Where in the answer to a text query the server is."""

    def __init__(self) -> None:
        self._stage = "idle"
        self._columns = 0
        self._continues = False

    def begin(self) -> None:
        """A text query is on its way."""
        self._stage = "first"

    def ends_with(self, packet: bytes) -> bool:
        """Take the next packet; True if it is the answer's last one."""
        continuation, self._continues = self._continues, len(packet) - 4 == _FULL_PACKET
        payload = packet[4:]
        if continuation or self._stage == "idle" or not payload:
            return False
        if payload[0] == _ERROR:
            return self._finish(0)
        if self._stage == "first":
            if payload[0] == _OK:
                return self._finish(_ok_status(payload))
            if payload[0] != _LOCAL_INFILE:
                self._columns, _ = _length_encoded(payload, 0)
                self._stage = "columns"
        elif self._stage == "columns":
            # One packet for each column and an EOF packet behind them.
            if self._columns == 0:
                self._stage = "rows"
            self._columns -= 1
        elif payload[0] == _EOF and len(payload) < _SHORT_EOF:
            return self._finish(int.from_bytes(payload[3:5], "little"))
        return False

    def _finish(self, status: int) -> bool:
        more = bool(status & _MORE_RESULTS)
        self._stage = "first" if more else "idle"
        return not more


def _length_at(data: bytes, start: int) -> int | None:
    """Tell the length of a packet, its four bytes of head included."""
    if len(data) < start + 4:
        return None
    return int.from_bytes(data[start : start + 3], "little") + 4


def _length_encoded(payload: bytes, start: int) -> tuple[int, int]:
    """Read a length-encoded integer: (value, where it ends)."""
    first = payload[start]
    width = {0xFC: 2, 0xFD: 3, 0xFE: 8}.get(first, 0)
    if not width:
        return first, start + 1
    end = start + 1 + width
    return int.from_bytes(payload[start + 1 : end], "little"), end


def _ok_status(payload: bytes) -> int:
    _, end = _length_encoded(payload, 1)
    _, end = _length_encoded(payload, end)
    return int.from_bytes(payload[end : end + 2], "little")


def _plain_greeting(packet: bytes) -> bytes:
    """Return the server's greeting without the capabilities that would blind the proxy."""
    if packet[4] != _GREETING:
        return packet  # an error in place of a greeting: too many connections, host blocked
    changed = bytearray(packet)
    # Behind the version: connection id (4), first part of the challenge (8), a zero (1); then the
    # lower half of the capabilities, character set (1), status (2), and the upper half.
    lower = packet.index(b"\0", 5) + 1 + 13
    upper = lower + 5
    for place, mask in ((lower, _HIDDEN & 0xFFFF), (upper, _HIDDEN >> 16)):
        value = int.from_bytes(changed[place : place + 2], "little") & ~mask
        changed[place : place + 2] = value.to_bytes(2, "little")
    return bytes(changed)
