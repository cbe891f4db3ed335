"""Items 42 to 57, 143 and 147: file_find and its patterns."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from wenchang.files import listing
from wenchang.files.globs import compile_glob
from wenchang.files.listing import Examination
from wenchang.files.policy import TreePolicy


def make(files, *paths):
    files.make(dict.fromkeys(paths, "x"))


class TestFinding:
    """file_find."""

    def test_item_042_files_anywhere_below_the_folder_are_found(self, files):
        make(files, "a.md", "n/b.md", "n/o/p/c.md", "n/d.txt", "m/e.md")
        assert files.found("*.md") == ["a.md", "m/e.md", "n/b.md", "n/o/p/c.md"]
        assert files.found("*.md", path="n") == ["n/b.md", "n/o/p/c.md"]

    def test_item_043_each_hit_has_path_size_version_and_time(self, files):
        files.make({"n/a.md": "häl\n"})
        (row,) = files.call("file_find", pattern="a.md")["files"]
        version = files.version("n/a.md")
        assert (row["path"], row["size"], row["version"]) == ("n/a.md", 5, version)
        line = files.answer("file_find", pattern="a.md").text.splitlines()[1]
        assert line == f"n/a.md\t5 bytes\t{version}\t{row['modified']}"

    @pytest.mark.servers
    def test_item_044_sorted_by_path_or_the_latest_modified_first(self, files):
        for path in ("b.md", "c.md", "a.md"):
            files.call("file_create", path=path, content="x")
        files.call("file_append", path="c.md", text="y")
        assert files.found("*") == files.found("*", sortBy="path") == ["a.md", "b.md", "c.md"]
        assert files.found("*", sortBy="modified") == ["c.md", "a.md", "b.md"]
        assert files.found("*", sortBy="modified", pageSize=1) == ["c.md", "a.md", "b.md"]
        files.refuse_argument("sortBy", "file_find", pattern="*", sortBy="size")

    def test_item_045_a_pattern_has_1_to_200_characters(self, files):
        make(files, "a" * 200)
        assert files.found("a" * 200) == ["a" * 200]
        files.refuse_argument("pattern", "file_find", pattern="")
        files.refuse_argument("pattern", "file_find", pattern="a" * 201)
        files.refuse_argument("pattern", "file_find")
        files.refuse_argument("glob", "file_search", text="x", glob="")
        files.refuse_argument("glob", "file_search", text="x", glob="a" * 201)

    def test_item_046_a_star_is_any_run_within_a_name(self, files):
        make(files, "ab.md", "a.md", "n/ab.md", "axxb.md")
        assert files.found("a*b.md") == ["ab.md", "axxb.md", "n/ab.md"]
        assert files.found("*/ab.md") == ["n/ab.md"]
        assert files.found("n*b.md") == []
        assert files.found("a*.md*") == ["a.md", "ab.md", "axxb.md", "n/ab.md"]

    def test_item_047_two_stars_are_any_number_of_folders_none_included(self, files):
        make(files, "notes/a.md", "notes/x/y/a.md", "notes/x/b.md", "a.md")
        assert files.found("notes/**/a.md") == ["notes/a.md", "notes/x/y/a.md"]
        assert files.found("**/a.md") == ["a.md", "notes/a.md", "notes/x/y/a.md"]
        assert files.found("notes/**") == ["notes/a.md", "notes/x/b.md", "notes/x/y/a.md"]
        assert files.found("**") == files.paths()

    def test_item_048_glued_stars_are_no_folder_wildcard(self, files):
        make(files, "ab", "axb", "a/b", "a/x/b")
        assert files.found("a**b") == ["ab", "axb"]
        assert files.found("a/**b") == ["a/b"]

    def test_item_049_a_question_mark_is_one_character_and_no_slash(self, files):
        make(files, "a.md", "ab.md", "n/b", "😀.md")
        assert files.found("?.md") == ["a.md", "😀.md"]
        assert files.found("n?b") == []

    def test_item_050_a_set_is_one_character_in_a_range_or_not_in_it(self, files):
        make(files, "a.md", "b.md", "c.md", "d.md", "-.md", "!.md", "n/x")
        assert files.found("[ab].md") == ["a.md", "b.md"]
        assert files.found("[b-c].md") == ["b.md", "c.md"]
        assert files.found("[!a-d].md") == ["!.md", "-.md"]
        assert files.found("[-a].md") == ["-.md", "a.md"]
        assert files.found("[a!].md") == ["!.md", "a.md"]
        assert files.found("n[!a]x") == []

    def test_item_051_everything_else_is_literal(self, files):
        names = ["{a,b}.md", "a+b(c).md", ".hidden", "a^$|.md", "xmd", "]x"]
        make(files, *names)
        for name in names:
            assert files.found(name) == [name]
        assert files.found("*hidden") == [".hidden"]
        assert files.found("*.md") == sorted(name for name in names if name.endswith(".md"))

    def test_item_052_a_backslash_is_refused(self, files):
        for pattern in ("\\*", "a\\", "[\\]]"):
            files.refuse_argument("pattern", "file_find", pattern=pattern)
            files.refuse_argument("glob", "file_search", text="x", glob=pattern)

    def test_item_053_case_matters(self, files):
        make(files, "Notes.md", "notes.md")
        assert files.found("n*.md") == ["notes.md"]
        assert files.found("[A-Z]*") == ["Notes.md"]

    def test_item_054_a_leading_slash_is_ignored(self, files):
        make(files, "a/b.md", "b.md")
        assert files.found("/a/*.md") == ["a/b.md"]
        assert files.found("/b.md") == files.found("b.md")

    def test_item_055_without_a_slash_the_name_is_matched_at_any_depth(self, files):
        make(files, "a.md", "n/a.md", "n/a.md.txt")
        assert files.found("a.md") == ["a.md", "n/a.md"]
        assert files.found("n") == []

    def test_item_056_with_a_slash_the_path_from_the_folder_is_matched(self, files):
        make(files, "n/o/a.md", "o/a.md", "n/a.md")
        assert files.found("o/a.md") == ["o/a.md"]
        assert files.found("o/a.md", path="n") == ["n/o/a.md"]
        assert files.found("n/a.md", path="n") == []

    def test_item_057_a_page_examines_2000_files_and_may_find_none(self, many):
        first = many.call("file_find", pattern="f2004.txt")
        assert first["files"] == []
        second = many.call("file_find", pattern="f2004.txt", cursor=first["cursor"])
        assert [row["path"] for row in second["files"]] == ["many/f2004.txt"]
        assert "cursor" not in second
        assert many.call("file_find", pattern="f2000.txt")["files"] == []
        at_bound = many.call("file_find", pattern="f1999.txt")
        assert [row["path"] for row in at_bound["files"]] == ["many/f1999.txt"]
        assert "cursor" in at_bound

    def test_item_057_exactly_2000_files_end_without_a_cursor(self, many):
        many = many.again()
        first = many.call("file_find", pattern="none", path="many")
        for number in range(2000, 2005):
            many.call("file_move", from_=f"many/f{number}.txt", to=f"more/f{number}.txt")
        assert "cursor" in first
        assert "cursor" not in many.call("file_find", pattern="none", path="many")
        for number in range(2000, 2005):
            many.call("file_move", from_=f"more/f{number}.txt", to=f"many/f{number}.txt")

    @pytest.mark.parametrize(("chars", "pages"), [(10_000, 1), (150, 5), (100, 7), (1, 20)])
    def test_a_page_ends_when_its_pattern_has_cost_enough_and_the_next_goes_on(
        self, local, monkeypatch, chars, pages
    ):
        monkeypatch.setattr(listing, "MAX_MATCHED_CHARS", chars)
        world = local.again()
        paths = [f"{number:02}.md" for number in range(20)]
        make(world, *paths)
        for tool, wanted in (
            ("file_find", {"pattern": "*[0-9].*"}),
            ("file_search", {"text": "x", "glob": "*[0-9].*"}),
        ):
            seen, cursors, cursor = [], 0, None
            while cursors == 0 or cursor is not None:
                more = {} if cursor is None else {"cursor": cursor}
                page = world.call(tool, **wanted, **more)
                seen += [row["path"] for row in page["files"]]
                cursor, cursors = page.get("cursor"), cursors + 1
            assert seen == paths
            assert cursors == pages

    def test_no_pattern_and_no_path_make_a_page_cost_more_than_a_bound(self):
        longest = Examination(compile_glob("*" + "[ab]" * 49 + "c"))
        permitted = sum(longest.permits("a" * 1_024) for _ in range(2_000))
        assert permitted * 1_024 * 198 < listing.MAX_MATCHED_CHARS + 1_024 * 198
        usual = Examination(compile_glob("notes/**/*.md"))
        assert all(usual.permits("notes/team/2026/a-usual-name-of-a-file.md") for _ in range(2_000))
        assert not usual.permits("a.md")

    def test_item_143_ties_in_time_are_broken_by_path(self, files):
        moment = files.options["clock"]()
        files = files.again(clock=lambda: moment)
        make(files, "c.md", "a.md", "n/d.md", "b.md")
        expected = ["a.md", "b.md", "c.md", "n/d.md"]
        assert files.found("*", sortBy="modified") == expected
        assert files.found("*", sortBy="modified", pageSize=1) == expected
        files.again(clock=lambda: moment + timedelta(seconds=1)).call(
            "file_append", path="n/d.md", text="x"
        )
        assert files.found("*", sortBy="modified", pageSize=3) == [expected[3], *expected[:3]]

    def test_item_143_ties_are_broken_by_path_wherever_the_tree_keeps_them(self, local):
        moment = datetime(2026, 1, 1, tzinfo=UTC)
        policy = TreePolicy(page_entries=4, inline_entries=3)
        world = local.again(policy=policy, clock=lambda: moment)
        paths = [f"{number:02}.md" for number in range(30)]
        make(world, *paths)
        later = world.again(clock=lambda: moment + timedelta(seconds=1))
        later.call("file_append", path="21.md", text="x")
        expected = ["21.md", *(path for path in paths if path != "21.md")]
        for size in (1, 7, 200):
            assert world.found("*", sortBy="modified", pageSize=size) == expected

    def test_item_143_files_are_examined_in_the_order_of_time(self, many):
        newest = max(many.tree.snapshot().walk(), key=lambda entry: (entry.modified, entry.path))
        name = newest.path.rpartition("/")[2]
        page = many.call("file_find", pattern=name, sortBy="modified")
        assert [row["path"] for row in page["files"]] == [newest.path]
        oldest = min(many.tree.snapshot().walk(), key=lambda entry: (entry.modified, entry.path))
        name = oldest.path.rpartition("/")[2]
        page = many.call("file_find", pattern=name, sortBy="modified")
        assert page["files"] == []
        assert many.found(name, sortBy="modified") == [oldest.path]

    @pytest.mark.parametrize(
        "pattern", ["[a", "a[", "[]", "[!]", "[c-a]", "[]a]", "/", "//a", "a//b", "a/", "[a/b]"]
    )
    def test_item_147_a_pattern_that_is_not_whole_is_refused(self, files, pattern):
        files.refuse_argument("pattern", "file_find", pattern=pattern)
        files.refuse_argument("glob", "file_search", text="x", glob=pattern)

    def test_item_147_a_slash_alone_before_a_name_keeps_its_meaning(self, files):
        make(files, "a.md", "n/a.md")
        assert files.found("/a.md") == files.found("a.md") == ["a.md", "n/a.md"]

    def test_item_147_only_two_stars_that_are_a_whole_name_match_a_slash(self, files):
        make(files, "ab", "a/b", "axb", "a/x/b")
        for pattern in ("a?b", "a[!x]b", "a[.-0]b", "a*b", "a**b"):
            assert "a/b" not in files.found(pattern)
        assert files.found("a**b") == files.found("a*b") == ["ab", "axb"]
        assert files.found("**/b") == ["a/b", "a/x/b"]
