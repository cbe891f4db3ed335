"""Single rules of the tree: limits that were lowered, what a race leaves behind, hostile arguments."""

from __future__ import annotations

import copy
import pickle

import pytest

from wenchang.errors import BackendUnavailableError
from wenchang.files._calls import Move, Put
from wenchang.files._jobs import Job
from wenchang.files.edits import Edit
from wenchang.files.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    LimitExceededError,
    NotFoundError,
    StaleSnapshotError,
    TreeStateError,
    VersionConflictError,
)
from wenchang.files.limits import TreeLimits
from wenchang.files.policy import HistoryPolicy, TreePolicy
from wenchang.files.tree import FileTree
from wenchang.files.values import Written


class TestLoweredLimits:
    def test_what_a_call_does_not_raise_never_refuses_it(self, storage, open_tree_on):
        """item_131, item_154."""
        big = open_tree_on(storage)
        for path in ("a/b/c/d/e", "a/b/c/d/f", "g"):
            big.create(path, "x" * 50)
        tree = open_tree_on(
            storage,
            limits=TreeLimits(max_depth=1, max_file_bytes=10, max_total_bytes=20, max_file_count=1),
        )
        assert tree.edit("a/b/c/d/e", [Edit(old_text="x" * 50, new_text="y" * 50)]).size == 50
        assert tree.put("g", "z" * 49).size == 49
        for act in (lambda: tree.append("g", "zz"), lambda: tree.put("g", "z" * 50)):
            with pytest.raises(LimitExceededError) as refused:
                act()
            assert refused.value.limit == "maxFileBytes"
        with pytest.raises(LimitExceededError) as refused:
            tree.create("h", "")
        assert (refused.value.limit, refused.value.maximum) == ("maxFileCount", 1)
        assert tree.delete("g").files == 1

    def test_files_too_deep_move_anywhere_that_is_not_deeper(self, storage, open_tree_on):
        """item_092, item_130."""
        open_tree_on(storage).create("a/b/c/d", "x")
        tree = open_tree_on(storage, limits=TreeLimits(max_depth=1))
        assert tree.move("a/b/c/d", "a/b/c/e").files == 1
        assert tree.move("a/b/c", "z/y/x").files == 1
        with pytest.raises(LimitExceededError) as refused:
            tree.move("z/y/x", "z/y/w/v")
        assert (refused.value.limit, refused.value.value) == ("maxDepth", 4)
        assert tree.move("z/y/x/e", "e").files == 1
        assert tree.move("e", "d/e").files == 1
        with pytest.raises(LimitExceededError):
            tree.move("d", "d2/d")

    def test_a_path_that_a_move_would_make_too_long_refuses_it(self, tree):
        name = "n" * 200
        tree.create(f"a/{name}/{'m' * 100}", "x")
        with pytest.raises(InvalidArgumentError) as refused:
            tree.move("a", "b" * 150)
        assert refused.value.argument == "to"

    @pytest.mark.parametrize(
        "limits", [TreeLimits(max_file_bytes=10), TreeLimits(max_total_bytes=10)]
    )
    def test_a_limit_in_bytes_counts_utf8_and_is_inclusive(self, storage, open_tree_on, limits):
        """item_128, item_132."""
        tree = open_tree_on(storage, limits=limits)
        assert tree.create("a", "é" * 5).size == 10
        with pytest.raises(LimitExceededError) as refused:
            tree.append("a", "é")
        assert (refused.value.value, refused.value.maximum) == (12, 10)


