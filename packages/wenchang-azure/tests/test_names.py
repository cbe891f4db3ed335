"""Blob names: every order of the service is the order of the keys."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wenchang.storage.keys import MAX_KEY_BYTES, MAX_PREFIX_BYTES
from wenchang_azure.names import MAX_NAME_CHARACTERS, decode_name, encode_name

# Characters on both sides of each border that some order or encoding has.
BORDERS = (
    " ./Aa~\u00a0\u07ff\u0800\u0fff\u1000\u13ff\u1400\u2fff\u3000\ud7ff\ue000\ue001\uf8ff\ufb01\uff5e"
    "\ufffd\U00010000\U000103ff\U00010400\U0001f600\U0010fffd"
)
texts = st.text(st.one_of(st.sampled_from(BORDERS), st.characters(codec="utf-8")), max_size=12)


@given(texts)
@example(BORDERS)
def test_a_text_is_read_back_from_its_spelling(text: str):
    assert decode_name(encode_name(text)) == text


@given(texts, texts)
def test_names_sort_as_keys_do_in_utf_16_in_utf_8_and_by_code_point(one: str, other: str):
    first, second = encode_name(one), encode_name(other)
    for order in (str, lambda name: name.encode(), lambda name: name.encode("utf-16-be")):
        assert (order(first) < order(second)) == (one < other)


@given(texts, texts)
def test_the_spelling_of_a_prefix_is_a_prefix_of_the_spelling(one: str, rest: str):
    assert encode_name(one + rest).startswith(encode_name(one))
    assert not encode_name(rest).startswith(encode_name(one)) or rest.startswith(one)


@pytest.mark.parametrize("character", ["a", "é", "記", "\ufb01", "\ue000", "😀", "\U0010fffd"])
def test_the_longest_key_under_the_longest_prefix_fits_a_blob_name(character: str):
    size = len(character.encode())
    name = (
        encode_name("p" * (MAX_PREFIX_BYTES - 1))
        + "/"
        + encode_name(character * (MAX_KEY_BYTES // size))
    )
    assert len(name.encode("utf-16-le")) // 2 <= MAX_NAME_CHARACTERS


def test_common_text_is_spelled_as_it_is():
    for text in ("notes/2026 plan.md", "żółć", "文昌", "日本語/한국어", "%2F+a b"):
        assert encode_name(text) == text


@pytest.mark.parametrize(
    "name",
    [
        "😀",
        "a\ufb01",
        "\ue000",
        "\ue001",
        "\ue000a",
        "\ue001\u1000",
        "\ue001\u1000\u1400",
        "\ue002",
    ],
)
def test_a_name_that_no_key_is_spelled_as_is_not_decoded(name: str):
    assert decode_name(name) is None


@given(texts)
def test_what_is_decoded_is_spelled_so(name: str):
    text = decode_name(name)
    assert text is None or encode_name(text) == name
