"""The core store: everything that a memory file is, on any storage, for callers that are trusted.

Every operation takes full paths. Nothing here knows scopes from each other or who calls: the tools
check that. So seeding jobs and operators write the system area here like any other.

Arguments that an agent chooses are refused with `InvalidArgumentError`, which names them; a wrong
type is TypeError; a `source` or an option that breaks its rule is ValueError. A refused call changes
nothing. Errors of the storage pass through: `BackendUnavailableError`, whose `outcome` says whether a
write may have happened, and `StorageRejectedError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Final

from wenchang._cursors import MEMORY_LISTING, decode_cursor, encode_cursor
from wenchang._objects import Objects, decode_body, naming
from wenchang._options import check_positive, check_scope_priority, check_storage, stamp
from wenchang.errors import (
    FileQuotaExceededError,
    InvalidArgumentError,
    MetadataFormatError,
    NotFoundError,
    OversizeWriteError,
    ReplaceFactMatchError,
    VersionConflictError,
    WenchangError,
)
from wenchang.facts import fact_line_problem, text_problem
from wenchang.index import INDEX_SYSTEM_AREA, cap_entries, index_entry_bytes, order_entries
from wenchang.index_cache import EntityListings, IndexCache
from wenchang.metadata import (
    FileMetadata,
    check_aliases,
    check_description,
    check_metadata_size,
    check_source,
    decode_metadata,
    encode_metadata,
    merge_aliases,
    unreadable_metadata,
)
from wenchang.operators import (
    PURGE_MAX_PASSES,
    ImportReport,
    PurgeIncompleteError,
    count_import,
    export_objects,
    import_object,
    purge_objects,
    split_key,
)
from wenchang.paths import (
    PathParts,
    build_prefix,
    is_valid_path,
    parse_path,
    parse_prefix,
)
from wenchang.read_cache import ReadCache
from wenchang.records import (
    CappedPrefix,
    ExportedObject,
    FileEntry,
    ListPage,
    MemoryFile,
    MemoryIndex,
)
from wenchang.storage.contract import ListedObject, Storage, StoredObject
from wenchang.storage.errors import InvalidStorageKeyError, PreconditionFailedError

__all__ = [
    "DEFAULT_READ_CACHE",
    "INDEX_SYSTEM_AREA",
    "PURGE_MAX_PASSES",
    "REPLACE_FACT_ATTEMPTS",
    "CappedPrefix",
    "DefaultReadCache",
    "ExportedObject",
    "FileEntry",
    "ImportReport",
    "ListPage",
    "MemoryFile",
    "MemoryIndex",
    "MemoryStore",
    "PurgeIncompleteError",
    "index_entry_bytes",
]

REPLACE_FACT_ATTEMPTS: Final = 3
"""Writes that one `replace_fact` tries while others write the same file."""
_CREATE_ATTEMPTS: Final = 3


class DefaultReadCache(Enum):
    """The type of `DEFAULT_READ_CACHE`, so that a type checker can tell it from None."""

    DEFAULT = "a read cache of its own"


DEFAULT_READ_CACHE: Final = DefaultReadCache.DEFAULT
"""Stands for a new `ReadCache`. Each store needs one of its own, so it cannot be the default itself."""


def _now() -> datetime:
    """Return the time in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class _Draft:
    """A file as it is about to be written."""

    content: str
    data: bytes
    description: str
    aliases: tuple[str, ...]
    sources: frozenset[str]


