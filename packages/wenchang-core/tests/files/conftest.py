"""A storage that a test can step into, and trees on it whose pauses take no time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from wenchang.errors import BackendUnavailableError
from wenchang.files._patience import Patience
from wenchang.files.policy import TreePolicy
from wenchang.files.tree import FileTree
from wenchang.storage import ListedObject, StoredObject
from wenchang.storage.memory import InMemoryStorage

SMALL = TreePolicy(
    page_entries=4,
    page_bytes=2000,
    inline_entries=3,
    inline_bytes=1000,
    receipts_in_root=2,
    receipts_kept=5,
    parallel=1,
)
"""Pages so small that a dozen files make a tree of several, and no threads."""


class Crash(BaseException):
    """The process is killed here."""


class HookedStorage:
    """An `InMemoryStorage` on which `fault(method, key)` decides what becomes of each request.

    None: it is carried out. "lost": carried out, its answer lost. "dropped": lost on the way. "late":
    lost, and carried out when `deliver` is called. "doubled": carried out twice, the second time an answer
    is lost. "down": refused, certainly not applied. "crash", "crash_after": the caller is killed.
    """

    def __init__(self, inner: InMemoryStorage | None = None) -> None:
        self.inner = inner or InMemoryStorage()
        self.calls: list[tuple[str, str]] = []
        self.fault: Callable[[str, str], str | None] = lambda _method, _key: None
        self.late: list[Callable[[], Any]] = []
        self._lock = threading.Lock()

    def _run(self, method: str, key: str, *arguments: Any) -> Any:
        with self._lock:
            self.calls.append((method, key))
        fault = self.fault(method, key)

        def act() -> Any:
            return getattr(self.inner, method)(key, *arguments)

        if fault is None:
            return act()
        if fault == "crash":
            raise Crash
        if fault == "down":
            raise BackendUnavailableError("unavailable", outcome="not_applied")
        if fault == "late":
            self.late.append(act)
        if fault in ("lost", "crash_after"):
            act()
        if fault == "crash_after":
            raise Crash
        raise BackendUnavailableError("timeout", outcome="unknown")

    def deliver(self) -> None:
        """Let the requests arrive that were late."""
        late, self.late = self.late, []
        for act in late:
            try:
                act()
            except Exception:
                continue

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

    def taken(self) -> list[str]:
        """Return what was asked since the last time, as method and kind of object."""
        calls, self.calls = self.calls, []
        return [
            f"{method} {'root' if key.endswith('/root') else 'object'}" for method, key in calls
        ]


class Clock:
    """A clock that a test moves; each reading is a millisecond later."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.moment += timedelta(milliseconds=1)
        return self.moment

    def go(self, **amount: float) -> None:
        self.moment += timedelta(**amount)


class Instant:
    """Monotonic time that passes only while somebody waits, at once."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def open_tree(storage: Any, policy: TreePolicy = SMALL, base: str = "@files/ada", **rest: Any):
    """Return a tree that waits without time passing."""
    tree = FileTree(storage, base, policy=policy, **rest)
    instant = Instant()
    tree._committer.patience = Patience(policy, monotonic=instant, sleep=instant.sleep)
    return tree


def content_of(tree: FileTree) -> dict[str, str]:
    """Return path and text of every file."""
    return tree.view(
        lambda snapshot: {e.path: text for e, text in snapshot.read_many(list(snapshot.walk()))}
    )


@pytest.fixture(scope="session")
def small() -> TreePolicy:
    return SMALL


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def storage() -> HookedStorage:
    return HookedStorage()


@pytest.fixture(scope="session")
def open_tree_on() -> Callable[..., FileTree]:
    return open_tree


@pytest.fixture
def tree(storage: HookedStorage, clock: Clock) -> FileTree:
    return open_tree(storage, clock=clock)


@pytest.fixture(scope="session")
def texts() -> Callable[[FileTree], dict[str, str]]:
    return content_of


@pytest.fixture(scope="session")
def crash() -> type[Crash]:
    return Crash


@pytest.fixture(scope="session")
def hooked() -> type[HookedStorage]:
    return HookedStorage
