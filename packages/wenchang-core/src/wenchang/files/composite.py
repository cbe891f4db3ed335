"""`CompositeFileBackend`: several file backends as one, each under a path of its own.

    files = CompositeFileBackend(StateFileBackend(state), {"/memories": store})

A path belongs to the mount with the longest prefix, or to the default. What a mount covers in the
backends around it cannot be seen through it, nor does it take a place under a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeVar

from wenchang.errors import WenchangError
from wenchang.files._checks import check_limit, to_listed, to_searched
from wenchang.files._regex import LineMatcher
from wenchang.files._scan import in_order
from wenchang.files.backend import (
    DEFAULT_READ_LINES,
    MAX_ITEMS,
    Accept,
    BackendEntry,
    FileBackend,
    FileChange,
    FileRemoval,
    GrepResult,
    Listing,
    ReadWindow,
    absolute,
    relocated,
    to_file,
)
from wenchang.files.errors import AlreadyExistsError, NotFoundError
from wenchang.files.globs import compile_glob
from wenchang.files.paths import ROOT, is_below, name_of

__all__ = ["CompositeFileBackend"]

_T = TypeVar("_T")
_PlacedT = TypeVar("_PlacedT", BackendEntry, ReadWindow, FileChange, FileRemoval)

_EVERY_FILE: Final = "**"


@dataclass(frozen=True, slots=True)
class _Mount:
    """A backend and the canonical path that it is mounted at; the default is at the root."""

    at: str
    backend: FileBackend

    @property
    def prefix(self) -> str:
        """What the paths of the backend get in front."""
        return absolute(self.at) if self.at else ""

    def holds(self, path: str) -> bool:
        """Tell whether a canonical path lies at or beneath the mount."""
        return path == self.at or is_below(path, self.at)

    def inner(self, path: str) -> str:
        """Return a canonical path as the backend knows it."""
        return absolute(path[len(self.at) :].removeprefix("/"))

    def outer(self, value: _PlacedT) -> _PlacedT:
        """Return a result of the backend under its full path."""
        return replace(value, path=self.prefix + value.path) if self.at else value

    def call(self, action: Callable[[], _T]) -> _T:
        """Call the backend through `action`; what it raises names the full path."""
        try:
            return action()
        except WenchangError as error:
            moved = relocated(error, self.prefix)
            if moved is error:
                raise
            raise moved from error


class CompositeFileBackend:
    """A `FileBackend` of a default backend and others mounted over it.

    `mounts` maps absolute folders to backends; none can be `/`. A mounted backend sees paths without the
    prefix. The folder of a mount, and those above it, exist even while it is empty; a file of another
    backend in their place is hidden. Effect keys and locks are those of the backend that a path belongs
    to. Each backend has its own budget of work and its own `max_items`.
    """

    def __init__(self, default: FileBackend, mounts: Mapping[str, FileBackend]) -> None:
        """Check the folders: `InvalidArgumentError` for one that is none, ValueError for one given twice."""
        self._default = _Mount(ROOT, default)
        mounted = [
            _Mount(to_file(at, argument="mounts"), backend) for at, backend in mounts.items()
        ]
        if len({mount.at for mount in mounted}) != len(mounted):
            msg = "mounts must name each folder once"
            raise ValueError(msg)
        # Longest first: the first that holds a path is the one it belongs to.
        self._mounts = sorted(mounted, key=lambda mount: len(mount.at), reverse=True)

    @property
    def max_items(self) -> int:
        """The most files that one call looks at, in each of the backends."""
        return max([MAX_ITEMS, *(mount.backend.max_items for mount in self._all())])

    def ls(self, path: str = "/", *, limit: int | None = None) -> Listing:
        """See `FileBackend`."""
        folder = to_listed(path, limit)
        points = self._points_in(folder)
        mount = self._mount_of(folder)
        # A mount point may stand where the backend has an entry, so as many more are asked for.
        wanted = None if limit is None else limit + len(points)
        try:
            found = mount.call(lambda: mount.backend.ls(mount.inner(folder), limit=wanted))
        except NotFoundError:
            if not self._is_point(folder):
                raise
            found = Listing()
        shown = [
            entry
            for entry in map(mount.outer, found.entries)
            if entry.path not in points and self._visible(mount, entry)
        ]
        shown += [BackendEntry(path=point, kind="folder") for point in points]
        shown.sort(key=in_order)
        if limit is None:
            return Listing(entries=tuple(shown), truncated=found.truncated)
        return Listing(
            entries=tuple(shown[:limit]), truncated=found.truncated or len(shown) > limit
        )

    def read(self, path: str, offset: int = 0, limit: int = DEFAULT_READ_LINES) -> ReadWindow:
        """See `FileBackend`."""
        wanted, mount = self._file(path)
        return mount.outer(
            mount.call(lambda: mount.backend.read(mount.inner(wanted), offset, limit))
        )

    def glob(
        self,
        pattern: str,
        under: str = "/",
        *,
        accept: Accept | None = None,
        limit: int | None = None,
    ) -> Listing:
        """See `FileBackend`."""
        folder = to_searched(under)
        check_limit(limit)
        wanted = _matching(pattern, "pattern", folder, accept)
        entries: list[BackendEntry] = []
        truncated = False
        for mount, inner in self._parts(folder):
            action = partial(
                mount.backend.glob,
                _EVERY_FILE,
                inner,
                accept=self._accepted(mount, wanted),
                limit=limit,
            )
            found = self._tolerant(mount, folder, action, Listing())
            entries += map(mount.outer, found.entries)
            truncated = truncated or found.truncated
        entries.sort(key=in_order)
        most = len(entries) if limit is None else limit
        return Listing(entries=tuple(entries[:most]), truncated=truncated or len(entries) > most)

    def grep(
        self,
        pattern: str,
        under: str = "/",
        *,
        include: str | None = None,
        accept: Accept | None = None,
        limit: int | None = None,
    ) -> GrepResult:
        """See `FileBackend`."""
        folder = to_searched(under)
        check_limit(limit)
        LineMatcher(pattern)
        wanted = _matching(_EVERY_FILE if include is None else include, "include", folder, accept)
        results: list[GrepResult] = []
        for mount, inner in self._parts(folder):
            action = partial(
                mount.backend.grep,
                pattern,
                inner,
                accept=self._accepted(mount, wanted),
                limit=limit,
            )
            found = self._tolerant(mount, folder, action, GrepResult())
            results.append(
                replace(
                    found,
                    matches=tuple(
                        replace(match, path=mount.prefix + match.path) for match in found.matches
                    ),
                    unreadable=tuple(mount.prefix + path for path in found.unreadable),
                )
            )
        matches = sorted(
            (match for result in results for match in result.matches),
            key=lambda match: (match.path, match.line),
        )
        most = len(matches) if limit is None else limit
        return GrepResult(
            matches=tuple(matches[:most]),
            truncated=any(result.truncated for result in results) or len(matches) > most,
            unreadable=tuple(sorted(path for result in results for path in result.unreadable)),
        )

    def write(
        self,
        path: str,
        content: str,
        *,
        version: str | None = None,
        create_only: bool = False,
        effect_key: str | None = None,
    ) -> FileChange:
        """See `FileBackend`."""
        wanted = to_file(path)
        if self._is_point(wanted):
            raise AlreadyExistsError(absolute(wanted), "folder")
        mount = self._mount_of(wanted)
        return mount.outer(
            mount.call(
                lambda: mount.backend.write(
                    mount.inner(wanted),
                    content,
                    version=version,
                    create_only=create_only,
                    effect_key=effect_key,
                )
            )
        )

    def edit(
        self,
        path: str,
        old: str,
        new: str,
        *,
        replace_all: bool = False,
        version: str | None = None,
        effect_key: str | None = None,
    ) -> FileChange:
        """See `FileBackend`."""
        wanted, mount = self._file(path)
        return mount.outer(
            mount.call(
                lambda: mount.backend.edit(
                    mount.inner(wanted),
                    old,
                    new,
                    replace_all=replace_all,
                    version=version,
                    effect_key=effect_key,
                )
            )
        )

    def delete(
        self, path: str, *, version: str | None = None, effect_key: str | None = None
    ) -> FileRemoval:
        """See `FileBackend`."""
        wanted, mount = self._file(path)
        return mount.outer(
            mount.call(
                lambda: mount.backend.delete(
                    mount.inner(wanted), version=version, effect_key=effect_key
                )
            )
        )

    def locks(self, path: str) -> tuple[str, ...]:
        """Return the locks of the backend that the path belongs to."""
        wanted = to_file(path)
        mount = self._mount_of(wanted)
        return mount.backend.locks(mount.inner(wanted))

    # --- who has which path ------------------------------------------------------------------------

    def _all(self) -> Iterator[_Mount]:
        yield from self._mounts
        yield self._default

    def _mount_of(self, path: str) -> _Mount:
        """Return the mount that a canonical path belongs to."""
        return next(mount for mount in self._all() if mount.holds(path))

    def _file(self, path: str) -> tuple[str, _Mount]:
        """Return a path and its mount; refuse the folders that mounts make."""
        wanted = to_file(path)
        if self._is_point(wanted):
            name = absolute(wanted)
            raise NotFoundError(name, f"{name} is a folder, not a file.")
        return wanted, self._mount_of(wanted)

    def _is_point(self, path: str) -> bool:
        """Tell whether a canonical path is a mount's folder or one above it."""
        return any(path == mount.at or is_below(mount.at, path) for mount in self._mounts)

    def _points_in(self, folder: str) -> set[str]:
        """Return the folders directly beneath a folder that are there because of mounts."""
        start = 0 if folder == ROOT else len(folder) + 1
        return {
            absolute(mount.at[:start] + mount.at[start:].partition("/")[0])
            for mount in self._mounts
            if is_below(mount.at, folder)
        }

    def _visible(self, mount: _Mount, entry: BackendEntry) -> bool:
        """Tell whether an entry of a backend, by its full path, is not covered by another mount."""
        path = entry.path.removeprefix("/")
        if self._mount_of(path) is not mount:
            return False
        return entry.kind == "folder" or not self._is_point(path)

    def _accepted(self, mount: _Mount, wanted: Accept) -> Accept:
        """Return the predicate for a backend: on its own paths, without what mounts cover."""

        def accepted(path: str) -> bool:
            full = mount.prefix + path
            return self._visible(mount, BackendEntry(path=full)) and wanted(full)

        return accepted

    def _parts(self, folder: str) -> Iterator[tuple[_Mount, str]]:
        """Yield every backend that may have files beneath a folder, and where in it they are."""
        own = self._mount_of(folder)
        yield own, own.inner(folder)
        for mount in self._mounts:
            if is_below(mount.at, folder):
                yield mount, "/"

    def _tolerant(self, mount: _Mount, folder: str, action: Callable[[], _T], empty: _T) -> _T:
        """Call a backend; a folder that is there because of mounts may be missing in it."""
        try:
            return mount.call(action)
        except NotFoundError:
            if not self._is_point(folder):
                raise
            return empty


def _matching(pattern: str, argument: str, folder: str, accept: Accept | None) -> Accept:
    """Return the predicate on full paths that a glob relative to a folder and `accept` make."""
    glob = compile_glob(pattern, argument=argument)

    def wanted(path: str) -> bool:
        inside = path[1:]
        relative = name_of(inside) if inside == folder else inside[len(folder) :].lstrip("/")
        return glob.matches(relative) and (accept is None or accept(path))

    return wanted
