"""The SDK's own client over stdio and over streamable HTTP, against a server in another process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from wenchang.mcp import PROMPT_RESOURCE_URI
from wenchang.tools import TOOL_NAMES

SCRIPT = str(Path(__file__).with_name("server_for_tests.py"))
TEA = {"scope": "user", "area": "prefs", "name": "tea"}
NEW = {
    "content": "- [stated] 茶 🍵\n",
    "description": "null",
    "aliases": [],
    "expected_version": None,
}


@pytest.fixture
def port():
    """Start a server of its own for the test and end that very process."""
    process = subprocess.Popen([sys.executable, SCRIPT, "http"], stdout=subprocess.PIPE, text=True)
    try:
        yield int(process.stdout.readline())
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()


def http_client(port, token):
    """Return a client that sends `token` with each request."""
    http = httpx2.AsyncClient(headers={"x-token": token}, timeout=30)
    return http, streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http)


async def work(client):
    """Use every tool once; return the names listed and the payloads."""
    payloads = []

    async def call(tool, **arguments):
        result = await client.call_tool(tool, arguments)
        assert json.loads(result.content[0].text) == result.structured_content
        payloads.append(result.structured_content)
        return result

    names = [tool.name for tool in (await client.list_tools()).tools]
    prompt = (await client.read_resource(PROMPT_RESOURCE_URI)).contents[0].text
    assert client.instructions == prompt
    version = (await call("write_file", **TEA, **NEW)).structured_content["version"]
    conflict = await call("write_file", **TEA, **NEW)
    assert conflict.is_error
    assert conflict.structured_content["content"] == NEW["content"]
    line = await call("append_line", **TEA, line="- [observed] x", expected_version=version)
    version = line.structured_content["version"]
    edited = await call(
        "replace_fact", **TEA, old_string="x", new_string="y", expected_version=version
    )
    index = await call("get_memory_index")
    assert index.content[1].text == prompt
    await call("list_prefix", scope="user")
    read = await call("read_file", **TEA)
    assert read.structured_content["content"] == "- [stated] 茶 🍵\n- [observed] y\n"
    assert read.structured_content["description"] == "null"
    unknown = await call("read_file", **TEA, entity="x")
    assert unknown.structured_content["argument"] == "entity"
    gone = await call("delete_file", **TEA, expected_version=edited.structured_content["version"])
    assert gone.structured_content == {"ok": True}
    return names, payloads


def test_every_tool_works_over_stdio():
    async def run():
        parameters = StdioServerParameters(command=sys.executable, args=[SCRIPT, "stdio"])
        with anyio.fail_after(60):
            async with Client(parameters) as client:
                return await work(client)

    names, payloads = anyio.run(run)

    assert tuple(names) == TOOL_NAMES
    assert "zq-sentinel" not in json.dumps(payloads)


def test_every_tool_works_over_streamable_http(port):
    async def run():
        http, transport = http_client(port, "anna")
        with anyio.fail_after(60):
            async with http, Client(transport) as client:
                return await work(client)

    names, payloads = anyio.run(run)

    assert tuple(names) == TOOL_NAMES
    assert "zq-sentinel" not in json.dumps(payloads)


def test_mem_062_callers_over_http_share_the_team_and_nothing_else(port):
    async def run():
        seen = {}
        with anyio.fail_after(60):
            for token in ("anna", "ben", "mallory"):
                http, transport = http_client(port, token)
                async with http, Client(transport) as client:
                    for scope in ("user", "team"):
                        address = {"scope": scope, "area": "notes", "name": token}
                        await client.call_tool("write_file", address | NEW)
                    result = await client.call_tool("get_memory_index", {})
                    seen[token] = result.structured_content
        return seen

    seen = anyio.run(run)

    def names(token, scope):
        return sorted(e["name"] for e in seen[token]["entries"] if e["scope"] == scope)

    assert names("anna", "user") == ["anna"]
    assert names("ben", "user") == ["ben"]
    assert names("ben", "team") == ["anna", "ben"]
    assert seen["mallory"]["error"] == "ResolverFailureError"
    assert "zq-sentinel" not in json.dumps(seen)


def test_two_clients_append_at_once_over_http_and_no_acknowledged_line_is_lost(port):
    address = {"scope": "team", "area": "log", "name": "shared"}
    each = 10

    async def writer(token, start):
        http, transport = http_client(port, token)
        async with http, Client(transport) as client:
            start.started += 1
            await start.wait()
            version = ""
            for number in range(each):
                arguments = address | {"line": f"- [observed] {token} {number}"}
                for _ in range(200):
                    result = await client.call_tool(
                        "append_line", arguments | {"expected_version": version}
                    )
                    version = result.structured_content["version"]
                    if not result.is_error:
                        break
                else:
                    pytest.fail("a line never got through")

    class Start:
        """Lets both writers go once both are connected."""

        def __init__(self):
            self.started = 0
            self.event = anyio.Event()

        async def wait(self):
            if self.started == 2:
                self.event.set()
            await self.event.wait()

    async def run():
        with anyio.fail_after(120):
            http, transport = http_client(port, "anna")
            async with http, Client(transport) as client:
                await client.call_tool("write_file", address | NEW | {"content": ""})
                start = Start()
                async with anyio.create_task_group() as group:
                    group.start_soon(writer, "anna", start)
                    group.start_soon(writer, "ben", start)
                result = await client.call_tool("read_file", address)
            return result.structured_content["content"].splitlines()

    lines = anyio.run(run)

    expected = {f"- [observed] {token} {n}" for token in ("anna", "ben") for n in range(each)}
    assert len(lines) == 2 * each
    assert set(lines) == expected
