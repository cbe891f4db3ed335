"""Between the tools and the store: a protocol of seven operations, and the client in this process.

A client enforces no scope rule: the tools do. The same client serves many threads at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, runtime_checkable

from wenchang.core import ListPage, MemoryFile, MemoryIndex, MemoryStore
from wenchang.metadata import FileMetadata

__all__ = ["InProcessClient", "TransportClient"]


@runtime_checkable
class TransportClient(Protocol):
    """The seven operations of `MemoryStore`, with its signatures, results and errors.

    A client that talks to another process raises `BackendUnavailableError` when it does not reach
    it, with `outcome="unknown"` unless a write certainly changed nothing.
    """

    def read_file(self, path: str) -> MemoryFile:
        """See `MemoryStore.read_file`."""
        ...

    def write_file(
        self,
        path: str,
        content: str,
        metadata: FileMetadata,
        expected_version: str | None,
        *,
        source: str,
    ) -> MemoryFile:
        """See `MemoryStore.write_file`."""
        ...

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
        """See `MemoryStore.append_line`."""
        ...

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
        """See `MemoryStore.replace_fact`."""
        ...

    def delete_file(self, path: str, expected_version: str) -> None:
        """See `MemoryStore.delete_file`."""
        ...

    def list_prefix(self, prefix: str, cursor: str | None = None) -> ListPage:
        """See `MemoryStore.list_prefix`."""
        ...

    def get_memory_index(self, scope_map: Mapping[str, str]) -> MemoryIndex:
        """See `MemoryStore.get_memory_index`."""
        ...


class InProcessClient:
    """Calls a `MemoryStore` directly and changes nothing on the way."""

    def __init__(self, store: MemoryStore) -> None:
        """Keep the store; TypeError for anything else."""
        if not isinstance(store, MemoryStore):
            msg = f"store must be a MemoryStore, not {type(store).__name__}"
            raise TypeError(msg)
        self._store = store

    @property
    def store(self) -> MemoryStore:
        """The store that is called."""
        return self._store

    def read_file(self, path: str) -> MemoryFile:
        """See `MemoryStore.read_file`."""
        return self._store.read_file(path)

    def write_file(
        self,
        path: str,
        content: str,
        metadata: FileMetadata,
        expected_version: str | None,
        *,
        source: str,
    ) -> MemoryFile:
        """See `MemoryStore.write_file`."""
        return self._store.write_file(path, content, metadata, expected_version, source=source)

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
        """See `MemoryStore.append_line`."""
        return self._store.append_line(
            path, line, expected_version, source=source, aliases=aliases, description=description
        )

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
        """See `MemoryStore.replace_fact`."""
        return self._store.replace_fact(
            path,
            old_string,
            new_string,
            expected_version,
            source=source,
            aliases=aliases,
            description=description,
        )

    def delete_file(self, path: str, expected_version: str) -> None:
        """See `MemoryStore.delete_file`."""
        self._store.delete_file(path, expected_version)

    def list_prefix(self, prefix: str, cursor: str | None = None) -> ListPage:
        """See `MemoryStore.list_prefix`."""
        return self._store.list_prefix(prefix, cursor)

    def get_memory_index(self, scope_map: Mapping[str, str]) -> MemoryIndex:
        """See `MemoryStore.get_memory_index`."""
        return self._store.get_memory_index(scope_map)
