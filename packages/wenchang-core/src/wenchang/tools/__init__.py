"""The seven memory tools for agents: `MemoryTools`, `bind_tools` and what turns results into JSON."""

from __future__ import annotations

from wenchang.tools._descriptions import TOOL_NAMES, tool_descriptions
from wenchang.tools._memory import MemoryTools, bind_tools
from wenchang.tools._rendering import render_error, render_result

__all__ = [
    "TOOL_NAMES",
    "MemoryTools",
    "bind_tools",
    "render_error",
    "render_result",
    "tool_descriptions",
]
