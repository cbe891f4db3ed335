"""Changes of memory files: each decided on what is stored, and written at that very version."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias, TypeVar

from wenchang.core import MemoryStore
from wenchang.errors import BackendUnavailableError, OversizeWriteError
from wenchang.files._effects import Effect, is_recorded
from wenchang.files._memory_view import MemoryView, OvertakenError
from wenchang.files._patience import Patience
from wenchang.files.backend import FileChange, FileRemoval, absolute
from wenchang.files.errors import (
    FileToolError,
    LimitExceededError,
    TreeStateError,
    VersionConflictError,
)
from wenchang.metadata import EPOCH, FileMetadata
from wenchang.records import FileState, MemoryFile

__all__ = ["Decision", "MemoryChanges"]

_T = TypeVar("_T")
_NOTHING_KNOWN: Final = FileMetadata("", (), frozenset(), EPOCH)

Decision: TypeAlias = Callable[[FileState | None], tuple[str, int]]
"""Gives, of what is stored, the text that a file shall have and how many places of it were replaced.

Raises a `FileToolError` to refuse.
"""


class MemoryChanges:
    """Changes files and keeps what calls with effect keys came to, in the file's own metadata."""

    def __init__(
        self, store: MemoryStore, view: MemoryView, *, source: str, patience: Patience
    ) -> None:
        self._store = store
        self._view = view
        self._source = source
        self._patience = patience

    def change(
        self,
        operation: str,
        path: str,
        arguments: Sequence[Any],
        effect_key: str | None,
        decide: Decision,
    ) -> FileChange:
        """Give a file the text that `decide` wants, or repeat what the call came to before."""
        effect = None if effect_key is None else Effect(effect_key, operation, path, arguments)
        key = self._view.key_to_change(path, to_create=operation == "write")
        return self._until_it_holds(path, lambda: self._attempt(path, key, effect, decide))

    def delete(self, path: str, version: str | None) -> FileRemoval:
        """Delete a file, whatever it holds."""

        def attempt() -> FileRemoval:
            key = self._view.known_key(path)
            state = None if key is None else self._view.state(key)
            if key is None or state is None:
                raise self._view.no_file(path)
            self._view.key_to_change(path, to_create=False)
            self._view.check_version(path, state, version)
            self._store.delete_file(key, state.version)
            return FileRemoval(path=absolute(path))

        return self._until_it_holds(path, attempt)

    def _attempt(self, path: str, key: str, effect: Effect | None, decide: Decision) -> FileChange:
        state = self._view.state(key)
        if effect is not None and state is not None:
            for row in state.receipts:
                if row[0] == effect.key:
                    return _changed(effect.repeat(row[1]))
        try:
            text, replacements = decide(state)
            self._check_size(text)
        except FileToolError as error:
            if effect is not None and state is not None and is_recorded(error):
                version = self._record(path, key, state, effect, error)
                if isinstance(error, VersionConflictError):
                    # The record itself made a version; the caller has to go on from that one.
                    raise VersionConflictError(error.path, version, error.content) from None
            raise
        same = state is not None and self._holds(path, state, text)
        # What is recorded has no version: only the answer to the write, which holds the record, tells it.
        change = FileChange(
            path=absolute(path),
            version="",
            created=state is None,
            changed=not same,
            replacements=replacements,
            previous="" if state is None else state.version,
        )
        if state is not None and same and effect is None:
            return replace(change, version=state.version)
        receipt = None if effect is None else (effect.key, effect.record(change))
        return replace(change, version=self._save(key, text, state, receipt).version)

    def _record(
        self, path: str, key: str, state: FileState, effect: Effect, error: FileToolError
    ) -> str:
        """Keep a refusal, and return the version that the file then has.

        Not kept is that of a file which cannot be written as it is: damaged, or larger than files may be.
        """
        try:
            text = self._view.text_at(path, state)
            return self._save(key, text, state, (effect.key, effect.record(error))).version
        except (TreeStateError, OversizeWriteError):
            return state.version

    def _save(
        self, key: str, text: str, state: FileState | None, receipt: tuple[str, list[Any]] | None
    ) -> MemoryFile:
        """Write at the version that was looked at, with the receipt in the same write."""
        known = (None if state is None else state.metadata) or _NOTHING_KNOWN
        receipts = None
        if receipt is not None:
            receipts = (*(() if state is None else state.receipts), receipt)
        return self._store.write_with_receipts(
            key,
            text,
            known,
            None if state is None else state.version,
            source=self._source,
            receipts=receipts,
        )

    def _until_it_holds(self, path: str, attempt: Callable[[], _T]) -> _T:
        """Repeat an attempt that others overtook, until the deadline."""
        deadline = self._patience.deadline()
        lost = 0
        while True:
            try:
                return self._view.placed(path, attempt)
            except OvertakenError:
                if self._patience.is_over(deadline):
                    raise BackendUnavailableError(
                        "timeout", "too many writers at once", outcome="not_applied"
                    ) from None
            self._patience.pause(lost, deadline)
            lost += 1

    def _holds(self, path: str, state: FileState, text: str) -> bool:
        """Tell whether the file is already what it shall become; one that is damaged is not."""
        try:
            return self._view.text_at(path, state) == text
        except TreeStateError:
            return False

    def _check_size(self, text: str) -> None:
        size = len(text.encode())
        if size > self._store.max_file_bytes:
            raise LimitExceededError("maxFileBytes", size, self._store.max_file_bytes)


def _changed(outcome: FileChange | FileRemoval) -> FileChange:
    if not isinstance(outcome, FileChange):
        msg = "the record of a change is of another kind"
        raise TypeError(msg)
    return outcome
