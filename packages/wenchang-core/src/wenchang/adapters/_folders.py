"""Folders as harnesses treat them: deleted with all in them, and renamed.

A `StoreFileBackend` does each in one commit. Over any other backend it is done file by file: a crash
in the middle leaves some of the files where they were, and none is ever lost.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, Protocol, runtime_checkable

from wenchang.errors import BackendUnavailableError, WenchangError
from wenchang.files._patience import Patience
from wenchang.files.backend import BackendEntry, FileBackend
from wenchang.files.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    NotFoundError,
    VersionConflictError,
)
from wenchang.files.policy import TreePolicy
from wenchang.files.values import Deleted, Moved

__all__ = ["EVERY_LINE", "PATIENCE", "clear", "move", "remove"]

EVERY_LINE: Final = 1_000_000_000
"""A limit that no file reaches."""
PATIENCE: Final = Patience(TreePolicy(backoff_base=0.002, backoff_cap=0.25))
"""How long a call competes with others. Pauses are short: whoever loses a race lost it to one who won."""


@runtime_checkable
class _Removes(Protocol):
    def remove(self, path: str, *, effect_key: str | None = None) -> Deleted: ...


@runtime_checkable
class _Moves(Protocol):
    def move(
        self,
        source: str,
        target: str,
        *,
        version: str | None = None,
        effect_key: str | None = None,
    ) -> Moved: ...


def remove(files: FileBackend, path: str, *, effect_key: str | None = None) -> None:
    """Delete a folder with all beneath; `NotFoundError` where nothing is.

    Where it is done file by file each file has a key of its own, made from `effect_key`: a repeated call
    leaves what others have put there since, and is a `NotFoundError` where they have put nothing.
    """
    if isinstance(files, _Removes):
        files.remove(path, effect_key=effect_key)
        return
    entries = files.glob("**", path).entries
    with _in_steps() as done:
        before = -1
        # A pass that found nothing to delete ends it: others were quicker, and may go on writing.
        while len(done) > before:
            before = len(done)
            for entry in entries:
                if _delete(files, entry.path, effect_key):
                    done.append(entry.path)
            entries = _beneath(files, path)


def clear(files: FileBackend) -> None:
    """Delete every file."""
    with _in_steps() as done:
        before = -1
        while len(done) > before and files.glob("**", limit=1).entries:
            before = len(done)
            for entry in files.ls("/").entries:
                if _cleared(files, entry):
                    done.append(entry.path)


def move(files: FileBackend, source: str, target: str) -> None:
    """Rename a file, or a folder with all beneath. Never overwrites.

    Raises `NotFoundError`, `AlreadyExistsError` and what else the backend refuses.
    """
    if isinstance(files, _Moves):
        files.move(source, target)
        return
    if target.startswith(source + "/"):
        raise InvalidArgumentError("target", "a file or folder cannot be moved into itself")
    listing = files.glob("**", source)
    if not listing.entries:
        raise NotFoundError(source)
    if listing.truncated:
        raise InvalidArgumentError("source", "it holds too many files to move them one by one")
    if not any(entry.path == source for entry in listing.entries):
        _check_free(files, target)
    with _in_steps() as done:
        for entry in listing.entries:
            _move_file(files, entry.path, target + entry.path[len(source) :], done)


@contextmanager
def _in_steps() -> Iterator[list[str]]:
    """Give a list for what was changed: an outage after the first of it cannot say that nothing was."""
    done: list[str] = []
    try:
        yield done
    except BackendUnavailableError as error:
        if not done or error.outcome != "not_applied":
            raise
        raise BackendUnavailableError(error.reason, outcome="unknown") from error


def _cleared(files: FileBackend, entry: BackendEntry) -> bool:
    """Delete a file, or a folder with all beneath; tell whether it was there."""
    if entry.kind == "file":
        return _delete(files, entry.path)
    try:
        remove(files, entry.path)
    except NotFoundError:
        return False
    return True


def _delete(files: FileBackend, path: str, effect_key: str | None = None) -> bool:
    """Delete a file; tell whether this call did."""
    key = None
    if effect_key is not None:
        key = hashlib.sha256(f"{effect_key}\n{path}".encode()).hexdigest()
    try:
        return not files.delete(path, effect_key=key).replayed
    except NotFoundError:
        return False


def _beneath(files: FileBackend, path: str) -> tuple[BackendEntry, ...]:
    try:
        return files.glob("**", path).entries
    except NotFoundError:
        return ()


def _check_free(files: FileBackend, target: str) -> None:
    """Refuse a target where a folder is; a file there is refused by the first file that is moved."""
    try:
        files.ls(target, limit=1)
    except NotFoundError:
        return
    raise AlreadyExistsError(target, "folder")


def _move_file(files: FileBackend, source: str, target: str, done: list[str]) -> None:
    """Copy, then delete the very version that was copied; one that has changed is copied again.

    Where it cannot be deleted the copy is taken back. After an outage it stays: the source may be gone.
    """
    deadline = PATIENCE.deadline()
    version: str | None = None
    attempt = 0
    try:
        while True:
            window = files.read(source, 0, EVERY_LINE)
            if version is None:
                version = files.write(target, window.text, create_only=True).version
                done.append(target)
            else:
                version = files.write(target, window.text, version=version).version
            try:
                files.delete(source, version=window.version or None)
            except VersionConflictError:
                if PATIENCE.is_over(deadline):
                    raise
                PATIENCE.pause(attempt, deadline)
                attempt += 1
            else:
                return
    except BackendUnavailableError:
        raise
    except WenchangError:
        if version is not None:
            _take_back(files, target, version)
        raise


def _take_back(files: FileBackend, path: str, version: str) -> None:
    """Delete a copy unless another has changed it since."""
    with suppress(NotFoundError, VersionConflictError):
        files.delete(path, version=version or None)
