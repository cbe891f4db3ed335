"""The seven memory tools for agents: `MemoryTools`, `bind_tools` and what turns results into JSON."""

from __future__ import annotations

from wenchang.tools.descriptions import TOOL_NAMES, tool_descriptions
from wenchang.tools.memory import MemoryTools, bind_tools
from wenchang.tools.rendering import render_error, render_result

__all__ = [
    "TOOL_NAMES",
    "MemoryTools",
    "bind_tools",
    "render_error",
    "render_result",
    "tool_descriptions",
]
