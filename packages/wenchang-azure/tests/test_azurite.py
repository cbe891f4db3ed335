"""A whole service: requests, threads, forks, lost answers, and blobs that somebody else made."""

from __future__ import annotations

import logging
import os
import secrets
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.storage.blob import ContainerClient, ContentSettings

from wenchang.errors import BackendUnavailableError
from wenchang.storage import PreconditionFailedError, StorageRejectedError, open_storage
from wenchang.storage.azure import AzureStorage
from wenchang.storage.locations import StorageLocation
from wenchang_azure.hooks import http_faults
from wenchang_azure.marks import METADATA_NAME
from wenchang_azure.names import encode_name
from wenchang_conformance.faults import FaultProxy
from wenchang_conformance.hooks import FaultKind


@pytest.fixture
def storage(location: StorageLocation) -> Iterator[Any]:
    with open_storage(location) as storage:  # type: ignore[attr-defined] # this backend is a context manager
        yield storage


@pytest.fixture
def root(location: StorageLocation) -> str:
    return location.address.rpartition("/")[2] + "/"


@pytest.fixture
def proxied(location: StorageLocation) -> Iterator[tuple[Any, FaultProxy]]:
    """A used handle behind a proxy that counts."""
    parts = urlsplit(str(location.options["endpoint"]))
    with FaultProxy((parts.hostname or "", parts.port or 0)) as proxy:
        endpoint = f"http://127.0.0.1:{proxy.port}{parts.path}"
        with open_storage(  # type: ignore[attr-defined] # this backend is a context manager
            replace(location, options={**location.options, "endpoint": endpoint})
        ) as storage:
            storage.put("first", b"", {})
            yield storage, proxy


def requests_of(proxy: FaultProxy, call: Callable[[], Any]) -> tuple[list[str], Any]:
    """Return the methods of the requests that a call sends, and what it returns."""
    before = len(proxy.log.entries())
    result = call()
    return [entry.method for entry in proxy.log.entries()[before:]], result


def test_each_operation_costs_the_requests_that_it_names(proxied: tuple[Any, FaultProxy]):
    storage, proxy = proxied
    sent, version = requests_of(proxy, lambda: storage.put_if_version("k", b"1", {"n": "1"}, None))
    assert sent == ["PUT"]
    sent, version = requests_of(proxy, lambda: storage.put_if_version("k", b"2", {}, version))
    assert sent == ["PUT"]
    sent, found = requests_of(proxy, lambda: storage.get("k"))
    assert sent == ["GET"]
    assert (found.data, found.version) == (b"2", version)
    sent, found = requests_of(proxy, lambda: storage.get("absent"))
    assert (sent, found) == (["GET"], None)
    sent, _ = requests_of(proxy, lambda: storage.put("k", b"3", {}))
    assert sent == ["HEAD", "PUT"]
    # A conflict is read back, so that its caller need not read.
    with pytest.raises(PreconditionFailedError) as caught:
        storage.put_if_version("k", b"4", {}, version)
    assert caught.value.current.data == b"3"
    sent, _ = requests_of(
        proxy, lambda: storage.delete_if_version("k", caught.value.current.version)
    )
    assert sent == ["DELETE"]
    largest = os.urandom(4 * 1024 * 1024)
    sent, _ = requests_of(proxy, lambda: storage.put_if_version("large", largest, {}, None))
    assert sent == ["PUT"]
    sent, found = requests_of(proxy, lambda: storage.get("large"))
    assert sent == ["GET"]
    assert found.data == largest


def test_a_page_of_a_thousand_is_one_request(
    proxied: tuple[Any, FaultProxy], container: ContainerClient, root: str
):
    storage, proxy = proxied
    keys = [f"notes/{number:04d}.md" for number in range(1001)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda key: container.upload_blob(root + key, b"x"), keys))
    sent, page = requests_of(proxy, lambda: storage.list_page("notes/", None, 1000))
    assert sent == ["GET"]
    assert [entry.key for entry in page] == keys[:1000]
    sent, page = requests_of(proxy, lambda: storage.list_page("notes/", keys[0], 1000))
    assert sent == ["GET"]
    assert [entry.key for entry in page] == keys[1:]


