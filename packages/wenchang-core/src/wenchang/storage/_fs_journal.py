"""Changing one object so that a crash at any moment leaves the old state or the new one.

A write makes the new body (`%new`) and its sidecar (`%tmp`) durable and then renames the sidecar to
`%redo`, the journal. Once the folder is synced the write is decided: whoever comes next completes it.
What remains are two renames, the body and then the journal into place. They need not be durable
before the answer, because until they are, the journal is. After a power failure either may be lost
without the other; all that is assumed of the file system is that a rename is whole and that changes
of the same name reach the disk in order.

A delete renames the body to `%old`, and is decided once the folder is synced. It needs no space, so
it works on a full disk.

Both run under the exclusive lock, on an object whose files are in order.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from errno import EISDIR
from typing import NoReturn

from wenchang.storage._fs_disk import OutcomeUnknownError
from wenchang.storage._fs_names import BODY, FRESH, JOURNAL, OUTGOING, PARTIAL, SIDECAR
from wenchang.storage._fs_objects import Place

__all__ = ["commit_delete", "commit_put"]


def commit_put(place: Place, data: bytes, make_sidecar: Callable[[os.stat_result], bytes]) -> bool:
    """Replace body and sidecar together; return whether the files are in order afterwards.

    `make_sidecar` gets the state of the new body's file and returns the sidecar's bytes.
    Returns only when the write is durable. False means that the next holder of the lock has to
    complete the renames. Raises `OSError` if nothing was applied, `OutcomeUnknownError` if the disk
    failed in a way that leaves it open.
    """
    # A rename cannot replace a folder; find that out while nothing is decided.
    for suffix in (BODY, SIDECAR):
        _refuse_folder(place, suffix)
    try:
        state = _write_file(place, FRESH, data, backdated=True)
        _write_file(place, PARTIAL, make_sidecar(state))
    except OSError:
        _clean(place)
        raise
    try:
        place.move(PARTIAL, JOURNAL)
        place.disk.fsync(place.folder)
    except OSError as error:
        _take_back_put(place, error)
    try:
        place.move(FRESH, BODY)
        place.move(JOURNAL, SIDECAR)
    except OSError:
        return False
    return True


def commit_delete(place: Place) -> bool:
    """Remove the object; return whether its files are in order afterwards. Raises as `commit_put`."""
    _refuse_folder(place, OUTGOING)
    try:
        place.move(BODY, OUTGOING)
        place.disk.fsync(place.folder)
    except OSError as error:
        _take_back_delete(place, error)
    try:
        place.drop(OUTGOING)
        place.drop(SIDECAR)
    except OSError:
        return False
    return True


def _take_back_put(place: Place, error: OSError) -> NoReturn:
    """Undo the decision and raise `error`, or `OutcomeUnknownError` if that fails too."""
    try:
        place.drop(JOURNAL)
        place.disk.fsync(place.folder)
    except OSError:
        raise OutcomeUnknownError(error) from error
    _clean(place)
    raise error


def _take_back_delete(place: Place, error: OSError) -> NoReturn:
    """Undo the decision and raise `error`, or `OutcomeUnknownError` if that fails too."""
    try:
        with suppress(FileNotFoundError):
            place.move(OUTGOING, BODY)
        place.disk.fsync(place.folder)
    except OSError:
        raise OutcomeUnknownError(error) from error
    raise error


def _clean(place: Place) -> None:
    """Remove the files of a write that was not decided, as far as the disk lets us."""
    for suffix in (FRESH, PARTIAL):
        with suppress(OSError):
            place.drop(suffix)


def _write_file(
    place: Place, suffix: str, data: bytes, *, backdated: bool = False
) -> os.stat_result:
    """Create a file with this content, durable, and return its state."""
    disk = place.disk
    handle = disk.create_file(place.stem + suffix, place.folder)
    try:
        disk.write(handle, data)
        if backdated:
            disk.backdate(handle)
        disk.fsync(handle)
        return disk.fstat(handle)
    finally:
        disk.close(handle)


def _refuse_folder(place: Place, suffix: str) -> None:
    """Raise the error of a file that is a folder. A symbolic link is replaced, never followed."""
    try:
        found = place.disk.stat(place.stem + suffix, place.folder)
    except FileNotFoundError:
        return
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
