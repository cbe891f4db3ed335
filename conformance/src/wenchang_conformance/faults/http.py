"""The HTTP proxy: reads whole requests, lets the server act, and does what the script says."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, cast

from wenchang_conformance.faults.kinds import (
    AnswerAfter,
    AnswerInFront,
    CutAfterAnswer,
    Delay,
    DeliverLate,
    DeliverTwice,
    Drip,
    DropAnswer,
    DropRequest,
    Fault,
    Hang,
    HangApplied,
    StripConditions,
    TearHead,
    TruncateBody,
)
from wenchang_conformance.faults.listener import finish, reset
from wenchang_conformance.faults.messages import (
    Answer,
    ConnectionEndedError,
    MalformedMessageError,
    Request,
    canned,
    header,
    read_answer,
    read_request,
)
from wenchang_conformance.faults.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Callable

    from wenchang_conformance.faults.script import Decision


class _CutError(Exception):
    """The client's connection is to end now: with a reset, or in an orderly way."""

    def __init__(self, *, with_reset: bool) -> None:
        super().__init__()
        self.with_reset = with_reset


@dataclass(frozen=True, slots=True, kw_only=True)
class _Exchange:
    """One request on its way: what was asked, by whom, and its number in the log."""

    client: socket.socket
    request: Request
    number: int
    interloper: Callable[[], object] | None


