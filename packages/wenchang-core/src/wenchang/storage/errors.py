"""Errors between a storage backend and its caller. None of them is shown to an agent as it is.

    StorageError
    ├── PreconditionFailedError           the object is not at the expected version
    ├── StorageRejectedError              the service refused for good: credentials, missing bucket, …
    ├── InvalidStorageKeyError            (a ValueError) the key breaks the rules of `keys`
    ├── InvalidStorageMetadataError       (a ValueError) the metadata map breaks them
    ├── MetadataTooLargeError             (a ValueError)
    ├── ObjectTooLargeError               (a ValueError)
    ├── StorageConfigurationError         (a ValueError) a wrong option, URL parameter or folder
    └── DiscoveryError                    a backend could not be found or loaded by its name
        ├── UnknownBackend
        ├── BackendNotInstalled
        ├── BackendBroken
        ├── BackendConflict
        └── BackendIncompatible

Outages are `wenchang.errors.BackendUnavailableError`, which callers may show as it is. Texts and
reprs hold no key, metadata value, URL or credential.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from wenchang.storage.contract import StoredObject

__all__ = [
    "UNREAD",
    "BackendBroken",
    "BackendConflict",
    "BackendIncompatible",
    "BackendNotInstalled",
    "DiscoveryError",
    "InvalidStorageKeyError",
    "InvalidStorageMetadataError",
    "MetadataTooLargeError",
    "ObjectTooLargeError",
    "PreconditionFailedError",
    "RejectionKind",
    "StorageConfigurationError",
    "StorageError",
    "StorageRejectedError",
    "UnknownBackend",
    "Unread",
]

RejectionKind = Literal[
    "credentials", "permission", "missing_container", "unsupported", "invalid", "locked", "full"
]


class Unread(Enum):
    """The type of `UNREAD`, so that a type checker can tell it from None."""

    UNREAD = "unread"


UNREAD = Unread.UNREAD
"""The value of `PreconditionFailedError.current` when the backend did not read the object."""


class StorageError(Exception):
    """Base of the errors of the storage contract."""

    def __reduce__(self) -> tuple[object, ...]:
        """Rebuild without calling a constructor whose parameters differ from `args`."""
        return (_rebuild, (type(self), self.args, dict(self.__dict__)))


def _rebuild(cls: type[Exception], args: tuple[object, ...], state: dict[str, object]) -> Exception:
    """Make an error again from its class, `args` and attributes (pickle and copy)."""
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class PreconditionFailedError(StorageError):
    """The object is not at the expected version; this call changed nothing.

    Never raised for a write of the same call that landed. `key` is for code and not in the text.
    `current` is the object as read while the outcome was settled: a `StoredObject`, None when the
    key was absent, or `UNREAD` when the backend had no need to read it.
    """

    def __init__(self, key: str, *, current: StoredObject | Unread | None = UNREAD) -> None:
        """Keep the key and, where it was read, the object found there."""
        super().__init__("the object is not at the expected version; nothing was changed")
        self.key = key
        self.current: StoredObject | Unread | None = current


class StorageRejectedError(StorageError):
    """The service refused the request for good; nothing was applied and repeating will not help.

    `kind` says what to look at: `credentials` (401), `permission` (403, a missing privilege),
    `missing_container` (no such bucket, container, database or table), `unsupported` (405, 501),
    `invalid` (400, 413, data error), `locked` (lease, retention, read-only), `full` (disk, quota).
    """

    def __init__(self, kind: RejectionKind, detail: str) -> None:
        """Keep the kind and a sentence that says what to check, without any identifier."""
        super().__init__(detail)
        self.kind: RejectionKind = kind


class InvalidStorageKeyError(StorageError, ValueError):
    """The key, prefix or start is none that the contract permits; nothing was sent."""

    def __init__(self, detail: str) -> None:
        """Say which rule is broken, without the key."""
        super().__init__(detail)


class InvalidStorageMetadataError(StorageError, ValueError):
    """The metadata map is none that the contract permits; nothing was sent.

    `name` is the offending entry's name for code, or "" where the map as a whole is at fault.
    """

    def __init__(self, name: str, detail: str = "a name or value breaks the rules") -> None:
        """Keep the entry's name and say which rule is broken, without name or value."""
        super().__init__(f"invalid metadata: {detail}")
        self.name = name


class MetadataTooLargeError(StorageError, ValueError):
    """Names and values together exceed the limit; nothing was sent."""

    def __init__(self, size: int, limit: int) -> None:
        """Keep size and limit, both in bytes of UTF-8."""
        super().__init__(f"metadata of {size} bytes exceeds the limit of {limit} bytes")
        self.size = size
        self.limit = limit


class ObjectTooLargeError(StorageError, ValueError):
    """The body exceeds the limit; nothing was sent."""

    def __init__(self, size: int, limit: int) -> None:
        """Keep size and limit, both in bytes."""
        super().__init__(f"a body of {size} bytes exceeds the limit of {limit} bytes")
        self.size = size
        self.limit = limit


class StorageConfigurationError(StorageError, ValueError):
    """An option, URL parameter or folder is wrong; nothing was opened. The text says what is right."""

    def __init__(self, detail: str) -> None:
        """Say which option is wrong and what would be right, without secrets."""
        super().__init__(detail)


class DiscoveryError(StorageError):
    """A backend could not be found or loaded by its name. The text says what to do."""

    def __init__(self, detail: str) -> None:
        """Say what failed, where the name came from, what is installed and what to run."""
        super().__init__(detail)


class UnknownBackend(DiscoveryError):  # noqa: N818 - the public name of the discovery errors
    """No installed distribution and none of ours provides a backend of this name."""


class BackendNotInstalled(DiscoveryError):  # noqa: N818 - the public name of the discovery errors
    """The backend exists, but its distribution or its SDK is not installed here."""


class BackendBroken(DiscoveryError):  # noqa: N818 - the public name of the discovery errors
    """The backend's plug-in cannot be loaded; the cause is chained."""


class BackendConflict(DiscoveryError):  # noqa: N818 - the public name of the discovery errors
    """Two distributions provide the name; the option `provider` settles which one is meant."""


class BackendIncompatible(DiscoveryError):  # noqa: N818 - the public name of the discovery errors
    """The backend was built for another version of the storage contract."""
