"""Each HTTP fault, seen from the client and at the server."""

from __future__ import annotations

import http.client
import json
import socket
import threading

import pytest

from wenchang_conformance.faults import (
    Chaos,
    Fault,
    FaultProxy,
    Rule,
    Steps,
    azure_error,
    gcs_error,
    matching,
    s3_error,
)

PUT = matching("PUT")
CUT = (ConnectionResetError, http.client.RemoteDisconnected)


def once(fault: Fault) -> Rule:
    return Rule(match=PUT, fault=fault)


class TestWithoutAScript:
    def test_requests_and_answers_pass_unharmed(self, client, store):
        created = client.ask("PUT", "/k", b"body", If_None_Match="*")
        assert created.status == 200
        read = client.ask("GET", "/k")
        assert (read.status, read.body) == (200, b"body")
        assert read.headers["etag"] == created.headers["etag"] == store.objects["/k"][1]
        assert client.ask("PUT", "/k", b"x", If_None_Match="*").status == 412

    def test_one_connection_carries_many_requests(self, client):
        client.ask("PUT", "/k", b"1")
        before = client.connection.sock
        for _ in range(20):
            assert client.ask("GET", "/k").body == b"1"
        assert client.connection.sock is before

    def test_a_head_has_the_length_and_no_body_and_the_connection_goes_on(self, client):
        client.ask("PUT", "/k", b"four")
        head = client.ask("HEAD", "/k")
        assert (head.headers["content-length"], head.body) == ("4", b"")
        assert client.ask("DELETE", "/k").status == 204
        assert client.ask("GET", "/k").status == 404

    def test_a_chunked_request_reaches_the_server_whole(self, client, store):
        parts = [b"one", b"two", b"three" * 1000]
        client.connection.request(
            "PUT", "/k", iter(parts), {"Transfer-Encoding": "chunked"}, encode_chunked=True
        )
        assert client.connection.getresponse().read() == b""
        assert store.objects["/k"][0] == b"".join(parts)

    def test_a_chunked_answer_arrives_whole_and_the_connection_goes_on(self, client):
        client.ask("PUT", "/k", b"0123456789" * 10)
        assert client.ask("GET", "/k?chunked").body == b"0123456789" * 10
        assert client.ask("GET", "/k").body == b"0123456789" * 10

    def test_an_answer_that_only_ends_with_the_connection_arrives_whole(self, client):
        client.ask("PUT", "/k", b"until the end")
        assert client.ask("GET", "/k?until-close").body == b"until the end"

    def test_a_client_that_waits_for_100_continue_gets_it(self, raw, store):
        raw.sendall(
            b"PUT /k HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n"
        )
        assert raw.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        raw.sendall(b"abc")
        assert raw.recv(1000).startswith(b"HTTP/1.1 200")
        assert store.objects["/k"][0] == b"abc"
        assert "Expect" not in store.seen_headers[-1]

    def test_a_large_body_passes_both_ways(self, client):
        body = bytes(range(256)) * 16_384
        client.ask("PUT", "/k", body)
        assert client.ask("GET", "/k").body == body

    def test_nonsense_is_answered_400_and_never_forwarded(self, raw, store, proxy):
        raw.sendall(b"this is not http\r\n\r\n")
        assert raw.recv(1000).startswith(b"HTTP/1.1 400")
        assert store.seen_targets == []
        assert proxy.log.total == 0

    def test_a_request_cut_off_by_the_client_is_never_forwarded(self, raw, store):
        raw.sendall(b"PUT /k HTTP/1.1\r\nHost: h\r\nContent-Length: 30\r\n\r\nhalf")
        raw.shutdown(socket.SHUT_WR)
        with pytest.raises(ConnectionResetError):
            while raw.recv(1000):
                pass
        assert store.seen_targets == []


