"""A service of our own that answers as Google's documents say, and the emulator where there is one."""

from __future__ import annotations

import base64
import json
import os
import re
import secrets
import threading
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from wenchang.storage.locations import StorageLocation
from wenchang_gcs import GcsStorage, open_location

BUCKET = "notes-bucket"
NO_BUCKET = "The specified bucket does not exist."


@dataclass(slots=True)
class Record:
    """A stored object."""

    body: bytes
    metadata: dict[str, str]
    generation: int
    metageneration: int = 1

    def told(self, name: str) -> dict[str, Any]:
        return {
            "name": name,
            "generation": str(self.generation),
            "metageneration": str(self.metageneration),
            "metadata": dict(self.metadata),
            "size": str(len(self.body)),
            "mediaLink": "http://elsewhere.invalid/not-followed",
        }


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as the service met it."""

    method: str
    kind: str
    name: str
    query: dict[str, str]
    body: bytes = b""


Answer = tuple[int, dict[str, str], bytes]


def as_json(status: int, value: object, **headers: str) -> Answer:
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return status, {"Content-Type": "application/json", **named}, json.dumps(value).encode()


def refusal(
    status: int, reason: str, message: str = "told by the service", **headers: str
) -> Answer:
    errors = [{"domain": "global", "reason": reason, "message": message}]
    value = {"error": {"code": status, "message": message, "errors": errors}}
    return as_json(status, value, **headers)


@dataclass(slots=True)
class StubService:
    """The JSON API in memory: conditions, metagenerations, pages. `instead` may answer in its place."""

    objects: dict[str, Record] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    instead: Callable[[Asked], Answer | None] = lambda _: None
    page_size: int = 1000
    url: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _generation: int = 1_700_000_000_000_000

    # --- what a test does behind the backend's back ---

    def put(self, name: str, body: bytes, metadata: dict[str, str] | None = None) -> Record:
        with self._lock:
            self._generation += 7
            self.objects[name] = Record(body, dict(metadata or {}), self._generation)
            return self.objects[name]

    def patch(self, name: str, **metadata: str) -> None:
        with self._lock:
            record = self.objects[name]
            record.metadata |= metadata
            record.metageneration += 1

    def kinds(self) -> list[str]:
        """Return what was asked so far, and forget it."""
        kinds = [one.kind for one in self.asked]
        self.asked.clear()
        return kinds

    # --- the service ---

    def answer(self, method: str, target: str, body: bytes) -> Answer:
        url = urlsplit(target)
        query = {
            name: values[0]
            for name, values in parse_qs(
                url.query, keep_blank_values=True, strict_parsing=False
            ).items()
        }
        path = re.fullmatch(r"(/upload|/download)?/storage/v1/b/([^/]+)(?:/o(?:/(.+))?)?", url.path)
        assert path is not None, target
        where, bucket, name = path[1] or "", path[2], unquote(path[3] or "")
        kind = {
            ("GET", ""): "head" if name else "list",
            ("GET", "/download"): "body",
            ("POST", "/upload"): "upload",
            ("DELETE", ""): "delete",
        }.get((method, where), "other")
        if "/o" not in url.path:
            kind = "bucket"
        metadata: dict[str, str] = {}
        if kind == "upload":
            told, body = split_multipart(body)
            name, metadata = told["name"], told.get("metadata", {})
        asked = Asked(method, kind, name, query, body)
        self.asked.append(asked)
        instead = self.instead(asked)
        if instead is not None:
            return instead
        if bucket != BUCKET:
            return refusal(404, "notFound", NO_BUCKET)
        if kind == "list":
            return self._list(query)
        with self._lock:
            return self._about_object(asked, metadata)

    def _about_object(self, asked: Asked, metadata: dict[str, str]) -> Answer:
        record = self.objects.get(asked.name)
        if asked.kind == "upload":
            if not holds(asked.query, record):
                return refusal(412, "conditionNotMet")
            self._generation += 7
            self.objects[asked.name] = Record(asked.body, metadata, self._generation)
            return as_json(200, self.objects[asked.name].told(asked.name))
        if record is None:
            return refusal(404, "notFound", f"No such object: {BUCKET}/{asked.name}")
        if not holds(asked.query, record):
            return refusal(412, "conditionNotMet")
        if asked.kind == "delete":
            del self.objects[asked.name]
            return 204, {}, b""
        if asked.kind == "body":
            return 200, {"X-Goog-Generation": str(record.generation)}, record.body
        return as_json(200, record.told(asked.name))

    def _list(self, query: dict[str, str]) -> Answer:
        start = query.get("startOffset", "")
        if "pageToken" in query:
            start = base64.urlsafe_b64decode(query["pageToken"]).decode()
        names = sorted(
            name
            for name in self.objects
            if name.startswith(query.get("prefix", "")) and name >= start
        )
        size = min(int(query.get("maxResults", "1000")), self.page_size)
        value: dict[str, Any] = {"items": [self.objects[name].told(name) for name in names[:size]]}
        if len(names) > size:
            value["nextPageToken"] = base64.urlsafe_b64encode(names[size].encode()).decode()
        return as_json(200, value)


def holds(query: dict[str, str], record: Record | None) -> bool:
    generation = record.generation if record else 0
    metageneration = record.metageneration if record else 0
    return (
        int(query.get("ifGenerationMatch", generation)) == generation
        and int(query.get("ifMetagenerationMatch", metageneration)) == metageneration
    )


def split_multipart(body: bytes) -> tuple[dict[str, Any], bytes]:
    boundary, _, rest = body.partition(b"\r\n")
    head, _, media = rest.partition(b"\r\n" + boundary + b"\r\n")
    content = media.partition(b"\r\n\r\n")[2]
    return json.loads(head.partition(b"\r\n\r\n")[2]), content[: content.rindex(b"\r\n" + boundary)]


@pytest.fixture
def stub() -> Iterator[StubService]:
    service = StubService()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1
        disable_nagle_algorithm = True

        def handle_request(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, headers, data = service.answer(self.command, self.path, body)
            self.send_response_only(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_DELETE = handle_request

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

    server = Server(("127.0.0.1", 0), Handler)
    service.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield service
    server.shutdown()
    thread.join(10)
    server.server_close()


@pytest.fixture
def open_at() -> Iterator[Callable[..., GcsStorage]]:
    """Open storages at an endpoint, by their URL; they are closed at the end."""
    opened: list[GcsStorage] = []

    def open_one(url: str, bucket: str = BUCKET, **options: Any) -> GcsStorage:
        given = {"deadline": 5.0, "attempt_timeout": 1.0, "anonymous": True, **options}
        location = StorageLocation.parse(f"gs://{bucket}", options={"endpoint_url": url, **given})
        storage = open_location(location)
        opened.append(storage)
        return storage

    yield open_one
    for one in opened:
        one.close()


@pytest.fixture
def storage(stub: StubService, open_at: Callable[..., GcsStorage]) -> GcsStorage:
    return open_at(stub.url)


@pytest.fixture(scope="session")
def emulator() -> str:
    """The address of the emulator; without one the test is not run."""
    url = os.environ.get("WENCHANG_TEST_GCS_URL")
    if not url:
        pytest.skip(
            "not run: no emulator of Google Cloud Storage (WENCHANG_TEST_GCS_URL is not set)"
        )
    return url


@pytest.fixture
def emulator_bucket(emulator: str) -> str:
    """The name of a fresh bucket in the emulator."""
    name = f"bucket-{secrets.token_hex(8)}"
    request = urllib.request.Request(
        f"{emulator}/storage/v1/b?project=p",
        data=json.dumps({"name": name}).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.status == 200
    return name


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
