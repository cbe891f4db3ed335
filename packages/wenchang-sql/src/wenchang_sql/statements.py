"""The statements that read and write objects, the same for all databases but for two.

Each is one statement that stands alone: a conditional write tests its condition and takes effect
in the same statement, and its row count is the answer. Nothing here reads before it writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.engine import Dialect

from wenchang.storage.outcomes import UNKNOWN_ID
from wenchang_sql.rows import LINEAGE_CHARACTERS

__all__ = ["Prepared", "Statements", "build_expressions", "object_table", "prepare"]


def object_table(table: str, dialect_name: str) -> sa.TableClause:
    """Return the table of objects, for building statements (the DDL is in `schema`)."""
    schema, _, name = table.rpartition(".")
    more = () if dialect_name == "sqlite" else (sa.column("metadata_long", sa.String),)
    return sa.table(
        name,
        *more,
        sa.column("namespace", sa.LargeBinary),
        sa.column("object_key", sa.LargeBinary),
        sa.column("version", sa.LargeBinary),
        sa.column("metadata", sa.String),
        sa.column("write_id", sa.String),
        sa.column("lineage", sa.String),
        sa.column("body", sa.LargeBinary),
        schema=schema or None,
    )


@dataclass(frozen=True, slots=True)
class Prepared:
    """One statement, compiled once for its database.

    It is run on the driver's own cursor. Through SQLAlchemy's `Connection` it would cost four times
    as much to look the statement up and to wrap rows that are taken apart at once.
    """

    sql: str
    positions: tuple[str, ...] | None
    """The names of its parameters in their order, or None where the driver takes names."""
    constants: Mapping[str, Any]
    """Parameters that are the same at every call."""
    cursor: Mapping[str, Any]
    """How the driver is asked for a cursor."""

    def rows(self, raw: Any, parameters: Mapping[str, Any]) -> Sequence[Any]:
        """Run it on the driver's connection; return all rows, as the driver gives them."""
        cursor = self.run(raw, parameters)
        rows: Sequence[Any] = cursor.fetchall()
        cursor.close()
        return rows

    def count(self, raw: Any, parameters: Mapping[str, Any]) -> int | None:
        """Run it on the driver's connection; return the number of rows it changed, if it is known."""
        cursor = self.run(raw, parameters)
        changed: int | None = cursor.rowcount
        cursor.close()
        return changed

    def run(self, raw: Any, parameters: Mapping[str, Any]) -> Any:
        """Run it on the driver's connection; return the cursor."""
        bound: Any = {**self.constants, **parameters}
        if self.positions is not None:
            bound = tuple([bound[name] for name in self.positions])
        cursor = raw.cursor(**self.cursor)
        cursor.execute(self.sql, bound)
        return cursor


def prepare(statement: Any, dialect: Dialect) -> Prepared:
    """Compile a statement for one database."""
    compiled = statement.compile(dialect=dialect)
    constants = {name: value for name, value in compiled.params.items() if value is not None}
    positions = tuple(compiled.positiontup) if compiled.positional else None
    # psycopg reads answers as text unless told: keys and versions would come as hexadecimal digits.
    cursor = {"binary": True} if dialect.name == "postgresql" else {}
    return Prepared(str(compiled), positions, constants, cursor)


@dataclass(frozen=True, slots=True)
class Statements:
    """The statements of one table on one database.

    Parameters: `ns`, `k` (key), `ver` (expected version), `low` and `high` (a half-open range of
    keys), `rows` (a limit), `keys`, and `new_version`, `new_metadata`, `new_id`, `new_body` (on
    servers also `new_long`); for a replace also `expected` and `replaced`, the version as text and as
    the end of a lineage pair.
    """

    get: Prepared
    read_back: Prepared
    page: Prepared
    page_versions: Prepared
    create: Prepared
    put: Prepared
    replace: Prepared
    delete: Prepared
    page_rest: Prepared | None = None
    """Where the index of a page cannot hold every object's metadata: those of the given `keys`."""

    @classmethod
    def build(cls, table: str, dialect: Dialect) -> Statements:
        """Build the statements for the database that `dialect` speaks to."""
        expressions = build_expressions(table, dialect.name)
        return cls(**{name: prepare(one, dialect) for name, one in expressions.items()})


def build_expressions(table: str, dialect_name: str) -> dict[str, Any]:
    """Return the statements by name, as SQLAlchemy expressions."""
    t = object_table(table, dialect_name)
    split = "metadata_long" in t.c
    metadata = sa.func.coalesce(t.c.metadata_long, t.c.metadata) if split else t.c.metadata
    here = sa.and_(t.c.namespace == sa.bindparam("ns"), t.c.object_key == sa.bindparam("k"))
    same = sa.and_(here, t.c.version == sa.bindparam("ver"))
    marks = (t.c.write_id, t.c.lineage)
    statements = _pages(t)
    if split:
        statements["page_rest"] = sa.select(t.c.object_key, metadata, t.c.version).where(
            t.c.namespace == sa.bindparam("ns"), _is_one_of(t.c.object_key, dialect_name)
        )
    return {
        **statements,
        "get": sa.select(t.c.body, metadata, t.c.version).where(here),
        "read_back": sa.select(t.c.body, metadata, t.c.version, *marks).where(here),
        "create": _create(t, dialect_name),
        "put": _put(t, dialect_name),
        "replace": _replace(t, same),
        "delete": sa.delete(t).where(same),
    }


