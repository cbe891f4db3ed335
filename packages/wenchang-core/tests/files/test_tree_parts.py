"""Small parts of the tree by themselves: cuts, lines, packing, the cache, the commit log."""

from __future__ import annotations

import json
import random
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wenchang.files._cache import ByteCache
from wenchang.files._pack import pack, unpack
from wenchang.files._pages import cut, decode_page, encode_page, encode_records
from wenchang.files._records import Record, State, decode_record, encode_record
from wenchang.files._root import Root, random_name
from wenchang.files._settle import settle
from wenchang.files._workers import Workers
from wenchang.files.errors import TreeStateError
from wenchang.files.texts import count_lines

_numbers = st.integers(0, 2**53)
_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_keys = st.sampled_from(["inc/1/abc", "inc/12/def", "other/3/ghi"])
_states = st.builds(State, _keys, _numbers, _numbers, _numbers, _numbers, _text)
_records = st.builds(
    Record,
    _text,
    st.one_of(st.just(""), _keys),
    _numbers,
    _numbers,
    _numbers,
    _numbers,
    st.one_of(st.just(""), _text),
    st.lists(_states, max_size=3).map(tuple),
)


@given(_records)
def test_a_record_comes_back_from_its_line_as_it_was(record):
    line = encode_record(record, "inc")
    assert b"\n" not in line
    assert decode_record(json.loads(line), "inc") == record


@given(st.lists(_records, max_size=5))
def test_a_page_comes_back_as_it_was(records):
    assert decode_page(encode_page(encode_records(records, "inc"), "inc")).records == tuple(records)


@given(st.binary(max_size=200))
def test_any_other_bytes_are_an_unreadable_page(data):
    try:
        decode_page(data)
    except TreeStateError as error:
        assert error.reason == "unreadable_page"  # noqa: PT017 - a few of them are pages


@given(
    st.lists(st.integers(1, 300), min_size=1, max_size=200),
    st.integers(2, 20),
    st.integers(50, 900),
)
def test_a_run_is_cut_into_pages_within_both_bounds(weights, most, most_bytes):
    cuts = cut(weights, most, most_bytes)
    pieces = [weights[each] for each in cuts]
    assert [weight for piece in pieces for weight in piece] == weights
    assert all(piece for piece in pieces)
    assert all(len(piece) <= most for piece in pieces)
    assert all(sum(piece) <= most_bytes or len(piece) == 1 for piece in pieces)


def test_no_page_of_a_run_is_much_smaller_than_the_others():
    rng = random.Random(5)
    for count in range(100, 600):
        weights = [rng.randrange(100, 900) for _ in range(count)]
        sizes = [sum(weights[each]) for each in cut(weights, 512, 65_536)]
        assert len(sizes) == 1 or min(sizes) * 3 > 65_536


@given(st.integers(0, 40_000))
def test_what_is_packed_comes_back_and_only_large_objects_are_compressed(size):
    data = b'{"a":1}' * size
    stored = pack(data)
    assert unpack(stored) == data
    assert (stored == data) == (len(data) <= 16 * 1024)


def test_a_damaged_or_hostile_object_is_refused_in_bounded_memory():
    whole = pack(b"{" * 100_000)
    bomb = zlib.compress(b"\0" * (64 * 1024 * 1024))
    for stored in (whole[:-3], whole + b"x", b"\x78nonsense", bomb):
        with pytest.raises(ValueError, match=r"."):
            unpack(stored)


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 60)), max_size=60))
def test_a_cache_never_holds_more_than_its_bound(steps):
    cache = ByteCache(100)
    sizes = {}
    for key, size in steps:
        cache.put(key, (key, size), size)
        sizes[key] = size
        assert cache.get(key) == (key, size)
        held = [each for each in "abcdef" if cache.get(each) is not None]
        assert sum(sizes[each] for each in held) <= 100
        assert all(cache.get(each) == (each, sizes[each]) for each in held)
    cache.put("huge", 1, 101)
    assert cache.get("huge") is None
    for key in sizes:
        cache.drop(key)
    assert cache._bytes == 0


@pytest.mark.parametrize(
    ("seq", "log", "verdict"),
    [
        (4, ("x",), "again"),
        (5, ("me", "x"), "landed"),
        (7, ("x", "y", "me"), "landed"),
        (7, ("x", "me", "y"), "not_applied"),
        (9, ("x", "y"), "unknown"),
    ],
)
def test_the_log_tells_what_became_of_commit_five(seq, log, verdict):
    assert settle("me", 5, Root(incarnation="i", seq=seq, log=log)) == verdict
    assert settle("me", 1, None) == "again"


@pytest.mark.parametrize(
    ("data", "lines"), [(b"", 0), (b"a", 1), (b"a\n", 1), (b"\n\n", 2), (b"a\rb", 1)]
)
def test_only_a_line_feed_ends_a_line(data, lines):
    """item_144."""
    assert count_lines(data) == lines


def test_names_are_random_and_fit_into_keys():
    names = {random_name() for _ in range(1000)}
    assert len(names) == 1000
    assert all(len(name) == 16 and name.isascii() and name.isalnum() for name in names)


@pytest.mark.parametrize("parallel", [1, 4])
def test_work_side_by_side_ends_with_each_ones_own_exception(parallel):
    def fail():
        raise KeyError("mine")

    workers = Workers(parallel)
    ends = workers.each([lambda: None, fail, lambda: None, fail])
    assert [type(each) for each in ends] == [type(None), KeyError, type(None), KeyError]
    assert workers.each([]) == []
    found = workers.ahead(iter(range(20)), lambda number: number * 2)
    assert list(found) == [(number, number * 2) for number in range(20)]
    workers.wait()
