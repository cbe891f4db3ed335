"""The lock on a root folder: over threads, instances, processes and fork.

Across processes and instances it is `flock` on `.lock`, on a descriptor opened for each holder, so
that nothing is shared with a forked child and a replaced lock file is noticed. Within an instance a
plain lock queues the threads. Nobody waits in the kernel: `flock` is polled until the deadline.
"""

from __future__ import annotations

import errno
import os
import random
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Final

from wenchang.errors import BackendUnavailableError
from wenchang.storage._fs_disk import Disk
from wenchang.storage.errors import StorageRejectedError

__all__ = ["LOCK_NAME", "Deadline", "Held", "RootLock"]

LOCK_NAME: Final = ".lock"
_FIRST_WAIT: Final = 0.0005
_LONGEST_WAIT: Final = 0.01
_NO_FLOCK: Final = frozenset(
    (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS, errno.EINVAL)
)


class Deadline:
    """The moment at which one call gives up."""

    __slots__ = ("_ends",)

    def __init__(self, seconds: float) -> None:
        """Begin now."""
        self._ends = time.monotonic() + seconds

    def remaining(self) -> float:
        """Return the seconds left, never less than 0."""
        return max(0.0, self._ends - time.monotonic())


class Held:
    """The exclusive lock while it is held, with the note that it passes to the next holder.

    The note names the key that is being changed. A holder that is killed leaves it behind, and the
    next one knows which object to put in order. It is a hint: objects that a lost note would have
    named are put in order when they are next written, and read correctly meanwhile.
    """

    def __init__(self, disk: Disk, handle: int) -> None:
        """Wrap the descriptor that holds the lock."""
        self._disk = disk
        self._handle = handle

    def unfinished(self) -> str | None:
        """Return the key that the last holder did not finish, or None."""
        with suppress(OSError, UnicodeDecodeError):
            key, end, _ = self._disk.read_note(self._handle).partition(b"\n")
            return key.decode() or None if end else None
        return None

    def begin(self, key: str) -> None:
        """Note that `key` is being changed."""
        with suppress(OSError):
            self._disk.write_note(self._handle, key.encode() + b"\n")

    def finish(self) -> None:
        """Note that nothing is left to do. The rest of the last note stays, so space is kept."""
        with suppress(OSError):
            self._disk.write_note(self._handle, b"\n")


class RootLock:
    """The lock of one instance. Not re-entrant."""

    def __init__(self, disk: Disk) -> None:
        """Make a lock; nothing is opened yet."""
        self._disk = disk
        self._threads = threading.Lock()
        self._handle: int | None = None
        # Jitter only spreads the polling.
        self._random = random.Random()  # noqa: S311 - not a secret
        _locks.add(self)

    @contextmanager
    def exclusive(self, root: int, deadline: Deadline) -> Iterator[Held]:
        """Hold the lock alone; raises `BackendUnavailableError` (not applied) at the deadline."""
        with self._turn(deadline), self._flock(root, deadline, exclusive=True) as handle:
            yield Held(self._disk, handle)

    @contextmanager
    def shared(self, root: int, deadline: Deadline) -> Iterator[None]:
        """Hold the lock with other readers; raises as `exclusive` does.

        On a read-only file system without a lock file there is nobody to keep out.
        """
        with self._turn(deadline), ExitStack() as stack:
            try:
                stack.enter_context(self._flock(root, deadline, exclusive=False))
            except OSError as error:
                if error.errno != errno.EROFS:
                    raise
            yield

    def renew_after_fork(self) -> None:
        """Drop what a thread of the parent may hold; the parent still holds it."""
        self._threads = threading.Lock()
        if self._handle is not None:
            with suppress(OSError):
                os.close(self._handle)
            self._handle = None

    @contextmanager
    def _turn(self, deadline: Deadline) -> Iterator[None]:
        """Wait for the other threads of this instance."""
        threads = self._threads
        if not threads.acquire(timeout=deadline.remaining()):
            raise _too_late()
        try:
            yield
        finally:
            threads.release()

    @contextmanager
    def _flock(self, root: int, deadline: Deadline, *, exclusive: bool) -> Iterator[int]:
        """Hold `flock` on the lock file that stands at its name now."""
        wait = _FIRST_WAIT
        handle: int | None = None
        try:
            while True:
                if handle is None:
                    handle = self._disk.open_lock(LOCK_NAME, root, write=exclusive)
                    self._handle = handle
                if self._try(handle, exclusive=exclusive):
                    if self._is_current(handle, root):
                        break
                    # Someone removed or replaced the file: this lock excludes nobody.
                    self._handle = None
                    self._disk.close(handle)
                    handle = None
                remaining = deadline.remaining()
                if remaining <= 0:
                    raise _too_late()
                time.sleep(min(remaining, wait * self._random.uniform(0.5, 1.0)))
                wait = min(_LONGEST_WAIT, wait * 2)
            yield handle
        finally:
            if handle is not None:
                self._handle = None
                with suppress(OSError):
                    self._disk.unlock(handle)
                self._disk.close(handle)

    def _try(self, handle: int, *, exclusive: bool) -> bool:
        try:
            return self._disk.try_lock(handle, exclusive=exclusive)
        except OSError as error:
            if error.errno not in _NO_FLOCK:
                raise
            raise StorageRejectedError(
                "unsupported",
                "the storage folder lies on a file system without file locks (flock), as some "
                "network folders are; use a local disk",
            ) from error

    def _is_current(self, handle: int, root: int) -> bool:
        try:
            named = self._disk.stat(LOCK_NAME, root)
        except FileNotFoundError:
            return False
        mine = self._disk.fstat(handle)
        return (named.st_dev, named.st_ino) == (mine.st_dev, mine.st_ino)


def _too_late() -> BackendUnavailableError:
    return BackendUnavailableError(
        "timeout", "another process or thread held the lock for too long", outcome="not_applied"
    )


_locks: weakref.WeakSet[RootLock] = weakref.WeakSet()


def _renew_after_fork() -> None:
    """Give each lock of a forked child a clean state."""
    for lock in list(_locks):
        lock.renew_after_fork()


os.register_at_fork(after_in_child=_renew_after_fork)
