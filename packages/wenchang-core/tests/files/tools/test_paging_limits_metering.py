"""Items 19 to 21, 120 to 136, 142 and 155 to 157: pages, limits, content, metering, decisions."""

from __future__ import annotations

import base64
import json
from datetime import datetime, timedelta, timezone

import pytest

from wenchang.core import MemoryStore
from wenchang.errors import RestrictedScopeError
from wenchang.files.accounts import FileAccounts
from wenchang.files.cursors import PageCursor
from wenchang.files.errors import InvalidArgumentError, NoFilesError
from wenchang.files.limits import TreeLimits
from wenchang.files.policy import HistoryPolicy
from wenchang.files.settings import FileSettings
from wenchang.files.tools import (
    FILE_TOOL_NAMES,
    FileTools,
    bind_file_tools,
    file_tool_names,
    render_error,
)
from wenchang.identity import Identity, SandboxResolver, ScopeGrant
from wenchang.mcp import _files as mcp_files
from wenchang.scope import ScopePolicy
from wenchang.storage.memory import InMemoryStorage

CALLS = [
    ("file_create", {"path": "n/a.md", "content": "one\n"}),
    ("file_append", {"path": "n/a.md", "text": "two\n"}),
    ("file_list", {}),
    ("file_read", {"path": "n/a.md"}),
    ("file_find", {"pattern": "*"}),
    ("file_search", {"text": "one"}),
    ("file_edit", {"path": "n/a.md", "edits": [{"oldText": "one", "newText": "1"}]}),
    ("file_move", {"from": "n", "to": "m"}),
    ("file_write", {"path": "b.md", "content": "x"}),
    ("file_delete", {"path": "b.md"}),
]
PAGED = [
    ("file_list", {"path": "n", "depth": 2}, {"path": "m", "depth": 1}),
    (
        "file_find",
        {"pattern": "*", "path": "n"},
        {"path": "", "pattern": "*.md", "sortBy": "modified"},
    ),
    (
        "file_search",
        {"text": "x", "path": "n"},
        {
            "path": "m",
            "text": "X",
            "glob": "*",
            "caseSensitive": True,
            "mode": "files",
            "context": 1,
        },
    ),
]


def fill(files):
    files.make({f"{folder}/{number:02}.md": "x\n" for folder in "nm" for number in range(12)})


def unpadded(cursor):
    return base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))


class TestMetering:
    """What a call is charged as."""

    def test_item_019_each_tool_has_an_operation_name_of_its_own(self, local):
        records = []
        files = local.again(on_call=records.append)
        for tool, arguments in CALLS:
            files.call(tool, **arguments)
        assert {record.tool: record.operation for record in records} == {
            tool: tool.replace("_", "-") for tool in FILE_TOOL_NAMES
        }

    def test_item_020_a_call_is_one_unit_whatever_its_size(self, local):
        records = []
        local.make({f"{number}.md": "x" * 1000 for number in range(10)})
        files = local.again(on_call=records.append)
        answer = files.call("file_read", paths=[f"{number}.md" for number in range(10)])
        assert len(answer["files"]) == 10
        assert [record.operation for record in records] == ["file-read"]
        assert json.dumps(dict(records[0].result)) == json.dumps(answer)
        assert not records[0].is_error
        files.refuse("NOT_FOUND", "file_read", path="gone.md")
        files.refuse("INVALID_ARGUMENT", "file_read", bogus=1)
        assert [record.is_error for record in records] == [False, True, True]
        assert records[1].result["code"] == "NOT_FOUND"
        assert records[2].arguments == {"bogus": 1}

    def test_item_021_four_tools_read_three_lose_nothing_three_replace_or_remove(self):
        hints = {name: mcp_files._annotations(name) for name in FILE_TOOL_NAMES}
        reading = [name for name, hint in hints.items() if hint.read_only_hint]
        assert reading == ["file_list", "file_read", "file_find", "file_search"]
        destructive = [name for name, hint in hints.items() if hint.destructive_hint]
        assert destructive == ["file_edit", "file_write", "file_delete"]
        again = [name for name, hint in hints.items() if not hint.idempotent_hint]
        assert again == ["file_append", "file_edit"]


