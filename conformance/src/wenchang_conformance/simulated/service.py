"""The service, which carries out whole requests one at a time, and the link that leads to it."""

from __future__ import annotations

import itertools
import os
import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from wenchang_conformance.hooks import FaultKind, FaultPlan

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Link", "LinkError", "Record", "Reply", "Request", "Service"]

Method = Literal["get", "put", "delete", "list"]
_WRITES: Final = frozenset({"put", "delete"})
ANY_STATE: Final = "any"
"""The condition of a request that has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One stored object. `write_id` is None for what a stranger stored."""

    body: bytes
    metadata: Mapping[str, str]
    version: str
    write_id: str | None
    lineage: tuple[tuple[str, str], ...] = ()
    min_writer: int = 1
    damaged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request. `condition` is `ANY_STATE`, None for "must be absent", or a version."""

    method: Method
    key: str = ""
    record: Record | None = None
    condition: str | None = ANY_STATE
    start_after: str | None = None
    limit: int = 1000

    @property
    def target(self) -> Literal["write", "read"]:
        """Whether it can change an object."""
        return "write" if self.method in _WRITES else "read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the service, or something in front of it, answers.

    `whole` is False where the answer ended early; then `value` may be cut too.
    """

    status: Literal["ok", "refused", "busy", "error", "rejected"]
    value: Any = None
    whole: bool = True


class LinkError(Exception):
    """No answer came: the connection was `cut`, could not be made (`refused`), or a `timeout`."""

    def __init__(self, kind: Literal["cut", "refused", "timeout"]) -> None:
        """Keep what happened."""
        super().__init__(f"connection {kind}")
        self.kind = kind


class Service:
    """Objects under keys, with conditions. Each request is atomic, and versions never come back."""

    def __init__(self) -> None:
        """Begin empty."""
        self._lock = threading.Lock()
        self._objects: dict[str, Record] = {}
        self._numbers = itertools.count(1)
        self._name = os.urandom(4).hex()
        os.register_at_fork(after_in_child=self._renew_lock)

    def _renew_lock(self) -> None:
        self._lock = threading.Lock()

    def handle(self, request: Request) -> Reply:
        """Carry out one request."""
        with self._lock:
            if request.method == "list":
                return Reply(status="ok", value=self._page(request))
            found = self._objects.get(request.key)
            if request.method == "get":
                return Reply(status="ok", value=found)
            state = None if found is None else found.version
            if request.condition not in {ANY_STATE, state}:
                return Reply(status="refused")
            if request.record is None:
                self._objects.pop(request.key, None)
                return Reply(status="ok", value="")
            version = f"v-{self._name}-{next(self._numbers)}"
            self._objects[request.key] = replace(request.record, version=version)
            return Reply(status="ok", value=version)

    def _page(self, request: Request) -> list[tuple[str, Record]]:
        names = sorted(
            key
            for key in self._objects
            if key.startswith(request.key)
            and (request.start_after is None or key > request.start_after)
        )
        return [(key, self._objects[key]) for key in names[: request.limit]]

    def change(self, key: str, **fields: Any) -> None:
        """Change a stored record behind everyone's back; its version changes too."""
        with self._lock:
            version = f"v-{self._name}-{next(self._numbers)}"
            self._objects[key] = replace(self._objects[key], version=version, **fields)

    def names(self) -> list[str]:
        """Return every stored key."""
        with self._lock:
            return sorted(self._objects)


@dataclass(slots=True)
class Link:
    """Carries requests to a service, harmed as its plan says."""

    service: Service
    plan: FaultPlan = field(default_factory=FaultPlan)
    closed: threading.Event = field(default_factory=threading.Event)
    held: list[Request] = field(default_factory=list)

    def send(self, request: Request, seconds: float) -> Reply:
        """Return the reply to a request, or raise `LinkError`, at the latest after `seconds`."""
        kind = self.plan.decide(request.target)
        if kind is None:
            return self.service.handle(request)
        if kind in _IN_FRONT:
            return _IN_FRONT[kind]
        if kind is FaultKind.REFUSED:
            raise LinkError("refused")
        if kind is FaultKind.REQUEST_LOST:
            raise LinkError("cut")
        if kind is FaultKind.LATE:
            self.held.append(request)
            raise LinkError("cut")
        if kind is FaultKind.HANG:
            self.closed.wait(seconds)
            raise LinkError("timeout")
        if kind is FaultKind.DELAY:
            self.closed.wait(min(0.01, seconds / 10))
        if kind is FaultKind.STRIPPED:
            request = replace(request, condition=ANY_STATE)
        reply = self.service.handle(request)
        if kind is FaultKind.TWICE:
            reply = self.service.handle(request)
        if kind is FaultKind.ANSWER_LOST:
            raise LinkError("cut")
        if kind in {FaultKind.HANG_APPLIED, FaultKind.DRIP}:
            self.closed.wait(seconds)
            raise LinkError("timeout")
        if kind is FaultKind.BARE_ERROR_APPLIED:
            return _IN_FRONT[FaultKind.BARE_ERROR]
        if kind is FaultKind.TORN_ANSWER:
            value = reply.value[:4] if isinstance(reply.value, str) else None
            return replace(reply, value=value, whole=False)
        return reply

    def release(self) -> None:
        """Deliver what is held back, oldest first."""
        while self.held:
            self.service.handle(self.held.pop(0))


_IN_FRONT: Final = {
    FaultKind.BUSY_CONFLICT: Reply(status="busy"),
    FaultKind.BUSY_RATE: Reply(status="busy"),
    FaultKind.BUSY_SERVER: Reply(status="busy"),
    FaultKind.BARE_ERROR: Reply(status="error"),
    FaultKind.REJECTED: Reply(status="rejected"),
}
