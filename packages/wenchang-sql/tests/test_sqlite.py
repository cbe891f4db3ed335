"""SQLite: one file, many processes, and what happens to the file under it."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import textwrap
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from wenchang.storage import (
    PreconditionFailedError,
    StorageConfigurationError,
    StorageRejectedError,
)
from wenchang.storage.locations import StorageLocation
from wenchang_sql import SqlStorage, create_engine
from wenchang_sql import sqlite as module
from wenchang_sql.calls import Calls
from wenchang_sql.opening import open_location


def open_url(url: str, **options: Any) -> SqlStorage:
    return open_location(StorageLocation.parse(url, options=options))


def pragma(path: Path, name: str) -> Any:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(f"PRAGMA {name}").fetchone()[0]
    finally:
        connection.close()


class TestFile:
    def test_init_offline_opening_makes_no_file(self, tmp_path: Path):
        with open_url(f"sqlite:///{tmp_path}/new/memory.db"):
            assert list(tmp_path.iterdir()) == []

    def test_the_file_and_missing_folders_are_the_owners_only(self, tmp_path: Path):
        path = tmp_path / "data" / "wenchang" / "memory.db"
        with open_url(f"sqlite:///{path}") as storage:
            storage.put("a", b"1", {})
            for file in path.parent.iterdir():
                assert stat.S_IMODE(file.stat().st_mode) == 0o600, file.name
        for folder in (path.parent, path.parent.parent):
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700

    def test_what_exists_keeps_its_mode(self, tmp_path: Path):
        path = tmp_path / "memory.db"
        path.touch(mode=0o640)
        path.chmod(0o640)
        before = stat.S_IMODE(tmp_path.stat().st_mode)
        with open_url(f"sqlite:///{path}") as storage:
            storage.put("a", b"1", {})
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        assert stat.S_IMODE(tmp_path.stat().st_mode) == before

    def test_it_is_in_write_ahead_mode_with_full_synchronisation(self, tmp_path: Path):
        path = tmp_path / "memory.db"
        with open_url(f"sqlite:///{path}") as storage:
            storage.put("a", b"1", {})
            settings = storage._calls.read(
                5, lambda raw: raw.execute("PRAGMA synchronous").fetchone()[0]
            )
            assert settings.value == 2
        assert pragma(path, "journal_mode") == "wal"

    def test_durable_a_deleted_file_is_not_written_to_any_more(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(module, "_LOOK_SECONDS", 0.0)
        path = tmp_path / "memory.db"
        with open_url(f"sqlite:///{path}") as storage:
            storage.put("a", b"1", {})
            for file in tmp_path.iterdir():
                file.unlink()
            assert storage.get("a") is None
            version = storage.put("b", b"2", {})
            with open_url(f"sqlite:///{path}") as other:
                assert other.get("b").version == version

    @pytest.mark.parametrize(
        "url", ["sqlite://", "sqlite:///", "sqlite://memory.db", "sqlite://host/memory.db"]
    )
    def test_init_fail_an_address_that_is_no_file_says_what_is_right(self, url: str):
        with pytest.raises(StorageConfigurationError, match=r"sqlite:///relative/file\.db"):
            open_url(url)

    def test_a_relative_address_is_settled_when_it_is_opened(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        (tmp_path / "later").mkdir()
        monkeypatch.chdir(tmp_path)
        with open_url("sqlite:///with%20space.db") as storage:
            monkeypatch.chdir(tmp_path / "later")
            storage.put("a", b"1", {})
        assert (tmp_path / "with space.db").exists()


class TestRefusals:
    def test_a_folder_in_place_of_the_file(self, tmp_path: Path):
        with (
            open_url(f"sqlite:///{tmp_path}") as storage,
            pytest.raises(StorageConfigurationError, match="this is a folder"),
        ):
            storage.get("a")

    def test_a_missing_file_that_must_not_be_made(self, tmp_path: Path):
        with (
            open_url(f"sqlite:///{tmp_path}/x.db", create_schema=False) as storage,
            pytest.raises(StorageRejectedError, match="wenchang sql init") as caught,
        ):
            storage.get("a")
        assert caught.value.kind == "missing_container"
        assert not (tmp_path / "x.db").exists()

    def test_a_file_that_is_no_database(self, tmp_path: Path):
        path = tmp_path / "notes.txt"
        path.write_bytes(b"not a database at all" * 50)
        with (
            open_url(f"sqlite:///{path}") as storage,
            pytest.raises(StorageRejectedError) as caught,
        ):
            storage.get("a")
        assert caught.value.kind == "invalid"
        assert "notes" not in f"{caught.value} {caught.value!r}"

    def test_a_database_that_may_only_be_read(self, tmp_path: Path):
        path = tmp_path / "memory.db"
        engine = create_engine(f"sqlite:///{path}")
        sa.event.listen(engine, "checkout", lambda raw, *_: raw.execute("PRAGMA query_only=ON"))
        with open_url(f"sqlite:///{path}") as writer:
            writer.put("a", b"1", {})
        storage = SqlStorage(engine)
        assert storage.get("a").data == b"1"
        with pytest.raises(StorageRejectedError, match="read-only") as caught:
            storage.put("a", b"2", {})
        assert caught.value.kind == "locked"
        engine.dispose()

    def test_a_full_disk_is_named_and_nothing_is_applied(self, tmp_path: Path):
        engine = create_engine(f"sqlite:///{tmp_path}/memory.db")
        sa.event.listen(engine, "checkout", lambda raw, *_: raw.execute("PRAGMA max_page_count=40"))
        storage = SqlStorage(engine)
        version = storage.put("a", b"1", {})
        with pytest.raises(StorageRejectedError, match="space") as caught:
            storage.put_if_version("a", b"x" * 1_000_000, {}, version)
        assert caught.value.kind == "full"
        assert storage.get("a").version == version
        assert storage.put_if_version("a", b"2", {}, version)
        engine.dispose()

    def test_a_log_that_cannot_work_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(module, "_network_system", lambda path: "nfs4")
        with (
            open_url(f"sqlite:///{tmp_path}/x.db") as storage,
            pytest.raises(StorageConfigurationError, match="network file system") as caught,
        ):
            storage.get("a")
        assert "wal=false" in str(caught.value)

    def test_without_the_log_a_network_folder_is_used_with_a_warning(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(module, "_network_system", lambda path: "nfs4")
        path = tmp_path / "x.db"
        with open_url(f"sqlite:///{path}", wal=False) as storage:
            with pytest.warns(RuntimeWarning, match="one machine at a time"):
                storage.prepare()
            storage.put("a", b"1", {})
        assert pragma(path, "journal_mode") == "delete"

    def test_a_journal_that_stays_what_it_was_is_refused(self, tmp_path: Path):
        class Stubborn:
            def execute(self, sql: str) -> Any:
                return self

            def fetchone(self) -> tuple[str]:
                return ("delete",)

        with pytest.raises(StorageConfigurationError, match="the journal stays 'delete'"):
            module._check_journal(Stubborn(), str(tmp_path), wal=True)

    def test_a_file_locked_by_another_program_is_busy_and_not_applied(self, sqlite: Any):
        from wenchang.errors import BackendUnavailableError

        storage = sqlite.open(deadline=1, attempt_timeout=0.3)
        version = storage.put("a", b"1", {})
        rival = sqlite3.connect(sqlite.url.removeprefix("sqlite:///"), isolation_level=None)
        rival.execute("BEGIN IMMEDIATE")
        with pytest.raises(BackendUnavailableError) as caught:
            storage.put_if_version("a", b"2", {}, version)
        assert caught.value.outcome == "not_applied"
        assert storage.get("a").version == version
        rival.close()
        assert storage.put_if_version("a", b"2", {}, version)


class TestMemory:
    def test_threads_share_one_database(self, race: Callable[..., list[Any]]):
        with open_url("sqlite:///:memory:") as storage:
            results = race(
                [lambda n=n: storage.put_if_version("a", b"%d" % n, {}, None) for n in range(8)]
            )
            assert sum(isinstance(result, str) for result in results) == 1
            assert sum(isinstance(result, PreconditionFailedError) for result in results) == 7

    def test_it_does_not_survive_a_fork_and_says_so(self):
        with open_url("sqlite:///:memory:") as storage:
            version = storage.put("a", b"1", {})
            read, write = os.pipe()
            child = os.fork()
            if not child:
                try:
                    storage.get("a")
                    text = "no error"
                except StorageRejectedError as error:
                    text = str(error)
                os.write(write, text.encode())
                os._exit(0)
            os.close(write)
            with os.fdopen(read) as answer:
                assert "does not survive a fork" in answer.read()
            os.waitpid(child, 0)
            assert storage.get("a").version == version


WORKER = textwrap.dedent(
    """
    import sys, threading
    from wenchang.storage import PreconditionFailedError
    from wenchang.storage.locations import StorageLocation
    from wenchang_sql.opening import open_location

    storage = open_location(StorageLocation.parse(sys.argv[1]))
    increments = int(sys.argv[2])
    failures, done = [], []

    def work(number):
        try:
            for step in range(increments):
                storage.put(f"own/{sys.argv[3]}/{number}/{step}", b"x", {})
                while True:
                    found = storage.get("counter")
                    try:
                        storage.put_if_version(
                            "counter", b"%d" % (int(found.data) + 1), {}, found.version
                        )
                    except PreconditionFailedError:
                        continue
                    done.append(1)
                    break
        except BaseException as error:
            failures.append(repr(error))

    print("ready", flush=True)
    sys.stdin.readline()
    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    print(len(done), failures, flush=True)
    """
)


def start(*arguments: str, code: str = WORKER) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


class TestProcesses:
    def test_race_cas_threads_in_processes_meet_only_success_and_real_conflicts(self, place: Any):
        """On SQLite, `database is locked` is what others report here."""
        storage = place.open()
        storage.put("counter", b"0", {})
        separator = "&" if "?" in place.url else "?"
        url = f"{place.url}{separator}table={place.table}"
        workers = [start(url, "5", str(number)) for number in range(3)]
        for worker in workers:
            assert worker.stdout.readline() == "ready\n"
        for worker in workers:
            worker.stdin.write("go\n")
            worker.stdin.flush()
        for worker in workers:
            answer, _ = worker.communicate(timeout=120)
            assert answer == "20 []\n"
        assert storage.get("counter").data == b"60"
        assert len(storage.list_page("own/", None, 100)) == 60

    def test_durable_what_was_acknowledged_survives_kill_minus_nine(
        self, place: Any, size: Callable[[str], int]
    ):
        separator = "&" if "?" in place.url else "?"
        url = f"{place.url}{separator}table={place.table}"
        place.open().prepare()
        code = textwrap.dedent(
            """
            import sys
            from wenchang.storage.locations import StorageLocation
            from wenchang_sql.opening import open_location
            storage = open_location(StorageLocation.parse(sys.argv[1]))
            number = 0
            while True:
                version = storage.put_if_version(f"{sys.argv[2]}/{number}", b"x" * 500, {}, None)
                print(number, version, flush=True)
                number += 1
            """
        )
        acknowledged: dict[str, str] = {}
        rounds = max(2, size("kills") // 5)
        for turn in range(rounds):
            writer = start(url, str(turn), code=code)
            for _ in range(3 + turn):
                number, version = writer.stdout.readline().split()
                acknowledged[f"{turn}/{number}"] = version
            writer.kill()
            rest, _ = writer.communicate(timeout=30)
            for line in rest.split("\n")[:-1]:
                number, version = line.split()
                acknowledged[f"{turn}/{number}"] = version
        storage = place.open()
        for key, version in acknowledged.items():
            found = storage.get(key)
            assert found is not None
            assert found.version == version
        if place.kind == "sqlite":
            assert pragma(Path(place.url.removeprefix("sqlite:///")), "integrity_check") == "ok"

    def test_fork_children_get_connections_of_their_own(self, place: Any):
        storage = place.open()
        storage.put("counter", b"0", {})
        children = []
        for number in range(4):
            child = os.fork()
            if not child:
                status = 1
                try:
                    for step in range(10):
                        version = storage.put_if_version(f"{number}/{step}", b"x", {}, None)
                        if storage.get(f"{number}/{step}").version != version:
                            break
                    else:
                        status = 0
                finally:
                    os._exit(status)
            children.append(child)
        for step in range(10):
            storage.put(f"parent/{step}", b"x", {})
        for child in children:
            _, status = os.waitpid(child, 0)
            assert status == 0
        assert len(storage.list_versions("", None, 100)) == 51

    def test_fork_while_calls_on_the_file_go_on_is_refused_in_the_child(
        self, sqlite: Any, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr("wenchang_sql.calls._QUIET_SECONDS", 0.05)
        storage = sqlite.open()
        version = storage.put("a", b"1", {})
        storage._calls._shared.permits.get(timeout=1)  # a call that does not end
        try:
            child = os.fork()
            if not child:
                status = 1
                try:
                    storage.get("a")
                except StorageRejectedError as error:
                    status = 0 if "forked while calls" in str(error) else 2
                finally:
                    os._exit(status)
            _, status = os.waitpid(child, 0)
            assert status == 0
        finally:
            storage._calls._shared.permits.put(None)
        assert storage.get("a").version == version

    def test_fork_from_two_threads_at_once_goes_one_after_the_other(
        self, sqlite: Any, monkeypatch: pytest.MonkeyPatch
    ):
        handles = [sqlite.open(), sqlite.open(namespace="other")]
        for storage in handles:
            storage.put("a", b"1", {})
        ours = [storage._calls for storage in handles]
        forked: list[int] = []
        quieted: list[Calls] = []
        second = threading.Event()
        free: list[int] = []
        quiet, resume, renew = Calls._quiet, Calls._resume, Calls._renew

        def counted(calls: Calls) -> bool:
            is_quiet = quiet(calls)
            quieted.extend([calls] if calls in ours else [])
            if len(quieted) > len(ours):
                second.set()
            return is_quiet

        def slowly(calls: Calls) -> None:
            resume(calls)
            if calls in ours:
                # Time for the other fork to bring this file to rest while ours is not over yet.
                second.wait(0.3)

        def noting(calls: Calls, *, refusal: str | None) -> None:
            if calls in ours:
                free.append(calls._shared.permits.qsize())
            renew(calls, refusal=refusal)

        monkeypatch.setattr(Calls, "_renew", noting)
        monkeypatch.setattr(Calls, "_quiet", counted)
        monkeypatch.setattr(Calls, "_resume", slowly)

        def fork() -> None:
            child = os.fork()
            if not child:
                status = 1
                try:
                    at_rest = free == [0, 0]
                    status = 0 if at_rest and all(one.get("a") for one in handles) else 2
                finally:
                    os._exit(status)
            forked.append(os.waitpid(child, 0)[1])

        threads = [threading.Thread(target=fork) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert forked == [0, 0]
        for storage in handles:
            permits = storage._calls._shared.permits
            assert permits.qsize() == storage._calls._concurrency
            assert storage.get("a").data == b"1"


def test_importing_the_package_warns_of_nothing(tmp_path: Path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        storage = open_url(f"sqlite:///{tmp_path}/x.db")
        storage.put("a", b"1", {})
        storage.close()
