"""The memory prompt: its shape, its slots, and that what it quotes exists."""

from __future__ import annotations

import inspect
import re

import pytest

from wenchang.mcp import mcp_tool_descriptions
from wenchang.prompts import SECTION_ORDER, PromptSlots, build_memory_prompt
from wenchang.tools import TOOL_NAMES, MemoryTools, tool_descriptions

SLOTS = PromptSlots(
    purpose="PURPOSE",
    scope_guidance="GUIDANCE",
    seed_areas="AREAS",
    systems_of_record="RECORDS",
)
PROMPT = build_memory_prompt(SLOTS)
EVERY_TEXT = {
    "prompt": PROMPT,
    **{f"core {name}": text for name, text in tool_descriptions().items()},
    **{f"mcp {name}": text for name, text in mcp_tool_descriptions().items()},
}


def headings(prompt):
    return [line for line in prompt.splitlines() if line.startswith("#")]


def test_mem_059_the_prompt_has_second_level_headings_only():
    assert len(headings(PROMPT)) == len(SECTION_ORDER)
    assert all(line.startswith("## ") for line in headings(PROMPT))


def test_mem_059_the_agent_is_told_never_to_write_a_system_line():
    assert "Never write a `[system]` line" in PROMPT


def test_the_sections_are_joined_by_blank_lines_and_end_in_one_line_break():
    assert PROMPT.endswith("\n")
    assert not PROMPT.endswith("\n\n")
    assert "\n\n\n" not in PROMPT
    assert PROMPT.startswith("## Memory\n\nPURPOSE\n\n")


def test_the_slots_fill_their_sections():
    for text in ("## Scopes\n\nGUIDANCE\n\n", "AREAS\n\n", "RECORDS\n\n"):
        assert text in PROMPT


def test_without_systems_of_record_that_section_is_left_out():
    prompt = build_memory_prompt(PromptSlots("P", "G", "A"))

    assert len(headings(prompt)) == len(SECTION_ORDER) - 1
    assert "authoritative" not in prompt


@pytest.mark.parametrize("name", SECTION_ORDER)
def test_a_section_is_replaced_or_left_out_by_its_name(name):
    index = SECTION_ORDER.index(name)

    replaced = build_memory_prompt(
        PromptSlots("P", "G", "A", "R", sections={name: "  OTHER TEXT\n"})
    )
    left_out = build_memory_prompt(PromptSlots("P", "G", "A", "R", sections={name: None}))

    assert f"{headings(PROMPT)[index]}\n\nOTHER TEXT\n" in replaced
    assert headings(replaced) == headings(PROMPT)
    assert headings(left_out) == [h for h in headings(PROMPT) if h != headings(PROMPT)[index]]


def test_the_slots_do_not_change_when_the_caller_changes_its_mapping():
    sections = {"filing": "MINE"}
    slots = PromptSlots("P", "G", "A", sections=sections)
    sections["filing"] = "OTHER"

    assert "MINE" in build_memory_prompt(slots)
    with pytest.raises(TypeError):
        slots.sections["filing"] = "OTHER"


@pytest.mark.parametrize(
    ("arguments", "error", "named"),
    [
        ((1, "", ""), TypeError, "purpose"),
        (("", 1, ""), TypeError, "scope_guidance"),
        (("a", "b", None), TypeError, "seed_areas"),
        (("a", "b", "c", 4), TypeError, "systems_of_record"),
        (("a", "b", "c", None, 5), TypeError, "sections"),
        (("a", "b", "c", None, {"filing": 5}), TypeError, "filing"),
        ((" ", "b", "c"), ValueError, "purpose"),
        (("a", "b", "c", "\n"), ValueError, "systems_of_record"),
        (("a", "b\ud800", "c"), ValueError, "scope_guidance"),
        (("a", "b", "# Title"), ValueError, "seed_areas"),
        (("a", "b", "c", None, {"fileing": "x"}), ValueError, "fileing"),
        (("a", "b", "c", None, {"filing": " "}), ValueError, "filing"),
    ],
)
def test_a_slot_that_is_not_valid_is_named(arguments, error, named):
    with pytest.raises(error, match=named):
        PromptSlots(*arguments)


def test_only_slots_make_a_prompt():
    with pytest.raises(TypeError):
        build_memory_prompt("text")


@pytest.mark.parametrize("where", EVERY_TEXT)
def test_every_text_is_ascii_with_short_lines_and_names_no_storage(where):
    text = EVERY_TEXT[where]

    assert text.isascii()
    assert [line for line in text.splitlines() if len(line) > 100 and where == "prompt"] == []
    assert not re.search(r"\bentit|\.md\b|/\{", text)


@pytest.mark.parametrize("where", EVERY_TEXT)
def test_every_quoted_tool_call_fits_the_real_signature(where):
    text = EVERY_TEXT[where]
    quoted = re.findall(r"`(\w+)\(([^)`]*)\)`", text)
    for name, arguments in quoted:
        assert name in TOOL_NAMES
        real = list(inspect.signature(getattr(MemoryTools, name)).parameters)[1:]
        given = [argument.strip() for argument in arguments.split(",") if argument.strip()]
        assert given == real[: len(given)], name
        required = [
            key
            for key, value in inspect.signature(getattr(MemoryTools, name)).parameters.items()
            if key != "self" and value.default is inspect.Parameter.empty
        ]
        assert set(required) <= set(given), name
    if where == "prompt":
        assert {name for name, _ in quoted} == set(TOOL_NAMES)


@pytest.mark.parametrize("where", EVERY_TEXT)
def test_every_argument_that_a_text_names_exists(where):
    parameters = {
        key
        for name in TOOL_NAMES
        for key in inspect.signature(getattr(MemoryTools, name)).parameters
    }
    fields = {"last_updated", "next_cursor", "file_absent", "get_memory_index", "match_count"}
    words = set(re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", EVERY_TEXT[where]))

    assert words <= parameters | fields | set(TOOL_NAMES)


def test_no_section_outgrows_the_context_it_is_read_in():
    bodies = re.split(r"(?m)^## .*$", PROMPT)[1:]

    assert max(len(body) for body in bodies) <= 2500
    assert len(PROMPT) <= 12_000


def test_the_generic_text_names_no_scope_of_an_application():
    generic = build_memory_prompt(PromptSlots("P", "G", "A"))

    for name in ("user scope", "project scope", "organization", "team scope"):
        assert name not in generic
