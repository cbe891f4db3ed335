"""The memory index: order, cost and budget."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wenchang.core import INDEX_SYSTEM_AREA, CappedPrefix, FileEntry, MemoryIndex, MemoryStore
from wenchang.core import index_entry_bytes as public_index_entry_bytes
from wenchang.index import cap_entries, index_entry_bytes, order_entries
from wenchang.metadata import EPOCH, FileMetadata
from wenchang.paths import build_prefix, parse_path
from wenchang.records import render_entry
from wenchang.scope import SYSTEM_AREA

MakeStore = Callable[..., MemoryStore]


def entry(path: str, age: int = 0, description: str = "", *aliases: str) -> FileEntry:
    """Make an entry whose time lies `age` microseconds in the past."""
    moment = datetime(2026, 1, 1, tzinfo=UTC) - timedelta(microseconds=age)
    return FileEntry(path, FileMetadata(description, aliases, frozenset({"t"}), moment), "v1")


def rendered_bytes(index: MemoryIndex) -> int:
    """Return the bytes of the compact JSON of an index's entries."""
    entries = [render_entry(found) for found in index.entries]
    return len(json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode())


def test_the_two_names_of_the_system_area_are_the_same_word() -> None:
    assert INDEX_SYSTEM_AREA == SYSTEM_AREA == "system"


def test_mem_037_the_index_holds_entries_without_content_and_capped_rows(
    store: MemoryStore, create: Callable[..., Any]
) -> None:
    file = create("user/u-1/prefs/tea.md", "content", "alias")
    index = store.get_memory_index({"user": "u-1"})
    assert index == MemoryIndex((FileEntry(file.path, file.metadata, file.version),), ())


def test_mem_037_no_scope_at_all_is_an_empty_index_without_a_request(
    store: MemoryStore, storage: Any
) -> None:
    assert store.get_memory_index({}) == MemoryIndex((), ())
    assert storage.taken() == []


def test_the_index_holds_the_given_entities_and_no_neighbour(
    store: MemoryStore, create: Callable[..., Any]
) -> None:
    mine = create("user/acme/a/x.md")
    create("user/acme-corp/a/x.md")
    create("team/acme/a/x.md")
    assert [found.path for found in store.get_memory_index({"user": "acme"}).entries] == [mine.path]


def test_mem_038_system_areas_lead_then_scopes_by_priority_then_the_rest_newest_first(
    store: MemoryStore,
) -> None:
    expected = [
        entry("team/t/system/b.md", 1),
        entry("user/u/system/a.md", 2),
        entry("zoo/z/system/c.md", 3),
        entry("user/u/x/new.md", 10),
        entry("user/u/y/old.md", 900),
        entry("team/t/x/newest.md", 0),
        entry("alpha/a/x/1.md", 5),
        entry("zoo/z/x/2.md", 6),
        entry("alpha/a/x/3.md", 7),
    ]
    assert order_entries(reversed(expected), ("user", "team")) == expected
    assert store.scope_priority == ()


def test_mem_038_ties_are_in_path_order() -> None:
    expected = [entry(f"user/u/{area}/x.md") for area in ("a", "a-", "b")]
    assert order_entries(reversed(expected)) == sorted(expected, key=lambda found: found.path)


def test_mem_038_only_the_area_makes_the_system_tier() -> None:
    expected = [
        entry("user/u/system/a.md", 9),
        entry("system/system/a/system.md", 1),
        entry("user/system/systems/system.md", 2),
    ]
    assert order_entries(reversed(expected)) == expected


def test_mem_014_the_system_area_leads_whatever_the_priority(
    make_store: MakeStore, create: Callable[..., Any]
) -> None:
    system = create("team/t/system/a.md")
    own = create("user/u/prefs/a.md")
    for priority in ((), ("user",), ("user", "team"), ("team", "user")):
        index = make_store(scope_priority=priority).get_memory_index({"user": "u", "team": "t"})
        assert [found.path for found in index.entries] == [system.path, own.path]


