"""`StoreFileBackend`: files of one tenant on any storage, kept in a `FileTree` of their own.

They lie under `@store/<tenant>/…`. The tenant is what the run is for, never part of a path, so no
path and no setting of an application reaches the files of another one.

    backends = StoreFileBackends(storage, namespace=("assistant",))
    backend = backends.of("acme")         # in each run, with the tenant of that run
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from wenchang.errors import WenchangError
from wenchang.files._checks import to_edit, to_listed, to_read, to_searched, to_written
from wenchang.files._regex import LineMatcher
from wenchang.files._scan import grep_files, match_files, take
from wenchang.files._tenants import STORE_PREFIX, place_of, tree_base
from wenchang.files._windows import window
from wenchang.files.backend import (
    DEFAULT_READ_LINES,
    MAX_ITEMS,
    Accept,
    BackendEntry,
    FileChange,
    FileRemoval,
    GrepResult,
    Listing,
    ReadWindow,
    absolute,
    check_at_least,
    relocated,
    to_file,
)
from wenchang.files.errors import InvalidArgumentError, NotFoundError, TreeStateError
from wenchang.files.limits import TreeLimits
from wenchang.files.listing import check_folder
from wenchang.files.policy import HistoryPolicy, TreePolicy
from wenchang.files.snapshot import Snapshot
from wenchang.files.tree import FileTree
from wenchang.files.values import Deleted, FileEntry, FolderEntry, Moved, Written
from wenchang.storage.contract import Storage

__all__ = ["STORE_PREFIX", "StoreFileBackend", "StoreFileBackends", "tree_base"]

_T = TypeVar("_T")

_KEPT_TREES: Final = 64
_DEFAULT_LIMITS: Final = TreeLimits()
_DEFAULT_POLICY: Final = TreePolicy()


class StoreFileBackends:
    """Hands out the backend of each tenant; share one object for each storage of a process.

    Backends of one tenant share a tree, so that what they do at the same moment is committed
    together. `namespace` is the application's: it comes after the tenant, whatever it is.
    """

    def __init__(
        self,
        storage: Storage,
        namespace: Sequence[str] = (),
        *,
        limits: TreeLimits = _DEFAULT_LIMITS,
        history: HistoryPolicy | None = None,
        policy: TreePolicy = _DEFAULT_POLICY,
        max_items: int = MAX_ITEMS,
    ) -> None:
        """Keep the settings; sends nothing."""
        tree_base("any", namespace)
        self._namespace = tuple(namespace)
        self._make: Callable[[str], FileTree] = lambda base: FileTree(
            storage, base, limits=limits, history=history, policy=policy
        )
        self._storage = storage
        self._max_items = max_items
        self._lock = threading.Lock()
        self._trees: OrderedDict[str, FileTree] = OrderedDict()

    def of(self, tenant: str | None, *, source: str = "") -> StoreFileBackend:
        """Return the backend of a run's tenant; `NoTenantError` where the run has none."""
        base = tree_base(tenant, self._namespace)
        with self._lock:
            tree = self._trees.get(base)
            if tree is None:
                tree = self._trees[base] = self._make(base)
            self._trees.move_to_end(base)
            if len(self._trees) > _KEPT_TREES:
                self._trees.popitem(last=False)
        return StoreFileBackend(
            self._storage,
            self._namespace,
            tenant=tenant,
            tree=tree,
            source=source,
            max_items=self._max_items,
        )