class TestRaces:
    def test_a_writer_whose_root_is_out_of_date_takes_the_new_one(self, storage, open_tree_on):
        policy = TreePolicy(parallel=1, cleanup_after=1)
        tree, other = open_tree_on(storage, policy), open_tree_on(storage, policy)
        tree.create("a", "0")
        late = open_tree_on(storage, policy)
        late.snapshot()
        other.read_file("a")
        other.put("a", "1")
        # What the late one's root refers to has been removed.
        assert late.append("a", "2").size == 2
        assert late.read_file("a")[1] == "12"

    def test_a_failure_in_the_middle_of_a_call_leaves_nothing_of_it(
        self, hooked, open_tree_on, texts
    ):
        failures = 0
        for number in range(200):
            storage = hooked()
            tree = open_tree_on(storage)
            for name in range(9):
                tree.create(f"a/{name}", "x")
            held = texts(tree)
            # No page is kept, so each is read again whenever it is needed.
            policy = TreePolicy(parallel=1, page_cache_bytes=0, page_entries=4, inline_entries=3)
            cold = open_tree_on(storage, policy)
            pages = iter(range(1000))
            storage.fault = lambda method, key, pages=pages, number=number: (
                "down"
                if method == "get" and key[-5:] != "/root" and next(pages) == number
                else None
            )
            move = Job(request=Move(path="a", target="b").checked(None), deadline=100.0)
            put = Job(request=Put(path="c", text="c").checked(None), deadline=100.0)
            cold._committer.commit([move, put])
            storage.fault = lambda _m, _k: None
            assert tree.verify().sound
            if move.error is None:
                break
            failures += 1
            assert move.error.outcome == "not_applied"
            assert texts(tree) == ({**held, "c": "c"} if put.error is None else held)
        assert failures > 10

    def test_after_a_lost_answer_nothing_is_removed(self, storage, open_tree_on):
        tree = open_tree_on(storage, TreePolicy(parallel=1))
        tree.put("a", "1")
        once = iter(["lost"])
        storage.fault = lambda method, key: (
            next(once, None) if (method, key[-5:]) == ("put_if_version", "/root") else None
        )
        tree.put("a", "2")
        tree.close()
        assert len(storage.inner.list_page("", None, 100)) == 3
        tree.put("a", "3")
        tree.close()
        assert len(storage.inner.list_page("", None, 100)) == 3

    def test_a_commit_that_was_ambiguous_once_is_never_taken_for_a_lost_race(
        self, storage, open_tree_on, monkeypatch
    ):
        monkeypatch.setattr("wenchang.files._working.LOG_LENGTH", 3)
        tree, rival = open_tree_on(storage), open_tree_on(storage.inner)
        tree.create("a", "0")
        tries = iter(range(10))

        def fault(method, key):
            if (method, key[-5:]) != ("put_if_version", "/root"):
                return None
            if next(tries) == 0:
                return "late"
            # The first attempt arrives after all, and others outrun the log before the second.
            storage.deliver()
            for number in range(5):
                rival.put("b", str(number))
            return None

        storage.fault = fault
        with pytest.raises(BackendUnavailableError) as failed:
            tree.append("a", "1")
        assert failed.value.outcome == "unknown"
        storage.fault = lambda _m, _k: None
        assert tree.read_file("a")[1] == "01"

    def test_of_two_contents_of_a_path_the_metadata_tell_which_is_newer(
        self, storage, open_tree_on
    ):
        policy = TreePolicy(parallel=1, cleanup_after=1000)
        tree, rival = open_tree_on(storage, policy), open_tree_on(storage, policy)
        tree.create("a", "0")
        rival.snapshot()
        tree.snapshot()
        rival.put("a", "rival")
        # Its first upload carries the number that the rival has taken meanwhile.
        tree.put("a", "mine")
        numbers = {
            int(each.metadata["version"][1:].partition("-")[0]): storage.inner.get(each.key).data
            for each in storage.inner.list_page("", None, 100)
            if each.metadata.get("path") == "a" and storage.inner.get(each.key).data != b"0"
        }
        assert numbers[max(numbers)] == b"mine"
        key = "@files/ada/root"
        storage.inner.delete_if_version(key, storage.inner.get(key).version)
        open_tree_on(storage).verify(rebuild=True)
        assert tree.read_file("a")[1] == "mine"


