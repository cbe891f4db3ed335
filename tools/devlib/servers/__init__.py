"""The servers that tests talk to, each on a free loopback port in a temporary folder.

| kind | exported to the tests |
| --- | --- |
| postgres | WENCHANG_TEST_POSTGRES_URL |
| postgres-newer | WENCHANG_TEST_POSTGRES_NEWER_URL |
| mariadb | WENCHANG_TEST_MARIADB_URL |
| ministack | WENCHANG_TEST_MINISTACK_URL |
| moto | WENCHANG_TEST_MOTO_URL |
| fake-gcs | WENCHANG_TEST_GCS_URL |
| azurite | WENCHANG_TEST_AZURITE_URL |

A test that needs one reads its variable and skips with a reason where it is not set; `dev.py test`
reports that as *not run*, and `dev.py ci` fails.
"""

from __future__ import annotations

from devlib.console import DevError
from devlib.servers import objects, sql
from devlib.servers.kinds import Kind, Running, running

__all__ = ["ALL", "Kind", "Running", "chosen", "running"]

ALL: tuple[Kind, ...] = (
    sql.POSTGRES,
    sql.POSTGRES_NEWER,
    sql.MARIADB,
    objects.MINISTACK,
    objects.MOTO,
    objects.FAKE_GCS,
    objects.AZURITE,
)


def chosen(names: list[str]) -> tuple[Kind, ...]:
    """Return the kinds called `names`, all of them where there is no name.

    Raises:
        DevError: a name is unknown; the text lists the known ones.
    """
    known = {kind.name: kind for kind in ALL}
    for name in names:
        if name not in known:
            raise DevError(f"There is no server {name!r}. There are: {', '.join(known)}.")
    return tuple(known[name] for name in names) if names else ALL
