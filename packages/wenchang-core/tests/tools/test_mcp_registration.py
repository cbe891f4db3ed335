"""What a server offers once the tools are in it, and what is refused before anything is."""

from __future__ import annotations

import json
import logging
import subprocess
import sys

import pytest
from jsonschema import Draft202012Validator
from mcp import Client
from mcp.server.mcpserver import MCPServer

from wenchang import __version__
from wenchang.mcp import (
    MAX_TOOL_DESCRIPTION_CHARS,
    PROMPT_RESOURCE_URI,
    build_server,
    mcp_tool_descriptions,
    memory_instructions,
    register_memory_tools,
)
from wenchang.mcp import _sdk as sdk
from wenchang.prompts import PromptSlots, build_memory_prompt
from wenchang.schemas import tool_schemas
from wenchang.tools import TOOL_NAMES, tool_descriptions

TEA = {"scope": "user", "area": "prefs", "name": "tea"}


def settings(world, **changes):
    return {
        "client": world.client,
        "resolver": world.resolver,
        "policy": world.policy,
        "credentials_from_context": lambda _context: "token",
        "source": "s",
        "slots": world.slots,
    } | changes


@pytest.fixture
def theirs():
    """Return a server as an adopter already has it, with a tool and a resource of its own."""
    server = MCPServer("theirs", instructions="Be brief.")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.resource("theirs://readme")
    def readme() -> str:
        return "hello"

    return server


def contents(server):
    return (sdk.registered_tools(server), sdk.registered_resources(server))


def test_mem_055_the_prompt_is_a_resource_and_the_instructions(world):
    prompt = build_memory_prompt(world.slots)
    with world.connect() as surface:
        listed = surface.portal.call(surface.client.list_resources).resources
        read = surface.portal.call(surface.client.read_resource, PROMPT_RESOURCE_URI).contents
        instructions = surface.client.instructions

    assert PROMPT_RESOURCE_URI == "wenchang://memory-prompt"
    assert [(str(item.uri), item.name, item.mime_type) for item in listed] == [
        (PROMPT_RESOURCE_URI, "memory_prompt", "text/markdown")
    ]
    assert [(item.text, item.mime_type) for item in read] == [(prompt, "text/markdown")]
    assert instructions == prompt == memory_instructions(world.slots)


def test_mem_055_the_server_has_its_name_and_the_version_of_the_library(world):
    server = world.server()
    assert (server.name, server.version) == ("wenchang", __version__)
    assert world.server(name="notes").name == "notes"


def test_mem_056_a_loaded_index_brings_the_prompt_and_a_failed_one_does_not(world):
    with world.connect() as surface:
        loaded = surface.call("get_memory_index")
        failed = surface.send("get_memory_index", {"bogus": 1})
        other = surface.call("list_prefix", scope="user")

    assert json.loads(loaded.texts[0]) == loaded.payload
    assert loaded.texts[1:] == [build_memory_prompt(world.slots)]
    assert failed.is_error
    assert len(failed.texts) == len(other.texts) == 1


def test_mem_057_the_descriptions_are_those_of_the_tools_with_one_guidance():
    core, ours = tool_descriptions("Acme"), mcp_tool_descriptions(product="Acme")

    assert tuple(ours) == TOOL_NAMES
    guidance = {text.removeprefix(core[name]) for name, text in ours.items()}
    assert len(guidance) == 1
    (text,) = guidance
    for rule in ("get_memory_index", "Never store", "Conflicts"):
        assert rule in text


def test_mem_057_with_slots_the_index_starts_with_their_purpose(world):
    plain, ours = mcp_tool_descriptions(), mcp_tool_descriptions(world.slots)

    assert ours["get_memory_index"] == f"{world.slots.purpose}\n\n{plain['get_memory_index']}"
    assert {k: v for k, v in ours.items() if k != "get_memory_index"} == {
        k: v for k, v in plain.items() if k != "get_memory_index"
    }


def test_mem_057_these_are_the_descriptions_that_are_registered(world):
    world.product = "Acme"
    with world.connect() as surface:
        tools = surface.portal.call(surface.client.list_tools).tools

    assert {tool.name: tool.description for tool in tools} == dict(
        mcp_tool_descriptions(world.slots, "Acme")
    )


def test_mem_057_only_slots_are_slots():
    with pytest.raises(TypeError):
        mcp_tool_descriptions("purpose")


def test_mem_058_a_description_over_the_limit_is_refused_before_anything_is_registered(
    world, theirs
):
    room = MAX_TOOL_DESCRIPTION_CHARS - len(mcp_tool_descriptions()["get_memory_index"]) - 2
    before = contents(theirs)
    too_long = PromptSlots("p" * (room + 1), "g", "a")

    with pytest.raises(ValueError, match="get_memory_index"):
        build_server(**settings(world, slots=too_long))
    with pytest.raises(ValueError, match="get_memory_index"):
        register_memory_tools(theirs, **settings(world, slots=too_long))

    assert contents(theirs) == before
    build_server(**settings(world, slots=PromptSlots("p" * room, "g", "a")))


