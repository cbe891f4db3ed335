"""Pools, engines of the caller's, discovery, and what a handle says when it cannot work."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from wenchang.errors import BackendUnavailableError
from wenchang.storage import (
    PreconditionFailedError,
    Storage,
    StorageConfigurationError,
    StorageRejectedError,
    VersionLister,
)
from wenchang.storage.locations import StorageLocation
from wenchang_conformance.faults import PostgreSQL, StreamProxy
from wenchang_sql import SqlStorage, create_engine
from wenchang_sql.databases import fetch
from wenchang_sql.opening import engine_for, open_location


@pytest.fixture(params=["postgresql", "mariadb"])
def server(request: pytest.FixtureRequest, place_of: Callable[[str], Any]) -> Any:
    return place_of(request.param)


class TestPool:
    def test_threads_more_threads_than_connections_only_wait(
        self, place: Any, race: Callable[..., list[Any]]
    ):
        storage = place.open(concurrency=2)

        def work(number: int) -> str:
            version = storage.put(f"k/{number}", b"x", {})
            assert storage.get(f"k/{number}").version == version
            with pytest.raises(PreconditionFailedError):
                storage.put_if_version(f"k/{number}", b"y", {}, "stale")
            assert storage.list_page("k/", None, 3)
            return version

        results = race([lambda n=n: work(n) for n in range(50)])
        assert [result for result in results if not isinstance(result, str)] == []
        pool = storage._calls._engine.pool
        assert pool.checkedout() == 0
        assert pool.size() == 2
        assert storage._calls._shared.permits.qsize() == 2

    def test_a_pool_that_stays_busy_is_unavailable_and_not_applied(self, place: Any):
        storage = place.open(concurrency=1, deadline=3, attempt_timeout=1)
        storage.prepare()
        began, ended = threading.Event(), threading.Event()

        def hold(_raw: Any) -> None:
            began.set()
            ended.wait(30)

        holder = threading.Thread(target=lambda: storage._calls.read(30, hold))
        holder.start()
        assert began.wait(10)
        try:
            with pytest.raises(BackendUnavailableError) as caught:
                storage.put("a", b"1", {})
        finally:
            ended.set()
            holder.join(10)
        assert (caught.value.reason, caught.value.outcome) == ("unavailable", "not_applied")
        assert "concurrency" in str(caught.value.__cause__)

    def test_an_error_inside_a_call_leaves_no_connection_behind(self, place: Any):
        storage = place.open(concurrency=1)
        storage.prepare()

        def fail(_raw: Any) -> None:
            raise KeyboardInterrupt

        for _ in range(5):
            with pytest.raises(KeyboardInterrupt):
                storage._calls.read(20, fail)
        storage.put("a", b"1", {})

    def test_a_closed_handle_connects_anew(self, place: Any):
        storage = place.open()
        version = storage.put("a", b"1", {})
        storage.close()
        assert storage.get("a").version == version


class TestEngines:
    """An engine that someone else made, with its own pool and defaults."""

    @pytest.fixture
    def engine(self, place: Any):
        urls = {
            "sqlite": place.url,
            "postgresql": place.url.replace("postgresql://", "postgresql+psycopg://"),
            "mariadb": place.url.replace("mariadb://", "mariadb+pymysql://"),
        }
        engine = sa.create_engine(urls[place.kind])
        yield engine
        engine.dispose()

    def test_it_serves_the_contract_and_stays_the_callers(self, place: Any, engine: sa.Engine):
        storage = SqlStorage(engine, table=place.table, namespace="n")
        version = storage.put_if_version("a", b"1", {"k": "v"}, None)
        with pytest.raises(PreconditionFailedError):
            storage.put_if_version("a", b"2", {}, None)
        second = storage.put_if_version("a", b"2", {}, version)
        assert place.open(namespace="n").get("a").version == second
        with pytest.raises(PreconditionFailedError):
            storage.delete_if_version("a", version)
        storage.put("b", b"", {})
        storage.delete_if_version("a", second)
        assert [entry.key for entry in storage.list_page("", None, 5)] == ["b"]
        storage.close()
        with engine.connect() as connection:
            assert connection.execute(sa.select(sa.literal(1))).scalar_one() == 1

    def test_its_isolation_is_what_it_was_after_each_call(self, place: Any, engine: sa.Engine):
        if place.kind == "sqlite":
            question = None
        else:
            question = (
                "SHOW transaction_isolation"
                if place.kind == "postgresql"
                else "SELECT @@tx_isolation"
            )

        def level() -> Any:
            with engine.connect() as connection:
                if question is None:
                    return connection.connection.dbapi_connection.isolation_level
                return connection.exec_driver_sql(question).scalar()

        before = level()
        SqlStorage(engine, table=place.table).put("a", b"1", {})
        assert level() == before

    def test_race_cas_it_loses_no_increment(
        self, place: Any, engine: sa.Engine, race: Callable[..., list[Any]]
    ):
        storage = SqlStorage(engine, table=place.table)
        storage.put("c", b"0", {})

        def work() -> int:
            done = 0
            while done < 10:
                found = storage.get("c")
                try:
                    storage.put_if_version("c", b"%d" % (int(found.data) + 1), {}, found.version)
                    done += 1
                except PreconditionFailedError:
                    continue
            return done

        assert race([work] * 4) == [10] * 4
        assert storage.get("c").data == b"40"

    def test_an_engine_of_ours_and_a_handle_share_tables(self, place: Any):
        engine = create_engine(place.url)
        storage = SqlStorage(engine, table=place.table)
        version = storage.put("a", b"1", {})
        assert place.open().get("a").version == version
        assert "@" not in repr(engine)
        engine.dispose()

    def test_another_driver_is_refused_by_name(self):
        class Dialect:
            name, driver, supports_sane_rowcount = "oracle", "oracledb", True

        class Engine:
            dialect = Dialect()

        with pytest.raises(StorageConfigurationError, match="oracle with the driver oracledb"):
            SqlStorage(Engine())  # type: ignore[arg-type] # a stand-in

    def test_a_driver_without_row_counts_is_refused(self, tmp_path: Any):
        engine = sa.create_engine(f"sqlite:///{tmp_path}/x.db")
        engine.dialect.supports_sane_rowcount = False
        with pytest.raises(StorageConfigurationError, match="row counts"):
            SqlStorage(engine)


class TestSessions:
    """What reaches a server of the settings of a session."""

    def _statements(self, place: Any, **options: Any) -> list[str]:
        before, at, rest = place.location().address.rpartition("@")
        host, _, port = rest.partition("/")[0].partition(":")
        with StreamProxy((host, int(port)), dialect=PostgreSQL) as proxy:
            location = place.location(**options)
            behind = f"{before}{at}127.0.0.1:{proxy.port}/{rest.partition('/')[2]}"
            with open_location(replace(location, address=behind)) as storage:
                version = storage.put_if_version("a", b"1", {}, None)
                for _ in range(8):
                    version = storage.put_if_version("a", b"1", {}, version)
                    storage.get("a")
            return [entry.method for entry in proxy.log.entries()]

    def test_nothing_is_set_for_the_session_of_a_pooler(self, place_of: Callable[[str], Any]):
        verbs = self._statements(place_of("postgresql"), prepared_statements=False)
        assert "UPDATE" in verbs
        assert "SET" not in verbs

    def test_without_prepared_statements_none_are_prepared(self, place_of: Callable[[str], Any]):
        place = place_of("postgresql")
        for prepared in (True, False):
            storage = place.open(prepared_statements=prepared)
            version = storage.put("a", b"1", {})
            for _ in range(10):
                version = storage.put_if_version("a", b"1", {}, version)
            there = storage._calls.read(
                5, lambda raw: fetch(raw, "SELECT count(*) FROM pg_prepared_statements")
            )
            assert (there.value[0][0] > 0) is prepared

    def test_the_default_isolation_of_the_server_does_not_matter(self, server: Any):
        storage = server.open()
        question = (
            "SHOW transaction_isolation" if server.kind == "postgresql" else "SELECT @@tx_isolation"
        )
        done = storage._calls.write(5, lambda raw: fetch(raw, question))
        assert done[0][0].lower().replace("-", " ") == "read committed"


class TestRefusals:
    def _refused(self, place: Any, address: str, **options: Any) -> StorageRejectedError:
        location = replace(place.location(**options), address=address)
        with open_location(location) as storage, pytest.raises(StorageRejectedError) as caught:
            storage.get("a")
        error = caught.value
        assert error.__cause__ is not None
        for secret in ("wrong-password", "no_such", "127.0.0.1"):
            assert secret not in f"{error} {error!r} {storage!r}"
        return error

    def _parts(self, place: Any) -> tuple[str, str]:
        _, _, rest = place.location().address.rpartition("@")
        host, _, database = rest.partition("/")
        return host, database

    def test_out_mapped_a_wrong_password(self, server: Any):
        host, database = self._parts(server)
        # The test servers trust every client they know; MariaDB's root has an empty password.
        user = "no_such_user" if server.kind == "postgresql" else "root"
        error = self._refused(server, f"{user}:wrong-password@{host}/{database}")
        assert error.kind == "credentials"

    def test_out_mapped_a_missing_database(self, server: Any):
        user = server.location().address.rpartition("@")[0]
        host, _ = self._parts(server)
        error = self._refused(server, f"{user}@{host}/no_such_database")
        assert error.kind == "missing_container"

    def test_out_mapped_a_missing_privilege(self, server: Any):
        server.open().put("a", b"1", {})
        host, database = self._parts(server)
        user = f"u_{server.table[2:10]}"
        if server.kind == "postgresql":
            grant = f"GRANT SELECT ON {server.table}, {server.table}_meta TO {user}"
            make = (f"CREATE ROLE {user} LOGIN", grant)
            drop = (f"DROP OWNED BY {user}", f"DROP ROLE {user}")
        else:
            make = (
                f"CREATE USER {user}@'%'",
                f"GRANT SELECT ON {database}.{server.table} TO {user}@'%'",
                f"GRANT SELECT ON {database}.{server.table}_meta TO {user}@'%'",
            )
            drop = (f"DROP USER {user}@'%'",)
        _run(server, *make)
        try:
            location = replace(server.location(), address=f"{user}@{host}/{database}")
            with open_location(location) as storage:
                assert storage.get("a").data == b"1"
                for write in (
                    lambda: storage.put("a", b"2", {}),
                    lambda: storage.put_if_version("b", b"2", {}, None),
                    lambda: storage.delete_if_version("a", storage.get("a").version),
                ):
                    with pytest.raises(StorageRejectedError, match="INSERT") as caught:
                        write()
                    assert caught.value.kind == "permission"
            other = replace(server.location(table="not_there"), address=location.address)
            with open_location(other) as storage, pytest.raises(StorageRejectedError) as caught:
                storage.get("a")
            assert caught.value.kind == "permission"
        finally:
            _run(server, *drop)

    def test_out_mapped_a_full_disk_and_a_read_only_server(self, server: Any):
        storage = server.open()
        version = storage.put("a", b"1", {})
        codes = (("53100", 1021, "full"), ("25006", 1290, "locked"))
        for state, number, kind in codes:
            _run(server, *_refuse_writes(server, state, number))
            try:
                with pytest.raises(StorageRejectedError) as caught:
                    storage.put_if_version("a", b"2", {}, version)
                assert caught.value.kind == kind
            finally:
                _run(server, *_allow_writes(server))
        assert storage.put_if_version("a", b"2", {}, version)

    @pytest.mark.parametrize(
        "url",
        [
            "postgresql://",
            "postgresql://host",
            "postgresql://host:port/db",
            "mysql://user@host",
            "mariadb://user:p@ss:word@host/",
        ],
    )
    def test_init_fail_an_address_without_a_database_says_what_is_right(self, url: str):
        with pytest.raises(StorageConfigurationError, match="host:port/database") as caught:
            open_location(StorageLocation.parse(url))
        assert "ss:word" not in str(caught.value)

    @pytest.mark.parametrize(
        ("option", "value"),
        [
            ("namespace", "a//b"),
            ("namespace", "x" * 125),
            ("table", "Objects"),
            ("table", "a; DROP TABLE b"),
            ("concurrency", 0),
            ("deadline", 0),
            ("attempt_timeout", -1),
            ("sslmode", "never"),
            ("wal", False),
        ],
    )
    def test_init_fail_a_wrong_option_is_named(self, option: str, value: Any):
        location = StorageLocation.parse("postgresql://h/d", options={option: value})
        with pytest.raises(StorageConfigurationError, match=f"'{option}'"):
            open_location(location)


def _run(place: Any, *statements: str) -> None:
    engine, _, _ = engine_for(place.location())
    proxied = engine.raw_connection()
    try:
        for sql in statements:
            fetch(proxied.dbapi_connection, sql)
        proxied.dbapi_connection.commit()
    finally:
        proxied.close()
        engine.dispose()


def _refuse_writes(place: Any, state: str, number: int) -> tuple[str, ...]:
    """A trigger that answers each write with a code of the server's own."""
    if place.kind == "postgresql":
        return (
            f"""CREATE FUNCTION f_{place.table}() RETURNS trigger LANGUAGE plpgsql AS
            $$BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '{state}'; END$$""",
            f"""CREATE TRIGGER x BEFORE UPDATE ON {place.table}
            FOR EACH ROW EXECUTE FUNCTION f_{place.table}()""",
        )
    return (
        f"""CREATE TRIGGER x_{place.table} BEFORE UPDATE ON {place.table} FOR EACH ROW
        SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = {number}, MESSAGE_TEXT = 'refused'""",
    )


