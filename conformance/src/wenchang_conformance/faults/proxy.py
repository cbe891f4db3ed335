"""What the HTTP proxy and the database proxy share: script, log, held requests, life cycle."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from wenchang_conformance.faults.listener import LOOPBACK, Listener
from wenchang_conformance.faults.log import RequestLog
from wenchang_conformance.faults.script import Chaos, Rule, Script, Steps

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from types import TracebackType

    from wenchang_conformance.faults.kinds import Fault

SubjectT = TypeVar("SubjectT")


class Held:
    """One request that waits for `release()`, for its time, or for the proxy's end."""

    def __init__(self) -> None:
        """Begin waiting."""
        self.released = threading.Event()
        self.finished = threading.Event()
        self.cancelled = False

    def wait(self, seconds: float | None) -> bool:
        """Block until released or until the time is over; False when the proxy is closing."""
        self.released.wait(seconds)
        return not self.cancelled


class Proxy(ABC, Generic[SubjectT]):
    """A loopback proxy in front of `target`, a (host, port) pair.

    Listens on a free port of 127.0.0.1 from construction until `close`; use it as a context
    manager. Leaving the block closes the proxy and raises the first error that an interloper, a
    predicate or the proxy itself met (`errors` holds all of them), unless the block is already
    being left by an exception.
    """

    def __init__(
        self, target: tuple[str, int], *, target_timeout: float = 60.0, log_limit: int = 10_000
    ) -> None:
        """Start listening.

        `target_timeout` bounds each wait for the target, in seconds; `log_limit` is the number of
        log entries kept.
        """
        self.target = target
        self.log = RequestLog(limit=log_limit)
        self._target_timeout = target_timeout
        self._script: Script[SubjectT] = Script()
        self._held_changed = threading.Condition()
        self._held: list[Held] = []
        self._listener = Listener(self._serve, name=type(self).__name__)

    @property
    def port(self) -> int:
        """The port clients connect to."""
        return self._listener.port

    @property
    def address(self) -> tuple[str, int]:
        """Host and port clients connect to."""
        return LOOPBACK, self.port

    @property
    def errors(self) -> list[BaseException]:
        """What went wrong inside the proxy, interlopers and predicates included."""
        return self._listener.errors

    def script(self, *entries: Rule[SubjectT] | Steps[SubjectT] | Chaos[SubjectT]) -> None:
        """Append entries to the script. Earlier entries decide before later ones.

        Raises TypeError for a fault that this kind of proxy cannot inject; nothing is appended.
        """
        for entry in entries:
            for fault in faults_of(entry):
                self._check(fault)
        self._script.extend(*entries)

    def clear(self) -> None:
        """Empty the script: everything passes. Held requests stay held, the log is kept."""
        self._script.clear()

    @property
    def exhausted(self) -> bool:
        """True when every entry of the script has been used up."""
        return self._script.exhausted

    @property
    def held(self) -> int:
        """How many requests wait for `release`, or for their time."""
        with self._held_changed:
            return len(self._held)

    def wait_for_held(self, count: int, *, timeout: float = 10.0) -> None:
        """Block until at least `count` requests are held.

        Raises TimeoutError after `timeout` seconds.
        """
        with self._held_changed:
            if not self._held_changed.wait_for(lambda: len(self._held) >= count, timeout):
                msg = f"only {len(self._held)} of {count} requests were held within {timeout} s"
                raise TimeoutError(msg)

    def release(self, *, timeout: float = 10.0) -> int:
        """Let go of all held requests, in order of their arrival, each once the last is done.

        A request delivered late is done when the server has answered it (or cut it off); a
        request under `Fault.hold` or `Fault.delay` when its answer has been sent. Returns how many
        there were. Raises TimeoutError if one is not done in `timeout` seconds.
        """
        with self._held_changed:
            waiting = list(self._held)
        deadline = time.monotonic() + timeout
        for held in waiting:
            held.released.set()
            if not held.finished.wait(max(0.0, deadline - time.monotonic())):
                msg = f"a held request was not done within {timeout} s of its release"
                raise TimeoutError(msg)
        return len(waiting)

    def outage(self) -> AbstractContextManager[None]:
        """Inside the block connections are refused, and those there were are cut."""
        return self._listener.outage()

    def cut_all(self) -> None:
        """End every connection there is, on both sides; new ones are accepted."""
        self._listener.cut_all()

    def close(self, *, timeout: float = 10.0) -> None:
        """Stop: no port, socket or thread of the proxy is left. Idempotent.

        Held requests are dropped. Raises RuntimeError if a thread does not end in `timeout`
        seconds.
        """
        # In this order: a request held from here on cancels itself.
        self._listener.closing.set()
        self._cancel_held()
        self._listener.close(timeout)

    def __enter__(self) -> Self:
        """Return the proxy."""
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close, then raise the first recorded error unless the block failed itself."""
        self.close()
        if exc is None and self.errors:
            raise self.errors[0]

    # For subclasses ------------------------------------------------------------------------

    @abstractmethod
    def _serve(self, client: socket.socket) -> None:
        """Serve one connection to its end; the caller closes the socket."""

    @abstractmethod
    def _check(self, fault: Fault) -> None:
        """Raise TypeError if this proxy cannot inject the fault."""

    def _hold(self) -> Held:
        held = Held()
        with self._held_changed:
            self._held.append(held)
            self._held_changed.notify_all()
        if self._listener.closing.is_set():
            held.cancelled = True
            held.released.set()
        return held

    def _done(self, held: Held) -> None:
        with self._held_changed:
            self._held.remove(held)
        held.finished.set()

    def _cancel_held(self) -> None:
        with self._held_changed:
            for held in self._held:
                if not held.released.is_set():
                    held.cancelled = True
                held.released.set()

    def _interlope(self, interloper: Callable[[], object] | None) -> None:
        if interloper is None:
            return
        try:
            interloper()
        except BaseException as error:  # noqa: BLE001 - reported by __exit__, the request goes on
            self.errors.append(error)


def faults_of(
    entry: Rule[SubjectT] | Steps[SubjectT] | Chaos[SubjectT],
) -> tuple[Fault, ...]:
    """Return every fault an entry may inject."""
    if isinstance(entry, Rule):
        return (entry.fault,)
    if isinstance(entry, Steps):
        return entry.faults
    return tuple(fault for fault, _ in entry.rates)
