"""The version token: what of an object's state a write has to name.

The generation alone is the token of an object that nobody touched past us. A metadata patch changes
only the metageneration, so one that is not 1 is part of the token too. An object that only a newer
release may replace says so in its token (`:w2`), and so does one with marks that this release does
not know and has to keep (`:x`): that spares all others a read before each write.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

__all__ = ["Token", "parse_token"]

_FORM: Final = re.compile(
    r"(?P<generation>[1-9][0-9]{0,18})"
    r"(?:\.(?P<metageneration>[1-9][0-9]{0,18}))?"
    r"(?::w(?P<writer>[1-9][0-9]{0,5}))?"
    r"(?P<extra>:x)?"
)
_MAX_INT64: Final = 2**63 - 1
_USUAL: Final = (1, 1, False)
"""All but the generation, of an object that nobody touched past us."""


class Token(NamedTuple):
    """A parsed version. A tuple, as are marks and heads: a listing makes a thousand of each."""

    generation: int
    metageneration: int = 1
    min_writer: int = 1
    """The oldest format whose writers may replace or delete the object."""
    extra: bool = False
    """The object has marks that this release does not know."""

    def __str__(self) -> str:
        """Return the text that callers hold."""
        if self[1:] == _USUAL:
            return str(self.generation)
        metageneration = "" if self.metageneration == 1 else f".{self.metageneration}"
        writer = "" if self.min_writer == 1 else f":w{self.min_writer}"
        return f"{self.generation}{metageneration}{writer}{':x' if self.extra else ''}"


def parse_token(text: str) -> Token | None:
    """Return the token that `text` is, or None when this backend never wrote such a text."""
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    token = Token(
        generation=int(match["generation"]),
        metageneration=int(match["metageneration"] or 1),
        min_writer=int(match["writer"] or 1),
        extra=match["extra"] is not None,
    )
    known = max(token.generation, token.metageneration) <= _MAX_INT64
    # One token has one text: `7.1` is not another spelling of `7`.
    return token if known and str(token) == text else None
