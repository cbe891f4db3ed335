"""What operators do with all of an entity: erase it, export it, restore it. Not for agents.

`MemoryStore` offers these as methods. They work on raw objects, so that keys which are no file paths
and objects which cannot be decoded are included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pkgutil import resolve_name
from typing import Final, Literal, TypeAlias

from wenchang._objects import Objects
from wenchang.paths import build_prefix
from wenchang.records import ExportedObject
from wenchang.storage.contract import Storage
from wenchang.storage.errors import UNREAD, PreconditionFailedError
from wenchang.storage.keys import RESERVED_METADATA_PREFIX

__all__ = [
    "PURGED_BESIDE",
    "PURGE_MAX_PASSES",
    "ImportReport",
    "PurgeIncompleteError",
    "export_objects",
    "import_objects",
    "purge_everything",
    "purge_objects",
]

PURGE_MAX_PASSES: Final = 5
"""How often a purge lists and deletes before it gives up against writers that keep writing."""

PURGED_BESIDE: Final = ("wenchang.files.erasure:purge_entity",)
"""What else holds data of an entity, as `module:function`; a purge of the entity calls each.

By name and only then loaded: they stand above the memory core, which knows no more of them than that
an erasure has to reach them.
"""

_IMPORT_ATTEMPTS: Final = 5
_Outcome: TypeAlias = Literal["created", "replaced", "unchanged", "kept"]


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


def purge_everything(
    objects: Objects, storage: Storage, scope: str, entity_id: str, max_passes: int
) -> int:
    """Erase an entity, its memory and what `PURGED_BESIDE` holds of it; return how many objects went.

    All are tried where one is incomplete. Raises `PurgeIncompleteError` with the sums of all.
    """
    erasures = [partial(purge_objects, objects, build_prefix(scope, entity_id), max_passes)]
    erasures += [
        partial(resolve_name(name), storage, scope, entity_id, max_passes=max_passes)
        for name in PURGED_BESIDE
    ]
    deleted = remaining = 0
    for erase in erasures:
        try:
            deleted += erase()
        except PurgeIncompleteError as error:
            deleted += error.deleted
            remaining += error.remaining
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


def import_objects(
    storage: Storage,
    exported: Iterable[ExportedObject],
    *,
    overwrite: bool,
    touched: Callable[[str, str], None],
) -> ImportReport:
    """Write exported objects back; report what was done.

    `touched` is called once for each entity in which something may have been written, also after a
    failure.
    """
    counts = {"created": 0, "replaced": 0, "unchanged": 0}
    kept: list[str] = []
    entities: set[tuple[str, str]] = set()
    try:
        for item in exported:
            entities.add(_entity_of(item.key))
            outcome = _import_object(storage, item, overwrite=overwrite)
            if outcome == "kept":
                kept.append(item.key)
            else:
                counts[outcome] += 1
    finally:
        for scope, entity_id in entities:
            touched(scope, entity_id)
    return ImportReport(**counts, kept=tuple(kept))


def _import_object(storage: Storage, exported: ExportedObject, *, overwrite: bool) -> _Outcome:
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
            if current.data == exported.data and dict(current.metadata) == metadata:
                return "unchanged"
            if not overwrite:
                return "kept"
        expected = None if current is None else current.version
    return "kept"


def _entity_of(key: str) -> tuple[str, str]:
    """Return scope and entity id of an object's key; ValueError where it lies in no entity."""
    scope, _, rest = key.partition("/")
    entity_id, slash, _ = rest.partition("/")
    build_prefix(scope, entity_id)
    if not slash:
        msg = "the key of an exported object begins with its scope and its entity id"
        raise ValueError(msg)
    return scope, entity_id
