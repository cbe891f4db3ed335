"""One attempt of one call: a connection within the time there is, the statement, and the verdict.

`Calls` owns what all attempts of a storage share: the engine, how many may run at once, whether the
tables have been looked at, and what becomes of all that in a forked child. `Settler` (core)
decides what follows an attempt; nothing here repeats anything.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from sqlalchemy.engine import Engine

from wenchang.storage import StorageRejectedError
from wenchang.storage.outcomes import Ambiguous, Attempt, Busy, Done, NotSent, ReadAttempt, Rejected
from wenchang_sql import schema
from wenchang_sql.databases import ensure_tables
from wenchang_sql.deadlines import AttemptTimedOut, Until, remaining
from wenchang_sql.errors import PoolExhausted, after_sending, before_sending
from wenchang_sql.leases import Lease

if TYPE_CHECKING:
    from wenchang_sql.databases import Database

__all__ = ["Calls"]

T = TypeVar("T")

_PREPARED: Final = "wenchang_sql.prepared"
_QUIET_SECONDS: Final = 5.0
_LAYOUT_SECONDS: Final = 10.0


class _Shared:
    """What the threads of one process share. A forked child gets a new one: locks may be held."""

    __slots__ = ("layout", "look_again", "permits", "schema_lock", "turn")

    def __init__(self, concurrency: int) -> None:
        # A queue of tokens: it waits and wakes in C, which a semaphore does not.
        self.permits: queue.SimpleQueue[None] = queue.SimpleQueue()
        for _ in range(concurrency):
            self.permits.put(None)
        self.turn = threading.Lock()
        self.schema_lock = threading.Lock()
        self.layout: schema.Layout | None = None
        self.look_again = 0.0


class Calls:
    """Runs the attempts of one storage. Safe over threads and fork."""

    def __init__(
        self,
        engine: Engine,
        database: Database,
        *,
        table: str,
        concurrency: int,
        create_schema: bool,
        owned: bool,
    ) -> None:
        """Connect to nothing yet. An engine that is `owned` is disposed of by `close`."""
        self._engine = engine
        self._database = database
        self._table = table
        self._concurrency = concurrency
        self._create_schema = create_schema
        self._owned = owned
        self._shared = _Shared(concurrency)
        self._refusal: StorageRejectedError | None = None
        _instances.add(self)

    @property
    def kind(self) -> str:
        """The kind of database, as `schema` and `statements` name it."""
        return self._database.kind

    def close(self) -> None:
        """Close the connections of an engine that is ours."""
        if self._owned:
            self._engine.dispose()

    def read(self, seconds: float, query: Callable[[Any], T]) -> ReadAttempt[T]:
        """Run `query` on the driver's connection; every failure of a read is of no consequence."""
        answer = self._attempt(seconds, query, write=False)
        if isinstance(answer, Done):
            return answer
        if isinstance(answer, Busy | NotSent | Rejected | Ambiguous):
            return answer
        # A read has no precondition that could be refused.
        raise AssertionError

    def write(self, seconds: float, change: Callable[[Any], Attempt]) -> Attempt:
        """Run `change`, one statement, and commit it; return what it came to."""
        answer = self._attempt(seconds, change, write=True)
        return answer.value if isinstance(answer, Done) else answer

    def _attempt(
        self, seconds: float, work: Callable[[Any], T], *, write: bool
    ) -> Done[T] | Attempt:
        """Run `work` within `seconds`, waiting for a connection and connecting included."""
        if self._refusal is not None:
            return Rejected(error=self._refusal)
        shared = self._shared
        ends = time.monotonic() + seconds
        try:
            shared.permits.get(timeout=seconds)
        except queue.Empty:
            return NotSent(error=PoolExhausted())
        try:
            with Until(ends):
                if not (write and self._database.serial_writes):
                    return self._connected(shared, work, write=write)
                if not shared.turn.acquire(timeout=remaining()):
                    return NotSent(error=PoolExhausted())
                try:
                    return self._connected(shared, work, write=True)
                finally:
                    shared.turn.release()
        except AttemptTimedOut as error:
            return NotSent(error=error, timed_out=True)
        finally:
            shared.permits.put(None)

    def _connected(
        self, shared: _Shared, work: Callable[[Any], T], *, write: bool
    ) -> Done[T] | Attempt:
        """Run `work` on a connection from the pool."""
        database = self._database
        try:
            lease = self._check_out(shared)
        except Exception as error:  # noqa: BLE001 - drivers raise much more than their own errors
            return before_sending(error)
        try:
            raw = lease.raw
            try:
                if write and shared.layout is not None:
                    schema.check_writable(shared.layout)
                database.begin(raw, lease.info, write=write)
            except Exception as error:  # noqa: BLE001 - as above
                return self._failed(lease, before_sending(error))
            try:
                value = work(raw)
                if write:
                    database.commit(raw)
            except Exception as error:  # noqa: BLE001 - as above: whatever is not known is ambiguous
                return self._failed(lease, after_sending(error))
            return Done(value=value)
        finally:
            lease.close()

    def _check_out(self, shared: _Shared) -> Lease:
        """Return a connection that was alive a moment ago and leads to tables that we know."""
        database = self._database
        for _ in range(self._concurrency + 1):
            lease = Lease.take(self._engine, ours=self._owned)
            try:
                if _PREPARED in lease.info:
                    if database.is_stale(lease.raw, lease.info):
                        # Also look at the tables again: the file or the server may be another one.
                        shared.layout = None
                        lease.invalidate()
                        continue
                else:
                    database.prepare(lease.raw, lease.info)
                    lease.raw.rollback()
                    lease.info[_PREPARED] = True
                if shared.layout is None or time.monotonic() >= shared.look_again:
                    self._look_at_tables(shared, lease.raw)
            except BaseException:
                # Half set up, or in the middle of an exchange.
                lease.invalidate()
                raise
            return lease
        raise AttemptTimedOut

    def _look_at_tables(self, shared: _Shared, raw: Any) -> None:
        """Make or check the tables, and again once in a while: a later release may upgrade them."""
        if not shared.schema_lock.acquire(timeout=remaining()):
            raise AttemptTimedOut
        try:
            if shared.layout is None or time.monotonic() >= shared.look_again:
                shared.layout = ensure_tables(
                    self._database, raw, self._table, create=self._create_schema
                )
                shared.look_again = time.monotonic() + _LAYOUT_SECONDS
        finally:
            shared.schema_lock.release()

    def _failed(self, lease: Lease, answer: Attempt) -> Attempt:
        """Give a connection up that may be in the middle of an exchange; undo on any other."""
        broken = isinstance(answer, Ambiguous | NotSent)
        if broken and not self._database.lives_in_process():
            lease.invalidate()
            return answer
        try:
            lease.raw.rollback()
        except Exception:  # noqa: BLE001 - the verdict stands; the connection is of no use any more
            lease.invalidate()
        return answer

    # --- fork ---------------------------------------------------------------------------------

    def _quiet(self) -> bool:
        """Close all connections to a file before a fork, waiting for running calls.

        SQLite keeps the locks of a process in its own memory. A child that inherits them believes
        that it holds them, and could lose the log to the parent. Returns False if calls go on.
        """
        shared = self._shared
        ends = time.monotonic() + _QUIET_SECONDS
        for taken in range(self._concurrency):
            try:
                shared.permits.get(timeout=max(0.0, ends - time.monotonic()))
            except queue.Empty:
                self._give_back(taken)
                return False
        self._engine.dispose()
        return True

    def _resume(self) -> None:
        """Let calls go on in the parent after `_quiet`."""
        self._give_back(self._concurrency)

    def _give_back(self, permits: int) -> None:
        for _ in range(permits):
            self._shared.permits.put(None)

    def _renew(self, *, refusal: str | None) -> None:
        """Begin anew in a forked child, without the parent's connections and locks."""
        # Never closed here: closing would end the parent's sessions too.
        _inherited.append(self._engine.pool)
        self._engine.dispose(close=False)
        self._shared = _Shared(self._concurrency)
        if refusal is not None:
            self._refusal = StorageRejectedError("unsupported", refusal)


