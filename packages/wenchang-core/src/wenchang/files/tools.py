"""`FileTools`: the file tools of one caller, as plain Python.

The account is never an argument: it is the entity that the caller's identity has in one scope. Every
call checks the names of its arguments, for a change the caller's role, then each argument, and only
then reads or changes the tree.

    tools = bind_file_tools(accounts, resolver, credentials, policy, source="desktop")
    answer = tools.call("file_read", {"path": "notes/plan.md", "fromLine": 10})
    answer.text, answer.payload

`call` takes arguments as an agent sends them; the methods take the same ones under Python names.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from wenchang.errors import RestrictedScopeError
from wenchang.files._answers import FileAnswer
from wenchang.files._arguments import Arguments
from wenchang.files._descriptions import (
    CHANGING_TOOLS,
    FILE_TOOL_NAMES,
    HISTORY_TOOL_NAMES,
    file_tool_descriptions,
    file_tool_names,
)
from wenchang.files._operations import OPERATIONS, Account
from wenchang.files._payloads import render_error
from wenchang.files.accounts import FileAccounts
from wenchang.files.errors import NoFilesError
from wenchang.files.listing import SortBy
from wenchang.files.schemas import file_tool_schemas
from wenchang.files.search import SearchMode
from wenchang.identity import Identity, IdentityResolver, check_resolver, resolve_identity
from wenchang.metadata import check_source
from wenchang.observer import CallObserver, ToolCallRecord, check_observer, notify
from wenchang.scope import ScopePolicy
from wenchang.tools._known_scopes import check_known_scopes, process_watch

__all__ = [
    "FILE_TOOL_NAMES",
    "HISTORY_TOOL_NAMES",
    "FileAnswer",
    "FileTools",
    "bind_file_tools",
    "check_file_settings",
    "file_tool_descriptions",
    "file_tool_names",
    "operation_name",
    "render_error",
]

C = TypeVar("C")

# Names and required names of the arguments of each tool, from the schemas that agents are shown.
_ARGUMENTS: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    name: (tuple(schema.input["properties"]), tuple(schema.input["required"]))
    for name, schema in file_tool_schemas(history=True).items()
}


def operation_name(tool: str) -> str:
    """Return the name under which a call of a tool is metered: `file-read` for `file_read`."""
    return tool.replace("_", "-")


class FileTools:
    """The file tools of one caller; instances hold no state of their own and serve several threads.

    Every tool returns a `FileAnswer` or raises: a `FileToolError` for a refusal that changed
    nothing, `RestrictedScopeError` without a role that the policy asks for, `TreeStateError`,
    `BackendUnavailableError`. `render_error` turns each into what an agent sees.
    """

    def __init__(
        self,
        files: FileAccounts,
        identity: Identity,
        policy: ScopePolicy,
        *,
        source: str,
        on_call: CallObserver | None = None,
    ) -> None:
        """Bind the tools to the account of an identity.

        `source` is kept with past versions as the surface that wrote; `on_call` gets a
        `ToolCallRecord` after each call, one for a call whatever its size. Raises TypeError or
        ValueError for an argument that is not valid, `NoFilesError` for an identity without the
        scope that files belong to.
        """
        check_file_settings(files, policy, source=source, on_call=on_call)
        if not isinstance(identity, Identity):
            msg = f"identity must be an Identity, not {type(identity).__name__}"
            raise TypeError(msg)
        scope = files.settings.scope
        grant = identity.grants.get(scope)
        if grant is None:
            raise NoFilesError(scope)
        self._files = files
        self._settings = files.settings
        self._account = grant.entity_id
        self._role = grant.role
        self._allowed = policy.write_roles.get(scope)
        self._source = check_source(source)
        self._on_call = on_call

    def names(self) -> tuple[str, ...]:
        """Return the names of the tools that there are, in order."""
        return file_tool_names(history=self._settings.history is not None)

    def call(self, tool: str, arguments: Mapping[str, object]) -> FileAnswer:
        """Carry out one call with the arguments as an agent sent them.

        Raises KeyError for a tool that there is not.
        """
        if tool not in self.names():
            raise KeyError(tool)
        started = time.perf_counter()
        try:
            answer = self._run(tool, arguments)
        except Exception as error:
            payload = render_error(error, max_chars=self._settings.max_answer_chars)
            self._report(tool, arguments, payload, started, is_error=True)
            raise
        self._report(tool, arguments, answer.payload, started, is_error=False)
        return answer

    # --- the tools under Python names --------------------------------------------------------------

    def file_list(
        self,
        path: str | None = None,
        *,
        depth: int | None = None,
        cursor: str | None = None,
        page_size: int | None = None,
    ) -> FileAnswer:
        """List a folder, `depth` levels deep."""
        return self._call("file_list", path=path, depth=depth, cursor=cursor, pageSize=page_size)

    def file_read(
        self,
        path: str | None = None,
        *,
        paths: Sequence[str] | None = None,
        from_line: int | None = None,
        to_line: int | None = None,
    ) -> FileAnswer:
        """Read one file, whole or a range of its lines, or several whole ones."""
        return self._call("file_read", path=path, paths=paths, fromLine=from_line, toLine=to_line)

    def file_find(
        self,
        pattern: str,
        *,
        path: str | None = None,
        sort_by: SortBy | None = None,
        cursor: str | None = None,
        page_size: int | None = None,
    ) -> FileAnswer:
        """Find files by a pattern."""
        return self._call(
            "file_find",
            pattern=pattern,
            path=path,
            sortBy=sort_by,
            cursor=cursor,
            pageSize=page_size,
        )

    def file_search(
        self,
        text: str,
        *,
        path: str | None = None,
        glob: str | None = None,
        case_sensitive: bool | None = None,
        mode: SearchMode | None = None,
        context: int | None = None,
        cursor: str | None = None,
        page_size: int | None = None,
    ) -> FileAnswer:
        """Find literal text inside files."""
        return self._call(
            "file_search",
            text=text,
            path=path,
            glob=glob,
            caseSensitive=case_sensitive,
            mode=mode,
            context=context,
            cursor=cursor,
            pageSize=page_size,
        )

    def file_create(self, path: str, content: str) -> FileAnswer:
        """Make a new file."""
        return self._call("file_create", path=path, content=content)

    def file_append(self, path: str, text: str) -> FileAnswer:
        """Add text at the end of a file, or make it."""
        return self._call("file_append", path=path, text=text)

    def file_move(self, source: str, target: str, version: str | None = None) -> FileAnswer:
        """Move or rename a file or a folder."""
        return self._call("file_move", **{"from": source}, to=target, version=version)

    def file_edit(
        self, path: str, edits: Sequence[Mapping[str, object]], version: str | None = None
    ) -> FileAnswer:
        """Replace exact text; each edit has `oldText`, `newText` and perhaps `replaceAll`."""
        return self._call("file_edit", path=path, edits=edits, version=version)

    def file_write(self, path: str, content: str, version: str | None = None) -> FileAnswer:
        """Create a file, or replace the whole of one at a version."""
        return self._call("file_write", path=path, content=content, version=version)

    def file_delete(
        self, path: str, *, recursive: bool | None = None, version: str | None = None
    ) -> FileAnswer:
        """Delete a file, or with `recursive` a folder."""
        return self._call("file_delete", path=path, recursive=recursive, version=version)

    def file_history(self, path: str) -> FileAnswer:
        """List the versions of a path; there only where history is kept."""
        return self._call("file_history", path=path)

    def file_restore(self, path: str, version: str) -> FileAnswer:
        """Bring a past version back as a new one; there only where history is kept."""
        return self._call("file_restore", path=path, version=version)

    def _call(self, tool: str, **arguments: object) -> FileAnswer:
        return self.call(tool, {name: v for name, v in arguments.items() if v is not None})

    # --- one call ----------------------------------------------------------------------------------

    def _run(self, tool: str, arguments: Mapping[str, object]) -> FileAnswer:
        checked = Arguments(arguments, *_ARGUMENTS[tool])
        if tool in CHANGING_TOOLS and self._allowed is not None and self._role not in self._allowed:
            raise RestrictedScopeError("", self._settings.scope, "role_required", self._allowed)
        scope, bound = self._settings.scope, self._settings.max_answer_chars
        account = Account(
            name=f"{scope}/{self._account}",
            tree=self._files.tree(self._account),
            source=self._source,
            max_answer_chars=bound,
        )
        return OPERATIONS[tool](account, checked)

    def _report(
        self,
        tool: str,
        arguments: Mapping[str, object],
        payload: Mapping[str, Any],
        started: float,
        *,
        is_error: bool,
    ) -> None:
        duration = time.perf_counter() - started
        notify(
            self._on_call,
            lambda: ToolCallRecord(
                tool=tool,
                arguments=arguments,
                result=payload,
                is_error=is_error,
                request_id=None,
                duration_s=duration,
                operation=operation_name(tool),
            ),
        )


def bind_file_tools(
    files: FileAccounts,
    resolver: IdentityResolver[C],
    credentials: C,
    policy: ScopePolicy,
    *,
    source: str,
    on_call: CallObserver | None = None,
    known_scopes: Iterable[str] | None = None,
) -> FileTools:
    """Resolve the identity once and return the tools bound to its account.

    The credentials are not kept. `known_scopes` are the scopes that identities here can have; a
    policy that names another is refused. Raises TypeError or ValueError for an argument that is not
    valid, before the resolver runs; `ResolverFailureError` or `IdentityUnavailableError` where the
    resolver gives no identity; `NoFilesError` where the identity has no files.
    """
    check_file_settings(files, policy, source=source, on_call=on_call)
    check_resolver(resolver)
    check_known_scopes(policy, known_scopes)
    identity = resolve_identity(resolver, credentials)
    if known_scopes is None:
        process_watch.note(identity, policy)
    return FileTools(files, identity, policy, source=source, on_call=on_call)


def check_file_settings(
    files: FileAccounts, policy: ScopePolicy, *, source: str, on_call: CallObserver | None
) -> None:
    """Raise TypeError or ValueError for what no `FileTools` could be made with."""
    if not isinstance(files, FileAccounts):
        msg = f"files must be a FileAccounts, not {type(files).__name__}"
        raise TypeError(msg)
    if not isinstance(policy, ScopePolicy):
        msg = f"policy must be a ScopePolicy, not {type(policy).__name__}"
        raise TypeError(msg)
    check_source(source)
    check_observer(on_call)
