"""What each error of SQLAlchemy and of the drivers means for the outcome of an attempt.

One place for all three databases. An error is judged by the code that the database gave it, never
by its class alone: SQLSTATE (PostgreSQL), error number (MariaDB, MySQL), extended result code
(SQLite). Text is read only where libpq gives no code, for a refused connection.

Our errors chain the driver's own error, without SQLAlchemy's around it, whose text repeats the
statement. Our texts take nothing from it.
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast

from sqlalchemy import exc

from wenchang.storage import StorageConfigurationError, StorageRejectedError
from wenchang.storage.outcomes import Ambiguous, Busy, NotSent, Refused, Rejected

if TYPE_CHECKING:
    from wenchang.storage.errors import RejectionKind

__all__ = [
    "PoolExhausted",
    "RowCountUnknown",
    "after_sending",
    "before_sending",
    "driver_error",
    "is_missing_table",
]

Meaning: TypeAlias = "Literal['busy', 'lost', 'duplicate', 'prepared'] | RejectionKind"
"""`lost` is a connection or an answer; `duplicate` a primary key that exists; `prepared` a prepared
statement that the server does not know; the rest refuse for good."""

_ADVICE: Final[dict[RejectionKind, str]] = {
    "credentials": "the database refused the user or the password; check both in the storage URL",
    "permission": "the database user lacks a privilege: it needs SELECT, INSERT, UPDATE and DELETE "
    "on the table, and the right to create it unless `wenchang sql init` has",
    "missing_container": "the database or its table does not exist: create the database, then "
    "let `wenchang sql init` make the table",
    "unsupported": "the database does not support what this backend needs",
    "invalid": "the database refused the statement or its data; the table may not be one of ours",
    "locked": "the database is read-only here: a standby, a read-only file or a read-only setting",
    "full": "the database has no space left: its disk, its quota or its size limit is reached",
}
_PREPARED: Final = (
    "a connection pooler lost a prepared statement: set the option prepared_statements=false"
)


class PoolExhausted(Exception):  # noqa: N818 - the cause of an error, never raised itself
    """Every connection was in use until the time of the attempt was over."""

    def __init__(self) -> None:
        super().__init__(
            "all connections are in use; raise the option 'concurrency' or call less in parallel"
        )


class RowCountUnknown(Exception):  # noqa: N818 - the cause of an error, never raised itself
    """The driver did not say how many rows a statement changed."""

    def __init__(self) -> None:
        super().__init__("the driver does not report row counts")


@dataclass(frozen=True, slots=True)
class _Judgement:
    """An error's meaning, the driver's error, and whether time had run out."""

    meaning: Meaning
    failure: Exception
    timed_out: bool = False

    def rejection(self) -> StorageRejectedError:
        """Return the error for a caller where the database refused for good."""
        meaning = self.meaning
        if meaning == "prepared":
            error = StorageRejectedError("unsupported", _PREPARED)
        else:
            kind = cast("RejectionKind", "invalid" if meaning in _NO_REJECTION else meaning)
            error = StorageRejectedError(kind, _ADVICE[kind])
        error.__cause__ = self.failure
        return error


_NO_REJECTION: Final = frozenset({"busy", "lost", "duplicate"})


def before_sending(error: Exception) -> NotSent | Busy | Rejected:
    """Judge an error met before the statement itself was sent: connecting, preparing, schema."""
    if isinstance(error, StorageRejectedError | StorageConfigurationError):
        return Rejected(error=error)
    judged = _judge(error)
    if judged.meaning == "busy":
        return Busy(error=judged.failure)
    if judged.meaning in _NO_REJECTION:
        return NotSent(error=judged.failure, timed_out=judged.timed_out)
    return Rejected(error=judged.rejection())


def after_sending(error: Exception) -> Ambiguous | Busy | Refused | Rejected:
    """Judge an error met by the statement or its commit."""
    judged = _judge(error)
    if judged.meaning == "busy":
        return Busy(error=judged.failure)
    if judged.meaning == "duplicate":
        return Refused()
    if judged.meaning == "lost":
        return Ambiguous(error=judged.failure, timed_out=judged.timed_out)
    return Rejected(error=judged.rejection())


def is_missing_table(error: Exception) -> bool:
    """Tell whether `error` says that a table does not exist."""
    inner = driver_error(error)
    if getattr(inner, "sqlstate", None) == "42P01":
        return True
    if isinstance(inner, sqlite3.Error):
        return str(inner).startswith("no such table")
    return type(inner).__module__.startswith("pymysql") and _number(inner) == 1146


def driver_error(error: Exception) -> Exception:
    """Return the driver's own error inside SQLAlchemy's, or `error` itself."""
    inner: BaseException | None = error
    while isinstance(inner, exc.StatementError):
        inner = inner.orig
    return inner if isinstance(inner, Exception) else error


def _judge(error: Exception) -> _Judgement:
    """Find out what `error` means. Whatever is not known counts as lost: it is settled by reading."""
    inner = driver_error(error)
    if isinstance(error, exc.TimeoutError):
        return _Judgement("lost", error)
    if isinstance(inner, TimeoutError):
        return _Judgement("lost", inner, timed_out=True)
    module = type(inner).__module__.partition(".")[0]
    if module == "sqlite3":
        return _judge_sqlite(inner)
    if module == "psycopg":
        return _judge_postgresql(inner)
    if module == "pymysql":
        return _judge_mysql(inner)
    return _Judgement("lost", inner)


# --- PostgreSQL ----------------------------------------------------------------------------------

_SQLSTATES: Final[dict[str, Meaning]] = {
    "40001": "busy",  # serialization failure
    "40P01": "busy",  # deadlock
    "40003": "lost",  # statement completion unknown
    "55P03": "busy",  # lock not available
    "55006": "busy",  # object in use
    "57014": "busy",  # the server's own statement time-out: the statement was undone
    "53100": "full",
    "53400": "full",
    "25006": "locked",  # read-only transaction
    "3D000": "missing_container",
    "3F000": "missing_container",
    "42P01": "missing_container",
    "42501": "permission",
    "26000": "prepared",
    "42P05": "prepared",
    "23505": "duplicate",
    "25P02": "lost",
    "25P03": "lost",
}
_SQLSTATE_CLASSES: Final[dict[str, Meaning]] = {
    "0A": "unsupported",
    "22": "invalid",
    "23": "invalid",
    "28": "credentials",
    "3D": "missing_container",
    "40": "busy",  # transaction rollback
    "42": "invalid",
    "44": "invalid",
    "53": "busy",  # out of memory or connections: the statement was undone
    "54": "invalid",
    "55": "unsupported",
}
# libpq reports a refused connection as text only. English is what servers speak by default; in
# another language the refusal is retried as an outage until the deadline.
_CONNECT_TEXTS: Final[tuple[tuple[str, Meaning], ...]] = (
    (r"password authentication failed|no password supplied|role .* does not exist", "credentials"),
    (r"authentication failed|no pg_hba\.conf entry|is not permitted to log in", "credentials"),
    (r"database .* does not exist", "missing_container"),
    (r"permission denied for database|User does not have CONNECT privilege", "permission"),
)


def _judge_postgresql(error: Exception) -> _Judgement:
    state: str | None = getattr(error, "sqlstate", None)
    text = str(error)
    if state is None:
        if type(error).__name__ == "ConnectionTimeout":
            return _Judgement("lost", error, timed_out=True)
        if type(error).__name__ == "DataError":
            # Raised by the driver itself, for a parameter that it cannot send.
            return _Judgement("invalid", error)
        for pattern, meaning in _CONNECT_TEXTS:
            if re.search(pattern, text):
                return _Judgement(meaning, error)
        return _Judgement("lost", error)
    if state == "0A000" and "cached plan" in text:
        # The table was altered under a prepared statement; the next attempt plans anew.
        return _Judgement("busy", error)
    known = _SQLSTATES.get(state) or _SQLSTATE_CLASSES.get(state[:2], "lost")
    return _Judgement(known, error)


# --- MariaDB and MySQL ---------------------------------------------------------------------------

_MYSQL: Final[dict[int, Meaning]] = {
    **dict.fromkeys((1205, 1213, 1020, 1317, 1969, 3024, 3572), "busy"),
    **dict.fromkeys((1040, 1203, 1226, 1041), "busy"),  # too many connections, out of resources
    1062: "duplicate",
    **dict.fromkeys((1045, 1698, 1524, 1862, 1820), "credentials"),
    **dict.fromkeys((1044, 1142, 1143, 1227, 1370, 1129, 1130), "permission"),
    **dict.fromkeys((1049, 1146, 1051), "missing_container"),
    **dict.fromkeys((1290, 1792, 1836, 1223, 1099), "locked"),
    **dict.fromkeys((1021, 1114, 1118, 3), "full"),
    **dict.fromkeys((1235, 1286, 1295, 1665), "unsupported"),
    **dict.fromkeys(
        (1048, 1054, 1064, 1071, 1136, 1153, 1162, 1264, 1292, 1364, 1366, 1406, 1452, 4025),
        "invalid",
    ),
}


def _number(error: Exception) -> int | None:
    """Return MySQL's error number."""
    first = error.args[0] if error.args else None
    return first if isinstance(first, int) else None


