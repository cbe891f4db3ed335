"""Items 72 to 115 and 148 to 154: creating, appending, moving, editing, writing, deleting."""

from __future__ import annotations

import functools
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from wenchang.core import MemoryStore
from wenchang.files.errors import FileToolError, VersionConflictError
from wenchang.files.policy import TreePolicy
from wenchang.files.tools import render_error
from wenchang.files.tree import FileTree


def edit(old, new, **rest):
    return {"oldText": old, "newText": new, **rest}


def state(files):
    """Return text, version and time of each file."""
    return {
        entry.path: (files.text(entry.path), entry.version, entry.modified)
        for entry in files.tree.snapshot().walk()
    }


def at_once(*works):
    """Run each in a thread of its own, all begun before any goes on; return results or errors."""
    barrier = threading.Barrier(len(works), timeout=30)

    def run(work):
        barrier.wait()
        try:
            return work()
        except FileToolError as error:
            return error

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(run, works))


class TestCreating:
    """file_create."""

    @pytest.mark.servers
    @pytest.mark.parametrize("content", ["first\n", ""])
    def test_item_072_a_file_is_made_with_its_content_also_an_empty_one(self, files, content):
        made = files.call("file_create", path="n/a.md", content=content)
        assert (made["created"], made["changed"], made["size"]) == (True, True, len(content))
        assert files.text("n/a.md") == content
        assert made["version"] == files.version("n/a.md")
        files.refuse_argument("content", "file_create", path="b.md")

    def test_item_073_a_file_at_the_path_is_not_replaced(self, files):
        files.make({"a.md": "old"})
        refused = files.refuse("ALREADY_EXISTS", "file_create", path="a.md", content="new")
        assert (refused["path"], refused["kind"]) == ("a.md", "file")
        files.refuse("ALREADY_EXISTS", "file_create", path="a.md", content="old")

    def test_item_074_a_folder_at_the_path_is_told(self, files):
        files.make({"a/b.md": "x"})
        refused = files.refuse("ALREADY_EXISTS", "file_create", path="a", content="x")
        assert (refused["path"], refused["kind"]) == ("a", "folder")

    def test_item_075_a_file_cannot_have_files_beneath_it(self, files):
        files.make({"a.md": "x"})
        for path in ("a.md/b.md", "a.md/b/c/d.md"):
            refused = files.refuse("ALREADY_EXISTS", "file_create", path=path, content="x")
            assert (refused["path"], refused["kind"]) == ("a.md", "file")

    @pytest.mark.servers
    def test_item_076_of_two_creates_at_once_exactly_one_succeeds(self, files):
        rival = files.again()
        for number in range(5):
            path = f"{number}.md"
            results = at_once(
                functools.partial(files.call, "file_create", path=path, content="ours"),
                functools.partial(rival.call, "file_create", path=path, content="theirs"),
            )
            refused = [result for result in results if isinstance(result, FileToolError)]
            assert [error.code for error in refused] == ["ALREADY_EXISTS"]
            won = "ours" if isinstance(results[1], FileToolError) else "theirs"
            assert files.text(path) == won

    @pytest.mark.servers
    def test_item_076_a_file_and_a_folder_of_one_name_do_not_both_come_into_being(self, files):
        rival = files.again()
        results = at_once(
            lambda: files.call("file_create", path="a", content="x"),
            lambda: rival.call("file_create", path="a/b", content="x"),
        )
        assert sum(isinstance(result, FileToolError) for result in results) == 1
        assert len(files.paths()) == 1


