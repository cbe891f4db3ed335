"""Each fault on a real database connection: what the client is told, what the database holds."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pytest

from wenchang_conformance.faults import (
    Chaos,
    Fault,
    MySQL,
    PostgreSQL,
    Rule,
    StreamProxy,
    carrying,
    is_commit,
    statements,
)


@dataclass
class Database:
    """One kind of server: how to connect, and the errors a lost connection gives."""

    port: int
    dialect: type[PostgreSQL | MySQL]
    connect: Callable[[int, bool], Any]
    lost: tuple[type[Exception], ...]


def postgresql(url: str) -> Database:
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
    parts = urlsplit(url)

    def connect(port: int, autocommit: bool) -> Any:
        return psycopg.connect(
            host="127.0.0.1",
            port=port,
            user=parts.username,
            password=parts.password,
            dbname=parts.path.strip("/") or "postgres",
            autocommit=autocommit,
            connect_timeout=10,
        )

    return Database(parts.port or 5432, PostgreSQL, connect, (psycopg.OperationalError,))


def mariadb(url: str) -> Database:
    pymysql = pytest.importorskip("pymysql", reason="PyMySQL is not installed")
    parts = urlsplit(url)

    def connect(port: int, autocommit: bool) -> Any:
        return pymysql.connect(
            host="127.0.0.1",
            port=port,
            user=parts.username or "root",
            password=parts.password or "",
            database=parts.path.strip("/"),
            autocommit=autocommit,
            connect_timeout=10,
            read_timeout=10,
        )

    lost = (pymysql.err.OperationalError, pymysql.err.InterfaceError)
    return Database(parts.port or 3306, MySQL, connect, lost)


@pytest.fixture(
    params=[
        pytest.param(
            ("WENCHANG_TEST_POSTGRES_URL", postgresql),
            id="postgresql",
        ),
        pytest.param(
            ("WENCHANG_TEST_MARIADB_URL", mariadb),
            id="mariadb",
        ),
    ]
)
def database(request: pytest.FixtureRequest) -> Database:
    variable, make = request.param
    url = os.environ.get(variable)
    if not url:
        pytest.skip(f"needs a database server: {variable} is not set")
    return make(url)


@pytest.fixture
def proxy(database: Database) -> Iterator[StreamProxy]:
    with StreamProxy(("127.0.0.1", database.port), dialect=database.dialect) as proxy:
        yield proxy


@pytest.fixture
def table(database: Database) -> Iterator[str]:
    name = f"faults_{uuid.uuid4().hex}"
    connection = database.connect(database.port, True)
    connection.cursor().execute(f"CREATE TABLE {name} (k VARCHAR(50) PRIMARY KEY, v VARCHAR(50))")
    yield name
    connection.cursor().execute(f"DROP TABLE {name}")
    connection.close()


@pytest.fixture
def rows(database: Database, table: str) -> Callable[[], dict[str, str]]:
    """Read the table directly, past the proxy."""

    def read() -> dict[str, str]:
        connection = database.connect(database.port, True)
        cursor = connection.cursor()
        cursor.execute(f"SELECT k, v FROM {table}")
        found = dict(cursor.fetchall())
        connection.close()
        return found

    return read


@pytest.fixture
def connection(database: Database, proxy: StreamProxy) -> Iterator[Any]:
    connection = database.connect(proxy.port, False)
    yield connection
    connection.close() if getattr(connection, "open", True) else None


def insert(connection: Any, table: str, key: str = "k", value: str = "mine") -> None:
    connection.cursor().execute(f"INSERT INTO {table} VALUES (%s, %s)", (key, value))


class TestWithoutAScript:
    def test_a_session_passes_unharmed(self, connection, table, rows, proxy):
        insert(connection, table)
        connection.commit()
        cursor = connection.cursor()
        for _ in range(12):  # a driver prepares what it has seen often enough
            cursor.execute(f"SELECT v FROM {table} WHERE k = %s", ("k",))
            assert cursor.fetchall() in ([("mine",)], (("mine",),))
        cursor.execute(f"UPDATE {table} SET v = %s WHERE k = %s", ("other", "k"))
        assert cursor.rowcount == 1
        connection.rollback()
        assert rows() == {"k": "mine"}
        counts = proxy.log.counts
        assert (counts["INSERT"], counts["COMMIT"], counts["SELECT"] >= 12) == (1, 1, True)
        assert all(each.applied == 1 and each.path == "" for each in proxy.log.entries())

    def test_an_error_of_the_database_passes_and_the_connection_lives(self, connection, table):
        insert(connection, table)
        with pytest.raises(Exception, match=r"(?i)duplicate"):
            insert(connection, table)
        connection.rollback()
        insert(connection, table)
        connection.commit()

    def test_a_large_body_passes_both_ways(self, connection, table):
        cursor = connection.cursor()
        cursor.execute("SELECT %s", ("x" * 3_000_000,))
        assert len(cursor.fetchone()[0]) == 3_000_000


class TestCommit:
    @pytest.mark.parametrize("reset", [True, False])
    def test_with_its_answer_dropped_looks_lost_and_has_landed(
        self, connection, table, rows, proxy, database, reset
    ):
        proxy.script(Rule(match=is_commit, fault=Fault.drop_answer(reset=reset)))
        insert(connection, table)
        with pytest.raises(database.lost):
            connection.commit()
        assert rows() == {"k": "mine"}
        assert proxy.exhausted

    @pytest.mark.parametrize("reset", [True, False])
    def test_that_never_reached_the_server_looks_lost_and_is_rolled_back(
        self, connection, table, rows, proxy, database, reset
    ):
        proxy.script(Rule(match=is_commit, fault=Fault.drop_request(reset=reset)))
        insert(connection, table)
        with pytest.raises(database.lost):
            connection.commit()
        assert rows() == {}
        # The same key can be written: no lock of the dead transaction is left for long.
        fresh = database.connect(proxy.port, False)
        insert(fresh, table)
        fresh.commit()
        fresh.close()
        assert rows() == {"k": "mine"}

    def test_cut_behind_its_answer_succeeds_and_the_next_use_fails(
        self, connection, table, rows, proxy, database
    ):
        proxy.script(Rule(match=is_commit, fault=Fault.cut_after_answer()))
        insert(connection, table)
        connection.commit()
        assert rows() == {"k": "mine"}
        with pytest.raises(database.lost):
            connection.cursor().execute("SELECT 1")

    def test_delivered_late_lands_when_released(self, connection, table, rows, proxy, database):
        proxy.script(Rule(match=is_commit, fault=Fault.deliver_late()))
        insert(connection, table)
        with pytest.raises(database.lost):
            connection.commit()
        assert rows() == {}
        assert proxy.release() == 1
        assert rows() == {"k": "mine"}

    @pytest.mark.parametrize("applied", [False, True])
    def test_held_goes_on_when_released(self, connection, table, rows, proxy, applied):
        proxy.script(Rule(match=is_commit, fault=Fault.hold(applied=applied)))
        insert(connection, table)
        thread = threading.Thread(target=connection.commit)
        thread.start()
        proxy.wait_for_held(1)
        if applied:
            proxy.log.wait_for(lambda log: log[-1].applied == 1)
        assert rows() == ({"k": "mine"} if applied else {})
        assert proxy.release() == 1
        thread.join(10)
        assert rows() == {"k": "mine"}

    @pytest.mark.parametrize("applied", [False, True])
    def test_hanging_ends_when_the_proxy_cuts_it(
        self, connection, table, rows, proxy, database, applied
    ):
        proxy.script(Rule(match=is_commit, fault=Fault.hang(applied=applied)))
        insert(connection, table)
        met: list[BaseException] = []

        def commit() -> None:
            try:
                connection.commit()
            except database.lost as error:
                met.append(error)

        thread = threading.Thread(target=commit)
        thread.start()
        proxy.log.wait_for(
            lambda log: log[-1].fault.startswith("Hang") and log[-1].applied == int(applied)
        )
        proxy.cut_all()
        thread.join(10)
        assert len(met) == 1
        assert rows() == ({"k": "mine"} if applied else {})

    def test_an_interloper_acts_between_its_effect_and_its_lost_answer(
        self, connection, table, rows, proxy, database
    ):
        rival = database.connect(database.port, True)
        proxy.script(
            Rule(
                match=is_commit,
                fault=Fault.drop_answer(),
                interloper=lambda: rival.cursor().execute(f"UPDATE {table} SET v = 'rival'"),
            )
        )
        insert(connection, table)
        with pytest.raises(database.lost):
            connection.commit()
        rival.close()
        assert rows() == {"k": "rival"}


class TestAutocommit:
    def test_a_statement_with_its_answer_dropped_has_landed(self, database, table, rows, proxy):
        proxy.script(Rule(match=statements("INSERT", pattern=table), fault=Fault.drop_answer()))
        connection = database.connect(proxy.port, True)
        with pytest.raises(database.lost):
            insert(connection, table)
        assert rows() == {"k": "mine"}

    def test_a_dropped_statement_has_not_landed(self, database, table, rows, proxy):
        proxy.script(Rule(match=carrying(b"the-key"), fault=Fault.drop_request()))
        connection = database.connect(proxy.port, True)
        insert(connection, table, key="another")
        with pytest.raises(database.lost):
            insert(connection, table, key="the-key")
        assert rows() == {"another": "mine"}

    def test_a_prepared_statement_is_known_by_its_text(self, database, table, rows, proxy):
        proxy.script(Rule(match=statements("INSERT"), fault=Fault.drop_answer(), skip=10))
        connection = database.connect(proxy.port, True)
        for number in range(10):
            insert(connection, table, key=str(number))
        with pytest.raises(database.lost):
            insert(connection, table, key="last")
        assert len(rows()) == 11


class TestManyConnections:
    def test_under_chaos_each_commit_landed_exactly_when_the_log_says_so(
        self, database, table, rows, proxy
    ):
        proxy.script(
            Chaos(
                seed=5,
                match=is_commit,
                rates=((Fault.drop_answer(), 0.2), (Fault.drop_request(), 0.2)),
            )
        )
        told: dict[str, bool] = {}

        def work(number: int) -> None:
            for turn in range(10):
                key = f"{number}-{turn}"
                connection = database.connect(proxy.port, False)
                try:
                    insert(connection, table, key=key)
                    connection.commit()
                    told[key] = True
                except database.lost:
                    told[key] = False
                else:
                    connection.close()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        landed = rows()
        assert all(key in landed for key, success in told.items() if success)
        commits = [each for each in proxy.log.entries() if each.method == "COMMIT"]
        assert sum(each.applied for each in commits) == len(landed)
        assert {each.fault for each in commits} == {"PassThrough", "DropAnswer", "DropRequest"}


def test_a_fault_for_http_is_refused(proxy):
    with pytest.raises(TypeError, match="AnswerInFront"):
        proxy.script(Rule(fault=Fault.answer_in_front(503)))


def test_an_outage_refuses_connections_and_ends_those_there_are(connection, database, proxy):
    connection.cursor().execute("SELECT 1")
    with proxy.outage():
        with pytest.raises(database.lost):
            connection.cursor().execute("SELECT 1")
        with pytest.raises(database.lost):
            database.connect(proxy.port, False)
    database.connect(proxy.port, False).close()
