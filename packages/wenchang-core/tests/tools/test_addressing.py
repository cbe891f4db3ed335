"""Scopes, areas and names as an agent gives them; the system area."""

from __future__ import annotations

import inspect
import json
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wenchang.errors import InvalidArgumentError
from wenchang.identity import Identity, SandboxResolver, ScopeGrant
from wenchang.scope import ScopePolicy
from wenchang.tools import TOOL_NAMES, MemoryTools
from wenchang.tools._arguments import check_area, check_name, check_segment
from wenchang.tools._names import is_hidden, suggest_area, suggest_name

NEW = {"content": "x\n", "description": "d", "aliases": [], "expected_version": None}
MUTATIONS = {
    "write_file": NEW,
    "append_line": {"line": "- [stated] Two.", "expected_version": "v"},
    "replace_fact": {"old_string": "One", "new_string": "Two", "expected_version": "v"},
    "delete_file": {"expected_version": "v"},
}
NONSENSE = {
    "write_file": {"content": 1, "description": "a\nb", "aliases": "x", "expected_version": 3},
    "append_line": {"line": "nothing", "expected_version": None, "aliases": 3, "description": 4},
    "replace_fact": {"old_string": "", "new_string": None, "expected_version": None},
    "delete_file": {"expected_version": 5},
}


def test_mem_002_no_tool_takes_an_entity_or_a_path():
    for name in TOOL_NAMES:
        parameters = inspect.signature(getattr(MemoryTools, name)).parameters
        assert not {"entity", "entity_id", "path", "prefix", "key"} & set(parameters)


def test_mem_002_the_entity_is_the_one_of_the_callers_grant(world, surface):
    surface.call("write_file", scope="user", area="prefs", name="tea", **NEW)
    surface.call("write_file", scope="team", area="prefs", name="tea", **NEW)

    assert world.keys() == [
        world.path("team", "prefs", "tea"),
        world.path("user", "prefs", "tea"),
    ]


def test_mem_005_a_scope_without_grant_is_refused_with_the_available_ones_sorted(surface):
    reply = surface.call("read_file", scope="project", area="prefs", name="tea")

    assert reply.payload["error"] == "InvalidArgumentError"
    assert reply.payload["argument"] == "scope"
    assert (
        "scope 'project' is not available in this session; available scopes: office, team, user."
        in reply.payload["message"]
    )


@pytest.mark.parametrize("tool", MUTATIONS)
def test_mem_005_each_change_in_a_scope_without_grant_is_refused(world, surface, tool):
    reply = surface.call(tool, scope="project", area="system", name="tea", **NONSENSE[tool])

    assert (reply.payload["error"], reply.payload["argument"]) == ("InvalidArgumentError", "scope")
    assert world.keys() == []


def test_mem_005_a_caller_without_any_grant_is_told_that_there_is_none(world, surface):
    world.resolver = SandboxResolver(Identity({}))
    with world.connect() as connected:
        for caller in (connected, surface if surface.name == "direct" else connected):
            reply = caller.call("list_prefix", scope="user")
            assert "no scope is available" in reply.payload["message"]


@pytest.mark.parametrize(
    "area",
    [
        "",
        "prefs\n",
        "Prefs",
        "-prefs",
        "_prefs",
        "pre fs",
        "prefs/a",
        "..",
        ".",
        "präfs",
        "p\x00",
        "sуstem",
        "System",
        "system\u200b",
        "SYSTEM",
        "a" * 201,
        "ａｂ",
    ],
)
@pytest.mark.parametrize("tool", ["read_file", "write_file", "list_prefix"])
def test_mem_006_an_area_that_is_no_slug_over_its_whole_text_is_refused(world, surface, tool, area):
    arguments = {"scope": "user", "area": area}
    if tool != "list_prefix":
        arguments["name"] = "tea"
    if tool == "write_file":
        arguments |= NEW

    reply = surface.call(tool, **arguments)

    assert (reply.payload["error"], reply.payload["argument"]) == ("InvalidArgumentError", "area")
    assert world.keys() == []


@pytest.mark.parametrize("area", ["a", "0", "prefs", "a-b_c", "a" * 200, "9-"])
def test_mem_006_a_slug_is_an_area(surface, area):
    reply = surface.call("write_file", scope="user", area=area, name="tea", **NEW)

    assert reply.payload["area"] == area


