"""`InMemoryStorage`: the whole contract in the memory of one process, for tests and trials."""

from __future__ import annotations

import os
import threading
import weakref
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Final

from wenchang.storage.contract import STORAGE_CONTRACT, ListedObject, StoredObject
from wenchang.storage.descriptor import BackendDescriptor
from wenchang.storage.errors import PreconditionFailedError, StorageConfigurationError
from wenchang.storage.keys import (
    check_body,
    check_expected,
    check_key,
    check_listing,
    check_metadata,
)

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from wenchang.storage.locations import StorageLocation

__all__ = ["DESCRIPTOR", "InMemoryStorage", "MemoryOptions"]

_BLOCK_KEYS: Final = 512


class InMemoryStorage:
    """A `Storage` that lives as long as the instance; every instance is a store of its own.

    Safe over threads. A forked child gets a consistent copy that is its own from then on. A page
    of a listing costs O(log n + page). Versions are never reused, not even between instances.
    """

    def __init__(self) -> None:
        """Make an empty store."""
        self._lock = threading.Lock()
        self._objects: dict[str, StoredObject] = {}
        self._keys = _SortedKeys()
        # The random part tells apart the versions of two instances in one process.
        self._instance = os.urandom(8).hex()
        self._counter = count(1)
        self._serial = next(_serials)
        _instances.add(self)

    def __enter__(self) -> Self:
        """Return the store itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Do nothing: there is nothing to release, and the objects stay readable."""

    def get(self, key: str) -> StoredObject | None:
        """Return the object at `key`, or None; see `Storage.get`."""
        check_key(key)
        with self._lock:
            found = self._objects.get(key)
        return None if found is None else _copy(found)

    def put(self, key: str, data: bytes, metadata: Mapping[str, str]) -> str:
        """Create or replace; see `Storage.put`."""
        check_key(key)
        check_body(data)
        copied = check_metadata(metadata)
        with self._lock:
            return self._store(key, data, copied)

    def put_if_version(
        self, key: str, data: bytes, metadata: Mapping[str, str], expected: str | None
    ) -> str:
        """Create or replace under a condition; see `Storage.put_if_version`."""
        check_key(key)
        check_body(data)
        copied = check_metadata(metadata)
        check_expected(expected, optional=True)
        with self._lock:
            found = self._objects.get(key)
            if (None if found is None else found.version) != expected:
                raise PreconditionFailedError(key)
            return self._store(key, data, copied)

    def delete_if_version(self, key: str, expected: str) -> None:
        """Delete under a condition; see `Storage.delete_if_version`."""
        check_key(key)
        check_expected(expected, optional=False)
        with self._lock:
            found = self._objects.get(key)
            if found is None or found.version != expected:
                raise PreconditionFailedError(key)
            self._keys.remove(key)
            del self._objects[key]

    def list_page(self, prefix: str, start_after: str | None, limit: int) -> Sequence[ListedObject]:
        """Return one page in key order; see `Storage.list_page`."""
        return [
            ListedObject(key, dict(found.metadata), found.version)
            for key, found in self._page(prefix, start_after, limit)
        ]

    def list_versions(
        self, prefix: str, start_after: str | None, limit: int
    ) -> Sequence[tuple[str, str]]:
        """Return `(key, version)` pairs by the rules of `list_page`."""
        return [(key, found.version) for key, found in self._page(prefix, start_after, limit)]

    def _page(
        self, prefix: str, start_after: str | None, limit: int
    ) -> list[tuple[str, StoredObject]]:
        check_listing(prefix, start_after, limit)
        page: list[tuple[str, StoredObject]] = []
        with self._lock:
            # Keys that share a prefix stand together, so the first one without it ends the page.
            if start_after is None or start_after < prefix:
                keys = self._keys.from_key(prefix, inclusive=True)
            else:
                keys = self._keys.from_key(start_after, inclusive=False)
            for key in keys:
                if not key.startswith(prefix):
                    break
                page.append((key, self._objects[key]))
                if len(page) == limit:
                    break
        return page

    def _store(self, key: str, data: bytes, metadata: dict[str, str]) -> str:
        version = f"{self._instance}-{next(self._counter)}"
        if key not in self._objects:
            self._keys.add(key)
        self._objects[key] = StoredObject(data, metadata, version)
        return version


