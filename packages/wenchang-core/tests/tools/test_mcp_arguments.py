"""Arguments over MCP: strings stay strings, and every mistake is answered and recorded."""

from __future__ import annotations

import pytest

from wenchang.schemas import tool_schemas
from wenchang.tools import TOOL_NAMES

JSON_LOOKING = ["null", "[1]", '{"a":1}', "123", "true", '"quoted"', "1.5", "false"]
TEA = {"scope": "user", "area": "prefs", "name": "tea"}
NEW = {"content": "x\n", "description": "d", "aliases": [], "expected_version": None}


@pytest.fixture
def recorded(world):
    """Return a surface over MCP together with the records of its calls."""
    records = []
    with world.connect(world.server(on_call=records.append)) as surface:
        yield surface, records


@pytest.mark.parametrize("text", JSON_LOOKING)
def test_mem_061_what_looks_like_json_is_stored_as_the_string_it_is(recorded, text):
    surface, records = recorded
    arguments = TEA | {"name": text.replace("/", "")}

    written = surface.call(
        "write_file",
        **arguments,
        content=text,
        description=text,
        aliases=[text],
        expected_version=None,
    ).payload
    edited = surface.call(
        "replace_fact",
        **arguments,
        old_string=text,
        new_string=f"{text}\n",
        expected_version=written["version"],
        description=text,
    ).payload
    appended = surface.call(
        "append_line",
        **arguments,
        line=f"- [stated] {text}",
        expected_version=edited["version"],
        description=text,
    ).payload

    assert (written["content"], written["description"]) == (text, text)
    assert written["aliases"] == [text]
    assert appended["content"] == f"{text}\n- [stated] {text}\n"
    assert appended["name"] == text
    assert [record.arguments["description"] for record in records] == [text] * 3


STRING_ARGUMENTS = [
    (tool, argument)
    for tool, schema in tool_schemas().items()
    for argument, rules in schema.input["properties"].items()
    if "string" in rules["type"]
]


@pytest.mark.parametrize(("tool", "argument"), STRING_ARGUMENTS)
@pytest.mark.parametrize("text", JSON_LOOKING[:5])
def test_mem_061_in_no_string_argument_does_a_string_become_anything_else(
    world, recorded, make_direct, tool, argument, text
):
    """What MCP answers is what a direct call with that very string answers."""
    surface, records = recorded
    version = world.seed("user", "prefs", "tea")
    base = {
        "scope": "user",
        "area": "prefs",
        "name": "tea",
        "content": "x",
        "description": "d",
        "aliases": [],
        "expected_version": "stale",
        "line": "- [stated] x",
        "old_string": "absent",
        "new_string": "y",
        "cursor": None,
    }
    arguments = {key: base[key] for key in tool_schemas()[tool].input["properties"]}
    arguments[argument] = text

    over_mcp = surface.send(tool, arguments)
    direct = make_direct(world).call(tool, **arguments)

    assert over_mcp.payload == direct.payload
    assert records[-1].arguments[argument] == text
    assert world.store.read_file(world.path("user", "prefs", "tea")).version == version


def test_mem_061_a_version_null_as_a_string_is_no_create(world, recorded):
    surface, _ = recorded

    payload = surface.call("write_file", **TEA, **(NEW | {"expected_version": "null"})).payload

    assert payload["error"] == "NotFoundError"
    assert world.keys() == []


def test_mem_061_an_area_null_as_a_string_is_an_area(world, recorded):
    surface, _ = recorded
    world.seed("user", "prefs", "tea")

    assert surface.call("list_prefix", scope="user", area="null").payload["entries"] == []


@pytest.mark.parametrize("tool", TOOL_NAMES)
def test_mem_061_an_unknown_argument_is_named_and_recorded(world, recorded, tool):
    surface, records = recorded

    reply = surface.send(
        tool, {"scope": "user", "entity_id": "x"} if tool != TOOL_NAMES[0] else {"entity_id": "x"}
    )

    assert (reply.payload["error"], reply.payload["argument"]) == (
        "InvalidArgumentError",
        "entity_id",
    )
    assert records[-1].is_error
    assert records[-1].arguments["entity_id"] == "x"
    assert world.keys() == []


@pytest.mark.parametrize(
    ("tool", "argument"),
    [(tool, name) for tool, schema in tool_schemas().items() for name in schema.input["required"]],
)
def test_mem_061_a_missing_argument_is_named_and_recorded(recorded, tool, argument):
    surface, records = recorded
    arguments = dict.fromkeys(tool_schemas()[tool].input["required"], "x")
    del arguments[argument]

    reply = surface.send(tool, arguments)

    assert (reply.payload["error"], reply.payload["argument"]) == ("InvalidArgumentError", argument)
    assert [record.is_error for record in records] == [True]


@pytest.mark.parametrize("value", [None, True, 5, 1.5, [], {}])
def test_mem_061_a_wrong_type_is_answered_by_us_and_recorded(recorded, value):
    surface, records = recorded

    reply = surface.send("read_file", TEA | {"scope": value})

    assert (reply.payload["error"], reply.payload["argument"]) == ("InvalidArgumentError", "scope")
    assert records[0].arguments["scope"] == value


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("bogus", "bogus"),
        ("a\nb", "a\\nb"),
        ("é", "\\xe9"),
        ("", "''"),
        ("x" * 64, "x" * 64),
        ("x" * 65, "x" * 61 + "..."),
        ("\u202e", "\\u202e"),
    ],
)
def test_mem_077_an_unknown_argument_is_shown_escaped_in_64_characters(recorded, name, shown):
    surface, _ = recorded

    payload = surface.send("read_file", TEA | {name: 1}).payload

    assert payload["argument"] == shown
    assert len(payload["argument"]) <= 64
    assert payload["message"].startswith(f"Argument {shown} is invalid: ")
    assert "scope, area, name" in payload["message"]


def test_mem_061_no_argument_at_all_is_enough_for_the_index(recorded):
    surface, _ = recorded

    assert not surface.send("get_memory_index", {}).is_error
