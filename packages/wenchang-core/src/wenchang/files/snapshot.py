"""`Snapshot`: a tree as one root describes it, with its pages read as they are needed."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import TypeVar

from wenchang.files._objects import Objects, RootState
from wenchang.files._pages import Page, PageRef
from wenchang.files._records import Record, to_datetime, to_micros
from wenchang.files.errors import NotFoundError, StaleSnapshotError, TreeStateError
from wenchang.files.limits import TreeLimits
from wenchang.files.paths import ROOT
from wenchang.files.texts import decode_text
from wenchang.files.values import FileEntry, FolderEntry, PastVersion, Usage

__all__ = ["Snapshot", "position", "read_repeatedly"]

_T = TypeVar("_T")
_ATTEMPTS = 4
"""One snapshot and three more after an object of it was missing."""


class Snapshot:
    """The tree at one moment. Paths given to its methods are canonical; `""` is the root.

    Every method that reads a page or content raises `StaleSnapshotError` where it has been removed
    since (use `FileTree.view`) and `BackendUnavailableError`. Order is code point order of the whole
    path, in which a folder stands as its path with a `/` at the end, just before what is in it.
    """

    def __init__(self, objects: Objects, state: RootState, limits: TreeLimits) -> None:
        self._objects = objects
        self._root = state.root
        self._version = state.version
        self.limits = limits

    @property
    def usage(self) -> Usage:
        """What the tree holds."""
        return self._root.usage()

    @property
    def version(self) -> str | None:
        """The storage version of the root; None for a tree that nothing was written to."""
        return self._version

    def lookup(self, path: str) -> FileEntry | FolderEntry | None:
        """Return what is at a path: the file, the folder, or None. The root is a folder."""
        if path == ROOT:
            return FolderEntry(path=ROOT)
        record = self._record(path)
        if record is not None and record.live:
            return self._entry(record)
        return FolderEntry(path=path) if self.has_folder(path) else None

    def has_folder(self, path: str) -> bool:
        """Tell whether a file lies beneath the path; the root is always a folder."""
        return path == ROOT or next(self._records(path + "/", path + "0"), None) is not None

    def walk(self, folder: str = ROOT, start_after: str | None = None) -> Iterator[FileEntry]:
        """Yield the files at any depth below a folder, those after the path `start_after` only.

        A `start_after` that ends in `/` stands for the folder's place in the order.
        """
        low, high = _range_below(folder)
        if start_after is not None and start_after >= low:
            low = start_after + "\0"
        for record in self._records(low, high):
            yield self._entry(record)

    def children(
        self, folder: str = ROOT, start_after: str | None = None, *, depth: int = 1
    ) -> Iterator[FileEntry | FolderEntry]:
        """Yield the entries of a folder, down to `depth` levels below it.

        With `start_after`, the path of an entry yielded before (with a `/` at its end if it was a
        folder; `position` makes it), only those after it. Pages inside folders that are not opened
        are not read.
        """
        low, high = _range_below(folder)
        last = low if start_after is None else start_after
        position = max(low, last)
        while True:
            record = next(self._records(position, high), None)
            if record is None:
                return
            names = record.path[len(low) :].split("/")
            for count in range(1, min(len(names), depth + 1)):
                shown = low + "/".join(names[:count]) + "/"
                if shown > last:
                    last = shown
                    yield FolderEntry(path=shown[:-1])
            if len(names) <= depth:
                if record.path > last:
                    last = record.path
                    yield self._entry(record)
                position = record.path + "\0"
            else:
                # Past everything in the folder that is not opened: "0" is what follows "/".
                position = low + "/".join(names[:depth]) + "0"

    def walk_modified(
        self, folder: str = ROOT, start_after: tuple[datetime, str] | None = None
    ) -> Iterator[FileEntry]:
        """Yield the files below a folder, the latest modified first, ties by path.

        `start_after` is time and path of an entry yielded before. A page is read only when nothing
        read so far can beat its newest entry.
        """
        low, high = _range_below(folder)
        after = None if start_after is None else (-to_micros(start_after[0]), start_after[1])
        pages = [
            (-ref.newest, number)
            for number, ref in enumerate(self._root.pages)
            if ref.files and self._root.page_overlaps(number, low, high)
        ]
        heapq.heapify(pages)
        ready: list[tuple[int, str, Record]] = []
        while pages or ready:
            # A page whose newest entry is as new as the best one known may hold one that ties with it.
            while pages and (not ready or pages[0][0] <= ready[0][0]):
                _, number = heapq.heappop(pages)
                for record in self._page(self._root.pages[number]).between(low, high):
                    place = (-record.modified, record.path)
                    if record.live and (after is None or place > after):
                        heapq.heappush(ready, (*place, record))
            if ready:
                yield self._entry(heapq.heappop(ready)[2])

    def count_entries(self, folder: str) -> int:
        """Count the direct entries of a folder."""
        return sum(1 for _ in self.children(folder))

    def states(self, path: str, oldest: int) -> tuple[PastVersion, ...]:
        """Return the current and the kept past states of a path, the newest first.

        Past states written before `oldest` (microseconds) are left out: they may go at any moment.
        """
        record = self._record(path)
        if record is None:
            return ()
        kept = [past for past in record.history if past.modified >= oldest]
        states = [record.state(), *kept] if record.live else kept
        return tuple(
            PastVersion(
                version=self._root.token(state.number),
                size=state.size,
                lines=state.lines,
                modified=to_datetime(state.modified),
                source=state.source,
                current=record.live and index == 0,
            )
            for index, state in enumerate(states)
        )

    def read_past(self, path: str, version: str) -> str:
        """Return the text of one state of a path; `NotFoundError` where it is not kept."""
        record = self._record(path)
        states = () if record is None else (record.state(), *record.history)
        for state in states:
            if state.key and self._root.token(state.number) == version:
                return decode_text(self._objects.content(state.key))
        raise NotFoundError(path, f"No version {version} of {path} is kept.")

    def read_bytes(self, entry: FileEntry) -> bytes:
        """Return the content of a file of this snapshot, exactly as stored."""
        return self._objects.content(entry.key)

    def read(self, entry: FileEntry) -> str:
        """Return the text of a file of this snapshot; `TreeStateError` where it is not UTF-8."""
        return decode_text(self.read_bytes(entry))

    def read_many(self, entries: Iterable[FileEntry]) -> Iterator[tuple[FileEntry, str]]:
        """Yield each entry with its text, in order, reading a bounded number ahead in parallel.

        The entries may be a lazy iterator; it is taken at most `TreePolicy.parallel` ahead.
        """
        for entry, data in self._objects.contents(entries, lambda entry: entry.key):
            yield entry, decode_text(data)

    def _entry(self, record: Record) -> FileEntry:
        return FileEntry(
            path=record.path,
            size=record.size,
            lines=record.lines,
            version=self._root.token(record.number),
            modified=to_datetime(record.modified),
            source=record.source,
            key=record.key,
        )

    def _record(self, path: str) -> Record | None:
        ref = self._root.page_for(path)
        return None if ref is None else self._page(ref).find(path)

    def _records(self, low: str, high: str | None) -> Iterator[Record]:
        """Yield the live records from `low` on and before `high`."""
        for number in self._root.pages_from(low):
            ref = self._root.pages[number]
            if high is not None and number and ref.first >= high:
                return
            if not ref.files:
                continue
            for record in self._page(ref).between(low, high):
                if record.live:
                    yield record

    def _page(self, ref: PageRef) -> Page:
        return self._objects.page(self._root, ref)


def _range_below(folder: str) -> tuple[str, str | None]:
    """Return the bounds of the paths below a folder: from the first on, before the second."""
    return ("", None) if folder == ROOT else (folder + "/", folder + "0")


def position(entry: FileEntry | FolderEntry) -> str:
    """Return the place of an entry in the order of a listing, for `start_after`."""
    return entry.path + "/" if isinstance(entry, FolderEntry) else entry.path


def read_repeatedly(objects: Objects, limits: TreeLimits, read: Callable[[Snapshot], _T]) -> _T:
    """Call `read` with fresh snapshots until none of their objects was missing; see `FileTree.view`."""
    missed: tuple[str | None, str] | None = None
    for _ in range(_ATTEMPTS):
        snapshot = Snapshot(objects, objects.read_root(), limits)
        try:
            return read(snapshot)
        except StaleSnapshotError as error:
            if missed == (snapshot.version, error.key):
                raise TreeStateError("missing_object", error.path) from error
            missed = (snapshot.version, error.key)
    raise TreeStateError("missing_object")
