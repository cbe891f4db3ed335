"""Locations, options and the documented import paths."""

from __future__ import annotations

import importlib
import sys

import pytest

import wenchang.storage.gcs
import wenchang_gcs
from wenchang.storage import StorageConfigurationError, find_backend, open_storage
from wenchang_gcs.opening import split_address


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("bucket", ("bucket", "")),
        ("bucket/", ("bucket", "")),
        ("my.bucket-1_2/agents/memory/", ("my.bucket-1_2", "agents/memory")),
        ("bucket/%E6%96%87%20a", ("bucket", "文 a")),
    ],
)
def test_an_address_is_a_bucket_and_a_prefix(address, parts):
    assert split_address(address) == parts


@pytest.mark.parametrize("address", ["", "/x", "ab", "Bucket", "bucket%FF", "b@d:1", "-bucket"])
def test_init_fail_another_address_says_what_one_looks_like(address):
    with pytest.raises(StorageConfigurationError, match="gs://bucket/prefix"):
        split_address(address)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("endpoint_url", "nowhere"),
        ("endpoint_url", "ftp://host"),
        ("endpoint_url", "https://user:secret@host"),
        ("endpoint_url", "https://host?token=secret"),
        ("deadline", 0),
        ("deadline", "soon"),
        ("attempt_timeout", -1),
        ("concurrency", 0),
        ("concurrency", 1001),
        ("project", ""),
        ("bucket", "x"),
    ],
)
def test_init_fail_a_wrong_option_is_named(option, value):
    with pytest.raises(StorageConfigurationError, match=option) as caught:
        open_storage("gs://bucket", options={option: value})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("prefix", ["p" * 124, "a//b", "a/../b", "/".join("p" * 21)])
def test_init_fail_a_wrong_prefix_is_named(prefix):
    with pytest.raises(StorageConfigurationError, match="prefix"):
        open_storage(f"gs://bucket/{prefix}")


def test_the_descriptor_is_found_by_its_scheme():
    descriptor = find_backend("gs")
    assert descriptor.name == "gs"
    assert descriptor.hooks == "wenchang_gcs.hooks:hooks"
    assert importlib.import_module("wenchang_gcs.hooks").hooks


def test_nothing_of_the_bucket_is_in_the_repr():
    storage = open_storage("gs://secret-bucket/secret-prefix?anonymous=true")
    assert repr(storage) == "<wenchang_gcs.storage.GcsStorage>"
    storage.close()


def test_memory_088_the_class_has_its_documented_path():
    assert wenchang.storage.gcs.GcsStorage is wenchang_gcs.GcsStorage
    for module in (wenchang.storage.gcs, wenchang_gcs):
        with pytest.raises(AttributeError, match="Nothing"):
            module.Nothing  # noqa: B018 - looked up for its error


def test_without_the_package_the_documented_path_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "wenchang_gcs", None)
    with pytest.raises(ImportError, match=r"pip install 'wenchang\[gcs\]'"):
        wenchang.storage.gcs.GcsStorage  # noqa: B018 - looked up for its error