class TestFaultsBeforeTheServer:
    @pytest.mark.parametrize(
        ("reset", "error"), [(True, ConnectionResetError), (False, http.client.RemoteDisconnected)]
    )
    def test_a_dropped_request_is_cut_off_and_not_applied(self, proxy, client, store, reset, error):
        proxy.script(once(Fault.drop_request(reset=reset)))
        with pytest.raises(error) as caught:
            client.ask("PUT", "/k", b"x")
        assert type(caught.value) is error
        assert store.applied == []
        assert client.ask("PUT", "/k", b"x").status == 200

    @pytest.mark.parametrize("status", [409, 429, 501, 503])
    def test_an_answer_in_front_carries_its_head_and_body_and_nothing_is_applied(
        self, proxy, client, store, status
    ):
        proxy.script(
            once(Fault.answer_in_front(status, headers=(("Retry-After", "1"),), body=b"coded"))
        )
        before = client.ask("GET", "/k")
        reply = client.ask("PUT", "/k", b"x")
        assert before.status == 404
        assert (reply.status, reply.body, reply.headers["retry-after"]) == (status, b"coded", "1")
        assert store.applied == []
        assert client.ask("PUT", "/k", b"x").status == 200

    def test_an_answer_in_front_of_a_head_has_no_body(self, proxy, client):
        proxy.script(Rule(fault=Fault.answer_in_front(503, body=b"not for you")))
        assert client.ask("HEAD", "/k").body == b""
        assert client.ask("GET", "/k").body == b"absent"

    def test_each_providers_refusal_has_its_own_form(self, proxy, client, store):
        proxy.script(
            Steps(
                faults=(
                    s3_error(503, "SlowDown", retry_after=2),
                    gcs_error(429, "rateLimitExceeded"),
                    azure_error(503, "ServerBusy"),
                )
            )
        )
        slow, limited, busy = (client.ask("PUT", "/k", b"x") for _ in range(3))
        assert b"<Code>SlowDown</Code>" in slow.body
        assert slow.headers["retry-after"] == "2"
        assert json.loads(limited.body)["error"]["errors"][0]["reason"] == "rateLimitExceeded"
        assert (busy.status, busy.headers["x-ms-error-code"]) == (503, "ServerBusy")
        assert store.applied == []

    def test_a_hang_never_answers_and_applies_nothing(self, proxy, connect, store):
        proxy.script(once(Fault.hang()))
        with pytest.raises(TimeoutError):
            connect(timeout=0.2).ask("PUT", "/k", b"x")
        assert store.applied == []

    def test_stripped_conditions_reach_the_server_in_no_form(self, proxy, client, store):
        client.ask("PUT", "/k", b"old")
        proxy.script(Rule(fault=Fault.strip_conditions(), times=None))
        target = "/k?ifGenerationMatch=0&uploadType=media&ifMetagenerationMatch=1&q=a+b"
        reply = client.ask(
            "PUT", target, b"new", If_None_Match="*", x_goog_if_generation_match="0", X_Other="kept"
        )
        assert reply.status == 200
        assert store.objects["/k"][0] == b"new"
        assert store.seen_targets[-1] == "/k?uploadType=media&q=a+b"
        names = {name.lower() for name in store.seen_headers[-1]}
        assert not names & {"if-none-match", "x-goog-if-generation-match"}
        assert "x-other" in names
        client.ask("DELETE", "/k?ifGenerationMatch=7", If_Match='"stale"')
        assert store.seen_targets[-1] == "/k"
        assert "/k" not in store.objects


