"""What an object carries beside its body, packed into the one value of blob metadata named `wenchang`.

Blob metadata is 8 KB of headers in all, names are identifiers, values lose outer spaces and must be
ASCII. So everything is packed into one value: Base64 of

    format, min_writer, flags                1 byte each; flag 1: the rest is deflated
    write id                                 10 bytes
    digest of the body                       16 bytes, the beginning of its SHA-256
    lineage    count, then each pair:        write id as 0, or 1 and 10 bytes; version with its length
    metadata   count, then each entry:       name with its length; value with its length in 2 bytes
    fields of a newer format                 whatever follows, kept as it is

5,000 bytes of incompressible metadata in 64 entries with 16 pairs of the longest versions are 6,039
bytes, which is 8,052 characters; with the name that is within the 8,192 that the service takes.

The digest tells an object whose body was edited in place and kept its metadata: its write id then
proves that the write landed, but not that these are its bytes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from wenchang.storage import (
    InvalidStorageMetadataError,
    MetadataTooLargeError,
    StorageRejectedError,
)
from wenchang.storage.keys import UNREADABLE_METADATA, check_metadata
from wenchang.storage.outcomes import LINEAGE_LIMIT, UNKNOWN_ID, Lineage
from wenchang_azure.tokens import parse_token

__all__ = [
    "FORMAT",
    "MAX_EXTRA_BYTES",
    "METADATA_BYTES",
    "METADATA_NAME",
    "Marks",
    "check_writable",
    "decode_marks",
    "encode_marks",
]

FORMAT: Final = 1
"""The format that this module writes."""
METADATA_NAME: Final = "wenchang"
"""The name of the value in the blob's metadata."""
METADATA_BYTES: Final = 8 * 1024
"""What the service takes of metadata, names and values together."""
MAX_EXTRA_BYTES: Final = 512
"""Bytes of fields of a newer format that are kept."""

_DEFLATED: Final = 1
_ID_BYTES: Final = 10
_DIGEST_BYTES: Final = 16
_MAX_UNPACKED: Final = 16 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What is known of an object beside its body."""

    metadata: Mapping[str, str] = field(default_factory=dict)
    """The metadata, or the one name `wenchang-unreadable`."""
    write_id: str | None = None
    """None for objects that are not ours, and where the value cannot be decoded."""
    lineage: Lineage = ()
    digest: bytes = b""
    min_writer: int = FORMAT
    """The oldest format whose writers may change the object."""
    extra: bytes = b""
    """Fields of a newer format."""

    def edited(self, body: bytes) -> bool:
        """Tell whether `body` is another one than the write with this id stored."""
        return self.write_id is not None and self.digest != _digest(body)


class _DamagedError(ValueError):
    """The value is none that was ever written. The text says why, without stored content."""


def encode_marks(
    body: bytes,
    metadata: Mapping[str, str],
    write_id: str,
    lineage: Lineage = (),
    *,
    extra: bytes = b"",
) -> str:
    """Return the value to store with `body`. `metadata` has passed `check_metadata`.

    Where fields of a newer format take the room, the oldest pairs of the lineage are left out: a
    shorter one can only leave more outcomes unknown.
    """
    while True:
        value = _encode(body, metadata, write_id, lineage, extra)
        if len(METADATA_NAME) + len(value) <= METADATA_BYTES or len(lineage) <= 1:
            return value
        lineage = lineage[:-1]


def decode_marks(value: str | None) -> Marks:
    """Take a stored value apart. Never fails: None is an object of a stranger's."""
    if value is None:
        return Marks()
    try:
        packed = binascii.a2b_base64(value.encode("ascii"), strict_mode=True)
    except ValueError:
        return _unreadable("its value is not Base64")
    if len(packed) < 3 or 0 in packed[:2]:
        return _unreadable("its value names no format")
    min_writer = packed[1]
    try:
        return _decode(_unpacked(packed), min_writer)
    except _DamagedError as damage:
        return _unreadable(str(damage), min_writer)


def check_writable(min_writer: int) -> None:
    """Raise `StorageRejectedError` if only a newer release may change an object that says this."""
    if min_writer > FORMAT:
        raise StorageRejectedError(
            "unsupported",
            f"the stored object needs a writer of format {min_writer} and this release writes format "
            f"{FORMAT}; upgrade wenchang in every process that writes here",
        )


