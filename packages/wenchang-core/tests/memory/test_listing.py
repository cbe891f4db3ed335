"""Pages of a listing and their cursors."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wenchang._cursors import MAX_CURSOR_CHARS, decode_cursor, encode_cursor
from wenchang.core import MemoryStore
from wenchang.errors import InvalidArgumentError, NotFoundError
from wenchang.metadata import EPOCH
from wenchang.paths import build_path, is_valid_path
from wenchang.storage.memory import InMemoryStorage

MakeStore = Callable[..., MemoryStore]

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


def walk(store: MemoryStore, prefix: str) -> list[str]:
    """Return every path of a listing, page by page."""
    paths: list[str] = []
    cursor: str | None = None
    for _ in range(1000):
        page = store.list_prefix(prefix, cursor)
        paths += [entry.path for entry in page.entries]
        assert len(page.entries) <= store.list_page_size
        cursor = page.next_cursor
        if cursor is None:
            return paths
    raise AssertionError("the listing does not end")


def fill(storage: Any, *paths: str) -> None:
    """Store files as if by hand, without counting."""
    for path in paths:
        storage.inner.put(path, b"x", {})


def test_mem_044_reading_nothing_is_file_absent(store: MemoryStore) -> None:
    with pytest.raises(NotFoundError) as caught:
        store.read_file("user/u-1/prefs/tea.md")
    assert caught.value.reason == "file_absent"


def test_mem_012_the_system_area_is_read_and_listed_like_any_other(
    store: MemoryStore, create: Callable[..., Any]
) -> None:
    file = create("user/u-1/system/rules.md", "x")
    assert store.read_file(file.path) == file
    assert walk(store, "user/u-1/") == walk(store, "user/u-1/system/") == [file.path]


@pytest.mark.parametrize(
    ("prefix", "names"),
    [
        ("user/", ["u-1/a/x", "u-1/b/y", "u-2/a/z"]),
        ("user/u-1/", ["u-1/a/x", "u-1/b/y"]),
        ("user/u-1/b/", ["u-1/b/y"]),
        ("user/u-/", []),
    ],
)
def test_mem_045_a_prefix_of_any_level_lists_what_lies_below_it(
    store: MemoryStore, storage: Any, prefix: str, names: list[str]
) -> None:
    fill(storage, "user/u-1/a/x.md", "user/u-1/b/y.md", "user/u-2/a/z.md", "team/u-1/a/x.md")
    assert walk(store, prefix) == [f"user/{name}.md" for name in names]


def test_mem_045_entries_carry_metadata_and_version_and_no_content(
    store: MemoryStore, create: Callable[..., Any]
) -> None:
    file = create("user/u-1/a/x.md", "content", "alias")
    (entry,) = store.list_prefix("user/u-1/").entries
    assert (entry.path, entry.metadata, entry.version) == (file.path, file.metadata, file.version)
    assert not hasattr(entry, "content")


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 6])
def test_mem_045_pages_are_full_and_the_last_one_has_no_cursor(
    make_store: MakeStore, storage: Any, count: int
) -> None:
    fill(storage, *(f"user/u-1/a/{number}.md" for number in range(count)))
    store = make_store(list_page_size=2)
    sizes: list[int] = []
    cursor: str | None = None
    while True:
        page = store.list_prefix("user/u-1/a/", cursor)
        sizes.append(len(page.entries))
        cursor = page.next_cursor
        if cursor is None:
            break
    assert sizes == [2] * ((count - 1) // 2) + [count - 2 * ((count - 1) // 2)] if count else [0]


def test_mem_045_keys_that_are_no_files_are_passed_over_and_hide_nothing(
    make_store: MakeStore, storage: Any
) -> None:
    fill(
        storage,
        *("user/u-1/a", "user/u-1/a/b", "user/u-1/a/b.md", "user/u-1/a/c/d.md", "user/u-1/a/..md"),
        *("user/u-1/a/z.md", "user/u-1/a/zz", "user/u-1/a.md"),
    )
    store = make_store(list_page_size=1)
    assert walk(store, "user/u-1/") == ["user/u-1/a/b.md", "user/u-1/a/z.md"]


def test_an_unreadable_file_is_shown_with_the_reason_and_hides_no_other(
    make_store: MakeStore, storage: Any
) -> None:
    fill(storage, "user/u-1/a/1.md", "user/u-1/a/3.md")
    storage.inner.put("user/u-1/a/2.md", b"x", {"description": "secret"})
    store = make_store(list_page_size=1)
    assert walk(store, "user/u-1/") == [f"user/u-1/a/{number}.md" for number in (1, 2, 3)]
    page = store.list_prefix("user/u-1/", store.list_prefix("user/u-1/").next_cursor)
    (entry,) = page.entries
    assert "cannot be read" in entry.metadata.description
    assert "aliases" in entry.metadata.description
    assert "secret" not in entry.metadata.description
    assert entry.metadata.aliases == ()
    assert entry.metadata.last_updated == EPOCH
    store.delete_file(entry.path, entry.version)


def test_what_the_storage_itself_cannot_decode_is_shown_as_unreadable(
    store: MemoryStore, storage: Any
) -> None:
    class Marking(InMemoryStorage):
        def list_page(self, prefix: str, start_after: str | None, limit: int) -> Any:
            page = super().list_page(prefix, start_after, limit)
            return [
                type(found)(found.key, {"wenchang-unreadable": "because"}, found.version)
                for found in page
            ]

    storage.inner = Marking()
    fill(storage, "user/u-1/a/1.md")
    (entry,) = store.list_prefix("user/u-1/").entries
    assert "cannot be read" in entry.metadata.description
    assert store.get_memory_index({"user": "u-1"}).entries == (entry,)


@pytest.mark.parametrize(
    "prefix", ["", "user", "/", "user//", "user/u-1/a/x.md", "user/u-1/a/b/", "user/\n/"]
)
def test_mem_072_what_is_no_prefix_is_invalid_path(
    store: MemoryStore, storage: Any, prefix: str
) -> None:
    with pytest.raises(NotFoundError) as caught:
        store.list_prefix(prefix)
    assert caught.value.reason == "invalid_path"
    assert storage.taken() == []


def test_mem_047_what_stays_appears_once_while_others_come_and_go(
    make_store: MakeStore, storage: Any
) -> None:
    stays = [f"user/u-1/a/{number:02}.md" for number in range(0, 20, 2)]
    fill(storage, *stays)
    store = make_store(list_page_size=3)
    seen: list[str] = []
    cursor: str | None = None
    step = 0
    while True:
        page = store.list_prefix("user/u-1/a/", cursor)
        seen += [entry.path for entry in page.entries if entry.path in stays]
        fill(storage, f"user/u-1/a/{(step * 7) % 20:02}x.md")
        if page.entries and page.entries[-1].path not in stays:
            # The very object that the cursor names may go, and the listing goes on behind it.
            last = page.entries[-1]
            storage.inner.delete_if_version(last.path, last.version)
        cursor = page.next_cursor
        step += 1
        if cursor is None:
            break
    assert seen == stays


# --- cursors -------------------------------------------------------------------------------------


@pytest.fixture
def listing(make_store: MakeStore, storage: Any) -> tuple[MemoryStore, str]:
    """A store with several entities and areas, and the cursor of one area's first page."""
    for entity in ("ent-4711", "ent-4712"):
        fill(
            storage,
            *(f"user/{entity}/{area}/{n}.md" for area in ("a", "ab", "b") for n in range(5)),
        )
    fill(storage, *(f"team/ent-4711/a/{n}.md" for n in range(5)))
    store = make_store(list_page_size=2)
    cursor = store.list_prefix("user/ent-4711/a/").next_cursor
    assert cursor is not None
    return store, cursor


