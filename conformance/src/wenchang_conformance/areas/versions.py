"""Versions: opaque, the same everywhere, never twice, and never parsed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wenchang_conformance.requirement import requirement
from wenchang_conformance.samples import FOREIGN_VERSIONS

if TYPE_CHECKING:
    from wenchang_conformance.bench import Bench

__all__ = ["VersionsArea"]


class VersionsArea:
    """Cases about versions."""

    @requirement("version-opaque")
    def test_a_version_is_a_short_text(self, bench: Bench) -> None:
        """Look at the versions of each method."""
        storage = bench.open()
        put = storage.put("a", b"x", {})
        created = storage.put_if_version("b", b"x", {}, None)
        replaced = storage.put_if_version("b", b"y", {}, created)
        found = storage.get("a")
        listed = storage.list_page("a", None, 1)
        for what, version in (
            ("put returned", put),
            ("put_if_version(expected=None) returned", created),
            ("put_if_version returned", replaced),
            ("get reported", found.version if found is not None else None),
            ("list_page reported", listed[0].version if listed else None),
        ):
            bench.require(
                isinstance(version, str) and 1 <= len(version) <= 256,
                f"{what} {str(version)[:60]!a} ({type(version).__name__}) as the version; "
                "it is a non-empty str of at most 256 characters",
            )

    @requirement("version-same")
    def test_all_methods_report_the_same_version(self, bench: Bench) -> None:
        """Compare the version of a put with those of get and list_page, over two handles."""
        writer, reader = bench.open_two()
        version = writer.put("a", b"x", {"n": "1"})
        for step in ("put", "put_if_version", "put_if_version of a new object"):
            if step == "put_if_version":
                version = writer.put_if_version("a", b"y", {"n": "2"}, version)
            elif step != "put":
                writer.delete_if_version("a", version)
                version = writer.put_if_version("a", b"z", {}, None)
            for name, storage in (("the same", writer), ("a second", reader)):
                found = storage.get("a")
                listed = {entry.key: entry.version for entry in storage.list_page("a", None, 5)}
                bench.equal(
                    found.version if found is not None else None,
                    version,
                    f"the version from get of {name} handle after {step}",
                )
                bench.equal(
                    listed.get("a"),
                    version,
                    f"the version from list_page of {name} handle after {step}",
                )

    @requirement("version-same")
    def test_a_version_from_any_method_can_be_handed_back(self, bench: Bench) -> None:
        """Use the versions of put, get and list_page as conditions."""
        storage = bench.open()
        version = storage.put("a", b"0", {})
        version = bench.accepted(
            "the version from put is handed back", storage.put_if_version, "a", b"1", {}, version
        )
        found = storage.get("a")
        if found is not None:
            bench.accepted(
                "the version from get is handed back",
                storage.put_if_version,
                "a",
                b"2",
                {},
                found.version,
            )
        (entry,) = storage.list_page("a", None, 1)
        bench.accepted(
            "the version from list_page is handed back",
            storage.delete_if_version,
            "a",
            entry.version,
        )

    @requirement("version-fresh")
    def test_no_put_repeats_a_version(self, bench: Bench) -> None:
        """Write identical content, changed metadata, changed content, and after a delete."""
        storage = bench.open()
        seen: dict[str, str] = {}

        def fresh(version: str, step: str) -> str:
            bench.require(
                version not in seen,
                f"{step} returned the version {version[:60]!a}, "
                f"which this key already had after: {seen.get(version)}",
            )
            seen[version] = step
            return version

        version = fresh(storage.put_if_version("a", b"same", {"n": "1"}, None), "the create")
        version = fresh(storage.put("a", b"same", {"n": "1"}), "a put of identical content")
        version = fresh(
            storage.put_if_version("a", b"same", {"n": "1"}, version),
            "a put_if_version of identical content",
        )
        version = fresh(
            storage.put_if_version("a", b"same", {"n": "2"}, version), "a change of metadata alone"
        )
        version = fresh(storage.put("a", b"size", {"n": "2"}), "a change of the body at equal size")
        version = fresh(
            storage.put_if_version("a", b"same", {"n": "1"}, version),
            "a return to the first content",
        )
        for number in range(3):
            storage.delete_if_version("a", version)
            version = fresh(
                storage.put_if_version("a", b"same", {"n": "1"}, None),
                f"re-creation number {number + 1} after a delete",
            )
        for number in range(30):
            version = fresh(storage.put("a", b"same", {}), f"put number {number + 1} in a row")

    @requirement("version-fresh")
    def test_an_old_version_never_matches_again(self, bench: Bench) -> None:
        """Come back to equal content, and re-create after a delete; the old version is stale."""
        storage = bench.open()
        first = storage.put("a", b"A", {})
        storage.put("a", b"B", {})
        storage.put("a", b"A", {})
        bench.conflict(
            "body A, then B, then A again; put_if_version with the version of the first A",
            storage.put_if_version,
            "a",
            b"C",
            {},
            first,
        )
        version = storage.put("a", b"A", {})
        storage.delete_if_version("a", version)
        storage.put_if_version("a", b"A", {}, None)
        for call, arguments in (
            (storage.put_if_version, ("a", b"C", {}, version)),
            (storage.delete_if_version, ("a", version)),
        ):
            bench.conflict(
                f"created, deleted and re-created with equal content; {call.__name__} with the "
                "version from before the delete",
                call,
                *arguments,
            )

    @requirement("version-fresh")
    def test_two_handles_give_different_versions(self, bench: Bench) -> None:
        """Write one key by turns from two handles."""
        handles = bench.open_two()
        versions = [handles[number % 2].put("a", b"same", {}) for number in range(10)]
        bench.equal(
            len(set(versions)), 10, "10 puts of one key by turns from two handles: versions"
        )

    @requirement("version-foreign")
    def test_a_version_that_was_never_issued_is_a_mismatch(self, bench: Bench) -> None:
        """Hand back texts of every look on an existing and on an absent key."""
        storage = bench.open()
        storage.put("a", b"before", {})
        for what, foreign in FOREIGN_VERSIONS:
            for key, state in (("a", "an existing"), ("absent", "an absent")):
                bench.conflict(
                    f"put_if_version on {state} key with {what} as the version",
                    storage.put_if_version,
                    key,
                    b"after",
                    {},
                    foreign,
                )
                bench.conflict(
                    f"delete_if_version on {state} key with {what} as the version",
                    storage.delete_if_version,
                    key,
                    foreign,
                )
        bench.holds(storage, "a", b"before", "after calls with foreign versions only")
        bench.holds(storage, "absent", None, "after calls with foreign versions only")

    @requirement("version-foreign")
    def test_a_version_with_something_around_it_is_a_mismatch(self, bench: Bench) -> None:
        """Change the valid version in ways that careless parsing forgives."""
        storage = bench.open()
        version = storage.put("a", b"before", {})
        for what, near in (
            ("a line break after it", version + "\n"),
            ("a space after it", version + " "),
            ("a space before it", " " + version),
            ("a zero before it", "0" + version),
            ("a plus sign before it", "+" + version),
            ("quotes around it", f'"{version}"'),
            ("something after it", version + "0"),
            ("NUL after it", version + "\x00"),
            ("itself twice", f"{version}, {version}"),
        ):
            bench.conflict(
                f"put_if_version with the valid version and {what}",
                storage.put_if_version,
                "a",
                b"after",
                {},
                near,
            )
            bench.conflict(
                f"delete_if_version with the valid version and {what}",
                storage.delete_if_version,
                "a",
                near,
            )
        bench.holds(storage, "a", b"before", "after calls with altered versions only")

    @requirement("version-foreign")
    def test_the_version_of_another_key_is_a_mismatch(self, bench: Bench) -> None:
        """Write two keys with equal content and exchange their versions."""
        storage = bench.open()
        one = storage.put("one", b"same", {})
        other = storage.put("other", b"same", {})
        bench.conflict(
            "put_if_version with the version of another key with equal content",
            storage.put_if_version,
            "one",
            b"after",
            {},
            other,
        )
        bench.conflict(
            "delete_if_version with the version of another key with equal content",
            storage.delete_if_version,
            "other",
            one,
        )
