"""The seven memory tools as an MCP server of their own, or within one that exists already."""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

from wenchang import __version__
from wenchang.files.accounts import FileAccounts
from wenchang.identity import Identity, IdentityResolver
from wenchang.mcp._callers import Callers, CredentialsFromContext
from wenchang.mcp._files import FILE_GUIDANCE, file_specs
from wenchang.mcp._guidance import PROMPT_RESOURCE_URI, mcp_tool_descriptions, memory_instructions
from wenchang.mcp._sdk import (
    MCPServer,
    ToolAnnotations,
    check_server,
    install_resource,
    registered_resources,
)
from wenchang.mcp._serving import (
    Answer,
    ToolSpec,
    check_registration,
    check_tool_prefix,
    install_specs,
)
from wenchang.observer import CallObserver
from wenchang.prompts import PromptSlots
from wenchang.schemas import tool_schemas
from wenchang.scope import ScopePolicy
from wenchang.tools._descriptions import READING_TOOLS
from wenchang.tools._memory import MemoryTools, check_tool_settings
from wenchang.tools._rendering import render_error, render_result, to_json
from wenchang.transport import TransportClient

__all__ = ["build_server", "register_memory_tools"]

C = TypeVar("C")

_logger = logging.getLogger("wenchang.mcp")

_TITLES: Final = {
    "get_memory_index": "Load the memory index",
    "read_file": "Read a memory file",
    "list_prefix": "List memory files",
    "write_file": "Write a memory file",
    "append_line": "Add a fact to memory",
    "replace_fact": "Change a fact in memory",
    "delete_file": "Delete a memory file",
}
_DESTRUCTIVE: Final = frozenset({"write_file", "replace_fact", "delete_file"})
# Repeated with the same version, every change but one meets a conflict and does nothing more:
# replace_fact follows the file to its current version, where its text may match again.
_NOT_IDEMPOTENT: Final = frozenset({"replace_fact"})


def build_server(
    *,
    slots: PromptSlots,
    client: TransportClient,
    resolver: IdentityResolver[C],
    policy: ScopePolicy,
    credentials_from_context: CredentialsFromContext[C],
    source: str,
    product: str | None = None,
    tool_prefix: str | None = None,
    on_call: CallObserver | None = None,
    name: str = "wenchang",
    known_scopes: Iterable[str] | None = None,
    files: FileAccounts | None = None,
) -> MCPServer[Any]:
    """Return an MCP server with the memory tools, the prompt resource and instructions.

    With `files` it has the file tools too, and their guidance is part of the instructions.

    Everything is checked first; see `register_memory_tools` for the parameters and what is raised.
    `server.run("stdio")` or `server.streamable_http_app()` serves it.
    """
    prompt = memory_instructions(slots)
    specs, callers = _prepare(
        prompt=prompt,
        slots=slots,
        client=client,
        resolver=resolver,
        policy=policy,
        credentials_from_context=credentials_from_context,
        source=source,
        product=product,
        tool_prefix=tool_prefix,
        on_call=on_call,
        known_scopes=known_scopes,
    )
    instructions = prompt
    if files is not None:
        specs += file_specs(files, policy, source=source, on_call=on_call)
        instructions = f"{prompt}\n\n# Files\n\n{FILE_GUIDANCE}"
    server: MCPServer[Any] = MCPServer(name, instructions=instructions, version=__version__)
    check_registration(server, specs, tool_prefix)
    _install_prompt(server, prompt)
    install_specs(server, specs, callers=callers, tool_prefix=tool_prefix, on_call=on_call)
    return server


