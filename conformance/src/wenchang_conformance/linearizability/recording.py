"""A storage that records what passes through it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from wenchang.storage import (
    UNREAD,
    BackendUnavailableError,
    InvalidStorageKeyError,
    InvalidStorageMetadataError,
    ListedObject,
    MetadataTooLargeError,
    ObjectTooLargeError,
    PreconditionFailedError,
    Storage,
    StorageRejectedError,
    StoredObject,
)
from wenchang_conformance.linearizability.operations import (
    SOME,
    Kind,
    Operation,
    Outcome,
    Presence,
)
from wenchang_conformance.linearizability.recorder import Pending, Recorder

_PROMISING = (
    InvalidStorageKeyError,
    InvalidStorageMetadataError,
    MetadataTooLargeError,
    ObjectTooLargeError,
    StorageRejectedError,
)
"""Errors that promise that nothing was applied. No other error does, whatever its class."""


class RecordingStorage:
    """The five methods of `storage`, each recorded in `recorder`.

    One client of a test uses one instance: a version it hands back stands for the write that *it*
    read, listed or made under that version, so that a version given to two writes is found out.
    Every write must have bytes that no other write to the key has.

    `keys` are the keys a listing is expected to tell about, next to those that this client has
    used: only of them a listing can record the absence. `tag` names a metadata entry whose value
    is unique to each write; with it a listing, which has no bodies, still tells writes apart
    without their versions, and a `get` whose body and metadata come from different writes is
    recorded as having seen bytes that nobody wrote.

    Results and errors pass unchanged. An error that promises nothing makes the outcome unknown.
    """

    def __init__(
        self,
        storage: Storage,
        recorder: Recorder,
        *,
        client: str = "",
        keys: Iterable[str] = (),
        tag: str | None = None,
    ) -> None:
        """Wrap a storage."""
        self._storage = storage
        self._recorder = recorder
        self._client = client
        self._keys = set(keys)
        self._tag = tag
        self._met: dict[tuple[str, str], bytes] = {}

    def get(self, key: str) -> StoredObject | None:
        """As `Storage.get`, recorded as a read."""
        pending = self._begin(Kind.READ, key)
        found = self._storage.get(key)
        pending.finish(Outcome.OK, saw=self._seen(key, found))
        return found

    def put(self, key: str, data: bytes, metadata: Mapping[str, str]) -> str:
        """As `Storage.put`, recorded."""
        pending = self._begin(Kind.PUT, key, wrote=data, metadata=metadata)
        try:
            version = self._storage.put(key, data, metadata)
        except Exception as error:
            self._failed(pending, error)
            raise
        return self._wrote(pending, version)

    def put_if_version(
        self, key: str, data: bytes, metadata: Mapping[str, str], expected: str | None
    ) -> str:
        """As `Storage.put_if_version`, recorded as a create or a replace."""
        kind = Kind.CREATE if expected is None else Kind.REPLACE
        pending = self._begin(kind, key, wrote=data, metadata=metadata, version=expected)
        try:
            version = self._storage.put_if_version(key, data, metadata, expected)
        except Exception as error:
            self._failed(pending, error)
            raise
        return self._wrote(pending, version)

    def delete_if_version(self, key: str, expected: str) -> None:
        """As `Storage.delete_if_version`, recorded."""
        pending = self._begin(Kind.DELETE, key, version=expected)
        try:
            self._storage.delete_if_version(key, expected)
        except Exception as error:
            self._failed(pending, error)
            raise
        pending.finish(Outcome.OK)

    def list_page(self, prefix: str, start_after: str | None, limit: int) -> Sequence[ListedObject]:
        """As `Storage.list_page`, recorded as one read of each key that the page tells about."""
        start = self._recorder.now()
        page = self._storage.list_page(prefix, start_after, limit)
        end = self._recorder.now()
        listed = {entry.key: entry for entry in page}
        last = max(listed, default="") if len(page) >= limit else None
        absent = {
            key
            for key in self._keys - listed.keys()
            if key.startswith(prefix)
            and (start_after is None or key > start_after)
            and (last is None or key <= last)
        }
        for entry in listed.values():
            self._keys.add(entry.key)
            self._listed(entry, start, end)
        for key in absent:
            self._add_read(Kind.LIST, key, None, start, end)
        return page

    # Recording -----------------------------------------------------------------------------

    def _begin(
        self,
        kind: Kind,
        key: str,
        *,
        wrote: bytes | None = None,
        metadata: Mapping[str, str] | None = None,
        version: str | None = None,
    ) -> Pending:
        self._keys.add(key)
        tag = None if metadata is None or self._tag is None else metadata.get(self._tag)
        if wrote is not None and tag is not None:
            self._recorder.tagged(key, tag, wrote)
        expected: bytes | Presence | None = None
        if version is not None:
            expected = self._met.get((key, version))
            if expected is None:
                expected = self._recorder.write_at(key, version)
        return self._recorder.begin(kind, key, wrote=wrote, expected=expected, client=self._client)

    def _wrote(self, pending: Pending, version: str) -> str:
        operation = pending.finish(Outcome.OK)
        self._meet(operation.key, version, operation.wrote)
        return version

    def _meet(self, key: str, version: str, wrote: bytes | None) -> None:
        if wrote is not None:
            self._met[key, version] = wrote
            self._recorder.handed_out(key, version, wrote)

    def _seen(self, key: str, found: StoredObject | None) -> bytes | None:
        if found is None:
            return None
        self._meet(key, found.version, found.data)
        if self._tag is not None and self._tag in found.metadata:
            tagged = self._recorder.write_tagged(key, found.metadata[self._tag])
            if isinstance(tagged, bytes) and tagged != found.data:
                return b"body of " + found.data + b" with metadata of " + tagged
        return found.data

    def _failed(self, pending: Pending, error: Exception) -> None:
        if isinstance(error, PreconditionFailedError):
            operation = pending.finish(Outcome.REFUSED)
            if error.current is not UNREAD and operation.end is not None:
                # The backend has read the object in order to be sure: a read like any other.
                seen = self._seen(operation.key, error.current)
                self._add_read(Kind.READ, operation.key, seen, operation.start, operation.end)
        elif isinstance(error, _PROMISING) or (
            isinstance(error, BackendUnavailableError) and error.outcome == "not_applied"
        ):
            pending.finish(Outcome.NOT_APPLIED)
        else:
            pending.finish(Outcome.UNKNOWN)

    def _listed(self, entry: ListedObject, start: int, end: int) -> None:
        saw: bytes | Presence = SOME
        if self._tag is not None and self._tag in entry.metadata:
            saw = self._recorder.write_tagged(entry.key, entry.metadata[self._tag])
        if isinstance(saw, bytes):
            self._meet(entry.key, entry.version, saw)
            self._add_read(Kind.LIST, entry.key, saw, start, end)
        else:
            self._add_read(Kind.LIST, entry.key, saw, start, end, version=entry.version)

    def _add_read(
        self,
        kind: Kind,
        key: str,
        saw: bytes | Presence | None,
        start: int,
        end: int,
        *,
        version: str | None = None,
    ) -> None:
        self._recorder.add(
            Operation(
                key=key,
                kind=kind,
                outcome=Outcome.OK,
                start=start,
                end=end,
                saw=saw,
                client=self._client,
            ),
            version=version,
        )
