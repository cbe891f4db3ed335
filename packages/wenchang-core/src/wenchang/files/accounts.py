"""`FileAccounts`: the file trees of a storage, one for each account."""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from wenchang.files.limits import TreeLimits
from wenchang.files.policy import TreePolicy
from wenchang.files.settings import FileSettings
from wenchang.files.tree import FileTree
from wenchang.paths import segment_problem
from wenchang.storage.contract import Storage

__all__ = ["FILES_PREFIX", "FileAccounts", "account_base"]

FILES_PREFIX: Final = "@files"
"""What the keys of all trees begin with. No scope begins with `@`, so no memory lies there."""

_KEPT_TREES: Final = 64
_DEFAULT_SETTINGS: Final = FileSettings()
_DEFAULT_POLICY: Final = TreePolicy()


def _now() -> datetime:
    return datetime.now(UTC)


def account_base(entity: str) -> str:
    """Return the key prefix under which the tree of an account lies.

    ValueError for what is no entity id: with a slash in it one account would lie within another.
    """
    problem = segment_problem(entity)
    if problem is not None:
        msg = f"entity {problem}"
        raise ValueError(msg)
    return f"{FILES_PREFIX}/{entity}"


class FileAccounts:
    """Hands out the tree of an account, which is the entity of the scope `settings.scope`.

    Share one object for each storage of a process: callers of one account get the same tree, so that
    what they do at the same moment is committed together. The trees used last are kept with their
    caches; others live as long as somebody uses them. Constructing sends nothing.

    `max_depth_of` gives the depth that an account has set for itself, or None. The smaller of it and
    `settings.limits.max_depth` is in force; it is asked anew at each call.
    """

    def __init__(
        self,
        storage: Storage,
        settings: FileSettings = _DEFAULT_SETTINGS,
        *,
        max_depth_of: Callable[[str], int | None] | None = None,
        policy: TreePolicy = _DEFAULT_POLICY,
        clock: Callable[[], datetime] = _now,
    ) -> None:
        self._storage = storage
        self._settings = settings
        self._max_depth_of = max_depth_of
        self._policy = policy
        self._clock = clock
        self._used_last: OrderedDict[str, FileTree] = OrderedDict()
        self._in_use: weakref.WeakValueDictionary[str, FileTree] = weakref.WeakValueDictionary()
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def settings(self) -> FileSettings:
        """What holds for every account."""
        return self._settings

    def tree(self, entity: str) -> FileTree:
        """Return the tree of an account, under the limits that are in force for it now.

        Raises ValueError for what is no entity id, and where `max_depth_of` gives a depth that is none.
        """
        limits = self._limits(entity)
        if self._process != os.getpid():
            # A fork may have caught the lock while another thread held it.
            self._lock, self._process = threading.Lock(), os.getpid()
        with self._lock:
            tree = self._in_use.get(entity)
            if tree is None or tree.limits != limits:
                tree = FileTree(
                    self._storage,
                    account_base(entity),
                    limits=limits,
                    history=self._settings.history,
                    policy=self._policy,
                    clock=self._clock,
                    scope=self._settings.scope,
                )
                self._in_use[entity] = tree
            self._used_last[entity] = tree
            self._used_last.move_to_end(entity)
            if len(self._used_last) > _KEPT_TREES:
                self._used_last.popitem(last=False)
        return tree

    def close(self) -> None:
        """Finish what runs in the background. The trees can still be used; the storage stays open."""
        with self._lock:
            trees = list(self._in_use.values())
        for tree in trees:
            tree.close()

    def _limits(self, entity: str) -> TreeLimits:
        limits = self._settings.limits
        own = None if self._max_depth_of is None else self._max_depth_of(entity)
        if own is None:
            return limits
        # The account's depth is checked by itself: one that is out of range is a mistake, even
        # where the smaller of the two would not be.
        return replace(limits, max_depth=min(TreeLimits(max_depth=own).max_depth, limits.max_depth))
