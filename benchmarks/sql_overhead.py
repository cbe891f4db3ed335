"""What the SQL backends cost over SQLAlchemy Core and over the bare driver, paired in one run.

    python benchmarks/sql_overhead.py [URL …] [--rounds N]

Without URLs: SQLite in a temporary folder, and the servers named by WENCHANG_TEST_POSTGRES_URL and
WENCHANG_TEST_MARIADB_URL. For each operation the three candidates take turns in short blocks, so that
a slow moment of the machine meets all of them; the median block counts. Core runs the same
statements on the same engine and takes the rows as they come; "Core, typed" has the column of the
metadata as `sa.JSON`, so that it delivers maps as wenchang does. The bare driver runs the SQL on one
connection of its own.
"""

from __future__ import annotations

import argparse
import os
import secrets
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from wenchang.storage.locations import StorageLocation
from wenchang_sql.opening import engine_for
from wenchang_sql.schema import meta_table
from wenchang_sql.statements import build_expressions
from wenchang_sql.storage import SqlStorage

PAGE = 1000
BODY = b"A line of a note that says something worth keeping.\n" * 12
METADATA = {
    "description": "What the team agreed on the third of May about deployments",
    "aliases": "deploys, release train",
    "last-updated": "2026-05-03T10:11:12+00:00",
}
LIMITS = {"sqlite": 1.5, "postgresql": 1.25}

Operation = Callable[[], Any]


class Candidates:
    """The same three operations in three ways, on one fresh table."""

    def __init__(self, url: str) -> None:
        self.table = f"bench_{secrets.token_hex(6)}"
        location = StorageLocation.parse(url, options={"table": self.table})
        self.engine, database, options = engine_for(location)
        self.database = database
        self.storage = SqlStorage.from_engine_of_ours(self.engine, database, options)
        for number in range(PAGE):
            self.storage.put(f"notes/team/{number:06d}.md", BODY, METADATA)
        self.key = "notes/team/000500.md"
        self.version = self.storage.put(self.key, BODY, METADATA)
        self.statements = self.storage._statements  # noqa: SLF001 - the statements are what is compared
        self.expressions = build_expressions(self.table, self.engine.dialect.name)
        self.place = {"ns": b"", "k": self.key.encode()}
        self.span = {"ns": b"", "low": b"notes/", "high": b"notes0", "rows": PAGE}
        self.proxied = self.engine.raw_connection()
        self.driver = self.proxied.driver_connection

    def ours(self) -> dict[str, Operation]:
        def put() -> None:
            self.version = self.storage.put_if_version(self.key, BODY, METADATA, self.version)

        return {
            "get": lambda: self.storage.get(self.key),
            "page": lambda: self.storage.list_page("notes/", None, PAGE),
            "conditional put": put,
        }

    def _change(self) -> dict[str, Any]:
        version = os.urandom(10).hex()
        parameters = {
            **self.place,
            "ver": self.version.encode(),
            "expected": self.version,
            "replaced": f":{self.version};",
            "new_version": version.encode(),
            "new_metadata": self.text,
            "new_long": None,
            "new_id": version,
            "new_body": BODY,
        }
        self.version = version
        return parameters

    text = '{"description":"What the team agreed on the third of May about deployments"}'

    def typed(self) -> dict[str, Operation]:
        """Core with the metadata decoded by its own type; only reading differs."""
        t = sa.table(
            self.table,
            *(sa.column(name, sa.LargeBinary) for name in ("namespace", "object_key", "version")),
            sa.column("metadata", sa.JSON),
            sa.column("body", sa.LargeBinary),
        )
        inside = (t.c.namespace == b"", t.c.object_key >= b"notes/", t.c.object_key < b"notes0")
        page = sa.select(t.c.object_key, t.c.metadata, t.c.version).where(*inside)
        page = page.order_by(t.c.object_key).limit(PAGE)
        key = sa.bindparam("k", type_=sa.LargeBinary)
        get = sa.select(t.c.body, t.c.metadata, t.c.version)
        get = get.where(t.c.namespace == b"", t.c.object_key == key)
        operations = self.core()
        operations["get"] = lambda: self._read(get, {"k": self.key.encode()})
        operations["page"] = lambda: self._read(page, {})
        return operations

    def _read(self, statement: Any, parameters: dict[str, Any]) -> Any:
        with self.engine.connect() as connection:
            return connection.execute(statement, parameters).all()

    def core(self) -> dict[str, Operation]:
        def get() -> Any:
            with self.engine.connect() as connection:
                return connection.execute(self.expressions["get"], self.place).one()

        def page() -> Any:
            with self.engine.connect() as connection:
                return connection.execute(self.expressions["page"], self.span).all()

        def put() -> None:
            with self.engine.connect() as connection:
                if self.database.serial_writes:
                    connection.connection.dbapi_connection.execute("BEGIN IMMEDIATE")
                done = connection.execute(self.expressions["replace"], self._change())
                assert done.rowcount == 1
                connection.commit()

        return {"get": get, "page": page, "conditional put": put}

    def bare(self) -> dict[str, Operation]:
        def run(name: str, parameters: dict[str, Any]) -> Any:
            return getattr(self.statements, name).run(self.driver, parameters)

        def put() -> None:
            if self.database.serial_writes:
                self.driver.execute("BEGIN IMMEDIATE")
            assert run("replace", self._change()).rowcount == 1
            self.driver.commit()

        def read(name: str, parameters: dict[str, Any]) -> Any:
            rows = run(name, parameters).fetchall()
            self.driver.rollback()
            return rows

        return {
            "get": lambda: read("get", self.place),
            "page": lambda: read("page", self.span),
            "conditional put": put,
        }

    def close(self) -> None:
        self.proxied.close()
        self.storage.close()
        with self.engine.connect() as connection:
            for table in (self.table, meta_table(self.table)):
                connection.exec_driver_sql(f"DROP TABLE {table}")
                connection.commit()
        self.engine.dispose()


