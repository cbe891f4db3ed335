"""Metadata and bodies: what was put comes back equal, and what cannot be kept is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given

from wenchang.storage import (
    InvalidStorageMetadataError,
)
from wenchang.storage.keys import MAX_METADATA_ENTRIES
from wenchang_conformance.areas.looking import metadata_is
from wenchang_conformance.exploring import Exploration, drawing
from wenchang_conformance.requirement import requirement
from wenchang_conformance.samples import (
    BAD_METADATA,
    BODIES,
    METADATA_VALUES,
    bodies,
    metadata_maps,
)

if TYPE_CHECKING:
    from wenchang_conformance.bench import Bench

__all__ = ["MetadataArea"]


class MetadataArea:
    """Cases about metadata and bodies."""

    @requirement("meta-exact")
    def test_each_kind_of_value_comes_back_equal(self, bench: Bench) -> None:
        """Store one value at a time, so that a failure names the value."""
        storage = bench.open()
        for name, value in METADATA_VALUES.items():
            storage.put("one", b"x", {name: value})
            metadata_is(
                bench, storage, "one", {name: value}, f"put with metadata {{{name!a}: {value!a}}}"
            )

    @requirement("meta-exact")
    def test_all_kinds_of_values_together_come_back_equal(self, bench: Bench) -> None:
        """Store them in one map, by both puts."""
        storage = bench.open()
        version = storage.put("all", b"x", METADATA_VALUES)
        metadata_is(bench, storage, "all", METADATA_VALUES, "put with all kinds of values")
        storage.put_if_version("all", b"x", METADATA_VALUES, version)
        metadata_is(
            bench, storage, "all", METADATA_VALUES, "put_if_version with all kinds of values"
        )

    @requirement("meta-exact")
    def test_a_put_replaces_the_whole_map(self, bench: Bench) -> None:
        """Replace a map by a smaller one and by none."""
        storage = bench.open()
        version = storage.put("a", b"x", {"kept": "1", "dropped": "2"})
        version = storage.put_if_version("a", b"y", {"kept": "3"}, version)
        metadata_is(bench, storage, "a", {"kept": "3"}, "a map of two was replaced by a map of one")
        storage.put_if_version("a", b"z", {}, version)
        metadata_is(bench, storage, "a", {}, "a map of one was replaced by an empty one")
        storage.put("a", b"z", {"again": "4"})
        storage.put("a", b"z", {})
        metadata_is(bench, storage, "a", {}, "put replaced a map by an empty one")

    @requirement("meta-exact")
    def test_the_most_entries_come_back_equal(self, bench: Bench) -> None:
        """Store a map of 64 entries."""
        storage = bench.open()
        full = {f"name-{number}": str(number) for number in range(MAX_METADATA_ENTRIES)}
        bench.accepted("put with 64 entries", storage.put, "a", b"x", full)
        metadata_is(bench, storage, "a", full, "put with 64 entries")

    @requirement("meta-exact", "data-exact")
    def test_any_valid_object_comes_back_equal(self, bench: Bench) -> None:
        """Store drawn bodies and maps."""
        storage = bench.open()

        exploration = Exploration(bench.trace)

        @drawing(bench.sizes.examples)
        @given(data=bodies(), metadata=metadata_maps())
        def check(data: bytes, metadata: dict[str, str]) -> None:
            exploration.begin()
            with exploration.step():
                storage.put("drawn", data, metadata)
                found = storage.get("drawn")
                bench.require(found is not None, "put returned, but get then found nothing")
                if found is not None:
                    with bench.about("data-exact"):
                        bench.equal(found.data, data, "put, then get: the body")
                    with bench.about("meta-exact"):
                        bench.equal(dict(found.metadata), metadata, "put, then get: the metadata")

        exploration.run(check)

    @requirement("meta-refused")
    def test_an_invalid_map_is_refused_by_both_puts(self, bench: Bench) -> None:
        """Give each invalid entry, beside a valid one."""
        storage = bench.open()
        version = storage.put("a", b"before", {"n": "1"})
        for what, name, value in BAD_METADATA:
            for call, arguments in (
                (storage.put, ("a", b"after", {"ok": "1", name: value})),
                (storage.put_if_version, ("a", b"after", {"ok": "1", name: value}, version)),
                (storage.put_if_version, ("new", b"after", {name: value}, None)),
            ):
                step = f"{call.__name__} was called with {what}: {{{name[:20]!a}: {value!a}}}"
                error = bench.refused(InvalidStorageMetadataError, step, call, *arguments)
                bench.equal(error.name, name, f"{step}: the attribute 'name' of the error")
        bench.holds(storage, "a", b"before", "after refused maps only")
        bench.holds(storage, "new", None, "after refused maps only")

    @requirement("meta-refused")
    def test_too_many_entries_are_refused(self, bench: Bench) -> None:
        """Give a map of 65 entries."""
        storage = bench.open()
        over = {f"name-{number}": "" for number in range(MAX_METADATA_ENTRIES + 1)}
        step = "a put was called with 65 entries"
        bench.refused(InvalidStorageMetadataError, step, storage.put, "a", b"x", over)
        bench.refused(
            InvalidStorageMetadataError, step, storage.put_if_version, "a", b"x", over, None
        )
        bench.holds(storage, "a", None, "after refused maps only")

    @requirement("data-exact")
    def test_each_kind_of_body_comes_back_equal(self, bench: Bench) -> None:
        """Store one body at a time, by both puts."""
        storage = bench.open()
        for what, data in BODIES:
            version = storage.put("body", data, {})
            bench.holds(storage, "body", data, f"put with {what}")
            storage.put_if_version("body", data, {"n": "1"}, version)
            bench.holds(storage, "body", data, f"put_if_version with {what}")

    @requirement("data-exact")
    def test_an_empty_body_is_an_object(self, bench: Bench) -> None:
        """Create an empty object; it exists, is listed and can be replaced."""
        storage = bench.open()
        version = storage.put_if_version("empty", b"", {}, None)
        bench.holds(storage, "empty", b"", "an object with an empty body was created")
        bench.conflict(
            "an object with an empty body exists and is created again",
            storage.put_if_version,
            "empty",
            b"x",
            {},
            None,
        )
        listed = [entry.key for entry in storage.list_page("empty", None, 5)]
        bench.equal(listed, ["empty"], "an object with an empty body is listed")
        storage.put_if_version("empty", b"full", {}, version)

    @requirement("copy-in")
    def test_changing_the_given_map_changes_nothing_stored(self, bench: Bench) -> None:
        """Change the caller's map after each put."""
        storage = bench.open()
        given = {"n": "before"}
        version = storage.put("a", b"x", given)
        given["n"] = "after"
        given["more"] = "1"
        metadata_is(
            bench, storage, "a", {"n": "before"}, "the map given to put was changed afterwards"
        )
        given = {"n": "second"}
        storage.put_if_version("a", b"x", given, version)
        given.clear()
        metadata_is(
            bench, storage, "a", {"n": "second"}, "the map given to put_if_version was cleared"
        )

    @requirement("copy-in")
    def test_changing_a_returned_map_changes_nothing_stored(self, bench: Bench) -> None:
        """Change, where they can be, the maps that get and list_page returned."""
        storage = bench.open()
        storage.put("a", b"x", {"n": "before"})
        found = storage.get("a")
        if found is not None and isinstance(found.metadata, dict):
            found.metadata["n"] = "changed"
        metadata_is(bench, storage, "a", {"n": "before"}, "the map that get returned was changed")
        (entry,) = storage.list_page("a", None, 1)
        if isinstance(entry.metadata, dict):
            entry.metadata["n"] = "changed"
        metadata_is(
            bench, storage, "a", {"n": "before"}, "the map that list_page returned was changed"
        )