def _judge_mysql(error: Exception) -> _Judgement:
    number = _number(error)
    text = str(error)
    if number == 1030 and re.search(r"\b(28|122|135)\b", text):
        # The storage engine passes the system's code on: no space left, quota, table full.
        return _Judgement("full", error)
    if number in _MYSQL:
        return _Judgement(_MYSQL[number], error)
    return _Judgement("lost", error, timed_out="timed out" in text)


# --- SQLite --------------------------------------------------------------------------------------

_SQLITE: Final[dict[int, Meaning]] = {
    sqlite3.SQLITE_BUSY: "busy",
    sqlite3.SQLITE_LOCKED: "busy",
    sqlite3.SQLITE_PROTOCOL: "busy",
    sqlite3.SQLITE_SCHEMA: "busy",
    sqlite3.SQLITE_INTERRUPT: "busy",
    sqlite3.SQLITE_NOMEM: "busy",
    sqlite3.SQLITE_READONLY: "locked",
    sqlite3.SQLITE_FULL: "full",
    sqlite3.SQLITE_CANTOPEN: "missing_container",
    sqlite3.SQLITE_PERM: "permission",
    sqlite3.SQLITE_AUTH: "permission",
    sqlite3.SQLITE_NOTADB: "invalid",
    sqlite3.SQLITE_CORRUPT: "invalid",
    sqlite3.SQLITE_TOOBIG: "invalid",
    sqlite3.SQLITE_MISMATCH: "invalid",
    sqlite3.SQLITE_RANGE: "invalid",
    sqlite3.SQLITE_CONSTRAINT: "invalid",
    sqlite3.SQLITE_NOLFS: "unsupported",
}
_SQLITE_DUPLICATES: Final = frozenset(
    {sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE}
)


def _judge_sqlite(error: Exception) -> _Judgement:
    code: int | None = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return _Judgement("lost", error)
    if code in _SQLITE_DUPLICATES:
        return _Judgement("duplicate", error)
    if code == sqlite3.SQLITE_ERROR:
        # The generic code of a statement that cannot be compiled: nothing was run.
        missing = str(error).startswith("no such table")
        return _Judgement("missing_container" if missing else "invalid", error)
    # SQLITE_IOERR and whatever is new: a failed sync may leave a whole commit in the log.
    return _Judgement(_SQLITE.get(code & 0xFF, "lost"), error)
