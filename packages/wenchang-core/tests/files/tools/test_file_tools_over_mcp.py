"""The file tools over MCP, with the SDK's own client: what is offered, called, refused and recorded."""

from __future__ import annotations

import json
from contextlib import contextmanager

import pytest
from anyio.from_thread import start_blocking_portal
from jsonschema import Draft202012Validator
from mcp import Client
from mcp.server.mcpserver import MCPServer

from wenchang.core import MemoryStore
from wenchang.files.accounts import FileAccounts
from wenchang.files.policy import HistoryPolicy
from wenchang.files.schemas import file_error_schema, file_tool_schemas
from wenchang.files.settings import FileSettings
from wenchang.files.tools import (
    FILE_TOOL_NAMES,
    HISTORY_TOOL_NAMES,
    file_tool_descriptions,
    file_tool_names,
)
from wenchang.identity import Identity, ResolutionFailure, ScopeGrant
from wenchang.mcp import (
    FILE_GUIDANCE,
    MAX_TOOL_DESCRIPTION_CHARS,
    build_file_server,
    build_server,
    register_file_tools,
)
from wenchang.prompts import PromptSlots
from wenchang.scope import ScopePolicy
from wenchang.storage.memory import InMemoryStorage
from wenchang.tools import TOOL_NAMES
from wenchang.transport import InProcessClient

SENTINEL = "zq-sentinel"


class Resolver:
    """Grants by token."""

    def resolve(self, token):
        if token == "none":
            return Identity({"team": ScopeGrant(f"{SENTINEL}-team", "member")})
        if token not in ("ada", "bo", "guest"):
            return ResolutionFailure("unknown token")
        role = "guest" if token == "guest" else "owner"
        entity = "ada" if token == "guest" else token
        return Identity({"user": ScopeGrant(f"{SENTINEL}-{entity}", role)})


class World:
    """One server and its client; `token` is the credential of the next call."""

    def __init__(self, history=True, **options):
        self.token = "ada"
        self.records = []
        self.storage = InMemoryStorage()
        self.files = FileAccounts(
            self.storage,
            FileSettings(history=HistoryPolicy(versions=5) if history else None, **options),
        )
        self.settings = {
            "files": self.files,
            "resolver": Resolver(),
            "policy": ScopePolicy({"user": frozenset({"owner"})}),
            "credentials_from_context": lambda _context: self.token,
            "source": "tests",
            "on_call": self.records.append,
        }
        self.validators = {
            name: (Draft202012Validator(schema.output), Draft202012Validator(schema.error))
            for name, schema in file_tool_schemas(history=True).items()
        }

    @contextmanager
    def connected(self, server=None):
        server = server or build_file_server(**self.settings)
        with (
            start_blocking_portal() as portal,
            portal.wrap_async_context_manager(Client(server)) as client,
        ):
            self.portal, self.client = portal, client
            yield self

    def send(self, tool, arguments, prefix=""):
        result = self.portal.call(self.client.call_tool, prefix + tool, arguments)
        payload = result.structured_content
        problems = self.validators[tool][result.is_error].iter_errors(payload)
        assert [problem.message for problem in problems] == [], payload
        (content,) = result.content
        seen = content.text + json.dumps(payload, ensure_ascii=False)
        assert SENTINEL not in seen
        if result.is_error:
            assert json.loads(content.text) == payload
        return payload, content.text, bool(result.is_error)

    def call(self, tool, **arguments):
        payload, text, is_error = self.send(
            tool, {name.removesuffix("_"): value for name, value in arguments.items()}
        )
        assert not is_error, payload
        return payload, text

    def refuse(self, code, tool, **arguments):
        payload, _, is_error = self.send(
            tool, {name.removesuffix("_"): value for name, value in arguments.items()}
        )
        assert is_error
        assert payload["code"] == code
        return payload


@pytest.fixture
def world():
    with World().connected() as connected:
        yield connected