def test_mem_007_an_area_exists_from_its_first_file_on(world, surface):
    assert surface.call("list_prefix", scope="user", area="prefs").payload["entries"] == []
    assert world.keys() == []

    surface.call("write_file", scope="user", area="prefs", name="tea", **NEW)

    assert len(surface.call("list_prefix", scope="user", area="prefs").payload["entries"]) == 1


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\\b", "a\x00", "a\n", "\x7f", "a\x85b"])
@pytest.mark.parametrize("tool", ["read_file", *MUTATIONS])
def test_mem_008_a_name_that_is_no_path_segment_is_refused(world, surface, tool, name):
    extra = MUTATIONS.get(tool, {})
    reply = surface.call(tool, scope="user", area="prefs", name=name, **extra)

    assert (reply.payload["error"], reply.payload["argument"]) == ("InvalidArgumentError", "name")
    assert world.keys() == []


HIDDEN = [
    "\u200b",  # zero width space (Cf)
    "\u2028",  # line separator (Zl)
    "\u2029",  # paragraph separator (Zp)
    "\u00a0",  # no-break space (Zs)
    "\u3000",  # ideographic space (Zs)
    "\u2800",  # braille blank
    "\ufdd0",  # noncharacter
    "\U0001fffe",  # noncharacter of another plane
    "\u3164",  # Hangul filler, default-ignorable
    "\ufe0f",  # variation selector, default-ignorable
    "\u034f",  # combining grapheme joiner, default-ignorable
    "\u115f",  # Hangul choseong filler, default-ignorable
    "\U000e0100",  # variation selector supplement
    "\u202e",  # right-to-left override
    "\u00ad",  # soft hyphen
]


@pytest.mark.parametrize("character", HIDDEN, ids=lambda text: f"U+{ord(text):04X}")
@pytest.mark.parametrize("where", ["{}tea", "te{}a", "tea{}"])
def test_mem_009_a_name_with_a_hidden_character_is_refused_and_a_spelling_offered(
    direct, where, character
):
    reply = direct.call(
        "write_file", scope="user", area="prefs", name=where.format(character), **NEW
    )

    assert (reply.payload["error"], reply.payload["argument"]) == ("InvalidArgumentError", "name")
    assert "an accepted spelling is '" in reply.payload["message"]


@pytest.mark.parametrize(
    "name",
    [" tea", "tea ", unicodedata.normalize("NFD", "café"), "\u212b", "tea\u200b", "\u00a0"],
)
def test_mem_009_outer_spaces_and_other_normal_forms_are_refused(surface, name):
    reply = surface.call("write_file", scope="user", area="prefs", name=name, **NEW)

    assert (reply.payload["error"], reply.payload["argument"]) == ("InvalidArgumentError", "name")


def test_mem_009_a_lone_surrogate_is_refused(direct):
    for argument in ("scope", "area", "name"):
        place = {"scope": "user", "area": "prefs", "name": "tea"} | {argument: "a\ud800"}
        assert direct.call("read_file", **place).payload["argument"] == argument


@pytest.mark.parametrize("name", ["tea", "林俏", "Ærø 2", "a b", "عربى", "naïve", "a'b\"c", "🍵"])
def test_mem_009_a_visible_name_in_normal_form_is_accepted(surface, name):
    reply = surface.call("write_file", scope="user", area="prefs", name=name, **NEW)

    assert reply.payload["name"] == name
    assert surface.call("read_file", scope="user", area="prefs", name=name).payload["name"] == name


@given(st.text(max_size=40))
@example("é" * 150)
@example("../a")
@example("\u2000")
def test_mem_009_an_offered_spelling_of_a_name_is_accepted(text):
    spelling = suggest_name(text)

    if spelling is not None:
        check_segment("name", spelling)
        check_name(spelling)


@given(st.text(max_size=40))
@example("System")
@example("İ x")
def test_mem_006_an_offered_spelling_of_an_area_is_accepted(text):
    spelling = suggest_area(text)

    if spelling is not None:
        check_segment("area", spelling)
        check_area(spelling)


@given(st.characters(codec="utf-8"))
def test_mem_009_every_hidden_character_is_refused_in_the_middle_of_a_name(character):
    if not is_hidden(character):
        return
    with pytest.raises(InvalidArgumentError):
        check_name(f"a{character}b")


def test_mem_010_a_name_gets_its_suffix_whatever_it_ends_in(world, surface):
    surface.call("write_file", scope="user", area="prefs", name="a.md", **NEW)

    assert world.keys() == [world.path("user", "prefs", "a") + ".md"]
    assert surface.call("read_file", scope="user", area="prefs", name="a").is_error
    assert not surface.call("read_file", scope="user", area="prefs", name="a.md").is_error