class TestAppending:
    """file_append."""

    @pytest.mark.servers
    def test_item_077_text_is_added_at_the_end_or_makes_the_file(self, files):
        made = files.call("file_append", path="n/a.md", text="one\n")
        assert made["created"]
        again = files.call("file_append", path="n/a.md", text="two")
        assert not again["created"]
        assert again["size"] == 7
        assert files.text("n/a.md") == "one\ntwo"
        files.refuse_argument("text", "file_append", path="n/a.md")

    def test_item_078_nothing_comes_between(self, files):
        files.make({"a.md": "one"})
        files.call("file_append", path="a.md", text="two")
        files.call("file_append", path="a.md", text="\r")
        files.call("file_append", path="a.md", text="\n")
        assert files.text("a.md") == "onetwo\r\n"

    def test_item_079_it_takes_no_version(self, files):
        files.make({"a.md": "x"})
        files.refuse_argument("version", "file_append", path="a.md", text="y", version="v1")

    def test_item_080_twice_appends_twice(self, files):
        for _ in range(2):
            files.call("file_append", path="a.md", text="again ")
        assert files.text("a.md") == "again again "

    @pytest.mark.servers
    def test_item_081_what_many_append_at_once_is_there_once_and_whole(self, files):
        agents = [files, files.again(), files.again()]

        def work(number):
            agent = agents[number % 3]
            for turn in range(4):
                agent.call("file_append", path="log.md", text=f"<{number}.{turn}{'x' * 50}>\n")

        at_once(*(lambda number=number: work(number) for number in range(9)))
        lines = files.text("log.md").splitlines()
        expected = {f"<{n}.{t}{'x' * 50}>" for n in range(9) for t in range(4)}
        assert sorted(lines) == sorted(expected)
        for number in range(9):
            own = [line for line in lines if line.startswith(f"<{number}.")]
            assert own == sorted(own)

    def test_item_082_an_append_that_keeps_losing_is_refused_and_wrote_nothing(
        self, local, make_files
    ):
        local.make({"a.md": "start\n"})
        rival = FileTree(local.storage, f"@files/{local.entity}")

        class AlwaysBeaten:
            """Lets a rival commit before each root that is written through it."""

            def __init__(self):
                self.turns = 0

            def put_if_version(self, key, data, metadata, expected):
                if key.endswith("/root"):
                    self.turns += 1
                    rival.append("rival.md", f"{self.turns}\n")
                return local.storage.put_if_version(key, data, metadata, expected)

            def __getattr__(self, name):
                return getattr(local.storage, name)

        beaten = AlwaysBeaten()
        policy = TreePolicy(deadline=0.3, backoff_base=0.001, backoff_cap=0.01)
        files = make_files(beaten, local.entity, policy=policy)
        with pytest.raises(VersionConflictError) as caught:
            files.call("file_append", path="a.md", text="more\n")
        payload = render_error(caught.value)
        assert (payload["code"], payload["path"]) == ("VERSION_CONFLICT", "a.md")
        assert "version" not in payload
        assert beaten.turns > 1
        assert local.text("a.md") == "start\n"
        local.call("file_append", path="a.md", text="more\n")
        assert local.text("a.md") == "start\nmore\n"

    def test_item_083_a_folder_cannot_be_appended_to(self, files):
        files.make({"a/b.md": "x"})
        refused = files.refuse("ALREADY_EXISTS", "file_append", path="a", text="x")
        assert refused["kind"] == "folder"


