"""`delete_if_version`: at the version, or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wenchang_conformance.areas.looking import state_of
from wenchang_conformance.requirement import requirement

if TYPE_CHECKING:
    from wenchang_conformance.bench import Bench

__all__ = ["DeleteArea"]


class DeleteArea:
    """Cases about conditional deletes."""

    @requirement("delete-match")
    def test_a_matching_version_deletes_exactly_its_key(self, bench: Bench) -> None:
        """Delete one of several keys whose names begin alike."""
        storage = bench.open()
        names = ("n", "n/a", "n/a/b", "n/ab", "na")
        versions = {name: storage.put(name, name.encode(), {}) for name in names}
        bench.accepted(
            "delete_if_version with the current version",
            storage.delete_if_version,
            "n/a",
            versions["n/a"],
        )
        for name in names:
            expected = None if name == "n/a" else name.encode()
            bench.holds(storage, name, expected, f"{', '.join(names)} were put, 'n/a' was deleted")
        listed = {entry.key for entry in storage.list_page("", None, 10)}
        bench.equal(listed, set(names) - {"n/a"}, "the keys of a listing after 'n/a' was deleted")

    @requirement("delete-match")
    def test_a_stale_version_conflicts_and_deletes_nothing(self, bench: Bench) -> None:
        """Delete with the version before the last, from both handles."""
        first, second = bench.open_two()
        stale = first.put("a", b"0", {"n": "0"})
        first.put("a", b"1", {"n": "1"})
        before = state_of(first, "a")
        for storage in (first, second):
            step = "delete_if_version with the version before the last"
            bench.conflict(step, storage.delete_if_version, "a", stale)
            bench.equal(state_of(storage, "a"), before, f"the object after the refused {step}")

    @requirement("delete-match")
    def test_deleting_an_absent_key_conflicts(self, bench: Bench) -> None:
        """Delete a key that never existed, and a deleted one again."""
        storage = bench.open()
        other = storage.put("other", b"x", {})
        bench.conflict(
            "delete_if_version on a key that never existed",
            storage.delete_if_version,
            "never",
            other,
        )
        version = storage.put("a", b"x", {})
        storage.delete_if_version("a", version)
        bench.conflict(
            "delete_if_version a second time with the same version",
            storage.delete_if_version,
            "a",
            version,
        )
        bench.holds(storage, "other", b"x", "after refused deletes of other keys")

    @requirement("delete-match")
    def test_a_version_from_before_a_delete_does_not_delete_the_next_object(
        self, bench: Bench
    ) -> None:
        """Delete, re-create, delete with the old version."""
        storage = bench.open()
        old = storage.put("a", b"x", {})
        storage.delete_if_version("a", old)
        storage.put("a", b"another body", {})
        bench.conflict(
            "created, deleted, created again; delete_if_version with the first version",
            storage.delete_if_version,
            "a",
            old,
        )
        bench.holds(storage, "a", b"another body", "after the refused delete")
