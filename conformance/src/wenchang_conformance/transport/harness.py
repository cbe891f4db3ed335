"""What the cases work with: checked fixtures, a fresh client, and strict readers of its results.

Tokens are handed back and never compared: what they look like is the storage's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import pytest

from wenchang.core import FileEntry, ListPage, MemoryFile, MemoryIndex
from wenchang.errors import NotFoundError
from wenchang.metadata import FileMetadata
from wenchang.paths import build_path, build_prefix, is_valid_segment

if TYPE_CHECKING:
    from collections.abc import Callable

    from wenchang.transport import TransportClient

__all__ = ["AREA", "SENTINEL_AREA", "Harness", "HarnessFixtures"]

AREA: Final = "conformance"
SENTINEL_AREA: Final = "conformance-sentinel"
_ANY_TIME: Final = datetime(2000, 1, 1, tzinfo=UTC)

ErrorT = TypeVar("ErrorT", bound=Exception)


@dataclass(slots=True)
class Harness:
    """One case's view of the client."""

    name: str
    client: TransportClient
    source: str
    scope_map: dict[str, str]
    max_file_bytes: int
    index_max_bytes: int
    scope_priority: tuple[str, ...]
    list_page_size: int
    max_files_per_entity: int | None
    _last_stamp: datetime | None = field(default=None)

    # --- places ---

    @property
    def scopes(self) -> list[str]:
        """The writable scopes, sorted."""
        return sorted(self.scope_map)

    def path(self, name: str, *, area: str = AREA, scope: str | None = None) -> str:
        """Return the path of a file in a scope, the first one by default."""
        chosen = self.scopes[0] if scope is None else scope
        return build_path(chosen, self.scope_map[chosen], area, name)

    def prefix(self, *, area: str | None = AREA, scope: str | None = None) -> str:
        """Return the prefix of an area, or of a whole entity for None."""
        chosen = self.scopes[0] if scope is None else scope
        return build_prefix(chosen, self.scope_map[chosen], area)

    # --- operations ---

    def begin(self) -> None:
        """Write the sentinel; fail if the client is not fresh."""
        path = self.path("sentinel", area=SENTINEL_AREA)
        try:
            self.client.read_file(path)
        except NotFoundError as error:
            if error.reason != "file_absent":
                self.fail("client", "does not accept the path of the sentinel")
        else:
            self.fail("client", "must be fresh and empty for each test, but holds the sentinel")
        self.write(path, "sentinel")

    def write(
        self,
        path: str,
        content: str,
        expected: str | None = None,
        *,
        description: str = "",
        aliases: tuple[str, ...] = (),
        sources: frozenset[str] = frozenset(),
    ) -> MemoryFile:
        """Create or replace a file."""
        metadata = FileMetadata(description, aliases, sources, _ANY_TIME)
        result = self.client.write_file(path, content, metadata, expected, source=self.source)
        return self.written(result, path, "write_file")

    def append(self, path: str, line: str, expected: str, **options: Any) -> MemoryFile:
        """Append a line."""
        result = self.client.append_line(path, line, expected, source=self.source, **options)
        return self.written(result, path, "append_line")

    def replace(self, path: str, old: str, new: str, expected: str, **options: Any) -> MemoryFile:
        """Replace a fact."""
        result = self.client.replace_fact(path, old, new, expected, source=self.source, **options)
        return self.written(result, path, "replace_fact")

    def read(self, path: str) -> MemoryFile:
        """Read a file."""
        return self.file(self.client.read_file(path), path, "read_file")

    def absent(self, path: str, label: str) -> None:
        """Require that there is no file."""
        error = self.refused(NotFoundError, label, self.client.read_file, path)
        self.same(label, "reason", error.reason, "file_absent")

    def page(self, prefix: str, cursor: str | None = None) -> ListPage:
        """List one page, each entry checked."""
        result: Any = self.client.list_prefix(prefix, cursor)
        if type(result) is not ListPage:
            self.fail("list_prefix", f"returned {type(result).__name__}, not a ListPage")
        if type(result.entries) is not tuple:
            self.fail("list_prefix", "entries is no tuple")
        if result.next_cursor is not None and type(result.next_cursor) is not str:
            self.fail("list_prefix", "next_cursor is neither a str nor None")
        for entry in result.entries:
            self.entry(entry, "list_prefix")
        return result

    def pages(self, prefix: str) -> list[ListPage]:
        """List every page."""
        pages = [self.page(prefix)]
        while (cursor := pages[-1].next_cursor) is not None:
            pages.append(self.page(prefix, cursor))
            if len(pages) > 1000:
                self.fail("list_prefix", "does not come to an end")
        return pages

    def index(self, scope_map: Mapping[str, str] | None = None) -> MemoryIndex:
        """Get the index, each entry and row checked."""
        chosen = self.scope_map if scope_map is None else scope_map
        result: Any = self.client.get_memory_index(chosen)
        if type(result) is not MemoryIndex:
            self.fail("get_memory_index", f"returned {type(result).__name__}, not a MemoryIndex")
        for entry in result.entries:
            self.entry(entry, "get_memory_index")
        return result

    # --- strict readers ---

    def file(self, result: Any, path: str, label: str) -> MemoryFile:
        """Require a whole MemoryFile of exact types at `path`."""
        if type(result) is not MemoryFile:
            self.fail(label, f"returned {type(result).__name__}, not a MemoryFile")
        self.exact(label, "content", result.content, str)
        self.same(label, "path", result.path, path)
        self._metadata(result.metadata, label)
        self._token(result.version, label)
        return result

    def written(self, result: Any, path: str, label: str) -> MemoryFile:
        """As `file`, and require that the time stamps of writes rise."""
        file = self.file(result, path, label)
        stamp = file.metadata.last_updated
        if self._last_stamp is not None and stamp <= self._last_stamp:
            self.fail(
                label,
                "last_updated did not rise from one write to the next; give the client's store a "
                "clock whose every reading is later than the last",
            )
        self._last_stamp = stamp
        return file

    def entry(self, entry: Any, label: str) -> FileEntry:
        """Require a whole FileEntry of exact types."""
        if type(entry) is not FileEntry:
            self.fail(label, f"an entry is a {type(entry).__name__}, not a FileEntry")
        self.exact(label, "path of an entry", entry.path, str)
        self._metadata(entry.metadata, label)
        self._token(entry.version, label)
        return entry

    def _metadata(self, metadata: Any, label: str) -> None:
        if type(metadata) is not FileMetadata:
            self.fail(label, f"metadata is a {type(metadata).__name__}, not a FileMetadata")
        self.exact(label, "description", metadata.description, str)
        self.exact(label, "aliases", metadata.aliases, tuple)
        self.exact(label, "sources", metadata.sources, frozenset)
        self.exact(label, "last_updated", metadata.last_updated, datetime)
        if metadata.last_updated.utcoffset() is None:
            self.fail(label, "last_updated has no time zone")
        for item in (*metadata.aliases, *metadata.sources):
            self.exact(label, "an alias or source", item, str)

    def _token(self, token: Any, label: str) -> None:
        self.exact(label, "version", token, str)
        if not token:
            self.fail(label, "version is empty")

    # --- verdicts ---

    def refused(
        self,
        error_type: type[ErrorT],
        label: str,
        call: Callable[..., object],
        *args: Any,
        **options: Any,
    ) -> ErrorT:
        """Require that the call raises exactly this class of error."""
        came = "returned"
        try:
            call(*args, **options)
        except Exception as error:  # noqa: BLE001 - judged right here
            if type(error) is error_type:
                return error
            came = f"raised {type(error).__name__}"
        return self.fail(label, f"{came}, expected {error_type.__name__}")

    def exact(self, label: str, what: str, value: object, wanted: type) -> None:
        """Require an exact type."""
        if type(value) is not wanted:
            self.fail(label, f"{what} is a {type(value).__name__}, expected {wanted.__name__}")

    def same(self, label: str, what: str, value: object, wanted: object) -> None:
        """Require equality."""
        if value != wanted:
            self.fail(label, f"{what} is {value!r}, expected {wanted!r}")

    def fail(self, label: str, phrase: str) -> NoReturn:
        """Fail the case: `class: label: phrase`."""
        pytest.fail(f"{self.name}: {label}: {phrase}", pytrace=False)


