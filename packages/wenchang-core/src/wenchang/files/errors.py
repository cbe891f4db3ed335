"""The errors of the file tree and its tools. Each has a stable `code` beside its class name.

    WenchangError
    ├── RecoverableError
    │   └── FileToolError                 code, and the fields named in `FIELDS`
    │       ├── VersionConflictError      VERSION_CONFLICT    path, version, content
    │       ├── NotFoundError             NOT_FOUND           path
    │       ├── AlreadyExistsError        ALREADY_EXISTS      path, kind
    │       ├── EditMatchError            EDIT_MATCH          path, edit, count
    │       ├── LimitExceededError        LIMIT_EXCEEDED      limit, value, maximum
    │       ├── EffectKeyReusedError      EFFECT_KEY_REUSED
    │       └── InvalidArgumentError      INVALID_ARGUMENT    argument, entries
    ├── PermanentError
    │   ├── TreeStateError                TREE_STATE          reason, path
    │   ├── NoFilesError                  NO_FILES            scope
    │   └── NoTenantError                 NO_TENANT
    └── TransientError
        ├── StaleSnapshotError            UNAVAILABLE
        └── BackendUnavailableError       UNAVAILABLE         (`wenchang.errors`)

Paths are shown: they are the caller's own names inside its own root, not storage keys. Nothing here
holds an account, a key or a URL.
"""

from __future__ import annotations

from typing import ClassVar, Final, Literal

from wenchang.errors import PermanentError, RecoverableError, TransientError

__all__ = [
    "MAX_CONFLICT_CONTENT_BYTES",
    "AlreadyExistsError",
    "EditMatchError",
    "EffectKeyReusedError",
    "EntryKind",
    "FileToolError",
    "InvalidArgumentError",
    "LimitExceededError",
    "NoFilesError",
    "NoTenantError",
    "NotFoundError",
    "StaleSnapshotError",
    "TreeStateError",
    "TreeStateReason",
    "VersionConflictError",
]

EntryKind = Literal["file", "folder"]
TreeStateReason = Literal[
    "absent",
    "unreadable_root",
    "unreadable_page",
    "unreadable_content",
    "missing_object",
    "newer_format",
]

MAX_CONFLICT_CONTENT_BYTES: Final = 16 * 1024
"""A conflict carries the current content up to this many bytes of UTF-8."""


class FileToolError(RecoverableError):
    """Base of the refusals of the file tools; nothing was changed."""

    code: ClassVar[str]
    FIELDS: ClassVar[tuple[str, ...]] = ()
    """Attributes that belong into the payload, in order; those that are None are left out."""


class VersionConflictError(FileToolError):
    """The file is not at the version that the call named, or an append kept losing races.

    `version` is the current one; `content` is the current text, or None where it is larger than
    16 KiB or was not read.
    """

    code = "VERSION_CONFLICT"
    FIELDS = ("path", "version", "content")

    def __init__(self, path: str, version: str | None, content: str | None = None) -> None:
        """Keep what is stored now."""
        if version is None:
            detail = (
                f"Many writers are at work on {path}: the call kept losing to them and wrote "
                "nothing. Repeat it."
            )
        else:
            detail = (
                f"{path} changed since it was read and is now at version {version}. Merge the "
                "change into its current text and repeat the call with that version."
            )
        super().__init__(detail)
        self.path = path
        self.version = version
        self.content = content


class NotFoundError(FileToolError):
    """There is nothing at the path, or not what the call wants there."""

    code = "NOT_FOUND"
    FIELDS = ("path",)

    def __init__(self, path: str, detail: str = "") -> None:
        """Keep the path; `detail` replaces the plain sentence."""
        super().__init__(detail or f"There is no file or folder at {path}.")
        self.path = path


class AlreadyExistsError(FileToolError):
    """Something is at the path already; `kind` says what."""

    code = "ALREADY_EXISTS"
    FIELDS = ("path", "kind")

    def __init__(self, path: str, kind: EntryKind, detail: str = "") -> None:
        """Keep what is in the way."""
        super().__init__(detail or f"There is a {kind} at {path} already.")
        self.path = path
        self.kind: EntryKind = kind


