"""Faults on purpose, for the conformance suite: on the wire of a server, in the driver of SQLite.

A fault is chosen when an attempt begins. Refusals with the database's own code are raised in place of
the statement. What concerns the connection happens in a proxy in front of the server, which finds the
choice in a comment behind the statement.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import psycopg
import pymysql
import sqlalchemy as sa
from sqlalchemy import event, exc

from wenchang.storage.outcomes import Attempt, Done, NotSent
from wenchang_conformance.faults import Fault, MySQL, PostgreSQL, Rule, StreamProxy, statements
from wenchang_conformance.hooks import FaultKind, FaultPlan, HookUnavailable
from wenchang_sql.calls import Calls
from wenchang_sql.opening import engine_for
from wenchang_sql.postgresql import parse_address
from wenchang_sql.statements import Prepared, Statements
from wenchang_sql.storage import SqlStorage

if TYPE_CHECKING:
    from wenchang.storage.contract import Storage
    from wenchang.storage.locations import StorageLocation
    from wenchang_conformance.hooks import Target

__all__ = ["FileFaults", "ServerFaults", "every_sdk_error"]

T = TypeVar("T")

_DELAY_SECONDS: Final = 0.05
_ANYWHERE: Final = frozenset(
    {
        FaultKind.REFUSED,
        FaultKind.DELAY,
        FaultKind.BARE_ERROR,
        FaultKind.BARE_ERROR_APPLIED,
    }
)
_ON_THE_WIRE: Final[Mapping[FaultKind, Fault]] = {
    FaultKind.ANSWER_LOST: Fault.drop_answer(),
    FaultKind.REQUEST_LOST: Fault.drop_request(),
    FaultKind.LATE: Fault.deliver_late(),
    FaultKind.HANG: Fault.hang(),
    FaultKind.HANG_APPLIED: Fault.hang(applied=True),
}


@dataclass(frozen=True, slots=True)
class Harmed(Prepared):
    """A statement that passes by an injector."""

    harm: Callable[[Prepared, Any, Mapping[str, Any]], Any]

    def run(self, raw: Any, parameters: Mapping[str, Any]) -> Any:
        """Let the injector run it."""
        statement = Prepared(self.sql, self.positions, self.constants, self.cursor)
        return self.harm(statement, raw, parameters)


class WatchedCalls(Calls):
    """Calls whose attempts pass by an injector before they connect."""

    def __init__(self, injector: _Injector, *arguments: Any, **options: Any) -> None:
        """Take what `Calls` takes."""
        super().__init__(*arguments, **options)
        self._injector = injector

    def _connected(
        self, shared: Any, work: Callable[[Any], T], *, write: bool
    ) -> Done[T] | Attempt:
        if not self._injector.arrive(write=write):
            return NotSent(error=ConnectionRefusedError("injected"))
        return super()._connected(shared, work, write=write)


class _Injector(ABC):
    """What both injectors share: the plan, and a handle whose attempts pass by it."""

    _coded: Mapping[FaultKind, Callable[[], Exception]]
    """Refusals with the database's own code: not applied."""
    _bare: Callable[[], Exception]
    """An error that says nothing of the outcome."""

    def __init__(self, location: StorageLocation) -> None:
        self._location = location
        self._plan = FaultPlan()
        self._chosen = threading.local()
        self._handles: list[SqlStorage] = []

    @property
    @abstractmethod
    def supported(self) -> frozenset[FaultKind]:
        """See `FaultInjector.supported`."""

    def open(self) -> Storage:
        """See `FaultInjector.open`."""
        engine, database, options = engine_for(self._location)
        self._prepare_engine(engine)
        own = Statements.build(options.table, engine.dialect)
        harmed = {
            item.name: self._harmed(getattr(own, item.name))
            for item in fields(Statements)
            # The second half of an attempt that has met its fault.
            if item.name != "page_rest"
        }
        storage = SqlStorage.from_engine_of_ours(
            engine,
            database,
            options,
            statements=replace(own, **harmed),
            calls=partial(WatchedCalls, self),
        )
        self._handles.append(storage)
        return storage

    def inject(
        self, kind: FaultKind, *, on: Target = "write", times: int | None = 1, skip: int = 0
    ) -> None:
        """See `FaultInjector.inject`."""
        self._check(kind)
        self._plan.inject(kind, on=on, times=times, skip=skip)

    def chaos(self, rates: Mapping[FaultKind, float], *, seed: int, on: Target = "write") -> None:
        """See `FaultInjector.chaos`."""
        for kind in rates:
            self._check(kind)
        self._plan.chaos(rates, seed=seed, on=on)

    def clear(self) -> None:
        """See `FaultInjector.clear`."""
        self._plan.clear()

    def requests(self, on: Target = "any") -> int:
        """See `FaultInjector.requests`."""
        return self._plan.requests(on)

    def injected(self) -> int:
        """See `FaultInjector.injected`."""
        return self._plan.injected()

    def close(self) -> None:
        """See `FaultInjector.close`."""
        for handle in self._handles:
            handle.close()
        self._handles.clear()

    def _check(self, kind: FaultKind) -> None:
        if kind not in self.supported:
            msg = f"{kind} cannot be injected here"
            raise HookUnavailable(msg)

    def _harmed(self, statement: Prepared) -> Harmed:
        """Return `statement`, made to pass by here."""
        return Harmed(
            statement.sql, statement.positions, statement.constants, statement.cursor, self._harm
        )

    @abstractmethod
    def _prepare_engine(self, engine: sa.Engine) -> None:
        """Set up the engine of a new handle."""

    def arrive(self, *, write: bool) -> bool:
        """Choose the fault of an attempt; return False if no connection is to be made."""
        target: Literal["write", "read"] = "write" if write else "read"
        self._chosen.kind = self._plan.decide(target)
        return self._chosen.kind is not FaultKind.REFUSED

    def _harm(self, statement: Prepared, raw: Any, parameters: Mapping[str, Any]) -> Any:
        """Run one statement, or do to it what was chosen; return its cursor."""
        kind: FaultKind | None = getattr(self._chosen, "kind", None)
        self._chosen.kind = None
        coded = None if kind is None else self._coded.get(kind)
        if coded is not None:
            error = coded()
            raise error
        if kind == FaultKind.DELAY:
            time.sleep(_DELAY_SECONDS)
        elif kind in {FaultKind.BARE_ERROR, FaultKind.BARE_ERROR_APPLIED}:
            if kind == FaultKind.BARE_ERROR_APPLIED:
                statement.run(raw, parameters)
                raw.commit()
            error = self._bare()
            raise error
        elif kind is not None:
            return self._harm_more(kind, statement, raw, parameters)
        return statement.run(raw, parameters)

    @abstractmethod
    def _harm_more(
        self, kind: FaultKind, statement: Prepared, raw: Any, parameters: Mapping[str, Any]
    ) -> Any:
        """Do what this kind of database needs its own way for."""