class TestFaultsBehindTheServer:
    @pytest.mark.parametrize(
        ("reset", "error"), [(True, ConnectionResetError), (False, http.client.RemoteDisconnected)]
    )
    def test_a_dropped_answer_is_a_cut_and_the_write_has_landed(
        self, proxy, client, store, reset, error
    ):
        proxy.script(once(Fault.drop_answer(reset=reset)))
        with pytest.raises(error) as caught:
            client.ask("PUT", "/k", b"x")
        assert type(caught.value) is error
        assert store.applied == [("PUT", "/k")]

    @pytest.mark.parametrize("status", [500, 503, 429])
    def test_a_bare_answer_after_commit_hides_a_landed_write(self, proxy, client, store, status):
        proxy.script(once(Fault.answer_after(status)))
        reply = client.ask("PUT", "/k", b"x")
        assert (reply.status, reply.body) == (status, b"")
        assert "etag" not in reply.headers
        assert store.applied == [("PUT", "/k")]

    def test_a_truncated_body_has_its_whole_head_and_ends_early(self, proxy, client):
        client.ask("PUT", "/k", b"0123456789")
        proxy.script(Rule(match=matching("GET"), fault=Fault.truncate_body(keep=4)))
        client.connection.request("GET", "/k")
        answer = client.connection.getresponse()
        assert answer.getheader("Content-Length") == "10"
        with pytest.raises(http.client.IncompleteRead) as caught:
            answer.read()
        assert caught.value.partial == b"0123"

    def test_an_answer_without_a_body_is_not_truncated(self, proxy, client):
        proxy.script(Rule(fault=Fault.truncate_body()))
        assert client.ask("DELETE", "/k").status == 204

    def test_a_torn_head_ends_inside_the_value_it_names(self, proxy, raw, store):
        proxy.script(once(Fault.tear_head(header="etag", keep=6)))
        raw.sendall(b"PUT /k HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx")
        torn = b""
        while data := raw.recv(1000):
            torn += data
        assert torn.startswith(b"HTTP/1.1 200 OK\r\n")
        assert torn.endswith(b'ETag: "00000')
        assert store.applied == [("PUT", "/k")]

    def test_a_torn_head_without_a_named_header_ends_in_its_middle(self, proxy, raw):
        proxy.script(Rule(fault=Fault.tear_head(header="x-no-such")))
        raw.sendall(b"GET /k HTTP/1.1\r\nHost: h\r\n\r\n")
        torn = b""
        while data := raw.recv(1000):
            torn += data
        assert torn.startswith(b"HTTP/1.1 404")
        assert b"\r\n\r\n" not in torn

    def test_a_hang_after_commit_never_answers_a_landed_write(self, proxy, connect, store):
        proxy.script(once(Fault.hang(applied=True)))
        with pytest.raises(TimeoutError):
            connect(timeout=0.2).ask("PUT", "/k", b"x")
        proxy.log.wait_for(lambda log: log[0].applied == 1)
        assert store.applied == [("PUT", "/k")]

    def test_a_dripped_answer_arrives_whole_in_single_bytes(self, proxy, raw):
        proxy.script(Rule(fault=Fault.drip(interval=0.0005)))
        raw.sendall(b"GET /k HTTP/1.1\r\nHost: h\r\n\r\n")
        pieces = []
        while not b"".join(pieces).endswith(b"\r\n\r\nabsent"):
            pieces.append(raw.recv(1000))
        assert len(pieces) > 10

    def test_a_connection_cut_after_the_answer_delivered_it(self, proxy, client, raw):
        proxy.script(once(Fault.cut_after_answer()))
        assert client.ask("PUT", "/k", b"x").status == 200
        assert client.connection.sock.recv(1) == b""

    @pytest.mark.parametrize(("answer", "etag"), [("first", 1), ("second", 2)])
    def test_a_request_delivered_twice_is_applied_twice(self, proxy, client, store, answer, etag):
        proxy.script(once(Fault.deliver_twice(answer=answer)))
        reply = client.ask("PUT", "/k", b"x")
        assert store.applied == [("PUT", "/k")] * 2
        assert int(reply.headers["etag"].strip('"'), 16) == etag

    def test_a_conditional_request_delivered_twice_is_refused_by_its_own_first_copy(
        self, proxy, client, store
    ):
        proxy.script(once(Fault.deliver_twice()))
        assert client.ask("PUT", "/k", b"x", If_None_Match="*").status == 412
        assert store.objects["/k"][0] == b"x"


