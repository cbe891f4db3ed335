"""What the three kinds of database do differently, as one protocol, and the choice between them."""

from __future__ import annotations

import select
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from sqlalchemy.engine import Engine
from sqlalchemy.pool import SingletonThreadPool, StaticPool

from wenchang.storage import StorageConfigurationError
from wenchang_sql import schema
from wenchang_sql.errors import is_missing_table

if TYPE_CHECKING:
    from wenchang_sql.schema import Layout

__all__ = ["Database", "database_of", "ensure_tables", "fetch", "has_input", "upgrade_tables"]


class Database(Protocol):
    """One kind of database. `raw` is always the driver's connection.

    Methods raise whatever the driver raises; `errors` judges it. They run inside the time of an
    attempt (`deadlines`) and before the attempt's statement is sent.
    """

    kind: str
    """sqlite, postgresql, or mysql (also MariaDB): the name of statements and of the schema."""
    serial_writes: bool
    """One writer at a time in a process: the database has one write lock and would only poll."""

    def prepare(self, raw: Any, info: dict[Any, Any]) -> None:
        """Set up and check a new connection; `info` belongs to it and lives as long."""
        ...

    def check_server(self, raw: Any) -> None:
        """Check, once in a process, that the server can hold what the contract permits."""
        ...

    def is_stale(self, raw: Any, info: dict[Any, Any]) -> bool:
        """Tell, without a round trip, whether an idle connection has been lost meanwhile."""
        ...

    def begin(self, raw: Any, info: dict[Any, Any], *, write: bool) -> None:
        """Begin what the driver does not begin by itself."""
        ...

    def commit(self, raw: Any) -> None:
        """Commit the write that was just made, where the driver has not done so by itself."""
        ...

    def upgrade(self, raw: Any, table: str) -> None:
        """Make or upgrade the tables while no other process does."""
        ...

    def lives_in_process(self) -> bool:
        """Tell whether the database is memory of this process."""
        ...


def database_of(engine: Engine) -> Database:
    """Return the database that `engine` leads to.

    Raises `StorageConfigurationError` for a database or driver whose errors and row counts are not
    known here, and for a pool that does not lend each connection to one thread at a time.
    """
    driver = (engine.dialect.name, engine.dialect.driver)
    if not engine.dialect.supports_sane_rowcount:
        msg = "the engine's driver does not report row counts, so conditions cannot be checked"
        raise StorageConfigurationError(msg)
    if driver == ("sqlite", "pysqlite"):
        from wenchang_sql.sqlite import Sqlite

        database: Database = Sqlite()
    elif driver == ("postgresql", "psycopg"):
        from wenchang_sql.postgresql import Postgresql

        database = Postgresql()
    elif driver in {("mysql", "pymysql"), ("mariadb", "pymysql")}:
        from wenchang_sql.mysql import Mysql

        database = Mysql()
    else:
        msg = (
            f"an engine for {driver[0]} with the driver {driver[1]} is not supported; "
            "supported are sqlite+pysqlite, postgresql+psycopg, mysql+pymysql and mariadb+pymysql"
        )
        raise StorageConfigurationError(msg)
    if isinstance(engine.pool, StaticPool | SingletonThreadPool):
        # One connection for all threads: a reader's rollback would undo a writer's change, which would
        # then be acknowledged. One for each thread: in memory, each would be a database of its own.
        msg = (
            f"the engine's {type(engine.pool).__name__} cannot serve several threads; give it a "
            "QueuePool, or take wenchang_sql.create_engine('sqlite:///:memory:')"
        )
        raise StorageConfigurationError(msg)
    return database


def fetch(raw: Any, sql: str) -> Sequence[Any]:
    """Run one statement on the driver's connection and return its rows."""
    cursor = raw.cursor()
    try:
        cursor.execute(sql)
        rows: Sequence[Any] = cursor.fetchall() if cursor.description else ()
        return rows
    finally:
        cursor.close()


def ensure_tables(database: Database, raw: Any, table: str, *, create: bool) -> Layout:
    """Return the layout of the tables, made or upgraded first where `create` permits.

    Raises `StorageRejectedError` where they are not there, or too old, and must not be changed.
    """
    try:
        database.check_server(raw)
        layout = _layout(raw, table)
        if layout.format < schema.FORMAT and create:
            database.upgrade(raw, table)
            layout = _layout(raw, table)
    finally:
        raw.rollback()
    schema.check_readable(layout)
    return layout


def _layout(raw: Any, table: str) -> Layout:
    """Return the layout of the tables; format 0 where there are none."""
    try:
        return schema.read_layout(lambda sql: fetch(raw, sql), table)
    except Exception as error:
        if not is_missing_table(error):
            raise
        raw.rollback()
        return schema.ABSENT


def upgrade_tables(raw: Any, kind: str, table: str, layout: Layout) -> None:
    """Run the statements that lead from `layout` to the newest one."""
    for sql in schema.upgrade_statements(kind, table, layout):
        fetch(raw, sql)


def has_input(descriptor: int) -> bool:
    """Tell whether a socket has something to read.

    On an idle connection that is never an answer: the server has closed it or says that it will.
    Found out here, before a write is sent, it costs a new connection; found out by the write, its
    outcome could not be told any more.
    """
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(0))
    return bool(select.select([descriptor], [], [], 0)[0])
