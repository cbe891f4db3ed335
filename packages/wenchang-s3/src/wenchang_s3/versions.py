"""Versions: what an ETag must look like, and what a version says besides it.

A version is the ETag without its quotes. An object that a later release wrote has more to say, and
says it here so that a conditional write needs no look first:

- `etag:wN`: only writers of format N or later may replace or delete the object;
- `etag:x`: it holds fields that this release does not know and has to keep.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from wenchang.storage import StorageRejectedError
from wenchang.storage.envelope import FORMAT, Envelope, Head

__all__ = ["Version", "etag_of", "listed_etag", "parse_version", "version_of"]

# No '*' and no ',': servers give both a meaning of their own in a condition, some even within quotes.
# No ':', which begins what is added here.
_BARE: Final = r"[!#-)+\x2d-9;-~]{1,200}"
_ETAG: Final = re.compile(f'"({_BARE})"')
_LISTED: Final = re.compile(f'"?({_BARE})"?')
_VERSION: Final = re.compile(
    f"(?P<etag>{_BARE})(?::(?:w(?P<writer>[1-9][0-9]{{0,6}})|(?P<extra>x)))?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A version taken apart."""

    etag: str
    """Without quotes."""
    min_writer: int = FORMAT
    has_extra: bool = False

    def check_writable(self) -> None:
        """Raise `StorageRejectedError` if only a later release may write over this version."""
        if self.min_writer > FORMAT:
            raise StorageRejectedError(
                "unsupported",
                f"only writers of format {self.min_writer} may replace the stored object and this "
                f"release writes format {FORMAT}; upgrade wenchang in every process that writes here",
            )


def etag_of(header: object) -> str | None:
    """Return the ETag in an answer's header without its quotes; None for a missing or torn one."""
    match = _ETAG.fullmatch(header) if isinstance(header, str) else None
    return None if match is None else match[1]


def listed_etag(text: object) -> str | None:
    """Return the ETag in a listing without the quotes that not every server puts there."""
    match = _LISTED.fullmatch(text) if isinstance(text, str) else None
    return None if match is None else match[1]


def version_of(etag: str, stored: Envelope | Head | None) -> str:
    """Return the version of an object at `etag`; `stored` is None where it has no block."""
    if stored is not None and stored.min_writer > FORMAT:
        return f"{etag}:w{stored.min_writer}"
    if stored is not None and stored.extra:
        return f"{etag}:x"
    return etag


def parse_version(version: str) -> Version | None:
    """Take a version apart; None for one that this backend can never have issued."""
    match = _VERSION.fullmatch(version) if len(version) <= 256 else None
    if match is None:
        return None
    return Version(
        etag=match["etag"],
        min_writer=int(match["writer"] or FORMAT),
        has_extra=match["extra"] is not None,
    )