def block(operation: Operation, calls: int) -> float:
    """Return the microseconds of one call, over a block of calls."""
    began = time.perf_counter()
    for _ in range(calls):
        operation()
    return (time.perf_counter() - began) / calls * 1e6


def compare(url: str, rounds: int) -> bool:
    candidates = Candidates(url)
    kind = url.partition(":")[0]
    limit = LIMITS.get(kind)
    print(f"\n{kind}: microseconds a call, median of {rounds} blocks")
    ways = {
        "wenchang": candidates.ours(),
        "Core": candidates.core(),
        "Core, typed": candidates.typed(),
        "driver": candidates.bare(),
    }
    print(" " * 16 + "".join(f"{name:>13}" for name in ways) + "   wenchang over each")
    good = True
    for operation, calls in (("get", 50), ("page", 3), ("conditional put", 10)):
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, operations in ways.items():
                times[name].append(block(operations[operation], calls))
        medians = "".join(f"{statistics.median(times[name]):13.0f}" for name in ways)
        ratios = [
            statistics.median(
                ours / other for ours, other in zip(times["wenchang"], times[name], strict=True)
            )
            for name in ways
            if name != "wenchang"
        ]
        verdict = ""
        if limit is not None:
            above = ratios[0] > limit
            verdict = f"  {'ABOVE the' if above else 'within the'} limit of {limit} over Core"
            good = good and not above
        print(f"{operation:16}{medians}   {' '.join(f'{one:.2f}' for one in ratios)}{verdict}")
    candidates.close()
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("urls", nargs="*")
    parser.add_argument("--rounds", type=int, default=40)
    arguments = parser.parse_args()
    print(f"SQLAlchemy {sa.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        urls = arguments.urls or [
            f"sqlite:///{folder}/bench.db",
            *filter(
                None,
                (
                    os.environ.get("WENCHANG_TEST_POSTGRES_URL"),
                    os.environ.get("WENCHANG_TEST_MARIADB_URL"),
                ),
            ),
        ]
        results = [compare(url, arguments.rounds) for url in urls]
    return 0 if all(results) else 1


if __name__ == "__main__":
    raise SystemExit(main())
