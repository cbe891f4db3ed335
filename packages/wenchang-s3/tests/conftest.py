"""The servers that the tests run on, and a bucket of each test's own."""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import pytest

from wenchang.storage.locations import StorageLocation
from wenchang_conformance.faults import FaultProxy
from wenchang_s3 import S3Storage
from wenchang_s3.clients import OwnClient
from wenchang_s3.hooks import S3Backdoor
from wenchang_s3.options import S3Options

SERVERS = {
    "ministack": "WENCHANG_TEST_MINISTACK_URL",
    "moto": "WENCHANG_TEST_MOTO_URL",
}


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials that mean nothing, and no look at this machine's own."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-a-secret")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)


def server_url(kind: str) -> str:
    """Return the URL of a test server; without one the test is not run."""
    url = os.environ.get(SERVERS[kind])
    if not url:
        pytest.skip(f"not run: no {kind} server ({SERVERS[kind]} is not set)")
    return url


@dataclass
class Bucket:
    """A fresh bucket on a server, with a proxy in front of it where one is asked for."""

    url: str
    name: str
    client: Any
    opened: list[Any] = field(default_factory=list)

    def open(self, **options: Any) -> S3Storage:
        options.setdefault("endpoint_url", self.url)
        storage = S3Storage(self.name, **options)
        self.opened.append(storage)
        return storage

    def proxy(self) -> FaultProxy:
        parts = urlsplit(self.url)
        assert parts.hostname
        proxy = FaultProxy((parts.hostname, parts.port or 80))
        self.opened.append(proxy)
        return proxy

    def open_behind(self, proxy: FaultProxy, **options: Any) -> S3Storage:
        """Open a handle behind a proxy; the endpoint is proved before anything is counted."""
        storage = self.open(endpoint_url=f"http://127.0.0.1:{proxy.port}", **options)
        storage.put("warm-up", b"", {})
        proxy.log.clear()
        return storage

    @property
    def backdoor(self) -> S3Backdoor:
        return S3Backdoor(self.client, self.name, "")

    def location(self, prefix: str = "") -> StorageLocation:
        return StorageLocation.parse(
            f"s3://{self.name}/{prefix}", options={"endpoint_url": self.url}
        )


@pytest.fixture
def bucket_on(credentials: None) -> Iterator[Callable[[str], Bucket]]:
    made: list[Bucket] = []

    def make(kind: str) -> Bucket:
        url = server_url(kind)
        client = OwnClient(S3Options(endpoint_url=url)).get()
        bucket = Bucket(url, f"test-{secrets.token_hex(8)}", client)
        client.create_bucket(Bucket=bucket.name)
        made.append(bucket)
        return bucket

    yield make
    for bucket in made:
        for one in reversed(bucket.opened):
            one.close()
        bucket.backdoor.remove_all()
        bucket.client.delete_bucket(Bucket=bucket.name)
        bucket.client.close()


@pytest.fixture
def bucket(bucket_on: Callable[[str], Bucket]) -> Bucket:
    return bucket_on("ministack")


@pytest.fixture(params=["ministack", "moto"])
def any_bucket(request: pytest.FixtureRequest, bucket_on: Callable[[str], Bucket]) -> Bucket:
    return bucket_on(request.param)


@pytest.fixture
def storage(bucket: Bucket) -> S3Storage:
    return bucket.open()


# --- a server that can be told to misbehave ------------------------------------------------------


@dataclass(frozen=True)
class Seen:
    """One request as it arrived. `name` is the object's, or "" for the bucket."""

    method: str
    name: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def kind(self) -> str:
        return "LIST" if self.method == "GET" and not self.name else self.method


