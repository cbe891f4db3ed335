"""The envelope: what was encoded comes back, and nothing that was not is lost or mistaken."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wenchang.storage import StorageRejectedError, StoredObject
from wenchang.storage.envelope import (
    FORMAT,
    HEAD_BYTES,
    USUAL_HEAD_BYTES,
    Envelope,
    Head,
    NeedMore,
    NotOurs,
    check_writable,
    decode,
    decode_head,
    encode,
)
from wenchang.storage.keys import UNREADABLE_METADATA, metadata_size
from wenchang.storage.outcomes import UNKNOWN_ID, Write, decide

ID = "0123456789abcdef0123"
OTHER = "f" * 20

ids = st.text("0123456789abcdef", min_size=20, max_size=20)
versions = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=256)
lineages = st.lists(st.tuples(ids | st.just(UNKNOWN_ID), versions), max_size=16).map(tuple)
metadata_maps = st.dictionaries(
    st.from_regex(r"[a-z][a-z0-9-]{0,20}", fullmatch=True).filter(
        lambda name: not name.startswith("wenchang-")
    ),
    st.text(
        st.characters(exclude_categories=("Cc", "Cs")) | st.sampled_from("\t\n\r"), max_size=60
    ),
    max_size=8,
)
bodies = st.binary(max_size=200) | st.sampled_from(
    [b"", b"---\n", b"---\ntitle: x\n---\n# Hi\n", b"\xef\xbb\xbfx", b"\r\n", b"\x00\xff"]
)


def edit(data, **fields):
    """Return an object whose block was changed; a field of `None` is removed."""
    opening, line, rest = data.split(b"\n", 2)
    block = json.loads(line.removeprefix(b"wenchang: ")) | fields
    block = {name: value for name, value in block.items() if value is not None}
    text = json.dumps(block, separators=(",", ":"), ensure_ascii=False)
    return b"\n".join([opening, b"wenchang: " + text.encode(), rest])


class TestRoundTrip:
    @given(bodies, metadata_maps, ids, lineages)
    @example(b"", {"a": "\u2028\u2029\x00"[:2]}, ID, ((UNKNOWN_ID, "\u2028" * 256),) * 16)
    def test_what_is_encoded_is_decoded(self, body, metadata, write_id, lineage):
        data = encode(body, metadata, write_id, lineage)
        assert data.endswith(body)
        assert decode(data) == Envelope(
            body=body, metadata=metadata, write_id=write_id, lineage=lineage
        )

    @given(bodies, metadata_maps, ids, lineages)
    @example(b"", {"a": "\u2028\u2029\n\r\t"}, ID, ())
    def test_the_block_is_three_lines_whatever_it_holds(self, body, metadata, write_id, lineage):
        data = encode(body, metadata, write_id, lineage)
        block = data[: len(data) - len(body)].decode("utf-8")
        assert len(block.splitlines()) == 3
        assert block.startswith("---\nwenchang: {")
        assert block.endswith("}\n---\n")

    @given(bodies, metadata_maps, ids, lineages)
    def test_a_head_decoded_alone_agrees_with_the_whole(self, body, metadata, write_id, lineage):
        data = encode(body, metadata, write_id, lineage)
        head = decode_head(data[: len(data) - len(body)])
        assert isinstance(head, Head)
        assert (head.metadata, head.write_id, head.lineage) == (metadata, write_id, lineage)
        assert data[head.body_offset :] == body
        assert head.digest == hashlib.sha256(body).hexdigest()
        assert head.unreadable is None

    def test_the_same_arguments_give_the_same_bytes_in_whatever_order(self):
        one = encode(b"x", {"a": "1", "b": "2"}, ID, ((ID, "v"),))
        two = encode(b"x", {"b": "2", "a": "1"}, ID, ((ID, "v"),))
        assert one == two

    def test_version_fresh_another_write_id_gives_other_bytes(self):
        assert encode(b"x", {}, ID) != encode(b"x", {}, OTHER)

    def test_text_in_other_scripts_stays_readable(self):
        assert "记忆 😀".encode() in encode(b"", {"title": "记忆 😀"}, ID)

    def test_an_envelope_as_a_body_is_a_body(self):
        inner = encode(b"inner", {"a": "1"}, OTHER)
        outer = decode(encode(inner, {}, ID))
        assert (outer.body, outer.metadata, outer.write_id) == (inner, {}, ID)

    def test_the_largest_permitted_block_fits_and_an_ordinary_one_is_short(self):
        metadata = {f"n{number:02}": '"' * 75 for number in range(64)}
        metadata["n00"] += '"' * (5000 - metadata_size(metadata))
        assert metadata_size(metadata) == 5000
        lineage = tuple((ID, "\u2028" * 256) for _ in range(16))
        data = encode(b"", metadata, ID, lineage, extra={"newer": "x" * 4000})
        assert len(data) <= HEAD_BYTES
        assert decode(data).metadata == metadata
        ordinary = tuple((ID, '"d41d8cd98f00b204e9800998ecf8427e"') for _ in range(16))
        assert len(encode(b"", {"description": "x" * 1000}, ID, ordinary)) <= USUAL_HEAD_BYTES

    @pytest.mark.parametrize(
        "arguments",
        [
            {"write_id": "short"},
            {"write_id": ID.upper()},
            {"lineage": ((ID, "v"),) * 17},
            {"lineage": ((ID, ""),)},
            {"lineage": ((ID, "v" * 257),)},
            {"lineage": ((ID, "a\nb"),)},
            {"lineage": (("?", "v"),)},
            {"lineage": ("-x",)},
            {"tombstone": True},
            {"extra": {"newer": "x" * HEAD_BYTES}},
            {"extra": {"newer": float("nan")}},
        ],
        ids=str,
    )
    def test_what_could_not_be_decoded_again_is_not_encoded(self, arguments):
        fields = {"body": b"x", "metadata": {}, "write_id": ID} | arguments
        with pytest.raises(ValueError):
            encode(**fields)


class TestForeignObjects:
    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"-",
            b"---",
            b"---\n",
            b"# Notes\n",
            b"---\ntitle: Notes\n---\n# Notes\n",
            b"---\nwenchang: notes about wenchang\n---\n# Notes\n",
            b"---\nwenchang:\n  format: 1\n---\n",
            b"---\nwenchang: {}\n---\n",
            b"---\n---\n",
            b'\n---\nwenchang: {"format":1}\n---\n',
            b'----\nwenchang: {"format":1}\n---\n',
            b"\xef\xbb\xbf# Notes",
            b"\x00" * 100,
        ],
    )
    def test_obj_foreign_an_object_without_the_block_is_its_own_body(self, data):
        assert decode(data) == Envelope(body=data, metadata={}, write_id=None)
        assert decode_head(data, size=len(data)) == NotOurs()

    @given(st.binary(max_size=300))
    def test_obj_foreign_any_bytes_come_back_whole(self, data):
        assert decode(data).body == data

    @given(st.binary(max_size=100))
    def test_obj_foreign_anything_behind_the_opening_never_raises_and_comes_back(self, rest):
        data = b'---\nwenchang: {"format":' + rest
        envelope = decode(data)
        assert envelope.body == data
        assert set(envelope.metadata) == {UNREADABLE_METADATA}


class TestDamage:
    WHOLE = encode("körper".encode(), {"title": "t"}, ID, ((OTHER, "v1"), (UNKNOWN_ID, "v0")))

    @pytest.mark.parametrize(
        "fields",
        [
            {"format": 0},
            {"format": "1"},
            {"format": True},
            {"format": 10**9},
            {"min_writer": None},
            {"min_writer": -1},
            {"id": None},
            {"id": 5},
            {"id": "x" * 20},
            {"lineage": None},
            {"lineage": {}},
            {"lineage": ["-x"]},
            {"lineage": [["-"]]},
            {"lineage": [["-", 5]]},
            {"lineage": [["-", "v"]] * 17},
            {"metadata": None},
            {"metadata": []},
            {"metadata": {"a": 1}},
            {"metadata": {"A": "x"}},
            {"metadata": {"a": "x" * 5000}},
            {"metadata": {"wenchang-unreadable": "x"}},
            {"metadata": {"a": "\u0000"}},
            {"sha256": None},
            {"sha256": "0" * 63},
            {"tombstone": "yes"},
            {"tombstone": True},
            {"newer": "x" * 5000},
        ],
        ids=str,
    )
    def test_obj_foreign_a_damaged_block_comes_back_whole_and_says_why(self, fields):
        data = edit(self.WHOLE, **fields)
        envelope = decode(data)
        assert envelope.body == data
        assert envelope.metadata == {UNREADABLE_METADATA: envelope.unreadable}
        assert envelope.write_id is None
        assert envelope.lineage == ()
        assert not envelope.hand_edited
        check_writable(envelope)

    @pytest.mark.parametrize(
        "line",
        [
            b'{"format":1',
            b'{"format":1}',
            b'{"format":NaN}',
            b'{"format":1,"format":1}',
            b'{"format":' + b"[" * 20_000 + b"]" * 20_000 + b"}",
            b'{"format":' + b"9" * 5000 + b"}",
            b'{"format":1,"x":"\xff"}',
            b'{"format":1,"min_writer":1,"x":"\\ud800"}',
            b'{"format":1}{"format":1}',
        ],
        ids=range(9),
    )
    def test_obj_foreign_a_line_that_is_no_such_json_comes_back_whole(self, line):
        data = b"---\nwenchang: " + line + b"\n---\nbody"
        envelope = decode(data)
        assert envelope.body == data
        assert set(envelope.metadata) == {UNREADABLE_METADATA}

    def test_obj_foreign_a_lone_surrogate_in_an_unknown_field_is_damage(self):
        data = self.WHOLE.replace(b'"metadata"', b'"newer":"\\ud800","metadata"')
        assert decode(data).unreadable == "a field of a newer format is damaged"

    def test_obj_foreign_a_field_given_twice_is_damage(self):
        data = self.WHOLE.replace(b'"id":', b'"id":"' + OTHER.encode() + b'","id":')
        assert decode(data).unreadable == "its block is not valid JSON"
        assert decode(data).body == data

    def test_no_reason_repeats_stored_content(self):
        for fields in ({"metadata": {"a": "secret\u0000"}}, {"id": "secret"}, {"sha256": "secret"}):
            assert "secret" not in (decode(edit(self.WHOLE, **fields)).unreadable or "secret")

    def test_every_truncation_is_told_and_loses_nothing(self):
        head_length = decode_head(self.WHOLE).body_offset
        for length in range(len(self.WHOLE) + 1):
            part = self.WHOLE[:length]
            partial = decode_head(part)
            whole = decode(part)
            if length >= head_length:
                assert isinstance(partial, Head)
                assert partial.unreadable is None
                assert whole.hand_edited == (length < len(self.WHOLE))
            else:
                assert partial == NeedMore()
                assert whole.body == part
                assert not whole.hand_edited
                begun = length >= len(b'---\nwenchang: {"format":')
                assert set(whole.metadata) == ({UNREADABLE_METADATA} if begun else set())

    @given(st.data())
    def test_any_single_changed_byte_never_raises_and_keeps_every_byte(self, data):
        position = data.draw(st.integers(0, len(self.WHOLE) - 1))
        changed = bytearray(self.WHOLE)
        changed[position] = data.draw(st.integers(0, 255))
        envelope = decode(bytes(changed))
        assert bytes(changed).endswith(envelope.body)
        assert envelope.body == bytes(changed) or envelope.unreadable is None

    def test_a_block_without_an_end_is_settled_by_the_first_bytes(self):
        data = b'---\nwenchang: {"format":1,' + b" " * (HEAD_BYTES * 2)
        assert decode_head(data[: HEAD_BYTES - 1]) == NeedMore()
        head = decode_head(data[:HEAD_BYTES])
        assert isinstance(head, Head)
        assert head.unreadable
        assert decode(data).body == data

    @given(st.binary(max_size=40))
    def test_a_listing_never_asks_for_more_than_the_largest_block(self, data):
        padded = data + b"x" * HEAD_BYTES
        assert decode_head(padded[:HEAD_BYTES]) != NeedMore()
        assert decode_head(data, size=len(data)) != NeedMore()


class TestEditsByHand:
    WHOLE = encode(b"one\n", {"a": "1"}, ID, ((OTHER, "v1"),))

    def test_an_edited_body_is_noticed_and_its_metadata_kept(self):
        envelope = decode(self.WHOLE.replace(b"one\n", b"two\n"))
        assert envelope.hand_edited
        assert (envelope.body, envelope.metadata) == (b"two\n", {"a": "1"})
        assert envelope.remembered_id is None
        assert decode(self.WHOLE).remembered_id == ID

    @pytest.mark.parametrize(
        "change",
        [
            lambda data: b"\xef\xbb\xbf" + data,
            lambda data: data.replace(b"\n", b"\r\n"),
            lambda data: data.replace(b"---\none", b"---\r\none"),
        ],
        ids=["bom", "crlf", "mixed"],
    )
    def test_an_editor_that_changes_line_ends_or_adds_a_mark_is_noticed(self, change):
        envelope = decode(change(self.WHOLE))
        assert envelope.hand_edited
        assert envelope.metadata == {"a": "1"}
        assert envelope.unreadable is None

    def test_an_edited_copy_of_ones_own_write_is_neither_success_nor_conflict(self):
        write = Write(key="k", kind="replace", expected="v1", write_id=ID, lineage=((OTHER, "v1"),))
        edited = decode(self.WHOLE.replace(b"one\n", b"two\n")).found("v3")
        assert decide(write, edited, ambiguous=True).outcome == "unknown"
        untouched = decode(self.WHOLE).found("v2")
        verdict = decide(write, untouched, ambiguous=True)
        assert (verdict.outcome, verdict.version) == ("landed", "v2")

    def test_what_an_edited_object_says_of_earlier_versions_still_counts(self):
        write = Write(key="k", kind="replace", expected="v1", write_id="a" * 20)
        edited = decode(self.WHOLE.replace(b"one\n", b"two\n")).found("v3")
        assert decide(write, edited, ambiguous=True).outcome == "conflict"

    def test_stored_hands_out_the_object_as_get_does(self):
        envelope = decode(self.WHOLE)
        stored = envelope.stored("v9")
        assert stored == StoredObject(b"one\n", {"a": "1"}, "v9")
        assert stored.metadata is not envelope.metadata


class TestTombstones:
    def test_a_tombstone_comes_back_as_one(self):
        data = encode(b"", {}, ID, ((OTHER, "v1"),), tombstone=True)
        envelope = decode(data)
        assert envelope.tombstone
        assert not envelope.hand_edited
        assert envelope.found("v2").tombstone
        assert decode_head(data, size=len(data)).tombstone

    def test_what_a_person_wrote_below_a_tombstone_is_not_hidden(self):
        data = encode(b"", {}, ID, tombstone=True) + b"back again"
        envelope = decode(data)
        assert not envelope.tombstone
        assert envelope.body == data
        assert not decode_head(data, size=len(data)).tombstone


class TestFormats:
    WHOLE = encode(b"x", {"a": "1"}, ID)

    def test_format_guard_a_newer_format_is_read_and_may_be_written_if_it_says_so(self):
        envelope = decode(edit(self.WHOLE, format=FORMAT + 1))
        assert envelope.metadata == {"a": "1"}
        check_writable(envelope)

    def test_format_guard_a_newer_format_that_needs_newer_writers_is_read_but_not_written(self):
        data = edit(self.WHOLE, format=FORMAT + 4, min_writer=FORMAT + 4)
        assert decode(data).metadata == {"a": "1"}
        for stored in (decode(data), decode_head(data)):
            with pytest.raises(StorageRejectedError, match="upgrade wenchang") as caught:
                check_writable(stored)
            assert caught.value.kind == "unsupported"

    def test_format_guard_holds_also_where_the_newer_format_cannot_be_read(self):
        data = edit(self.WHOLE, format=FORMAT + 1, min_writer=FORMAT + 1, metadata=["new"])
        assert decode(data).unreadable
        with pytest.raises(StorageRejectedError):
            check_writable(decode(data))

    def test_format_guard_unknown_fields_are_kept_on_a_rewrite(self):
        extra = {"newer": {"b": [1, "ü"]}, "also": None}
        data = encode(b"x", {}, ID, extra=extra)
        assert decode(data).extra == extra
        again = encode(b"y", {"b": "2"}, OTHER, extra=decode(data).extra)
        assert decode(again).extra == extra
        assert decode(again).write_id == OTHER

    def test_a_kept_field_cannot_replace_one_of_ours(self):
        assert decode(encode(b"x", {}, ID, extra={"id": OTHER})).write_id == ID

    def test_objects_that_are_absent_or_not_ours_may_be_written(self):
        for stored in (None, NotOurs(), decode(b"foreign"), decode(self.WHOLE)):
            check_writable(stored)