@pytest.mark.parametrize(
    "prefix",
    [
        "user/ent-4711/",
        "user/ent-4711/ab/",
        "user/ent-4711/b/",
        "user/ent-4712/a/",
        "user/",
        "team/ent-4711/a/",
    ],
)
def test_mem_046_a_cursor_fits_no_other_listing(
    listing: tuple[MemoryStore, str], storage: Any, prefix: str
) -> None:
    store, cursor = listing
    storage.taken()
    with pytest.raises(InvalidArgumentError) as caught:
        store.list_prefix(prefix, cursor)
    assert caught.value.argument == "cursor"
    assert "4711" not in str(caught.value)
    assert storage.taken() == []


def test_mem_046_a_cursor_of_the_scope_does_not_fit_its_area(
    listing: tuple[MemoryStore, str],
) -> None:
    store, _ = listing
    cursor = store.list_prefix("user/ent-4711/").next_cursor
    with pytest.raises(InvalidArgumentError):
        store.list_prefix("user/ent-4711/a/", cursor)


@pytest.mark.parametrize("cursor", ["", "x", "AAAA", "=", "é", "\ud800", "a b", "\n", "A" * 5000])
def test_mem_046_a_malformed_cursor_is_refused(
    listing: tuple[MemoryStore, str], cursor: str
) -> None:
    store, _ = listing
    with pytest.raises(InvalidArgumentError) as caught:
        store.list_prefix("user/ent-4711/a/", cursor)
    assert caught.value.argument == "cursor"