class TestHeldRequests:
    def test_a_late_request_is_applied_only_when_released(self, proxy, client, connect, store):
        proxy.script(once(Fault.deliver_late()))
        with pytest.raises(ConnectionResetError):
            client.ask("PUT", "/k", b"late")
        assert connect().ask("PUT", "/k", b"rival").status == 200
        assert proxy.held == 1
        assert proxy.release() == 1
        assert store.objects["/k"][0] == b"late"
        assert proxy.held == 0

    def test_a_late_request_is_delivered_by_itself_after_its_time(self, proxy, client, store):
        proxy.script(once(Fault.deliver_late(after=0.05, reset=False)))
        with pytest.raises(http.client.RemoteDisconnected):
            client.ask("PUT", "/k", b"late")
        proxy.log.wait_for(lambda log: log[0].applied == 1)
        assert store.objects["/k"][0] == b"late"

    def test_late_requests_are_released_in_the_order_of_their_arrival(self, proxy, connect, store):
        proxy.script(Rule(match=PUT, fault=Fault.deliver_late(), times=5))
        for number in range(5):
            with pytest.raises(ConnectionResetError):
                connect().ask("PUT", f"/{number}", b"x")
        assert proxy.release() == 5
        assert store.applied == [("PUT", f"/{number}") for number in range(5)]

    def test_what_is_still_held_when_the_proxy_closes_is_never_delivered(self, store):
        with FaultProxy(("127.0.0.1", store.server_port)) as proxy:
            proxy.script(once(Fault.deliver_late()))
            connection = http.client.HTTPConnection(*proxy.address, timeout=10)
            with pytest.raises(ConnectionResetError):
                connection.request("PUT", "/k", b"x")
                connection.getresponse()
            connection.close()
        assert store.applied == []

    @pytest.mark.parametrize("applied", [False, True])
    def test_a_held_request_goes_on_after_its_release(self, proxy, client, store, applied):
        proxy.script(once(Fault.hold(applied=applied)))
        replies = []
        thread = threading.Thread(target=lambda: replies.append(client.ask("PUT", "/k", b"x")))
        thread.start()
        proxy.log.wait_for(lambda log: len(log) == 1 and log[0].applied == int(applied))
        assert replies == []
        assert len(store.applied) == int(applied)
        proxy.wait_for_held(1)
        assert proxy.release() == 1
        thread.join(10)
        assert replies[0].status == 200
        assert store.applied == [("PUT", "/k")]

    @pytest.mark.parametrize("applied", [False, True])
    def test_a_delayed_request_goes_on_by_itself(self, proxy, client, store, applied):
        proxy.script(once(Fault.delay(0.01, applied=applied)))
        assert client.ask("PUT", "/k", b"x").status == 200
        assert store.applied == [("PUT", "/k")]


class TestInterloper:
    def test_it_acts_between_the_servers_application_and_the_lost_answer(
        self, proxy, client, connect, store
    ):
        rival = connect(store.server_port)
        proxy.script(
            Rule(
                match=PUT,
                fault=Fault.drop_answer(),
                interloper=lambda: rival.ask("PUT", "/k", b"rival"),
            )
        )
        with pytest.raises(ConnectionResetError):
            client.ask("PUT", "/k", b"mine")
        assert store.applied == [("PUT", "/k")] * 2
        assert store.objects["/k"][0] == b"rival"

    def test_it_may_go_through_the_proxy_and_comes_between_two_deliveries(
        self, proxy, client, connect, store
    ):
        rival = connect()
        proxy.script(
            Rule(
                match=PUT,
                fault=Fault.deliver_twice(),
                interloper=lambda: rival.ask("DELETE", "/k"),
            )
        )
        assert client.ask("PUT", "/k", b"x", If_None_Match="*").status == 200
        assert store.applied == [("PUT", "/k"), ("DELETE", "/k"), ("PUT", "/k")]

    def test_what_it_raises_fails_the_test_that_used_it(self, store):
        def broken() -> None:
            raise LookupError("interloper")

        def leave_the_block() -> None:
            with FaultProxy(("127.0.0.1", store.server_port)) as proxy:
                proxy.script(Rule(fault=Fault.pass_through(), interloper=broken))
                connection = http.client.HTTPConnection(*proxy.address, timeout=10)
                connection.request("GET", "/k")
                assert connection.getresponse().status == 404
                connection.close()

        with pytest.raises(LookupError, match="interloper"):
            leave_the_block()

    def test_a_fault_under_which_nothing_is_applied_cannot_have_one(self):
        for fault in (Fault.drop_request(), Fault.hang(), Fault.deliver_late()):
            with pytest.raises(ValueError, match="before the client notices"):
                Rule(fault=fault, interloper=print)


