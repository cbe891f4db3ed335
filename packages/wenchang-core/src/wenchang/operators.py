"""What operators do with all of an entity: erase it, export it, restore it. Not for agents.

`MemoryStore` offers these as methods. They work on raw objects, so that keys which are no file paths
and objects which cannot be decoded are included.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from wenchang._objects import Objects
from wenchang.records import ExportedObject
from wenchang.storage.contract import Storage, StoredObject
from wenchang.storage.errors import UNREAD, PreconditionFailedError
from wenchang.storage.keys import RESERVED_METADATA_PREFIX

__all__ = [
    "PURGE_MAX_PASSES",
    "ImportReport",
    "PurgeIncompleteError",
    "export_objects",
    "import_object",
    "purge_objects",
]

PURGE_MAX_PASSES: Final = 5
"""How often a purge lists and deletes before it gives up against writers that keep writing."""

_IMPORT_ATTEMPTS: Final = 5


class PurgeIncompleteError(Exception):
    """Objects remain after the last pass of a purge: something keeps writing. Stop it and repeat.

    `deleted` objects were deleted by this call; `remaining` were there at the last look.
    """

    def __init__(self, deleted: int, remaining: int) -> None:
        """Keep both counts."""
        super().__init__(
            f"{remaining} objects remain and {deleted} were deleted: something is still writing. "
            "Stop the writers and purge again"
        )
        self.deleted = deleted
        self.remaining = remaining

    def __reduce__(self) -> tuple[type[PurgeIncompleteError], tuple[int, int]]:
        """Rebuild from the two counts rather than from the text."""
        return (type(self), (self.deleted, self.remaining))


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What an import did: objects created, replaced, found identical, and the keys left as they were.

    `kept` names the keys that hold something else and were not to be overwritten (or, while
    overwriting, were written by others again and again).
    """

    created: int = 0
    replaced: int = 0
    unchanged: int = 0
    kept: tuple[str, ...] = ()


def purge_objects(objects: Objects, prefix: str, max_passes: int) -> int:
    """Delete every object under `prefix`; return how many this call certainly deleted.

    Each pass lists and deletes at the listed versions, so that a writer is never overrun unseen.
    Raises `PurgeIncompleteError` if something is left after the last pass.
    """
    deleted = 0
    for _ in range(max_passes):
        found = list(objects.versions(prefix))
        if not found:
            return deleted
        for key, version in found:
            try:
                objects.delete(key, version)
            except PreconditionFailedError:
                # Gone or rewritten since it was listed: the next pass sees which.
                continue
            deleted += 1
    remaining = sum(1 for _ in objects.versions(prefix))
    if remaining:
        raise PurgeIncompleteError(deleted, remaining)
    return deleted


def export_objects(objects: Objects, storage: Storage, prefix: str) -> Iterator[ExportedObject]:
    """Yield every object under `prefix` in key order, one body at a time.

    Each is read on its own: what is deleted meanwhile is left out, what is written meanwhile may or may
    not be there.
    """
    for key, _ in objects.versions(prefix):
        # Straight from the storage: an export must not push working files out of the read cache.
        stored = storage.get(key)
        if stored is not None:
            yield ExportedObject(key, stored.data, stored.metadata, stored.version)


def import_object(storage: Storage, exported: ExportedObject, *, overwrite: bool) -> str:
    """Write one exported object back; return the field of `ImportReport` that it counts for."""
    # A backend's own mark (of an object it could not decode) is nothing that can be written.
    metadata = {
        name: value
        for name, value in exported.metadata.items()
        if not name.startswith(RESERVED_METADATA_PREFIX)
    }
    expected: str | None = None
    for _ in range(_IMPORT_ATTEMPTS):
        try:
            storage.put_if_version(exported.key, exported.data, metadata, expected)
        except PreconditionFailedError as error:
            current = storage.get(exported.key) if error.current is UNREAD else error.current
        else:
            return "created" if expected is None else "replaced"
        if current is not None:
            if _same(current, exported.data, metadata):
                return "unchanged"
            if not overwrite:
                return "kept"
        expected = None if current is None else current.version
    return "kept"


def _same(current: StoredObject, data: bytes, metadata: Mapping[str, str]) -> bool:
    """Tell whether an object already is what would be written."""
    return current.data == data and dict(current.metadata) == metadata


def split_key(key: str) -> tuple[str, str]:
    """Return scope and entity id of an object's key; ValueError where it has none."""
    segments = key.split("/")
    if len(segments) < 3:
        msg = "a key of an export is {scope}/{entity_id}/…"
        raise ValueError(msg)
    return segments[0], segments[1]


def count_import(
    outcomes: Iterable[tuple[str, str]],
) -> ImportReport:
    """Add up pairs of key and outcome."""
    counts = {"created": 0, "replaced": 0, "unchanged": 0}
    kept: list[str] = []
    for key, outcome in outcomes:
        if outcome == "kept":
            kept.append(key)
        else:
            counts[outcome] += 1
    return ImportReport(**counts, kept=tuple(kept))