def _copy(found: StoredObject) -> StoredObject:
    """Give the caller a map of its own."""
    return StoredObject(found.data, dict(found.metadata), found.version)


class _SortedKeys:
    """Distinct strings in code point order, kept in blocks so that an insert moves few of them."""

    def __init__(self) -> None:
        self._blocks: list[list[str]] = []
        # The last key of each block, to find a block by bisection.
        self._lasts: list[str] = []

    def add(self, key: str) -> None:
        """Insert a key that is not there yet."""
        if not self._blocks:
            self._blocks.append([key])
            self._lasts.append(key)
            return
        at = min(bisect_left(self._lasts, key), len(self._blocks) - 1)
        block = self._blocks[at]
        block.insert(bisect_left(block, key), key)
        self._lasts[at] = block[-1]
        if len(block) > 2 * _BLOCK_KEYS:
            upper = block[_BLOCK_KEYS:]
            del block[_BLOCK_KEYS:]
            self._lasts[at] = block[-1]
            self._blocks.insert(at + 1, upper)
            self._lasts.insert(at + 1, upper[-1])

    def remove(self, key: str) -> None:
        """Remove a key that is there."""
        at = bisect_left(self._lasts, key)
        block = self._blocks[at]
        del block[bisect_left(block, key)]
        if block:
            self._lasts[at] = block[-1]
        else:
            del self._blocks[at]
            del self._lasts[at]

    def from_key(self, start: str, *, inclusive: bool) -> Iterator[str]:
        """Yield the keys from `start` on, `start` itself only if `inclusive`."""
        bisect = bisect_left if inclusive else bisect_right
        first = bisect(self._lasts, start)
        for at in range(first, len(self._blocks)):
            block = self._blocks[at]
            yield from block[bisect(block, start) if at == first else 0 :]


_serials = count()
_instances: weakref.WeakSet[InMemoryStorage] = weakref.WeakSet()
_fork_lock = threading.Lock()
_held_over_fork: list[InMemoryStorage] = []


def _before_fork() -> None:
    """Let no thread be in the middle of a change while the memory is copied.

    Locks are taken in order of creation; everyone else holds one at most, so nothing can deadlock.
    """
    _fork_lock.acquire()
    _held_over_fork.extend(sorted(_instances, key=lambda instance: instance._serial))  # noqa: SLF001 - the class and its fork hooks are one subject
    for instance in _held_over_fork:
        instance._lock.acquire()  # noqa: SLF001 - as above


def _after_fork() -> None:
    """Release what `_before_fork` took; the forking thread is the one that runs in the child."""
    for instance in _held_over_fork:
        instance._lock.release()  # noqa: SLF001 - as above
    _held_over_fork.clear()
    _fork_lock.release()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryOptions:
    """The options of `memory://`: none."""


def _open(location: StorageLocation) -> InMemoryStorage:
    """Open `memory://`, each time a new and empty store.

    Raises `StorageConfigurationError` for an address: there is nothing to tell stores apart by.
    """
    location.options_as(MemoryOptions)
    if location.address:
        msg = f"memory storage has no address; write 'memory://' (from {location.source})"
        raise StorageConfigurationError(msg)
    return InMemoryStorage()


DESCRIPTOR: Final = BackendDescriptor(
    name="memory",
    contract=STORAGE_CONTRACT,
    summary="the memory of this process; gone when it ends",
    options=MemoryOptions,
    open=_open,
    durable=False,
    shared=False,
    local=True,
    unsupported={
        "obj-foreign": "nothing but the store itself reaches the memory of its process",
        "format-guard": "nothing outlives the process, so there is no stored format",
    },
    hooks="wenchang.storage.hooks:memory_hooks",
)
