"""How a backend finds out what became of a write, and how often it may send it.

Every cloud SDK re-sends a conditional write whose answer was lost and then reports a conflict
with its own landed write. Backends therefore switch SDK retries off and hand each call to a
`Settler`, which owns the retry loop, the deadline and the verdict. A backend supplies two
functions: one sends a single attempt and classifies the answer (`Attempt`); the other reads the
object back.

Two marks make a landed write recognisable. Its *write id*, 80 random bits, is stored atomically
with the object. A conditional replace also stores a *lineage*: up to 16 pairs of write id (or
`-`) and version, newest first, which begin with the version it replaced. So a write that landed and
was replaced at once is still found, in the lineage of its successors. Predecessors are recognised by
version, never by id, because an object that was copied or edited by hand keeps its ids.

`decide` is the whole table and has no side effects, so that a model checker can explore it.

Known residue: a proxy that sends a write twice and passes the second answer on, combined with a
rival that deletes the object or replaces it through a handle without memory of it, between the
landing and the read-back. A delete that a proxy sends twice in that way is reported as a conflict,
since a delete leaves no mark. And no table covers an operator who restores an old version of an
object: versions then come back.
"""

from __future__ import annotations

import os
import random
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, Literal, NoReturn, TypeAlias, TypeVar

from wenchang.errors import BackendUnavailableError
from wenchang.storage.errors import PreconditionFailedError, StorageConfigurationError

if TYPE_CHECKING:
    from wenchang.storage.contract import StoredObject

__all__ = [
    "LINEAGE_LIMIT",
    "UNKNOWN_ID",
    "Ambiguous",
    "Applied",
    "Attempt",
    "Busy",
    "Delete",
    "Done",
    "Found",
    "Lineage",
    "LineageMemory",
    "NotSent",
    "ReadAttempt",
    "Refused",
    "Rejected",
    "RetryPolicy",
    "Settler",
    "Verdict",
    "Write",
    "WriteKind",
    "decide",
    "new_write_id",
]

T = TypeVar("T")

LINEAGE_LIMIT: Final = 16
"""Pairs in a stored lineage."""
UNKNOWN_ID: Final = "-"
"""Stands for the write id of a version whose id the writing handle does not know."""

Lineage: TypeAlias = tuple[tuple[str, str], ...]
"""Pairs of write id (or `UNKNOWN_ID`) and version, newest first."""
WriteKind: TypeAlias = Literal["create", "replace", "put"]


def new_write_id() -> str:
    """Return 80 bits of `os.urandom` as 20 hexadecimal digits."""
    return os.urandom(10).hex()


# --- what one attempt came to --------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """The service acknowledged the write with a whole version (for a delete: with "")."""

    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The precondition failed, by the provider's own code or a row count of 0.

    Never the answer to an unconditional put.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """Refused for good (credentials, missing bucket, unsupported): not applied, not retried."""

    error: Exception


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """The provider's own code for "try again" was in the answer: not applied, retried.

    A bare 408, 429 or 5xx is `Ambiguous`: a proxy may have sent it after the write was applied.
    `retry_after` is the wait in seconds that the service asked for.
    """

    error: Exception
    retry_after: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotSent:
    """Name not resolved, connection refused, connect or TLS failure: not applied, retried."""

    error: Exception
    timed_out: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ambiguous:
    """Everything else: the attempt may have been applied, or may still be."""

    error: Exception
    timed_out: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Done(Generic[T]):
    """A read was answered."""

    value: T


Attempt: TypeAlias = Applied | Refused | Rejected | Busy | NotSent | Ambiguous
ReadAttempt: TypeAlias = Done[T] | Rejected | Busy | NotSent | Ambiguous
Send: TypeAlias = Callable[[float], Attempt]
"""Sends one attempt, with at most the given seconds, and classifies what came back."""
ReadBack: TypeAlias = "Callable[[float], ReadAttempt[Found | None]]"
"""Reads the object back, with at most the given seconds; None means that the key is absent."""