class TestWhatIsOffered:
    """Tools, schemas, descriptions."""

    def test_the_ten_tools_are_offered_and_two_more_with_history(self):
        for history, names in (
            (False, FILE_TOOL_NAMES),
            (True, FILE_TOOL_NAMES + HISTORY_TOOL_NAMES),
        ):
            with World(history).connected() as world:
                tools = world.portal.call(world.client.list_tools).tools
                assert tuple(tool.name for tool in tools) == names
                assert world.client.instructions == FILE_GUIDANCE
                descriptions = file_tool_descriptions(history=history)
                assert {tool.name: tool.description for tool in tools} == dict(descriptions)
                schemas = file_tool_schemas(history=history)
                assert all(tool.input_schema == schemas[tool.name].input for tool in tools)
                assert all(tool.output_schema["anyOf"] for tool in tools)
                assert all(tool.title for tool in tools)

    def test_descriptions_are_short_ascii_and_say_whether_there_is_an_undo(self):
        for history in (False, True):
            texts = file_tool_descriptions(history=history)
            assert tuple(texts) == file_tool_names(history=history)
            for name, text in texts.items():
                assert text.isascii()
                assert len(text) <= MAX_TOOL_DESCRIPTION_CHARS
                lost = name in ("file_edit", "file_write", "file_delete")
                assert ("cannot be recovered" in text) == (lost and not history)
                assert ("file_restore brings one back" in text) == (lost and history)

    @pytest.mark.parametrize("part", ["input", "output", "error"])
    def test_schemas_are_valid_closed_and_describe_every_property(self, part):
        def walk(schema):
            yield schema
            for value in schema.get("properties", {}).values():
                yield from walk(value)
            if "items" in schema:
                yield from walk(schema["items"])

        for schema in file_tool_schemas(history=True).values():
            root = getattr(schema, part)
            Draft202012Validator.check_schema(root)
            assert root["$schema"] == "https://json-schema.org/draft/2020-12/schema"
            for node in walk(root):
                if node.get("type") == "object":
                    assert node["additionalProperties"] is False
                    assert set(node["required"]) <= set(node["properties"])
                    assert all(value.get("description") for value in node["properties"].values())
        assert schema.error == file_error_schema()

    def test_schemas_are_the_callers_own(self):
        file_tool_schemas()["file_read"].input["properties"].clear()
        assert file_tool_schemas()["file_read"].input["properties"]
        with pytest.raises(TypeError):
            file_tool_schemas()["file_read"] = None

    def test_memory_and_files_are_served_together(self):
        world = World()
        slots = PromptSlots("Notes.", "user is private.", "preferences")
        server = build_server(
            slots=slots,
            client=InProcessClient(MemoryStore(world.storage)),
            tool_prefix="wc",
            **world.settings,
        )
        with world.connected(server):
            tools = world.portal.call(world.client.list_tools).tools
            names = [f"wc_{name}" for name in (*TOOL_NAMES, *file_tool_names(history=True))]
            assert [tool.name for tool in tools] == names
            assert world.client.instructions.endswith(FILE_GUIDANCE)
            assert "get_memory_index" in world.client.instructions
            world.send("file_create", {"path": "a.md", "content": "x"}, prefix="wc_")
            assert world.records[-1].tool == "wc_file_create"
            assert world.records[-1].operation == "file-create"

    def test_they_join_a_server_that_exists_and_take_no_name_twice(self):
        world = World()
        server = MCPServer("theirs")
        register_file_tools(server, **world.settings)
        with pytest.raises(ValueError, match="file_append"):
            register_file_tools(server, **world.settings)
        register_file_tools(server, **world.settings, tool_prefix="more")
        with world.connected(server):
            assert len(world.portal.call(world.client.list_tools).tools) == 24

    @pytest.mark.parametrize(
        ("change", "error"),
        [
            ({"files": None}, TypeError),
            ({"policy": None}, TypeError),
            ({"resolver": object()}, TypeError),
            ({"credentials_from_context": None}, TypeError),
            ({"source": ""}, ValueError),
            ({"on_call": 3}, TypeError),
            ({"tool_prefix": "-"}, ValueError),
            ({"known_scopes": {"team"}}, ValueError),
        ],
    )
    def test_a_wrong_setting_is_refused_before_anything_is_registered(self, change, error):
        world = World()
        server = MCPServer("theirs")
        with pytest.raises(error):
            register_file_tools(server, **(world.settings | change))
        with world.connected(server):
            assert world.portal.call(world.client.list_tools).tools == []