def test_mem_046_no_character_of_a_cursor_can_be_changed(
    listing: tuple[MemoryStore, str],
) -> None:
    store, cursor = listing
    for place in range(len(cursor)):
        for other in "AB_-9":
            changed = cursor[:place] + other + cursor[place + 1 :]
            if changed != cursor:
                with pytest.raises(InvalidArgumentError):
                    store.list_prefix("user/ent-4711/a/", changed)
    for changed in (cursor + "=", cursor + "A", cursor[:-1], cursor + "\n", " " + cursor):
        with pytest.raises(InvalidArgumentError):
            store.list_prefix("user/ent-4711/a/", changed)


def test_mem_003_a_cursor_holds_neither_entity_nor_path(listing: tuple[MemoryStore, str]) -> None:
    store, _ = listing
    for prefix in ("user/ent-4711/", "user/ent-4711/a/"):
        cursor = store.list_prefix(prefix).next_cursor
        assert cursor is not None
        raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        assert b"4711" not in raw
        assert b"user" not in raw


def test_a_cursor_works_on_another_store_of_the_same_storage(
    listing: tuple[MemoryStore, str], make_store: MakeStore
) -> None:
    store, cursor = listing
    other = make_store(list_page_size=2)
    assert other.list_prefix("user/ent-4711/a/", cursor) == store.list_prefix(
        "user/ent-4711/a/", cursor
    )


def test_a_forged_cursor_with_a_position_that_no_key_can_have_is_refused(
    listing: tuple[MemoryStore, str],
) -> None:
    store, _ = listing
    for position in ("\x00", "x" * 1020):
        forged = encode_cursor(1, "user/ent-4711/a/", position)
        with pytest.raises(InvalidArgumentError) as caught:
            store.list_prefix("user/ent-4711/a/", forged)
        assert caught.value.argument == "cursor"


@given(st.integers(0, 255), texts, texts)
def test_a_cursor_decodes_to_its_position_only_for_its_form_and_binding(
    form: int, binding: str, position: str
) -> None:
    cursor = encode_cursor(form, binding, position)
    assert decode_cursor(form, binding, cursor) == position
    with pytest.raises(ValueError):
        decode_cursor((form + 1) % 256, binding, cursor)
    with pytest.raises(ValueError):
        decode_cursor(form, binding + "x", cursor)


@given(texts, texts)
def test_what_decodes_is_exactly_what_was_encoded(binding: str, cursor: str) -> None:
    try:
        position = decode_cursor(1, binding, cursor)
    except ValueError:
        return
    assert encode_cursor(1, binding, position) == cursor


def test_the_longest_position_makes_a_cursor_within_its_limit() -> None:
    assert len(encode_cursor(1, "x" * 900, "文" * 300)) <= MAX_CURSOR_CHARS


# --- against a model -----------------------------------------------------------------------------

key_part = st.sampled_from(["a", "a-", "a0", "ab", "b", "é", "\ue000", "\U0001f375", ".md", "x.md"])


@settings(max_examples=60, deadline=None)
@given(
    st.sets(st.lists(key_part, min_size=1, max_size=4).map("/".join), max_size=30),
    st.integers(1, 5),
    st.sampled_from(["s/", "s/e/", "s/e/a/", "s/e/ab/"]),
)
def test_mem_045_paging_agrees_with_a_sorted_dictionary(
    rests: set[str], page_size: int, prefix: str
) -> None:
    storage = InMemoryStorage()
    keys = {f"s/{rest}" for rest in rests} | {
        build_path("s", "e", area, name) for area in ("a", "ab") for name in ("1", "2")
    }
    for key in keys:
        storage.put(key, b"", {})
    expected = sorted(key for key in keys if key.startswith(prefix) and is_valid_path(key))
    assert walk(MemoryStore(storage, list_page_size=page_size), prefix) == expected
