"""What a file would become: the new content and metadata, checked before anything is sent.

A draft is within every limit. It has no time yet: the stamp belongs to the moment of the write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TypeAlias

from wenchang._objects import decode_body
from wenchang._receipts import Receipt, fit_receipts
from wenchang.errors import InvalidArgumentError, MetadataFormatError, OversizeWriteError
from wenchang.facts import text_problem
from wenchang.metadata import (
    FileMetadata,
    check_aliases,
    check_description,
    check_metadata_size,
    check_source,
    decode_metadata,
    encode_metadata,
    merge_aliases,
)
from wenchang.storage.contract import StoredObject

__all__ = [
    "Build",
    "Draft",
    "Merge",
    "append_to",
    "check_text",
    "check_writing",
    "count_places",
    "draft",
    "merger",
    "stored_sources",
]

Merge: TypeAlias = Callable[[FileMetadata], tuple[str, tuple[str, ...], frozenset[str]]]
"""Makes description, aliases and sources of a changed file from the stored ones."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A file as it is about to be written."""

    content: str
    data: bytes
    description: str
    aliases: tuple[str, ...]
    sources: frozenset[str]
    receipts: tuple[Receipt, ...] = ()

    def stamped(self, moment: datetime) -> FileMetadata:
        """Return the metadata as of `moment`."""
        return FileMetadata(self.description, self.aliases, self.sources, moment)


Build: TypeAlias = Callable[[StoredObject], Draft]
"""Makes a draft from what is stored, or raises the error that tells why there can be none."""


def draft(
    path: str,
    content: str,
    description: str,
    aliases: tuple[str, ...],
    sources: frozenset[str],
    *,
    max_file_bytes: int,
    receipts: Sequence[Receipt] = (),
) -> Draft:
    """Return a draft; `OversizeWriteError` or `InvalidArgumentError` where it is too large."""
    data = content.encode()
    if len(data) > max_file_bytes:
        raise OversizeWriteError(path, len(data), max_file_bytes)
    made = Draft(content, data, description, aliases, sources)
    # With the longest stamp, so that what passes here passes whatever the clock will say.
    longest = encode_metadata(made.stamped(datetime.max.replace(tzinfo=UTC)))
    check_metadata_size(longest)
    if not receipts:
        return made
    # Receipts give way to what the file says about itself.
    return replace(made, receipts=fit_receipts(receipts, longest))


def check_text(argument: str, value: object) -> None:
    """Raise TypeError unless an argument is a str."""
    if not isinstance(value, str):
        msg = f"{argument} must be a str, not {type(value).__name__}"
        raise TypeError(msg)


def check_writing(
    content: str, metadata: FileMetadata, source: str
) -> tuple[str, tuple[str, ...], frozenset[str]]:
    """Check what a caller of `write_file` passes; return description, aliases and sources."""
    check_text("content", content)
    problem = text_problem(content)
    if problem is not None:
        raise InvalidArgumentError("content", problem)
    if not isinstance(metadata, FileMetadata):
        msg = f"metadata must be a FileMetadata, not {type(metadata).__name__}"
        raise TypeError(msg)
    sources = frozenset(map(check_source, metadata.sources)) | {check_source(source)}
    return check_description(metadata.description), check_aliases(metadata.aliases), sources


def merger(source: str, aliases: Iterable[str] | None, description: str | None) -> Merge:
    """Check the metadata arguments of a change; return what adds them to the stored metadata."""
    check_source(source)
    added = () if aliases is None else check_aliases(aliases)
    if description is not None:
        check_description(description)

    def merge(stored: FileMetadata) -> tuple[str, tuple[str, ...], frozenset[str]]:
        return (
            stored.description if description is None else description,
            merge_aliases(stored.aliases, added),
            stored.sources | {source},
        )

    return merge


def stored_sources(base: StoredObject) -> frozenset[str]:
    """Return who wrote a file; nobody where its metadata is beyond decoding and to be replaced."""
    try:
        return decode_metadata(base.metadata).sources
    except MetadataFormatError:
        return frozenset()


def append_to(base: StoredObject, line: str) -> str:
    """Return the content with `line` as its last line."""
    text = decode_body(base.data)
    separator = "\n" if text and not text.endswith("\n") else ""
    return f"{text}{separator}{line}\n"


def count_places(text: str, wanted: str) -> int:
    """Return at how many places `wanted` begins, overlapping ones included."""
    count = 0
    start = text.find(wanted)
    while start >= 0:
        count += 1
        start = text.find(wanted, start + 1)
    return count
