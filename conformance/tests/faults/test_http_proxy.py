"""The proxy as a whole: its log, many connections, outages, and what is left after its end."""

from __future__ import annotations

import http.client
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from wenchang_conformance.faults import Chaos, Fault, FaultProxy, LogEntry, RequestLog, Rule
from wenchang_conformance.faults.log import waves, without_secrets

TARGET_GONE = (ConnectionError, http.client.RemoteDisconnected)


def entry(number: int, started: int, ended: int | None) -> LogEntry:
    return LogEntry(
        number=number, method="GET", path="/", fault="", started=started, started_ns=0, ended=ended
    )


class TestLog:
    def test_it_counts_by_method_and_tells_what_became_of_each_request(self, proxy, client):
        proxy.script(
            Rule(fault=Fault.deliver_twice(), skip=1), Rule(fault=Fault.answer_in_front(503))
        )
        client.ask("PUT", "/a", b"1")
        client.ask("PUT", "/b", b"1")
        client.ask("GET", "/a")
        assert proxy.log.counts == {"PUT": 2, "GET": 1}
        assert proxy.log.total == 3
        told = [(each.fault, each.applied, each.status) for each in proxy.log.entries()]
        assert told == [
            ("AnswerInFront", 0, 503),
            ("DeliverTwice", 2, 200),
            ("PassThrough", 1, 404),
        ]

    def test_a_cut_connection_has_no_status_but_an_end(self, proxy, client):
        proxy.script(Rule(fault=Fault.drop_answer()))
        with pytest.raises(ConnectionResetError):
            client.ask("GET", "/a")
        (only,) = proxy.log.entries()
        assert (only.applied, only.status) == (1, None)
        assert only.ended is not None

    def test_query_secrets_are_hidden_and_harmless_values_kept(self):
        shown = without_secrets("/b/k?prefix=a%2F&X-Amz-Signature=abc&sig=s3cr3t&list-type=2&flag")
        assert shown == "/b/k?prefix=a%2F&X-Amz-Signature=…&sig=…&list-type=2&flag"

    def test_a_clients_sequence_is_one_wave_each_and_never_overlaps(self, proxy, client):
        for _ in range(5):
            client.ask("GET", "/a")
        assert proxy.log.high_water == 1
        assert [len(wave) for wave in proxy.log.waves()] == [1] * 5

    def test_overlapping_requests_are_one_wave_and_raise_the_high_water_mark(self, proxy, connect):
        proxy.script(Rule(fault=Fault.hold(), times=None))
        with ThreadPoolExecutor(4) as pool:
            for _ in range(3):
                replies = [pool.submit(connect().ask, "GET", "/a") for _ in range(4)]
                proxy.wait_for_held(4)
                assert proxy.release() == 4
                assert [reply.result(10).status for reply in replies] == [404] * 4
        assert proxy.log.high_water == 4
        assert [len(wave) for wave in proxy.log.waves()] == [4, 4, 4]

    def test_the_number_of_waves_is_the_longest_chain_without_overlap(self):
        slow, one, two, three = entry(0, 1, 8), entry(1, 2, 3), entry(2, 4, 5), entry(3, 6, None)
        assert waves([three, slow, two, one]) == ((slow, one), (two,), (three,))

    def test_requests_that_never_ended_stay_in_the_wave_they_began(self):
        hanging, other = entry(0, 1, None), entry(1, 2, 3)
        assert waves([hanging, other]) == ((hanging, other),)

    def test_it_keeps_the_newest_entries_and_exact_counts(self):
        log = RequestLog(limit=3)
        numbers = [log.begin("GET", "/", "PassThrough") for _ in range(5)]
        for number in numbers:
            log.applied(number)
            log.end(number, 200)
        assert [each.number for each in log.entries()] == [2, 3, 4]
        assert all(each.status == 200 and each.applied == 1 for each in log.entries())
        assert (log.total, log.high_water) == (5, 5)

    def test_clearing_forgets_what_is_over_and_keeps_what_is_under_way(self):
        log = RequestLog()
        number = log.begin("GET", "/", "PassThrough")
        log.clear()
        assert (log.total, log.high_water, log.entries()) == (0, 1, ())
        log.end(number, 200)
        other = log.begin("PUT", "/", "PassThrough")
        log.end(other, 200)
        assert [each.method for each in log.entries()] == ["PUT"]
        assert log.high_water == 1

    def test_waiting_for_what_never_comes_ends_and_says_what_was_seen(self):
        log = RequestLog()
        log.begin("PATCH", "/p", "Hang")
        with pytest.raises(TimeoutError, match="PATCH"):
            log.wait_for(lambda _: False, timeout=0.01)


