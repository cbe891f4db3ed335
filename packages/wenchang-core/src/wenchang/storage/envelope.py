"""The envelope: metadata and write id inside an object's own bytes.

For stores that keep no metadata of their own, or too little of it, or whose versions are a hash of
the bytes. The object begins with a small block that Markdown tools read as front matter:

    ---
    wenchang: {"format":1,"min_writer":1,"id":"…","lineage":[…],"metadata":{…},"sha256":"…"}
    ---
    the body, byte for byte

So metadata and body cannot part, whatever copies the object; every write changes the bytes, by its
write id; and in a bucket's console the object is still a readable Markdown file.

Three kinds of objects are not as written here, and none of them is lost or hidden:

- An object without the block (uploaded by hand) is its own body, with empty metadata. Front matter
  of another kind belongs to the body.
- An object whose block is damaged comes back whole, with the one metadata name
  `wenchang-unreadable` that says why.
- An object whose body was edited in place still has the block of the write before. The digest tells
  (`hand_edited`): the block's write id then no longer means these bytes. What the block says of
  earlier versions stays true. An edit of the block alone is not detected.

**Formats.** A reader takes every format it can make sense of. `min_writer` is the oldest format
whose writers may replace the object: `check_writable` refuses for older ones. Fields that a reader
does not know are kept in `extra`, to be handed to `encode` when the same object is rewritten.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NoReturn

from wenchang.storage.contract import StoredObject
from wenchang.storage.errors import (
    InvalidStorageMetadataError,
    MetadataTooLargeError,
    StorageRejectedError,
)
from wenchang.storage.keys import UNREADABLE_METADATA, check_metadata
from wenchang.storage.outcomes import LINEAGE_LIMIT, UNKNOWN_ID, Found, Lineage

__all__ = [
    "FORMAT",
    "HEAD_BYTES",
    "MAX_EXTRA_BYTES",
    "USUAL_HEAD_BYTES",
    "Envelope",
    "Head",
    "NeedMore",
    "NotOurs",
    "check_writable",
    "decode",
    "decode_head",
    "encode",
]

FORMAT: Final = 1
"""The format that this module writes."""
HEAD_BYTES: Final = 40 * 1024
"""No block is longer: 5,000 bytes of metadata and 16 pairs of lineage, all of it escaped, fit."""
USUAL_HEAD_BYTES: Final = 4 * 1024
"""Enough of an object to hold most blocks: what a listing should ask for first."""
MAX_EXTRA_BYTES: Final = 4 * 1024
"""Bytes of JSON in the fields of a newer format that are kept."""

_OPENING: Final = b'---\nwenchang: {"format":'
_CLOSING: Final = b"\n---\n"
# Editors that add a byte order mark or CR change nothing that makes the block unreadable.
_LIKE_OURS: Final = re.compile(rb'(?:\xef\xbb\xbf)?---\r?\nwenchang: \{"format":')
_BLOCK: Final = re.compile(rb"(?:\xef\xbb\xbf)?---\r?\nwenchang: (\{[^\r\n]*\})\r?\n---\r?\n")
_OPENINGS: Final = tuple(
    mark + _OPENING.replace(b"\n", newline)
    for mark in (b"", b"\xef\xbb\xbf")
    for newline in (b"\n", b"\r\n")
)
_WRITE_ID: Final = re.compile(r"[0-9a-f]{20}")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_UNPRINTABLE: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_MAX_VERSION: Final = 256
_MAX_FORMAT: Final = 1_000_000
_KNOWN: Final = frozenset(
    {"format", "min_writer", "id", "lineage", "metadata", "sha256", "tombstone"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The block of an object, without the body it belongs to.

    Whether the body was edited by hand cannot be told from it.
    """

    metadata: Mapping[str, str]
    """The metadata, or the one name `wenchang-unreadable`."""
    write_id: str | None
    """None when the block is damaged."""
    lineage: Lineage
    tombstone: bool
    """The object stands for a deleted one."""
    body_offset: int
    """Where the body begins: 0 when the block is damaged and belongs to the body."""
    digest: str
    """SHA-256 of the body as written, in hexadecimal digits; "" when the block is damaged."""
    canonical: bool
    """The block is as `encode` ends its lines; False tells that an editor went over it."""
    unreadable: str | None
    """Why the block cannot be decoded, without stored content; None when it can."""
    min_writer: int
    """The oldest format whose writers may replace the object."""
    extra: Mapping[str, object] = field(default_factory=dict)
    """Fields of a newer format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedMore:
    """The bytes end inside what may be a block; `HEAD_BYTES` of the object always settle it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotOurs:
    """The object has no block: all of it is body, and it has no metadata."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """A whole object, decoded."""

    body: bytes
    """The exact body; the whole object when it has no block or a damaged one."""
    metadata: Mapping[str, str]
    write_id: str | None
    """The id in the block; None for objects that are not ours. See `hand_edited`."""
    lineage: Lineage = ()
    tombstone: bool = False
    hand_edited: bool = False
    """The block is of an earlier write than the body."""
    unreadable: str | None = None
    min_writer: int = FORMAT
    extra: Mapping[str, object] = field(default_factory=dict)

    def stored(self, version: str) -> StoredObject:
        """Return the object as `Storage.get` does; its `version` is the store's matter."""
        return StoredObject(self.body, dict(self.metadata), version)

    def found(self, version: str) -> Found:
        """Return what the settling of a lost answer is told after reading this object back.

        An object that was edited by hand says so: its id proves that the write landed, but
        `version` is the edit's.
        """
        return Found(
            current=self.stored(version),
            write_id=self.write_id,
            lineage=self.lineage,
            edited=self.hand_edited,
            tombstone=self.tombstone,
        )

    @property
    def remembered_id(self) -> str | None:
        """The id to remember for this version: none where the bytes are not that write's."""
        return None if self.hand_edited else self.write_id


