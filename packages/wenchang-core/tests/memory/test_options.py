"""The core store's options, and the cap on files."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from wenchang.core import (
    DEFAULT_READ_CACHE,
    PURGE_MAX_PASSES,
    REPLACE_FACT_ATTEMPTS,
    MemoryStore,
)
from wenchang.errors import (
    BackendUnavailableError,
    FileQuotaExceededError,
    InvalidArgumentError,
    NotFoundError,
    OversizeWriteError,
    ReplaceFactMatchError,
    VersionConflictError,
)
from wenchang.index_cache import IndexCache, InMemoryIndexCache
from wenchang.metadata import FileMetadata
from wenchang.storage import (
    InvalidStorageKeyError,
    InvalidStorageMetadataError,
    MetadataTooLargeError,
    StorageRejectedError,
)
from wenchang.storage.memory import InMemoryStorage

MakeStore = Callable[..., MemoryStore]
Meta = Callable[..., FileMetadata]
Create = Callable[..., Any]

TEA = "user/u-1/prefs/tea.md"
LINE = "- [stated] Likes tea."

SIZES = ["max_file_bytes", "list_page_size", "index_max_bytes", "max_files_per_entity"]


class TestOptions:
    def test_mem_086_the_signature_and_its_defaults(self) -> None:
        parameters = inspect.signature(MemoryStore).parameters
        given = {name: p.default for name, p in parameters.items() if name != "clock"}
        assert given == {
            "storage": inspect.Parameter.empty,
            "max_file_bytes": 16384,
            "list_page_size": 100,
            "index_max_bytes": 65536,
            "scope_priority": (),
            "max_files_per_entity": 500,
            "index_cache": None,
            "read_cache": DEFAULT_READ_CACHE,
        }
        assert all(p.kind is p.KEYWORD_ONLY for name, p in parameters.items() if name != "storage")

    def test_mem_034_the_defaults_in_use(self, storage: Any) -> None:
        store = MemoryStore(storage)
        assert store.max_file_bytes == 16384
        assert store.index_max_bytes == 65536
        assert store.list_page_size == 100
        assert store.max_files_per_entity == 500
        assert REPLACE_FACT_ATTEMPTS == 3
        assert PURGE_MAX_PASSES == 5

    def test_mem_086_budget_and_priority_can_be_read_and_not_set(self, storage: Any) -> None:
        store: Any = MemoryStore(storage, index_max_bytes=7, scope_priority=["user", "team"])
        assert (store.index_max_bytes, store.scope_priority) == (7, ("user", "team"))
        for name in ("index_max_bytes", "scope_priority"):
            with pytest.raises(AttributeError):
                setattr(store, name, 1)

    def test_mem_086_a_fixed_clock_shows_in_results(self, storage: Any, meta: Meta) -> None:
        moment = datetime(2026, 1, 1, tzinfo=UTC)
        store = MemoryStore(storage, clock=lambda: moment)
        file = store.write_file(TEA, "", meta(), None, source="t")
        assert file.metadata.last_updated == moment

    def test_mem_086_the_default_clock_is_aware(self, storage: Any, meta: Meta) -> None:
        before = datetime.now(UTC)
        file = MemoryStore(storage).write_file(TEA, "", meta(), None, source="t")
        assert before <= file.metadata.last_updated <= datetime.now(UTC)

    def test_constructing_makes_no_request(self, storage: Any) -> None:
        MemoryStore(storage)
        assert storage.taken() == []

    @pytest.mark.parametrize("name", SIZES)
    @pytest.mark.parametrize(
        ("value", "error"),
        [(0, ValueError), (-1, ValueError), (True, TypeError), (1.5, TypeError), ("1", TypeError)],
    )
    def test_mem_035_a_size_is_a_positive_int(
        self, storage: Any, name: str, value: object, error: type[Exception]
    ) -> None:
        options: Any = {name: value}
        with pytest.raises(error, match=name):
            MemoryStore(storage, **options)

    @pytest.mark.parametrize("name", SIZES[:3])
    def test_mem_035_only_the_cap_may_be_none(self, storage: Any, name: str) -> None:
        options: Any = {name: None}
        with pytest.raises(TypeError, match=name):
            MemoryStore(storage, **options)
        assert MemoryStore(storage, max_files_per_entity=None).max_files_per_entity is None

    @pytest.mark.parametrize(
        ("priority", "error"),
        [
            (("user", "user"), ValueError),
            (("a/b",), ValueError),
            (("",), ValueError),
            ("user", TypeError),
            (b"user", TypeError),
            ({"user"}, TypeError),
            (None, TypeError),
            ((1,), TypeError),
        ],
        ids=range(8),
    )
    def test_mem_035_scope_priority_names_distinct_segments(
        self, storage: Any, priority: Any, error: type[Exception]
    ) -> None:
        with pytest.raises(error, match="scope_priority"):
            MemoryStore(storage, scope_priority=priority)

    @pytest.mark.parametrize("name", ["clock", "index_cache", "read_cache"])
    def test_other_options_of_another_type_are_type_errors(self, storage: Any, name: str) -> None:
        options: Any = {name: "no"}
        with pytest.raises(TypeError, match=name):
            MemoryStore(storage, **options)

    def test_the_two_functions_of_a_cache_are_not_a_cache(self, storage: Any) -> None:
        memory: Any = InMemoryIndexCache()
        with pytest.raises(TypeError, match="IndexCache"):
            MemoryStore(storage, index_cache=memory)
        MemoryStore(storage, index_cache=IndexCache(memory.get, memory.set))

    @pytest.mark.parametrize("storage", [None, {}, InMemoryStorage])
    def test_what_is_no_storage_is_a_type_error(self, storage: Any) -> None:
        with pytest.raises(TypeError, match="storage"):
            MemoryStore(storage)


class TestQuota:
    def test_mem_036_one_below_the_cap_a_create_works_and_at_the_cap_it_does_not(
        self, make_store: MakeStore, storage: Any, meta: Meta
    ) -> None:
        store = make_store(max_files_per_entity=3)
        for number in range(3):
            store.write_file(f"user/u-1/a/{number}.md", "", meta(), None, source="t")
        with pytest.raises(FileQuotaExceededError) as caught:
            store.write_file(TEA, "", meta(), None, source="t")
        assert caught.value.limit == 3
        assert storage.inner.get(TEA) is None

    def test_mem_036_every_other_change_works_at_the_cap(
        self, make_store: MakeStore, meta: Meta
    ) -> None:
        store = make_store(max_files_per_entity=1)
        file = store.write_file(TEA, "X", meta(), None, source="t")
        file = store.write_file(TEA, "X\n", meta(), file.version, source="t")
        file = store.append_line(TEA, LINE, file.version, source="t")
        file = store.replace_fact(TEA, "X", "Y", file.version, source="t")
        store.delete_file(TEA, file.version)
        store.write_file(TEA, "", meta(), None, source="t")

    def test_mem_014_the_system_area_neither_counts_nor_is_capped(
        self, make_store: MakeStore, meta: Meta
    ) -> None:
        store = make_store(max_files_per_entity=1)
        for number in range(3):
            store.write_file(f"user/u-1/system/{number}.md", "", meta(), None, source="t")
        store.write_file(TEA, "", meta(), None, source="t")
        store.write_file("user/u-1/system/more.md", "", meta(), None, source="t")

    def test_keys_that_are_no_files_and_other_entities_do_not_count(
        self, make_store: MakeStore, storage: Any, meta: Meta
    ) -> None:
        for key in ("user/u-1/a", "user/u-1/a/b/c.md", "user/u-10/a/b.md", "team/u-1/a/b.md"):
            storage.inner.put(key, b"", {})
        make_store(max_files_per_entity=1).write_file(TEA, "", meta(), None, source="t")

    def test_unreadable_files_count(self, make_store: MakeStore, storage: Any, meta: Meta) -> None:
        storage.inner.put("user/u-1/a/b.md", b"\xff", {"aliases": "no"})
        with pytest.raises(FileQuotaExceededError):
            make_store(max_files_per_entity=1).write_file(TEA, "", meta(), None, source="t")

    @pytest.mark.parametrize("name", ["aaa", "zzz"])
    def test_an_existing_file_is_a_conflict_before_the_cap_wherever_it_is_listed(
        self, make_store: MakeStore, meta: Meta, name: str
    ) -> None:
        store = make_store(max_files_per_entity=2)
        paths = [f"user/u-1/a/{each}.md" for each in ("mmm", name)]
        for path in paths:
            store.write_file(path, "here", meta(), None, source="t")
        with pytest.raises(VersionConflictError) as caught:
            store.write_file(paths[1], "", meta(), None, source="t")
        assert caught.value.content == "here"

    def test_an_oversize_write_is_refused_before_the_cap(
        self, make_store: MakeStore, meta: Meta
    ) -> None:
        store = make_store(max_files_per_entity=1, max_file_bytes=1)
        store.write_file(TEA, "", meta(), None, source="t")
        with pytest.raises(OversizeWriteError):
            store.write_file("user/u-1/a/b.md", "xx", meta(), None, source="t")


class TestErrorsOfTheStorage:
    """What the storage raises reaches callers as an error that they can act on."""

    @pytest.fixture
    def failing(
        self, store: MemoryStore, storage: Any, create: Create
    ) -> Callable[[str, Exception], tuple[MemoryStore, Any]]:
        file = create(TEA, "X")

        def fail(method: str, error: Exception) -> tuple[MemoryStore, Any]:
            def raise_it() -> None:
                raise error

            storage.before[method] = raise_it
            return store, file

        return fail

    @pytest.mark.parametrize("method", ["get", "put_if_version", "delete_if_version"])
    def test_mem_071_a_key_that_the_storage_cannot_hold_names_the_name(
        self, failing: Any, method: str, meta: Meta
    ) -> None:
        store, file = failing(method, InvalidStorageKeyError("a segment is too long"))
        calls: dict[str, Callable[[], object]] = {
            "get": lambda: store.read_file(TEA),
            "put_if_version": lambda: store.write_file(TEA, "", meta(), file.version, source="t"),
            "delete_if_version": lambda: store.delete_file(TEA, file.version),
        }
        with pytest.raises(InvalidArgumentError) as caught:
            calls[method]()
        assert caught.value.argument == "name"

    def test_a_prefix_that_the_storage_cannot_hold_names_its_part(self, failing: Any) -> None:
        store, _ = failing("list_page", InvalidStorageKeyError("too long"))
        for prefix, argument in (("user/u-1/a/", "area"), ("user/u-1/", "scope")):
            with pytest.raises(InvalidArgumentError) as caught:
                store.list_prefix(prefix)
            assert caught.value.argument == argument

    def test_an_entity_that_the_storage_cannot_hold_has_an_empty_index(self, failing: Any) -> None:
        store, _ = failing("list_page", InvalidStorageKeyError("too long"))
        assert store.get_memory_index({"user": "u-1"}).entries == ()

    @pytest.mark.parametrize(
        ("error", "argument"),
        [
            (MetadataTooLargeError(6000, 5000), "aliases"),
            (InvalidStorageMetadataError("description"), "description"),
            (InvalidStorageMetadataError("aliases"), "aliases"),
        ],
    )
    def test_mem_071_metadata_that_the_storage_refuses_names_its_argument(
        self, failing: Any, error: Exception, argument: str
    ) -> None:
        store, file = failing("put_if_version", error)
        with pytest.raises(InvalidArgumentError) as caught:
            store.append_line(TEA, LINE, file.version, source="t")
        assert caught.value.argument == argument

    @pytest.mark.parametrize("outcome", ["unknown", "not_applied", None])
    @pytest.mark.parametrize("reason", ["timeout", "unavailable"])
    def test_mem_075_an_outage_passes_through_with_its_reason_and_outcome(
        self, failing: Any, meta: Meta, reason: Any, outcome: Any
    ) -> None:
        raised = BackendUnavailableError(reason, outcome=outcome)
        store, file = failing("put_if_version", raised)
        for call in (
            lambda: store.write_file(TEA, "", meta(), file.version, source="t"),
            lambda: store.append_line(TEA, LINE, file.version, source="t"),
            lambda: store.replace_fact(TEA, "X", "Y", file.version, source="t"),
        ):
            with pytest.raises(BackendUnavailableError) as caught:
                call()
            assert caught.value is raised

    def test_mem_079_repeating_a_guarded_call_after_an_unknown_outcome_never_doubles_it(
        self, store: MemoryStore, storage: Any, create: Create
    ) -> None:
        """The write landed and its answer was lost: the repeated call is a conflict that shows it."""
        file = create(TEA, "")

        def lose() -> None:
            storage.after.clear()
            raise BackendUnavailableError("timeout", outcome="unknown")

        storage.after["put_if_version"] = lose
        with pytest.raises(BackendUnavailableError):
            store.append_line(TEA, LINE, file.version, source="t")
        with pytest.raises(VersionConflictError) as caught:
            store.append_line(TEA, LINE, file.version, source="t")
        assert caught.value.content == f"{LINE}\n"

    def test_a_refusal_for_good_passes_through(self, failing: Any) -> None:
        raised = StorageRejectedError("permission", "the credentials may not read")
        store, _ = failing("get", raised)
        with pytest.raises(StorageRejectedError) as caught:
            store.read_file(TEA)
        assert caught.value is raised


class TestTaxonomy:
    """Which error the core raises when, with its fields. The rendering is the tools' affair."""

    def test_mem_067_a_conflict_carries_the_current_state(
        self, store: MemoryStore, rival: MemoryStore, create: Create
    ) -> None:
        file = create(TEA, "x", "alias")
        newer = rival.append_line(TEA, LINE, file.version, source="t")
        with pytest.raises(VersionConflictError) as caught:
            store.append_line(TEA, LINE, file.version, source="t")
        error = caught.value
        assert error.category == "recoverable"
        assert (error.content, error.version) == (newer.content, newer.version)
        assert (error.description, error.aliases) == ("About", ("alias",))
        assert error.path == TEA
        assert "u-1" not in str(error)

    def test_mem_068_an_oversize_write_carries_size_and_limit(
        self, make_store: MakeStore, meta: Meta
    ) -> None:
        with pytest.raises(OversizeWriteError) as caught:
            make_store(max_file_bytes=3).write_file(TEA, "éé", meta(), None, source="t")
        assert caught.value.category == "recoverable"
        assert (caught.value.size, caught.value.limit) == (4, 3)

    def test_mem_069_a_full_entity_carries_its_limit(
        self, make_store: MakeStore, create: Create, meta: Meta
    ) -> None:
        create("user/u-1/a/b.md")
        with pytest.raises(FileQuotaExceededError) as caught:
            make_store(max_files_per_entity=1).write_file(TEA, "", meta(), None, source="t")
        assert caught.value.category == "recoverable"
        assert caught.value.limit == 1

    @pytest.mark.parametrize(("content", "count"), [("abc", 0), ("XX", 2)])
    def test_mem_070_a_quote_that_does_not_match_once_carries_the_state_and_the_count(
        self, store: MemoryStore, create: Create, content: str, count: int
    ) -> None:
        file = create(TEA, content)
        with pytest.raises(ReplaceFactMatchError) as caught:
            store.replace_fact(TEA, "X", "Y", file.version, source="t")
        error = caught.value
        assert error.category == "recoverable"
        assert (error.content, error.version) == (content, file.version)
        assert error.match_count == count

    @pytest.mark.parametrize("reason", ["invalid_path", "file_absent"])
    def test_mem_072_not_found_says_which_of_the_two(self, store: MemoryStore, reason: str) -> None:
        path = TEA if reason == "file_absent" else "user/u-1/tea.md"
        with pytest.raises(NotFoundError) as caught:
            store.read_file(path)
        assert caught.value.category == "recoverable"
        assert caught.value.reason == reason
        assert "u-1" not in str(caught.value)
