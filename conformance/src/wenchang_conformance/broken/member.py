"""What a member of the zoo is: a storage that is wrong in one way, and what that breaks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from wenchang_conformance.broken.plain import PlainStorage, State
from wenchang_conformance.hooks import StorageHooks

__all__ = ["CALM", "RACING", "REMOTE", "Member", "in_memory"]

CALM: Final = frozenset(
    {"keys", "metadata", "versions", "get_put", "conditional", "delete", "listing", "limits"}
)
"""The areas of the suite that ask one caller at a time."""
RACING: Final = frozenset({"concurrency", "handles", "lifecycle", "listing_moving"})
"""The areas with threads, processes, forks and restarts."""
REMOTE: Final = frozenset({"outcomes", "unavailable"})
"""The areas about lost answers and outages, whose cases wait for deadlines: a member is shown those of
its own requirement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One wrong storage.

    `breaks` is the requirement that has to fail. `also` are those that may fail with it, because the
    same fault makes their sentences untrue as well; nothing else may.
    """

    name: str
    breaks: str
    hooks: Callable[[], StorageHooks]
    also: frozenset[str] = field(default_factory=frozenset)
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why the others may fail, of members that not every run shows by all of their symptoms."""
    areas: frozenset[str] = CALM
    """The areas of the suite that it is shown to. All of them would prove no more, and take minutes."""


def in_memory(storage: type[PlainStorage]) -> Callable[[], StorageHooks]:
    """Return a function that makes hooks for handles of `storage` onto one fresh state."""

    def hooks() -> StorageHooks:
        state = State()
        return StorageHooks(open=lambda: storage(state), durable=False, shared=False, local=True)

    return hooks
