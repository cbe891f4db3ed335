"""`MemoryFileBackend`: the memory scopes of an identity as files, `/<scope>/<area>/<name>.md`.

What may be read and written is what the memory tools permit: the caller's own entities, areas and
names that agents can address, the system area read-only, the roles of the policy. Searching reads
bodies, which the memory tools cannot.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Final

from wenchang.core import MemoryStore
from wenchang.files._checks import to_edit, to_listed, to_read, to_searched, to_written
from wenchang.files._effects import Effect
from wenchang.files._memory_changes import MemoryChanges
from wenchang.files._memory_view import MemoryView
from wenchang.files._patience import Patience
from wenchang.files._regex import LineMatcher
from wenchang.files._scan import children, grep_files, match_files, take
from wenchang.files._windows import window
from wenchang.files.backend import (
    DEFAULT_READ_LINES,
    MAX_ITEMS,
    Accept,
    FileChange,
    FileRemoval,
    GrepResult,
    Listing,
    ReadWindow,
    absolute,
    check_at_least,
    to_file,
)
from wenchang.files.edits import apply_edits
from wenchang.files.errors import AlreadyExistsError, NotFoundError
from wenchang.files.paths import ROOT
from wenchang.files.policy import TreePolicy
from wenchang.identity import Identity
from wenchang.metadata import check_source
from wenchang.records import FileState
from wenchang.scope import ScopePolicy

__all__ = ["MemoryFileBackend"]

_READERS: Final = 8
_DEFAULT_POLICY: Final = TreePolicy()


class MemoryFileBackend:
    """A `FileBackend` over the memory of one identity.

    `source` is stored with each write. A replaced or edited file keeps description and aliases.
    Versions are those of the storage. A folder is a scope or an area in which a file is.

    Effect keys are remembered for write and edit only, and only where a file is, in the file's own
    metadata, the last 8: a delete and a refusal where there is none are decided anew. A replayed change
    tells no version. Recording the refusal of a call with a key writes the file, as it is, once more.
    """

    def __init__(
        self,
        store: MemoryStore,
        identity: Identity,
        policy: ScopePolicy,
        *,
        source: str,
        max_items: int = MAX_ITEMS,
        patience: TreePolicy = _DEFAULT_POLICY,
    ) -> None:
        """Bind to an identity; sends nothing. `patience` bounds how long a change competes."""
        check_at_least("max_items", max_items, 1)
        self._view = MemoryView(store, identity, policy)
        self._changes = MemoryChanges(
            store, self._view, source=check_source(source), patience=Patience(patience)
        )
        self._max_items = max_items

    @property
    def max_items(self) -> int:
        """See `FileBackend`."""
        return self._max_items

    # --- reading ---------------------------------------------------------------------------------

    def ls(self, path: str = "/", *, limit: int | None = None) -> Listing:
        """See `FileBackend`."""
        folder = to_listed(path, limit)
        # One more than may be looked at shows that there are more.
        found = dict(islice(self._view.below(folder), self._max_items + 1))
        if not found and folder != ROOT:
            raise self._view.no_folder(folder)
        cut = len(found) > self._max_items
        paths = list(found)[: self._max_items]
        listing = take(children(folder, paths, found.__getitem__), limit, self._max_items)
        return Listing(entries=listing.entries, truncated=listing.truncated or cut)

    def read(self, path: str, offset: int = 0, limit: int = DEFAULT_READ_LINES) -> ReadWindow:
        """See `FileBackend`."""
        wanted = to_read(path, offset, limit)
        file = self._view.read(wanted)
        return window(
            wanted,
            file.content,
            offset,
            limit,
            version=file.version,
            modified=file.metadata.last_updated,
        )

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
        return match_files(
            self._view.files(folder),
            pattern,
            folder,
            accept=accept,
            limit=limit,
            max_items=self._max_items,
        )

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
        with ThreadPoolExecutor(_READERS) as readers:
            return grep_files(
                self._view.files(folder),
                lambda entries: readers.map(self._view.content, [entry.path for entry in entries]),
                matcher,
                folder,
                include=include,
                accept=accept,
                limit=limit,
                max_items=self._max_items,
            )

    def locks(self, path: str) -> tuple[str, ...]:
        """Return `files/memory/<scope>/<entity>/<area>/<name>.md`, or the path where it is none."""
        wanted = to_file(path)
        return (f"files/memory/{self._view.known_key(wanted) or wanted}",)

    # --- changing --------------------------------------------------------------------------------

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
        arguments = [Effect.hash(content), version, create_only]

        def decide(state: FileState | None) -> tuple[str, int]:
            if state is None:
                if version is not None:
                    raise NotFoundError(absolute(wanted))
            elif create_only:
                raise AlreadyExistsError(absolute(wanted), "file")
            else:
                self._view.check_version(wanted, state, version)
            return content, 0

        return self._changes.change("write", wanted, arguments, effect_key, decide)

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
        arguments = [Effect.hash(old), Effect.hash(new), replace_all, version]

        def decide(state: FileState | None) -> tuple[str, int]:
            if state is None:
                raise self._view.no_file(wanted)
            self._view.check_version(wanted, state, version)
            text = self._view.text_at(wanted, state)
            return apply_edits(absolute(wanted), text, [edit])

        return self._changes.change("edit", wanted, arguments, effect_key, decide)

    def delete(
        self, path: str, *, version: str | None = None, effect_key: str | None = None
    ) -> FileRemoval:
        """See `FileBackend`; `effect_key` is checked, and not remembered."""
        wanted = to_file(path)
        if effect_key is not None:
            Effect(effect_key, "delete", wanted, [version])
        return self._changes.delete(wanted, version)
