"""`SqlStorage`: a table in SQLite, PostgreSQL, MariaDB or MySQL. It comes with the extra `sql`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wenchang.storage._aliases import lazy_alias

if TYPE_CHECKING:
    from wenchang_sql import SqlStorage

__all__ = ["SqlStorage"]

__getattr__ = lazy_alias(__name__, "wenchang_sql", "sql", __all__)