def register_memory_tools(
    server: MCPServer[Any],
    *,
    client: TransportClient,
    resolver: IdentityResolver[C],
    policy: ScopePolicy,
    credentials_from_context: CredentialsFromContext[C],
    source: str,
    prompt: str | None = None,
    slots: PromptSlots | None = None,
    product: str | None = None,
    tool_prefix: str | None = None,
    on_call: CallObserver | None = None,
    known_scopes: Iterable[str] | None = None,
) -> None:
    """Add the memory tools and the prompt resource to a server, which keeps all it has.

    `credentials_from_context` reads the raw credential of a request and the resolver judges it, both
    at each call and on worker threads. `prompt` is the text of the resource and of the answer of
    `get_memory_index`; without it, the prompt of `slots` is used. With `slots`, the description of
    `get_memory_index` starts with their purpose. With `tool_prefix`, tools are named
    `{tool_prefix}_{name}`. `on_call` gets a `ToolCallRecord` after each call. `known_scopes` are the
    scopes that identities here can have; a policy that names another is refused.

    Raises TypeError or ValueError for an argument that is not valid, ValueError for a name or URI
    that the server has already or a description over `MAX_TOOL_DESCRIPTION_CHARS`, and ImportError
    for an SDK that cannot take the tools, all before anything is registered. Logs a WARNING if the
    server's instructions lack the prompt.
    """
    check_server(server)
    if prompt is None and slots is not None:
        prompt = memory_instructions(slots)
    specs, callers = _prepare(
        prompt=prompt,
        slots=slots,
        client=client,
        resolver=resolver,
        policy=policy,
        credentials_from_context=credentials_from_context,
        source=source,
        product=product,
        tool_prefix=tool_prefix,
        on_call=on_call,
        known_scopes=known_scopes,
    )
    text = _check_prompt(prompt)
    check_registration(server, specs, tool_prefix)
    if PROMPT_RESOURCE_URI in registered_resources(server):
        msg = f"the server already has a resource at {PROMPT_RESOURCE_URI}"
        raise ValueError(msg)
    _install_prompt(server, text)
    install_specs(server, specs, callers=callers, tool_prefix=tool_prefix, on_call=on_call)
    if text.strip() not in (server.instructions or ""):
        _logger.warning(
            "the instructions of the server lack the memory prompt; clients that show only "
            "instructions will use memory without its rules"
        )


def _prepare(
    *,
    prompt: str | None,
    slots: PromptSlots | None,
    client: TransportClient,
    resolver: IdentityResolver[C],
    policy: ScopePolicy,
    credentials_from_context: CredentialsFromContext[C],
    source: str,
    product: str | None,
    tool_prefix: str | None,
    on_call: CallObserver | None,
    known_scopes: Iterable[str] | None,
) -> tuple[list[ToolSpec], Callers[C]]:
    """Check every argument and make what is registered."""
    check_tool_settings(client, policy, source=source, product=product, on_call=on_call)
    callers = Callers(resolver, credentials_from_context, policy, known_scopes)
    check_tool_prefix(tool_prefix)
    text = _check_prompt(prompt)

    def call(name: str, identity: Identity, arguments: Mapping[str, Any]) -> Answer:
        tools = MemoryTools(client, identity, policy, source=source, product=product)
        payload = render_result(tools.tools()[name](**arguments))
        if name == "get_memory_index":
            return Answer(payload=payload, texts=(to_json(payload), text))
        return Answer(payload=payload)

    descriptions = mcp_tool_descriptions(slots, product)
    specs = [
        ToolSpec(
            name=name,
            description=descriptions[name],
            input_schema=schema.input,
            output_schema=schema.output,
            error_schema=schema.error,
            annotations=_annotations(name),
            call=functools.partial(call, name),
            render_error=render_error,
        )
        for name, schema in tool_schemas(product).items()
    ]
    return specs, callers


def _check_prompt(prompt: str | None) -> str:
    if not isinstance(prompt, str):
        wanted = "prompt must be a str (or slots must be given)"
        msg = f"{wanted}, not {type(prompt).__name__}"
        raise TypeError(msg)
    if not prompt.strip():
        msg = "prompt must not be blank"
        raise ValueError(msg)
    return prompt


def _install_prompt(server: MCPServer[Any], prompt: str) -> None:
    install_resource(
        server,
        uri=PROMPT_RESOURCE_URI,
        name="memory_prompt",
        description="How to use the memory tools: what to remember, where to file it, what not to.",
        mime_type="text/markdown",
        text=prompt,
    )


def _annotations(name: str) -> ToolAnnotations:
    return ToolAnnotations(
        title=_TITLES[name],
        read_only_hint=name in READING_TOOLS,
        destructive_hint=name in _DESTRUCTIVE,
        idempotent_hint=name not in _NOT_IDEMPOTENT,
        open_world_hint=False,
    )
