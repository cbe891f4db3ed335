"""The index cache: what it saves, what invalidates it, and that it can do no harm."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from wenchang.core import MemoryStore
from wenchang.errors import BackendUnavailableError, VersionConflictError
from wenchang.index_cache import IndexCache, InMemoryIndexCache
from wenchang.metadata import FileMetadata

MakeStore = Callable[..., MemoryStore]
Meta = Callable[..., FileMetadata]

MAP = {"user": "ent-4711"}
TEA = "user/ent-4711/prefs/tea.md"
LINE = "- [stated] Likes tea."


class RecordingCache:
    """A cache of the plainest kind, which a test can look into and make fail."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.ttls: list[float | None] = []
        self.before_set: Callable[[str], None] = lambda _key: None

    def get(self, key: str) -> str | None:
        return self.values.get(key)

    def set(self, key: str, value: str, ttl: float | None) -> None:
        self.before_set(key)
        self.values[key] = value
        self.ttls.append(ttl)

    @property
    def listing_key(self) -> str:
        (key,) = (key for key in self.values if not key.endswith(":nonce"))
        return key


@pytest.fixture
def cache() -> RecordingCache:
    return RecordingCache()


@pytest.fixture
def cached(make_store: MakeStore, cache: RecordingCache) -> MemoryStore:
    return make_store(index_cache=IndexCache(cache.get, cache.set))


@pytest.fixture
def other(make_store: MakeStore, cache: RecordingCache) -> MemoryStore:
    """Another process that shares storage and cache."""
    return make_store(index_cache=IndexCache(cache.get, cache.set))


def listings(storage: Any) -> int:
    """Count the listing requests since the last time."""
    return storage.taken().count("list_page")


def test_mem_096_a_second_index_asks_the_cache_and_not_the_storage(
    cached: MemoryStore, other: MemoryStore, storage: Any, meta: Meta
) -> None:
    cached.write_file(TEA, "x", meta("é", "a"), None, source="t")
    storage.inner.put("user/ent-4711/prefs/bad.md", b"", {"aliases": "no"})
    storage.inner.put("user/ent-4711/no-file", b"", {})
    first = cached.get_memory_index(MAP)
    assert listings(storage) == 1
    assert cached.get_memory_index(MAP) == other.get_memory_index(MAP) == first
    assert storage.taken() == []
    assert len(first.entries) == 2


@pytest.mark.parametrize("who", ["cached", "other"])
@pytest.mark.parametrize("operation", ["write", "append", "replace", "delete", "purge", "import"])
def test_every_change_through_a_store_is_in_the_next_index(
    request: pytest.FixtureRequest,
    cached: MemoryStore,
    storage: Any,
    meta: Meta,
    who: str,
    operation: str,
) -> None:
    writer: MemoryStore = request.getfixturevalue(who)
    file = cached.write_file(TEA, "x\n", meta(), None, source="t")
    exported = cached.export("user", "ent-4711")
    cached.get_memory_index(MAP)
    changes: dict[str, Callable[[], object]] = {
        "write": lambda: writer.write_file(TEA, "", meta(), file.version, source="t"),
        "append": lambda: writer.append_line(TEA, LINE, file.version, source="t"),
        "replace": lambda: writer.replace_fact(TEA, "x", "y", file.version, source="t"),
        "delete": lambda: writer.delete_file(TEA, file.version),
        "purge": lambda: writer.purge("user", "ent-4711"),
        "import": lambda: writer.import_(exported, overwrite=True),
    }
    changes[operation]()
    storage.taken()
    cached.get_memory_index(MAP)
    assert listings(storage) == 1


def test_a_change_leaves_the_listings_of_other_entities_alone(
    cached: MemoryStore, storage: Any, meta: Meta
) -> None:
    cached.get_memory_index({"user": "a", "team": "b"})
    cached.write_file("user/a/x/y.md", "", meta(), None, source="t")
    storage.taken()
    cached.get_memory_index({"user": "a", "team": "b"})
    assert listings(storage) == 1


