"""The memory tools over the Model Context Protocol. Needs the extra `mcp`."""

from __future__ import annotations

from wenchang.mcp._guidance import (
    PROMPT_RESOURCE_URI,
    mcp_tool_descriptions,
    memory_instructions,
)
from wenchang.mcp._memory import build_server, register_memory_tools
from wenchang.mcp._serving import MAX_TOOL_DESCRIPTION_CHARS
from wenchang.observer import ToolCallRecord

__all__ = [
    "MAX_TOOL_DESCRIPTION_CHARS",
    "PROMPT_RESOURCE_URI",
    "ToolCallRecord",
    "build_server",
    "mcp_tool_descriptions",
    "memory_instructions",
    "register_memory_tools",
]
