"""The session behind a bucket: mTLS, pools, background requests, credentials, forks, threads."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import warnings
from functools import partial
from pathlib import Path

import google.auth
import pytest
import requests
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import DefaultCredentialsError
from google.cloud import storage as sdk
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from wenchang.storage import StorageConfigurationError, StorageRejectedError, open_storage
from wenchang_gcs import GcsStorage


def client_of(url="http://127.0.0.1:1", **options):
    client_options = {"api_endpoint": url, **options.pop("client_options", {})}
    return sdk.Client(
        project="p", credentials=AnonymousCredentials(), client_options=client_options, **options
    )


def open_files():
    """Count the open files of this process; 0 where the system does not tell."""
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


@pytest.fixture
def no_network(monkeypatch):
    """Fail the test where something is connected to, or looked up."""
    met = []

    def refuse(*arguments, **options):
        met.append(arguments)
        raise ConnectionRefusedError

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("socket.getaddrinfo", refuse)
    yield
    assert met == []


def test_mem_088_a_wrong_mtls_set_up_raises_in_the_constructor(monkeypatch, no_network):
    monkeypatch.setenv("GOOGLE_API_USE_CLIENT_CERTIFICATE", "true")
    source = {"client_cert_source": lambda: (b"no certificate", b"no key")}
    bucket = client_of(client_options=source).bucket("secret-bucket")
    with pytest.raises(StorageConfigurationError, match="mutual TLS") as caught:
        GcsStorage(bucket)
    assert caught.value.__cause__ is not None
    assert "secret-bucket" not in str(caught.value)


def test_mem_088_without_client_certificates_the_same_set_up_opens(monkeypatch, no_network):
    monkeypatch.setenv("GOOGLE_API_USE_CLIENT_CERTIFICATE", "false")
    source = {"client_cert_source": lambda: (b"no certificate", b"no key")}
    GcsStorage(client_of(client_options=source).bucket("b")).close()


def test_init_offline_no_credentials_are_looked_for_before_the_first_call(monkeypatch, no_network):
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    asked = []

    def default(**_):
        asked.append(True)
        raise DefaultCredentialsError("none here")

    monkeypatch.setattr(google.auth, "default", default)
    storage = open_storage("gs://bucket")
    assert asked == []
    with pytest.raises(StorageRejectedError, match="Application Default Credentials") as caught:
        storage.get("a")
    assert asked == [True]
    assert caught.value.kind == "credentials"
    storage.close()


def test_found_credentials_are_kept_and_used(monkeypatch, stub):
    asked = []

    class Found(AnonymousCredentials):
        def before_request(self, request, method, url, headers):
            asked.append("used")

    def default(scopes):
        asked.append("looked for")
        assert any("devstorage" in scope or "cloud-platform" in scope for scope in scopes)
        return Found(), "project"

    monkeypatch.setattr(google.auth, "default", default)
    storage = open_storage(f"gs://notes-bucket?endpoint_url={stub.url}")
    storage.put_if_version("a", b"x", {}, None)
    storage.list_page("", None, 1)
    assert asked == ["looked for", "used", "used"]
    storage.close()


def test_an_emulator_named_by_its_usual_variable_needs_no_credentials(monkeypatch, stub):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", stub.url)
    storage = open_storage("gs://notes-bucket")
    storage.put_if_version("a", b"x", {}, None)
    assert storage.get("a").data == b"x"
    storage.close()


def test_a_bucket_that_makes_requesters_pay_is_told_the_project(stub, open_at):
    storage = open_at(stub.url, project="who-pays")
    version = storage.put_if_version("a", b"x", {}, None)
    storage.get("a")
    storage.list_page("", None, 5)
    storage.delete_if_version("a", version)
    assert [one.query.get("userProject") for one in stub.asked] == ["who-pays"] * 5


def test_nothing_but_the_call_itself_is_sent(stub, storage):
    """The client would ask for the bucket in the background, at first use and after a 404."""
    assert storage.get("absent") is None
    version = storage.put_if_version("a", b"x", {}, None)
    storage.get("a")
    storage.delete_if_version("a", version)
    assert not [thread for thread in threading.enumerate() if "_background" in thread.name]
    assert stub.kinds() == ["head", "upload", "head", "body", "delete"]


def test_the_pool_is_as_large_as_the_concurrency_and_repeats_nothing():
    client = client_of()
    client._http.mount("https://", HTTPAdapter(max_retries=Retry(5)))
    client._http.mount("http://small/", HTTPAdapter(pool_maxsize=3))
    client._http.mount("http://large/", HTTPAdapter(pool_maxsize=500))
    GcsStorage(client.bucket("b"), concurrency=64).close()
    sizes = {prefix: one._pool_maxsize for prefix, one in client._http.adapters.items()}
    assert sizes == {"https://": 64, "http://": 64, "http://small/": 64, "http://large/": 500}
    for adapter in client._http.adapters.values():
        assert adapter.max_retries.total == 0


def test_a_session_of_the_users_own_is_used(stub):
    session = requests.Session()
    storage = GcsStorage(client_of(stub.url, _http=session).bucket("notes-bucket"))
    storage.put_if_version("a", b"x", {}, None)
    assert session.get_adapter(stub.url).poolmanager.pools
    storage.close()
    assert storage.get("a").data == b"x", "a closed storage opens new connections"
    storage.close()


def test_the_bucket_is_checked_by_type():
    with pytest.raises(TypeError, match=r"google\.cloud\.storage\.Bucket"):
        GcsStorage("bucket")


def test_threads_64_first_calls_at_once_need_no_more_connections_than_there_are(
    stub, open_at, race, caplog
):
    storage = open_at(stub.url, concurrency=64, deadline=30.0, attempt_timeout=10.0)

    def first(number):
        version = storage.put_if_version(f"k/{number}", b"%d" % number, {}, None)
        assert storage.get(f"k/{number}").version == version
        return version

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        versions = race([partial(first, number) for number in range(64)])
    assert len(set(versions)) == 64
    assert all(isinstance(version, str) for version in versions), versions
    assert "pool is full" not in caplog.text
    storage.close()


def test_threads_more_callers_than_connections_only_wait(stub, open_at, race, caplog):
    storage = open_at(stub.url, concurrency=2, deadline=30.0, attempt_timeout=10.0)
    calls = [partial(storage.put_if_version, f"k/{number}", b"x", {}, None) for number in range(24)]
    versions = race(calls)
    assert all(isinstance(version, str) for version in versions), versions
    assert "pool is full" not in caplog.text
    storage.close()


def test_threads_a_thousand_gets_from_32_threads_leave_nothing_behind(stub, open_at, race):
    storage = open_at(stub.url, deadline=30.0, attempt_timeout=10.0)
    stub.put("a", b"body")
    storage.get("a")
    gc.collect()
    before, others = open_files(), set(threading.enumerate())

    def some():
        return [storage.get("a").data for _ in range(32)]

    results = race([some] * 32)
    assert results == [[b"body"] * 32] * 32
    storage.close()
    gc.collect()
    assert stub.kinds().count("body") == 32 * 32 + 1
    # The server's ends of the connections are in this process too, and close in their own time.
    assert open_files() <= before + 32
    calling = [thread for thread in threading.enumerate() if thread.name == "wenchang-call"]
    assert len(set(calling) - others) <= 32


def test_fork_children_share_no_connection_with_the_parent(stub, storage):
    version = storage.put_if_version("shared", b"parent", {}, None)
    parents = storage._requests._bucket._session().get_adapter(stub.url).poolmanager
    children = []
    for number in range(4):
        reader, writer = os.pipe()
        pid = os.fork()
        if not pid:
            said = b"ok"
            try:
                mine = storage._requests._bucket._session().get_adapter(stub.url).poolmanager
                assert mine is not parents
                assert len(mine.pools) == 0
                for turn in range(20):
                    storage.put(f"child/{number}", b"%d %d" % (number, turn), {})
                    assert storage.get(f"child/{number}").data == b"%d %d" % (number, turn)
                assert storage.get("shared").version == version
            except BaseException as error:
                said = repr(error).encode()
            os.write(writer, said)
            os._exit(0)
        os.close(writer)
        children.append((pid, reader))
    for _ in range(20):
        assert storage.get("shared").data == b"parent"
    for pid, reader in children:
        assert os.read(reader, 4096) == b"ok"
        os.close(reader)
        os.waitpid(pid, 0)


def test_init_offline_importing_the_package_and_its_descriptor_imports_no_sdk():
    program = (
        "import sys, wenchang_gcs, wenchang_gcs.descriptor, wenchang.storage.gcs;"
        "print([n for n in ('google.cloud.storage', 'google.auth', 'requests') if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"
