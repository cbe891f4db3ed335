"""Every system call of the file backend, and what a failed one means to a caller.

`Disk` is one thin method for each call, so that a test can stop the backend, or let it fail, at any
of them. Names are always relative to an open folder and symbolic links are never followed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from wenchang.errors import BackendUnavailableError
from wenchang.storage.errors import InvalidStorageKeyError, RejectionKind, StorageRejectedError

__all__ = ["Disk", "OutcomeUnknownError", "disk_errors", "is_missing"]

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
# A named pipe must not hang the reader; for regular files the flag means nothing.
_READ_FILE: Final = _READ | os.O_NONBLOCK
_READ_FOLDER: Final = _READ | os.O_DIRECTORY
_CREATE_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK: Final = 1 << 20
# On macOS fsync leaves the data in the drive's cache; this goes through it.
_FULL_FSYNC: Final[int | None] = getattr(fcntl, "F_FULLFSYNC", None)

_REJECTIONS: Final[dict[int, tuple[RejectionKind, str]]] = {
    errno.ENOSPC: ("full", "the disk of the storage folder is full; free some space"),
    errno.EDQUOT: ("full", "the disk quota of the storage folder is used up"),
    errno.EFBIG: ("full", "the file size limit of this process is too small"),
    errno.EROFS: ("locked", "the storage folder is on a read-only file system"),
    errno.EACCES: (
        "permission",
        "this user may not read and write the storage folder; check its owner and mode",
    ),
    errno.EPERM: (
        "permission",
        "this user may not change the storage folder; check its owner and attributes",
    ),
    errno.ENOTDIR: (
        "invalid",
        "a symbolic link or a foreign file stands where the storage needs a folder; move it away",
    ),
    errno.ELOOP: (
        "invalid",
        "a symbolic link stands where the storage needs a file of its own; move it away",
    ),
    errno.EISDIR: (
        "invalid",
        "a folder stands where the storage needs a file of its own; move it away",
    ),
}


class OutcomeUnknownError(Exception):
    """A change could neither be completed nor taken back; `error` is the call that failed."""

    def __init__(self, error: OSError) -> None:
        """Keep the failed call."""
        super().__init__("neither completed nor taken back")
        self.error = error


@contextmanager
def disk_errors() -> Iterator[None]:
    """Map every failed system call of the block to an error of the contract, the cause chained.

    An `OSError` that leaves the block means that nothing was applied; a change that may have been is
    `OutcomeUnknownError`. File names are removed from the cause: they are keys.
    """
    try:
        yield
    except OutcomeUnknownError as unknown:
        _hide_names(unknown.error)
        raise BackendUnavailableError(
            "unavailable", "the disk failed during a change", outcome="unknown"
        ) from unknown.error
    except OSError as error:
        _hide_names(error)
        raise _mapped(error) from error


def _mapped(error: OSError) -> Exception:
    """Return the contract's error for a call that failed before anything was applied."""
    number = error.errno or 0
    if number == errno.ENAMETOOLONG:
        return InvalidStorageKeyError("a segment of the key is too long for this file system")
    if number in _REJECTIONS:
        return StorageRejectedError(*_REJECTIONS[number])
    what = errno.errorcode.get(number, "an unnamed error")
    return BackendUnavailableError(
        "unavailable", f"the disk answered {what}", outcome="not_applied"
    )


