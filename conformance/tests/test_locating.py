"""From a URL to hooks: what a backend gets that names no hooks of its own."""

from __future__ import annotations

import dataclasses

import pytest

from wenchang.storage import InvalidStorageKeyError, PreconditionFailedError
from wenchang.storage.locations import StorageLocation
from wenchang.storage.memory import InMemoryStorage
from wenchang.storage.registry import find_backend
from wenchang_conformance.locating import new_namespace, shown_location, url_hooks
from wenchang_conformance.prefixed import PrefixedStorage
from wenchang_conformance.processes import SpawnedStorage
from wenchang_conformance.suite import StorageConformance


class TestMemoryByItsUrlAlone(StorageConformance):
    """Handles under a prefix conform as the whole storage does."""

    profile = "quick"

    @pytest.fixture
    def hooks(self):
        location = StorageLocation.parse("memory://")
        with url_hooks(location, find_backend("memory"), new_namespace()) as hooks:
            yield hooks


def test_handles_of_one_url_share_a_namespace_and_leave_nothing_behind(tmp_path):
    location = StorageLocation.parse(f"file://{tmp_path}")
    outside = find_backend("file").open(location)
    outside.put("theirs", b"x", {})
    with url_hooks(location, find_backend("file"), new_namespace()) as hooks:
        first, second = hooks.open(), hooks.open()
        version = first.put("a/b", b"x", {})
        assert second.get("a/b").version == version
        there = SpawnedStorage(hooks.spawn)
        assert [entry.key for entry in there.list_page("", None, 5)] == ["a/b"]
        there.close()
        assert second.list_page("", None, 5)[0].key == "a/b"
    assert [entry.key for entry in outside.list_page("", None, 5)] == ["theirs"]


def test_a_store_that_is_not_shared_has_one_handle():
    location = StorageLocation.parse("memory://")
    with url_hooks(location, find_backend("memory"), new_namespace()) as hooks:
        hooks.open().put("a", b"x", {})
        assert hooks.open().get("a").data == b"x"
        assert hooks.spawn is None


def test_the_declarations_of_the_descriptor_are_taken_over():
    declared = dataclasses.replace(find_backend("memory"), unsupported={"fork": "no"}, hooks="")
    with url_hooks(StorageLocation.parse("memory://"), declared, new_namespace()) as hooks:
        assert hooks.local
        assert not hooks.durable
        assert dict(hooks.unsupported) == {"fork": "no"}


def test_a_namespace_is_new_each_time_and_short():
    names = {new_namespace() for _ in range(100)}
    assert len(names) == 100
    assert all(len(name) <= 24 for name in names)


def test_a_shown_location_has_no_password_and_no_options():
    location = StorageLocation.parse("postgresql://me:hunter2@host/db?password=hunter3")
    assert shown_location(location) == "postgresql://host/db"


class TestPrefixedStorage:
    @pytest.fixture
    def storage(self):
        return PrefixedStorage(InMemoryStorage(), "check-0")

    def test_it_shows_only_what_stands_under_its_prefix(self, storage):
        storage.inner.put("check-0", b"x", {})
        storage.inner.put("check-00/a", b"x", {})
        storage.put("a", b"x", {})
        assert [entry.key for entry in storage.list_page("", None, 10)] == ["a"]

    def test_the_empty_key_is_refused(self, storage):
        with pytest.raises(InvalidStorageKeyError):
            storage.put("", b"x", {})

    def test_the_budget_of_a_key_is_what_the_prefix_leaves(self, storage):
        storage.put("k" * storage.key_bytes, b"x", {})
        with pytest.raises(InvalidStorageKeyError):
            storage.put("k" * (storage.key_bytes + 1), b"x", {})
        storage.put("/".join(["s"] * storage.key_segments), b"x", {})
        with pytest.raises(InvalidStorageKeyError):
            storage.put("/".join(["s"] * (storage.key_segments + 1)), b"x", {})

    def test_a_conflict_names_the_key_without_the_prefix(self, storage):
        storage.put("a", b"x", {})
        with pytest.raises(PreconditionFailedError) as caught:
            storage.put_if_version("a", b"y", {}, None)
        assert caught.value.key == "a"
