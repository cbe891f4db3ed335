"""The value and the stored form of a file's metadata."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wenchang.errors import InvalidArgumentError, MetadataFormatError
from wenchang.metadata import (
    EPOCH,
    FileMetadata,
    check_aliases,
    check_description,
    check_metadata_size,
    check_source,
    decode_metadata,
    encode_metadata,
    format_timestamp,
    merge_aliases,
    unreadable_metadata,
)
from wenchang.storage.keys import MAX_METADATA_BYTES, check_metadata, metadata_size

GOOD = {
    "description": "About tea",
    "aliases": '["tea"]',
    "sources": '["chat"]',
    "last-updated": "2026-01-02T03:04:05Z",
}

text = st.text(st.characters(exclude_categories=["Cs"]))
moments = st.datetimes(timezones=st.just(UTC))


@given(
    st.text(st.characters(exclude_categories=["Cs", "Cc"])),
    st.lists(text),
    st.frozensets(text),
    moments,
)
def test_mem_020_the_stored_form_decodes_to_the_same_value(
    description: str, aliases: list[str], sources: frozenset[str], moment: datetime
) -> None:
    metadata = FileMetadata(description, tuple(aliases), sources, moment)
    encoded = encode_metadata(metadata)
    assert decode_metadata(encoded) == metadata
    if metadata_size(encoded) <= MAX_METADATA_BYTES:
        # Aliases may hold any character: what storage refuses in a value is escaped in JSON.
        assert check_metadata(encoded) == encoded


def test_mem_020_four_keys_are_stored_with_json_that_is_not_escaped() -> None:
    metadata = FileMetadata("Über", ("文昌", "b"), frozenset({"z", "a"}), EPOCH)
    assert encode_metadata(metadata) == {
        "description": "Über",
        "aliases": '["文昌","b"]',
        "sources": '["a","z"]',
        "last-updated": "1970-01-01T00:00:00Z",
    }


def test_escaped_json_is_understood_too() -> None:
    escaped = {**GOOD, "aliases": json.dumps(["文昌"])}
    assert "\\u" in escaped["aliases"]
    assert decode_metadata(escaped).aliases == ("文昌",)


def test_unknown_keys_are_ignored_and_extra_ones_can_be_stored() -> None:
    metadata = decode_metadata({**GOOD, "receipts": "[]", "content-type": "text/plain"})
    assert metadata == decode_metadata(GOOD)
    assert encode_metadata(metadata, {"receipts": "[]", "aliases": "no"}) == {
        **GOOD,
        "receipts": "[]",
    }


@pytest.mark.parametrize("stored", [{}, {"content-type": "text/markdown"}])
def test_an_object_made_by_hand_has_empty_metadata_and_the_epoch(stored: dict[str, str]) -> None:
    assert decode_metadata(stored) == FileMetadata("", (), frozenset(), EPOCH)


@pytest.mark.parametrize("key", GOOD)
def test_a_key_that_is_missing_beside_others_is_named(key: str) -> None:
    with pytest.raises(MetadataFormatError) as caught:
        decode_metadata({name: value for name, value in GOOD.items() if name != key})
    assert caught.value.key == key


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(
            (key, value)
            for key in ("aliases", "sources")
            for value in (
                "",
                "secret",
                "{}",
                '"secret"',
                "null",
                "[1]",
                '["secret",null]',
                '["\\ud800"]',
                "[" * 2000,
                "[1e999",
                "9" * 4999,
            )
        ),
        *(
            ("last-updated", value)
            for value in (
                "",
                "secret",
                "2026-01-02T03:04:05",
                "2026-13-01T00:00:00Z",
                "1767322245",
                "0001-01-01T00:00:00+14:00",
            )
        ),
        ("wenchang-unreadable", "secret"),
    ],
)
def test_what_cannot_be_decoded_names_its_key_and_no_value(key: str, value: str) -> None:
    with pytest.raises(MetadataFormatError) as caught:
        decode_metadata({**GOOD, key: value})
    assert caught.value.key == key
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None
    shown = unreadable_metadata(caught.value)
    assert key in shown.description
    assert (shown.aliases, shown.sources, shown.last_updated) == ((), frozenset(), EPOCH)


def test_stored_text_that_breaks_the_rules_for_callers_stays_readable() -> None:
    stored = {**GOOD, "description": "two\nlines", "aliases": '["","a","a","b\\n\\u0085"]'}
    metadata = decode_metadata(stored)
    assert metadata.description == "two\nlines"
    assert metadata.aliases == ("", "a", "a", "b\n\u0085")
    check_metadata(encode_metadata(metadata))


@pytest.mark.parametrize(
    ("moment", "shown"),
    [
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "2026-01-02T03:04:05Z"),
        (datetime(2026, 1, 2, 3, 4, 5, 60, tzinfo=UTC), "2026-01-02T03:04:05.000060Z"),
        (datetime(2026, 1, 2, 1, tzinfo=timezone(timedelta(hours=2))), "2026-01-01T23:00:00Z"),
    ],
)
def test_mem_024_a_time_is_shown_in_utc_with_z(moment: datetime, shown: str) -> None:
    assert format_timestamp(moment) == shown
    assert decode_metadata({**GOOD, "last-updated": shown}).last_updated == moment


def test_mem_024_any_offset_is_understood_and_held_in_utc() -> None:
    metadata = decode_metadata({**GOOD, "last-updated": "2026-01-02T01:00:00+02:00"})
    assert metadata.last_updated.isoformat() == "2026-01-01T23:00:00+00:00"


def test_mem_024_a_time_without_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="zone"):
        FileMetadata("", (), frozenset(), datetime(2026, 1, 1))  # noqa: DTZ001 - the case


@pytest.mark.parametrize(
    "fields",
    [
        (1, (), frozenset(), EPOCH),
        ("", ["a"], frozenset(), EPOCH),
        ("", (1,), frozenset(), EPOCH),
        ("", (), {"a"}, EPOCH),
        ("", (), frozenset({1}), EPOCH),
        ("", (), frozenset(), "2026-01-01T00:00:00Z"),
    ],
)
def test_fields_of_other_types_are_type_errors(fields: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        FileMetadata(*fields)  # type: ignore[arg-type]  # the wrong types are the case


def test_mem_022_empty_and_repeated_aliases_are_dropped_in_order() -> None:
    assert check_aliases(["b", "", "a", "b", "B"]) == ("b", "a", "B")


def test_mem_022_merging_keeps_the_stored_aliases_and_adds_each_new_one_once() -> None:
    assert merge_aliases(("b", "b", "a"), ("a", "c", "c")) == ("b", "b", "a", "c")


@pytest.mark.parametrize("aliases", ["abc", b"def", bytearray(b"a"), 1, None, [1], [b"a"]])
def test_aliases_of_another_type_are_a_type_error(aliases: object) -> None:
    with pytest.raises(TypeError, match="aliases"):
        check_aliases(aliases)  # type: ignore[arg-type]  # the wrong type is the case


@pytest.mark.parametrize("bad", ["a\nb", "a\u2028", "\x00", "\t", "\ud800"])
def test_mem_021_descriptions_and_aliases_are_single_lines(bad: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        check_description(bad)
    assert caught.value.argument == "description"
    with pytest.raises(InvalidArgumentError) as caught:
        check_aliases(["a", bad])
    assert caught.value.argument == "aliases"


@pytest.mark.parametrize("source", ["", "x" * 65, "a\nb", "\t", "\ud800"])
def test_a_source_that_is_not_a_short_line_is_refused(source: str) -> None:
    with pytest.raises(ValueError, match="source"):
        check_source(source)


@pytest.mark.parametrize("source", ["x", "x" * 64, "文昌 chat"])
def test_a_source_may_be_any_short_line(source: str) -> None:
    assert check_source(source) == source


@pytest.mark.parametrize(
    ("description", "aliases", "argument"),
    [("x" * 3000, ("y" * 2500,), "description"), ("x" * 2500, ("y" * 3000,), "aliases")],
)
def test_metadata_over_the_limit_names_the_larger_field_with_both_numbers(
    description: str, aliases: tuple[str, ...], argument: str
) -> None:
    encoded = encode_metadata(FileMetadata(description, aliases, frozenset(), EPOCH))
    with pytest.raises(InvalidArgumentError) as caught:
        check_metadata_size(encoded)
    assert caught.value.argument == argument
    assert str(metadata_size(encoded)) in str(caught.value)
    assert "5000" in str(caught.value)


def test_metadata_at_the_limit_is_accepted_and_one_byte_more_is_not() -> None:
    def encoded(length: int) -> dict[str, str]:
        return encode_metadata(FileMetadata("é" + "x" * length, (), frozenset(), EPOCH))

    room = MAX_METADATA_BYTES - metadata_size(encoded(0))
    check_metadata_size(encoded(room))
    with pytest.raises(InvalidArgumentError):
        check_metadata_size(encoded(room + 1))
