"""The objects of one tree: where they lie, how they are read, cached, uploaded and removed.

Contents and pages never change under their key, so what is cached of them is right for ever. Only the
root is read anew.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from wenchang.errors import BackendUnavailableError
from wenchang.files._cache import ByteCache
from wenchang.files._pages import Page, PageRef, decode_page
from wenchang.files._receipts import Receipt, ReceiptPage, decode_receipts
from wenchang.files._root import Root, decode_root, new_root, random_name
from wenchang.files._workers import Workers
from wenchang.files.errors import StaleSnapshotError, TreeStateError
from wenchang.files.policy import TreePolicy
from wenchang.storage.contract import Storage, StoredObject, VersionLister
from wenchang.storage.errors import PreconditionFailedError, StorageError
from wenchang.storage.keys import MAX_KEY_BYTES, check_key

__all__ = ["Objects", "RootState", "new_key"]

_T = TypeVar("_T")
_PAGE_LIMIT: Final = 1000
_MAX_VERSIONS: Final = 65_536
_STATE_BYTES: Final = 500
"""What a record, a past state or a receipt takes in memory, about."""
_ROOT_METADATA: Final = {"kind": "root"}
_SCOPE: Final = "scope"
"""The metadata of a root that names its scope, so that it can be told of a damaged one too."""
_KEY_ROOM: Final = 80
"""Bytes that a tree's own part of a key may take."""


@dataclass(frozen=True, slots=True)
class RootState:
    """A root and the storage version it was read at; None: nothing is stored yet."""

    root: Root
    version: str | None


def new_key(incarnation: str, epoch: int) -> str:
    """Return a key that was never used, relative to the tree's base."""
    return f"{incarnation}/{epoch}/{random_name()}"


