"""Rows become objects again, those written by hand included; a page decodes as its rows do."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wenchang.storage.keys import UNREADABLE_METADATA, is_valid_key
from wenchang_sql import rows

VERSION = "0123456789" * 2

keys = st.one_of(
    st.text(min_size=1, max_size=12),
    st.lists(st.sampled_from(["a", "b.md", ".", "..", "", ".x", "é", "文", "😀"]), max_size=5).map(
        "/".join
    ),
)
raw_keys = st.one_of(
    keys.map(lambda key: key.encode(errors="surrogatepass")), st.binary(min_size=1, max_size=8)
)
values = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=8)
metadata_texts = st.one_of(
    st.dictionaries(st.sampled_from(["a", "b-c", "wenchang-x", "Big", ""]), values, max_size=3).map(
        lambda entries: json.dumps(entries, ensure_ascii=False)
    ),
    st.dictionaries(st.sampled_from(["a", "b"]), values, max_size=3).map(json.dumps),
    st.sampled_from(
        ["", "{", "}", "[]", "null", "1", '{"a":1}', '{"a":{"b":"c"}}', '{"a" :{"b":"c"}}', "{},{}"]
    ),
    st.sampled_from(["[1", "2]", "{},0,{}", '{"a":"\\u0000"}', '{"a":"\\ud800"}', '{"a":"\x7f"}']),
    st.none(),
)


def _listed_anew(page: list[Any]) -> list[Any]:
    """List a page none of which was seen before."""
    rows._known_keys.clear()
    rows._known_metadata.clear()
    return rows.listed(page)


class TestPages:
    @given(st.lists(st.tuples(raw_keys, metadata_texts), max_size=6))
    def test_a_page_decodes_exactly_as_its_rows_one_by_one(self, pairs: list[tuple[bytes, Any]]):
        page = [(key, text, VERSION.encode()) for key, text in pairs]
        singly = [entry for row in page for entry in _listed_anew([row])]
        assert _listed_anew(page) == singly
        assert rows.listed(page) == singly, "what was decoded once is taken again"
        assert rows.versions([(key, version) for key, _, version in page]) == [
            (entry.key, entry.version) for entry in singly
        ]

    @given(st.lists(metadata_texts, min_size=1, max_size=6))
    def test_metadata_kept_as_bytes_decodes_as_its_text_does(self, texts: list[Any]):
        page = [(b"k/%d" % n, text, b"v") for n, text in enumerate(texts)]
        encoded = [(key, text if text is None else text.encode(), v) for key, text, v in page]
        assert _listed_anew(encoded) == _listed_anew(page)

    @given(st.lists(st.binary(max_size=8), min_size=1, max_size=3))
    def test_bytes_that_are_no_text_are_marked_and_spoil_no_neighbour(self, damaged: list[bytes]):
        texts = [b'{"a":"b"}', *damaged, b"{}"]
        entries = _listed_anew([(b"k/%d" % n, text, b"v") for n, text in enumerate(texts)])
        assert (entries[0].metadata, entries[-1].metadata) == ({"a": "b"}, {})
        for entry, text in zip(entries[1:-1], damaged, strict=True):
            if text != b"{}":
                assert UNREADABLE_METADATA in entry.metadata

    def test_more_keys_and_texts_than_are_remembered_stay_right(
        self, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(rows, "_MAX_KNOWN", 5)
        pages = [
            [(b"k/%d" % n, f'{{"n":"{n}"}}', b"v") for n in range(first, first + 4)]
            for first in (0, 4, 2, 8, 0)
        ]
        for page in pages:
            for entry, (key, text, _) in zip(rows.listed(page), page, strict=True):
                assert (entry.key.encode(), entry.metadata) == (key, json.loads(text))
            assert len(rows._known_keys) <= 5 + 4
            assert len(rows._known_metadata) <= 5 + 4

    @given(st.lists(raw_keys, max_size=6))
    def test_only_keys_that_the_contract_permits_are_listed(self, raw: list[bytes]):
        listed = [entry.key for entry in rows.listed([(key, "{}", b"v") for key in raw])]
        wanted = []
        for key in raw:
            try:
                text = key.decode()
            except UnicodeDecodeError:
                continue
            if is_valid_key(text):
                wanted.append(text)
        assert listed == wanted

    @given(metadata_texts)
    def test_metadata_is_a_permitted_map_or_is_marked(self, text: Any):
        decoded = rows.stored((b"", text, b"v")).metadata
        if text is None:
            assert decoded == {}
        elif UNREADABLE_METADATA in decoded:
            assert len(decoded) == 1
        else:
            assert decoded == json.loads(text)

    @given(st.dictionaries(st.sampled_from(["a", "b-c"]), values, max_size=3))
    def test_metadata_comes_back_equal(self, metadata: dict[str, str]):
        permitted = {
            name: "".join(c for c in value if c >= " " and not "\x7f" <= c <= "\x9f")
            for name, value in metadata.items()
        }
        text = rows.encode_metadata(permitted)
        assert rows.stored((b"", text, b"v")).metadata == permitted

    def test_returned_maps_are_the_callers_own(self):
        row = (b"a", '{"a":"b"}', b"v")
        rows.listed([row])[0].metadata["a"] = "changed"  # type: ignore[index] # it is a dict
        assert rows.listed([row])[0].metadata == {"a": "b"}
        assert rows.stored((b"", row[1], b"v")).metadata == {"a": "b"}


class TestVersions:
    @given(st.binary(max_size=20))
    def test_any_stored_bytes_make_a_version_that_finds_them_again(self, stored: bytes):
        version = rows.decode_version(stored)
        assert rows.encode_version(version) == (stored or None)

    @pytest.mark.parametrize("version", ["", "x" * 257, "😀", "\ud800"])
    def test_a_version_that_no_row_can_have_is_none(self, version: str):
        assert rows.encode_version(version) is None


class TestLineage:
    def _found(self, write_id: str | None, lineage: str | None):
        return rows.found((b"x", "{}", VERSION.encode(), write_id, lineage))

    def test_pairs_come_back_newest_first_and_a_cut_one_is_dropped(self):
        first, second = "a" * 20, "b" * 20
        text = f"{first};-:by%20hand;{second}:changed;{VERSION};012345"
        found = self._found(first, text)
        assert found.write_id == first
        assert found.lineage == (
            (first, first),
            ("-", "by hand"),
            (second, "changed"),
            (VERSION, VERSION),
        )

    def test_a_version_written_by_hand_survives_in_a_lineage(self):
        text = "-" + rows.replaced("by hand; v:1\xff")["replaced"]
        assert self._found("a" * 20, text).lineage == (("-", "by hand; v:1\xff"),)

    @pytest.mark.parametrize("write_id", [None, "", "mine", "A" * 20])
    def test_a_row_without_our_mark_is_not_ours(self, write_id: str | None):
        assert self._found(write_id, None).write_id is None

    def test_the_pairs_of_a_busy_object_fit(self):
        pairs = "".join(f"{number:020x};" for number in range(rows.LINEAGE_PAIRS))
        assert len(pairs) == rows.LINEAGE_CHARACTERS
        assert len(self._found("a" * 20, pairs).lineage) == rows.LINEAGE_PAIRS >= 16
