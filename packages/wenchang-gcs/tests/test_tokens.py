"""Version tokens: one text for each, and none for anything else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wenchang_gcs.tokens import Token, parse_token

BIGGEST = 2**63 - 1


@given(
    st.builds(
        Token,
        generation=st.integers(1, BIGGEST),
        metageneration=st.integers(1, BIGGEST),
        min_writer=st.integers(1, 999_999),
        extra=st.booleans(),
    )
)
def test_each_token_comes_back_from_its_text_and_fits_a_version(token):
    assert parse_token(str(token)) == token
    assert len(str(token)) <= 64


@given(st.text(alphabet="0123456789.:wx+- \n", max_size=24))
def test_no_two_texts_are_one_token(text):
    token = parse_token(text)
    assert token is None or str(token) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "007",
        " 42",
        "42\n",
        "+42",
        "4_2",
        "-1",
        "42.1",
        "42.0",
        "42.",
        "42:w1",
        "42:w0",
        "42:x:w2",
        "42.2:",
        "٤٢",
        "４２",
        str(BIGGEST + 1),
        f"1.{BIGGEST + 1}",
        "9" * 5000,
        "\ud800",
        "by hand",
    ],
)
def test_memory_088_a_text_that_this_backend_never_wrote_is_no_token(text):
    assert parse_token(text) is None


def test_memory_088_the_version_of_an_untouched_object_is_its_generation_alone():
    assert str(Token(generation=1_700_000_000_000_001)) == "1700000000000001"
    assert str(Token(generation=17, metageneration=2)) == "17.2"
    assert str(Token(generation=17, min_writer=2, extra=True)) == "17:w2:x"
