"""Versions: the service's ETag without its quotes, and what a later release asks us to heed.

An ETag is quoted in the answers to reads and writes and bare in a listing. Callers get one form.
The head of an answer that ended early can cut an ETag short, so an answer counts only with a whole
one.

Two kinds of objects of later releases say so in their version, which spares a look at the object
before each conditional write: `:w2` means that only writers of format 2 or newer may change it, `:x`
that it carries fields which this release does not know and has to keep.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

__all__ = ["Token", "bare_etag", "parse_token", "quoted_etag"]

_HEX: Final = "0x[0-9A-F]{1,32}"
_QUOTED: Final = re.compile(f'"({_HEX})"')
_BARE: Final = re.compile(_HEX)
_TOKEN: Final = re.compile(rf"(?P<etag>{_HEX})(?::w(?P<writer>[1-9][0-9]{{0,2}})|(?P<extra>:x))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A version, taken apart."""

    etag: str
    """The ETag without quotes."""
    min_writer: int = 1
    """The oldest format whose writers may change the object."""
    has_extra: bool = False
    """The object carries fields of a newer format."""

    def __str__(self) -> str:
        """Return the version as callers hold it."""
        if self.min_writer > 1:
            return f"{self.etag}:w{self.min_writer}"
        return f"{self.etag}:x" if self.has_extra else self.etag

    @property
    def condition(self) -> str:
        """The value of `If-Match`."""
        return f'"{self.etag}"'


def parse_token(version: str) -> Token | None:
    """Take a version apart; None for one that this backend cannot have issued."""
    match = _TOKEN.fullmatch(version)
    if match is None:
        return None
    writer = int(match["writer"] or 1)
    token = Token(etag=match["etag"], min_writer=writer, has_extra=match["extra"] is not None)
    # ":w1" is a spelling that is never issued.
    return token if str(token) == version else None


def quoted_etag(value: object) -> str | None:
    """Return the ETag in the header of an answer, without its quotes; None unless it is whole."""
    match = _QUOTED.fullmatch(value) if isinstance(value, str) else None
    return match[1] if match else None


def bare_etag(value: object) -> str | None:
    """Return the ETag of an entry in a listing, which may or may not be quoted; None if it is none."""
    if isinstance(value, str) and _BARE.fullmatch(value):
        return value
    return quoted_etag(value)
