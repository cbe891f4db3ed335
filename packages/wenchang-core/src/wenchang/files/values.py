"""The values of the file tree: entries, outcomes of calls, usage, reports.

Paths are canonical (`wenchang.files.paths`), sizes are bytes of UTF-8, times are UTC.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from wenchang.files.errors import EntryKind

__all__ = [
    "Deleted",
    "FileEntry",
    "FolderEntry",
    "GarbageReport",
    "Moved",
    "Outcome",
    "PastVersion",
    "TreeReport",
    "Usage",
    "Written",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    r"""One file as of one snapshot; its content is read with `Snapshot.read`.

    `lines` counts what `\n` ends, and a last line without one: `"a\n"` and `"a"` have one, `""`
    has none. `version` changes with every change of the content, and a move keeps it, as it keeps
    `modified`.
    """

    path: str
    size: int
    lines: int
    version: str
    modified: datetime
    source: str = ""
    """Who wrote this version, as the writer said; kept only where the tree keeps history."""
    key: str = field(default="", repr=False, compare=False)
    """Where the content lies; opaque, and none of a caller's business."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderEntry:
    """A folder: there is at least one file beneath it. `path` has no `/` at its end."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PastVersion:
    """One state of a path that `FileTree.file_history` lists.

    `current` marks the state that the file has now. `modified` is when the state was written.
    """

    version: str
    size: int
    lines: int
    modified: datetime
    source: str
    current: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a tree holds now, in the terms of `TreeLimits`.

    `depth` is the number of folders above its deepest file, `largest` the bytes of its largest file.
    `history_bytes` is what past versions take; it gives way to files, which come first.
    """

    files: int = 0
    bytes: int = 0
    depth: int = 0
    largest: int = 0
    history_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A file was created or its content replaced, or was what the call wants already.

    `changed` is False where the content is what it was: version and time are the old ones then, and
    nothing was written. `replacements` counts what `edit` replaced. `replayed` tells that the call
    was carried out earlier under the same effect key and this is what it came to then. `previous` is
    the version that the file had before; empty where there was none, and in what is replayed.
    """

    path: str
    version: str
    size: int
    lines: int
    modified: datetime
    created: bool
    changed: bool
    replacements: int = 0
    replayed: bool = False
    previous: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A file, or a folder with `files` files, is now at `target`. Versions and times were kept."""

    source: str
    target: str
    kind: EntryKind
    files: int
    replayed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """A file, or a folder with `files` files, is gone from `path`."""

    path: str
    kind: EntryKind
    files: int
    replayed: bool = False


Outcome: TypeAlias = Written | Moved | Deleted
"""What a mutation comes to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GarbageReport:
    """What `FileTree.collect_garbage` did.

    `referenced` objects were in use, `deleted` were removed by this call, `kept` were unreferenced
    but too young to be removed (a later collection takes them).
    """

    referenced: int
    deleted: int
    kept: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeReport:
    """What `FileTree.verify` found, and what it did about it.

    `problems` are sentences that name paths, never keys; empty means that all is well. `lost` are
    the files whose content is gone, `renamed` maps paths that could not be restored under their own
    name (a file where a folder has to be) to the one they have now.
    """

    files: int
    bytes: int
    problems: tuple[str, ...] = ()
    unreferenced: int = 0
    rebuilt: bool = False
    lost: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong with the tree as it was found."""
        return not self.problems
