"""`MemoryFileBackend`: the memory scopes of an identity as files, `/<scope>/<area>/<name>.md`.

What may be read and written is what the memory tools permit: the caller's own entities, areas and
names that agents can address, the system area read-only, the roles of the policy. Searching reads
bodies, which the memory tools cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, NoReturn, TypeVar

from wenchang import errors as memory_errors
from wenchang.core import MemoryStore
from wenchang.errors import BackendUnavailableError, MetadataFormatError, RestrictedScopeError
from wenchang.files._effects import Effect, is_recorded
from wenchang.files._patience import Patience
from wenchang.files._regex import LineMatcher
from wenchang.files._scan import (
    check_both,
    check_edit,
    check_limit,
    children,
    grep_files,
    match_files,
    take,
    window,
)
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
    to_file,
    to_folder,
)
from wenchang.files.edits import Edit, apply_edits
from wenchang.files.errors import (
    MAX_CONFLICT_CONTENT_BYTES,
    AlreadyExistsError,
    FileToolError,
    InvalidArgumentError,
    LimitExceededError,
    NotFoundError,
    TreeStateError,
    VersionConflictError,
)
from wenchang.files.paths import ROOT
from wenchang.files.policy import TreePolicy
from wenchang.files.texts import check_text
from wenchang.identity import Identity
from wenchang.metadata import EPOCH, FileMetadata, check_source
from wenchang.paths import build_path, build_prefix, parse_path
from wenchang.records import FileEntry, FileState, MemoryFile
from wenchang.scope import ScopePolicy, check_write
from wenchang.tools import _arguments as check

__all__ = ["MemoryFileBackend"]

_T = TypeVar("_T")
_SUFFIX: Final = ".md"
_READERS: Final = 8
_DEFAULT_POLICY: Final = TreePolicy()
_NOTHING_KNOWN: Final = FileMetadata("", (), frozenset(), EPOCH)


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
        self._store = store
        self._identity = identity
        self._policy = policy
        self._source = check_source(source)
        self._max_items = max_items
        self._patience = Patience(patience)

    @property
    def max_items(self) -> int:
        """See `FileBackend`."""
        return self._max_items

    # --- reading ---------------------------------------------------------------------------------

    def ls(self, path: str = "/", *, limit: int | None = None) -> Listing:
        """See `FileBackend`."""
        folder = to_folder(path)
        check_limit(limit)
        # One more than may be looked at shows that there are more.
        found = dict(_first(self._below(folder), self._max_items + 1))
        if not found and folder != ROOT:
            self._refuse_folder(folder)
        cut = len(found) > self._max_items
        paths = list(found)[: self._max_items]
        listing = take(children(folder, paths, found.__getitem__), limit, self._max_items)
        return Listing(entries=listing.entries, truncated=listing.truncated or cut)

    def read(self, path: str, offset: int = 0, limit: int = DEFAULT_READ_LINES) -> ReadWindow:
        """See `FileBackend`."""
        wanted = to_file(path)
        check_at_least("offset", offset, 0)
        check_at_least("limit", limit, 1)
        file = self._read(wanted)
        return window(
            absolute(wanted),
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
        folder = to_folder(under, argument="under")
        return match_files(
            self._files(folder),
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
        folder = to_folder(under, argument="under")
        matcher = LineMatcher(pattern)
        with ThreadPoolExecutor(_READERS) as readers:
            return grep_files(
                self._files(folder),
                lambda entries: readers.map(self._content, [entry.path for entry in entries]),
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
        return (f"files/memory/{self._known_key(wanted) or wanted}",)

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
        wanted = to_file(path)
        check_both(version, create_only=create_only)
        check_text(content, "content")
        arguments = [Effect.hash(content), version, create_only]

        def decide(state: FileState | None) -> tuple[str, int]:
            if state is None:
                if version is not None:
                    raise NotFoundError(absolute(wanted))
            elif create_only:
                raise AlreadyExistsError(absolute(wanted), "file")
            else:
                self._check_version(wanted, state, version)
            return content, 0

        return self._change("write", wanted, arguments, effect_key, decide)

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
        wanted = to_file(path)
        check_edit(old, new)
        edit = Edit(old_text=old, new_text=new, replace_all=replace_all)
        arguments = [Effect.hash(old), Effect.hash(new), replace_all, version]

        def decide(state: FileState | None) -> tuple[str, int]:
            if state is None:
                raise self._no_file(wanted)
            self._check_version(wanted, state, version)
            text = self._text_at(wanted, state)
            return apply_edits(absolute(wanted), text, [edit])

        return self._change("edit", wanted, arguments, effect_key, decide)

    def delete(
        self, path: str, *, version: str | None = None, effect_key: str | None = None
    ) -> FileRemoval:
        """See `FileBackend`; `effect_key` is checked, and not remembered."""
        wanted = to_file(path)
        if effect_key is not None:
            Effect(effect_key, "delete", wanted, [version])

        def attempt() -> FileRemoval:
            key = self._known_key(wanted)
            state = None if key is None else self._state(key)
            if key is None or state is None:
                raise self._no_file(wanted)
            self._placed(wanted, lambda: check_write(key, self._identity, self._policy))
            self._check_version(wanted, state, version)
            self._store.delete_file(key, state.version)
            return FileRemoval(path=absolute(wanted))

        return self._until_it_holds(wanted, attempt)

    def _change(
        self,
        operation: str,
        path: str,
        arguments: Sequence[Any],
        effect_key: str | None,
        decide: Callable[[FileState | None], tuple[str, int]],
    ) -> FileChange:
        """Decide on what is stored and write at that very version, until nobody was faster."""
        effect = None if effect_key is None else Effect(effect_key, operation, path, arguments)
        key = self._key_to_change(path, operation)

        def attempt() -> FileChange:
            state = self._state(key)
            if effect is not None and state is not None:
                for row in state.receipts:
                    if row[0] == effect.key:
                        return _changed(effect.repeat(row[1]))
            try:
                text, replacements = decide(state)
                self._check_size(text)
            except FileToolError as error:
                if effect is not None and state is not None and is_recorded(error):
                    held = self._text_at(path, state)
                    self._save(key, held, state, (effect.key, effect.record(error)))
                raise
            same = state is not None and self._holds(path, state, text)
            change = FileChange(
                path=absolute(path),
                version="" if state is None else state.version,
                created=state is None,
                changed=not same,
                replacements=replacements,
            )
            if same and effect is None:
                return change
            receipt = None if effect is None else (effect.key, effect.record(_unversioned(change)))
            saved = self._save(key, text, state, receipt)
            return FileChange(
                path=change.path,
                version=saved.version,
                created=change.created,
                changed=change.changed,
                replacements=replacements,
            )

        return self._until_it_holds(path, attempt)

    def _save(
        self, key: str, text: str, state: FileState | None, receipt: tuple[str, list[Any]] | None
    ) -> MemoryFile:
        """Write at the version that was looked at, with the receipt in the same write."""
        known = (None if state is None else state.metadata) or _NOTHING_KNOWN
        receipts = None
        if receipt is not None:
            receipts = (*(() if state is None else state.receipts), receipt)
        return self._store.write_with_receipts(
            key,
            text,
            known,
            None if state is None else state.version,
            source=self._source,
            receipts=receipts,
        )

    def _until_it_holds(self, path: str, attempt: Callable[[], _T]) -> _T:
        """Repeat an attempt that others overtook, until the deadline."""
        deadline = self._patience.deadline()
        lost = 0
        while True:
            try:
                return self._placed(path, attempt)
            except _OvertakenError:
                if self._patience.is_over(deadline):
                    raise BackendUnavailableError(
                        "timeout", "too many writers at once", outcome="not_applied"
                    ) from None
            self._patience.pause(lost, deadline)
            lost += 1

    # --- what is there -----------------------------------------------------------------------------

    def _state(self, key: str) -> FileState | None:
        try:
            return self._store.file_state(key)
        except memory_errors.NotFoundError:
            return None

    def _read(self, path: str) -> MemoryFile:
        key = self._known_key(path)
        if key is None:
            raise self._no_file(path)
        try:
            return self._store.read_file(key)
        except memory_errors.NotFoundError:
            raise self._no_file(path) from None
        except (MetadataFormatError, UnicodeDecodeError):
            raise TreeStateError("unreadable_content", absolute(path)) from None

    def _text_at(self, path: str, state: FileState) -> str:
        """Return the text at a version; the attempt starts anew where it is another by now."""
        file = self._read(path)
        if file.version != state.version:
            raise _OvertakenError
        return file.content

    def _holds(self, path: str, state: FileState, text: str) -> bool:
        """Tell whether the file is already what it shall become; one that is damaged is not."""
        try:
            return self._text_at(path, state) == text
        except TreeStateError:
            return False

    def _content(self, path: str) -> bytes | None:
        try:
            return self._read(path.removeprefix("/")).content.encode()
        except (TreeStateError, NotFoundError):
            return None

    def _check_version(self, path: str, state: FileState, version: str | None) -> None:
        if version is None or version == state.version:
            return
        try:
            text = self._text_at(path, state)
        except TreeStateError:
            text = None
        if text is not None and len(text.encode()) > MAX_CONFLICT_CONTENT_BYTES:
            text = None
        raise VersionConflictError(absolute(path), state.version, text)

    def _check_size(self, text: str) -> None:
        size = len(text.encode())
        if size > self._store.max_file_bytes:
            raise LimitExceededError("maxFileBytes", size, self._store.max_file_bytes)

    # --- where it lies -----------------------------------------------------------------------------

    def _known_key(self, path: str) -> str | None:
        """Return the key of a path that the caller may read; None where no file can be."""
        names = path.split("/")
        if len(names) != 3 or not names[2].endswith(_SUFFIX):
            return None
        return self._key(names[0], names[1], names[2].removesuffix(_SUFFIX))

    def _key(self, scope: str, area: str, name: str) -> str | None:
        try:
            check.check_granted(scope, self._identity.grants)
            check.check_segment("area", area)
            check.check_area(area)
            check.check_segment("name", name)
            check.check_name(name)
        except memory_errors.InvalidArgumentError:
            return None
        return build_path(scope, self._identity.grants[scope].entity_id, area, name)

    def _key_to_change(self, path: str, operation: str) -> str:
        """Return the key of a path that the caller may change, or say what it is not."""
        key = self._known_key(path)
        if key is None and operation == "edit":
            raise self._no_file(path)
        if key is None:
            scopes = ", ".join(sorted(self._identity.grants))
            raise InvalidArgumentError(
                "path",
                "a memory file lies at /<scope>/<area>/<name>.md, with an area in lower-case "
                f"letters, digits, - and _, and one of these scopes: {scopes or 'none'}",
            )
        self._placed(path, partial(check_write, key, self._identity, self._policy))
        return key

    def _below(self, folder: str) -> Iterator[tuple[str, BackendEntry]]:
        """Yield the files beneath a folder in path order."""
        names = folder.split("/") if folder else []
        for scope in sorted(self._identity.grants, key=lambda scope: scope + "/"):
            if (names and names[0] != scope) or len(names) > 2:
                continue
            entity = self._identity.grants[scope].entity_id
            try:
                prefix = build_prefix(scope, entity, names[1] if len(names) > 1 else None)
            except ValueError:
                continue
            yield from self._listed(prefix)

    def _listed(self, prefix: str) -> Iterator[tuple[str, BackendEntry]]:
        cursor: str | None = None
        while True:
            page = self._store.list_prefix(prefix, cursor)
            for entry in page.entries:
                shown = self._entry(entry)
                if shown is not None:
                    yield shown.path, shown
            cursor = page.next_cursor
            if cursor is None:
                return

    def _entry(self, entry: FileEntry) -> BackendEntry | None:
        """Return what is shown of a file; None of one that no agent can address."""
        parts = parse_path(entry.path)
        if self._key(parts.scope, parts.area, parts.name) != entry.path:
            return None
        return BackendEntry(
            path=f"/{parts.scope}/{parts.area}/{parts.name}{_SUFFIX}",
            version=entry.version,
            modified=entry.metadata.last_updated,
        )

    def _files(self, under: str) -> Iterator[BackendEntry]:
        """Return the files beneath a folder, or the one file that is there."""
        key = self._known_key(under)
        state = None if key is None else self._state(key)
        if state is not None:
            modified = None if state.metadata is None else state.metadata.last_updated
            yield BackendEntry(path=absolute(under), version=state.version, modified=modified)
            return
        found = False
        for _, entry in self._below(under):
            found = True
            yield entry
        if not found and under != ROOT:
            raise NotFoundError(absolute(under))

    def _no_file(self, path: str) -> NotFoundError:
        name = absolute(path)
        is_folder = next(self._below(path), None) is not None
        return NotFoundError(name, f"{name} is a folder, not a file." if is_folder else "")

    def _refuse_folder(self, folder: str) -> NoReturn:
        name = absolute(folder)
        key = self._known_key(folder)
        if key is not None and self._state(key) is not None:
            raise NotFoundError(name, f"{name} is a file, not a folder.")
        raise NotFoundError(name, f"There is no folder at {name}.")

    def _placed(self, path: str, action: Callable[[], _T]) -> _T:
        """Turn the errors of memory into those of files, under the path that the caller knows."""
        try:
            return action()
        except (memory_errors.VersionConflictError, memory_errors.NotFoundError):
            raise _OvertakenError from None
        except UnicodeDecodeError:
            # A conflict with a body that cannot be shown is a conflict all the same.
            raise _OvertakenError from None
        except memory_errors.OversizeWriteError as error:
            raise LimitExceededError("maxFileBytes", error.size, error.limit) from error
        except memory_errors.FileQuotaExceededError as error:
            most = self._store.max_files_per_entity or 0
            raise LimitExceededError("maxFileCount", most + 1, most) from error
        except memory_errors.InvalidArgumentError as error:
            raise InvalidArgumentError("path", error.detail) from error
        except RestrictedScopeError as error:
            raise RestrictedScopeError(
                absolute(path), error.scope, error.reason, error.required_roles
            ) from None


class _OvertakenError(Exception):
    """Somebody else changed the file between the look at it and the write."""


def _first(pairs: Iterator[tuple[str, _T]], count: int) -> Iterator[tuple[str, _T]]:
    for _, pair in zip(range(count), pairs, strict=False):
        yield pair


def _unversioned(change: FileChange) -> FileChange:
    """Return what can be recorded in the write itself, whose version only its answer tells."""
    return FileChange(
        path=change.path,
        version="",
        created=change.created,
        changed=change.changed,
        replacements=change.replacements,
    )


def _changed(outcome: FileChange | FileRemoval) -> FileChange:
    if not isinstance(outcome, FileChange):
        msg = "the record of a change is of another kind"
        raise TypeError(msg)
    return outcome