class TestPaging:
    """Pages and cursors."""

    @pytest.mark.parametrize(("tool", "arguments", "_other"), PAGED)
    def test_item_120_a_page_has_a_cursor_while_more_remains(self, files, tool, arguments, _other):
        fill(files)
        first = files.call(tool, **arguments, pageSize=11)
        assert first["cursor"]
        assert first["cursor"] in files.answer(tool, **arguments, pageSize=11).text.splitlines()[-1]
        last = files.call(tool, **arguments, pageSize=11, cursor=first["cursor"])
        assert "cursor" not in last
        assert "cursor" not in files.call(tool, **arguments, pageSize=12)
        assert "cursor" not in files.answer(tool, **arguments).text

    @pytest.mark.parametrize(("tool", "arguments", "other"), PAGED)
    def test_item_121_a_changed_argument_is_refused(self, files, tool, arguments, other):
        fill(files)
        cursor = files.call(tool, **arguments, pageSize=5)["cursor"]
        for name, value in other.items():
            changed = {**arguments, name: value}
            files.refuse_argument("cursor", tool, **changed, cursor=cursor)
        for each, rest, _ in PAGED:
            if each != tool:
                files.refuse_argument("cursor", each, **rest, cursor=cursor)
        same = {**arguments, "path": f"/{arguments['path']}/"}
        assert files.call(tool, **same, cursor=cursor) == files.call(
            tool, **arguments, cursor=cursor
        )

    def test_item_121_a_cursor_of_one_order_is_refused_in_the_other(self, files):
        fill(files)
        for order, other in (("modified", "path"), ("path", "modified")):
            cursor = files.call("file_find", pattern="*", sortBy=order, pageSize=5)["cursor"]
            files.refuse_argument("cursor", "file_find", pattern="*", sortBy=other, cursor=cursor)

    def test_item_121_a_cursor_belongs_to_one_tool(self):
        cursor = PageCursor("user/ada", "file_list", ["n", 1]).encode("n/a.md")
        assert PageCursor("user/ada", "file_list", ["n", 1]).decode(cursor) == "n/a.md"
        for tool, arguments in (("file_find", ["n", 1]), ("file_list", ["n", "1"])):
            with pytest.raises(InvalidArgumentError):
                PageCursor("user/ada", tool, arguments).decode(cursor)

    @pytest.mark.parametrize(("tool", "arguments", "_other"), PAGED)
    def test_item_122_a_cursor_of_another_account_is_refused(self, files, tool, arguments, _other):
        other = files.again(entity=f"{files.entity}-2")
        fill(files)
        fill(other)
        cursor = files.call(tool, **arguments, pageSize=5)["cursor"]
        refused = other.refuse_argument("cursor", tool, **arguments, cursor=cursor)
        assert files.entity not in json.dumps(refused)
        assert files.entity.encode() not in unpadded(cursor)
        assert files.again().call(tool, **arguments, cursor=cursor)

    @pytest.mark.parametrize(("tool", "arguments", "_other"), PAGED)
    def test_item_123_a_malformed_or_truncated_cursor_is_refused(
        self, local, tool, arguments, _other
    ):
        fill(local)
        cursor = local.call(tool, **arguments, pageSize=5)["cursor"]
        bad = [cursor[:size] for size in range(len(cursor))]
        bad += [cursor + "A", cursor + "=", " " + cursor, cursor.swapcase(), "null", "é", "\ud800"]
        flipped = bytearray(unpadded(cursor))
        flipped[2] ^= 1
        bad.append(base64.urlsafe_b64encode(bytes(flipped)).decode().rstrip("="))
        for text in (*bad, "A" * 1_000_000):
            refused = local.refuse_argument("cursor", tool, **arguments, cursor=text)
            assert len(refused["message"]) < 1000
        for value in (3, ["x"], {"a": 1}, True):
            local.refuse_argument("cursor", tool, **arguments, cursor=value)

    @pytest.mark.parametrize(("tool", "arguments", "_other"), PAGED)
    def test_item_124_page_size_is_1_to_200(self, files, tool, arguments, _other):
        fill(files)
        for size in (0, 201, -1, True, 1.0, "5"):
            files.refuse_argument("pageSize", tool, **arguments, pageSize=size)
        assert "cursor" in files.call(tool, **arguments, pageSize=1)
        assert "cursor" not in files.call(tool, **arguments, pageSize=200)

    @pytest.mark.parametrize(("tool", "arguments", "_other"), PAGED)
    def test_item_125_each_page_takes_the_page_size_sent_with_it(
        self, files, tool, arguments, _other
    ):
        fill(files)
        key = "entries" if tool == "file_list" else "files"
        first = files.call(tool, **arguments, pageSize=3)
        second = files.call(tool, **arguments, cursor=first["cursor"], pageSize=2)
        rest = files.call(tool, **arguments, cursor=second["cursor"])
        assert [len(page[key]) for page in (first, second, rest)] == [3, 2, 7]

    @pytest.mark.parametrize(("tool", "arguments", "_other"), PAGED)
    def test_item_125_without_one_a_later_page_has_the_size_of_the_tool(
        self, local, tool, arguments, _other
    ):
        local.make({f"n/{number:03}.md": "x\n" for number in range(140)})
        first = local.call(tool, **arguments, pageSize=3)
        rest = local.call(tool, **arguments, cursor=first["cursor"])
        key = "entries" if tool == "file_list" else "files"
        assert len(rest[key]) == (50 if tool == "file_search" else 100)

    @pytest.mark.parametrize(("tool", "arguments", "_other"), PAGED)
    def test_item_126_another_page_size_loses_nothing(self, files, tool, arguments, _other):
        fill(files)
        key = "entries" if tool == "file_list" else "files"
        paths, page = [], None
        for size in (1, 4, 2, 200):
            cursor = {} if page is None else {"cursor": page["cursor"]}
            page = files.call(tool, **arguments, **cursor, pageSize=size)
            paths += [row["path"] for row in page[key]]
        assert paths == [f"n/{number:02}.md" for number in range(12)]
        assert "cursor" not in page

    @pytest.mark.parametrize(
        ("tool", "arguments", "key"),
        [
            ("file_list", {"depth": 5}, "entries"),
            ("file_find", {"pattern": "*"}, "files"),
            ("file_find", {"pattern": "*", "sortBy": "modified"}, "files"),
            ("file_search", {"text": "x"}, "files"),
            ("file_search", {"text": "x", "mode": "files"}, "files"),
            ("file_search", {"text": "x", "mode": "counts", "context": 3}, "files"),
        ],
    )
    def test_item_127_a_page_ends_early_before_an_answer_is_too_long(
        self, files, tool, arguments, key
    ):
        files = files.again(max_answer_chars=16_000)
        paths = [f"{'ü' * 240}-{number:02}/{'n' * 140}.md" for number in range(60)]
        files.make({path: f"{number} x {'y' * 200}\n" for number, path in enumerate(paths)})
        pages = files.pages(tool, **arguments, pageSize=200)
        assert len(pages) > 1
        shown = [row["path"] for page in pages for row in page[key] if row.get("kind") != "folder"]
        assert sorted(shown) == paths

    def test_item_127_text_and_structure_are_bounded_each_by_itself(self, local):
        local = local.again(max_answer_chars=16_000)
        # Each line repeats the path in the text only; a quotation mark is longer in JSON only.
        local.make({f"{'p' * 250}/{'q' * 140}.md": "x\n" * 150, "quoted.md": '"' * 15_000 + "\n"})
        pages = local.pages("file_search", text="x", pageSize=200)
        assert sum(len(row["lines"]) for page in pages for row in page["files"]) == 150
        assert len(pages) > 3
        local.refuse("LIMIT_EXCEEDED", "file_read", path="quoted.md")
        local.call("file_write", path="quotes.md", content='""""""""\n' * 1200)
        read = local.call("file_read", path="quotes.md")["files"][0]
        assert 1 < read["toLine"] < 1200

    def test_item_142_the_default_page_size_is_100_and_50_for_search(self, local):
        local.make({f"{number:03}.md": "x\n" for number in range(101)})
        assert len(local.call("file_list")["entries"]) == 100
        assert len(local.call("file_find", pattern="*")["files"]) == 100
        for mode in ("lines", "files", "counts"):
            assert len(local.call("file_search", text="x", mode=mode)["files"]) == 50

    @pytest.mark.servers
    def test_a_file_that_nobody_touches_appears_once_whatever_happens_between_pages(self, files):
        files.make({f"{number:02}.md": "x" for number in range(0, 30, 2)})
        seen, page, number = [], files.call("file_find", pattern="*", pageSize=2), 1
        while True:
            seen += [row["path"] for row in page["files"]]
            files.call("file_create", path=f"{number:02}.md", content="new")
            if "cursor" not in page:
                break
            cursor, number = page["cursor"], number + 2
            page = files.call("file_find", pattern="*", pageSize=2, cursor=cursor)
        untouched = [path for path in seen if int(path[:2]) % 2 == 0]
        assert untouched == [f"{number:02}.md" for number in range(0, 30, 2)]


