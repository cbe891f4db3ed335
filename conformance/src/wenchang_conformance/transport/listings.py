"""The index, listings, and the cap on files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from wenchang.core import FileEntry
from wenchang.errors import FileQuotaExceededError, InvalidArgumentError, NotFoundError
from wenchang.index import index_entry_bytes
from wenchang.paths import build_prefix, parse_path
from wenchang.scope import SYSTEM_AREA
from wenchang_conformance.transport.harness import HarnessFixtures

if TYPE_CHECKING:
    from wenchang_conformance.transport.harness import Harness

__all__ = ["ListingCases"]

_MOST_FILES = 20


class ListingCases(HarnessFixtures):
    """Cases about what is there."""

    # --- the index ---

    def test_the_index_spans_every_scope(self, harness: Harness) -> None:
        """Write into each scope and ask for all, and for one."""
        paths = {harness.path("a", scope=scope) for scope in harness.scopes}
        for path in sorted(paths):
            harness.write(path, "x")
        index = harness.index()
        _counted(harness, len(paths) + 1)
        shown = {entry.path for entry in index.entries}
        if not index.capped and not paths <= shown:
            harness.fail("get_memory_index", "leaves out a scope of the map")
        only = harness.scopes[-1]
        alone = harness.index({only: harness.scope_map[only]})
        if any(parse_path(entry.path).scope != only for entry in alone.entries):
            harness.fail("get_memory_index", "shows a scope that is not in the map")

    def test_the_index_puts_system_first_then_priority_then_the_newest(
        self, harness: Harness
    ) -> None:
        """Write in a mixed order and compare the order of the entries with the rule."""
        first, last = harness.scopes[0], harness.scopes[-1]
        for number, (scope, area) in enumerate(
            (
                (last, "a"),
                (first, SYSTEM_AREA),
                (first, "a"),
                (last, SYSTEM_AREA),
                (last, "b"),
                (first, "b"),
            )
        ):
            harness.write(harness.path(f"f{number}", area=area, scope=scope), "x")
        entries = harness.index().entries
        files = _all_files(harness)
        wanted = [entry.path for entry in _in_order(harness, files)]
        harness.same(
            "get_memory_index",
            "order of the entries",
            [entry.path for entry in entries],
            wanted[: len(entries)],
        )
        _counted(harness, len(files))

    def test_the_index_ends_at_its_budget_and_counts_the_rest(self, harness: Harness) -> None:
        """Write long descriptions until the index is full, and compute where it must end."""
        for number in range(_MOST_FILES):
            harness.write(
                harness.path(f"f{number:02}", area=f"area{number % 3}"), "x", description="d" * 200
            )
        index = harness.index()
        ordered = _in_order(harness, _all_files(harness))
        fitting, used = 0, 0
        for entry in ordered:
            used += index_entry_bytes(entry)
            if used > harness.index_max_bytes:
                break
            fitting += 1
        if fitting == len(ordered):
            pytest.skip(f"index_max_bytes holds {_MOST_FILES} files with room to spare")
        shown = [entry.path for entry in index.entries]
        harness.same(
            "get_memory_index",
            "entries up to the budget",
            shown,
            [e.path for e in ordered[:fitting]],
        )
        omitted: dict[str, int] = {}
        for entry in ordered[fitting:]:
            parts = parse_path(entry.path)
            prefix = build_prefix(parts.scope, parts.entity_id, parts.area)
            omitted[prefix] = omitted.get(prefix, 0) + 1
        rows = {row.prefix: row.omitted for row in index.capped}
        harness.same("get_memory_index", "capped rows", rows, omitted)

    def test_the_index_of_no_scope_is_empty(self, harness: Harness) -> None:
        """Ask for an empty map."""
        index = harness.index({})
        harness.same("get_memory_index", "entries", index.entries, ())
        harness.same("get_memory_index", "capped", index.capped, ())

    # --- listings ---

    def test_pages_follow_one_another_in_order(self, harness: Harness) -> None:
        """Walk an area of a page and two files; each file appears once, in storage order."""
        paths = [harness.path(f"f{number:04}") for number in range(harness.list_page_size + 2)]
        for path in reversed(paths):
            harness.write(path, "x")
        pages = harness.pages(harness.prefix())
        listed = [entry.path for page in pages for entry in page.entries]
        harness.same("list_prefix", "all paths", listed, paths)
        if any(len(page.entries) > harness.list_page_size for page in pages):
            harness.fail("list_prefix", "a page is larger than list_page_size")
        if not pages[-1].entries:
            harness.fail("list_prefix", "the last page is empty")
        again = harness.page(harness.prefix(), pages[0].next_cursor)
        harness.same(
            "list_prefix",
            "the second page, asked for again",
            [entry.path for entry in again.entries],
            [entry.path for entry in pages[1].entries],
        )

    def test_an_area_an_entity_and_a_scope_can_be_listed(self, harness: Harness) -> None:
        """Write into two areas and list on each level."""
        scope = harness.scopes[-1]
        one = harness.path("f", area="one", scope=scope)
        two = harness.path("f", area="two", scope=scope)
        harness.write(one, "x")
        harness.write(two, "x")
        for prefix, wanted in (
            (harness.prefix(area="one", scope=scope), [one]),
            (harness.prefix(area=None, scope=scope), [one, two]),
            (build_prefix(scope), [one, two]),
        ):
            listed = [entry.path for page in harness.pages(prefix) for entry in page.entries]
            harness.same("list_prefix", f"paths on level {prefix.count('/')}", listed, wanted)

    def test_what_is_no_prefix_is_refused(self, harness: Harness) -> None:
        """List texts that are no prefix."""
        for prefix in ("", "/", "no-slash-at-the-end", "a//", "a/b/c/d/", "../"):
            error = harness.refused(
                NotFoundError, f"list_prefix({prefix!r})", harness.client.list_prefix, prefix
            )
            harness.same("list_prefix", "reason", error.reason, "invalid_path")

    def test_what_is_no_cursor_of_this_prefix_is_refused(self, harness: Harness) -> None:
        """Use made-up cursors, and the cursor of another area."""
        for number in range(harness.list_page_size + 1):
            harness.write(harness.path(f"f{number:04}", area="one"), "x")
        cursor = harness.page(harness.prefix(area="one")).next_cursor
        if cursor is None:
            harness.fail("list_prefix", "a page that is not the last has no cursor")
        for label, area, given in (
            ("made up", "one", "no cursor!"),
            ("empty", "one", ""),
            ("of another area", "two", cursor),
        ):
            error = harness.refused(
                InvalidArgumentError,
                f"list_prefix with a cursor that is {label}",
                harness.client.list_prefix,
                harness.prefix(area=area),
                given,
            )
            harness.same("list_prefix", "argument", error.argument, "cursor")

    # --- the cap ---

    def test_a_create_at_the_cap_is_refused(self, harness: Harness) -> None:
        """Fill an entity to its cap; creates fail, everything else works."""
        cap = harness.max_files_per_entity
        if cap is None:
            pytest.skip("not applicable: the fixture max_files_per_entity is None")
        scope = harness.scopes[-1]
        path = harness.path("f0000", scope=scope)
        created = harness.write(path, "x\n")
        for number in range(1, cap):
            harness.write(harness.path(f"f{number:04}", scope=scope), "x")
        over = harness.path("over", scope=scope)
        error = harness.refused(FileQuotaExceededError, "write_file", harness.write, over, "x")
        harness.same("write_file", "limit", error.limit, cap)
        harness.absent(over, "after the refused create")
        harness.write(harness.path("guide", area=SYSTEM_AREA, scope=scope), "x")
        appended = harness.append(path, "- [stated] y", created.version)
        harness.client.delete_file(path, appended.version)
        harness.write(over, "x")


def _all_files(harness: Harness) -> list[FileEntry]:
    """Return every file of every scope, from listings."""
    return [
        entry
        for scope in harness.scopes
        for page in harness.pages(harness.prefix(area=None, scope=scope))
        for entry in page.entries
    ]


def _in_order(harness: Harness, files: list[FileEntry]) -> list[FileEntry]:
    """Sort files as the index does: system, then by priority, each tier newest first, then by path."""
    tiers = {scope: number for number, scope in enumerate(harness.scope_priority, start=1)}

    def position(entry: FileEntry) -> tuple[int, float, str]:
        parts = parse_path(entry.path)
        last = len(tiers) + 1
        tier = 0 if parts.area == SYSTEM_AREA else tiers.get(parts.scope, last)
        return tier, -entry.metadata.last_updated.timestamp(), entry.path

    return sorted(files, key=position)


def _counted(harness: Harness, wanted: int) -> None:
    """Require that shown and omitted files together are all files."""
    index = harness.index()
    total = len(index.entries) + sum(row.omitted for row in index.capped)
    harness.same("get_memory_index", "shown plus omitted files", total, wanted)
