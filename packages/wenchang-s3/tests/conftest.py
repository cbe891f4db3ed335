"""The servers that the tests run on, and a bucket of each test's own."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

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