def _pages(t: sa.TableClause) -> dict[str, Any]:
    """Return the statements of a page, which read an index and no object."""
    inside = sa.and_(
        t.c.namespace == sa.bindparam("ns"),
        t.c.object_key >= sa.bindparam("low"),
        t.c.object_key < sa.bindparam("high"),
    )
    columns = {
        "page": (t.c.object_key, t.c.metadata, t.c.version),
        "page_versions": (t.c.object_key, t.c.version),
    }
    return {
        name: sa.select(*shown)
        # MariaDB takes the primary key, bodies and all, wherever both would do.
        .with_hint(t, "FORCE INDEX (listing)", "mysql")
        .with_hint(t, "FORCE INDEX (listing)", "mariadb")
        .where(inside)
        .order_by(t.c.object_key)
        .limit(sa.bindparam("rows", type_=sa.Integer))
        for name, shown in columns.items()
    }


def _is_one_of(column: sa.ColumnClause[Any], dialect_name: str) -> Any:
    """Return the condition that a column is one of the given `keys`, however many they are."""
    if dialect_name == "postgresql":
        return column == sa.any_(sa.bindparam("keys", type_=sa.ARRAY(sa.LargeBinary)))
    # PyMySQL writes a list as the values between parentheses.
    return column.op("IN")(sa.bindparam("keys", type_=sa.LargeBinary))


def _fresh(t: sa.TableClause) -> dict[Any, Any]:
    """Return the columns of an object that replaces nothing that is known: an empty lineage."""
    return {
        t.c.namespace: sa.bindparam("ns"),
        t.c.object_key: sa.bindparam("k"),
        t.c.version: sa.bindparam("new_version"),
        **_content(t),
        t.c.write_id: sa.bindparam("new_id"),
        t.c.lineage: "",
    }


def _content(t: sa.TableClause) -> dict[Any, Any]:
    """Return the columns of metadata and body."""
    content: dict[Any, Any] = {
        t.c.metadata: sa.bindparam("new_metadata"),
        t.c.body: sa.bindparam("new_body"),
    }
    if "metadata_long" in t.c:
        content[t.c.metadata_long] = sa.bindparam("new_long", type_=sa.String)
    return content


def _create(t: sa.TableClause, dialect_name: str) -> Any:
    """Insert, unless the key exists.

    MySQL has no such clause that is safe: `IGNORE` would cut values silently, so the duplicate is
    an error there (`errors`).
    """
    if dialect_name == "postgresql":
        return postgresql.insert(t).values(_fresh(t)).on_conflict_do_nothing()
    if dialect_name == "sqlite":
        return sqlite.insert(t).values(_fresh(t)).on_conflict_do_nothing()
    return sa.insert(t).values(_fresh(t))


def _put(t: sa.TableClause, dialect_name: str) -> Any:
    """Insert or replace, whatever is there."""
    changed = [column.name for column in t.c if column.name not in {"namespace", "object_key"}]
    if dialect_name in {"mysql", "mariadb"}:
        # VALUES() is the one form that MariaDB and every MySQL understand.
        values = {name: sa.func.values(sa.literal_column(name)) for name in changed}
        return mysql.insert(t).values(_fresh(t)).on_duplicate_key_update(values)
    insert = postgresql.insert(t) if dialect_name == "postgresql" else sqlite.insert(t)
    statement = insert.values(_fresh(t))
    return statement.on_conflict_do_update(
        index_elements=[t.c.namespace, t.c.object_key],
        set_={name: statement.excluded[name] for name in changed},
    )


def _replace(t: sa.TableClause, same: Any) -> Any:
    """Replace the object at the expected version and write its lineage.

    The database itself puts the replaced object's id and lineage in front, so that no handle has
    to remember them. `lineage` is set first because MySQL evaluates assignments one after another.
    """
    expected = sa.bindparam("expected", type_=sa.String)
    pair = sa.case(
        (t.c.write_id == expected, expected + ";"),
        else_=sa.func.coalesce(t.c.write_id, UNKNOWN_ID)
        + sa.bindparam("replaced", type_=sa.String),
    )
    lineage = sa.func.substr(pair + sa.func.coalesce(t.c.lineage, ""), 1, LINEAGE_CHARACTERS)
    return (
        sa.update(t)
        .where(same)
        .ordered_values(
            (t.c.lineage, lineage),
            (t.c.write_id, sa.bindparam("new_id")),
            (t.c.version, sa.bindparam("new_version")),
            *_content(t).items(),
        )
    )
