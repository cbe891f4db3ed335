"""Every error that wenchang raises on purpose, in one tree.

    Exception
    ├── WenchangError                     shown to agents: category, guidance, message
    │   ├── RecoverableError              ordinary coordination: correct the call and repeat it
    │   │   ├── VersionConflictError
    │   │   ├── OversizeWriteError
    │   │   ├── FileQuotaExceededError
    │   │   ├── ReplaceFactMatchError
    │   │   ├── InvalidArgumentError
    │   │   └── NotFoundError
    │   ├── PermanentError                the call cannot succeed as given
    │   │   ├── RestrictedScopeError
    │   │   └── ResolverFailureError
    │   └── TransientError                a passing condition: repeat later
    │       ├── IdentityUnavailableError
    │       └── BackendUnavailableError
    ├── MetadataFormatError               stored metadata cannot be decoded (a ValueError)
    ├── PurgeIncompleteError              an operator's erasure left objects: `wenchang.operators`
    └── StorageError                      between a backend and its caller: `wenchang.storage.errors`

A class exists only where a caller would act differently. Message texts are for people and
agents to read; they are not API. No text or repr of any error holds a storage path, an entity
id, a stored value, a URL or a credential; attributes such as `path` are for code.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Literal

__all__ = [
    "BackendUnavailableError",
    "ErrorCategory",
    "FileQuotaExceededError",
    "IdentityUnavailableError",
    "InvalidArgumentError",
    "MetadataFormatError",
    "NotFoundError",
    "NotFoundReason",
    "OversizeWriteError",
    "PermanentError",
    "RecoverableError",
    "ReplaceFactMatchError",
    "ResolverFailureError",
    "RestrictedScopeError",
    "RestrictionReason",
    "TransientError",
    "UnavailableReason",
    "UnsettledOutcome",
    "VersionConflictError",
    "WenchangError",
]

NotFoundReason = Literal["invalid_path", "file_absent"]
RestrictionReason = Literal["system_read_only", "role_required", "not_granted"]
UnavailableReason = Literal["timeout", "unavailable"]
UnsettledOutcome = Literal["not_applied", "unknown"]


class ErrorCategory(StrEnum):
    """What an agent should do about an error; `internal` exists only in rendered payloads."""

    RECOVERABLE = "recoverable"
    PERMANENT = "permanent"
    TRANSIENT = "transient"
    INTERNAL = "internal"


class WenchangError(Exception):
    """Base of the errors that reach an agent.

    `detail` says what happened; `guidance` says what to do and is the same for every error of a
    category; `message`, like `str()`, is both. Concrete errors derive from one of the three
    category classes below.
    """

    category: ClassVar[ErrorCategory]
    guidance: ClassVar[str]

    def __init__(self, detail: str) -> None:
        """Keep `detail`, the sentence or sentences that say what happened."""
        super().__init__(detail)
        self.detail = detail

    @property
    def message(self) -> str:
        """The detail followed by the guidance."""
        return f"{self.detail} {self.guidance}" if self.detail else self.guidance

    def __str__(self) -> str:
        """Return the whole message."""
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        """Rebuild without calling a constructor whose parameters differ from `args`."""
        return (_rebuild, (type(self), self.args, dict(self.__dict__)))


def _rebuild(cls: type[Exception], args: tuple[object, ...], state: dict[str, object]) -> Exception:
    """Make an error again from its class, `args` and attributes (pickle and copy)."""
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class RecoverableError(WenchangError):
    """Ordinary coordination between agents: the payload holds what the next call needs."""

    category = ErrorCategory.RECOVERABLE
    guidance = (
        "This is normal coordination, not a fault: correct the call with the details given here "
        "and repeat it in the same turn, without asking or telling the user."
    )


class PermanentError(WenchangError):
    """The call cannot succeed as given, however often it is repeated."""

    category = ErrorCategory.PERMANENT
    guidance = "Do not repeat this call: it cannot succeed as given."


class TransientError(WenchangError):
    """A passing condition outside the caller's control."""

    category = ErrorCategory.TRANSIENT
    guidance = (
        "This is a passing condition: repeat the call a little later. A call that names a "
        "version is always safe to repeat as it is."
    )


class VersionConflictError(RecoverableError):
    """The file is no longer at the version that the call named; nothing was changed.

    `content` and `version` are what is stored now; `description` and `aliases` belong to the
    same state and are None where the file's metadata could not be read.
    """

    def __init__(
        self,
        path: str,
        content: str,
        version: str,
        *,
        description: str | None = None,
        aliases: tuple[str, ...] | None = None,
    ) -> None:
        """Keep the file's path (never shown) and its current state."""
        super().__init__(
            "The file changed since it was read. Its current content and version are attached: "
            "merge the change into that content and repeat the call with that version."
        )
        self.path = path
        self.content = content
        self.version = version
        self.description = description
        self.aliases = aliases


class OversizeWriteError(RecoverableError):
    """The resulting content would be larger than a file may be; nothing was changed."""

    def __init__(self, path: str, size: int, limit: int) -> None:
        """Keep the refused size and the limit, both in bytes of UTF-8."""
        super().__init__(
            f"The content would be {size} bytes, and a file holds at most {limit}. "
            "Shorten it, or move part of it to a file with a narrower subject."
        )
        self.path = path
        self.size = size
        self.limit = limit


class FileQuotaExceededError(RecoverableError):
    """One more file would exceed the number of files the entity may hold; nothing was created."""

    def __init__(self, path: str, limit: int) -> None:
        """Keep the largest permitted number of files."""
        super().__init__(
            f"This memory already holds its limit of {limit} files. Add to an existing file, or "
            "merge or delete files that are no longer needed, before creating another."
        )
        self.path = path
        self.limit = limit


