"""Where guidance goes: instructions, a resource, and the tool descriptions.

Clients differ in what they show to a model. The memory prompt is the server's instructions, a
resource, and part of the answer of `get_memory_index`; a client that shows nothing but tool
descriptions still shows the three rules that stand in each of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from wenchang.prompts import PromptSlots, build_memory_prompt
from wenchang.tools._descriptions import tool_descriptions

__all__ = [
    "GUIDANCE_PREAMBLE",
    "PROMPT_RESOURCE_URI",
    "mcp_tool_descriptions",
    "memory_instructions",
]

PROMPT_RESOURCE_URI: Final = "wenchang://memory-prompt"
"""The resource that holds the memory prompt."""

GUIDANCE_PREAMBLE: Final = """\
Rules for all memory tools:
1. Load the index with get_memory_index before anything else in a session.
2. Never store payment or account numbers, passwords or keys, health diagnoses, or anything that
suggests that a person is a minor, not even if asked to.
3. Conflicts with other writers are routine: merge, repeat with the version shown, do not mention
it."""
"""What an agent must know even if it sees nothing but tool descriptions."""


def memory_instructions(slots: PromptSlots) -> str:
    """Return the text of the server's instructions and of the prompt resource."""
    return build_memory_prompt(slots)


def mcp_tool_descriptions(
    slots: PromptSlots | None = None, product: str | None = None
) -> Mapping[str, str]:
    """Return the descriptions that an MCP server registers, by bare name, in `TOOL_NAMES` order.

    Each is the tool's own description with the guidance that holds for all of them. With `slots`,
    that of `get_memory_index` starts with their purpose. Raises TypeError for other slots, TypeError
    or ValueError for a `product` that is not one line of text.
    """
    if slots is not None and not isinstance(slots, PromptSlots):
        msg = f"slots must be a PromptSlots or None, not {type(slots).__name__}"
        raise TypeError(msg)
    texts = {
        name: f"{text}\n\n{GUIDANCE_PREAMBLE}" for name, text in tool_descriptions(product).items()
    }
    if slots is not None:
        texts["get_memory_index"] = f"{slots.purpose}\n\n{texts['get_memory_index']}"
    return MappingProxyType(texts)