class TestScripts:
    def test_a_rule_skips_then_hits_as_often_as_it_says(self, proxy, client):
        proxy.script(Rule(match=PUT, fault=Fault.answer_in_front(503), skip=2, times=2))
        assert [client.ask("PUT", "/k", b"x").status for _ in range(6)] == [
            200, 200, 503, 503, 200, 200,
        ]  # fmt: skip
        assert proxy.exhausted

    def test_earlier_entries_decide_before_later_ones(self, proxy, client):
        proxy.script(
            Rule(match=matching("PUT", path=r"^/special\?"), fault=Fault.answer_in_front(501)),
            Rule(fault=Fault.answer_in_front(429), times=None),
        )
        assert client.ask("PUT", "/special?x", b"").status == 501
        assert client.ask("PUT", "/special?x", b"").status == 429
        proxy.clear()
        assert client.ask("PUT", "/special?x", b"").status == 200

    def test_steps_fall_through_when_they_are_used_up(self, proxy, client):
        proxy.script(Steps(faults=(Fault.answer_in_front(503), Fault.pass_through()), match=PUT))
        assert not proxy.exhausted
        assert [client.ask("PUT", "/k", b"").status for _ in range(3)] == [503, 200, 200]
        assert proxy.exhausted

    def test_chance_is_the_same_for_the_same_seed_and_near_its_rates(self, proxy, client):
        def run(seed: int) -> list[int]:
            proxy.clear()
            proxy.script(
                Chaos(
                    seed=seed,
                    rates=((Fault.answer_in_front(503), 0.2), (Fault.answer_in_front(429), 0.1)),
                )
            )
            return [client.ask("GET", "/k").status for _ in range(200)]

        first = run(7)
        assert run(7) == first
        assert run(8) != first
        assert 20 <= first.count(503) <= 60
        assert 5 <= first.count(429) <= 40

    def test_chance_ends_at_its_limit(self, proxy, client):
        proxy.script(Chaos(seed=1, rates=((Fault.answer_in_front(503), 1.0),), limit=3))
        assert [client.ask("GET", "/k").status for _ in range(5)] == [503, 503, 503, 404, 404]

    @pytest.mark.parametrize("rates", [(0.7, 0.4), (-0.1,)])
    def test_rates_that_are_no_probabilities_are_refused(self, rates):
        with pytest.raises(ValueError, match="rates"):
            Chaos(seed=1, rates=tuple((Fault.hang(), rate) for rate in rates))

    def test_a_broken_predicate_cuts_the_client_off_and_is_raised_at_the_end(self, store):
        def broken(_: object) -> bool:
            raise LookupError("predicate")

        def leave_the_block() -> None:
            with FaultProxy(("127.0.0.1", store.server_port)) as proxy:
                proxy.script(Rule(match=broken, fault=Fault.pass_through()))
                connection = http.client.HTTPConnection(*proxy.address, timeout=10)
                with pytest.raises(CUT):
                    connection.request("GET", "/k")
                    connection.getresponse()
                connection.close()

        with pytest.raises(LookupError, match="predicate"):
            leave_the_block()
        assert store.seen_targets == []