def encode(
    body: bytes,
    metadata: Mapping[str, str],
    write_id: str,
    lineage: Lineage = (),
    *,
    tombstone: bool = False,
    extra: Mapping[str, object] | None = None,
) -> bytes:
    """Return the object for `body`; the same arguments give the same bytes.

    `metadata` has passed `check_metadata`; `extra` comes from the object that is rewritten. Raises
    ValueError for a write id, lineage or tombstone that could not be decoded again.
    """
    if not _WRITE_ID.fullmatch(write_id):
        msg = "write_id must be 20 hexadecimal digits"
        raise ValueError(msg)
    if not _is_lineage(lineage):
        msg = f"lineage must be at most {LINEAGE_LIMIT} pairs of write id and version"
        raise ValueError(msg)
    if tombstone and body:
        msg = "a tombstone has no body"
        raise ValueError(msg)
    fields: dict[str, object] = {
        "format": FORMAT,
        "min_writer": FORMAT,
        "id": write_id,
        "lineage": [list(pair) for pair in lineage],
        "metadata": dict(sorted(metadata.items())),
        "sha256": hashlib.sha256(body).hexdigest(),
    }
    if tombstone:
        fields["tombstone"] = True
    fields |= {name: value for name, value in sorted((extra or {}).items()) if name not in _KNOWN}
    head = b"---\nwenchang: " + _to_json(fields).encode() + _CLOSING
    if len(head) > HEAD_BYTES:
        msg = f"the block would exceed {HEAD_BYTES} bytes"
        raise ValueError(msg)
    return head + body


def decode(data: bytes) -> Envelope:
    """Take a whole object apart. Never fails: damaged blocks are reported in `unreadable`."""
    head = decode_head(data, size=len(data))
    if not isinstance(head, Head):
        return Envelope(body=data, metadata={}, write_id=None)
    body = data[head.body_offset :]
    return Envelope(
        body=body,
        metadata=head.metadata,
        write_id=head.write_id,
        lineage=head.lineage,
        tombstone=head.tombstone,
        hand_edited=head.unreadable is None
        and not (head.canonical and hashlib.sha256(body).hexdigest() == head.digest),
        unreadable=head.unreadable,
        min_writer=head.min_writer,
        extra=head.extra,
    )


