"""Making and checking the root folder when a store is opened."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

from wenchang.storage._fs_disk import Disk
from wenchang.storage._fs_lock import LOCK_NAME
from wenchang.storage._fs_mounts import network_type
from wenchang.storage.errors import StorageConfigurationError

__all__ = ["prepared_root"]

_ROOT_PROBLEMS: Final = {
    errno.EACCES: "this user may not make or write it; check the owner and mode of its folders",
    errno.EPERM: "this user may not make or write it; check the owner and mode of its folders",
    errno.ENOENT: "it, or a folder above it, can neither be found nor made",
    errno.ENOTDIR: "something on its path is a file; name a folder",
    errno.EEXIST: "something on its path is a file; name a folder",
    errno.ELOOP: "a symbolic link on its path, or at its lock file, leads nowhere usable",
    errno.EROFS: "it would have to be made on a read-only file system",
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.ENAMETOOLONG: "its path is too long for the file system",
}


def prepared_root(disk: Disk, root: Path | str) -> str:
    """Make the root where it is missing, check that it can be locked, and return its real path.

    Raises `StorageConfigurationError`, which says what is wrong without showing the path.
    """
    text = os.fsdecode(root)
    if not text or "\0" in text:
        msg = "the storage folder must be a path"
        raise StorageConfigurationError(msg)
    try:
        path = disk.make_root(text)
        handle = disk.open_root(path)
        try:
            kind = network_type(disk.fstat(handle).st_dev)
            if kind is not None:
                msg = (
                    f"the storage folder lies on a network file system ({kind}), whose locks cannot be "
                    "trusted; use a local disk, or a database or object store to share between machines"
                )
                raise StorageConfigurationError(msg)
            _probe_lock(disk, handle)
        finally:
            disk.close(handle)
    except OSError as error:
        error.filename = error.filename2 = None
        name = errno.errorcode.get(error.errno or 0, "an unnamed error")
        problem = _ROOT_PROBLEMS.get(error.errno or 0, f"the system answered {name}")
        msg = f"the storage folder cannot be used: {problem}"
        raise StorageConfigurationError(msg) from error
    return path


def _probe_lock(disk: Disk, root: int) -> None:
    """Find out whether the root can be locked. On a read-only file system it need not be."""
    try:
        handle = disk.open_lock(LOCK_NAME, root, write=True)
    except OSError as error:
        if error.errno == errno.EROFS:
            return
        raise
    try:
        if disk.try_lock(handle, exclusive=False):
            disk.unlock(handle)
    except OSError as error:
        msg = (
            "the storage folder lies on a file system without file locks (flock), as some network "
            "folders are; use a local disk"
        )
        raise StorageConfigurationError(msg) from error
    finally:
        disk.close(handle)
