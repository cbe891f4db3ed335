"""`HttpFaults`: each kind of fault, in front of a small HTTP service."""

from __future__ import annotations

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest

from wenchang_conformance.faults import matching, s3_error
from wenchang_conformance.hooks import FaultKind, HookUnavailable
from wenchang_conformance.http_faults import HttpFaults

LOST = (http.client.HTTPException, OSError)


class Counter(BaseHTTPRequestHandler):
    """Counts the writes that reach it; a GET says how many there were."""

    protocol_version = "HTTP/1.1"
    writes = 0
    conditions = 0

    def do_PUT(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        Counter.writes += 1
        Counter.conditions += "If-Match" in self.headers
        self._answer(b"")

    def do_GET(self):
        self._answer(str(Counter.writes).encode())

    def _answer(self, body):
        self.send_response(200)
        self.send_header("ETag", '"0123456789"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


class Client:
    """What `open` gives: it sends requests and says what came back."""

    def __init__(self, url):
        self.address = urlsplit(url).netloc

    def put(self):
        return self._send("PUT", b"x")

    def get(self):
        return self._send("GET", None)

    def _send(self, method, body):
        connection = http.client.HTTPConnection(self.address, timeout=0.5)
        try:
            connection.request(method, "/k", body, {"If-Match": "1"} if body else {})
            answer = connection.getresponse()
            self.version = answer.headers.get("ETag")
            return answer.status, answer.read()
        finally:
            connection.close()


@pytest.fixture
def faults():
    Counter.writes = Counter.conditions = 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), Counter)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    injector = HttpFaults(
        ("127.0.0.1", server.server_port),
        open_at=Client,
        is_write=matching("PUT"),
        coded={FaultKind.BUSY_SERVER: s3_error(503, "SlowDown")},
        version_header="etag",
    )
    yield injector
    injector.close()
    server.shutdown()
    thread.join(10)
    server.server_close()


@pytest.mark.parametrize(
    ("kind", "applied"),
    [
        (FaultKind.ANSWER_LOST, 1),
        (FaultKind.REQUEST_LOST, 0),
        (FaultKind.HANG, 0),
        (FaultKind.HANG_APPLIED, 1),
        (FaultKind.LATE, 0),
    ],
)
def test_a_fault_without_an_answer(faults, kind, applied):
    client = faults.open()
    faults.inject(kind)
    with pytest.raises(LOST):
        client.put()
    assert Counter.writes == applied
    assert client.get() == (200, str(applied).encode())
    assert faults.injected() == 1
    assert (faults.requests("write"), faults.requests("read"), faults.requests()) == (1, 1, 2)


@pytest.mark.parametrize(
    ("kind", "status", "applied"),
    [
        (FaultKind.TWICE, 200, 2),
        (FaultKind.DELAY, 200, 1),
        (FaultKind.BARE_ERROR, 503, 0),
        (FaultKind.BARE_ERROR_APPLIED, 503, 1),
        (FaultKind.BUSY_SERVER, 503, 0),
        (FaultKind.STRIPPED, 200, 1),
    ],
)
def test_a_fault_with_an_answer(faults, kind, status, applied):
    client = faults.open()
    faults.inject(kind, on="any")
    assert client.put()[0] == status
    assert Counter.writes == applied
    assert Counter.conditions == (0 if kind is FaultKind.STRIPPED else applied)


def test_a_torn_answer_carries_a_part_of_the_version(faults):
    client = faults.open()
    faults.inject(FaultKind.TORN_ANSWER)
    # This client does not notice; a backend has to.
    assert client.put()[0] == 200
    assert client.version == '"01234'
    assert Counter.writes == 1


def test_a_late_request_arrives_at_its_release(faults):
    client = faults.open()
    faults.inject(FaultKind.LATE)
    with pytest.raises(LOST):
        client.put()
    assert Counter.writes == 0
    faults.release()
    assert Counter.writes == 1


def test_refused_connections_are_refused_until_all_is_cleared(faults):
    client = faults.open()
    faults.inject(FaultKind.REFUSED, times=None, on="any")
    with pytest.raises(ConnectionRefusedError):
        client.get()
    faults.clear()
    assert client.get()[0] == 200
    with pytest.raises(HookUnavailable):
        faults.inject(FaultKind.REFUSED)


def test_requests_of_the_other_target_pass(faults):
    client = faults.open()
    faults.inject(FaultKind.BARE_ERROR, on="read", times=2, skip=1)
    assert client.put()[0] == 200
    assert [client.get()[0] for _ in range(4)] == [200, 503, 503, 200]


def test_chaos_harms_by_chance_until_it_is_cleared(faults):
    client = faults.open()
    faults.chaos({FaultKind.BARE_ERROR: 0.5}, seed=3)
    answers = [client.put()[0] for _ in range(20)]
    assert 3 < answers.count(503) < 17
    faults.clear()
    assert {client.put()[0] for _ in range(10)} == {200}


def test_only_what_was_given_is_supported(faults):
    assert FaultKind.BUSY_SERVER in faults.supported
    assert FaultKind.BUSY_RATE not in faults.supported
    assert FaultKind.REFUSED in faults.supported