class TestManyConnections:
    def test_many_clients_at_once_each_get_their_own_answers(self, proxy, connect):
        gate = threading.Barrier(32)

        def work(number: int) -> bool:
            client = connect()
            gate.wait(10)
            for turn in range(10):
                body = f"{number}-{turn}".encode()
                client.ask("PUT", f"/{number}", body)
                if client.ask("GET", f"/{number}").body != body:
                    return False
            return True

        with ThreadPoolExecutor(32) as pool:
            assert all(pool.map(work, range(32)))
        assert proxy.log.counts == {"PUT": 320, "GET": 320}
        assert proxy.log.high_water > 1

    def test_under_chaos_the_log_knows_which_writes_landed(self, proxy, connect, store):
        proxy.script(
            Chaos(
                seed=3,
                rates=(
                    (Fault.drop_request(), 0.1),
                    (Fault.drop_answer(), 0.1),
                    (Fault.answer_after(503), 0.1),
                    (Fault.deliver_twice(), 0.1),
                    (Fault.tear_head(header="etag"), 0.1),
                ),
            )
        )

        def work(number: int) -> None:
            for turn in range(20):
                try:
                    connect().ask("PUT", f"/{number}/{turn}", b"x")
                except (ConnectionError, http.client.HTTPException):
                    continue

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
        landed = [
            (each.method, each.path) for each in proxy.log.entries() for _ in range(each.applied)
        ]
        assert sorted(landed) == sorted(store.applied)
        assert len({each.fault for each in proxy.log.entries()}) == 6


class TestLifeCycle:
    def test_closing_leaves_no_thread_socket_or_listener(self, store):
        def descriptors() -> int:
            return len(list(Path("/dev/fd").iterdir()))

        def ours() -> list[threading.Thread]:
            # Other tests of this process may leave threads that come and go.
            names = ("FaultProxy", "process_request")
            new = set(threading.enumerate()) - before
            return [one for one in new if any(name in one.name for name in names)]

        before, files = set(threading.enumerate()), descriptors()
        clients = []
        with FaultProxy(("127.0.0.1", store.server_port)) as proxy:
            proxy.script(
                Rule(fault=Fault.hang(), times=3),
                Rule(fault=Fault.hold(), times=3),
                Rule(fault=Fault.drip(interval=60), times=3),
                Rule(fault=Fault.deliver_late(after=3600), times=3),
            )
            for _ in range(15):
                sock = socket.create_connection(proxy.address, 10)
                sock.sendall(b"GET /k HTTP/1.1\r\nHost: h\r\n\r\n")
                clients.append(sock)
            proxy.log.wait_for(lambda log: len(log) == 15)
            proxy.wait_for_held(6)
            idle = socket.create_connection(proxy.address, 10)
            clients.append(idle)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(proxy.address, 1)
        for sock in clients:
            sock.close()
        # The store's own threads end when they see their connections end.
        for thread in ours():
            # One that is listed may be about to start.
            with suppress(RuntimeError):
                thread.join(10)
        assert not ours()
        assert descriptors() <= files

    def test_closing_twice_is_harmless(self, store):
        proxy = FaultProxy(("127.0.0.1", store.server_port))
        proxy.close()
        proxy.close()

    def test_an_error_inside_the_block_is_not_hidden_by_the_proxys_own(self, store):
        def leave_the_block() -> None:
            with FaultProxy(("127.0.0.1", store.server_port)) as proxy:
                proxy.errors.append(LookupError())
                raise KeyError("the test's own")

        with pytest.raises(KeyError):
            leave_the_block()

    def test_an_outage_refuses_connections_and_the_same_port_serves_again(self, proxy, client):
        client.ask("PUT", "/k", b"x")
        with proxy.outage():
            with pytest.raises(TARGET_GONE):
                client.ask("GET", "/k")
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(proxy.address, 10)
        client.close()
        assert client.ask("GET", "/k").body == b"x"

    def test_a_target_that_is_gone_looks_like_a_reset(self, client, store):
        store.shutdown()
        store.server_close()
        with pytest.raises(TARGET_GONE):
            client.ask("GET", "/k")

    def test_all_connections_can_be_cut_while_new_ones_are_accepted(self, proxy, client, connect):
        client.ask("PUT", "/k", b"x")
        proxy.cut_all()
        with pytest.raises(TARGET_GONE):
            client.ask("GET", "/k")
        assert connect().ask("GET", "/k").body == b"x"

    def test_waiting_for_requests_that_are_never_held_ends(self, proxy):
        with pytest.raises(TimeoutError, match="only 0 of 1"):
            proxy.wait_for_held(1, timeout=0.01)

    def test_a_stuck_interloper_is_named_when_the_proxy_closes(self, store):
        release = threading.Event()
        proxy = FaultProxy(("127.0.0.1", store.server_port))
        proxy.script(Rule(fault=Fault.drop_answer(), interloper=lambda: release.wait(30)))
        with socket.create_connection(proxy.address, 10) as sock:
            sock.sendall(b"GET /k HTTP/1.1\r\nHost: h\r\n\r\n")
            proxy.log.wait_for(lambda log: len(log) == 1 and log[0].applied == 1)
            with pytest.raises(RuntimeError, match="did not end"):
                proxy.close(timeout=0.1)
            release.set()
