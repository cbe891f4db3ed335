"""Which areas and file names an agent may use, and what to suggest for the others.

Two names that look the same must not be two files, so a name holds nothing that cannot be seen and
comes in one normal form. Areas are plain slugs: `system` is matched by its exact spelling, and a
look-alike of it must never be writable.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from wenchang.paths import MAX_SEGMENT_BYTES, is_area_slug, segment_problem

__all__ = [
    "area_problem",
    "is_hidden",
    "name_problem",
    "suggest_area",
    "suggest_name",
]

_HIDDEN_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# Default_Ignorable_Code_Point of the Unicode character database, which `unicodedata` does not have.
_DEFAULT_IGNORABLE: Final = (
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)
_BRAILLE_BLANK: Final = 0x2800
_ASCII_EXCEPT_CONTROLS: Final = re.compile(r"[\x20-\x7e]*")


def is_hidden(character: str) -> bool:
    """Tell whether a name may not hold this character: invisible, a separator, a noncharacter.

    The space U+0020 is the only separator that passes.
    """
    code = ord(character)
    category = unicodedata.category(character)
    return (
        category in _HIDDEN_CATEGORIES
        or (category == "Zs" and character != " ")
        or code == _BRAILLE_BLANK
        or 0xFDD0 <= code <= 0xFDEF
        or code & 0xFFFE == 0xFFFE
        or any(first <= code <= last for first, last in _DEFAULT_IGNORABLE)
    )


def name_problem(name: str) -> str | None:
    """Name the rule about characters that `name`, a valid path segment, breaks; None if it breaks none."""
    if not _ASCII_EXCEPT_CONTROLS.fullmatch(name):
        for character in name:
            if is_hidden(character):
                return (
                    f"it holds U+{ord(character):04X}, which is invisible, a separator "
                    "or no character"
                )
        if not unicodedata.is_normalized("NFC", name):
            return "it is not in Unicode normalization form C"
    if name != name.strip(" "):
        return "it begins or ends with a space"
    return None


def area_problem(area: str) -> str | None:
    """Say why `area` is no area, or None if it is one."""
    if is_area_slug(area):
        return None
    return (
        "an area is made of lower-case letters a-z, digits, '-' and '_', "
        "and begins with a letter or a digit"
    )


def suggest_name(name: str) -> str | None:
    """Return an accepted spelling close to `name`, or None where nothing is left of it."""
    visible = "".join(
        " " if unicodedata.category(character) == "Zs" else character
        for character in name.replace("/", "-").replace("\\", "-")
    )
    normal = unicodedata.normalize("NFC", _drop_hidden(visible))
    spelling = _shorten(_drop_hidden(normal).strip(" ")).strip(" ")
    valid = segment_problem(spelling) is None and name_problem(spelling) is None
    return spelling if valid else None


def suggest_area(area: str) -> str | None:
    """Return an accepted spelling close to `area`, or None where nothing is left of it."""
    folded = unicodedata.normalize("NFKD", _drop_hidden(area)).casefold()
    ascii_only = folded.encode("ascii", "ignore").decode("ascii")
    slug = re.sub(r"[^a-z0-9_-]+", "-", ascii_only.strip()).strip("-_")
    return slug[:MAX_SEGMENT_BYTES] or None


def _drop_hidden(text: str) -> str:
    return "".join(character for character in text if not is_hidden(character))


def _shorten(text: str) -> str:
    """Cut at a character boundary to what a segment may hold, keeping it in normal form C."""
    encoded = text.encode()
    if len(encoded) <= MAX_SEGMENT_BYTES:
        return text
    return encoded[:MAX_SEGMENT_BYTES].decode(errors="ignore")