def test_mem_094_invalidating_makes_the_next_index_list_storage(
    cached: MemoryStore, other: MemoryStore, storage: Any
) -> None:
    cached.get_memory_index(MAP)
    storage.inner.put(TEA, b"by hand", {})
    assert cached.get_memory_index(MAP).entries == ()
    other.invalidate_index("user", "ent-4711")
    assert len(cached.get_memory_index(MAP).entries) == 1


def test_mem_094_without_a_cache_invalidating_does_nothing(
    store: MemoryStore, storage: Any
) -> None:
    store.invalidate_index("user", "ent-4711")
    assert storage.taken() == []
    with pytest.raises(ValueError):
        store.invalidate_index("user", "a/b")


def test_a_write_while_the_index_is_listed_is_not_hidden_by_the_listing(
    cached: MemoryStore, other: MemoryStore, storage: Any, cache: RecordingCache, meta: Meta
) -> None:
    """The second assertion fails where the nonce is not compared after listing."""

    def write() -> None:
        storage.after.clear()
        other.write_file(TEA, "", meta(), None, source="t")

    storage.after["list_page"] = write
    assert cached.get_memory_index(MAP).entries == ()
    assert all(key.endswith(":nonce") for key in cache.values), "an overtaken listing was stored"
    assert [found.path for found in cached.get_memory_index(MAP).entries] == [TEA]


def test_a_write_between_the_last_check_and_the_store_of_a_listing_is_not_hidden(
    cached: MemoryStore, other: MemoryStore, cache: RecordingCache, meta: Meta
) -> None:
    """Fails where the value does not carry the nonce under which it was listed."""

    def write(key: str) -> None:
        if not key.endswith(":nonce"):
            cache.before_set = lambda _key: None
            other.write_file(TEA, "", meta(), None, source="t")

    cache.before_set = write
    assert cached.get_memory_index(MAP).entries == ()
    assert [found.path for found in cached.get_memory_index(MAP).entries] == [TEA]


def test_a_listing_older_than_an_evicted_nonce_is_never_used_again(
    cached: MemoryStore, cache: RecordingCache, storage: Any, meta: Meta
) -> None:
    cached.get_memory_index(MAP)
    old = dict(cache.values)
    cached.write_file(TEA, "", meta(), None, source="t")
    cache.values = {key: value for key, value in old.items() if not key.endswith(":nonce")}
    assert len(cached.get_memory_index(MAP).entries) == 1
    storage.taken()
    assert len(cached.get_memory_index(MAP).entries) == 1
    assert listings(storage) == 0


def test_a_nonce_that_was_evicted_is_never_drawn_again(
    cached: MemoryStore, other: MemoryStore, cache: RecordingCache, storage: Any, meta: Meta
) -> None:
    """Fails where a missing nonce is replaced by one that an old listing may carry."""
    cached.get_memory_index(MAP)
    old = {key: value for key, value in cache.values.items() if not key.endswith(":nonce")}
    cached.write_file(TEA, "", meta(), None, source="t")
    cache.values = old
    seen: list[int] = []

    def look() -> None:
        storage.after.clear()
        seen.append(len(other.get_memory_index(MAP).entries))

    # While one store lists because the nonce is gone, another must not take the old listing.
    storage.after["list_page"] = look
    assert len(cached.get_memory_index(MAP).entries) == 1
    assert seen == [1]


def test_a_write_with_an_unknown_outcome_invalidates_too(
    cached: MemoryStore, storage: Any, meta: Meta
) -> None:
    cached.get_memory_index(MAP)

    def lose() -> None:
        storage.after.clear()
        raise BackendUnavailableError("timeout", outcome="unknown")

    storage.after["put_if_version"] = lose
    with pytest.raises(BackendUnavailableError):
        cached.write_file(TEA, "", meta(), None, source="t")
    assert len(cached.get_memory_index(MAP).entries) == 1


def test_a_conflict_shows_that_the_cached_listing_is_stale(
    cached: MemoryStore, storage: Any, meta: Meta, rival: MemoryStore
) -> None:
    file = cached.write_file(TEA, "x", meta(), None, source="t")
    cached.get_memory_index(MAP)
    newer = rival.write_file(TEA, "y", meta(), file.version, source="t")
    (stale,) = cached.get_memory_index(MAP).entries
    assert stale.version == file.version
    with pytest.raises(VersionConflictError):
        cached.append_line(TEA, LINE, stale.version, source="t")
    (fresh,) = cached.get_memory_index(MAP).entries
    assert fresh.version == newer.version


