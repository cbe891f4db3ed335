"""Exact edits: property tests against the plainest possible reading of the rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wenchang.files.edits import MAX_REPLACEMENTS, Edit, apply_edits, count_occurrences
from wenchang.files.errors import EditMatchError, InvalidArgumentError, LimitExceededError

_texts = st.text(alphabet="ab\r\n", max_size=30)
_wanted = st.text(alphabet="ab\n", min_size=1, max_size=4)


@given(_texts, _wanted)
def test_every_position_is_counted_overlapping_ones_included(text, wanted):
    positions = [at for at in range(len(text)) if text.startswith(wanted, at)]
    assert count_occurrences(text, wanted) == len(positions)


@given(
    _texts,
    st.lists(
        st.builds(Edit, old_text=_wanted, new_text=_texts, replace_all=st.booleans()),
        min_size=1,
        max_size=4,
    ),
)
def test_edits_apply_in_order_or_not_at_all(text, edits):
    """item_096, item_098, item_099, item_100, item_149."""
    expected, total = text, 0
    for index, edit in enumerate(edits):
        everywhere = sum(expected.startswith(edit.old_text, at) for at in range(len(expected)))
        count = expected.count(edit.old_text) if edit.replace_all else everywhere
        if count == 0 or (count > 1 and not edit.replace_all):
            with pytest.raises(EditMatchError) as refused:
                apply_edits("a.md", text, edits)
            assert (refused.value.edit, refused.value.count) == (index, count)
            return
        expected = expected.replace(edit.old_text, edit.new_text)
        total += count
    assert apply_edits("a.md", text, edits) == (expected, total)


def test_text_around_a_replacement_is_kept_byte_for_byte():
    """item_133."""
    text = "\ufeffone\r\ntwo\rthree\n\nfour"
    edited, count = apply_edits("a.md", text, [Edit(old_text="two", new_text="2")])
    assert (edited, count) == ("\ufeffone\r\n2\rthree\n\nfour", 1)


def test_no_edits_and_more_than_twenty_are_refused():
    """item_094."""
    edit = Edit(old_text="a", new_text="a")
    for count in (0, 21):
        with pytest.raises(InvalidArgumentError):
            apply_edits("a.md", "a", [edit] * count)
    assert apply_edits("a.md", "a", [edit] * 20) == ("a", 20)


def test_an_empty_old_text_is_refused():
    """item_104."""
    with pytest.raises(InvalidArgumentError):
        apply_edits("a.md", "a", [Edit(old_text="", new_text="b", replace_all=True)])


def test_a_hundred_thousand_replacements_are_the_most_over_all_edits():
    """item_101."""
    text = "a" * MAX_REPLACEMENTS
    edit = Edit(old_text="a", new_text="b", replace_all=True)
    assert apply_edits("a.md", text, [edit])[1] == MAX_REPLACEMENTS
    again = Edit(old_text="x", new_text="y")
    with pytest.raises(LimitExceededError) as refused:
        apply_edits("a.md", text + "x", [edit, again])
    assert refused.value.limit == "replacements"
    assert refused.value.value == MAX_REPLACEMENTS + 1


def test_a_text_of_equal_letters_is_counted_in_linear_time():
    text = "a" * 200_000
    assert count_occurrences(text, "a" * 100_000) == 100_001


def test_replacements_that_would_fill_the_memory_are_refused_before_they_are_made():
    everywhere = Edit(old_text="a", new_text="b" * 1_000_000, replace_all=True)
    with pytest.raises(LimitExceededError) as refused:
        apply_edits("a.md", "a" * MAX_REPLACEMENTS, [everywhere])
    assert (refused.value.limit, refused.value.value) == ("maxFileBytes", 10**11)
