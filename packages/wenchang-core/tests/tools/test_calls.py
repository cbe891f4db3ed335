"""What each of the seven tools takes and gives, on both surfaces."""

from __future__ import annotations

import json

import pytest

from wenchang.core import index_entry_bytes
from wenchang.tools import TOOL_NAMES, MemoryTools, bind_tools, render_result
from wenchang.tools._rendering import to_json

FILE_FIELDS = [
    "scope",
    "area",
    "name",
    "content",
    "version",
    "description",
    "aliases",
    "sources",
    "last_updated",
]
ENTRY_FIELDS = [name for name in FILE_FIELDS if name != "content"]
TEA = {"scope": "user", "area": "prefs", "name": "tea"}


def write(surface, **changes):
    arguments = {
        **TEA,
        "content": "- [stated] Likes tea.\n",
        "description": "Tea",
        "aliases": ["chai"],
        "expected_version": None,
    }
    return surface.call("write_file", **(arguments | changes))


def test_mem_041_the_tools_have_their_names_and_their_order():
    assert TOOL_NAMES == (
        "get_memory_index",
        "read_file",
        "list_prefix",
        "write_file",
        "append_line",
        "replace_fact",
        "delete_file",
    )


def test_mem_041_the_bound_tools_stand_in_the_same_order_and_are_read_only(world):
    tools = bind_tools(world.client, world.resolver, None, world.policy, source="s").tools()

    assert tuple(tools) == TOOL_NAMES
    with pytest.raises(TypeError):
        tools["read_file"] = None


def test_mem_041_over_mcp_the_tools_are_registered_in_order(world):
    with world.connect() as surface:
        tools = surface.portal.call(surface.client.list_tools).tools
    assert tuple(tool.name for tool in tools) == TOOL_NAMES


def test_mem_041_a_prefix_stands_before_each_name(world):
    with world.connect(prefix="acme") as surface:
        tools = surface.portal.call(surface.client.list_tools).tools
        assert [tool.name for tool in tools] == [f"acme_{name}" for name in TOOL_NAMES]
        assert not write(surface).is_error


def test_mem_042_every_result_and_every_failure_is_an_object(world, surface):
    version = write(surface).payload["version"]
    calls = {
        "get_memory_index": {},
        "read_file": TEA,
        "list_prefix": {"scope": "user"},
        "append_line": {**TEA, "line": "- [observed] x", "expected_version": version},
        "replace_fact": {
            **TEA,
            "old_string": "Likes",
            "new_string": "Loves",
            "expected_version": version,
        },
        "delete_file": {**TEA, "expected_version": version},
    }
    for tool, arguments in calls.items():
        assert isinstance(surface.call(tool, **arguments).payload, dict)
        if arguments:
            failed = surface.call(tool, **(arguments | {"scope": "nowhere"}))
            assert failed.is_error
            assert {"error", "category", "message"} <= set(failed.payload)


def test_mem_043_a_file_has_exactly_its_fields_in_their_order(surface):
    written = write(surface).payload
    read = surface.call("read_file", **TEA).payload

    assert list(written) == FILE_FIELDS
    assert read == written
    assert written | {"version": "", "last_updated": ""} == {
        **TEA,
        "content": "- [stated] Likes tea.\n",
        "version": "",
        "description": "Tea",
        "aliases": ["chai"],
        "sources": ["tests"],
        "last_updated": "",
    }


def test_mem_043_an_entry_has_the_same_fields_without_content(surface):
    write(surface)

    index = surface.call("get_memory_index").payload
    page = surface.call("list_prefix", scope="user").payload

    assert list(index) == ["entries", "capped"]
    assert list(page) == ["entries", "next_cursor"]
    assert list(index["entries"][0]) == list(page["entries"][0]) == ENTRY_FIELDS


def test_mem_043_sources_are_sorted_and_the_time_is_utc_with_a_z(world, surface):
    world.seed("user", "prefs", "tea")
    version = surface.call("read_file", **TEA).payload["version"]

    written = write(surface, expected_version=version).payload

    assert written["sources"] == ["seed", "tests"]
    assert written["last_updated"] == "2026-01-01T00:00:02Z"


def test_the_text_of_a_result_is_compact_json_with_every_script_as_it_is(world):
    with world.connect() as surface:
        reply = write(surface, content="- [stated] 喜欢茶 🍵\n", description="茶")

    assert reply.texts == [to_json(reply.payload)]
    assert "喜欢茶 🍵" in reply.texts[0]
    assert '", "' not in reply.texts[0]


