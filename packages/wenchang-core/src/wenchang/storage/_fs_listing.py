"""Listing objects in the order of their keys, without walking the whole tree.

Folder order is not key order: `a-b`, `a/b` and `a0` stand in one folder as `a-b`, `a/` and `a0`. So the
entries of a folder are sorted by what their keys begin with, a folder as its name and a slash, and
walked depth first. Folders wholly before the start or outside the prefix are never opened; in memory
are the names of the folders on the current path.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from wenchang.storage._fs_disk import Disk, is_missing
from wenchang.storage._fs_folders import open_folders
from wenchang.storage._fs_names import (
    BODY,
    FRESH,
    JOURNAL,
    SIDECAR,
    decode_name,
    encode_segment,
    split_suffix,
)
from wenchang.storage._fs_objects import Place, UnsettledError, View, examine, glance
from wenchang.storage.errors import InvalidStorageKeyError
from wenchang.storage.keys import MAX_KEY_SEGMENTS, is_valid_key

__all__ = ["Listing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One listing from `start_after` on. `shared` takes the shared lock of the root."""

    disk: Disk
    root: int
    shared: Callable[[], AbstractContextManager[None]]
    prefix: str
    start_after: str | None
    leftovers: list[str] = field(default_factory=list)
    """Keys met on the way whose files are out of order."""

    def objects(self) -> Generator[tuple[str, View], None, None]:
        """Yield keys and objects in key order. Raises `OSError`."""
        base = self.prefix[: self.prefix.rfind("/") + 1]
        try:
            names = [encode_segment(segment) for segment in base.split("/")[:-1]]
        except InvalidStorageKeyError:
            # No key of this store has such a segment.
            return
        with open_folders(self.disk, self.root, names) as folder:
            if folder is not None:
                yield from self._walk(folder, base, len(names))

    def _walk(self, folder: int, base: str, depth: int) -> Generator[tuple[str, View], None, None]:
        """Yield what lies under one folder, whose keys begin with `base`."""
        # Under the lock no rename is under way, and with it no name that a scan could miss.
        with self.shared():
            names = self.disk.names(folder)
        for path, name, suffixes in self._entries(names, base, depth):
            if suffixes is not None:
                place = Place(disk=self.disk, folder=folder, stem=name, key=path)
                view = self._read(place, suffixes)
                if view is not None:
                    yield path, view
                continue
            try:
                below = self.disk.open_folder(name, folder)
            except OSError as error:
                if is_missing(error):
                    # Removed meanwhile, or a foreign file or link.
                    continue
                raise
            try:
                yield from self._walk(below, path, depth + 1)
            finally:
                self.disk.close(below)

    def _entries(
        self, names: list[str], base: str, depth: int
    ) -> list[tuple[str, str, frozenset[str] | None]]:
        """Return `(key or path, name, suffixes of the object or None)` of what may match, in order."""
        objects: defaultdict[str, set[str]] = defaultdict(set)
        entries: list[tuple[str, str, frozenset[str] | None]] = []
        for name in names:
            stem, suffix = split_suffix(name)
            if suffix:
                objects[stem].add(suffix)
            elif depth < MAX_KEY_SEGMENTS and (segment := decode_name(name)) is not None:
                path = f"{base}{segment}/"
                if self._leads_to_matches(path):
                    entries.append((path, name, None))
        for stem, suffixes in objects.items():
            segment = decode_name(stem)
            if segment is not None and self._matches(key := base + segment):
                entries.append((key, stem, frozenset(suffixes)))
        entries.sort()
        return entries

    def _matches(self, key: str) -> bool:
        return (
            key.startswith(self.prefix)
            and (self.start_after is None or key > self.start_after)
            and is_valid_key(key)
        )

    def _leads_to_matches(self, path: str) -> bool:
        """Tell whether some key that begins with `path` may be asked for."""
        if not path.startswith(self.prefix):
            return False
        after = self.start_after
        return after is None or path > after or after.startswith(path)

    def _read(self, place: Place, suffixes: frozenset[str]) -> View | None:
        """Return the object, or None if it is gone or never was one."""
        try:
            if suffixes >= {BODY, SIDECAR} and JOURNAL not in suffixes:
                try:
                    return glance(place, whole=False, journal_seen=False)
                except UnsettledError:
                    pass
            with self.shared():
                examined = examine(place, whole=False)
        except PermissionError:
            # A foreign file that this user may not read must not hide the others.
            return None
        if examined.steps or not suffixes & {BODY, FRESH}:
            self.leftovers.append(place.key)
        return examined.view
