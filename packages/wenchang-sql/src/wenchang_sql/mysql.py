"""MariaDB and MySQL through PyMySQL.

Every statement is a transaction of its own (autocommit) at READ COMMITTED, set for the session when a
connection is made: at the default, REPEATABLE READ, inserts take gap locks and deadlock.
"""

from __future__ import annotations

import contextlib
import math
import re
import socket
from collections.abc import Callable
from io import BufferedReader, RawIOBase
from typing import TYPE_CHECKING, Any, Final

import pymysql
import sqlalchemy as sa
from pymysql.charset import charset_by_name
from pymysql.constants import CLIENT, COMMAND, CR, SERVER_STATUS
from sqlalchemy.pool import QueuePool

from wenchang.storage import StorageRejectedError
from wenchang_sql.databases import fetch, has_input, upgrade_tables
from wenchang_sql.deadlines import AttemptTimedOut, remaining
from wenchang_sql.errors import is_missing_table
from wenchang_sql.options import MysqlOptions
from wenchang_sql.postgresql import parse_address
from wenchang_sql.schema import ABSENT, Layout, read_layout

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

    # The type stubs make it generic; the class itself is not.
    _Connection = pymysql.connections.Connection[Any]
else:
    _Connection = pymysql.connections.Connection

__all__ = ["Mysql", "create_engine"]

# PyMySQL escapes: a body of 4 MiB can take twice that, and the rest of the statement some more.
_MIN_PACKET: Final = 8 * 1024 * 1024 + 256 * 1024
# Up to 11.0, MariaDB knows the level by its old name only.
_OLD_MARIADB: Final = re.compile(r"\b(10\.[0-9]+|11\.0)\.[0-9]+-MariaDB", re.IGNORECASE)
_UPGRADE_LOCK: Final = "wenchang_sql.upgrade"


class Mysql:
    """The `Database` of MariaDB and MySQL."""

    kind = "mysql"
    serial_writes = False

    def prepare(self, raw: Any, info: dict[Any, Any]) -> None:
        """Do nothing: the session was set up when it was made."""

    def check_server(self, raw: Any) -> None:
        """Check the server's packet size, without which large bodies could not be written."""
        packet = int(fetch(raw, "SELECT @@max_allowed_packet")[0][0])
        if packet < _MIN_PACKET:
            msg = (
                f"the server's max_allowed_packet is {packet} bytes; a body of 4 MiB needs "
                f"{_MIN_PACKET}: set max_allowed_packet=16M on the server"
            )
            raise StorageRejectedError("unsupported", msg)

    def is_stale(self, raw: Any, info: dict[Any, Any]) -> bool:
        """Tell whether the server has closed the idle connection, or announces that it will."""
        del info
        sock = raw._sock  # noqa: SLF001 - PyMySQL offers no way to the socket
        return sock is None or has_input(sock.fileno())

    def begin(self, raw: Any, info: dict[Any, Any], *, write: bool) -> None:
        """Do nothing: the connection commits each statement by itself."""

    def commit(self, raw: Any) -> None:
        """Commit, which an engine of ours has done already."""
        raw.commit()

    def upgrade(self, raw: Any, table: str) -> None:
        """Make or upgrade the tables while holding a named lock; DDL commits by itself here."""
        seconds = max(0, int(min(remaining(), 3600)))
        if fetch(raw, f"SELECT GET_LOCK('{_UPGRADE_LOCK}', {seconds})")[0][0] != 1:
            raise AttemptTimedOut
        try:
            upgrade_tables(raw, self.kind, table, _layout(raw, table))
            raw.commit()
        finally:
            fetch(raw, f"SELECT RELEASE_LOCK('{_UPGRADE_LOCK}')")

    def lives_in_process(self) -> bool:
        """Tell that it does not."""
        return False


def _layout(raw: Any, table: str) -> Layout:
    """Return the layout of the tables; format 0 where there are none."""
    try:
        return read_layout(lambda sql: fetch(raw, sql), table)
    except pymysql.MySQLError as error:
        if not is_missing_table(error):
            raise
        return ABSENT


_tls_contexts: Final[dict[object, Any]] = {}


def _arm(sock: socket.socket, connect_timeout: float | None) -> None:
    """Give a socket what is left of the attempt; raises when nothing is."""
    left = remaining()
    # Outside of an attempt (a pool that closes) nothing may hang either.
    sock.settimeout(left if left < math.inf else connect_timeout)


