"""Pages are ranges of an index: byte order on every database, no scan, no body read."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from wenchang_sql.opening import engine_for
from wenchang_sql.statements import Statements, object_table

HOSTILE = [
    *("A", "Z", "a", "b", "z", "_", "a_z", "ab", "a-b", "a.b", "a/b", "a b", "a ", " a", "a+b"),
    *("A/x", "a/x", "cov-9/alpha", "cov-9-b", "cov-:", "cov-9", "100%", "1%2F", "a*b", "a[b"),
    *(
        "é",
        "e\u0301",
        "ß",
        "ss",
        "ﬁ",
        "fi",
        "文",
        "\uffee",
        "😀",
        "😁",
        "e/🎩",
        "e/💥",
        "a'b",
        'a"b',
    ),
]


def walk(storage: Any, prefix: str, limit: int) -> list[str]:
    keys: list[str] = []
    while page := storage.list_page(prefix, keys[-1] if keys else None, limit):
        keys += [entry.key for entry in page]
        if len(page) < limit:
            break
    return keys


def test_list_order_hostile_keys_come_in_byte_order_one_by_one(storage: Any):
    for number, key in enumerate(random.Random(7).sample(HOSTILE, len(HOSTILE))):
        storage.put_if_version(key, str(number).encode(), {"n": str(number)}, None)
    wanted = sorted(HOSTILE, key=str.encode)
    for limit in (1, 7, 1000):
        assert walk(storage, "", limit) == wanted
    for prefix in ("a", "A", "cov-9", "a/", "e/", "%", "é", "😀", "a_", "1%", "zz"):
        assert walk(storage, prefix, 2) == [key for key in wanted if key.startswith(prefix)]


def test_key_exact_keys_that_a_collation_takes_for_equal_are_two_objects(storage: Any):
    first = storage.put_if_version("e/🎩", b"hat", {}, None)
    second = storage.put_if_version("e/💥", b"bang", {}, None)
    storage.put_if_version("e/🎩", b"top hat", {}, first)
    assert storage.get("e/💥").version == second
    assert storage.get("e/💥").data == b"bang"


def test_list_limit_a_page_of_any_length_is_read_in_pieces(
    storage: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("wenchang_sql.storage._PIECE", 3)
    for number in range(10):
        storage.put(f"k/{number}", b"", {})
    wanted = [f"k/{number}" for number in range(10)]
    assert [entry.key for entry in storage.list_page("k/", None, 10**9)] == wanted
    assert [entry.key for entry in storage.list_page("k/", "k/2", 4)] == wanted[3:7]
    assert [key for key, _ in storage.list_versions("k/", None, 7)] == wanted[:7]


def test_obj_foreign_rows_with_other_keys_do_not_end_a_page(place: Any):
    storage = place.open()
    for key in ("a", "b", "c"):
        storage.put(key, b"", {})
    for key in ("a/", "a//b", "b/../c"):
        place.backdoor().put_raw(key, b"x")
    assert [entry.key for entry in storage.list_page("", None, 3)] == ["a", "b", "c"]


def test_namespaces_of_one_table_know_nothing_of_each_other(place: Any):
    one, other = place.open(namespace="one"), place.open(namespace="one/more")
    version = one.put("a", b"1", {})
    assert other.get("a") is None
    assert other.list_page("", None, 10) == []
    other.put_if_version("a", b"2", {}, None)
    assert one.get("a").version == version
    assert [entry.key for entry in one.list_page("", None, 10)] == ["a"]


PLACE = {"ns": b"n", "k": b"k/000100"}
SPAN = {"ns": b"n", "low": b"k/0001", "high": b"k/0002", "rows": 50}
CHANGE = {
    **PLACE,
    "ver": b"v",
    "expected": "v",
    "replaced": ":v;",
    "new_version": b"w",
    "new_metadata": "{}",
    "new_long": None,
    "new_id": "a" * 20,
    "new_body": b"y",
}


def test_list_meta_long_metadata_is_listed_beside_short(storage: Any):
    """The index of a server holds short metadata only; the rest is read apart."""
    entries = {
        "k/1": {"d": "short"},
        "k/2": {"d": "文" * 1600},
        "k/3": {},
        "k/4": {"d": "x" * 4990},
        "k" * 900: {"d": "y" * 1480},
    }
    for key, metadata in entries.items():
        storage.put(key, b"", metadata)
    listed = {entry.key: dict(entry.metadata) for entry in storage.list_page("", None, 10)}
    assert listed == entries
    for key, metadata in entries.items():
        assert storage.get(key).metadata == metadata
    # From long to short and back.
    storage.put("k/2", b"", {"d": "now short"})
    storage.put_if_version("k/1", b"", {"d": "z" * 3000}, storage.get("k/1").version)
    page = {entry.key: entry.metadata["d"] for entry in storage.list_page("k/", None, 2)}
    assert page == {"k/1": "z" * 3000, "k/2": "now short"}


class TestPlans:
    """What the database says that it will do, at a size where a scan would pay if it could."""

    @pytest.fixture
    def explain(
        self, place: Any, size: Callable[[str], int]
    ) -> Iterator[Callable[[str, dict[str, Any]], str]]:
        storage = place.open(namespace="n")
        storage.prepare()
        engine, _, _ = engine_for(place.location())
        table = object_table(place.table, engine.dialect.name)
        rows = [
            {
                "namespace": b"n",
                "object_key": b"k/%06d" % number,
                "version": b"v",
                "metadata": "{}",
                "body": b"x" * 300,
            }
            for number in range(size("explained_rows"))
        ]
        with engine.connect() as connection:
            for start in range(0, len(rows), 4000):
                connection.execute(sa.insert(table), rows[start : start + 4000])
            connection.commit()
            if place.kind == "mariadb":
                connection.exec_driver_sql(f"ANALYZE TABLE {place.table}")
            elif place.kind == "postgresql":
                connection.connection.dbapi_connection.autocommit = True
                connection.exec_driver_sql(f"VACUUM ANALYZE {place.table}")
        statements = Statements.build(place.table, engine.dialect)
        word = "EXPLAIN QUERY PLAN" if place.kind == "sqlite" else "EXPLAIN"

        def ask(name: str, parameters: dict[str, Any]) -> str:
            statement = getattr(statements, name)
            bound: Any = {**statement.constants, **parameters}
            if statement.positions is not None:
                bound = tuple(bound[one] for one in statement.positions)
            with engine.connect() as connection:
                rows = connection.exec_driver_sql(f"{word} {statement.sql}", bound).all()
            return "\n".join(str(tuple(row)) for row in rows)

        yield ask
        engine.dispose()

    @pytest.mark.parametrize(
        ("name", "parameters"),
        [
            ("get", PLACE),
            ("read_back", PLACE),
            ("page", SPAN),
            ("page_versions", SPAN),
            ("replace", CHANGE),
            ("delete", {**PLACE, "ver": b"v"}),
        ],
    )
    def test_each_statement_finds_its_rows_by_an_index(
        self, explain: Any, place: Any, name: str, parameters: dict[str, Any]
    ):
        plan = explain(name, parameters)
        if place.kind == "sqlite":
            assert "SEARCH" in plan
            assert "USING PRIMARY KEY (namespace=? AND object_key" in plan
            assert "SCAN" not in plan
            assert "TEMP B-TREE" not in plan
        elif place.kind == "postgresql":
            only = "Index Only Scan" if name.startswith("page") else "Index Scan"
            assert f"{only} using {place.table}_pkey" in plan
            assert "Seq Scan" not in plan
            assert "Sort" not in plan
        else:
            paged = name.startswith("page")
            assert ("'listing'" if paged else "'PRIMARY'") in plan
            assert ("Using index" in plan) == paged
            assert "'ALL'" not in plan
            assert "filesort" not in plan
