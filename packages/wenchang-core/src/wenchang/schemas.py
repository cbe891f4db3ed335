"""JSON Schemas (draft 2020-12) of the seven tools, for frameworks other than MCP.

The schemas state what an agent may send and will get. The tools check every argument themselves
and more strictly (normal forms, bytes instead of characters), so a caller that validates nothing
is as safe as one that does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, get_args

from wenchang._json_schema import (
    SCHEMA_DIALECT,
    JsonSchema,
    array_of,
    closed_object,
    count,
    one_of,
    optional,
    string,
)
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
    return closed_object(
        {
            "error": one_of("The kind of error.", ERROR_NAMES),
            "category": one_of(
                "What to do: correct the call (recoverable), give up (permanent), repeat it later "
                "(transient); internal is a fault of the service.",
                [str(category) for category in ErrorCategory],
            ),
            "message": string("What happened and what to do about it."),
            "scope": string("The scope of the file."),
            "area": string("The area of the file."),
            "name": string("The name of the file, without .md."),
            "content": string("The current content of the file."),
            "version": string("The current version of the file."),
            "description": string("The current description of the file."),
            "aliases": _strings("The current aliases of the file."),
            "size": count("Bytes of UTF-8 that the content would have."),
            "limit": count("The limit: bytes of a file, or number of files."),
            "match_count": count("How often old_string is in the content."),
            "argument": string("The argument that was refused.", minLength=1),
            "reason": one_of(
                "The reason within this kind of error.",
                [
                    *get_args(NotFoundReason),
                    *get_args(RestrictionReason),
                    *get_args(UnavailableReason),
                ],
            ),
            "required_roles": _strings("The roles of which one is needed to write here."),
            "outcome": one_of(
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
    return closed_object(properties, required=required, root=True)


def _output_schema(tool: str) -> JsonSchema:
    if tool == "delete_file":
        properties: dict[str, JsonSchema] = {
            "ok": {"type": "boolean", "const": True, "description": "The file is deleted."}
        }
    elif tool == "get_memory_index":
        properties = {
            "entries": array_of("The files, most relevant scopes first, newest first.", _entry()),
            "capped": array_of(
                "One row for each area that is not shown completely; empty if all is shown.",
                closed_object(
                    {
                        "scope": string("The scope."),
                        "area": string("The area to page through with list_prefix."),
                        "omitted": count("How many of its files are left out.", minimum=1),
                    }
                ),
            ),
        }
    elif tool == "list_prefix":
        properties = {
            "entries": array_of("The files of this page, in storage order.", _entry()),
            "next_cursor": {
                "type": ["string", "null"],
                "description": "Pass it back as cursor for the next page; null at the end.",
            },
        }
    else:
        properties = _file_properties()
    return closed_object(properties, root=True)


def _file_properties() -> dict[str, JsonSchema]:
    return {
        "scope": string("The scope of the file."),
        "area": string("The area of the file."),
        "name": string("The name of the file, without .md."),
        "content": string("The whole body."),
        "version": string("Opaque; pass it as expected_version with the next change."),
        "description": string("What the file is about, in one line."),
        "aliases": _strings("Other names under which the subject is looked up."),
        "sources": _strings("The applications that have written the file, sorted."),
        "last_updated": string(
            "When the file was last written: UTC, ISO 8601.", pattern=r"^\d{4}-.*Z$"
        ),
    }


def _entry() -> JsonSchema:
    properties = _file_properties()
    del properties["content"]
    return closed_object(properties)


def _address(tool: str) -> dict[str, JsonSchema]:
    writes = tool not in READING_TOOLS
    return {
        "scope": string(
            "A scope that this session may write." if writes else "A scope of this session.",
            minLength=1,
            maxLength=MAX_SEGMENT_BYTES,
        ),
        "area": _area("The area, a lower-case slug; not system." if writes else "The area."),
        "name": string(
            "The name of the file, without .md.",
            minLength=1,
            maxLength=MAX_SEGMENT_BYTES,
            pattern=_NAME_PATTERN,
        ),
    }


def _list_prefix_input() -> dict[str, JsonSchema]:
    return {
        "scope": _address("list_prefix")["scope"],
        "area": optional(_area("One area to list; null lists the whole scope.")),
        "cursor": optional(
            string(
                "The next_cursor of the page before, with the same scope and area.",
                maxLength=_MAX_CURSOR_CHARACTERS,
            )
        ),
    }


def _write_file_input() -> dict[str, JsonSchema]:
    return {
        **_address("write_file"),
        "content": string("The whole new body."),
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
        "line": string(
            "One fact line, such as: - [stated] Prefers tea.",
            pattern=_FACT_PATTERN,
        ),
        "expected_version": _version(),
        **_additions(),
    }


def _replace_fact_input() -> dict[str, JsonSchema]:
    return {
        **_address("replace_fact"),
        "old_string": string("Text that is in the file exactly once.", minLength=1),
        "new_string": string("What takes its place; an empty string removes it."),
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
        "aliases": optional(_aliases("Names to add to the stored ones; none is removed.")),
        "description": optional(_line("Replaces the stored description, if given.")),
    }


def _version() -> JsonSchema:
    return string("The version that was read.")


def _area(description: str) -> JsonSchema:
    return string(description, minLength=1, maxLength=MAX_SEGMENT_BYTES, pattern=_AREA_PATTERN)


def _line(description: str) -> JsonSchema:
    return string(description, maxLength=_MAX_METADATA_CHARACTERS, pattern=_LINE_PATTERN)


def _aliases(description: str) -> JsonSchema:
    return array_of(
        description,
        {"type": "string", "maxLength": _MAX_METADATA_CHARACTERS, "pattern": _LINE_PATTERN},
    )


def _strings(description: str) -> JsonSchema:
    return array_of(description, {"type": "string"})