class _Incoming(RawIOBase):
    """What a socket receives, each time within what is left of the attempt."""

    def __init__(self, sock: socket.socket, connect_timeout: float | None) -> None:
        super().__init__()
        self._sock = sock
        self._connect_timeout = connect_timeout

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Receive once."""
        _arm(self._sock, self._connect_timeout)
        return self._sock.recv_into(buffer)


class BoundedConnection(_Connection):
    """A connection whose every exchange ends with the time of the attempt (`deadlines`).

    PyMySQL's time-outs begin anew with each byte and are fixed for the life of a connection. The
    two methods that touch the socket are replaced; commit and rollback say nothing to the server
    where there is no transaction.
    """

    # PyMySQL's own, which its type stubs leave out.
    _sock: Any
    _rfile: Any
    connect_timeout: float | None
    _force_close: Callable[[], None]
    _execute_command: Callable[[int, str], None]
    _read_packet: Callable[..., Any]
    server_status: int
    server_version: str
    charset: str
    collation: str | None
    encoding: str

    _bounded: BufferedReader | None = None
    """The file that is read from: it asks for the time at each receive, not at each packet."""

    def __init__(self, *, lock_seconds: int, **options: Any) -> None:
        """Connect; a wait for a row's lock ends after `lock_seconds` at the server."""
        self._lock_seconds = lock_seconds
        super().__init__(**options)

    def set_character_set(self, charset: str, collation: str | None = None) -> None:
        """Send SET NAMES, and all else that the session needs in the same statement."""
        server: str = self.server_version
        level = "tx_isolation" if _OLD_MARIADB.search(server) else "transaction_isolation"
        names = f"{charset} COLLATE {collation}" if collation else charset
        self._execute_command(
            COMMAND.COM_QUERY,
            f"SET NAMES {names}, SESSION {level} = 'READ-COMMITTED', "
            f"SESSION innodb_lock_wait_timeout = {self._lock_seconds}",
        )
        self._read_packet()
        self.charset = charset
        self.encoding = charset_by_name(charset).encoding
        self.collation = collation

    def _create_ssl_ctx(self, sslp: dict[str, Any]) -> Any:
        # PyMySQL reads the system's certificates anew for each connection, a fifth of a second in
        # which no other thread of the process runs, even where the server speaks no TLS.
        settings = tuple(sorted((name, str(value)) for name, value in sslp.items()))
        if settings not in _tls_contexts:
            _tls_contexts[settings] = super()._create_ssl_ctx(sslp)  # type: ignore[misc] # pyright: ignore[reportAttributeAccessIssue] # PyMySQL's own, which its type stubs leave out
        return _tls_contexts[settings]

    def _read_bytes(self, num_bytes: int) -> bytes:
        # PyMySQL makes a file of each socket, the one of TLS included, before it reads the first byte.
        if self._bounded is None or self._rfile is not self._bounded:
            self._rfile = self._bounded = BufferedReader(
                _Incoming(self._sock, self.connect_timeout)
            )
        try:
            data: bytes = self._bounded.read(num_bytes)
        except OSError as error:
            self._force_close()
            raise _lost(error) from error
        except BaseException:
            self._force_close()
            raise
        if len(data) < num_bytes:
            self._force_close()
            raise _lost(None)
        return data

    def _write_bytes(self, data: bytes) -> None:
        try:
            _arm(self._sock, self.connect_timeout)
            self._sock.sendall(data)
        except OSError as error:
            self._force_close()
            raise _lost(error) from error

    def commit(self) -> None:
        """Commit, if there is anything to commit."""
        if self._in_transaction():
            super().commit()

    def rollback(self) -> None:
        """Roll back, if there is anything to roll back."""
        if self._in_transaction():
            super().rollback()

    def close(self) -> None:
        """Close; a connection that was lost is closed already."""
        with contextlib.suppress(pymysql.Error):
            super().close()

    def _in_transaction(self) -> bool:
        if self._sock is None:
            return False
        return bool(self.server_status & SERVER_STATUS.SERVER_STATUS_IN_TRANS)


def _lost(error: OSError | None) -> pymysql.OperationalError:
    """Return the error of a lost connection; only a time-out is told apart."""
    timed_out = isinstance(error, TimeoutError)
    text = "timed out" if timed_out else "Lost connection to MySQL server during query"
    return pymysql.OperationalError(CR.CR_SERVER_LOST, text)


def create_engine(address: str, options: MysqlOptions) -> sa.Engine:
    """Return an engine for `user:password@host:port/database`. Connects to nothing."""
    url = parse_address(f"mysql+pymysql://{address}", "mysql")
    parameters: dict[str, Any] = {
        "database": url.database,
        "user": url.username,
        "password": url.password,
        "host": url.host,
        "port": url.port,
        "unix_socket": options.unix_socket,
        "ssl_ca": options.ssl_ca,
        "ssl_cert": options.ssl_cert,
        "ssl_key": options.ssl_key,
    }
    parameters = {name: value for name, value in parameters.items() if value is not None}
    if options.ssl_ca is not None:
        parameters["ssl_verify_cert"] = True
        parameters["ssl_verify_identity"] = True

    def connect() -> Any:
        return BoundedConnection(
            **parameters,
            charset="utf8mb4",
            # Bytes are marked as such, so that the server does not check them as text.
            binary_prefix=True,
            autocommit=True,
            # An UPDATE counts the rows that it found, not those that it changed.
            client_flag=CLIENT.FOUND_ROWS,
            connect_timeout=min(remaining(), options.attempt_timeout),
            # Ends there, as a refusal, before it ends here as a doubt.
            lock_seconds=max(1, int(options.attempt_timeout / 2)),
        )

    return sa.create_engine(
        # Host and user stay out of the engine's repr.
        "mysql+pymysql://",
        creator=connect,
        poolclass=QueuePool,
        pool_size=options.concurrency,
        max_overflow=0,
        pool_use_lifo=True,
        hide_parameters=True,
    )
