"""A change tells which version it was decided on, and a folder is deleted in one commit."""

from __future__ import annotations

import pytest

from wenchang.core import MemoryStore
from wenchang.files.errors import InvalidArgumentError, NotFoundError
from wenchang.files.memory_backend import MemoryFileBackend
from wenchang.files.state_backend import StateFileBackend
from wenchang.files.store_backend import StoreFileBackend
from wenchang.identity import Identity, ScopeGrant
from wenchang.scope import ScopePolicy
from wenchang.storage.memory import InMemoryStorage

PATH = "/user/notes/a.md"


@pytest.fixture(params=["store", "state", "memory"])
def files(request):
    if request.param == "store":
        return StoreFileBackend(InMemoryStorage(), tenant="acme")
    if request.param == "state":
        return StateFileBackend()
    identity = Identity({"user": ScopeGrant("ada", "member")})
    return MemoryFileBackend(MemoryStore(InMemoryStorage()), identity, ScopePolicy(), source="t")


def test_a_change_tells_the_version_that_it_was_decided_on(files):
    created = files.write(PATH, "one")
    assert created.previous == ""
    written = files.write(PATH, "two")
    assert written.previous == created.version
    edited = files.edit(PATH, "two", "three")
    assert edited.previous == written.version
    same = files.write(PATH, "three")
    assert (same.changed, same.previous) == (False, edited.version)


def test_what_is_replayed_tells_none(files):
    files.write(PATH, "one")
    first = files.edit(PATH, "one", "two", effect_key="call-1")
    assert first.previous
    again = files.edit(PATH, "one", "two", effect_key="call-1")
    assert (again.replayed, again.previous) == (True, "")


class TestRemove:
    @pytest.fixture
    def store(self):
        files = StoreFileBackend(InMemoryStorage(), tenant="acme")
        for path in ("/x/a.md", "/x/y/b.md", "/z.md"):
            files.write(path, "x")
        return files

    def test_a_folder_goes_with_all_in_it_in_one_commit(self, store):
        before = store.tree.snapshot().version
        gone = store.remove("/x", effect_key="call-1")
        assert (gone.path, gone.kind, gone.files, gone.replayed) == ("/x", "folder", 2, False)
        assert [entry.path for entry in store.ls("/").entries] == ["/z.md"]
        assert store.tree.snapshot().version != before
        store.write("/x/c.md", "anew")
        assert store.remove("/x", effect_key="call-1").replayed
        assert store.read("/x/c.md").text == "anew"

    def test_a_file_goes_and_errors_name_absolute_paths(self, store):
        assert store.remove("/z.md").kind == "file"
        with pytest.raises(NotFoundError, match=r"at /z\.md"):
            store.remove("z.md")
        with pytest.raises(InvalidArgumentError):
            store.remove("/")
