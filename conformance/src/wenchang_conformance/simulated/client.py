"""A client of the simulated service that keeps the whole contract."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Final

from wenchang.errors import BackendUnavailableError
from wenchang.storage import (
    ListedObject,
    StorageRejectedError,
    StoredObject,
)
from wenchang.storage.keys import (
    UNREADABLE_METADATA,
    check_body,
    check_expected,
    check_key,
    check_listing,
    check_metadata,
    is_valid_key,
)
from wenchang.storage.outcomes import (
    Ambiguous,
    Applied,
    Busy,
    Delete,
    Done,
    Found,
    LineageMemory,
    NotSent,
    Refused,
    Rejected,
    RetryPolicy,
    Settler,
    Write,
    new_write_id,
)
from wenchang_conformance.simulated.service import (
    ANY_STATE,
    Link,
    LinkError,
    Record,
    Reply,
    Request,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from wenchang.storage.outcomes import Attempt, ReadAttempt

__all__ = ["SimulatedStorage"]

WRITER: Final = 1
"""The format that this client writes."""
# A control character keeps the probe out of every listing: no key of the contract has one.
_PROBE: Final = "\x01wenchang-probe"


class SimulatedStorage:
    """The five methods over a link. The steps are methods of their own, to be got wrong one by one."""

    def __init__(
        self, link: Link, policy: RetryPolicy | None = None, *, prove: bool = True
    ) -> None:
        """Make a handle; nothing is sent. `prove` asks for proof of the service's conditions."""
        self.link = link
        self.settler = Settler(policy, confirm_refusals=True)
        self.memory = LineageMemory()
        self._guarded: set[tuple[str, str]] = set()
        self._proof_lock = threading.Lock()
        self._proved = not prove

    # --- the contract ---

    def get(self, key: str) -> StoredObject | None:
        """See `Storage.get`."""
        check_key(key)
        record = self.settler.read(lambda seconds: self.read(key, seconds))
        return None if record is None else self.shown(key, record)

    def put(self, key: str, data: bytes, metadata: Mapping[str, str]) -> str:
        """See `Storage.put`."""
        check_key(key)
        check_body(data)
        copied = check_metadata(metadata)
        write = Write(key=key, kind="put", expected=None, write_id=new_write_id())
        return self.write(write, data, copied)

    def put_if_version(
        self, key: str, data: bytes, metadata: Mapping[str, str], expected: str | None
    ) -> str:
        """See `Storage.put_if_version`."""
        check_key(key)
        check_body(data)
        copied = check_metadata(metadata)
        check_expected(expected, optional=True)
        if expected is None:
            write = Write(key=key, kind="create", expected=None, write_id=new_write_id())
        else:
            write = Write(
                key=key,
                kind="replace",
                expected=expected,
                write_id=new_write_id(),
                lineage=self.memory.lineage_for_replace(key, expected),
            )
        return self.write(write, data, copied)

    def delete_if_version(self, key: str, expected: str) -> None:
        """See `Storage.delete_if_version`."""
        check_key(key)
        check_expected(expected, optional=False)
        self.prove()
        request = Request(method="delete", key=key, condition=expected)
        self.settler.delete(
            Delete(key=key, expected=expected),
            lambda seconds: self.attempt(request, seconds),
            lambda seconds: self.read_back(key, seconds),
        )

    def list_page(self, prefix: str, start_after: str | None, limit: int) -> Sequence[ListedObject]:
        """See `Storage.list_page`."""
        check_listing(prefix, start_after, limit)
        entries: list[ListedObject] = []
        start = start_after
        while len(entries) < limit:
            # The service's own pages are small, so that they have borders.
            request = Request(method="list", key=prefix, start_after=start, limit=min(limit, 20))
            page = self.settler.read(partial(self.answered, request))
            entries += [
                ListedObject(key, self.shown(key, record).metadata, record.version)
                for key, record in page
                if is_valid_key(key)
            ]
            if len(page) < request.limit:
                break
            start = page[-1][0]
        return entries[:limit]

    # --- the steps ---

    def write(self, write: Write, data: bytes, metadata: dict[str, str]) -> str:
        """Carry out a put; return its version."""
        self.prove()
        self.check_format(write)
        record = Record(
            body=data,
            metadata=metadata,
            version="",
            write_id=write.write_id,
            lineage=write.lineage,
        )
        condition = ANY_STATE if write.kind == "put" else write.expected
        request = Request(method="put", key=write.key, record=record, condition=condition)
        version = self.settler.write(
            write,
            lambda seconds: self.attempt(request, seconds),
            lambda seconds: self.read_back(write.key, seconds),
        )
        self.memory.remember(write.key, version, write.write_id, write.lineage)
        return version

    def attempt(self, request: Request, seconds: float) -> Attempt:
        """Send a write once and say what came of it."""
        try:
            reply = self.link.send(request, seconds)
        except LinkError as error:
            return self.failed(error)
        if not reply.whole:
            return Ambiguous(error=LinkError("cut"))
        if reply.status == "ok":
            return Applied(version=reply.value)
        return self.classified(reply)

    def classified(self, reply: Reply) -> Refused | Rejected | Busy | Ambiguous:
        """Return the class of an answer that is no success."""
        error = ConnectionError(reply.status)
        if reply.status == "refused":
            return Refused()
        if reply.status == "busy":
            return Busy(error=error)
        if reply.status == "rejected":
            return Rejected(error=self.rejection(error))
        return Ambiguous(error=error)

    def failed(self, error: LinkError) -> NotSent | Ambiguous:
        """Return the class of an attempt that got no answer."""
        if error.kind == "refused":
            return NotSent(error=error)
        return Ambiguous(error=error, timed_out=error.kind == "timeout")

    def rejection(self, cause: Exception) -> StorageRejectedError:
        """Return the error for refused credentials."""
        error = StorageRejectedError("credentials", "the service refuses the credentials")
        error.__cause__ = cause
        return error

    def answered(self, request: Request, seconds: float) -> ReadAttempt[list[tuple[str, Record]]]:
        """Send a read once."""
        try:
            reply = self.link.send(request, seconds)
        except LinkError as error:
            return self.failed(error)
        if reply.status == "ok" and reply.whole:
            return Done(value=reply.value)
        other = self.classified(reply)
        return Ambiguous(error=LinkError("cut")) if isinstance(other, Refused) else other

    def read(self, key: str, seconds: float) -> ReadAttempt[Record | None]:
        """Read a record once."""
        request = Request(method="get", key=key)
        try:
            reply = self.link.send(request, seconds)
        except LinkError as error:
            return self.failed(error)
        if reply.status == "ok" and reply.whole:
            return Done(value=reply.value)
        other = self.classified(reply)
        return Ambiguous(error=LinkError("cut")) if isinstance(other, Refused) else other

    def read_back(self, key: str, seconds: float) -> ReadAttempt[Found | None]:
        """Read what is there after an answer was lost."""
        answer = self.read(key, seconds)
        if not isinstance(answer, Done):
            return answer
        record = answer.value
        if record is None:
            return Done(value=None)
        return Done(
            value=Found(
                current=self.shown(key, record), write_id=record.write_id, lineage=record.lineage
            )
        )

    def shown(self, key: str, record: Record) -> StoredObject:
        """Return a record as the contract shows it, and remember where it came from."""
        self.memory.remember(key, record.version, record.write_id, record.lineage)
        if record.min_writer > WRITER:
            self._guarded.add((key, record.version))
        metadata = {UNREADABLE_METADATA: "damaged"} if record.damaged else dict(record.metadata)
        return StoredObject(record.body, metadata, record.version)

    def check_format(self, write: Write) -> None:
        """Refuse to write over what only a later release may write over, as far as it was read."""
        if write.expected is not None and (write.key, write.expected) in self._guarded:
            raise StorageRejectedError(
                "unsupported",
                f"the object was written by a later release, and this one writes format {WRITER}: "
                "upgrade wenchang-conformance",
            )

    # --- the proof ---

    def prove(self) -> None:
        """Once, before the first write: see that the service honours conditions."""
        with self._proof_lock:
            if self._proved:
                return
            missing = self._missing_conditions()
            if missing:
                raise StorageRejectedError(
                    "unsupported", f"the endpoint ignores the condition on {missing}"
                )
            self._proved = True

    def _missing_conditions(self) -> str:
        record = Record(body=b"", metadata={}, version="", write_id=None)
        self._asked(Request(method="put", key=_PROBE, record=record))
        checks: tuple[tuple[str, Callable[[], Reply]], ...] = (
            (
                "create",
                lambda: self._asked(
                    Request(method="put", key=_PROBE, record=record, condition=None)
                ),
            ),
            (
                "replace",
                lambda: self._asked(
                    Request(method="put", key=_PROBE, record=record, condition="x")
                ),
            ),
            ("delete", lambda: self._asked(Request(method="delete", key=_PROBE, condition="x"))),
        )
        for name, check in checks:
            if check().status != "refused":
                return name
        return ""

    def _asked(self, request: Request) -> Reply:
        """Send a request of the proof; repeating it does no harm."""

        def attempt(seconds: float) -> ReadAttempt[Reply]:
            try:
                reply = self.link.send(request, seconds)
            except LinkError as error:
                return self.failed(error)
            if reply.whole and reply.status in {"ok", "refused"}:
                return Done(value=reply)
            other = self.classified(reply)
            return Ambiguous(error=LinkError("cut")) if isinstance(other, Refused) else other

        try:
            return self.settler.read(attempt)
        except BackendUnavailableError as error:
            # The proof is about a hidden key: of the call itself nothing was sent.
            raise BackendUnavailableError(error.reason, outcome="not_applied") from error
