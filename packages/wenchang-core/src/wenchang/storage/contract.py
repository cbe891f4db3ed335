"""The storage contract: five methods over objects with a key, bytes, metadata and a version.

This is all that the rest of wenchang knows of any storage, and all that a backend has to give.
`STORAGE_CONTRACT` is the version of the contract that this module describes; the conformance
suite (`wenchang-conformance`) proves each sentence of it against a backend.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["STORAGE_CONTRACT", "ListedObject", "Storage", "StoredObject", "VersionLister"]

STORAGE_CONTRACT: Final = "1.0"


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One object as `get` returns it. All three fields come from one and the same write."""

    data: bytes
    metadata: Mapping[str, str]
    version: str


class ListedObject(NamedTuple):
    """One object as `list_page` returns it: no body, otherwise what `get` would report.

    A tuple with names rather than a dataclass: a page holds up to a thousand, and a frozen dataclass
    takes twice as long to make.
    """

    key: str
    metadata: Mapping[str, str]
    version: str


@runtime_checkable
class Storage(Protocol):
    """A store of objects in which every write can be made conditional on a version.

    **Keys.** 1 to 900 bytes of UTF-8, at most 200 segments separated by `/`, none of them empty,
    `.` or `..`; no leading or trailing `/`, no backslash, no control character, noncharacter or
    lone surrogate. A key is stored, found and listed exactly as given: no case folding, no
    normalisation, no decoding. Any other key raises `InvalidStorageKeyError` before anything is
    sent.

    **Metadata.** A flat map of at most 64 entries and 5,000 bytes of UTF-8 (names plus values).
    Names are 1 to 64 characters of `[a-z0-9-]`, the first a letter, and do not begin with
    `wenchang-`; values are text without control characters other than tab, LF and CR. What was
    put comes back equal. Refused maps raise `InvalidStorageMetadataError` or
    `MetadataTooLargeError` before anything is sent. The caller's map is copied.

    **Bodies.** Any bytes, the empty body included, up to 4 MiB, else `ObjectTooLargeError`.

    **Versions.** Non-empty opaque strings of at most 256 characters. Every successful put gives a
    version that the key never had before, also for identical content and after delete and
    re-create. A version that this backend never issued for the key is a mismatch, never a parse
    error and never "must not exist".

    **Outcomes.** A write ends in one of three ways. It returns: it took effect exactly once.
    It raises `PreconditionFailedError`: this call changed nothing, whatever was sent or re-sent on
    its behalf. It raises `BackendUnavailableError`: with `outcome="not_applied"` it certainly
    changed nothing; with `outcome="unknown"` it may have taken effect, or may still do so, at
    most once. A refusal for good (credentials, a missing bucket) raises `StorageRejectedError`,
    and nothing was applied. Every call ends within the backend's configured deadline.

    **Concurrency.** One handle serves any number of threads, and works or is rebuilt in a forked
    child. A write that has returned is seen at once by every handle in every process.

    **Wrong types** are `TypeError` before anything is sent.

    The protocol is structural and synchronous. A backend may also offer `close()` (and be a
    context manager) and `list_versions` (`VersionLister`).
    """

    def get(self, key: str) -> StoredObject | None:
        """Return the object at exactly `key`, or None when there is none.

        Body, metadata and version come from one write, whatever writers do meanwhile.
        """
        ...

    def put(self, key: str, data: bytes, metadata: Mapping[str, str]) -> str:
        """Create or replace the object whatever is there; return its new version.

        Body and metadata are replaced together, atomically; nothing of the old metadata is kept.
        After an answer was lost the write is never sent again, so `outcome="unknown"` is possible
        where the write cannot be identified any more.
        """
        ...

    def put_if_version(
        self, key: str, data: bytes, metadata: Mapping[str, str], expected: str | None
    ) -> str:
        """Replace the object only at version `expected`; return its new version.

        `expected=None` creates, and succeeds only if the key is absent. Any other state of the key
        raises `PreconditionFailedError` and changes nothing, a version on an absent key included.
        Repeating the call after any error is safe.
        """
        ...

    def delete_if_version(self, key: str, expected: str) -> None:
        """Delete the object only at version `expected`.

        A mismatch or an absent key raises `PreconditionFailedError` and changes nothing. Of several
        deleters of one version exactly one returns; only where the answer was lost and the key is
        now absent may another return too: returning then means that the object at that version
        is gone, not that this call removed it.
        """
        ...

    def list_page(self, prefix: str, start_after: str | None, limit: int) -> Sequence[ListedObject]:
        """Return up to `limit` objects whose key starts with `prefix`, in ascending key order.

        `prefix` is a plain string, not a path; `""` lists everything. Order is by code point,
        which is the order of the UTF-8 bytes. With `start_after` only greater keys are returned;
        that key need not exist. Both may be any text of at most 1,024 bytes of UTF-8 without
        control characters, else `InvalidStorageKeyError`; a `limit` that is not at least 1 is a
        `ValueError`. Fewer than `limit` objects are returned only when nothing more matches.

        Each entry is a read of its key at some moment of the call; nothing is promised between
        keys. Across pages, a key that is neither written nor deleted meanwhile appears exactly
        once. Bodies are not downloaded.
        """
        ...


@runtime_checkable
class VersionLister(Protocol):
    """A storage with a listing that is cheaper because it leaves metadata out (optional)."""

    def list_versions(
        self, prefix: str, start_after: str | None, limit: int
    ) -> Sequence[tuple[str, str]]:
        """Return `(key, version)` pairs by the rules of `Storage.list_page`.

        Used for counting, purging and collecting garbage where `list_page` is dear.
        """
        ...
