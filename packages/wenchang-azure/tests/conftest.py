"""The Blob services that the tests run on: Azurite, where it was started, and a stub for the rest."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import pytest
from azure.storage.blob import ContainerClient

from wenchang.storage.locations import StorageLocation
from wenchang_azure import AzureOptions, AzureStorage
from wenchang_azure.opening import client_maker, open_location

VARIABLE = "WENCHANG_TEST_AZURITE_URL"
ACCOUNT = "devstoreaccount1"
# The emulator's own key, the same on every machine and published with it.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
KEY_VARIABLE = "WENCHANG_TEST_AZURITE_KEY"

os.environ[KEY_VARIABLE] = KEY


@pytest.fixture(scope="session")
def azurite() -> str:
    """The URL of the account at the emulator."""
    url = os.environ.get(VARIABLE)
    if not url:
        pytest.skip(f"not run: no Azurite ({VARIABLE} is not set)")
    return url


@pytest.fixture(scope="session")
def container(azurite: str) -> Iterator[ContainerClient]:
    """A container of this run's own."""
    name = f"test-{secrets.token_hex(8)}"
    options = AzureOptions(endpoint=azurite, account_key_env=KEY_VARIABLE)
    client = client_maker(ACCOUNT, name, options)()
    with client:
        client.create_container()
        yield client
        client.delete_container()


@pytest.fixture
def location(azurite: str, container: ContainerClient) -> StorageLocation:
    """A location in the emulator that no other test uses."""
    return StorageLocation(
        scheme="az",
        address=f"{ACCOUNT}/{container.container_name}/{secrets.token_hex(4)}",
        options={"endpoint": azurite, "account_key_env": KEY_VARIABLE},
    )


@dataclass(frozen=True)
class Asked:
    """One request to the stub."""

    method: str
    name: str
    """The blob's name, "" for the container."""
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def kind(self) -> str:
        """What is asked: put, get, head, delete, list or account."""
        if self.query.get("restype") == "account":
            return "account"
        return "list" if self.query.get("comp") == "list" else self.method.lower()


@dataclass
class Reply:
    """One answer of the stub. `raw` stands for the whole of it; the connection then ends."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    raw: bytes | None = None


def error_reply(status: int, code: str = "") -> Reply:
    """An error with the service's own code, or bare as a proxy says it."""
    if not code:
        return Reply(status)
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>no</Message></Error>".encode()
    return Reply(status, {"x-ms-error-code": code, "Content-Type": "application/xml"}, body)


def list_reply(
    blobs: Sequence[tuple[str, Mapping[str, str]] | str], marker: str = "", etag: str = "0x1"
) -> Reply:
    """A page of a listing: names, with metadata where it matters."""
    items = ""
    for blob in blobs:
        name, metadata = (blob, {}) if isinstance(blob, str) else blob
        pairs = "".join(f"<{key}>{escape(value)}</{key}>" for key, value in metadata.items())
        items += (
            f"<Blob><Name>{escape(name)}</Name><Properties><Etag>{etag}</Etag>"
            "<Content-Length>1</Content-Length><BlobType>BlockBlob</BlobType>"
            f"</Properties><Metadata>{pairs}</Metadata></Blob>"
        )
    body = (
        '<?xml version="1.0" encoding="utf-8"?><EnumerationResults ServiceEndpoint="http://stub/" '
        f'ContainerName="stub"><Blobs>{items}</Blobs><NextMarker>{escape(marker)}</NextMarker>'
        "</EnumerationResults>"
    )
    return Reply(200, {"Content-Type": "application/xml"}, body.encode())


class StubService:
    """A Blob service that answers as a test says: `answers` maps a kind of request to a function."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.answers: dict[str, Callable[[Asked], Reply]] = {}
        self.closing = threading.Event()
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                stub.serve(self)

            do_GET = do_PUT = do_HEAD = do_DELETE = _serve

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def serve(self, handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        length = int(handler.headers.get("Content-Length") or 0)
        asked = Asked(
            method=handler.command,
            name=unquote("/".join(parts.path.split("/")[2:])),
            query={name: values[0] for name, values in parse_qs(parts.query).items()},
            headers={name.lower(): value for name, value in handler.headers.items()},
            body=handler.rfile.read(length),
        )
        self.asked.append(asked)
        answer = self.answers.get(asked.kind)
        reply = Reply(200) if answer is None and asked.kind == "account" else error_reply(501)
        reply = reply if answer is None else answer(asked)
        if reply.raw is not None:
            handler.wfile.write(reply.raw)
            handler.close_connection = True
            return
        handler.send_response(reply.status)
        sized = {name.lower() for name in reply.headers}
        for name, value in reply.headers.items():
            handler.send_header(name, value)
        if "content-length" not in sized:
            handler.send_header("Content-Length", str(len(reply.body)))
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(reply.body)

    def kinds(self) -> list[str]:
        """What was asked so far, in order, without the look at the account."""
        return [asked.kind for asked in self.asked if asked.kind != "account"]

    def hang(self, _: Asked) -> Reply:
        """Answer nothing until the test is over."""
        self.closing.wait(60)
        return Reply(raw=b"")

    def open(self, **options: Any) -> AzureStorage:
        """Open a handle onto the stub."""
        port = self.server.server_address[1]
        defaults = {"deadline": 60.0, "attempt_timeout": 15.0, "account_key_env": KEY_VARIABLE}
        return open_location(
            StorageLocation(
                scheme="az",
                address=f"{ACCOUNT}/stub/root",
                options={"endpoint": f"http://127.0.0.1:{port}", **defaults, **options},
            )
        )

    def close(self) -> None:
        self.closing.set()
        self.server.shutdown()
        self.thread.join(10)
        self.server.server_close()


@pytest.fixture
def stub() -> Iterator[StubService]:
    service = StubService()
    yield service
    service.close()


@pytest.fixture
def replies() -> Any:
    """The builders of a stub's answers: `error`, `page` and the plain `Reply`."""

    class Builders:
        error = staticmethod(error_reply)
        page = staticmethod(list_reply)
        plain = Reply

    return Builders


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
