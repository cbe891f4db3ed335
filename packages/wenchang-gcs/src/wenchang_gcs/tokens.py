"""The version token: what of an object's state a write has to name.

The generation alone is the token of an object that nobody touched past us. A metadata patch changes
only the metageneration, so one that is not 1 is part of the token too. An object that only a newer
release may replace says so in its token, which spares a read before each write.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

__all__ = ["Token", "parse_token"]

_FORM: Final = re.compile(
    r"(?P<generation>[1-9][0-9]{0,18})(?:\.(?P<meta>[1-9][0-9]{0,18}))?(?::w(?P<writer>[1-9][0-9]{0,5}))?",
    re.ASCII,
)
_MAX_INT64: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A parsed version."""

    generation: int
    metageneration: int = 1
    min_writer: int = 1

    def __str__(self) -> str:
        """Return the text that callers hold."""
        meta = "" if self.metageneration == 1 else f".{self.metageneration}"
        writer = "" if self.min_writer == 1 else f":w{self.min_writer}"
        return f"{self.generation}{meta}{writer}"


def parse_token(text: str) -> Token | None:
    """Return the token that `text` is, or None when this backend never wrote such a text."""
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    token = Token(
        generation=int(match["generation"]),
        metageneration=int(match["meta"] or 1),
        min_writer=int(match["writer"] or 1),
    )
    # One token has one text: `7.1` is not another spelling of `7`.
    known = max(token.generation, token.metageneration) <= _MAX_INT64
    return token if known and str(token) == text else None