_instances: weakref.WeakSet[Calls] = weakref.WeakSet()
_inherited: list[object] = []
_quieted: list[tuple[Calls, bool]] = []
_forking = threading.Lock()
"""Held from before a fork until after it: two threads that fork at once do it one after the other."""

_MEMORY_REFUSAL: Final = "a SQLite database in memory does not survive a fork: use a file"
_BUSY_REFUSAL: Final = (
    "the process forked while calls on the SQLite file were running: start new processes "
    "before the first call, or by spawn"
)


def _before_fork() -> None:
    """Bring SQLite to rest; servers need nothing."""
    _forking.acquire()
    _quieted.extend(
        (calls, calls._quiet())  # noqa: SLF001 - the class and its fork hooks are one subject
        for calls in list(_instances)
        if calls.kind == "sqlite" and not calls._database.lives_in_process()  # noqa: SLF001 - as above
    )


def _after_fork_in_parent() -> None:
    """Go on."""
    for calls, quiet in _quieted:
        if quiet:
            calls._resume()  # noqa: SLF001 - the class and its fork hooks are one subject
    _quieted.clear()
    _forking.release()


def _after_fork_in_child() -> None:
    """Rebuild every storage, or make it say why it cannot be used here."""
    quiet = {id(calls): was_quiet for calls, was_quiet in _quieted}
    _quieted.clear()
    _forking.release()
    for calls in list(_instances):
        refusal = None
        if calls._database.lives_in_process():  # noqa: SLF001 - the class and its fork hooks are one subject
            refusal = _MEMORY_REFUSAL
        elif not quiet.get(id(calls), True):
            refusal = _BUSY_REFUSAL
        with contextlib.suppress(RuntimeError):
            calls._renew(refusal=refusal)  # noqa: SLF001 - as above


os.register_at_fork(
    before=_before_fork,
    after_in_parent=_after_fork_in_parent,
    after_in_child=_after_fork_in_child,
)