class StoreFileBackend:
    """A `FileBackend` over the tree of one tenant; versions, receipts and limits are the tree's.

    `tenant` comes from the run's identity. `source` (up to 100 characters) says who writes. `tree` is
    given by `StoreFileBackends`, which shares it; without it this backend has one of its own.
    """

    def __init__(
        self,
        storage: Storage,
        namespace: Sequence[str] = (),
        *,
        tenant: str | None,
        tree: FileTree | None = None,
        source: str = "",
        max_items: int = MAX_ITEMS,
    ) -> None:
        """Keep the settings; sends nothing. Raises `NoTenantError`, ValueError and TypeError."""
        check_at_least("max_items", max_items, 1)
        self._place = place_of(tenant, namespace)
        self._tree = tree or FileTree(storage, tree_base(tenant, namespace))
        self._source = source
        self._max_items = max_items

    @property
    def tree(self) -> FileTree:
        """The tree, for what goes beyond files: history, care, purge."""
        return self._tree

    @property
    def max_items(self) -> int:
        """See `FileBackend`."""
        return self._max_items

    def ls(self, path: str = "/", *, limit: int | None = None) -> Listing:
        """See `FileBackend`."""
        folder = to_listed(path, limit)

        def read(snapshot: Snapshot) -> Listing:
            check_folder(snapshot, folder)
            return take(map(_entry, snapshot.children(folder)), limit, self._max_items)

        return _placed(lambda: self._tree.view(read))

    def read(self, path: str, offset: int = 0, limit: int = DEFAULT_READ_LINES) -> ReadWindow:
        """See `FileBackend`."""
        wanted = to_read(path, offset, limit)
        entry, text = _placed(lambda: self._tree.read_file(wanted), wanted)
        return window(wanted, text, offset, limit, version=entry.version, modified=entry.modified)

    def glob(
        self,
        pattern: str,
        under: str = "/",
        *,
        accept: Accept | None = None,
        limit: int | None = None,
    ) -> Listing:
        """See `FileBackend`."""
        folder = to_searched(under)

        def read(snapshot: Snapshot) -> Listing:
            return match_files(
                map(_entry, _files(snapshot, folder)),
                pattern,
                folder,
                accept=accept,
                limit=limit,
                max_items=self._max_items,
            )

        return _placed(lambda: self._tree.view(read))

    def grep(
        self,
        pattern: str,
        under: str = "/",
        *,
        include: str | None = None,
        accept: Accept | None = None,
        limit: int | None = None,
    ) -> GrepResult:
        """See `FileBackend`."""
        folder = to_searched(under)
        matcher = LineMatcher(pattern)

        def read(snapshot: Snapshot) -> GrepResult:
            known: dict[str, FileEntry] = {}

            def remembered() -> Iterator[BackendEntry]:
                for entry in _files(snapshot, folder):
                    shown = _entry(entry)
                    known[shown.path] = entry
                    yield shown

            return grep_files(
                remembered(),
                lambda wanted: _contents(snapshot, [known[entry.path] for entry in wanted]),
                matcher,
                folder,
                include=include,
                accept=accept,
                limit=limit,
                max_items=self._max_items,
            )

        return _placed(lambda: self._tree.view(read))

    def write(
        self,
        path: str,
        content: str,
        *,
        version: str | None = None,
        create_only: bool = False,
        effect_key: str | None = None,
    ) -> FileChange:
        """See `FileBackend`."""
        wanted = to_written(path, content, version, create_only=create_only)

        def write() -> Written:
            if create_only:
                return self._tree.create(
                    wanted, content, effect_key=effect_key, source=self._source
                )
            if version is None:
                return self._tree.put(wanted, content, effect_key=effect_key, source=self._source)
            return self._tree.write(
                wanted, content, version, effect_key=effect_key, source=self._source
            )

        return _change(_placed(lambda: _of_a_file(wanted, version, write)))

    def edit(
        self,
        path: str,
        old: str,
        new: str,
        *,
        replace_all: bool = False,
        version: str | None = None,
        effect_key: str | None = None,
    ) -> FileChange:
        """See `FileBackend`."""
        wanted, edit = to_edit(path, old, new, replace_all=replace_all)

        def change() -> Written:
            return self._tree.edit(
                wanted, [edit], version, effect_key=effect_key, source=self._source
            )

        return _change(_placed(lambda: _of_a_file(wanted, version, change)))

    def delete(
        self, path: str, *, version: str | None = None, effect_key: str | None = None
    ) -> FileRemoval:
        """See `FileBackend`."""
        wanted = to_file(path)
        gone = _placed(lambda: self._tree.delete_file(wanted, version, effect_key=effect_key))
        return FileRemoval(path=absolute(gone.path), replayed=gone.replayed)

    def remove(self, path: str, *, effect_key: str | None = None) -> Deleted:
        """Delete a file, or a folder with all beneath, in one commit; see `FileTree.delete`.

        Beyond `FileBackend`, for harnesses that delete folders. The path of the result is absolute.
        """
        gone = _placed(
            lambda: self._tree.delete(to_file(path), recursive=True, effect_key=effect_key)
        )
        return Deleted(
            path=absolute(gone.path), kind=gone.kind, files=gone.files, replayed=gone.replayed
        )

    def move(
        self,
        source: str,
        target: str,
        *,
        version: str | None = None,
        effect_key: str | None = None,
    ) -> Moved:
        """Move a file, or a folder with all beneath, in one commit; see `FileTree.move`.

        Beyond `FileBackend`, for harnesses that rename. The paths of the result are absolute.
        """
        moved = _placed(
            lambda: self._tree.move(
                to_file(source, argument="source"),
                to_file(target, argument="target"),
                version,
                effect_key=effect_key,
            )
        )
        return Moved(
            source=absolute(moved.source),
            target=absolute(moved.target),
            kind=moved.kind,
            files=moved.files,
            replayed=moved.replayed,
        )

    def locks(self, path: str) -> tuple[str, ...]:
        """Return `files/store/<tenant and namespace>/<path>`."""
        return (f"files/store/{self._place}/{to_file(path)}",)