@pytest.mark.parametrize("tool", MUTATIONS)
@pytest.mark.parametrize("arguments", [MUTATIONS, NONSENSE], ids=["right", "wrong"])
@pytest.mark.parametrize("scope", ["user", "team", "office"])
def test_mem_011_the_system_area_is_refused_to_every_change_before_anything_else(
    world, surface, scope, tool, arguments
):
    version = world.seed(scope, "system", "rules")
    extra = dict(arguments[tool])
    if arguments is MUTATIONS and extra["expected_version"] is not None:
        extra["expected_version"] = version

    reply = surface.call(tool, scope=scope, area="system", name="rules", **extra)

    assert reply.payload["error"] == "RestrictedScopeError"
    assert reply.payload["reason"] == "system_read_only"
    assert reply.payload["category"] == "permanent"
    assert world.store.read_file(world.path(scope, "system", "rules")).version == version


def test_mem_011_only_the_exact_word_is_the_system_area(surface):
    for area in ("system-", "system_2", "systems", "0system"):
        assert not surface.call("write_file", scope="user", area=area, name="a", **NEW).is_error


def test_mem_011_a_file_named_system_elsewhere_is_an_ordinary_file(surface):
    assert not surface.call("write_file", scope="user", area="prefs", name="system", **NEW).is_error


def test_mem_012_the_reading_tools_show_the_system_area(world, surface):
    world.seed("team", "system", "rules", "- [system] Be kind.\n")

    index = surface.call("get_memory_index").payload["entries"]
    page = surface.call("list_prefix", scope="team", area="system").payload["entries"]
    file = surface.call("read_file", scope="team", area="system", name="rules").payload

    assert [entry["area"] for entry in index] == ["system"]
    assert [entry["name"] for entry in page] == ["rules"]
    assert file["content"] == "- [system] Be kind.\n"


def test_mem_085_a_role_that_the_policy_does_not_permit_reads_but_does_not_write(world, surface):
    world.seed("office", "prefs", "tea")

    refused = surface.call("write_file", scope="office", area="prefs", name="new", **NEW)

    assert refused.payload["reason"] == "role_required"
    assert refused.payload["required_roles"] == ["admin", "owner"]
    assert not surface.call("read_file", scope="office", area="prefs", name="tea").is_error


def test_mem_085_a_role_that_the_policy_permits_writes(world, direct):
    world.resolver = SandboxResolver(Identity({"office": ScopeGrant("o", "admin")}))

    assert not direct.call("write_file", scope="office", area="prefs", name="new", **NEW).is_error


def test_mem_085_a_scope_that_the_policy_does_not_name_is_open(world, direct):
    world.policy = ScopePolicy({})

    assert not direct.call("write_file", scope="office", area="prefs", name="new", **NEW).is_error


def test_the_order_of_checks_is_types_grant_location_area_name_system_arguments(world, direct):
    def refused(**arguments):
        reply = direct.call("write_file", **{**NONSENSE["write_file"], **arguments})
        return reply.payload.get("argument", reply.payload["error"])

    assert refused(scope=1, area=2, name=3) == "scope"
    assert refused(scope="x", area=2, name=3) == "area"
    assert refused(scope="x", area="/", name=3) == "name"
    assert refused(scope="x", area="/", name="/") == "scope"
    assert refused(scope="user", area="/", name="/") == "area"
    assert refused(scope="user", area="Bad", name="/") == "name"
    assert refused(scope="user", area="Bad", name=" x") == "area"
    assert refused(scope="user", area="system", name=" x") == "name"
    assert refused(scope="user", area="system", name="x") == "RestrictedScopeError"
    assert refused(scope="office", area="a", name="x") == "RestrictedScopeError"
    assert refused(scope="user", area="a", name="x") == "content"
    assert refused(scope="user", area="a", name="x", content="") == "description"
    assert refused(scope="user", area="a", name="x", content="", description="") == "aliases"
    rest = {"content": "", "description": "", "aliases": []}
    assert refused(scope="user", area="a", name="x", **rest) == "expected_version"
    assert world.keys() == []


def test_errors_about_arguments_repeat_no_long_value(direct):
    reply = direct.call("read_file", scope="s" * 5000, area="a", name="x")

    assert len(json.dumps(reply.payload)) < 800
