"""The order of the memory index, what an entry costs, and where the budget ends.

Pure functions: `MemoryStore.get_memory_index` lists, these arrange. An entry costs what the agent
pays for it, which is the UTF-8 bytes of its compact JSON in the result.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final

from wenchang.metadata import EPOCH
from wenchang.paths import build_prefix, parse_path
from wenchang.records import CappedPrefix, FileEntry, MemoryIndex, render_entry

__all__ = ["INDEX_SYSTEM_AREA", "cap_entries", "index_entry_bytes", "order_entries"]

INDEX_SYSTEM_AREA: Final = "system"
"""The area whose entries lead the index; equal to `wenchang.scope.SYSTEM_AREA`."""

_BRACKETS: Final = len("[]")
_COMMA: Final = len(",")
_MICROSECOND: Final = timedelta(microseconds=1)


def index_entry_bytes(entry: FileEntry) -> int:
    """Return what an entry takes of the index budget.

    It is the UTF-8 length of `render_entry(entry)` as JSON without spaces, characters outside ASCII
    not escaped. The list of entries adds two bytes for its brackets and one for each comma.
    """
    text = json.dumps(render_entry(entry), ensure_ascii=False, separators=(",", ":"))
    # A version or a path that no storage gives could hold a lone surrogate; it has a size too.
    return len(text.encode("utf-8", "surrogatepass"))


def order_entries(
    entries: Iterable[FileEntry], scope_priority: Sequence[str] = ()
) -> list[FileEntry]:
    """Return the entries in index order.

    First the system areas of all scopes; then the scopes of `scope_priority` in turn; then all other
    scopes as one tier. Within a tier the newest comes first, and equal times are in path order.
    """
    tiers = {scope: tier for tier, scope in enumerate(scope_priority, start=1)}

    def position(entry: FileEntry) -> tuple[int, int, str]:
        parts = parse_path(entry.path)
        system = parts.area == INDEX_SYSTEM_AREA
        tier = 0 if system else tiers.get(parts.scope, len(tiers) + 1)
        age = (EPOCH - entry.metadata.last_updated) // _MICROSECOND
        return (tier, age, entry.path)

    return sorted(entries, key=position)


def cap_entries(ordered: Sequence[FileEntry], max_bytes: int) -> MemoryIndex:
    """Return as many of the ordered entries as fit, and count the others by area.

    The compact JSON of the entries, brackets and commas included, is at most `max_bytes`. The walk
    ends at the first entry that does not fit into what is left; only one that is larger than the
    whole budget is passed over, so that it does not hide all that follows. Rows are in prefix order.
    """
    kept: list[FileEntry] = []
    left = max_bytes - _BRACKETS
    omitted: Counter[str] = Counter()
    full = False
    for entry in ordered:
        if not full:
            size = index_entry_bytes(entry)
            cost = size + (_COMMA if kept else 0)
            if cost <= left:
                kept.append(entry)
                left -= cost
                continue
            full = size <= max_bytes - _BRACKETS
        parts = parse_path(entry.path)
        omitted[build_prefix(parts.scope, parts.entity_id, parts.area)] += 1
    rows = tuple(CappedPrefix(prefix, omitted[prefix]) for prefix in sorted(omitted))
    return MemoryIndex(tuple(kept), rows)