def _writes(statement: Prepared) -> bool:
    """Tell whether a statement of the backend can change an object."""
    return not statement.sql.startswith("SELECT")


# --- servers -------------------------------------------------------------------------------------

_POSTGRESQL_CODED: Final[Mapping[FaultKind, Callable[[], Exception]]] = {
    FaultKind.BUSY_CONFLICT: psycopg.errors.DeadlockDetected,
    FaultKind.BUSY_SERVER: psycopg.errors.LockNotAvailable,
    FaultKind.BUSY_RATE: psycopg.errors.OutOfMemory,
    FaultKind.REJECTED: psycopg.errors.InsufficientPrivilege,
}
_MYSQL_CODED: Final[Mapping[FaultKind, Callable[[], Exception]]] = {
    FaultKind.BUSY_CONFLICT: lambda: pymysql.OperationalError(1213, "Deadlock found"),
    FaultKind.BUSY_SERVER: lambda: pymysql.OperationalError(1205, "Lock wait timeout exceeded"),
    FaultKind.BUSY_RATE: lambda: pymysql.OperationalError(1226, "exceeded a resource"),
    FaultKind.REJECTED: lambda: pymysql.OperationalError(1142, "command denied"),
}


class ServerFaults(_Injector):
    """A `FaultInjector` in front of a PostgreSQL, MariaDB or MySQL server."""

    def __init__(self, location: StorageLocation) -> None:
        """Start the proxy."""
        postgresql = location.scheme == "postgresql"
        url = parse_address(f"{location.scheme}://{location.address}", location.scheme)
        if url.host is None or "host" in location.options or "unix_socket" in location.options:
            msg = "the proxy stands in front of a TCP port, and the location names a Unix socket"
            raise HookUnavailable(msg)
        port = url.port or (5432 if postgresql else 3306)
        dialect: type[PostgreSQL | MySQL] = PostgreSQL if postgresql else MySQL
        self._proxy = StreamProxy((url.host, port), dialect=dialect)
        self._coded = _POSTGRESQL_CODED if postgresql else _MYSQL_CODED
        self._bare = (
            psycopg.errors.InternalError_
            if postgresql
            else partial(pymysql.OperationalError, 1105, "Unknown error")
        )
        self._postgresql = postgresql
        for kind, fault in _ON_THE_WIRE.items():
            marked = statements(pattern=f"/\\* fault {kind.value} \\*/")
            self._proxy.script(Rule(match=marked, fault=fault, times=None))
        through = url.set(host=self._proxy.address[0], port=self._proxy.port)
        address = through.render_as_string(hide_password=False).partition("://")[2]
        super().__init__(replace(location, address=address))

    @property
    def supported(self) -> frozenset[FaultKind]:
        """See `FaultInjector.supported`."""
        return _ANYWHERE | frozenset(_ON_THE_WIRE) | frozenset(self._coded)

    def release(self) -> None:
        """See `FaultInjector.release`."""
        self._proxy.release()

    def close(self) -> None:
        """See `FaultInjector.close`."""
        super().close()
        self._proxy.close()

    def _prepare_engine(self, engine: sa.Engine) -> None:
        if self._postgresql:
            event.listen(engine, "connect", _settle)

    def _harm_more(
        self, kind: FaultKind, statement: Prepared, raw: Any, parameters: Mapping[str, Any]
    ) -> Any:
        marked = replace(statement, sql=f"{statement.sql} /* fault {kind.value} */")
        return marked.run(raw, parameters)


