"""`SqlStorage`: the storage contract on a table of a SQL database."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from sqlalchemy.engine import Engine
from sqlalchemy.pool import QueuePool

from wenchang.storage import ListedObject, PreconditionFailedError, StoredObject
from wenchang.storage.keys import (
    check_body,
    check_expected,
    check_key,
    check_listing,
    check_metadata,
)
from wenchang.storage.outcomes import (
    Ambiguous,
    Applied,
    Attempt,
    Delete,
    Found,
    ReadAttempt,
    Refused,
    Settler,
    Write,
    WriteKind,
    new_write_id,
)
from wenchang_sql import rows
from wenchang_sql.calls import Calls
from wenchang_sql.databases import Database, database_of
from wenchang_sql.errors import RowCountUnknown
from wenchang_sql.options import DEFAULT_TABLE, SqlOptions
from wenchang_sql.statements import Prepared, Statements

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

__all__ = ["SqlStorage"]

T = TypeVar("T")

# Rows of one statement: a page of any length is read in pieces, each within the time of an attempt.
_PIECE: Final = 5_000
_second: Final = itemgetter(1)
# Above every key, none of which holds the byte FF.
_END: Final = b"\xff"


class SqlStorage:
    """A `Storage` in one table; see there for what each method promises.

    `engine` is a SQLAlchemy engine for SQLite (pysqlite), PostgreSQL (psycopg 3), MariaDB or MySQL
    (PyMySQL). It stays the caller's: `close` does not dispose of it. An engine from
    `wenchang_sql.create_engine` also bounds every exchange with the server by the deadline and
    needs fewer round trips; with any other engine those bounds are its own `connect_args`.

    Stores with different `namespace` in one table know nothing of each other. The table is made or
    upgraded at the first call unless `create_schema` is False. Constructing connects to nothing.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        namespace: str = "",
        table: str = DEFAULT_TABLE,
        deadline: float = 30.0,
        attempt_timeout: float = 10.0,
        concurrency: int = 16,
        create_schema: bool = True,
    ) -> None:
        """Raise `StorageConfigurationError` for a wrong option or an engine that is not supported."""
        options = SqlOptions(
            namespace=namespace,
            table=table,
            deadline=deadline,
            attempt_timeout=attempt_timeout,
            concurrency=concurrency,
            create_schema=create_schema,
        )
        database = database_of(engine)
        level = "AUTOCOMMIT" if database.kind == "sqlite" else "READ COMMITTED"
        self._begin(engine.execution_options(isolation_level=level), database, options, owned=False)

    @classmethod
    def from_engine_of_ours(
        cls,
        engine: Engine,
        database: Database,
        options: SqlOptions,
        *,
        statements: Statements | None = None,
        calls: Callable[..., Calls] = Calls,
    ) -> Self:
        """Return a storage on an engine that this package made, with isolation settled at connect.

        `statements` and `calls` stand in for its own (the conformance suite's faults do).
        """
        storage = cls.__new__(cls)
        storage._begin(engine, database, options, owned=True, calls=calls)  # noqa: SLF001 - a second constructor
        storage._statements = statements or storage._statements  # noqa: SLF001 - as above
        return storage

    def _begin(
        self,
        engine: Engine,
        database: Database,
        options: SqlOptions,
        *,
        owned: bool,
        calls: Callable[..., Calls] = Calls,
    ) -> None:
        self._namespace = options.namespace.encode()
        self._statements = Statements.build(options.table, engine.dialect)
        self._settler = Settler(options.policy, confirm_refusals=False)
        self._calls = calls(
            engine,
            database,
            table=options.table,
            concurrency=_concurrency(engine, options.concurrency),
            create_schema=options.create_schema,
            owned=owned,
        )

    def __repr__(self) -> str:
        """Name the kind of database; its address may hold a password."""
        return f"<{type(self).__name__} on {self._calls.kind}>"

    def __enter__(self) -> Self:
        """Return the storage itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close the connections of a storage opened by URL. A later call connects anew."""
        self._calls.close()

    def prepare(self) -> None:
        """Connect, and make or check the tables, as the first call would.

        Raises `StorageRejectedError` or `StorageConfigurationError` where no call could succeed, and
        `BackendUnavailableError` where the database is out of reach.
        """
        self._read(lambda raw: None)  # noqa: ARG005 - nothing to ask once connected

    # --- reading ------------------------------------------------------------------------------

    def get(self, key: str) -> StoredObject | None:
        """Return the object at `key`, or None; see `Storage.get`."""
        check_key(key)
        place = self._place(key)
        statement = self._statements.get

        def query(raw: Any) -> StoredObject | None:
            found = statement.rows(raw, place)
            return rows.stored(found[0]) if found else None

        return self._read(query)

    def list_page(self, prefix: str, start_after: str | None, limit: int) -> list[ListedObject]:
        """Return a page of a listing; see `Storage.list_page`."""
        return self._page(self._entries, rows.listed, prefix, start_after, limit)

    def _entries(self, span: Mapping[str, Any], raw: Any) -> _Piece:
        """Read one piece of a page: keys, metadata, versions.

        Where the index does not hold an object's metadata, the object is read apart, and takes the
        place of what the index showed, unless it is gone by then.
        """
        found = self._statements.page.rows(raw, span)
        following = _following(found, span)
        rest = self._statements.page_rest
        if rest is not None and None in map(_second, found):
            keys = [row[0] for row in found if row[1] is None]
            whole = {row[0]: row for row in rest.rows(raw, {"ns": self._namespace, "keys": keys})}
            complete = (row if row[1] is not None else whole.get(row[0]) for row in found)
            found = [row for row in complete if row is not None]
        return _Piece(found, following)

    def list_versions(
        self, prefix: str, start_after: str | None, limit: int
    ) -> list[tuple[str, str]]:
        """Return keys and versions only; see `VersionLister`."""
        return self._page(self._versions, rows.versions, prefix, start_after, limit)

    def _versions(self, span: Mapping[str, Any], raw: Any) -> _Piece:
        """Read one piece of a page: keys and versions."""
        found = self._statements.page_versions.rows(raw, span)
        return _Piece(found, _following(found, span))

    def _page(
        self,
        read: Callable[[Mapping[str, Any], Any], _Piece],
        decode: Callable[[Sequence[Any]], list[T]],
        prefix: str,
        start_after: str | None,
        limit: int,
    ) -> list[T]:
        """Read a half-open range of keys in pieces, until `limit` or nothing more matches."""
        check_listing(prefix, start_after, limit)
        low = prefix.encode()
        high = _successor(low)
        if start_after is not None:
            low = max(low, start_after.encode() + b"\0")
        page: list[T] = []
        while low < high and len(page) < limit:
            wanted = min(limit - len(page), _PIECE)
            span = {"ns": self._namespace, "low": low, "high": high, "rows": wanted}
            piece = self._read(partial(read, span))
            page.extend(decode(piece.rows))
            if piece.following is None:
                break
            low = piece.following
        return page

    def _read(self, query: Callable[[Any], T]) -> T:
        """Repeat a read until it is answered."""
        return self._settler.read(lambda seconds: self._calls.read(seconds, query))

    # --- writing ------------------------------------------------------------------------------

    def put(self, key: str, data: bytes, metadata: Mapping[str, str]) -> str:
        """Create or replace the object; see `Storage.put`."""
        check_key(key)
        return self._store("put", key, data, metadata, None)

    def put_if_version(
        self, key: str, data: bytes, metadata: Mapping[str, str], expected: str | None
    ) -> str:
        """Replace at `expected`, or create where it is None; see `Storage.put_if_version`."""
        check_key(key)
        check_expected(expected, optional=True)
        kind: WriteKind = "create" if expected is None else "replace"
        return self._store(kind, key, data, metadata, expected)

    def delete_if_version(self, key: str, expected: str) -> None:
        """Delete at `expected`; see `Storage.delete_if_version`."""
        check_key(key)
        check_expected(expected, optional=False)
        place = self._place(key)
        version = rows.encode_version(expected)
        if version is None:
            raise PreconditionFailedError(key)
        parameters = {**place, "ver": version}
        statement = self._statements.delete
        self._settler.delete(
            Delete(key=key, expected=expected),
            lambda seconds: self._change(seconds, statement, parameters, ""),
            lambda seconds: self._read_back(seconds, place),
        )

    def _store(
        self,
        kind: WriteKind,
        key: str,
        data: bytes,
        metadata: Mapping[str, str],
        expected: str | None,
    ) -> str:
        """Carry out one of the three puts; every attempt sends the same id and version."""
        check_body(data)
        text = rows.encode_metadata(check_metadata(metadata))
        place = self._place(key)
        # The version is the write id: random, never reused, and half the length of a lineage.
        write_id = version = new_write_id()
        parameters: dict[str, Any] = {
            **place,
            "new_version": version.encode(),
            "new_id": write_id,
            "new_body": data,
        }
        if self._statements.page_rest is None:
            parameters["new_metadata"] = text
        else:
            parameters["new_metadata"], parameters["new_long"] = rows.split_metadata(text)
        statement = self._statements.put
        if kind == "create":
            statement = self._statements.create
        elif kind == "replace":
            statement = self._statements.replace
            token = rows.encode_version(expected or "")
            if token is None or expected is None:
                raise PreconditionFailedError(key)
            parameters["ver"] = token
            parameters.update(rows.replaced(expected))
        return self._settler.write(
            Write(key=key, kind=kind, expected=expected, write_id=write_id),
            lambda seconds: self._change(seconds, statement, parameters, version),
            lambda seconds: self._read_back(seconds, place),
        )

    def _change(
        self, seconds: float, statement: Prepared, parameters: Mapping[str, Any], version: str
    ) -> Attempt:
        """Send one conditional statement; the number of rows that it changed is the answer."""

        def change(raw: Any) -> Attempt:
            return _counted(statement.count(raw, parameters), version)

        return self._calls.write(seconds, change)

    def _read_back(self, seconds: float, place: Mapping[str, bytes]) -> ReadAttempt[Found | None]:
        """Read the object with the marks by which a landed write is recognised."""
        statement = self._statements.read_back

        def query(raw: Any) -> Found | None:
            found = statement.rows(raw, place)
            return rows.found(found[0]) if found else None

        return self._calls.read(seconds, query)

    def _place(self, key: str) -> dict[str, bytes]:
        """Return the parameters that name an object."""
        return {"ns": self._namespace, "k": key.encode()}


