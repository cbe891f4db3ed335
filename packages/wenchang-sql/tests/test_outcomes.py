"""What a caller is told when an answer is lost, a server is silent, or a connection was dead."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

import pytest

from wenchang.errors import BackendUnavailableError
from wenchang.storage import PreconditionFailedError
from wenchang_conformance.faults import Fault, MySQL, PostgreSQL, Rule, StreamProxy, is_commit
from wenchang_conformance.faults import statements as sent
from wenchang_sql.opening import open_location
from wenchang_sql.statements import Prepared

WRITES = sent("INSERT", "UPDATE", "DELETE")


def address_of(place: Any) -> tuple[str, int, str, str]:
    """Return host, port, what stands before them and what stands behind."""
    before, at, rest = place.location().address.rpartition("@")
    server, _, database = rest.partition("/")
    host, _, port = server.partition(":")
    return host, int(port), before + at, database


@contextmanager
def proxied(place: Any) -> Iterator[tuple[StreamProxy, Callable[..., Any]]]:
    host, port, user, database = address_of(place)
    dialect = PostgreSQL if place.kind == "postgresql" else MySQL
    with StreamProxy((host, port), dialect=dialect) as proxy:
        opened = []

        def open_behind(**options: Any) -> Any:
            location = place.location(**{"deadline": 20, "attempt_timeout": 5, **options})
            behind = f"{user}127.0.0.1:{proxy.port}/{database}"
            opened.append(open_location(replace(location, address=behind)))
            return opened[-1]

        yield proxy, open_behind
        for storage in opened:
            storage.close()


@pytest.fixture(params=["postgresql", "mariadb"])
def server(request: pytest.FixtureRequest, place_of: Callable[[str], Any]) -> Any:
    return place_of(request.param)


class TestLostAnswers:
    def _decisive(self, place: Any) -> Callable[[Any], bool]:
        """The statement with which a write takes effect: where the test server's default isolation
        is not READ COMMITTED it is the COMMIT."""
        explicit = place.kind == "postgresql" and _default_isolation(place) != "read committed"
        return is_commit if explicit else WRITES

    def test_out_landed_a_write_whose_commit_was_not_answered_returns_its_version(
        self, server: Any
    ):
        decisive = self._decisive(server)
        with proxied(server) as (proxy, open_behind):
            storage = open_behind()
            first = storage.put("a", b"1", {})
            for lose in (
                lambda: storage.put_if_version("a", b"2", {}, first),
                lambda: storage.put_if_version("b", b"2", {}, None),
                lambda: storage.put("c", b"2", {}),
            ):
                proxy.script(Rule(match=decisive, fault=Fault.drop_answer()))
                version = lose()
                assert proxy.exhausted
                key = proxy and next(
                    entry.key
                    for entry in server.open().list_page("", None, 9)
                    if entry.version == version
                )
                assert storage.get(key).data == b"2"

    def test_a_write_that_never_arrived_is_sent_again(self, server: Any):
        decisive = self._decisive(server)
        with proxied(server) as (proxy, open_behind):
            storage = open_behind()
            first = storage.put("a", b"1", {})
            proxy.script(Rule(match=decisive, fault=Fault.drop_request()))
            version = storage.put_if_version("a", b"2", {}, first)
            assert proxy.exhausted
            assert storage.get("a").version == version

    def test_out_delete_a_delete_that_was_not_answered_returns(self, server: Any):
        decisive = self._decisive(server)
        with proxied(server) as (proxy, open_behind):
            storage = open_behind()
            version = storage.put("a", b"1", {})
            proxy.script(Rule(match=decisive, fault=Fault.drop_answer()))
            storage.delete_if_version("a", version)
            assert storage.get("a") is None

    def test_out_landed_a_write_that_others_replaced_at_once_is_still_found(self, server: Any):
        decisive = self._decisive(server)
        direct = server.open()

        def rivals() -> None:
            for number in range(5):
                direct.put_if_version("a", b"rival %d" % number, {}, direct.get("a").version)

        with proxied(server) as (proxy, open_behind):
            storage = open_behind()
            first = storage.put("a", b"1", {})
            rule = Rule(match=decisive, fault=Fault.drop_answer(), interloper=rivals)
            proxy.script(rule)
            version = storage.put_if_version("a", b"mine", {}, first)
        assert version not in {first, direct.get("a").version}
        assert direct.get("a").data == b"rival 4"


def _default_isolation(place: Any) -> str:
    from wenchang_sql.databases import fetch
    from wenchang_sql.opening import engine_for

    engine, _, _ = engine_for(place.location())
    proxied_connection = engine.raw_connection()
    try:
        raw = proxied_connection.dbapi_connection
        return str(fetch(raw, "SHOW default_transaction_isolation")[0][0])
    finally:
        proxied_connection.close()
        engine.dispose()


class TestSilence:
    def test_out_bounded_a_server_that_never_answers_ends_with_the_deadline(self, server: Any):
        with proxied(server) as (proxy, open_behind):
            storage = open_behind(deadline=4, attempt_timeout=1.5)
            version = storage.put("a", b"1", {})
            proxy.script(Rule(fault=Fault.hang(), times=None))
            for call in (
                lambda: storage.get("a"),
                lambda: storage.list_page("", None, 10),
                lambda: storage.put_if_version("a", b"2", {}, version),
            ):
                began = time.monotonic()
                with pytest.raises(BackendUnavailableError) as caught:
                    call()
                assert caught.value.reason == "timeout"
                # Twice the deadline: the machine of the tests may be busy.
                assert time.monotonic() - began < 8

    def test_out_unknown_a_write_that_is_never_answered_may_have_taken_effect(self, server: Any):
        with proxied(server) as (proxy, open_behind):
            storage = open_behind(deadline=4, attempt_timeout=1.5)
            version = storage.put("a", b"1", {})
            proxy.script(Rule(match=WRITES, fault=Fault.hang(), times=None))
            with pytest.raises(BackendUnavailableError) as caught:
                storage.put_if_version("a", b"2", {}, version)
            assert caught.value.outcome == "unknown"
            assert caught.value.reason == "timeout"

    def test_out_bounded_a_port_that_accepts_and_says_nothing_is_not_applied(self, server: Any):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            location = server.location(deadline=1, attempt_timeout=0.4)
            _, _, user, database = address_of(server)
            address = f"{user}127.0.0.1:{silent.getsockname()[1]}/{database}"
            with open_location(replace(location, address=address)) as storage:
                began = time.monotonic()
                with pytest.raises(BackendUnavailableError) as caught:
                    storage.put("a", b"1", {})
                assert caught.value.outcome == "not_applied"
                assert caught.value.reason == "timeout"
                assert time.monotonic() - began < 3

    def test_out_bounded_an_answer_that_drips_ends_at_twice_the_deadline(self, server: Any):
        version = server.open().put("a", b"x" * 3000, {})
        host, port, user, database = address_of(server)
        with _Dripper((host, port)) as dripper:
            location = server.location(deadline=2, attempt_timeout=1)
            address = f"{user}127.0.0.1:{dripper.port}/{database}"
            with open_location(replace(location, address=address)) as storage:
                assert storage.get("a").version == version
                dripper.drips = True
                began = time.monotonic()
                with pytest.raises(BackendUnavailableError):
                    storage.get("a")
                assert time.monotonic() - began < 4

    def test_a_refused_connection_is_unavailable_and_not_applied(self, server: Any):
        with socket.create_server(("127.0.0.1", 0)) as closing:
            port = closing.getsockname()[1]
        _, _, user, database = address_of(server)
        location = server.location(deadline=0.5, attempt_timeout=0.2)
        address = f"{user}127.0.0.1:{port}/{database}"
        with open_location(replace(location, address=address)) as storage:
            with pytest.raises(BackendUnavailableError) as caught:
                storage.put("a", b"1", {})
            assert (caught.value.reason, caught.value.outcome) == ("unavailable", "not_applied")
            assert caught.value.__cause__ is not None
            assert str(port) not in f"{caught.value} {caught.value!r}"


class _Dripper:
    """A relay that, once told so, gives the client a byte of each answer at a time."""

    def __init__(self, target: tuple[str, int]) -> None:
        self.target = target
        self.drips = False
        self._ended = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(0.1)
        self.port = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(10)
        self._listener.close()

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                client, _ = self._listener.accept()
            except TimeoutError:
                continue
            server = socket.create_connection(self.target)
            for source, sink, back in ((client, server, False), (server, client, True)):
                source.settimeout(0.1)
                thread = threading.Thread(target=self._pump, args=(source, sink, back), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _pump(self, source: socket.socket, sink: socket.socket, back: bool) -> None:
        try:
            while not self._ended.is_set():
                try:
                    data = source.recv(65536)
                except TimeoutError:
                    continue
                if not data:
                    break
                if not (back and self.drips):
                    sink.sendall(data)
                    continue
                for byte in data:
                    if self._ended.wait(0.05):
                        break
                    sink.sendall(bytes([byte]))
        except OSError:
            pass
        finally:
            source.close()
            sink.close()


class TestDeadConnections:
    def test_idle_connections_that_the_server_closed_cost_no_outcome(self, server: Any):
        """A create or a put on a dead connection could not be settled: it must not be sent there."""
        with proxied(server) as (proxy, open_behind):
            storage = open_behind()
            for number in range(4):
                storage.put(f"warm/{number}", b"", {})
            proxy.cut_all()
            storage.put_if_version("a", b"1", {}, None)
            proxy.cut_all()
            storage.put("b", b"1", {})
            proxy.cut_all()
            assert storage.get("a").data == b"1"

    def test_after_an_outage_calls_succeed_again(self, server: Any):
        with proxied(server) as (proxy, open_behind):
            storage = open_behind(deadline=4, attempt_timeout=1.5)
            version = storage.put("a", b"1", {})
            with proxy.outage(), pytest.raises(BackendUnavailableError):
                storage.get("a")
            assert storage.put_if_version("a", b"2", {}, version)


class TestRowCounts:
    @pytest.fixture
    def blind(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[int | None], None]:
        def use(count: int | None) -> None:
            def blind_count(self: Prepared, raw: Any, parameters: Any) -> int | None:
                self.run(raw, parameters).close()
                return count

            monkeypatch.setattr(Prepared, "count", blind_count)

        return use

    @pytest.mark.parametrize("count", [-1, None, 3])
    def test_an_unusable_row_count_is_neither_success_nor_conflict(
        self, place: Any, blind: Callable[[int | None], None], count: int | None
    ):
        storage = place.open(deadline=5)
        first = storage.put("a", b"1", {})
        blind(count)
        second = storage.put_if_version("a", b"2", {}, first)
        assert storage.get("a").version == second
        # The stale write changed nothing, and the lineage proves it.
        with pytest.raises(PreconditionFailedError):
            storage.put_if_version("a", b"3", {}, first)
        assert storage.get("a").version == second
        if place.kind == "mariadb":
            # There an existing key is an error of its own, and no count.
            with pytest.raises(PreconditionFailedError):
                storage.put_if_version("a", b"4", {}, None)
            return
        with pytest.raises(BackendUnavailableError) as caught:
            storage.put_if_version("a", b"4", {}, None)
        assert caught.value.outcome == "unknown"
        assert "row counts" in str(caught.value.__cause__)