class TestLimitsAndContent:
    """Limits, and what content may be."""

    def test_item_128_four_limits_are_settings_and_can_change(self, files):
        files = files.again(max_depth=2, max_file_bytes=10, max_total_bytes=20, max_file_count=3)
        files.make({"a.md": "é" * 5, "b.md": "x" * 8})
        cases = [
            ("maxDepth", {"path": "1/2/3/c.md", "content": "x"}, 3, 2),
            ("maxFileBytes", {"path": "c.md", "content": "é" * 5 + "x"}, 11, 10),
            ("maxTotalBytes", {"path": "c.md", "content": "xyz"}, 21, 20),
        ]
        for limit, arguments, value, maximum in cases:
            refused = files.refuse("LIMIT_EXCEEDED", "file_create", **arguments)
            assert (refused["limit"], refused["value"], refused["maximum"]) == (
                limit,
                value,
                maximum,
            )
        files.call("file_create", path="c.md", content="xy")
        refused = files.refuse("LIMIT_EXCEEDED", "file_create", path="d.md", content="")
        assert (refused["limit"], refused["value"], refused["maximum"]) == ("maxFileCount", 4, 3)
        wider = files.again(max_depth=3, max_file_bytes=30, max_total_bytes=40, max_file_count=5)
        wider.call("file_create", path="1/2/3/c.md", content="x" * 11)

    def test_item_129_the_smaller_of_two_depths_rules(self, files):
        for own, ceiling, in_force in ((3, 2, 2), (1, 2, 1), (None, 2, 2)):
            bound = files.again(max_depth=ceiling, max_depth_of=lambda _, own=own: own)
            assert bound.call("file_list")["limits"]["maxDepth"]["maximum"] == in_force
            deep = "/".join("d" * (in_force + 1)) + "/a.md"
            refused = bound.refuse("LIMIT_EXCEEDED", "file_create", path=deep, content="x")
            assert refused["maximum"] == in_force
        entities = []
        files.again(max_depth_of=entities.append).call("file_list")
        assert set(entities) == {files.entity}
        with pytest.raises(ValueError):
            files.again(max_depth_of=lambda _: 21).tools.call("file_list", {})

    def test_item_129_a_depth_that_an_account_changes_holds_from_the_next_call_on(self, local):
        own = [5]
        files = local.again(max_depth_of=lambda _: own[0])
        files.call("file_create", path="1/2/a.md", content="x")
        own[0] = 1
        files.refuse("LIMIT_EXCEEDED", "file_create", path="1/2/b.md", content="x")
        assert files.call("file_list")["limits"]["maxDepth"] == {"maximum": 1, "used": 2}

    def test_item_130_depth_is_checked_where_a_file_is_made_and_where_a_move_goes_deeper(
        self, files
    ):
        files = files.again(max_depth=1)
        files.make({"a/b.md": "x"})
        for tool, arguments in (
            ("file_create", {"path": "1/2/c.md", "content": "x"}),
            ("file_append", {"path": "1/2/c.md", "text": "x"}),
            ("file_write", {"path": "1/2/c.md", "content": "x"}),
            ("file_move", {"from": "a/b.md", "to": "1/2/c.md"}),
            ("file_move", {"from": "a", "to": "1/a"}),
        ):
            refused = files.refuse("LIMIT_EXCEEDED", tool, **arguments)
            assert (refused["limit"], refused["value"]) == ("maxDepth", 2)

    def test_item_131_a_lower_depth_hides_and_deletes_nothing(self, files):
        files.make({"1/2/3/a.md": "one", "1/2/3/b.md": "x", "1/2/3/c.md": "x", "d.md": "x"})
        files = files.again(max_depth=1)
        assert files.listed(depth=5)[-2:] == ["1/2/3/c.md", "d.md"]
        assert files.found("b.md") == ["1/2/3/b.md"]
        assert files.hits("one") == [("1/2/3/a.md", 1)]
        assert files.call("file_read", path="1/2/3/a.md")["files"][0]["text"] == "one"
        files.call("file_edit", path="1/2/3/a.md", edits=[{"oldText": "one", "newText": "two"}])
        files.call("file_append", path="1/2/3/a.md", text="!")
        files.call("file_move", from_="1/2/3/a.md", to="1/2/3/a2.md")
        files.call("file_move", from_="1/2", to="1/two")
        files.call("file_move", from_="1/two/3/b.md", to="1/b.md")
        files.call("file_delete", path="1/two/3/c.md")
        assert files.paths() == ["1/b.md", "1/two/3/a2.md", "d.md"]

    @pytest.mark.parametrize(
        ("tool", "arguments", "limit"),
        [
            ("file_create", {"path": "b.md", "content": "12345678901"}, "maxFileBytes"),
            ("file_append", {"path": "a.md", "text": "123456"}, "maxFileBytes"),
            (
                "file_edit",
                {"path": "a.md", "edits": [{"oldText": "x", "newText": "1234567"}]},
                "maxFileBytes",
            ),
            ("file_write", {"path": "b.md", "content": "123456789"}, "maxTotalBytes"),
            ("file_append", {"path": "c.md", "text": "123456789"}, "maxTotalBytes"),
        ],
    )
    def test_item_132_a_call_past_a_limit_changes_nothing_and_names_it(
        self, files, tool, arguments, limit
    ):
        files = files.again(max_file_bytes=10, max_total_bytes=13)
        files.make({"a.md": "x____"})
        refused = files.refuse("LIMIT_EXCEEDED", tool, **arguments)
        assert refused["limit"] == limit
        assert refused["value"] > refused["maximum"]
        for number in (refused["value"], refused["maximum"]):
            assert str(number) in refused["message"]
        assert files.text("a.md") == "x____"

    @pytest.mark.parametrize("tool", ["file_create", "file_append", "file_write"])
    def test_item_132_a_file_past_the_count_or_the_depth_is_refused_with_both_numbers(
        self, files, tool
    ):
        files = files.again(max_file_count=2, max_depth=1)
        files.make({"a.md": "x"})
        text = {"text" if tool == "file_append" else "content": "x"}
        refused = files.refuse("LIMIT_EXCEEDED", tool, path="1/2/b.md", **text)
        assert (refused["limit"], refused["value"], refused["maximum"]) == ("maxDepth", 2, 1)
        files.call(tool, path="1/b.md", **text)
        refused = files.refuse("LIMIT_EXCEEDED", tool, path="c.md", **text)
        assert (refused["limit"], refused["value"], refused["maximum"]) == ("maxFileCount", 3, 2)
        assert files.paths() == ["1/b.md", "a.md"]

    @pytest.mark.servers
    @pytest.mark.parametrize(
        "text",
        ["a\r\nb\r\n", "a\rb", "no end", "\ufeffBOM", "\n", "\r", "\x01\x1b\x7f", "😀 e\u0301"],
    )
    def test_item_133_content_is_stored_exactly_as_sent(self, files, text):
        for tool, name in (
            ("file_create", "content"),
            ("file_append", "text"),
            ("file_write", "content"),
        ):
            files.call(tool, path=f"{tool}.md", **{name: text})
            snapshot = files.again().tree.snapshot()
            assert snapshot.read_bytes(snapshot.lookup(f"{tool}.md")) == text.encode()
            assert files.call("file_read", path=f"{tool}.md")["files"][0]["text"] == text
        files.call(
            "file_edit", path="file_create.md", edits=[{"oldText": text, "newText": f"<{text}>"}]
        )
        assert files.text("file_create.md") == f"<{text}>"

    @pytest.mark.parametrize("kind", ["nul", "high", "low"])
    def test_item_134_and_item_135_nul_and_a_surrogate_are_refused_in_every_tool(self, files, kind):
        char = {"nul": "\0", "high": "\ud800", "low": "\udfff"}[kind]
        files.make({"a.md": "old"})
        version = files.version("a.md")
        text = f"a{char}b"
        files.refuse_argument("content", "file_create", path="b.md", content=text)
        files.refuse_argument("text", "file_append", path="a.md", text=text)
        files.refuse_argument("content", "file_write", path="a.md", content=text, version=version)
        edits = [{"oldText": "old", "newText": "x"}, {"oldText": "x", "newText": text}]
        files.refuse_argument("edits[1].newText", "file_edit", path="a.md", edits=edits)
        assert files.text("a.md") == "old"

    def test_item_134_nul_is_no_content(self, files):
        files.refuse_argument("content", "file_create", path="b.md", content="\0")

    def test_item_135_a_surrogate_that_came_through_json_is_no_content(self, files):
        content = json.loads('"\\ud800"')
        files.refuse_argument("content", "file_create", path="b.md", content=content)

    def test_item_136_without_history_nothing_is_kept_and_the_tools_say_so(self, files):
        assert files.tools.names() == FILE_TOOL_NAMES
        assert file_tool_names(history=False) == FILE_TOOL_NAMES
        with pytest.raises(KeyError):
            files.tools.call("file_history", {"path": "a.md"})
        files.make({"a.md": "one"})
        files.call("file_write", path="a.md", content="two", version=files.version("a.md"))
        kept = files.again(history=HistoryPolicy(versions=3))
        assert [row["current"] for row in kept.call("file_history", path="a.md")["versions"]] == [
            True
        ]

    @pytest.mark.servers
    def test_item_136_with_history_an_edit_a_write_and_a_delete_are_undone(self, files):
        files = files.again(history=HistoryPolicy(versions=5))
        first = files.call("file_create", path="a.md", content="one\n")["version"]
        files.call("file_edit", path="a.md", edits=[{"oldText": "one", "newText": "two"}])
        back = files.call("file_restore", path="a.md", version=first)
        assert back["version"] not in (first, "")
        assert files.text("a.md") == "one\n"
        files.call("file_delete", path="a.md")
        assert files.listed() == []
        history = files.call("file_history", path="a.md")["versions"]
        assert [row["size"] for row in history] == [4, 4, 4]
        assert {row["source"] for row in history} == {"tests"}
        assert not any(row["current"] for row in history)
        files.call("file_restore", path="a.md", version=history[0]["version"])
        assert files.text("a.md") == "one\n"
        files.refuse("NOT_FOUND", "file_restore", path="a.md", version="v99")
        files.refuse("NOT_FOUND", "file_restore", path="b.md", version=first)
        files.refuse("NOT_FOUND", "file_history", path="b.md")

    def test_item_155_the_defaults_and_ceilings_of_the_limits(self):
        limits = TreeLimits()
        assert (limits.max_depth, limits.max_file_bytes) == (10, 1024**2)
        assert (limits.max_total_bytes, limits.max_file_count) == (1024**3, 100_000)
        assert FileSettings().limits == limits
        TreeLimits(max_depth=20, max_file_bytes=4 * 1024**2, max_file_count=200_000)
        for bad in (
            {"max_depth": 21},
            {"max_depth": 0},
            {"max_file_bytes": 4 * 1024**2 + 1},
            {"max_file_bytes": 0},
            {"max_file_count": 200_001},
            {"max_file_count": 0},
            {"max_total_bytes": 0},
        ):
            with pytest.raises(ValueError):
                TreeLimits(**bad)

    def test_item_156_the_modified_time_is_the_trees_clock_in_utc(self, files):
        east = datetime(2026, 3, 1, 0, 30, tzinfo=timezone(timedelta(hours=2)))
        files = files.again(clock=lambda: east)
        made = files.call("file_create", path="a.md", content="x")
        assert made["modified"] == "2026-02-28T22:30:00.000000Z"
        assert files.call("file_list")["entries"][0]["modified"] == made["modified"]
        back = files.again(clock=lambda: east - timedelta(days=1))
        later = back.call("file_append", path="a.md", text="y")
        assert later["modified"] >= made["modified"]

    def test_item_157_a_token_is_v_and_text_never_used_before_for_the_path(self, files):
        seen = []
        for away in (
            ("file_move", {"from": "a.md", "to": "b.md"}),
            ("file_delete", {"path": "a.md"}),
            ("file_delete", {"path": "a.md"}),
        ):
            seen.append(files.call("file_create", path="a.md", content="x")["version"])
            seen.append(files.call("file_append", path="a.md", text="y")["version"])
            files.call(away[0], **away[1])
        files.tree.purge()
        seen.append(files.call("file_create", path="a.md", content="x")["version"])
        assert len(set(seen)) == len(seen)
        assert all(token.startswith("v") and token[1:] for token in seen)