class TestMoving:
    """file_move."""

    TREE = {"n/a.md": "a", "n/o/b.md": "b", "c.md": "c"}  # noqa: RUF012 - read only

    def test_item_084_a_file_is_moved_or_renamed(self, files):
        files.make(self.TREE)
        moved = files.call("file_move", from_="c.md", to="d.md")
        assert moved == {"from": "c.md", "to": "d.md", "kind": "file", "files": 1}
        files.call("file_move", from_="d.md", to="x/y/e.md")
        assert files.paths() == ["n/a.md", "n/o/b.md", "x/y/e.md"]
        assert files.text("x/y/e.md") == "c"

    @pytest.mark.servers
    def test_item_085_a_folder_is_moved_with_everything_in_it(self, files):
        files.make(self.TREE | {"n-1.md": "not in it"})
        moved = files.call("file_move", from_="n", to="m/k")
        assert moved == {"from": "n", "to": "m/k", "kind": "folder", "files": 2}
        assert files.paths() == ["c.md", "m/k/a.md", "m/k/o/b.md", "n-1.md"]
        assert files.text("m/k/o/b.md") == "b"

    def test_item_086_nothing_is_overwritten(self, files):
        files.make(self.TREE)
        for source in ("n/a.md", "n"):
            refused = files.refuse("ALREADY_EXISTS", "file_move", from_=source, to="c.md")
            assert (refused["path"], refused["kind"]) == ("c.md", "file")
        refused = files.refuse("ALREADY_EXISTS", "file_move", from_="c.md", to="n/o")
        assert (refused["path"], refused["kind"]) == ("n/o", "folder")
        files.make({"m/a.md": "x"})
        files.refuse("ALREADY_EXISTS", "file_move", from_="n", to="m")
        files.refuse("ALREADY_EXISTS", "file_move", from_="c.md", to="c.md")
        files.refuse("ALREADY_EXISTS", "file_move", from_="n", to="n")

    @pytest.mark.parametrize("root", ["", "/"])
    def test_item_087_the_root_cannot_be_moved(self, files, root):
        files.make(self.TREE)
        files.refuse_argument("from", "file_move", from_=root, to="x")

    @pytest.mark.parametrize("root", ["", "/"])
    def test_item_088_nothing_can_be_moved_onto_the_root(self, files, root):
        files.make(self.TREE)
        for source in ("c.md", "n"):
            files.refuse_argument("to", "file_move", from_=source, to=root)

    def test_item_089_a_folder_cannot_go_into_itself(self, files):
        files.make(self.TREE)
        for target in ("n/x", "n/o/x", "n/o"):
            payload = files.refuse_argument("to", "file_move", from_="n", to=target)
            assert "itself" in payload["message"]
        files.call("file_move", from_="n", to="n2")

    @pytest.mark.servers
    def test_item_090_content_version_and_time_are_kept(self, files):
        files.make(self.TREE)
        before = state(files)
        files.call("file_move", from_="n", to="m")
        files.call("file_move", from_="c.md", to="m/c.md")
        after = state(files)
        assert after["m/a.md"] == before["n/a.md"]
        assert after["m/o/b.md"] == before["n/o/b.md"]
        assert after["m/c.md"] == before["c.md"]

    def test_item_091_empty_folders_vanish_and_new_ones_appear(self, files):
        files.make({"n/o/b.md": "b"})
        files.call("file_move", from_="n/o/b.md", to="x/y/b.md")
        assert files.listed(depth=3) == ["x/", "x/y/", "x/y/b.md"]
        files.call("file_move", from_="x/y", to="y")
        assert files.listed(depth=3) == ["y/", "y/b.md"]
        for gone in ("n", "n/o", "x", "x/y"):
            files.refuse("NOT_FOUND", "file_list", path=gone)
            files.refuse("NOT_FOUND", "file_move", from_=gone, to="z")

    def test_item_092_a_move_that_lands_deeper_keeps_the_depth_limit(self, files):
        files.make({"a/b/c/d.md": "x", "e.md": "x", "f/g.md": "x"})
        files = files.again(max_depth=2)
        refused = files.refuse("LIMIT_EXCEEDED", "file_move", from_="e.md", to="1/2/3/e.md")
        assert (refused["limit"], refused["value"], refused["maximum"]) == ("maxDepth", 3, 2)
        files.refuse("LIMIT_EXCEEDED", "file_move", from_="f", to="1/2/f")
        files.refuse("LIMIT_EXCEEDED", "file_move", from_="a/b", to="x/y/b")
        files.refuse("LIMIT_EXCEEDED", "file_move", from_="a/b/c/d.md", to="a/b/c/d/e.md")
        files.call("file_move", from_="a/b/c/d.md", to="a/b/c/renamed.md")
        files.call("file_move", from_="a/b", to="a/z")
        files.call("file_move", from_="a", to="aa")
        files.call("file_move", from_="aa/z", to="z")
        files.call("file_move", from_="e.md", to="1/2/e.md")
        files.call("file_move", from_="f", to="3/f")
        assert files.paths() == ["1/2/e.md", "3/f/g.md", "z/c/renamed.md"]

    def test_item_092_of_a_moved_folder_the_deepest_file_counts(self, files):
        files.make({"a/b.md": "x", "a/c/d.md": "x", "a/e.md": "x"})
        files = files.again(max_depth=2)
        refused = files.refuse("LIMIT_EXCEEDED", "file_move", from_="a", to="n/a")
        assert (refused["limit"], refused["value"], refused["maximum"]) == ("maxDepth", 3, 2)
        files.call("file_delete", path="a/c/d.md")
        files.call("file_move", from_="a", to="n/a")
        assert files.paths() == ["n/a/b.md", "n/a/e.md"]

    def test_item_093_a_move_that_is_cut_off_anywhere_is_all_or_nothing(self, files, make_files):
        class Killed(BaseException):
            pass

        class Dying:
            """Ends the process, as it were, before or after a request."""

            def __init__(self, requests, after):
                self.left, self.after = requests, after

            def __getattr__(self, name):
                method = getattr(files.storage, name)

                def call(*arguments):
                    self.left -= 1
                    if self.left == 0 and not self.after:
                        raise Killed
                    result = method(*arguments)
                    if self.left == 0:
                        raise Killed
                    return result

                return call

        old = {f"n/{number:02}.md": str(number) for number in range(30)}
        new = {f"m/{path}": text for path, text in old.items()}
        files.make(old)
        seen = set()
        for requests in range(1, 20):
            for after in (False, True):
                dying = make_files(
                    Dying(requests, after), files.entity, policy=TreePolicy(parallel=1)
                )
                try:
                    dying.call("file_move", from_="n", to="m/n")
                    finished = True
                except Killed:
                    finished = False
                now = {path: text for path, (text, _, _) in state(files.again()).items()}
                assert now in (old, new)
                moved = now == new
                assert moved or not finished
                seen.add((finished, moved))
                if moved:
                    files.call("file_move", from_="m/n", to="n")
            if finished:
                break
        assert seen >= {(False, False), (False, True), (True, True)}

    @pytest.mark.servers
    def test_item_093_a_folder_that_is_written_to_moves_whole(self, files):
        files.make({f"n/{number}.md": "x" for number in range(10)})
        rival = files.again()

        def write():
            for number in range(10):
                try:
                    rival.call("file_append", path=f"n/{number}.md", text="y")
                except FileToolError:
                    return
            return

        at_once(lambda: files.call("file_move", from_="n", to="m"), write)
        left = [path for path in files.paths() if path.startswith("n/")]
        # An append after the move makes its file anew; the ones before it went along.
        assert len([path for path in files.paths() if path.startswith("m/")]) == 10
        assert all(files.text(path) == "y" for path in left)


