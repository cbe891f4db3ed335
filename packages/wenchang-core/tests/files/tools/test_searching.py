"""Items 58 to 71, 145 and 146: file_search."""

from __future__ import annotations

import pytest

MIB = 1024 * 1024


def rows(files, text, **arguments):
    """Return the rows of all pages."""
    pages = files.pages("file_search", text=text, **arguments)
    return [row for page in pages for row in page["files"]]


def shown(page):
    """Return path, line, and whether it matches, of each line on a page."""
    return [
        (row["path"], line["line"], line["match"]) for row in page["files"] for line in row["lines"]
    ]


class TestSearching:
    """file_search."""

    def test_item_058_each_character_means_itself(self, files):
        files.make({"a.md": "abc\na.c\n[x]*\n"})
        assert files.hits("a.c") == [("a.md", 2)]
        assert files.hits("[x]*") == [("a.md", 3)]

    def test_item_059_the_text_has_1_to_500_characters(self, files):
        files.make({"a.md": "x" * 500 + "\n" + "y" * 499})
        assert files.hits("x" * 500) == [("a.md", 1)]
        assert files.hits("y" * 500) == []
        files.refuse_argument("text", "file_search", text="")
        files.refuse_argument("text", "file_search", text="x" * 501)
        files.refuse_argument("text", "file_search")

    def test_item_060_it_is_matched_within_one_line(self, files):
        files.make({"a.md": "one\ntwo\n"})
        assert files.hits("onetwo") == files.hits("one two") == []
        for text in ("one\ntwo", "\n", "two\n"):
            files.refuse_argument("text", "file_search", text=text)

    def test_item_061_a_carriage_return_is_a_character(self, files):
        files.make({"a.md": "x\r\nx\n", "b.md": "ax\rb\n"})
        assert files.hits("x\r") == [("a.md", 1), ("b.md", 1)]

    def test_item_062_case_is_ignored_unless_it_is_asked_for(self, files):
        files.make({"a.md": "Straße\nSTRASSE\nstrasse\n"})
        assert files.hits("STRASSE") == [("a.md", 1), ("a.md", 2), ("a.md", 3)]
        assert files.hits("strasse", caseSensitive=True) == [("a.md", 3)]
        assert files.hits("strasse", caseSensitive=False) == files.hits("strasse")
        files.refuse_argument("caseSensitive", "file_search", text="x", caseSensitive="yes")

    def test_item_063_a_glob_restricts_the_files(self, files):
        files.make({"a.md": "x", "n/b.md": "x", "n/c.txt": "x", "n/o/d.md": "x"})
        assert files.hits("x", glob="*.md") == [("a.md", 1), ("n/b.md", 1), ("n/o/d.md", 1)]
        assert files.hits("x", glob="n/*") == [("n/b.md", 1), ("n/c.txt", 1)]
        assert files.hits("x", path="n", glob="*/d.md") == [("n/o/d.md", 1)]

    @pytest.mark.servers
    def test_item_064_lines_are_shown_in_grep_form_with_context(self, files):
        files.make({"n/a.md": "".join(f"{number}\n" for number in range(1, 31)), "b.md": "z\n"})
        text = files.answer("file_search", text="15", context=2).text.splitlines()
        assert text[1:] == [
            "n/a.md-13-13",
            "n/a.md-14-14",
            "n/a.md:15:15",
            "n/a.md-16-16",
            "n/a.md-17-17",
        ]
        page = files.call("file_search", text="15", context=10, mode="lines")
        assert [line for _, line, _ in shown(page)] == list(range(5, 26))
        assert shown(files.call("file_search", text="15")) == [("n/a.md", 15, True)]
        for context in (11, -1, "1", True, 1.5):
            files.refuse_argument("context", "file_search", text="15", context=context)

    def test_item_065_mode_files_names_each_file_with_a_match_once(self, files):
        files.make({"a.md": "x x\nx\n", "b.md": "y\n", "n/c.md": "x"})
        page = files.call("file_search", text="x", mode="files")
        assert [row["path"] for row in page["files"]] == ["a.md", "n/c.md"]
        assert all("lines" not in row for row in page["files"])
        assert files.answer("file_search", text="x", mode="files").text.splitlines()[1:] == [
            "a.md",
            "n/c.md",
        ]
        files.refuse_argument("mode", "file_search", text="x", mode="words")

    def test_item_066_mode_counts_counts_matching_lines(self, files):
        files.make({"a.md": "x x\ny\nx\n", "b.md": "y\n", "c.md": "x"})
        page = files.call("file_search", text="x", mode="counts")
        counts = {row["path"]: row["matchingLines"] for row in page["files"]}
        assert counts == {"a.md": 2, "c.md": 1}
        assert files.answer("file_search", text="x", mode="counts").text.splitlines()[1:] == [
            "a.md:2",
            "c.md:1",
        ]

    def test_item_067_files_are_searched_in_path_order(self, files):
        paths = ["b.md", "a/z.md", "a.md", "a/b.md", "a-1.md", "c.md"]
        for number, path in enumerate(paths):
            # Neither time nor size runs with the path.
            files.call("file_create", path=path, content="x\nx\n" + "y" * (number * 5 % 6))
        assert files.hits("x") == [(path, line) for path in sorted(paths) for line in (1, 2)]
        assert [row["path"] for row in rows(files, "x", mode="files")] == sorted(paths)

    @pytest.mark.parametrize(
        ("mode", "expected"),
        [
            ("lines", [[("a.md", 2)], [("a.md", 1), ("b.md", 1)], [("b.md", 1), ("c.md", 1)]]),
            ("files", [["a.md", "b.md"], ["c.md"]]),
            ("counts", [["a.md", "b.md"], ["c.md"]]),
        ],
    )
    def test_item_068_a_page_ends_at_page_size_matches(self, files, mode, expected):
        files.make({"a.md": "x\nx\nx\n", "b.md": "x\nx\n", "c.md": "x\n"})
        pages = files.pages("file_search", text="x", mode=mode, pageSize=2)
        if mode == "lines":
            got = [[(row["path"], len(row["lines"])) for row in page["files"]] for page in pages]
        else:
            got = [[row["path"] for row in page["files"]] for page in pages]
        assert got == expected

    def test_item_068_a_page_reads_at_most_4_mib(self, local):
        local = local.again(max_file_bytes=4 * MIB)
        local.make({f"{number}.md": "x\n" + "y" * (MIB - 2) for number in range(6)})
        pages = local.pages("file_search", text="x")
        assert [[row["path"] for row in page["files"]] for page in pages] == [
            ["0.md", "1.md", "2.md", "3.md"],
            ["4.md", "5.md"],
        ]
        local.call("file_append", path="0.md", text="z")
        pages = local.pages("file_search", text="x", mode="files")
        assert [len(page["files"]) for page in pages] == [3, 3]

    def test_item_068_a_first_file_of_4_mib_is_searched(self, local):
        local = local.again(max_file_bytes=4 * MIB)
        local.make({"a.md": "y" * (4 * MIB - 1) + "x", "b.md": "x"})
        pages = local.pages("file_search", text="x", mode="counts")
        assert [[row["path"] for row in page["files"]] for page in pages] == [["a.md"], ["b.md"]]

    def test_item_068_a_page_opens_at_most_100_files(self, local):
        local.make({f"{number:03}.md": "y" if number < 150 else "x" for number in range(160)})
        pages = local.pages("file_search", text="x")
        assert [len(page["files"]) for page in pages] == [0, 10]
        assert "more" in local.answer("file_search", text="x").text

    def test_item_068_exactly_100_files_end_without_a_cursor(self, local):
        local.make({f"{number:03}.md": "y" for number in range(100)} | {"a.txt": "y"})
        assert len(local.pages("file_search", text="x", glob="*.md")) == 1
        assert len(local.pages("file_search", text="x")) == 2

    def test_item_068_a_page_examines_at_most_2000_files(self, many):
        pages = many.pages("file_search", text="needle 2004", glob="f2004.txt")
        assert [[row["path"] for row in page["files"]] for page in pages] == [
            [],
            ["many/f2004.txt"],
        ]
        for number, found in ((1999, [1, 0]), (2000, [0, 1])):
            pages = many.pages("file_search", text="needle", glob=f"f{number}.txt")
            assert [len(page["files"]) for page in pages] == found

    def test_item_068_a_page_reports_262144_characters_of_lines(self, local):
        local = local.again(max_answer_chars=2_000_000)
        line = "x" * 1024 + "\n"
        local.make({"a.md": line * 128, "b.md": line * 128, "c.md": line})
        pages = local.pages("file_search", text="x", pageSize=200)
        counts = [sum(len(row["lines"]) for row in page["files"]) for page in pages]
        assert counts == [200, 57]
        pages = local.pages("file_search", text="x", pageSize=200, context=10)
        assert sum(len(shown(page)) for page in pages) == 257
        wide = local.again(entity="wide")
        wide.make({"a.md": ("x" * 32_768 + "\n") * 9})
        assert [len(shown(page)) for page in wide.pages("file_search", text="x")] == [8, 1]
        less = local.again(entity="less")
        less.make({"a.md": ("x" * 32_768 + "\n") * 7 + "x" * 32_767 + "\nx\n"})
        assert [len(shown(page)) for page in less.pages("file_search", text="x")] == [9]
        many = wide.call("file_search", text="x", mode="counts")
        assert many["files"][0]["matchingLines"] == 9

    def test_item_069_the_match_that_crosses_the_bound_is_reported_whole(self, local):
        local = local.again(max_answer_chars=2_000_000)
        local.make({"a.md": "x" * 200_000 + "\ny\n" + "x" * 150_000 + "\nz\nx\n"})
        first, second = local.pages("file_search", text="x", context=1)
        assert shown(first) == [
            ("a.md", 1, True),
            ("a.md", 2, False),
            ("a.md", 3, True),
            ("a.md", 4, False),
        ]
        assert len(first["files"][0]["lines"][2]["text"]) == 150_000
        assert shown(second) == [("a.md", 5, True)]

    def test_item_070_following_cursors_visits_every_file_exactly_once(self, local):
        contents = {
            f"{number % 7}/{number:03}.md": ("x\n" * (number % 4)) + ("y" * (number % 3))
            for number in range(230)
        }
        local.make(contents)
        for mode in ("lines", "files", "counts"):
            for size in (1, 7, 200):
                found = rows(local, "x", mode=mode, pageSize=size)
                paths = [row["path"] for row in found]
                if mode == "lines":
                    hits = [(row["path"], line["line"]) for row in found for line in row["lines"]]
                    assert hits == [
                        (path, line + 1)
                        for path in sorted(contents)
                        for line in range(contents[path].count("x"))
                    ]
                else:
                    assert paths == sorted(path for path, text in contents.items() if "x" in text)

    @pytest.mark.parametrize("size", [1, 2, 3, 200])
    @pytest.mark.parametrize("context", [0, 1, 2, 3, 10])
    def test_item_071_no_line_is_shown_twice_or_from_another_file(self, files, context, size):
        lines = [
            f"{'x' if number in {3, 4, 6, 11, 19, 20} else 'y'}{number}" for number in range(25)
        ]
        files.make({"a.md": "\n".join(lines), "b.md": "y\nx\ny\n", "c.md": "x"})
        pages = files.pages("file_search", text="x", context=context, pageSize=size)
        found = [each for page in pages for each in shown(page)]
        assert len(found) == len(set(found))
        assert found == sorted(found)
        near = {
            ("a.md", number + 1)
            for number in range(25)
            if any(abs(number - match) <= context for match in (3, 4, 6, 11, 19, 20))
        }
        near |= {("b.md", 2), ("c.md", 1)} | ({("b.md", 1), ("b.md", 3)} if context else set())
        shown_lines = {(path, line) for path, line, _ in found}
        assert shown_lines == near
        assert sum(match for _, _, match in found) == 8
        texts = {
            line["line"]: line["text"]
            for page in pages
            for line in page["files"][0]["lines"]
            if page["files"][0]["path"] == "a.md"
        }
        assert all(text == lines[number - 1] for number, text in texts.items())

    def test_item_071_groups_are_set_apart(self, files):
        files.make({"a.md": "x\ny\ny\ny\nx\ny\n", "b.md": "x\n"})
        text = files.answer("file_search", text="x", context=1).text.splitlines()[1:]
        assert text == [
            "a.md:1:x",
            "a.md-2-y",
            "--",
            "a.md-4-y",
            "a.md:5:x",
            "a.md-6-y",
            "--",
            "b.md:1:x",
        ]

    def test_item_145_ignoring_case_compares_casefolded_text_unnormalised(self, files):
        files.make({"a.md": "ΣΊΣΥΦΟΣ\nﬁne\ne\u0301t\u00e9\nİ\n"})
        assert files.hits("σίσυφος") == [("a.md", 1)]
        assert files.hits("FINE") == [("a.md", 2)]
        assert files.hits("\u00e9t") == []
        assert files.hits("T\u00c9") == [("a.md", 3)]
        assert files.hits("i\u0307") == [("a.md", 4)]
        assert files.hits("İ", caseSensitive=True) == [("a.md", 4)]

    def test_item_146_a_file_is_finished_on_its_page_but_for_lines(self, files):
        files.make({"a.md": "x\n" * 5, "b.md": "x\n"})
        lines = files.pages("file_search", text="x", pageSize=3)
        assert [len(shown(page)) for page in lines] == [3, 3]
        counts = files.pages("file_search", text="x", mode="counts", pageSize=1)
        assert [page["files"][0]["matchingLines"] for page in counts] == [5, 1]
        assert len(files.pages("file_search", text="x", mode="files", pageSize=1)) == 2

    def test_a_file_that_changed_between_pages_goes_on_after_the_lines_shown(self, files):
        files.make({"a.md": "x1\nx2\nx3\n", "b.md": "x\n"})
        first = files.call("file_search", text="x", pageSize=2)
        files.call("file_append", path="a.md", text="x4\n")
        rest = files.call("file_search", text="x", cursor=first["cursor"])
        assert shown(rest) == [("a.md", 3, True), ("a.md", 4, True), ("b.md", 1, True)]
        files.call("file_delete", path="a.md")
        rest = files.call("file_search", text="x", cursor=first["cursor"])
        assert shown(rest) == [("b.md", 1, True)]

    def test_a_long_line_is_cut_around_the_match_where_no_answer_holds_it(self, files):
        files = files.again(max_answer_chars=16_000)
        files.make({"a.md": "y" * 100_000 + "Nadel" + "z" * 100_000 + "\n", "b.md": "nadel"})
        pages = files.pages("file_search", text="nadel")
        (line,) = pages[0]["files"][0]["lines"]
        assert line["cut"]
        assert "Nadel" in line["text"]
        assert files.hits("nadel") == [("a.md", 1), ("b.md", 1)]

    def test_the_longest_context_fits_the_smallest_answer(self, files):
        files = files.again(max_answer_chars=16_000)
        line = '"\t\x01' * 3000 + "\n"
        path = "/".join(['"' * 99] * 4)
        files.make({path: line * 10 + "Nadel " + line + line * 10, "zz.md": "nadel"})
        assert files.hits("nadel", context=10) == [(path, 11), ("zz.md", 1)]

    def test_a_damaged_file_is_named_and_hides_no_other(self, local):
        local.make({f"{name}.md": "x\n" for name in "abcdefgh"})
        key = f"@files/{local.entity}/{local.entry('c.md').key}"
        local.storage.put(key, b"\xff x", local.storage.get(key).metadata)
        fresh = local.again()
        page = fresh.call("file_search", text="x")
        assert page["unreadable"] == ["c.md"]
        assert fresh.hits("x") == [(f"{name}.md", 1) for name in "abdefgh"]
        assert "c.md" in fresh.answer("file_search", text="x").text
