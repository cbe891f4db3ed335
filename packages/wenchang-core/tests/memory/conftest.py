"""A storage that counts requests and lets a test step between them, and stores on it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from wenchang.core import MemoryStore
from wenchang.metadata import EPOCH, FileMetadata
from wenchang.storage import ListedObject, PreconditionFailedError, StoredObject
from wenchang.storage.memory import InMemoryStorage


class CountingStorage:
    """An `InMemoryStorage` that records each request.

    `before[method]` and `after[method]` run around a request, outside of its record, so that a test
    can act as a rival at exactly that moment. With `settles`, a refusal carries the object found.
    """

    def __init__(self) -> None:
        self.inner = InMemoryStorage()
        self.calls: list[str] = []
        self.before: dict[str, Callable[[], None]] = {}
        self.after: dict[str, Callable[[], None]] = {}
        self.settles = False
        self._lock = threading.Lock()

    def _run(self, method: str, *arguments: Any) -> Any:
        with self._lock:
            self.calls.append(method)
        self.before.get(method, lambda: None)()
        try:
            return getattr(self.inner, method)(*arguments)
        except PreconditionFailedError as error:
            if self.settles:
                raise PreconditionFailedError(
                    error.key, current=self.inner.get(error.key)
                ) from error
            raise
        finally:
            self.after.get(method, lambda: None)()

    def get(self, key: str) -> StoredObject | None:
        return self._run("get", key)

    def put(self, key: str, data: bytes, metadata: Mapping[str, str]) -> str:
        return self._run("put", key, data, metadata)

    def put_if_version(
        self, key: str, data: bytes, metadata: Mapping[str, str], expected: str | None
    ) -> str:
        return self._run("put_if_version", key, data, metadata, expected)

    def delete_if_version(self, key: str, expected: str) -> None:
        self._run("delete_if_version", key, expected)

    def list_page(self, prefix: str, start_after: str | None, limit: int) -> Sequence[ListedObject]:
        return self._run("list_page", prefix, start_after, limit)

    def list_versions(
        self, prefix: str, start_after: str | None, limit: int
    ) -> Sequence[tuple[str, str]]:
        return self._run("list_versions", prefix, start_after, limit)

    def taken(self) -> list[str]:
        """Return the requests since the last time."""
        calls, self.calls = self.calls, []
        return calls


class Clock:
    """A clock whose every reading is a second later."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.moment += timedelta(seconds=1)
        return self.moment


@pytest.fixture
def storage() -> CountingStorage:
    return CountingStorage()


@pytest.fixture
def make_store(storage: CountingStorage) -> Callable[..., MemoryStore]:
    """Make stores on the one storage of the test; each is a process of its own, so to say."""
    clock = Clock()

    def make(**options: Any) -> MemoryStore:
        return MemoryStore(storage, **{"clock": clock, **options})

    return make


@pytest.fixture
def store(make_store: Callable[..., MemoryStore]) -> MemoryStore:
    return make_store()


@pytest.fixture
def rival(make_store: Callable[..., MemoryStore]) -> MemoryStore:
    """Another process on the same storage."""
    return make_store()


@pytest.fixture
def meta() -> Callable[..., FileMetadata]:
    """Make the metadata that a caller of `write_file` passes."""

    def make(description: str = "", *aliases: str) -> FileMetadata:
        return FileMetadata(description, aliases, frozenset(), EPOCH)

    return make


@pytest.fixture
def create(store: MemoryStore, meta: Callable[..., FileMetadata]) -> Callable[..., Any]:
    """Create a file through the store under test."""

    def make(path: str = "user/u-1/prefs/tea.md", content: str = "", *aliases: str) -> Any:
        return store.write_file(path, content, meta("About", *aliases), None, source="test")

    return make
