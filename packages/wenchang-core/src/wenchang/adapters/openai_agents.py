"""Function tools for the OpenAI Agents SDK, from our own schemas. Needs the extra `openai-agents`.

    tools = memory_function_tools(lambda run: bind(run.context))   # in each run, for its caller
    agent = Agent(name="assistant", instructions=prompt, tools=tools)

Whose memory and whose files are meant is decided by the identity that the tools are bound to, never
by an argument.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

from wenchang.adapters._extras import missing_package
from wenchang.adapters._strict_schemas import strict_form, without_nulls
from wenchang.errors import (
    BackendUnavailableError,
    ErrorCategory,
    InvalidArgumentError,
    RecoverableError,
    RestrictedScopeError,
)
from wenchang.files.schemas import file_tool_schemas
from wenchang.files.tools import HISTORY_TOOL_NAMES, FileTools
from wenchang.files.tools import render_error as render_file_error
from wenchang.schemas import ToolSchema, tool_schemas
from wenchang.tools import MemoryTools, render_error, render_result
from wenchang.tools._arguments import check_names_of_arguments
from wenchang.tools._rendering import to_json

try:
    from agents import FunctionTool, RunContextWrapper
    from agents.tool import ToolErrorFunction
    from agents.tool_context import ToolContext
except ImportError as error:
    raise missing_package(__name__, "openai-agents", error) from error

__all__ = ["OnFailure", "file_function_tools", "memory_function_tools"]

_logger = logging.getLogger(__name__)
_ToolsT = TypeVar("_ToolsT", MemoryTools, FileTools)

OnFailure: TypeAlias = "ToolErrorFunction | Literal['tell'] | None"
"""What becomes of an outage or a fault (a refusal is always an answer for the model).

"tell": the model reads a payload that says whether to repeat the call, without any text that is not
ours. A function is the `failure_error_function` of the SDK: what it returns is the answer. None: the
exception ends the run.
"""

_REFUSALS: Final = (RecoverableError, RestrictedScopeError)
"""What an agent can understand and act on by itself."""


def memory_function_tools(
    tools: MemoryTools | Callable[[RunContextWrapper[Any]], MemoryTools],
    *,
    product: str | None = None,
    on_failure: OnFailure = "tell",
) -> list[FunctionTool]:
    """Return the seven memory tools.

    `tools` are those of one caller, or a function that gives those of the run's caller: it is called
    with the run's context at each call, on a worker thread, and what it raises is a failure.
    `product` is named in the descriptions (of bound tools: theirs). Answers are JSON objects, those
    of refusals included.
    """
    if isinstance(tools, MemoryTools):
        product = tools.product
    schemas = tool_schemas(product)
    return [
        _Bound(schema, _resolver(tools, MemoryTools), _call_memory, render_error, on_failure).tool()
        for schema in schemas.values()
    ]


def file_function_tools(
    tools: FileTools | Callable[[RunContextWrapper[Any]], FileTools],
    *,
    history: bool = False,
    on_failure: OnFailure = "tell",
) -> list[FunctionTool]:
    """Return the ten file tools, and with `history` (of bound tools: where they have it) two more.

    `tools` as in `memory_function_tools`. Answers are texts; those of refusals are JSON objects.
    """
    if isinstance(tools, FileTools):
        history = HISTORY_TOOL_NAMES[0] in tools.names()
    schemas = file_tool_schemas(history=history)
    return [
        _Bound(
            schema, _resolver(tools, FileTools), _call_files, render_file_error, on_failure
        ).tool()
        for schema in schemas.values()
    ]


def _resolver(
    tools: _ToolsT | Callable[[RunContextWrapper[Any]], _ToolsT], kind: type[_ToolsT]
) -> Callable[[RunContextWrapper[Any]], _ToolsT]:
    if isinstance(tools, kind):
        return lambda _run: tools
    if not callable(tools):
        msg = f"tools must be a {kind.__name__} or a function that returns one"
        raise TypeError(msg)

    def resolve(run: RunContextWrapper[Any]) -> _ToolsT:
        found = tools(run)
        if not isinstance(found, kind):
            msg = f"the function returned a {type(found).__name__}, not a {kind.__name__}"
            raise TypeError(msg)
        return found

    return resolve


def _call_memory(tools: MemoryTools, schema: ToolSchema, arguments: Mapping[str, Any]) -> str:
    check_names_of_arguments(arguments, list(schema.input["properties"]), schema.input["required"])
    return to_json(render_result(tools.tools()[schema.name](**arguments)))


def _call_files(tools: FileTools, schema: ToolSchema, arguments: Mapping[str, Any]) -> str:
    return tools.call(schema.name, arguments).text


@dataclass(frozen=True, slots=True)
class _Bound(Generic[_ToolsT]):
    """One tool: its schema, whose it is, how it is called, and what becomes of failures."""

    schema: ToolSchema
    resolve: Callable[[RunContextWrapper[Any]], _ToolsT]
    call: Callable[[_ToolsT, ToolSchema, Mapping[str, Any]], str]
    render: Callable[[Exception], Mapping[str, Any]]
    on_failure: OnFailure

    def __post_init__(self) -> None:
        """Refuse an `on_failure` that would itself fail, once there is a failure."""
        if self.on_failure not in ("tell", None) and not callable(self.on_failure):
            msg = 'on_failure must be "tell", a function, or None'
            raise ValueError(msg)

    def tool(self) -> FunctionTool:
        """Return it for the SDK."""
        return FunctionTool(
            name=self.schema.name,
            description=self.schema.description,
            params_json_schema=strict_form(self.schema.input),
            on_invoke_tool=self.invoke,
            strict_json_schema=True,
        )

    async def invoke(self, run: ToolContext[Any], arguments: str) -> str:
        """Answer one call. The work is done on a worker thread; a cancelled call may take effect."""
        try:
            return await asyncio.to_thread(self._answer, run, arguments)
        except Exception as error:
            if self.on_failure is None:
                raise
            if self.on_failure == "tell":
                payload = self.render(self._without_detail(error))
                if payload.get("category") == ErrorCategory.INTERNAL:
                    # The line of our own says nothing that the caller sent or the store holds.
                    _logger.exception("tool %s failed with an internal error", self.schema.name)
                return to_json(payload)
            told = self.on_failure(run, error)
            return await told if inspect.isawaitable(told) else told

    def _without_detail(self, error: Exception) -> Exception:
        """Return an outage without what the storage said of it, which goes to the log."""
        if not isinstance(error, BackendUnavailableError):
            return error
        # Not every storage is careful with what it says.
        _logger.warning("tool %s met an outage of the storage", self.schema.name, exc_info=error)
        return BackendUnavailableError(error.reason, outcome=error.outcome)

    def _answer(self, run: ToolContext[Any], text: str) -> str:
        # The caller first: without an identity nothing else about the call matters.
        tools = self.resolve(run)
        try:
            arguments = without_nulls(self.schema.input, _parsed(text))
            return self.call(tools, self.schema, arguments)
        except _REFUSALS as error:
            return to_json(self.render(error))


def _parsed(text: str) -> dict[str, Any]:
    """Return the arguments as a model sent them; nothing at all is no arguments."""
    try:
        arguments = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        raise InvalidArgumentError("arguments", "they must be one JSON object")
    return arguments