def _files(snapshot: Snapshot, under: str) -> Iterator[FileEntry]:
    """Yield the files beneath a folder, or the one file that is there."""
    found = snapshot.lookup(under)
    if found is None:
        raise NotFoundError(under)
    if isinstance(found, FileEntry):
        yield found
    else:
        yield from snapshot.walk(under)


def _contents(snapshot: Snapshot, entries: Sequence[FileEntry]) -> list[bytes | None]:
    """Read contents side by side; one that is damaged does not take the others with it."""
    try:
        return [text.encode() for _, text in snapshot.read_many(entries)]
    except TreeStateError:
        return [_content(snapshot, entry) for entry in entries]


def _content(snapshot: Snapshot, entry: FileEntry) -> bytes | None:
    try:
        return snapshot.read_bytes(entry)
    except TreeStateError:
        return None


def _entry(entry: FileEntry | FolderEntry) -> BackendEntry:
    if isinstance(entry, FolderEntry):
        return BackendEntry(path=absolute(entry.path), kind="folder")
    return BackendEntry(
        path=absolute(entry.path),
        size=entry.size,
        version=entry.version,
        modified=entry.modified,
    )


def _change(written: Written) -> FileChange:
    return FileChange(
        path=absolute(written.path),
        version=written.version,
        created=written.created,
        changed=written.changed,
        replacements=written.replacements,
        replayed=written.replayed,
        previous=written.previous,
    )


def _of_a_file(path: str, version: str | None, call: Callable[[], Written]) -> Written:
    """Call; a version of what is a folder by now is of a file that is gone, and no bad argument here."""
    try:
        return call()
    except InvalidArgumentError as error:
        if error.argument != "version" or not isinstance(version, str) or not version:
            raise
        raise NotFoundError(path, f"{path} is a folder, not a file.") from error


def _placed(call: Callable[[], _T], path: str = "") -> _T:
    """Call, and give errors absolute paths; `path` is for damage that does not say which file it is."""
    try:
        return call()
    except TreeStateError as error:
        if error.path is None and path:
            raise TreeStateError(error.reason, absolute(path)) from error
        raise relocated(error, "/") from error
    except WenchangError as error:
        moved = relocated(error, "/")
        if moved is error:
            raise
        raise moved from error