def decode_head(data: bytes, *, size: int | None = None) -> Head | NeedMore | NotOurs:
    """Decode the block at the beginning of an object from its first bytes.

    `size` is the size of the whole object where it is known; with all of the object, or with
    `HEAD_BYTES` of it, the answer is never `NeedMore`. Never fails.
    """
    whole = (size is not None and len(data) >= size) or len(data) >= HEAD_BYTES
    start = data[:HEAD_BYTES]
    if not _LIKE_OURS.match(start):
        might_be = any(opening.startswith(start) for opening in _OPENINGS)
        return NeedMore() if might_be and not whole else NotOurs()
    block = _BLOCK.match(start)
    if block is None:
        return _damaged("its block has no end") if whole else NeedMore()
    try:
        fields = json.loads(
            block[1], object_pairs_hook=_without_repetition, parse_constant=_no_number
        )
    except (ValueError, RecursionError):
        return _damaged("its block is not valid JSON")
    min_writer = _format_number(fields.get("min_writer"))
    if min_writer is None or _format_number(fields.get("format")) is None:
        return _damaged("its block names no format")
    problem = _problem(fields)
    if problem is None and fields.get("tombstone") and size is not None and size > block.end():
        # Somebody wrote below it: what a person wrote must not count as deleted.
        problem = "it is marked as deleted, but has a body"
    if problem is not None:
        return _damaged(problem, min_writer)
    return Head(
        metadata=fields["metadata"],
        write_id=fields["id"],
        lineage=tuple((pair[0], pair[1]) for pair in fields["lineage"]),
        tombstone=fields.get("tombstone", False),
        body_offset=block.end(),
        digest=fields["sha256"],
        canonical=start.startswith(_OPENING) and block[0].endswith(b"}" + _CLOSING),
        unreadable=None,
        min_writer=min_writer,
        extra={name: value for name, value in fields.items() if name not in _KNOWN},
    )


def check_writable(stored: Envelope | Head | NotOurs | None) -> None:
    """Raise `StorageRejectedError` if only a newer release may replace or delete `stored`."""
    if isinstance(stored, Envelope | Head) and stored.min_writer > FORMAT:
        raise StorageRejectedError(
            "unsupported",
            f"the stored object is of format {stored.min_writer} and this release writes format "
            f"{FORMAT}; upgrade wenchang in every process that writes here",
        )


# --- the fields ----------------------------------------------------------------------------------


def _damaged(reason: str, min_writer: int = FORMAT) -> Head:
    """Return the head of an object whose block cannot be decoded."""
    return Head(
        metadata={UNREADABLE_METADATA: reason},
        write_id=None,
        lineage=(),
        tombstone=False,
        body_offset=0,
        digest="",
        canonical=False,
        unreadable=reason,
        min_writer=min_writer,
    )


def _problem(fields: dict[str, object]) -> str | None:
    """Say what is wrong with the fields of a block, or None."""
    if not _matches(_WRITE_ID, fields.get("id")):
        return "its write id is damaged"
    if not _is_lineage(fields.get("lineage")):
        return "its lineage is damaged"
    if not _matches(_DIGEST, fields.get("sha256")):
        return "its digest is damaged"
    if not isinstance(fields.get("tombstone", False), bool):
        return "its mark of deletion is damaged"
    metadata = fields.get("metadata")
    if not isinstance(metadata, dict):
        return "its metadata is damaged"
    try:
        check_metadata(metadata)
    except (TypeError, InvalidStorageMetadataError, MetadataTooLargeError):
        return "its metadata breaks the rules"
    try:
        extra = _to_json({name: fields[name] for name in fields.keys() - _KNOWN}).encode()
    except (ValueError, RecursionError):
        return "a field of a newer format is damaged"
    return "fields of a newer format are too long" if len(extra) > MAX_EXTRA_BYTES else None


def _matches(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _format_number(value: object) -> int | None:
    return value if type(value) is int and 1 <= value <= _MAX_FORMAT else None


def _is_lineage(value: object) -> bool:
    """Tell whether `value` is a list of pairs that a conditional replace may have stored."""
    if not isinstance(value, list | tuple) or len(value) > LINEAGE_LIMIT:
        return False
    return all(
        isinstance(pair, list | tuple)
        and len(pair) == 2
        and (pair[0] == UNKNOWN_ID or _matches(_WRITE_ID, pair[0]))
        and isinstance(pair[1], str)
        and 0 < len(pair[1]) <= _MAX_VERSION
        and not _UNPRINTABLE.search(pair[1])
        for pair in value
    )


def _to_json(fields: dict[str, object]) -> str:
    """Return one line of JSON in UTF-8, without any character that a tool may take for a newline."""
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").replace("\x85", "\\u0085")


def _without_repetition(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Refuse an object that names a field twice: readers disagree on which one counts."""
    fields = dict(pairs)
    if len(fields) != len(pairs):
        msg = "repeated name"
        raise ValueError(msg)
    return fields


def _no_number(_: str) -> NoReturn:
    """Refuse NaN and infinity, which no JSON has."""
    msg = "not a number"
    raise ValueError(msg)
