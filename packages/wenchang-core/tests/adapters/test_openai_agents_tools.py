"""The function tools work in the OpenAI Agents SDK's own runner, for the caller of each run alone."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import jsonschema
import pytest

pytest.importorskip("agents", reason="the extra openai-agents is not installed here")

from agents import Agent, FunctionTool, RunConfig, Runner
from agents.items import ModelResponse
from agents.models.interface import Model
from agents.strict_schema import ensure_strict_json_schema
from agents.tool_context import ToolContext
from agents.usage import Usage
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from wenchang.adapters._strict_schemas import strict_form, without_nulls
from wenchang.adapters.openai_agents import file_function_tools, memory_function_tools
from wenchang.core import MemoryStore
from wenchang.errors import BackendUnavailableError, ResolverFailureError
from wenchang.files.accounts import FileAccounts
from wenchang.files.policy import HistoryPolicy
from wenchang.files.schemas import file_tool_schemas
from wenchang.files.settings import FileSettings
from wenchang.files.tools import FileTools
from wenchang.identity import Identity, ScopeGrant
from wenchang.schemas import tool_schemas
from wenchang.scope import ScopePolicy
from wenchang.storage.memory import InMemoryStorage
from wenchang.tools import MemoryTools
from wenchang.transport import InProcessClient

CALLERS = 20
WAIT = 60
SCHEMAS = [*tool_schemas().values(), *file_tool_schemas(history=True).values()]


def identity(user):
    return Identity(grants={"user": ScopeGrant(user, "owner")})


def memory_of(storage, user="u-lin", **settings):
    client = InProcessClient(MemoryStore(storage))
    return MemoryTools(client, identity(user), ScopePolicy({}), source="app", **settings)


def files_of(accounts, user="u-lin"):
    return FileTools(accounts, identity(user), ScopePolicy({}), source="app")


@pytest.fixture
def storage():
    return InMemoryStorage()


def run(work):
    async def bounded():
        # As many worker threads as callers, so that all of them can be at work at once.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(CALLERS + 4))
        async with asyncio.timeout(WAIT):
            return await work

    return asyncio.run(bounded())


def call(tools, name, text, context=None):
    """Invoke a tool as the SDK does, without a model."""
    tool = {tool.name: tool for tool in tools}[name]
    arguments = text if isinstance(text, str) else json.dumps(text)
    run_context = ToolContext(
        context=context, tool_name=name, tool_call_id="call", tool_arguments=arguments
    )
    return run(tool.on_invoke_tool(run_context, arguments))


class Scripted(Model):
    """A model whose turns are given by a function of what it has been told so far."""

    def __init__(self, turn):
        self.turn = turn

    async def get_response(self, system_instructions, input, *args, **kwargs):  # noqa: A002 - the SDK's name
        answers = [item["output"] for item in input if item.get("type") == "function_call_output"]
        said = self.turn(answers)
        said = await said if asyncio.iscoroutine(said) else said
        if isinstance(said, str):
            text = ResponseOutputText(text=said, type="output_text", annotations=[])
            output = [
                ResponseOutputMessage(
                    id="m", content=[text], role="assistant", status="completed", type="message"
                )
            ]
        else:
            output = [
                ResponseFunctionToolCall(
                    name=name,
                    arguments=json.dumps(arguments),
                    call_id=f"call-{len(answers)}-{number}",
                    type="function_call",
                )
                for number, (name, arguments) in enumerate(said)
            ]
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    async def stream_response(self, *args, **kwargs):
        raise AssertionError("no test streams")
        yield


def ask(tools, turn, context=None):
    agent = Agent(name="assistant", model=Scripted(turn), tools=tools)
    return Runner.run(
        agent,
        "Go on.",
        context=context,
        max_turns=100,
        run_config=RunConfig(tracing_disabled=True),
    )


def script(*turns):
    """Return turns one after another: lists of calls, then the last answer as text."""

    def turn(answers):
        done = 0
        for calls in turns:
            if done == len(answers):
                return calls
            done += len(calls)
        return answers[-1]

    return turn


NOTE = {
    "scope": "user",
    "area": "prefs",
    "name": "tea",
    "content": "- [stated] Likes tea.\n",
    "description": "Drinks",
    "aliases": [],
    "expected_version": None,
}
ADDRESS = {"scope": "user", "area": "prefs", "name": "tea"}


class TestStrictSchemas:
    @pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.name)
    def test_the_sdk_finds_nothing_left_to_make_strict(self, schema):
        strict = strict_form(schema.input)

        assert ensure_strict_json_schema(copy.deepcopy(strict)) == strict
        jsonschema.Draft202012Validator.check_schema(strict)

    @pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.name)
    def test_every_object_is_closed_and_requires_all_and_no_other_word_is_left(self, schema):
        def walk(part):
            assert not {"default", "pattern", "minLength", "maxLength", "$schema"} & set(part)
            if "properties" in part:
                assert part["additionalProperties"] is False
                assert part["required"] == list(part["properties"])
                for inner in part["properties"].values():
                    walk(inner)
            if "items" in part:
                walk(part["items"])

        before = copy.deepcopy(schema.input)
        walk(strict_form(schema.input))
        assert schema.input == before

    def test_what_was_optional_may_be_null_and_says_what_null_means(self):
        shown = strict_form(file_tool_schemas()["file_list"].input)["properties"]

        assert shown["depth"]["type"] == ["integer", "null"]
        assert shown["depth"]["description"].endswith("null: 1.")
        assert shown["path"]["description"].endswith("null: as if left out.")
        find = strict_form(file_tool_schemas()["file_find"].input)["properties"]
        assert find["sortBy"]["enum"] == ["path", "modified", None]

    def test_a_type_that_was_not_nullable_becomes_so_where_it_is_optional(self):
        schema = {
            "type": "object",
            "properties": {"a": {"type": "string", "enum": ["x"]}, "b": {"type": "string"}},
            "required": ["b"],
        }
        strict = strict_form(schema)["properties"]

        assert strict["a"]["type"] == ["string", "null"]
        assert strict["a"]["enum"] == ["x", None]
        assert strict["b"] == {"type": "string"}

    @pytest.mark.parametrize(
        ("tool", "given", "meant"),
        [
            ("file_list", {"path": None, "depth": 2}, {"depth": 2}),
            (
                "file_edit",
                {"path": "a", "version": None, "edits": [{"oldText": "x", "replaceAll": None}]},
                {"path": "a", "edits": [{"oldText": "x"}]},
            ),
            ("file_edit", {"path": None, "edits": [None, 1]}, {"path": None, "edits": [None, 1]}),
            ("file_edit", {"edits": "no list"}, {"edits": "no list"}),
            ("file_list", {"unknown": None}, {"unknown": None}),
        ],
    )
    def test_a_null_of_an_optional_argument_is_as_if_left_out(self, tool, given, meant):
        assert without_nulls(file_tool_schemas()[tool].input, given) == meant

    def test_a_null_that_means_something_stays(self):
        schema = tool_schemas()["write_file"].input
        assert without_nulls(schema, {"expected_version": None}) == {"expected_version": None}
        assert without_nulls(tool_schemas()["list_prefix"].input, {"area": None}) == {}


class TestMemoryTools:
    def test_the_seven_tools_are_the_sdks_own_kind_and_strict(self, storage):
        tools = memory_function_tools(memory_of(storage, product="Notes"))

        assert [tool.name for tool in tools] == list(tool_schemas())
        assert all(isinstance(tool, FunctionTool) and tool.strict_json_schema for tool in tools)
        assert all("Notes" in tool.description for tool in tools)

    def test_an_agent_writes_finds_and_reads_a_file(self, storage):
        tools = memory_function_tools(memory_of(storage))
        turns = script(
            [("write_file", NOTE)],
            [
                ("get_memory_index", {}),
                ("list_prefix", {"scope": "user", "area": None, "cursor": None}),
            ],
            [("read_file", ADDRESS)],
        )

        read = json.loads(run(ask(tools, turns)).final_output)

        assert read["content"] == NOTE["content"]
        assert "u-lin" not in json.dumps(read)

    def test_a_refusal_is_an_answer_with_what_the_next_call_needs(self, storage):
        tools = memory_function_tools(memory_of(storage))
        turns = script([("write_file", NOTE)], [("write_file", NOTE | {"content": "other\n"})])

        refused = json.loads(run(ask(tools, turns)).final_output)

        assert (refused["error"], refused["category"]) == ("VersionConflictError", "recoverable")
        assert refused["content"] == NOTE["content"]
        assert refused["version"]

    @pytest.mark.parametrize(
        ("name", "text", "argument"),
        [
            ("read_file", "", "scope"),
            ("read_file", "{", "arguments"),
            ("read_file", "[]", "arguments"),
            ("read_file", "null", "arguments"),
            ("read_file", '{"a":' * 50_000, "arguments"),
            ("read_file", ADDRESS | {"entity": "u-ann"}, "entity"),
            ("read_file", ADDRESS | {"name": "\ud83d"}, "name"),
            ("read_file", ADDRESS | {"name": "a\0"}, "name"),
            ("read_file", ADDRESS | {"area": ".."}, "area"),
            ("read_file", ADDRESS | {"scope": ["user"]}, "scope"),
            ("write_file", NOTE | {"description": "a\nb"}, "description"),
        ],
    )
    def test_bad_arguments_are_told_to_the_model(self, storage, name, text, argument):
        told = json.loads(call(memory_function_tools(memory_of(storage)), name, text))

        assert told["category"] in ("recoverable", "permanent")
        assert told.get("argument", argument) == argument
        assert storage.list_page("", None, 10) == []

    def test_a_value_that_is_too_large_is_told_to_the_model(self, storage):
        told = json.loads(
            call(
                memory_function_tools(memory_of(storage)),
                "write_file",
                NOTE | {"content": "x" * 10**6},
            )
        )
        assert told["error"] == "OversizeWriteError"

    def test_of_twenty_concurrent_agents_none_loses_its_line(self, storage):
        """Each has read the same version before the first of them writes."""
        conflicts, versions = [], []

        async def work():
            start = asyncio.Barrier(CALLERS)
            tools = memory_function_tools(memory_of(storage))
            call_now = {tool.name: tool for tool in tools}
            assert json.loads(await ask_one(call_now["write_file"], NOTE))["version"]

            def caller(number):
                async def turn(answers):
                    if not answers:
                        return [("read_file", ADDRESS)]
                    last = json.loads(answers[-1])
                    if len(answers) == 1:
                        versions.append(last["version"])
                        await start.wait()
                    elif "error" not in last:
                        return "acknowledged"
                    else:
                        conflicts.append(last["error"])
                    more = {
                        "line": f"- [stated] Fact {number}.",
                        "expected_version": last["version"],
                    }
                    return [
                        ("append_line", ADDRESS | more | {"aliases": None, "description": None})
                    ]

                return turn

            done = await asyncio.gather(*(ask(tools, caller(number)) for number in range(CALLERS)))
            return [each.final_output for each in done], await ask_one(
                call_now["read_file"], ADDRESS
            )

        answers, read = run(work())

        assert answers == ["acknowledged"] * CALLERS
        assert len(set(versions)) == 1
        assert set(conflicts) == {"VersionConflictError"}
        assert len(conflicts) >= CALLERS - 1
        lines = json.loads(read)["content"].splitlines()
        assert sorted(lines[1:]) == sorted(f"- [stated] Fact {n}." for n in range(CALLERS))


async def ask_one(tool, arguments):
    text = json.dumps(arguments)
    context = ToolContext(context=None, tool_name=tool.name, tool_call_id="c", tool_arguments=text)
    return await tool.on_invoke_tool(context, text)


class TestFileTools:
    def test_the_tools_of_the_files_are_there_with_history_where_it_is_kept(self, storage):
        plain = file_function_tools(files_of(FileAccounts(storage)))
        settings = FileSettings(history=HistoryPolicy(versions=3))
        kept = file_function_tools(files_of(FileAccounts(storage, settings)))

        assert [tool.name for tool in plain] == list(file_tool_schemas())
        assert [tool.name for tool in kept] == list(file_tool_schemas(history=True))

    def test_an_agent_creates_edits_and_reads_a_file_with_strict_arguments(self, storage):
        tools = file_function_tools(files_of(FileAccounts(storage)))
        edit = {"oldText": "tea", "newText": "oolong", "replaceAll": None}
        turns = script(
            [("file_create", {"path": "notes/a.md", "content": "Lin likes tea.\n"})],
            [("file_edit", {"path": "notes/a.md", "edits": [edit], "version": None})],
            [("file_list", {"path": None, "depth": None, "cursor": None, "pageSize": None})],
            [
                (
                    "file_read",
                    {"path": "notes/a.md", "paths": None, "fromLine": None, "toLine": None},
                )
            ],
        )

        assert "Lin likes oolong." in run(ask(tools, turns)).final_output

    def test_a_refusal_is_an_answer_with_its_code(self, storage):
        tools = file_function_tools(files_of(FileAccounts(storage)))
        missing = {"path": "no.md", "paths": None, "fromLine": None, "toLine": None}

        told = json.loads(run(ask(tools, script([("file_read", missing)]))).final_output)

        assert (told["code"], told["path"]) == ("NOT_FOUND", "no.md")

    @pytest.mark.parametrize(
        "path", ["../x", "a//b", "a\0", "\ud83d", "a\\b", "", "/".join(["d"] * 40), "x" * 5000]
    )
    def test_a_path_that_is_none_is_told_to_the_model(self, storage, path):
        tools = file_function_tools(files_of(FileAccounts(storage)))

        told = json.loads(call(tools, "file_create", {"path": path, "content": "x"}))

        assert told["code"] in ("INVALID_ARGUMENT", "LIMIT_EXCEEDED")

    def test_of_twenty_edits_in_one_turn_none_is_lost(self, storage):
        """All are on their worker threads, behind a barrier, before the first of them edits."""
        accounts = FileAccounts(storage)
        start = threading.Barrier(CALLERS)
        files = files_of(accounts)
        files.file_create("slots.md", "".join(f"slot {n:02}\n" for n in range(CALLERS)))

        def resolve(run_context):
            start.wait(WAIT)
            return files

        edits = [
            (
                "file_edit",
                {
                    "path": "slots.md",
                    "edits": [
                        {"oldText": f"slot {n:02}", "newText": f"done {n:02}", "replaceAll": None}
                    ],
                    "version": None,
                },
            )
            for n in range(CALLERS)
        ]
        result = run(ask(file_function_tools(resolve), script(edits)))
        answers = [item.output for item in result.new_items if item.type == "tool_call_output_item"]

        assert len(answers) == CALLERS
        assert not any(answer.startswith("{") for answer in answers), answers
        text = accounts.tree("u-lin").read_file("slots.md")[1]
        assert text == "".join(f"done {n:02}\n" for n in range(CALLERS))


@dataclass
class Context:
    user: str


class TestIdentity:
    def test_one_agent_serves_the_caller_of_each_run(self, storage):
        tools = memory_function_tools(lambda r: memory_of(storage, r.context.user))
        accounts = FileAccounts(storage)
        tools += file_function_tools(lambda r: files_of(accounts, r.context.user))
        create = {"path": "a.md", "content": "mine"}
        write = script([("write_file", NOTE), ("file_create", create)])
        read = script(
            [
                ("read_file", ADDRESS),
                ("file_read", {"path": "a.md", "paths": None, "fromLine": None, "toLine": None}),
            ]
        )

        run(ask(tools, write, Context("u-lin")))
        answers = [
            item.output
            for item in run(ask(tools, read, Context("u-ann"))).new_items
            if item.type == "tool_call_output_item"
        ]

        assert json.loads(answers[0])["error"] == "NotFoundError"
        assert json.loads(answers[1])["code"] == "NOT_FOUND"
        assert "mine" in run(ask(tools, read, Context("u-lin"))).final_output

    def test_no_schema_has_an_argument_for_the_caller(self, storage):
        tools = memory_function_tools(memory_of(storage))
        tools += file_function_tools(files_of(FileAccounts(storage)))
        names = {name for tool in tools for name in tool.params_json_schema["properties"]}
        assert not names & {"user", "account", "entity", "identity", "tenant"}

    @pytest.mark.parametrize("make", [memory_function_tools, file_function_tools])
    def test_what_gives_no_tools_is_refused(self, make, storage):
        with pytest.raises(TypeError):
            make("tools")
        name = make(lambda r: None)[0].name
        with pytest.raises(TypeError):
            call(make(lambda r: None, on_failure=None), name, {"path": None})


class Failing:
    """A storage in which every call ends in an error."""

    def __init__(self, error):
        self.error = error

    def __getattr__(self, name):
        def fail(*_):
            raise self.error

        return fail


OUTAGE = BackendUnavailableError("timeout", outcome="unknown")
FAULT = RuntimeError("cannot open s3://bucket/secret-key?token=abc on /srv/data")


class TestFailures:
    def tools(self, error, **settings):
        storage = Failing(error)
        return memory_function_tools(memory_of(storage), **settings) + file_function_tools(
            files_of(FileAccounts(storage)), **settings
        )

    @pytest.mark.parametrize(
        ("name", "arguments"), [("write_file", NOTE), ("file_create", {"path": "a", "content": ""})]
    )
    def test_an_outage_is_told_with_whether_to_repeat(self, name, arguments):
        turns = script([(name, arguments)])
        told = json.loads(run(ask(self.tools(OUTAGE), turns)).final_output)
        assert told["category"] == "transient"
        assert told["reason"] in ("timeout", "unavailable")
        assert told["outcome"] in ("unknown", "not_applied")

    @pytest.mark.parametrize(
        ("name", "arguments"), [("read_file", ADDRESS), ("file_read", {"path": "a"})]
    )
    def test_a_fault_is_told_without_its_text_and_logged(self, name, arguments, caplog):
        with caplog.at_level(logging.ERROR):
            told = call(self.tools(FAULT), name, arguments)
        assert json.loads(told)["category"] == "internal"
        assert not any(word in told for word in ("secret", "s3:", "token", "/srv"))
        assert name in caplog.text

    @pytest.mark.parametrize(
        ("name", "arguments"), [("read_file", ADDRESS), ("file_read", {"path": "a"})]
    )
    def test_what_a_storage_says_of_an_outage_is_logged_and_not_told(self, name, arguments, caplog):
        outage = BackendUnavailableError("unavailable", "https://bucket.example/secret-key")
        with caplog.at_level(logging.WARNING):
            told = call(self.tools(outage), name, arguments)
        assert json.loads(told)["reason"] == "unavailable"
        assert "secret" not in told
        assert "secret" in caplog.text

    def test_without_a_failure_function_an_outage_ends_the_run(self):
        with pytest.raises(Exception) as ended:
            run(ask(self.tools(OUTAGE, on_failure=None), script([("read_file", ADDRESS)])))
        assert OUTAGE in (ended.value, ended.value.__cause__)

    @pytest.mark.parametrize("awaits", [False, True])
    def test_a_failure_function_of_the_sdk_answers_instead(self, awaits):
        def tell(run_context, error):
            return f"sorry: {type(error).__name__}"

        async def tell_later(run_context, error):
            return tell(run_context, error)

        tools = self.tools(OUTAGE, on_failure=tell_later if awaits else tell)
        assert call(tools, "read_file", ADDRESS) == "sorry: BackendUnavailableError"

    @pytest.mark.parametrize("meant", ["raise", "", 7])
    def test_what_is_no_way_to_fail_is_refused_before_there_is_a_failure(self, meant):
        with pytest.raises(ValueError, match="on_failure"):
            self.tools(OUTAGE, on_failure=meant)

    def test_a_refusal_does_not_go_to_the_failure_function(self, storage):
        tools = memory_function_tools(memory_of(storage), on_failure=None)
        assert json.loads(call(tools, "read_file", ADDRESS))["error"] == "NotFoundError"

    def test_a_caller_without_an_identity_is_told_that_there_is_no_memory(self):
        def nobody(run_context):
            raise ResolverFailureError

        told = json.loads(call(memory_function_tools(nobody), "read_file", "not even JSON"))
        assert told["error"] == "ResolverFailureError"


def test_without_the_sdk_the_import_names_the_line_to_run():
    script_text = (
        "import sys; sys.modules['agents'] = None\n"
        "try:\n    import wenchang.adapters.openai_agents\n"
        "except ImportError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script_text], capture_output=True, text=True, check=True
    )
    assert 'pip install "wenchang[openai-agents]"' in done.stdout
