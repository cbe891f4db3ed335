"""What is particular to the storage in memory."""

from __future__ import annotations

import contextlib
import os
import random
import threading

import pytest

from wenchang.storage import PreconditionFailedError, StorageConfigurationError, open_storage
from wenchang.storage.memory import DESCRIPTOR, InMemoryStorage


def test_mem_089_writers_in_many_threads_lose_no_append():
    """race-cas, threads."""
    store = InMemoryStorage()
    store.put("k", b"", {})
    start = threading.Barrier(8)
    acknowledged: list[bytes] = []
    conflicts = []

    def append(writer: int) -> None:
        start.wait(timeout=30)
        for number in range(200):
            line = b"%d-%d\n" % (writer, number)
            while True:
                found = store.get("k")
                try:
                    store.put_if_version("k", found.data + line, {}, found.version)
                except PreconditionFailedError:
                    conflicts.append(writer)
                    continue
                acknowledged.append(line)
                break

    threads = [threading.Thread(target=append, args=(writer,)) for writer in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    lines = store.get("k").data.splitlines(keepends=True)
    assert sorted(lines) == sorted(acknowledged)
    assert len(lines) == len(set(lines)) == 8 * 200


def test_only_one_of_many_creators_and_deleters_wins():
    """race-create, race-delete."""
    store = InMemoryStorage()
    for _ in range(50):
        start = threading.Barrier(4)
        created: list[str] = []
        deleted: list[int] = []

        def race(start: threading.Barrier, created: list[str], deleted: list[int]) -> None:
            start.wait(timeout=30)
            with contextlib.suppress(PreconditionFailedError):
                created.append(store.put_if_version("k", b"", {}, None))
            start.wait(timeout=30)
            with contextlib.suppress(PreconditionFailedError):
                store.delete_if_version("k", created[0])
                deleted.append(1)

        threads = [threading.Thread(target=race, args=(start, created, deleted)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
        assert (len(created), len(deleted)) == (1, 1)


def test_order_holds_over_many_blocks_of_keys_and_random_deletes():
    """list-order."""
    rng = random.Random(7)
    store = InMemoryStorage()
    model: dict[str, str] = {}
    for _ in range(20_000):
        key = f"{rng.randrange(6_000):x}"
        if key in model and rng.random() < 0.5:
            store.delete_if_version(key, model.pop(key))
        else:
            model[key] = store.put(key, b"", {})
    assert len(store._keys._blocks) > 3
    assert [(e.key, e.version) for e in store.list_page("", None, 10**6)] == sorted(model.items())
    for _ in range(200):
        start = f"{rng.randrange(6_000):x}" + rng.choice(["", "0", "f"])
        expected = sorted(key for key in model if key > start)[:10]
        assert [entry.key for entry in store.list_page("", start, 10)] == expected
    for key, version in model.items():
        store.delete_if_version(key, version)
    assert store.list_page("", None, 1) == []


def test_a_page_looks_at_no_more_keys_than_it_needs():
    """A page costs O(log n + page): the rest of the keys is not touched."""
    store = InMemoryStorage()
    for number in range(5_000):
        store.put(f"{number:05}", b"", {})
    looked_up: list[str] = []

    class Counting(dict):
        def __getitem__(self, key):
            looked_up.append(key)
            return super().__getitem__(key)

    store._objects = Counting(store._objects)
    assert [e.key for e in store.list_page("", "02499", 5)] == [f"0{n}" for n in range(2500, 2505)]
    assert len(looked_up) == 5


def test_versions_of_two_instances_differ():
    """version-foreign."""
    first, second = InMemoryStorage(), InMemoryStorage()
    version = first.put("k", b"", {})
    second.put("k", b"", {})
    with pytest.raises(PreconditionFailedError):
        second.put_if_version("k", b"", {}, version)


# Python 3.12 warns of a fork beside threads in general; this is the test that ours is safe.
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_child_gets_a_copy_that_works_while_threads_write():
    """fork."""
    store = InMemoryStorage()
    stop = threading.Event()
    started = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            store.put(f"k{number % 2000}", b"", {})
            number += 1
            if number == 100:
                started.set()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert started.wait(timeout=30)
        for _ in range(20):
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    keys = [entry.key for entry in store.list_page("", None, 10**6)]
                    assert keys == sorted(store._objects)
                    store.put("mine", b"", {})
                    assert store.get("mine") is not None
                    status = 0
                finally:
                    os._exit(status)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert store.get("mine") is None
    finally:
        stop.set()
        writer.join(timeout=30)


def test_its_url_opens_a_new_store_each_time_and_takes_no_address():
    """init-fail."""
    store = open_storage("memory://")
    assert isinstance(store, InMemoryStorage)
    store.put("k", b"", {})
    assert open_storage("memory://").get("k") is None
    for url in ("memory://name", "memory://?size=3"):
        with pytest.raises(StorageConfigurationError):
            open_storage(url)
    assert (DESCRIPTOR.durable, DESCRIPTOR.shared, DESCRIPTOR.local) == (False, False, True)
