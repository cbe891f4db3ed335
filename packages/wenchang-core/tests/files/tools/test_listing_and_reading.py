"""Items 22 to 41 and 138 to 141: what file_list and file_read show."""

from __future__ import annotations

import re
from typing import ClassVar

import pytest

KIB = 1024
READ_BOUND = 256 * KIB


class TestListing:
    """file_list."""

    TREE: ClassVar = {
        "b.md": "bb",
        "a/x.md": "x",
        "a/y/z.md": "z",
        "a.md": "a",
        "a/y/q/1/2/3.md": "3",
    }

    def test_item_022_without_a_path_the_root_is_listed_with_one_that_folder(self, files):
        files.make(self.TREE)
        assert files.listed() == ["a.md", "a/", "b.md"]
        assert files.listed(path="a") == ["a/x.md", "a/y/"]

    def test_item_023_by_default_only_direct_entries_are_shown(self, files):
        files.make(self.TREE)
        assert files.listed(path="a") == files.listed(path="a", depth=1) == ["a/x.md", "a/y/"]

    def test_item_024_depth_shows_an_indented_tree_that_many_levels_deep(self, files):
        files.make(self.TREE)
        assert files.listed(path="a", depth=2) == ["a/x.md", "a/y/", "a/y/q/", "a/y/z.md"]
        assert files.listed(depth=5)[-4:] == ["a/y/q/1/", "a/y/q/1/2/", "a/y/z.md", "b.md"]
        lines = files.answer("file_list", path="a", depth=3).text.splitlines()
        shown = [re.match(r"( *)([^\t]+)", line).groups() for line in lines[1:]]
        assert shown == [
            ("", "a/x.md"),
            ("", "a/y/"),
            ("  ", "a/y/q/"),
            ("    ", "a/y/q/1/"),
            ("  ", "a/y/z.md"),
        ]
        for depth in (0, 6, -1, 1.0, True, "2"):
            files.refuse_argument("depth", "file_list", depth=depth)

    def test_item_025_entries_come_in_path_order(self, files):
        names = ["a-b.md", "a/z.md", "a.md", "B.md", "é.md", "a0.md", "z/a.md", "林.md", "😀.md"]
        files.make(dict.fromkeys(names, "x"))
        listed = files.listed()
        assert listed == sorted(listed)
        assert listed.index("a-b.md") < listed.index("a.md") < listed.index("a/")
        deep = files.listed(depth=5)
        assert deep == sorted(deep)

    def test_item_026_folders_end_in_a_slash(self, files):
        files.make({"a/b.md": "x", "c.md": "x"})
        text = files.answer("file_list").text.splitlines()
        assert text[1] == "a/"
        assert text[2].startswith("c.md\t")
        kinds = [entry["kind"] for entry in files.call("file_list")["entries"]]
        assert kinds == ["folder", "file"]

    def test_item_027_files_show_size_version_and_time(self, files):
        files.make({"a.md": "häl\n"})
        entry = files.entry("a.md")
        shown = files.call("file_list")["entries"][0]
        assert (shown["size"], shown["version"]) == (5, entry.version)
        assert shown["modified"].startswith("2026-01-01T00:00:00.0")
        line = files.answer("file_list").text.splitlines()[1]
        assert line == f"a.md\t5 bytes\t{entry.version}\t{shown['modified']}"

    @pytest.mark.servers
    def test_item_028_the_root_shows_the_four_limits_and_what_is_used(self, files):
        files = files.again(
            max_depth=7, max_file_bytes=100, max_total_bytes=1000, max_file_count=10
        )
        files.make({"a/b/c.md": "12345", "d.md": "678"})
        assert files.call("file_list")["limits"] == {
            "maxDepth": {"maximum": 7, "used": 2},
            "maxFileBytes": {"maximum": 100, "used": 5},
            "maxTotalBytes": {"maximum": 1000, "used": 8},
            "maxFileCount": {"maximum": 10, "used": 2},
        }
        text = files.answer("file_list").text
        for name, maximum, used in (("maxDepth", 7, 2), ("maxTotalBytes", 1000, 8)):
            assert f"{name}\t{maximum}\t{used} used" in text
        assert "limits" not in files.call("file_list", path="a")

    def test_item_029_listing_changes_nothing(self, files):
        files.make(self.TREE)
        before = files.tree.snapshot().version
        files.listed(depth=5, pageSize=2)
        assert files.tree.snapshot().version == before

    def test_item_138_a_file_is_no_folder_and_the_empty_root_answers_empty(self, files):
        assert files.listed() == files.found("*") == files.hits("x") == []
        files.make({"a.md": "x"})
        for tool, rest in (
            ("file_list", {}),
            ("file_find", {"pattern": "*"}),
            ("file_search", {"text": "x"}),
        ):
            refused = files.refuse("NOT_FOUND", tool, path="a.md", **rest)
            assert refused["path"] == "a.md"
            assert "is a file" in refused["message"]
            assert files.refuse("NOT_FOUND", tool, path="nope", **rest)["path"] == "nope"


