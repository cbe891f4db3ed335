"""Searches and listings of the items of a LangGraph store: one listing of keys, and few reads."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Final, TypeAlias

from langgraph.store.base import ListNamespacesOp, SearchItem, SearchOp

from wenchang.adapters._langgraph_items import (
    ItemRecord,
    ItemStateError,
    decode_item,
    is_item,
    jump_over_items,
    namespace_of,
    namespace_prefix,
)
from wenchang.adapters._langgraph_query import common_prefix, fits, matches
from wenchang.read_cache import ReadCache
from wenchang.storage.contract import Storage, StoredObject
from wenchang.storage.keys import MAX_KEY_BYTES

__all__ = ["ItemReader"]

_VersionListing: TypeAlias = Callable[[str, str | None, int], Sequence[tuple[str, str]]]

_logger = logging.getLogger("wenchang.adapters.langgraph")

_LIST_LIMIT: Final = 1_000
"""Keys asked for at a time: what providers give in one request."""
_READ_AHEAD: Final = 64
"""Items of a search that are read at a time."""
_EVERYTHING: Final = 1 << 48
"""More items than any storage holds; numbers above it cannot be counted to."""


class ItemReader:
    """Reads many items of a storage; what is known at its version is not read again."""

    def __init__(self, storage: Storage, parallel: int) -> None:
        """Make at most `parallel` reads at a time."""
        self._storage = storage
        self._parallel = parallel
        self._known = ReadCache()
        self._warned_of_query = False

    def forget(self, base: str) -> None:
        """Keep nothing of a tenant in memory."""
        self._known.drop(base)

    def search(self, base: str, op: SearchOp) -> Iterator[SearchItem]:
        """Yield the items that a search asks for; `base` is the tenant's part of the keys."""
        if op.query and not self._warned_of_query:
            self._warned_of_query = True
            _logger.warning("this store has no index: the query of a search is not used")
        prefix = namespace_prefix(base, op.namespace_prefix)
        offset, limit = min(op.offset, _EVERYTHING), min(op.limit, _EVERYTHING)
        enough = _LIST_LIMIT if op.filter else min(offset + limit, _LIST_LIMIT)
        listed = self._listed(prefix, max(enough, 1))
        if not op.filter:
            # Nothing has to be read in order to pass over it.
            listed, offset = islice(listed, offset, None), 0
        records = self._records(listed, _READ_AHEAD if op.filter else min(limit, _READ_AHEAD))
        wanted = (record for record in records if matches(record.value, op.filter))
        for record in islice(wanted, offset, offset + limit):
            yield SearchItem(
                namespace=record.namespace,
                key=record.item,
                value=record.value,
                created_at=record.created_at,
                updated_at=record.updated_at,
            )

    def _listed(self, prefix: str, at_once: int) -> Iterator[tuple[str, str]]:
        """Yield key and version of every item beneath a prefix, in the order of keys."""
        start: str | None = None
        while page := self._page(prefix, start, at_once):
            yield from (listed for listed in page if is_item(listed[0]))
            if len(page) < at_once:
                return
            start = page[-1][0]

    def _page(self, prefix: str, start: str | None, limit: int) -> Sequence[tuple[str, str]]:
        if len(prefix) > MAX_KEY_BYTES:
            # No key begins with this, and not every storage takes it as a prefix.
            return ()
        # Looked up by name: a wrapper that forwards attributes has the cheaper listing too.
        list_versions: _VersionListing | None = getattr(self._storage, "list_versions", None)
        if list_versions is not None:
            return list_versions(prefix, start, limit)
        page = self._storage.list_page(prefix, start, limit)
        return [(listed.key, listed.version) for listed in page]

    def _records(self, listed: Iterator[tuple[str, str]], at_once: int) -> Iterator[ItemRecord]:
        """Yield the items that can be read, reading some side by side."""
        while chunk := list(islice(listed, at_once)):
            for stored in self._read(chunk):
                if stored is not None:
                    try:
                        yield decode_item(stored.data)
                    except ItemStateError:
                        _logger.warning("an item that cannot be read is left out of a search")

    def _read(self, chunk: Sequence[tuple[str, str]]) -> Iterable[StoredObject | None]:
        """Return the objects of a listing; what is known at its version is not read again."""
        objects = {key: self._known.get(key, version) for key, version in chunk}
        unknown = [key for key, known in objects.items() if known is None]
        if len(unknown) < 2 or self._parallel == 1:
            objects.update(zip(unknown, map(self._storage.get, unknown), strict=True))
        else:
            with ThreadPoolExecutor(min(self._parallel, len(unknown))) as pool:
                objects.update(zip(unknown, pool.map(self._storage.get, unknown), strict=True))
        for key in unknown:
            stored = objects[key]
            if stored is not None:
                self._known.put(key, stored)
        return objects.values()

    def namespaces(self, base: str, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        """Return the namespaces that a listing asks for, in order."""
        conditions = op.match_conditions or ()
        found = {
            namespace if op.max_depth is None else namespace[: op.max_depth]
            for namespace in self._all_namespaces(
                base, namespace_prefix(base, common_prefix(conditions))
            )
            if fits(namespace, conditions)
        }
        return sorted(found)[op.offset : op.offset + op.limit]

    def _all_namespaces(self, base: str, prefix: str) -> Iterator[tuple[str, ...]]:
        start: str | None = None
        while page := self._page(prefix, start, _LIST_LIMIT):
            seen: set[str] = set()
            for key, _ in page:
                folder = key.rpartition("/")[0]
                if folder in seen or not is_item(key):
                    continue
                namespace = namespace_of(base, key) or self._namespace_inside(key)
                if namespace is not None:
                    seen.add(folder)
                    yield namespace
            if len(page) < _LIST_LIMIT:
                return
            last = page[-1][0]
            start = jump_over_items(last) if is_item(last) else last

    def _namespace_inside(self, key: str) -> tuple[str, ...] | None:
        """Return the namespace that an item says it has, where its key holds a hash."""
        stored = self._storage.get(key)
        try:
            return None if stored is None else decode_item(stored.data).namespace
        except ItemStateError:
            return None
