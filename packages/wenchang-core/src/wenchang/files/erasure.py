"""Erasure of an entity's file tree. `MemoryStore.purge` calls it, so that no purge forgets the tree."""

from __future__ import annotations

from wenchang.files.accounts import account_base
from wenchang.files.settings import DEFAULT_FILES_SCOPE
from wenchang.files.tree import FileTree
from wenchang.operators import PURGE_MAX_PASSES
from wenchang.storage.contract import Storage

__all__ = ["purge_entity"]


def purge_entity(
    storage: Storage, scope: str, entity_id: str, *, max_passes: int = PURGE_MAX_PASSES
) -> int:
    """Erase the file tree of an entity as `FileTree.purge` does; return how many objects went.

    Nothing happens to a tree that belongs to an entity of the same id in another scope; a tree that
    names no scope belongs to `user`. Without a tree it costs three requests. Raises ValueError for what
    is no entity id, and what `FileTree.purge` raises with `remove_root`.
    """
    tree = FileTree(storage, account_base(entity_id), scope=scope)
    owner = tree.owner()
    if owner is not None and (owner or DEFAULT_FILES_SCOPE) != scope:
        return 0
    return tree.purge(remove_root=True, max_passes=max_passes, only_scope=scope)