def test_an_index_entry_costs_the_bytes_of_its_rendered_json(world):
    world.seed("user", "prefs", "tea", description='茶 "quoted"', aliases=("chá", "čaj"))
    tools = bind_tools(world.client, world.resolver, None, world.policy, source="s")

    index = tools.get_memory_index()

    rendered = render_result(index)["entries"][0]
    assert len(to_json(rendered).encode()) == index_entry_bytes(index.entries[0])


def test_mem_017_append_line_accepts_the_label_system(surface):
    version = write(surface).payload["version"]

    reply = surface.call("append_line", **TEA, line="- [system] Curated.", expected_version=version)

    assert reply.payload["content"].endswith("- [system] Curated.\n")


@pytest.mark.parametrize(
    "line",
    [
        "no label",
        "- [guessed] x",
        "- [stated]  ",
        " - [stated] x",
        "- [stated] x\n- [stated] y",
        "",
        "- [stated] x\u2028y",
        "- [Stated] x",
        "-[stated] x",
        "- [stated] a\tb",
    ],
)
def test_mem_016_append_line_names_the_line_it_refuses(surface, line):
    version = write(surface).payload["version"]

    reply = surface.call("append_line", **TEA, line=line, expected_version=version)

    assert reply.payload["argument"] == "line"
    assert surface.call("read_file", **TEA).payload["version"] == version


def test_mem_044_reading_nothing_says_that_the_file_is_absent(surface):
    reply = surface.call("read_file", **TEA)

    assert (reply.payload["error"], reply.payload["reason"]) == ("NotFoundError", "file_absent")
    assert {key: reply.payload[key] for key in TEA} == TEA


def test_mem_045_a_listing_is_paged_in_ascending_order_to_its_end(make, make_direct):
    world = make(list_page_size=2)
    surface = make_direct(world)
    for area, name in [("b", "2"), ("a", "1"), ("b", "1"), ("c", "x"), ("a", "é")]:
        world.seed("user", area, name)

    pages, cursor = [], None
    while True:
        payload = surface.call("list_prefix", scope="user", cursor=cursor).payload
        pages.append([(entry["area"], entry["name"]) for entry in payload["entries"]])
        cursor = payload["next_cursor"]
        if cursor is None:
            break

    assert pages == [[("a", "1"), ("a", "é")], [("b", "1"), ("b", "2")], [("c", "x")]]


def test_mem_045_area_null_lists_the_whole_scope_and_no_other(world, surface):
    world.seed("user", "a", "1")
    world.seed("user", "b", "2")
    world.seed("team", "a", "3")

    everything = surface.call("list_prefix", scope="user", area=None).payload["entries"]
    one_area = surface.call("list_prefix", scope="user", area="b").payload["entries"]

    assert [entry["name"] for entry in everything] == ["1", "2"]
    assert [entry["name"] for entry in one_area] == ["2"]


def test_mem_046_a_cursor_that_was_not_given_out_here_is_refused(make, make_direct):
    world = make(list_page_size=1)
    surface = make_direct(world)
    for scope in ("user", "team"):
        for name in ("1", "2"):
            world.seed(scope, "a", name)
    cursor = surface.call("list_prefix", scope="user").payload["next_cursor"]

    foreign = [
        {"scope": "team", "cursor": cursor},
        {"scope": "user", "area": "a", "cursor": cursor},
        {"scope": "user", "cursor": cursor[:-2]},
        {"scope": "user", "cursor": "nonsense"},
        {"scope": "user", "cursor": ""},
        {"scope": "user", "cursor": "é" * 2000},
    ]
    for arguments in foreign:
        payload = surface.call("list_prefix", **arguments).payload
        assert (payload["error"], payload["argument"]) == ("InvalidArgumentError", "cursor")


def test_mem_046_a_plain_value_error_of_a_client_about_a_cursor_is_shown_as_ours(world, direct):
    class Client(type(world.client)):
        def list_prefix(self, prefix, cursor=None):
            raise ValueError(f"bad cursor for {prefix}")

    world.client = Client(world.store)

    refused = direct.call("list_prefix", scope="user", cursor="abc").payload
    internal = direct.call("list_prefix", scope="user").payload

    assert (refused["error"], refused["argument"]) == ("InvalidArgumentError", "cursor")
    assert internal["category"] == "internal"


