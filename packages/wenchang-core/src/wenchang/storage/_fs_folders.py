"""The folders along a key: opening, making and removing them, level by level.

Each level is opened relative to the one above and never through a symbolic link, so a key cannot
lead outside the root.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Final

from wenchang.storage._fs_disk import Disk, is_missing

_NOT_EMPTY: Final = frozenset((errno.ENOTEMPTY, errno.EEXIST))

__all__ = ["make_folders", "open_folders", "prune_folders"]


@contextmanager
def open_folders(disk: Disk, root: int, names: Sequence[str]) -> Iterator[int | None]:
    """Open the folder at `names` under `root`; None where it is missing, or a link, or no folder."""
    with ExitStack() as stack:
        yield _descend(disk, root, names, stack)


@contextmanager
def make_folders(disk: Disk, root: int, names: Sequence[str]) -> Iterator[int]:
    """Open the folder at `names`, making what is missing, durably. Raises `OSError`.

    Needs the exclusive lock, so that nobody removes an empty folder meanwhile.
    """
    with ExitStack() as stack:
        folder = root
        for name in names:
            try:
                below = disk.open_folder(name, folder)
            except FileNotFoundError:
                with suppress(FileExistsError):
                    disk.make_folder(name, folder)
                disk.fsync(folder)
                below = disk.open_folder(name, folder)
            stack.callback(disk.close, below)
            folder = below
        yield folder


def prune_folders(disk: Disk, root: int, names: Sequence[str]) -> bool:
    """Remove the empty folders along `names`, from the innermost on; return whether all are gone.

    Needs the exclusive lock. A folder that cannot be removed stays and does no harm.
    """
    with ExitStack() as stack:
        opened = [root]
        try:
            for name in names:
                below = disk.open_folder(name, opened[-1])
                stack.callback(disk.close, below)
                opened.append(below)
        except OSError as error:
            if not is_missing(error):
                return False
        try:
            for depth in range(len(opened) - 2, -1, -1):
                disk.remove_folder(names[depth], opened[depth])
        except OSError as error:
            return error.errno in _NOT_EMPTY
    return True


def _descend(disk: Disk, root: int, names: Sequence[str], stack: ExitStack) -> int | None:
    folder = root
    for name in names:
        try:
            folder = disk.open_folder(name, folder)
        except OSError as error:
            if is_missing(error):
                return None
            raise
        stack.callback(disk.close, folder)
    return folder
