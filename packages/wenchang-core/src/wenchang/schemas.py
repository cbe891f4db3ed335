"""JSON Schemas (draft 2020-12) of the seven tools, for frameworks other than MCP.

The schemas state what an agent may send and will get. The tools check every argument themselves
and more strictly (normal forms, bytes instead of characters), so a caller that validates nothing
is as safe as one that does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, get_args

from wenchang.errors import (
    ErrorCategory,
    NotFoundReason,
    RestrictionReason,
    UnavailableReason,
    UnsettledOutcome,
)
from wenchang.paths import MAX_SEGMENT_BYTES
from wenchang.tools._descriptions import READING_TOOLS, TOOL_NAMES, tool_descriptions
from wenchang.tools._rendering import ERROR_NAMES

__all__ = ["SCHEMA_DIALECT", "ToolSchema", "error_schema", "tool_schemas"]

SCHEMA_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

JsonSchema = dict[str, Any]

_NO_BREAKS: Final = r"\x00-\x1f\x7f-\x9f\u2028\u2029"
_LINE_PATTERN: Final = rf"^[^{_NO_BREAKS}]*$"
_FACT_PATTERN: Final = (
    r"^- \[(stated|observed|inferred|system)\] "
    rf"[^{_NO_BREAKS}]*[^\s{_NO_BREAKS}][^{_NO_BREAKS}]*$"
)
_AREA_PATTERN: Final = r"^[a-z0-9][a-z0-9_-]*$"
_NAME_PATTERN: Final = r"^[^/\\\x00-\x1f\x7f-\x9f]+$"
_MAX_METADATA_CHARACTERS: Final = 5_000
_MAX_CURSOR_CHARACTERS: Final = 1_400


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """One tool, described for a framework: its text and three JSON Schemas.

    `input` describes the arguments, `output` the payload of a successful call and `error` that of a
    failed one. The schemas are plain dicts of the caller's own; changing one changes nothing else.
    """

    name: str
    description: str
    input: JsonSchema
    output: JsonSchema
    error: JsonSchema


def tool_schemas(product: str | None = None) -> Mapping[str, ToolSchema]:
    """Return one `ToolSchema` for each tool, read-only, in the order of `TOOL_NAMES`.

    With `product`, the first line of each description names it. Raises TypeError or ValueError for a
    `product` that is not one line of text.
    """
    descriptions = tool_descriptions(product)
    return MappingProxyType(
        {
            name: ToolSchema(
                name=name,
                description=descriptions[name],
                input=_input_schema(name),
                output=_output_schema(name),
                error=error_schema(),
            )
            for name in TOOL_NAMES
        }
    )


def error_schema() -> JsonSchema:
    """Return the schema of every payload that `wenchang.tools.render_error` can give."""
    return _object(
        {
            "error": _enum("The kind of error.", ERROR_NAMES),
            "category": _enum(
                "What to do: correct the call (recoverable), give up (permanent), repeat it later "
                "(transient); internal is a fault of the service.",
                [str(category) for category in ErrorCategory],
            ),
            "message": _string("What happened and what to do about it."),
            "scope": _string("The scope of the file."),
            "area": _string("The area of the file."),
            "name": _string("The name of the file, without .md."),
            "content": _string("The current content of the file."),
            "version": _string("The current version of the file."),
            "description": _string("The current description of the file."),
            "aliases": _strings("The current aliases of the file."),
            "size": _count("Bytes of UTF-8 that the content would have."),
            "limit": _count("The limit: bytes of a file, or number of files."),
            "match_count": _count("How often old_string is in the content."),
            "argument": _string("The argument that was refused.", minLength=1),
            "reason": _enum(
                "The reason within this kind of error.",
                [
                    *get_args(NotFoundReason),
                    *get_args(RestrictionReason),
                    *get_args(UnavailableReason),
                ],
            ),
            "required_roles": _strings("The roles of which one is needed to write here."),
            "outcome": _enum(
                "Whether the change may have been made nevertheless.", get_args(UnsettledOutcome)
            ),
        },
        required=["error", "category", "message"],
        root=True,
    )


def _input_schema(tool: str) -> JsonSchema:
    build = _INPUTS[tool]
    properties = build()
    required = [name for name, schema in properties.items() if "default" not in schema]
    return _object(properties, required=required, root=True)


def _output_schema(tool: str) -> JsonSchema:
    if tool == "delete_file":
        properties: dict[str, JsonSchema] = {
            "ok": {"type": "boolean", "const": True, "description": "The file is deleted."}
        }
    elif tool == "get_memory_index":
        properties = {
            "entries": _array("The files, most relevant scopes first, newest first.", _entry()),
            "capped": _array(
                "One row for each area that is not shown completely; empty if all is shown.",
                _object(
                    {
                        "scope": _string("The scope."),
                        "area": _string("The area to page through with list_prefix."),
                        "omitted": _count("How many of its files are left out.", minimum=1),
                    }
                ),
            ),
        }
    elif tool == "list_prefix":
        properties = {
            "entries": _array("The files of this page, in storage order.", _entry()),
            "next_cursor": {
                "type": ["string", "null"],
                "description": "Pass it back as cursor for the next page; null at the end.",
            },
        }
    else:
        properties = _file_properties()
    return _object(properties, root=True)


def _file_properties() -> dict[str, JsonSchema]:
    return {
        "scope": _string("The scope of the file."),
        "area": _string("The area of the file."),
        "name": _string("The name of the file, without .md."),
        "content": _string("The whole body."),
        "version": _string("Opaque; pass it as expected_version with the next change."),
        "description": _string("What the file is about, in one line."),
        "aliases": _strings("Other names under which the subject is looked up."),
        "sources": _strings("The applications that have written the file, sorted."),
        "last_updated": _string(
            "When the file was last written: UTC, ISO 8601.", pattern=r"^\d{4}-.*Z$"
        ),
    }


def _entry() -> JsonSchema:
    properties = _file_properties()
    del properties["content"]
    return _object(properties)


def _address(tool: str) -> dict[str, JsonSchema]:
    writes = tool not in READING_TOOLS
    return {
        "scope": _string(
            "A scope that this session may write." if writes else "A scope of this session.",
            minLength=1,
            maxLength=MAX_SEGMENT_BYTES,
        ),
        "area": _area("The area, a lower-case slug; not system." if writes else "The area."),
        "name": _string(
            "The name of the file, without .md.",
            minLength=1,
            maxLength=MAX_SEGMENT_BYTES,
            pattern=_NAME_PATTERN,
        ),
    }


def _list_prefix_input() -> dict[str, JsonSchema]:
    return {
        "scope": _address("list_prefix")["scope"],
        "area": _optional(_area("One area to list; null lists the whole scope.")),
        "cursor": _optional(
            _string(
                "The next_cursor of the page before, with the same scope and area.",
                maxLength=_MAX_CURSOR_CHARACTERS,
            )
        ),
    }


def _write_file_input() -> dict[str, JsonSchema]:
    return {
        **_address("write_file"),
        "content": _string("The whole new body."),
        "description": _line("What the file is about, in one line; replaces the stored one."),
        "aliases": _aliases("Other names of the subject; replace the stored ones. [] for none."),
        "expected_version": {
            "type": ["string", "null"],
            "description": "null creates the file; else the version that is replaced.",
        },
    }


def _append_line_input() -> dict[str, JsonSchema]:
    return {
        **_address("append_line"),
        "line": _string(
            "One fact line, such as: - [stated] Prefers tea.",
            pattern=_FACT_PATTERN,
        ),
        "expected_version": _version(),
        **_additions(),
    }


def _replace_fact_input() -> dict[str, JsonSchema]:
    return {
        **_address("replace_fact"),
        "old_string": _string("Text that is in the file exactly once.", minLength=1),
        "new_string": _string("What takes its place; an empty string removes it."),
        "expected_version": _version(),
        **_additions(),
    }


def _delete_file_input() -> dict[str, JsonSchema]:
    return {**_address("delete_file"), "expected_version": _version()}


_INPUTS: Final = {
    "get_memory_index": dict[str, JsonSchema],
    "read_file": lambda: _address("read_file"),
    "list_prefix": _list_prefix_input,
    "write_file": _write_file_input,
    "append_line": _append_line_input,
    "replace_fact": _replace_fact_input,
    "delete_file": _delete_file_input,
}


def _additions() -> dict[str, JsonSchema]:
    return {
        "aliases": _optional(_aliases("Names to add to the stored ones; none is removed.")),
        "description": _optional(_line("Replaces the stored description, if given.")),
    }


def _version() -> JsonSchema:
    return _string("The version that was read.")


def _area(description: str) -> JsonSchema:
    return _string(description, minLength=1, maxLength=MAX_SEGMENT_BYTES, pattern=_AREA_PATTERN)


def _line(description: str) -> JsonSchema:
    return _string(description, maxLength=_MAX_METADATA_CHARACTERS, pattern=_LINE_PATTERN)


def _aliases(description: str) -> JsonSchema:
    return _array(
        description,
        {"type": "string", "maxLength": _MAX_METADATA_CHARACTERS, "pattern": _LINE_PATTERN},
    )


def _optional(schema: JsonSchema) -> JsonSchema:
    return {**schema, "type": [schema["type"], "null"], "default": None}


def _string(description: str, **rules: Any) -> JsonSchema:
    return {"type": "string", "description": description, **rules}


def _strings(description: str) -> JsonSchema:
    return _array(description, {"type": "string"})


def _count(description: str, *, minimum: int = 0) -> JsonSchema:
    return {"type": "integer", "minimum": minimum, "description": description}


def _enum(description: str, values: Any) -> JsonSchema:
    return {"type": "string", "enum": list(values), "description": description}


def _array(description: str, items: JsonSchema) -> JsonSchema:
    return {"type": "array", "items": items, "description": description}


def _object(
    properties: dict[str, JsonSchema], *, required: list[str] | None = None, root: bool = False
) -> JsonSchema:
    """Return a closed object; without `required`, every property is."""
    return {
        **({"$schema": SCHEMA_DIALECT} if root else {}),
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else required,
        "additionalProperties": False,
    }
