"""The file backends that lie on a storage, tried on a storage of yours.

    class TestStoreOnMine(StoreFilesConformance):
        @pytest.fixture
        def storage(self) -> Storage: ...      # fresh and empty for each test

What a file backend does must not depend on where its files lie. `StoreFilesConformance` is for
`StoreFileBackend`, `MemoryFilesConformance` for `MemoryFileBackend`; `MountedFilesConformance` and
`CoveredFilesConformance` are for a composite with the store at a mount, and around mounts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from wenchang.core import MemoryStore
from wenchang.files.composite import CompositeFileBackend
from wenchang.files.limits import TreeLimits
from wenchang.files.memory_backend import MemoryFileBackend
from wenchang.files.state_backend import StateFileBackend
from wenchang.files.store_backend import StoreFileBackend, StoreFileBackends, tree_base
from wenchang.files.values import FileEntry
from wenchang.identity import Identity, ScopeGrant
from wenchang.scope import ScopePolicy
from wenchang_conformance.file_backend.suite import FileBackendConformance

if TYPE_CHECKING:
    from collections.abc import Callable

    from wenchang.files.backend import FileBackend
    from wenchang.storage import Storage

__all__ = [
    "CoveredFilesConformance",
    "MemoryFilesConformance",
    "MountedFilesConformance",
    "StoreFilesConformance",
]

_LARGEST: Final = 6000
_NAMESPACE: Final = ("assistant",)
_NO_TEXT: Final = b"\xff\xfe no text"
_COVERED: Final = ("/memories/b.md", "/memories/x/y.md")


def _store(storage: Storage, tenant: str = "acme") -> StoreFileBackend:
    limits = TreeLimits(max_file_bytes=_LARGEST)
    return StoreFileBackends(storage, _NAMESPACE, limits=limits).of(tenant)


def _memory(storage: Storage, entity: str = "ada") -> MemoryFileBackend:
    store = MemoryStore(storage, max_file_bytes=_LARGEST)
    identity = Identity({"user": ScopeGrant(entity, "member")})
    return MemoryFileBackend(store, identity, ScopePolicy(), source="conformance")


def _overwrite(storage: Storage, key: str) -> None:
    """Put what is no text in the place of a stored content."""
    stored = storage.get(key)
    assert stored is not None, "the content of the file is not where it is looked for"
    storage.put(key, _NO_TEXT, stored.metadata)


class _FilesOnStorage(FileBackendConformance):
    """A file backend on the storage that is given."""

    @pytest.fixture
    def storage(self) -> Storage:
        """Return an empty storage, a fresh one for each test."""
        pytest.fail("give the fixture `storage`: an empty Storage, new for each test")

    @pytest.fixture
    def max_file_bytes(self) -> int:
        """Return what the backends here are limited to."""
        return _LARGEST

    @pytest.fixture
    def backend(self, storage: Storage) -> FileBackend:
        """Return the first handle."""
        return self.handle(storage)

    @pytest.fixture
    def reopen(self, storage: Storage) -> Callable[[], FileBackend]:
        """Return what opens one more handle, which shares nothing with others."""
        return lambda: self.handle(storage)

    def handle(self, storage: Storage) -> FileBackend:
        """Open a handle of the files on a storage."""
        return _store(storage)


class StoreFilesConformance(_FilesOnStorage):
    """`StoreFileBackend`."""

    @pytest.fixture
    def stranger(self, storage: Storage) -> FileBackend:
        """Return the files of another tenant."""
        return _store(storage, "stranger")

    @pytest.fixture
    def corrupt(self, storage: Storage) -> Callable[[str], None]:
        """Return what overwrites the content of a file."""

        def corrupt(path: str) -> None:
            entry = _store(storage).tree.snapshot().lookup(path.removeprefix("/"))
            assert isinstance(entry, FileEntry)
            _overwrite(storage, f"{tree_base('acme', _NAMESPACE)}/{entry.key}")

        return corrupt


class MemoryFilesConformance(_FilesOnStorage):
    """`MemoryFileBackend`: folders of one depth, and receipts only where a file is."""

    @pytest.fixture
    def folder(self) -> str:
        """Return an area."""
        return "/user/notes"

    @pytest.fixture
    def nested(self) -> bool:
        """Tell that an area holds no folders."""
        return False

    @pytest.fixture
    def keeps_every_receipt(self) -> bool:
        """Tell that receipts lie in the files."""
        return False

    def handle(self, storage: Storage) -> FileBackend:
        """Open a handle of the files of one identity."""
        return _memory(storage)

    @pytest.fixture
    def stranger(self, storage: Storage) -> FileBackend:
        """Return the files of another identity."""
        return _memory(storage, "eve")

    @pytest.fixture
    def corrupt(self, storage: Storage) -> Callable[[str], None]:
        """Return what overwrites the body of a file."""
        return lambda path: _overwrite(storage, path.replace("/user/", "user/ada/"))


class MountedFilesConformance(_FilesOnStorage):
    """A store mounted over a default that is full of files in its place."""

    @pytest.fixture
    def folder(self) -> str:
        """Return the mount."""
        return "/memories"

    @pytest.fixture
    def hidden(self) -> tuple[str, ...]:
        """Return what the default has there."""
        return _COVERED

    def handle(self, storage: Storage) -> FileBackend:
        """Open a composite."""
        covered = {path: {"content": "x\nfound\n"} for path in _COVERED}
        return CompositeFileBackend(StateFileBackend(covered), {"/memories": _store(storage)})


class CoveredFilesConformance(_FilesOnStorage):
    """A store as the default, with mounts over parts of it."""

    @pytest.fixture
    def folder(self) -> str:
        """Return a folder beside the mounts."""
        return "/own"

    def handle(self, storage: Storage) -> FileBackend:
        """Open a composite."""
        mounts = {"/memories": StateFileBackend(), "/a.md/deep": StateFileBackend()}
        return CompositeFileBackend(_store(storage), mounts)
