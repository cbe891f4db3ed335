"""Clients of a remote service that tell something else than what became of a write.

Each is the right client of the simulated service with one step done wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from wenchang.errors import BackendUnavailableError
from wenchang.storage import PreconditionFailedError
from wenchang.storage.outcomes import (
    Ambiguous,
    Applied,
    Busy,
    Delete,
    Done,
    Found,
    NotSent,
    ReadAttempt,
    Refused,
    Rejected,
    Write,
)
from wenchang_conformance.simulated import LinkError, Reply, Request, SimulatedStorage

if TYPE_CHECKING:
    from wenchang.storage.outcomes import Attempt
    from wenchang_conformance.simulated import Record

__all__ = [
    "BelievesTornAnswers",
    "BusyIsConflict",
    "BusyIsExists",
    "FalseConflictAfterLoss",
    "FalseSuccessAfterRefusal",
    "ForgetsFormat",
    "ForgetsLineage",
    "HangsForever",
    "HidesDamage",
    "KeyInTheText",
    "LateDeleteIsConflict",
    "LeaksCredentials",
    "LostIsNotApplied",
    "NeverProves",
    "RejectionRetried",
    "ResendsCreates",
    "ResendsPuts",
    "ResendsWithoutReading",
    "UnknownIsConflict",
    "UnmappedErrors",
    "UnreadRefusals",
]


class FalseConflictAfterLoss(SimulatedStorage):
    """An SDK that re-sends a lost write and reports the refusal of the second."""

    def attempt(self, request: Request, seconds: float) -> Attempt:
        answer = super().attempt(request, seconds)
        if isinstance(answer, Ambiguous):
            answer = super().attempt(request, seconds)
        if isinstance(answer, Refused):
            raise PreconditionFailedError(request.key)
        return answer


class UnknownIsConflict(SimulatedStorage):
    """Reports what it could not settle as a conflict."""

    def write(self, write: Write, data: bytes, metadata: dict[str, str]) -> str:
        try:
            return super().write(write, data, metadata)
        except BackendUnavailableError as error:
            if error.outcome == "unknown":
                raise PreconditionFailedError(write.key) from error
            raise


class LostIsNotApplied(SimulatedStorage):
    """Takes a lost answer for a request that never arrived."""

    def failed(self, error: LinkError) -> NotSent | Ambiguous:
        return NotSent(error=error, timed_out=error.kind == "timeout")


class FalseSuccessAfterRefusal(SimulatedStorage):
    """Takes any object that it reads back for its own write."""

    def read_back(self, key: str, seconds: float) -> ReadAttempt[Found | None]:
        answer = super().read_back(key, seconds)
        write_id = self._last.write_id
        if isinstance(answer, Done) and answer.value is not None and self._last.key == key:
            return Done(
                value=Found(
                    current=answer.value.current, write_id=write_id, lineage=answer.value.lineage
                )
            )
        return answer

    def write(self, write: Write, data: bytes, metadata: dict[str, str]) -> str:
        self._last = write
        return super().write(write, data, metadata)


class ForgetsLineage(SimulatedStorage):
    """Looks at the write id alone: an own write that a rival replaced is not recognised."""

    def read_back(self, key: str, seconds: float) -> ReadAttempt[Found | None]:
        answer = super().read_back(key, seconds)
        if isinstance(answer, Done) and answer.value is not None:
            return Done(value=Found(current=answer.value.current, write_id=answer.value.write_id))
        return answer


class ResendsCreates(SimulatedStorage):
    """Sends a create again when it reads nothing back, although a late one may still arrive."""

    def attempt(self, request: Request, seconds: float) -> Attempt:
        answer = super().attempt(request, seconds)
        if isinstance(answer, Ambiguous) and request.condition is None:
            found = self.read(request.key, seconds)
            if isinstance(found, Done) and found.value is None:
                return Busy(error=answer.error)
        return answer


class ResendsPuts(SimulatedStorage):
    """Sends an unconditional put again after a lost answer, over whatever came in between."""

    def write(self, write: Write, data: bytes, metadata: dict[str, str]) -> str:
        if write.kind != "put":
            return super().write(write, data, metadata)
        for _ in range(4):
            with suppress(BackendUnavailableError):
                return super().write(write, data, metadata)
        return super().write(write, data, metadata)


class ResendsWithoutReading(SimulatedStorage):
    """Sends a delete again before it looks, and calls the refusal of the second a conflict."""

    def delete_if_version(self, key: str, expected: str) -> None:
        self.prove()
        request = Request(method="delete", key=key, condition=expected)
        for _ in range(10):
            answer = self.attempt(request, 0.1)
            if isinstance(answer, Applied):
                return
            if isinstance(answer, Refused):
                raise PreconditionFailedError(key)
            if isinstance(answer, Rejected):
                raise answer.error
        raise BackendUnavailableError("unavailable", outcome="unknown")


class LateDeleteIsConflict(SimulatedStorage):
    """Reports a delete whose answer was lost as a conflict, because the key is absent."""

    def delete_if_version(self, key: str, expected: str) -> None:
        self.prove()
        request = Request(method="delete", key=key, condition=expected)

        def attempt(seconds: float) -> Attempt:
            answer = self.attempt(request, seconds)
            if isinstance(answer, Ambiguous):
                found = self.read(key, seconds)
                if isinstance(found, Done) and found.value is None:
                    raise PreconditionFailedError(key)
            return answer

        self.settler.delete(
            Delete(key=key, expected=expected),
            attempt,
            lambda seconds: self.read_back(key, seconds),
        )


class BusyIsConflict(SimulatedStorage):
    """Takes "try again" for a failed precondition."""

    def classified(self, reply: Reply) -> Refused | Rejected | Busy | Ambiguous:
        if reply.status == "busy":
            return Refused()
        return super().classified(reply)


class BusyIsExists(SimulatedStorage):
    """Takes the 409 of a create for "already exists", without looking."""

    def attempt(self, request: Request, seconds: float) -> Attempt:
        answer = super().attempt(request, seconds)
        if isinstance(answer, Busy) and request.condition is None:
            raise PreconditionFailedError(request.key)
        return answer


class BelievesTornAnswers(SimulatedStorage):
    """Takes half a version for a version."""

    def attempt(self, request: Request, seconds: float) -> Attempt:
        try:
            reply = self.link.send(request, seconds)
        except LinkError as error:
            return self.failed(error)
        if reply.status == "ok":
            return Applied(version=reply.value or "")
        if not reply.whole:
            return Ambiguous(error=LinkError("cut"))
        return self.classified(reply)


class HangsForever(SimulatedStorage):
    """Waits as long as the service likes: each attempt may take many deadlines."""

    def attempt(self, request: Request, seconds: float) -> Attempt:
        return super().attempt(request, seconds * 60)


class UnreadRefusals(SimulatedStorage):
    """Believes the first refusal, although a proxy may have sent the request twice."""

    def attempt(self, request: Request, seconds: float) -> Attempt:
        answer = super().attempt(request, seconds)
        if isinstance(answer, Refused):
            raise PreconditionFailedError(request.key)
        return answer


class RejectionRetried(SimulatedStorage):
    """Repeats what will never work until the deadline, and calls it an outage."""

    def classified(self, reply: Reply) -> Refused | Rejected | Busy | Ambiguous:
        if reply.status == "rejected":
            return Busy(error=ConnectionError("forbidden"))
        return super().classified(reply)


class UnmappedErrors(SimulatedStorage):
    """Lets the SDK's errors through."""

    def rejection(self, cause: Exception) -> Exception:  # type: ignore[override] # pyright: ignore[reportIncompatibleMethodOverride] # that is the fault
        return cause


