"""Every fixed text of the memory tool, and what the tool does with what nobody should send."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

pytest.importorskip("anthropic", reason="the extra anthropic is not installed here")

from anthropic.tools import ToolError
from anthropic.types.beta import BetaMemoryTool20250818CreateCommand as CreateCommand
from anthropic.types.beta import BetaMemoryTool20250818DeleteCommand as DeleteCommand
from anthropic.types.beta import BetaMemoryTool20250818InsertCommand as InsertCommand
from anthropic.types.beta import BetaMemoryTool20250818RenameCommand as RenameCommand
from anthropic.types.beta import BetaMemoryTool20250818StrReplaceCommand as StrReplaceCommand
from anthropic.types.beta import BetaMemoryTool20250818ViewCommand as ViewCommand

from wenchang.adapters import _folders
from wenchang.adapters.anthropic import WenchangAsyncMemoryTool, WenchangMemoryTool
from wenchang.files._patience import Patience
from wenchang.files.limits import TreeLimits
from wenchang.files.policy import TreePolicy
from wenchang.files.state_backend import StateFileBackend
from wenchang.files.store_backend import StoreFileBackend, StoreFileBackends
from wenchang.files.tree import FileTree

A = "/memories/a.md"


@pytest.fixture(params=["sync", "async"])
def call(request, files):
    """Calls a command of the tool: what it returns, or the text of its `ToolError`."""
    return caller(request.param, files)


def caller(kind, files):
    def call(command, **fields):
        try:
            if kind == "sync":
                return WenchangMemoryTool(files).call({"command": command, **fields})
            return asyncio.run(WenchangAsyncMemoryTool(files).call({"command": command, **fields}))
        except ToolError as error:
            return error

    return call


def failed(answer):
    """Return the text of a failure; the tool runner sends exactly this, with `is_error`."""
    assert isinstance(answer, ToolError)
    assert isinstance(answer.content, str)
    return answer.content


class TestView:
    def test_a_directory_is_shown_two_levels_deep_with_sizes(self, call, files):
        files.write("/a.md", "x" * 4096)
        files.write("/deep/er/still/c.md", "12345")
        files.write("/deep/b.md", "x" * 1536)
        assert call("view", path="/memories") == (
            "Here're the files and directories up to 2 levels deep in /memories, "
            "excluding hidden items and node_modules:\n"
            "5.5K\t/memories\n"
            "4.0K\t/memories/a.md\n"
            "1.5K\t/memories/deep/\n"
            "1.5K\t/memories/deep/b.md\n"
            "5B\t/memories/deep/er/"
        )

    def test_a_directory_below_the_root_is_shown_under_its_path(self, call, files):
        files.write("/deep/er/still/c.md", "12345")
        assert call("view", path="/memories/deep/").splitlines()[1:] == [
            "5B\t/memories/deep",
            "5B\t/memories/deep/er/",
            "5B\t/memories/deep/er/still/",
        ]

    def test_hidden_items_and_node_modules_are_left_out_with_all_beneath(self, call, files):
        for path in ("/.git/x", "/a/.env", "/node_modules/x/y", "/a/node_modules/z", "/a/b.md"):
            files.write(path, "12345678")
        assert call("view", path="/memories").splitlines()[1:] == [
            "8B\t/memories",
            "8B\t/memories/a/",
            "8B\t/memories/a/b.md",
        ]

    def test_the_empty_root_is_a_directory(self, call):
        assert call("view", path="/memories").splitlines()[1:] == ["0B\t/memories"]

    def test_a_file_is_shown_with_numbers_right_aligned_to_six(self, call, files):
        files.write("/a.md", "one\ntwo\n")
        assert call("view", path=A) == (
            "Here's the content of /memories/a.md with line numbers:\n     1\tone\n     2\ttwo"
        )

    @pytest.mark.parametrize(
        ("wanted", "numbers"),
        [
            ([2, 3], [2, 3]),
            ([3, -1], [3, 4]),
            ([1, 99], [1, 2, 3, 4]),
            ([0, 1], [1]),
            ([4, 4], [4]),
            (None, [1, 2, 3, 4]),
        ],
    )
    def test_a_range_shows_its_lines_and_minus_one_is_the_end(self, call, files, wanted, numbers):
        files.write("/a.md", "a\nb\nc\nd")
        shown = call("view", path=A, view_range=wanted).splitlines()[1:]
        assert [int(line.split("\t")[0]) for line in shown] == numbers

    @pytest.mark.parametrize("wanted", [[5, 6], [3, 2], [1], [1, 2, 3], ["one", 2], "1-2"])
    def test_a_range_that_is_none_is_refused_with_the_lines_there_are(self, call, files, wanted):
        files.write("/a.md", "a\nb\nc\nd")
        assert "within [1, 4]" in failed(call("view", path=A, view_range=wanted))

    def test_a_missing_path(self, call):
        assert failed(call("view", path="/memories/no.md")) == (
            "The path /memories/no.md does not exist. Please provide a valid path."
        )

    def test_more_than_999_999_lines_are_not_shown(self, call, files):
        files.write("/a.md", "\n" * 999_999)
        assert call("view", path=A, view_range=[999_999, -1]).endswith("\n999999\t")
        files.write("/a.md", "\n" * 1_000_000)
        assert failed(call("view", path=A)) == (
            "File /memories/a.md exceeds maximum line limit of 999,999 lines."
        )

    def test_an_empty_file_has_no_lines(self, call, files):
        files.write("/a.md", "")
        assert call("view", path=A) == "Here's the content of /memories/a.md with line numbers:"


class TestCreate:
    def test_a_file_is_created(self, call, files):
        answer = call("create", path="/memories/x/a.md", file_text="one\r\n")
        assert answer == "File created successfully at: /memories/x/a.md"
        assert files.read("/x/a.md").text == "one\r\n"

    def test_a_file_that_exists_is_left_alone(self, call, files):
        files.write("/a.md", "kept")
        answer = failed(call("create", path=A, file_text="other"))
        assert answer == "Error: File /memories/a.md already exists"
        assert files.read("/a.md").text == "kept"

    def test_a_directory_and_a_path_through_a_file_are_refused(self, call, files):
        files.write("/x/a.md", "kept")
        assert failed(call("create", path="/memories/x", file_text="")) == (
            "The path /memories/x is not a file."
        )
        assert "/memories/x/a.md is a file, so nothing can be beneath it" in failed(
            call("create", path="/memories/x/a.md/b.md", file_text="")
        )


class TestStrReplace:
    def test_the_answer_shows_two_lines_on_either_side(self, call, files):
        files.write("/a.md", "1\n2\n3\n4\n5\n6\n7\n")
        assert call("str_replace", path=A, old_str="4", new_str="four\nfour") == (
            "The memory file has been edited. Here is the snippet showing the change (with line "
            "numbers):\n"
            "     2\t2\n     3\t3\n     4\tfour\n     5\tfour\n     6\t5\n     7\t6"
        )
        assert files.read("/a.md").text == "1\n2\n3\nfour\nfour\n5\n6\n7\n"

    def test_text_that_is_not_there(self, call, files):
        files.write("/a.md", "one")
        assert failed(call("str_replace", path=A, old_str="two", new_str="2")) == (
            "No replacement was performed, old_str `two` did not appear verbatim in /memories/a.md."
        )

    def test_text_that_is_there_several_times(self, call, files):
        files.write("/a.md", "one\ntwo\none one\n")
        assert failed(call("str_replace", path=A, old_str="one", new_str="1")) == (
            "No replacement was performed. Multiple occurrences of old_str `one` in lines: "
            "1, 3, 3. Please ensure it is unique"
        )
        assert files.read("/a.md").text == "one\ntwo\none one\n"

    def test_text_that_is_everywhere_is_answered_briefly(self, call, files):
        files.write("/a.md", "a\n" * 500_000)
        answer = failed(call("str_replace", path=A, old_str="a", new_str="b"))
        assert "99, 100, …. Please ensure it is unique" in answer
        assert len(answer) < 1_000

    def test_a_missing_file_and_a_directory(self, call, files):
        files.write("/x/a.md", "one")
        assert failed(call("str_replace", path="/memories/no.md", old_str="a", new_str="b")) == (
            "The path /memories/no.md does not exist. Please provide a valid path."
        )
        assert failed(call("str_replace", path="/memories/x", old_str="a", new_str="b")) == (
            "The path /memories/x is not a file."
        )

    def test_everything_around_it_stays_byte_for_byte(self, call, files):
        files.write("/a.md", "\ufeffone\r\ntwo\rthree")
        call("str_replace", path=A, old_str="two", new_str="2")
        assert files.read("/a.md").text == "\ufeffone\r\n2\rthree"


class TestInsert:
    @pytest.mark.parametrize(
        ("at", "text"),
        [(0, "x\na\nb\n"), (1, "a\nx\nb\n"), (2, "a\nb\nx\n")],
    )
    @pytest.mark.parametrize("added", ["x", "x\n"])
    def test_a_line_is_put_in(self, call, files, at, text, added):
        files.write("/a.md", "a\nb\n")
        answer = call("insert", path=A, insert_line=at, insert_text=added)
        assert answer == "The file /memories/a.md has been edited."
        assert files.read("/a.md").text == text

    def test_after_a_last_line_without_an_end_a_line_is_begun(self, call, files):
        files.write("/a.md", "a\r\nb")
        call("insert", path=A, insert_line=2, insert_text="x")
        assert files.read("/a.md").text == "a\r\nb\nx\n"

    def test_into_an_empty_file(self, call, files):
        files.write("/a.md", "")
        call("insert", path=A, insert_line=0, insert_text="x")
        assert files.read("/a.md").text == "x\n"

    @pytest.mark.parametrize("at", [-1, 3, 10**30, "one", None, [1]])
    def test_a_line_that_is_none(self, call, files, at):
        files.write("/a.md", "a\nb\n")
        shown = at if isinstance(at, str) else repr(at)
        assert failed(call("insert", path=A, insert_line=at, insert_text="x")) == (
            f"Error: Invalid `insert_line` parameter: {shown}. It should be within the range of "
            "lines of the file: [0, 2]"
        )
        assert files.read("/a.md").text == "a\nb\n"

    def test_what_is_shown_of_a_bad_argument_can_be_sent(self, call, files):
        files.write("/a.md", "a\nb\n")
        for answer in (
            call("insert", path=A, insert_line="\ud800", insert_text="x"),
            call("view", path=A, view_range="\ud800"),
        ):
            assert b"\\ud800" in failed(answer).encode()

    def test_a_missing_file(self, call):
        assert failed(call("insert", path=A, insert_line=0, insert_text="x")) == (
            "The path /memories/a.md does not exist. Please provide a valid path."
        )


class TestDelete:
    def test_a_file_is_deleted(self, call, files):
        files.write("/a.md", "x")
        assert call("delete", path=A) == "Successfully deleted /memories/a.md"
        assert files.ls("/").entries == ()

    def test_a_directory_is_deleted_with_all_in_it(self, call, files):
        for path in ("/x/a.md", "/x/y/b.md", "/z.md"):
            files.write(path, "x")
        assert call("delete", path="/memories/x") == "Successfully deleted /memories/x"
        assert [entry.path for entry in files.ls("/").entries] == ["/z.md"]

    def test_a_missing_path(self, call):
        assert failed(call("delete", path=A)) == "Error: The path /memories/a.md does not exist"

    @pytest.mark.parametrize("path", ["/memories", "/memories/"])
    def test_the_root_stays(self, call, files, path):
        files.write("/a.md", "x")
        assert failed(call("delete", path=path)) == ("Cannot delete the /memories directory itself")
        assert files.read("/a.md").text == "x"


class TestRename:
    def test_a_file_keeps_its_version(self, call, files):
        version = files.write("/a.md", "x").version
        assert call("rename", old_path=A, new_path="/memories/y/b.md") == (
            "Successfully renamed /memories/a.md to /memories/y/b.md"
        )
        assert files.read("/y/b.md").version == version
        assert [entry.path for entry in files.ls("/").entries] == ["/y"]

    def test_a_directory_goes_with_all_in_it(self, call, files):
        files.write("/x/a.md", "a")
        files.write("/x/y/b.md", "b")
        assert call("rename", old_path="/memories/x", new_path="/memories/z") == (
            "Successfully renamed /memories/x to /memories/z"
        )
        assert [entry.path for entry in files.glob("**").entries] == ["/z/a.md", "/z/y/b.md"]

    def test_a_missing_path(self, call):
        assert failed(call("rename", old_path=A, new_path="/memories/b.md")) == (
            "Error: The path /memories/a.md does not exist"
        )

    def test_a_destination_that_exists(self, call, files):
        files.write("/a.md", "a")
        files.write("/x/b.md", "b")
        for target in ("/memories/x/b.md", "/memories/x", A, "/memories"):
            assert failed(call("rename", old_path=A, new_path=target)) == (
                f"Error: The destination {target} already exists"
            )
        assert files.read("/a.md").text == "a"
        assert files.read("/x/b.md").text == "b"

    def test_the_root_stays_and_no_directory_goes_into_itself(self, call, files):
        files.write("/x/a.md", "a")
        assert failed(call("rename", old_path="/memories", new_path="/memories/y")) == (
            "Cannot rename the /memories directory itself"
        )
        assert "Argument new_path is invalid" in failed(
            call("rename", old_path="/memories/x", new_path="/memories/x/y")
        )


class TestWhatNobodyShouldSend:
    @pytest.mark.parametrize(
        "path",
        ["/", "", "/memory", "/memoriesx", "memories/a", "/etc/passwd", "/Memories", "x" * 100_000],
    )
    def test_a_path_outside_of_memories(self, call, path):
        answer = failed(call("view", path=path))
        assert answer.startswith("Path must start with /memories, got: ")
        assert len(answer) < 500

    @pytest.mark.parametrize(
        "name",
        [
            "../x",
            "a/../../x",
            "a//b",
            "a\\b",
            "\0",
            "a\nb",
            "\ud800",
            " a",
            "e\u0301",
            "x" * 401,
            ".",
        ],
    )
    @pytest.mark.parametrize("command", ["view", "create", "delete"])
    def test_a_path_that_is_none(self, call, name, command):
        answer = failed(call(command, path=f"/memories/{name}", file_text=""))
        assert answer.startswith("Argument path is invalid: ")
        json.dumps(answer, ensure_ascii=False).encode()

    @pytest.mark.parametrize("text", ["\ud800", "a\0b", 5, None, ["x"]])
    def test_text_that_is_none(self, call, files, text):
        files.write("/a.md", "one")
        for answer in (
            call("create", path="/memories/b.md", file_text=text),
            call("str_replace", path=A, old_str=text, new_str="x"),
            call("str_replace", path=A, old_str="one", new_str=text),
            call("insert", path=A, insert_line=0, insert_text=text),
        ):
            json.dumps(failed(answer), ensure_ascii=False).encode()
            assert re.match(
                r"Argument (file_text|old_str|new_str|insert_text) is invalid", answer.content
            )
        assert files.read("/a.md").text == "one"
        assert len(files.ls("/").entries) == 1

    def test_an_empty_old_str(self, call, files):
        files.write("/a.md", "one")
        assert "must not be empty" in failed(call("str_replace", path=A, old_str="", new_str="x"))

    @pytest.mark.parametrize("command", ["bogus", None, 5, "execute"])
    def test_a_command_that_is_none(self, call, command):
        assert "it must be one of view, create" in failed(call(command, path=A))

    @pytest.mark.parametrize("sent", [None, "view", [], 5, {}])
    def test_input_that_is_no_command(self, files, sent):
        with pytest.raises(ToolError, match="Argument command is invalid"):
            WenchangMemoryTool(files).call(sent)

    def test_a_limit_is_told(self, storage):
        base = "@store/acme/="
        tree = FileTree(storage, base, limits=TreeLimits(max_file_bytes=10))
        call = caller("sync", StoreFileBackend(storage, tenant="acme", tree=tree))
        answer = failed(call("create", path=A, file_text="x" * 11))
        assert "maxFileBytes" in answer
        assert "10" in answer


class TestErrors:
    @pytest.mark.parametrize("kind", ["sync", "async"])
    @pytest.mark.parametrize("unforeseen", [False, True])
    def test_no_error_tells_of_the_storage(self, broken, on_broken, kind, unforeseen):
        call = caller(kind, on_broken)
        call("create", path=A, file_text="x")
        broken.fail(unforeseen=unforeseen)
        for answer in (
            call("view", path="/memories"),
            call("view", path=A),
            call("create", path="/memories/b.md", file_text=""),
            call("str_replace", path=A, old_str="x", new_str="y"),
            call("insert", path=A, insert_line=0, insert_text="y"),
            call("delete", path=A),
            call("rename", old_path=A, new_path="/memories/b.md"),
        ):
            text = failed(answer)
            for secret in ("AKIASECRET", "internal", "/srv", "@store", "acme", "http"):
                assert secret not in text
            assert ("unforeseen" if unforeseen else "The storage") in text

    def test_a_corrupt_file_is_named_as_the_model_knows_it_and_can_be_deleted(
        self, storage, call, files
    ):
        files.write("/a.md", "text")
        (key,) = [
            listed.key
            for listed in storage.list_page("@store/", None, 100)
            if "root" not in listed.key
        ]
        held = storage.get(key)
        storage.put(key, b"\xff\xfe", held.metadata)
        files = StoreFileBackends(storage).of("acme")
        fresh = caller("sync", files)
        assert failed(fresh("view", path=A)).startswith("/memories/a.md: What is stored of this")
        assert fresh("delete", path=A) == "Successfully deleted /memories/a.md"


COMMANDS = [
    ("create", CreateCommand(command="create", path=A, file_text="one\n"), "created"),
    ("view", ViewCommand(command="view", path=A), "1\tone"),
    (
        "str_replace",
        StrReplaceCommand(command="str_replace", path=A, old_str="one", new_str="1"),
        "1\t1",
    ),
    (
        "insert",
        InsertCommand(command="insert", path=A, insert_line=1, insert_text="two"),
        "has been edited",
    ),
    (
        "rename",
        RenameCommand(command="rename", old_path=A, new_path="/memories/b.md"),
        "renamed",
    ),
    ("delete", DeleteCommand(command="delete", path="/memories/b.md"), "deleted"),
]


def test_each_command_has_its_method(files):
    tool, later = WenchangMemoryTool(files), WenchangAsyncMemoryTool(files)
    for name, command, said in COMMANDS:
        assert said in getattr(tool, name)(command)
    for name, command, said in COMMANDS:
        assert said in asyncio.run(getattr(later, name)(command))


def test_sizes_grow_units(call, files):
    for name, size in (("a", 1023), ("b", 1024), ("c", 1024 * 1024)):
        files.write(f"/{name}.md", "x" * size)
    assert [line.split("\t")[0] for line in call("view", path="/memories").splitlines()[1:]] == [
        "1.0M",
        "1023B",
        "1.0K",
        "1.0M",
    ]


def test_a_change_that_keeps_losing_is_given_up_with_nothing_changed(files, monkeypatch):
    class Busy(StateFileBackend):
        """Another caller is always faster."""

        def write(self, path, content, **more):
            super().write(path, self.read(path).text + "x")
            return super().write(path, content, **more)

    busy = Busy()
    busy.files["/a.md"] = {"content": "one\n"}
    clock = iter(range(100))
    patience = Patience(TreePolicy(deadline=5), monotonic=clock.__next__, sleep=lambda _: None)
    monkeypatch.setattr(_folders, "PATIENCE", patience)
    answer = failed(caller("sync", busy)("insert", path=A, insert_line=0, insert_text="mine"))
    assert answer == (
        "Many writers are at work on /memories/a.md, and nothing was changed. Repeat the call."
    )
    assert "mine" not in busy.read("/a.md").text


def test_all_memory_is_cleared(files):
    for path in ("/a.md", "/x/b.md", "/x/y/c.md"):
        files.write(path, "x")
    assert WenchangMemoryTool(files).clear_all_memory() == "All memory cleared"
    assert files.ls("/").entries == ()
    assert asyncio.run(WenchangAsyncMemoryTool(files).clear_all_memory()) == "All memory cleared"


def test_the_tool_is_declared_as_the_api_wants_it(files):
    assert WenchangMemoryTool(files).to_dict() == {"type": "memory_20250818", "name": "memory"}
    tool = WenchangAsyncMemoryTool(files, cache_control={"type": "ephemeral"})
    assert tool.to_dict()["cache_control"] == {"type": "ephemeral"}
