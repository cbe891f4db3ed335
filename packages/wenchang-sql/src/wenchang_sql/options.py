"""The options of the SQL backends: URL parameters, keys of `[storage.options]`, arguments of code."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from wenchang.storage import StorageConfigurationError
from wenchang.storage.keys import check_namespace
from wenchang.storage.outcomes import RetryPolicy

__all__ = [
    "DEFAULT_TABLE",
    "MysqlOptions",
    "PostgresOptions",
    "SqlOptions",
    "SqliteOptions",
    "check_table",
]

DEFAULT_TABLE: Final = "wenchang_objects"
MAX_CONCURRENCY: Final = 1000

# PostgreSQL cuts names after 63 bytes; the longest suffix that is added is "_meta".
_NAME: Final = r"[a-z_][a-z0-9_]{0,47}"
_TABLE: Final = re.compile(rf"({_NAME}\.)?{_NAME}")


def check_table(table: str) -> None:
    """Raise `StorageConfigurationError` unless `table` is `name` or `schema.name`.

    Lower case only, so that the name is the same quoted and unquoted on every database.
    """
    if not isinstance(table, str) or not _TABLE.fullmatch(table):
        msg = (
            "option 'table' must be a name, or schema.name, of at most 48 characters each: "
            "a-z, 0-9 and '_', the first no digit"
        )
        raise StorageConfigurationError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlOptions:
    """What every SQL backend can be told. Raises `StorageConfigurationError` for a wrong value."""

    namespace: str = ""
    """Separates stores in one table. At most 124 bytes and 20 segments, without outer slashes."""
    table: str = DEFAULT_TABLE
    """The table's name, or `schema.name`."""
    deadline: float = 30.0
    """Seconds after which every call ends, attempts and back-off included."""
    attempt_timeout: float = 10.0
    """Seconds for one attempt, connecting included."""
    concurrency: int = 16
    """Connections kept open at most; more threads than that wait for one within the deadline."""
    create_schema: bool = True
    """Make or upgrade the table at the first call. Otherwise `wenchang sql init` has to."""

    def __post_init__(self) -> None:
        """Check every value."""
        check_sql_options(self)

    @property
    def policy(self) -> RetryPolicy:
        """The bounds of a call."""
        return RetryPolicy(deadline=self.deadline, attempt_timeout=self.attempt_timeout)


def check_sql_options(options: SqlOptions) -> None:
    """Check the options that all databases share; raise `StorageConfigurationError`."""
    try:
        check_namespace(options.namespace)
    except StorageConfigurationError as error:
        # The rule is core's; the name of the option here is this backend's.
        msg = str(error).replace("'prefix'", "'namespace'")
        raise StorageConfigurationError(msg) from None
    except TypeError:
        msg = "option 'namespace' must be text"
        raise StorageConfigurationError(msg) from None
    check_table(options.table)
    concurrency = options.concurrency
    if type(concurrency) is not int or not 1 <= concurrency <= MAX_CONCURRENCY:
        msg = f"option 'concurrency' must be a whole number from 1 to {MAX_CONCURRENCY}"
        raise StorageConfigurationError(msg)
    _ = options.policy  # checks both times


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteOptions(SqlOptions):
    """Options of `sqlite:///path`."""

    wal: bool = True
    """Write-ahead log. Without it readers block writers; only for file systems where it fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresOptions(SqlOptions):
    """Options of `postgresql://`. Those of TLS and `host` mean what they mean to libpq."""

    prepared_statements: bool = True
    """Let the driver prepare statements on the server. Off for PgBouncer in transaction mode."""
    host: str | None = None
    """A host, or the folder of a Unix socket, that the address cannot spell."""
    sslmode: Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] | None = (
        None
    )
    sslrootcert: str | None = None
    sslcert: str | None = None
    sslkey: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MysqlOptions(SqlOptions):
    """Options of `mysql://` and `mariadb://`."""

    unix_socket: str | None = None
    """The server's Unix socket, in place of host and port."""
    ssl_ca: str | None = None
    """A file with the certificate authority; turns TLS with a verified certificate on."""
    ssl_cert: str | None = None
    ssl_key: str | None = None
