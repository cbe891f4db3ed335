"""Erasing, exporting and restoring an entity."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from wenchang.core import (
    ExportedObject,
    ImportReport,
    MemoryStore,
    PurgeIncompleteError,
)
from wenchang.errors import BackendUnavailableError
from wenchang.metadata import FileMetadata
from wenchang.storage.memory import InMemoryStorage
from wenchang.transport import InProcessClient, TransportClient

MakeStore = Callable[..., MemoryStore]
Meta = Callable[..., FileMetadata]

OWN = [
    "user/acme/prefs/tea.md",
    "user/acme/system/rules.md",
    "user/acme/not-a-file",
    "user/acme/a/b/c/d.md",
    "user/acme/a/unreadable.md",
]
OTHERS = [
    "user/acme-corp/prefs/tea.md",
    "user/acme0/prefs/tea.md",
    "user/acm/prefs/tea.md",
    "team/acme/prefs/tea.md",
    "user/acme",
]


@pytest.fixture
def filled(storage: Any) -> Any:
    for key in OWN + OTHERS:
        storage.inner.put(key, b"\xff" + key.encode(), {"aliases": "no", "receipts": "r"})
    return storage


def keys(storage: Any) -> list[str]:
    return [found.key for found in storage.inner.list_page("", None, 1000)]


class TestPurge:
    def test_mem_092_every_object_of_the_entity_goes_and_no_neighbour(
        self, store: MemoryStore, filled: Any
    ) -> None:
        assert store.purge("user", "acme") == len(OWN)
        assert keys(filled) == sorted(OTHERS)
        assert store.purge("user", "acme") == 0

    def test_mem_092_more_objects_than_a_page_are_deleted(
        self, store: MemoryStore, storage: Any
    ) -> None:
        for number in range(1203):
            storage.inner.put(f"user/acme/a/{number}.md", b"", {})
        assert store.purge("user", "acme", max_passes=1) == 1203
        assert keys(storage) == []

    def test_mem_092_what_is_rewritten_meanwhile_goes_in_the_next_pass(
        self, store: MemoryStore, filled: Any
    ) -> None:
        """Fails where a refused delete counts as done, or where no second pass is made."""

        def rewrite() -> None:
            filled.before.clear()
            filled.inner.put(OWN[0], b"new", {})

        filled.before["delete_if_version"] = rewrite
        assert store.purge("user", "acme") == len(OWN)
        assert keys(filled) == sorted(OTHERS)

    def test_mem_092_what_another_deletes_is_not_counted(
        self, store: MemoryStore, filled: Any
    ) -> None:
        def delete() -> None:
            filled.before.clear()
            for key in OWN[:2]:
                filled.inner.delete_if_version(key, filled.inner.get(key).version)

        filled.before["delete_if_version"] = delete
        assert store.purge("user", "acme") == len(OWN) - 2

    @pytest.mark.parametrize("passes", [1, 2, 5])
    def test_mem_092_objects_that_keep_coming_make_it_incomplete(
        self, store: MemoryStore, storage: Any, passes: int
    ) -> None:
        def write() -> None:
            storage.inner.put(f"user/acme/a/{len(storage.calls)}.md", b"", {})

        storage.inner.put("user/acme/a/0.md", b"", {})
        storage.after["delete_if_version"] = write
        options = {} if passes == 5 else {"max_passes": passes}
        with pytest.raises(PurgeIncompleteError) as caught:
            store.purge("user", "acme", **options)
        assert (caught.value.deleted, caught.value.remaining) == (passes, 1)
        assert "acme" not in str(caught.value)
        copied = pickle.loads(pickle.dumps(caught.value))
        assert (copied.deleted, copied.remaining) == (passes, 1)

    def test_purge_uses_the_cheaper_listing(self, store: MemoryStore, filled: Any) -> None:
        store.purge("user", "acme")
        assert "list_page" not in filled.taken()

    def test_purge_forgets_what_the_store_knows_of_the_entity(
        self, store: MemoryStore, storage: Any, meta: Meta
    ) -> None:
        file = store.write_file(OWN[0], "private", meta(), None, source="t")
        storage.inner.delete_if_version(file.path, file.version)
        store.purge("user", "acme")
        assert store._objects.known(file.path, file.version) is None

    def test_an_outage_passes_through(self, store: MemoryStore, filled: Any) -> None:
        def fail() -> None:
            raise BackendUnavailableError("timeout")

        filled.before["delete_if_version"] = fail
        with pytest.raises(BackendUnavailableError):
            store.purge("user", "acme")

    @pytest.mark.parametrize(
        ("arguments", "error"),
        [
            (("", "acme", 5), ValueError),
            (("user", "", 5), ValueError),
            (("user", "a/b", 5), ValueError),
            (("user", None, 5), TypeError),
            (("user", "acme", 0), ValueError),
            (("user", "acme", True), TypeError),
        ],
        ids=range(6),
    )
    def test_mem_092_wrong_arguments_delete_nothing(
        self, store: MemoryStore, filled: Any, arguments: tuple[Any, Any, Any], error: Any
    ) -> None:
        scope, entity_id, passes = arguments
        if entity_id is None:
            # None would mean the whole scope in a prefix, and must not mean it here.
            with pytest.raises((TypeError, ValueError)):
                store.purge(scope, entity_id, max_passes=passes)
        else:
            with pytest.raises(error):
                store.purge(scope, entity_id, max_passes=passes)
        assert keys(filled) == sorted(OWN + OTHERS)


class TestExport:
    def test_mem_093_every_object_is_exported_raw_in_key_order(
        self, store: MemoryStore, filled: Any
    ) -> None:
        exported = store.export("user", "acme")
        assert isinstance(exported, tuple)
        assert [item.key for item in exported] == sorted(OWN)
        for item in exported:
            stored = filled.inner.get(item.key)
            assert (item.data, dict(item.metadata), item.version) == (
                stored.data,
                dict(stored.metadata),
                stored.version,
            )

    def test_the_iterator_gives_the_same_and_reads_one_body_at_a_time(
        self, store: MemoryStore, filled: Any
    ) -> None:
        iterator = store.export_iter("user", "acme")
        assert filled.taken() == []
        first = next(iterator)
        assert filled.taken() == ["list_versions", "get"]
        assert (first, *iterator) == store.export("user", "acme")

    def test_what_is_deleted_meanwhile_is_left_out(self, store: MemoryStore, filled: Any) -> None:
        iterator = store.export_iter("user", "acme")
        first = next(iterator)
        gone = sorted(OWN)[1]
        filled.inner.delete_if_version(gone, filled.inner.get(gone).version)
        assert [first.key, *(item.key for item in iterator)] == sorted(set(OWN) - {gone})

    def test_wrong_arguments_are_refused_before_the_iterator_runs(self, store: MemoryStore) -> None:
        any_store: Any = store
        for entity_id in ("", "a/b", None):
            with pytest.raises((TypeError, ValueError)):
                any_store.export_iter("user", entity_id)
            with pytest.raises((TypeError, ValueError)):
                any_store.export("user", entity_id)


class TestImport:
    def test_an_export_restores_an_entity_in_another_storage(
        self, store: MemoryStore, filled: Any
    ) -> None:
        exported = store.export("user", "acme")
        target = MemoryStore(InMemoryStorage())
        assert target.import_(iter(exported)) == ImportReport(created=len(OWN))
        restored = target.export("user", "acme")
        assert [(i.key, i.data, dict(i.metadata)) for i in restored] == [
            (i.key, i.data, dict(i.metadata)) for i in exported
        ]

    def test_importing_again_continues_and_changes_nothing(
        self, store: MemoryStore, filled: Any
    ) -> None:
        exported = store.export("user", "acme")
        target = MemoryStore(InMemoryStorage())
        target.import_(exported[:2])
        assert target.import_(exported) == ImportReport(created=3, unchanged=2)
        assert target.import_(exported, overwrite=True) == ImportReport(unchanged=5)

    def test_what_is_there_is_kept_unless_it_is_to_be_overwritten(
        self, store: MemoryStore, filled: Any
    ) -> None:
        exported = store.export("user", "acme")
        filled.inner.put(OWN[0], b"newer", {})
        assert store.import_(exported) == ImportReport(unchanged=4, kept=(OWN[0],))
        assert filled.inner.get(OWN[0]).data == b"newer"
        assert store.import_(exported, overwrite=True) == ImportReport(unchanged=4, replaced=1)
        assert filled.inner.get(OWN[0]).data == b"\xff" + OWN[0].encode()

    def test_overwriting_follows_a_rival_and_never_overruns_it_unseen(
        self, store: MemoryStore, filled: Any
    ) -> None:
        exported = [item for item in store.export("user", "acme") if item.key == OWN[0]]
        filled.inner.put(OWN[0], b"1", {})
        left = [b"2", b"3"]

        def write() -> None:
            if left:
                filled.inner.put(OWN[0], left.pop(0), {})

        filled.before["put_if_version"] = write
        assert store.import_(exported, overwrite=True) == ImportReport(replaced=1)
        assert filled.inner.get(OWN[0]).data == b"\xff" + OWN[0].encode()

    def test_a_mark_of_the_storage_is_not_written_back(self, store: MemoryStore) -> None:
        item = ExportedObject("user/acme/a/b.md", b"x", {"wenchang-unreadable": "why"}, "v")
        assert store.import_([item]) == ImportReport(created=1)
        assert dict(store.export("user", "acme")[0].metadata) == {}

    @pytest.mark.parametrize("key", ["", "user", "user/acme", "user//x", "/a/b", "../a/b"])
    def test_a_key_outside_of_any_entity_is_refused(
        self, store: MemoryStore, storage: Any, key: str
    ) -> None:
        with pytest.raises(ValueError):
            store.import_([ExportedObject(key, b"", {}, "v")])
        assert keys(storage) == []


def test_mem_095_no_operators_method_is_on_the_transport() -> None:
    for method in ("purge", "export", "export_iter", "import_", "invalidate_index"):
        assert callable(getattr(MemoryStore, method))
        assert not hasattr(TransportClient, method)
        assert not hasattr(InProcessClient, method)
