"""Paths and prefixes of memory files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wenchang.paths import (
    MAX_PATH_BYTES,
    MAX_SEGMENT_BYTES,
    PathParts,
    PrefixParts,
    build_path,
    build_prefix,
    is_area_slug,
    is_valid_path,
    is_valid_prefix,
    is_valid_segment,
    parse_path,
    parse_prefix,
    segment_problem,
)
from wenchang.storage.keys import is_valid_key

segments = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40).filter(
    is_valid_segment
)

BAD_SEGMENTS = {
    "empty": "",
    "dot": ".",
    "two dots": "..",
    "slash": "a/b",
    "backslash": "a\\b",
    "newline": "a\n",
    "nul": "\x00",
    "delete": "a\x7f",
    "c1 control": "a\x85",
    "surrogate": "a\ud800",
    "noncharacter": "a\ufdd0",
    "last of a plane": "a\U0001ffff",
    "dots and a slash": "a/..",
    "plain but for its end": "plain\x1f",
    "too long": "x" * (MAX_SEGMENT_BYTES + 1),
    "too long in bytes": "é" * (MAX_SEGMENT_BYTES // 2 + 1),
}


def test_what_other_features_keep_is_neither_path_nor_prefix_of_a_memory_file() -> None:
    for build in (lambda: build_path("@files", "u", "a", "n"), lambda: build_prefix("@files")):
        with pytest.raises(ValueError, match=r"^scope must not begin with '@'$"):
            build()
    assert not is_valid_path("@files/u/a/n.md")
    assert not is_valid_prefix("@files/")
    assert not is_valid_prefix("@files/u/")
    assert build_path("user", "@lin", "@a", "@n") == "user/@lin/@a/@n.md"


def test_mem_001_a_path_is_scope_entity_area_and_name_with_md() -> None:
    assert build_path("user", "u-1", "prefs", "tea") == "user/u-1/prefs/tea.md"


scopes = segments.filter(lambda text: not text.startswith("@"))


@given(scopes, segments, segments, segments)
def test_mem_001_building_and_parsing_a_path_are_inverses(
    scope: str, entity_id: str, area: str, name: str
) -> None:
    path = build_path(scope, entity_id, area, name)
    assert parse_path(path) == PathParts(scope, entity_id, area, name)
    assert is_valid_path(path)
    assert not is_valid_prefix(path)


@given(st.text(st.sampled_from("ab./m\\d\n"), max_size=14))
def test_mem_001_what_parses_is_exactly_what_can_be_built(text: str) -> None:
    try:
        parts = parse_path(text)
    except ValueError:
        assert not is_valid_path(text)
    else:
        assert build_path(parts.scope, parts.entity_id, parts.area, parts.name) == text


@given(scopes, st.none() | segments, st.none() | segments)
def test_mem_001_building_and_parsing_a_prefix_are_inverses(
    scope: str, entity_id: str | None, area: str | None
) -> None:
    if entity_id is None and area is not None:
        with pytest.raises(ValueError, match="entity_id"):
            build_prefix(scope, entity_id, area)
        return
    prefix = build_prefix(scope, entity_id, area)
    assert parse_prefix(prefix) == PrefixParts(scope, entity_id, area)
    assert is_valid_prefix(prefix)
    assert not is_valid_path(prefix)


@given(scopes, segments, segments, segments)
def test_a_valid_path_is_always_a_key_that_storage_permits(
    scope: str, entity_id: str, area: str, name: str
) -> None:
    assert is_valid_key(build_path(scope, entity_id, area, name))


def test_the_longest_segments_make_a_path_within_its_limit() -> None:
    longest = "x" * MAX_SEGMENT_BYTES
    assert len(build_path(longest, longest, longest, longest)) <= MAX_PATH_BYTES


@pytest.mark.parametrize("text", BAD_SEGMENTS.values(), ids=BAD_SEGMENTS)
def test_mem_008_what_is_no_segment_is_refused_in_every_place(text: str) -> None:
    assert segment_problem(text)
    for place, name in enumerate(("scope", "entity_id", "area", "name")):
        values = ["a", "b", "c", "d"]
        values[place] = text
        with pytest.raises(ValueError, match=name):
            build_path(*values)
        assert not is_valid_path("/".join(values) + ".md")
    with pytest.raises(ValueError, match="scope"):
        build_prefix(text)


@pytest.mark.parametrize("text", BAD_SEGMENTS.values(), ids=BAD_SEGMENTS)
def test_the_reason_for_a_refusal_does_not_repeat_the_value(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        build_path("scope", text * 2 if text == "a\n" else text, "area", "name")
    assert len(text) < 3 or text not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["a", "A", "a.b", "a..", "...", ".md", " ", " a ", "x" * 200, "文昌", "a\u200b"]
)
def test_other_segments_are_accepted(text: str) -> None:
    assert is_valid_segment(text)


@pytest.mark.parametrize("value", [None, 1, b"a"])
def test_a_segment_of_another_type_is_a_type_error(value: object) -> None:
    with pytest.raises(TypeError, match="area"):
        build_path("a", "b", value, "d")  # type: ignore[arg-type]  # the wrong type is the case


@pytest.mark.parametrize("text", ["", "a", "/", "a//", "a/b", "a/b/c/d/", "a/../", "//"])
def test_what_is_no_prefix_is_refused(text: str) -> None:
    assert not is_valid_prefix(text)


def test_an_empty_area_does_not_mean_no_area() -> None:
    with pytest.raises(ValueError, match="area"):
        build_prefix("a", "b", "")


@pytest.mark.parametrize("name", ["a.md", ".md", "a.MD"])
def test_mem_010_md_is_added_to_a_name_that_already_ends_in_it(name: str) -> None:
    path = build_path("s", "e", "a", name)
    assert path == f"s/e/a/{name}.md"
    assert parse_path(path).name == name


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_mem_008_a_stored_key_with_such_a_name_is_no_path(name: str) -> None:
    assert not is_valid_path(f"s/e/a/{name}.md")


@pytest.mark.parametrize("area", ["prefs", "a", "0", "a-b_c", "0_"])
def test_mem_006_a_lower_case_slug_is_an_area(area: str) -> None:
    assert is_area_slug(area)


@pytest.mark.parametrize(
    "area",
    ["", "prefs\n", "Prefs", "_a", "-a", "a b", "a.b", "é", "sуstem", "system\u200b", "\nprefs"],
)
def test_mem_006_the_whole_text_must_be_a_slug(area: str) -> None:
    assert not is_area_slug(area)
