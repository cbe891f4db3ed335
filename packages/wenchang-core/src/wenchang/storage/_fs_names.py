"""How a key is spelled as a path, and back.

Every segment of a key is one name. `a-z 0-9 - _ ~`, and a `.` that is not the first character, stand
for themselves; every other byte of the UTF-8 text becomes `%XX` with upper-case digits. So two keys
never share a name, not even on a file system that ignores case or normalises Unicode, and no name
begins with a dot. The last segment gets a suffix that no encoded text can end in, because none of
them begins with a hexadecimal digit: the object `a/b` and the folder of `a/b/c` are neighbours.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote_to_bytes

from wenchang.storage.errors import InvalidStorageKeyError

__all__ = [
    "BODY",
    "FRESH",
    "JOURNAL",
    "MAX_NAME_BYTES",
    "OUTGOING",
    "PARTIAL",
    "SIDECAR",
    "decode_name",
    "encode_key",
    "encode_segment",
    "split_suffix",
]

MAX_NAME_BYTES: Final = 200
"""Bytes of an encoded segment; with a suffix it stays under the 255 of common file systems."""

BODY: Final = "%obj"
"""The exact body."""
SIDECAR: Final = "%meta"
"""The metadata, the version and what the body looked like when it was written."""
JOURNAL: Final = "%redo"
"""The sidecar of a write that is decided but not carried out yet."""
FRESH: Final = "%new"
"""The body of a write on its way in."""
OUTGOING: Final = "%old"
"""The body of a delete on its way out."""
PARTIAL: Final = "%tmp"
"""A journal that is still being written."""

_SUFFIXES: Final = frozenset((BODY, SIDECAR, JOURNAL, FRESH, OUTGOING, PARTIAL))
_PLAIN: Final = b"abcdefghijklmnopqrstuvwxyz0123456789-_~."
_SPELLING: Final = tuple(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in range(256))
_SIMPLE_NAME: Final = re.compile(r"[a-z0-9\-_~][a-z0-9\-_~.]*")


def encode_segment(segment: str) -> str:
    """Return the name of one segment.

    Raises `InvalidStorageKeyError` if it is empty, holds a lone surrogate, or takes more than 200
    bytes once encoded.
    """
    try:
        name = "".join([_SPELLING[byte] for byte in segment.encode()])
    except UnicodeEncodeError:
        msg = "a key must be valid UTF-8; it holds a lone surrogate"
        raise InvalidStorageKeyError(msg) from None
    if name.startswith("."):
        name = "%2E" + name[1:]
    if not name:
        msg = "a key must not hold an empty segment"
        raise InvalidStorageKeyError(msg)
    if len(name) > MAX_NAME_BYTES:
        msg = (
            f"a segment of a key takes at most {MAX_NAME_BYTES} bytes as a file name; every byte other "
            "than a-z, 0-9, '-', '_', '~' and '.' takes three"
        )
        raise InvalidStorageKeyError(msg)
    return name


def encode_key(key: str) -> tuple[list[str], str]:
    """Return the names of the folders of a valid key and the stem of its files.

    Raises `InvalidStorageKeyError` as `encode_segment` does.
    """
    *folders, stem = (encode_segment(segment) for segment in key.split("/"))
    return folders, stem


def decode_name(name: str) -> str | None:
    """Return the segment that is spelled exactly `name`, or None where there is none."""
    if _SIMPLE_NAME.fullmatch(name):
        return name if len(name) <= MAX_NAME_BYTES else None
    if "%" not in name:
        return None
    try:
        segment = unquote_to_bytes(name).decode()
        # An escaped slash would make the name of a key that lies elsewhere.
        return segment if "/" not in segment and encode_segment(segment) == name else None
    except ValueError:
        # Not UTF-8 (UnicodeDecodeError), or a name longer than any of ours.
        return None


def split_suffix(name: str) -> tuple[str, str]:
    """Return the stem and suffix of an object's file, or the name and "" for anything else."""
    stem, percent, rest = name.rpartition("%")
    suffix = percent + rest
    return (stem, suffix) if suffix in _SUFFIXES else (name, "")
