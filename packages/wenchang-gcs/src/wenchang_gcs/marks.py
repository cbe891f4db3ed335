"""How an object's custom metadata holds the caller's map and our own marks.

The caller's entries stand under their own names. Ours begin with `wenchang-` and never leave this
package upwards: write id, lineage, format. The service allows 8 KiB of names and values; the
caller's 5,000 bytes, sixteen pairs of lineage and what a newer release may add fit in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from wenchang.storage import InvalidStorageMetadataError, MetadataTooLargeError
from wenchang.storage.keys import (
    MAX_METADATA_BYTES,
    MAX_METADATA_ENTRIES,
    RESERVED_METADATA_PREFIX,
    UNREADABLE_METADATA,
    check_metadata,
    metadata_size,
)
from wenchang.storage.outcomes import LINEAGE_LIMIT, UNKNOWN_ID, Lineage

__all__ = ["FORMAT", "MAX_EXTRA_BYTES", "SERVICE_LIMIT", "Marks", "decode_marks", "encode_marks"]

FORMAT: Final = 1
"""The format that this release writes, and the newest that it may replace."""
MAX_EXTRA_BYTES: Final = 1_000
"""Bytes of names and values in the marks of a newer format that are kept."""
SERVICE_LIMIT: Final = 8 * 1024
"""Bytes of names and values in the custom metadata of one object, by the service's rules."""

_ID: Final = "wenchang-id"
_LINEAGE: Final = "wenchang-lineage"
_FORMAT: Final = "wenchang-format"
_MIN_WRITER: Final = "wenchang-min-writer"
_KNOWN: Final = frozenset({_ID, _LINEAGE, _FORMAT, _MIN_WRITER})
_TOOLS: Final = "goog-reserved-"
"""Names that Google's own tools add to what they upload."""
_WRITE_ID: Final = re.compile(r"[0-9a-f]{20}")
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,5}")
_PLAIN_NAME: Final = re.compile(r"(?!wenchang-)[a-z][a-z0-9-]{0,63}")
_VERSION: Final = re.compile(r"[0-9.:wx]{1,64}")


_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class Marks(NamedTuple):
    """An object's custom metadata, taken apart."""

    metadata: Mapping[str, str]
    """The caller's map, or the one name `wenchang-unreadable`."""
    write_id: str | None = None
    """None for objects that are not ours."""
    lineage: Lineage = ()
    min_writer: int = FORMAT
    extra: Mapping[str, str] = _NOTHING
    """Marks of a newer format, to be kept by whoever replaces the object."""


def encode_marks(
    metadata: Mapping[str, str], write_id: str, lineage: Lineage, extra: Mapping[str, str]
) -> dict[str, str]:
    """Return the custom metadata to store with a write."""
    encoded = {**extra, **metadata, _ID: write_id}
    encoded[_FORMAT] = encoded[_MIN_WRITER] = str(FORMAT)
    if lineage:
        encoded[_LINEAGE] = json.dumps(lineage, separators=(",", ":"))
    return encoded


def decode_marks(stored: Mapping[str, str] | None) -> Marks:
    """Take stored metadata apart. Never fails: damage is reported in the metadata itself."""
    own: dict[str, str] = {}
    marks: dict[str, str] = {}
    for name, value in (stored or {}).items():
        (marks if name.startswith(RESERVED_METADATA_PREFIX) else own)[name] = value
    if not marks:
        return Marks(metadata=_foreign(own))
    writer = marks.get(_MIN_WRITER, "")
    min_writer = int(writer) if _NUMBER.fullmatch(writer) else FORMAT
    extra: Mapping[str, str] = _NOTHING
    if not marks.keys() <= _KNOWN:
        extra = {name: value for name, value in marks.items() if name not in _KNOWN}
    lineage = _lineage(marks[_LINEAGE]) if _LINEAGE in marks else ()
    problem = _problem(own, marks, extra)
    if problem is None and lineage is None:
        problem = "its lineage is damaged"
    if problem is not None or lineage is None:
        return Marks(metadata={UNREADABLE_METADATA: problem or ""}, min_writer=min_writer)
    return Marks(
        metadata=own,
        write_id=marks[_ID],
        lineage=lineage,
        min_writer=min_writer,
        extra=extra,
    )


def _foreign(metadata: dict[str, str]) -> dict[str, str]:
    """Return the metadata of an object without marks.

    A map that keeps the contract's rules is taken as it is, so that what other tools stored under these
    names can be read; any other map belongs to somebody else.
    """
    told = {name: value for name, value in metadata.items() if not name.startswith(_TOOLS)}
    return told if _keeps_the_rules(told) else {}


def _problem(
    metadata: dict[str, str], marks: dict[str, str], extra: Mapping[str, str]
) -> str | None:
    """Say what is wrong with an object that has our marks, or None."""
    if not _WRITE_ID.fullmatch(marks.get(_ID, "")):
        return "its write id is damaged"
    if not (
        _NUMBER.fullmatch(marks.get(_FORMAT, "")) and _NUMBER.fullmatch(marks.get(_MIN_WRITER, ""))
    ):
        return "it names no format"
    if extra and metadata_size(extra) > MAX_EXTRA_BYTES:
        return "marks of a newer format are too long"
    return None if _keeps_the_rules(metadata) else "its metadata breaks the rules"


def _keeps_the_rules(metadata: dict[str, str]) -> bool:
    """Tell whether `check_metadata` would accept the map.

    Most maps are seen at once to keep every rule, which halves the time that a listing takes.
    """
    try:
        text = "".join(metadata.values())
        if (
            text.isprintable()
            and len(metadata) <= MAX_METADATA_ENTRIES
            and 4 * len(text) + 64 * len(metadata) <= MAX_METADATA_BYTES
            and all(map(_PLAIN_NAME.fullmatch, metadata))
        ):
            return True
        check_metadata(metadata)
    except (TypeError, InvalidStorageMetadataError, MetadataTooLargeError):
        return False
    return True


def _lineage(text: str) -> Lineage | None:
    """Decode a stored lineage; None when it is damaged."""
    try:
        pairs = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(pairs, list) or len(pairs) > LINEAGE_LIMIT:
        return None
    lineage = [_pair(pair) for pair in pairs]
    return None if None in lineage else tuple(pair for pair in lineage if pair is not None)


def _pair(pair: object) -> tuple[str, str] | None:
    """Return a pair of write id and version; None when it is none."""
    if not isinstance(pair, list) or len(pair) != 2:
        return None
    write_id, version = pair
    if not isinstance(write_id, str) or not isinstance(version, str):
        return None
    if write_id != UNKNOWN_ID and not _WRITE_ID.fullmatch(write_id):
        return None
    return (write_id, version) if _VERSION.fullmatch(version) else None