class MemoryStore:
    """Memory files on one storage. Serves any number of threads.

    Options: `max_file_bytes`, the largest body in bytes of UTF-8; `clock`, which gives aware
    datetimes and stamps each write; `list_page_size`, entries on a page of `list_prefix`;
    `index_max_bytes`, the budget of the index; `scope_priority`, the scopes that a capped index keeps
    first; `max_files_per_entity`, files outside of `system/` that an entity may hold (None: any
    number); `index_cache`; `read_cache`, None to switch it off. Wrong types are TypeError, sizes that
    are not positive and scopes that are repeated or no path segments ValueError.

    Requests to the storage: `read_file` one get; a change at a version that this store read or wrote
    one conditional put, otherwise a get before it; a create one listing request for each 1,000 objects of
    the entity (none without a cap) and one conditional put; `delete_file` one conditional delete;
    `list_prefix` one page; `get_memory_index` one listing request for each 1,000 files of a scope. A
    conflict costs one get more, unless the storage has read the object already.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        max_file_bytes: int = 16_384,
        clock: Callable[[], datetime] = _now,
        list_page_size: int = 100,
        index_max_bytes: int = 65_536,
        scope_priority: Sequence[str] = (),
        max_files_per_entity: int | None = 500,
        index_cache: IndexCache | None = None,
        read_cache: ReadCache | DefaultReadCache | None = DEFAULT_READ_CACHE,
    ) -> None:
        """Check and keep the options. Makes no request."""
        check_storage(storage)
        if not callable(clock):
            msg = f"clock must be callable, not {type(clock).__name__}"
            raise TypeError(msg)
        if index_cache is not None and not isinstance(index_cache, IndexCache):
            msg = f"index_cache must be an IndexCache or None, not {type(index_cache).__name__}"
            raise TypeError(msg)
        if read_cache is DEFAULT_READ_CACHE:
            read_cache = ReadCache()
        elif read_cache is not None and not isinstance(read_cache, ReadCache):
            msg = f"read_cache must be a ReadCache or None, not {type(read_cache).__name__}"
            raise TypeError(msg)
        priority = check_scope_priority(scope_priority)
        self._max_file_bytes = check_positive("max_file_bytes", max_file_bytes)
        self._list_page_size = check_positive("list_page_size", list_page_size)
        self._index_max_bytes = check_positive("index_max_bytes", index_max_bytes)
        self._max_files = (
            None
            if max_files_per_entity is None
            else check_positive("max_files_per_entity", max_files_per_entity)
        )
        self._scope_priority = priority
        self._clock = clock
        self._storage = storage
        self._objects = Objects(storage, read_cache)
        self._listings = EntityListings(index_cache)

    @property
    def max_file_bytes(self) -> int:
        """The largest body, in bytes of UTF-8."""
        return self._max_file_bytes

    @property
    def list_page_size(self) -> int:
        """The most entries on a page of `list_prefix`."""
        return self._list_page_size

    @property
    def index_max_bytes(self) -> int:
        """The budget of the index, in bytes of the entries' compact JSON."""
        return self._index_max_bytes

    @property
    def max_files_per_entity(self) -> int | None:
        """The most files of an entity outside of `system/`, or None for no cap."""
        return self._max_files

    @property
    def scope_priority(self) -> tuple[str, ...]:
        """The scopes that a capped index keeps first."""
        return self._scope_priority

    # --- reading -----------------------------------------------------------------------------

    def read_file(self, path: str) -> MemoryFile:
        """Return the file as it is now. An object without our metadata is a file made by hand.

        Raises `NotFoundError` (`invalid_path`, `file_absent`), `MetadataFormatError` where the stored
        metadata cannot be decoded and UnicodeDecodeError where the body cannot.
        """
        _locate(path)
        stored = self._read(path)
        metadata = decode_metadata(stored.metadata)
        return MemoryFile(path, decode_body(stored.data), metadata, stored.version)

    def list_prefix(self, prefix: str, cursor: str | None = None) -> ListPage:
        """Return one page of the files under a prefix (of a scope, entity or area), in key order.

        The next page is asked for with `next_cursor` and the same prefix. Pages are no snapshot: what is
        neither written nor deleted meanwhile appears exactly once. Objects whose keys are no file paths
        are passed over, so a page may hold fewer entries than `list_page_size` and still not be the
        last one. A file whose metadata cannot be decoded is shown with a description that says so.

        Raises `NotFoundError` (`invalid_path`) for what is no prefix, `InvalidArgumentError` for a
        cursor that does not belong to this very prefix. A cursor holds the position relative to the
        prefix, so with the prefix of an entity or an area it shows no entity id.
        """
        area = _check_prefix(prefix)
        start = None if cursor is None else prefix + self._position(prefix, cursor)
        try:
            page = self._objects.page(prefix, start, self._list_page_size + 1)
        except InvalidStorageKeyError as error:
            refused = error
        else:
            listed = page[: self._list_page_size]
            more = len(page) > len(listed)
            position = listed[-1].key.removeprefix(prefix) if more else ""
            return ListPage(
                tuple(_entry(found) for found in listed if is_valid_path(found.key)),
                encode_cursor(MEMORY_LISTING, prefix, position) if more else None,
            )
        argument = "cursor" if cursor is not None else "area" if area is not None else "scope"
        raise InvalidArgumentError(argument, f"this storage cannot hold it: {refused}") from refused

    def get_memory_index(self, scope_map: Mapping[str, str]) -> MemoryIndex:
        """Return the index of one entity for each scope: entries in index order up to the budget.

        `scope_map` maps scopes to entity ids; an empty one is an empty index. Files that cannot be
        decoded are shown with a description that says so. With an index cache an entry may be out of
        date for as long as `wenchang.index_cache` says; its version then leads to a conflict.

        Raises TypeError unless `scope_map` maps str to str, ValueError for a scope or an entity id
        that is no valid path segment; then nothing is asked of the storage.
        """
        entities = _check_scope_map(scope_map)
        entries = [
            _entry(found) for entity in entities for found in self._listing(entity[0], entity[1])
        ]
        return cap_entries(order_entries(entries, self._scope_priority), self._index_max_bytes)

    # --- writing -----------------------------------------------------------------------------

    def write_file(
        self,
        path: str,
        content: str,
        metadata: FileMetadata,
        expected_version: str | None,
        *,
        source: str,
    ) -> MemoryFile:
        """Create the file (`expected_version` None) or replace it at a version; return it.

        `content` is any UTF-8 text without NUL and is kept byte for byte. Description and aliases
        replace what is stored; sources grow by those of `metadata` and by `source`. A file whose
        metadata or body cannot be decoded is repaired by replacing it.

        Raises, in this order: `NotFoundError` (`invalid_path`), TypeError, ValueError or
        `InvalidArgumentError` for arguments, `OversizeWriteError`; to create,
        `VersionConflictError` where there is a file, then `FileQuotaExceededError`; to replace,
        `NotFoundError` (`file_absent`), then `VersionConflictError`.
        """
        parts = _locate(path)
        if expected_version is not None:
            _check_text("expected_version", expected_version)
        given = self._draft_of_write(path, content, metadata, check_source(source))
        if expected_version is None:
            return self._create(path, parts, given)

        def replace(base: StoredObject) -> _Draft:
            try:
                stored = decode_metadata(base.metadata).sources
            except MetadataFormatError:
                stored = frozenset()
            return self._draft(
                path, given.content, given.description, given.aliases, stored | given.sources
            )

        return self._change(path, parts, expected_version, replace)

    def append_line(
        self,
        path: str,
        line: str,
        expected_version: str,
        *,
        source: str,
        aliases: Iterable[str] | None = None,
        description: str | None = None,
    ) -> MemoryFile:
        """Add one fact line to the end of an existing file at a version; return the file.

        A line break goes before the line where a body that is not empty ends without one, and one
        goes after it. New aliases are added after the stored ones; a description replaces the stored
        one when it is given. A stale version is a conflict: an append is never applied by itself to
        a text that its caller has not seen.

        Raises `NotFoundError`, TypeError, ValueError or `InvalidArgumentError` for arguments,
        `VersionConflictError`, `OversizeWriteError`, and as `read_file` does for a file that cannot
        be decoded.
        """
        parts = _locate(path)
        _check_text("line", line)
        problem = fact_line_problem(line)
        if problem is not None:
            raise InvalidArgumentError("line", problem)
        _check_text("expected_version", expected_version)
        merge = _merger(check_source(source), aliases, description)

        def append(base: StoredObject) -> _Draft:
            text = decode_body(base.data)
            separator = "\n" if text and not text.endswith("\n") else ""
            return self._draft(
                path, f"{text}{separator}{line}\n", *merge(decode_metadata(base.metadata))
            )

        return self._change(path, parts, expected_version, append)

    def replace_fact(
        self,
        path: str,
        old_string: str,
        new_string: str,
        expected_version: str,
        *,
        source: str,
        aliases: Iterable[str] | None = None,
        description: str | None = None,
    ) -> MemoryFile:
        """Replace the one place where `old_string` stands in the file; return the file.

        An empty `new_string` removes it. Where the file has moved on from `expected_version` but still
        holds `old_string` exactly once, the change is applied to the current text; up to
        `REPLACE_FACT_ATTEMPTS` writes are tried, each checked anew. Aliases and description as in
        `append_line`; with a given description the last writer wins.

        Raises as `append_line` does; `ReplaceFactMatchError` where the text at `expected_version`
        holds `old_string` not at all or more than once (overlaps count), and `VersionConflictError`
        where a newer text does, or where every attempt was overtaken.
        """
        parts = _locate(path)
        _check_text("old_string", old_string)
        _check_text("new_string", new_string)
        if not old_string:
            raise InvalidArgumentError("old_string", "it must not be empty")
        problem = text_problem(new_string)
        if problem is not None:
            raise InvalidArgumentError("new_string", problem)
        _check_text("expected_version", expected_version)
        merge = _merger(check_source(source), aliases, description)

        def replace(base: StoredObject) -> _Draft:
            text = decode_body(base.data)
            count = _count(text, old_string)
            if count != 1:
                if base.version == expected_version:
                    raise ReplaceFactMatchError(path, text, base.version, count)
                raise _conflict(path, base)
            return self._draft(
                path,
                text.replace(old_string, new_string, 1),
                *merge(decode_metadata(base.metadata)),
            )

        base = self._usable(path, expected_version, replace) or self._read(path)
        for _ in range(REPLACE_FACT_ATTEMPTS):
            draft = replace(base)
            try:
                return self._save(path, parts, draft, base.version)
            except PreconditionFailedError as error:
                failed = error
            base = self._current(path, failed)
        raise _conflict(path, base)

    def delete_file(self, path: str, expected_version: str) -> None:
        """Delete the file at a version. Nothing of it is decoded, so any file can be deleted.

        Raises `NotFoundError` where there is none (so that a deletion that is already done can be told),
        TypeError, and `VersionConflictError` for any other version.
        """
        parts = _locate(path)
        _check_text("expected_version", expected_version)
        try:
            self._objects.delete(path, expected_version)
        except PreconditionFailedError as error:
            failed = error
        else:
            return
        finally:
            self._listings.invalidate(parts.scope, parts.entity_id)
        raise _conflict(path, self._current(path, failed))

    # --- operators ---------------------------------------------------------------------------

    def purge(self, scope: str, entity_id: str, *, max_passes: int = PURGE_MAX_PASSES) -> int:
        """Delete every object of an entity, file or not; return how many were certainly deleted.

        What a provider keeps beside the current objects (old versions, soft-deleted ones) is out of
        reach from here. Raises `PurgeIncompleteError` if objects remain after `max_passes` rounds of
        listing and deleting, ValueError and TypeError for arguments.
        """
        check_positive("max_passes", max_passes)
        prefix = build_prefix(scope, entity_id)
        try:
            return purge_objects(self._objects, prefix, max_passes)
        finally:
            self._objects.forget(prefix)
            self._listings.erase(scope, entity_id)

    def export(self, scope: str, entity_id: str) -> tuple[ExportedObject, ...]:
        """Return every object of an entity, undecoded and in key order, all at once.

        See `export_iter` for entities that do not fit into memory. ValueError and TypeError for
        arguments.
        """
        return tuple(self.export_iter(scope, entity_id))

    def export_iter(self, scope: str, entity_id: str) -> Iterator[ExportedObject]:
        """Return an iterator over what `export` gives, which holds one body at a time.

        Each object is read on its own: what is deleted meanwhile is left out. Errors of the storage
        come while it runs; those of arguments come at once.
        """
        return export_objects(self._objects, self._storage, build_prefix(scope, entity_id))

    def import_(
        self, exported: Iterable[ExportedObject], *, overwrite: bool = False
    ) -> ImportReport:
        """Write exported objects under their keys, undecoded, and report what was done.

        A key that holds something else is left as it is, unless `overwrite`; running an import again
        after a failure therefore continues it. Limits on files do not apply. Raises ValueError at a
        key without scope and entity, with the objects before it written.
        """
        return count_import(self._import(exported, overwrite=overwrite))

    def invalidate_index(self, scope: str, entity_id: str) -> None:
        """Make the next index that includes the entity list storage. Nothing without a cache.

        For those who change storage without this store. ValueError and TypeError for arguments.
        """
        build_prefix(scope, entity_id)
        self._listings.invalidate(scope, entity_id)

    # --- inside ------------------------------------------------------------------------------

    def _read(self, path: str) -> StoredObject:
        """Return the object as it is now; `file_absent` where there is none."""
        stored = self._objects.get(path)
        if stored is None:
            raise NotFoundError(path, "file_absent")
        return stored

    def _current(self, path: str, error: PreconditionFailedError) -> StoredObject:
        """Return what made a write fail; `file_absent` where there is nothing any more."""
        stored = self._objects.current(path, error)
        if stored is None:
            raise NotFoundError(path, "file_absent")
        return stored

    def _usable(
        self, path: str, expected: str, build: Callable[[StoredObject], _Draft]
    ) -> StoredObject | None:
        """Return the object at `expected` if it is known and the change can be built on it.

        An error is never raised from what is only known: the file may have moved on, and a conflict
        goes before every other complaint. So the caller then reads, and complains of what is there.
        """
        known = self._objects.known(path, expected)
        if known is not None:
            try:
                build(known)
            except (WenchangError, MetadataFormatError, UnicodeDecodeError):
                return None
        return known

    def _change(
        self,
        path: str,
        parts: PathParts,
        expected: str,
        build: Callable[[StoredObject], _Draft],
    ) -> MemoryFile:
        """Write what `build` makes of the file at version `expected`, or say what is there instead."""
        base = self._usable(path, expected, build) or self._read(path)
        if base.version != expected:
            raise _conflict(path, base)
        try:
            return self._save(path, parts, build(base), expected)
        except PreconditionFailedError as error:
            failed = error
        raise _conflict(path, self._current(path, failed))

    def _create(self, path: str, parts: PathParts, draft: _Draft) -> MemoryFile:
        """Write a new file, or say what is there or why there is no room."""
        self._check_quota(path, parts)
        for _ in range(_CREATE_ATTEMPTS):
            try:
                return self._save(path, parts, draft, None)
            except PreconditionFailedError as error:
                failed = error
            current = self._objects.current(path, failed)
            if current is not None:
                raise _conflict(path, current)
            # Deleted between the refusal and the look at it: there is room for it now.
        raise NotFoundError(path, "file_absent")

    def _check_quota(self, path: str, parts: PathParts) -> None:
        """Refuse a file that would exceed the cap, unless the path is taken already."""
        if self._max_files is None or parts.area == INDEX_SYSTEM_AREA:
            return
        count = 0
        with naming("name"):
            for key, _ in self._objects.versions(build_prefix(parts.scope, parts.entity_id)):
                if key == path:
                    return
                count += is_valid_path(key) and parse_path(key).area != INDEX_SYSTEM_AREA
                if count >= self._max_files:
                    break
        if count < self._max_files:
            return
        # The listing stopped early, perhaps before this very path; an existing file is a conflict.
        stored = self._objects.get(path)
        if stored is not None:
            raise _conflict(path, stored)
        raise FileQuotaExceededError(path, self._max_files)

    def _draft_of_write(
        self, path: str, content: str, metadata: FileMetadata, source: str
    ) -> _Draft:
        """Check what a caller of `write_file` passes."""
        _check_text("content", content)
        problem = text_problem(content)
        if problem is not None:
            raise InvalidArgumentError("content", problem)
        if not isinstance(metadata, FileMetadata):
            msg = f"metadata must be a FileMetadata, not {type(metadata).__name__}"
            raise TypeError(msg)
        sources = frozenset(map(check_source, metadata.sources)) | {source}
        description = check_description(metadata.description)
        return self._draft(path, content, description, check_aliases(metadata.aliases), sources)

    def _draft(
        self,
        path: str,
        content: str,
        description: str,
        aliases: tuple[str, ...],
        sources: frozenset[str],
    ) -> _Draft:
        """Return a draft whose body and metadata are within their limits."""
        data = content.encode()
        if len(data) > self._max_file_bytes:
            raise OversizeWriteError(path, len(data), self._max_file_bytes)
        # The longest stamp, so that what passes here passes whatever the clock will say.
        longest = datetime.max.replace(tzinfo=UTC)
        check_metadata_size(encode_metadata(FileMetadata(description, aliases, sources, longest)))
        return _Draft(content, data, description, aliases, sources)

    def _save(self, path: str, parts: PathParts, draft: _Draft, expected: str | None) -> MemoryFile:
        """Stamp a draft and write it at a version."""
        metadata = FileMetadata(draft.description, draft.aliases, draft.sources, stamp(self._clock))
        try:
            version = self._objects.put(path, draft.data, encode_metadata(metadata), expected)
        finally:
            # Also after a failure: the write may have landed, and a conflict proves a missed change.
            self._listings.invalidate(parts.scope, parts.entity_id)
        return MemoryFile(path, draft.content, metadata, version)

    def _listing(self, scope: str, entity_id: str) -> Sequence[ListedObject]:
        """Return the files of an entity, from the index cache where it has them."""
        prefix = build_prefix(scope, entity_id)

        def list_storage() -> list[ListedObject]:
            with naming("scope"):
                return [
                    found for found in self._objects.listing(prefix) if is_valid_path(found.key)
                ]

        return self._listings.listing(scope, entity_id, list_storage)

    def _position(self, prefix: str, cursor: str) -> str:
        """Return where a cursor of this prefix stands."""
        _check_text("cursor", cursor)
        try:
            return decode_cursor(MEMORY_LISTING, prefix, cursor)
        except ValueError:
            pass
        raise InvalidArgumentError(
            "cursor", "it is not a cursor of this listing; pass next_cursor as it was returned"
        )

    def _import(
        self, exported: Iterable[ExportedObject], *, overwrite: bool
    ) -> Iterator[tuple[str, str]]:
        """Import one object after another; yield its key and what became of it."""
        entities: set[tuple[str, str]] = set()
        try:
            for item in exported:
                entity = split_key(item.key)
                build_prefix(*entity)
                entities.add(entity)
                yield item.key, import_object(self._storage, item, overwrite=overwrite)
        finally:
            for entity in entities:
                self._listings.invalidate(*entity)


