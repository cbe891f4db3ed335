"""One telemetry record for each call, on both paths."""

from __future__ import annotations

import functools
import json
import logging
import threading

import pytest

import wenchang.mcp
from wenchang.errors import NotFoundError
from wenchang.observer import ToolCallRecord
from wenchang.tools import MemoryTools, bind_tools

TEA = {"scope": "user", "area": "prefs", "name": "tea"}
NEW = {"content": "x\n", "description": "d", "aliases": ["a"], "expected_version": None}


@pytest.fixture
def records():
    return []


@pytest.fixture
def tools(world, records):
    return bind_tools(
        world.client, world.resolver, None, world.policy, source="s", on_call=records.append
    )


def test_mem_098_the_record_is_the_same_class_in_both_places():
    assert wenchang.mcp.ToolCallRecord is ToolCallRecord


def test_mem_098_a_call_over_mcp_is_recorded_with_its_registered_name(world, records):
    server = world.server(tool_prefix="acme", on_call=records.append)
    with world.connect(server, prefix="acme") as surface:
        written = surface.call("write_file", **TEA, **NEW)
        failed = surface.call("read_file", scope="x", area="a", name="b")

    assert [record.tool for record in records] == ["acme_write_file", "acme_read_file"]
    assert dict(records[0].arguments) == {**TEA, **NEW}
    assert dict(records[0].result) == written.payload
    assert dict(records[1].result) == failed.payload
    assert [record.is_error for record in records] == [False, True]
    assert all(record.request_id and record.duration_s > 0 for record in records)
    assert records[0].request_id != records[1].request_id


def test_mem_098_arguments_are_recorded_as_they_came(world, records):
    server = world.server(on_call=records.append)
    with world.connect(server) as surface:
        surface.send("list_prefix", {"scope": "user"})
        surface.send("list_prefix", {"scope": "user", "cursor": "null", "bogus": [1, {"a": 2}]})

    assert dict(records[0].arguments) == {"scope": "user"}
    assert dict(records[1].arguments) == {"scope": "user", "cursor": "null", "bogus": [1, {"a": 2}]}


def test_mem_098_a_call_without_identity_is_recorded(world, records):
    server = world.server(on_call=records.append)
    world.resolver = None
    with world.connect(server) as surface:
        world.credentials = "x"
        surface.send("read_file", {})

    assert [record.is_error for record in records] == [True]


def test_mem_099_a_direct_call_is_recorded_with_every_parameter(tools, records):
    file = tools.write_file(*TEA.values(), "x\n", "d", aliases=["a"], expected_version=None)
    tools.append_line(*TEA.values(), "- [stated] x", file.version)
    tools.get_memory_index()
    with pytest.raises(NotFoundError):
        tools.read_file("user", "prefs", "absent")

    assert [record.tool for record in records] == [
        "write_file",
        "append_line",
        "get_memory_index",
        "read_file",
    ]
    assert dict(records[0].arguments) == {**TEA, **NEW}
    assert dict(records[1].arguments) == {
        **TEA,
        "line": "- [stated] x",
        "expected_version": file.version,
        "aliases": None,
        "description": None,
    }
    assert dict(records[2].arguments) == {}
    assert [record.is_error for record in records] == [False, False, False, True]
    assert records[3].result["error"] == "NotFoundError"
    assert {record.request_id for record in records} == {None}
    assert {record.operation for record in records} == {None}
    assert all(record.duration_s >= 0 for record in records)


def test_mem_099_results_of_a_delete_and_a_listing_are_rendered(tools, records):
    version = tools.write_file(*TEA.values(), "x\n", "d", [], None).version
    tools.list_prefix("user")
    tools.delete_file(*TEA.values(), version)

    assert [entry["name"] for entry in records[1].result["entries"]] == ["tea"]
    assert dict(records[1].arguments) == {"scope": "user", "area": None, "cursor": None}
    assert dict(records[2].result) == {"ok": True}


