"""The tables: their SQL, their version, and how they are made and upgraded.

Two tables: the objects, and `<table>_meta` with names and values about them. `format` is the
version of the layout and `min_writer` the oldest release of the layout that may still write to
it; names that this release does not know are left alone. A database of a newer layout can be read as
far as its columns are still known, and is not written when `min_writer` forbids it.

Layouts are reached in numbered steps, each of which can be repeated: MariaDB and MySQL commit every
change of a table by itself, so an upgrade can be interrupted between any two statements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from wenchang.storage import StorageRejectedError
from wenchang_sql.options import check_table

__all__ = [
    "FORMAT",
    "MIN_WRITER",
    "STEPS",
    "Layout",
    "Step",
    "check_readable",
    "check_writable",
    "create_script",
    "layout_of",
    "meta_table",
    "pending",
    "upgrade_statements",
]

FORMAT: Final = 1
"""The layout that this release writes."""
MIN_WRITER: Final = 1
"""The oldest layout whose writers do no harm to this one."""

_CREATE: Final[Mapping[str, tuple[str, ...]]] = {
    # Clustered by key: a page is read in one sweep. The body comes last, so that whatever of it does
    # not fit into the page lies in overflow pages that a listing never follows.
    "sqlite": (
        """\
CREATE TABLE IF NOT EXISTS {table} (
    namespace BLOB NOT NULL,
    object_key BLOB NOT NULL,
    version BLOB NOT NULL,
    metadata TEXT,
    write_id TEXT,
    lineage TEXT,
    body BLOB NOT NULL,
    PRIMARY KEY (namespace, object_key)
) WITHOUT ROWID""",
        """\
CREATE TABLE IF NOT EXISTS {meta} (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID""",
    ),
    # bytea, not text: its order and equality depend on no collation. Rows lie where they were written,
    # so that a page of a large table would visit as many blocks as it has rows; the primary key
    # therefore carries what a listing shows. An entry of an index has at most 2,704 bytes, hence the
    # second column for metadata that is longer than `rows.INDEXED_METADATA_BYTES`.
    "postgresql": (
        """\
CREATE TABLE IF NOT EXISTS {table} (
    namespace bytea NOT NULL,
    object_key bytea NOT NULL,
    version bytea NOT NULL,
    metadata text,
    metadata_long text,
    write_id text,
    lineage text,
    body bytea NOT NULL,
    PRIMARY KEY (namespace, object_key) INCLUDE (version, metadata)
)""",
        """\
CREATE TABLE IF NOT EXISTS {meta} (
    name text NOT NULL PRIMARY KEY,
    value text NOT NULL
)""",
    ),
    # VARBINARY pads nothing and folds nothing. Rows lie in the primary key, short bodies with them, so
    # that a page would read those too; a second index carries what a listing shows. It may have
    # 3,072 bytes, hence the second column for metadata here as well.
    "mysql": (
        """\
CREATE TABLE IF NOT EXISTS {table} (
    namespace VARBINARY(124) NOT NULL,
    object_key VARBINARY(1024) NOT NULL,
    version VARBINARY(256) NOT NULL,
    metadata VARBINARY(1500),
    metadata_long MEDIUMBLOB,
    write_id VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    lineage TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    body LONGBLOB NOT NULL,
    PRIMARY KEY (namespace, object_key),
    KEY listing (namespace, object_key, version, metadata)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC""",
        """\
CREATE TABLE IF NOT EXISTS {meta} (
    name VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
    value VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC""",
    ),
}


@dataclass(frozen=True, slots=True)
class Step:
    """One numbered step: the layout it leads to, and its statements by kind of database."""

    number: int
    statements: Mapping[str, Sequence[str]]


STEPS: Final[tuple[Step, ...]] = (Step(1, _CREATE),)
"""All steps, from an empty database to `FORMAT`. A released step is never changed."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What a database says of its tables; format 0 means that there are none yet."""

    format: int
    min_writer: int


ABSENT: Final = Layout(0, 0)


def meta_table(table: str) -> str:
    """Return the name of the table that describes `table`."""
    return f"{table}_meta"


def layout_of(values: Mapping[str, str]) -> Layout:
    """Return the layout that the rows of the meta table describe.

    No `format` means that making the tables was interrupted. Raises `StorageRejectedError` for
    values that are no numbers.
    """
    try:
        return Layout(int(values.get("format", "0")), int(values.get("min_writer", "0")))
    except ValueError:
        msg = "the table that describes the objects holds no version number; it is not one of ours"
        raise StorageRejectedError("invalid", msg) from None


def check_readable(layout: Layout) -> None:
    """Raise `StorageRejectedError` for tables that do not exist yet or are only half made."""
    if layout.format < 1:
        msg = "the tables do not exist: make them with `wenchang sql init`"
        raise StorageRejectedError("missing_container", msg)
    if layout.format < FORMAT:
        msg = (
            f"the tables have layout {layout.format} and this release writes {FORMAT}: "
            "upgrade them with `wenchang sql init`"
        )
        raise StorageRejectedError("unsupported", msg)


def check_writable(layout: Layout) -> None:
    """Raise `StorageRejectedError` if this release must not write to `layout`."""
    if layout.min_writer > FORMAT:
        msg = (
            f"the tables have layout {layout.format} and accept writers from layout "
            f"{layout.min_writer} on; this release writes {FORMAT}: upgrade wenchang-sql"
        )
        raise StorageRejectedError("unsupported", msg)


def pending(layout: Layout) -> list[Step]:
    """Return the steps that lead from `layout` to the newest one, in their order."""
    return [step for step in STEPS if step.number > layout.format]


def upgrade_statements(kind: str, table: str, layout: Layout) -> list[str]:
    """Return the SQL that leads from `layout` to the newest, the new version numbers last.

    `kind` is sqlite, postgresql or mysql (also MariaDB).
    """
    check_table(table)
    names = {"table": table, "meta": meta_table(table)}
    todo = pending(layout)
    statements = [sql.format(**names) for step in todo for sql in step.statements[kind]]
    if todo:
        values = {"min_writer": MIN_WRITER, "format": todo[-1].number}
        changes = [
            sql for name in values for sql in _set_value(names["meta"], name, str(values[name]))
        ]
        # The other two run all of this in one transaction.
        statements += ["START TRANSACTION", *changes, "COMMIT"] if kind == "mysql" else changes
    return statements


def _set_value(meta: str, name: str, value: str) -> tuple[str, str]:
    """Return two statements that set one row, in a form that every database understands."""
    return (
        f"DELETE FROM {meta} WHERE name = '{name}'",  # noqa: S608 - fixed names, a checked table
        f"INSERT INTO {meta} (name, value) VALUES ('{name}', '{value}')",  # noqa: S608 - as above
    )


def create_script(kind: str, table: str) -> str:
    """Return the SQL that makes the tables, for a person to run by hand."""
    return ";\n\n".join(upgrade_statements(kind, table, ABSENT)) + ";\n"


def read_layout(query: Callable[[str], Sequence[Any]], table: str) -> Layout:
    """Return the layout of `table`, asking with `query`, which runs SQL and returns the rows.

    Raises whatever `query` raises where the meta table does not exist.
    """
    rows = query(f"SELECT name, value FROM {meta_table(table)}")  # noqa: S608 - a checked name
    return layout_of({str(name): str(value) for name, value in rows})
