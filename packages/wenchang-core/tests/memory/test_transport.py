"""The transport mirrors the store."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import Any

import pytest

from wenchang.core import MemoryStore
from wenchang.metadata import FileMetadata
from wenchang.transport import InProcessClient, TransportClient

OPERATIONS = [
    "read_file",
    "write_file",
    "append_line",
    "replace_fact",
    "delete_file",
    "list_prefix",
    "get_memory_index",
]


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("kind", [TransportClient, InProcessClient])
def test_mem_097_each_operation_has_the_signature_of_the_store(kind: type, operation: str) -> None:
    ours, theirs = getattr(kind, operation), getattr(MemoryStore, operation)
    assert inspect.signature(ours) == inspect.signature(theirs)
    assert typing.get_type_hints(ours) == typing.get_type_hints(theirs)


def test_mem_097_the_protocol_has_these_seven_operations_and_no_other() -> None:
    public = {name for name in vars(TransportClient) if not name.startswith("_")}
    assert public == set(OPERATIONS)


def test_mem_097_the_client_in_this_process_forwards_everything(
    store: MemoryStore, meta: Callable[..., FileMetadata]
) -> None:
    client = InProcessClient(store)
    assert isinstance(client, TransportClient)
    assert client.store is store
    path = "user/u-1/prefs/tea.md"
    file = client.write_file(path, "X\n", meta(), None, source="one")
    file = client.append_line(
        path, "- [stated] a", file.version, source="two", aliases=["a"], description="d"
    )
    file = client.replace_fact(
        path, "X", "Y", file.version, source="three", aliases=["b"], description="e"
    )
    assert client.read_file(path) == store.read_file(path) == file
    assert file.content == "Y\n- [stated] a\n"
    assert (file.metadata.description, file.metadata.aliases) == ("e", ("a", "b"))
    assert file.metadata.sources == {"one", "two", "three"}
    assert client.list_prefix("user/u-1/", None) == store.list_prefix("user/u-1/")
    index = client.get_memory_index({"user": "u-1"})
    assert index == store.get_memory_index({"user": "u-1"})
    client.delete_file(path, file.version)
    assert store.list_prefix("user/u-1/").entries == ()


@pytest.mark.parametrize("store", [None, object(), MemoryStore])
def test_mem_097_a_client_needs_a_store(store: Any) -> None:
    with pytest.raises(TypeError, match="store"):
        InProcessClient(store)