class TestEditing:
    """file_edit."""

    def test_item_094_a_call_has_1_to_20_edits(self, files):
        files.make({"a.md": "".join(f"<{number}>" for number in range(21))})
        edits = [edit(f"<{number}>", f"{number},") for number in range(21)]
        files.refuse_argument("edits", "file_edit", path="a.md", edits=[])
        files.refuse_argument("edits", "file_edit", path="a.md", edits=edits)
        files.refuse_argument("edits", "file_edit", path="a.md")
        edited = files.call("file_edit", path="a.md", edits=edits[:20])
        assert edited["replacements"] == 20
        assert files.text("a.md") == "".join(f"{number}," for number in range(20)) + "<20>"

    @pytest.mark.parametrize(
        ("old", "unlike"),
        [
            ("one\r\ntwo", "one\ntwo"),
            ("  indented", "    indented"),
            ("a.c", "abc"),
            ("Case", "case"),
            ("tab\there", "tab here"),
            ("two\n\nthree", "two\nthree"),
            ("\u00e9", "e\u0301"),
        ],
    )
    def test_item_095_old_text_is_literal_down_to_spaces_and_line_breaks(self, files, old, unlike):
        files.make({"a.md": f"before {old} after"})
        files.refuse("EDIT_MATCH", "file_edit", path="a.md", edits=[edit(unlike, "x")])
        files.call("file_edit", path="a.md", edits=[edit(old, "new")])
        assert files.text("a.md") == "before new after"

    def test_item_096_old_text_occurs_exactly_once_unless_all_are_replaced(self, files):
        files.make({"a.md": "x y x"})
        refused = files.refuse("EDIT_MATCH", "file_edit", path="a.md", edits=[edit("x", "z")])
        assert (refused["edit"], refused["count"]) == (0, 2)
        edits = [edit("x", "z", replaceAll=False)]
        files.refuse("EDIT_MATCH", "file_edit", path="a.md", edits=edits)
        edits = [edit("x", "z", replaceAll=True)]
        assert files.call("file_edit", path="a.md", edits=edits)["replacements"] == 2
        assert files.text("a.md") == "z y z"
        files.refuse("EDIT_MATCH", "file_edit", path="a.md", edits=edits)

    def test_item_097_an_empty_new_text_deletes(self, files):
        files.make({"a.md": "one\ntwo\nthree\n"})
        files.call("file_edit", path="a.md", edits=[edit("two\n", "")])
        assert files.text("a.md") == "one\nthree\n"

    @pytest.mark.servers
    def test_item_098_each_edit_sees_what_the_ones_before_left(self, files):
        files.make({"a.md": "one"})
        edits = [edit("one", "two two"), edit("two two", "three"), edit("three", "four")]
        files.call("file_edit", path="a.md", edits=edits)
        assert files.text("a.md") == "four"

    def test_item_099_one_failing_edit_means_none(self, files):
        files.make({"a.md": "one two"})
        before = state(files)
        edits = [edit("one", "1"), edit("two", "2"), edit("three", "3")]
        files.refuse("EDIT_MATCH", "file_edit", path="a.md", edits=edits)
        assert state(files) == before

    def test_item_100_the_refusal_says_which_edit_and_how_often_it_was_found(self, files):
        files.make({"a.md": "x x x y"})
        for edits, index, count in (
            ([edit("y", "z"), edit("x", "1")], 1, 3),
            ([edit("gone", "1"), edit("x", "1")], 0, 0),
            ([edit("y", "x"), edit("x", "1")], 1, 4),
        ):
            refused = files.refuse("EDIT_MATCH", "file_edit", path="a.md", edits=edits)
            assert (refused["path"], refused["edit"], refused["count"]) == ("a.md", index, count)

    def test_item_101_a_call_replaces_at_most_100000_occurrences(self, files):
        files.make({"a.md": "x" * 60_000 + "y" * 40_001})
        before = state(files)
        edits = [edit("x", "1", replaceAll=True), edit("y", "2", replaceAll=True)]
        refused = files.refuse("LIMIT_EXCEEDED", "file_edit", path="a.md", edits=edits)
        assert (refused["value"], refused["maximum"]) == (100_001, 100_000)
        assert "file_write" in refused["message"]
        assert state(files) == before
        files.make({"b.md": "x" * 60_000 + "y" * 40_000})
        assert files.call("file_edit", path="b.md", edits=edits)["replacements"] == 100_000

    def test_item_102_a_stale_version_is_refused_a_current_or_none_is_not(self, files):
        files.make({"a.md": "one"})
        old = files.version("a.md")
        files.call("file_edit", path="a.md", edits=[edit("one", "two")], version=old)
        refused = files.refuse(
            "VERSION_CONFLICT", "file_edit", path="a.md", edits=[edit("two", "3")], version=old
        )
        assert (refused["version"], refused["content"]) == (files.version("a.md"), "two")
        files.call("file_edit", path="a.md", edits=[edit("two", "three")])
        assert files.text("a.md") == "three"

    @pytest.mark.servers
    def test_item_103_a_file_or_line_too_large_to_read_can_be_edited(self, files):
        files.make({"a.md": "x" * 300_000 + "needle" + "y" * 300_000})
        files.refuse("LIMIT_EXCEEDED", "file_read", path="a.md")
        files.call("file_edit", path="a.md", edits=[edit("needle", "found")])
        assert files.text("a.md") == "x" * 300_000 + "found" + "y" * 300_000

    def test_item_104_an_empty_old_text_is_refused(self, files):
        files.make({"a.md": "x"})
        for edits in ([edit("", "y")], [edit("x", "y"), edit("", "z", replaceAll=True)]):
            files.refuse_argument("edits", "file_edit", path="a.md", edits=edits)


