"""How many requests each operation costs, counted at the storage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from wenchang.core import MemoryStore
from wenchang.errors import (
    FileQuotaExceededError,
    OversizeWriteError,
    ReplaceFactMatchError,
    VersionConflictError,
)
from wenchang.metadata import FileMetadata
from wenchang.read_cache import ReadCache
from wenchang.storage import StoredObject

MakeStore = Callable[..., MemoryStore]
Meta = Callable[..., FileMetadata]

TEA = "user/u-1/prefs/tea.md"
LINE = "- [stated] Likes tea."


def changes(store: MemoryStore, meta: Meta) -> dict[str, Callable[[str], Any]]:
    """The three operations that change a file at a version, each of which keeps the text X."""
    return {
        "write_file": lambda version: store.write_file(TEA, "X", meta(), version, source="t"),
        "append_line": lambda version: store.append_line(TEA, LINE, version, source="t"),
        "replace_fact": lambda version: store.replace_fact(TEA, "X", "X", version, source="t"),
    }


OPERATIONS = ["write_file", "append_line", "replace_fact"]


def test_a_read_costs_one_get_also_of_what_is_known(
    store: MemoryStore, storage: Any, create: Callable[..., Any]
) -> None:
    create()
    for _ in range(2):
        storage.taken()
        store.read_file(TEA)
        assert storage.taken() == ["get"]


@pytest.mark.parametrize(("files", "pages"), [(0, 1), (999, 1), (1500, 2), (2999, 3)])
def test_a_create_costs_one_listing_for_each_thousand_objects_and_one_write(
    make_store: MakeStore, storage: Any, meta: Meta, files: int, pages: int
) -> None:
    for number in range(files):
        storage.inner.put(f"user/u-1/a/{number:05}.md", b"", {})
    store = make_store(max_files_per_entity=5000)
    store.write_file(TEA, "", meta(), None, source="t")
    assert storage.taken() == ["list_versions"] * pages + ["put_if_version"]


def test_a_create_uses_the_full_listing_where_there_is_no_cheaper_one(
    storage: Any, meta: Meta
) -> None:
    class Plain:
        def __getattr__(self, name: str) -> Any:
            if name == "list_versions":
                raise AttributeError(name)
            return getattr(storage, name)

    MemoryStore(Plain()).write_file(TEA, "", meta(), None, source="t")
    assert storage.taken() == ["list_page", "put_if_version"]


@pytest.mark.parametrize("path", [TEA, "user/u-1/system/rules.md"])
def test_a_create_without_cap_or_in_the_system_area_costs_one_write(
    make_store: MakeStore, storage: Any, meta: Meta, path: str
) -> None:
    cap = None if path == TEA else 500
    make_store(max_files_per_entity=cap).write_file(path, "", meta(), None, source="t")
    assert storage.taken() == ["put_if_version"]


def test_counting_stops_at_the_cap(make_store: MakeStore, storage: Any, meta: Meta) -> None:
    for number in range(2500):
        storage.inner.put(f"user/u-1/a/{number:05}.md", b"", {})
    with pytest.raises(FileQuotaExceededError):
        make_store().write_file(TEA, "", meta(), None, source="t")
    assert storage.taken() == ["list_versions", "get"]


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("knows_by", ["read_file", "own write", "conflict"])
def test_a_change_at_the_version_just_seen_costs_one_write(
    store: MemoryStore,
    rival: MemoryStore,
    storage: Any,
    create: Callable[..., Any],
    meta: Meta,
    operation: str,
    knows_by: str,
) -> None:
    version = create(TEA, "X").version
    if knows_by != "own write":
        version = rival.write_file(TEA, "X", meta(), version, source="t").version
    if knows_by == "read_file":
        version = store.read_file(TEA).version
    if knows_by == "conflict":
        with pytest.raises(VersionConflictError) as caught:
            store.write_file(TEA, "X", meta(), None, source="t")
        version = caught.value.version
    for _ in range(3):
        storage.taken()
        version = changes(store, meta)[operation](version).version
        assert storage.taken() == ["put_if_version"]


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("cache", [None, "cold"])
def test_a_change_of_what_is_not_known_costs_a_get_before_the_write(
    make_store: MakeStore,
    storage: Any,
    create: Callable[..., Any],
    meta: Meta,
    operation: str,
    cache: str | None,
) -> None:
    version = create(TEA, "X").version
    options = {} if cache else {"read_cache": None}
    store = make_store(**options)
    storage.taken()
    version = changes(store, meta)[operation](version).version
    assert storage.taken() == ["get", "put_if_version"]
    changes(store, meta)[operation](version)
    assert storage.taken() == (["put_if_version"] if cache else ["get", "put_if_version"])


@pytest.mark.parametrize("operation", ["write_file", "append_line"])
@pytest.mark.parametrize("settles", [False, True])
def test_a_conflict_costs_one_get_more_or_none_where_the_storage_has_read_the_object(
    store: MemoryStore,
    rival: MemoryStore,
    storage: Any,
    create: Callable[..., Any],
    meta: Meta,
    operation: str,
    *,
    settles: bool,
) -> None:
    version = create(TEA, "X").version
    rival.append_line(TEA, LINE, version, source="t")
    storage.settles = settles
    storage.taken()
    with pytest.raises(VersionConflictError):
        changes(store, meta)[operation](version)
    assert storage.taken() == ["put_if_version"] + ([] if settles else ["get"])


@pytest.mark.parametrize("operation", ["write_file", "append_line"])
def test_a_conflict_of_what_is_not_known_costs_one_get(
    make_store: MakeStore,
    rival: MemoryStore,
    storage: Any,
    create: Callable[..., Any],
    meta: Meta,
    operation: str,
) -> None:
    version = create(TEA, "X").version
    rival.append_line(TEA, LINE, version, source="t")
    storage.taken()
    with pytest.raises(VersionConflictError):
        changes(make_store(), meta)[operation](version)
    assert storage.taken() == ["get"]


@pytest.mark.parametrize("settles", [False, True])
def test_a_create_over_a_file_costs_one_get_more(
    store: MemoryStore, storage: Any, create: Callable[..., Any], meta: Meta, *, settles: bool
) -> None:
    create()
    storage.settles = settles
    storage.taken()
    with pytest.raises(VersionConflictError):
        store.write_file(TEA, "", meta(), None, source="t")
    assert storage.taken() == ["list_versions", "put_if_version"] + ([] if settles else ["get"])


@pytest.mark.parametrize("settles", [False, True])
def test_an_overtaken_replace_fact_costs_a_get_and_a_write_more(
    store: MemoryStore,
    rival: MemoryStore,
    storage: Any,
    create: Callable[..., Any],
    *,
    settles: bool,
) -> None:
    version = create(TEA, "X").version
    rival.append_line(TEA, LINE, version, source="t")
    storage.settles = settles
    storage.taken()
    store.replace_fact(TEA, "X", "Y", version, source="t")
    expected = ["put_if_version", "put_if_version"]
    assert storage.taken() == (expected if settles else [expected[0], "get", expected[1]])


def test_a_delete_costs_one_conditional_delete(
    store: MemoryStore, rival: MemoryStore, storage: Any, create: Callable[..., Any]
) -> None:
    file = create()
    storage.taken()
    rival.delete_file(TEA, file.version)
    assert storage.taken() == ["delete_if_version"]


@pytest.mark.parametrize(("files", "pages"), [(0, 1), (999, 1), (1001, 2)])
def test_the_index_costs_one_page_for_each_thousand_files_and_scope(
    store: MemoryStore, storage: Any, files: int, pages: int
) -> None:
    for number in range(files):
        storage.inner.put(f"user/u-1/a/{number:05}.md", b"", {})
    store.get_memory_index({"user": "u-1", "team": "t-1"})
    assert storage.taken() == ["list_page"] * (pages + 1)


def test_a_page_of_a_listing_costs_one_page(store: MemoryStore, storage: Any) -> None:
    for number in range(250):
        storage.inner.put(f"user/u-1/a/{number:05}.md", b"", {})
    page = store.list_prefix("user/u-1/")
    assert storage.taken() == ["list_page"]
    store.list_prefix("user/u-1/", page.next_cursor)
    assert storage.taken() == ["list_page"]


def test_what_is_refused_for_its_arguments_costs_nothing(
    make_store: MakeStore, storage: Any, meta: Meta
) -> None:
    with pytest.raises(OversizeWriteError):
        make_store(max_file_bytes=1).write_file(TEA, "xx", meta(), None, source="t")
    assert storage.taken() == []


def test_a_complaint_about_what_is_only_known_is_checked_by_a_read(
    store: MemoryStore, storage: Any, create: Callable[..., Any]
) -> None:
    version = create(TEA, "X").version
    storage.taken()
    with pytest.raises(ReplaceFactMatchError):
        store.replace_fact(TEA, "Q", "", version, source="t")
    assert storage.taken() == ["get"]


# --- the read cache itself -----------------------------------------------------------------------


def stored(data: bytes, version: str = "v") -> StoredObject:
    return StoredObject(data, {}, version)


def test_an_object_is_known_only_at_its_version() -> None:
    cache = ReadCache()
    cache.put("k", stored(b"1", "v1"))
    cache.put("k", stored(b"2", "v2"))
    assert cache.get("k", "v1") == stored(b"1", "v1")
    assert cache.get("k", "v2") == stored(b"2", "v2")
    assert cache.get("k", "v3") is None
    assert cache.get("other", "v1") is None


def test_what_was_used_least_recently_is_dropped_first() -> None:
    cache = ReadCache(max_entries=2)
    cache.put("a", stored(b""))
    cache.put("b", stored(b""))
    assert cache.get("a", "v")
    cache.put("c", stored(b""))
    assert [cache.get(key, "v") is not None for key in "abc"] == [True, False, True]
    assert len(cache) == 2


def test_bytes_are_bounded_and_counted_exactly() -> None:
    cache = ReadCache(max_bytes=100)
    for _ in range(3):
        cache.put("a", StoredObject(b"x" * 39, {"k": "1234567", "é": "x"}, "v"))
    assert cache.size == 1 + 39 + 1 + 7 + 2 + 1
    cache.put("b", stored(b"x" * 48))
    assert (len(cache), cache.size) == (2, 100)
    cache.put("c", stored(b""))
    assert (len(cache), cache.size) == (2, 50)
    cache.put("d", stored(b"x" * 100))
    assert (len(cache), cache.size) == (2, 50)
    cache.put("e", stored(b"x" * 99))
    assert (len(cache), cache.size) == (1, 100)
    cache.drop("")
    assert (len(cache), cache.size) == (0, 0)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"max_entries": 0}, ValueError),
        ({"max_bytes": -1}, ValueError),
        ({"max_entries": True}, TypeError),
        ({"max_bytes": 1.5}, TypeError),
    ],
)
def test_wrong_bounds_are_refused(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        ReadCache(**options)


def test_two_stores_never_share_a_read_cache_by_default(
    make_store: MakeStore, storage: Any, create: Callable[..., Any], meta: Meta
) -> None:
    file = create(TEA, "X")
    first, second = make_store(), make_store()
    first.read_file(TEA)
    storage.taken()
    second.write_file(TEA, "", meta(), file.version, source="t")
    assert storage.taken() == ["get", "put_if_version"]