class FaultProxy(Proxy[Request]):
    """An HTTP/1.1 proxy on loopback that injects faults in front of `target`.

        with FaultProxy(("127.0.0.1", port)) as proxy:
            proxy.script(Rule(match=matching("PUT"), fault=Fault.drop_answer()))
            client = connect(f"http://127.0.0.1:{proxy.port}")

    Understands Content-Length, chunked bodies, keep-alive and `Expect: 100-continue`, no TLS.
    Each request is read whole and forwarded on a connection of its own; each answer is read whole
    before the client gets a byte of it. Apart from hop-by-hop headers and the expectation,
    messages pass byte for byte. A target that cannot be reached, or that ends its answer early,
    looks to the client like a connection reset. Any number of connections may be in use at once.

    `log` counts and records every request; see `RequestLog`.
    """

    def _check(self, fault: Fault) -> None:
        """Every fault can be injected into HTTP."""

    def _serve(self, client: socket.socket) -> None:
        stream = cast("BinaryIO", client.makefile("rb"))
        with_reset = False
        try:
            while not self._listener.closing.is_set():
                request = read_request(
                    stream, lambda: client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                )
                if request is None or not self._exchange(client, request):
                    break
        except _CutError as cut:
            with_reset = cut.with_reset
        except MalformedMessageError:
            with contextlib.suppress(OSError):
                client.sendall(canned("GET", 400, (), b"").to_wire())
        except (OSError, ConnectionEndedError):
            with_reset = True
        finally:
            # The stream holds a reference to the descriptor: unless it goes first, closing the
            # socket closes nothing.
            stream.close()
            (reset if with_reset else finish)(client)

    def _exchange(self, client: socket.socket, request: Request) -> bool:
        """Serve one request; True if the connection may carry another."""
        try:
            decision = self._script.decide(request)
        except Exception:
            # A broken predicate must not look like a passing test: the client is cut off, the
            # error is reported when the proxy is closed.
            reset(client)
            raise
        number = self.log.begin(request.method, request.target, decision.fault.name)
        exchange = _Exchange(
            client=client, request=request, number=number, interloper=decision.interloper
        )
        try:
            answer = self._inject(exchange, decision)
        finally:
            self.log.end(number, None)
        return request.keeps_alive and answer.delimited

    # Talking to the server -----------------------------------------------------------------

    def _forward(self, request: Request, number: int) -> Answer:
        """Send the request to the target and read its whole answer."""
        with (
            self._listener.tracked(
                socket.create_connection(self.target, self._target_timeout)
            ) as server,
            server.makefile("rb") as stream,
        ):
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # A server may answer and stop reading before it has the whole body.
            with contextlib.suppress(ConnectionError):
                server.sendall(request.to_wire())
            try:
                answer = read_answer(cast("BinaryIO", stream), request.method)
            except MalformedMessageError as error:
                raise ConnectionEndedError from error
        self.log.applied(number)
        return answer

    def _apply(self, exchange: _Exchange, request: Request | None = None) -> Answer:
        """Forward, then let the interloper in."""
        answer = self._forward(request or exchange.request, exchange.number)
        self._interlope(exchange.interloper)
        return answer

    # Talking to the client -----------------------------------------------------------------

    def _give(self, exchange: _Exchange, answer: Answer) -> Answer:
        self.log.end(exchange.number, answer.status)
        exchange.client.sendall(answer.to_wire())
        return answer

    def _cut(self, exchange: _Exchange, *, with_reset: bool, sent: bytes = b"") -> _CutError:
        """Send a last piece, if any, and return the exception that ends the connection."""
        self.log.end(exchange.number, None)
        if sent:
            exchange.client.sendall(sent)
        return _CutError(with_reset=with_reset)

    def _until_client_leaves(self, exchange: _Exchange) -> _CutError:
        with contextlib.suppress(OSError):
            while exchange.client.recv(4096):
                pass
        return self._cut(exchange, with_reset=False)

    # The faults ----------------------------------------------------------------------------

    def _inject(self, exchange: _Exchange, decision: Decision) -> Answer:
        """Do what the script says; return the answer given, or raise what ends the connection."""
        match decision.fault:
            case DropRequest(reset=with_reset):
                raise self._cut(exchange, with_reset=with_reset)
            case DropAnswer(reset=with_reset):
                self._apply(exchange)
                raise self._cut(exchange, with_reset=with_reset)
            case CutAfterAnswer(reset=with_reset):
                self._give(exchange, self._apply(exchange))
                raise _CutError(with_reset=with_reset)
            case AnswerInFront(status=status, headers=headers, body=body):
                return self._give(exchange, canned(exchange.request.method, status, headers, body))
            case AnswerAfter(status=status, headers=headers, body=body):
                self._apply(exchange)
                return self._give(exchange, canned(exchange.request.method, status, headers, body))
            case TruncateBody() as fault:
                return self._truncated(exchange, fault)
            case TearHead() as fault:
                answer = self._apply(exchange)
                raise self._cut(exchange, with_reset=fault.reset, sent=torn(answer, fault))
            case Hang():
                raise self._until_client_leaves(exchange)
            case HangApplied():
                self._apply(exchange)
                raise self._until_client_leaves(exchange)
            case Delay() as fault:
                return self._delayed(exchange, fault)
            case Drip() as fault:
                return self._dripped(exchange, fault)
            case DeliverLate() as fault:
                raise self._late(exchange, fault)
            case DeliverTwice(answer=which):
                first = self._apply(exchange)
                second = self._forward(exchange.request, exchange.number)
                return self._give(exchange, first if which == "first" else second)
            case StripConditions(headers=names, parameters=parameters):
                bare = exchange.request.without(names, parameters)
                return self._give(exchange, self._apply(exchange, bare))
            case _:
                return self._give(exchange, self._apply(exchange))

    def _truncated(self, exchange: _Exchange, fault: TruncateBody) -> Answer:
        answer = self._apply(exchange)
        if not answer.wire_body:
            return self._give(exchange, answer)
        keep = len(answer.wire_body) // 2 if fault.keep is None else fault.keep
        sent = answer.head() + answer.wire_body[: min(keep, len(answer.wire_body) - 1)]
        raise self._cut(exchange, with_reset=fault.reset, sent=sent)

    def _delayed(self, exchange: _Exchange, fault: Delay) -> Answer:
        held = self._hold()
        try:
            answer = self._apply(exchange) if fault.applied else None
            if not held.wait(fault.seconds):
                raise self._cut(exchange, with_reset=True)
            return self._give(exchange, answer or self._apply(exchange))
        finally:
            self._done(held)

    def _dripped(self, exchange: _Exchange, fault: Drip) -> Answer:
        answer = self._apply(exchange)
        self.log.end(exchange.number, answer.status)
        wire = answer.to_wire()
        for start in range(0, len(wire), fault.size):
            exchange.client.sendall(wire[start : start + fault.size])
            if self._listener.closing.wait(fault.interval):
                raise _CutError(with_reset=True)
        return answer

    def _late(self, exchange: _Exchange, fault: DeliverLate) -> _CutError:
        # Counted as held before the client is told, so that a client that has been cut off can
        # rely on `held` and `release`.
        held = self._hold()

        def deliver() -> None:
            try:
                if held.wait(fault.after):
                    with contextlib.suppress(OSError, ConnectionEndedError):
                        self._forward(exchange.request, exchange.number)
            finally:
                self._done(held)

        self._listener.spawn(deliver)
        return self._cut(exchange, with_reset=fault.reset)


def torn(answer: Answer, fault: TearHead) -> bytes:
    """Return the part of an answer's head that a torn connection still delivers."""
    head = answer.head()
    if fault.header is not None and header(answer.headers, fault.header) is not None:
        mark = b"\r\n" + fault.header.lower().encode("latin-1") + b": "
        start = head.lower().index(mark) + len(mark)
        end = head.index(b"\r\n", start)
        return head[: min(start + fault.keep, end - 1)]
    return head[: len(head) // 2]
