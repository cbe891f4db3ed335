"""Exact replacements: several edits in order, all or none, byte for byte outside what they replace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from wenchang.files.errors import EditMatchError, InvalidArgumentError, LimitExceededError

__all__ = ["MAX_EDITS", "MAX_REPLACEMENTS", "Edit", "apply_edits", "count_occurrences"]

MAX_EDITS: Final = 20
MAX_REPLACEMENTS: Final = 100_000
"""Replacements in one call, summed over its edits."""
_MAX_EDITED_CHARS: Final = 16 * 1024 * 1024
"""What edits may make a text grow to, more than any file can hold: many long replacements of few
characters would fill the memory before the limit of the files is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Replace `old_text`, literally, by `new_text`: the one occurrence, or all of them."""

    old_text: str
    new_text: str
    replace_all: bool = False


def apply_edits(path: str, text: str, edits: Sequence[Edit]) -> tuple[str, int]:
    """Apply the edits in order, each to what the ones before it left.

    Returns the new text and the number of replacements. Raises `InvalidArgumentError` for 0 or more
    than 20 edits or an empty `old_text`, `EditMatchError` (with the edit's index and the occurrences
    found) and `LimitExceededError` above 100,000 replacements or for a text that would grow to more
    than any file can hold; then nothing is applied.
    """
    if not 1 <= len(edits) <= MAX_EDITS:
        raise InvalidArgumentError("edits", f"a call takes 1 to {MAX_EDITS} edits")
    total = 0
    for index, edit in enumerate(edits):
        if not edit.old_text:
            raise InvalidArgumentError("edits", f"oldText of edit {index} must not be empty")
        count = (
            text.count(edit.old_text)
            if edit.replace_all
            else count_occurrences(text, edit.old_text)
        )
        if count == 0 or (count > 1 and not edit.replace_all):
            raise EditMatchError(path, index, count)
        total += count
        if total > MAX_REPLACEMENTS:
            raise LimitExceededError(
                "replacements",
                total,
                MAX_REPLACEMENTS,
                f"The edits would replace more than {MAX_REPLACEMENTS} occurrences. "
                "Rewrite the file with file_write instead.",
            )
        grown = count * (len(edit.new_text) - len(edit.old_text))
        if grown > 0 and len(text) + grown > _MAX_EDITED_CHARS:
            raise LimitExceededError("maxFileBytes", len(text) + grown, _MAX_EDITED_CHARS)
        text = text.replace(edit.old_text, edit.new_text)
    return text, total


def count_occurrences(text: str, wanted: str) -> int:
    """Count the positions at which a non-empty `wanted` stands, overlapping ones included.

    Linear in both lengths. The usual answers, none and one, take no more than two plain searches.
    """
    first = text.find(wanted)
    if first < 0:
        return 0
    if text.find(wanted, first + 1) < 0:
        return 1
    borders = _borders(wanted)
    count = matched = 0
    for char in text[first:]:
        while matched and (matched == len(wanted) or char != wanted[matched]):
            matched = borders[matched - 1]
        if char == wanted[matched]:
            matched += 1
        if matched == len(wanted):
            count += 1
    return count


def _borders(wanted: str) -> list[int]:
    """Return for each prefix the length of its longest proper prefix that is also its suffix."""
    borders = [0] * len(wanted)
    length = 0
    for position in range(1, len(wanted)):
        while length and wanted[position] != wanted[length]:
            length = borders[length - 1]
        if wanted[position] == wanted[length]:
            length += 1
        borders[position] = length
    return borders
