"""The one place that touches the MCP SDK: which names are used, and how tools are put in.

`MCPServer.add_tool` derives schema and validation from a Python signature; it turns strings that
look like JSON into values and drops unknown arguments. So a tool of ours is an SDK `Tool` with its
own schema that gets the raw arguments. Putting it into an existing server has no public method in
mcp 2.x; the two attributes used for it are looked at once, before anything is registered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

_NEEDED = 'mcp 2.2 or a later 2.x: pip install "wenchang-core[mcp]"'

try:
    import anyio.to_thread
    from mcp.server.mcpserver import Context, MCPServer
    from mcp.server.mcpserver.resources import TextResource
    from mcp.server.mcpserver.tools import Tool
    from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase, FuncMetadata
    from mcp.types import CallToolResult, TextContent, ToolAnnotations
except ImportError as _error:
    try:
        _problem = f"cannot use mcp {version('mcp')}"
    except PackageNotFoundError:
        _problem = "needs a package that is not installed here"
    _message = f"wenchang.mcp {_problem}; it needs {_NEEDED}"
    raise ImportError(_message) from _error

__all__ = [
    "CallToolResult",
    "Context",
    "MCPServer",
    "TextContent",
    "ToolAnnotations",
    "check_server",
    "install_resource",
    "install_tool",
    "registered_resources",
    "registered_tools",
]

Handler = Callable[[dict[str, Any], Context[Any, Any]], CallToolResult]
"""What answers a call: raw arguments and the request's context. Runs on a worker thread."""


class _RawTool(Tool):
    """A tool whose function gets the arguments as they came and returns the whole result."""

    async def run(
        self,
        arguments: dict[str, Any],
        context: Context[Any, Any],
        convert_result: bool = False,  # noqa: ARG002 - fixed by the SDK; the result is converted
    ) -> CallToolResult:
        """Answer one call on a worker thread."""
        result: CallToolResult = await anyio.to_thread.run_sync(self.fn, arguments, context)
        return result


def check_server(server: object) -> None:
    """Raise TypeError unless `server` is an `MCPServer`, ImportError if tools cannot be put in."""
    if not isinstance(server, MCPServer):
        msg = f"server must be an mcp MCPServer, not {type(server).__name__}"
        raise TypeError(msg)
    try:
        suitable = isinstance(_tools(server), dict) and callable(server.add_resource)
    except AttributeError:
        suitable = False
    if not suitable:
        msg = f"wenchang.mcp cannot add tools with mcp {version('mcp')}; it needs {_NEEDED}"
        raise ImportError(msg)


def registered_tools(server: MCPServer[Any]) -> set[str]:
    """Return the names of the tools that the server has."""
    return set(_tools(server))


def registered_resources(server: MCPServer[Any]) -> set[str]:
    """Return the URIs of the fixed resources that the server has."""
    manager = server._resource_manager  # noqa: SLF001 - the public listing is async only
    return {str(resource.uri) for resource in manager.list_resources()}


def install_tool(
    server: MCPServer[Any],
    *,
    name: str,
    description: str,
    input_schema: Mapping[str, Any],
    output_schema: Mapping[str, Any],
    annotations: ToolAnnotations,
    handler: Handler,
) -> None:
    """Add a tool with these very schemas, whose calls `handler` answers."""
    _tools(server)[name] = _RawTool(
        fn=handler,
        name=name,
        title=annotations.title,
        description=description,
        parameters=dict(input_schema),
        fn_metadata=FuncMetadata(arg_model=ArgModelBase, output_schema=dict(output_schema)),
        is_async=False,
        context_kwarg=None,
        annotations=annotations,
    )


def install_resource(
    server: MCPServer[Any], *, uri: str, name: str, description: str, mime_type: str, text: str
) -> None:
    """Add a resource with a fixed text."""
    server.add_resource(
        TextResource(uri=uri, name=name, description=description, mime_type=mime_type, text=text)
    )


def _tools(server: MCPServer[Any]) -> dict[str, Tool]:
    return server._tool_manager._tools  # noqa: SLF001 - no public way to add a finished Tool
