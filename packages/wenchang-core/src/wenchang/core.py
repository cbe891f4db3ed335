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
from datetime import UTC, datetime
from enum import Enum
from functools import partial
from typing import Final

from wenchang._drafts import (
    Draft,
    append_to,
    check_text,
    check_writing,
    count_places,
    draft,
    merger,
    stored_sources,
)
from wenchang._listing import check_scope_map, list_files, list_page, to_entry
from wenchang._objects import Objects, decode_body
from wenchang._options import check_positive, check_scope_priority, check_storage
from wenchang._receipts import Receipt, stored_receipts
from wenchang._writer import Writer, conflict
from wenchang.errors import (
    InvalidArgumentError,
    MetadataFormatError,
    NotFoundError,
    ReplaceFactMatchError,
)
from wenchang.facts import fact_line_problem, text_problem
from wenchang.index import INDEX_SYSTEM_AREA, cap_entries, index_entry_bytes, order_entries
from wenchang.index_cache import EntityListings, IndexCache
from wenchang.metadata import FileMetadata, decode_metadata
from wenchang.operators import (
    PURGE_MAX_PASSES,
    ImportReport,
    PurgeIncompleteError,
    export_objects,
    import_objects,
    purge_everything,
)
from wenchang.paths import PathParts, build_prefix, parse_path
from wenchang.read_cache import ReadCache
from wenchang.records import (
    CappedPrefix,
    ExportedObject,
    FileEntry,
    FileState,
    ListPage,
    MemoryFile,
    MemoryIndex,
)
from wenchang.storage.contract import Storage, StoredObject

