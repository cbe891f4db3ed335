"""What became of a root commit whose answer was lost, read from the commit log. Pure."""

from __future__ import annotations

from typing import Literal, TypeAlias

from wenchang.files._root import Root

__all__ = ["CommitVerdict", "settle"]

CommitVerdict: TypeAlias = Literal["landed", "not_applied", "again", "unknown"]


def settle(commit_id: str, seq: int, now: Root | None) -> CommitVerdict:
    """Say what became of the commit with this id, which was to be number `seq`, given the root now.

    `again`: the root is still before it, so the same commit (id, bytes, expected version) may be
    sent again: it can land once at most. `landed` and `not_applied` are certain. `unknown`: the log
    does not reach back far enough. None is a tree without a root, which is before every commit.
    """
    place = (0 if now is None else now.seq) - seq
    if place < 0:
        return "again"
    log = () if now is None else now.log
    if place >= len(log):
        return "unknown"
    return "landed" if log[place] == commit_id else "not_applied"
