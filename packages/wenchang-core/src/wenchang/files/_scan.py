"""Going through files, the same for every backend: listings, globs, searches.

What differs is where files come from: an iterator of entries in path order, and a function that
gives the bytes of some of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, TypeAlias

from wenchang.files._checks import check_limit
from wenchang.files._regex import LineMatcher, WorkBudget
from wenchang.files.backend import (
    Accept,
    BackendEntry,
    GrepMatch,
    GrepResult,
    Listing,
)
from wenchang.files.globs import Glob, compile_glob
from wenchang.files.paths import name_of

__all__ = ["Contents", "children", "grep_files", "in_order", "match_files", "take"]

Contents: TypeAlias = Callable[[Sequence[BackendEntry]], Iterable[bytes | None]]
"""Gives the bytes of some files, in their order; None for one whose content is gone or no text."""

_BATCH: Final = 16
"""Files whose contents are asked for together."""


def in_order(entry: BackendEntry) -> str:
    """Return what entries are sorted by: the path, of a folder with a `/` at its end."""
    return entry.path + "/" if entry.kind == "folder" else entry.path


def take(entries: Iterable[BackendEntry], limit: int | None, max_items: int) -> Listing:
    """Return the first entries, at most `limit` and at most `max_items`."""
    most = max_items if limit is None else min(limit, max_items)
    taken = list(islice(entries, most + 1))
    return Listing(entries=tuple(taken[:most]), truncated=len(taken) > most)


def children(
    folder: str, paths: Sequence[str], entry_of: Callable[[str], BackendEntry]
) -> Iterator[BackendEntry]:
    """Yield what is directly beneath a canonical folder; `paths` are all files below it, in order."""
    start = len(folder) + 2 if folder else 1
    index = 0
    while index < len(paths):
        name, slash, _ = paths[index][start:].partition("/")
        if not slash:
            yield entry_of(paths[index])
            index += 1
        else:
            child = paths[index][:start] + name
            yield BackendEntry(path=child, kind="folder")
            # "0" is what follows "/", so this is past everything in the folder.
            index = bisect_left(paths, child + "0")


class _Candidates:
    """The files that are wanted, of at most `max_items` that are looked at."""

    def __init__(
        self,
        files: Iterable[BackendEntry],
        under: str,
        glob: Glob | None,
        accept: Accept | None,
        max_items: int,
    ) -> None:
        self._files = files
        self._under = under
        self._glob = glob
        self._accept = accept
        self._max_items = max_items
        self.cut = False

    def __iter__(self) -> Iterator[BackendEntry]:
        for looked_at, entry in enumerate(self._files):
            if looked_at == self._max_items:
                self.cut = True
                return
            if self._glob is not None and not self._glob.matches(
                _relative(self._under, entry.path)
            ):
                continue
            if self._accept is None or self._accept(entry.path):
                yield entry


def _relative(under: str, path: str) -> str:
    """Return an absolute path as seen from a canonical folder; a file seen from itself is its name."""
    if path == "/" + under:
        return name_of(path)
    return path[len(under) + 2 :] if under else path[1:]


def match_files(
    files: Iterable[BackendEntry],
    pattern: str,
    under: str,
    *,
    accept: Accept | None,
    limit: int | None,
    max_items: int,
) -> Listing:
    """Return the files that a pattern and `accept` take, at most `limit` of them."""
    check_limit(limit)
    candidates = _Candidates(files, under, compile_glob(pattern), accept, max_items)
    listing = take(candidates, limit, max_items)
    return Listing(entries=listing.entries, truncated=listing.truncated or candidates.cut)


def grep_files(
    files: Iterable[BackendEntry],
    contents: Contents,
    matcher: LineMatcher,
    under: str,
    *,
    include: str | None,
    accept: Accept | None,
    limit: int | None,
    max_items: int,
    budget: WorkBudget | None = None,
) -> GrepResult:
    """Return the matching lines of the files that `include` and `accept` take."""
    check_limit(limit)
    glob = None if include is None else compile_glob(include, argument="include")
    candidates = _Candidates(files, under, glob, accept, max_items)
    search = _Search(matcher, max_items if limit is None else limit, budget or WorkBudget())
    rest = iter(candidates)
    while batch := list(islice(rest, _BATCH)):
        for entry, data in zip(batch, contents(batch), strict=True):
            search.read(entry.path, data)
            if search.full:
                break
        if search.full:
            break
    return GrepResult(
        matches=tuple(search.matches),
        truncated=search.full or candidates.cut,
        unreadable=tuple(search.unreadable),
    )


class _Search:
    """What a search has found so far; `full` once it has to end although there may be more."""

    def __init__(self, matcher: LineMatcher, limit: int, budget: WorkBudget) -> None:
        self._matcher = matcher
        self._limit = limit
        self._budget = budget
        self.matches: list[GrepMatch] = []
        self.unreadable: list[str] = []
        self.full = False

    def read(self, path: str, data: bytes | None) -> None:
        """Search one file."""
        if data is None or not _is_text(data):
            self.unreadable.append(path)
            return
        lines = data.split(b"\n")
        if not lines[-1]:
            lines.pop()
        for number, line in enumerate(lines, 1):
            if not self._budget.affords(line, self._matcher):
                self.full = True
                return
            if self._matcher.matches(line):
                # One more than wanted tells that the result was cut.
                if len(self.matches) == self._limit:
                    self.full = True
                    return
                text = line.decode()
                self._budget.report(text)
                self.matches.append(GrepMatch(path=path, line=number, text=text))


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
