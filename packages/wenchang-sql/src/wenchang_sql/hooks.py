"""Hooks for the conformance suite: restarts, other processes, lost answers, foreign rows.

Imported by `wenchang check` and by tests only; needs `wenchang-conformance`. Each case gets tables of
its own, which are dropped at its end, so the user of the location must be allowed to make tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa
from sqlalchemy import exc as sa_exc

from wenchang.errors import BackendUnavailableError
from wenchang.storage import PreconditionFailedError
from wenchang.storage.locations import StorageLocation
from wenchang.storage.outcomes import Refused, Rejected
from wenchang_conformance.hooks import HookUnavailable, Recipe, StorageHooks
from wenchang_sql.descriptors import SQLITE
from wenchang_sql.errors import after_sending, driver_error
from wenchang_sql.hooks_faults import FileFaults, ServerFaults
from wenchang_sql.opening import engine_for, open_location
from wenchang_sql.schema import FORMAT, meta_table
from wenchang_sql.statements import object_table

if TYPE_CHECKING:
    from wenchang.storage.contract import Storage
    from wenchang_conformance.hooks import Backdoor, FaultInjector

__all__ = ["hooks", "sdk_errors"]

_DEADLINE: Final = 3.0
_ATTEMPT: Final = 1.0
_IN_MEMORY: Final = {
    "fork": "SQLite's memory does not survive a fork; the child's calls say so",
    "obj-foreign": "nothing but the storage itself reaches the memory of its process",
    "format-guard": "nothing outlives the process, so there is no stored format",
}


@contextmanager
def hooks(location: StorageLocation, namespace: str) -> Iterator[StorageHooks]:
    """Make the hooks of one fresh, empty pair of tables; see `HooksFactory`."""
    table = "check_" + namespace.replace("-", "_")
    mine = _with_options(location, table=table)
    in_memory = location.scheme == "sqlite" and location.address == "/:memory:"
    opened: list[Any] = []

    def open_one() -> Storage:
        if in_memory and opened:
            return opened[0]  # type: ignore[no-any-return] # a storage; the list also holds injectors
        storage = open_location(mine)
        opened.append(storage)
        return storage

    def faults() -> FaultInjector:
        bounded = _with_options(mine, deadline=_DEADLINE, attempt_timeout=_ATTEMPT)
        injector: Any = (
            FileFaults(bounded) if location.scheme == "sqlite" else ServerFaults(bounded)
        )
        opened.append(injector)
        return injector  # type: ignore[no-any-return] # either is a FaultInjector

    backdoor = SqlBackdoor(mine)
    try:
        yield StorageHooks(
            open=open_one,
            reopen=None if in_memory else open_one,
            spawn=None
            if in_memory
            else Recipe(target="wenchang_sql.opening:open_location", args=(mine,)),
            faults=None if in_memory else faults,
            backdoor=None if in_memory else _as_backdoor(backdoor),
            durable=not in_memory,
            shared=not in_memory,
            local=in_memory,
            unsupported={**SQLITE.unsupported, **(_IN_MEMORY if in_memory else {})},
            deadline=_DEADLINE,
            secrets=_secrets(location),
            wrong_options=_wrong_options(mine),
            import_module="wenchang_sql",
            sdk_modules=("sqlalchemy", "psycopg", "pymysql"),
            sdk_errors=sdk_errors,
        )
    finally:
        for one in opened:
            one.close()
        backdoor.remove()


def _with_options(location: StorageLocation, **options: Any) -> StorageLocation:
    return replace(location, options={**location.options, **options})


def _as_backdoor(backdoor: SqlBackdoor) -> Backdoor:
    return backdoor


def _secrets(location: StorageLocation) -> tuple[str, ...]:
    """Return what of the address no text may hold."""
    if location.scheme == "sqlite":
        return (location.address.lstrip("/"),)
    userinfo, _, rest = location.address.rpartition("@")
    return tuple(part for part in (*userinfo.split(":")[1:], rest) if part)


def _wrong_options(location: StorageLocation) -> Mapping[str, Callable[[], object]]:
    wrong: Mapping[str, Any] = {
        "namespace": "a//b",
        "table": "No Table",
        "deadline": -1,
        "attempt_timeout": 0,
        "concurrency": 0,
        "no_such_option": 1,
    }
    return {
        name: partial(open_location, _with_options(location, **{name: value}))
        for name, value in wrong.items()
    }


@dataclass(frozen=True, slots=True)
class SqlBackdoor:
    """The tables as a SQL console sees them."""

    location: StorageLocation

    def put_raw(self, key: str, body: bytes) -> None:
        """Insert a row as a stranger would: a version of some form, no metadata, no marks."""
        with self._console() as (connection, table, _):
            row = {"namespace": self._namespace(), "object_key": key.encode()}
            connection.execute(sa.delete(table).where(table.c.object_key == row["object_key"]))
            connection.execute(sa.insert(table).values(**row, version=b"by hand", body=body))

    def corrupt(self, key: str) -> None:
        """Cut the metadata off in the middle."""
        with self._console() as (connection, table, _):
            here = table.c.object_key == key.encode()
            whole = {"metadata_long": None} if "metadata_long" in table.c else {}
            connection.execute(sa.update(table).where(here).values(metadata='{"broken', **whole))

    def put_future(self, key: str, body: bytes) -> None:
        """Mark the tables as of the next layout, which this release must not write."""
        self.put_raw(key, body)
        with self._console() as (connection, _, meta):
            for name in ("format", "min_writer"):
                newer = str(FORMAT + 1)
                connection.execute(sa.update(meta).where(meta.c.name == name).values(value=newer))

    def list_raw(self) -> Sequence[str]:
        """Return every key in the table."""
        with self._console() as (connection, table, _):
            keys = connection.execute(sa.select(table.c.object_key)).scalars()
            return [bytes(key).decode(errors="backslashreplace") for key in keys]

    def remove(self) -> None:
        """Drop the tables, if any call made them."""
        name = self._table()
        with suppress(sa_exc.SQLAlchemyError), self._engine() as connection:
            for one in (name, meta_table(name)):
                connection.exec_driver_sql(f"DROP TABLE IF EXISTS {one}")
                connection.commit()

    def _table(self) -> str:
        return str(self.location.options["table"])

    def _namespace(self) -> bytes:
        return str(self.location.options.get("namespace", "")).encode()

    @contextmanager
    def _engine(self) -> Iterator[sa.Connection]:
        engine, _, _ = engine_for(self.location)
        try:
            with engine.connect() as connection:
                yield connection
        finally:
            engine.dispose()

    @contextmanager
    def _console(self) -> Iterator[tuple[sa.Connection, sa.TableClause, sa.TableClause]]:
        """Yield a connection and both tables, made if they are not there yet."""
        if not self.location.options.get("create_schema", True):
            msg = "create_schema=false leaves no tables of one's own to tamper with"
            raise HookUnavailable(msg)
        with open_location(self.location) as storage:
            storage.prepare()
        meta = sa.table(meta_table(self._table()), sa.column("name"), sa.column("value"))
        with self._engine() as connection:
            yield connection, object_table(self._table(), connection.dialect.name), meta
            connection.commit()


def sdk_errors() -> Iterable[tuple[BaseException, BaseException]]:
    """Yield one error of each class of SQLAlchemy and the drivers, and what becomes of it."""
    from wenchang_sql.hooks_faults import every_sdk_error

    for error in every_sdk_error():
        answer = after_sending(error)
        inner = driver_error(error)
        if isinstance(answer, Rejected):
            yield inner, answer.error
        elif isinstance(answer, Refused):
            yield inner, PreconditionFailedError("key")
        else:
            ours = BackendUnavailableError("unavailable")
            ours.__cause__ = answer.error
            yield inner, ours
