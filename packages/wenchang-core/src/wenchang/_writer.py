"""How a change reaches the storage: quota, stamp, conditional write, and what a refusal means."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Final

from wenchang._drafts import Build, Draft
from wenchang._objects import Objects, decode_body, naming
from wenchang._options import stamp
from wenchang._receipts import receipts_metadata
from wenchang.errors import (
    FileQuotaExceededError,
    MetadataFormatError,
    NotFoundError,
    RecoverableError,
    VersionConflictError,
)
from wenchang.index import INDEX_SYSTEM_AREA
from wenchang.index_cache import EntityListings
from wenchang.metadata import decode_metadata, encode_metadata
from wenchang.paths import PathParts, build_prefix, parse_path
from wenchang.records import MemoryFile
from wenchang.storage.contract import StoredObject
from wenchang.storage.errors import PreconditionFailedError

__all__ = ["Writer", "conflict"]

_CREATE_ATTEMPTS: Final = 3


def conflict(path: str, current: StoredObject) -> VersionConflictError:
    """Return the conflict that shows the current state; UnicodeDecodeError where it is no text."""
    content = decode_body(current.data)
    try:
        metadata = decode_metadata(current.metadata)
    except MetadataFormatError:
        return VersionConflictError(path, content, current.version)
    return VersionConflictError(
        path,
        content,
        current.version,
        description=metadata.description,
        aliases=metadata.aliases,
    )


class Writer:
    """The one place that writes and deletes files."""

    def __init__(
        self,
        objects: Objects,
        listings: EntityListings,
        clock: Callable[[], datetime],
        max_files: int | None,
    ) -> None:
        """Keep the parts."""
        self._objects = objects
        self._listings = listings
        self._clock = clock
        self._max_files = max_files

    def change(
        self, path: str, parts: PathParts, expected: str, build: Build, attempts: int = 1
    ) -> MemoryFile:
        """Write what `build` makes of the stored file.

        Begins with the file at `expected` where that is known, else with what is stored; `build`
        decides whether another version will do. Each write names the version that it was built on;
        where that was overtaken, `build` gets the newer file, as long as there are attempts left.
        """
        base, draft = self._first(path, expected, build)
        for left in reversed(range(attempts)):
            try:
                return self._save(path, parts, draft, base.version)
            except PreconditionFailedError as error:
                refused = error
            base = self._current(path, refused)
            if left:
                draft = build(base)
        raise conflict(path, base)

    def create(self, path: str, parts: PathParts, draft: Draft) -> MemoryFile:
        """Write a new file, or say what is there or why there is no room."""
        self._check_quota(path, parts)
        for _ in range(_CREATE_ATTEMPTS):
            try:
                return self._save(path, parts, draft, None)
            except PreconditionFailedError as error:
                refused = error
            current = self._objects.current(path, refused)
            if current is not None:
                raise conflict(path, current)
            # Deleted between the refusal and the look at it: there is room for it now.
        raise NotFoundError(path, "file_absent")

    def delete(self, path: str, parts: PathParts, expected: str) -> None:
        """Delete a file at a version, or say what is there instead."""
        try:
            self._objects.delete(path, expected)
        except PreconditionFailedError as error:
            refused = error
        else:
            return
        finally:
            self._listings.invalidate(parts.scope, parts.entity_id)
        raise conflict(path, self._current(path, refused))

    def _first(self, path: str, expected: str, build: Build) -> tuple[StoredObject, Draft]:
        """Return what the first write is built on, and its draft."""
        known = self._objects.known(path, expected)
        if known is not None:
            # No complaint is made of what is only known, since the file may have moved on and a
            # conflict goes before every other complaint: it is read, and judged as it is now.
            with suppress(RecoverableError, MetadataFormatError, UnicodeDecodeError):
                return known, build(known)
        stored = self._objects.get(path)
        if stored is None:
            raise NotFoundError(path, "file_absent")
        return stored, build(stored)

    def _current(self, path: str, error: PreconditionFailedError) -> StoredObject:
        """Return what made a write fail; `file_absent` where there is nothing any more."""
        stored = self._objects.current(path, error)
        if stored is None:
            raise NotFoundError(path, "file_absent")
        return stored

    def _save(self, path: str, parts: PathParts, draft: Draft, expected: str | None) -> MemoryFile:
        """Stamp a draft and write it at a version."""
        metadata = draft.stamped(stamp(self._clock))
        try:
            stored = encode_metadata(metadata, receipts_metadata(draft.receipts))
            version = self._objects.put(path, draft.data, stored, expected)
        finally:
            # After a failure too: the write may have landed, and a conflict proves a missed change.
            self._listings.invalidate(parts.scope, parts.entity_id)
        return MemoryFile(path, draft.content, metadata, version)

    def _check_quota(self, path: str, parts: PathParts) -> None:
        """Refuse a file that would exceed the cap, unless the path is taken already."""
        if self._max_files is None or parts.area == INDEX_SYSTEM_AREA:
            return
        count = 0
        with naming("name"):
            for key, _ in self._objects.versions(build_prefix(parts.scope, parts.entity_id)):
                count += _counts(key)
                if count >= self._max_files:
                    break
        if count < self._max_files:
            return
        # No room for another file; but a file that is there already is a conflict, not a full entity.
        stored = self._objects.get(path)
        if stored is not None:
            raise conflict(path, stored)
        raise FileQuotaExceededError(path, self._max_files)


def _counts(key: str) -> bool:
    """Tell whether an object is a file that the cap counts: outside of the system area."""
    try:
        return parse_path(key).area != INDEX_SYSTEM_AREA
    except ValueError:
        return False
