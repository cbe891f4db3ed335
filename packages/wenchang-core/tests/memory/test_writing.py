"""Creating, replacing, appending, editing and deleting a file."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, ClassVar

import pytest

from wenchang.core import MemoryStore
from wenchang.errors import (
    InvalidArgumentError,
    MetadataFormatError,
    NotFoundError,
    OversizeWriteError,
    ReplaceFactMatchError,
    VersionConflictError,
)
from wenchang.metadata import EPOCH, FileMetadata

TEA = "user/u-1/prefs/tea.md"
LINE = "- [stated] Likes tea."

Create = Callable[..., Any]
Meta = Callable[..., FileMetadata]
MakeStore = Callable[..., MemoryStore]


def stored(storage: Any, path: str = TEA) -> Any:
    """Return what lies in the storage, without counting."""
    return storage.inner.get(path)


class TestWriteFile:
    def test_mem_020_content_is_stored_as_it_is_and_metadata_beside_it(
        self, store: MemoryStore, storage: Any, meta: Meta
    ) -> None:
        content = "\ufeffa\r\nb\u2028 \t no final newline"
        file = store.write_file(TEA, content, meta("About", "a"), None, source="test")
        assert stored(storage).data == content.encode()
        assert set(stored(storage).metadata) == {
            "description",
            "aliases",
            "sources",
            "last-updated",
        }
        assert store.read_file(TEA) == file
        assert file.content == content

    def test_mem_021_description_and_aliases_are_replaced_whole(
        self, store: MemoryStore, create: Create, meta: Meta
    ) -> None:
        file = create(TEA, "x", "old", "older")
        file = store.write_file(TEA, "x", meta("", "new"), file.version, source="test")
        assert file.metadata.description == ""
        assert file.metadata.aliases == ("new",)
        file = store.write_file(TEA, "x", meta(), file.version, source="test")
        assert file.metadata.aliases == ()

    def test_mem_022_empty_and_repeated_aliases_are_dropped(
        self, store: MemoryStore, meta: Meta
    ) -> None:
        file = store.write_file(TEA, "", meta("", "b", "", "a", "b"), None, source="test")
        assert store.read_file(TEA).metadata.aliases == file.metadata.aliases == ("b", "a")

    def test_mem_023_sources_only_grow(self, store: MemoryStore, meta: Meta) -> None:
        given = FileMetadata("", (), frozenset({"import"}), EPOCH)
        file = store.write_file(TEA, "", given, None, source="chat")
        assert file.metadata.sources == {"chat", "import"}
        file = store.write_file(TEA, "", meta(), file.version, source="mail")
        assert store.read_file(TEA).metadata.sources == {"chat", "import", "mail"}
        file = store.append_line(TEA, LINE, file.version, source="cli")
        file = store.replace_fact(TEA, "Likes", "Loves", file.version, source="web")
        assert file.metadata.sources == {"chat", "import", "mail", "cli", "web"}

    def test_mem_024_each_write_is_stamped_by_the_clock_and_no_caller_sets_the_time(
        self, make_store: MakeStore
    ) -> None:
        moments = [datetime(2026, 5, day, tzinfo=timezone(timedelta(hours=2))) for day in (1, 2, 3)]
        left = iter(moments)
        store = make_store(clock=lambda: next(left))
        given = FileMetadata("", (), frozenset(), datetime(1999, 1, 1, tzinfo=UTC))
        files = [store.write_file(TEA, "", given, None, source="test")]
        files.append(store.append_line(TEA, LINE, files[-1].version, source="test"))
        files.append(store.replace_fact(TEA, "tea", "mate", files[-1].version, source="test"))
        assert [file.metadata.last_updated for file in files] == moments
        assert store.read_file(TEA).metadata.last_updated == moments[2]
        assert store.read_file(TEA).metadata.last_updated.utcoffset() == timedelta(0)

    @pytest.mark.parametrize("moment", [datetime(2026, 1, 1), "2026-01-01T00:00:00Z", None])  # noqa: DTZ001 - the case
    def test_mem_024_a_clock_without_zone_is_refused_before_anything_is_written(
        self, make_store: MakeStore, storage: Any, meta: Meta, moment: Any
    ) -> None:
        store = make_store(clock=lambda: moment)
        with pytest.raises((TypeError, ValueError), match="clock"):
            store.write_file(TEA, "", meta(), None, source="test")
        assert stored(storage) is None

    def test_mem_026_creating_over_a_file_is_a_conflict_and_changes_nothing(
        self, store: MemoryStore, storage: Any, create: Create, meta: Meta
    ) -> None:
        file = create(TEA, "first", "alias")
        before = stored(storage)
        with pytest.raises(VersionConflictError) as caught:
            store.write_file(TEA, "second", meta("Other"), None, source="test")
        assert (caught.value.content, caught.value.version) == ("first", file.version)
        assert (caught.value.description, caught.value.aliases) == ("About", ("alias",))
        assert stored(storage) == before

    @pytest.mark.parametrize("version", ["", "0", "v1"])
    def test_mem_027_replacing_what_is_not_there_is_file_absent(
        self, store: MemoryStore, storage: Any, meta: Meta, version: str
    ) -> None:
        with pytest.raises(NotFoundError) as caught:
            store.write_file(TEA, "x", meta(), version, source="test")
        assert caught.value.reason == "file_absent"
        assert stored(storage) is None

    def test_mem_027_replacing_a_file_that_was_deleted_is_file_absent(
        self, store: MemoryStore, rival: MemoryStore, create: Create, meta: Meta
    ) -> None:
        file = create()
        rival.delete_file(TEA, file.version)
        with pytest.raises(NotFoundError) as caught:
            store.write_file(TEA, "x", meta(), file.version, source="test")
        assert caught.value.reason == "file_absent"

    @pytest.mark.parametrize("settles", [False, True])
    @pytest.mark.parametrize("known", [False, True])
    def test_mem_028_a_stale_write_is_refused_and_succeeds_with_the_version_it_is_shown(
        self,
        storage: Any,
        rival: MemoryStore,
        create: Create,
        make_store: MakeStore,
        meta: Meta,
        *,
        settles: bool,
        known: bool,
    ) -> None:
        store = make_store()
        file = create()
        if known:
            store.read_file(TEA)
        storage.settles = settles
        newer = rival.write_file(TEA, "theirs", meta("Theirs", "b"), file.version, source="rival")
        with pytest.raises(VersionConflictError) as caught:
            store.write_file(TEA, "mine", meta("Mine"), file.version, source="test")
        assert (caught.value.content, caught.value.version) == ("theirs", newer.version)
        assert (caught.value.description, caught.value.aliases) == ("Theirs", ("b",))
        assert stored(storage).data == b"theirs"
        file = store.write_file(TEA, "both", meta(), caught.value.version, source="test")
        assert store.read_file(TEA) == file
        assert file.metadata.sources == {"rival", "test"}

    def test_mem_019_lines_that_are_no_facts_may_be_written(
        self, store: MemoryStore, meta: Meta
    ) -> None:
        content = "# Heading\n\n - [stated] indented\n- [GUESSED] x\n"
        assert store.write_file(TEA, content, meta(), None, source="test").content == content

    def test_mem_007_an_area_exists_from_its_first_file_on(
        self, store: MemoryStore, create: Create
    ) -> None:
        assert store.list_prefix("user/u-1/prefs/").entries == ()
        create()
        assert [entry.path for entry in store.list_prefix("user/u-1/prefs/").entries] == [TEA]

    def test_mem_013_the_core_store_writes_the_system_area_like_any_other(
        self, store: MemoryStore, meta: Meta
    ) -> None:
        path = "user/u-1/system/rules.md"
        file = store.write_file(path, LINE, meta(), None, source="seed")
        file = store.append_line(path, "- [system] More.", file.version, source="seed")
        file = store.replace_fact(path, "More", "Less", file.version, source="seed")
        file = store.write_file(path, "x", meta(), file.version, source="seed")
        store.delete_file(path, file.version)

    def test_a_create_that_meets_a_file_which_is_gone_at_once_is_tried_again(
        self, store: MemoryStore, storage: Any, rival: MemoryStore, meta: Meta
    ) -> None:
        def appear() -> None:
            storage.before.clear()
            theirs = rival.write_file(TEA, "theirs", meta(), None, source="rival")

            def vanish() -> None:
                storage.after.clear()
                rival.delete_file(TEA, theirs.version)

            storage.after["put_if_version"] = vanish

        storage.before["put_if_version"] = appear
        file = store.write_file(TEA, "mine", meta(), None, source="test")
        assert store.read_file(TEA) == file


class TestAppendLine:
    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("", f"{LINE}\n"),
            ("x", f"x\n{LINE}\n"),
            ("x\n", f"x\n{LINE}\n"),
            ("x\n\n", f"x\n\n{LINE}\n"),
            ("x\r", f"x\r\n{LINE}\n"),
            ("\n", f"\n{LINE}\n"),
        ],
    )
    @pytest.mark.parametrize("known", [False, True])
    def test_mem_049_a_newline_goes_before_the_line_only_where_one_is_missing(
        self,
        store: MemoryStore,
        create: Create,
        rival: MemoryStore,
        before: str,
        after: str,
        *,
        known: bool,
    ) -> None:
        file = create(TEA, before)
        appended = (store if known else rival).append_line(TEA, LINE, file.version, source="test")
        assert appended.content == store.read_file(TEA).content == after

    def test_mem_018_other_lines_survive_byte_for_byte(
        self, store: MemoryStore, create: Create
    ) -> None:
        body = "\ufeff# T\r\n\n - [stated] x\u2028y\x01\n- [Stated] z "
        file = create(TEA, body)
        file = store.append_line(TEA, LINE, file.version, source="test")
        file = store.replace_fact(TEA, "Likes tea.", "Likes mate.", file.version, source="test")
        assert file.content == f"{body}\n- [stated] Likes mate.\n"

    def test_mem_049_appending_to_nothing_creates_nothing(
        self, store: MemoryStore, storage: Any
    ) -> None:
        with pytest.raises(NotFoundError) as caught:
            store.append_line(TEA, LINE, "v1", source="test")
        assert caught.value.reason == "file_absent"
        assert stored(storage) is None

    @pytest.mark.parametrize("known", [False, True])
    def test_mem_031_a_stale_append_is_a_conflict_and_is_not_applied(
        self,
        store: MemoryStore,
        rival: MemoryStore,
        create: Create,
        make_store: MakeStore,
        *,
        known: bool,
    ) -> None:
        file = create(TEA, "x\n")
        newer = rival.append_line(TEA, "- [stated] Theirs.", file.version, source="rival")
        with pytest.raises(VersionConflictError) as caught:
            (store if known else make_store()).append_line(TEA, LINE, file.version, source="test")
        assert caught.value.content == "x\n- [stated] Theirs.\n"
        assert store.read_file(TEA) == newer
        file = store.append_line(TEA, LINE, caught.value.version, source="test")
        assert file.content == f"x\n- [stated] Theirs.\n{LINE}\n"

    def test_the_same_line_may_be_appended_twice_on_purpose(
        self, store: MemoryStore, create: Create
    ) -> None:
        file = create()
        file = store.append_line(TEA, LINE, file.version, source="test")
        file = store.append_line(TEA, LINE, file.version, source="test")
        assert file.content == f"{LINE}\n{LINE}\n"

    @pytest.mark.parametrize(
        "line",
        ["likes tea", "- [guessed] x", "- [stated]  ", f" {LINE}", f"{LINE}\n", f"{LINE}\n{LINE}"],
    )
    def test_mem_016_what_is_no_fact_line_is_refused(
        self, store: MemoryStore, storage: Any, create: Create, line: str
    ) -> None:
        file = create()
        storage.taken()
        with pytest.raises(InvalidArgumentError) as caught:
            store.append_line(TEA, line, file.version, source="test")
        assert caught.value.argument == "line"
        assert storage.taken() == []

    def test_mem_017_a_system_line_may_be_appended(
        self, store: MemoryStore, create: Create
    ) -> None:
        file = create()
        line = "- [system] Curated."
        assert store.append_line(TEA, line, file.version, source="t").content == f"{line}\n"

    @pytest.mark.parametrize("description", [None, "", "New"])
    def test_mem_021_a_description_is_replaced_only_when_given(
        self, store: MemoryStore, create: Create, description: str | None
    ) -> None:
        file = create(TEA, "x\n")
        wanted = "About" if description is None else description
        file = store.append_line(TEA, LINE, file.version, source="t", description=description)
        assert file.metadata.description == wanted
        file = create("user/u-1/prefs/b.md", "x")
        file = store.replace_fact(
            file.path, "x", "y", file.version, source="t", description=description
        )
        assert store.read_file(file.path).metadata.description == wanted

    def test_mem_022_aliases_are_added_after_the_stored_ones_each_once(
        self, store: MemoryStore, create: Create
    ) -> None:
        file = create(TEA, "", "b", "a")
        file = store.append_line(TEA, LINE, file.version, source="t", aliases=["c", "a", "", "c"])
        assert file.metadata.aliases == ("b", "a", "c")
        file = store.replace_fact(TEA, "tea", "x", file.version, source="t", aliases=["d", "b"])
        assert store.read_file(TEA).metadata.aliases == ("b", "a", "c", "d")

    def test_stored_aliases_and_descriptions_that_break_the_rules_are_kept(
        self, store: MemoryStore, storage: Any
    ) -> None:
        storage.inner.put(
            TEA,
            b"x\x00y\n",
            {
                "description": "two\nlines",
                "aliases": '["","a","a","b\\n"]',
                "sources": "[]",
                "last-updated": "2026-01-01T00:00:00Z",
            },
        )
        file = store.append_line(
            TEA, LINE, store.read_file(TEA).version, source="t", aliases=["a", "z"]
        )
        assert file.metadata.description == "two\nlines"
        assert file.metadata.aliases == ("", "a", "a", "b\n", "z")
        assert store.read_file(TEA).content == f"x\x00y\n{LINE}\n"


class TestReplaceFact:
    def test_mem_050_the_one_place_is_replaced(self, store: MemoryStore, create: Create) -> None:
        file = create(TEA, f"a\n{LINE}\nb")
        file = store.replace_fact(TEA, "Likes tea", "Loves té", file.version, source="test")
        assert file.content == store.read_file(TEA).content == "a\n- [stated] Loves té.\nb"

    def test_mem_050_an_empty_new_string_removes_the_place(
        self, store: MemoryStore, create: Create
    ) -> None:
        file = create(TEA, f"a\n{LINE}\nb")
        file = store.replace_fact(TEA, f"{LINE}\n", "", file.version, source="test")
        assert file.content == "a\nb"

    def test_mem_050_an_empty_old_string_is_refused(
        self, store: MemoryStore, create: Create, storage: Any
    ) -> None:
        file = create(TEA, "a")
        storage.taken()
        with pytest.raises(InvalidArgumentError) as caught:
            store.replace_fact(TEA, "", "b", file.version, source="test")
        assert caught.value.argument == "old_string"
        assert storage.taken() == []

    @pytest.mark.parametrize(
        ("content", "old", "count"),
        [
            ("abc", "x", 0),
            ("aXbXc", "X", 2),
            ("aaa", "aa", 2),
            ("ababab", "abab", 2),
            ("e\u0301", "\u00e9", 0),
        ],
    )
    @pytest.mark.parametrize("known", [False, True])
    def test_mem_050_no_match_or_several_change_nothing_and_show_the_file(
        self,
        store: MemoryStore,
        rival: MemoryStore,
        create: Create,
        content: str,
        old: str,
        count: int,
        *,
        known: bool,
    ) -> None:
        file = create(TEA, content)
        with pytest.raises(ReplaceFactMatchError) as caught:
            (store if known else rival).replace_fact(TEA, old, "y", file.version, source="test")
        assert caught.value.match_count == count
        assert (caught.value.content, caught.value.version) == (content, file.version)
        assert store.read_file(TEA) == file

    @pytest.mark.parametrize("known", [False, True])
    def test_mem_029_a_moved_file_that_still_holds_the_text_once_is_changed(
        self,
        store: MemoryStore,
        rival: MemoryStore,
        make_store: MakeStore,
        create: Create,
        *,
        known: bool,
    ) -> None:
        file = create(TEA, "a X b")
        rival.append_line(TEA, LINE, file.version, source="rival", aliases=["r"], description="New")
        changed = (store if known else make_store()).replace_fact(
            TEA, "X", "Y", file.version, source="test", aliases=["t"]
        )
        assert changed.content == store.read_file(TEA).content == f"a Y b\n{LINE}\n"
        assert changed.metadata.aliases == ("r", "t")
        assert changed.metadata.description == "New"
        assert changed.metadata.sources == {"test", "rival"}

    @pytest.mark.parametrize("known", [False, True])
    def test_mem_029_a_moved_file_without_the_text_is_a_conflict(
        self,
        store: MemoryStore,
        rival: MemoryStore,
        make_store: MakeStore,
        create: Create,
        *,
        known: bool,
    ) -> None:
        file = create(TEA, "a X b")
        newer = rival.replace_fact(TEA, "X", "Z", file.version, source="rival")
        with pytest.raises(VersionConflictError) as caught:
            (store if known else make_store()).replace_fact(
                TEA, "X", "Y", file.version, source="test"
            )
        assert (caught.value.content, caught.value.version) == ("a Z b", newer.version)

    def test_a_match_is_judged_on_the_file_as_it_is_now_not_as_it_was_known(
        self, store: MemoryStore, rival: MemoryStore, create: Create, meta: Meta
    ) -> None:
        file = create(TEA, "no such text")
        rival.write_file(TEA, "X", meta(), file.version, source="rival")
        changed = store.replace_fact(TEA, "X", "Y", file.version, source="test")
        assert changed.content == "Y"

    @pytest.mark.parametrize("settles", [False, True])
    @pytest.mark.parametrize("rivals", [1, 2])
    def test_mem_030_up_to_two_rival_writes_are_overcome(
        self,
        store: MemoryStore,
        rival: MemoryStore,
        storage: Any,
        create: Create,
        rivals: int,
        *,
        settles: bool,
    ) -> None:
        file = create(TEA, "X\n")
        storage.settles = settles
        _interfere(storage, rival, rivals)
        changed = store.replace_fact(TEA, "X", "Y", file.version, source="test")
        assert changed.content == "Y\n" + f"{LINE}\n" * rivals
        assert store.read_file(TEA) == changed

    @pytest.mark.parametrize("settles", [False, True])
    def test_mem_030_the_third_rival_write_makes_it_a_conflict_that_shows_the_last_state(
        self, store: MemoryStore, rival: MemoryStore, storage: Any, create: Create, *, settles: bool
    ) -> None:
        file = create(TEA, "X\n")
        storage.settles = settles
        attempts = _interfere(storage, rival, 10)
        with pytest.raises(VersionConflictError) as caught:
            store.replace_fact(TEA, "X", "Y", file.version, source="test")
        assert len(attempts) == 3
        now = store.read_file(TEA)
        assert (caught.value.content, caught.value.version) == (now.content, now.version)
        assert now.content == "X\n" + f"{LINE}\n" * 3

    def test_mem_030_the_match_is_checked_again_in_each_attempt(
        self, store: MemoryStore, rival: MemoryStore, storage: Any, create: Create, meta: Meta
    ) -> None:
        file = create(TEA, "X\n")

        def double() -> None:
            storage.before.clear()
            rival.write_file(TEA, "X X", meta(), file.version, source="rival")

        storage.before["put_if_version"] = double
        with pytest.raises(VersionConflictError) as caught:
            store.replace_fact(TEA, "X", "Y", file.version, source="test")
        assert caught.value.content == store.read_file(TEA).content == "X X"

    def test_a_file_deleted_during_the_attempts_is_file_absent(
        self, store: MemoryStore, rival: MemoryStore, storage: Any, create: Create
    ) -> None:
        file = create(TEA, "X")

        def remove() -> None:
            storage.before.clear()
            rival.delete_file(TEA, file.version)

        storage.before["put_if_version"] = remove
        with pytest.raises(NotFoundError) as caught:
            store.replace_fact(TEA, "X", "Y", file.version, source="test")
        assert caught.value.reason == "file_absent"

    def test_replacing_nothing_in_a_file_that_is_absent_is_file_absent(
        self, store: MemoryStore
    ) -> None:
        with pytest.raises(NotFoundError):
            store.replace_fact(TEA, "X", "Y", "v1", source="test")

    def test_a_new_string_that_holds_the_old_one_is_applied_once(
        self, store: MemoryStore, create: Create
    ) -> None:
        file = create(TEA, "tea")
        assert (
            store.replace_fact(TEA, "tea", "tea tea", file.version, source="t").content == "tea tea"
        )

    @pytest.mark.parametrize("new", ["\x00", "\ud800"])
    def test_a_new_string_that_content_cannot_hold_is_refused(
        self, store: MemoryStore, create: Create, new: str
    ) -> None:
        file = create(TEA, "X")
        with pytest.raises(InvalidArgumentError) as caught:
            store.replace_fact(TEA, "X", new, file.version, source="test")
        assert caught.value.argument == "new_string"

    def test_an_old_string_that_no_content_can_hold_just_does_not_match(
        self, store: MemoryStore, create: Create
    ) -> None:
        file = create(TEA, "X")
        with pytest.raises(ReplaceFactMatchError):
            store.replace_fact(TEA, "\ud800", "Y", file.version, source="test")


class TestDeleteFile:
    def test_mem_051_a_file_is_deleted_at_its_version(
        self, store: MemoryStore, create: Create
    ) -> None:
        file = create()
        store.delete_file(TEA, file.version)
        with pytest.raises(NotFoundError):
            store.read_file(TEA)

    @pytest.mark.parametrize("settles", [False, True])
    def test_mem_051_a_stale_delete_is_a_conflict_and_deletes_nothing(
        self, store: MemoryStore, rival: MemoryStore, storage: Any, create: Create, *, settles: bool
    ) -> None:
        file = create(TEA, "x\n")
        storage.settles = settles
        newer = rival.append_line(TEA, LINE, file.version, source="rival")
        with pytest.raises(VersionConflictError) as caught:
            store.delete_file(TEA, file.version)
        assert (caught.value.content, caught.value.version) == (newer.content, newer.version)
        assert store.read_file(TEA) == newer
        store.delete_file(TEA, caught.value.version)

    @pytest.mark.parametrize("settles", [False, True])
    def test_mem_051_deleting_what_is_gone_is_file_absent(
        self, store: MemoryStore, storage: Any, create: Create, *, settles: bool
    ) -> None:
        file = create()
        store.delete_file(TEA, file.version)
        storage.settles = settles
        with pytest.raises(NotFoundError) as caught:
            store.delete_file(TEA, file.version)
        assert caught.value.reason == "file_absent"


class TestVersions:
    @pytest.mark.parametrize(
        "version", ["", "0", "007", "null", "\ud800", "{}\n", "{} ", "x" * 4096]
    )
    def test_mem_032_a_text_that_was_never_a_version_is_a_conflict(
        self, store: MemoryStore, create: Create, meta: Meta, version: str
    ) -> None:
        file = create(TEA, "X")
        wrong = version.format(file.version) if "{" in version else version
        calls: list[Callable[[], object]] = [
            lambda: store.write_file(TEA, "", meta(), wrong, source="t"),
            lambda: store.append_line(TEA, LINE, wrong, source="t"),
            lambda: store.delete_file(TEA, wrong),
        ]
        for call in calls:
            with pytest.raises(VersionConflictError) as caught:
                call()
            assert caught.value.version == file.version
        with pytest.raises(VersionConflictError):
            store.replace_fact(TEA, "Q", "", wrong, source="t")
        assert store.read_file(TEA) == file

    def test_mem_025_only_write_file_takes_null_for_a_version(
        self, store: MemoryStore, create: Create
    ) -> None:
        create(TEA, "X")
        none: Any = None
        with pytest.raises(TypeError, match="expected_version"):
            store.append_line(TEA, LINE, none, source="t")
        with pytest.raises(TypeError, match="expected_version"):
            store.replace_fact(TEA, "X", "Y", none, source="t")
        with pytest.raises(TypeError, match="expected_version"):
            store.delete_file(TEA, none)
        assert store.read_file(TEA).content == "X"


class TestSize:
    @pytest.mark.parametrize("limit", [8, 16_384])
    def test_mem_033_the_limit_is_inclusive_and_counts_bytes_of_the_body_alone(
        self, make_store: MakeStore, meta: Meta, limit: int
    ) -> None:
        store = make_store(max_file_bytes=limit)
        full = "é" * (limit // 2)
        file = store.write_file(TEA, full, meta("x" * 500), None, source="test")
        for expected in (None, file.version):
            with pytest.raises(OversizeWriteError) as caught:
                store.write_file(TEA, full + "x", meta(), expected, source="test")
            assert (caught.value.size, caught.value.limit) == (limit + 1, limit)
        assert store.read_file(TEA) == file

    def test_mem_033_the_result_of_an_append_or_a_replace_counts(
        self, make_store: MakeStore, meta: Meta
    ) -> None:
        size = len(f"ab\n{LINE}\n")
        store = make_store(max_file_bytes=size)
        file = store.write_file(TEA, "abc", meta(), None, source="test")
        with pytest.raises(OversizeWriteError) as caught:
            store.append_line(TEA, LINE, file.version, source="test")
        assert (caught.value.size, caught.value.limit) == (size + 1, size)
        with pytest.raises(OversizeWriteError) as caught:
            store.replace_fact(TEA, "c", "x" * (size - 1), file.version, source="test")
        assert (caught.value.size, caught.value.limit) == (size + 1, size)
        assert store.read_file(TEA) == file
        file = store.replace_fact(TEA, "c", "", file.version, source="test")
        file = store.append_line(TEA, LINE, file.version, source="test")
        assert len(file.content) == size

    def test_mem_033_a_body_beyond_what_storage_holds_is_oversize_too(
        self, make_store: MakeStore, meta: Meta
    ) -> None:
        store = make_store(max_file_bytes=10**9)
        with pytest.raises(OversizeWriteError) as caught:
            store.write_file(TEA, "x" * (4 * 1024 * 1024 + 1), meta(), None, source="test")
        assert caught.value.limit == 4 * 1024 * 1024

    def test_an_oversize_write_wins_over_a_stale_version_and_an_oversize_append_does_not(
        self, make_store: MakeStore, meta: Meta
    ) -> None:
        store = make_store(max_file_bytes=8)
        file = store.write_file(TEA, "a", meta(), None, source="test")
        store.write_file(TEA, "b", meta(), file.version, source="test")
        with pytest.raises(OversizeWriteError):
            store.write_file(TEA, "x" * 9, meta(), file.version, source="test")
        with pytest.raises(VersionConflictError):
            store.append_line(TEA, LINE, file.version, source="test")

    def test_metadata_over_the_limit_is_refused_and_changes_nothing(
        self, store: MemoryStore, create: Create, meta: Meta
    ) -> None:
        file = create(TEA, "X")
        with pytest.raises(InvalidArgumentError) as caught:
            store.write_file(TEA, "", meta("x" * 5000), file.version, source="test")
        assert caught.value.argument == "description"
        with pytest.raises(InvalidArgumentError) as caught:
            store.append_line(TEA, LINE, file.version, source="test", aliases=["x" * 5000])
        assert caught.value.argument == "aliases"
        with pytest.raises(InvalidArgumentError) as caught:
            store.replace_fact(TEA, "X", "Y", file.version, source="test", description="é" * 2500)
        assert caught.value.argument == "description"
        assert store.read_file(TEA) == file


class TestArguments:
    @pytest.mark.parametrize("content", ["\x00", "a\ud800"])
    def test_content_that_is_no_utf8_text_or_holds_nul_is_refused(
        self, store: MemoryStore, storage: Any, meta: Meta, content: str
    ) -> None:
        with pytest.raises(InvalidArgumentError) as caught:
            store.write_file(TEA, content, meta(), None, source="test")
        assert caught.value.argument == "content"
        assert storage.taken() == []

    @pytest.mark.parametrize("bad", ["a\nb", "\x07", "\u2028"])
    def test_mem_021_descriptions_and_aliases_of_several_lines_are_refused(
        self, store: MemoryStore, create: Create, storage: Any, meta: Meta, bad: str
    ) -> None:
        file = create(TEA, "X")
        storage.taken()
        for argument in ("description", "aliases"):
            given: Any = {argument: bad if argument == "description" else [bad]}
            metadata = meta(bad) if argument == "description" else meta("", bad)
            calls: list[Callable[[], object]] = [
                lambda m=metadata: store.write_file(TEA, "", m, file.version, source="t"),
                lambda g=given: store.append_line(TEA, LINE, file.version, source="t", **g),
                lambda g=given: store.replace_fact(TEA, "X", "Y", file.version, source="t", **g),
            ]
            for call in calls:
                with pytest.raises(InvalidArgumentError) as caught:
                    call()
                assert caught.value.argument == argument
        assert storage.taken() == []

    @pytest.mark.parametrize("source", ["", "x" * 65, "a\nb"])
    def test_a_source_that_breaks_its_rule_is_a_value_error(
        self, store: MemoryStore, create: Create, storage: Any, meta: Meta, source: str
    ) -> None:
        file = create(TEA, "X")
        storage.taken()
        calls: list[Callable[[], object]] = [
            lambda: store.write_file(TEA, "", meta(), file.version, source=source),
            lambda: store.append_line(TEA, LINE, file.version, source=source),
            lambda: store.replace_fact(TEA, "X", "Y", file.version, source=source),
        ]
        for call in calls:
            with pytest.raises(ValueError, match="source"):
                call()
        assert storage.taken() == []

    @pytest.mark.parametrize(
        "path",
        [
            "",
            "a",
            "a/b/c",
            "a/b/c/d",
            "a/b/c/.md",
            "a/b/c/..md",
            "a//c/d.md",
            "a/b/c/d/e.md",
            "/a/b/c.md",
            "a/b/c/" + "x" * 201 + ".md",
            "a/b/c\n/d.md",
        ],
    )
    def test_mem_072_a_location_that_is_none_is_invalid_path_without_a_request(
        self, store: MemoryStore, storage: Any, meta: Meta, path: str
    ) -> None:
        calls: list[Callable[[], object]] = [
            lambda: store.read_file(path),
            lambda: store.write_file(path, "", meta(), None, source="t"),
            lambda: store.append_line(path, LINE, "v", source="t"),
            lambda: store.replace_fact(path, "X", "Y", "v", source="t"),
            lambda: store.delete_file(path, "v"),
        ]
        for call in calls:
            with pytest.raises(NotFoundError) as caught:
                call()
            assert caught.value.reason == "invalid_path"
        assert storage.taken() == []

    def test_wrong_types_are_type_errors_without_a_request(
        self, store: MemoryStore, storage: Any, meta: Meta
    ) -> None:
        any_store: Any = store
        calls: list[Callable[[], object]] = [
            lambda: any_store.read_file(1),
            lambda: any_store.write_file(TEA, b"", meta(), None, source="t"),
            lambda: any_store.write_file(TEA, "", {}, None, source="t"),
            lambda: any_store.write_file(TEA, "", meta(), 1, source="t"),
            lambda: any_store.write_file(TEA, "", meta(), None, source=None),
            lambda: any_store.append_line(TEA, None, "v", source="t"),
            lambda: any_store.append_line(TEA, LINE, "v", source="t", aliases="abc"),
            lambda: any_store.append_line(TEA, LINE, "v", source="t", description=1),
            lambda: any_store.replace_fact(TEA, 1, "Y", "v", source="t"),
            lambda: any_store.replace_fact(TEA, "X", 1, "v", source="t"),
            lambda: any_store.list_prefix(1),
            lambda: any_store.list_prefix("user/", 1),
            lambda: any_store.get_memory_index([("user", "u-1")]),
            lambda: any_store.get_memory_index({"user": None}),
            lambda: any_store.get_memory_index({"user": 1}),
        ]
        for call in calls:
            with pytest.raises(TypeError):
                call()
        assert storage.taken() == []


class TestUnreadable:
    """Files whose stored form cannot be decoded."""

    BAD_METADATA: ClassVar = {
        "description": "d",
        "aliases": "nonsense",
        "sources": "[]",
        "last-updated": "x",
    }

    def test_mem_065_reading_it_is_an_error_that_quotes_no_stored_value(
        self, store: MemoryStore, storage: Any
    ) -> None:
        storage.inner.put(TEA, b"secret", self.BAD_METADATA)
        with pytest.raises(MetadataFormatError) as metadata_error:
            store.read_file(TEA)
        assert metadata_error.value.key == "aliases"
        storage.inner.put(TEA, b"secret \xff secret", {})
        with pytest.raises(UnicodeDecodeError) as body_error:
            store.read_file(TEA)
        text = str(body_error.value) + repr(body_error.value.object)
        assert "secret" not in text
        assert "ff" not in text.lower().replace("utf-8", "")
        assert body_error.value.start == 7
        assert "position 7" in text
        assert body_error.value.__context__ is None

    def test_replacing_it_with_its_version_repairs_it(
        self, store: MemoryStore, storage: Any, meta: Meta
    ) -> None:
        for data, metadata in [
            (b"x", self.BAD_METADATA),
            (b"\xff", {}),
            (b"\xff", self.BAD_METADATA),
        ]:
            version = storage.inner.put(TEA, data, metadata)
            file = store.write_file(TEA, "good", meta("Good"), version, source="test")
            assert store.read_file(TEA) == file
            assert file.metadata.sources == {"test"}

    def test_deleting_it_with_its_version_removes_it(
        self, store: MemoryStore, storage: Any
    ) -> None:
        version = storage.inner.put(TEA, b"\xff", self.BAD_METADATA)
        store.delete_file(TEA, version)
        assert stored(storage) is None

    def test_appending_to_it_or_editing_it_changes_nothing(
        self, store: MemoryStore, storage: Any
    ) -> None:
        for data, metadata, error in [
            (b"X", self.BAD_METADATA, MetadataFormatError),
            (b"X\xff", {}, UnicodeDecodeError),
        ]:
            version = storage.inner.put(TEA, data, metadata)
            with pytest.raises(error):
                store.append_line(TEA, LINE, version, source="test")
            with pytest.raises(error):
                store.replace_fact(TEA, "X", "Y", version, source="test")
            assert stored(storage).version == version

    def test_a_conflict_over_it_shows_its_content_and_no_metadata(
        self, store: MemoryStore, storage: Any, meta: Meta
    ) -> None:
        version = storage.inner.put(TEA, b"X", self.BAD_METADATA)
        for call in (
            lambda: store.write_file(TEA, "", meta(), "stale", source="test"),
            lambda: store.append_line(TEA, LINE, "stale", source="test"),
            lambda: store.delete_file(TEA, "stale"),
        ):
            with pytest.raises(VersionConflictError) as caught:
                call()
            assert (caught.value.content, caught.value.version) == ("X", version)
            assert caught.value.description is None
            assert caught.value.aliases is None

    def test_an_object_made_by_hand_is_a_file_that_can_be_changed(
        self, store: MemoryStore, storage: Any
    ) -> None:
        storage.inner.put(TEA, b"by hand", {})
        file = store.read_file(TEA)
        assert file.metadata == FileMetadata("", (), frozenset(), EPOCH)
        file = store.append_line(TEA, LINE, file.version, source="test")
        assert file.content == f"by hand\n{LINE}\n"
        assert file.metadata.last_updated > EPOCH


def _interfere(storage: Any, rival: MemoryStore, times: int) -> list[int]:
    """Let a rival append before each of the next `times` writes; return what counts them."""
    attempts: list[int] = []

    def append() -> None:
        del storage.before["put_if_version"]
        attempts.append(len(attempts))
        rival.append_line(TEA, LINE, rival.read_file(TEA).version, source="rival")
        if len(attempts) < times:
            storage.before["put_if_version"] = append

    storage.before["put_if_version"] = append
    return attempts