def _locate(path: str) -> PathParts:
    """Take a path apart, or say that it is none."""
    _check_text("path", path)
    try:
        return parse_path(path)
    except ValueError:
        pass
    raise NotFoundError(path, "invalid_path")


def _check_prefix(prefix: str) -> str | None:
    """Return the area of a prefix, or say that it is none."""
    _check_text("prefix", prefix)
    try:
        return parse_prefix(prefix).area
    except ValueError:
        pass
    raise NotFoundError(prefix, "invalid_path")


def _check_text(argument: str, value: object) -> None:
    """Raise TypeError unless an argument is a str."""
    if not isinstance(value, str):
        msg = f"{argument} must be a str, not {type(value).__name__}"
        raise TypeError(msg)


def _check_scope_map(scope_map: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the entities of an index, each with its scope."""
    if not isinstance(scope_map, Mapping):
        msg = f"scope_map must be a mapping, not {type(scope_map).__name__}"
        raise TypeError(msg)
    entities = list(scope_map.items())
    for scope, entity_id in entities:
        build_prefix(scope, entity_id)
        _check_text("entity_id", entity_id)
    return entities


def _entry(found: ListedObject) -> FileEntry:
    """Return the entry of a listed file, which says so where its metadata cannot be decoded."""
    try:
        metadata = decode_metadata(found.metadata)
    except MetadataFormatError as error:
        metadata = unreadable_metadata(error)
    return FileEntry(found.key, metadata, found.version)


def _conflict(path: str, current: StoredObject) -> VersionConflictError:
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


def _merger(
    source: str, aliases: Iterable[str] | None, description: str | None
) -> Callable[[FileMetadata], tuple[str, tuple[str, ...], frozenset[str]]]:
    """Check the metadata arguments of a change; return what adds them to the stored ones."""
    added = () if aliases is None else check_aliases(aliases)
    if description is not None:
        check_description(description)

    def merge(stored: FileMetadata) -> tuple[str, tuple[str, ...], frozenset[str]]:
        return (
            stored.description if description is None else description,
            merge_aliases(stored.aliases, added),
            stored.sources | {source},
        )

    return merge


def _count(text: str, wanted: str) -> int:
    """Return at how many places `wanted` begins, overlapping ones included."""
    count = 0
    start = text.find(wanted)
    while start >= 0:
        count += 1
        start = text.find(wanted, start + 1)
    return count