@pytest.mark.parametrize(
    "missing",
    ["scope", "area", "name", "content", "description", "aliases", "expected_version"],
)
def test_mem_048_write_file_requires_all_seven_arguments(world, mcp_surface, missing):
    arguments = {
        **TEA,
        "content": "x",
        "description": "d",
        "aliases": [],
        "expected_version": None,
    }
    del arguments[missing]

    reply = mcp_surface.send("write_file", arguments)

    assert (reply.payload["error"], reply.payload["argument"]) == ("InvalidArgumentError", missing)
    with pytest.raises(TypeError):
        bind_tools(world.client, world.resolver, None, world.policy, source="s").write_file(
            **arguments
        )
    assert world.keys() == []


def test_mem_048_null_creates_and_a_version_replaces(surface):
    created = write(surface)
    again = write(surface)
    replaced = write(surface, content="new\n", expected_version=created.payload["version"])

    assert again.payload["error"] == "VersionConflictError"
    assert replaced.payload["content"] == "new\n"


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("", "- [stated] x\n"),
        ("a", "a\n- [stated] x\n"),
        ("a\n", "a\n- [stated] x\n"),
        ("a\n\n", "a\n\n- [stated] x\n"),
        ("a\r\n", "a\r\n- [stated] x\n"),
    ],
)
def test_mem_049_a_line_is_separated_only_where_a_line_break_lacks(surface, body, result):
    version = write(surface, content=body).payload["version"]

    reply = surface.call("append_line", **TEA, line="- [stated] x", expected_version=version)

    assert reply.payload["content"] == result


def test_mem_049_appending_to_nothing_creates_nothing(world, surface):
    reply = surface.call("append_line", **TEA, line="- [stated] x", expected_version="v")

    assert (reply.payload["error"], reply.payload["reason"]) == ("NotFoundError", "file_absent")
    assert world.keys() == []


def replace(surface, version, old, new, **more):
    return surface.call(
        "replace_fact", **TEA, old_string=old, new_string=new, expected_version=version, **more
    )


def test_mem_050_an_empty_quote_is_refused(surface):
    version = write(surface).payload["version"]

    assert replace(surface, version, "", "x").payload["argument"] == "old_string"


@pytest.mark.parametrize(
    ("body", "quote", "count"), [("aaa", "aa", 2), ("abc", "x", 0), ("a b a b a", "a", 3)]
)
def test_mem_050_a_quote_found_other_than_once_shows_the_file(surface, body, quote, count):
    version = write(surface, content=body).payload["version"]

    payload = replace(surface, version, quote, "y").payload

    assert payload["error"] == "ReplaceFactMatchError"
    assert (payload["content"], payload["version"]) == (body, version)
    assert payload["match_count"] == count


def test_mem_050_an_empty_replacement_removes_the_passage(surface):
    version = write(surface, content="- [stated] a\n- [stated] b\n").payload["version"]

    payload = replace(surface, version, "- [stated] a\n", "").payload

    assert payload["content"] == "- [stated] b\n"


def test_mem_051_delete_gives_ok_then_absent_and_a_stale_version_conflicts(surface):
    old = write(surface).payload["version"]
    version = write(surface, content="new", expected_version=old).payload["version"]

    stale = surface.call("delete_file", **TEA, expected_version=old)
    deleted = surface.call("delete_file", **TEA, expected_version=version)
    again = surface.call("delete_file", **TEA, expected_version=version)

    assert stale.payload["error"] == "VersionConflictError"
    assert deleted.payload == {"ok": True}
    assert again.payload["reason"] == "file_absent"


@pytest.mark.parametrize("tool", ["append_line", "replace_fact"])
def test_mem_022_aliases_and_description_are_added_over_the_tools(surface, tool):
    version = write(surface).payload["version"]
    change = (
        {"line": "- [stated] x"}
        if tool == "append_line"
        else {"old_string": "Likes", "new_string": "Loves"}
    )

    kept = surface.call(tool, **TEA, **change, expected_version=version).payload
    change = {"old_string": "tea", "new_string": "TEA"} if tool == "replace_fact" else change
    added = surface.call(
        tool,
        **TEA,
        **change,
        expected_version=kept["version"],
        aliases=["thé", "chai", "thé"],
        description="",
    ).payload

    assert (kept["aliases"], kept["description"]) == (["chai"], "Tea")
    assert (added["aliases"], added["description"]) == (["chai", "thé"], "")


def test_mem_032_any_text_that_was_never_a_version_is_a_conflict(surface):
    version = write(surface).payload["version"]

    for bogus in ("", "0", f"{version}\n", "null", "x" * 5000):
        payload = surface.call("delete_file", **TEA, expected_version=bogus).payload
        assert payload["error"] == "VersionConflictError", bogus
    assert surface.call("read_file", **TEA).payload["version"] == version


