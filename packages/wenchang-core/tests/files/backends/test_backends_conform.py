"""Every file backend of ours keeps the rules that all of them share."""

from __future__ import annotations

import pytest

from wenchang.core import MemoryStore
from wenchang.files.composite import CompositeFileBackend
from wenchang.files.limits import TreeLimits
from wenchang.files.memory_backend import MemoryFileBackend
from wenchang.files.state_backend import StateFileBackend
from wenchang.files.store_backend import StoreFileBackends, tree_base
from wenchang.identity import Identity, ScopeGrant
from wenchang.scope import ScopePolicy
from wenchang.storage import open_storage
from wenchang.testing import FileBackendConformance

LARGEST = 6000
LIMITS = TreeLimits(max_file_bytes=LARGEST)
HIDDEN = ("/memories/b.md", "/memories/x/y.md")
OTHER = b"\xff\xfe no text"


def store_of(storage):
    return StoreFileBackends(storage, ("assistant",), limits=LIMITS)


def damage(storage, backend, path):
    """Overwrite the stored content of a file with what is no text."""
    entry = backend.tree.snapshot().lookup(path.removeprefix("/"))
    key = f"{tree_base('acme', ('assistant',))}/{entry.key}"
    storage.put(key, OTHER, storage.get(key).metadata)


class _OnStorage(FileBackendConformance):
    @pytest.fixture
    def max_file_bytes(self):
        return LIMITS.max_file_bytes

    @pytest.fixture
    def backend(self, storage):
        return store_of(storage).of("acme")

    @pytest.fixture
    def reopen(self, storage):
        return lambda: store_of(storage).of("acme")

    @pytest.fixture
    def stranger(self, storage):
        return store_of(storage).of("stranger")

    @pytest.fixture
    def corrupt(self, storage, backend):
        return lambda path: damage(storage, backend, path)


class TestStoreInMemory(_OnStorage):
    @pytest.fixture
    def storage(self):
        with open_storage("memory://") as storage:
            yield storage


class TestStoreOnFiles(_OnStorage):
    @pytest.fixture
    def storage(self, tmp_path):
        with open_storage(f"file://{tmp_path}") as storage:
            yield storage


class TestStoreOnSqlite(_OnStorage):
    @pytest.fixture
    def storage(self, tmp_path):
        pytest.importorskip("wenchang_sql", reason="the SQL backend is not installed")
        with open_storage(f"sqlite:///{tmp_path}/files.db") as storage:
            yield storage


class TestState(FileBackendConformance):
    @pytest.fixture
    def state(self):
        return {}, {}

    @pytest.fixture
    def max_file_bytes(self):
        return LIMITS.max_file_bytes

    @pytest.fixture
    def backend(self, state):
        files, receipts = state
        return StateFileBackend(files, receipts=receipts, limits=LIMITS)

    @pytest.fixture
    def reopen(self, state):
        files, receipts = state
        return lambda: StateFileBackend(files, receipts=receipts, limits=LIMITS)

    @pytest.fixture
    def corrupt(self, state):
        def corrupt(path):
            state[0][path] = {"content": ["lines", "of", "an", "older", "form"]}

        return corrupt


class _InComposite(FileBackendConformance):
    """A store at a mount or as the default, full of files that the mounts cover."""

    @pytest.fixture
    def storage(self):
        with open_storage("memory://") as storage:
            yield storage

    @pytest.fixture
    def max_file_bytes(self):
        return LIMITS.max_file_bytes

    @pytest.fixture
    def backend(self, storage):
        return self.composite(storage)

    @pytest.fixture
    def reopen(self, storage):
        return lambda: self.composite(storage)


class TestMounted(_InComposite):
    @pytest.fixture
    def folder(self):
        return "/memories"

    @pytest.fixture
    def hidden(self):
        return HIDDEN

    def composite(self, storage):
        covered = {path: {"content": "x\nfound\n"} for path in HIDDEN}
        return CompositeFileBackend(
            StateFileBackend(covered), {"/memories": store_of(storage).of("acme")}
        )


class TestAroundMounts(_InComposite):
    def composite(self, storage):
        backend = store_of(storage).of("acme")
        return CompositeFileBackend(
            backend, {"/memories": StateFileBackend(), "/a.md/deep": StateFileBackend()}
        )

    @pytest.fixture
    def folder(self):
        return "/own"


class TestMemory(FileBackendConformance):
    """Memory has folders of one depth, and receipts only where a file is."""

    @pytest.fixture
    def storage(self):
        with open_storage("memory://") as storage:
            yield storage

    @pytest.fixture
    def folder(self):
        return "/user/notes"

    @pytest.fixture
    def nested(self):
        return False

    @pytest.fixture
    def keeps_every_receipt(self):
        return False

    @pytest.fixture
    def max_file_bytes(self):
        return LARGEST

    def files_of(self, storage, entity):
        store = MemoryStore(storage, max_file_bytes=LARGEST)
        identity = Identity({"user": ScopeGrant(entity, "member")})
        return MemoryFileBackend(store, identity, ScopePolicy(), source="tests")

    @pytest.fixture
    def backend(self, storage):
        return self.files_of(storage, "ada")

    @pytest.fixture
    def reopen(self, storage):
        return lambda: self.files_of(storage, "ada")

    @pytest.fixture
    def stranger(self, storage):
        return self.files_of(storage, "eve")

    @pytest.fixture
    def corrupt(self, storage):
        def corrupt(path):
            key = path.replace("/user/", "user/ada/")
            storage.put(key, OTHER, storage.get(key).metadata)

        return corrupt
