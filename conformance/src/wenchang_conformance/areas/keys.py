"""Keys: exact, in their whole range, and refused outside it."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from wenchang.storage import InvalidStorageKeyError
from wenchang_conformance.requirement import requirement
from wenchang_conformance.samples import BAD_KEYS, BAD_RANGES, LOOKALIKES

if TYPE_CHECKING:
    from wenchang_conformance.bench import Bench
    from wenchang_conformance.trace import TracedStorage

__all__ = ["KeysArea"]


class KeysArea:
    """Cases about keys."""

    @requirement("key-exact")
    def test_keys_that_look_alike_name_different_objects(self, bench: Bench) -> None:
        """Store all of them, then read each and compare with what was stored under it."""
        storage = bench.open()
        for number, key in enumerate(LOOKALIKES):
            storage.put(key, b"%d" % number, {})
        for number, key in enumerate(LOOKALIKES):
            bench.holds(
                storage,
                key,
                b"%d" % number,
                f"{len(LOOKALIKES)} keys that look alike were stored, each with its own body",
            )

    @requirement("key-exact")
    def test_a_key_is_not_found_under_a_lookalike(self, bench: Bench) -> None:
        """Store one key and read its neighbours."""
        storage = bench.open()
        for stored, asked in _NEIGHBOURS:
            storage.put(stored, b"stored", {})
            found = storage.get(asked)
            bench.require(
                found is None,
                f"only {stored!a} was stored, but get({asked!a}) returned an object; "
                f"the two differ in {_difference(stored, asked)}",
            )
            storage.delete_if_version(stored, _version(storage, stored))

    @requirement("key-exact")
    def test_a_listing_spells_keys_as_they_were_given(self, bench: Bench) -> None:
        """List all of them and compare the set of names."""
        storage = bench.open()
        for key in LOOKALIKES:
            storage.put(key, b"x", {})
        listed = {entry.key for entry in storage.list_page("", None, 1000)}
        lost = sorted(set(LOOKALIKES) - listed)
        extra = sorted(listed - set(LOOKALIKES))
        bench.require(
            not lost and not extra,
            f"{len(LOOKALIKES)} keys were stored and listed with prefix '' and limit 1000\n"
            f"  missing from the listing:  {lost!a}\n  listed but never stored: {extra!a}",
        )

    @requirement("key-exact")
    def test_a_condition_concerns_exactly_the_key_it_names(self, bench: Bench) -> None:
        """Create a neighbour of an existing key: it must be absent."""
        storage = bench.open()
        for stored, asked in _NEIGHBOURS:
            storage.put(stored, b"stored", {})
            bench.accepted(
                f"{stored!a} was stored; the absent key {asked!a} is created; "
                f"the two differ in {_difference(stored, asked)}",
                storage.put_if_version,
                asked,
                b"neighbour",
                {},
                None,
            )
            bench.holds(storage, stored, b"stored", f"after {asked!a} was created")
            storage.delete_if_version(stored, _version(storage, stored))
            storage.delete_if_version(asked, _version(storage, asked))

    @requirement("key-range")
    def test_every_kind_of_character_works(self, bench: Bench) -> None:
        """Put one key for each block of characters that a key may hold."""
        storage = bench.open()
        for what, text in _KINDS:
            key = f"kinds/{text}/end"
            step = f"a valid key with {what} was put"
            bench.accepted(step, storage.put, key, what.encode(), {})
            bench.holds(storage, key, what.encode(), step)

    @requirement("key-refused")
    def test_an_invalid_key_is_refused_by_every_method_that_takes_one(self, bench: Bench) -> None:
        """Give each invalid key to each of the four methods."""
        storage = bench.open()
        for what, key in BAD_KEYS:
            for call, arguments in (
                (storage.get, (key,)),
                (storage.put, (key, b"x", {})),
                (storage.put_if_version, (key, b"x", {}, None)),
                (storage.put_if_version, (key, b"x", {}, "1")),
                (storage.delete_if_version, (key, "1")),
            ):
                step = f"{call.__name__} was called with a key with {what}: {key[:20]!a}"
                bench.refused(InvalidStorageKeyError, step, call, *arguments)
        entries = storage.list_page("", None, 10)
        bench.equal(list(entries), [], "after refused keys only, the namespace is listed")

    @requirement("key-refused")
    def test_an_invalid_prefix_or_start_is_refused(self, bench: Bench) -> None:
        """Give each invalid text to both ends of a listing."""
        storage = bench.open()
        for what, text in BAD_RANGES:
            for argument, prefix, start in (("prefix", text, None), ("start_after", "", text)):
                step = f"list_page was called with a {argument} with {what}"
                bench.refused(InvalidStorageKeyError, step, storage.list_page, prefix, start, 1)

    @requirement("key-refused")
    def test_prefix_and_start_need_not_be_keys(self, bench: Bench) -> None:
        """Give texts that are no keys but permitted in a listing."""
        storage = bench.open()
        storage.put("a/b", b"x", {})
        room = bench.hooks.key_bytes - 900 + 1024
        permitted = ("", "a", "a/", "/", "//", ".", "..", "a/../", "\\", "\ufdd0", "k" * room)
        for text in permitted:
            for argument, prefix, start in (("prefix", text, None), ("start_after", "", text)):
                step = f"list_page was called with the permitted {argument} {text[:20]!a}"
                bench.accepted(step, storage.list_page, prefix, start, 10)

    @requirement("key-refused")
    def test_a_limit_that_is_no_positive_int_is_a_value_error(self, bench: Bench) -> None:
        """Give each wrong limit."""
        storage = bench.open()
        for limit in (0, -1, True, 1.0, "1", None):
            step = f"list_page was called with limit={limit!r}"
            bench.refused(ValueError, step, storage.list_page, "", None, limit)

    @requirement("arg-types")
    def test_arguments_of_a_wrong_type_are_type_errors(self, bench: Bench) -> None:
        """Give each argument of each method a value of a wrong type."""
        storage = bench.open()
        version = storage.put("a", b"before", {"n": "1"})
        for call, wrong, arguments in (
            (storage.get, "a bytes key", (b"a",)),
            (storage.get, "the key None", (None,)),
            (storage.get, "an int key", (1,)),
            (storage.put, "a bytes key", (b"a", b"x", {})),
            (storage.put, "a str body", ("a", "x", {})),
            (storage.put, "the body None", ("a", None, {})),
            (storage.put, "a bytearray body", ("a", bytearray(b"x"), {})),
            (storage.put, "a list body", ("a", [1, 2], {})),
            (storage.put, "the metadata None", ("a", b"x", None)),
            (storage.put, "metadata as pairs", ("a", b"x", [("n", "1")])),
            (storage.put, "an int value", ("a", b"x", {"n": 1})),
            (storage.put, "the value None", ("a", b"x", {"n": None})),
            (storage.put, "a bytes value", ("a", b"x", {"n": b"1"})),
            (storage.put, "a bytes name", ("a", b"x", {b"n": "1"})),
            (storage.put_if_version, "an int key", (1, b"x", {}, None)),
            (storage.put_if_version, "a str body", ("a", "x", {}, version)),
            (storage.put_if_version, "an int value", ("a", b"x", {"n": 1}, version)),
            (storage.put_if_version, "an int version", ("a", b"x", {}, 1)),
            (storage.put_if_version, "the version False", ("a", b"x", {}, False)),
            (storage.put_if_version, "a bytes version", ("a", b"x", {}, version.encode())),
            (storage.delete_if_version, "a bytes key", (b"a", version)),
            (storage.delete_if_version, "the version None", ("a", None)),
            (storage.delete_if_version, "an int version", ("a", 1)),
            (storage.list_page, "the prefix None", (None, None, 1)),
            (storage.list_page, "a bytes prefix", (b"", None, 1)),
            (storage.list_page, "an int start_after", ("", 1, 1)),
        ):
            step = f"{call.__name__} was called with {wrong}"
            bench.refused(TypeError, step, call, *arguments)
        found = storage.get("a")
        bench.require(
            found is not None and (found.data, dict(found.metadata)) == (b"before", {"n": "1"}),
            "after calls with wrong types only, the object is not what it was before them",
        )


_NEIGHBOURS = (
    ("n/a", "n/A"),
    ("n/a", "N/a"),
    ("n/a", "n/a "),
    ("n/a", "n"),
    ("n/ab", "n/a"),
    ("n/a", "n/a.md"),
    ("n/a+b", "n/a b"),
    ("n/a b", "n/a%20b"),
    ("n/x%2Fy", "n/x/y"),
    ("n/x/y", "n/x%2fy"),
    ("caf\N{LATIN SMALL LETTER E WITH ACUTE}", "cafe\N{COMBINING ACUTE ACCENT}"),
    ("cafe\N{COMBINING ACUTE ACCENT}", "caf\N{LATIN SMALL LETTER E WITH ACUTE}"),
    ("cafe", "caf\N{LATIN SMALL LETTER E WITH ACUTE}"),
    ("e/\N{TOP HAT}", "e/\N{COLLISION SYMBOL}"),
    ("\N{ANGSTROM SIGN}", "\N{LATIN CAPITAL LETTER A WITH RING ABOVE}"),
)
"""A stored key and an absent one next to it."""

_KINDS = (
    ("ASCII punctuation", "!\"#$%&'()*+,-.:;<=>?@[]^_`{|}~"),
    ("a space", "a b"),
    ("Latin letters", "\u00e9\u0153\u00df"),
    ("combining marks", "e\u0301\u0323"),
    ("CJK", "\u4e2d\u6587"),
    ("emoji", "\N{TOP HAT}\N{GRINNING FACE}\N{ZERO WIDTH JOINER}"),
    ("right-to-left letters", "\u05e9\u05dc\u05d5\u05dd"),
    ("format characters", "\u200b\u202e\u2060"),
    ("a byte order mark", "\ufeff"),
    ("line and paragraph separators", "\u2028\u2029"),
    ("private use characters", "\ue000\U000f0000\U0010fffd"),
    ("unassigned characters", "\u0378\U000e0fff"),
    ("a replacement character", "\ufffd"),
    ("dots", "..."),
    ("a name that some systems reserve", "nul.txt"),
)


def _version(storage: TracedStorage, key: str) -> str:
    found = storage.get(key)
    return "" if found is None else found.version


def _difference(one: str, other: str) -> str:
    """Say in a few words how two keys differ."""
    if one.casefold() == other.casefold():
        return "letter case"
    if unicodedata.normalize("NFC", one) == unicodedata.normalize("NFC", other):
        return "Unicode normalisation"
    if one.strip() == other.strip():
        return "white space at an end"
    return f"characters: {one!a} and {other!a}"
