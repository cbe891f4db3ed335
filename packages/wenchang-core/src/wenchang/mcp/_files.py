"""The file tools as an MCP server of their own, or within one that exists already."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

from wenchang import __version__
from wenchang.files._descriptions import CHANGING_TOOLS, FILE_GUIDANCE
from wenchang.files.accounts import FileAccounts
from wenchang.files.schemas import file_tool_schemas
from wenchang.files.tools import FileTools, check_file_settings, operation_name, render_error
from wenchang.identity import Identity, IdentityResolver
from wenchang.mcp._callers import Callers, CredentialsFromContext
from wenchang.mcp._sdk import MCPServer, ToolAnnotations, check_server
from wenchang.mcp._serving import (
    Answer,
    ToolSpec,
    check_registration,
    check_tool_prefix,
    install_specs,
)
from wenchang.observer import CallObserver
from wenchang.scope import ScopePolicy

__all__ = ["FILE_GUIDANCE", "build_file_server", "file_specs", "register_file_tools"]

C = TypeVar("C")

_TITLES: Final = {
    "file_list": "List a folder",
    "file_read": "Read files",
    "file_find": "Find files",
    "file_search": "Search in files",
    "file_create": "Create a file",
    "file_append": "Append to a file",
    "file_move": "Move a file or folder",
    "file_edit": "Edit a file",
    "file_write": "Write a file",
    "file_delete": "Delete a file or folder",
    "file_history": "List past versions of a file",
    "file_restore": "Restore a past version of a file",
}
_DESTRUCTIVE: Final = frozenset({"file_edit", "file_write", "file_delete", "file_restore"})
# A second append appends again, and what an edit left may match it once more. Every other call that
# is repeated is refused, or finds done what it wants.
_NOT_IDEMPOTENT: Final = frozenset({"file_append", "file_edit"})


def build_file_server(
    *,
    files: FileAccounts,
    resolver: IdentityResolver[C],
    policy: ScopePolicy,
    credentials_from_context: CredentialsFromContext[C],
    source: str,
    tool_prefix: str | None = None,
    on_call: CallObserver | None = None,
    name: str = "wenchang",
    known_scopes: Iterable[str] | None = None,
) -> MCPServer[Any]:
    """Return an MCP server with the file tools, whose instructions are `FILE_GUIDANCE`.

    See `register_file_tools` for the parameters and what is raised.
    """
    server: MCPServer[Any] = MCPServer(name, instructions=FILE_GUIDANCE, version=__version__)
    register_file_tools(
        server,
        files=files,
        resolver=resolver,
        policy=policy,
        credentials_from_context=credentials_from_context,
        source=source,
        tool_prefix=tool_prefix,
        on_call=on_call,
        known_scopes=known_scopes,
    )
    return server


def register_file_tools(
    server: MCPServer[Any],
    *,
    files: FileAccounts,
    resolver: IdentityResolver[C],
    policy: ScopePolicy,
    credentials_from_context: CredentialsFromContext[C],
    source: str,
    tool_prefix: str | None = None,
    on_call: CallObserver | None = None,
    known_scopes: Iterable[str] | None = None,
) -> None:
    """Add the ten file tools to a server, and two more where `files` keeps history.

    `credentials_from_context` reads the raw credential of a request and the resolver judges it, both
    at each call and on worker threads. Whose files are meant is decided by the caller's identity
    alone; one without the scope that files belong to is answered with `NoFilesError`. `source` is
    kept with past versions. With `tool_prefix`, tools are named `{tool_prefix}_{name}`. `on_call`
    gets a `ToolCallRecord` after each call, whose `operation` names what is metered. `known_scopes`
    are the scopes that identities here can have; a policy that names another is refused.

    Give `FILE_GUIDANCE` a place in the server's instructions. Raises TypeError or ValueError for an
    argument that is not valid, ValueError for a name that the server has already, and ImportError for
    an SDK that cannot take the tools, all before anything is registered.
    """
    check_server(server)
    specs = file_specs(files, policy, source=source, on_call=on_call)
    callers = Callers(resolver, credentials_from_context, policy, known_scopes)
    check_tool_prefix(tool_prefix)
    check_registration(server, specs, tool_prefix)
    install_specs(server, specs, callers=callers, tool_prefix=tool_prefix, on_call=on_call)


def file_specs(
    files: FileAccounts, policy: ScopePolicy, *, source: str, on_call: CallObserver | None
) -> list[ToolSpec]:
    """Check the settings and describe the tools, ready to be installed."""
    check_file_settings(files, policy, source=source, on_call=on_call)
    settings = files.settings

    def call(name: str, identity: Identity, arguments: Mapping[str, Any]) -> Answer:
        answer = FileTools(files, identity, policy, source=source).call(name, arguments)
        return Answer(payload=answer.payload, texts=(answer.text,))

    return [
        ToolSpec(
            name=name,
            description=schema.description,
            input_schema=schema.input,
            output_schema=schema.output,
            error_schema=schema.error,
            annotations=_annotations(name),
            call=functools.partial(call, name),
            render_error=functools.partial(render_error, max_chars=settings.max_answer_chars),
            operation=operation_name(name),
        )
        for name, schema in file_tool_schemas(history=settings.history is not None).items()
    ]


def _annotations(name: str) -> ToolAnnotations:
    return ToolAnnotations(
        title=_TITLES[name],
        read_only_hint=name not in CHANGING_TOOLS,
        destructive_hint=name in _DESTRUCTIVE,
        idempotent_hint=name not in _NOT_IDEMPOTENT,
        open_world_hint=False,
    )
