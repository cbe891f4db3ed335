"""Custom metadata: the caller's entries, our marks, and what strangers leave."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wenchang.storage import InvalidStorageMetadataError, MetadataTooLargeError
from wenchang.storage.keys import (
    MAX_METADATA_BYTES,
    UNREADABLE_METADATA,
    check_metadata,
    metadata_size,
)
from wenchang.storage.outcomes import LINEAGE_LIMIT, new_write_id
from wenchang_gcs.marks import (
    MAX_EXTRA_BYTES,
    SERVICE_LIMIT,
    Marks,
    decode_marks,
    encode_marks,
)
from wenchang_gcs.tokens import Token

ID = "0123456789abcdef0123"
LONGEST = str(Token(generation=2**63 - 1, metageneration=2**63 - 1, min_writer=999_999, extra=True))


def many_names(count):
    return {f"n{number}": "" for number in range(count)}


names = st.from_regex(r"[a-z][a-z0-9-]{0,20}", fullmatch=True).filter(
    lambda name: not name.startswith("wenchang-")
)
values = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], include_characters="\t\n\r"), max_size=40
)
versions = st.builds(
    Token,
    generation=st.integers(1, 2**62),
    metageneration=st.integers(1, 9),
    min_writer=st.just(1),
    extra=st.just(value=False),
)
lineages = st.lists(
    st.tuples(st.sampled_from(["-", ID]), versions.map(str)), max_size=LINEAGE_LIMIT
).map(tuple)


@given(st.dictionaries(names, values, max_size=8), lineages)
def test_metadata_and_marks_come_back_equal(metadata, lineage):
    write_id = new_write_id()
    stored = encode_marks(metadata, write_id, lineage, {})
    assert decode_marks(stored) == Marks(metadata=metadata, write_id=write_id, lineage=lineage)


odd_text = st.text(
    st.sampled_from("aA-0\n\t\x00\x7f\x85\ud800\u2028 é文😀\ufdd0"), max_size=4
) | st.sampled_from(["wenchang-id", "a" * 64, "a" * 65, "x" * 5000, "文" * 1666])


@given(st.dictionaries(odd_text, odd_text, max_size=5) | st.integers(58, 66).map(many_names))
def test_a_strangers_map_is_taken_exactly_where_the_contract_would_take_it(metadata):
    try:
        check_metadata(metadata)
        kept = metadata
    except (InvalidStorageMetadataError, MetadataTooLargeError):
        kept = {}
    own = any(name.startswith("wenchang-") for name in metadata)
    assert own or decode_marks(metadata).metadata == kept


def test_all_that_one_object_can_hold_fits_the_limit_of_the_service():
    metadata = {"n" * 64: "文" * ((MAX_METADATA_BYTES - 64) // 3)}
    assert MAX_METADATA_BYTES - metadata_size(metadata) < 3
    extra = {"wenchang-later": "x" * (MAX_EXTRA_BYTES - len("wenchang-later"))}
    lineage = tuple((ID, LONGEST) for _ in range(LINEAGE_LIMIT))
    stored = encode_marks(metadata, ID, lineage, extra)
    size = metadata_size(stored)
    assert size <= SERVICE_LIMIT, f"{size} bytes of {SERVICE_LIMIT}"
    assert decode_marks(stored).lineage == lineage
    assert decode_marks(stored).extra == extra


@pytest.mark.parametrize("stored", [None, {}, {"description": "by another tool"}])
def test_an_object_without_marks_is_nobodys_write(stored):
    marks = decode_marks(stored)
    assert marks == Marks(metadata=stored or {})
    assert marks.write_id is None


@pytest.mark.parametrize(
    "stored",
    [{"CamelCase": "x"}, {"a b": "x"}, {"ok": "\x00"}, {"big": "x" * 6000}, {"ok": "y", "": "x"}],
)
def test_metadata_of_strangers_that_breaks_the_rules_is_left_out(stored):
    assert decode_marks(stored) == Marks(metadata={})


def test_what_googles_tools_add_is_left_out():
    assert decode_marks({"goog-reserved-file-mtime": "1"}).metadata == {}


@pytest.mark.parametrize(
    "damage",
    [
        {"wenchang-id": "damaged"},
        {"wenchang-id": None},
        {"wenchang-format": "one"},
        {"wenchang-format": None},
        {"wenchang-min-writer": "0"},
        {"wenchang-min-writer": None},
        {"wenchang-lineage": "["},
        {"wenchang-lineage": "{}"},
        {"wenchang-lineage": "[" * 5000},
        {"wenchang-lineage": json.dumps([[ID, "1"]] * 17)},
        {"wenchang-lineage": json.dumps([["id", "1"]])},
        {"wenchang-lineage": json.dumps([[ID, 1]])},
        {"wenchang-lineage": json.dumps([[ID, "no token"]])},
        {"wenchang-lineage": json.dumps([[ID]])},
        {"wenchang-lineage": json.dumps(["ab"])},
        {"wenchang-later": "x" * MAX_EXTRA_BYTES},
        {"Added": "by hand"},
        {"added": "\x00"},
    ],
)
def test_a_damaged_object_says_so_and_keeps_no_secret_in_what_it_says(damage):
    stored = {**encode_marks({"private": "value"}, ID, ((ID, "7"),), {}), **damage}
    marks = decode_marks({name: value for name, value in stored.items() if value is not None})
    assert list(marks.metadata) == [UNREADABLE_METADATA]
    assert marks.write_id is None
    assert marks.lineage == ()
    assert "value" not in marks.metadata[UNREADABLE_METADATA]


def test_format_guard_a_damaged_object_of_a_newer_format_is_still_guarded():
    assert decode_marks({"wenchang-min-writer": "3", "wenchang-format": "?"}).min_writer == 3
