"""The memory tools and the file tools over the Model Context Protocol. Needs the extra `mcp`."""

from __future__ import annotations

from wenchang.mcp._files import FILE_GUIDANCE, build_file_server, register_file_tools
from wenchang.mcp._guidance import (
    PROMPT_RESOURCE_URI,
    mcp_tool_descriptions,
    memory_instructions,
)
from wenchang.mcp._memory import build_server, register_memory_tools
from wenchang.mcp._serving import MAX_TOOL_DESCRIPTION_CHARS
from wenchang.observer import ToolCallRecord

__all__ = [
    "FILE_GUIDANCE",
    "MAX_TOOL_DESCRIPTION_CHARS",
    "PROMPT_RESOURCE_URI",
    "ToolCallRecord",
    "build_file_server",
    "build_server",
    "mcp_tool_descriptions",
    "memory_instructions",
    "register_file_tools",
    "register_memory_tools",
]
