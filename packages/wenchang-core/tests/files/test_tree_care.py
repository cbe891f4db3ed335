"""Garbage, purge, history, verification and rebuilding."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from wenchang.files._root import Root, decode_root, encode_root
from wenchang.files.edits import Edit
from wenchang.files.errors import (
    AlreadyExistsError,
    LimitExceededError,
    NotFoundError,
    TreeStateError,
    VersionConflictError,
)
from wenchang.files.limits import TreeLimits
from wenchang.files.policy import HistoryPolicy

ROOT = "@files/ada/root"


def keys(storage, below="@files/ada/"):
    return {each.key for each in storage.inner.list_page(below, None, 10_000)}


class TestGarbage:
    def test_what_a_commit_replaced_goes_in_the_background(self, storage, open_tree_on, small):
        tree = open_tree_on(storage, replace(small, cleanup_after=4))
        for number in range(50):
            tree.put("a", str(number))
        tree.close()
        assert len(keys(storage)) == 2

    def test_a_collection_removes_what_killed_writers_left(self, tree, storage, crash):
        tree.create("a", "1")
        storage.fault = lambda _m, key: "crash" if key.endswith("/root") else None
        for _ in range(3):
            with pytest.raises(crash):
                tree.create("b", "2")
        storage.fault = lambda _m, _k: None
        report = tree.collect_garbage()
        assert (report.referenced, report.deleted) == (1, 3)
        assert tree.verify().unreferenced == 0

    def test_an_upload_of_the_present_epoch_is_kept(self, tree, storage):
        tree.create("a", "1")
        root = tree.snapshot()._root
        young = f"@files/ada/{root.incarnation}/{root.epoch + 1}/young"
        storage.inner.put(young, b"", {})
        assert tree.collect_garbage().kept == 1
        assert young in keys(storage)
        assert tree.collect_garbage().deleted == 1

    def test_objects_that_no_tree_made_are_left_alone(self, tree, storage):
        tree.create("a", "1")
        storage.inner.put("@files/ada/note.txt", b"", {})
        storage.inner.put("@files/adam/1/2", b"", {})
        tree.collect_garbage()
        assert {"@files/ada/note.txt", "@files/adam/1/2"} <= keys(storage, "@files/")

    def test_it_refuses_an_absent_an_unreadable_and_a_newer_root(self, tree, storage):
        with pytest.raises(TreeStateError) as absent:
            tree.collect_garbage()
        tree.create("a", "1")
        good = storage.inner.get(ROOT).data
        before = keys(storage)
        found = [absent.value.reason]
        newer = json.loads(good)
        for data in (b"{", json.dumps({**newer, "min_writer": 99}).encode()):
            storage.inner.put(ROOT, data, {})
            with pytest.raises(TreeStateError) as refused:
                tree.collect_garbage()
            found.append(refused.value.reason)
        assert found == ["absent", "unreadable_root", "newer_format"]
        assert keys(storage) == before

    def test_every_so_many_commits_a_collection_starts_by_itself(
        self, storage, open_tree_on, small
    ):
        tree = open_tree_on(storage, replace(small, sweep_every=5))
        for number in range(5):
            tree.put("a", str(number))
        tree.close()
        assert tree.snapshot()._root.epoch == 2


class TestFormat:
    def test_fields_of_a_newer_version_are_kept(self, tree, storage):
        tree.create("a", "1")
        fields = json.loads(storage.inner.get(ROOT).data)
        storage.inner.put(ROOT, json.dumps({**fields, "colour": {"a": [1]}}).encode(), {})
        tree.create("b", "2")
        assert json.loads(storage.inner.get(ROOT).data)["colour"] == {"a": [1]}

    def test_a_tree_of_a_newer_writer_is_read_and_not_written(
        self, tree, storage, open_tree_on, texts
    ):
        tree.create("a", "1")
        fields = json.loads(storage.inner.get(ROOT).data)
        storage.inner.put(ROOT, json.dumps({**fields, "min_writer": 2}).encode(), {})
        for each in (tree, open_tree_on(storage)):
            assert texts(each) == {"a": "1"}
            with pytest.raises(TreeStateError) as refused:
                each.create("b", "2")
            assert refused.value.reason == "newer_format"

    def test_a_format_that_cannot_be_read_says_so(self, tree, storage):
        tree.create("a", "1")
        fields = json.loads(storage.inner.get(ROOT).data)
        storage.inner.put(ROOT, json.dumps({**fields, "format": 2}).encode(), {})
        for act in (tree.snapshot, tree.verify, lambda: tree.verify(rebuild=True)):
            with pytest.raises(TreeStateError) as refused:
                act()
            assert refused.value.reason == "newer_format"

    @pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"\xff", b'{"format":1}', b"null"])
    def test_any_other_bytes_are_an_unreadable_root(self, data):
        with pytest.raises(TreeStateError):
            decode_root(data)

    def test_a_root_comes_back_as_it_was(self, tree):
        for number in range(30):
            tree.create(f"d/{number}", "x", effect_key=str(number))
        root = tree.snapshot()._root
        assert root.pages
        assert decode_root(encode_root(root)) == root
        assert decode_root(encode_root(Root(incarnation="abc"))) == Root(incarnation="abc")


class TestPurge:
    def test_nothing_is_left_but_an_empty_root(self, storage, open_tree_on, texts):
        """item_119."""
        tree = open_tree_on(storage, history=HistoryPolicy(versions=5))
        for number in range(20):
            tree.put(f"d/{number % 12}", str(number), effect_key=str(number))
        old = tree.snapshot().lookup("d/3").version
        assert tree.purge() > 20
        assert keys(storage) == {ROOT}
        assert b"d/" not in storage.inner.get(ROOT).data
        assert texts(tree) == {}
        for _ in range(20):
            new = tree.put("d/3", "again")
            assert new.version != old
            tree.delete("d/3")
        tree.put("d/3", "again")
        with pytest.raises(VersionConflictError):
            tree.write("d/3", "x", old)
        with pytest.raises(NotFoundError):
            tree.file_history("d/0")

    def test_the_root_goes_last_where_the_owner_is_erased(self, tree, storage):
        tree.create("a", "1")
        storage.inner.put("@files/ada/x/9/stray", b"", {})
        order = []
        storage.fault = lambda method, key: order.append((method, key))
        assert tree.purge(remove_root=True) == 3
        assert keys(storage) == set()
        assert [key for method, key in order if method == "delete_if_version"][-1] == ROOT
        assert tree.create("a", "1").created

    def test_a_tree_that_never_was_is_not_made_by_purging_it(self, tree, storage):
        assert tree.purge() == 0
        assert keys(storage) == set()


class TestHistory:
    @pytest.fixture
    def tree(self, storage, open_tree_on, clock):
        return open_tree_on(storage, history=HistoryPolicy(versions=3), clock=clock)

    def test_the_last_states_of_a_file_are_listed_newest_first(self, tree):
        for number in range(6):
            tree.put("a", "x" * number, source=f"agent {number}")
        states = tree.file_history("a")
        assert [each.size for each in states] == [5, 4, 3, 2]
        assert [each.current for each in states] == [True, False, False, False]
        assert [each.source for each in states] == [f"agent {n}" for n in (5, 4, 3, 2)]
        assert [each.modified for each in states] == sorted(
            (each.modified for each in states), reverse=True
        )

    def test_a_state_is_brought_back_as_a_new_version(self, tree):
        first = tree.put("a", "one")
        tree.put("a", "two")
        restored = tree.restore("a", first.version)
        assert tree.read_file("a")[1] == "one"
        assert restored.version != first.version
        assert [each.size for each in tree.file_history("a")] == [3, 3, 3]
        assert not tree.restore("a", restored.version).changed

    def test_a_deleted_file_is_invisible_and_can_be_brought_back(self, tree, texts):
        version = tree.put("d/a", "one").version
        tree.delete("d", recursive=True)
        assert texts(tree) == {}
        assert tree.snapshot().lookup("d") is None
        assert list(tree.snapshot().children()) == []
        assert [each.current for each in tree.file_history("d/a")] == [False]
        # A deleted path is no file and no folder.
        tree.put("d", "file")
        with pytest.raises(AlreadyExistsError):
            tree.restore("d/a", version)
        tree.delete("d")
        assert tree.restore("d/a", version).created
        assert texts(tree) == {"d/a": "one"}

    def test_a_move_takes_the_past_of_a_file_along(self, tree):
        old = tree.put("a", "1").version
        tree.put("a", "2")
        tree.put("b", "other")
        tree.delete("b")
        tree.move("a", "b")
        assert [each.size for each in tree.file_history("b")] == [1, 5, 1]
        with pytest.raises(NotFoundError):
            tree.file_history("a")
        assert tree.restore("b", old).size == 1

    def test_states_that_are_too_old_are_gone(self, tree, clock, storage):
        tree.put("a", "1")
        tree.put("a", "2")
        clock.go(days=91)
        tree.put("b", "1")
        assert [each.current for each in tree.file_history("a")] == [True]
        tree.collect_garbage()
        assert tree.snapshot().usage.history_bytes == 0
        tree.collect_garbage()
        assert len(keys(storage)) == 3

    def test_the_oldest_states_give_way_at_the_bound_in_bytes(self, storage, open_tree_on, clock):
        policy = HistoryPolicy(versions=50, max_bytes=2000)
        tree = open_tree_on(storage, history=policy, clock=clock)
        for number in range(20):
            tree.put(f"f{number % 4}", "x" * 200)
            tree.put(f"f{number % 4}", "y" * 200)
        assert 0 < tree.snapshot().usage.history_bytes <= 2000
        kept = [len(tree.file_history(f"f{n}")) - 1 for n in range(4)]
        assert sum(kept) == 2000 // 456
        tree.close()
        tree.collect_garbage()
        assert tree.verify().sound

    def test_history_gives_way_before_a_write_is_refused(self, storage, open_tree_on):
        limits = TreeLimits(max_total_bytes=1000)
        tree = open_tree_on(storage, history=HistoryPolicy(versions=9), limits=limits)
        tree.put("a", "x" * 300)
        tree.put("a", "y" * 300)
        assert tree.snapshot().usage.history_bytes > 0
        tree.put("b", "z" * 700)
        assert tree.snapshot().usage.history_bytes == 0
        with pytest.raises(LimitExceededError):
            tree.append("b", "z")

    def test_a_writer_without_history_keeps_none(self, tree, storage, open_tree_on):
        tree.put("a", "1")
        tree.put("a", "2")
        plain = open_tree_on(storage)
        assert len(plain.file_history("a")) == 2
        plain.put("a", "3")
        assert len(tree.file_history("a")) == 1
        plain.delete("a")
        with pytest.raises(NotFoundError):
            tree.file_history("a")

    def test_a_state_that_is_not_kept_cannot_be_restored(self, tree):
        first = tree.put("a", "0").version
        for number in range(1, 5):
            tree.put("a", str(number))
        for version in (first, "v99-abcdef", "nonsense"):
            with pytest.raises(NotFoundError):
                tree.restore("a", version)

    def test_all_of_it_survives_reopening_and_paging(self, storage, open_tree_on, texts):
        policy = HistoryPolicy(versions=4)
        tree = open_tree_on(storage, history=policy)
        for number in range(60):
            tree.put(f"d{number % 9}/f", f"text {number}")
        tree.close()
        tree.collect_garbage()
        other = open_tree_on(storage, history=policy)
        for number in range(9):
            versions = [each.version for each in other.file_history(f"d{number}/f")]
            assert len(versions) == 5
            snapshot = other.snapshot()
            read = [snapshot.read_past(f"d{number}/f", version) for version in versions]
            assert read == [f"text {n}" for n in range(59, -1, -1) if n % 9 == number][:5]


class TestRebuild:
    @pytest.fixture
    def files(self, tree):
        held = {}
        for number in range(25):
            held[f"d{number % 3}/{number:02}.md"] = f"text {number}\n"
        for path, text in held.items():
            tree.create(path, text)
        tree.edit("d0/00.md", [Edit(old_text="text", new_text="TEXT")])
        held["d0/00.md"] = "TEXT 0\n"
        return held

    def damage(self, storage, key):
        storage.inner.delete_if_version(key, storage.inner.get(key).version)

    def test_a_tree_without_its_root_is_made_from_its_contents(
        self, tree, files, storage, open_tree_on, texts
    ):
        before = tree.snapshot()
        old = before.lookup("d0/00.md")
        self.damage(storage, ROOT)
        other = open_tree_on(storage)
        assert not other.verify().sound
        report = other.verify(rebuild=True)
        assert (report.files, report.rebuilt) == (25, True)
        assert texts(other) == files
        assert other.verify().sound
        new = other.snapshot().lookup("d0/00.md")
        assert (new.size, new.lines, new.modified) == (old.size, old.lines, old.modified)
        # Nobody can tell what happened in between, so what was read before is stale.
        with pytest.raises(VersionConflictError):
            other.write("d0/00.md", "x", old.version)
        other.collect_garbage()
        assert texts(other) == files
        # The object that knew the old root goes on as well.
        tree.put("new", "x")
        assert texts(tree) == {**files, "new": "x"}

    def test_an_unreadable_root_is_replaced(self, tree, files, storage, open_tree_on, texts):
        storage.inner.put(ROOT, b"<html>", {})
        other = open_tree_on(storage)
        with pytest.raises(TreeStateError):
            other.put("x", "y")
        assert other.verify(rebuild=True).rebuilt
        assert texts(other) == files

    def test_a_page_that_is_gone_is_made_again_from_its_contents(
        self, tree, files, storage, open_tree_on, texts
    ):
        ref = tree.snapshot()._root.pages[2]
        self.damage(storage, f"@files/ada/{ref.key}")
        other = open_tree_on(storage)
        assert len(other.verify().problems) == 1
        other.verify(rebuild=True)
        assert texts(other) == files
        assert other.verify().sound

    def test_a_file_whose_content_is_gone_is_named_and_dropped(
        self, tree, files, storage, open_tree_on, texts
    ):
        entry = tree.snapshot().lookup("d1/01.md")
        self.damage(storage, f"@files/ada/{entry.key}")
        other = open_tree_on(storage)
        report = other.verify()
        assert report.lost == ("d1/01.md",)
        assert not report.rebuilt
        other.verify(rebuild=True)
        del files["d1/01.md"]
        assert texts(other) == files

    def test_a_file_in_the_place_of_a_folder_gets_another_name(
        self, tree, storage, open_tree_on, texts
    ):
        tree.create("a", "file")
        tree.move("a", "b")
        tree.create("a/x", "below")
        self.damage(storage, ROOT)
        other = open_tree_on(storage)
        report = other.verify(rebuild=True)
        assert report.renamed == (("a", "a.recovered"),)
        assert texts(other) == {"a.recovered": "file", "a/x": "below"}

    def test_a_sound_tree_is_not_touched(self, tree, files, storage):
        before = storage.inner.get(ROOT).version
        report = tree.verify(rebuild=True)
        assert (report.sound, report.rebuilt, report.files) == (True, False, 25)
        assert storage.inner.get(ROOT).version == before

    def test_a_tree_that_never_was_is_sound(self, tree):
        assert tree.verify(rebuild=True).sound

    def test_wrong_sums_are_found(self, tree, files, storage, open_tree_on):
        fields = json.loads(storage.inner.get(ROOT).data)
        fields["pages"][0][4] += 1
        storage.inner.put(ROOT, json.dumps(fields).encode(), {})
        other = open_tree_on(storage)
        assert "sums" in other.verify().problems[0]
        other.verify(rebuild=True)
        assert other.verify().sound


def test_times_never_go_back_whatever_the_clock_says(tree, clock):
    """item_156."""
    first = tree.create("a", "1")
    clock.go(days=-1)
    second = tree.create("b", "1")
    assert second.modified == first.modified
    clock.go(days=2)
    assert tree.put("a", "2").modified - first.modified > timedelta(hours=23)
