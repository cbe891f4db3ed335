"""Listing cursors: where a page ended, bound to the listing that it belongs to.

A cursor is a format byte, the position, and a digest over format, binding and position. The binding
(the prefix, say) is not in it, so a cursor shows nothing of it, and fits no other listing. There is
no secret: access is checked anew at each call, so a forged cursor gains nothing, and cursors stay valid
across workers, restarts and upgrades.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Final

__all__ = ["MAX_CURSOR_CHARS", "MEMORY_LISTING", "decode_cursor", "encode_cursor"]

MAX_CURSOR_CHARS: Final = 1_400
"""Characters in a cursor of memory files: a format byte, a position of 900 bytes and a digest stay below it."""
MEMORY_LISTING: Final = 1
"""The format byte of `MemoryStore.list_prefix`. Other listings take other bytes."""

_DIGEST_BYTES: Final = 16


def encode_cursor(form: int, binding: str, position: str) -> str:
    """Return the cursor for `position` in the listing that `binding` describes."""
    body = bytes([form]) + position.encode()
    return _to_text(body + _digest(form, binding, body[1:]))


def decode_cursor(
    form: int, binding: str, cursor: str, *, max_chars: int = MAX_CURSOR_CHARS
) -> str:
    """Return the position; ValueError unless `encode_cursor` made it for this form and binding."""
    body = _from_text(cursor) if len(cursor) <= max_chars else b""
    if len(body) > _DIGEST_BYTES and body[0] == form:
        position, digest = body[1:-_DIGEST_BYTES], body[-_DIGEST_BYTES:]
        if digest == _digest(form, binding, position):
            return position.decode()
    msg = "it is not a cursor of this listing"
    raise ValueError(msg)


def _digest(form: int, binding: str, position: bytes) -> bytes:
    """Return the digest; the binding's length goes before it so that no two inputs run together."""
    bound = binding.encode()
    head = bytes([form]) + len(bound).to_bytes(4, "big")
    return hashlib.sha256(head + bound + position).digest()[:_DIGEST_BYTES]


def _to_text(body: bytes) -> str:
    """Return URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(body).rstrip(b"=").decode("ascii")


def _from_text(cursor: str) -> bytes:
    """Return the bytes of exactly such a text, b"" for any other."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        body = base64.b64decode(padded, altchars=b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error):
        return b""
    # One position has one spelling: stray bits in the last character are refused too.
    return body if _to_text(body) == cursor else b""
