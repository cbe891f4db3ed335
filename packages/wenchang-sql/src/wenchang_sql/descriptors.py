"""The backends of this package, as entry points announce them. Imports neither SDK nor driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wenchang.storage.contract import STORAGE_CONTRACT
from wenchang.storage.descriptor import BackendDescriptor
from wenchang_sql.options import MysqlOptions, PostgresOptions, SqliteOptions

if TYPE_CHECKING:
    from wenchang.storage.contract import Storage
    from wenchang.storage.locations import StorageLocation

__all__ = ["MARIADB", "MYSQL", "POSTGRESQL", "SQLITE"]


def _open(location: StorageLocation) -> Storage:
    """Open a location of any of the four schemes."""
    from wenchang_sql.opening import open_location

    return open_location(location)


_HOOKS: Final = "wenchang_sql.hooks:hooks"
_UNSUPPORTED: Final = {"out-token": "the client makes the version; no answer carries one"}

SQLITE: Final = BackendDescriptor(
    name="sqlite",
    contract=STORAGE_CONTRACT,
    summary="a SQLite file that many processes of one machine share",
    options=SqliteOptions,
    open=_open,
    unsupported=_UNSUPPORTED,
    hooks=_HOOKS,
)
POSTGRESQL: Final = BackendDescriptor(
    name="postgresql",
    contract=STORAGE_CONTRACT,
    summary="a table in a PostgreSQL database",
    options=PostgresOptions,
    open=_open,
    unsupported=_UNSUPPORTED,
    hooks=_HOOKS,
)
MYSQL: Final = BackendDescriptor(
    name="mysql",
    contract=STORAGE_CONTRACT,
    summary="a table in a MySQL database",
    options=MysqlOptions,
    open=_open,
    unsupported=_UNSUPPORTED,
    hooks=_HOOKS,
)
MARIADB: Final = BackendDescriptor(
    name="mariadb",
    contract=STORAGE_CONTRACT,
    summary="a table in a MariaDB database",
    options=MysqlOptions,
    open=_open,
    unsupported=_UNSUPPORTED,
    hooks=_HOOKS,
)
