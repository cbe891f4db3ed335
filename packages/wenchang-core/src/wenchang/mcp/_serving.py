"""How any tool of ours is served over MCP: registration, one call, telemetry.

A tool is described by a `ToolSpec`; what it does lies behind its `call`. For each request the
caller is identified, the names of the arguments are checked, the tool runs, and success or failure
becomes a result with structured content and text. Every call leaves a telemetry record, also one
with arguments that the tool never saw.
"""

from __future__ import annotations

import functools
import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from wenchang.errors import ErrorCategory
from wenchang.identity import Identity
from wenchang.mcp._callers import Callers
from wenchang.mcp._sdk import (
    CallToolResult,
    Context,
    MCPServer,
    TextContent,
    ToolAnnotations,
    check_server,
    install_tool,
    registered_tools,
)
from wenchang.observer import CallObserver, ToolCallRecord, notify
from wenchang.tools._arguments import check_names_of_arguments
from wenchang.tools._rendering import Payload, to_json

__all__ = [
    "MAX_TOOL_DESCRIPTION_CHARS",
    "Answer",
    "ToolSpec",
    "check_registration",
    "check_tool_prefix",
    "install_specs",
    "registered_name",
]

MAX_TOOL_DESCRIPTION_CHARS: Final = 2000
"""Some clients cut descriptions off, so a longer one is refused when the server is built."""

_TOOL_PREFIX: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?")
_logger = logging.getLogger("wenchang.mcp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A successful call: the structured payload, and the texts beside it.

    Without `texts`, the one text is the payload as compact JSON.
    """

    payload: Payload
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """One tool, ready to be served.

    `call(identity, arguments)` gets the caller and arguments whose names fit `input_schema`; it
    checks their values itself and raises for a failure, which `render_error` turns into a payload
    that `error_schema` admits. `operation` names the call for metering.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any]
    error_schema: Mapping[str, Any]
    annotations: ToolAnnotations
    call: Callable[[Identity, Mapping[str, Any]], Answer]
    render_error: Callable[[Exception], Payload]
    operation: str | None = None


def check_tool_prefix(tool_prefix: str | None) -> str | None:
    """Return the prefix; ValueError unless it is 1 to 64 of A-Z a-z 0-9 _ -, alphanumeric outside."""
    if tool_prefix is None:
        return None
    if not isinstance(tool_prefix, str):
        msg = f"tool_prefix must be a str or None, not {type(tool_prefix).__name__}"
        raise TypeError(msg)
    if not _TOOL_PREFIX.fullmatch(tool_prefix):
        msg = (
            "tool_prefix must be 1 to 64 letters, digits, '_' or '-', "
            "and begin and end with a letter or a digit"
        )
        raise ValueError(msg)
    return tool_prefix


def registered_name(name: str, tool_prefix: str | None) -> str:
    """Return the name under which a tool is registered."""
    return name if tool_prefix is None else f"{tool_prefix}_{name}"


def check_registration(
    server: MCPServer[Any], specs: Sequence[ToolSpec], tool_prefix: str | None
) -> None:
    """Raise for what would make a registration fail, before anything is registered.

    TypeError for another kind of server, ImportError for an SDK that cannot take the tools, ValueError
    for a description that is blank or too long and for names that are taken (all of them, sorted).
    """
    check_server(server)
    check_descriptions(specs)
    taken = sorted(
        registered_tools(server) & {registered_name(spec.name, tool_prefix) for spec in specs}
    )
    if taken:
        msg = (
            f"the server already has tools with these names: {', '.join(taken)}; "
            "choose another tool_prefix"
        )
        raise ValueError(msg)


def check_descriptions(specs: Sequence[ToolSpec]) -> None:
    """Raise ValueError for a description that is blank or over `MAX_TOOL_DESCRIPTION_CHARS`."""
    for spec in specs:
        length = len(spec.description)
        if not spec.description.strip() or length > MAX_TOOL_DESCRIPTION_CHARS:
            msg = (
                f"the description of {spec.name} has {length} characters; "
                f"it must have 1 to {MAX_TOOL_DESCRIPTION_CHARS}"
            )
            raise ValueError(msg)


def install_specs(
    server: MCPServer[Any],
    specs: Sequence[ToolSpec],
    *,
    callers: Callers[Any],
    tool_prefix: str | None,
    on_call: CallObserver | None,
) -> None:
    """Register tools that `check_registration` has passed."""
    for spec in specs:
        name = registered_name(spec.name, tool_prefix)
        install_tool(
            server,
            name=name,
            description=spec.description,
            input_schema=spec.input_schema,
            output_schema=_advertised_output(spec),
            annotations=spec.annotations,
            handler=functools.partial(_handle, spec, name, callers, on_call),
        )


def _advertised_output(spec: ToolSpec) -> dict[str, Any]:
    """Admit errors too: some clients validate the structured content of error results as well."""
    schemas = [dict(spec.output_schema), dict(spec.error_schema)]
    dialect = schemas[0].pop("$schema")
    schemas[1].pop("$schema", None)
    return {"$schema": dialect, "type": "object", "anyOf": schemas}


def _handle(
    spec: ToolSpec,
    name: str,
    callers: Callers[Any],
    on_call: CallObserver | None,
    arguments: dict[str, Any],
    context: Context[Any, Any],
) -> CallToolResult:
    """Answer one call. Never raises an `Exception`: every failure is an error result."""
    started = time.perf_counter()
    try:
        answer = _call(spec, callers, arguments, context)
        payload, texts, is_error = answer.payload, answer.texts, False
    except Exception as error:
        payload, texts, is_error = spec.render_error(error), (), True
        if payload.get("category") == ErrorCategory.INTERNAL:
            # The line of our own says nothing that the caller sent or the store holds.
            _logger.exception("tool %s failed with an internal error", name)
    texts = texts or (to_json(payload),)
    duration = time.perf_counter() - started
    notify(
        on_call,
        lambda: ToolCallRecord(
            tool=name,
            arguments=arguments,
            result=payload,
            is_error=is_error,
            request_id=_request_id(context),
            duration_s=duration,
            operation=spec.operation,
        ),
    )
    return CallToolResult(
        content=[TextContent(type="text", text=text) for text in texts],
        structured_content=payload,
        is_error=is_error,
    )


def _call(
    spec: ToolSpec,
    callers: Callers[Any],
    arguments: Mapping[str, Any],
    context: Context[Any, Any],
) -> Answer:
    # The caller first: without an identity nothing else about the call matters, as in a direct call.
    identity = callers.identify(context)
    check_names_of_arguments(
        arguments, list(spec.input_schema["properties"]), spec.input_schema["required"]
    )
    return spec.call(identity, arguments)


def _request_id(context: Context[Any, Any]) -> str | None:
    """Return the id of the MCP request; None where a program calls the server's tool directly."""
    try:
        return context.request_id
    except ValueError:
        return None
