"""The seven tools: their names, their order, and what an agent reads about each.

A description states the contract of one tool and nothing about judgement; what to remember and
when is the subject of the memory prompt.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

__all__ = ["READING_TOOLS", "TOOL_NAMES", "check_product", "tool_descriptions"]

TOOL_NAMES: Final = (
    "get_memory_index",
    "read_file",
    "list_prefix",
    "write_file",
    "append_line",
    "replace_fact",
    "delete_file",
)
"""The tools in the order in which they are registered, listed and described."""

READING_TOOLS: Final = frozenset({"get_memory_index", "read_file", "list_prefix"})
"""The tools that change nothing."""

_PLAIN_FIRST_LINES: Final = {
    "get_memory_index": "Load the index of all memory files available in this session.",
    "read_file": "Read one memory file: its content, metadata and version.",
    "list_prefix": "List the memory files of a scope, or of one area of it, page by page.",
    "write_file": "Create a memory file, or replace one whole.",
    "append_line": "Add one fact line to the end of an existing memory file.",
    "replace_fact": "Change one passage of a memory file by quoting it.",
    "delete_file": "Delete one memory file.",
}

_PRODUCT_FIRST_LINES: Final = {
    "get_memory_index": "Load the index of all {product} memory files available in this session.",
    "read_file": "Read one {product} memory file: its content, metadata and version.",
    "list_prefix": "List the {product} memory files of a scope, or of one area of it, page by page.",
    "write_file": "Create one {product} memory file, or replace one whole.",
    "append_line": "Add one fact line to the end of an existing {product} memory file.",
    "replace_fact": "Change one passage of an existing {product} memory file by quoting it.",
    "delete_file": "Delete one {product} memory file.",
}

_CONFLICT: Final = (
    "A VersionConflictError is routine: someone else wrote first. It carries the current content, "
    "version, description and aliases; merge your change into them and repeat the call with that "
    "version."
)

_MERGED_METADATA: Final = (
    "aliases, if given, are added to those of the file and none is removed; description, if "
    "given, replaces the stored one (one line)."
)

_REST: Final = {
    "get_memory_index": """\
Call it first in every session, before answering.
A file is addressed by scope, area and name. Each entry shows these, the description, aliases,
sources, last_updated and version of a file, but not its content. There is no search of contents:
find a file by its description and aliases, then read it.
`capped` counts, per area, the files that did not fit into the index; if it is not empty, page
through an area it names with list_prefix.""",
    "read_file": """\
Any area can be read, `system` included. Keep the version: each later change of the file takes it
as expected_version.
If no file is there, the error is NotFoundError with reason file_absent.""",
    "list_prefix": """\
Entries come in a fixed order with metadata and version, without content. While next_cursor is not
null, pass it back as cursor with the same scope and area to get the next page. Leave area out, or
pass null, to list the whole scope.
Pages are not a snapshot: a file written or deleted meanwhile may be missing or shown.""",
    "write_file": f"""\
Pass expected_version null to create a file, or the version that you read to replace it.
content, description (one line) and aliases replace everything that is stored; nothing is merged.
Content over the size limit is refused with its size and the limit: shorten it, or split it by
subject. The area `system` cannot be written.
{_CONFLICT}""",
    "append_line": f"""\
line is a single fact, `- [label] text`, with the label stated, observed, inferred or system, for
example `- [stated] Prefers tea.`
Pass the version that you read as expected_version. The file must exist and must stay within the
size limit.
{_MERGED_METADATA}
{_CONFLICT}""",
    "replace_fact": f"""\
old_string must be in the content exactly once; otherwise the error shows the current content, and
you quote a longer or corrected passage. new_string takes its place; an empty one removes it (to
drop a whole line, quote it together with its line break).
Pass the version that you read as expected_version. If the file moved on but old_string is still
there exactly once, the change is applied to the current content.
{_MERGED_METADATA}
{_CONFLICT}""",
    "delete_file": """\
Pass the version that you read as expected_version. The area `system` cannot be deleted from.
A VersionConflictError is routine: the file changed since you read it. Read what it shows, and
repeat the call with its version only if the file should still go. NotFoundError with reason
file_absent means that it is gone already.""",
}


def tool_descriptions(product: str | None = None) -> Mapping[str, str]:
    """Return what an agent reads about each tool, by name, in the order of `TOOL_NAMES`.

    With `product`, the first line of each names it, as in "Read one Acme memory file". Raises
    TypeError or ValueError for a `product` that is not one line of text.
    """
    checked = check_product(product)
    if checked is None:
        first = _PLAIN_FIRST_LINES
    else:
        # Plain replacement: braces in a product's name mean nothing.
        first = {
            name: line.replace("{product}", checked) for name, line in _PRODUCT_FIRST_LINES.items()
        }
    return MappingProxyType({name: f"{first[name]}\n{_REST[name]}" for name in TOOL_NAMES})


def check_product(product: str | None) -> str | None:
    """Return the stripped name of the product, or None.

    Raises TypeError unless it is a str or None; ValueError if it is blank, not one line, holds a
    control character, or is not valid UTF-8.
    """
    if product is None:
        return None
    if not isinstance(product, str):
        msg = f"product must be a str or None, not {type(product).__name__}"
        raise TypeError(msg)
    stripped = product.strip()
    if not stripped or not stripped.isprintable():
        msg = "product must be one line of printable text"
        raise ValueError(msg)
    return str(stripped)