def test_mem_099_a_call_that_does_not_fit_the_signature_leaves_no_record(tools, records):
    with pytest.raises(TypeError):
        tools.read_file("user")

    assert records == []


def test_mem_099_over_mcp_there_is_one_record_and_not_two(world, records):
    server = world.server(on_call=records.append)
    with world.connect(server) as surface:
        surface.call("get_memory_index")

    assert len(records) == 1


def test_mem_100_nothing_in_a_record_can_be_changed(tools, records):
    aliases = ["a"]
    tools.write_file(*TEA.values(), "x\n", "d", aliases, None)
    record = records[0]

    for mapping in (record.arguments, record.result):
        with pytest.raises(TypeError):
            mapping["x"] = 1
    with pytest.raises(AttributeError):
        record.tool = "x"


def test_mem_100_a_record_is_made_of_deep_copies(world):
    def vandal(record):
        record.arguments["aliases"].append("planted")
        record.result["aliases"].append("planted")

    given = ["a"]
    bound = bind_tools(world.client, world.resolver, None, world.policy, source="s", on_call=vandal)
    file = bound.write_file(*TEA.values(), "x\n", "d", given, None)

    assert given == ["a"]
    assert file.metadata.aliases == ("a",)
    with world.connect(world.server(on_call=vandal)) as surface:
        payload = surface.call(
            "write_file", **TEA, **(NEW | {"expected_version": file.version})
        ).payload
    assert payload["aliases"] == ["a"]


def test_mem_100_a_value_that_cannot_be_copied_is_shown_as_its_type(tools, records):
    lock = threading.Lock()

    with pytest.raises(Exception, match="content"):
        tools.write_file(*TEA.values(), lock, "d", [], None)

    assert records[0].arguments["content"] == f"<{type(lock).__name__}>"


def test_mem_100_a_record_can_be_exported_as_json(tools, records):
    tools.write_file(*TEA.values(), "x\n", "d", ["a"], None)

    assert json.loads(json.dumps(dict(records[0].result)))["name"] == "tea"


async def coroutine(record): ...


async def generator(record):
    yield


class AsyncCallable:
    async def __call__(self, record): ...


REFUSED = {
    "coroutine": coroutine,
    "generator": generator,
    "partial": functools.partial(coroutine),
    "callable": AsyncCallable(),
    "number": 5,
    "name": "name",
}


@pytest.mark.parametrize("observer", REFUSED.values(), ids=REFUSED)
def test_mem_101_an_async_or_uncallable_observer_is_refused(world, observer):
    identity = world.resolver.resolve(None)

    with pytest.raises(TypeError):
        bind_tools(world.client, world.resolver, None, world.policy, source="s", on_call=observer)
    with pytest.raises(TypeError):
        MemoryTools(world.client, identity, world.policy, source="s", on_call=observer)
    with pytest.raises(TypeError):
        world.server(on_call=observer)


def test_mem_101_an_exception_of_an_observer_is_logged_and_swallowed(world, caplog):
    def observer(_record):
        raise RuntimeError("telemetry is down")

    bound = bind_tools(
        world.client, world.resolver, None, world.policy, source="s", on_call=observer
    )
    bound.write_file(*TEA.values(), "x\n", "d", [], None)
    with world.connect(world.server(on_call=observer)) as surface:
        assert not surface.call("read_file", **TEA).is_error

    errors = [record for record in caplog.records if record.name == "wenchang.observer"]
    assert [record.levelno for record in errors] == [logging.ERROR, logging.ERROR]
    assert errors[0].exc_info[0] is RuntimeError


def test_mem_101_a_result_that_cannot_be_rendered_does_not_fail_the_call(world, caplog, records):
    class Client(type(world.client)):
        def delete_file(self, path, expected_version):
            return "surprise"

    bound = bind_tools(
        Client(world.store), world.resolver, None, world.policy, source="s", on_call=records.append
    )

    bound.delete_file(*TEA.values(), "v")

    assert len(records) == 1