class LeaksCredentials(SimulatedStorage):
    """Repeats the URL, password included, in its error."""

    def rejection(self, cause: Exception) -> Exception:  # type: ignore[override] # pyright: ignore[reportIncompatibleMethodOverride] # that is the fault
        error = super().rejection(cause)
        error.args = ("refused by https://user:hunter2@storage.example/bucket",)
        return error


class KeyInTheText(SimulatedStorage):
    """Names the key in the text of an outage."""

    def put_if_version(
        self, key: str, data: bytes, metadata: Mapping[str, str], expected: str | None
    ) -> str:
        try:
            return super().put_if_version(key, data, metadata, expected)
        except BackendUnavailableError as error:
            raise BackendUnavailableError(
                error.reason, f"cannot write {key}", outcome=error.outcome
            ) from error


class NeverProves(SimulatedStorage):
    """Trusts any endpoint to honour conditions."""

    def prove(self) -> None:
        return


class ForgetsFormat(SimulatedStorage):
    """Writes over what only a later release may write over."""

    def check_format(self, write: Write) -> None:
        return


class HidesDamage(SimulatedStorage):
    """Fails a whole listing for one damaged object."""

    def shown(self, key: str, record: Record) -> object:  # type: ignore[override] # pyright: ignore[reportIncompatibleMethodOverride] # that is the fault
        if record.damaged:
            msg = "cannot decode metadata"
            raise ValueError(msg)
        return super().shown(key, record)
