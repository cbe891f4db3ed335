"""Erasure of a tree: an empty root first, then what it held, and where its owner goes, the root last.

The empty root is one commit. Whoever reads before it has the old tree, whoever reads after it an empty
one; what is deleted after it is needed by nobody. So it may break off anywhere and be repeated.
"""

from __future__ import annotations

from dataclasses import dataclass

from wenchang.files._garbage import Care, delete_useless, epoch_of, references
from wenchang.files._objects import Objects
from wenchang.files._queue import CommitQueue
from wenchang.files._root import Root, encode_root, random_name
from wenchang.files._rules import Desk
from wenchang.files.errors import TreeStateError
from wenchang.files.settings import DEFAULT_FILES_SCOPE
from wenchang.operators import PurgeIncompleteError
from wenchang.storage.errors import PreconditionFailedError

__all__ = ["purge", "purge_with_root"]


class _AnotherOwnerError(Exception):
    """The tree belongs to an entity of another scope."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Erase(Care):
    """Empty the tree under a new incarnation."""

    above: int
    only_scope: str | None = None

    def decide(self, desk: Desk) -> int:
        """Return the new epoch, which is above that of every object there is."""
        if self.only_scope not in (None, desk.working.scope or DEFAULT_FILES_SCOPE):
            raise _AnotherOwnerError
        desk.working.erase(self.above)
        return desk.working.epoch


def purge(objects: Objects, queue: CommitQueue) -> int:
    """Empty the tree and delete what it held; return how many objects went."""
    if not _empty(objects, queue):
        return 0
    state, referenced = references(objects)
    return delete_useless(objects, referenced, state.root.epoch).deleted


def purge_with_root(
    objects: Objects, queue: CommitQueue, *, max_passes: int, only_scope: str | None = None
) -> int:
    """Delete everything under the base, the root last; return how many objects went.

    With `only_scope` it ends where the root belongs to an entity of another scope: each pass asks
    anew, in the commit that empties the tree. What a writer uploads or commits meanwhile is left to the next pass, so that no root ever refers
    to what is gone. Raises `PurgeIncompleteError` where something is left after the last pass.
    """
    deleted = 0
    for _ in range(max_passes):
        if not _empty(objects, queue, only_scope):
            return deleted
        try:
            state, referenced = references(objects)
        except TreeStateError as error:
            if error.reason != "absent":
                raise
            # Another purge was faster; the next pass sees what is left.
            continue
        report = delete_useless(objects, referenced, state.root.epoch, strays=True)
        deleted += report.deleted
        settled = state.version is not None and not report.referenced and not report.kept
        if settled and objects.delete_root(state.version or ""):
            deleted += 1
    remaining = sum(1 for _ in objects.listed()) + (objects.raw_root() is not None)
    if remaining:
        raise PurgeIncompleteError(deleted, remaining)
    return deleted


def _empty(objects: Objects, queue: CommitQueue, only_scope: str | None = None) -> bool:
    """Commit an empty root whose epoch is above that of every object.

    Return False without a tree, and where it belongs to another scope.
    """
    keys = [key for key, _ in objects.listed()]
    if objects.raw_root() is None and not keys:
        return False
    newest = max((epoch_of(key) or 0 for key in keys), default=0)
    try:
        queue.run(_Erase(above=newest, only_scope=only_scope))
    except _AnotherOwnerError:
        return False
    except TreeStateError as error:
        if error.reason != "unreadable_root":
            raise
        _replace_unreadable(objects, newest + 1)
    return True


def _replace_unreadable(objects: Objects, epoch: int) -> None:
    """Put an empty root where bytes stand that are no root: nothing can be decided on those."""
    raw = objects.raw_root()
    root = Root(incarnation=random_name(), epoch=epoch, scope=objects.owner() or objects.scope)
    try:
        objects.put_root(root, encode_root(root), None if raw is None else raw.version)
    except PreconditionFailedError:
        # Another has replaced it, with a root or with nothing: what follows reads it anew.
        return