def test_mem_058_the_limit_leaves_room_for_products_and_purposes():
    assert MAX_TOOL_DESCRIPTION_CHARS == 2000
    assert max(len(text) for text in mcp_tool_descriptions(product="P" * 60).values()) <= 1600


def test_mem_060_a_failure_is_an_error_result_with_the_payload(world):
    with world.connect() as surface:
        result = surface.portal.call(surface.client.call_tool, "read_file", TEA)

    assert result.is_error is True
    assert result.structured_content["error"] == "NotFoundError"
    assert [item.type for item in result.content] == ["text"]
    assert json.loads(result.content[0].text) == result.structured_content


@pytest.mark.parametrize("name", TOOL_NAMES)
def test_the_annotations_say_what_a_tool_may_do(world, name):
    with world.connect() as surface:
        tools = surface.portal.call(surface.client.list_tools).tools
    hints = {tool.name: tool.annotations for tool in tools}[name]

    assert hints.read_only_hint == (name in {"get_memory_index", "read_file", "list_prefix"})
    assert hints.destructive_hint == (name in {"write_file", "replace_fact", "delete_file"})
    assert hints.idempotent_hint == (name != "replace_fact")
    assert hints.open_world_hint is False
    assert hints.title


@pytest.mark.parametrize("name", TOOL_NAMES)
def test_the_advertised_schemas_are_ours_and_admit_errors_too(world, name):
    with world.connect() as surface:
        tools = {t.name: t for t in surface.portal.call(surface.client.list_tools).tools}
        failed = surface.send(name, {"bogus": 1}).payload
    schema = tool_schemas()[name]

    assert tools[name].input_schema == schema.input
    advertised = tools[name].output_schema
    Draft202012Validator.check_schema(advertised)
    assert advertised["type"] == "object"
    Draft202012Validator(advertised).validate(failed)
    assert not Draft202012Validator(advertised).is_valid({"something": "else"})


def test_an_existing_server_keeps_all_it_has(world, theirs):
    register_memory_tools(
        theirs, **settings(world, slots=None, prompt="MEMORY PROMPT"), tool_prefix="memory"
    )
    with world.connect(theirs, prefix="memory") as surface:
        names = [tool.name for tool in surface.portal.call(surface.client.list_tools).tools]
        added = surface.portal.call(surface.client.call_tool, "add", {"a": 1, "b": 2})
        index = surface.call("get_memory_index")
        own = surface.portal.call(surface.client.read_resource, "theirs://readme").contents
        instructions = surface.client.instructions

    assert names == ["add", *(f"memory_{name}" for name in TOOL_NAMES)]
    assert added.structured_content == {"result": 3}
    assert own[0].text == "hello"
    assert index.texts[1] == "MEMORY PROMPT"
    assert instructions == "Be brief."


def test_an_existing_server_without_the_prompt_in_its_instructions_is_warned_about(
    world, theirs, caplog
):
    register_memory_tools(theirs, **settings(world))
    assert [(r.name, r.levelno) for r in caplog.records] == [("wenchang.mcp", logging.WARNING)]
    caplog.clear()

    fine = MCPServer("fine", instructions=f"Be brief.\n\n{build_memory_prompt(world.slots)}")
    register_memory_tools(fine, **settings(world))
    assert caplog.records == []


def test_a_second_memory_in_one_server_is_refused_for_its_prompt(world, theirs, make):
    register_memory_tools(theirs, **settings(world), tool_prefix="one")
    before = contents(theirs)

    with pytest.raises(ValueError, match="memory-prompt"):
        register_memory_tools(theirs, **settings(make()), tool_prefix="two")

    assert contents(theirs) == before


def test_names_that_are_taken_are_listed_and_nothing_is_registered(world):
    server = MCPServer("theirs")
    for name in ("write_file", "delete_file"):
        server.add_tool(lambda: None, name=name)
    before = contents(server)

    with pytest.raises(ValueError, match="delete_file, write_file"):
        register_memory_tools(server, **settings(world))

    assert contents(server) == before
    register_memory_tools(server, **settings(world), tool_prefix="m")


def test_a_taken_prompt_resource_is_refused_and_nothing_is_registered(world, theirs):

    @theirs.resource(PROMPT_RESOURCE_URI)
    def mine() -> str:
        return "mine"

    before = contents(theirs)

    with pytest.raises(ValueError, match="memory-prompt"):
        register_memory_tools(theirs, **settings(world))

    assert contents(theirs) == before


