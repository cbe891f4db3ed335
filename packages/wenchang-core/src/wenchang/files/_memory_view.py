"""The memory files that an identity may see, under the paths of a file backend.

`/<scope>/<area>/<name>.md` stands for the file of the caller's own entity in that scope. What no agent
can address is no path, and nothing here names an entity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, TypeVar

from wenchang import errors as memory_errors
from wenchang.core import MemoryStore
from wenchang.errors import MetadataFormatError, RestrictedScopeError
from wenchang.files._absences import no_file, no_folder, stale
from wenchang.files.backend import BackendEntry, absolute
from wenchang.files.errors import (
    InvalidArgumentError,
    LimitExceededError,
    NotFoundError,
    TreeStateError,
)
from wenchang.files.paths import ROOT
from wenchang.identity import Identity
from wenchang.paths import build_path, build_prefix, parse_path
from wenchang.records import FileEntry, FileState, MemoryFile
from wenchang.scope import ScopePolicy, check_write
from wenchang.tools import _arguments as check

__all__ = ["MemoryView", "OvertakenError"]

_T = TypeVar("_T")
_SUFFIX: Final = ".md"


class OvertakenError(Exception):
    """Somebody else changed the file between the look at it and the write."""


class MemoryView:
    """What is there for one identity, and where it lies. Paths come canonical, keys are those of memory."""

    def __init__(self, store: MemoryStore, identity: Identity, policy: ScopePolicy) -> None:
        self._store = store
        self._identity = identity
        self._policy = policy

    # --- where a file lies -------------------------------------------------------------------------

    def known_key(self, path: str) -> str | None:
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

    def key_to_change(self, path: str, *, to_create: bool) -> str:
        """Return the key of a path that the caller may change, or say what it is not."""
        key = self.known_key(path)
        if key is None and not to_create:
            raise self.no_file(path)
        if key is None:
            scopes = ", ".join(sorted(self._identity.grants))
            raise InvalidArgumentError(
                "path",
                "a memory file lies at /<scope>/<area>/<name>.md, with an area in lower-case "
                f"letters, digits, - and _, and one of these scopes: {scopes or 'none'}",
            )
        self.placed(path, partial(check_write, key, self._identity, self._policy))
        return key

    # --- one file ----------------------------------------------------------------------------------

    def state(self, key: str) -> FileState | None:
        """Return what is stored at a key; None where there is no file."""
        try:
            return self._store.file_state(key)
        except memory_errors.NotFoundError:
            return None

    def read(self, path: str) -> MemoryFile:
        """Return the file; `NotFoundError` without one, `TreeStateError` where it is no text."""
        key = self.known_key(path)
        if key is None:
            raise self.no_file(path)
        try:
            return self._store.read_file(key)
        except memory_errors.NotFoundError:
            raise self.no_file(path) from None
        except (MetadataFormatError, UnicodeDecodeError):
            raise TreeStateError("unreadable_content", absolute(path)) from None

    def text_at(self, path: str, state: FileState) -> str:
        """Return the text at a version; the attempt starts anew where it is another by now."""
        file = self.read(path)
        if file.version != state.version:
            raise OvertakenError
        return file.content

    def content(self, path: str) -> bytes | None:
        """Return the bytes of the file at an absolute path; None where they are gone or no text."""
        try:
            return self.read(path.removeprefix("/")).content.encode()
        except (TreeStateError, NotFoundError):
            return None

    def check_version(self, path: str, state: FileState, version: str | None) -> None:
        """Refuse a version that the file is not at, with its text where it has one."""
        if version is None or version == state.version:
            return
        try:
            text = self.text_at(path, state)
        except TreeStateError:
            text = None
        raise stale(path, state.version, text)

    # --- many files --------------------------------------------------------------------------------

    def below(self, folder: str) -> Iterator[tuple[str, BackendEntry]]:
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

    def files(self, under: str) -> Iterator[BackendEntry]:
        """Return the files beneath a folder, or the one file that is there."""
        key = self.known_key(under)
        state = None if key is None else self.state(key)
        if state is not None:
            modified = None if state.metadata is None else state.metadata.last_updated
            yield BackendEntry(path=absolute(under), version=state.version, modified=modified)
            return
        found = False
        for _, entry in self.below(under):
            found = True
            yield entry
        if not found and under != ROOT:
            raise NotFoundError(absolute(under))

    def no_file(self, path: str) -> NotFoundError:
        """Return the refusal of a call that wants a file."""
        return no_file(path, is_folder=next(self.below(path), None) is not None)

    def no_folder(self, folder: str) -> NotFoundError:
        """Return the refusal of a call that wants a folder."""
        key = self.known_key(folder)
        return no_folder(folder, is_file=key is not None and self.state(key) is not None)

    def placed(self, path: str, action: Callable[[], _T]) -> _T:
        """Turn the errors of memory into those of files, under the path that the caller knows."""
        try:
            return action()
        except (memory_errors.VersionConflictError, memory_errors.NotFoundError):
            raise OvertakenError from None
        except UnicodeDecodeError:
            # A conflict with a body that cannot be shown is a conflict all the same.
            raise OvertakenError from None
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
