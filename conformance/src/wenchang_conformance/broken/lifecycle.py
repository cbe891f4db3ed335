"""Storages that are right while one thread of one process uses one handle."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence

from wenchang.storage import ListedObject, StoredObject
from wenchang_conformance.broken.plain import PlainStorage, State

__all__ = [
    "ForkBroken",
    "HandlesApart",
    "ListLimited",
    "LostUpdates",
    "OneThreadOnly",
    "ReadsOwnCache",
    "SlowFirstUse",
    "TornReads",
]


class OneThreadOnly(PlainStorage):
    """A connection that belongs to the thread that made it."""

    def __init__(self, state: State | None = None) -> None:
        super().__init__(state)
        self._owner: int | None = None

    def find(self, key: str) -> StoredObject | None:
        self._owner = self._owner or threading.get_ident()
        if self._owner != threading.get_ident():
            msg = "objects created in a thread can only be used in that same thread"
            raise RuntimeError(msg)
        return super().find(key)


class SlowFirstUse(PlainStorage):
    """A client that the first call makes: another thread that comes meanwhile finds it half made."""

    _client: dict[str, bool] | None = None

    def find(self, key: str) -> StoredObject | None:
        if self._client is None:
            self._client = {}
            self.state.lock.release()
            time.sleep(0.005)  # making a client takes a moment, and the lock is not held
            self.state.lock.acquire()
            self._client["connected"] = True
        if not self._client:
            msg = "the client is not connected"
            raise RuntimeError(msg)
        return super().find(key)


class LostUpdates(PlainStorage):
    """A cache of one's own that is written back whole: what others wrote meanwhile is gone."""

    def store(self, key: str, data: bytes, metadata: dict[str, str]) -> str:
        before = dict(self.state.objects)
        self.state.lock.release()
        time.sleep(0.002)  # the whole file is written, and the lock is not held
        self.state.lock.acquire()
        version = self.new_version(key, data, metadata)
        before[key] = StoredObject(data, metadata, version)
        # In one step: no reader, and no forked child, ever sees half of it.
        self.state.objects = before
        return version


class TornReads(PlainStorage):
    """A read of body, then metadata, with writers in between."""

    def get(self, key: str) -> StoredObject | None:
        first = super().get(key)
        time.sleep(0.001)  # the second request
        second = super().get(key)
        if first is None or second is None:
            return second
        return StoredObject(first.data, second.metadata, second.version)


class ReadsOwnCache(PlainStorage):
    """A handle that remembers what it read, and asks anew only when a condition did not hold."""

    def __init__(self, state: State | None = None) -> None:
        super().__init__(state)
        self._seen: dict[str, StoredObject] = {}

    def get(self, key: str) -> StoredObject | None:
        found = self._seen.get(key) or super().get(key)
        if found is None:
            return None
        self._seen[key] = found
        return StoredObject(found.data, dict(found.metadata), found.version)

    def store(self, key: str, data: bytes, metadata: dict[str, str]) -> str:
        self._seen.pop(key, None)
        return super().store(key, data, metadata)

    def remove(self, key: str) -> None:
        self._seen.pop(key, None)
        super().remove(key)

    def refusal(self, key: str) -> Exception:
        self._seen.pop(key, None)
        return super().refusal(key)


class HandlesApart(PlainStorage):
    """Each handle has a store of its own."""

    def __init__(self, state: State | None = None) -> None:
        super().__init__(State())


class ForkBroken(PlainStorage):
    """A handle whose connection does not survive a fork."""

    def __init__(self, state: State | None = None) -> None:
        super().__init__(state)
        self._pid = os.getpid()

    def find(self, key: str) -> StoredObject | None:
        if os.getpid() != self._pid:
            msg = "bad record mac"
            raise ConnectionError(msg)
        return super().find(key)

    def names(self) -> list[str]:
        if os.getpid() != self._pid:
            msg = "bad record mac"
            raise ConnectionError(msg)
        return super().names()


class ListLimited(PlainStorage):
    """Refuses a page of more than 1,000, as its provider does."""

    def list_page(self, prefix: str, start_after: str | None, limit: int) -> Sequence[ListedObject]:
        if limit > 1000:
            msg = "MaxKeys must be at most 1000"
            raise RuntimeError(msg)
        return super().list_page(prefix, start_after, limit)