class TestArguments:
    @pytest.mark.parametrize("text", ["a\0b", "\ud800", b"bytes", None], ids=ascii)
    def test_text_that_no_file_holds_is_refused_and_nothing_is_sent(self, text, tree, storage):
        """item_134, item_135."""
        for act in (tree.create, tree.put, tree.append):
            with pytest.raises(InvalidArgumentError):
                act("a", text)
        with pytest.raises(InvalidArgumentError):
            tree.edit("a", [Edit(old_text="x", new_text=text)])
        assert storage.calls == []

    @pytest.mark.parametrize("text", ["\ufeffa\r\nb\rc", "", "\n", "no end", "\x01\x7f\u2028"])
    def test_text_comes_back_as_it_was_sent(self, text, tree, open_tree_on, storage):
        """item_072, item_133."""
        tree.create("a", text)
        assert open_tree_on(storage).read_file("a")[1] == text

    def test_the_root_is_refused_wherever_a_file_or_folder_is_wanted(self, tree):
        """item_087, item_088, item_112."""
        tree.create("a", "x")
        for act in (
            lambda root: tree.create(root, "x"),
            lambda root: tree.move(root, "b"),
            lambda root: tree.move("a", root),
            lambda root: tree.delete(root, recursive=True),
            tree.file_history,
            tree.read_file,
        ):
            for root in ("", "/"):
                with pytest.raises(InvalidArgumentError):
                    act(root)

    def test_a_version_with_a_folder_is_refused(self, tree):
        """item_151."""
        version = tree.create("d/a", "x").version
        for act in (
            lambda: tree.delete("d", recursive=True, version=version),
            lambda: tree.move("d", "e", version),
            lambda: tree.write("d", "x", version),
            lambda: tree.edit("d", [Edit(old_text="x", new_text="y")], version),
        ):
            with pytest.raises(InvalidArgumentError) as refused:
                act()
            assert refused.value.argument == "version"
        assert tree.move("d/a", "d/b", version).files == 1
        with pytest.raises(VersionConflictError):
            tree.delete("d/b", version="v9-aaaaaa")
        assert tree.delete("d/b", version=version).files == 1

    def test_a_folder_is_deleted_only_recursively_and_the_refusal_counts_its_entries(self, tree):
        """item_111, item_152."""
        for path in ("d/a", "d/b/1", "d/b/2", "d/c/1/2"):
            tree.create(path, "x")
        with pytest.raises(InvalidArgumentError) as refused:
            tree.delete("d")
        assert (refused.value.argument, refused.value.entries) == ("recursive", 3)

    def test_a_conflict_carries_the_present_text_and_version(self, tree):
        old = tree.create("a", "1").version
        new = tree.put("a", "2").version
        for version in (old, "v2", new.upper(), new + "\n", "0"):
            with pytest.raises(VersionConflictError) as refused:
                tree.write("a", "3", version)
            assert (refused.value.version, refused.value.content) == (new, "2")

    def test_a_version_is_stale_after_delete_and_create(self, tree):
        """item_119."""
        old = tree.create("a", "1").version
        tree.delete("a")
        with pytest.raises(NotFoundError):
            tree.write("a", "2", old)
        tree.create("a", "1")
        with pytest.raises(VersionConflictError):
            tree.write("a", "2", old)

    def test_a_file_is_not_moved_below_itself(self, tree):
        """item_089, item_148."""
        tree.create("a", "x")
        tree.create("d/e", "x")
        for source, target in (("d", "d/f"), ("a", "a/b")):
            with pytest.raises(InvalidArgumentError):
                tree.move(source, target)
        with pytest.raises(AlreadyExistsError) as refused:
            tree.move("d", "a/d")
        assert (refused.value.path, refused.value.kind) == ("a", "file")
        with pytest.raises(AlreadyExistsError):
            tree.move("a", "a")

    def test_a_base_that_leaves_no_room_for_keys_is_refused(self, storage):
        with pytest.raises(ValueError, match="base"):
            FileTree(storage, "b" * 850)
        with pytest.raises(ValueError, match="slash"):
            FileTree(storage, "a/")

    def test_settings_that_mean_nothing_are_refused(self):
        for make in (
            lambda: HistoryPolicy(versions=0),
            lambda: HistoryPolicy(versions=101),
            lambda: TreePolicy(batch=0),
            lambda: TreePolicy(deadline=0),
            lambda: TreePolicy(page_entries=1),
            lambda: TreeLimits(max_depth=21),
        ):
            with pytest.raises(ValueError, match="must"):
                make()

    def test_two_trees_of_one_storage_share_nothing(self, storage, open_tree_on, texts):
        """item_001."""
        one, two = open_tree_on(storage), open_tree_on(storage, base="@files/ad")
        one.create("a", "1")
        two.create("a", "2")
        two.purge(remove_root=True)
        one.collect_garbage()
        assert texts(one) == {"a": "1"}
        assert texts(two) == {}


def test_errors_survive_copy_and_pickle_and_say_no_key():
    for error in (
        TreeStateError("missing_object"),
        StaleSnapshotError("inc/1/secret"),
        VersionConflictError("a", "v1-x", "text"),
        InvalidArgumentError("path", "no", entries=3),
    ):
        for twin in (copy.copy(error), pickle.loads(pickle.dumps(error))):
            assert type(twin) is type(error)
            assert twin.__dict__ == error.__dict__
            assert str(twin) == str(error)
        assert "secret" not in str(error)


def test_what_a_call_came_to_names_size_lines_and_whether_it_made_the_file(tree):
    """item_041."""
    made = tree.append("a", "one\ntwo")
    assert (made.size, made.lines, made.created, made.changed) == (7, 2, True, True)
    more = tree.append("a", "\n")
    assert (more.size, more.lines, more.created) == (8, 2, False)
    assert isinstance(tree.create("empty", ""), Written)
    assert tree.snapshot().lookup("empty").lines == 0


def test_among_files_of_one_time_the_path_decides_over_all_pages(storage, open_tree_on, clock):
    """item_143."""
    start = clock()
    now = [start]
    tree = open_tree_on(storage, clock=lambda: now[0])
    for number in range(12):
        tree.create(f"{number:02}", "x")
    now[0] = clock()
    tree.put("09", "y")
    assert len(tree.snapshot()._root.pages) > 2
    shown = [entry.path for entry in tree.snapshot().walk_modified()]
    assert shown == ["09", *(f"{number:02}" for number in range(12) if number != 9)]
