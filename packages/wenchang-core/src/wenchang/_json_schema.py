"""The parts that the JSON Schemas of all tools are built from."""

from __future__ import annotations

from typing import Any, Final

__all__ = [
    "SCHEMA_DIALECT",
    "JsonSchema",
    "array_of",
    "closed_object",
    "count",
    "one_of",
    "optional",
    "string",
]

SCHEMA_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

JsonSchema = dict[str, Any]


def string(description: str, **rules: Any) -> JsonSchema:
    """Return the schema of a text; `rules` are further keywords."""
    return {"type": "string", "description": description, **rules}


def count(description: str, *, minimum: int = 0, **rules: Any) -> JsonSchema:
    """Return the schema of a whole number."""
    return {"type": "integer", "minimum": minimum, "description": description, **rules}


def one_of(description: str, values: Any) -> JsonSchema:
    """Return the schema of a text out of a closed list."""
    return {"type": "string", "enum": list(values), "description": description}


def array_of(description: str, items: JsonSchema, **rules: Any) -> JsonSchema:
    """Return the schema of a list."""
    return {"type": "array", "items": items, "description": description, **rules}


def optional(schema: JsonSchema, default: Any = None) -> JsonSchema:
    """Return the schema of an argument that may be left out or null."""
    optional_schema = {**schema, "type": [schema["type"], "null"], "default": default}
    if "enum" in schema:
        optional_schema["enum"] = [*schema["enum"], None]
    return optional_schema


def closed_object(
    properties: dict[str, JsonSchema],
    *,
    required: list[str] | None = None,
    root: bool = False,
    description: str | None = None,
) -> JsonSchema:
    """Return the schema of an object without other properties; without `required`, all are."""
    return {
        **({"$schema": SCHEMA_DIALECT} if root else {}),
        "type": "object",
        **({} if description is None else {"description": description}),
        "properties": properties,
        "required": list(properties) if required is None else required,
        "additionalProperties": False,
    }
