"""A right storage in memory whose every step is a method of its own, to be got wrong one by one.

It is slower and simpler than the one in core and keeps the whole contract. `State` is what several
handles share.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from wenchang.storage import ListedObject, PreconditionFailedError, StoredObject
from wenchang.storage.keys import (
    check_body,
    check_expected,
    check_key,
    check_listing,
    check_metadata,
)

__all__ = ["PlainStorage", "State"]


@dataclass
class State:
    """The objects of one namespace, by key, and what numbers their versions."""

    objects: dict[str, StoredObject] = field(default_factory=dict)
    # Reentrant, so that a wrong step may call a right one.
    lock: threading.RLock = field(default_factory=threading.RLock)
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    name: str = field(default_factory=lambda: os.urandom(4).hex())

    def __post_init__(self) -> None:
        """Give a forked child a lock that nobody holds."""
        os.register_at_fork(after_in_child=self._renew_lock)

    def _renew_lock(self) -> None:
        self.lock = threading.RLock()


class PlainStorage:
    """The five methods, each made of steps."""

    def __init__(self, state: State | None = None) -> None:
        """Open a handle onto `state`."""
        self.state = state or State()

    # --- the contract ---

    def get(self, key: str) -> StoredObject | None:
        """See `Storage.get`."""
        self.check_key(key)
        with self.state.lock:
            found = self.find(key)
        return None if found is None else self.shown(found)

    def put(self, key: str, data: bytes, metadata: Mapping[str, str]) -> str:
        """See `Storage.put`."""
        self.check_key(key)
        check_body(data)
        kept = self.checked(metadata)
        with self.state.lock:
            return self.store(key, data, kept)

    def put_if_version(
        self, key: str, data: bytes, metadata: Mapping[str, str], expected: str | None
    ) -> str:
        """See `Storage.put_if_version`."""
        self.check_key(key)
        check_body(data)
        kept = self.checked(metadata)
        check_expected(expected, optional=True)
        with self.state.lock:
            if not self.allows_put(self.find(key), expected):
                raise self.refusal(key)
            return self.store(key, data, kept)

    def delete_if_version(self, key: str, expected: str) -> None:
        """See `Storage.delete_if_version`."""
        self.check_key(key)
        check_expected(expected, optional=False)
        with self.state.lock:
            if not self.allows_delete(self.find(key), expected):
                raise self.refusal(key)
            self.remove(key)

    def list_page(self, prefix: str, start_after: str | None, limit: int) -> Sequence[ListedObject]:
        """See `Storage.list_page`."""
        check_listing(prefix, start_after, limit)
        with self.state.lock:
            keys = self.ordered([key for key in self.names() if self.has_prefix(key, prefix)])
            keys = [key for key in keys if start_after is None or self.is_after(key, start_after)]
            return [self.listed(key, self.state.objects[key]) for key in self.cut(keys, limit)]

    # --- the steps ---

    def check_key(self, key: str) -> None:
        """Refuse a key that the contract refuses."""
        check_key(key)

    def checked(self, metadata: Mapping[str, str]) -> dict[str, str]:
        """Return a checked copy of the caller's map."""
        return check_metadata(metadata)

    def find(self, key: str) -> StoredObject | None:
        """Return what is stored at a key."""
        return self.state.objects.get(key)

    def shown(self, found: StoredObject) -> StoredObject:
        """Return what `get` makes of it."""
        return StoredObject(found.data, dict(found.metadata), found.version)

    def listed(self, key: str, found: StoredObject) -> ListedObject:
        """Return what `list_page` makes of it."""
        return ListedObject(key, dict(found.metadata), found.version)

    def new_version(self, key: str, data: bytes, metadata: Mapping[str, str]) -> str:
        """Return a version that was never used."""
        return f"{self.state.name}-{next(self.state.numbers)}"

    def store(self, key: str, data: bytes, metadata: dict[str, str]) -> str:
        """Replace what is stored at a key."""
        version = self.new_version(key, data, metadata)
        self.state.objects[key] = StoredObject(data, metadata, version)
        return version

    def remove(self, key: str) -> None:
        """Remove what is stored at a key."""
        self.state.objects.pop(key, None)

    def allows_put(self, found: StoredObject | None, expected: str | None) -> bool:
        """Tell whether the condition of a put holds."""
        return expected == (None if found is None else found.version)

    def allows_delete(self, found: StoredObject | None, expected: str) -> bool:
        """Tell whether the condition of a delete holds."""
        return found is not None and found.version == expected

    def refusal(self, key: str) -> Exception:
        """Return the error for a condition that does not hold."""
        return PreconditionFailedError(key)

    def names(self) -> list[str]:
        """Return all keys that a listing may show."""
        return list(self.state.objects)

    def has_prefix(self, key: str, prefix: str) -> bool:
        """Tell whether a listing of `prefix` shows a key."""
        return key.startswith(prefix)

    def ordered(self, keys: list[str]) -> list[str]:
        """Return keys in listing order."""
        return sorted(keys)

    def is_after(self, key: str, start: str) -> bool:
        """Tell whether a listing from `start` shows a key."""
        return key > start

    def cut(self, keys: list[str], limit: int) -> list[str]:
        """Return the keys of one page."""
        return keys[:limit]
