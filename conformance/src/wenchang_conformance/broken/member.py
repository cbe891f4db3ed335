"""What a member of the zoo is: a storage that is wrong in one way, and what that breaks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from wenchang_conformance.broken.plain import PlainStorage, State
from wenchang_conformance.hooks import StorageHooks

__all__ = ["Member", "in_memory"]


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


def in_memory(storage: type[PlainStorage]) -> Callable[[], StorageHooks]:
    """Return a function that makes hooks for handles of `storage` onto one fresh state."""

    def hooks() -> StorageHooks:
        state = State()
        return StorageHooks(open=lambda: storage(state), durable=False, shared=False, local=True)

    return hooks
