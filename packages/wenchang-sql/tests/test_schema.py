"""The tables: made on first use where that is allowed, guarded by a version, upgraded in steps."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest

from wenchang.storage import StorageRejectedError
from wenchang_sql import schema
from wenchang_sql.databases import fetch
from wenchang_sql.opening import engine_for
from wenchang_sql.schema import Layout, Step


def run(place: Any, *statements: str) -> list[Any]:
    engine, _, _ = engine_for(place.location())
    proxied = engine.raw_connection()
    try:
        rows = [fetch(proxied.dbapi_connection, sql) for sql in statements]
        proxied.dbapi_connection.commit()
        return rows
    finally:
        proxied.close()
        engine.dispose()


def test_the_first_call_makes_the_tables_and_says_their_layout(place: Any):
    with place.open() as storage:
        assert storage.get("a") is None
    rows = run(place, f"SELECT name, value FROM {place.table}_meta ORDER BY name")[0]
    assert [tuple(row) for row in rows] == [
        ("format", str(schema.FORMAT)),
        ("min_writer", str(schema.MIN_WRITER)),
    ]


def test_without_the_right_to_make_them_missing_tables_are_a_clear_error(place: Any):
    place.open().prepare()
    run(place, f"DROP TABLE {place.table}_meta", f"DROP TABLE {place.table}")
    with pytest.raises(StorageRejectedError, match="wenchang sql init") as caught:
        place.open(create_schema=False).get("a")
    assert caught.value.kind == "missing_container"


def test_tables_made_before_serve_a_handle_that_may_not_make_them(place: Any):
    place.open().prepare()
    version = place.open(create_schema=False).put("a", b"x", {})
    assert place.open().get("a").version == version


def test_format_guard_a_newer_layout_is_read_but_not_written(place: Any):
    place.open().put("a", b"x", {})
    run(place, f"UPDATE {place.table}_meta SET value = '7'")
    storage = place.open()
    found = storage.get("a")
    for write in (
        lambda: storage.put("a", b"y", {}),
        lambda: storage.put_if_version("a", b"y", {}, found.version),
        lambda: storage.put_if_version("b", b"y", {}, None),
        lambda: storage.delete_if_version("a", found.version),
    ):
        with pytest.raises(StorageRejectedError, match=r"layout 7 .* upgrade wenchang-sql"):
            write()
    assert place.open().get("a") == found


def test_format_guard_a_running_writer_stops_when_the_tables_are_upgraded(
    place: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("wenchang_sql.calls._LAYOUT_SECONDS", 0.0)
    storage = place.open()
    storage.put("a", b"x", {})
    run(place, f"UPDATE {place.table}_meta SET value = '7'")
    with pytest.raises(StorageRejectedError, match="upgrade"):
        storage.put("a", b"y", {})


def test_unknown_names_about_the_tables_are_kept(place: Any):
    place.open().prepare()
    run(place, f"INSERT INTO {place.table}_meta (name, value) VALUES ('later', 'kept')")
    place.open().put("a", b"x", {})
    rows = run(place, f"SELECT value FROM {place.table}_meta WHERE name = 'later'")[0]
    assert [row[0] for row in rows] == ["kept"]


def test_interrupted_making_is_carried_on_by_the_next_handle(place: Any):
    place.open().prepare()
    run(place, f"DELETE FROM {place.table}_meta")
    assert place.open().put("a", b"x", {})


def test_an_older_layout_is_upgraded_in_numbered_steps(place: Any, monkeypatch: pytest.MonkeyPatch):
    version = place.open().put("a", b"x", {"k": "v"})
    with monkeypatch.context() as later:
        add = f"ALTER TABLE {{table}} ADD COLUMN {place.kind}_later INTEGER"
        steps = (
            *schema.STEPS,
            Step(2, MappingProxyType(dict.fromkeys(("sqlite", "postgresql", "mysql"), (add,)))),
        )
        later.setattr(schema, "FORMAT", 2)
        later.setattr(schema, "STEPS", steps)
        with pytest.raises(StorageRejectedError, match="upgrade them with `wenchang sql init`"):
            place.open(create_schema=False).get("a")
        assert place.open().get("a").version == version
        run(place, f"SELECT {place.kind}_later FROM {place.table}")
    # `min_writer` stayed: the release before may still write.
    assert place.open().put_if_version("a", b"y", {}, version)


def test_many_handles_may_make_the_tables_at_once(place: Any, race: Callable[..., list[Any]]):
    handles = [place.open() for _ in range(6)]
    results = race([lambda handle=handle: handle.put("a", b"x", {}) for handle in handles])
    assert len(set(results)) == 6


def test_a_meta_table_of_someone_elses_is_a_clear_error(place: Any):
    place.open().prepare()
    run(place, f"UPDATE {place.table}_meta SET value = 'blue'")
    with pytest.raises(StorageRejectedError, match="not one of ours"):
        place.open().get("a")


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "mysql"])
def test_the_printed_script_makes_both_tables_and_ends_with_the_version(kind: str):
    script = schema.create_script(kind, "app.memory")
    assert script.index("app.memory (") < script.index("app.memory_meta (")
    assert script.index("app.memory_meta (") < script.index("'format'")
    assert schema.pending(Layout(0, 0)) == list(schema.STEPS)


def test_the_printed_script_is_what_a_handle_needs(place: Any):
    kind = "mysql" if place.kind == "mariadb" else place.kind
    if kind == "sqlite":
        place.open().prepare()
        run(place, f"DROP TABLE {place.table}", f"DROP TABLE {place.table}_meta")
    run(place, *schema.create_script(kind, place.table).rstrip(";\n").split(";\n\n"))
    storage = place.open(create_schema=False)
    assert storage.get("a") is None
    assert storage.put("a", b"x", {})
