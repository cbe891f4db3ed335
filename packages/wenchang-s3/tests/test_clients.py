"""The client: made once, from whatever thread; options; whose it is; what a fork does to it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings
from typing import Any

import boto3
import pytest
from botocore.config import Config

import wenchang_s3
from wenchang.storage import (
    Storage,
    StorageConfigurationError,
    StorageRejectedError,
    VersionLister,
    open_storage,
)
from wenchang.storage.locations import StorageLocation
from wenchang_s3 import S3Storage
from wenchang_s3.clients import OwnClient
from wenchang_s3.opening import open_location
from wenchang_s3.options import S3Options

NO_RETRIES = Config(retries={"total_max_attempts": 1})


def test_many_threads_make_one_client_at_their_first_call(
    fake: Any, open_fake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []
    make = OwnClient._make
    monkeypatch.setattr(OwnClient, "_make", lambda self: made.append(1) or make(self))
    fake.objects["k"] = b"body"
    storage = open_fake(deadline=60.0, attempt_timeout=30.0)
    start = threading.Barrier(64)
    answers: list[Any] = []

    def first_call() -> None:
        start.wait(30)
        try:
            answers.append(storage.get("k").data)
        except Exception as error:
            answers.append(error)

    threads = [threading.Thread(target=first_call) for _ in range(64)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert answers == [b"body"] * 64
    assert made == [1]


def test_nothing_is_made_or_sent_before_the_first_call(
    fake: Any, open_fake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OwnClient, "_make", lambda _: pytest.fail("a client was made"))
    open_fake(profile="no-such-profile")
    assert fake.seen == []


def test_the_client_is_set_up_for_settling(credentials: None) -> None:
    options = S3Options(region="eu-west-1", attempt_timeout=3.0, concurrency=7)
    client = OwnClient(options).get()
    config = client.meta.config
    assert config.retries["total_max_attempts"] == 1
    assert (config.max_pool_connections, config.read_timeout, config.connect_timeout) == (7, 3, 3)
    assert config.request_checksum_calculation == "when_required"
    assert config.response_checksum_validation == "when_required"
    assert client.meta.region_name == "eu-west-1"
    client.close()


def test_no_checksum_trailers_are_sent(fake: Any, proven: Any) -> None:
    proven().put_if_version("k", b"body", {}, None)
    (seen,) = fake.seen
    assert not [
        name for name in seen.headers if name.startswith(("x-amz-checksum", "x-amz-trailer"))
    ]
    assert fake.objects["k"].endswith(b"\n---\nbody")


def test_markdown_is_labelled_as_such(fake: Any, proven: Any) -> None:
    storage = proven()
    storage.put_if_version("note.md", b"", {}, None)
    storage.put_if_version("data.bin", b"", {}, None)
    kinds = [seen.headers.get("content-type", "") for seen in fake.seen]
    assert kinds[0] == "text/markdown; charset=utf-8"
    assert "markdown" not in kinds[1]


# --- a client of the application -----------------------------------------------------------------


def test_a_client_that_repeats_requests_is_refused_and_told_how(credentials: None) -> None:
    client = boto3.client("s3", region_name="eu-west-1")
    with pytest.raises(StorageConfigurationError, match="total_max_attempts"):
        S3Storage("bucket", client=client)
    client.close()


@pytest.mark.parametrize("wrong", [object(), "client"])
def test_what_is_no_s3_client_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="S3 client"):
        S3Storage("bucket", client=wrong)


def test_another_services_client_is_refused(credentials: None) -> None:
    client = boto3.client("sts", region_name="eu-west-1", config=NO_RETRIES)
    with pytest.raises(TypeError, match="S3 client"):
        S3Storage("bucket", client=client)
    client.close()


def test_options_of_the_client_are_refused_beside_one(fake: Any, credentials: None) -> None:
    client = boto3.client("s3", region_name="eu-west-1", config=NO_RETRIES)
    with pytest.raises(StorageConfigurationError, match="'region'"):
        S3Storage("bucket", client=client, region="eu-west-1")
    with pytest.raises(StorageConfigurationError, match="'addressing_style'"):
        S3Storage("bucket", client=client, addressing_style="path")
    client.close()


def test_a_given_client_is_used_and_left_open(fake: Any, credentials: None) -> None:
    config = NO_RETRIES.merge(Config(max_pool_connections=3))
    client = boto3.client("s3", region_name="eu-west-1", endpoint_url=fake.url, config=config)
    with S3Storage("bucket", client=client) as storage:
        version = storage.put_if_version("k", b"body", {"n": "1"}, None)
    assert client.head_bucket  # the client is the application's to close
    assert storage.get("k").version == version
    storage.close()
    client.close()


def test_a_given_client_works_in_a_forked_child_and_in_its_parent(
    fake: Any, credentials: None
) -> None:
    client = boto3.client("s3", region_name="eu-west-1", endpoint_url=fake.url, config=NO_RETRIES)
    storage = S3Storage("bucket", client=client)
    storage.put("k", b"parent", {})
    child = os.fork()
    if child == 0:
        try:
            done = storage.get("k").data == b"parent" and bool(storage.put("c", b"child", {}))
        except BaseException:
            done = False
        os._exit(0 if done else 1)
    assert storage.get("k").data == b"parent"
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert storage.get("c").data == b"child"
    storage.close()
    client.close()


# --- options and locations -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "bucket",
    ["memories--use1-az4--x-s3", "alias-abc--xa-s3"],
)
def test_directory_buckets_are_refused(bucket: str) -> None:
    with pytest.raises(StorageConfigurationError, match="directory bucket"):
        S3Storage(bucket)


@pytest.mark.parametrize("bucket", ["", "a", "a/b", "-ab", "a b", "arn:aws:s3:::bucket", "ä" * 5])
def test_what_is_no_bucket_is_refused(bucket: str) -> None:
    with pytest.raises(StorageConfigurationError, match="bucket"):
        S3Storage(bucket)


def test_an_access_point_is_a_bucket() -> None:
    S3Storage("arn:aws:s3:eu-west-1:123456789012:accesspoint/memories")


@pytest.mark.parametrize("prefix", ["/a", "a/", "a//b", "p" * 124, "/".join("p" * 21), "a\\b"])
def test_a_prefix_that_leaves_no_room_or_is_no_key_is_refused(prefix: str) -> None:
    with pytest.raises(StorageConfigurationError, match="'prefix'"):
        S3Storage("bucket", prefix=prefix)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("region", ""),
        ("region", "eu west"),
        ("endpoint_url", "localhost:9000"),
        ("endpoint_url", "ftp://host"),
        ("endpoint_url", "https://user:secret@host"),
        ("endpoint_url", "https://host/path"),
        ("endpoint_url", "https://host:port"),
        ("profile", ""),
        ("addressing_style", "host"),
        ("deadline", 0),
        ("attempt_timeout", float("nan")),
        ("concurrency", 0),
        ("concurrency", 2.0),
    ],
)
def test_a_wrong_option_is_an_error_that_names_it_and_not_its_value(name: str, value: Any) -> None:
    with pytest.raises(StorageConfigurationError, match=f"'{name}'") as caught:
        S3Storage("bucket", **{name: value})
    assert "secret" not in str(caught.value)


def test_a_url_is_bucket_prefix_and_options(fake: Any, credentials: None) -> None:
    url = f"s3://bucket/team/%C3%A4%20b/?endpoint_url={fake.url}&concurrency=3&region=eu-west-1"
    with open_storage(url) as storage:
        storage.put("k", b"", {})
    assert [name for name in fake.objects if not name.endswith("p/")] == ["team/ä b/k"]


def test_credentials_in_a_url_are_refused_without_repeating_them() -> None:
    with pytest.raises(StorageConfigurationError, match="credentials") as caught:
        open_location(StorageLocation.parse("s3://id:secret@bucket/prefix"))
    assert "secret" not in str(caught.value)


def test_an_unknown_option_in_a_url_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(StorageConfigurationError, match="endpoint_url"):
        open_location(StorageLocation.parse("s3://bucket?endpoint=x"))


def test_a_profile_that_does_not_exist_is_an_error_that_names_the_option(open_fake: Any) -> None:
    with pytest.raises(StorageConfigurationError, match="'profile'"):
        open_fake(profile="nobody").get("k")


def test_without_credentials_a_call_says_where_they_come_from(
    open_fake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(StorageRejectedError, match="AWS_ACCESS_KEY_ID") as caught:
        open_fake().get("k")
    assert caught.value.kind == "credentials"


def test_the_repr_gives_nothing_away() -> None:
    shown = repr(S3Storage("private-bucket", prefix="private", endpoint_url="https://private"))
    assert "private" not in shown


def test_the_package_and_its_descriptor_import_no_sdk() -> None:
    program = (
        "import sys, wenchang_s3, wenchang_s3.descriptor; "
        "sys.exit(bool({'boto3', 'botocore'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, timeout=60)
    assert done.returncode == 0


# --- what the package offers ---------------------------------------------------------------------


def test_the_public_names_are_these() -> None:
    assert sorted(wenchang_s3.__all__) == [
        "EndpointProof",
        "S3Options",
        "S3Storage",
        "__version__",
        "open_location",
    ]
    for name in wenchang_s3.__all__:
        assert getattr(wenchang_s3, name) is not None
    with pytest.raises(AttributeError):
        _ = wenchang_s3.nothing


def test_the_documented_path_leads_here() -> None:
    from wenchang.storage import s3

    assert s3.S3Storage is S3Storage


def test_the_storage_keeps_the_protocols_of_the_contract() -> None:
    storage = S3Storage("bucket")
    assert isinstance(storage, Storage)
    assert isinstance(storage, VersionLister)