class TestCalls:
    """Every tool, called as an agent calls it."""

    def test_every_tool_answers_text_and_structure(self, world):
        made, text = world.call("file_create", path="/notes/plan.md", content="# Plan\n- tea\n")
        assert text == f"Created notes/plan.md | 13 bytes, 2 lines | version {made['version']}"
        appended, _ = world.call("file_append", path="notes/plan.md", text="- cake\n")
        assert appended["lineCount"] == 3
        listed, text = world.call("file_list", depth=2)
        assert [entry["path"] for entry in listed["entries"]] == ["notes", "notes/plan.md"]
        assert text.splitlines()[1:3] == [
            "notes/",
            f"  notes/plan.md\t20 bytes\t{appended['version']}\t{appended['modified']}",
        ]
        read, text = world.call("file_read", path="notes/plan.md", toLine=2)
        assert read["files"][0]["text"] == "# Plan\n- tea\n"
        assert text.splitlines()[1:] == ["1\t# Plan", "2\t- tea"]
        found, _ = world.call("file_find", pattern="**/*.md", sortBy="modified")
        assert found["files"][0]["path"] == "notes/plan.md"
        _, text = world.call("file_search", text="TEA", context=1)
        assert text.splitlines()[1:] == [
            "notes/plan.md-1-# Plan",
            "notes/plan.md:2:- tea",
            "notes/plan.md-3-- cake",
        ]
        edited, _ = world.call(
            "file_edit",
            path="notes/plan.md",
            edits=[{"oldText": "tea", "newText": "coffee"}],
            version=appended["version"],
        )
        assert edited["replacements"] == 1
        moved, _ = world.call("file_move", from_="notes", to="archive/2026")
        assert moved == {"from": "notes", "to": "archive/2026", "kind": "folder", "files": 1}
        written, _ = world.call(
            "file_write", path="archive/2026/plan.md", content="new", version=edited["version"]
        )
        assert written["changed"]
        history, _ = world.call("file_history", path="archive/2026/plan.md")
        assert [row["version"] for row in history["versions"]] == [
            written["version"],
            edited["version"],
            appended["version"],
            made["version"],
        ]
        world.call("file_restore", path="archive/2026/plan.md", version=made["version"])
        world.call("file_delete", path="archive", recursive=True)
        assert world.call("file_list")[0]["entries"] == []
        operations = [record.operation for record in world.records]
        assert set(operations) == {name.replace("_", "-") for name in file_tool_names(history=True)}
        assert all(record.request_id for record in world.records)

    @pytest.mark.parametrize("text", ["null", "[1]", '{"a":1}', "123", "true", '"quoted"'])
    def test_what_looks_like_json_stays_the_string_it_is(self, world, text):
        world.call("file_create", path=text, content=text)
        world.call("file_append", path=text, text=text)
        read, _ = world.call("file_read", path=text)
        assert (read["files"][0]["path"], read["files"][0]["text"]) == (text, text + text)
        assert world.call("file_search", text=text)[0]["files"]
        assert world.refuse("VERSION_CONFLICT", "file_delete", path=text, version=text.strip('"'))

    def test_names_of_arguments_are_checked_and_such_calls_recorded(self, world):
        refused = world.refuse("INVALID_ARGUMENT", "file_read", path="a", account="bo")
        assert refused["argument"] == "account"
        refused = world.refuse("INVALID_ARGUMENT", "file_create", path="a")
        assert refused["argument"] == "content"
        assert [record.is_error for record in world.records] == [True, True]
        assert [record.operation for record in world.records] == ["file-read", "file-create"]

    def test_the_account_is_the_callers_identity(self, world):
        world.call("file_create", path="a.md", content="of ada")
        cursor_of_ada = None
        for number in range(3):
            world.call("file_create", path=f"{number}.md", content="x")
        cursor_of_ada = world.call("file_list", pageSize=1)[0]["cursor"]
        world.token = "bo"
        assert world.call("file_list")[0]["entries"] == []
        world.refuse("NOT_FOUND", "file_read", path="a.md")
        refused = world.refuse("INVALID_ARGUMENT", "file_list", pageSize=1, cursor=cursor_of_ada)
        assert refused["argument"] == "cursor"
        world.token = "guest"
        assert world.call("file_read", path="a.md")[0]["files"][0]["text"] == "of ada"
        assert world.refuse("RESTRICTED", "file_delete", path="a.md")["reason"] == "role_required"
        world.token = "none"
        assert world.refuse("NO_FILES", "file_list")["scope"] == "user"
        world.token = "stranger"
        assert world.refuse("NO_IDENTITY", "file_list")["category"] == "permanent"

    def test_a_conflict_brings_what_the_next_call_needs(self, world):
        made, _ = world.call("file_create", path="a.md", content="one")
        world.call("file_append", path="a.md", text=" two")
        conflict = world.refuse(
            "VERSION_CONFLICT", "file_write", path="a.md", content="1", version=made["version"]
        )
        assert conflict["error"] == "VersionConflictError"
        assert (conflict["path"], conflict["content"]) == ("a.md", "one two")
        world.call("file_write", path="a.md", content="1 two", version=conflict["version"])

    def test_an_answer_over_mcp_keeps_the_bound(self):
        with World(max_answer_chars=16_000).connected() as world:
            world.call("file_create", path="a.md", content="line\n" * 20_000)
            read, text = world.call("file_read", path="a.md")
            assert len(text) <= 16_000
            assert len(json.dumps(read, ensure_ascii=False, separators=(",", ":"))) <= 16_000
            assert read["files"][0]["nextLine"] > 1000
