"""A cache of objects that never change, bounded in bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

__all__ = ["ByteCache"]

_V = TypeVar("_V")


class ByteCache(Generic[_V]):
    """Values by key, the least recently used first out. Safe over threads."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._entries: OrderedDict[str, tuple[_V, int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: str) -> _V | None:
        """Return the value, or None."""
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                return None
            self._entries.move_to_end(key)
            return found[0]

    def put(self, key: str, value: _V, size: int) -> None:
        """Keep a value of `size` bytes, unless it alone would pass the bound."""
        if size > self._max_bytes:
            return
        with self._lock:
            old = self._entries.pop(key, None)
            self._bytes += size - (old[1] if old is not None else 0)
            self._entries[key] = (value, size)
            while self._bytes > self._max_bytes:
                _, (_, dropped) = self._entries.popitem(last=False)
                self._bytes -= dropped

    def drop(self, key: str) -> None:
        """Forget a key."""
        with self._lock:
            old = self._entries.pop(key, None)
            if old is not None:
                self._bytes -= old[1]
