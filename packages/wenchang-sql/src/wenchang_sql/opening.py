"""From a location to an engine and a storage."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from wenchang.storage import StorageConfigurationError
from wenchang.storage.locations import StorageLocation
from wenchang_sql import sqlite
from wenchang_sql.options import MysqlOptions, PostgresOptions, SqliteOptions, SqlOptions
from wenchang_sql.sqlite import MEMORY, Sqlite
from wenchang_sql.storage import SqlStorage

if TYPE_CHECKING:
    from sqlalchemy.engine import Engine

    from wenchang_sql.databases import Database

__all__ = ["create_engine", "engine_for", "open_location"]

_SQLITE_ADDRESS: Final = (
    "the address of a SQLite database is its file: sqlite:///relative/file.db, "
    "sqlite:////absolute/file.db or sqlite:///~/file.db; sqlite:///:memory: keeps it in memory"
)


def open_location(location: StorageLocation) -> SqlStorage:
    """Return a storage on `location`; connects to nothing and makes no file yet.

    Raises `StorageConfigurationError` for a wrong address or option.
    """
    engine, database, options = engine_for(location)
    return SqlStorage.from_engine_of_ours(engine, database, options)


def create_engine(url: str) -> Engine:
    """Return the engine that opening `url` would use, for `SqlStorage(engine)` or other statements.

    Its connections commit each statement by themselves (SQLite: unless one begins a transaction),
    and its parameters are hidden in error texts. Options in `url` that concern the storage and not
    its connections have to be given to `SqlStorage` again.
    """
    return engine_for(StorageLocation.parse(url))[0]


def engine_for(location: StorageLocation) -> tuple[Engine, Database, SqlOptions]:
    """Return engine, database and options of `location`."""
    if location.scheme == "sqlite":
        sqlite_options = location.options_as(SqliteOptions)
        path = _sqlite_path(location.address)
        return (
            sqlite.create_engine(path, sqlite_options),
            Sqlite(wal=sqlite_options.wal),
            sqlite_options,
        )
    if location.scheme == "postgresql":
        from wenchang_sql import postgresql

        options = location.options_as(PostgresOptions)
        return (
            postgresql.create_engine(location.address, options),
            postgresql.Postgresql(),
            options,
        )
    if location.scheme in {"mysql", "mariadb"}:
        from wenchang_sql import mysql

        mysql_options = location.options_as(MysqlOptions)
        return mysql.create_engine(location.address, mysql_options), mysql.Mysql(), mysql_options
    msg = "the scheme must be sqlite, postgresql, mysql or mariadb"
    raise StorageConfigurationError(msg)


def _sqlite_path(address: str) -> str:
    """Return the absolute path of a SQLite file, or `:memory:`.

    Absolute, because a later change of the current folder must not lead to another file.
    """
    if not address.startswith("/") or len(address) < 2:
        raise StorageConfigurationError(_SQLITE_ADDRESS)
    path = unquote(address[1:], errors="surrogateescape")
    if path == MEMORY:
        return MEMORY
    try:
        return str(Path(path).expanduser().absolute())
    except RuntimeError:
        raise StorageConfigurationError(_SQLITE_ADDRESS) from None
