"""JSON Schemas (draft 2020-12) of the file tools, for MCP and for frameworks of other kinds.

The schemas state what an agent may send and will get. The tools check every argument themselves and
more strictly, so a caller that validates nothing is as safe as one that does.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import get_args

from wenchang._json_schema import JsonSchema, array_of, closed_object, count, one_of, string
from wenchang.errors import ErrorCategory, RestrictionReason, UnavailableReason, UnsettledOutcome
from wenchang.files._descriptions import file_tool_descriptions, file_tool_names
from wenchang.files._input_schemas import INPUT_PROPERTIES
from wenchang.files._output_schemas import OUTPUT_SCHEMAS
from wenchang.files._payloads import FILE_ERROR_CODES, FILE_ERROR_NAMES
from wenchang.files.edits import MAX_EDITS
from wenchang.files.errors import EntryKind, TreeStateReason
from wenchang.files.paths import MAX_PATH_CHARS
from wenchang.schemas import ToolSchema

__all__ = ["file_error_schema", "file_tool_schemas"]


def file_tool_schemas(*, history: bool = False) -> Mapping[str, ToolSchema]:
    """Return one `ToolSchema` for each tool, read-only, in the order of `file_tool_names`.

    The schemas are the caller's own; changing one changes nothing else.
    """
    descriptions = file_tool_descriptions(history=history)
    return MappingProxyType(
        {
            name: ToolSchema(
                name=name,
                description=descriptions[name],
                input=_input_schema(name),
                output=OUTPUT_SCHEMAS[name](),
                error=file_error_schema(),
            )
            for name in file_tool_names(history=history)
        }
    )


def file_error_schema() -> JsonSchema:
    """Return the schema of every payload of a failed call."""
    return closed_object(
        {
            "error": one_of("The kind of error.", FILE_ERROR_NAMES),
            "category": one_of(
                "What to do: correct the call (recoverable), give up (permanent), repeat it later "
                "(transient); internal is a fault of the service.",
                [str(category) for category in ErrorCategory],
            ),
            "code": one_of("What happened, as a stable word.", FILE_ERROR_CODES),
            "message": string("What happened and what to do about it."),
            "path": string("The path that the error is about.", maxLength=MAX_PATH_CHARS),
            "version": string("The current version of the file."),
            "content": string("The current content of the file, if it is short."),
            "kind": one_of("What is at the path already.", get_args(EntryKind)),
            "edit": count("Which edit failed; the first is 0.", maximum=MAX_EDITS - 1),
            "count": count("How often its oldText was found."),
            "limit": string("The limit that the call would pass."),
            "value": count("What it would have come to."),
            "maximum": count("What is allowed at most."),
            "argument": string("The argument that was refused.", minLength=1),
            "entries": count("How many entries the folder holds.", minimum=1),
            "reason": one_of(
                "The reason within this kind of error.",
                [
                    *get_args(TreeStateReason),
                    *get_args(RestrictionReason),
                    *get_args(UnavailableReason),
                ],
            ),
            "outcome": one_of(
                "Whether the change may have been made nevertheless.", get_args(UnsettledOutcome)
            ),
            "scope": string("The scope that the files belong to."),
            "required_roles": array_of(
                "The roles of which one is needed to change files.", {"type": "string"}
            ),
        },
        required=["error", "category", "code", "message"],
        root=True,
    )


def _input_schema(tool: str) -> JsonSchema:
    properties = INPUT_PROPERTIES[tool]()
    required = [name for name, schema in properties.items() if "default" not in schema]
    return closed_object(properties, required=required, root=True)