@pytest.mark.parametrize("prefix", ["a", "A-b_c9", "a" * 64, "0"])
def test_a_prefix_of_1_to_64_plain_characters_is_accepted(world, prefix):
    names = sdk.registered_tools(world.server(tool_prefix=prefix))
    assert names == {f"{prefix}_{name}" for name in TOOL_NAMES}


@pytest.mark.parametrize("prefix", ["", "-a", "a_", "a b", "a\n", "é", "a" * 65, "a.b"])
def test_any_other_prefix_is_refused(world, theirs, prefix):
    before = contents(theirs)

    with pytest.raises(ValueError, match="tool_prefix"):
        register_memory_tools(theirs, **settings(world), tool_prefix=prefix)
    with pytest.raises(TypeError, match="tool_prefix"):
        register_memory_tools(theirs, **settings(world), tool_prefix=5)

    assert contents(theirs) == before


WRONG = [
    ("client", object(), TypeError),
    ("resolver", object(), TypeError),
    ("policy", {}, TypeError),
    ("credentials_from_context", None, TypeError),
    ("source", "", ValueError),
    ("source", 5, TypeError),
    ("product", "a\nb", ValueError),
    ("on_call", 5, TypeError),
    ("slots", "text", TypeError),
]


@pytest.mark.parametrize(
    ("name", "value", "error"), WRONG, ids=[f"{w[0]}-{w[1]!r}"[:20] for w in WRONG]
)
def test_a_wrong_setting_registers_nothing(world, theirs, name, value, error):
    before = contents(theirs)

    with pytest.raises(error):
        build_server(**settings(world, **{name: value}))
    with pytest.raises(error):
        register_memory_tools(theirs, **settings(world, **{name: value}))

    assert contents(theirs) == before


@pytest.mark.parametrize(
    ("prompt", "error"), [(None, TypeError), (5, TypeError), (" ", ValueError)]
)
def test_a_prompt_is_needed_from_somewhere(world, theirs, prompt, error):
    with pytest.raises(error):
        register_memory_tools(theirs, **settings(world, slots=None, prompt=prompt))


def test_only_an_mcp_server_takes_tools(world):
    with pytest.raises(TypeError):
        register_memory_tools(object(), **settings(world))


def test_an_sdk_that_cannot_take_the_tools_is_named_with_the_remedy(world, theirs):
    del theirs._tool_manager

    with pytest.raises(ImportError, match=r"wenchang-core\[mcp\]"):
        register_memory_tools(theirs, **settings(world))


@pytest.mark.parametrize("installed", [True, False])
def test_without_the_sdk_the_import_says_what_to_install(installed):
    program = (
        "import sys, importlib.metadata as metadata\n"
        "class Block:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'mcp':\n"
        "            raise ModuleNotFoundError(name, name=name)\n"
        "def version(name):\n"
        f"    if {installed}: return '1.9'\n"
        "    raise metadata.PackageNotFoundError(name)\n"
        "metadata.version = version\n"
        "sys.meta_path.insert(0, Block())\n"
        "try:\n"
        "    import wenchang.mcp\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, timeout=60, capture_output=True, text=True
    )

    assert 'pip install "wenchang-core[mcp]"' in done.stdout
    assert ("1.9" in done.stdout) == installed


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_both_generations_of_the_protocol_give_the_same(world, mode):
    world.seed("user", "prefs", "tea")
    with world.connect(mode=mode) as surface:
        assert surface.call("read_file", **TEA).payload["content"] == "- [stated] One.\n"
        assert surface.call("read_file", **(TEA | {"name": "x"})).is_error


def test_a_tool_called_by_the_program_itself_has_no_request_id(world):
    import anyio

    records = []
    server = world.server(on_call=records.append)
    result = anyio.run(server.call_tool, "get_memory_index", {})

    assert result.structured_content["entries"] == []
    assert records[0].request_id is None


def test_calls_run_on_worker_threads_so_a_slow_one_does_not_hold_up_the_others(world):
    """The first call waits inside the store until a second one has been answered."""
    import threading

    import anyio

    answered = threading.Event()
    client = world.client

    class Slow(type(client)):
        def read_file(self, path):
            if path.endswith("/slow.md"):
                assert answered.wait(30), "the second call was never answered"
            return super().read_file(path)

    world.client = Slow(world.store)
    world.seed("user", "prefs", "slow")
    world.seed("user", "prefs", "tea")

    async def both():
        async with Client(world.server()) as client:
            results = {}

            async def slow():
                results["slow"] = await client.call_tool("read_file", TEA | {"name": "slow"})

            async with anyio.create_task_group() as group:
                group.start_soon(slow)
                results["fast"] = await client.call_tool("read_file", TEA)
                answered.set()
            return results

    results = anyio.run(both)

    assert not results["fast"].is_error
    assert not results["slow"].is_error
