"""Does a page cost the same in a small table and in a large one?

    python benchmarks/sql_pages.py [URL …] [--rows N]

Fills one table with 1,000 and one with `--rows` (a million) objects in random order of their keys,
and times pages of 1,000 taken at random places, in turns. Also asks the database how it would find a
page, an object and a version in the large table. The limit is 1.3.
"""

from __future__ import annotations

import argparse
import os
import random
import secrets
import statistics
import tempfile
import time
from typing import Any

import sqlalchemy as sa

from wenchang.storage.locations import StorageLocation
from wenchang_sql.opening import engine_for
from wenchang_sql.schema import meta_table
from wenchang_sql.statements import Statements, object_table
from wenchang_sql.storage import SqlStorage

SMALL = 1000
PAGE = 1000
LIMIT = 1.3
BODY = b"A line of a note that says something worth keeping.\n" * 6
METADATA = '{"aliases":"deploys, release train","description":"What the team agreed on in May"}'


def key_of(number: int) -> bytes:
    return b"notes/team-%04d/%07d.md" % (number // PAGE, number)


def fill(url: str, count: int) -> tuple[SqlStorage, Any]:
    table = f"pages_{count}_{secrets.token_hex(4)}"
    engine, database, options = engine_for(StorageLocation.parse(url, options={"table": table}))
    storage = SqlStorage.from_engine_of_ours(engine, database, options)
    storage.prepare()
    numbers = list(range(count))
    random.Random(5).shuffle(numbers)
    began = time.perf_counter()
    insert = sa.insert(object_table(table, engine.dialect.name))
    with engine.connect() as connection:
        raw = connection.connection.dbapi_connection
        for start in range(0, count, 10_000):
            rows = [
                {
                    "namespace": b"",
                    "object_key": key_of(number),
                    "version": b"%032x" % number,
                    "metadata": METADATA,
                    "write_id": "a" * 20,
                    "lineage": "",
                    "body": BODY,
                }
                for number in numbers[start : start + 10_000]
            ]
            if engine.dialect.name != "postgresql":
                raw.execute("BEGIN") if engine.dialect.name == "sqlite" else raw.begin()
            connection.execute(insert, rows)
            connection.commit()
        if engine.dialect.name == "postgresql":
            raw.autocommit = True
            connection.exec_driver_sql(f"VACUUM ANALYZE {table}")
        elif engine.dialect.name == "mysql":
            connection.exec_driver_sql(f"ANALYZE TABLE {table}")
        connection.commit()
    print(f"  {count:,} rows written in {time.perf_counter() - began:.0f} s")
    return storage, (engine, table)


def plans(engine: sa.Engine, table: str) -> None:
    statements = Statements.build(table, engine.dialect)
    place = {"ns": b"", "k": key_of(5)}
    change = {
        "ver": b"v",
        "expected": "v",
        "replaced": ":v;",
        "new_version": b"w",
        "new_metadata": "{}",
        "new_long": None,
        "new_id": "a" * 20,
        "new_body": b"",
    }
    asked = {
        "page": {"ns": b"", "low": key_of(0), "high": b"notes0", "rows": PAGE},
        "get": place,
        "replace": {**place, **change},
        "delete": {**place, "ver": b"v"},
    }
    word = "EXPLAIN QUERY PLAN" if engine.dialect.name == "sqlite" else "EXPLAIN"
    for name, parameters in asked.items():
        statement = getattr(statements, name)
        bound: Any = {**statement.constants, **parameters}
        if statement.positions is not None:
            bound = tuple(bound[one] for one in statement.positions)
        with engine.connect() as connection:
            rows = connection.exec_driver_sql(f"{word} {statement.sql}", bound).all()
        for row in rows:
            print(f"  {name:8} {' '.join(str(cell) for cell in row if cell is not None)}")


def compare(url: str, rows: int, rounds: int) -> bool:
    print(f"\n{url.partition(':')[0]}")
    small, small_place = fill(url, SMALL)
    large, large_place = fill(url, rows)
    plans(*large_place)
    choose = random.Random(6)
    starts = [choose.randrange(0, rows - PAGE) for _ in range(rounds)]
    times: dict[str, list[float]] = {"small": [], "large": []}
    for storage, first in ((small, 0), (large, starts[0])):
        storage.list_page("notes/", None, PAGE)
        storage.list_page("notes/", key_of(first).decode(), PAGE)
    for start in starts:
        for name, storage, after in (
            ("small", small, None),
            ("large", large, key_of(start).decode()),
        ):
            began = time.perf_counter()
            page = storage.list_page("notes/", after, PAGE)
            times[name].append(time.perf_counter() - began)
            assert len(page) == PAGE
    # Each large page is somewhere else, so the small table's advantage of a warm cache is included.
    ratio = statistics.median(
        big / little for big, little in zip(times["large"], times["small"], strict=True)
    )
    middle = {name: statistics.median(found) * 1e3 for name, found in times.items()}
    print(
        f"  page of {PAGE}: {middle['small']:.2f} ms of {SMALL:,} rows, {middle['large']:.2f} ms of "
        f"{rows:,}: {ratio:.2f} ({'within' if ratio <= LIMIT else 'ABOVE'} the limit of {LIMIT})"
    )
    for engine, table in (small_place, large_place):
        with engine.connect() as connection:
            for one in (table, meta_table(table)):
                connection.exec_driver_sql(f"DROP TABLE {one}")
                connection.commit()
        engine.dispose()
    return ratio <= LIMIT


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("urls", nargs="*")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=40)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        urls = arguments.urls or [
            f"sqlite:///{folder}/pages.db",
            *filter(
                None,
                (
                    os.environ.get("WENCHANG_TEST_POSTGRES_URL"),
                    os.environ.get("WENCHANG_TEST_MARIADB_URL"),
                ),
            ),
        ]
        results = [compare(url, arguments.rows, arguments.rounds) for url in urls]
    return 0 if all(results) else 1


if __name__ == "__main__":
    raise SystemExit(main())
