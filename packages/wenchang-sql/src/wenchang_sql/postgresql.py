"""PostgreSQL through psycopg 3, also behind PgBouncer in transaction mode.

Every statement is a transaction of its own at READ COMMITTED. Where that is the server's default, it
is sent in autocommit, one round trip each. Where it is not, psycopg begins each transaction with the
level in its BEGIN. Nothing is SET for the session: a pooler in transaction mode would hand it on.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final, TypeVar

import psycopg
import sqlalchemy as sa
from psycopg import IsolationLevel
from psycopg.pq import TransactionStatus
from sqlalchemy import exc as sa_exc
from sqlalchemy.engine import URL
from sqlalchemy.pool import QueuePool

from wenchang.storage import StorageConfigurationError, StorageRejectedError
from wenchang_sql.databases import fetch, has_input, upgrade_tables
from wenchang_sql.deadlines import AttemptTimedOut, remaining
from wenchang_sql.options import PostgresOptions
from wenchang_sql.schema import ABSENT, meta_table, read_layout

__all__ = ["Postgresql", "create_engine"]

T = TypeVar("T")

_POLL_SECONDS: Final = 0.1
# "wenchang" in ASCII: one advisory lock for all schema changes in a database.
_LOCK: Final = int.from_bytes(b"wenchang", "big")


class Postgresql:
    """The `Database` of PostgreSQL."""

    kind = "postgresql"
    serial_writes = False

    def prepare(self, raw: Any, info: dict[Any, Any]) -> None:
        """Do nothing: the session was set up when it was made."""

    def check_server(self, raw: Any) -> None:
        """Check the encoding of the database."""
        _check_encoding(raw)

    def is_stale(self, raw: Any, info: dict[Any, Any]) -> bool:
        """Tell whether the server has closed the idle connection."""
        del info
        return bool(raw.closed) or has_input(raw.fileno())

    def begin(self, raw: Any, info: dict[Any, Any], *, write: bool) -> None:
        """Do nothing: psycopg begins a transaction where one is needed."""

    def commit(self, raw: Any) -> None:
        """Commit; in autocommit there is nothing to commit."""
        raw.commit()

    def upgrade(self, raw: Any, table: str) -> None:
        """Make or upgrade the tables in one transaction that holds an advisory lock."""
        raw.rollback()
        with raw.transaction():
            fetch(raw, f"SELECT pg_advisory_xact_lock({_LOCK})")
            there = fetch(raw, f"SELECT to_regclass('{meta_table(table)}') IS NOT NULL")[0][0]
            layout = read_layout(lambda sql: fetch(raw, sql), table) if there else ABSENT
            upgrade_tables(raw, self.kind, table, layout)

    def lives_in_process(self) -> bool:
        """Tell that it does not."""
        return False


class BoundedConnection(psycopg.Connection[Any]):
    """A connection whose every exchange ends with the time of the attempt (`deadlines`).

    A server, or a proxy in front of it, may accept and never answer. libpq has no time-out for that.
    """

    @classmethod
    def _connect_gen(cls, *args: Any, **kwargs: Any) -> Any:
        # psycopg's own time-out is at least two seconds for each address.
        return _bounded(super()._connect_gen(*args, **kwargs))

    def wait(self, gen: Any, interval: float = _POLL_SECONDS, timeout: float | None = None) -> Any:
        """Wait for `gen` no longer than the attempt may last; then give the connection up."""
        # Only newer releases of psycopg know a time-out here, and only they pass one.
        more = {} if timeout is None else {"timeout": timeout}
        try:
            return super().wait(_bounded(gen), interval=min(interval, remaining()), **more)
        except AttemptTimedOut:
            # The answer may still come: it must never be taken for that of a later statement.
            self.pgconn.finish()
            raise

    def commit(self) -> None:
        """Commit, if there is anything to commit."""
        if self.pgconn.transaction_status != TransactionStatus.IDLE:
            super().commit()

    def rollback(self) -> None:
        """Roll back, if there is anything to roll back."""
        if self.pgconn.transaction_status != TransactionStatus.IDLE:
            super().rollback()


def _bounded(gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
    """Pass everything through, but look at the clock each time around."""
    try:
        step = next(gen)
        while True:
            ready = yield step
            remaining()
            step = gen.send(ready)
    except StopIteration as ended:
        result: T = ended.value
        return result


def _check_encoding(raw: Any) -> None:
    """Refuse a database that cannot hold every text."""
    encoding = raw.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        msg = (
            f"the database has the encoding {encoding}; wenchang needs one with UTF8: "
            "CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
        )
        raise StorageRejectedError("unsupported", msg)


def _settle_isolation(raw: Any) -> None:
    """Let every statement run at READ COMMITTED, by autocommit where that is the default."""
    default = fetch(raw, "SHOW default_transaction_isolation")[0][0]
    if default != "read committed":
        raw.autocommit = False
        raw.isolation_level = IsolationLevel.READ_COMMITTED


def create_engine(address: str, options: PostgresOptions) -> sa.Engine:
    """Return an engine for `user:password@host:port/database`. Connects to nothing."""
    url = parse_address(f"postgresql+psycopg://{address}", "postgresql")
    given = {
        "host": options.host,
        "sslmode": options.sslmode,
        "sslrootcert": options.sslrootcert,
        "sslcert": options.sslcert,
        "sslkey": options.sslkey,
    }
    parameters: dict[str, Any] = {
        "dbname": url.database,
        "user": url.username,
        "password": url.password,
        "host": url.host,
        "port": url.port,
        "fallback_application_name": "wenchang",
        **{name: value for name, value in given.items() if value is not None},
    }
    parameters = {name: value for name, value in parameters.items() if value is not None}
    threshold = 5 if options.prepared_statements else None

    def connect() -> Any:
        raw = BoundedConnection.connect(**parameters, autocommit=True, prepare_threshold=threshold)
        try:
            _check_encoding(raw)
            _settle_isolation(raw)
        except BaseException:
            raw.close()
            raise
        return raw

    return sa.create_engine(
        # Host and user stay out of the engine's repr.
        "postgresql+psycopg://",
        creator=connect,
        poolclass=QueuePool,
        pool_size=options.concurrency,
        max_overflow=0,
        pool_use_lifo=True,
        hide_parameters=True,
        use_native_hstore=False,
    )


def parse_address(text: str, scheme: str) -> URL:
    """Return the parts of a server's address; a wrong one raises `StorageConfigurationError`."""
    try:
        url = sa.make_url(text)
    except (sa_exc.ArgumentError, ValueError):
        url = None
    if url is None or not url.database:
        msg = (
            f"the address of {scheme} storage must be {scheme}://user:password@host:port/database, "
            "with '@', ':', '/' and '?' in user or password percent-encoded"
        )
        raise StorageConfigurationError(msg)
    return url
