"""How an object's custom metadata holds the caller's map and our own marks.

The caller's entries stand under their own names, as releases before this one wrote them. Ours begin
with `wenchang-` and never leave this module upwards: write id, lineage, format.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from wenchang.storage import InvalidStorageMetadataError, MetadataTooLargeError
from wenchang.storage.keys import RESERVED_METADATA_PREFIX, UNREADABLE_METADATA, check_metadata
from wenchang.storage.outcomes import LINEAGE_LIMIT, Lineage, Write

__all__ = ["FORMAT", "Marks", "decode_marks", "encode_marks"]

FORMAT: Final = 1
"""The format that this release writes, and the newest that it may replace."""

_ID: Final = "wenchang-id"
_LINEAGE: Final = "wenchang-lineage"
_FORMAT: Final = "wenchang-format"
_MIN_WRITER: Final = "wenchang-min-writer"
_WRITE_ID: Final = re.compile(r"[0-9a-f]{20}")
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,5}", re.ASCII)
_MAX_VERSION: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """An object's custom metadata, taken apart."""

    metadata: Mapping[str, str]
    """The caller's map, or the one name `wenchang-unreadable`."""
    write_id: str | None = None
    """None for objects that are not ours."""
    lineage: Lineage = ()
    min_writer: int = FORMAT


def encode_marks(metadata: Mapping[str, str], write: Write) -> dict[str, str]:
    """Return the custom metadata to store with a write."""
    encoded = dict(metadata)
    encoded[_ID] = write.write_id
    encoded[_FORMAT] = encoded[_MIN_WRITER] = str(FORMAT)
    if write.lineage:
        encoded[_LINEAGE] = json.dumps(write.lineage, separators=(",", ":"))
    return encoded


def decode_marks(stored: Mapping[str, str] | None) -> Marks:
    """Take stored metadata apart. Never fails: damage is reported in the metadata itself."""
    own = {k: v for k, v in (stored or {}).items() if not k.startswith(RESERVED_METADATA_PREFIX)}
    marks = {k: v for k, v in (stored or {}).items() if k.startswith(RESERVED_METADATA_PREFIX)}
    writer = marks.get(_MIN_WRITER, str(FORMAT))
    min_writer = int(writer) if _NUMBER.fullmatch(writer) else FORMAT
    if not marks:
        return Marks(metadata=_foreign(own))
    problem = _problem(own, marks)
    lineage = _lineage(marks.get(_LINEAGE, "[]"))
    if problem is None and lineage is None:
        problem = "its lineage is damaged"
    if problem is not None or lineage is None:
        return Marks(metadata={UNREADABLE_METADATA: problem or ""}, min_writer=min_writer)
    return Marks(metadata=own, write_id=marks[_ID], lineage=lineage, min_writer=min_writer)


def _foreign(metadata: dict[str, str]) -> dict[str, str]:
    """Return the metadata of an object without marks.

    Earlier releases wrote none, so a map that keeps the rules is taken as it is; any other belongs to
    somebody else.
    """
    try:
        return check_metadata(metadata)
    except (TypeError, InvalidStorageMetadataError, MetadataTooLargeError):
        return {}


def _problem(metadata: dict[str, str], marks: dict[str, str]) -> str | None:
    """Say what is wrong with an object that has our marks, or None."""
    if not _WRITE_ID.fullmatch(marks.get(_ID, "")):
        return "its write id is damaged"
    if not all(_NUMBER.fullmatch(marks.get(name, "")) for name in (_FORMAT, _MIN_WRITER)):
        return "it names no format"
    try:
        check_metadata(metadata)
    except (TypeError, InvalidStorageMetadataError, MetadataTooLargeError):
        return "its metadata breaks the rules"
    return None


def _lineage(text: str) -> Lineage | None:
    """Decode a stored lineage; None when it is damaged."""
    try:
        pairs = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(pairs, list) or len(pairs) > LINEAGE_LIMIT:
        return None
    lineage: list[tuple[str, str]] = []
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2:
            return None
        write_id, version = pair
        if not isinstance(write_id, str) or not isinstance(version, str):
            return None
        if len(version) > _MAX_VERSION:
            return None
        lineage.append((write_id, version))
    return tuple(lineage)
