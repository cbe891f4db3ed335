"""Calls that end in time, for SDKs that cannot promise it.

An HTTP client bounds each wait for bytes, not the whole call: a server that sends one byte a second, or
a resolver that hangs, holds its caller for as long as it likes. `BoundedCalls` runs a call on a
thread of its own and stops waiting for it when its time is up. The call itself cannot be ended: its
thread is left behind, comes back when the call returns, and counts against the limit until then.
"""

from __future__ import annotations

import os
import queue
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, TypeAlias, TypeVar, cast

__all__ = ["BoundedCalls", "CallNotStartedError", "CallTimedOutError"]

T = TypeVar("T")
A = TypeVar("A")


class CallTimedOutError(Exception):
    """The call was begun and did not end in time; whether it took effect is not known."""


class CallNotStartedError(Exception):
    """No thread was free in time; the call was never begun."""


class _Task(Generic[T]):
    """One call, and what became of it."""

    __slots__ = ("_call", "_error", "_running", "_value")

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        # A bare lock, held until the call has ended: an Event costs several times as much.
        self._running = threading.Lock()
        self._running.acquire()
        self._error: BaseException | None = None
        self._value: T | None = None

    def run(self) -> None:
        """Run the call and keep its outcome."""
        try:
            self._value = self._call()
        except BaseException as error:  # noqa: BLE001 - handed to the caller, who waits elsewhere
            self._error = error
        finally:
            self._running.release()

    def outcome(self, seconds: float) -> T:
        """Wait for the outcome, once; raise what the call raised, or `CallTimedOutError`."""
        if not self._running.acquire(timeout=seconds):
            raise CallTimedOutError
        if self._error is not None:
            raise self._error
        return cast("T", self._value)


_Inbox: TypeAlias = "queue.SimpleQueue[_Task[object] | None]"


class BoundedCalls:
    """A bounded set of daemon threads that run calls. Safe over threads; made anew in a fork."""

    def __init__(self, limit: int) -> None:
        """Allow at most `limit` calls at once, those left behind included. Starts no thread yet."""
        self._limit = limit
        self._reset()
        _instances.add(self)

    def _reset(self) -> None:
        # A queue of permits is a semaphore that waits in C. Of the idle threads the last one goes first.
        self._permits: queue.SimpleQueue[None] = queue.SimpleQueue()
        for _ in range(self._limit):
            self._permits.put(None)
        self._idle: deque[_Inbox] = deque()
        # Threads that wait do not hold the set, so one that nobody closed ends its own.
        weakref.finalize(self, _end, self._idle).atexit = False

    def run(self, call: Callable[[], T], seconds: float) -> T:
        """Return what `call` returns or raise what it raises, within `seconds`.

        Raises `CallNotStartedError` if all threads are taken for so long, `CallTimedOutError` if the call
        was begun and did not end.
        """
        ends = time.monotonic() + seconds
        task = self._start(call, seconds)
        return task.outcome(max(0.0, ends - time.monotonic()))

    def map(self, call: Callable[[A], T], arguments: Sequence[A], seconds: float) -> list[T]:
        """Return `call` of each argument, in order, as many at once as the limit allows."""
        ends = time.monotonic() + seconds
        tasks = [
            self._start(partial(call, argument), max(0.0, ends - time.monotonic()))
            for argument in arguments
        ]
        return [task.outcome(max(0.0, ends - time.monotonic())) for task in tasks]

    def close(self) -> None:
        """End the threads that are idle. A later call starts new ones."""
        _end(self._idle)

    def _start(self, call: Callable[[], T], seconds: float) -> _Task[T]:
        permits, idle = self._permits, self._idle
        try:
            permits.get(timeout=max(0.0, seconds))
        except queue.Empty:
            raise CallNotStartedError from None
        task = _Task(call)
        try:
            inbox = idle.pop()
        except IndexError:
            inbox = queue.SimpleQueue()
            thread = threading.Thread(
                target=_work,
                args=(inbox, idle, permits, weakref.ref(self)),
                name="wenchang-call",
                daemon=True,
            )
            try:
                thread.start()
            except BaseException:
                permits.put(None)
                raise
        inbox.put(cast("_Task[object]", task))
        return task


def _end(idle: deque[_Inbox]) -> None:
    """End the threads that are idle."""
    while True:
        try:
            idle.pop().put(None)
        except IndexError:
            return


def _work(
    inbox: _Inbox,
    idle: deque[_Inbox],
    permits: queue.SimpleQueue[None],
    owner: weakref.ref[BoundedCalls],
) -> None:
    """Run tasks until told to end. Idle first, permit second: who gets a permit finds the thread."""
    while (task := inbox.get()) is not None:
        task.run()
        del task
        idle.append(inbox)
        permits.put(None)
        if owner() is None:
            # It went while the call was running: nobody is left to end this thread.
            _end(idle)


_instances: weakref.WeakSet[BoundedCalls] = weakref.WeakSet()


def _reset_after_fork() -> None:
    """Forget the parent's threads, which do not exist in the child."""
    for calls in list(_instances):
        calls._reset()  # noqa: SLF001 - the class and its fork hook are one subject


os.register_at_fork(after_in_child=_reset_after_fork)
