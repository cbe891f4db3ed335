"""The memory scopes of an identity as files: what it may see and change, and its receipts."""

from __future__ import annotations

import pytest

from wenchang.core import MemoryStore
from wenchang.errors import RestrictedScopeError
from wenchang.files.errors import (
    AlreadyExistsError,
    EditMatchError,
    InvalidArgumentError,
    LimitExceededError,
    NotFoundError,
    VersionConflictError,
)
from wenchang.files.memory_backend import MemoryFileBackend
from wenchang.identity import Identity, ScopeGrant
from wenchang.metadata import EPOCH, RECEIPTS_KEY, FileMetadata
from wenchang.scope import ScopePolicy
from wenchang.storage.memory import InMemoryStorage

METADATA = FileMetadata("kept", ("alias",), frozenset(), EPOCH)


@pytest.fixture
def storage():
    return InMemoryStorage()


@pytest.fixture
def store(storage):
    return MemoryStore(storage, max_files_per_entity=4)


@pytest.fixture
def files(store):
    identity = Identity({"user": ScopeGrant("ada", "member"), "org": ScopeGrant("press", "reader")})
    policy = ScopePolicy({"org": frozenset({"editor"})})
    return MemoryFileBackend(store, identity, policy, source="files")


def paths(listing):
    return [entry.path for entry in listing.entries]


def test_scopes_and_areas_are_folders_in_path_order(store, files):
    for path in ("user/ada/notes/b.md", "user/ada/diary/a.md", "org/press/house/x.md"):
        store.write_file(path, "tea\n", METADATA, None, source="t")
    store.write_file("user/eve/notes/secret.md", "tea\n", METADATA, None, source="t")
    assert paths(files.ls("/")) == ["/org", "/user"]
    assert paths(files.ls("/user")) == ["/user/diary", "/user/notes"]
    assert paths(files.ls("/user/notes")) == ["/user/notes/b.md"]
    found = [match.path for match in files.grep("tea").matches]
    assert found == ["/org/house/x.md", "/user/diary/a.md", "/user/notes/b.md"]
    assert paths(files.glob("*.md", "/user", limit=1)) == ["/user/diary/a.md"]


def test_the_rules_of_the_memory_tools_hold(store, files):
    store.write_file("user/ada/system/rules.md", "read me", METADATA, None, source="t")
    store.write_file("org/press/house/x.md", "read me", METADATA, None, source="t")
    assert files.read("/user/system/rules.md").text == "read me"
    for path in ("/user/system/rules.md", "/org/house/x.md"):
        for call in (
            lambda path=path: files.write(path, "x"),
            lambda path=path: files.edit(path, "read", "x"),
            lambda path=path: files.delete(path),
        ):
            with pytest.raises(RestrictedScopeError) as refused:
                call()
            assert refused.value.path == path
            assert "press" not in str(refused.value)
    for path in (
        "/team/notes/a.md",
        "/user/a.md",
        "/user/System/a.md",
        "/user/notes/a.txt",
        "/a.md",
    ):
        with pytest.raises(InvalidArgumentError):
            files.write(path, "x")
        with pytest.raises(NotFoundError):
            files.read(path)


def test_a_change_keeps_description_and_aliases(store, files):
    store.write_file("user/ada/notes/a.md", "one", METADATA, None, source="t")
    files.write("/user/notes/a.md", "two")
    files.edit("/user/notes/a.md", "two", "three")
    kept = store.read_file("user/ada/notes/a.md").metadata
    assert (kept.description, kept.aliases) == ("kept", ("alias",))
    assert kept.sources == {"t", "files"}


def test_a_full_entity_is_a_tool_error(files):
    for number in range(4):
        files.write(f"/user/notes/{number}.md", "x")
    with pytest.raises(LimitExceededError) as refused:
        files.write("/user/notes/4.md", "x")
    assert (refused.value.limit, refused.value.maximum) == ("maxFileCount", 4)


def test_the_last_eight_receipts_stand_in_the_file_and_outlive_other_changes(storage, store, files):
    path, key = "/user/notes/a.md", "user/ada/notes/a.md"
    files.write(path, "0", effect_key="0")
    for number in range(1, 9):
        files.edit(path, str(number - 1), str(number), effect_key=str(number))
    current = store.read_file(key)
    store.replace_fact(key, "8", "other", current.version, source="t")
    assert len(storage.get(key).metadata[RECEIPTS_KEY]) < 1200
    assert len(store.file_state(key).receipts) == 8
    assert files.edit(path, "0", "1", effect_key="1").replayed
    assert store.read_file(key).content == "other"
    # The first has gone: that call is decided anew.
    assert not files.write(path, "0", effect_key="0").replayed


def test_a_recorded_refusal_leaves_the_text_as_it_is(store, files):
    path, key = "/user/notes/a.md", "user/ada/notes/a.md"
    files.write(path, "one\r\n")
    for _ in range(2):
        with pytest.raises(EditMatchError):
            files.edit(path, "two", "x", effect_key="key")
        assert store.read_file(key).content == "one\r\n"
        files.edit(path, "one", "one two") if "two" not in store.read_file(key).content else None
        store.write_file(key, "one\r\n", METADATA, store.read_file(key).version, source="t")


def test_receipts_give_way_to_a_long_description(store, files):
    path, key = "/user/notes/a.md", "user/ada/notes/a.md"
    files.write(path, "x", effect_key="key")
    long = FileMetadata("d" * 4880, (), frozenset(), EPOCH)
    store.write_file(key, "y", long, store.read_file(key).version, source="t")
    assert store.file_state(key).receipts == ()
    assert store.read_file(key).metadata.description == "d" * 4880


def test_the_version_that_a_recorded_conflict_tells_is_the_one_to_go_on_from(store, files):
    """The record is a write and makes a version; told the one before it, no caller ever got through."""
    path = "/user/notes/a.md"
    first = files.write(path, "one").version
    files.write(path, "two")
    with pytest.raises(VersionConflictError) as refused:
        files.write(path, "mine", version=first, effect_key="call-1")
    assert refused.value.content == "two"
    assert refused.value.version == files.read(path).version
    files.write(path, "merged", version=refused.value.version, effect_key="call-2")
    assert store.read_file("user/ada/notes/a.md").content == "merged"


@pytest.mark.parametrize("spoil", ["damaged", "too large"])
def test_a_refusal_that_cannot_be_recorded_is_the_same_refusal(storage, store, files, spoil):
    path, key = "/user/notes/a.md", "user/ada/notes/a.md"
    files.write(path, "one")
    data = b"\xff" if spoil == "damaged" else b"x" * (store.max_file_bytes + 1)
    storage.put(key, data, storage.get(key).metadata)
    for _ in range(2):
        with pytest.raises(AlreadyExistsError):
            files.write(path, "x", create_only=True, effect_key="call-1")
        with pytest.raises(VersionConflictError) as refused:
            files.write(path, "x", version="other", effect_key="call-2")
        assert refused.value.version == storage.get(key).version
    assert storage.get(key).data == data