class TestReading:
    """file_read."""

    def read(self, files, **arguments):
        (row,) = files.call("file_read", **arguments)["files"]
        return row

    def test_item_030_each_line_is_shown_as_number_tab_text(self, files):
        files.make({"a.md": "one\n\n\tthree\r\nfour"})
        text = files.answer("file_read", path="a.md").text
        assert text.split("\n")[1:] == ["1\tone", "2\t", "3\t\tthree\r", "4\tfour"]
        assert self.read(files, path="a.md")["text"] == "one\n\n\tthree\r\nfour"

    def test_item_031_a_header_shows_path_lines_count_size_and_version(self, files):
        files.make({"n/a.md": "one\ntwo\nthree\n"})
        version = files.version("n/a.md")
        header = files.answer("file_read", path="n/a.md", fromLine=2).text.split("\n")[0]
        assert header == f"n/a.md | lines 2-3 of 3 | 14 bytes | version {version}"
        row = self.read(files, path="n/a.md", fromLine=2)
        assert (row["fromLine"], row["toLine"], row["lineCount"]) == (2, 3, 3)
        assert (row["path"], row["size"], row["version"]) == ("n/a.md", 14, version)

    def test_item_032_path_reads_one_file_whole(self, files):
        files.make({"a.md": "one\ntwo\n", "b.md": "x"})
        assert self.read(files, path="a.md")["text"] == "one\ntwo\n"

    @pytest.mark.parametrize(
        ("lines", "text"),
        [
            ({"fromLine": 2, "toLine": 3}, "2\n3\n"),
            ({"fromLine": 4}, "4\n5"),
            ({"toLine": 2}, "1\n2\n"),
            ({"fromLine": 5, "toLine": 5}, "5"),
            ({"fromLine": 1, "toLine": 1}, "1\n"),
        ],
    )
    def test_item_033_a_range_of_lines_is_read_both_ends_included(self, files, lines, text):
        files.make({"a.md": "1\n2\n3\n4\n5"})
        assert self.read(files, path="a.md", **lines)["text"] == text

    @pytest.mark.servers
    def test_item_034_up_to_ten_files_are_read_whole_at_once(self, files):
        files.make({f"{number}.md": f"text {number}\n" for number in range(11)})
        paths = [f"{number}.md" for number in range(11)]
        rows = files.call("file_read", paths=paths[9::-1])["files"]
        assert [row["path"] for row in rows] == paths[9::-1]
        assert [row["text"] for row in rows] == [f"text {n}\n" for n in range(9, -1, -1)]
        files.refuse_argument("paths", "file_read", paths=paths)

    def test_item_035_path_and_paths_together_or_neither_are_refused(self, files):
        files.make({"a.md": "x"})
        files.refuse_argument("paths", "file_read", path="a.md", paths=["a.md"])
        files.refuse_argument("path", "file_read")
        files.refuse_argument("paths", "file_read", paths=[])
        files.call("file_read", path="a.md", paths=None)

    @pytest.mark.parametrize(
        "lines", [{"fromLine": 1}, {"toLine": 1}, {"fromLine": 1, "toLine": 1}]
    )
    def test_item_036_paths_do_not_go_with_a_range(self, files, lines):
        files.make({"a.md": "x"})
        files.refuse_argument(next(iter(lines)), "file_read", paths=["a.md"], **lines)

    def test_item_037_files_of_one_call_have_at_most_256_kib_together(self, files):
        files = files.again(max_answer_chars=1_000_000)
        half = "x" * 99 + "\n"
        files.make({"a.md": half * 1311, "b.md": half * 1310, "c.md": "y" * 43 + "\n"})
        assert files.entry("a.md").size + files.entry("b.md").size == READ_BOUND - 44
        rows = files.call("file_read", paths=["a.md", "b.md", "c.md"])["files"]
        assert sum(row["size"] for row in rows) == READ_BOUND
        assert [row["text"] for row in rows] == [files.text(row["path"]) for row in rows]
        files.call("file_append", path="c.md", text="1")
        refused = files.refuse("LIMIT_EXCEEDED", "file_read", paths=["a.md", "b.md", "c.md"])
        assert (refused["value"], refused["maximum"]) == (READ_BOUND + 1, READ_BOUND)
        assert "fromLine" in refused["message"]
        files.make({"whole.md": "z" * (READ_BOUND + 1)})
        files.refuse("LIMIT_EXCEEDED", "file_read", path="whole.md")

    @pytest.mark.servers
    def test_item_038_a_larger_file_is_read_by_ranges(self, files):
        files = files.again(max_answer_chars=1_000_000)
        text = "".join(f"line {number} {'x' * 90}\n" for number in range(1, 4001))
        assert len(text) > READ_BOUND
        files.make({"big.md": text})
        parts, line = [], 1
        while line is not None:
            row = self.read(files, path="big.md", fromLine=line)
            assert len(row["text"].encode()) <= READ_BOUND
            parts.append(row["text"])
            line = row.get("nextLine")
        assert "".join(parts) == text
        assert len(parts) == 2

    def test_item_039_a_line_over_the_bound_is_not_read_but_searched_and_edited(self, files):
        files = files.again(max_answer_chars=2_000_000)
        at_bound, over = "a" * (READ_BOUND - 1) + "\n", "b" * (READ_BOUND - 1) + "N\n"
        files.make({"big.md": at_bound + over + "last\n"})
        assert self.read(files, path="big.md", toLine=1)["text"] == at_bound
        for lines in ({"fromLine": 2}, {"fromLine": 2, "toLine": 2}):
            refused = files.refuse("LIMIT_EXCEEDED", "file_read", path="big.md", **lines)
            assert (refused["value"], refused["maximum"]) == (READ_BOUND + 1, READ_BOUND)
            assert "file_search" in refused["message"]
        assert self.read(files, path="big.md", fromLine=1)["nextLine"] == 2
        assert files.hits("bN", caseSensitive=True) == [("big.md", 2)]
        page = files.call("file_search", text="bN", caseSensitive=True)
        assert page["files"][0]["lines"][0]["text"] == over[:-1]
        files.call("file_edit", path="big.md", edits=[{"oldText": "bN", "newText": "c"}])
        assert files.text("big.md") == at_bound + "b" * (READ_BOUND - 2) + "c\nlast\n"

    def test_item_040_line_numbers_sent_back_do_not_match(self, files):
        files.make({"a.md": "one\ntwo\n"})
        shown = files.answer("file_read", path="a.md").text.split("\n")[1]
        assert shown == "1\tone"
        edits = [{"oldText": shown, "newText": "x"}]
        refused = files.refuse("EDIT_MATCH", "file_edit", path="a.md", edits=edits)
        assert refused["count"] == 0
        assert "line numbers" in refused["message"]

    def test_item_041_an_empty_file_has_no_lines_and_a_version(self, files):
        files.make({"a.md": ""})
        row = self.read(files, path="a.md")
        assert (row["fromLine"], row["toLine"], row["lineCount"], row["text"]) == (0, 0, 0, "")
        assert "0 lines" in files.answer("file_read", path="a.md").text
        files.call("file_write", path="a.md", content="x", version=row["version"])

    def test_item_139_a_range_must_make_sense_and_begin_inside_the_file(self, files):
        files.make({"a.md": "1\n2\n3\n", "empty.md": ""})
        for argument, value in (("fromLine", 0), ("toLine", 0), ("fromLine", -1), ("toLine", 1.5)):
            files.refuse_argument(argument, "file_read", path="a.md", **{argument: value})
        files.refuse_argument("toLine", "file_read", path="a.md", fromLine=3, toLine=2)
        assert self.read(files, path="a.md", fromLine=3, toLine=99)["text"] == "3\n"
        assert self.read(files, path="a.md", fromLine=2, toLine=2)["text"] == "2\n"
        assert self.read(files, path="a.md", fromLine=2)["text"] == "2\n3\n"
        assert self.read(files, path="a.md", toLine=2)["text"] == "1\n2\n"
        refused = files.refuse_argument("fromLine", "file_read", path="a.md", fromLine=4)
        assert "3 lines" in refused["message"]
        assert self.read(files, path="empty.md", fromLine=1)["text"] == ""
        assert self.read(files, path="empty.md", toLine=5)["toLine"] == 0
        refused = files.refuse_argument("fromLine", "file_read", path="empty.md", fromLine=2)
        assert "no lines" in refused["message"]

    def test_item_140_a_path_given_twice_or_not_there_refuses_the_call_by_name(self, files):
        files.make({"a.md": "x", "b/c.md": "y"})
        refused = files.refuse_argument("paths", "file_read", paths=["a.md", "b/c.md", "/a.md/"])
        assert "a.md" in refused["message"]
        refused = files.refuse("NOT_FOUND", "file_read", paths=["a.md", "gone.md"])
        assert refused["path"] == "gone.md"
        refused = files.refuse("NOT_FOUND", "file_read", paths=["b", "a.md"])
        assert refused["path"] == "b"
        files.refuse_argument("paths", "file_read", paths=["a.md", 3])
        files.refuse_argument("paths", "file_read", paths=["a.md", "x//y"])

    def test_item_140_a_damaged_file_is_named(self, local):
        local.make({"a.md": "fine", "b.md": "damaged", "c.md": "fine"})
        damage(local, "b.md")
        refused = local.again().refuse("TREE_STATE", "file_read", paths=["a.md", "b.md", "c.md"])
        assert (refused["path"], refused["reason"]) == ("b.md", "unreadable_content")

    def test_item_140_a_file_whose_content_is_missing_is_named(self, local):
        local.make({"a.md": "fine", "b.md": "lost"})
        key = f"@files/{local.entity}/{local.entry('b.md').key}"
        local.storage.delete_if_version(key, local.storage.get(key).version)
        refused = local.again().refuse("TREE_STATE", "file_read", paths=["a.md", "b.md"])
        assert (refused["path"], refused["reason"]) == ("b.md", "missing_object")

    def test_item_141_a_read_past_the_answer_bound_ends_with_a_whole_line(self, files):
        files = files.again(max_answer_chars=16_000)
        text = "".join(f"{number}: {'ü' * 80}\n" for number in range(1, 1001))
        files.make({"a.md": text, "b.md": "b\n", "c.md": "c\n"})
        answer = files.answer("file_read", paths=["a.md", "b.md", "c.md"])
        (row,) = answer.payload["files"]
        assert answer.payload["notShown"] == ["b.md", "c.md"]
        assert text.startswith(row["text"])
        assert row["text"].endswith("\n")
        assert row["nextLine"] == row["toLine"] + 1
        assert f"go on with fromLine {row['nextLine']}" in answer.text.split("\n")[0]
        parts, line = [], 1
        while line is not None:
            part = self.read(files, path="a.md", fromLine=line)
            parts.append(part["text"])
            line = part.get("nextLine")
        assert "".join(parts) == text

    def test_item_141_a_line_that_fits_into_no_answer_is_refused(self, files):
        files = files.again(max_answer_chars=16_000)
        files.make({"a.md": "short\n" + "x" * 20_000 + "\nend\n"})
        row = self.read(files, path="a.md")
        assert (row["text"], row["nextLine"]) == ("short\n", 2)
        refused = files.refuse("LIMIT_EXCEEDED", "file_read", path="a.md", fromLine=2)
        assert (refused["limit"], refused["maximum"]) == ("answerChars", 16_000)
        assert self.read(files, path="a.md", fromLine=3)["text"] == "end\n"

    def test_item_144_only_a_line_feed_ends_a_line(self, files):
        text = "a\rb\vc\fd\x1ce\x85f\u2028g\u2029h\r\nlast"
        files.make({"a.md": text})
        row = self.read(files, path="a.md")
        assert (row["lineCount"], row["text"]) == (2, text)
        assert files.hits("last") == [("a.md", 2)]
        assert files.answer("file_read", path="a.md").text.split("\n")[2] == "2\tlast"


def damage(files, path):
    """Overwrite the content of a file, past the tree, by what is no UTF-8."""
    key = f"@files/{files.entity}/{files.entry(path).key}"
    found = files.storage.get(key)
    files.storage.put(key, b"\xff\xfe damaged", found.metadata)
