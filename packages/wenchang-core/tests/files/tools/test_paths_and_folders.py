"""Items 1 to 18 and 137: what a path is, in every tool, and where folders come from."""

from __future__ import annotations

import pytest

from wenchang.files.tools import FILE_TOOL_NAMES

TOOLS_WITH_PATHS = [
    ("file_list", "path", {}),
    ("file_read", "path", {}),
    ("file_read", "paths", {}),
    ("file_find", "path", {"pattern": "*"}),
    ("file_search", "path", {"text": "x"}),
    ("file_create", "path", {"content": "x"}),
    ("file_append", "path", {"text": "x"}),
    ("file_move", "from", {"to": "free.md"}),
    ("file_move", "to", {"from": "a.md"}),
    ("file_edit", "path", {"edits": [{"oldText": "x", "newText": "y"}]}),
    ("file_write", "path", {"content": "x"}),
    ("file_delete", "path", {}),
    ("file_history", "path", {}),
    ("file_restore", "path", {"version": "v1"}),
]


def refused_everywhere(files, path):
    """Every tool refuses the path, names the argument, and shows nothing of it."""
    files = files.again(history=history())
    for tool, argument, rest in TOOLS_WITH_PATHS:
        given = [path] if argument == "paths" else path
        payload = files.refuse_argument(argument, tool, **{**rest, argument: given})
        if len(path) > 12:
            assert path not in payload["message"]


def history():
    from wenchang.files.policy import HistoryPolicy

    return HistoryPolicy(versions=3)


