"""How keys are spelled as file names."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wenchang.storage import InvalidStorageKeyError
from wenchang.storage._fs_names import (
    BODY,
    FRESH,
    JOURNAL,
    MAX_NAME_BYTES,
    OUTGOING,
    PARTIAL,
    SIDECAR,
    decode_name,
    encode_key,
    encode_segment,
    split_suffix,
)

SUFFIXES = (BODY, SIDECAR, JOURNAL, FRESH, OUTGOING, PARTIAL)
segments = st.text(
    st.one_of(st.sampled_from("aAbB.%- _~+objmetaOBJ"), st.characters(exclude_categories=("Cs",))),
    min_size=1,
    max_size=40,
).filter(lambda text: "/" not in text)


@pytest.mark.parametrize(
    ("segment", "name"),
    [
        ("plain-name_0~.md", "plain-name_0~.md"),
        ("Upper", "%55pper"),
        (".lock", "%2Elock"),
        ("..", "%2E."),
        ("a..b.", "a..b."),
        ("a b", "a%20b"),
        ("%obj", "%25obj"),
        ("é", "%C3%A9"),
        ("記", "%E8%A8%98"),
        ("\x00", "%00"),
    ],
)
def test_mem_090_segments_are_spelled_as_documented(segment, name):
    assert encode_segment(segment) == name
    assert decode_name(name) == segment


@given(segments)
def test_every_segment_comes_back_from_its_name(segment):
    try:
        name = encode_segment(segment)
    except InvalidStorageKeyError:
        assert len(segment.encode()) * 3 > MAX_NAME_BYTES
        return
    assert decode_name(name) == segment
    assert set(name) <= set(string.ascii_lowercase + string.digits + "-_~.%ABCDEF")
    assert not name.startswith(".")
    assert split_suffix(name) == (name, "")
    for suffix in SUFFIXES:
        assert split_suffix(name + suffix) == (name, suffix)
        assert decode_name(name + suffix) is None


@given(segments, segments)
def test_two_segments_never_share_a_name_even_where_case_is_ignored(one, other):
    try:
        names = encode_segment(one).casefold(), encode_segment(other).casefold()
    except InvalidStorageKeyError:
        return
    assert (names[0] == names[1]) == (one == other)


@given(st.text(max_size=30))
def test_a_foreign_name_is_decoded_only_if_we_would_have_spelled_it_so(name):
    segment = decode_name(name)
    assert segment is None or encode_segment(segment) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Upper",
        "%55%",
        "%5",
        "%zz",
        "%61",
        "%c3%a9",
        "%C3",
        ".hidden",
        "a b",
        "\udcff",
        "a" * 201,
    ],
)
def test_names_that_are_not_ours_are_none(name):
    assert decode_name(name) is None


@pytest.mark.parametrize("size", [67, 200, 255, 256, 300])
def test_b68_a_segment_over_200_encoded_bytes_is_a_typed_error(size):
    """key-range."""
    assert encode_segment("a" * 200) == "a" * 200
    for segment in ("A" * size, "é" * size, "a" * (200 + size)):
        with pytest.raises(InvalidStorageKeyError) as caught:
            encode_segment(segment)
        assert segment not in str(caught.value)


@pytest.mark.parametrize("key", ["", "a//b", "a/", "\ud800", "a/\udfff"])
def test_mem_090_empty_and_undecodable_segments_are_typed_errors(key):
    with pytest.raises(InvalidStorageKeyError):
        encode_key(key)