class TestWriting:
    """file_write."""

    def test_item_105_without_a_version_it_only_creates(self, files):
        made = files.call("file_write", path="n/a.md", content="one")
        assert made["created"]
        files.refuse("ALREADY_EXISTS", "file_write", path="n/a.md", content="two")
        files.refuse("ALREADY_EXISTS", "file_write", path="n/a.md", content="one", version=None)
        files.refuse("ALREADY_EXISTS", "file_write", path="n", content="x")

    @pytest.mark.servers
    def test_item_106_with_a_version_it_replaces_that_version_only(self, files):
        files.make({"a.md": "one"})
        old = files.version("a.md")
        written = files.call("file_write", path="a.md", content="two", version=old)
        assert (written["created"], written["version"]) == (False, files.version("a.md"))
        refused = files.refuse(
            "VERSION_CONFLICT", "file_write", path="a.md", content="three", version=old
        )
        assert (refused["path"], refused["content"]) == ("a.md", "two")
        assert refused["version"] == written["version"]
        files.call("file_write", path="a.md", content="three", version=refused["version"])

    def test_item_106_a_conflict_shows_content_up_to_16_kib(self, files):
        files.make({"a.md": "x" * 16_384, "b.md": "x" * 16_385})
        for path, shown in (("a.md", True), ("b.md", False)):
            refused = files.refuse(
                "VERSION_CONFLICT", "file_write", path=path, content="y", version="v0"
            )
            assert ("content" in refused) == shown

    def test_item_107_with_a_version_and_no_file_it_is_not_found(self, files):
        refused = files.refuse("NOT_FOUND", "file_write", path="a.md", content="x", version="v1")
        assert refused["path"] == "a.md"

    @pytest.mark.parametrize(
        "text", ["\ufeffBOM\r\nlone\rend", "", "no end", "\n\n", "é e\u0301 林"]
    )
    def test_item_108_the_whole_content_is_replaced_byte_for_byte(self, files, text):
        files.make({"a.md": "something longer than what comes\n"})
        files.call("file_write", path="a.md", content=text, version=files.version("a.md"))
        snapshot = files.again().tree.snapshot()
        assert snapshot.read_bytes(snapshot.lookup("a.md")) == text.encode()


