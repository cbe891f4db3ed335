"""Paths: what is refused, what the canonical form is, and how folders relate to files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wenchang.files import paths
from wenchang.files.errors import InvalidArgumentError

_names = st.text(alphabet="ab.é文 -", min_size=1, max_size=6).filter(
    lambda name: name.strip() == name and name not in (".", "..")
)
_paths = st.lists(_names, min_size=1, max_size=4).map("/".join)


@given(_paths, st.sampled_from(["", "/"]), st.sampled_from(["", "/"]))
def test_one_slash_at_either_end_changes_nothing(path, before, after):
    """item_004, item_005, item_015."""
    assert paths.canonical(before + path + after) == path
    assert paths.canonical_file(before + path + after) == path


@pytest.mark.parametrize("root", [None, "", "/"])
def test_the_root_is_no_file(root):
    """item_137."""
    assert paths.canonical(root) == paths.ROOT
    with pytest.raises(InvalidArgumentError):
        paths.canonical_file(root)


@pytest.mark.parametrize(
    "path",
    [
        "//",
        "a//b",
        "//a",
        "a//",
        ".",
        "..",
        "a/./b",
        "../a",
        "a/..",
        "a\\b",
        "a\0b",
        "a\tb",
        "a\nb",
        "a\x7fb",
        "a\x85b",
        "\ud800",
        " a",
        "a ",
        "a/ b",
        "\u200b",
        "\u2060/x",
        "\ufeff",
        "\u00ad",
        "\u3164",
        "e\u0301",
        "a\u202eb",
        "a\u2066b",
        "a" * 256,
        "/".join(["a" * 99] * 4) + "/b",
        5,
        b"a",
    ],
    ids=ascii,
)
def test_a_path_that_breaks_a_rule_is_refused_everywhere_in_it(path):
    """item_006 to item_014."""
    with pytest.raises(InvalidArgumentError) as refused:
        paths.canonical(path, argument="to")
    assert refused.value.argument == "to"


def test_the_longest_name_and_path_are_accepted():
    """item_011, item_012."""
    assert paths.canonical("😀" * 255) == "😀" * 255
    longest = "/".join(["a" * 99] * 4) + "b"
    assert len(longest) == 400
    assert paths.canonical(longest) == longest


@pytest.mark.parametrize(
    "path", [".hidden", "a...b", "a b", "é", "文.md", "a\u200bb", "...", "~", "C:"]
)
def test_other_names_are_names(path):
    assert paths.canonical(path) == path


@given(_paths)
def test_folders_above_are_the_nearest_first(path):
    names = path.split("/")
    expected = ["/".join(names[:count]) for count in range(len(names) - 1, 0, -1)]
    assert list(paths.ancestors(path)) == expected
    assert paths.depth(path) == len(expected)
    assert all(paths.is_below(path, folder) for folder in [*expected, ""])
    assert not paths.is_below(path, path)
    assert paths.name_of(path) == names[-1]


def test_a_common_beginning_does_not_make_a_folder():
    assert not paths.is_below("ab/c", "a")
