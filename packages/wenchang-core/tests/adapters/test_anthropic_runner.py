"""The tool runner of the Anthropic SDK drives the memory tool with scripted tool calls."""

from __future__ import annotations

import asyncio
import json

import pytest

pytest.importorskip("anthropic", reason="the extra anthropic is not installed here")

import httpx2
from anthropic import Anthropic, AsyncAnthropic

from wenchang.adapters.anthropic import WenchangAsyncMemoryTool, WenchangMemoryTool


class Script:
    """The API of the model: one scripted answer a request, and what the requests told it."""

    def __init__(self, *turns):
        self.turns = list(turns)
        self.results = []
        self.tools = None

    def handle(self, request):
        sent = json.loads(request.content)
        self.tools = sent.get("tools", self.tools)
        last = sent["messages"][-1]
        if isinstance(last["content"], list):
            self.results += [b for b in last["content"] if b["type"] == "tool_result"]
        calls = self.turns.pop(0) if self.turns else []
        content = [
            {
                "type": "tool_use",
                "id": f"tool-{len(self.results)}-{n}",
                "name": "memory",
                "input": call,
            }
            for n, call in enumerate(calls)
        ]
        return httpx2.Response(
            200,
            json={
                "id": f"msg-{len(self.turns)}",
                "type": "message",
                "role": "assistant",
                "model": "scripted",
                "content": content or [{"type": "text", "text": "done"}],
                "stop_reason": "tool_use" if content else "end_turn",
                "stop_sequence": None,
                "usage": {"input_tokens": 1, "output_tokens": 1},
            },
        )

    async def ahandle(self, request):
        return self.handle(request)

    def heard(self):
        return [(r.get("is_error", False), said(r["content"])) for r in self.results]


def said(content):
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def drive(kind, files, script):
    asked = {
        "model": "scripted",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "Remember."}],
    }
    if kind == "sync":
        with httpx2.Client(transport=httpx2.MockTransport(script.handle)) as http:
            client = Anthropic(api_key="none", base_url="http://model.invalid", http_client=http)
            return client.beta.messages.tool_runner(
                **asked, tools=[WenchangMemoryTool(files)]
            ).until_done()

    async def use():
        async with httpx2.AsyncClient(transport=httpx2.MockTransport(script.ahandle)) as http:
            client = AsyncAnthropic(
                api_key="none", base_url="http://model.invalid", http_client=http
            )
            return await client.beta.messages.tool_runner(
                **asked, tools=[WenchangAsyncMemoryTool(files)]
            ).until_done()

    return asyncio.run(use())


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_the_runner_carries_out_every_command(files, kind):
    a, b = "/memories/notes/a.md", "/memories/notes/b.md"
    script = Script(
        [{"command": "view", "path": "/memories"}],
        [{"command": "create", "path": a, "file_text": "one\ntwo\n"}],
        [
            {"command": "str_replace", "path": a, "old_str": "two", "new_str": "2"},
            {"command": "insert", "path": a, "insert_line": 2, "insert_text": "three"},
        ],
        [{"command": "rename", "old_path": a, "new_path": b}],
        [{"command": "view", "path": b, "view_range": [2, 3]}],
        [{"command": "create", "path": b, "file_text": "other"}],
        [{"command": "delete", "path": "/memories/notes"}],
        [{"command": "view", "path": b}],
    )
    message = drive(kind, files, script)
    assert message.content[0].text == "done"
    assert script.tools == [{"type": "memory_20250818", "name": "memory"}]
    heard = script.heard()
    assert [failed for failed, _ in heard] == [False] * 6 + [True, False, True]
    assert heard[1][1] == "File created successfully at: /memories/notes/a.md"
    assert heard[3][1] == "The file /memories/notes/a.md has been edited."
    assert heard[5][1].splitlines()[1:] == ["     2\t2", "     3\tthree"]
    assert heard[6][1] == "Error: File /memories/notes/b.md already exists"
    assert heard[8][1] == (
        "The path /memories/notes/b.md does not exist. Please provide a valid path."
    )
    assert files.ls("/").entries == ()


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_what_a_model_gets_wrong_is_told_to_it_and_the_runner_goes_on(files, kind):
    script = Script(
        [{"command": "view"}, {"command": "bogus", "path": "/memories"}, {}],
        [{"command": "create", "path": "/memories/a.md", "file_text": "a\u0000b"}],
        [{"command": "view", "path": "/etc/passwd"}],
    )
    drive(kind, files, script)
    heard = script.heard()
    assert [failed for failed, _ in heard] == [True] * 5
    assert "Argument path is invalid" in heard[0][1]
    assert "must be one of view" in heard[1][1]
    assert heard[4][1] == "Path must start with /memories, got: /etc/passwd"


def test_tools_of_two_tenants_never_meet(stores):
    for tenant in ("acme", "globex"):
        call = {"command": "create", "path": "/memories/a.md", "file_text": tenant}
        drive("sync", stores.of(tenant), Script([call]))
    script = Script([{"command": "view", "path": "/memories/a.md"}])
    drive("sync", stores.of("globex"), script)
    assert "globex" in script.heard()[0][1]
    assert stores.of("acme").read("/a.md").text == "acme"