# --- what is asked and what is found -------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A put in the eyes of the settling table.

    `expected` is None for `create` and `put`. The same `write_id` and `lineage` go into every
    attempt of the call.
    """

    key: str
    kind: WriteKind
    expected: str | None
    write_id: str
    lineage: Lineage = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """A conditional delete in the eyes of the settling table."""

    key: str
    expected: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The object as read back. `write_id` is None when the object is not ours."""

    current: StoredObject
    write_id: str | None
    lineage: Lineage = ()
    edited: bool = False
    """Somebody changed the object in place and kept its id: the id proves that the write landed, but
    `current` is not what it wrote."""
    tombstone: bool = False
    """The object marks a deleted one: callers are told that the key is absent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the table says after a read-back; `version` goes with `landed`."""

    outcome: Literal["landed", "resend", "conflict", "gone", "unknown"]
    version: str = ""


_RESEND: Final = Verdict(outcome="resend")
_CONFLICT: Final = Verdict(outcome="conflict")
_GONE: Final = Verdict(outcome="gone")
_UNKNOWN: Final = Verdict(outcome="unknown")


def decide(call: Write | Delete, found: Found | None, *, ambiguous: bool) -> Verdict:
    """Say what became of `call`, given the object found now (None: the key is absent).

    `ambiguous` tells whether any attempt of the call was. Without one, the read-back follows a
    refusal, and the only question is whether the write that blocked the call was its own.
    """
    if isinstance(call, Delete):
        return _decide_delete(call, found, ambiguous=ambiguous)
    landed_as = _own_version(call.write_id, found)
    if landed_as is not None:
        # Without a version the write landed and was then edited in place. Returning the edit's version
        # would let the caller overwrite the edit unseen; a conflict would deny what happened.
        return Verdict(outcome="landed", version=landed_as) if landed_as else _UNKNOWN
    if not ambiguous and call.kind != "put":
        return _CONFLICT
    if call.kind != "replace":
        # A late attempt may still arrive, and its condition can become true again (create) or always
        # is (put). So it is never sent again, and nothing found now proves that it did not land.
        return _UNKNOWN
    return _decide_conditional(call.expected or "", found)


def _own_version(write_id: str, found: Found | None) -> str | None:
    """Return the version under which the write landed, if it is or was the object found.

    "" when it landed under a version that cannot be known any more.
    """
    if found is None:
        return None
    if found.write_id == write_id:
        return "" if found.edited else found.current.version
    return next((version for pair_id, version in found.lineage if pair_id == write_id), None)


def _decide_conditional(expected: str, found: Found | None) -> Verdict:
    """Settle a replace or delete of version `expected` after an ambiguous attempt."""
    if found is None:
        return _UNKNOWN
    if found.current.version == expected:
        # Versions never come back, so of all attempts at most one can still be applied.
        return _RESEND
    if any(version == expected for _, version in found.lineage):
        # Others replaced the expected version one after another, and ours is not among them.
        return _CONFLICT
    return _UNKNOWN


def _decide_delete(call: Delete, found: Found | None, *, ambiguous: bool) -> Verdict:
    """Settle a delete, which leaves no mark of its own behind."""
    if not ambiguous:
        return _CONFLICT
    if found is None:
        return _GONE
    return _decide_conditional(call.expected, found)


# --- what a handle remembers ---------------------------------------------------------------------


class LineageMemory:
    """What a handle knows of versions it read, listed or wrote: their write id and lineage.

    Bounded by entry count, the oldest first out. Safe over threads and fork. Forgetting is
    harmless: a lost answer may then settle as unknown where memory would have told more.
    """

    def __init__(self, max_entries: int = 4096) -> None:
        """Make an empty memory of at most `max_entries` versions."""
        self._max_entries = max_entries
        self._entries: OrderedDict[tuple[str, str], tuple[str, Lineage]] = OrderedDict()
        self._lock = threading.Lock()
        _memories.add(self)

    def remember(self, key: str, version: str, write_id: str | None, lineage: Lineage) -> None:
        """Keep what was read or written. Objects that are not ours (`write_id` None) are not kept."""
        if write_id is None:
            return
        with self._lock:
            self._entries[key, version] = (write_id, lineage[: LINEAGE_LIMIT - 1])
            self._entries.move_to_end((key, version))
            while len(self._entries) > self._max_entries:
                self._entries.popitem(last=False)

    def lineage_for_replace(self, key: str, expected: str) -> Lineage:
        """Return the lineage to store with a replace of version `expected`.

        Its first pair is always the replaced version, which every handle knows.
        """
        with self._lock:
            write_id, older = self._entries.get((key, expected), (UNKNOWN_ID, ()))
        return ((write_id, expected), *older)

    def _renew_lock(self) -> None:
        """Replace a lock that some thread of the parent may have held during fork."""
        self._lock = threading.Lock()


