"""Which version of which file an agent has seen, for harnesses whose calls name no version."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final, Generic, TypeVar

__all__ = ["KEPT", "SeenVersions"]

KEPT: Final = 10_000
"""Versions that one object remembers; the ones not used for longest are forgotten first."""

_T = TypeVar("_T")


class _Recent(Generic[_T]):
    """A mapping that keeps the entries used last."""

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._items: OrderedDict[tuple[str, str], _T] = OrderedDict()

    def get(self, key: tuple[str, str]) -> _T | None:
        if key not in self._items:
            return None
        self._items.move_to_end(key)
        return self._items[key]

    def put(self, key: tuple[str, str], value: _T) -> None:
        self._items[key] = value
        self._items.move_to_end(key)
        if len(self._items) > self._kept:
            self._items.popitem(last=False)

    def drop(self, key: tuple[str, str]) -> None:
        self._items.pop(key, None)

    def __len__(self) -> int:
        return len(self._items)


class SeenVersions:
    """Versions by agent and path, bounded, for any number of threads.

    To forget one is safe for a write: it is then made only if there is no file, and otherwise refused
    with the file's current text. A delete is made as of a file that was never read.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self._lock = threading.Lock()
        self._versions: _Recent[str] = _Recent(kept)
        self._bases: _Recent[tuple[str | None]] = _Recent(kept)

    def __len__(self) -> int:
        """Return how many versions are remembered."""
        return len(self._versions)

    def get(self, agent: str, path: str) -> str | None:
        """Return the version that an agent knows of a file, or None."""
        with self._lock:
            return self._versions.get((agent, path))

    def saw(self, agent: str, path: str, version: str, *, from_start: bool = True) -> None:
        """Remember a version that was shown.

        A later part of a file does not replace what is known of its beginning: an agent that saw the
        parts of two versions has seen neither.
        """
        if not version:
            return
        with self._lock:
            if from_start or self._versions.get((agent, path)) is None:
                self._versions.put((agent, path), version)

    def forget(self, agent: str, path: str) -> None:
        """Forget a file that is gone."""
        with self._lock:
            self._versions.drop((agent, path))

    def edited(self, agent: str, path: str, previous: str, version: str) -> None:
        """Remember the version that an edit made, if the agent knew the one that it was decided on."""
        with self._lock:
            if previous and version and self._versions.get((agent, path)) == previous:
                self._versions.put((agent, path), version)

    def base(self, agent: str, path: str, effect_key: str | None) -> str | None:
        """Return the version that a change is to be conditional on: the same for a repeated call."""
        with self._lock:
            version = self._versions.get((agent, path))
            if effect_key is None:
                return version
            first = self._bases.get((effect_key, path))
            if first is None:
                first = (version,)
                self._bases.put((effect_key, path), first)
            return first[0]
