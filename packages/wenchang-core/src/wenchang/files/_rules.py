"""The rules that every change of a tree keeps: a path is a file or a folder, limits, what is stored.

A `Desk` decides calls on one working state. Rules are checked before anything is changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from wenchang.errors import BackendUnavailableError
from wenchang.files import _history as history
from wenchang.files._records import Record, State, deleted, to_datetime, to_micros, with_state
from wenchang.files._working import Working
from wenchang.files.errors import (
    MAX_CONFLICT_CONTENT_BYTES,
    AlreadyExistsError,
    LimitExceededError,
    StaleSnapshotError,
    TreeStateError,
    VersionConflictError,
)
from wenchang.files.limits import TreeLimits
from wenchang.files.paths import ancestors, depth, parent_of
from wenchang.files.policy import HistoryPolicy, TreePolicy
from wenchang.files.texts import count_lines, decode_text
from wenchang.files.values import FileEntry, FolderEntry, Written

__all__ = ["Contents", "Desk", "Settings", "no_file_text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a tree object was made with."""

    limits: TreeLimits
    history: HistoryPolicy | None
    policy: TreePolicy
    clock: Callable[[], datetime]

    def now(self) -> int:
        """Return the clock's time in microseconds."""
        return to_micros(self.clock())

    def oldest_kept(self) -> int:
        """Return the time of the oldest past state that may still be shown."""
        return 0 if self.history is None else history.oldest_time(self.history, self.now())


class Contents(Protocol):
    """Where contents are read, and planned before a commit uploads them."""

    def load(self, key: str) -> bytes:
        """Return a content, one that is only planned included."""
        ...

    def plan(
        self,
        state: State,
        path: str,
        data: bytes,
        token: str,
        *,
        newest: int,
        based_on: str | None,
    ) -> str:
        """Return the key under which a new content will lie if its call is committed.

        `newest` is the number of the path's newest token so far (0: none), `based_on` the key of the
        content it was made from, if any.
        """
        ...


class Desk:
    """One working state, the settings in force, and the contents."""

    def __init__(self, working: Working, settings: Settings, contents: Contents) -> None:
        self.working = working
        self.settings = settings
        self.contents = contents
        # Stored times never go back, whatever the clocks of several machines say.
        working.time = max(settings.now(), working.time)

    def token(self, record: Record) -> str:
        """Return the version token of a file."""
        return self._token(record.number)

    def _token(self, number: int) -> str:
        return f"v{number}-{self.working.incarnation[:6]}"

    def load(self, record: Record) -> bytes:
        """Return the content of a file."""
        return self.contents.load(record.key)

    # --- what is at a path -----------------------------------------------------------------------

    def file(self, path: str) -> Record | None:
        """Return the file at a path."""
        record = self.working.find(path)
        return record if record is not None and record.live else None

    def check_no_folder(self, path: str) -> None:
        """Refuse a path at which a folder is."""
        if self.working.has_below(path):
            raise AlreadyExistsError(path, "folder")

    def check_place(self, path: str) -> None:
        """Refuse a path for a new file: where a folder is, or that runs through a file."""
        self.check_no_folder(path)
        self.check_ancestors(path)

    def check_ancestors(self, path: str) -> None:
        """Refuse a path that runs through a file."""
        if self.working.has_neighbour_below(path, parent_of(path)):
            # Its folder exists already, so none of the names above is a file.
            return
        for folder in ancestors(path):
            if self.file(folder) is not None:
                raise AlreadyExistsError(
                    folder, "file", f"{folder} is a file, so nothing can be beneath it."
                )

    def check_version(self, record: Record, version: str | None) -> None:
        """Refuse a stale version; the refusal carries the current text if it is short."""
        if version is None or version == self.token(record):
            return
        text = None
        if record.size <= MAX_CONFLICT_CONTENT_BYTES:
            try:
                text = decode_text(self.load(record))
            except (BackendUnavailableError, StaleSnapshotError, TreeStateError):
                # The conflict is certain, and its text only a help.
                text = None
        raise VersionConflictError(record.path, self.token(record), text)

    # --- limits ----------------------------------------------------------------------------------

    def check_depth(self, path: str) -> None:
        """Refuse a new file that lies too deep."""
        check_limit("maxDepth", depth(path), self.settings.limits.max_depth)

    def _check_sizes(self, old: Record | None, size: int) -> None:
        """Refuse a content by what it raises; what a call does not raise never refuses it."""
        limits = self.settings.limits
        before = 0 if old is None else old.size
        if old is None:
            check_limit("maxFileCount", self.working.files + 1, limits.max_file_count)
        if size > before:
            check_limit("maxFileBytes", size, limits.max_file_bytes)
            total = self.working.bytes + size - before
            check_limit("maxTotalBytes", total, limits.max_total_bytes)

    # --- changes ---------------------------------------------------------------------------------

    def store(self, path: str, data: bytes, source: str, *, based_on: str | None = None) -> Written:
        """Give a path, checked before, a new content; return what that came to."""
        found = self.working.find(path)
        old = found if found is not None and found.live else None
        self._check_sizes(old, len(data))
        working, now = self.working, self.working.time
        policy = self.settings.history
        lines = count_lines(data)
        number = working.next_number()
        state = State("", len(data), lines, number, now, source if policy is not None else "")
        newest = 0 if found is None else max(found.number, *(s.number for s in found.history), 0)
        key = self.contents.plan(
            state, path, data, self._token(number), newest=newest, based_on=based_on
        )
        kept = history.kept_states(policy, found, now, replaced=True)
        working.put(with_state(path, state._replace(key=key), kept))
        self._make_room()
        return Written(
            path=path,
            version=self._token(number),
            size=len(data),
            lines=lines,
            modified=to_datetime(now),
            created=old is None,
            changed=True,
            previous="" if old is None else self.token(old),
        )

    def unchanged(self, record: Record) -> Written:
        """Return the outcome of a call that leaves a file as it is."""
        return Written(
            path=record.path,
            version=self.token(record),
            size=record.size,
            lines=record.lines,
            modified=to_datetime(record.modified),
            created=False,
            changed=False,
            previous=self.token(record),
        )

    def remove(self, record: Record) -> None:
        """Delete a file; where history is on, its states are kept."""
        kept = history.kept_states(self.settings.history, record, self.working.time, replaced=True)
        if kept:
            self.working.put(deleted(record.path, kept))
        else:
            self.working.remove(record.path)
        self._make_room()

    def rename(self, record: Record, target: str) -> None:
        """Move a file, checked before, with its past states."""
        there = self.working.find(target)
        kept = history.merged_states(self.settings.history, record, there)
        self.working.remove(record.path)
        self.working.put(record._replace(path=target, history=kept))

    def drop_expired(self) -> None:
        """Drop the past states that are older than history is kept."""
        if self.settings.history is not None:
            history.drop_expired(self.working, self.settings.history, self.working.time)

    def _make_room(self) -> None:
        history.make_room(self.working, self.settings.history, self.settings.limits.max_total_bytes)


def check_limit(name: str, value: int, maximum: int) -> None:
    """Raise `LimitExceededError` where a value is above its limit."""
    if value > maximum:
        raise LimitExceededError(name, value, maximum)


def no_file_text(path: str, found: FileEntry | FolderEntry | None) -> str:
    """Return the sentence for a path that should be a file; "" for the plain one."""
    return f"{path} is a folder, not a file." if isinstance(found, FolderEntry) else ""