class TestPathsAndFolders:
    """The rules of paths."""

    @pytest.mark.servers
    def test_item_001_an_account_sees_its_own_root_only_and_its_agents_share_it(self, files):
        other = files.again(entity=f"{files.entity}x")
        files.call("file_create", path="a.md", content="ours")
        assert files.again().listed() == ["a.md"]
        assert other.listed() == []
        for path in (
            f"{files.entity}/a.md",
            f"@files/{files.entity}/a.md",
            f"/{files.entity}/a.md",
        ):
            other.refuse("NOT_FOUND", "file_read", path=path)
        other.refuse("INVALID_ARGUMENT", "file_read", path=f"../{files.entity}/a.md")
        other.call("file_create", path="a.md", content="theirs")
        assert files.text("a.md") == "ours"

    def test_item_002_a_path_is_names_with_slashes_between(self, files):
        files.call("file_create", path="notes/2026/plan.md", content="x")
        assert files.paths() == ["notes/2026/plan.md"]
        assert files.listed(path="notes/2026") == ["notes/2026/plan.md"]
        # Nothing else separates names, and each name is an entry of the one before.
        files.call("file_create", path="a:b|c,d.md", content="x")
        assert files.listed() == ["a:b|c,d.md", "notes/"]
        assert files.listed(depth=5)[1:] == ["notes/", "notes/2026/", "notes/2026/plan.md"]

    @pytest.mark.servers
    def test_item_003_case_makes_another_file(self, files):
        files.call("file_create", path="Notes.md", content="upper")
        files.call("file_create", path="notes.md", content="lower")
        assert (files.text("Notes.md"), files.text("notes.md")) == ("upper", "lower")
        assert files.listed() == ["Notes.md", "notes.md"]
        files.refuse("NOT_FOUND", "file_read", path="NOTES.md")

    def test_item_004_a_leading_slash_means_nothing_in_every_tool(self, files):
        files = files.again(history=history())
        self.every_tool(files, lambda path: f"/{path}")

    def test_item_005_a_trailing_slash_means_nothing_in_every_tool(self, files):
        files = files.again(history=history())
        self.every_tool(files, lambda path: f"{path}/")

    def every_tool(self, files, spelt):
        """Use each tool with another spelling; answers have the canonical one."""
        created = files.call("file_create", path=spelt("notes/a.md"), content="one\n")
        appended = files.call("file_append", path=spelt("notes/a.md"), text="two\n")
        assert created["path"] == appended["path"] == "notes/a.md"
        read = files.call("file_read", path=spelt("notes/a.md"))["files"][0]
        assert (read["path"], read["text"]) == ("notes/a.md", "one\ntwo\n")
        assert files.call("file_read", paths=[spelt("notes/a.md")])["files"] == [read]
        assert files.call("file_list", path=spelt("notes"))["path"] == "notes"
        assert files.found("*.md", path=spelt("notes")) == ["notes/a.md"]
        assert files.hits("two", path=spelt("notes")) == [("notes/a.md", 2)]
        edits = [{"oldText": "one", "newText": "1"}]
        assert (
            files.call("file_edit", path=spelt("notes/a.md"), edits=edits)["path"] == "notes/a.md"
        )
        version = files.version("notes/a.md")
        files.call("file_write", path=spelt("notes/a.md"), content="new", version=version)
        moved = files.call("file_move", from_=spelt("notes"), to=spelt("old/notes"))
        assert (moved["from"], moved["to"]) == ("notes", "old/notes")
        assert files.call("file_history", path=spelt("old/notes/a.md"))["path"] == "old/notes/a.md"
        files.call("file_restore", path=spelt("old/notes/a.md"), version=version)
        deleted = files.call("file_delete", path=spelt("old/notes/a.md"))
        assert deleted["path"] == "old/notes/a.md"
        assert files.paths() == []

    @pytest.mark.parametrize(
        "path", [".", "..", "../a", "a/..", "a/../b", "./a", "a/.", "a/./b", "/..", "../"]
    )
    def test_item_006_a_dot_segment_is_refused_in_every_position_and_tool(self, files, path):
        files.call("file_create", path="a.md", content="x")
        refused_everywhere(files, path)

    @pytest.mark.parametrize("path", ["a\\b", "\\a", "a\\", "a/b\\c/d"])
    def test_item_007_a_backslash_is_refused_everywhere(self, local, path):
        local.call("file_create", path="a.md", content="x")
        refused_everywhere(local, path)

    @pytest.mark.parametrize("path", ["a//b", "//a", "a//", "//", "///", "a///b"])
    def test_item_008_an_empty_name_is_refused_everywhere(self, local, path):
        local.call("file_create", path="a.md", content="x")
        refused_everywhere(local, path)

    @pytest.mark.parametrize("char", ["\0", "\t", "\n", "\x7f", "\x85", "\r", "\x1b", "\x9f"])
    def test_item_009_a_control_character_is_refused_everywhere(self, local, char):
        local.call("file_create", path="a.md", content="x")
        for path in (f"a{char}b", f"x/a{char}", f"{char}a/b"):
            refused_everywhere(local, path)

    @pytest.mark.parametrize("path", ["\ud800", "a\udfff.md", "x/\udc80/y"])
    def test_item_010_an_unpaired_surrogate_is_refused_everywhere(self, local, path):
        local.call("file_create", path="a.md", content="x")
        refused_everywhere(local, path)

    @pytest.mark.servers
    @pytest.mark.parametrize("char", ["a", "é", "林", "😀"])
    def test_item_011_a_name_has_at_most_255_characters(self, files, char):
        files.call("file_create", path=char * 255, content="x")
        assert files.listed() == [char * 255]
        files.refuse_argument("path", "file_create", path=char * 256, content="x")
        files.refuse_argument("path", "file_create", path=f"{char * 256}/a", content="x")

    def test_item_012_a_whole_path_has_at_most_400_characters(self, files):
        longest = "/".join(["n" * 49] * 8)
        assert len(longest) == 399
        files.call("file_create", path=f"{longest}x", content="x")
        assert files.found("*x") == [f"{longest}x"]
        files.refuse_argument("path", "file_create", path=f"{longest}xy", content="x")
        short = "/".join("a" * 201)
        assert len(short) == 401
        files.refuse_argument("path", "file_create", path=short, content="x")

    def test_item_012_a_move_that_would_make_a_path_too_long_is_refused(self, local):
        local.call("file_create", path=f"a/{'n' * 250}", content="x")
        local.refuse_argument("to", "file_move", from_="a", to="b" * 200)
        local.call("file_move", from_="a", to="b" * 149)

    @pytest.mark.parametrize(
        "path", [" a", "a ", "x/ a", "x/a ", " ", "x /a", "\u00a0a", "a\u3000"]
    )
    def test_item_013_a_name_does_not_begin_or_end_with_a_space(self, local, path):
        local.call("file_create", path="a.md", content="x")
        refused_everywhere(local, path)
        local.call("file_create", path="with a space.md", content="x")

    @pytest.mark.parametrize(
        "char", ["\u200b", "\u2060", "\ufeff", "\u00ad", "\u200b\u2060", "\u3164"]
    )
    def test_item_014_a_name_of_invisible_characters_is_refused_everywhere(self, local, char):
        local.call("file_create", path="a.md", content="x")
        for path in (char, f"x/{char}", f"{char}/x"):
            refused_everywhere(local, path)

    def test_item_014_names_that_look_alike_are_not_two_files(self, local):
        for path in ("e\u0301.md", "a\u202eb.md", "a\u2067b.md"):
            local.refuse_argument("path", "file_create", path=path, content="x")

    @pytest.mark.servers
    def test_item_015_every_path_in_an_answer_can_be_sent_back_unchanged(self, files):
        for path in ("/notes/a b.md", "notes/林/ü.md/", "-x/[a]*.md", 'q"uote,.md'):
            files.call("file_create", path=path, content="needle\n")
        shown = {entry for entry in files.listed(depth=5) if not entry.endswith("/")}
        shown |= set(files.found("*"))
        shown |= {path for path, _ in files.hits("needle")}
        assert shown == set(files.paths())
        for path in shown:
            read = files.call("file_read", path=path)["files"][0]["path"]
            assert read == files.call("file_append", path=read, text="more\n")["path"]
            moved = files.call("file_move", from_=read, to=f"moved/{read}")
            back = files.call("file_move", from_=moved["to"], to=moved["from"])
            assert back["to"] == path
        for folder in (entry for entry in files.listed(depth=5) if entry.endswith("/")):
            assert files.call("file_list", path=folder)["path"] == folder[:-1]

    @pytest.mark.parametrize("past", [False, True], ids=["plain", "history"])
    def test_item_016_a_folder_goes_with_its_last_file(self, files, past):
        files = files.again(history=history()) if past else files
        files.make({"a/b/one.md": "x", "a/b/two.md": "x", "keep.md": "x"})
        assert files.listed(depth=3) == ["a/", "a/b/", "a/b/one.md", "a/b/two.md", "keep.md"]
        files.call("file_delete", path="a/b/one.md")
        assert files.listed() == ["a/", "keep.md"]
        files.call("file_move", from_="a/b/two.md", to="two.md")
        assert files.listed() == ["keep.md", "two.md"]
        files.refuse("NOT_FOUND", "file_list", path="a")
        files.call("file_create", path="a", content="now a file")

    def test_item_017_folders_come_with_the_file_that_names_them(self, files):
        files.call("file_create", path="a/b/c.md", content="")
        assert files.listed() == ["a/"]
        assert files.listed(path="a") == ["a/b/"]
        assert files.listed(path="a/b") == ["a/b/c.md"]
        assert not [name for name in FILE_TOOL_NAMES if "dir" in name or "folder" in name]

    def test_item_018_nothing_outside_the_accounts_own_objects_is_asked_for(
        self, files, make_files
    ):
        keys = []

        class Watched:
            """Notes the key of every request."""

            def __getattr__(self, name):
                method = getattr(files.storage, name)

                def noted(key, *rest):
                    keys.append(key)
                    return method(key, *rest)

                return noted

        watched = make_files(Watched(), files.entity, files.settings)
        self.every_tool(watched.again(history=history()), lambda path: path)
        assert keys
        assert [key for key in keys if not key.startswith(f"@files/{files.entity}/")] == []

    def test_item_137_the_root_is_no_path_an_empty_one_or_a_slash(self, files):
        files.call("file_create", path="a.md", content="x")
        root = files.call("file_list")
        assert root["path"] == ""
        assert files.call("file_list", path="") == root
        assert files.call("file_list", path="/") == root
        assert files.found("*", path="/") == files.found("*", path="") == ["a.md"]
        assert files.hits("x", path="/") == files.hits("x", path="") == [("a.md", 1)]
        for tool, argument, rest in TOOLS_WITH_PATHS:
            if tool in ("file_list", "file_find", "file_search", "file_history", "file_restore"):
                continue
            for root_path in ("", "/"):
                given = [root_path] if argument == "paths" else root_path
                files.refuse_argument(argument, tool, **{**rest, argument: given})
            if tool != "file_read":
                files.refuse_argument(argument, tool, **rest)

    def test_item_137_one_slash_comes_off_at_either_end_and_no_more(self, files):
        files.make({"n/a.md": "x"})
        for path in ("n", "/n", "n/", "/n/"):
            assert files.call("file_list", path=path)["path"] == "n"
        for path in ("//n", "n//", "//"):
            refused_everywhere(files, path)
