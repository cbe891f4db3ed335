"""The same calls give the same payloads on both surfaces, and no entity id shows anywhere."""

from __future__ import annotations

import json

import pytest

TEA = {"scope": "user", "area": "prefs", "name": "tea"}
NEW = {
    "content": "- [stated] 茶\n",
    "description": "Tea",
    "aliases": ["chá"],
    "expected_version": None,
}

# Each step is a tool and its arguments; "$n" stands for the version that step n answered with.
SCRIPT = [
    ("get_memory_index", {}),
    ("write_file", {**TEA, **NEW}),
    ("write_file", {**TEA, **NEW}),
    ("write_file", {**TEA, **NEW, "expected_version": "$1", "aliases": []}),
    ("write_file", {**TEA, **NEW, "name": "absent", "expected_version": "$1"}),
    ("write_file", {**TEA, **NEW, "name": "big", "content": "x" * 3000}),
    ("append_line", {**TEA, "line": "- [observed] x", "expected_version": "$1"}),
    ("append_line", {**TEA, "line": "- [observed] x", "expected_version": "$3", "aliases": ["t"]}),
    ("append_line", {**TEA, "line": "nothing", "expected_version": "$3"}),
    ("replace_fact", {**TEA, "old_string": "x", "new_string": "yy", "expected_version": "$1"}),
    ("replace_fact", {**TEA, "old_string": "y", "new_string": "z", "expected_version": "$9"}),
    ("replace_fact", {**TEA, "old_string": "", "new_string": "z", "expected_version": "$9"}),
    ("read_file", TEA),
    ("read_file", {**TEA, "name": "absent"}),
    ("read_file", {**TEA, "scope": "elsewhere"}),
    ("read_file", {**TEA, "scope": "zq"}),
    ("read_file", {**TEA, "area": "Prefs"}),
    ("write_file", {**TEA, **NEW, "name": "a"}),
    ("write_file", {**TEA, **NEW, "name": "b"}),
    ("write_file", {**TEA, **NEW, "name": "c"}),
    ("list_prefix", {"scope": "user"}),
    ("list_prefix", {"scope": "user", "area": "prefs", "cursor": "bogus"}),
    ("list_prefix", {"scope": "team", "area": None}),
    ("write_file", {**TEA, **NEW, "area": "system"}),
    ("write_file", {**TEA, **NEW, "scope": "office"}),
    ("get_memory_index", {}),
    ("delete_file", {**TEA, "expected_version": "$1"}),
    ("delete_file", {**TEA, "expected_version": "$9"}),
    ("delete_file", {**TEA, "expected_version": "$9"}),
]


def play(surface):
    """Run the script; return the payloads with versions and cursors renamed by their order."""
    versions, names, payloads = {}, {}, []
    for number, (tool, arguments) in enumerate(SCRIPT):
        given = {
            key: versions[int(value[1:])] if str(value).startswith("$") else value
            for key, value in arguments.items()
        }
        payload = surface.call(tool, **given).payload
        if "version" in payload:
            versions[number] = payload["version"]
        for token in tokens(payload):
            names.setdefault(token, f"<{len(names)}>")
        payloads.append(rename(payload, names))
    return payloads


def tokens(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in {"version", "next_cursor"} and inner is not None:
                yield inner
            yield from tokens(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from tokens(inner)


def rename(value, names):
    if isinstance(value, dict):
        return {key: rename(inner, names) for key, inner in value.items()}
    if isinstance(value, list):
        return [rename(inner, names) for inner in value]
    return names.get(value, value)


def test_mem_003_both_surfaces_give_equal_payloads(make, make_direct):
    options = {"max_file_bytes": 2048, "list_page_size": 2, "index_max_bytes": 500}
    direct = play(make_direct(make(**options)))
    with make(**options).connect() as surface:
        over_mcp = play(surface)

    assert direct == over_mcp
    assert len({json.dumps(payload) for payload in direct}) > 20
    assert any(payload.get("capped") for payload in direct)
    assert any(payload.get("next_cursor") for payload in direct)


@pytest.mark.parametrize("area", ["prefs", "system"])
def test_mem_003_a_capped_row_shows_scope_area_and_count_only(make, make_direct, area):
    world = make(index_max_bytes=300)
    for number in range(5):
        world.seed("team", area, f"n{number}")

    payload = make_direct(world).call("get_memory_index").payload

    assert [list(row) for row in payload["capped"]] == [["scope", "area", "omitted"]]
    assert payload["capped"][0]["omitted"] + len(payload["entries"]) == 5
