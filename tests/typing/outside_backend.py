"""A backend as someone outside this project would write it; type checkers read it, nobody runs it.

It inherits nothing and imports nothing but `wenchang.storage`. That it is accepted as a `Storage`,
and that its parts keep their types, is what `dev.py check` and the test beside this file prove.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import assert_type

from wenchang.storage import (
    ListedObject,
    PreconditionFailedError,
    Storage,
    StoredObject,
    open_storage,
)


class DictStorage:
    """The five methods over a dictionary, without a base class."""

    def __init__(self) -> None:
        self._objects: dict[str, StoredObject] = {}

    def get(self, key: str) -> StoredObject | None:
        """Return the object at `key`."""
        return self._objects.get(key)

    def put(self, key: str, data: bytes, metadata: Mapping[str, str]) -> str:
        """Create or replace."""
        version = secrets.token_hex(8)
        self._objects[key] = StoredObject(data, dict(metadata), version)
        return version

    def put_if_version(
        self, key: str, data: bytes, metadata: Mapping[str, str], expected: str | None
    ) -> str:
        """Create, or replace the version `expected`."""
        current = self._objects.get(key)
        if (current.version if current else None) != expected:
            raise PreconditionFailedError(key, current=current)
        return self.put(key, data, metadata)

    def delete_if_version(self, key: str, expected: str) -> None:
        """Delete the version `expected`."""
        current = self._objects.get(key)
        if current is None or current.version != expected:
            raise PreconditionFailedError(key, current=current)
        del self._objects[key]

    def list_page(self, prefix: str, start_after: str | None, limit: int) -> Sequence[ListedObject]:
        """List in order of keys."""
        keys = sorted(k for k in self._objects if k.startswith(prefix) and k > (start_after or ""))
        found = ((key, self._objects[key]) for key in keys[:limit])
        return [ListedObject(key, stored.metadata, stored.version) for key, stored in found]


def use(storage: Storage) -> str:
    """Use a storage the way an adopter does; each value has the type that the contract names."""
    version = storage.put_if_version("a/b", b"text", {"kind": "note"}, None)
    stored = storage.get("a/b")
    assert_type(stored, StoredObject | None)
    if stored is not None:
        assert_type(stored.data, bytes)
        assert_type(stored.metadata, Mapping[str, str])
        assert_type(stored.version, str)
    for listed in storage.list_page("a/", None, 10):
        assert_type(listed, ListedObject)
        assert_type(listed.key, str)
    storage.delete_if_version("a/b", version)
    return version


ACCEPTED: Storage = DictStorage()
OPENED: Storage = open_storage("memory://")
