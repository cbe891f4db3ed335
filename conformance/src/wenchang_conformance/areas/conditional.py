"""`put_if_version`: create only if absent, replace only at the version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wenchang.errors import WenchangError
from wenchang_conformance.areas.looking import state_of
from wenchang_conformance.requirement import requirement

if TYPE_CHECKING:
    from wenchang_conformance.bench import Bench

__all__ = ["ConditionalArea"]


class ConditionalArea:
    """Cases about conditional writes."""

    @requirement("cas-create")
    def test_a_create_succeeds_where_the_key_is_absent(self, bench: Bench) -> None:
        """Create, read, delete, create again."""
        storage = bench.open()
        version = bench.accepted(
            "put_if_version(expected=None) on a key that never existed",
            storage.put_if_version,
            "a",
            b"x",
            {"n": "1"},
            None,
        )
        bench.holds(storage, "a", b"x", "put_if_version(expected=None) returned")
        storage.delete_if_version("a", version)
        bench.accepted(
            "put_if_version(expected=None) on a deleted key",
            storage.put_if_version,
            "a",
            b"y",
            {},
            None,
        )
        bench.holds(storage, "a", b"y", "put_if_version(expected=None) returned")

    @requirement("cas-create")
    def test_a_create_on_an_existing_key_conflicts_and_changes_nothing(self, bench: Bench) -> None:
        """Create over objects of several sizes, with bodies of several sizes, from both handles."""
        first, second = bench.open_two()
        for old in (b"", b"x", b"o" * 16_384):
            for new in (b"", b"y", b"n" * 16_384, b"n" * 1_000_000):
                first.put("a", old, {"n": "old"})
                before = state_of(first, "a")
                for storage in (first, second):
                    step = f"a create with {len(new)} bytes over an object of {len(old)} bytes"
                    bench.conflict(step, storage.put_if_version, "a", new, {"n": "new"}, None)
                bench.equal(state_of(first, "a"), before, f"the object after {step} was refused")

    @requirement("cas-create")
    def test_a_create_is_not_disturbed_by_neighbours(self, bench: Bench) -> None:
        """Create keys whose names contain one another."""
        storage = bench.open()
        for key in ("a/b/c", "a/b", "a", "a/b/c/d", "a/b/cd"):
            bench.accepted(
                f"{key!r} is created beside others whose names begin alike",
                storage.put_if_version,
                key,
                key.encode(),
                {},
                None,
            )
        for key in ("a/b/c", "a/b", "a", "a/b/c/d", "a/b/cd"):
            bench.holds(storage, key, key.encode(), "keys within one another were created")

    @requirement("cas-replace")
    def test_a_matching_version_replaces(self, bench: Bench) -> None:
        """Replace in a chain over two handles."""
        handles = bench.open_two()
        version = handles[0].put_if_version("a", b"0", {"n": "0"}, None)
        for number in range(1, 6):
            storage = handles[number % 2]
            step = f"replace number {number} with the current version, by turns from two handles"
            body, metadata = b"%d" % number, {"n": str(number)}
            version = bench.accepted(step, storage.put_if_version, "a", body, metadata, version)
            bench.equal(
                state_of(storage, "a"), (body, metadata, version), f"the object after {step}"
            )

    @requirement("cas-replace")
    def test_a_stale_version_conflicts_and_changes_nothing(self, bench: Bench) -> None:
        """Replace with the version before the last, from both handles."""
        first, second = bench.open_two()
        stale = first.put("a", b"0", {"n": "0"})
        first.put_if_version("a", b"1", {"n": "1"}, stale)
        before = state_of(first, "a")
        for storage in (first, second):
            bench.conflict(
                "put_if_version with the version before the last",
                storage.put_if_version,
                "a",
                b"2",
                {"n": "2"},
                stale,
            )
            bench.equal(state_of(storage, "a"), before, "the object after the refused replace")

    @requirement("cas-replace")
    def test_a_version_of_the_other_handle_is_current_for_both(self, bench: Bench) -> None:
        """Write through one handle behind the back of the other, then use the other's version."""
        first, second = bench.open_two()
        stale = first.put("a", b"0", {})
        first.get("a")
        first.list_page("", None, 10)
        second.put("a", b"1", {})
        bench.conflict(
            "the second handle replaced the object; put_if_version of the first handle with the "
            "version it knows",
            first.put_if_version,
            "a",
            b"2",
            {},
            stale,
        )
        bench.holds(first, "a", b"1", "after the refused replace")

    @requirement("cas-replace")
    def test_a_version_on_an_absent_key_conflicts_and_creates_nothing(self, bench: Bench) -> None:
        """Replace a deleted object with its last version, and a key that never existed."""
        storage = bench.open()
        version = storage.put("a", b"x", {})
        other = storage.put("other", b"x", {})
        storage.delete_if_version("a", version)
        bench.conflict(
            "put_if_version on a deleted key with its last version",
            storage.put_if_version,
            "a",
            b"y",
            {},
            version,
        )
        bench.conflict(
            "put_if_version with a version on a key that never existed",
            storage.put_if_version,
            "never",
            b"y",
            {},
            other,
        )
        for key in ("a", "never"):
            bench.holds(storage, key, None, "after the refused replace of an absent key")

    @requirement("cas-replace")
    def test_a_conflict_is_an_error_of_the_storage_and_names_its_key(self, bench: Bench) -> None:
        """Look at the error of a conflict."""
        storage = bench.open()
        version = storage.put("a/secret-name", b"x", {})
        storage.put("a/secret-name", b"y", {})
        error = bench.conflict(
            "put_if_version with a stale version",
            storage.put_if_version,
            "a/secret-name",
            b"z",
            {},
            version,
        )
        bench.equal(error.key, "a/secret-name", "the attribute 'key' of PreconditionFailedError")
        bench.require(
            not isinstance(error, WenchangError),
            "PreconditionFailedError of a backend is a WenchangError, an error for agents",
        )