@dataclass(frozen=True)
class Answer:
    """One answer. A body of None has no length: the connection ends behind the head."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = b""


def error(status: int, code: str, **headers: str) -> Answer:
    body = f"<Error><Code>{code}</Code><Message>told to</Message></Error>".encode()
    return Answer(status, {"Content-Type": "application/xml", **headers}, body)


def listing(
    *entries: tuple[str, bytes], truncated: bool = False, token: str | None = None
) -> Answer:
    """Return an answer to LIST with these names and bodies."""
    items = "".join(
        f"<Contents><Key>{quote(name)}</Key><ETag>&quot;{md5(body)}&quot;</ETag>"
        f"<Size>{len(body)}</Size></Contents>"
        for name, body in entries
    )
    more = f"<NextContinuationToken>{token}</NextContinuationToken>" if token else ""
    return Answer(
        200,
        {"Content-Type": "application/xml"},
        (
            "<ListBucketResult><EncodingType>url</EncodingType>"
            f"<IsTruncated>{str(truncated).lower()}</IsTruncated>{items}{more}</ListBucketResult>"
        ).encode(),
    )


def md5(body: bytes) -> str:
    return hashlib.md5(body, usedforsecurity=False).hexdigest()


Misbehave = Callable[[Seen], "Answer | None"]


class FakeS3(ThreadingHTTPServer):
    """The few requests of S3 that the backend sends, on a dict, with every answer replaceable."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, bytes] = {}
        self.seen: list[Seen] = []
        self.ignored: set[str] = set()
        self.lock = threading.RLock()
        self.ended = threading.Event()
        self._told: list[list[Any]] = []
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def on(self, kind: str, answer: Answer | Misbehave, *, times: int | None = 1) -> None:
        """Answer the next requests of this kind like this; a function may decline with None."""
        self._told.append([kind, answer, times])

    def calm(self) -> None:
        self._told.clear()

    def kinds(self) -> list[str]:
        return [one.kind for one in self.seen]

    def handle_error(self, *_: Any) -> None:
        """Clients hang up as they like."""

    def close(self) -> None:
        self.ended.set()
        self.shutdown()
        self.server_close()
        self._thread.join(10)

    def answer(self, seen: Seen) -> Answer:
        for told in self._told:
            kind, answer, times = told
            if kind != seen.kind or times == 0:
                continue
            given = answer(seen) if callable(answer) else answer
            if given is None:
                continue
            told[2] = None if times is None else times - 1
            return given
        return self.obey(seen)

    def obey(self, seen: Seen) -> Answer:
        """Do as S3 does, but for conditions that are ignored."""
        with self.lock:
            return getattr(self, f"_{seen.kind.lower()}")(seen)

    def _refused(self, seen: Seen) -> Answer | None:
        there = self.objects.get(seen.name)
        if seen.headers.get("if-none-match") == "*" and "create" not in self.ignored:
            return error(412, "PreconditionFailed") if there is not None else None
        wanted = seen.headers.get("if-match")
        ignored = {"PUT": "replace", "DELETE": "delete"}[seen.method] in self.ignored
        if wanted is None or ignored:
            return None
        if there is None:
            return None if "absent" in self.ignored else error(404, "NoSuchKey")
        return None if wanted == f'"{md5(there)}"' else error(412, "PreconditionFailed")

    def _put(self, seen: Seen) -> Answer:
        refused = self._refused(seen)
        if refused is None:
            self.objects[seen.name] = seen.body
        return refused or Answer(200, {"ETag": f'"{md5(seen.body)}"'})

    def _delete(self, seen: Seen) -> Answer:
        refused = self._refused(seen)
        if refused is None:
            self.objects.pop(seen.name, None)
        return refused or Answer(204)

    def _get(self, seen: Seen) -> Answer:
        body = self.objects.get(seen.name)
        if body is None:
            return error(404, "NoSuchKey")
        headers = {"ETag": f'"{md5(body)}"'}
        wanted = seen.headers.get("range")
        if wanted is None or "range" in self.ignored:
            return Answer(200, headers, body)
        if not body:
            return error(416, "InvalidRange")
        part = body[: int(wanted.partition("-")[2]) + 1]
        headers["Content-Range"] = f"bytes 0-{len(part) - 1}/{len(body)}"
        return Answer(206, headers, part)

    def _list(self, seen: Seen) -> Answer:
        start = seen.query.get("continuation-token") or seen.query.get("start-after", "")
        prefix, size = seen.query.get("prefix", ""), int(seen.query.get("max-keys", "1000"))
        names = sorted(n for n in self.objects if n.startswith(prefix) and n > start)
        page = names[:size]
        truncated = len(names) > size
        return listing(
            *((name, self.objects[name]) for name in page),
            truncated=truncated,
            token=page[-1] if truncated else None,
        )


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeS3

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        if self.headers.get("Expect"):
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        seen = Seen(
            self.command,
            unquote(parts.path).lstrip("/").partition("/")[2],
            dict(parse_qsl(parts.query, keep_blank_values=True)),
            {name.lower(): value for name, value in self.headers.items()},
            self.rfile.read(length),
        )
        self.server.seen.append(seen)
        answer = self.server.answer(seen)
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.body is None:
            self.close_connection = True
            self.end_headers()
            return
        if answer.status != 204:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    do_GET = do_PUT = do_DELETE = _serve

    def handle_expect_100(self) -> bool:
        return True

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def fake(credentials: None) -> Iterator[FakeS3]:
    server = FakeS3()
    yield server
    server.close()


@pytest.fixture
def open_fake(fake: FakeS3) -> Iterator[Callable[..., S3Storage]]:
    opened: list[S3Storage] = []

    def open_one(**options: Any) -> S3Storage:
        given = {"endpoint_url": fake.url, "deadline": 60.0, "attempt_timeout": 20.0, **options}
        storage = S3Storage("bucket", **given)
        opened.append(storage)
        return storage

    yield open_one
    for storage in opened:
        storage.close()


@pytest.fixture
def proven(fake: FakeS3, open_fake: Callable[..., S3Storage]) -> Callable[..., S3Storage]:
    """Opens handles that have proved their endpoint, so that tests see their own requests alone."""

    def open_one(*, deadline: float = 60.0, **options: Any) -> S3Storage:
        storage = open_fake(**options)
        storage.put("warm-up", b"", {})
        # A short deadline is for the test's own calls, however busy the machine was before.
        storage._policy = replace(storage._policy, deadline=deadline)
        del fake.objects[(options.get("prefix", "") + "/warm-up").lstrip("/")]
        fake.seen.clear()
        return storage

    return open_one


@pytest.fixture
def kit() -> SimpleNamespace:
    """The helpers that tests build answers with."""
    return SimpleNamespace(Answer=Answer, error=error, listing=listing, md5=md5)
