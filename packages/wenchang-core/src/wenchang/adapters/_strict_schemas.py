"""Strict schemas, in which every property is required: ours, rewritten, and arguments on their way back.

    strict = strict_form(schema)               # what a model is shown
    given = without_nulls(schema, arguments)   # what it sent, as the tool wants it

An argument that may be left out becomes one that may be null, and null means that it was left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["strict_form", "without_nulls"]

_KEPT: Final = frozenset(
    {
        *("type", "description", "enum", "const", "properties", "required", "items"),
        *("additionalProperties", "minimum", "maximum", "minItems", "maxItems"),
    }
)
"""Words that strict schemas may hold. What the others say (lengths, patterns) the tools check."""


def strict_form(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema of plain objects, arrays and values in its strict form; the given one stays.

    Every object is closed and all of its properties are required; what was optional may be null,
    and its description says what null stands for.
    """
    strict = {word: value for word, value in schema.items() if word in _KEPT}
    if "items" in strict:
        strict["items"] = strict_form(strict["items"])
    if "properties" in strict:
        required = set(schema.get("required", ()))
        strict["properties"] = {
            name: strict_form(inner) if name in required else _nullable(inner)
            for name, inner in strict["properties"].items()
        }
        strict["required"] = list(strict["properties"])
        strict["additionalProperties"] = False
    return strict


def _nullable(schema: Mapping[str, Any]) -> dict[str, Any]:
    strict = strict_form(schema)
    types = strict["type"]
    types = [types] if isinstance(types, str) else list(types)
    strict["type"] = types if "null" in types else [*types, "null"]
    if "enum" in strict and None not in strict["enum"]:
        strict["enum"] = [*strict["enum"], None]
    default = schema.get("default")
    meaning = "as if left out" if default is None else json.dumps(default, ensure_ascii=False)
    strict["description"] = f"{strict.get('description', '')} null: {meaning}.".lstrip()
    return strict


def without_nulls(schema: Mapping[str, Any], arguments: Any) -> Any:
    """Return a copy of arguments in which no property that `schema` has as optional is null.

    A null that means something (of a property that is required) stays, as does all that the schema
    does not know.
    """
    if isinstance(arguments, Mapping) and "properties" in schema:
        required = schema.get("required", ())
        known = schema["properties"]
        return {
            name: without_nulls(known.get(name, {}), value)
            for name, value in arguments.items()
            if value is not None or name in required or name not in known
        }
    if isinstance(arguments, list) and "items" in schema:
        return [without_nulls(schema["items"], value) for value in arguments]
    return arguments
