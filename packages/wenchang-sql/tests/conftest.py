"""The databases that the tests run on: SQLite always, the others where a server is there."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from wenchang.storage.locations import StorageLocation
from wenchang_sql import SqlStorage
from wenchang_sql.hooks import SqlBackdoor
from wenchang_sql.opening import open_location

SERVERS = {
    "postgresql": "WENCHANG_TEST_POSTGRES_URL",
    "postgresql-newer": "WENCHANG_TEST_POSTGRES_NEWER_URL",
    "mariadb": "WENCHANG_TEST_MARIADB_URL",
}


def server_url(kind: str) -> str:
    """Return the URL of a test server; without one the test is not run."""
    url = os.environ.get(SERVERS[kind])
    if not url:
        pytest.skip(f"not run: no {kind} server ({SERVERS[kind]} is not set)")
    return url


@dataclass(frozen=True)
class Place:
    """One database with a pair of tables that is this test's own."""

    kind: str
    url: str
    table: str
    opened: list[SqlStorage]

    def location(self, **options: Any) -> StorageLocation:
        return StorageLocation.parse(self.url, options={"table": self.table, **options})

    def open(self, **options: Any) -> SqlStorage:
        storage = open_location(self.location(**options))
        self.opened.append(storage)
        return storage

    def backdoor(self) -> SqlBackdoor:
        return SqlBackdoor(self.location())


@pytest.fixture
def url_of() -> Callable[[str], str]:
    return server_url


@pytest.fixture
def place_of(tmp_path: Path) -> Iterator[Callable[[str], Place]]:
    places: list[Place] = []

    def make(kind: str) -> Place:
        url = f"sqlite:///{tmp_path / 'memory.db'}" if kind == "sqlite" else server_url(kind)
        place = Place(kind, url, f"t_{secrets.token_hex(8)}", [])
        places.append(place)
        return place

    yield make
    for place in places:
        for storage in place.opened:
            storage.close()
        place.backdoor().remove()


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
def place(request: pytest.FixtureRequest, place_of: Callable[[str], Place]) -> Place:
    """A fresh pair of tables, on each of the databases."""
    return place_of(request.param)


@pytest.fixture
def storage(place: Place) -> SqlStorage:
    return place.open()


@pytest.fixture
def sqlite(place_of: Callable[[str], Place]) -> Place:
    return place_of("sqlite")


@pytest.fixture
def race() -> Callable[..., list[Any]]:
    """Run functions in threads that start together; return what each returned or raised."""

    def run(functions: Sequence[Callable[[], Any]], seconds: float = 60.0) -> list[Any]:
        barrier = threading.Barrier(len(functions))
        results: list[Any] = [None] * len(functions)

        def racer(number: int) -> None:
            try:
                barrier.wait(seconds)
                results[number] = functions[number]()
            except Exception as error:
                results[number] = error

        threads = [
            threading.Thread(target=racer, args=(number,), daemon=True)
            for number in range(len(functions))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(seconds)
            assert not thread.is_alive(), "a racer did not end"
        return results

    return run