# --- packing -------------------------------------------------------------------------------------


def _encode(
    body: bytes, metadata: Mapping[str, str], write_id: str, lineage: Lineage, extra: bytes
) -> str:
    parts = [bytes.fromhex(write_id), _digest(body), bytes((len(lineage),))]
    for pair_id, version in lineage:
        text = version.encode("ascii")
        known = b"\0" if pair_id == UNKNOWN_ID else b"\1" + bytes.fromhex(pair_id)
        parts += [known, bytes((len(text),)), text]
    parts.append(bytes((len(metadata),)))
    for name, value in metadata.items():
        raw = value.encode()
        parts += [bytes((len(name),)), name.encode("ascii"), len(raw).to_bytes(2, "big"), raw]
    payload = b"".join([*parts, extra])
    deflated = zlib.compress(payload, 9)
    if len(deflated) < len(payload):
        payload, flags = deflated, _DEFLATED
    else:
        flags = 0
    return base64.b64encode(bytes((FORMAT, FORMAT, flags)) + payload).decode("ascii")


def _unpacked(packed: bytes) -> bytes:
    """Return what follows the first three bytes, inflated."""
    flags, payload = packed[2], packed[3:]
    if flags not in (0, _DEFLATED):
        msg = "its value is packed in an unknown way"
        raise _DamagedError(msg)
    if not flags:
        return payload
    inflater = zlib.decompressobj()
    try:
        payload = inflater.decompress(payload, _MAX_UNPACKED)
    except zlib.error:
        msg = "its value cannot be unpacked"
        raise _DamagedError(msg) from None
    if not inflater.eof or inflater.unused_data:
        msg = "its value cannot be unpacked"
        raise _DamagedError(msg)
    return payload


class _Reader:
    """Takes fields off the front of a payload."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._at = 0

    def take(self, size: int) -> bytes:
        piece = self._payload[self._at : self._at + size]
        if len(piece) < size:
            msg = "its value ends early"
            raise _DamagedError(msg)
        self._at += size
        return piece

    def number(self, size: int = 1) -> int:
        return int.from_bytes(self.take(size), "big")

    def text(self, size: int) -> str:
        try:
            return self.take(size).decode()
        except UnicodeDecodeError:
            msg = "its value is not text"
            raise _DamagedError(msg) from None

    def rest(self) -> bytes:
        return self._payload[self._at :]


def _decode(payload: bytes, min_writer: int) -> Marks:
    reader = _Reader(payload)
    write_id = reader.take(_ID_BYTES).hex()
    digest = reader.take(_DIGEST_BYTES)
    lineage = tuple(_pair(reader) for _ in range(reader.number()))
    entries = [
        (reader.text(reader.number()), reader.text(reader.number(2)))
        for _ in range(reader.number())
    ]
    extra = reader.rest()
    metadata = dict(entries)
    if len(lineage) > LINEAGE_LIMIT or len(metadata) < len(entries) or len(extra) > MAX_EXTRA_BYTES:
        msg = "its value breaks the rules of its format"
        raise _DamagedError(msg)
    try:
        check_metadata(metadata)
    except (InvalidStorageMetadataError, MetadataTooLargeError):
        msg = "its metadata breaks the rules"
        raise _DamagedError(msg) from None
    return Marks(
        metadata=metadata,
        write_id=write_id,
        lineage=lineage,
        digest=digest,
        min_writer=min_writer,
        extra=extra,
    )


def _pair(reader: _Reader) -> tuple[str, str]:
    known = reader.number()
    if known not in (0, 1):
        msg = "its lineage is damaged"
        raise _DamagedError(msg)
    write_id = reader.take(_ID_BYTES).hex() if known else UNKNOWN_ID
    version = reader.text(reader.number())
    if parse_token(version) is None:
        msg = "its lineage is damaged"
        raise _DamagedError(msg)
    return write_id, version


def _unreadable(reason: str, min_writer: int = FORMAT) -> Marks:
    return Marks(metadata={UNREADABLE_METADATA: reason}, min_writer=min_writer)


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()[:_DIGEST_BYTES]
