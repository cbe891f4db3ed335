"""Threads and processes on one database, while writers and the server itself are killed."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from devlib.console import DevError
from devlib.servers import sql
from devlib.servers.process import Process
from wenchang.storage import Storage, open_storage

pytestmark = pytest.mark.serial

WORKER = Path(__file__).with_name("load_worker.py")
SERVERS = {"postgresql": sql.POSTGRES, "mariadb": sql.MARIADB}
UNSURE = "?"


@dataclass
class Witness:
    """What one worker told, in order."""

    process: subprocess.Popen[str]
    counts: Counter[str] = field(default_factory=Counter)
    state: dict[str, str] = field(default_factory=dict)
    """The version of each key, "" where it is deleted, `UNSURE` where nobody knows."""
    tried: dict[str, str] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    def listen(self) -> None:
        """Take down every line until the worker has ended."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if not line.endswith("\n"):
                break  # the last words of a killed worker
            word, _, rest = line.strip().partition(" ")
            self.counts[word] += 1
            key, _, version = rest.partition(" ")
            if word == "error":
                self.errors.append(rest)
            elif word == "try":
                self.tried[key] = self.state.get(key, "")
                self.state[key] = UNSURE
            elif word in {"wrote", "deleted"}:
                self.state[key] = version
            elif word == "failed":
                self.state[key] = self.tried[key]
            elif word == "conflict" and self.tried[key] != UNSURE:
                self.errors.append(f"a conflict on {key}, which nobody else writes")


class Load:
    """Workers on one storage."""

    def __init__(self, url: str, *, processes: int, threads: int) -> None:
        self.threads = threads
        self.storage: Storage = open_storage(url)
        self.storage.put("counter", b"0", {})
        self.witnesses = [
            Witness(
                subprocess.Popen(
                    [sys.executable, WORKER, url, f"w{number}", str(threads)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for number in range(processes)
        ]
        self._listeners = [threading.Thread(target=one.listen) for one in self.witnesses]
        for listener in self._listeners:
            listener.start()

    def run(self, seconds: float) -> None:
        """Let them work for a while, and until each was acknowledged something, a delete included."""
        until = time.monotonic() + seconds
        seen = [one.counts["deleted"] for one in self.witnesses]
        while time.monotonic() < until or not all(
            one.counts["deleted"] > before or one.process.poll() is not None
            for one, before in zip(self.witnesses, seen, strict=True)
        ):
            assert time.monotonic() < until + 120, "some worker got nothing done"
            assert not [error for one in self.witnesses for error in one.errors]
            time.sleep(0.05)

    def kill(self, number: int) -> None:
        """Kill one worker in the middle of what it does."""
        self.witnesses[number].process.kill()

    def end(self) -> None:
        """Let everybody finish what they are doing."""
        for one in self.witnesses:
            if one.process.stdin is not None:
                one.process.stdin.close()
        for one, listener in zip(self.witnesses, self._listeners, strict=True):
            listener.join(120)
            assert not listener.is_alive(), "a call of a worker did not end"
            one.process.wait(60)
            if one.process.stdout is not None:
                one.process.stdout.close()

    def total(self) -> Counter[str]:
        """Return how often each word was told."""
        return sum((one.counts for one in self.witnesses), Counter[str]())

    def check(self, *, killed: int = 0) -> Counter[str]:
        """Assert that everything acknowledged is there; return how often each thing happened."""
        total = self.total()
        assert not [error for one in self.witnesses for error in one.errors]
        found = self.storage.get("counter")
        assert found is not None
        surely, perhaps = total["increment"], total["increment?"] + killed * self.threads
        assert surely <= int(found.data) <= surely + perhaps
        present: dict[str, str] = {}
        page = self.storage.list_page("", None, 1000)
        while page:
            present.update({entry.key: entry.version for entry in page})
            page = self.storage.list_page("", page[-1].key, 1000)
        told = {key: what for one in self.witnesses for key, what in one.state.items()}
        wrong = {
            key: (what, present.get(key))
            for key, what in told.items()
            if what != UNSURE and present.get(key, "") != what
        }
        assert not wrong
        assert set(present) - {"counter"} <= set(told)
        return total


@pytest.fixture
def load(size: Callable[[str], int]) -> Iterator[Callable[[str], Load]]:
    """Begin a load on a URL, in a namespace of its own."""
    begun: list[Load] = []

    def begin(url: str) -> Load:
        separator = "&" if "?" in url else "?"
        begun.append(
            Load(
                f"{url}{separator}namespace=load-{secrets.token_hex(6)}",
                processes=size("load_processes"),
                threads=size("load_threads"),
            )
        )
        return begun[-1]

    yield begin
    for one in begun:
        for witness in one.witnesses:
            witness.process.kill()
        one.end()
        close = getattr(one.storage, "close", None)
        if close is not None:
            close()


@pytest.fixture(params=["sqlite", "postgresql", "postgresql-newer", "mariadb"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database: a file, or a server that is there for tests."""
    variables = {
        "postgresql": "WENCHANG_TEST_POSTGRES_URL",
        "postgresql-newer": "WENCHANG_TEST_POSTGRES_NEWER_URL",
        "mariadb": "WENCHANG_TEST_MARIADB_URL",
    }
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'load.db'}"
    found = os.environ.get(variables[request.param])
    if not found:
        pytest.skip(f"not run: no {request.param} server ({variables[request.param]} is not set)")
    return found


@pytest.fixture(params=list(SERVERS))
def server(request: pytest.FixtureRequest) -> Iterator[tuple[str, Process]]:
    """A server of this test's own, which it may kill."""
    kind = SERVERS[request.param]
    try:
        started = kind.start(False)
    except DevError as error:
        pytest.skip(f"not run: no {request.param} server: {error}")
    (process,) = started.parts
    assert isinstance(process, Process)
    yield started.environ[kind.variables[0]], process
    process.stop()


def test_a_mixed_load_meets_only_successes_and_real_conflicts(
    url: str, load: Callable[[str], Load], size: Callable[[str], int]
) -> None:
    running = load(url)
    running.run(size("race_seconds"))
    running.end()
    total = running.check()
    assert not {"failed", "unknown", "increment?", "conflict"} & set(total)
    assert total["increment"]
    assert total["wrote"]
    assert total["deleted"]


def test_a_killed_writer_takes_nothing_acknowledged_with_it(
    url: str, load: Callable[[str], Load], size: Callable[[str], int]
) -> None:
    running = load(url)
    running.run(size("race_seconds") / 2)
    running.kill(0)
    running.run(size("race_seconds") / 2)
    running.end()
    total = running.check(killed=1)
    assert not {"failed", "unknown", "increment?", "conflict"} & set(total)


@pytest.mark.parametrize("kill", [True, False], ids=["killed", "restarted"])
def test_a_server_that_goes_away_and_comes_back_keeps_what_was_acknowledged(
    server: tuple[str, Process],
    load: Callable[[str], Load],
    size: Callable[[str], int],
    *,
    kill: bool,
) -> None:
    url, process = server
    running = load(url)
    running.run(size("race_seconds") / 2)
    process.restart(kill=kill)
    running.run(size("race_seconds") / 2)
    running.end()
    total = running.check()
    assert total["wrote"]
