"""Adapters: wenchang's files under the interfaces of agent harnesses, one module for each.

| module | gives |
| --- | --- |
| `wenchang.adapters.deepagents` | a `BackendProtocol` of deepagents |
| `wenchang.adapters.anthropic` | the memory tool `memory_20250818` of the Anthropic SDK |
| `wenchang.adapters.langgraph` | a `BaseStore` of LangGraph |
| `wenchang.adapters.pydantic_ai` | a `MemoryStore` for Pydantic AI |
| `wenchang.adapters.openai_agents` | function tools for the OpenAI Agents SDK |

Each needs the extra of its name, which brings the harness; importing one without it raises an
ImportError that names the line to run. This package itself imports none of them.
"""

from __future__ import annotations

__all__: list[str] = []
