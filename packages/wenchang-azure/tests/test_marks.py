"""The packed value: everything fits, comes back, and damage is told from data."""

from __future__ import annotations

import base64
import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wenchang.storage import StorageRejectedError
from wenchang.storage.keys import (
    MAX_METADATA_BYTES,
    MAX_METADATA_ENTRIES,
    UNREADABLE_METADATA,
    metadata_size,
)
from wenchang.storage.outcomes import LINEAGE_LIMIT, UNKNOWN_ID, new_write_id
from wenchang_azure.hooks import future_value
from wenchang_azure.marks import (
    MAX_EXTRA_BYTES,
    METADATA_BYTES,
    METADATA_NAME,
    check_writable,
    decode_marks,
    encode_marks,
)

LINEAGE = ((UNKNOWN_ID, "0x8DC5D1A2B3C4D5E"), (new_write_id(), "0x8DC5D1A2B3C4D5F:x"))


def incompressible(entries: int, seed: int = 1) -> dict[str, str]:
    """As much metadata as there may be, of characters that no compression gets small."""
    draw = random.Random(seed)
    alphabet = string.ascii_letters + string.digits + string.punctuation + "éüñ文昌記憶😀"
    names = [f"n{number:02d}" for number in range(entries)]
    room = MAX_METADATA_BYTES - sum(map(len, names))
    values = []
    for number in range(entries):
        left = room // (entries - number)
        text = ""
        while len(text.encode()) < left - 3:
            text += draw.choice(alphabet)
        text += "z" * (left - len(text.encode()))
        room -= left
        values.append(text)
    return dict(zip(names, values, strict=True))


@pytest.mark.parametrize("entries", [1, 7, MAX_METADATA_ENTRIES])
def test_the_most_that_the_contract_allows_fits_the_service(entries: int):
    metadata = incompressible(entries)
    assert metadata_size(metadata) == MAX_METADATA_BYTES
    longest = "0x" + "F" * 32 + ":w999"
    lineage = tuple((new_write_id(), longest) for _ in range(LINEAGE_LIMIT))
    value = encode_marks(b"body", metadata, new_write_id(), lineage)
    assert len(METADATA_NAME) + len(value) <= METADATA_BYTES
    assert value.isascii()
    marks = decode_marks(value)
    assert marks.metadata == metadata
    assert marks.lineage == lineage


def test_even_random_bytes_of_every_kind_fit():
    raw = 3 + 10 + 16 + 1 + LINEAGE_LIMIT * 51 + 1 + MAX_METADATA_ENTRIES * 3 + MAX_METADATA_BYTES
    assert raw == 6039
    assert len(base64.b64encode(bytes(raw))) == 8052


names = st.from_regex(r"[a-v][a-z0-9-]{0,20}", fullmatch=True)
values = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], include_characters="\t\n\r"),
    max_size=40,
)


@given(st.dictionaries(names, values, max_size=20), st.binary(max_size=50), st.binary(max_size=30))
def test_what_was_packed_is_unpacked(metadata: dict[str, str], body: bytes, extra: bytes):
    write_id = new_write_id()
    marks = decode_marks(encode_marks(body, metadata, write_id, LINEAGE, extra=extra))
    assert (marks.metadata, marks.write_id, marks.lineage) == (metadata, write_id, LINEAGE)
    assert marks.extra == extra
    assert not marks.edited(body)
    assert marks.edited(body + b"!")


def test_the_same_arguments_give_the_same_value():
    arguments = (b"body", {"b": "2", "a": "1"}, new_write_id(), LINEAGE)
    assert encode_marks(*arguments) == encode_marks(*arguments)


def test_text_that_compresses_is_compressed():
    long = {"description": "the same words " * 100}
    assert len(encode_marks(b"", long, new_write_id())) < 400


def test_a_blob_without_the_value_is_a_strangers():
    marks = decode_marks(None)
    assert (marks.metadata, marks.write_id, marks.lineage) == ({}, None, ())
    assert not marks.edited(b"any body")


def test_obj_foreign_every_cut_of_a_value_is_unreadable_or_whole():
    for metadata in ({"n": "1"}, {"long": "word " * 200}, incompressible(3)):
        packed = base64.b64decode(encode_marks(b"", metadata, new_write_id(), LINEAGE))
        for size in range(len(packed)):
            marks = decode_marks(base64.b64encode(packed[:size]).decode("ascii"))
            assert list(marks.metadata) == [UNREADABLE_METADATA], size
            assert marks.write_id is None


def test_obj_foreign_flipped_bits_never_fail():
    packed = bytearray(
        base64.b64decode(encode_marks(b"", incompressible(2), new_write_id(), LINEAGE))
    )
    for position in range(0, len(packed), 7):
        damaged = bytearray(packed)
        damaged[position] ^= 0x80
        marks = decode_marks(base64.b64encode(damaged).decode("ascii"))
        assert marks.metadata


@pytest.mark.parametrize("value", ["", "?", "AAAA", "é", "AQ==", "AQEA\n", "AQEAAA=", "=" * 8])
def test_obj_foreign_what_is_no_value_is_unreadable(value: str):
    assert list(decode_marks(value).metadata) == [UNREADABLE_METADATA]


def test_obj_foreign_a_value_that_inflates_without_end_is_unreadable():
    import zlib

    bomb = b"\1\1\1" + zlib.compress(bytes(10_000_000), 9)
    assert list(decode_marks(base64.b64encode(bomb).decode("ascii")).metadata) == [
        UNREADABLE_METADATA
    ]


def test_format_guard_a_later_format_is_read_and_says_who_may_write():
    marks = decode_marks(future_value(b"body"))
    assert marks.metadata == {"n": "1"}
    assert marks.min_writer == 2
    check_writable(1)
    with pytest.raises(StorageRejectedError) as caught:
        check_writable(marks.min_writer)
    assert caught.value.kind == "unsupported"
    assert "upgrade" in str(caught.value)


def test_format_guard_a_later_format_that_cannot_be_read_still_says_who_may_write():
    value = base64.b64encode(b"\7\7\0" + b"another world").decode("ascii")
    marks = decode_marks(value)
    assert list(marks.metadata) == [UNREADABLE_METADATA]
    assert marks.min_writer == 7


def test_fields_of_a_newer_format_take_the_room_of_old_lineage(monkeypatch: pytest.MonkeyPatch):
    # Text of a contract's size always compresses a little; a smaller limit shows the cut.
    monkeypatch.setattr("wenchang_azure.marks.METADATA_BYTES", 1000)
    extra = random.Random(2).randbytes(MAX_EXTRA_BYTES)
    lineage = tuple((new_write_id(), "0x8DC5D1A2B3C4D5E:x") for _ in range(LINEAGE_LIMIT))
    value = encode_marks(b"", {"n": "1"}, new_write_id(), lineage, extra=extra)
    assert len(METADATA_NAME) + len(value) <= 1000
    marks = decode_marks(value)
    assert marks.extra == extra
    assert 0 < len(marks.lineage) < LINEAGE_LIMIT
    assert marks.lineage == lineage[: len(marks.lineage)]
