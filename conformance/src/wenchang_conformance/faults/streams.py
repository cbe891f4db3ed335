"""The database proxy: passes a connection on, and does what the script says to a statement."""

from __future__ import annotations

import contextlib
import selectors
import socket
from collections import deque
from typing import TYPE_CHECKING

from wenchang_conformance.faults.kinds import (
    CutAfterAnswer,
    Delay,
    DeliverLate,
    DropAnswer,
    DropRequest,
    Fault,
    Hang,
    HangApplied,
    PassThrough,
)
from wenchang_conformance.faults.listener import finish, reset
from wenchang_conformance.faults.log import RequestLog
from wenchang_conformance.faults.mysql import MySQL
from wenchang_conformance.faults.postgresql import PostgreSQL
from wenchang_conformance.faults.proxy import Proxy
from wenchang_conformance.faults.wire import Dialect, Statement, UnreadableStreamError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from wenchang_conformance.faults.script import Decision
    from wenchang_conformance.faults.wire import ClientPiece, ServerPiece

_READ = 1 << 18


class _EndedError(Exception):
    """One side has ended the connection, so the other one is to end too."""


class StreamProxy(Proxy[Statement]):
    """A proxy on loopback in front of a PostgreSQL, MySQL or MariaDB server.

        with StreamProxy(("127.0.0.1", port), dialect=PostgreSQL) as proxy:
            proxy.script(Rule(match=is_commit, fault=Fault.drop_answer()))

    The script decides about each statement: a simple query, or what an extended query (MySQL: a
    text query) runs up to its synchronisation. *The answer* is the server's whole answer to it,
    up to the message after which the server is ready for the next one: COMMIT, or a statement in
    autocommit mode, has taken effect by then. A request that is dropped also ends the server's
    side, so an open transaction is rolled back; one that hangs keeps the server's side, and the
    locks of its transaction, until the client leaves.

    Encryption and compression are refused on the server's behalf. `log` records statements by
    verb, without their text. Faults for HTTP alone are refused with TypeError.
    """

    def __init__(
        self,
        target: tuple[str, int],
        *,
        dialect: type[PostgreSQL | MySQL],
        target_timeout: float = 60.0,
        log_limit: int = 10_000,
    ) -> None:
        """Start listening; see `Proxy` for the other arguments."""
        self._dialect = dialect
        super().__init__(target, target_timeout=target_timeout, log_limit=log_limit)

    def _check(self, fault: Fault) -> None:
        if not fault.streams:
            msg = f"{fault.name} is a fault for HTTP; a database connection cannot have it"
            raise TypeError(msg)

    def _serve(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(self.target, self._target_timeout)
        except OSError:
            reset(client)
            return
        with self._listener.tracked(server):
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = _Connection(client, server, self._dialect(), self.log)
            try:
                while True:
                    for piece in connection.next_statements():
                        self._statement(connection, piece)
            except (_EndedError, OSError):
                finish(client)
            except UnreadableStreamError:
                reset(client)
                raise
            finally:
                connection.forget()

    def _statement(self, connection: _Connection, piece: ClientPiece) -> None:
        statement = piece.statement
        if statement is None:
            connection.to_server(piece.wire)
            return
        try:
            decision = self._script.decide(statement)
        except Exception:
            reset(connection.client)
            raise
        number = self.log.begin(statement.verb, "", decision.fault.name)
        try:
            self._inject(connection, piece.wire, decision, number)
        except _EndedError:
            self.log.end(number, None)
            raise

    def _inject(
        self, connection: _Connection, wire: bytes, decision: Decision, number: int
    ) -> None:
        fault = decision.fault
        if not isinstance(fault, PassThrough) or decision.interloper is not None:
            connection.settle()

        def apply() -> bytes:
            answer = connection.ask(wire, number)
            self._interlope(decision.interloper)
            return answer

        match fault:
            case DropRequest(reset=with_reset):
                connection.cut(with_reset=with_reset, number=number)
            case DropAnswer(reset=with_reset):
                apply()
                connection.cut(with_reset=with_reset, number=number)
            case CutAfterAnswer(reset=with_reset):
                connection.to_client(apply(), number)
                connection.cut(with_reset=with_reset, number=number)
            case Hang():
                connection.until_client_leaves()
            case HangApplied():
                apply()
                connection.until_client_leaves()
            case Delay():
                self._delayed(connection, fault, number, apply)
            case DeliverLate():
                self._late(connection, fault, wire, number)
            case _ if decision.interloper is not None:
                connection.to_client(apply(), number)
            case _:
                connection.pass_on(wire, number)

    def _delayed(
        self,
        connection: _Connection,
        fault: Delay,
        number: int,
        apply: Callable[[], bytes],
    ) -> None:
        held = self._hold()
        try:
            answer = apply() if fault.applied else None
            if not held.wait(fault.seconds):
                connection.cut(with_reset=True, number=number)
            connection.to_client(apply() if answer is None else answer, number)
        finally:
            self._done(held)

    def _late(self, connection: _Connection, fault: DeliverLate, wire: bytes, number: int) -> None:
        held = self._hold()
        try:
            self.log.end(number, None)
            (reset if fault.reset else finish)(connection.client)
            if held.wait(fault.after):
                connection.ask(wire, number)
        finally:
            self._done(held)
        raise _EndedError


class _Connection:
    """The two sockets of one connection, served by one thread.

    One thread for both directions, because a socket that is closed while another thread reads it
    sends nothing to its peer.
    """

    def __init__(
        self, client: socket.socket, server: socket.socket, dialect: Dialect, log: RequestLog
    ) -> None:
        self.client = client
        self._server = server
        self._dialect = dialect
        self._log = log
        self._unanswered: deque[int] = deque()
        self._selector = selectors.DefaultSelector()
        self._selector.register(client, selectors.EVENT_READ)
        self._selector.register(server, selectors.EVENT_READ)

    def next_statements(self) -> Iterable[ClientPiece]:
        """Pass on until the client has sent something; return its pieces, not yet forwarded."""
        while True:
            ready = {key.fileobj for key, _ in self._selector.select()}
            # The server first: what it has said belongs to what was asked before.
            if self._server in ready:
                self._pass_back()
            if self.client in ready:
                data = self.client.recv(_READ)
                if not data:
                    raise _EndedError
                return self._answered(self._dialect.from_client(data))

    def _answered(self, pieces: Iterable[ClientPiece]) -> Iterable[ClientPiece]:
        for piece in pieces:
            if piece.reply is None:
                yield piece
            else:
                self.client.sendall(piece.reply)

    def _from_server(self) -> list[ServerPiece]:
        data = self._server.recv(_READ)
        if not data:
            raise _EndedError
        return self._dialect.from_server(data)

    def _pass_back(self) -> None:
        """Give the client what the server says now."""
        pieces = self._from_server()
        for piece in pieces:
            if piece.completes and self._unanswered:
                number = self._unanswered.popleft()
                self._log.applied(number)
                self._log.end(number, 0)
        self.client.sendall(b"".join(piece.wire for piece in pieces))

    def to_server(self, wire: bytes) -> None:
        """Forward messages that are no statement."""
        self._server.sendall(wire)

    def pass_on(self, wire: bytes, number: int) -> None:
        """Forward a statement; its answer goes back as it comes."""
        self._unanswered.append(number)
        self._server.sendall(wire)

    def settle(self) -> None:
        """Give the client the answers to everything asked before."""
        while self._unanswered:
            self._pass_back()

    def ask(self, wire: bytes, number: int) -> bytes:
        """Forward a statement and return its whole answer, of which the client sees nothing."""
        self._server.sendall(wire)
        answer: list[bytes] = []
        while True:
            pieces = self._from_server()
            answer += [piece.wire for piece in pieces]
            if any(piece.completes for piece in pieces):
                self._log.applied(number)
                return b"".join(answer)

    def to_client(self, wire: bytes, number: int) -> None:
        """Give the client an answer."""
        self._log.end(number, 0)
        self.client.sendall(wire)

    def cut(self, *, with_reset: bool, number: int) -> None:
        """End the client's side. Always raises `_EndedError`, which ends the server's too."""
        self._log.end(number, None)
        (reset if with_reset else finish)(self.client)
        raise _EndedError

    def until_client_leaves(self) -> None:
        """Swallow what the client sends until it ends. Always raises `_EndedError`."""
        with contextlib.suppress(OSError):
            while self.client.recv(_READ):
                pass
        raise _EndedError

    def forget(self) -> None:
        """Release the selector and close what is still open in the log."""
        self._selector.close()
        for number in self._unanswered:
            self._log.end(number, None)
