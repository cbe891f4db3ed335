"""Drawn examples: a failure that was found is reported, whatever becomes of the search for a smaller one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.errors import HypothesisException

from wenchang_conformance.exploring import SHRINK_SECONDS, Exploration, drawing
from wenchang_conformance.trace import Trace


class TooLargeError(Exception):
    pass


@pytest.fixture
def trace():
    return Trace()


def explored(exploration, trace, fails):
    """Draw numbers until one fails; return the numbers that were drawn."""
    drawn = []

    @drawing(100)
    @given(number=st.integers(0, 10_000))
    def check(number):
        exploration.begin()
        with exploration.step():
            drawn.append(number)
            trace.add(f"drew {number}")
            if fails(number):
                raise TooLargeError(str(number))

    exploration.run(check)
    return drawn


def test_the_smallest_example_is_reported_with_its_own_steps_alone(trace):
    with pytest.raises(TooLargeError) as found:
        explored(Exploration(trace), trace, lambda number: number >= 500)
    assert str(found.value) == "500"
    assert trace.text() == "  1. drew 500"


def test_a_search_that_takes_too_long_ends_with_the_smallest_so_far(trace):
    moments = iter([0.0, SHRINK_SECONDS, SHRINK_SECONDS + 1])
    with pytest.raises(TooLargeError) as found:
        explored(
            Exploration(trace, monotonic=lambda: next(moments)), trace, lambda number: number >= 500
        )
    assert trace.text() == f"  1. drew {found.value}"


def test_a_storage_that_changes_its_mind_is_reported_by_its_first_failure(trace):
    failed = []

    def fails(number):
        if not failed and number >= 500:
            failed.append(number)
            return True
        return False

    with pytest.raises(TooLargeError) as found:
        explored(Exploration(trace), trace, fails)
    assert str(found.value) == str(failed[0])
    assert trace.text() == f"  1. drew {failed[0]}"


def test_without_a_failure_nothing_is_raised_and_trouble_with_drawing_is_not_hidden(trace):
    assert explored(Exploration(trace), trace, lambda number: False)

    @drawing(10)
    @given(number=st.nothing())
    def check(number):
        """Nothing can be drawn."""

    with pytest.raises(HypothesisException):
        Exploration(trace).run(check)