class _Piece(NamedTuple):
    """What one statement found of a page, and where the next piece begins, if there is one."""

    rows: Sequence[Any]
    following: bytes | None


def _following(found: Sequence[Any], span: Mapping[str, Any]) -> bytes | None:
    """Return where the next piece begins; fewer rows than `span` asks for are the last."""
    return bytes(found[-1][0]) + b"\0" if len(found) == span["rows"] else None


def _counted(changed: int | None, version: str) -> Attempt:
    """Return what a row count says of a write to at most one row.

    MySQL counts a row that an upsert replaced as 2. A driver that cannot tell (-1, None) leaves
    the write to be settled by reading: neither success nor refusal may be guessed.
    """
    if changed in (1, 2):
        return Applied(version=version)
    if changed == 0:
        return Refused()
    return Ambiguous(error=RowCountUnknown())


def _successor(prefix: bytes) -> bytes:
    """Return the smallest bytes above everything that begins with `prefix` (UTF-8, without FF)."""
    return prefix[:-1] + bytes((prefix[-1] + 1,)) if prefix else _END


def _concurrency(engine: Engine, wanted: int) -> int:
    """Return how many calls may run at once: no more than the engine's pool has connections."""
    pool = engine.pool
    if isinstance(pool, QueuePool) and pool._max_overflow >= 0:  # noqa: SLF001 - no public way to ask
        return max(1, min(wanted, pool.size() + pool._max_overflow))  # noqa: SLF001 - as above
    return wanted
