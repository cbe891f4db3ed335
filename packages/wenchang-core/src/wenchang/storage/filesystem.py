"""`FilesystemStorage`: durable objects as plain files in one local folder (POSIX).

The key `a/b/c.md` is the file `a/b/c.md%obj`, which holds exactly the body, and beside it
`a/b/c.md%meta`, a sidecar of JSON with the version and the metadata. Both can be read, searched and
backed up with ordinary tools, and bodies may be edited by hand.
"""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from wenchang.storage._fs_disk import Disk, disk_errors
from wenchang.storage._fs_folders import make_folders, open_folders, prune_folders
from wenchang.storage._fs_journal import commit_delete, commit_put
from wenchang.storage._fs_listing import Listing
from wenchang.storage._fs_lock import Deadline, Held, RootLock
from wenchang.storage._fs_names import encode_key
from wenchang.storage._fs_objects import (
    Place,
    UnsettledError,
    View,
    carry_out,
    examine,
    glance,
)
from wenchang.storage._fs_root import prepared_root
from wenchang.storage._fs_sidecar import Sidecar, encode_sidecar, new_sidecar
from wenchang.storage.contract import STORAGE_CONTRACT, ListedObject, StoredObject
from wenchang.storage.descriptor import BackendDescriptor
from wenchang.storage.errors import (
    PreconditionFailedError,
    StorageConfigurationError,
    StorageError,
    StorageRejectedError,
)
from wenchang.storage.keys import (
    check_body,
    check_expected,
    check_key,
    check_listing,
    check_metadata,
    is_valid_key,
)

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from wenchang.storage.locations import StorageLocation

__all__ = ["DESCRIPTOR", "FilesystemOptions", "FilesystemStorage"]

_LEFTOVERS_KEPT: Final = 64
# In seconds: a lock cannot wait for any number of them.
_LONGEST_DEADLINE: Final = 365 * 86_400


