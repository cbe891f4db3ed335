"""What is known of stored objects without asking again: a bounded memory of their blocks.

A version never comes back, so what was read under a key and an ETag stays true for ever. A repeated
listing asks only for what has changed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from wenchang.storage.envelope import Envelope, Head, NotOurs
from wenchang.storage.keys import metadata_size
from wenchang_s3.forks import RenewedAfterFork
from wenchang_s3.versions import version_of

__all__ = ["HeadCache", "Known", "known_of"]

_OVERHEAD_BYTES: Final = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What a listing needs to know of one object."""

    metadata: Mapping[str, str]
    version: str
    tombstone: bool = False


def known_of(etag: str, stored: Envelope | Head | NotOurs) -> Known:
    """Return what there is to know of an object that was read at `etag`."""
    if isinstance(stored, NotOurs):
        return Known(metadata={}, version=version_of(etag, None))
    return Known(
        metadata=stored.metadata,
        version=version_of(etag, stored),
        tombstone=stored.tombstone,
    )


class HeadCache(RenewedAfterFork):
    """A map from key and ETag, bounded by bytes; what was used longest ago goes first."""

    def __init__(self, max_bytes: int = 32 * 1024 * 1024) -> None:
        """Hold about `max_bytes`."""
        super().__init__()
        self._max_bytes = max_bytes
        self._renew()

    def _renew(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[tuple[str, str], tuple[Known, int]] = OrderedDict()
        self._bytes = 0

    def get(self, key: str, etag: str) -> Known | None:
        """Return what is known, or None."""
        with self._lock:
            entry = self._entries.get((key, etag))
            if entry is None:
                return None
            self._entries.move_to_end((key, etag))
            return entry[0]

    def put(self, key: str, etag: str, known: Known) -> None:
        """Keep what was read or written."""
        size = _OVERHEAD_BYTES + 2 * (len(key) + len(etag) + metadata_size(known.metadata))
        with self._lock:
            before = self._entries.pop((key, etag), None)
            self._bytes += size - (before[1] if before else 0)
            self._entries[key, etag] = known, size
            while self._bytes > self._max_bytes and self._entries:
                _, (_, freed) = self._entries.popitem(last=False)
                self._bytes -= freed