def _settle(raw: Any, _record: Any) -> None:
    """Let each write be one statement in autocommit, whatever the server's default isolation is.

    Inside BEGIN and COMMIT it is the COMMIT that would have to be harmed.
    """
    raw.rollback()
    raw.isolation_level = None
    raw.autocommit = True
    raw.execute("SET default_transaction_isolation = 'read committed'")


# --- SQLite --------------------------------------------------------------------------------------


def _sqlite_error(code: int, name: str) -> sqlite3.OperationalError:
    """Return an error as SQLite raises it."""
    error = sqlite3.OperationalError(f"injected {name}")
    error.sqlite_errorcode = code
    error.sqlite_errorname = name
    return error


def _lost() -> sqlite3.OperationalError:
    """Return what a failed write or sync of the log looks like: the commit may be there or not."""
    return _sqlite_error(sqlite3.SQLITE_IOERR, "SQLITE_IOERR")


class FileFaults(_Injector):
    """A `FaultInjector` inside the driver of SQLite."""

    _coded: Mapping[FaultKind, Callable[[], Exception]] = {
        FaultKind.BUSY_CONFLICT: lambda: _sqlite_error(
            sqlite3.SQLITE_BUSY_SNAPSHOT, "SQLITE_BUSY_SNAPSHOT"
        ),
        FaultKind.BUSY_SERVER: lambda: _sqlite_error(sqlite3.SQLITE_BUSY, "SQLITE_BUSY"),
        FaultKind.BUSY_RATE: lambda: _sqlite_error(sqlite3.SQLITE_LOCKED, "SQLITE_LOCKED"),
        FaultKind.REJECTED: lambda: _sqlite_error(sqlite3.SQLITE_READONLY, "SQLITE_READONLY"),
    }

    def __init__(self, location: StorageLocation) -> None:
        """Hold nothing back yet."""
        super().__init__(location)
        self._bare = _lost
        self._held: list[tuple[Prepared, Mapping[str, Any]]] = []
        self._held_lock = threading.Lock()

    @property
    def supported(self) -> frozenset[FaultKind]:
        """See `FaultInjector.supported`."""
        in_the_file = {FaultKind.ANSWER_LOST, FaultKind.REQUEST_LOST, FaultKind.LATE}
        return _ANYWHERE | in_the_file | frozenset(self._coded)

    def _prepare_engine(self, engine: sa.Engine) -> None:
        del engine  # nothing to set up

    def release(self) -> None:
        """See `FaultInjector.release`."""
        with self._held_lock:
            held, self._held = self._held, []
        engine, _, _ = engine_for(self._location)
        try:
            for statement, parameters in held:
                raw = engine.raw_connection()
                try:
                    statement.run(raw.dbapi_connection, parameters)
                    raw.commit()
                finally:
                    raw.close()
        finally:
            engine.dispose()

    def _harm_more(
        self, kind: FaultKind, statement: Prepared, raw: Any, parameters: Mapping[str, Any]
    ) -> Any:
        if kind == FaultKind.ANSWER_LOST and _writes(statement):
            statement.run(raw, parameters)
            raw.commit()
        elif kind == FaultKind.LATE and _writes(statement):
            with self._held_lock:
                self._held.append((statement, dict(parameters)))
        error = _lost()
        raise error