def test_times_far_apart_and_one_microsecond_apart_are_told_apart() -> None:
    moments = [
        datetime.max.replace(tzinfo=UTC),
        datetime.max.replace(tzinfo=UTC) - timedelta(microseconds=1),
        EPOCH,
        datetime.min.replace(tzinfo=UTC),
    ]
    entries = [
        FileEntry(f"s/e/a/{9 - n}.md", FileMetadata("", (), frozenset(), moment), "v")
        for n, moment in enumerate(moments)
    ]
    assert order_entries(reversed(entries)) == entries


# --- cost and budget -----------------------------------------------------------------------------


def test_an_entry_costs_its_compact_json() -> None:
    found = entry("user/u-1/prefs/tea.md", 0, "é", "a", "文")
    text = (
        '{"scope":"user","area":"prefs","name":"tea","version":"v1","description":"é",'
        '"aliases":["a","文"],"sources":["t"],"last_updated":"2026-01-01T00:00:00Z"}'
    )
    assert index_entry_bytes(found) == public_index_entry_bytes(found) == len(text.encode())


def test_the_entity_costs_nothing() -> None:
    assert index_entry_bytes(entry("user/u/a/x.md")) == index_entry_bytes(
        entry(f"user/{'u' * 200}/a/x.md")
    )


def test_mem_034_the_budget_is_inclusive() -> None:
    entries = [entry(f"user/u/a/{number}.md", number) for number in range(3)]
    whole = len("[,,]") + sum(map(index_entry_bytes, entries))
    assert cap_entries(entries, whole) == MemoryIndex(tuple(entries), ())
    assert cap_entries(entries, whole - 1) == MemoryIndex(
        tuple(entries[:2]), (CappedPrefix("user/u/a/", 1),)
    )


def test_mem_039_the_walk_ends_at_the_first_entry_that_does_not_fit() -> None:
    small, large = entry("user/u/a/1.md"), entry("user/u/b/2.md", 1, "x" * 100)
    after = entry("user/u/c/3.md", 2)
    budget = 2 + index_entry_bytes(small) + 1 + index_entry_bytes(after)
    assert budget >= 2 + index_entry_bytes(large)
    index = cap_entries([small, large, after], budget)
    assert index.entries == (small,)
    assert index.capped == (CappedPrefix("user/u/b/", 1), CappedPrefix("user/u/c/", 1))


def test_mem_039_an_entry_larger_than_the_whole_budget_is_passed_over() -> None:
    huge, small = entry("user/u/a/1.md", 0, "x" * 500), entry("user/u/a/2.md", 1)
    index = cap_entries([huge, small], 2 + index_entry_bytes(small))
    assert index.entries == (small,)
    assert index.capped == (CappedPrefix("user/u/a/", 1),)


def test_an_entry_that_just_fills_the_whole_budget_ends_the_walk() -> None:
    first, filling = entry("user/u/a/1.md"), entry("user/u/b/2.md", 1, "x" * 300)
    last = entry("user/u/c/3.md", 2)
    index = cap_entries([first, filling, last], 2 + index_entry_bytes(filling))
    assert index.entries == (first,)


def test_a_budget_too_small_for_anything_counts_everything() -> None:
    index = cap_entries([entry("user/u/a/1.md")], 1)
    assert index == MemoryIndex((), (CappedPrefix("user/u/a/", 1),))


descriptions = st.text(st.characters(exclude_categories=["Cs"]), max_size=120)
entries_of_any_kind = st.lists(
    st.tuples(
        st.sampled_from(["user/u", "team/t"]),
        st.sampled_from(["a", "b", "system"]),
        st.integers(0, 30),
        st.integers(0, 5),
        descriptions,
    ),
    max_size=25,
    unique_by=lambda drawn: drawn[:3],
)