class HarnessFixtures:
    """The fixtures that a subclass gives, and the harness that is made of them."""

    @pytest.fixture
    def client(self) -> TransportClient:
        """Return a client that is fresh and empty."""
        self._missing("client")

    @pytest.fixture
    def source(self) -> str:
        """Return the source with which the cases write."""
        self._missing("source")

    @pytest.fixture
    def scope_map(self) -> Mapping[str, str]:
        """Return at least two writable scopes with an entity id each."""
        self._missing("scope_map")

    @pytest.fixture
    def max_file_bytes(self) -> int:
        """Return the limit of a file, at least 64."""
        self._missing("max_file_bytes")

    @pytest.fixture
    def index_max_bytes(self) -> int:
        """Return the budget of the index, at least 1024."""
        self._missing("index_max_bytes")

    @pytest.fixture
    def scope_priority(self) -> tuple[str, ...]:
        """Return the scopes that a capped index keeps first."""
        self._missing("scope_priority")

    @pytest.fixture
    def list_page_size(self) -> int:
        """Return the number of entries of a page."""
        self._missing("list_page_size")

    @pytest.fixture
    def max_files_per_entity(self) -> int | None:
        """Return the file cap, to run its case; None skips it."""
        return None

    @pytest.fixture
    def fixtures(
        self,
        client: TransportClient,
        source: str,
        scope_map: Mapping[str, str],
        max_file_bytes: int,
        index_max_bytes: int,
        scope_priority: tuple[str, ...],
        list_page_size: int,
        max_files_per_entity: int | None,
    ) -> Harness:
        """Check every fixture, in this order, and put them together."""
        self._check("source", type(source) is str and bool(source), "a str that is not empty")
        self._check(
            "scope_map",
            isinstance(scope_map, Mapping)
            and len(scope_map) >= 2
            and all(
                type(item) is str and is_valid_segment(item)
                for pair in scope_map.items()
                for item in pair
            ),
            "a mapping of at least two scopes to entity ids, all of them valid path segments",
        )
        for name, value, least in (
            ("max_file_bytes", max_file_bytes, 64),
            ("index_max_bytes", index_max_bytes, 1024),
            ("list_page_size", list_page_size, 1),
        ):
            self._check(name, type(value) is int and value >= least, f"an int of at least {least}")
        self._check(
            "scope_priority",
            type(scope_priority) is tuple and all(type(scope) is str for scope in scope_priority),
            "a tuple of str",
        )
        least = max(32, list_page_size + 2)
        self._check(
            "max_files_per_entity",
            max_files_per_entity is None
            or (type(max_files_per_entity) is int and max_files_per_entity >= least),
            f"None or an int of at least {least} (32, and list_page_size + 2)",
        )
        return Harness(
            name=type(self).__name__,
            client=client,
            source=source,
            scope_map=dict(scope_map),
            max_file_bytes=max_file_bytes,
            index_max_bytes=index_max_bytes,
            scope_priority=scope_priority,
            list_page_size=list_page_size,
            max_files_per_entity=max_files_per_entity,
        )

    @pytest.fixture
    def harness(self, fixtures: Harness) -> Harness:
        """Return a harness whose client has shown that it is fresh."""
        fixtures.begin()
        return fixtures

    def _check(self, fixture: str, holds: bool, wanted: str) -> None:
        if not holds:
            pytest.fail(
                f"{type(self).__name__}: fixture {fixture}: it must be {wanted}", pytrace=False
            )

    def _missing(self, fixture: str) -> NoReturn:
        pytest.fail(f"{type(self).__name__}: give the fixture {fixture}", pytrace=False)