def _allow_writes(place: Any) -> tuple[str, ...]:
    if place.kind == "postgresql":
        return (f"DROP TRIGGER x ON {place.table}", f"DROP FUNCTION f_{place.table}()")
    return (f"DROP TRIGGER x_{place.table}",)


class TestPackage:
    def test_init_offline_importing_it_imports_no_sdk(self):
        code = (
            "import sys, wenchang_sql, wenchang_sql.descriptors\n"
            "sdks = ('sqlalchemy', 'psycopg', 'pymysql', 'wenchang_conformance')\n"
            "print([name for name in sys.modules if name.startswith(sdks)])"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert done.stdout == "[]\n"

    def test_opening_sqlite_loads_no_driver_of_a_server(self, tmp_path: Any):
        code = (
            "import sys\n"
            "from wenchang.storage import open_storage\n"
            f"open_storage('sqlite:///{tmp_path}/x.db').get('a')\n"
            "print([name for name in sys.modules if name in ('psycopg', 'pymysql')])"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert done.stdout == "[]\n"

    def test_the_public_names_are_these(self):
        import wenchang_sql

        assert wenchang_sql.__all__ == [
            "MysqlOptions",
            "PostgresOptions",
            "SqlOptions",
            "SqlStorage",
            "SqliteOptions",
            "__version__",
            "create_engine",
            "open_location",
        ]
        for name in wenchang_sql.__all__:
            assert getattr(wenchang_sql, name)
        with pytest.raises(AttributeError):
            _ = wenchang_sql.nothing

    def test_a_handle_keeps_the_protocols_and_hides_its_address(self, place: Any):
        storage = place.open()
        assert isinstance(storage, Storage)
        assert isinstance(storage, VersionLister)
        kind = {"mariadb": "mysql"}.get(place.kind, place.kind)
        assert repr(storage) == f"<SqlStorage on {kind}>"
