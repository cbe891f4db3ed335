"""The pattern language, against a slow reading of its definition."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wenchang.files.errors import InvalidArgumentError
from wenchang.files.globs import compile_glob


def _name(pattern: str, name: str) -> bool:
    """Match one name by trying everything."""
    if not pattern:
        return not name
    head, rest = pattern[0], pattern[1:]
    if head == "*":
        return any(_name(rest, name[count:]) for count in range(len(name) + 1))
    if not name:
        return False
    if head == "[":
        end = pattern.index("]", 1)
        body = pattern[1:end]
        negated = body.startswith("!")
        chars = body.removeprefix("!")
        if len(chars) == 3 and chars[1] == "-":
            inside = chars[0] <= name[0] <= chars[2]
        else:
            inside = name[0] in chars
        return inside != negated and _name(pattern[end + 1 :], name[1:])
    return head in ("?", name[0]) and _name(rest, name[1:])


def _segments(patterns: list[str], names: list[str]) -> bool:
    if not patterns:
        return not names
    if patterns[0] == "**":
        return any(_segments(patterns[1:], names[count:]) for count in range(len(names) + 1))
    return bool(names) and _name(patterns[0], names[0]) and _segments(patterns[1:], names[1:])


_piece = st.sampled_from(["a", "b", "*", "?", "**", "[ab]", "[!a]", "[a-b]", "."])
_segment = st.lists(_piece, min_size=1, max_size=4).map("".join)
_pattern = st.lists(_segment, min_size=1, max_size=3).map("/".join)
_path = st.lists(st.text(alphabet="ab.", min_size=1, max_size=4), min_size=1, max_size=4).map(
    "/".join
)


@given(_pattern, _path)
def test_a_compiled_pattern_matches_what_its_definition_does(pattern, path):
    """item_046 to item_056."""
    if "/" in pattern:
        expected = _segments(pattern.split("/"), path.split("/"))
    else:
        name = path.rpartition("/")[2]
        expected = pattern == "**" or _name(pattern, name)
    assert compile_glob(pattern).matches(path) is expected
    assert compile_glob("/" + pattern).matches(path) is expected


@pytest.mark.parametrize(
    "pattern",
    ["", "a" * 201, "a\\b", "[", "a[b", "[]", "[!]", "[b-a]", "/", "a//b", "a/", "[a/b]", 5],
    ids=ascii,
)
def test_a_pattern_that_breaks_a_rule_is_refused(pattern):
    """item_045, item_052, item_147."""
    with pytest.raises(InvalidArgumentError) as refused:
        compile_glob(pattern, argument="glob")
    assert refused.value.argument == "glob"


@pytest.mark.parametrize("literal", ["{a,b}", "a+b", "(a)", "a.c", "^a$", "a|b", "]"])
def test_everything_else_is_literal(literal):
    """item_051."""
    glob = compile_glob(literal)
    assert glob.matches(literal)
    assert not glob.matches("abc")


def test_a_leading_dot_is_an_ordinary_character():
    """item_051."""
    assert compile_glob("*").matches(".hidden")


def test_case_counts():
    """item_053."""
    assert not compile_glob("*.MD").matches("a.md")


def test_the_worst_pattern_is_answered_at_once():
    pattern = "*a" * 99 + "b"
    assert not compile_glob(pattern).matches("a" * 255)
    assert not compile_glob("**/" * 60 + "b").matches("/".join("a" * 200))
