"""Group commit: the calls that threads of one process make at the same time share commits.

The first caller leads: it commits what waits, in order, at most a batch at a time. When its own call has
ended it hands over to the first that waits. There is no thread beside the callers', and no waiting for
others to come: the next batch gathers while a commit is in flight.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Final

from wenchang.errors import BackendUnavailableError
from wenchang.files._commit import Committer
from wenchang.files._jobs import Job, Request
from wenchang.files.policy import TreePolicy

__all__ = ["CommitQueue"]

_LOOK_SECONDS: Final = 1.0
"""How often a waiting caller looks whether its leader is still alive."""
_PATIENCE: Final = 3
"""Deadlines after which a caller stops waiting for a leader that does not come back."""


class _Ticket:
    """A call in the queue and the thread that waits for it."""

    __slots__ = ("event", "job", "leads")

    def __init__(self, job: Job) -> None:
        self.job = job
        self.event = threading.Event()
        self.leads = False


class CommitQueue:
    """The calls that wait for one tree object. After a fork the child begins with an empty one."""

    def __init__(self, committer: Committer, policy: TreePolicy) -> None:
        self._committer = committer
        self._policy = policy
        self._reset()
        _instances.add(self)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[_Ticket] = []
        self._batch: list[_Ticket] = []
        self._leader: threading.Thread | None = None

    def run(self, request: Request) -> object:
        """Have a request decided and committed; return its result or raise its error."""
        ticket = _Ticket(Job(request=request, deadline=self._committer.patience.deadline()))
        with self._lock:
            self._waiting.append(ticket)
            if self._leader is None:
                self._leader = threading.current_thread()
                ticket.leads = True
        if not ticket.leads:
            try:
                self._follow(ticket)
            except BaseException:
                self._abandon(ticket)
                raise
        if ticket.leads and not ticket.job.done:
            self._lead(ticket)
        if ticket.job.error is not None:
            raise ticket.job.error
        return ticket.job.result

    def _lead(self, own: _Ticket) -> None:
        """Commit batches until the own call has ended, then hand over."""
        try:
            while not own.job.done:
                batch = self._take()
                try:
                    self._committer.commit([each.job for each in batch])
                finally:
                    self._end(batch)
        finally:
            self._hand_over(own)

    def _take(self) -> list[_Ticket]:
        """Take the next batch: the calls at the head of the queue, up to one that nothing may follow."""
        with self._lock:
            batch: list[_Ticket] = []
            while self._waiting and len(batch) < self._policy.batch:
                batch.append(self._waiting.pop(0))
                if getattr(batch[-1].job.request, "ends_batch", False):
                    break
            self._batch = batch
            return batch

    def _end(self, batch: list[_Ticket]) -> None:
        """Wake the callers of a batch whose leader is through with it."""
        with self._lock:
            self._return_undecided()
        for ticket in batch:
            if ticket.job.done:
                ticket.event.set()

    def _return_undecided(self) -> None:
        """Put what an interrupted leader left of its batch back into the queue; lock held.

        What it had sent may have taken effect, or may yet.
        """
        again = []
        for ticket in self._batch:
            if not ticket.job.done and ticket.job.in_flight:
                ticket.job.error = BackendUnavailableError("unavailable", outcome="unknown")
            elif not ticket.job.done:
                again.append(ticket)
        self._waiting[:0] = again
        self._batch = []

    def _hand_over(self, own: _Ticket) -> None:
        """Make the first that waits the leader."""
        with self._lock:
            if own in self._waiting:
                # Interrupted before its call was decided: its caller is gone.
                self._waiting.remove(own)
            if self._leader is threading.current_thread():
                self._appoint()

    def _appoint(self) -> None:
        """Appoint the first that waits, or nobody; lock held."""
        self._leader = None
        if self._waiting:
            first = self._waiting[0]
            first.leads = True
            # Which thread it is shows when it wakes; until then a stand-in holds the place.
            self._leader = _APPOINTED
            first.event.set()

    def _follow(self, ticket: _Ticket) -> None:
        """Wait until the call has ended or its caller has to lead. Bounded, whatever the leader does."""
        patience = self._committer.patience
        last = patience.deadline() + (_PATIENCE - 1) * self._policy.deadline
        while True:
            ticket.event.wait(_LOOK_SECONDS)
            with self._lock:
                ticket.event.clear()
                if ticket.job.done:
                    return
                if not ticket.leads and (self._leader is None or not self._leader.is_alive()):
                    # The leader died without a word.
                    self._return_undecided()
                    ticket.leads = not ticket.job.done
                    self._leader = None
                if ticket.leads:
                    self._leader = threading.current_thread()
                if ticket.leads or ticket.job.done:
                    return
                if patience.is_over(last):
                    self._give_up(ticket)
                    return

    def _give_up(self, ticket: _Ticket) -> None:
        """End a call whose leader is alive and does not come back; lock held."""
        if ticket in self._waiting:
            self._waiting.remove(ticket)
            ticket.job.error = BackendUnavailableError("timeout", outcome="not_applied")
        else:
            ticket.job.error = BackendUnavailableError("timeout", outcome="unknown")

    def _abandon(self, ticket: _Ticket) -> None:
        """Leave after an interrupt: out of the queue, and out of the lead if it was one's own."""
        with self._lock:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
            if ticket.leads and not ticket.job.done:
                self._appoint()


class _Appointed(threading.Thread):
    """Stands for a leader that was appointed and has not woken yet; never started."""

    def is_alive(self) -> bool:
        """Say that its place is taken."""
        return True


_APPOINTED: Final = _Appointed()
_instances: weakref.WeakSet[CommitQueue] = weakref.WeakSet()


def _renew_after_fork() -> None:
    """Give every tree of a forked child an empty queue: the callers that waited are not in it."""
    for instance in list(_instances):
        instance._reset()  # noqa: SLF001 - the class and its fork hook are one subject


os.register_at_fork(after_in_child=_renew_after_fork)