class EditMatchError(FileToolError):
    """One edit's text is not in the file exactly once; `edit` is its 0-based index."""

    code = "EDIT_MATCH"
    FIELDS = ("path", "edit", "count")

    def __init__(self, path: str, edit: int, count: int) -> None:
        """Keep which edit failed and how often its text was found."""
        if count == 0:
            advice = (
                "was not found. Copy it exactly from the file, without the line numbers that a "
                "read shows"
            )
        else:
            advice = (
                f"was found {count} times. Quote more of its surroundings, or set replaceAll to "
                "replace every one"
            )
        super().__init__(f"oldText of edit {edit} {advice}. No edit was applied.")
        self.path = path
        self.edit = edit
        self.count = count


class LimitExceededError(FileToolError):
    """The call would pass a limit; `value` is what it would have come to, `maximum` what may be."""

    code = "LIMIT_EXCEEDED"
    FIELDS = ("limit", "value", "maximum")

    def __init__(self, limit: str, value: int, maximum: int, detail: str = "") -> None:
        """Name the limit."""
        super().__init__(
            detail or f"The call would bring {limit} to {value}; at most {maximum} is allowed."
        )
        self.limit = limit
        self.value = value
        self.maximum = maximum


class EffectKeyReusedError(FileToolError):
    """The effect key names an earlier call with another operation or other arguments."""

    code = "EFFECT_KEY_REUSED"

    def __init__(self) -> None:
        """Say what to do."""
        super().__init__(
            "This effect key belongs to an earlier call with other arguments. Use a new key for a "
            "new change, or repeat the earlier call exactly."
        )


class InvalidArgumentError(FileToolError):
    """One argument breaks a rule. `entries` is set where a folder was named without `recursive`."""

    code = "INVALID_ARGUMENT"
    FIELDS = ("argument", "entries")

    def __init__(self, argument: str, detail: str, *, entries: int | None = None) -> None:
        """Name the argument and the rule."""
        super().__init__(f"Argument {argument} is invalid: {detail.rstrip('.')}.")
        self.argument = argument
        self.entries = entries


_TREE_STATES: Final[dict[str, str]] = {
    "absent": "These files were never written to: there is nothing to collect.",
    "unreadable_root": "The root of these files cannot be read. An operator can rebuild it.",
    "unreadable_page": "A part of these files' listing cannot be read. An operator can rebuild it.",
    "unreadable_content": "What is stored of this file is not text any more. It can be deleted.",
    "missing_object": "An object of these files is missing in the storage. An operator can repair it.",
    "newer_format": "These files were written by a newer version of wenchang. Upgrade this one.",
}


class TreeStateError(PermanentError):
    """The stored tree is damaged, absent where it must not be, or of a newer format.

    Nothing was changed. `wenchang verify` says what is wrong, and with `--rebuild` repairs it.
    """

    code = "TREE_STATE"
    FIELDS = ("reason", "path")

    def __init__(self, reason: TreeStateReason, path: str | None = None) -> None:
        """Keep what is wrong, and the file that it is about where that is known."""
        text = _TREE_STATES[reason]
        super().__init__(text if path is None else f"{path}: {text}")
        self.reason: TreeStateReason = reason
        self.path = path


class NoFilesError(PermanentError):
    """The identity of the session does not have the scope that files belong to."""

    code = "NO_FILES"
    FIELDS = ("scope",)

    def __init__(self, scope: str) -> None:
        """Keep the scope that is missing."""
        super().__init__(
            f"This session has no files: they belong to the scope {scope}, which is not one of its "
            "scopes."
        )
        self.scope = scope


class NoTenantError(PermanentError):
    """The run has no tenant, so there is no place that its files could lie in."""

    code = "NO_TENANT"

    def __init__(self) -> None:
        """Say who has to act."""
        super().__init__(
            "This run has no tenant, so it has no files. The application has to name the tenant "
            "of each run."
        )


class StaleSnapshotError(TransientError):
    """An object of a snapshot was removed after others had replaced it; take a fresh snapshot.

    `key` is where it lay and `path` the file whose content it was, if known; both are for code.
    """

    code = "UNAVAILABLE"

    def __init__(self, key: str) -> None:
        """Keep the key, which is not in the text."""
        super().__init__("The files changed while they were read.")
        self.key = key
        self.path: str | None = None
