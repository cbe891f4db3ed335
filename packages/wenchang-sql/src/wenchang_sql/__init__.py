"""SQLite, PostgreSQL, MariaDB and MySQL behind the wenchang storage contract.

SQLAlchemy and the drivers are imported when `SqlStorage` or an opening function is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wenchang_sql.options import MysqlOptions, PostgresOptions, SqliteOptions, SqlOptions

if TYPE_CHECKING:
    from wenchang_sql.opening import create_engine, open_location
    from wenchang_sql.storage import SqlStorage

__all__ = [
    "MysqlOptions",
    "PostgresOptions",
    "SqlOptions",
    "SqlStorage",
    "SqliteOptions",
    "__version__",
    "create_engine",
    "open_location",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import what needs SQLAlchemy at its first use."""
    if name == "SqlStorage":
        from wenchang_sql.storage import SqlStorage

        return SqlStorage
    if name in {"create_engine", "open_location"}:
        from wenchang_sql import opening

        return getattr(opening, name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
