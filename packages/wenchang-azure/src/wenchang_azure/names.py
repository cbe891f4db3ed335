"""Blob names: keys spelled so that every order the service may use is the order of the keys.

Blob Storage lists by UTF-16 code units, which puts astral characters before U+E000..U+FFFF; the
contract wants code points. A name therefore holds no character above U+E001:

- a code point below U+E000 stands for itself;
- c in U+E000..U+FFFF is U+E000 and chr(0x1000 + c - 0xE000);
- an astral c, n = c - 0x10000, is U+E001, chr(0x1000 + (n >> 10)) and chr(0x1000 + (n & 0x3FF)).

So names sort alike by UTF-16, by UTF-8 and by code point, and the spelling of a prefix is a prefix
of the spelling. Three bytes of UTF-8 become at most two characters and four become three, so a key
of 900 bytes under a prefix of 124 stays within the 1,024 characters of a blob name. Common text of
any living language is spelled as it is.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["MAX_NAME_CHARACTERS", "decode_name", "encode_name"]

MAX_NAME_CHARACTERS: Final = 1024
"""Characters in a blob name."""

_HIGH: Final = 0xE000
_ASTRAL: Final = 0x10000
_BASE: Final = 0x1000
_PAIR: Final = "\ue000"
_TRIPLE: Final = "\ue001"
_SPELLED: Final = re.compile("[\ue000-\U0010ffff]")
_SPELLING: Final = re.compile(
    "\ue000([\u1000-\u2fff])|\ue001([\u1000-\u13ff])([\u1000-\u13ff])|[\ue000-\U0010ffff]"
)


class _NoSpellingError(ValueError):
    """A name that no key is spelled as."""


def encode_name(text: str) -> str:
    """Return the spelling of a key, or of any part of one."""
    return text if text.isascii() else _SPELLED.sub(_spell, text)


def decode_name(name: str) -> str | None:
    """Return the text that `name` spells, or None for a name that no text is spelled as."""
    if name.isascii():
        return name
    try:
        return _SPELLING.sub(_read, name)
    except _NoSpellingError:
        return None


def _spell(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < _ASTRAL:
        return _PAIR + chr(_BASE + code - _HIGH)
    number = code - _ASTRAL
    return _TRIPLE + chr(_BASE + (number >> 10)) + chr(_BASE + (number & 0x3FF))


def _read(match: re.Match[str]) -> str:
    low, first, second = match.groups()
    if low is not None:
        return chr(_HIGH + ord(low) - _BASE)
    if first is not None:
        return chr(_ASTRAL + ((ord(first) - _BASE) << 10) + ord(second) - _BASE)
    raise _NoSpellingError