@pytest.mark.parametrize("ttl", [None, 7, 0.5])
def test_mem_096_the_ttl_is_passed_to_set(
    make_store: MakeStore, cache: RecordingCache, ttl: float | None
) -> None:
    make_store(index_cache=IndexCache(cache.get, cache.set, ttl)).get_memory_index(MAP)
    assert cache.ttls
    assert set(cache.ttls) == {ttl}


def test_mem_096_keys_have_the_prefix_and_hold_no_entity_id(
    make_store: MakeStore, cached: MemoryStore, cache: RecordingCache
) -> None:
    cached.get_memory_index(MAP)
    assert all(key.startswith("wenchang:index:") for key in cache.values)
    assert not any("4711" in key for key in cache.values)
    other = RecordingCache()
    store = make_store(index_cache=IndexCache(other.get, other.set, key_prefix="mine/"))
    store.get_memory_index(MAP)
    assert all(key.startswith("mine/") for key in other.values)


def test_no_entity_shares_a_key_with_another(cached: MemoryStore, storage: Any) -> None:
    storage.inner.put("a/b/c/d.md", b"", {})
    assert len(cached.get_memory_index({"a": "b"}).entries) == 1
    assert cached.get_memory_index({"a": "bc"}).entries == ()
    assert cached.get_memory_index({"ab": "c"}).entries == ()


# --- a cache that misbehaves ---------------------------------------------------------------------


@pytest.mark.parametrize("failing", ["get", "set", "both"])
def test_a_cache_that_raises_costs_a_listing_and_a_log_line_without_its_text(
    make_store: MakeStore,
    cache: RecordingCache,
    storage: Any,
    meta: Meta,
    caplog: pytest.LogCaptureFixture,
    failing: str,
) -> None:
    def fail(*_arguments: object) -> Any:
        raise ConnectionError("redis://secret@ent-4711")

    get = cache.get if failing == "set" else fail
    set_ = cache.set if failing == "get" else fail
    store = make_store(index_cache=IndexCache(get, set_))
    with caplog.at_level(logging.WARNING):
        store.write_file(TEA, "", meta(), None, source="t")
        assert len(store.get_memory_index(MAP).entries) == 1
        assert len(store.get_memory_index(MAP).entries) == 1
    assert listings(storage) == 2
    assert "ConnectionError" in caplog.text
    assert "secret" not in caplog.text
    assert "4711" not in caplog.text


def _broken(change: Callable[[dict[str, Any]], object]) -> Callable[[str], object]:
    def apply(value: str) -> str:
        loaded = json.loads(value)
        change(loaded)
        return json.dumps(loaded)

    return apply


@pytest.mark.parametrize(
    "corrupt",
    {
        "empty": lambda _value: "",
        "no json": lambda _value: "{",
        "deep": lambda _value: "[" * 100_000,
        "a list": lambda _value: "[]",
        "cut": lambda value: value[:-1],
        "bytes": lambda value: value.encode(),
        "a number": lambda _value: 7,
        "another format": _broken(lambda v: v.update(format="wenchang-index-2")),
        "another nonce": _broken(lambda v: v.update(nonce="x")),
        "no objects": _broken(lambda v: v.pop("objects")),
        "objects of a wrong type": _broken(lambda v: v.update(objects={})),
        "an object too short": _broken(lambda v: v["objects"][0].pop()),
        "a foreign key": _broken(lambda v: v["objects"][0].__setitem__(0, "../x/y.md")),
        "a key that is no file": _broken(lambda v: v["objects"][0].__setitem__(0, "y.md")),
        "a version of a wrong type": _broken(lambda v: v["objects"][0].__setitem__(1, 7)),
        "an empty version": _broken(lambda v: v["objects"][0].__setitem__(1, "")),
        "metadata of a wrong type": _broken(lambda v: v["objects"][0].__setitem__(2, [])),
        "a metadata value of a wrong type": _broken(
            lambda v: v["objects"][0].__setitem__(2, {"description": 7})
        ),
        "an object twice": _broken(lambda v: v["objects"].append(v["objects"][0])),
    }.items(),
    ids=lambda item: item[0],
)
def test_a_value_that_no_store_wrote_is_a_miss(
    cached: MemoryStore,
    cache: RecordingCache,
    storage: Any,
    meta: Meta,
    corrupt: tuple[str, Callable[[str], Any]],
) -> None:
    cached.write_file(TEA, "", meta("About"), None, source="t")
    index = cached.get_memory_index(MAP)
    key = cache.listing_key
    cache.values[key] = corrupt[1](cache.values[key])
    storage.taken()
    assert cached.get_memory_index(MAP) == index
    assert listings(storage) == 1