@pytest.mark.parametrize("kind", [FaultKind.ANSWER_LOST, FaultKind.HANG_APPLIED])
def test_out_landed_eight_writers_count_exactly_although_answers_are_lost(
    location: StorageLocation, race: Callable[..., list[Any]], kind: FaultKind
):
    """Where the loss shows at once nothing stays unknown; where it takes a time-out, the sum bounds."""
    at_once = kind is FaultKind.ANSWER_LOST
    each = 25 if at_once else 4
    patience = {"deadline": 60.0, "attempt_timeout": 15.0} if at_once else {}
    injector: Any = http_faults(location, **patience)
    try:
        handles = [injector.open() for _ in range(2)]
        handles[0].put("counter", b"0", {})
        injector.chaos({kind: 0.1}, seed=7)

        def increment(handle: Any) -> tuple[int, int]:
            done = unknown = 0
            while done + unknown < each:
                found = handle.get("counter")
                body = b"%d" % (int(found.data) + 1)
                try:
                    handle.put_if_version("counter", body, {}, found.version)
                    done += 1
                except PreconditionFailedError:
                    continue
                except BackendUnavailableError:
                    unknown += 1
            return done, unknown

        results = race(
            [lambda number=number: increment(handles[number % 2]) for number in range(8)], 120.0
        )
        injector.clear()
        final = int(handles[0].get("counter").data)
        assert injector.injected() > 0
    finally:
        for handle in handles:
            handle.close()
        injector.close()
    done, unknown = (sum(column) for column in zip(*results, strict=True))
    assert done + unknown == 8 * each
    assert done <= final <= done + unknown
    if at_once:
        assert (final, unknown) == (8 * each, 0)


def test_threads_64_make_the_first_call_at_once(
    location: StorageLocation, race: Callable[..., list[Any]]
):
    with open_storage(location) as storage:  # type: ignore[attr-defined] # this backend is a context manager
        results = race(
            [
                lambda number=number: storage.put_if_version(f"k{number}", b"x", {}, None)
                for number in range(64)
            ]
        )
        assert all(isinstance(result, str) for result in results), results
        assert len(storage.list_page("", None, 100)) == 64


def test_threads_a_thousand_gets_leak_nothing_and_warn_of_nothing(
    storage: Any, caplog: pytest.LogCaptureFixture
):
    before = threading.active_count()
    storage.put("k", b"body", {})
    with caplog.at_level(logging.WARNING), ThreadPoolExecutor(48) as pool:
        bodies = set(pool.map(lambda _: storage.get("k").data, range(1000)))
        assert [storage.get("absent") for _ in range(50)] == [None] * 50
        # Never more threads than the option `concurrency` says, beside those of this test.
        assert threading.active_count() <= before + 48 + 32
    assert bodies == {b"body"}
    assert caplog.records == []


