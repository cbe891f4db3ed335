"""What calls with effect keys came to, as it stands in the metadata of the file they changed.

A receipt is a JSON array: a hash of the effect key, and whatever its writer made of the outcome. It is
committed in the write that it is about, so there is never one without the other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from wenchang.metadata import RECEIPTS_KEY
from wenchang.storage.keys import MAX_METADATA_BYTES, metadata_size

__all__ = ["MAX_RECEIPTS", "Receipt", "fit_receipts", "receipts_metadata", "stored_receipts"]

Receipt: TypeAlias = Sequence[Any]

MAX_RECEIPTS: Final = 8
"""The newest ones of a file; older ones go."""


def stored_receipts(stored: Mapping[str, str]) -> tuple[Receipt, ...]:
    """Return the receipts in a stored map, the oldest first; none where they cannot be decoded."""
    try:
        rows = json.loads(stored.get(RECEIPTS_KEY, "[]"))
    except (ValueError, RecursionError):
        return ()
    if not isinstance(rows, list):
        return ()
    return tuple(row for row in rows if isinstance(row, list) and len(row) == 2)


def receipts_metadata(receipts: Sequence[Receipt]) -> dict[str, str]:
    """Return the stored form: one key, or none without receipts."""
    if not receipts:
        return {}
    return {RECEIPTS_KEY: json.dumps(list(receipts), separators=(",", ":"))}


def fit_receipts(receipts: Sequence[Receipt], beside: Mapping[str, str]) -> tuple[Receipt, ...]:
    """Return the newest receipts that there is room for beside the rest of a file's metadata."""
    kept = tuple(receipts)[-MAX_RECEIPTS:]
    while kept and metadata_size({**beside, **receipts_metadata(kept)}) > MAX_METADATA_BYTES:
        kept = kept[1:]
    return kept
