"""The rules of keys, prefixes, metadata and bodies, the same for every backend."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wenchang.storage import (
    InvalidStorageKeyError,
    InvalidStorageMetadataError,
    MetadataTooLargeError,
    ObjectTooLargeError,
    StorageConfigurationError,
)
from wenchang.storage.keys import (
    MAX_BODY_BYTES,
    MAX_KEY_BYTES,
    MAX_METADATA_BYTES,
    check_body,
    check_expected,
    check_key,
    check_listing,
    check_metadata,
    check_namespace,
    is_valid_key,
    metadata_size,
)


def is_noncharacter(char):
    return 0xFDD0 <= ord(char) <= 0xFDEF or ord(char) & 0xFFFE == 0xFFFE


def may_be_in_a_key(char):
    return (
        unicodedata.category(char) not in {"Cc", "Cs"}
        and not is_noncharacter(char)
        and char not in "\\/"
    )


any_char = st.characters(exclude_categories=())
key_chars = any_char.filter(may_be_in_a_key)
segments = st.text(key_chars, min_size=1, max_size=40).filter(lambda s: s not in {".", ".."})
keys = (
    st.lists(segments, min_size=1, max_size=20)
    .map("/".join)
    .filter(lambda key: len(key.encode()) <= MAX_KEY_BYTES)
)


class TestKeys:
    @given(keys)
    @example("a")
    @example("%2F")
    @example(" a ")
    @example("...")
    @example("CON/aux.txt")
    @example("e\u0301/\u00e9")
    @example("\U0001f600/\ufffd\ufeff\u200e")
    @example("é" * (MAX_KEY_BYTES // 2))
    def test_key_range_every_key_within_the_rules_is_accepted(self, key):
        check_key(key)
        assert is_valid_key(key)

    @given(st.text(any_char, max_size=60) | st.text("ab./@=%-_\\\né", max_size=12))
    def test_key_range_the_check_agrees_with_the_rules_written_out(self, text):
        segments = text.split("/")
        wanted = (
            0 < len(text.encode(errors="surrogatepass")) <= MAX_KEY_BYTES
            and all(may_be_in_a_key(char) or char == "/" for char in text)
            and not {"", ".", ".."} & set(segments)
        )
        assert is_valid_key(text) == wanted

    @pytest.mark.parametrize(
        "key",
        [
            "",
            "/",
            "/a",
            "a/",
            "a//b",
            ".",
            "..",
            "a/../b",
            "a/.",
            "a\\b",
            "a\nb",
            "\x00",
            "a\x7f",
            "a\x85",
            "\ud800",
            "a/\udfff",
            "\ufdd0",
            "\ufffe",
            "\U0010ffff",
            "a" * (MAX_KEY_BYTES + 1),
            "é" * (MAX_KEY_BYTES // 2 + 1),
            "/".join("a" * 201),
        ],
    )
    def test_key_refused_a_key_outside_the_rules_is_refused_without_being_repeated(self, key):
        with pytest.raises(InvalidStorageKeyError) as caught:
            check_key(key)
        assert not is_valid_key(key)
        assert len(key) < 3 or key not in str(caught.value)

    def test_key_range_the_longest_and_the_deepest_key_are_accepted(self):
        check_key("a" * MAX_KEY_BYTES)
        check_key("/".join("a" * 200))

    @pytest.mark.parametrize("key", [None, b"a", 1, ["a"]])
    def test_arg_types_a_key_that_is_no_text_is_a_type_error(self, key):
        with pytest.raises(TypeError):
            check_key(key)


class TestListings:
    @pytest.mark.parametrize("text", ["", "a/", "/", ".", "..", "a//", "\\", "é" * 512, "\uffff"])
    def test_key_refused_prefix_and_start_are_no_keys_and_may_be_any_text(self, text):
        check_listing(text, None, 1)
        check_listing("", text, 10**9)

    @pytest.mark.parametrize("text", ["\n", "\x7f", "\ud800", "a" * 1025, "é" * 513])
    def test_key_refused_a_prefix_or_start_with_control_characters_or_too_long_is_refused(
        self, text
    ):
        with pytest.raises(InvalidStorageKeyError):
            check_listing(text, None, 1)
        with pytest.raises(InvalidStorageKeyError):
            check_listing("", text, 1)

    @pytest.mark.parametrize("limit", [0, -1, True, 1.0, "1", None])
    def test_key_refused_a_limit_that_is_no_whole_number_from_one_is_a_value_error(self, limit):
        with pytest.raises(ValueError):
            check_listing("", None, limit)

    @pytest.mark.parametrize(("prefix", "start"), [(None, None), (b"", None), ("", b"a"), ("", 1)])
    def test_arg_types_ends_of_a_listing_that_are_no_text_are_type_errors(self, prefix, start):
        with pytest.raises(TypeError):
            check_listing(prefix, start, 1)


class TestNamespaces:
    @pytest.mark.parametrize("prefix", ["", "a", "a/b", "a" * 123, "/".join("a" * 20)])
    def test_a_prefix_of_a_backend_within_the_limits_is_accepted(self, prefix):
        check_namespace(prefix)

    @pytest.mark.parametrize("prefix", ["/a", "a/", "a" * 124, "é" * 63, "/".join("a" * 21), ".."])
    def test_a_prefix_of_a_backend_outside_the_limits_names_the_option(self, prefix):
        with pytest.raises(StorageConfigurationError, match="option 'prefix'"):
            check_namespace(prefix)


values = st.text(
    st.characters(exclude_categories=("Cc", "Cs")) | st.sampled_from("\t\n\r"), max_size=60
)
names = st.from_regex(r"[a-z][a-z0-9-]{0,63}", fullmatch=True).filter(
    lambda name: not name.startswith("wenchang-")
)


class TestMetadata:
    @given(st.dictionaries(names, values, max_size=20))
    @example({"a" * 64: ""})
    @example({"a": " \r\n\t x  \ufffe"})
    def test_meta_exact_a_permitted_map_comes_back_as_an_equal_copy(self, metadata):
        copied = check_metadata(metadata)
        assert copied == metadata
        assert copied is not metadata
        assert type(copied) is dict

    @pytest.mark.parametrize(
        "name",
        ["", "A", "1a", "-a", "a_b", "a.b", "é", "a\n", "a" * 65, "wenchang-", "wenchang-id"],
    )
    def test_meta_refused_a_name_outside_the_rules_is_refused_and_kept_for_code(self, name):
        with pytest.raises(InvalidStorageMetadataError) as caught:
            check_metadata({"fine": "x", name: "secret-value"})
        assert caught.value.name == name
        assert "secret-value" not in str(caught.value)

    @pytest.mark.parametrize("char", ["\x00", "\x0b", "\x0c", "\x1f", "\x7f", "\x85", "\ud800"])
    def test_meta_refused_a_value_with_a_control_character_or_surrogate_is_refused(self, char):
        with pytest.raises(InvalidStorageMetadataError) as caught:
            check_metadata({"a": f"x{char}y"})
        assert caught.value.name == "a"

    def test_meta_exact_sixty_four_entries_are_accepted_and_one_more_is_refused(self):
        metadata = {f"n{number}": "" for number in range(64)}
        assert check_metadata(metadata) == metadata
        with pytest.raises(InvalidStorageMetadataError):
            check_metadata(metadata | {"one-more": ""})

    def test_meta_limit_counts_bytes_of_names_and_values(self):
        full = {"a": "é" * 2499 + "x"}
        assert metadata_size(full) == MAX_METADATA_BYTES
        check_metadata(full)
        with pytest.raises(MetadataTooLargeError) as caught:
            check_metadata({"a": "é" * 2500})
        assert (caught.value.size, caught.value.limit) == (MAX_METADATA_BYTES + 1, 5000)

    @pytest.mark.parametrize("metadata", [None, [("a", "b")], {1: "a"}, {"a": 1}, {"a": None}])
    def test_arg_types_a_map_of_other_types_is_a_type_error(self, metadata):
        with pytest.raises(TypeError):
            check_metadata(metadata)


class TestBodiesAndVersions:
    def test_data_exact_a_body_of_four_mebibytes_is_accepted_and_one_byte_more_is_refused(self):
        check_body(b"")
        check_body(bytes(MAX_BODY_BYTES))
        with pytest.raises(ObjectTooLargeError) as caught:
            check_body(bytes(MAX_BODY_BYTES + 1))
        assert caught.value.limit == MAX_BODY_BYTES

    @pytest.mark.parametrize("data", ["text", bytearray(b"a"), memoryview(b"a"), None])
    def test_arg_types_a_body_that_is_not_bytes_is_a_type_error(self, data):
        with pytest.raises(TypeError):
            check_body(data)

    def test_arg_types_a_version_is_text_and_none_only_where_a_create_is_possible(self):
        check_expected(None, optional=True)
        check_expected("", optional=False)
        for expected in (None, 1, b"1"):
            with pytest.raises(TypeError):
                check_expected(expected, optional=False)
        with pytest.raises(TypeError):
            check_expected(1, optional=True)
