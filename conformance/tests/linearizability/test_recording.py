"""Recording: what is written down for each call, from threads, processes, and a killed one."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from wenchang.storage import (
    BackendUnavailableError,
    InvalidStorageKeyError,
    ListedObject,
    PreconditionFailedError,
    StoredObject,
)
from wenchang.storage.memory import InMemoryStorage
from wenchang_conformance.linearizability import (
    SOME,
    History,
    Kind,
    Operation,
    Outcome,
    Recorder,
    RecordingStorage,
    Verdict,
    assert_linearizable,
    check,
)


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


class Scripted:
    """A storage that raises what it is told to, after having done the call if `lands`."""

    def __init__(self, error: Exception, *, lands: bool) -> None:
        self.inner = InMemoryStorage()
        self.error, self.lands = error, lands

    def get(self, key: str) -> StoredObject | None:
        return self.inner.get(key)

    def put(self, *arguments: Any) -> str:
        if self.lands:
            self.inner.put(*arguments)
        raise self.error

    def put_if_version(self, *arguments: Any) -> str:
        if self.lands:
            self.inner.put_if_version(*arguments)
        raise self.error

    def delete_if_version(self, *arguments: Any) -> None:
        raise self.error

    def list_page(self, prefix: str, start_after: str | None, limit: int) -> list[ListedObject]:
        return list(self.inner.list_page(prefix, start_after, limit))


class TestRecorder:
    def test_times_are_strictly_increasing_in_every_thread(self, recorder):
        gate = threading.Barrier(8)
        times: list[list[int]] = [[] for _ in range(8)]

        def work(number: int) -> None:
            gate.wait(10)
            times[number] += [recorder.now() for _ in range(500)]

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert all(mine == sorted(mine) for mine in times)
        assert len({each for mine in times for each in mine}) == 4000

    def test_what_is_under_way_is_unknown_and_open(self, recorder):
        recorder.begin(Kind.PUT, "k", wrote=b"a", client="one")
        (operation,) = recorder.history()
        assert (operation.outcome, operation.end, operation.client) == (
            Outcome.UNKNOWN,
            None,
            "one",
        )

    def test_a_finished_operation_has_its_outcome_and_end(self, recorder):
        pending = recorder.begin(Kind.READ, "k")
        between = recorder.now()
        pending.finish(Outcome.OK, saw=b"a")
        (operation,) = recorder.history()
        assert (operation.outcome, operation.saw) == (Outcome.OK, b"a")
        assert operation.end is not None
        assert operation.start < between < operation.end


class TestRecordingStorage:
    def test_each_method_is_recorded_as_what_it_means(self, recorder):
        storage = RecordingStorage(InMemoryStorage(), recorder, client="c")
        storage.get("k")
        first = storage.put_if_version("k", b"a", {}, None)
        second = storage.put_if_version("k", b"b", {}, first)
        third = storage.put("k", b"c", {"n": "v"})
        found = storage.get("k")
        assert found is not None
        assert (found.data, dict(found.metadata), found.version) == (b"c", {"n": "v"}, third)
        with pytest.raises(PreconditionFailedError):
            storage.put_if_version("k", b"d", {}, second)
        storage.delete_if_version("k", third)
        with pytest.raises(PreconditionFailedError):
            storage.delete_if_version("k", third)
        recorded = [
            (each.kind, each.outcome, each.wrote, each.expected, each.saw)
            for each in recorder.history()
        ]
        ok, refused = Outcome.OK, Outcome.REFUSED
        assert recorded == [
            (Kind.READ, ok, None, None, None),
            (Kind.CREATE, ok, b"a", None, None),
            (Kind.REPLACE, ok, b"b", b"a", None),
            (Kind.PUT, ok, b"c", None, None),
            (Kind.READ, ok, None, None, b"c"),
            (Kind.REPLACE, refused, b"d", b"b", None),
            (Kind.DELETE, ok, None, b"c", None),
            (Kind.DELETE, refused, None, b"c", None),
        ]
        assert_linearizable(recorder.history())

    def test_the_empty_body_is_a_write_like_any_other(self, recorder):
        storage = RecordingStorage(InMemoryStorage(), recorder)
        version = storage.put("k", b"", {})
        storage.put_if_version("k", b"x", {}, version)
        assert [each.expected for each in recorder.history()] == [None, b""]

    @pytest.mark.parametrize(
        ("error", "outcome"),
        [
            (BackendUnavailableError("timeout", outcome="unknown"), Outcome.UNKNOWN),
            (BackendUnavailableError("timeout"), Outcome.UNKNOWN),
            (BackendUnavailableError("timeout", outcome="not_applied"), Outcome.NOT_APPLIED),
            (InvalidStorageKeyError("no"), Outcome.NOT_APPLIED),
            (ValueError("a bug of the backend"), Outcome.UNKNOWN),
            (OSError("a bug of the backend"), Outcome.UNKNOWN),
        ],
    )
    def test_only_an_error_that_promises_it_means_not_applied(self, recorder, error, outcome):
        storage = RecordingStorage(Scripted(error, lands=False), recorder)
        with pytest.raises(type(error)):
            storage.put("k", b"a", {})
        with pytest.raises(type(error)):
            storage.put_if_version("k", b"b", {}, None)
        with pytest.raises(type(error)):
            storage.delete_if_version("k", "v")
        assert [each.outcome for each in recorder.history()] == [outcome] * 3

    def test_a_conflict_with_the_own_landed_write_is_found_out(self, recorder):
        storage = RecordingStorage(Scripted(PreconditionFailedError("k"), lands=True), recorder)
        with pytest.raises(PreconditionFailedError):
            storage.put_if_version("k", b"mine", {}, None)
        storage.get("k")
        report = check(recorder.history())
        assert report.verdict is Verdict.VIOLATION

    def test_what_a_refusal_has_read_counts_as_a_read(self, recorder):
        current = StoredObject(b"rival", {}, "v")
        storage = RecordingStorage(
            Scripted(PreconditionFailedError("k", current=current), lands=False), recorder
        )
        with pytest.raises(PreconditionFailedError):
            storage.put_if_version("k", b"mine", {}, None)
        refused, read = recorder.history()
        assert (read.kind, read.saw) == (Kind.READ, b"rival")
        assert (read.start, read.end) == (refused.start, refused.end)

    def test_a_version_given_to_two_writes_stands_for_the_one_this_client_met(self, recorder):
        class OneVersion(InMemoryStorage):
            """Accepts its only version for whatever is there."""

            def get(self, key: str) -> StoredObject | None:
                found = super().get(key)
                return found and StoredObject(found.data, found.metadata, "same")

            def put_if_version(self, key, data, metadata, expected):
                super().put(key, data, metadata)
                return "same"

        shared = OneVersion()
        one, two = (RecordingStorage(shared, recorder, client=name) for name in ("1", "2"))
        one.put_if_version("k", b"a", {}, None)
        two.get("k")
        two.put_if_version("k", b"b", {}, "same")
        one.put_if_version("k", b"c", {}, "same")
        assert [each.expected for each in recorder.history()] == [None, None, b"a", b"a"]
        assert check(recorder.history()).verdict is Verdict.VIOLATION

    def test_a_version_that_nobody_met_stands_for_some_write(self, recorder):
        storage = RecordingStorage(InMemoryStorage(), recorder)
        with pytest.raises(PreconditionFailedError):
            storage.put_if_version("k", b"a", {}, "made-up")
        assert next(iter(recorder.history())).expected is SOME

    def test_a_body_with_anothers_metadata_is_found_out_by_the_tag(self, recorder):
        class Torn(InMemoryStorage):
            def get(self, key: str) -> StoredObject | None:
                found = super().get(key)
                return found and StoredObject(found.data, {"write": "1"}, found.version)

        storage = RecordingStorage(Torn(), recorder, tag="write")
        storage.put("k", b"a", {"write": "1"})
        storage.put("k", b"b", {"write": "2"})
        storage.get("k")
        report = check(recorder.history())
        assert report.verdict is Verdict.VIOLATION
        assert "nobody wrote" in report.explain()


class TestListings:
    def test_a_page_is_a_read_of_each_key_it_tells_about(self, recorder):
        storage = RecordingStorage(InMemoryStorage(), recorder, keys=["a/0", "a/3", "b"])
        for key in ("a/1", "a/2", "a/4"):
            storage.put(key, key.encode(), {})
        storage.list_page("a/", None, 2)
        listed = {each.key: each.saw for each in recorder.history() if each.kind is Kind.LIST}
        assert listed == {"a/0": None, "a/1": b"a/1", "a/2": b"a/2"}
        storage.list_page("a/", "a/2", 2)
        listed = {each.key: each.saw for each in recorder.history() if each.kind is Kind.LIST}
        assert listed == {"a/0": None, "a/1": b"a/1", "a/2": b"a/2", "a/3": None, "a/4": b"a/4"}
        assert_linearizable(recorder.history())

    def test_a_version_not_yet_known_is_named_when_its_write_is(self, recorder):
        shared = InMemoryStorage()
        shared.put("k", b"before", {})
        storage = RecordingStorage(shared, recorder)
        storage.list_page("", None, 10)
        assert [each.saw for each in recorder.history()] == [SOME]
        storage.get("k")
        assert [each.saw for each in recorder.history()] == [b"before", b"before"]

    def test_a_stale_listing_is_found_out_by_the_tag_whatever_its_version(self, recorder):
        class Stale(InMemoryStorage):
            def list_page(self, prefix, start_after, limit):
                return [
                    ListedObject(each.key, {"write": "1"}, each.version)
                    for each in super().list_page(prefix, start_after, limit)
                ]

        storage = RecordingStorage(Stale(), recorder, tag="write")
        storage.put("k", b"a", {"write": "1"})
        storage.list_page("", None, 10)
        assert_linearizable(recorder.history())
        storage.put("k", b"b", {"write": "2"})
        storage.list_page("", None, 10)
        assert check(recorder.history()).verdict is Verdict.VIOLATION


def race(storage: RecordingStorage, number: int, gate: threading.Barrier, turns: int) -> None:
    gate.wait(20)
    for turn in range(turns):
        body = f"{number}-{turn}".encode()
        found = storage.get("k")
        try:
            if found is None:
                storage.put_if_version("k", body, {}, None)
            elif turn % 7 == 6:
                storage.delete_if_version("k", found.version)
            elif turn % 5 == 4:
                storage.put("k", body, {})
            else:
                storage.put_if_version("k", body, {}, found.version)
        except PreconditionFailedError:
            continue


class TestRaces:
    @pytest.fixture
    def eager_switching(self) -> Iterator[None]:
        """Let threads take turns often enough that calls of microseconds overlap."""
        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        yield
        sys.setswitchinterval(before)

    def test_threads_on_the_memory_backend_are_linearizable_and_overlapped(
        self, recorder, eager_switching
    ):
        shared = InMemoryStorage()
        gate = threading.Barrier(8)
        threads = [
            threading.Thread(
                target=race,
                args=(RecordingStorage(shared, recorder, client=str(number)), number, gate, 100),
            )
            for number in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        history = recorder.history()
        assert_linearizable(history)
        ordered = sorted(history, key=lambda each: each.start)
        assert any(later.start < (each.end or 0) for each, later in pairwise(ordered))

    def test_a_check_then_act_storage_is_caught(self, recorder):
        class CheckThenAct(InMemoryStorage):
            def put_if_version(self, key, data, metadata, expected):
                found = self.get(key)
                if (found.version if found else None) != expected:
                    raise PreconditionFailedError(key)
                gate.wait(10)
                return self.put(key, data, metadata)

        shared = CheckThenAct()
        version = shared.put("k", b"start", {})
        gate = threading.Barrier(2)
        clients = [RecordingStorage(shared, recorder, client=str(n)) for n in range(2)]
        threads = [
            threading.Thread(target=client.put_if_version, args=("k", body, {}, version))
            for client, body in zip(clients, (b"a", b"b"), strict=True)
        ]
        clients[0].get("k")
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        report = check(recorder.history(), initial={"k": b"start"})
        assert report.verdict is Verdict.VIOLATION


def journalled(path: str, ready: Any) -> None:
    recorder = Recorder(journal=Path(path))
    recorder.begin(Kind.PUT, "k", wrote=b"done", client="child").finish(Outcome.OK)
    recorder.begin(Kind.READ, "k", client="child").finish(Outcome.OK, saw=b"done")
    recorder.begin(Kind.REPLACE, "k", wrote=b"open", expected=b"done", client="child")
    ready.set()
    signal.pause()


class TestProcesses:
    def test_the_journal_of_a_killed_process_tells_what_was_under_way(self, tmp_path):
        context = multiprocessing.get_context("spawn")
        ready = context.Event()
        path = tmp_path / "journal"
        before = Recorder()
        started = before.now()
        child = context.Process(target=journalled, args=(str(path), ready))
        child.start()
        assert ready.wait(30)
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        child.join(30)
        child.close()
        mine = Recorder()
        mine.begin(Kind.READ, "k", client="parent").finish(Outcome.OK, saw=b"open")
        history = History.from_journal(path)
        assert [(each.outcome, each.wrote, each.saw) for each in history] == [
            (Outcome.OK, b"done", None),
            (Outcome.OK, None, b"done"),
            (Outcome.UNKNOWN, b"open", None),
        ]
        merged = history.merged(mine.history())
        assert all(started < each.start for each in merged)
        assert_linearizable(merged)

    def test_a_line_cut_short_is_ignored(self, tmp_path):
        path = tmp_path / "journal"
        with Recorder(journal=path) as recorder:
            pending = recorder.begin(Kind.PUT, "k", wrote=b"a")
            whole = path.read_bytes()
            pending.finish(Outcome.OK)
        recorder.close()
        path.write_bytes(path.read_bytes()[:-3])
        assert path.read_bytes().startswith(whole)
        (operation,) = History.from_journal(path)
        assert operation.outcome is Outcome.UNKNOWN

    def test_a_whole_journal_is_the_history(self, tmp_path):
        path = tmp_path / "journal"
        with Recorder(journal=path) as recorder:
            storage = RecordingStorage(
                InMemoryStorage(), recorder, client="c", keys=["other"], tag="write"
            )
            version = storage.put("k", b"a", {"write": "1"})
            storage.list_page("", None, 5)
            storage.delete_if_version("k", version)
            assert History.from_journal(path) == recorder.history()


def test_an_operation_names_itself_for_a_reader():
    operation = Operation(
        key="k",
        kind=Kind.REPLACE,
        outcome=Outcome.REFUSED,
        start=1,
        end=2,
        wrote=b"x" * 100,
        expected=SOME,
        client="c1",
    )
    text = f"c1 replace k expecting some write writing '{'x' * 20}...' -> refused"
    assert str(operation) == text
