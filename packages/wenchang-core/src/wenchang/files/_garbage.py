"""Removal of what nothing refers to.

An object is useless for certain when no root refers to it and none ever will again. A commit refers
only to what its predecessor refers to and to what was uploaded under its own incarnation and epoch.
So after the epoch has been raised, what the root does not refer to then and was uploaded under an older
epoch is useless, whatever writers do meanwhile and however late they are. No clock has a say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wenchang.errors import BackendUnavailableError
from wenchang.files._objects import Objects, RootState
from wenchang.files._queue import CommitQueue
from wenchang.files._root import Root
from wenchang.files._rules import Desk
from wenchang.files.errors import StaleSnapshotError, TreeStateError
from wenchang.files.values import GarbageReport
from wenchang.storage.errors import StorageError

__all__ = ["Care", "collect_garbage", "delete_useless", "epoch_of", "references"]

_ATTEMPTS = 4
_CHUNK = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Care:
    """A request of the tree's own, after which a batch ends."""

    path: str = ""
    effect_key: str | None = None
    operation: str = "care"
    ends_batch: bool = True

    def digest(self) -> str:
        """It has no arguments that a receipt could be about."""
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _NextEpoch(Care):
    """Raise the epoch, and drop past states that are too old."""

    def decide(self, desk: Desk) -> int:
        """Return the new epoch."""
        desk.drop_expired()
        desk.working.next_epoch()
        return desk.working.epoch


def collect_garbage(objects: Objects, queue: CommitQueue) -> GarbageReport:
    """Delete what nothing refers to; see `FileTree.collect_garbage`."""
    state = objects.read_root()
    if state.version is None:
        raise TreeStateError("absent")
    state.root.check_writable()
    queue.run(_NextEpoch())
    state, referenced = references(objects)
    return delete_useless(objects, referenced, state.root.epoch)


def references(objects: Objects) -> tuple[RootState, set[str]]:
    """Return the present root and the keys of all that it refers to.

    Raises `TreeStateError` where the root is absent or a page of it is missing or unreadable.
    """
    for _ in range(_ATTEMPTS):
        state = objects.read_root()
        if state.version is None:
            raise TreeStateError("absent")
        state.root.check_writable()
        try:
            return state, _keys_of(objects, state.root)
        except StaleSnapshotError:
            # Replaced and removed since: the next root does without it, or it really is missing.
            continue
    raise TreeStateError("missing_object")


def _keys_of(objects: Objects, root: Root) -> set[str]:
    keys = {page.key for page in root.receipt_pages}
    for ref in root.pages:
        if ref.key:
            keys.add(ref.key)
        for record in objects.page(root, ref).records:
            keys.update(record.all_keys())
    return keys


def epoch_of(key: str) -> int | None:
    """Return the epoch that a key was made in; None for a key that no tree made."""
    parts = key.split("/")
    if len(parts) != 3 or not parts[1].isascii() or not parts[1].isdecimal():
        return None
    return int(parts[1])


def delete_useless(
    objects: Objects, referenced: set[str], epoch: int, *, strays: bool = False
) -> GarbageReport:
    """Delete what is unreferenced and older than an epoch; with `strays` also what no tree made."""
    useless: list[tuple[str, str]] = []
    deleted = kept = used = 0
    for key, version in objects.listed():
        made = epoch_of(key)
        if key in referenced:
            used += 1
        elif (made is None and not strays) or (made is not None and made >= epoch):
            kept += 1
        else:
            useless.append((key, version))
        if len(useless) >= _CHUNK:
            deleted += _delete_all(objects, useless)
            useless = []
    deleted += _delete_all(objects, useless)
    return GarbageReport(referenced=used, deleted=deleted, kept=kept)


def _delete_all(objects: Objects, useless: list[tuple[str, str]]) -> int:
    """Delete objects side by side; return how many. Raises the last error, after trying all."""
    done: list[str] = []
    errors = objects.workers.each([_deletion(objects, *each, done) for each in useless])
    for error in errors:
        if isinstance(error, BackendUnavailableError | StorageError):
            raise error
    return len(done)


def _deletion(objects: Objects, key: str, version: str, done: list[str]) -> Callable[[], None]:
    def delete() -> None:
        if objects.delete(key, version):
            done.append(key)

    return delete
