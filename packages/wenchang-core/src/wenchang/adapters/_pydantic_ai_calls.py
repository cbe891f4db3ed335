"""Changes of a file tree as Pydantic AI's memory wants them: at a version, and once for an operation.

An operation is one intended change. While it loses races it is tried again with another text at
another version, and only its success is remembered. The tree's own calls remember a stale version as
an outcome, and a repetition must have the same text; so these are calls of their own.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import ClassVar

from wenchang.files._calls import Call
from wenchang.files._rules import Desk
from wenchang.files.errors import FileToolError
from wenchang.files.values import Deleted, Outcome

__all__ = [
    "AtVersion",
    "NotAtVersionError",
    "NotDoneError",
    "Recall",
    "RefusedChangeError",
    "effect_key_of",
]


class NotAtVersionError(FileToolError):
    """The file is not at the version that the change is for. Never kept as an outcome."""

    code = "NOT_AT_VERSION"


class NotDoneError(FileToolError):
    """Nothing is known of the operation. Never kept as an outcome."""

    code = "NOT_DONE"


class RefusedChangeError(FileToolError):
    """The tree refused the change, for the reason in `refusal`. Never kept as an outcome.

    The protocol has no word for a refusal that is remembered, and the next try may be welcome.
    """

    code = "REFUSED_CHANGE"

    def __init__(self, refusal: FileToolError) -> None:
        """Keep the refusal."""
        super().__init__(refusal.detail)
        self.refusal = refusal


def effect_key_of(operation_id: str) -> str:
    """Return the effect key of an operation: of a bounded length, and no other adapter's."""
    return (
        "pydantic-ai/" + hashlib.sha256(operation_id.encode("utf-8", "surrogatepass")).hexdigest()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _ByFingerprint(Call):
    """A call that is the same one again where its fingerprint is, whatever its text and version."""

    fingerprint: str = ""

    def digest(self) -> str:
        """Return a digest of the fingerprint: whoever asks for an outcome knows nothing else."""
        return hashlib.sha256(self.fingerprint.encode("utf-8", "surrogatepass")).hexdigest()[:24]


@dataclass(frozen=True, slots=True, kw_only=True)
class AtVersion(_ByFingerprint):
    """Carry out `inner` if the file is at `version`, or for None if there is no file.

    A deletion of a file that is not there, and was to be not there, takes effect: `files` is 0.
    """

    NAME: ClassVar[str] = "memory-change"
    inner: Call
    version: str | None
    deletes: bool = False

    def check(self) -> None:
        """Check what is carried out."""
        self.inner.check()

    def decide(self, desk: Desk) -> Outcome:
        """Refuse another version; the check and the change are one decision.

        Every refusal comes as an error that no receipt is made of.
        """
        record = desk.file(self.path)
        if (None if record is None else desk.token(record)) != self.version:
            raise NotAtVersionError("The file is at another version.")
        if record is None and self.deletes:
            return Deleted(path=self.path, kind="file", files=0)
        try:
            return self.inner.decide(desk)
        except FileToolError as error:
            raise RefusedChangeError(error) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall(_ByFingerprint):
    """Return what an operation came to; it is found before this would be decided."""

    NAME: ClassVar[str] = "memory-recall"

    def decide(self, desk: Desk) -> Outcome:  # noqa: ARG002 - every call is decided on one
        """Say that there is no outcome."""
        raise NotDoneError("The operation has not been carried out.")