class ReplaceFactMatchError(RecoverableError):
    """The quoted text is not in the file exactly once; nothing was changed."""

    def __init__(self, path: str, content: str, version: str, match_count: int) -> None:
        """Keep the file's current state and how often the quote was found (never 1)."""
        if match_count == 1:
            msg = "match_count 1 is a match, not an error"
            raise ValueError(msg)
        if match_count == 0:
            detail = (
                "old_string was not found in the file. Its current content is attached: quote "
                "the text exactly as it stands there."
            )
        else:
            detail = (
                f"old_string was found {match_count} times. The current content is attached: "
                "quote more of the surrounding text so that it is found exactly once."
            )
        super().__init__(detail)
        self.path = path
        self.content = content
        self.version = version
        self.match_count = match_count


class InvalidArgumentError(RecoverableError):
    """One argument of the call breaks a rule; nothing was read or changed.

    Adopters may raise it from their own dispatch code, for a missing or unknown argument say.
    """

    def __init__(self, argument: str, detail: str) -> None:
        """Name the argument and say which rule it broke.

        Raises TypeError if `argument` is no str and ValueError if it is empty.
        """
        if not isinstance(argument, str):
            msg = f"argument must be a str, not {type(argument).__name__}"
            raise TypeError(msg)
        if not argument:
            msg = "argument must not be empty"
            raise ValueError(msg)
        text = f"Argument {argument} is invalid"
        if detail.strip():
            text = f"{text}: {detail}"
        if not text.endswith((".", "!", "?")):
            text += "."
        super().__init__(text)
        self.argument = argument


class NotFoundError(RecoverableError):
    """There is no file at the location (`file_absent`), or the location is none (`invalid_path`)."""

    def __init__(self, path: str, reason: NotFoundReason) -> None:
        """Keep the path (never shown) and the reason."""
        super().__init__(
            "This is not a valid location of a memory file. Correct it."
            if reason == "invalid_path"
            else "There is no file here. It can be created with write_file and expected_version "
            "null; if it was to be deleted, nothing is left to do."
        )
        self.path = path
        self.reason: NotFoundReason = reason


class RestrictedScopeError(PermanentError):
    """The caller may not write here; nothing was changed."""

    def __init__(
        self,
        path: str,
        scope: str,
        reason: RestrictionReason,
        required_roles: frozenset[str] | None = None,
    ) -> None:
        """Keep the reason; `required_roles` goes with `role_required` and with nothing else."""
        if (required_roles is not None) != (reason == "role_required"):
            msg = "required_roles goes with the reason role_required, and only with it"
            raise ValueError(msg)
        if reason == "system_read_only":
            detail = (
                f"The system area of scope {scope} is curated by people and cannot be written "
                "through this tool. File a correction in another area if one is needed."
            )
        elif reason == "role_required":
            roles = ", ".join(sorted(required_roles or ()))
            detail = f"Writing to scope {scope} requires one of these roles: {roles}."
        else:
            detail = f"The location is not one that this session may write in scope {scope}."
        super().__init__(detail)
        self.path = path
        self.scope = scope
        self.reason: RestrictionReason = reason
        self.required_roles = required_roles


class ResolverFailureError(PermanentError):
    """The caller's identity could not be established; memory is unavailable to this session."""

    def __init__(self, detail: str = "") -> None:
        """Keep a detail that is safe to show to the agent, or none."""
        text = "Memory is unavailable in this session: the identity could not be resolved"
        text += f" ({detail})." if detail.strip() else "."
        super().__init__(text + " Carry on with the task without memory.")


class IdentityUnavailableError(TransientError):
    """The service that establishes identities does not answer at the moment."""

    def __init__(self, detail: str = "") -> None:
        """Keep a detail that is safe to show to the agent, or none."""
        text = "The identity of this session cannot be established at the moment"
        super().__init__(text + (f" ({detail})." if detail.strip() else "."))


class BackendUnavailableError(TransientError):
    """The storage did not answer in time, or is out of reach.

    `reason` is `timeout` or `unavailable`. `outcome` is `not_applied` when it is certain that the
    call changed nothing (always so for a read), `unknown` when it may have taken effect or still
    may, and None where the raiser does not say.
    """

    def __init__(
        self,
        reason: UnavailableReason,
        detail: str = "",
        *,
        outcome: UnsettledOutcome | None = None,
    ) -> None:
        """Keep the reason, the outcome, and a detail without path, key, URL or credential."""
        text = (
            "The storage did not answer in time"
            if reason == "timeout"
            else "The storage is unavailable"
        )
        text += f": {detail.rstrip('.')}." if detail.strip() else "."
        if outcome == "unknown":
            text += " Whether the change was made is not known: read the file before repeating it."
        elif outcome == "not_applied":
            text += " Nothing was changed."
        super().__init__(text)
        self.reason: UnavailableReason = reason
        self.outcome: UnsettledOutcome | None = outcome


class MetadataFormatError(ValueError):
    """Stored metadata of a file cannot be decoded. Says which key and why, never the value."""

    def __init__(self, key: str, detail: str) -> None:
        """Keep the metadata key and a detail that quotes no stored value."""
        super().__init__(f"stored metadata key {key!r} cannot be decoded: {detail}")
        self.key = key
        self.detail = detail

    def __reduce__(self) -> tuple[object, ...]:
        """Rebuild from the two parameters rather than from the text."""
        return (type(self), (self.key, self.detail))