class FilesystemStorage:
    """A `Storage` in a folder of a local file system, for one machine.

    **Safe** over threads, instances, processes and fork: every change holds a lock on `.lock` in the
    root, and a process that is killed gives it back. Reads need it only where a write is under way or
    files were changed by hand.

    **Durable.** A write returns after the new body, its sidecar and the folder are on the disk. A
    crash at any moment leaves the old object or the new one, never a mixture; what it leaves behind
    is never listed and is removed by the next holder of the lock.

    **Hand-made changes.** A body that was changed has a version of its own from then on, the same in
    `get` and listings, so writers that hold the old version get `PreconditionFailedError`. A body
    without a sidecar is an object with empty metadata. A sidecar without a body is no object. An
    object whose sidecar cannot be decoded comes back whole, with the one metadata name
    `wenchang-unreadable`.

    **Private.** Files are made with mode 0600 and folders with 0700, whatever the umask. Symbolic
    links inside the root are never followed: they are no objects, a write replaces a link that stands
    for its file, and is refused where a link stands for one of its folders.

    Besides the errors of the contract, a segment of a key that takes more than 200 bytes as a file
    name (every byte other than `a-z 0-9 - _ ~ .` takes three) is `InvalidStorageKeyError`. A full or
    read-only disk and missing rights are `StorageRejectedError`; any other failure of the disk is
    `BackendUnavailableError`, whose outcome is `unknown` only if a change could neither be completed
    nor taken back.
    """

    def __init__(
        self, root: Path | str, *, deadline: float = 30.0, _disk: Disk | None = None
    ) -> None:
        """Open the folder `root`, making it with mode 0700 if it is missing.

        `root` may be reached through symbolic links; they are resolved here, once. `deadline` is the
        longest time in seconds that a call waits for the lock.

        Raises TypeError for wrong types, and `StorageConfigurationError` for a deadline that is not
        positive or over a year, a root that cannot be made or written (a read-only file system is
        accepted, for reading), that is no folder, or that lies on a network file system.
        """
        if not isinstance(root, str | os.PathLike):
            msg = f"root must be a Path, not {type(root).__name__}"
            raise TypeError(msg)
        number = isinstance(deadline, int | float) and not isinstance(deadline, bool)
        if not number or not 0 < deadline <= _LONGEST_DEADLINE:
            msg = "option 'deadline' must be a positive number of seconds, a year at most"
            raise StorageConfigurationError(msg)
        self._disk = _disk or Disk()
        self._deadline = float(deadline)
        self._lock = RootLock(self._disk)
        # Keys whose files a listing found out of order, for the next holder of the lock.
        self._leftovers: deque[str] = deque(maxlen=_LEFTOVERS_KEPT)
        self._root = prepared_root(self._disk, root)

    def __enter__(self) -> Self:
        """Return the store itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Do nothing: no file stays open between calls."""

    def get(self, key: str) -> StoredObject | None:
        """Return the object at `key`, or None; see `Storage.get`."""
        check_key(key)
        folders, stem = encode_key(key)
        deadline = Deadline(self._deadline)
        with (
            disk_errors(),
            self._open_root() as root,
            open_folders(self._disk, root, folders) as folder,
        ):
            if folder is None:
                return None
            place = Place(disk=self._disk, folder=folder, stem=stem, key=key)
            try:
                view = glance(place, whole=True)
            except UnsettledError:
                with self._lock.shared(root, deadline):
                    view = examine(place, whole=True).view
        return None if view is None else StoredObject(view.data, view.metadata, view.version)

    def put(self, key: str, data: bytes, metadata: Mapping[str, str]) -> str:
        """Create or replace; see `Storage.put`."""
        check_key(key)
        check_body(data)
        return self._store(key, data, check_metadata(metadata), expected=None, conditional=False)

    def put_if_version(
        self, key: str, data: bytes, metadata: Mapping[str, str], expected: str | None
    ) -> str:
        """Create or replace under a condition; see `Storage.put_if_version`."""
        check_key(key)
        check_body(data)
        copied = check_metadata(metadata)
        check_expected(expected, optional=True)
        return self._store(key, data, copied, expected=expected, conditional=True)

    def delete_if_version(self, key: str, expected: str) -> None:
        """Delete under a condition; see `Storage.delete_if_version`. Works on a full disk."""
        check_key(key)
        check_expected(expected, optional=False)
        folders, stem = encode_key(key)
        with disk_errors(), self._open_root() as root, self._changing(root) as held:
            with open_folders(self._disk, root, folders) as folder:
                if folder is None:
                    raise PreconditionFailedError(key)
                place = Place(disk=self._disk, folder=folder, stem=stem, key=key)
                view = _put_in_order(held, place)
                if view is None or view.version != expected:
                    raise PreconditionFailedError(key)
                held.begin(key)
                in_order = commit_delete(place)
            if in_order and prune_folders(self._disk, root, folders):
                held.finish()

    def list_page(self, prefix: str, start_after: str | None, limit: int) -> Sequence[ListedObject]:
        """Return one page in key order; see `Storage.list_page`.

        A file in the root that this user may not read, and that is not ours, is left out.
        """
        return [
            ListedObject(key, view.metadata, view.version)
            for key, view in self._page(prefix, start_after, limit)
        ]

    def list_versions(
        self, prefix: str, start_after: str | None, limit: int
    ) -> Sequence[tuple[str, str]]:
        """Return `(key, version)` pairs by the rules of `list_page`."""
        return [(key, view.version) for key, view in self._page(prefix, start_after, limit)]

    def _page(self, prefix: str, start_after: str | None, limit: int) -> list[tuple[str, View]]:
        check_listing(prefix, start_after, limit)
        deadline = Deadline(self._deadline)
        with disk_errors(), self._open_root() as root:
            listing = Listing(
                disk=self._disk,
                root=root,
                shared=lambda: self._lock.shared(root, deadline),
                prefix=prefix,
                start_after=start_after,
            )
            with closing(listing.objects()) as found:
                page = list(islice(found, limit))
        self._leftovers.extend(listing.leftovers)
        return page

    def _store(
        self,
        key: str,
        data: bytes,
        metadata: dict[str, str],
        *,
        expected: str | None,
        conditional: bool,
    ) -> str:
        """Carry out a put; with `conditional`, only if the version is `expected`."""
        folders, stem = encode_key(key)
        digest = hashlib.sha256(data).hexdigest()
        with disk_errors(), self._open_root() as root, self._changing(root) as held:
            view: View | None = None
            with open_folders(self._disk, root, folders) as existing:
                if existing is not None:
                    place = Place(disk=self._disk, folder=existing, stem=stem, key=key)
                    view = _put_in_order(held, place)
            if conditional and (None if view is None else view.version) != expected:
                raise PreconditionFailedError(key)
            replaced = view.sidecar if view and isinstance(view.sidecar, Sidecar) else None
            version = os.urandom(16).hex()

            def sidecar(body: os.stat_result) -> bytes:
                made = new_sidecar(
                    version,
                    metadata,
                    digest,
                    body,
                    replaced=replaced,
                    replaced_version=expected,
                )
                return encode_sidecar(made)

            held.begin(key)
            try:
                with make_folders(self._disk, root, folders) as folder:
                    place = Place(disk=self._disk, folder=folder, stem=stem, key=key)
                    in_order = commit_put(place, data, sidecar)
            except OSError:
                prune_folders(self._disk, root, folders)
                raise
            if in_order:
                held.finish()
        return version

    @contextmanager
    def _open_root(self) -> Iterator[int]:
        """Open the root, whose absence must not look like an empty store."""
        try:
            root = self._disk.open_root(self._root)
        except (FileNotFoundError, NotADirectoryError) as error:
            error.filename = None
            raise StorageRejectedError(
                "missing_container", "the storage folder is gone; was it moved or unmounted?"
            ) from error
        try:
            yield root
        finally:
            self._disk.close(root)

    @contextmanager
    def _changing(self, root: int) -> Iterator[Held]:
        """Hold the lock alone, after completing what others left behind."""
        with self._lock.exclusive(root, Deadline(self._deadline)) as held:
            unfinished = held.unfinished()
            if unfinished is not None:
                self._put_key_in_order(root, held, unfinished)
                held.finish()
            while self._leftovers:
                self._put_key_in_order(root, held, self._leftovers.popleft())
            yield held

    def _put_key_in_order(self, root: int, held: Held, key: str) -> None:
        """Complete or take back what a killed process left at `key`, if the disk permits.

        Readers and the next writer of the key cope with what stays.
        """
        if not is_valid_key(key):
            return
        try:
            folders, stem = encode_key(key)
            with open_folders(self._disk, root, folders) as folder:
                if folder is not None:
                    place = Place(disk=self._disk, folder=folder, stem=stem, key=key)
                    _put_in_order(held, place)
            prune_folders(self._disk, root, folders)
        except (OSError, StorageError):
            return


def _put_in_order(held: Held, place: Place) -> View | None:
    """Return the object after its files were put in order; refuse to touch a newer format."""
    examined = examine(place, whole=False)
    examined.check_writable()
    if examined.steps:
        held.begin(place.key)
        carry_out(place, examined.steps)
        held.finish()
    return examined.view


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesystemOptions:
    """The options of `file:///folder`: the seconds that a call may wait for the lock."""

    deadline: float = 30.0


def _open(location: StorageLocation) -> FilesystemStorage:
    """Open `file:///absolute/path`, percent-decoded; raises `StorageConfigurationError`."""
    options = location.options_as(FilesystemOptions)
    if not location.address.startswith("/"):
        msg = f"file storage needs an absolute path: 'file:///path/to/folder' (from {location.source})"
        raise StorageConfigurationError(msg)
    return FilesystemStorage(Path(unquote(location.address)), deadline=options.deadline)


DESCRIPTOR: Final = BackendDescriptor(
    name="file",
    contract=STORAGE_CONTRACT,
    summary="plain files in a local folder",
    options=FilesystemOptions,
    open=_open,
    local=True,
    hooks="wenchang.storage.hooks:file_hooks",
)
