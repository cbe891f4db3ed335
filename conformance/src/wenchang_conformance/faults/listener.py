"""A loopback listener whose threads and sockets all end when it is closed.

Trap behind several lines here: `close()` on a socket that another thread is reading neither wakes
that thread nor sends anything to the peer. `shutdown()` does both, so sockets are ended by
`shutdown()` from outside and closed only by the thread that owns them.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LOOPBACK = "127.0.0.1"
_BACKLOG = 512


def reset(sock: socket.socket) -> None:
    """Close a socket so that the peer sees a connection reset. Only for the owning thread."""
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def finish(sock: socket.socket) -> None:
    """Close a socket so that the peer sees an orderly end. Only for the owning thread."""
    wake(sock)
    sock.close()


def wake(sock: socket.socket) -> None:
    """End a connection from any thread: blocked reads return, the peer sees the end."""
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


class Listener:
    """Accepts connections on a free loopback port and serves each on a thread of its own.

    `serve` owns the socket it is given: when it returns the socket is closed. `close` is
    idempotent, ends every connection and joins every thread.
    """

    def __init__(self, serve: Callable[[socket.socket], None], *, name: str) -> None:
        """Listen at once; connections are served from now on."""
        self._serve = serve
        self._name = name
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._threads: set[threading.Thread] = set()
        self._closed = False
        self.closing = threading.Event()
        self.errors: list[BaseException] = []
        self._socket = self._bound(0)
        self.port: int = self._socket.getsockname()[1]
        self._start()

    @staticmethod
    def _bound(port: int) -> socket.socket:
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((LOOPBACK, port))
        except OSError:
            sock.close()
            raise
        return sock

    def _start(self) -> None:
        self._socket.listen(_BACKLOG)
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._acceptor = threading.Thread(
            target=self._accept, name=f"{self._name}-accept", daemon=True
        )
        self._acceptor.start()

    def _stop(self) -> None:
        # A byte through a pair of sockets wakes the selector on every platform; closing or shutting
        # down a listening socket does so only on some.
        self._wake_writer.send(b"x")
        self._acceptor.join(10)
        self._socket.close()
        self._wake_reader.close()
        self._wake_writer.close()

    def _accept(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            selector.register(self._wake_reader, selectors.EVENT_READ)
            while True:
                ready = {key.fileobj for key, _ in selector.select()}
                if self._wake_reader in ready:
                    return
                try:
                    client, _address = self._socket.accept()
                except OSError:
                    continue
                self.spawn(self._serve_one, client)

    def _serve_one(self, client: socket.socket) -> None:
        with self.tracked(client):
            with contextlib.suppress(OSError):
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._serve(client)

    def spawn(self, work: Callable[..., None], *arguments: object) -> None:
        """Run `work` on a thread that `close` will join. What it raises goes to `errors`."""

        def run() -> None:
            try:
                work(*arguments)
            except BaseException as error:  # noqa: BLE001 - reported by the proxy's close()
                self.errors.append(error)
            finally:
                with self._lock:
                    self._threads.discard(threading.current_thread())

        thread = threading.Thread(target=run, name=f"{self._name}-connection", daemon=True)
        with self._lock:
            self._threads.add(thread)
        thread.start()

    @contextlib.contextmanager
    def tracked(self, sock: socket.socket) -> Iterator[socket.socket]:
        """Let `close` and `outage` reach this socket; close it at the end."""
        with self._lock:
            self._sockets.add(sock)
            too_late = self.closing.is_set()
        if too_late:
            wake(sock)
        try:
            yield sock
        finally:
            with self._lock:
                self._sockets.discard(sock)
            sock.close()

    def cut_all(self) -> None:
        """End every connection there is; new ones are still accepted."""
        with self._lock:
            for sock in self._sockets:
                wake(sock)

    @contextlib.contextmanager
    def outage(self) -> Iterator[None]:
        """Refuse connections at the same port, and end those there are, inside the block."""
        self._stop()
        # Bound but not listening: connects are refused, and nobody else can be given the port.
        self._socket = self._bound(self.port)
        self.cut_all()
        try:
            yield
        finally:
            self._start()

    def close(self, timeout: float = 10.0) -> None:
        """Stop listening, end every connection, join every thread.

        Raises RuntimeError naming the threads that did not end within `timeout` seconds, which
        means that an interloper or a predicate is stuck.
        """
        if self._closed:
            return
        self._closed = True
        self.closing.set()
        self._stop()
        self.cut_all()
        deadline = time.monotonic() + timeout
        with self._lock:
            threads = list(self._threads)
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        stuck = [thread.name for thread in threads if thread.is_alive()]
        if stuck:
            msg = f"{len(stuck)} proxy threads did not end within {timeout} s: {stuck}"
            raise RuntimeError(msg)