class TestDeleting:
    """file_delete."""

    def test_item_109_one_file_is_deleted(self, files):
        files.make({"a.md": "x", "b.md": "x"})
        gone = files.call("file_delete", path="a.md")
        assert gone == {"path": "a.md", "kind": "file", "files": 1}
        assert files.paths() == ["b.md"]
        files.call("file_delete", path="b.md", recursive=True)

    @pytest.mark.servers
    def test_item_110_a_folder_goes_with_everything_only_if_recursive(self, files):
        files.make({"n/a.md": "x", "n/o/b.md": "x", "n0.md": "x"})
        files.refuse_argument("recursive", "file_delete", path="n", recursive=False)
        gone = files.call("file_delete", path="n", recursive=True)
        assert gone == {"path": "n", "kind": "folder", "files": 2}
        assert files.paths() == ["n0.md"]

    def test_item_111_a_folder_without_it_is_refused_with_its_entries(self, files):
        files.make({"n/a.md": "x", "n/o/b.md": "x", "n/o/c.md": "x"})
        refused = files.refuse_argument("recursive", "file_delete", path="n")
        assert refused["entries"] == 2
        assert "2 entries" in refused["message"]

    @pytest.mark.parametrize("recursive", [False, True])
    def test_item_112_the_root_cannot_be_deleted(self, files, recursive):
        files.make({"a.md": "x"})
        for root in ("", "/"):
            files.refuse_argument("path", "file_delete", path=root, recursive=recursive)
        files.refuse_argument("path", "file_delete", recursive=recursive)

    def test_item_113_a_folder_left_empty_disappears(self, files):
        files.make({"n/o/a.md": "x", "b.md": "x"})
        files.call("file_delete", path="n/o/a.md")
        assert files.listed(depth=5) == ["b.md"]
        for gone in ("n", "n/o"):
            files.refuse("NOT_FOUND", "file_list", path=gone)
            files.refuse("NOT_FOUND", "file_delete", path=gone, recursive=True)
        files.make({"n/o/a.md": "x", "n/c.md": "x"})
        files.call("file_delete", path="n/o", recursive=True)
        assert files.listed(depth=5) == ["b.md", "n/", "n/c.md"]

    def test_item_114_nothing_there_is_not_found(self, files):
        files.make({"a.md": "x"})
        for recursive in (False, True):
            refused = files.refuse("NOT_FOUND", "file_delete", path="b.md", recursive=recursive)
            assert refused["path"] == "b.md"
        files.refuse("NOT_FOUND", "file_delete", path="a.md/b")

    def test_item_115_a_version_is_taken_and_a_stale_one_refused(self, files):
        files.make({"a.md": "one"})
        old = files.version("a.md")
        files.call("file_append", path="a.md", text="!")
        refused = files.refuse("VERSION_CONFLICT", "file_delete", path="a.md", version=old)
        assert refused["content"] == "one!"
        files.call("file_delete", path="a.md", version=refused["version"])
        assert files.paths() == []
        files.make({"b.md": "x"})
        refused = files.refuse("VERSION_CONFLICT", "file_move", from_="b.md", to="c", version=old)
        files.call("file_move", from_="b.md", to="c.md", version=refused["version"])