_memories: weakref.WeakSet[LineageMemory] = weakref.WeakSet()


def _renew_locks_after_fork() -> None:
    """Give each memory of a forked child a lock that nobody holds."""
    for memory in list(_memories):
        memory._renew_lock()  # noqa: SLF001 - the class and its fork hook are one subject


os.register_at_fork(after_in_child=_renew_locks_after_fork)


# --- the loop ------------------------------------------------------------------------------------

# In seconds: no lock, socket or driver can wait for any number of them.
_LONGEST: Final = 365 * 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Bounds of one call, all in seconds.

    `deadline` bounds the whole call, back-off included. `attempt_timeout` bounds one attempt, and so
    does a third of the deadline: an attempt that timed out has to be read back in time, and is
    easier to settle the sooner it is. Waits between attempts are random up to `backoff_base` doubled each time, and at
    most `backoff_cap`.
    """

    deadline: float = 30.0
    attempt_timeout: float = 10.0
    backoff_base: float = 0.05
    backoff_cap: float = 2.0

    def __post_init__(self) -> None:
        """Refuse a bound that is not positive or over a year with `StorageConfigurationError`."""
        for name in ("deadline", "attempt_timeout", "backoff_base", "backoff_cap"):
            value = getattr(self, name)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not 0 < value <= _LONGEST:
                msg = f"option '{name}' must be a positive number of seconds, a year at most"
                raise StorageConfigurationError(msg)


class Settler:
    """Runs the calls of one backend: attempts, back-off, deadline and verdict.

    One settler serves any number of threads; it keeps no state between calls.
    """

    def __init__(
        self,
        policy: RetryPolicy | None = None,
        *,
        confirm_refusals: bool,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        rng: random.Random | None = None,
    ) -> None:
        """Make a settler.

        `confirm_refusals` is True for everything reached over HTTP: a proxy may have sent the
        request twice, so that even the first refusal can be one's own doing, and is read back.
        Where requests cannot be doubled (SQL, files) a refusal is believed. `clock`, `sleep` and
        `rng` are for tests.
        """
        self.policy = policy or RetryPolicy()
        self._confirm_refusals = confirm_refusals
        self._clock = clock
        self._sleep = sleep
        # Jitter only spreads retries; it protects nothing.
        self._rng = rng or random.Random()  # noqa: S311 - not a secret

    def write(self, write: Write, send: Send, read_back: ReadBack) -> str:
        """Carry out a put, create or replace; return the version under which it landed.

        Raises `PreconditionFailedError` (with the object found, if one was read) when this call
        certainly changed nothing because of its precondition, the error of `Rejected`, or
        `BackendUnavailableError` with its outcome.
        """
        return self._run(write, send, read_back)

    def delete(self, delete: Delete, send: Send, read_back: ReadBack) -> None:
        """Carry out a conditional delete. Raises as `write` does.

        Where an answer was lost and the key is now absent it returns: the object is gone.
        """
        self._run(delete, send, read_back)

    def read(self, attempt: Callable[[float], ReadAttempt[T]]) -> T:
        """Repeat a read until it is answered; return its value.

        Raises the error of `Rejected`, or `BackendUnavailableError` at the deadline.
        """
        call = _Call(self.policy, self._clock)
        return self._read(call, attempt)

    def _run(self, request: Write | Delete, send: Send, read_back: ReadBack) -> str:
        call = _Call(self.policy, self._clock)
        while True:
            answer = send(self._time_for_write(call))
            if isinstance(answer, Applied):
                return answer.version
            if isinstance(answer, Rejected):
                if call.ambiguous:
                    # An earlier attempt may have landed, or may yet: the rejection is not the outcome.
                    call.note(answer.error)
                    self._give_up(call)
                raise answer.error
            if isinstance(answer, Busy | NotSent):
                call.note(answer.error, timed_out=getattr(answer, "timed_out", False))
                self._back_off(call, getattr(answer, "retry_after", None))
                continue
            if isinstance(answer, Ambiguous):
                call.ambiguous = True
                call.note(answer.error, timed_out=answer.timed_out)
            elif not (self._confirm_refusals or call.ambiguous):
                raise PreconditionFailedError(request.key)
            found = self._found(call, read_back)
            verdict = decide(request, found, ambiguous=call.ambiguous)
            if verdict.outcome == "landed":
                return verdict.version
            if verdict.outcome == "gone":
                return ""
            if verdict.outcome == "conflict":
                there = None if found is None or found.tombstone else found.current
                raise PreconditionFailedError(request.key, current=there)
            if verdict.outcome == "unknown":
                call.unsettled = True
                self._give_up(call)
            self._back_off(call, None)

    def _found(self, call: _Call, read_back: ReadBack) -> Found | None:
        """Read the object back; when that fails too, the outcome is unknown."""
        call.unsettled = True
        try:
            found = self._read(call, read_back)
        except BackendUnavailableError:
            raise
        except Exception as error:  # noqa: BLE001 - any rejected read-back leaves the write unsettled
            call.note(error)
            self._give_up(call)
        call.unsettled = False
        return found

    def _read(self, call: _Call, attempt: Callable[[float], ReadAttempt[T]]) -> T:
        while True:
            answer = attempt(self._time_for_attempt(call))
            if isinstance(answer, Done):
                return answer.value
            if isinstance(answer, Rejected):
                raise answer.error
            call.note(answer.error, timed_out=getattr(answer, "timed_out", False))
            self._back_off(call, getattr(answer, "retry_after", None))

    def _time_for_write(self, call: _Call) -> float:
        """Return the seconds for an attempt that writes; without enough time for an answer, give up.

        Sent with the last milliseconds of the deadline it could only time out, and what was certainly
        not applied so far would end as unknown.
        """
        seconds = self._time_for_attempt(call)
        if seconds < min(self.policy.attempt_timeout, self.policy.deadline / 3) / 5:
            self._give_up(call)
        return seconds

    def _time_for_attempt(self, call: _Call) -> float:
        """Return the seconds that the next attempt may take; at the deadline, give up."""
        remaining = call.remaining()
        if remaining <= 0:
            self._give_up(call)
        return min(self.policy.attempt_timeout, self.policy.deadline / 3, remaining)

    def _back_off(self, call: _Call, retry_after: float | None) -> None:
        """Wait before the next attempt, or give up when the wait would pass the deadline."""
        ceiling = min(self.policy.backoff_cap, self.policy.backoff_base * 2.0**call.waits)
        call.waits = min(call.waits + 1, 32)
        wait = max(self._rng.uniform(0, ceiling), retry_after or 0.0)
        if wait >= call.remaining():
            self._give_up(call)
        self._sleep(wait)

    def _give_up(self, call: _Call) -> NoReturn:
        """Raise `BackendUnavailableError` with what is known of the outcome."""
        unknown = call.ambiguous or call.unsettled
        raise BackendUnavailableError(
            "timeout" if call.timed_out else "unavailable",
            outcome="unknown" if unknown else "not_applied",
        ) from call.error


class _Call:
    """The state of one call: its deadline and what its attempts came to."""

    __slots__ = ("_clock", "_ends", "ambiguous", "error", "timed_out", "unsettled", "waits")

    def __init__(self, policy: RetryPolicy, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._ends = clock() + policy.deadline
        self.ambiguous = False
        # A refusal is being read back: until that is answered it may be one's own landed write.
        self.unsettled = False
        self.error: Exception | None = None
        self.timed_out = False
        self.waits = 0

    def note(self, error: Exception, *, timed_out: bool = False) -> None:
        """Keep the last failure, for the reason and the cause of the final error."""
        self.error = error
        self.timed_out = timed_out

    def remaining(self) -> float:
        """Return the seconds left until the deadline."""
        return self._ends - self._clock()