WRONG = [
    ("write_file", "content", [5, None, ["a"], "a\x00b"]),
    ("write_file", "description", [5, None, "a\nb", "a\u2028", "a\x07"]),
    ("write_file", "aliases", ["tea", None, 5, {"a": 1}, ["a", 5], ["a\nb"], [None]]),
    ("write_file", "expected_version", [5, True, [], {}]),
    ("append_line", "line", [5, None]),
    ("append_line", "expected_version", [None, 5]),
    ("append_line", "aliases", ["tea", 5, ["a\rb"]]),
    ("append_line", "description", [5, "a\nb"]),
    ("replace_fact", "old_string", [5, None, ""]),
    ("replace_fact", "new_string", [5, None, "\x00"]),
    ("replace_fact", "expected_version", [None, 5]),
    ("delete_file", "expected_version", [None, 5]),
    ("list_prefix", "area", [5, True]),
    ("list_prefix", "cursor", [5, []]),
    ("read_file", "name", [5, None, []]),
]


@pytest.mark.parametrize(
    ("tool", "argument", "value"),
    [(tool, argument, value) for tool, argument, values in WRONG for value in values],
)
def test_mem_076_a_wrong_argument_is_named_and_changes_nothing(
    world, surface, tool, argument, value
):
    version = write(surface).payload["version"]
    right = {
        "write_file": {
            **TEA,
            "content": "x",
            "description": "d",
            "aliases": [],
            "expected_version": version,
        },
        "append_line": {**TEA, "line": "- [stated] x", "expected_version": version},
        "replace_fact": {
            **TEA,
            "old_string": "Likes",
            "new_string": "x",
            "expected_version": version,
        },
        "delete_file": {**TEA, "expected_version": version},
        "list_prefix": {"scope": "user"},
        "read_file": TEA,
    }[tool]

    reply = surface.call(tool, **(right | {argument: value}))

    assert (reply.payload["error"], reply.payload["argument"]) == ("InvalidArgumentError", argument)
    assert surface.call("read_file", **TEA).payload["version"] == version


def test_aliases_may_be_any_sequence_of_str_in_a_direct_call(world):
    tools = bind_tools(world.client, world.resolver, None, world.policy, source="s")

    file = tools.write_file("user", "a", "b", "x", "d", ("p", "q"), None)

    assert file.metadata.aliases == ("p", "q")


def test_the_constructor_refuses_wrong_settings(world):
    identity = world.resolver.resolve(None)
    right = (world.client, identity, world.policy)

    for index in range(3):
        wrong = list(right)
        wrong[index] = object()
        with pytest.raises(TypeError):
            MemoryTools(*wrong, source="s")
    for source, error in (
        (5, TypeError),
        ("", ValueError),
        ("a\nb", ValueError),
        ("x" * 65, ValueError),
    ):
        with pytest.raises(error):
            MemoryTools(*right, source=source)
    for product, error in ((5, TypeError), ("  ", ValueError), ("a\nb", ValueError)):
        with pytest.raises(error):
            MemoryTools(*right, source="s", product=product)


def test_the_constructor_keeps_what_it_was_given(world):
    identity = world.resolver.resolve(None)

    tools = MemoryTools(world.client, identity, world.policy, source="s", product=" Acme ")

    assert (tools.client, tools.identity, tools.policy) == (world.client, identity, world.policy)
    assert (tools.source, tools.product) == ("s", "Acme")


def test_mem_065_a_corrupt_file_is_shown_listed_and_can_be_replaced(world, surface, caplog):
    world.seed("user", "prefs", "tea")
    path = world.path("user", "prefs", "tea")
    version = world.storage.put(
        path, b"fine", {"description": "secret-value", "aliases": "secret["}
    )

    entry = surface.call("get_memory_index").payload["entries"][0]
    read = surface.call("read_file", **TEA).payload
    repaired = write(surface, expected_version=entry["version"]).payload

    assert entry["version"] == version
    assert entry["aliases"] == []
    assert "cannot be read" in entry["description"]
    assert (read["error"], read["category"]) == ("MetadataFormatError", "internal")
    assert "aliases" in read["message"] or "sources" in read["message"]
    assert "secret" not in json.dumps([entry, read])
    assert repaired["description"] == "Tea"


def test_mem_065_a_body_that_is_no_utf8_names_the_offset_only(world, surface):
    world.storage.put(world.path("user", "prefs", "tea"), b"abc\xff", {})

    payload = surface.call("read_file", **TEA).payload

    assert (payload["error"], payload["category"]) == ("UnicodeDecodeError", "internal")
    assert "offset 3" in payload["message"]
    assert "0xff" not in payload["message"]
