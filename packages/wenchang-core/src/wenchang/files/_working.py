"""The working state: a root that calls are decided on one after another before it is committed.

Pages are loaded as they are touched and copied before they change, so the root it began from stays as
it is. It knows nothing of the rules of calls (`_calls`) and sends nothing itself.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Final, TypeAlias

from wenchang.files._pages import Page, PageRef, cut, encode_page, encode_records, sums_of
from wenchang.files._receipts import (
    Receipt,
    ReceiptPage,
    encode_receipts,
    file_receipts,
    find_receipt,
)
from wenchang.files._records import Record
from wenchang.files._root import LOG_LENGTH, Root, random_name
from wenchang.files.policy import TreePolicy

__all__ = ["NewPage", "Planned", "Working"]

_by_path: Final = itemgetter(0)
_DAY: Final = 86_400_000_000
"""Microseconds."""
_Change: TypeAlias = "tuple[str, Record | None]"
_Built: TypeAlias = "PageRef | tuple[list[Record], list[bytes]]"
Mark: TypeAlias = "tuple[int, int, int, bool]"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPage:
    """A page to upload before the commit; one of receipts has no `page`."""

    key: str
    data: bytes
    page: Page | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What a commit would write: the root, the new pages, and the content keys that went and came."""

    root: Root
    pages: tuple[NewPage, ...]
    dropped: frozenset[str]
    """Keys of objects that the old root refers to and the new one does not."""
    contents: frozenset[str]
    """Keys of contents that the new root refers to and the old one does not."""