def test_purge_leaves_nothing_of_the_entity_in_the_cache(
    cached: MemoryStore, cache: RecordingCache, meta: Meta
) -> None:
    cached.write_file(TEA, "", meta("private matter"), None, source="t")
    cached.get_memory_index(MAP)
    assert any("private matter" in value for value in cache.values.values())
    cached.purge("user", "ent-4711")
    assert not any("private matter" in value for value in cache.values.values())


# --- the cache in memory -------------------------------------------------------------------------


class Seconds:
    """A clock that a test turns."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_mem_096_the_cache_in_memory_gives_both_functions(
    make_store: MakeStore, storage: Any
) -> None:
    memory = InMemoryIndexCache()
    store = make_store(index_cache=IndexCache(memory.get, memory.set))
    store.get_memory_index(MAP)
    storage.taken()
    store.get_memory_index(MAP)
    assert storage.taken() == []


@pytest.mark.parametrize(("ttl", "lives"), [(None, 60.0), (5, 5.0), (0.25, 0.25)])
def test_a_value_in_memory_lives_for_its_ttl_or_a_minute(ttl: float | None, lives: float) -> None:
    seconds = Seconds()
    memory = InMemoryIndexCache(monotonic=seconds)
    memory.set("k", "v", ttl)
    seconds.now += lives - 0.125
    assert memory.get("k") == "v"
    seconds.now += 0.125
    assert memory.get("k") is None


def test_the_cache_in_memory_is_bounded_and_drops_what_was_set_first() -> None:
    memory = InMemoryIndexCache(max_entries=2)
    for key in "abac":
        memory.set(key, key, None)
    assert [memory.get(key) for key in "abc"] == ["a", None, "c"]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"default_ttl": 0}, ValueError),
        ({"default_ttl": True}, TypeError),
        ({"default_ttl": float("nan")}, ValueError),
        ({"max_entries": 0}, ValueError),
        ({"max_entries": 1.5}, TypeError),
    ],
)
def test_wrong_options_of_the_cache_in_memory_are_refused(
    options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        InMemoryIndexCache(**options)


async def _async_get(_key: str) -> str | None:
    return None


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"get": None}, TypeError),
        ({"get": _async_get}, TypeError),
        ({"set": _async_get}, TypeError),
        ({"ttl": 0}, ValueError),
        ({"ttl": -1.0}, ValueError),
        ({"ttl": "60"}, TypeError),
        ({"ttl": True}, TypeError),
        ({"key_prefix": None}, TypeError),
    ],
)
def test_mem_096_wrong_fields_of_a_cache_are_refused(
    cache: RecordingCache, fields: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        IndexCache(**{"get": cache.get, "set": cache.set, **fields})


def test_readers_and_writers_at_once_never_leave_a_stale_index(
    make_store: MakeStore, meta: Meta
) -> None:
    memory = InMemoryIndexCache()
    stores = [make_store(index_cache=IndexCache(memory.get, memory.set)) for _ in range(6)]
    barrier = threading.Barrier(len(stores))
    failures: list[BaseException] = []

    def work(number: int, store: MemoryStore) -> None:
        path = f"user/ent-4711/prefs/{number}.md"
        try:
            barrier.wait(10)
            version: str | None = None
            for round_ in range(20):
                version = store.write_file(path, str(round_), meta(), version, source="t").version
                shown = {found.path: found.version for found in store.get_memory_index(MAP).entries}
                assert shown[path] == version, "a finished write of its own is missing"
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=pair) for pair in enumerate(stores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