class TestVersions:
    """Version tokens."""

    def test_item_116_read_list_and_find_show_one_token(self, files):
        made = files.call("file_create", path="n/a.md", content="x")
        tokens = {
            made["version"],
            files.call("file_read", path="n/a.md")["files"][0]["version"],
            files.call("file_list", path="n")["entries"][0]["version"],
            files.call("file_find", pattern="*")["files"][0]["version"],
            files.call("file_search", text="x")["files"][0]["version"],
        }
        assert len(tokens) == 1
        assert tokens.pop().startswith("v")
        for tool, arguments in (
            ("file_read", {"path": "n/a.md"}),
            ("file_list", {"path": "n"}),
            ("file_find", {"pattern": "*"}),
        ):
            assert made["version"] in files.answer(tool, **arguments).text

    def test_item_117_the_token_changes_with_the_content_and_not_with_a_move(self, files):
        seen = [files.call("file_create", path="a.md", content="one")["version"]]
        seen.append(files.call("file_append", path="a.md", text=" two")["version"])
        seen.append(files.call("file_edit", path="a.md", edits=[edit("two", "2")])["version"])
        written = files.call("file_write", path="a.md", content="one", version=seen[-1])
        seen.append(written["version"])
        same_size = files.call("file_edit", path="a.md", edits=[edit("one", "two")])
        seen.append(same_size["version"])
        assert len(set(seen)) == 5
        files.call("file_move", from_="a.md", to="b.md")
        assert files.version("b.md") == seen[-1]

    def test_item_118_a_stale_token_is_always_refused(self, files):
        files.make({"a.md": "one two"})
        old = files.version("a.md")
        files.call("file_edit", path="a.md", edits=[edit("one", "1")])
        for tool, rest in (
            ("file_edit", {"edits": [edit("two", "2")]}),
            ("file_write", {"content": "1 two"}),
            ("file_delete", {}),
        ):
            files.refuse("VERSION_CONFLICT", tool, path="a.md", version=old, **rest)
        files.refuse("VERSION_CONFLICT", "file_move", from_="a.md", to="b.md", version=old)
        now = files.version("a.md")
        for token in ("v0", "v", "null", f"{now}x", now[:-1], now.upper(), "V1"):
            files.refuse("VERSION_CONFLICT", "file_delete", path="a.md", version=token)

    @pytest.mark.servers
    def test_item_119_a_token_from_before_a_delete_is_stale_for_ever(self, files):
        old = files.call("file_create", path="a.md", content="same")["version"]
        files.call("file_delete", path="a.md")
        new = files.call("file_create", path="a.md", content="same")["version"]
        assert new != old
        files.refuse("VERSION_CONFLICT", "file_write", path="a.md", content="x", version=old)
        files.call("file_move", from_="a.md", to="b.md")
        files.make({"a.md": "same"})
        for token in (old, new):
            files.refuse("VERSION_CONFLICT", "file_write", path="a.md", content="x", version=token)
        files.tree.purge()
        files.make({"a.md": "same"})
        files.refuse("VERSION_CONFLICT", "file_write", path="a.md", content="x", version=old)

    @pytest.mark.servers
    def test_item_119_a_purge_of_the_account_leaves_nothing_and_makes_every_token_stale(
        self, files
    ):
        files.make({f"n/{number}.md": "x" for number in range(20)})
        old = {path: files.version(path) for path in files.paths()}
        assert MemoryStore(files.storage).purge("user", files.entity) > 20
        assert list(files.storage.list_page("@files/", None, 10)) == []
        assert files.paths() == []
        files.make(dict.fromkeys(old, "x"))
        assert not set(old.values()) & {files.version(path) for path in files.paths()}
        for tool, arguments in (("file_write", {"content": "y"}), ("file_delete", {})):
            files.refuse(
                "VERSION_CONFLICT", tool, path="n/3.md", version=old["n/3.md"], **arguments
            )


