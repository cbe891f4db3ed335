"""Servers and clients that misbehave by themselves: the proxy passes on what it can, else cuts."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from wenchang_conformance.faults import Fault, FaultProxy, PostgreSQL, Rule, StreamProxy

REQUEST = b"GET /k HTTP/1.1\r\nHost: h\r\n\r\n"


@pytest.fixture
def saying() -> Iterator[Callable[[bytes], int]]:
    """Start servers that answer every request with the same bytes and end the connection."""
    running: list[tuple[socket.socket, threading.Thread]] = []

    def serve(listener: socket.socket, answer: bytes) -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            with sock:
                sock.recv(65536)
                sock.sendall(answer)

    def start(answer: bytes) -> int:
        listener = socket.create_server(("127.0.0.1", 0))
        thread = threading.Thread(target=serve, args=(listener, answer))
        thread.start()
        running.append((listener, thread))
        return listener.getsockname()[1]

    yield start
    for listener, thread in running:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)


def ask(port: int, request: bytes = REQUEST) -> bytes:
    """Send bytes and read to the end of the connection."""
    with socket.create_connection(("127.0.0.1", port), 10) as sock:
        sock.sendall(request)
        answer = b""
        while data := sock.recv(65536):
            answer += data
        return answer


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    ],
)
def test_an_answer_that_is_none_becomes_a_reset_and_does_not_count_as_applied(saying, answer):
    with FaultProxy(("127.0.0.1", saying(answer))) as proxy:
        with pytest.raises(ConnectionResetError):
            ask(proxy.port)
        (only,) = proxy.log.entries()
        assert (only.applied, only.status) == (0, None)


def test_interim_answers_are_skipped(saying):
    answer = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204\r\nX: y\r\n\r\n"
    with FaultProxy(("127.0.0.1", saying(answer))) as proxy:
        told = ask(proxy.port, b"GET /k HTTP/1.1\r\nConnection: close\r\n\r\n")
    assert told == b"HTTP/1.1 204 \r\nX: y\r\n\r\n"


@pytest.mark.parametrize(
    ("version", "header", "answers"),
    [
        (b"1.0", b"", 1),
        (b"1.0", b"Connection: keep-alive\r\n", 2),
        (b"1.1", b"", 2),
        (b"1.1", b"Connection: close\r\n", 1),
    ],
)
def test_a_connection_lives_as_long_as_its_version_and_headers_say(
    saying, version, header, answers
):
    once = b"HEAD /k HTTP/" + version + b"\r\n" + header + b"\r\n"
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"
    with (
        FaultProxy(("127.0.0.1", saying(answer))) as proxy,
        socket.create_connection(proxy.address, 10) as sock,
    ):
        sock.sendall(once + once)
        sock.shutdown(socket.SHUT_WR)
        told = b""
        try:
            while data := sock.recv(65536):
                told += data
        except ConnectionResetError:
            assert answers == 1  # the second request was never read
        assert proxy.log.total == answers


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n",
        b"GET /k HTTP/1.1\r\nX: " + b"x" * 70_000 + b"\r\n\r\n",
        b"GET /k HTTP/1.1\r\n" + b"X: y\r\n" * 300 + b"\r\n",
        b"PUT /k HTTP/1.1\r\nContent-Length: many\r\n\r\n",
        b"GET /k HTTP/2\r\n\r\n",
    ],
)
def test_a_request_that_is_none_never_reaches_the_server(saying, request_bytes):
    with FaultProxy(("127.0.0.1", saying(b"HTTP/1.1 204 No\r\n\r\n"))) as proxy:
        # A reset where the rest of the request was still on its way when the connection ended.
        with contextlib.suppress(ConnectionResetError):
            assert ask(proxy.port, request_bytes).startswith(b"HTTP/1.1 400")
        assert proxy.log.total == 0


def test_a_release_that_the_server_does_not_answer_in_time_says_so():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        target = ("127.0.0.1", silent.getsockname()[1])
        with FaultProxy(target) as proxy:
            proxy.script(Rule(fault=Fault.deliver_late()))
            with pytest.raises(ConnectionResetError):
                ask(proxy.port)
            with pytest.raises(TimeoutError, match="release"):
                proxy.release(timeout=0.05)


class TestDatabases:
    def test_a_database_that_is_gone_looks_like_a_reset(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        with (
            StreamProxy(("127.0.0.1", port), dialect=PostgreSQL) as proxy,
            pytest.raises(ConnectionResetError),
        ):
            ask(proxy.port, b"")

    def test_a_broken_predicate_cuts_the_client_off_and_is_raised_at_the_end(self, saying):
        def broken(_: object) -> bool:
            raise LookupError("predicate")

        startup = b"\0\0\0\x08\0\3\0\0"
        query = b"Q\0\0\0\x0bCOMMIT\0"

        def leave_the_block() -> None:
            with StreamProxy(("127.0.0.1", saying(b"")), dialect=PostgreSQL) as proxy:
                proxy.script(Rule(match=broken, fault=Fault.pass_through()))
                with pytest.raises(ConnectionResetError):
                    ask(proxy.port, startup + query)

        with pytest.raises(LookupError, match="predicate"):
            leave_the_block()