class Objects:
    """The objects under `base`. One instance serves any number of threads, and survives fork.

    `scope` is what the root says of its owner where this object makes the first one.
    """

    def __init__(self, storage: Storage, base: str, policy: TreePolicy, scope: str = "") -> None:
        check_key(base)
        if len(base.encode()) > MAX_KEY_BYTES - _KEY_ROOM:
            msg = f"base has at most {MAX_KEY_BYTES - _KEY_ROOM} bytes"
            raise ValueError(msg)
        self._storage = storage
        self._base = base
        self._policy = policy
        self.scope = scope
        self._birth = new_root(scope)
        self._reset()
        _instances.add(self)

    def _reset(self) -> None:
        """Begin with empty caches and without threads."""
        self._lock = threading.Lock()
        self._state: RootState | None = None
        self._contents: ByteCache[bytes] = ByteCache(self._policy.content_cache_bytes)
        self._pages: ByteCache[Page] = ByteCache(self._policy.page_cache_bytes)
        self._receipts: ByteCache[tuple[Receipt, ...]] = ByteCache(self._policy.page_cache_bytes)
        self._versions: OrderedDict[str, str] = OrderedDict()
        self._useless: list[tuple[str, str]] = []
        self.workers = Workers(self._policy.parallel)

    # --- the root --------------------------------------------------------------------------------

    def read_root(self) -> RootState:
        """Read the root from the storage; `TreeStateError` where it cannot be decoded."""
        return self._root_state(self._storage.get(self._key("root")))

    def cached_root(self) -> RootState | None:
        """Return the root as it was last seen, which need not be what is stored now."""
        return self._state

    def forget_root(self) -> None:
        """Forget the root last seen."""
        self._state = None

    def raw_root(self) -> StoredObject | None:
        """Return the root object as it is stored."""
        return self._storage.get(self._key("root"))

    def put_root(self, root: Root, data: bytes, expected: str | None) -> RootState:
        """Replace the root at a version; raises what the storage raises."""
        if expected is None:
            # An incarnation begins one root at most: it may be seen, purged and missed again, and
            # the version tokens of that time must stay stale.
            self._birth = new_root(self.scope)
            self.forget_root()
        metadata = {**_ROOT_METADATA, _SCOPE: root.scope} if root.scope else _ROOT_METADATA
        version = self._storage.put_if_version(self._key("root"), data, metadata, expected)
        state = RootState(root, version)
        self.note_root(state)
        return state

    def delete_root(self, version: str) -> bool:
        """Delete the root at a version; return False where it was gone or replaced already."""
        self.forget_root()
        try:
            self._storage.delete_if_version(self._key("root"), version)
        except PreconditionFailedError:
            return False
        return True

    def owner(self) -> str | None:
        """Return the scope that the stored root names, "" where it names none; None without a root."""
        found = self.raw_root()
        if found is None:
            return None
        named = found.metadata.get(_SCOPE)
        if named is None:
            # It never had one, or a copy without metadata is what stands there.
            try:
                return decode_root(found.data).scope
            except TreeStateError:
                return ""
        return named

    def note_root(self, state: RootState) -> None:
        """Keep a root as the last one seen, unless a later one is known."""
        known = self._state
        if (
            known is not None
            and known.root.incarnation == state.root.incarnation
            and known.root.seq > state.root.seq
        ):
            return
        self._state = state

    def _root_state(self, found: StoredObject | None) -> RootState:
        if found is None:
            state = RootState(self._birth, None)
            # Whatever was known is gone, if only by an operator's hand.
            self._state = state
            return state
        known = self._state
        if known is not None and known.version == found.version:
            return known
        state = RootState(decode_root(found.data), found.version)
        self.note_root(state)
        return state

    # --- pages and contents ----------------------------------------------------------------------

    def page(self, root: Root, ref: PageRef) -> Page:
        """Return a page of a root; `StaleSnapshotError` where it has been removed."""
        if not ref.key:
            if root.inline is None:
                raise TreeStateError("unreadable_root")
            return root.inline
        cached = self._pages.get(ref.key)
        if cached is None:
            cached = decode_page(self._get(ref.key))
            self.note_page(ref.key, cached)
        return cached

    def note_page(self, key: str, page: Page) -> None:
        """Keep a page that was just uploaded."""
        states = len(page.records) + sum(len(each.history) for each in page.records)
        self._pages.put(key, page, states * _STATE_BYTES)

    def receipts(self, page: ReceiptPage) -> tuple[Receipt, ...]:
        """Return the receipts of a receipt page; `StaleSnapshotError` where it has been removed."""
        cached = self._receipts.get(page.key)
        if cached is None:
            cached = decode_receipts(self._get(page.key))
            self._receipts.put(page.key, cached, len(cached) * _STATE_BYTES)
        return cached

    def content(self, key: str) -> bytes:
        """Return a content; `StaleSnapshotError` where it has been removed."""
        cached = self._contents.get(key)
        if cached is None:
            cached = self._get(key)
            self._contents.put(key, cached, len(cached))
        return cached

    def contents(
        self, items: Iterable[_T], key_of: Callable[[_T], str]
    ) -> Iterator[tuple[_T, bytes]]:
        """Yield each item with its content, in order, reading a bounded number ahead."""
        return self.workers.ahead(items, lambda item: self.content(key_of(item)))

    def _get(self, key: str) -> bytes:
        found = self._storage.get(self._key(key))
        if found is None:
            raise StaleSnapshotError(key)
        self._remember(key, found.version)
        return found.data

    def upload(self, key: str, data: bytes, metadata: Mapping[str, str]) -> None:
        """Create an object under a new key; raises what the storage raises.

        After any error the key must not be used again: the object may be there, or come yet.
        """
        version = self._storage.put_if_version(self._key(key), data, metadata, None)
        self._remember(key, version)

    def note_content(self, key: str, data: bytes) -> None:
        """Keep a content that was just uploaded."""
        self._contents.put(key, data, len(data))

    def _remember(self, key: str, version: str) -> None:
        with self._lock:
            self._versions[key] = version
            while len(self._versions) > _MAX_VERSIONS:
                self._versions.popitem(last=False)

    # --- removing --------------------------------------------------------------------------------

    def discard(self, keys: Iterable[str]) -> None:
        """Note objects that nothing refers to any more, for removal in the background.

        Those of which no storage version is known are left to the collection of garbage.
        """
        with self._lock:
            for key in keys:
                version = self._versions.pop(key, None)
                if version is not None:
                    self._useless.append((key, version))
            if len(self._useless) < self._policy.cleanup_after:
                return
            useless, self._useless = self._useless, []
        # Not at once: a reader that began before still finds what it needs.
        self.workers.later([self._remover(key, version) for key, version in useless])

    def drain(self) -> None:
        """Remove what was noted for removal, and wait for everything in the background."""
        with self._lock:
            useless, self._useless = self._useless, []
        self.workers.each([self._remover(key, version) for key, version in useless])
        self.workers.wait()

    def in_background(self, work: Callable[[], object]) -> None:
        """Run something in a thread of its own, unless the last one still runs."""
        self.workers.alone(work)

    def _remover(self, key: str, version: str) -> Callable[[], None]:
        def remove() -> None:
            try:
                self.delete(key, version)
            except (StorageError, BackendUnavailableError):
                # It stays for the collection of garbage.
                return

        return remove

    def delete(self, key: str, version: str) -> bool:
        """Delete an object at a version; return False where it was gone already."""
        self._contents.drop(key)
        self._pages.drop(key)
        try:
            self._storage.delete_if_version(self._key(key), version)
        except PreconditionFailedError:
            return False
        return True

    # --- listing ---------------------------------------------------------------------------------

    def listed(self) -> Iterator[tuple[str, str]]:
        """Yield key and version of every object but the root, in order."""
        prefix = self._base + "/"
        after: str | None = None
        while True:
            page: Sequence[tuple[str, str]]
            if isinstance(self._storage, VersionLister):
                page = self._storage.list_versions(prefix, after, _PAGE_LIMIT)
            else:
                listed = self._storage.list_page(prefix, after, _PAGE_LIMIT)
                page = [(each.key, each.version) for each in listed]
            for key, version in page:
                if key != self._key("root"):
                    yield key[len(prefix) :], version
            if len(page) < _PAGE_LIMIT:
                return
            after = page[-1][0]

    def described(self) -> Iterator[tuple[str, Mapping[str, str]]]:
        """Yield key and metadata of every object but the root, in order."""
        prefix = self._base + "/"
        after: str | None = None
        while True:
            page = self._storage.list_page(prefix, after, _PAGE_LIMIT)
            for each in page:
                if each.key != self._key("root"):
                    yield each.key[len(prefix) :], each.metadata
            if len(page) < _PAGE_LIMIT:
                return
            after = page[-1].key

    def _key(self, key: str) -> str:
        return f"{self._base}/{key}"


_instances: weakref.WeakSet[Objects] = weakref.WeakSet()


def _renew_after_fork() -> None:
    """Give every tree of a forked child caches and locks that no thread of the parent was using."""
    for instance in list(_instances):
        instance._reset()  # noqa: SLF001 - the class and its fork hook are one subject


os.register_at_fork(after_in_child=_renew_after_fork)
