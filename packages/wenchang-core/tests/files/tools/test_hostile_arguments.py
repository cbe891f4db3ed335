"""Whatever a model sends is answered, within bounds, and never changes what it should not."""

from __future__ import annotations

import base64
import hashlib
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wenchang.errors import BackendUnavailableError
from wenchang.files._answers import json_chars
from wenchang.files.cursors import PageCursor
from wenchang.files.policy import HistoryPolicy
from wenchang.files.tools import FILE_TOOL_NAMES, HISTORY_TOOL_NAMES, render_error

ALL = (*FILE_TOOL_NAMES, *HISTORY_TOOL_NAMES)
MIB = 1024 * 1024
HUGE = "[a-z]*?" * (MIB // 7)

STRINGS = [
    (tool, name)
    for tool in ALL
    for name in (
        "path",
        "from",
        "to",
        "pattern",
        "glob",
        "text",
        "content",
        "cursor",
        "version",
        "sortBy",
        "mode",
    )
]
VALID = {
    "path": "a.md",
    "from": "a.md",
    "to": "free.md",
    "pattern": "*",
    "glob": "*",
    "text": "x",
    "content": "x",
    "edits": [{"oldText": "x", "newText": "y"}],
    "version": "v1",
}


def arguments_of(schemas, tool, **given):
    """Return valid arguments of a tool, with some replaced."""
    return {name: VALID[name] for name in schemas[tool].input["required"]} | given


class TestHostileArguments:
    """Arguments that are huge, forged, of the wrong type, or unknown."""

    @pytest.mark.parametrize(("tool", "name"), STRINGS)
    def test_a_text_of_a_mebibyte_is_answered_briefly(self, local, schemas, tool, name):
        if name not in schemas[tool].input["properties"]:
            return
        local = local.again(history=HistoryPolicy(versions=2))
        local.make({"a.md": "x"})
        given = arguments_of(schemas, tool, **{name: HUGE})
        if name in ("content", "text") and tool != "file_search":
            given |= {"path": "new.md", name: HUGE + "x" * MIB}
            assert local.refuse("LIMIT_EXCEEDED", tool, **given)["limit"] == "maxFileBytes"
            return
        refused = local.refuse_argument(name, tool, **given)
        assert len(json.dumps(refused)) < 2000

    @pytest.mark.parametrize("tool", ALL)
    def test_an_unknown_argument_is_named_escaped_and_cut(self, local, schemas, tool):
        local = local.again(history=HistoryPolicy(versions=2))
        local.make({"a.md": "x"})
        for name in ("bogus", "account", "entity", "x" * MIB, "\u202e\n", "\ud800", ""):
            given = arguments_of(schemas, tool) | {name: 1}
            with pytest.raises(Exception) as caught:
                local.tools.call(tool, given)
            refused = render_error(caught.value)
            assert refused["code"] == "INVALID_ARGUMENT"
            assert len(json.dumps(refused)) < 2000
            assert refused["argument"].isascii()
            assert refused["argument"]

    @pytest.mark.parametrize("tool", ALL)
    def test_a_missing_argument_is_named_and_null_is_a_missing_one(self, local, schemas, tool):
        local = local.again(history=HistoryPolicy(versions=2))
        local.make({"a.md": "x"})
        for name in schemas[tool].input["required"]:
            given = arguments_of(schemas, tool)
            local.refuse_argument(name, tool, **given | {name: None})
            del given[name]
            local.refuse_argument(name, tool, **given)
        optional = set(schemas[tool].input["properties"]) - set(schemas[tool].input["required"])
        if tool == "file_read":
            optional -= {"path"}
            local.call(tool, path="a.md", **dict.fromkeys(optional))
        elif tool in ("file_list", "file_find", "file_search"):
            given = arguments_of(schemas, tool)
            assert local.call(tool, **given, **dict.fromkeys(optional)) == local.call(tool, **given)

    @pytest.mark.parametrize("value", [3, 1.5, True, [], {}, ["a.md"], {"a": 1}, b"a.md"])
    @pytest.mark.parametrize("tool", ALL)
    def test_a_value_of_the_wrong_type_is_refused_by_name(self, local, schemas, tool, value):
        local = local.again(history=HistoryPolicy(versions=2))
        local.make({"a.md": "x"})
        for name, rules in schemas[tool].input["properties"].items():
            types = rules["type"] if isinstance(rules["type"], list) else [rules["type"]]
            fits = {
                "integer": type(value) is int,
                "boolean": isinstance(value, bool),
                "array": isinstance(value, list),
            }
            if any(fits.get(kind, False) for kind in types):
                continue
            given = arguments_of(schemas, tool, **{name: value})
            if tool == "file_read" and name != "path":
                given["path"] = "a.md"
                if name == "paths":
                    del given["path"]
            local.refuse_argument(name, tool, **given)

    @pytest.mark.parametrize(
        ("item", "argument"),
        [
            ("x", "edits[0]"),
            (None, "edits[0]"),
            ({}, "edits[0].oldText"),
            ({"oldText": "x"}, "edits[0].newText"),
            ({"oldText": 1, "newText": "y"}, "edits[0].oldText"),
            ({"oldText": "x", "newText": None}, "edits[0].newText"),
            ({"oldText": "x", "newText": "y", "replaceAll": 1}, "edits[0].replaceAll"),
            ({"oldText": "x", "newText": "y", "old_text": "x"}, "edits[0].old_text"),
            ({"oldText": "\ud800", "newText": "y"}, "edits[0].oldText"),
        ],
    )
    def test_an_edit_that_is_none_is_refused_by_its_place(self, local, item, argument):
        local.make({"a.md": "x"})
        local.refuse_argument(argument, "file_edit", path="a.md", edits=[item])

    def test_a_search_text_with_a_surrogate_is_refused_and_nul_finds_nothing(self, local):
        local.make({"a.md": "x"})
        local.refuse_argument("text", "file_search", text="\ud800")
        assert local.hits("\0") == []

    def test_patterns_that_ruin_other_matchers_end(self, local):
        """Exponential matching would not come back before the test run ends it."""
        local.make({f"{'a' * 250}/{'a' * 100}{number}.md": "x" for number in range(50)})
        assert local.found("*a" * 99 + "b") == []
        assert local.found("**/" * 60 + "b") == []
        assert local.found("/".join(["*a*a*a*a*a*a*b"] * 13)) == []
        local.hits("a" * 499 + "b")

    def forge(self, cursor, position):
        """Return a cursor with another position and a digest of its own, as a stranger can make it."""
        body = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        head = body[:1] + position
        digest = hashlib.sha256(head).digest()[:16]
        return base64.urlsafe_b64encode(head + digest).decode().rstrip("=")

    def test_a_forged_position_is_refused(self, local):
        local.make({f"{number}.md": "x\n" for number in range(9)})
        for tool, rest in (
            ("file_list", {}),
            ("file_find", {"pattern": "*"}),
            ("file_search", {"text": "x"}),
        ):
            cursor = local.call(tool, **rest, pageSize=1)["cursor"]
            for position in (b"", b"../x", b"\xff\xfe", b"a" * 3000):
                local.refuse_argument("cursor", tool, **rest, cursor=self.forge(cursor, position))

    @pytest.mark.parametrize(
        ("tool", "rest", "position"),
        [
            ("file_find", {"pattern": "*", "sortBy": "modified"}, "no time"),
            ("file_find", {"pattern": "*", "sortBy": "modified"}, "99999999999999999999 a"),
            ("file_find", {"pattern": "*", "sortBy": "modified"}, "-5 a"),
            ("file_find", {"pattern": "*", "sortBy": "modified"}, "٣ a"),
            ("file_search", {"text": "x"}, "a.md\0x"),
            ("file_search", {"text": "x"}, "a.md\0٣"),
            ("file_search", {"text": "x"}, "a.md\0" + "9" * 5000),
            ("file_search", {"text": "x", "mode": "files"}, "a.md\0" + "1"),
            ("file_search", {"text": "x", "path": "n"}, "a.md\0" + "1"),
        ],
    )
    def test_a_position_no_page_ends_at_is_refused(self, local, monkeypatch, tool, rest, position):
        """Somebody who knows the account can make the digest too; it still gains nothing."""
        local.make({"a.md": "x\nx\n", "n/b.md": "x\nx\n"})
        monkeypatch.setattr(PageCursor, "decode", lambda self, cursor: position)
        local.refuse_argument("cursor", tool, **rest, cursor="A")

    @pytest.mark.parametrize("position", ["", "zzz", "a.md\0", "../../x", "n/", "a.md/x", "\uffff"])
    @pytest.mark.parametrize("depth", [1, 5])
    def test_any_other_position_only_leaves_entries_out(self, local, monkeypatch, position, depth):
        local.make({"a.md": "x\nx\n", "n/b.md": "x\nx\n"})
        everything = local.call("file_list", depth=depth)["entries"]
        monkeypatch.setattr(PageCursor, "decode", lambda self, cursor: position)
        some = local.call("file_list", depth=depth, cursor="A")["entries"]
        assert [entry for entry in everything if entry in some] == some
        local.call("file_find", pattern="*", cursor="A")

    JSON = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-3, 250),
        st.floats(allow_nan=False),
        st.text(max_size=8),
        st.sampled_from(
            [
                "a.md",
                "n",
                "",
                "/",
                "*",
                "**/x",
                "..",
                "lines",
                "files",
                "modified",
                "path",
                "v1",
                "x" * 600,
            ]
        ),
        st.lists(st.one_of(st.sampled_from(["a.md", "n/b.md"]), st.text(max_size=3)), max_size=3),
        st.lists(
            st.fixed_dictionaries(
                {"oldText": st.text(max_size=2), "newText": st.text(max_size=2)},
                optional={"replaceAll": st.booleans(), "x": st.none()},
            ),
            max_size=3,
        ),
        st.dictionaries(st.text(max_size=2), st.none(), max_size=1),
    )

    @pytest.mark.parametrize("tool", ALL)
    @given(data=st.data())
    @settings(
        max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    def test_whatever_a_schema_refuses_the_tool_refuses_too(
        self, local, schemas, validators, tool, data
    ):
        local = local.again(
            entity=f"e{data.draw(st.integers(0, 10**9))}", history=HistoryPolicy(versions=2)
        )
        local.tree.put("a.md", "x\ny\n")
        local.tree.put("n/b.md", "x")
        schema = schemas[tool].input
        names = [
            name
            for name in schema["properties"]
            if name in schema["required"] or data.draw(st.booleans(), label=f"has {name}")
        ]
        given = {}
        for name in names:
            usual = [st.just(VALID[name])] if name in VALID else []
            given[name] = data.draw(st.one_of(*usual, self.JSON), label=name)
        valid = validators[tool, "input"].is_valid(given)
        try:
            answer = local.tools.call(tool, given)
        except Exception as error:
            payload = render_error(error)
            assert payload["category"] == "recoverable", payload
            assert validators[tool, "error"].is_valid(payload)
            return
        assert valid
        assert validators[tool, "output"].is_valid(answer.payload)


class TestErrorPayloads:
    """What agents see of failures that are no refusals."""

    def test_an_outage_is_told_with_its_outcome(self, local):
        local.make({"a.md": "x"})

        class Down:
            def __getattr__(self, name):
                def fail(*_arguments):
                    raise BackendUnavailableError("timeout", outcome="not_applied")

                return fail

        broken = type(local)(Down())
        for tool, rest in (("file_list", {}), ("file_create", {"path": "a", "content": ""})):
            with pytest.raises(BackendUnavailableError) as caught:
                broken.call(tool, **rest)
            payload = render_error(caught.value)
            assert (payload["code"], payload["category"]) == ("UNAVAILABLE", "transient")
            assert payload["reason"] == "timeout"

    def test_a_fault_of_the_program_shows_nothing_of_itself(self):
        payload = render_error(ValueError("secret"))
        assert payload["code"] == "INTERNAL"
        assert "secret" not in json.dumps(payload)

    def test_a_conflict_too_long_for_an_answer_leaves_the_content_out(self, local):
        local = local.again(max_answer_chars=16_000)
        local.make({"a.md": "\x01" * 4000})
        refused = local.refuse("VERSION_CONFLICT", "file_delete", path="a.md", version="v0")
        assert "content" not in refused
        assert refused["version"] == local.version("a.md")
        assert json_chars(refused) < 1000
