"""The core store's way to its storage: mapped errors, the read cache, and pages of a listing.

What a backend refuses because of a caller's argument leaves here as an error that names the argument.
Outages and refusals for good pass through as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, TypeAlias

from wenchang.errors import InvalidArgumentError, OversizeWriteError
from wenchang.metadata import DESCRIPTION_KEY
from wenchang.read_cache import ReadCache
from wenchang.storage.contract import ListedObject, Storage, StoredObject
from wenchang.storage.errors import (
    UNREAD,
    InvalidStorageKeyError,
    InvalidStorageMetadataError,
    MetadataTooLargeError,
    ObjectTooLargeError,
    PreconditionFailedError,
)

__all__ = ["LIST_LIMIT", "Objects", "decode_body"]

LIST_LIMIT: Final = 1_000
"""Objects asked for at a time where a whole entity is listed: what providers give in one request."""

VersionListing: TypeAlias = Callable[[str, str | None, int], Sequence[tuple[str, str]]]


def decode_body(data: bytes) -> str:
    """Return the text of a body.

    Raises UnicodeDecodeError that says where the body stops being UTF-8 and holds nothing of it.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        start, reason = error.start, error.reason
    # The original carries the whole body, and its text quotes a byte unless it spans two or more.
    raise UnicodeDecodeError("utf-8", bytes(start + 2), start, start + 2, reason)


@contextmanager
def naming(argument: str) -> Iterator[None]:
    """Turn a key that this storage cannot hold into an error that names the caller's argument."""
    try:
        yield
    except InvalidStorageKeyError as error:
        refused = error
    else:
        return
    raise InvalidArgumentError(
        argument, f"this storage cannot hold it: {refused}. A shorter one in plain letters works"
    ) from refused


class Objects:
    """Objects of one storage, with what is known of them at their versions."""

    def __init__(self, storage: Storage, cache: ReadCache | None) -> None:
        """Keep both."""
        self._storage = storage
        self._cache = cache

    def known(self, path: str, version: str) -> StoredObject | None:
        """Return the object as it was at `version`, without a request; None where not known."""
        return None if self._cache is None else self._cache.get(path, version)

    def get(self, path: str) -> StoredObject | None:
        """Return the object as it is now: one request."""
        with naming("name"):
            stored = self._storage.get(path)
        self._learn(path, stored)
        return stored

    def current(self, path: str, error: PreconditionFailedError) -> StoredObject | None:
        """Return what made a condition fail: as the backend read it, else by one request."""
        if error.current is UNREAD:
            return self.get(path)
        self._learn(path, error.current)
        return error.current

    def put(self, path: str, data: bytes, metadata: Mapping[str, str], expected: str | None) -> str:
        """Write at a version (None: create) and return the new version: one request."""
        try:
            with naming("name"):
                version = self._storage.put_if_version(path, data, metadata, expected)
        except ObjectTooLargeError as error:
            raise OversizeWriteError(path, error.size, error.limit) from error
        except MetadataTooLargeError as error:
            raise InvalidArgumentError(
                "aliases", f"the metadata would take {error.size} bytes of {error.limit}"
            ) from error
        except InvalidStorageMetadataError as error:
            argument = "description" if error.name == DESCRIPTION_KEY else "aliases"
            raise InvalidArgumentError(
                argument, "the stored one cannot be kept by this storage; pass a new one"
            ) from error
        self._learn(path, StoredObject(data, metadata, version))
        return version

    def delete(self, path: str, expected: str) -> None:
        """Delete at a version: one request."""
        with naming("name"):
            self._storage.delete_if_version(path, expected)
        self.forget(path)

    def forget(self, prefix: str) -> None:
        """Drop what is known of the keys that begin with `prefix`."""
        if self._cache is not None:
            self._cache.drop(prefix)

    def page(self, prefix: str, start_after: str | None, limit: int) -> Sequence[ListedObject]:
        """Return one page of a listing: one request."""
        return self._storage.list_page(prefix, start_after, limit)

    def listing(self, prefix: str) -> Iterator[ListedObject]:
        """Yield every object under `prefix` in key order: one request for each `LIST_LIMIT`."""
        start: str | None = None
        while True:
            page = self._storage.list_page(prefix, start, LIST_LIMIT)
            yield from page
            if len(page) < LIST_LIMIT:
                return
            start = page[-1].key

    def versions(self, prefix: str) -> Iterator[tuple[str, str]]:
        """Yield (key, version) as `listing` does, by the cheaper listing where there is one."""
        # Looked up by name, not by isinstance: a wrapper that forwards by __getattr__ has it too.
        list_versions: VersionListing | None = getattr(self._storage, "list_versions", None)
        if list_versions is None:
            for listed in self.listing(prefix):
                yield listed.key, listed.version
            return
        start: str | None = None
        while True:
            page = list_versions(prefix, start, LIST_LIMIT)
            yield from page
            if len(page) < LIST_LIMIT:
                return
            start = page[-1][0]

    def _learn(self, path: str, stored: StoredObject | None) -> None:
        """Remember an object at its version."""
        if self._cache is not None and stored is not None:
            self._cache.put(path, stored)
