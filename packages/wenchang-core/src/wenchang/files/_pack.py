"""Large roots and pages are stored compressed: each commit writes one of each anew.

Small objects stay as they are, so that a person can read them. The first byte tells which it is.
"""

from __future__ import annotations

import zlib
from typing import Final

__all__ = ["pack", "unpack"]

_PLAIN_BYTES: Final = 16 * 1024
_MAX_BYTES: Final = 16 * 1024 * 1024
"""What an object may unpack to; ours stay far below it."""
_HEAD: Final = b"\x78"
"""With it begins every zlib stream, and no JSON."""


def pack(data: bytes) -> bytes:
    """Return what to store of an object."""
    return data if len(data) <= _PLAIN_BYTES else zlib.compress(data, 1)


def unpack(stored: bytes) -> bytes:
    """Return the object; ValueError where it is damaged or unpacks to more than any of ours."""
    if not stored.startswith(_HEAD):
        return stored
    stream = zlib.decompressobj()
    try:
        data = stream.decompress(stored, _MAX_BYTES)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if not stream.eof or stream.unused_data:
        msg = "the object is cut off, or too large"
        raise ValueError(msg)
    return data