class Working:
    """A mutable view of one root. Used by one thread."""

    def __init__(
        self,
        root: Root,
        load: Callable[[PageRef], Page],
        load_receipts: Callable[[ReceiptPage], Sequence[Receipt]],
    ) -> None:
        self._old = root
        self._load = load
        self._load_receipts = load_receipts
        self.scope = root.scope
        self.incarnation = root.incarnation
        self.epoch = root.epoch
        self.number = root.number
        self.time = root.time
        self.receipts = list(root.receipts)
        self._receipt_pages = root.receipt_pages
        self._firsts = root.firsts or [""]
        self._refs: list[PageRef | None] = list(root.pages) or [None]
        # Slots whose records were copied, to be changed: number -> records.
        self._copies: dict[int, list[Record]] = {}
        self._journal: list[_Change] = []
        usage = root.usage()
        self.files = usage.files
        self.bytes = usage.bytes
        self.past = usage.history_bytes
        self.touched = False
        """Whether there is anything to commit."""

    # --- looking ---------------------------------------------------------------------------------

    def find(self, path: str) -> Record | None:
        """Return the record of a path, a deleted one with past states included."""
        slot = self._slot(path)
        records = self._records(slot)
        at = bisect_left(records, path, key=_by_path)
        return records[at] if at < len(records) and records[at].path == path else None

    def live_between(self, low: str, high: str) -> Iterator[Record]:
        """Yield the files from `low` on and before `high`. Nothing may be changed meanwhile."""
        for slot in range(self._slot(low), len(self._refs)):
            if slot and self._firsts[slot] >= high:
                return
            ref = self._refs[slot]
            if slot not in self._copies and ref is not None and not ref.files:
                continue
            records = self._records(slot)
            for at in range(bisect_left(records, low, key=_by_path), len(records)):
                if records[at].path >= high:
                    return
                if records[at].key:
                    yield records[at]

    def has_below(self, folder: str) -> bool:
        """Tell whether a file lies beneath a path."""
        return next(self.live_between(folder + "/", folder + "0"), None) is not None

    def has_neighbour_below(self, path: str, folder: str) -> bool:
        """Tell whether a file next to the place of `path` lies beneath `folder`; looks at one page only.

        False says nothing.
        """
        records = self._records(self._slot(path))
        at = bisect_left(records, path, key=_by_path)
        return any(
            record.key and record.path.startswith(folder + "/")
            for record in records[max(0, at - 1) : at + 2]
        )

    def find_receipt(self, key: str) -> Receipt | None:
        """Return the receipt of an effect key."""
        found = find_receipt(self.receipts, key)
        for page in reversed(self._receipt_pages):
            if found is not None:
                break
            found = find_receipt(self._load_receipts(page), key)
        return found

    def oldest_past(self) -> Record | None:
        """Return the record with the oldest past state of all; None where there is none."""
        best: tuple[int, int] | None = None
        for slot, ref in enumerate(self._refs):
            copy = self._copies.get(slot)
            oldest = _oldest(copy) if copy is not None else ref.sums.oldest if ref else 0
            if oldest and (best is None or oldest < best[0]):
                best = (oldest, slot)
        if best is None:
            return None
        dated = [record for record in self._records(best[1]) if record.history]
        return min(dated, key=lambda record: record.history[-1].modified, default=None)

    # --- changing --------------------------------------------------------------------------------

    def put(self, record: Record) -> None:
        """Put a record in the place of its path."""
        self._change(record.path, record)

    def remove(self, path: str) -> None:
        """Take the record of a path out."""
        self._change(path, None)

    def add_receipt(self, receipt: Receipt) -> None:
        """Keep a receipt."""
        self.receipts.append(receipt)
        self.touched = True

    def next_number(self) -> int:
        """Return the number of the next version token."""
        self.number += 1
        return self.number

    def erase(self, above: int) -> None:
        """Empty the tree under a new incarnation and an epoch over `above`; nothing else may follow."""
        self.incarnation = random_name()
        self.epoch = max(self.epoch, above) + 1
        self._firsts = [""]
        self._refs = [None]
        self._copies = {}
        self.receipts, self._receipt_pages = [], ()
        self.files = self.bytes = self.past = 0
        self.touched = True

    def next_epoch(self) -> None:
        """Begin a new epoch, so that unreferenced objects of the old one can be told from new ones."""
        self.epoch += 1
        self.touched = True

    def mark(self) -> Mark:
        """Return a mark to go back to with `back_to`; it differs where something was changed."""
        return len(self._journal), self.number, len(self.receipts), self.touched

    def back_to(self, mark: Mark) -> None:
        """Undo everything since the mark."""
        changes, self.number, receipts, touched = mark
        for path, before in reversed(self._journal[changes:]):
            self._set(path, before)
        del self._journal[changes:]
        del self.receipts[receipts:]
        self.touched = touched

    def _change(self, path: str, record: Record | None) -> None:
        before = self._set(path, record)
        self._journal.append((path, before))
        self.touched = True

    def _set(self, path: str, record: Record | None) -> Record | None:
        """Put a record, or none, in the place of a path; return what was there."""
        slot = self._slot(path)
        records = self._copies.get(slot)
        if records is None:
            records = self._copies[slot] = list(self._records(slot))
        at = bisect_left(records, path, key=_by_path)
        before = records[at] if at < len(records) and records[at].path == path else None
        end = at if before is None else at + 1
        records[at:end] = [] if record is None else [record]
        for each, sign in ((before, -1), (record, 1)):
            if each is not None:
                self.past += sign * each.past_charge
                if each.key:
                    self.files += sign
                    self.bytes += sign * each.size
        return before

    def _slot(self, path: str) -> int:
        return max(0, bisect_right(self._firsts, path) - 1)

    def _records(self, slot: int) -> Sequence[Record]:
        copy = self._copies.get(slot)
        if copy is not None:
            return copy
        ref = self._refs[slot]
        return () if ref is None else self._load(ref).records

    # --- planning the commit ---------------------------------------------------------------------

    def plan(self, commit_id: str, policy: TreePolicy, new_key: Callable[[], str]) -> Planned:
        """Return what to write. The working state can go on being used, and planned again."""
        receipt_pages, receipts, filed = self._file_receipts(policy, new_key)
        built = self._build(policy)
        refs: list[PageRef] = []
        pages: list[NewPage] = []
        inline = self._inline(built, policy)
        if inline is not None:
            if inline.records:
                refs.append(PageRef(inline.records[0].path, "", sums_of(inline.records, 0)))
        else:
            for each in built:
                if isinstance(each, PageRef):
                    refs.append(each)
                    continue
                for records, lines in _pieces(*each, policy):
                    page = NewPage(
                        key=new_key(),
                        data=encode_page(lines, self.incarnation),
                        page=Page(records),
                    )
                    sums = sums_of(records, _weight(lines))
                    refs.append(PageRef(records[0].path, page.key, sums))
                    pages.append(page)
        root = replace(
            self._old,
            incarnation=self.incarnation,
            epoch=self.epoch,
            seq=self._old.seq + 1,
            number=self.number,
            time=self.time,
            log=(commit_id, *self._old.log)[:LOG_LENGTH],
            receipts=receipts,
            receipt_pages=receipt_pages,
            pages=tuple(refs),
            inline=inline if inline is not None and inline.records else None,
        )
        gone, come = self._contents_changed()
        return Planned(
            root=root,
            pages=(*pages, *filed),
            dropped=frozenset(gone | (_page_keys(self._old) - _page_keys(root))),
            contents=frozenset(come),
        )

    def _file_receipts(
        self, policy: TreePolicy, new_key: Callable[[], str]
    ) -> tuple[tuple[ReceiptPage, ...], tuple[Receipt, ...], tuple[NewPage, ...]]:
        """Return the receipt pages and receipts for the root, and the page to upload if there is one."""
        filed = file_receipts(
            self.receipts,
            self._receipt_pages,
            in_root=policy.receipts_in_root,
            kept=policy.receipts_kept,
            not_before=self.time - int(policy.receipt_days * _DAY),
        )
        if not filed.moved:
            return filed.pages, filed.receipts, ()
        rows = [receipt for page in filed.merged for receipt in self._load_receipts(page)]
        rows.extend(filed.moved)
        new = NewPage(key=new_key(), data=encode_receipts(rows), page=None)
        listed = ReceiptPage(new.key, filed.level, len(rows), max(row.time for row in rows))
        return (*filed.pages, listed), filed.receipts, (new,)

    def _contents_changed(self) -> tuple[set[str], set[str]]:
        """Return the content keys that went and those that came."""
        first: dict[str, Record | None] = {}
        for path, before in self._journal:
            first.setdefault(path, before)
        gone = {key for record in first.values() if record is not None for key in record.all_keys()}
        come: set[str] = set()
        for path in first:
            record = self.find(path)
            if record is not None:
                come.update(record.all_keys())
        return gone - come, come - gone

    def _build(self, policy: TreePolicy) -> list[_Built]:
        """Return the unchanged pages and the changed runs in order, small runs joined with a neighbour."""
        built: list[_Built] = []
        for slot, ref in enumerate(self._refs):
            if slot not in self._copies and ref is not None and ref.key:
                built.append(ref)
                continue
            records = list(self._records(slot))
            if records:
                built.append((records, encode_records(records, self.incarnation)))
        at = 0
        while at < len(built):
            joined = self._join(built, at, policy)
            at = max(0, joined - 1) if joined is not None else at + 1
        return built

    def _join(self, built: list[_Built], at: int, policy: TreePolicy) -> int | None:
        """Join a small changed run with a neighbour if both fit well into a page; return its place."""
        run = built[at]
        if isinstance(run, PageRef) or len(built) == 1:
            return None
        records, weight = len(run[0]), _weight(run[1])
        if records * 4 > policy.page_entries or weight * 4 > policy.page_bytes:
            return None
        for other in (at - 1, at + 1):
            if not 0 <= other < len(built):
                continue
            more, weighs = _size(built[other])
            fits = (records + more) * 4 <= policy.page_entries * 3
            if fits and (weight + weighs) * 4 <= policy.page_bytes * 3:
                low = min(at, other)
                left, right = self._opened(built[low]), self._opened(built[low + 1])
                built[low : low + 2] = [(left[0] + right[0], left[1] + right[1])]
                return low
        return None

    def _opened(self, run: _Built) -> tuple[list[Record], list[bytes]]:
        if isinstance(run, PageRef):
            records = list(self._load(run).records)
            return records, encode_records(records, self.incarnation)
        return run

    def _inline(self, built: Sequence[_Built], policy: TreePolicy) -> Page | None:
        """Return the one page that stands in the root, where the tree is small enough."""
        was_small = all(ref is None or not ref.key for ref in self._refs)
        # A tree that just had pages goes back into the root only once it is clearly small.
        share = 1 if was_small else 2
        records = weight = 0
        for run in built:
            more, weighs = _size(run)
            records, weight = records + more, weight + weighs
            if records * share > policy.inline_entries or weight * share > policy.inline_bytes:
                return None
        return Page([record for run in built for record in self._opened(run)[0]])


def _pieces(
    records: list[Record], lines: list[bytes], policy: TreePolicy
) -> Iterator[tuple[list[Record], list[bytes]]]:
    """Cut a run of records and their lines into pages."""
    weights = [len(line) + 1 for line in lines]
    for piece in cut(weights, policy.page_entries, policy.page_bytes):
        yield records[piece], lines[piece]


def _page_keys(root: Root) -> set[str]:
    """Return the keys of the pages that a root refers to."""
    keys = {ref.key for ref in root.pages if ref.key}
    return keys | {page.key for page in root.receipt_pages}


def _weight(lines: Sequence[bytes]) -> int:
    return sum(map(len, lines)) + len(lines)


def _size(run: _Built) -> tuple[int, int]:
    """Return records and weight of a run."""
    if isinstance(run, PageRef):
        return run.sums.records, run.sums.weight
    return len(run[0]), _weight(run[1])


def _oldest(records: Sequence[Record]) -> int:
    times = [record.history[-1].modified for record in records if record.history]
    return min(times, default=0)
