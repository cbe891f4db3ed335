"""Storages that make races certain, and a runner for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest

from wenchang.errors import BackendUnavailableError
from wenchang.files.policy import TreePolicy
from wenchang.files.store_backend import StoreFileBackend, StoreFileBackends
from wenchang.storage.memory import InMemoryStorage

_T = TypeVar("_T")
WAIT = 60


class MeetingStorage(InMemoryStorage):
    """An `InMemoryStorage` whose first `expect` readers of a tree's root get it only together.

    All of them then decide on the same state, so all but one lose the first race.
    """

    def __init__(self) -> None:
        super().__init__()
        self._gate = threading.Lock()
        self._expected = 0
        self._came: set[int] = set()
        self._together = threading.Event()
        self.met = False

    def expect(self, readers: int) -> None:
        self._expected = readers
        self._came.clear()
        self._together.clear()
        self.met = False

    def get(self, key):
        found = super().get(key)
        if self._expected and key.endswith("/=/root"):
            me = threading.get_ident()
            with self._gate:
                waits = me not in self._came and len(self._came) < self._expected
                self._came.add(me)
                if len(self._came) == self._expected:
                    self.met = True
                    self._together.set()
            if waits:
                assert self._together.wait(WAIT), "the racers did not meet"
        return found


class BrokenStorage(InMemoryStorage):
    """An `InMemoryStorage` that fails when it is told to, saying what nobody may read."""

    SECRET = "https://AKIASECRET@storage.internal:9000/bucket /srv/secret/path"

    def __init__(self) -> None:
        super().__init__()
        self.error: Exception | None = None

    def fail(self, *, unforeseen: bool) -> None:
        self.error = (
            OSError(self.SECRET)
            if unforeseen
            else BackendUnavailableError("unavailable", self.SECRET, outcome="not_applied")
        )

    def get(self, key):
        self._check()
        return super().get(key)

    def put(self, key, data, metadata):
        self._check()
        return super().put(key, data, metadata)

    def put_if_version(self, key, data, metadata, expected):
        self._check()
        return super().put_if_version(key, data, metadata, expected)

    def _check(self):
        if self.error is not None:
            raise self.error


def race(works: Sequence[Callable[[], _T]]) -> list[_T]:
    """Run all at once, each in a thread of its own, and return what they return."""
    start = threading.Barrier(len(works))

    def run(work: Callable[[], _T]) -> _T:
        start.wait(WAIT)
        return work()

    with ThreadPoolExecutor(len(works)) as threads:
        return [each.result(WAIT) for each in [threads.submit(run, work) for work in works]]


@pytest.fixture(name="race")
def _race():
    return race


@pytest.fixture
def storage():
    return InMemoryStorage()


@pytest.fixture
def stores(storage):
    return StoreFileBackends(storage)


@pytest.fixture
def files(stores):
    """The files of the tenant acme."""
    return stores.of("acme")


@pytest.fixture
def meeting():
    return MeetingStorage()


@pytest.fixture
def broken():
    return BrokenStorage()


@pytest.fixture
def on_broken(broken):
    """The files of the tenant acme on the broken storage, soon given up."""
    return StoreFileBackends(broken, policy=TreePolicy(deadline=0.05)).of("acme")


@pytest.fixture
def separate(meeting):
    """Makes backends of one tenant on one storage that share nothing in this process."""

    def make() -> StoreFileBackend:
        return StoreFileBackends(meeting).of("acme")

    return make