__all__ = [
    "DEFAULT_READ_CACHE",
    "INDEX_SYSTEM_AREA",
    "PURGE_MAX_PASSES",
    "REPLACE_FACT_ATTEMPTS",
    "CappedPrefix",
    "DefaultReadCache",
    "ExportedObject",
    "FileEntry",
    "FileState",
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


class DefaultReadCache(Enum):
    """The type of `DEFAULT_READ_CACHE`, so that a type checker can tell it from None."""

    DEFAULT = "a read cache of its own"


DEFAULT_READ_CACHE: Final = DefaultReadCache.DEFAULT
"""Stands for a new `ReadCache`. Each store needs one of its own, so it cannot be the default itself."""


def _now() -> datetime:
    """Return the time in UTC."""
    return datetime.now(UTC)


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
        self._storage = storage
        self._objects = Objects(storage, read_cache)
        self._listings = EntityListings(index_cache)
        self._writer = Writer(self._objects, self._listings, clock, self._max_files)

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
        stored = self._objects.get(path)
        if stored is None:
            raise NotFoundError(path, "file_absent")
        metadata = decode_metadata(stored.metadata)
        return MemoryFile(path, decode_body(stored.data), metadata, stored.version)

    def file_state(self, path: str) -> FileState:
        """Return version, metadata and receipts of a file as it is now; its body is not decoded.

        One request. Raises `NotFoundError`.
        """
        _locate(path)
        stored = self._objects.get(path)
        if stored is None:
            raise NotFoundError(path, "file_absent")
        try:
            metadata = decode_metadata(stored.metadata)
        except MetadataFormatError:
            return FileState(stored.version, None, ())
        return FileState(stored.version, metadata, stored_receipts(stored.metadata))

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
        return list_page(self._objects, prefix, cursor, self._list_page_size)

    def get_memory_index(self, scope_map: Mapping[str, str]) -> MemoryIndex:
        """Return the index of one entity for each scope: entries in index order up to the budget.

        `scope_map` maps scopes to entity ids; an empty one is an empty index. Files that cannot be
        decoded are shown with a description that says so. With an index cache an entry may be out of
        date for as long as `wenchang.index_cache` says; its version then leads to a conflict.

        Raises TypeError unless `scope_map` maps str to str, ValueError for a scope or an entity id
        that is no valid path segment; then nothing is asked of the storage.
        """
        entries: list[FileEntry] = []
        for scope, entity_id in check_scope_map(scope_map):
            prefix = build_prefix(scope, entity_id)
            found = self._listings.listing(
                scope, entity_id, partial(list_files, self._objects, prefix)
            )
            entries.extend(map(to_entry, found))
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
        return self.write_with_receipts(
            path, content, metadata, expected_version, source=source, receipts=None
        )

    def write_with_receipts(
        self,
        path: str,
        content: str,
        metadata: FileMetadata,
        expected_version: str | None,
        *,
        source: str,
        receipts: Sequence[Receipt] | None,
    ) -> MemoryFile:
        """Do what `write_file` does and replace the file's receipts of calls with effect keys.

        As many of the newest are kept as there is room for; None keeps those that are there.
        """
        parts = _locate(path)
        if expected_version is not None:
            check_text("expected_version", expected_version)
        description, aliases, sources = check_writing(content, metadata, source)
        new = self._draft(path, content, description, aliases, sources, receipts or ())
        if expected_version is None:
            return self._writer.create(path, parts, new)

        def replace(base: StoredObject) -> Draft:
            if base.version != expected_version:
                raise conflict(path, base)
            kept = stored_receipts(base.metadata) if receipts is None else receipts
            merged = sources | stored_sources(base)
            return self._draft(path, content, description, aliases, merged, kept)

        return self._writer.change(path, parts, expected_version, replace)

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
        check_text("line", line)
        problem = fact_line_problem(line)
        if problem is not None:
            raise InvalidArgumentError("line", problem)
        check_text("expected_version", expected_version)
        merge = merger(source, aliases, description)

        def append(base: StoredObject) -> Draft:
            if base.version != expected_version:
                raise conflict(path, base)
            metadata = decode_metadata(base.metadata)
            kept = stored_receipts(base.metadata)
            return self._draft(path, append_to(base, line), *merge(metadata), kept)

        return self._writer.change(path, parts, expected_version, append)

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
        check_text("old_string", old_string)
        check_text("new_string", new_string)
        if not old_string:
            raise InvalidArgumentError("old_string", "it must not be empty")
        problem = text_problem(new_string)
        if problem is not None:
            raise InvalidArgumentError("new_string", problem)
        check_text("expected_version", expected_version)
        merge = merger(source, aliases, description)

        def replace(base: StoredObject) -> Draft:
            text = decode_body(base.data)
            count = count_places(text, old_string)
            if count != 1 and base.version == expected_version:
                raise ReplaceFactMatchError(path, text, base.version, count)
            if count != 1:
                raise conflict(path, base)
            changed = text.replace(old_string, new_string, 1)
            kept = stored_receipts(base.metadata)
            return self._draft(path, changed, *merge(decode_metadata(base.metadata)), kept)

        return self._writer.change(
            path, parts, expected_version, replace, attempts=REPLACE_FACT_ATTEMPTS
        )

    def delete_file(self, path: str, expected_version: str) -> None:
        """Delete the file at a version. Nothing of it is decoded, so any file can be deleted.

        Raises `NotFoundError` where there is none (so that a deletion that is already done can be told),
        TypeError, and `VersionConflictError` for any other version.
        """
        parts = _locate(path)
        check_text("expected_version", expected_version)
        self._writer.delete(path, parts, expected_version)

    # --- operators ---------------------------------------------------------------------------

    def purge(self, scope: str, entity_id: str, *, max_passes: int = PURGE_MAX_PASSES) -> int:
        """Delete every object of an entity, file or not; return how many were certainly deleted.

        Its file tree (`wenchang.files`) goes too: at any moment there is the old tree or an empty
        one. What a provider keeps beside the current objects (old versions, soft-deleted ones) is
        out of reach from here. Raises `PurgeIncompleteError` if objects remain after `max_passes`
        rounds of listing and deleting, `TreeStateError` for a tree of a newer format, ValueError
        and TypeError for arguments. After any failure, purge again: it goes on where it stopped.
        """
        check_positive("max_passes", max_passes)
        prefix = _entity_prefix(scope, entity_id)
        try:
            return purge_everything(self._objects, self._storage, scope, entity_id, max_passes)
        finally:
            self._objects.forget(prefix)
            self._listings.erase(scope, entity_id)

    def export(self, scope: str, entity_id: str) -> tuple[ExportedObject, ...]:
        """Return every object of an entity's memory, undecoded and in key order, all at once.

        Its file tree (`wenchang.files`) is not among them, though `purge` erases it. See
        `export_iter` for what does not fit at once. ValueError and TypeError for arguments.
        """
        return tuple(self.export_iter(scope, entity_id))

    def export_iter(self, scope: str, entity_id: str) -> Iterator[ExportedObject]:
        """Return an iterator over what `export` gives, which holds one body at a time.

        Each object is read on its own: what is deleted meanwhile is left out. Errors of the storage
        come while it runs; those of arguments come at once.
        """
        return export_objects(self._objects, self._storage, _entity_prefix(scope, entity_id))

    def import_(
        self, exported: Iterable[ExportedObject], *, overwrite: bool = False
    ) -> ImportReport:
        """Write exported objects under their keys, undecoded, and report what was done.

        A key that holds something else is left as it is, unless `overwrite`; running an import again
        after a failure therefore continues it. Limits on files do not apply. Raises ValueError at a
        key without scope and entity, with the objects before it written.
        """
        return import_objects(
            self._storage, exported, overwrite=overwrite, touched=self._listings.invalidate
        )

    def invalidate_index(self, scope: str, entity_id: str) -> None:
        """Make the next index that includes the entity list storage. Nothing without a cache.

        For those who change storage without this store. ValueError and TypeError for arguments.
        """
        _entity_prefix(scope, entity_id)
        self._listings.invalidate(scope, entity_id)

    def _draft(
        self,
        path: str,
        content: str,
        description: str,
        aliases: tuple[str, ...],
        sources: frozenset[str],
        receipts: Sequence[Receipt] = (),
    ) -> Draft:
        """Return a draft within this store's limits."""
        return draft(
            path,
            content,
            description,
            aliases,
            sources,
            max_file_bytes=self._max_file_bytes,
            receipts=receipts,
        )


def _locate(path: str) -> PathParts:
    """Take a path apart; `invalid_path` where it is none."""
    check_text("path", path)
    try:
        return parse_path(path)
    except ValueError:
        pass
    raise NotFoundError(path, "invalid_path")


def _entity_prefix(scope: str, entity_id: str) -> str:
    """Return the prefix of one entity; None for its id is refused, not taken for the whole scope."""
    check_text("entity_id", entity_id)
    return build_prefix(scope, entity_id)
