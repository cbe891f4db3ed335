"""Pages: immutable runs of records in path order, and how a run is cut into pages.

A page is lines of JSON: a header, then one line for each record. The root knows of each page its
first path, its key and sums that answer questions without reading it (`PageRef`).
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

from wenchang.files._pack import pack, unpack
from wenchang.files._records import Record, decode_record, encode_record
from wenchang.files.errors import TreeStateError

__all__ = [
    "Page",
    "PageRef",
    "Sums",
    "cut",
    "decode_page",
    "encode_page",
    "encode_records",
    "inline_ref",
    "sums_of",
]

_by_path: Final = itemgetter(0)


class Sums(NamedTuple):
    """What is known of a run of records. `files` counts live ones; the next four are of those.

    `weight` is the size of the records' lines, `past` the charge of the past states, `oldest` the time
    of the oldest past state (0: none).
    """

    records: int = 0
    files: int = 0
    bytes: int = 0
    newest: int = 0
    deepest: int = 0
    largest: int = 0
    weight: int = 0
    past: int = 0
    oldest: int = 0


class PageRef(NamedTuple):
    """A page as the root lists it. The key is empty where the records stand in the root itself."""

    first: str
    key: str
    sums: Sums

    @property
    def newest(self) -> int:
        """The latest modification of a live file."""
        return self.sums.newest

    @property
    def files(self) -> int:
        """The number of live files."""
        return self.sums.files


class Page:
    """Records in path order. Never changes."""

    __slots__ = ("records",)

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = tuple(records)

    def find(self, path: str) -> Record | None:
        """Return the record of exactly this path."""
        at = bisect_left(self.records, path, key=_by_path)
        if at < len(self.records) and self.records[at].path == path:
            return self.records[at]
        return None

    def between(self, low: str, high: str | None) -> Iterator[Record]:
        """Yield the records from `low` on and before `high`."""
        records = self.records
        for at in range(bisect_left(records, low, key=_by_path), len(records)):
            if high is not None and records[at].path >= high:
                return
            yield records[at]


def sums_of(records: Sequence[Record], weight: int) -> Sums:
    """Add up a run of records whose lines take `weight` bytes."""
    live = [record for record in records if record.key]
    sizes = [record.size for record in live]
    histories = [record.history for record in records if record.history]
    return Sums(
        records=len(records),
        files=len(live),
        bytes=sum(sizes),
        newest=max([record.modified for record in live], default=0),
        deepest=max([record.path.count("/") for record in live], default=0),
        largest=max(sizes, default=0),
        weight=weight,
        past=sum(state.charge for history in histories for state in history),
        oldest=min((history[-1].modified for history in histories), default=0),
    )


def inline_ref(page: Page, weight: int = 0) -> PageRef:
    """Return the ref of records that stand in the root itself."""
    return PageRef(page.records[0].path, "", sums_of(page.records, weight))


def encode_page(lines: Sequence[bytes], incarnation: str) -> bytes:
    """Return the object of a page whose records have these lines."""
    header = json.dumps({"format": 1, "kind": "page", "incarnation": incarnation})
    return pack(b"\n".join([header.encode(), *lines, b""]))


def decode_page(data: bytes) -> Page:
    """Return the page; `TreeStateError` where it is none."""
    try:
        header, *lines = unpack(data).decode().split("\n")
        incarnation = json.loads(header)["incarnation"]
        rows: list[list[Any]] = json.loads("[" + ",".join(lines[:-1]) + "]")
        return Page([decode_record(row, incarnation) for row in rows])
    except (ValueError, TypeError, KeyError, AttributeError, IndexError):
        raise TreeStateError("unreadable_page") from None


def encode_records(records: Sequence[Record], incarnation: str) -> list[bytes]:
    """Return the lines of a run of records."""
    return [encode_record(record, incarnation) for record in records]


def cut(weights: Sequence[int], most: int, most_bytes: int) -> list[slice]:
    """Cut a run into pages of about the same size that keep both bounds.

    A record that passes the bound in bytes alone gets a page of its own.
    """
    total = sum(weights)
    pieces = max(1, -(-len(weights) // most), -(-total // most_bytes))
    target = -(-total // pieces)
    goal = -(-len(weights) // pieces)
    cuts: list[slice] = []
    start = size = 0
    for at, weight in enumerate(weights):
        count = at - start
        full = count >= most or size + weight > most_bytes
        if count and (full or size >= target or (count >= goal and size + weight > target)):
            cuts.append(slice(start, at))
            start, size = at, 0
        size += weight
    cuts.append(slice(start, len(weights)))
    if len(cuts) > 1:
        # What is left for the last piece may be no more than a record.
        cuts[-2:] = _level(weights, cuts[-2], cuts[-1], most, most_bytes, join=len(cuts) > pieces)
    return cuts


def _level(
    weights: Sequence[int], left: slice, right: slice, most: int, most_bytes: int, *, join: bool
) -> list[slice]:
    """Cut two pieces anew where the fuller of both is least full; with `join` into one if that fits."""
    start, stop = left.start, right.stop
    total = sum(weights[start:stop])
    if join and stop - start <= most and total <= most_bytes:
        return [slice(start, stop)]
    size = 0
    fullest: dict[int, float] = {}
    for at in range(start + 1, stop):
        size += weights[at - 1]
        records = max(at - start, stop - at)
        fullest[at] = max(records / most, max(size, total - size) / most_bytes)
    if fullest[right.start] > 1:
        # A record that is too large by itself stays by itself.
        return [left, right]
    best = min(fullest, key=lambda at: fullest[at])
    return [slice(start, best), slice(best, stop)]
