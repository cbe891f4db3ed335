"""A small conditional key-value store over HTTP, and clients for it, to put a proxy in front of."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from wenchang_conformance.faults import FaultProxy

TIMEOUT = 10.0


class Store(ThreadingHTTPServer):
    """Objects with ETags that never come back, If-Match and If-None-Match."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        self.objects: dict[str, tuple[bytes, str]] = {}
        self.applied: list[tuple[str, str]] = []
        self.seen_headers: list[dict[str, str]] = []
        self.seen_bodies: list[bytes] = []
        self.seen_targets: list[str] = []
        self.lock = threading.Lock()
        self.versions = 0
        super().__init__(("127.0.0.1", 0), Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that the proxy ends is no news."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Store

    def log_message(self, *_: object) -> None:
        pass

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            while self.rfile.readline() not in (b"\r\n", b""):
                pass
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _handle(self) -> None:
        body = self._body()
        store = self.server
        path = self.path.partition("?")[0]
        with store.lock:
            store.seen_headers.append(dict(self.headers.items()))
            store.seen_bodies.append(body)
            store.seen_targets.append(self.path)
            present = store.objects.get(path)
            if_match = self.headers.get("If-Match")
            refused = (if_match is not None and (present is None or present[1] != if_match)) or (
                self.headers.get("If-None-Match") == "*" and present is not None
            )
            if refused:
                return self._answer(412)
            if self.command == "PUT":
                store.versions += 1
                etag = f'"{store.versions:032x}"'
                store.objects[path] = (body, etag)
                store.applied.append(("PUT", path))
                return self._answer(200, ETag=etag)
            if self.command == "DELETE":
                store.objects.pop(path, None)
                store.applied.append(("DELETE", path))
                return self._answer(204)
        if present is None:
            return self._answer(404, b"absent")
        if "chunked" in self.path:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for i in range(0, len(present[0]), 5):
                chunk = present[0][i : i + 5]
                self.wfile.write(b"%x;x=1\r\n%b\r\n" % (len(chunk), chunk))
            self.wfile.write(b"0\r\nX-Trailer: t\r\n\r\n")
            return None
        if "until-close" in self.path:
            self.send_response(200)
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(present[0])
            self.close_connection = True
            return None
        return self._answer(200, present[0], ETag=present[1])

    do_GET = do_HEAD = do_PUT = do_DELETE = _handle


@dataclass
class Reply:
    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


class Client:
    """One keep-alive connection."""

    def __init__(self, port: int, timeout: float = TIMEOUT) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Reply:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request(method, path, body, names)
        answer = self.connection.getresponse()
        return Reply(answer.status, answer.read(), {k.lower(): v for k, v in answer.getheaders()})

    def close(self) -> None:
        self.connection.close()


@pytest.fixture
def store() -> Iterator[Store]:
    server = Store()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join(TIMEOUT)
    server.server_close()


@pytest.fixture
def proxy(store: Store) -> Iterator[FaultProxy]:
    with FaultProxy(("127.0.0.1", store.server_port)) as proxy:
        yield proxy


@pytest.fixture
def connect(proxy: FaultProxy) -> Iterator[Callable[..., Client]]:
    """Make clients that are closed at the end; with no port, of the proxy."""
    with contextlib.ExitStack() as stack:

        def make(port: int | None = None, timeout: float = TIMEOUT) -> Client:
            client = Client(port or proxy.port, timeout)
            stack.callback(client.close)
            return client

        yield make


@pytest.fixture
def client(connect: Callable[..., Client]) -> Client:
    return connect()


@pytest.fixture
def raw(proxy: FaultProxy) -> Iterator[socket.socket]:
    with socket.create_connection(proxy.address, TIMEOUT) as sock:
        yield sock
