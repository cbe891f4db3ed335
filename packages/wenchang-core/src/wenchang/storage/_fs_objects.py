"""Reading one object from the files that make it up, whatever state a crash left them in.

`glance` needs no lock: it accepts a body and a sidecar only if the sidecar proves that it was written
for this very body. Everything else (a write under way, its remains, a change made by hand) is left to
`examine`, which needs the lock, at least a shared one, and decides what the object is now. It changes
nothing; the steps that would put the files in order are returned for a holder of the exclusive lock.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from wenchang.storage._fs_disk import Disk, is_missing
from wenchang.storage._fs_names import BODY, FRESH, JOURNAL, OUTGOING, PARTIAL, SIDECAR
from wenchang.storage._fs_sidecar import (
    MAX_SIDECAR_BYTES,
    Sidecar,
    UnreadableSidecar,
    check_writable,
    decode_sidecar,
    metadata_and_version,
)

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

__all__ = ["Examined", "Place", "Step", "UnsettledError", "View", "carry_out", "examine", "glance"]

AnySidecar: TypeAlias = Sidecar | UnreadableSidecar | None
Step: TypeAlias = tuple[str, ...]
"""`("move", from, to)`, `("drop", suffix)` or `("sync",)`."""


class UnsettledError(Exception):
    """What lies on disk can be judged under the lock only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the files of one object lie: an open folder and the stem of their names."""

    disk: Disk
    folder: int
    stem: str
    key: str

    def exists(self, suffix: str) -> bool:
        """Tell whether anything stands at the name."""
        try:
            self.disk.stat(self.stem + suffix, self.folder)
        except FileNotFoundError:
            return False
        return True

    def move(self, old: str, new: str) -> None:
        """Rename one file of the object to another, replacing it."""
        self.disk.rename(self.stem + old, self.stem + new, self.folder)

    def drop(self, suffix: str) -> None:
        """Remove a file of the object if it is there."""
        with suppress(FileNotFoundError):
            self.disk.unlink(self.stem + suffix, self.folder)

    def sync(self) -> None:
        """Make the names in the folder durable; a read-only file system has nothing to lose."""
        try:
            self.disk.fsync(self.folder)
        except OSError as error:
            if error.errno != errno.EROFS:
                raise

    def open(self, suffix: str) -> _OpenFile | None:
        """Open a regular file of the object; None where there is none (a link is none)."""
        try:
            handle = self.disk.open_file(self.stem + suffix, self.folder)
        except OSError as error:
            # ENXIO is what a socket answers.
            if is_missing(error) or error.errno == errno.ENXIO:
                return None
            raise
        try:
            found = self.disk.fstat(handle)
        except BaseException:
            self.disk.close(handle)
            raise
        if not stat.S_ISREG(found.st_mode):
            self.disk.close(handle)
            return None
        return _OpenFile(self.disk, handle, found)

    def sidecar(self, suffix: str) -> AnySidecar:
        """Read and decode a sidecar or journal; None where there is none."""
        opened = self.open(suffix)
        if opened is None:
            return None
        with opened:
            return decode_sidecar(opened.head(MAX_SIDECAR_BYTES + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One object as it is now. `data` is empty unless the whole object was asked for."""

    data: bytes
    metadata: dict[str, str]
    version: str
    sidecar: AnySidecar


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What `examine` found: the object or None, and the steps that put its files in order."""

    view: View | None
    steps: tuple[Step, ...]
    sidecars: tuple[AnySidecar, ...]

    def check_writable(self) -> None:
        """Raise `StorageRejectedError` where a newer format is involved."""
        for sidecar in self.sidecars:
            check_writable(sidecar)


def glance(place: Place, *, whole: bool, journal_seen: bool | None = None) -> View | None:
    """Return the object, or None where the key is absent, without a lock.

    `journal_seen` says whether the journal stood in the folder at some moment of the call; None looks.
    That must be known before the body is opened: no other reader can then have seen a later state
    before this call began. Raises `UnsettledError` where the lock is needed, else `OSError`.
    """
    if place.exists(JOURNAL) if journal_seen is None else journal_seen:
        raise UnsettledError
    # The body is kept open until its sidecar was read, so that its inode number cannot be given to
    # another file meanwhile.
    body = place.open(BODY)
    if body is None:
        if place.exists(SIDECAR):
            raise UnsettledError
        return None
    with body:
        sidecar = place.sidecar(SIDECAR)
        if not isinstance(sidecar, Sidecar) or not sidecar.describes(body.found):
            raise UnsettledError
        data = body.read() if whole else b""
        if not sidecar.describes(place.disk.fstat(body.handle)):
            # Someone is editing the file in place.
            raise UnsettledError
        metadata, version = metadata_and_version(place.key, sidecar, sidecar.digest or "")
    return View(data=data, metadata=metadata, version=version, sidecar=sidecar)


def examine(place: Place, *, whole: bool) -> Examined:
    """Decide what the object is, under the lock. Raises `OSError` only.

    Where the answer rests on a rename that may not be durable yet, the folder is synced first, so
    that nobody acts on what a power failure could take back.
    """
    with ExitStack() as stack:
        body = place.open(BODY)
        fresh = place.open(FRESH)
        for opened in (body, fresh):
            if opened is not None:
                stack.enter_context(opened)
        sidecar = place.sidecar(SIDECAR)
        journal = place.sidecar(JOURNAL)
        chosen, described_by, steps = _decide(place, body, fresh, sidecar, journal)
        outgoing = place.exists(OUTGOING)
        if outgoing:
            steps.append(("drop", OUTGOING))
        if place.exists(PARTIAL):
            steps.append(("drop", PARTIAL))
        if journal is not None or (outgoing and body is None):
            place.sync()
        view = None if chosen is None else _view(place, chosen, described_by, whole=whole)
    return Examined(view=view, steps=tuple(steps), sidecars=(sidecar, journal))


def _decide(
    place: Place,
    body: _OpenFile | None,
    fresh: _OpenFile | None,
    sidecar: AnySidecar,
    journal: AnySidecar,
) -> tuple[_OpenFile | None, AnySidecar, list[Step]]:
    """Return the body that counts (None: absent), the sidecar that counts, and the steps."""
    # A fresh body goes only once it is durable that no journal speaks of it.
    drop_fresh: list[Step] = [("sync",), ("drop", FRESH)] if place.exists(FRESH) else []
    drop_journal: list[Step] = [("drop", JOURNAL)] if place.exists(JOURNAL) else []
    drop_sidecar: list[Step] = [("drop", SIDECAR)] if place.exists(SIDECAR) else []

    ours = sidecar if isinstance(sidecar, Sidecar) else None
    if isinstance(journal, Sidecar):
        if fresh is not None and fresh.is_of(journal):
            # Decided, not carried out: roll forward.
            return fresh, journal, [("move", FRESH, BODY), ("move", JOURNAL, SIDECAR)]
        if body is not None and body.is_of(journal):
            return body, journal, [("move", JOURNAL, SIDECAR), *drop_fresh]
        # A journal without its body was taken back, or a power failure lost what came before it.
    if ours is not None and body is not None and body.is_of(ours):
        return body, ours, [*drop_journal, *drop_fresh]
    if ours is not None and fresh is not None and ours.describes(fresh.found):
        # A power failure kept the second rename of a write and lost the first.
        return fresh, ours, [*drop_journal, ("move", FRESH, BODY)]
    if body is None:
        return None, None, [*drop_journal, *drop_sidecar, *drop_fresh]
    # The body was changed by hand.
    if isinstance(journal, Sidecar):
        return body, journal, [("move", JOURNAL, SIDECAR), *drop_fresh]
    return body, sidecar, [*drop_journal, *drop_fresh]


def carry_out(place: Place, steps: tuple[Step, ...]) -> None:
    """Put the files of an object in order, under the exclusive lock. Raises `OSError`.

    Interrupted anywhere, the object is still the same and the rest can be done later.
    """
    for step in steps:
        if step[0] == "move":
            place.move(step[1], step[2])
        elif step[0] == "drop":
            place.drop(step[1])
        else:
            place.sync()


def _view(place: Place, body: _OpenFile, sidecar: AnySidecar, *, whole: bool) -> View:
    """Read what is asked for; the version belongs to exactly the bytes that were read."""
    data = b""
    if whole:
        data = body.read()
        digest = hashlib.sha256(data).hexdigest()
    elif isinstance(sidecar, Sidecar) and sidecar.describes(body.found):
        digest = sidecar.digest or ""
    else:
        digest = body.digest()
    metadata, version = metadata_and_version(place.key, sidecar, digest)
    return View(data=data, metadata=metadata, version=version, sidecar=sidecar)


class _OpenFile:
    """A regular file, open for reading."""

    __slots__ = ("_digest", "_disk", "found", "handle")

    def __init__(self, disk: Disk, handle: int, found: os.stat_result) -> None:
        self._disk = disk
        self.handle = handle
        self.found = found
        self._digest: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._disk.close(self.handle)

    def read(self) -> bytes:
        """Return the whole content."""
        return b"".join(self._disk.read(self.handle))

    def head(self, limit: int) -> bytes:
        """Return the content, or its beginning if that is over `limit` bytes."""
        content = bytearray()
        for piece in self._disk.read(self.handle):
            content += piece
            if len(content) >= limit:
                break
        return bytes(content[:limit])

    def digest(self) -> str:
        """Return the SHA-256 of the content, which is read once."""
        if self._digest is None:
            hasher = hashlib.sha256()
            for piece in self._disk.read(self.handle):
                hasher.update(piece)
            self._digest = hasher.hexdigest()
        return self._digest

    def is_of(self, sidecar: Sidecar) -> bool:
        """Tell whether this is the body that the sidecar was written for, by content if need be."""
        if sidecar.describes(self.found):
            return True
        if sidecar.digest is None or sidecar.size not in (None, self.found.st_size):
            return False
        return self.digest() == sidecar.digest