def in_child(work: Callable[[], bytes]) -> bytes:
    """Run `work` in a forked child and return what it returned."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, work())
        except BaseException as error:
            os.write(writing, repr(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        answer = stream.read()
    os.waitpid(child, 0)
    return answer


def test_fork_a_used_handle_works_in_the_child_and_in_the_parent(storage: Any):
    for round_ in range(3):
        storage.put("k", b"parent %d" % round_, {})

        def work() -> bytes:
            found = storage.get("k")
            storage.put_if_version("k", found.data + b", child", {}, found.version)
            return bytes(storage.get("k").data)

        assert in_child(work) == b"parent %d, child" % round_
        assert storage.get("k").data == b"parent %d, child" % round_


def given_client(container: ContainerClient, azurite: str) -> ContainerClient:
    return ContainerClient(azurite, container.container_name, credential=container.credential)


def test_a_given_client_is_used_and_left_open(container: ContainerClient, azurite: str, root: str):
    client = given_client(container, azurite)
    with client:
        with AzureStorage(client, prefix=root.removesuffix("/")) as storage:
            version = storage.put_if_version("k", b"1", {"n": "1"}, None)
            work = lambda: storage.get("k").data  # noqa: E731 - one expression for both processes
            assert in_child(work) == b"1"
            assert storage.put_if_version("k", b"2", {}, version) != version
        assert client.get_blob_client(root + "k").get_blob_properties().size == 1
        assert repr(storage) == "<AzureStorage>"


def test_a_closed_storage_opens_again_at_its_next_call(storage: Any):
    storage.put("k", b"1", {})
    storage.close()
    assert storage.get("k").data == b"1"
    storage.close()
    storage.close()


def test_obj_foreign_a_note_uploaded_by_hand_gets_our_format_at_its_first_write(
    storage: Any, container: ContainerClient, root: str
):
    container.upload_blob(
        root + "by hand.md",
        "# Grüße\n".encode(),
        metadata={"author": "someone"},
        content_settings=ContentSettings(content_encoding="gzip", content_type="text/markdown"),
    )
    (entry,) = storage.list_page("", None, 10)
    found = storage.get("by hand.md")
    assert (found.data, found.metadata, found.version) == ("# Grüße\n".encode(), {}, entry.version)
    storage.put_if_version("by hand.md", b"ours", {"n": "1"}, found.version)
    blob = container.get_blob_client(root + "by hand.md").get_blob_properties()
    assert list(blob.metadata) == [METADATA_NAME]
    assert storage.get("by hand.md").metadata == {"n": "1"}


def test_obj_foreign_a_copy_made_by_hand_is_an_object_of_its_own(
    storage: Any, container: ContainerClient, root: str
):
    version = storage.put("original", b"body", {"n": "1"})
    source = container.get_blob_client(root + "original")
    container.get_blob_client(root + "copy").start_copy_from_url(source.url)
    copy = storage.get("copy")
    assert (copy.data, copy.metadata) == (b"body", {"n": "1"})
    assert copy.version != version
    storage.put_if_version("copy", b"changed", {}, copy.version)
    assert storage.get("original").data == b"body"


def test_a_lease_and_a_snapshot_protect_a_blob_and_are_no_conflict(
    storage: Any, container: ContainerClient, root: str
):
    version = storage.put("leased", b"1", {})
    blob = container.get_blob_client(root + "leased")
    lease = blob.acquire_lease()
    for call in (
        lambda: storage.put_if_version("leased", b"2", {}, version),
        lambda: storage.delete_if_version("leased", version),
        lambda: storage.put("leased", b"2", {}),
    ):
        with pytest.raises(StorageRejectedError) as caught:
            call()
        assert caught.value.kind == "locked"
    lease.release()
    assert storage.get("leased").data == b"1"
    version = storage.get("leased").version
    snapshot = blob.create_snapshot()
    version = storage.get("leased").version
    with pytest.raises(StorageRejectedError) as caught:
        storage.delete_if_version("leased", version)
    assert caught.value.kind == "locked"
    assert [entry.key for entry in storage.list_page("", None, 10)] == ["leased"]
    container.get_blob_client(root + "leased", snapshot=snapshot["snapshot"]).delete_blob()
    storage.delete_if_version("leased", version)


def test_stores_under_different_prefixes_know_nothing_of_each_other(location: StorageLocation):
    places = [
        location,
        *(replace(location, address=location.address + more) for more in ("/a", "x")),
    ]
    places.append(replace(location, address=location.address + "/%F0%9F%98%80%EF%AC%81"))
    storages: list[Any] = [open_storage(place) for place in places]
    for number, storage in enumerate(storages[1:], start=1):
        storage.put("k", b"%d" % number, {})
    assert [storage.get("k") and storage.get("k").data for storage in storages] == [
        None,
        b"1",
        b"2",
        b"3",
    ]
    for storage in storages[1:]:
        assert [entry.key for entry in storage.list_page("", None, 10)] == ["k"]
    names = [entry.key for entry in storages[0].list_page("", None, 10)]
    assert names == ["a/k", "😀\ufb01/k"]
    for storage in storages:
        storage.close()


def test_list_order_is_that_of_the_keys_across_planes(storage: Any):
    keys = [
        "a",
        "a\u00e9",
        "a\ud7ff",
        "a\ue000",
        "a\ue001",
        "a\ufb01",
        "a\ufffd",
        "a😀",
        "a\U0010fffd",
    ]
    for key in reversed(keys):
        storage.put_if_version(key, encode_name(key).encode(), {}, None)
    assert [entry.key for entry in storage.list_page("", None, 100)] == keys
    for number, key in enumerate(keys):
        assert [entry.key for entry in storage.list_page("a", key, 1)] == keys[
            number + 1 : number + 2
        ]


def test_init_fail_a_missing_container_is_named_as_such(location: StorageLocation):
    account = location.address.partition("/")[0]
    missing = replace(location, address=f"{account}/missing-{secrets.token_hex(4)}")
    with open_storage(missing) as storage:  # type: ignore[attr-defined] # this backend is a context manager
        for call in (
            lambda: storage.get("k"),
            lambda: storage.put("k", b"", {}),
            lambda: storage.put_if_version("k", b"", {}, None),
            lambda: storage.delete_if_version("k", "0x1"),
            lambda: storage.list_page("", None, 1),
        ):
            with pytest.raises(StorageRejectedError) as caught:
                call()
            assert caught.value.kind == "missing_container"
            assert "missing-" not in str(caught.value)


def test_a_wrong_key_is_a_rejection(container: ContainerClient, azurite: str):
    wrong = AzureNamedKeyCredential("devstoreaccount1", "d3Jvbmc=")
    client = ContainerClient(azurite, container.container_name, credential=wrong)
    with client, pytest.raises(StorageRejectedError) as caught:
        AzureStorage(client).get("k")
    # The service says AuthenticationFailed, the emulator AuthorizationFailure.
    assert caught.value.kind in {"credentials", "permission"}
    assert "d3Jvbmc=" not in f"{caught.value} {caught.value!r}"


def test_a_service_version_that_the_sdk_does_not_know_is_an_option_error(location: StorageLocation):
    from wenchang.storage import StorageConfigurationError

    wrong = replace(location, options={**location.options, "api_version": "2031-01-01"})
    with (
        open_storage(wrong) as storage,  # type: ignore[attr-defined] # this backend is a context manager
        pytest.raises(StorageConfigurationError, match="api_version"),
    ):
        storage.get("k")