@settings(deadline=None)
@given(entries_of_any_kind, st.integers(1, 3000))
def test_mem_039_capping_agrees_with_a_naive_model(
    drawn: list[tuple[str, str, int, int, str]], budget: int
) -> None:
    ordered = order_entries(
        entry(f"{entity}/{area}/{name}.md", age, description)
        for entity, area, name, age, description in drawn
    )
    index = cap_entries(ordered, budget)

    # The naive model: render the list anew for each candidate and look at its size.
    kept: list[FileEntry] = []
    for found in ordered:
        if rendered_bytes(MemoryIndex((found,), ())) > budget:
            continue
        if rendered_bytes(MemoryIndex((*kept, found), ())) > budget:
            break
        kept.append(found)
    assert list(index.entries) == kept
    omitted = Counter(
        build_prefix(*(parts.scope, parts.entity_id, parts.area))
        for parts in (parse_path(found.path) for found in ordered if found not in kept)
    )
    assert {row.prefix: row.omitted for row in index.capped} == omitted
    assert [row.prefix for row in index.capped] == sorted(omitted)
    assert not kept or rendered_bytes(index) <= budget


def test_mem_039_entries_and_omitted_files_are_all_files_and_mem_040_listing_yields_the_omitted(
    make_store: MakeStore, create: Callable[..., Any]
) -> None:
    paths = {f"user/u/{area}/{n}.md" for area in ("a", "b", "c") for n in range(5)}
    for path in sorted(paths):
        create(path)
    store = make_store(index_max_bytes=900, list_page_size=2)
    index = store.get_memory_index({"user": "u"})
    assert rendered_bytes(index) <= 900
    shown = {found.path for found in index.entries}
    assert 0 < len(shown) < len(paths)
    assert len(shown) + sum(row.omitted for row in index.capped) == len(paths)
    for row in index.capped:
        listed: set[str] = set()
        cursor: str | None = None
        while True:
            page = store.list_prefix(row.prefix, cursor)
            listed |= {found.path for found in page.entries}
            cursor = page.next_cursor
            if cursor is None:
                break
        assert len(listed - shown) == row.omitted
        shown |= listed
    assert shown == paths


def test_what_follows_the_last_key_of_a_page_most_closely_is_not_lost(
    store: MemoryStore, storage: Any
) -> None:
    paths = [f"user/u/a/{number:04}.md" for number in range(1000)]
    paths.append("user/u/a/0999.md.md")  # what follows it begins with the least of characters
    for path in paths:
        storage.inner.put(path, b"", {})
    index = store.get_memory_index({"user": "u"})
    assert len(index.entries) + sum(row.omitted for row in index.capped) == len(paths)
    assert [item.key for item in store.export("user", "u")] == sorted(paths)


def test_an_unreadable_file_does_not_take_the_index_from_the_others(
    store: MemoryStore, storage: Any, create: Callable[..., Any]
) -> None:
    good = create("user/u/a/good.md")
    storage.inner.put("user/u/a/bad.md", b"\xff", {"aliases": "nonsense"})
    storage.inner.put("user/u/a/hand.md", b"by hand", {})
    storage.inner.put("user/u/a/not-a-file", b"", {"aliases": "nonsense"})
    index = store.get_memory_index({"user": "u"})
    assert [found.path for found in index.entries] == [
        good.path,
        "user/u/a/bad.md",
        "user/u/a/hand.md",
    ]
    assert "cannot be read" in index.entries[1].metadata.description


@pytest.mark.parametrize(
    "scope_map", [{"": "u"}, {"user": ""}, {"a/b": "u"}, {"user": "../x"}, {"user": "x" * 201}]
)
def test_a_scope_map_with_what_is_no_segment_is_a_value_error_without_a_request(
    store: MemoryStore, storage: Any, scope_map: dict[str, str]
) -> None:
    with pytest.raises(ValueError):
        store.get_memory_index(scope_map)
    assert storage.taken() == []


@pytest.mark.parametrize(("prefix", "omitted"), [("user/u", 1), ("user/u/a/", 0), ("a/", True)])
def test_a_capped_row_that_says_nothing_cannot_be_made(prefix: str, omitted: int) -> None:
    with pytest.raises(ValueError):
        CappedPrefix(prefix, omitted)


def test_an_index_names_each_file_and_each_area_once() -> None:
    found, row = entry("user/u/a/x.md"), CappedPrefix("user/u/a/", 1)
    with pytest.raises(ValueError):
        MemoryIndex((found, found), ())
    with pytest.raises(ValueError):
        MemoryIndex((), (row, row))
