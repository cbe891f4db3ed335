"""The values that the core store returns, and how one file looks in a result.

`wenchang.core` re-exports the values. Paths are for code; what an agent gets is `render_file` and
`render_entry`, which show neither the path nor the entity id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wenchang.metadata import FileMetadata, format_timestamp
from wenchang.paths import is_valid_prefix, parse_path

__all__ = [
    "CappedPrefix",
    "ExportedObject",
    "FileEntry",
    "FileState",
    "ListPage",
    "MemoryFile",
    "MemoryIndex",
    "render_entry",
    "render_file",
]


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """One file with its content, as of one version."""

    path: str
    content: str
    metadata: FileMetadata
    version: str


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file of a listing or an index: no content."""

    path: str
    metadata: FileMetadata
    version: str


@dataclass(frozen=True, slots=True)
class FileState:
    """What there is to know of a file without reading its text.

    `metadata` is None where it cannot be decoded; `receipts` are those of calls with effect keys.
    """

    version: str
    metadata: FileMetadata | None
    receipts: tuple[Sequence[Any], ...]


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page of a listing, in storage order; `next_cursor` is None on the last one."""

    entries: tuple[FileEntry, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class CappedPrefix:
    """How many files of one area the index leaves out (at least one)."""

    prefix: str
    omitted: int

    def __post_init__(self) -> None:
        """Check that the row says something."""
        if not is_valid_prefix(self.prefix):
            msg = "prefix must be one that build_prefix makes"
            raise ValueError(msg)
        if type(self.omitted) is not int or self.omitted < 1:
            msg = "omitted must be a positive int"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class MemoryIndex:
    """Entries in index order up to the budget; `capped` counts the others, one row per area.

    No path appears twice and no prefix does, so entries plus omitted files are all files.
    """

    entries: tuple[FileEntry, ...]
    capped: tuple[CappedPrefix, ...]

    def __post_init__(self) -> None:
        """Refuse what would count a file twice."""
        if len({entry.path for entry in self.entries}) != len(self.entries):
            msg = "entries must name each path once"
            raise ValueError(msg)
        if len({row.prefix for row in self.capped}) != len(self.capped):
            msg = "capped must name each prefix once"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class ExportedObject:
    """One stored object as it is: nothing decoded, so that corrupt ones are exported too."""

    key: str
    data: bytes
    metadata: Mapping[str, str]
    version: str


def render_entry(entry: FileEntry) -> dict[str, object]:
    """Return an entry's fields in the order in which every result shows them."""
    parts = parse_path(entry.path)
    return {
        "scope": parts.scope,
        "area": parts.area,
        "name": parts.name,
        "version": entry.version,
        **_render_metadata(entry.metadata),
    }


def render_file(file: MemoryFile) -> dict[str, object]:
    """Return a file's fields in the order in which every result shows them."""
    parts = parse_path(file.path)
    return {
        "scope": parts.scope,
        "area": parts.area,
        "name": parts.name,
        "content": file.content,
        "version": file.version,
        **_render_metadata(file.metadata),
    }


def _render_metadata(metadata: FileMetadata) -> dict[str, object]:
    """Return the four metadata fields."""
    return {
        "description": metadata.description,
        "aliases": list(metadata.aliases),
        "sources": sorted(metadata.sources),
        "last_updated": format_timestamp(metadata.last_updated),
    }
