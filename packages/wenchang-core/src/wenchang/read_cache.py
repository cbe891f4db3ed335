"""Objects as they were at a version.

A version never names two states of a key, so what is kept under (key, version) is exact for ever; it
just may not be the newest state. The store takes from here what a conditional write is built on: where
that is out of date, the write's condition fails and nothing is lost.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from wenchang.storage.keys import metadata_size

if TYPE_CHECKING:
    from wenchang.storage.contract import StoredObject

__all__ = ["DEFAULT_MAX_BYTES", "DEFAULT_MAX_ENTRIES", "ReadCache"]

DEFAULT_MAX_ENTRIES: Final = 1_024
DEFAULT_MAX_BYTES: Final = 16 * 1024 * 1024


class ReadCache:
    """A bounded memory of objects, dropped in order of their last use. Serves many threads.

    A forked child begins with an empty one.

    Belongs to one storage: keys of two storages must not meet in it. Bytes are those of key, body
    and metadata; an object larger than the whole cache is not kept.
    """

    def __init__(
        self, *, max_entries: int = DEFAULT_MAX_ENTRIES, max_bytes: int = DEFAULT_MAX_BYTES
    ) -> None:
        """Set the two bounds: TypeError unless both are ints, ValueError below 1."""
        for name, value in {"max_entries": max_entries, "max_bytes": max_bytes}.items():
            if type(value) is not int:
                msg = f"{name} must be an int, not {type(value).__name__}"
                raise TypeError(msg)
            if value < 1:
                msg = f"{name} must be positive"
                raise ValueError(msg)
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._reset()
        _caches.add(self)

    def _reset(self) -> None:
        """Begin anew: after a fork a thread that is gone may hold the lock, half-way through."""
        self._lock = threading.Lock()
        self._objects: OrderedDict[tuple[str, str], tuple[StoredObject, int]] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        """Return how many objects are kept."""
        return len(self._objects)

    @property
    def size(self) -> int:
        """Bytes that are kept."""
        return self._bytes

    def get(self, key: str, version: str) -> StoredObject | None:
        """Return the object as it was at `version`, or None where it is not known."""
        with self._lock:
            kept = self._objects.get((key, version))
            if kept is None:
                return None
            self._objects.move_to_end((key, version))
            return kept[0]

    def put(self, key: str, stored: StoredObject) -> None:
        """Keep `stored` under its version, dropping what was used least recently."""
        size = len(key.encode()) + len(stored.data) + metadata_size(stored.metadata)
        if size > self._max_bytes:
            return
        with self._lock:
            self._remove((key, stored.version))
            self._objects[key, stored.version] = (stored, size)
            self._bytes += size
            while len(self._objects) > self._max_entries or self._bytes > self._max_bytes:
                self._remove(next(iter(self._objects)))

    def drop(self, prefix: str) -> None:
        """Forget every version of each key that begins with `prefix`."""
        with self._lock:
            for slot in [slot for slot in self._objects if slot[0].startswith(prefix)]:
                self._remove(slot)

    def _remove(self, slot: tuple[str, str]) -> None:
        """Forget one object; the lock is held."""
        kept = self._objects.pop(slot, None)
        if kept is not None:
            self._bytes -= kept[1]


_caches: weakref.WeakSet[ReadCache] = weakref.WeakSet()


def _reset_after_fork() -> None:
    """Give each cache of a forked child a lock that nobody holds."""
    for cache in list(_caches):
        cache._reset()  # noqa: SLF001 - the class and its fork hook are one subject


os.register_at_fork(after_in_child=_reset_after_fork)
