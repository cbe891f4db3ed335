"""Versions: one form for callers, and only whole ETags count."""

from __future__ import annotations

import pytest

from wenchang_azure.tokens import Token, bare_etag, parse_token, quoted_etag


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("0x8DC5D1A2B3C4D5E", Token(etag="0x8DC5D1A2B3C4D5E")),
        ("0x1:w2", Token(etag="0x1", min_writer=2)),
        ("0x1:w255", Token(etag="0x1", min_writer=255)),
        ("0x1:x", Token(etag="0x1", has_extra=True)),
    ],
)
def test_a_version_is_taken_apart_and_written_again(text: str, token: Token):
    assert parse_token(text) == token
    assert str(token) == text


@pytest.mark.parametrize(
    "text",
    [
        *("", "0", "007", "0x", "0x1\n", '"0x1"', "0x1a", "0x1:w1", "0x1:w0", "0x1:w02", "0x1:y"),
        *(" 0x1", "0x1:w2:x", "0x" + "A" * 33, "\ud800", "\u0660x1", "*", "0x\u0661"),
        pytest.param("0x" + "1" * 1_048_576, id="1 MiB"),
    ],
)
def test_a_version_that_was_never_issued_is_none(text: str):
    assert parse_token(text) is None


@pytest.mark.parametrize(
    "value", ['"0x8DC5', '0x8DC5"', '"', "", '"0x"', '"0x8dc5"', None, 7, "0x8DC5"]
)
def test_an_etag_that_is_not_whole_is_no_answer(value: object):
    assert quoted_etag(value) is None


def test_an_etag_is_the_same_in_an_answer_and_in_a_listing():
    assert quoted_etag('"0x8DC5"') == bare_etag("0x8DC5") == bare_etag('"0x8DC5"') == "0x8DC5"
    assert bare_etag('"0x8DC5') is None
    assert bare_etag(None) is None