def _hide_names(error: OSError) -> None:
    """Remove the file names from the error and from those it arose from."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError):
            seen.filename = seen.filename2 = None
        seen = seen.__context__


def is_missing(error: OSError) -> bool:
    """Tell whether a name that was to be read leads nowhere, or to a link or foreign thing."""
    return error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


class Disk:
    """The system calls. Each method raises the `OSError` of its call and does nothing else."""

    # --- folders

    def open_root(self, path: str) -> int:
        """Open the root folder, which may be reached through symbolic links."""
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def make_root(self, path: str) -> str:
        """Make the folder and what is missing above it, for their owner alone; return its real path."""
        real = Path(os.path.realpath(path))
        missing = [folder for folder in (real, *real.parents) if not folder.is_dir()]
        for folder in reversed(missing):
            with suppress(FileExistsError):
                folder.mkdir(0o700)
                folder.chmod(0o700)
            parent = self.open_root(str(folder.parent))
            try:
                self.fsync(parent)
            finally:
                self.close(parent)
        return str(real)

    def open_folder(self, name: str, folder: int) -> int:
        """Open a folder; a symbolic link to one is ENOTDIR."""
        return os.open(name, _READ_FOLDER, dir_fd=folder)

    def make_folder(self, name: str, folder: int) -> None:
        """Make a folder for its owner alone, whatever the umask."""
        os.mkdir(name, 0o700, dir_fd=folder)
        made = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(made.st_mode) and stat.S_IMODE(made.st_mode) != 0o700:
            os.chmod(name, 0o700, dir_fd=folder)

    def remove_folder(self, name: str, folder: int) -> None:
        """Remove an empty folder."""
        os.rmdir(name, dir_fd=folder)

    def names(self, folder: int) -> list[str]:
        """Return all names in an open folder, in no order."""
        return os.listdir(folder)

    # --- files

    def open_file(self, name: str, folder: int) -> int:
        """Open a file for reading; a symbolic link is ELOOP."""
        return os.open(name, _READ_FILE, dir_fd=folder)

    def create_file(self, name: str, folder: int) -> int:
        """Create a file that is not there, for its owner alone, whatever the umask."""
        handle = os.open(name, _CREATE_FILE, 0o600, dir_fd=folder)
        try:
            os.fchmod(handle, 0o600)
        except BaseException:
            os.close(handle)
            raise
        return handle

    def write(self, handle: int, data: bytes) -> None:
        """Write all of `data`."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(handle, rest) :]

    def read(self, handle: int) -> Iterator[bytes]:
        """Yield the whole file in pieces, whatever was read before."""
        offset = 0
        while piece := os.pread(handle, _CHUNK, offset):
            offset += len(piece)
            yield piece

    def backdate(self, handle: int) -> None:
        """Set the time of the last change one nanosecond back.

        The kernel's clock for files may stand still for some milliseconds. A later change within the
        same tick then still shows, because no tick ever carries this value.
        """
        now = os.fstat(handle)
        os.utime(handle, ns=(now.st_atime_ns, now.st_mtime_ns - 1))

    def fsync(self, handle: int) -> None:
        """Make a file's content, or a folder's names, durable."""
        if _FULL_FSYNC is not None:
            try:
                fcntl.fcntl(handle, _FULL_FSYNC)
            except OSError:
                pass
            else:
                return
        os.fsync(handle)

    def rename(self, old: str, new: str, folder: int) -> None:
        """Rename within a folder, replacing atomically."""
        os.replace(old, new, src_dir_fd=folder, dst_dir_fd=folder)

    def unlink(self, name: str, folder: int) -> None:
        """Remove a file, or a symbolic link itself."""
        os.unlink(name, dir_fd=folder)

    def stat(self, name: str, folder: int) -> os.stat_result:
        """Return what stands at `name`, a symbolic link itself included."""
        return os.stat(name, dir_fd=folder, follow_symlinks=False)

    def fstat(self, handle: int) -> os.stat_result:
        """Return what an open file or folder is."""
        return os.fstat(handle)

    def close(self, handle: int) -> None:
        """Close an open file or folder."""
        os.close(handle)

    # --- the lock file

    def open_lock(self, name: str, folder: int, *, write: bool) -> int:
        """Open the lock file, creating it where it is missing."""
        access = os.O_RDWR if write else os.O_RDONLY
        flags = access | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            return os.open(name, flags, dir_fd=folder)
        except FileNotFoundError:
            handle = os.open(name, flags | os.O_CREAT, 0o600, dir_fd=folder)
        try:
            os.fchmod(handle, 0o600)
        except BaseException:
            os.close(handle)
            raise
        return handle

    def try_lock(self, handle: int, *, exclusive: bool) -> bool:
        """Take the lock if that needs no waiting; tell whether it was taken."""
        try:
            fcntl.flock(handle, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def unlock(self, handle: int) -> None:
        """Give the lock back, also for descriptors that a forked child inherited."""
        fcntl.flock(handle, fcntl.LOCK_UN)

    def read_note(self, handle: int) -> bytes:
        """Return what the last holder of the lock left in its file."""
        return os.pread(handle, 2048, 0)

    def write_note(self, handle: int, note: bytes) -> None:
        """Leave a note for the next holder; it need not survive a power failure."""
        os.pwrite(handle, note, 0)