class TestWhatIsDecided:
    """Items 148 to 154."""

    def test_item_148_a_file_is_no_folder_on_the_way_and_a_folder_no_file(self, files):
        files.make({"a.md": "x", "n/b.md": "x"})
        for tool, arguments in (
            ("file_create", {"path": "a.md/x", "content": "x"}),
            ("file_append", {"path": "a.md/x", "text": "x"}),
            ("file_write", {"path": "a.md/x", "content": "x"}),
            ("file_move", {"from": "n/b.md", "to": "a.md/x"}),
            ("file_move", {"from": "n", "to": "a.md/x/y"}),
        ):
            refused = files.refuse("ALREADY_EXISTS", tool, **arguments)
            assert (refused["path"], refused["kind"]) == ("a.md", "file")
        for tool, arguments in (
            ("file_read", {"path": "n"}),
            ("file_read", {"paths": ["n"]}),
            ("file_edit", {"path": "n", "edits": [edit("x", "y")]}),
        ):
            refused = files.refuse("NOT_FOUND", tool, **arguments)
            assert "is a folder" in refused["message"]
        files.refuse("ALREADY_EXISTS", "file_write", path="n", content="x")

    def test_item_149_overlapping_occurrences_count_and_all_go_left_to_right(self, files):
        files.make({"a.md": "aaa"})
        refused = files.refuse("EDIT_MATCH", "file_edit", path="a.md", edits=[edit("aa", "b")])
        assert refused["count"] == 2
        edits = [edit("aa", "b", replaceAll=True)]
        assert files.call("file_edit", path="a.md", edits=edits)["replacements"] == 1
        assert files.text("a.md") == "ba"

    @pytest.mark.servers
    def test_item_150_a_call_that_changes_nothing_commits_nothing(self, files):
        files.make({"a.md": "one"})
        before, root = state(files), files.tree.snapshot().version
        for tool, arguments in (
            ("file_append", {"text": ""}),
            ("file_edit", {"edits": [edit("one", "one")]}),
            ("file_edit", {"edits": [edit("one", "two"), edit("two", "one")]}),
            ("file_write", {"content": "one", "version": files.version("a.md")}),
        ):
            done = files.call(tool, path="a.md", **arguments)
            assert (done["changed"], done["version"]) == (False, before["a.md"][1])
        assert state(files) == before
        assert files.tree.snapshot().version == root

    def test_item_151_a_folder_has_no_version(self, files):
        files.make({"n/a.md": "x"})
        version = files.version("n/a.md")
        files.refuse_argument("version", "file_move", from_="n", to="m", version=version)
        files.refuse_argument("version", "file_delete", path="n", recursive=True, version=version)
        files.refuse_argument("version", "file_write", path="n", content="x", version=version)
        edits = [edit("x", "y")]
        files.refuse_argument("version", "file_edit", path="n", edits=edits, version=version)

    def test_item_152_direct_entries_are_counted(self, files):
        files.make({f"n/o/{number}.md": "x" for number in range(5)} | {"n/a.md": "x", "p/q.md": ""})
        for folder, entries in (("n", 2), ("n/o", 5), ("p", 1)):
            refused = files.refuse_argument("recursive", "file_delete", path=folder)
            assert refused["entries"] == entries

    def test_item_153_depth_is_the_number_of_folders_above_the_file(self, files):
        files = files.again(max_depth=1)
        files.call("file_create", path="a.md", content="")
        files.call("file_create", path="n/a.md", content="")
        refused = files.refuse("LIMIT_EXCEEDED", "file_create", path="n/o/a.md", content="")
        assert (refused["value"], refused["maximum"]) == (2, 1)
        assert files.call("file_list")["limits"]["maxDepth"]["used"] == 1

    def test_item_154_what_a_call_does_not_raise_never_refuses_it(self, files):
        files.make({"n/o/p/big.md": "x" * 100, "a.md": "y" * 100})
        files = files.again(max_depth=1, max_file_bytes=10, max_total_bytes=50, max_file_count=1)
        files.call("file_edit", path="a.md", edits=[edit("y", "z", replaceAll=True)])
        files.call("file_edit", path="n/o/p/big.md", edits=[edit("x" * 50, "", replaceAll=True)])
        files.call("file_append", path="a.md", text="")
        files.call("file_write", path="a.md", content="z" * 99, version=files.version("a.md"))
        files.call("file_move", from_="a.md", to="b.md")
        files.refuse("LIMIT_EXCEEDED", "file_append", path="b.md", text="!")
        files.call("file_delete", path="b.md")