class TestAccounts:
    """Whose files they are, and who may change them."""

    def test_an_identity_without_the_scope_has_no_file_tools(self, local):
        identity = Identity({"team": ScopeGrant("x", "owner")})
        with pytest.raises(NoFilesError) as caught:
            FileTools(local.accounts, identity, ScopePolicy(), source="s")
        payload = render_error(caught.value)
        assert (payload["code"], payload["scope"]) == ("NO_FILES", "user")
        assert payload["category"] == "permanent"

    @pytest.mark.servers
    def test_the_scope_is_a_setting(self, tree_storage, make_files):
        team = make_files(tree_storage, "platform", FileSettings(scope="team"))
        team.call("file_create", path="a.md", content="x")
        assert make_files(tree_storage, "platform").listed() == ["a.md"]

    def test_who_lacks_a_role_reads_and_changes_nothing(self, local):
        records = []
        local.make({"n/a.md": "one\n"})
        policy = ScopePolicy({"user": frozenset({"admin", "owner"})})
        reader = local.again(role="guest", roles=policy, on_call=records.append)
        assert reader.listed() == ["n/"]
        assert reader.hits("one") == [("n/a.md", 1)]
        changing = [
            (tool, rest)
            for tool, rest in CALLS
            if tool not in ("file_list", "file_read", "file_find", "file_search")
        ]
        for tool, arguments in changing:
            refused = reader.refuse("RESTRICTED", tool, **arguments)
            assert (refused["scope"], refused["reason"]) == ("user", "role_required")
            assert refused["required_roles"] == ["admin", "owner"]
        assert records[-1].is_error
        with pytest.raises(RestrictedScopeError):
            reader.tools.file_create("x.md", "")
        local.again(role="admin", roles=policy).call("file_create", path="x.md", content="")

    def test_tools_are_bound_by_a_resolver(self, local):
        identity = Identity({"user": ScopeGrant(local.entity, "owner")})
        tools = bind_file_tools(
            local.accounts, SandboxResolver(identity), "token", ScopePolicy(), source="s"
        )
        tools.file_create("a.md", "x")
        assert local.text("a.md") == "x"
        with pytest.raises(ValueError):
            bind_file_tools(
                local.accounts,
                SandboxResolver(identity),
                "token",
                ScopePolicy({"usr": frozenset({"x"})}),
                source="s",
                known_scopes={"user"},
            )

    def test_the_methods_take_the_same_arguments_under_python_names(self, local):
        tools = local.again(history=HistoryPolicy(versions=2)).tools
        made = tools.file_create("n/a.md", "one\ntwo\n").payload
        assert tools.file_append("n/a.md", "three\n").payload["lineCount"] == 3
        assert tools.file_list("n", depth=2, page_size=1).payload["entries"][0]["path"] == "n/a.md"
        read = tools.file_read("n/a.md", from_line=2, to_line=2).payload["files"][0]
        assert read["text"] == "two\n"
        assert len(tools.file_read(paths=["n/a.md"]).payload["files"]) == 1
        assert tools.file_find("*", path="n", sort_by="modified").payload["files"]
        found = tools.file_search("TWO", glob="*.md", mode="counts", context=1).payload["files"]
        assert found[0]["matchingLines"] == 1
        assert not tools.file_search("TWO", case_sensitive=True).payload["files"]
        assert tools.file_edit("n/a.md", [{"oldText": "one", "newText": "1"}]).payload["changed"]
        assert tools.file_move("n", "m").payload["files"] == 1
        assert tools.file_history("m/a.md").payload["versions"][0]["current"]
        version = tools.file_restore("m/a.md", made["version"]).payload["version"]
        assert tools.file_write("m/a.md", "x", version).payload["size"] == 1
        assert tools.file_delete("m", recursive=True).payload["kind"] == "folder"

    def test_callers_of_one_account_share_a_tree_and_others_do_not(self, local):
        accounts = local.accounts
        assert accounts.tree("ada") is accounts.tree("ada")
        assert accounts.tree("ada") is not accounts.tree("bo")
        kept = accounts.tree("ada")
        for number in range(200):
            accounts.tree(f"e{number}")
        assert accounts.tree("ada") is kept
        accounts.close()

    def test_no_memory_scope_sees_the_files(self):
        storage = InMemoryStorage()
        FileAccounts(storage).tree("ada").create("a.md", "x")
        index = MemoryStore(storage).get_memory_index({"user": "ada"})
        assert index.entries == ()
        assert all(item.key.startswith("@files/ada/") for item in storage.list_page("", None, 10))
