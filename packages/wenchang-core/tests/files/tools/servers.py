"""The servers that the items run on, each test in a bucket, container or pair of tables of its own.

Storages are opened by their location alone, as a user opens them. These tests stand here rather than with each
backend because a backend knows nothing above the storage contract; which backends are installed
decides what they run on.
"""

from __future__ import annotations

import json
import os
import secrets
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec

import pytest

from wenchang.storage.locations import StorageLocation

AZURITE_ACCOUNT = "devstoreaccount1"
# The emulator's own key, the same on every machine and published with it.
AZURITE_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)


@contextmanager
def _tables(url: str, name: str) -> Iterator[StorageLocation]:
    from wenchang_sql.hooks import SqlBackdoor

    location = StorageLocation.parse(url, options={"table": name.replace("-", "_")})
    yield location
    SqlBackdoor(location).remove()


@contextmanager
def _s3_bucket(url: str, name: str) -> Iterator[StorageLocation]:
    from wenchang_s3.clients import OwnClient
    from wenchang_s3.options import S3Options

    with pytest.MonkeyPatch.context() as environ:
        for variable in [each for each in os.environ if each.startswith("AWS_")]:
            environ.delenv(variable)
        environ.setenv("AWS_ACCESS_KEY_ID", "test")
        environ.setenv("AWS_SECRET_ACCESS_KEY", "not-a-secret")
        environ.setenv("AWS_EC2_METADATA_DISABLED", "true")
        environ.setenv("AWS_CONFIG_FILE", os.devnull)
        environ.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
        client = OwnClient(S3Options(endpoint_url=url)).get()
        client.create_bucket(Bucket=name)
        client.close()
        yield StorageLocation.parse(f"s3://{name}", options={"endpoint_url": url})


@contextmanager
def _gcs_bucket(url: str, name: str) -> Iterator[StorageLocation]:
    request = urllib.request.Request(
        f"{url}/storage/v1/b?project=p",
        data=json.dumps({"name": name}).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.status == 200
    yield StorageLocation.parse(f"gs://{name}", options={"endpoint_url": url, "anonymous": True})


@contextmanager
def _azure_container(url: str, name: str) -> Iterator[StorageLocation]:
    from wenchang_azure import AzureOptions
    from wenchang_azure.opening import client_maker

    variable = "WENCHANG_TEST_AZURITE_KEY"
    with pytest.MonkeyPatch.context() as environ:
        environ.setenv(variable, AZURITE_KEY)
        options = AzureOptions(endpoint=url, account_key_env=variable)
        with client_maker(AZURITE_ACCOUNT, name, options)() as client:
            client.create_container()
            yield StorageLocation.parse(
                f"az://{AZURITE_ACCOUNT}/{name}",
                options={"endpoint": url, "account_key_env": variable},
            )
            client.delete_container()


@dataclass(frozen=True)
class Server:
    """A server that the tests may find, and how a place of one's own is made on it.

    `package` is what has to be installed: the backend, or of those with several drivers the driver.
    """

    package: str
    variable: str
    place: Callable[[str, str], AbstractContextManager[StorageLocation]]


SERVERS = {
    name: server
    for name, server in {
        "postgresql": Server("psycopg", "WENCHANG_TEST_POSTGRES_URL", _tables),
        "mariadb": Server("pymysql", "WENCHANG_TEST_MARIADB_URL", _tables),
        "s3": Server("wenchang_s3", "WENCHANG_TEST_MINISTACK_URL", _s3_bucket),
        "gcs": Server("wenchang_gcs", "WENCHANG_TEST_GCS_URL", _gcs_bucket),
        "azure": Server("wenchang_azure", "WENCHANG_TEST_AZURITE_URL", _azure_container),
    }.items()
    if find_spec(server.package) is not None
}


def place_on(kind: str) -> AbstractContextManager[StorageLocation]:
    """Make a place on a server, removed at the end; without the server the test is not run."""
    server = SERVERS[kind]
    url = os.environ.get(server.variable)
    if not url:
        pytest.skip(f"not run: no server for {kind} ({server.variable} is not set)")
    return server.place(url, f"files-{secrets.token_hex(8)}")
