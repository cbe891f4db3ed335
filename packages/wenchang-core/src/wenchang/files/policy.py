"""How a tree behaves beside its limits: patience, sizes of pages and caches, history."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

__all__ = ["MAX_HISTORY_VERSIONS", "HistoryPolicy", "TreePolicy"]

MAX_HISTORY_VERSIONS: Final = 100
"""Past states that a tree can keep of one path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPolicy:
    """Which past states a tree keeps, so that an edit, a write or a delete can be undone.

    At most `versions` of each path, deleted paths included; none older than `max_age`; together at
    most `max_bytes`, the oldest giving way first. Past states never take a place from files: they
    give way before a write is refused for `max_total_bytes`. Whoever writes without history keeps
    none of what it replaces and drops what others kept of that path.
    """

    versions: int
    max_age: timedelta = timedelta(days=90)
    max_bytes: int = 256 * 1024 * 1024

    def __post_init__(self) -> None:
        """Refuse values that mean nothing with a ValueError."""
        if type(self.versions) is not int or not 1 <= self.versions <= MAX_HISTORY_VERSIONS:
            msg = f"versions must be 1 to {MAX_HISTORY_VERSIONS}; leave history out to keep none"
            raise ValueError(msg)
        if self.max_age <= timedelta(0):
            msg = "max_age must be positive"
            raise ValueError(msg)
        if type(self.max_bytes) is not int or self.max_bytes < 1:
            msg = "max_bytes must be at least 1"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class TreePolicy:
    """Bounds of time, memory and size. The defaults suit everyone; tests shrink them.

    `deadline` (seconds) bounds how long a mutation competes for the root; each storage call has the
    storage's own deadline beside it. Waits between attempts are random up to `backoff_base` doubled
    each time, at most `backoff_cap`. `batch` calls of one process are committed together.
    `parallel` bounds the storage calls that one call makes at a time (1: one after another, in the
    caller's own thread). `content_cache_bytes` and `page_cache_bytes` bound what is kept in memory.

    A page has at most `page_entries` entries and `page_bytes` bytes. A tree with at most
    `inline_entries` entries and `inline_bytes` bytes of them needs no page. After `cleanup_after`
    objects have become useless they are removed in the background, and after `sweep_every` commits
    of this process garbage is collected (0: never). Receipts stay for at least `receipt_days` days,
    and the newest `receipts_kept` of them for ever.
    """

    deadline: float = 30.0
    backoff_base: float = 0.02
    backoff_cap: float = 1.0
    batch: int = 64
    parallel: int = 16
    content_cache_bytes: int = 32 * 1024 * 1024
    page_cache_bytes: int = 64 * 1024 * 1024
    page_entries: int = 512
    page_bytes: int = 64 * 1024
    inline_entries: int = 256
    inline_bytes: int = 32 * 1024
    cleanup_after: int = 32
    sweep_every: int = 1000
    receipts_in_root: int = 64
    receipt_days: float = 7.0
    receipts_kept: int = 1000

    def __post_init__(self) -> None:
        """Refuse values that mean nothing with a ValueError."""
        for name in ("deadline", "backoff_base", "backoff_cap", "receipt_days"):
            if not 0 < getattr(self, name) < math.inf:
                msg = f"{name} must be a positive number"
                raise ValueError(msg)
        least = {
            "sweep_every": 0,
            "page_entries": 2,
            "content_cache_bytes": 0,
            "page_cache_bytes": 0,
        }
        for name in (
            "batch",
            "parallel",
            "content_cache_bytes",
            "page_cache_bytes",
            "page_entries",
            "page_bytes",
            "inline_entries",
            "inline_bytes",
            "cleanup_after",
            "sweep_every",
            "receipts_in_root",
            "receipts_kept",
        ):
            value = getattr(self, name)
            if type(value) is not int or value < least.get(name, 1):
                msg = f"{name} must be an int of at least {least.get(name, 1)}"
                raise ValueError(msg)