# --- every error ---------------------------------------------------------------------------------


def every_sdk_error() -> Iterator[Exception]:
    """Yield one instance of each exception class of SQLAlchemy and of the three drivers.

    Classes that carry a code come with it; those of MySQL and SQLite, which carry it as a value, come
    once for each code that `errors` knows.
    """
    for kind in _subclasses(exc.SQLAlchemyError):
        yield _instance(kind)
    for kind in _subclasses(psycopg.Error):
        yield _wrapped(_instance(kind))
    for kind in _subclasses(pymysql.MySQLError):
        yield _wrapped(_instance(kind))
    for number in (*range(1000, 2100), 3, 1969, 3024, 3572, 4025):
        yield _wrapped(pymysql.OperationalError(number, "some text"))
    for kind in _subclasses(sqlite3.Error):
        yield _wrapped(_instance(kind))
    for name in dir(sqlite3):
        code = getattr(sqlite3, name)
        if name.startswith("SQLITE_") and isinstance(code, int):
            yield _wrapped(_sqlite_error(code, name))


def _subclasses(kind: type[Exception]) -> Iterator[type[Exception]]:
    """Yield a class and everything below it."""
    yield kind
    for below in kind.__subclasses__():
        yield from _subclasses(below)


def _instance(kind: type[Exception]) -> Exception:
    """Make an exception without knowing what its constructor wants."""
    if issubclass(kind, exc.DBAPIError):
        return kind("SELECT 1", {"k": b"a secret"}, Exception("some text"), hide_parameters=True)
    if issubclass(kind, exc.StatementError):
        return kind("some text", "SELECT 1", {"k": b"a secret"}, None, hide_parameters=True)
    error = kind.__new__(kind, "some text")
    error.args = ("some text",)
    return error


def _wrapped(error: Exception) -> Exception:
    """Return a driver's error as SQLAlchemy raises it."""
    return exc.DBAPIError("SELECT 1", {"k": b"a secret"}, error, hide_parameters=True)
