"""Pages of files and the listings of whole entities: from stored objects to entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from wenchang._cursors import MEMORY_LISTING, decode_cursor, encode_cursor
from wenchang._drafts import check_text
from wenchang.errors import InvalidArgumentError, MetadataFormatError, NotFoundError
from wenchang.metadata import decode_metadata, unreadable_metadata
from wenchang.paths import build_prefix, is_valid_path, parse_prefix
from wenchang.records import FileEntry, ListPage
from wenchang.storage.errors import InvalidStorageKeyError

if TYPE_CHECKING:
    from wenchang._objects import Objects
    from wenchang.storage.contract import ListedObject

__all__ = ["check_scope_map", "list_files", "list_page", "to_entry"]


def to_entry(found: ListedObject) -> FileEntry:
    """Return the entry of a listed file, which says so where its metadata cannot be decoded."""
    try:
        metadata = decode_metadata(found.metadata)
    except MetadataFormatError as error:
        metadata = unreadable_metadata(error)
    return FileEntry(found.key, metadata, found.version)


def list_page(objects: Objects, prefix: str, cursor: str | None, size: int) -> ListPage:
    """Return the page of `size` objects after `cursor`; see `MemoryStore.list_prefix`."""
    area = _area_of(prefix)
    start = None if cursor is None else prefix + _position(prefix, cursor)
    try:
        # One more than is shown tells whether this is the last page.
        page = objects.page(prefix, start, size + 1)
    except InvalidStorageKeyError as error:
        refused = error
    else:
        shown = page[:size]
        entries = tuple(to_entry(found) for found in shown if is_valid_path(found.key))
        if len(page) == len(shown):
            return ListPage(entries, None)
        # The last object looked at, file or not, so that the next page goes on behind it.
        position = shown[-1].key.removeprefix(prefix)
        return ListPage(entries, encode_cursor(MEMORY_LISTING, prefix, position))
    argument = "cursor" if cursor is not None else "area" if area is not None else "scope"
    raise InvalidArgumentError(argument, f"this storage cannot hold it: {refused}") from refused


def list_files(objects: Objects, prefix: str) -> list[ListedObject]:
    """Return every object under `prefix` whose key is the path of a file."""
    try:
        return [found for found in objects.listing(prefix) if is_valid_path(found.key)]
    except InvalidStorageKeyError:
        # What the storage cannot hold, it does not hold: the index of the other scopes is wanted.
        return []


def check_scope_map(scope_map: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the entities of an index, each with its scope."""
    if not isinstance(scope_map, Mapping):
        msg = f"scope_map must be a mapping, not {type(scope_map).__name__}"
        raise TypeError(msg)
    entities = list(scope_map.items())
    for scope, entity_id in entities:
        check_text("entity_id", entity_id)
        build_prefix(scope, entity_id)
    return entities


def _area_of(prefix: str) -> str | None:
    """Return the area of a prefix; `invalid_path` where it is no prefix."""
    check_text("prefix", prefix)
    try:
        return parse_prefix(prefix).area
    except ValueError:
        pass
    raise NotFoundError(prefix, "invalid_path")


def _position(prefix: str, cursor: str) -> str:
    """Return where a cursor of this very prefix stands."""
    check_text("cursor", cursor)
    try:
        return decode_cursor(MEMORY_LISTING, prefix, cursor)
    except ValueError:
        pass
    raise InvalidArgumentError(
        "cursor", "it is not a cursor of this listing; pass next_cursor as it was returned"
    )
