"""Versions: ETags that are whole, and what is added to them."""

from __future__ import annotations

import pytest

from wenchang_s3.versions import Version, etag_of, listed_etag, parse_version


@pytest.mark.parametrize("etag", ["d41d8cd98f00b204e9800998ecf8427e", "abc-12", "a+b/c=", "'x'"])
def test_a_whole_etag_loses_its_quotes(etag: str) -> None:
    assert etag_of(f'"{etag}"') == etag
    assert listed_etag(f'"{etag}"') == listed_etag(etag) == etag
    assert parse_version(etag) == Version(etag=etag)


@pytest.mark.parametrize(
    "header",
    [
        None,
        1,
        "",
        '"',
        '""',
        '"abc',
        'abc"',
        "abc",
        'W/"abc"',
        '"a b"',
        '"a,b"',
        '"*"',
        '"a:x"',
        '"é"',
        '"abc"\n',
        '"' + "a" * 201 + '"',
    ],
)
def test_anything_else_in_a_header_is_none(header: object) -> None:
    assert etag_of(header) is None


def test_what_is_added_is_read_again() -> None:
    assert parse_version("abc:w12") == Version(etag="abc", min_writer=12)
    assert parse_version("abc:x") == Version(etag="abc", has_extra=True)


@pytest.mark.parametrize(
    "version", ["", ":x", "abc:", "abc:w", "abc:w0", "abc:w01", "abc:xx", "a:b:x"]
)
def test_what_was_never_issued_is_none(version: str) -> None:
    assert parse_version(version) is None
