"""A store, a cache and a watch that a forked child inherits while another thread is inside of them."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from wenchang.core import MemoryStore
from wenchang.identity import Identity, ScopeGrant
from wenchang.index_cache import IndexCache, InMemoryIndexCache
from wenchang.metadata import EPOCH, FileMetadata
from wenchang.read_cache import ReadCache
from wenchang.scope import ScopePolicy
from wenchang.storage.memory import InMemoryStorage
from wenchang.tools._known_scopes import process_watch

PATH = "user/e1/notes/a.md"
NOTHING = FileMetadata("", (), frozenset(), EPOCH)


@contextmanager
def held(lock: Any) -> Iterator[None]:
    """Let another thread hold a lock, as one that is in the middle of a call does."""
    taken, release = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            taken.set()
            release.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        assert taken.wait(60)
        yield
    finally:
        release.set()
        holder.join(60)


def exit_code_of_child(work: Callable[[], object]) -> int | None:
    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    child.join(30)
    if child.exitcode is None:
        child.kill()
        child.join(30)
        pytest.fail("the child hung")
    return child.exitcode


def test_a_child_uses_a_store_whose_read_cache_was_busy() -> None:
    cache = ReadCache()
    store = MemoryStore(InMemoryStorage(), read_cache=cache)
    written = store.write_file(PATH, "x\n", NOTHING, None, source="test")

    def work() -> None:
        assert len(cache) == 0
        assert cache.size == 0
        changed = store.append_line(PATH, "- [stated] y", written.version, source="test")
        assert store.read_file(PATH).version == changed.version

    with held(cache._lock):
        assert exit_code_of_child(work) == 0
    assert len(cache) == 1


def test_a_child_uses_a_store_whose_index_cache_was_busy() -> None:
    cache = InMemoryIndexCache()
    store = MemoryStore(InMemoryStorage(), index_cache=IndexCache(cache.get, cache.set))
    store.write_file(PATH, "x\n", NOTHING, None, source="test")
    assert len(store.get_memory_index({"user": "e1"}).entries) == 1

    def work() -> None:
        assert len(store.get_memory_index({"user": "e1"}).entries) == 1

    with held(cache._lock):
        assert exit_code_of_child(work) == 0


def test_a_child_binds_tools_although_a_thread_of_the_parent_was_at_it() -> None:
    identity = Identity({"user": ScopeGrant("e1", "owner")})
    with held(process_watch._lock):
        assert exit_code_of_child(lambda: process_watch.note(identity, ScopePolicy())) == 0
