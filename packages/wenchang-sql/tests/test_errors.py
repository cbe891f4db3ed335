"""Every error of SQLAlchemy and of the drivers has a meaning, and codes decide it."""

from __future__ import annotations

import sqlite3

import psycopg
import pymysql
import pytest
from sqlalchemy import exc

from wenchang.storage import StorageRejectedError
from wenchang.storage.outcomes import Ambiguous, Busy, NotSent, Refused, Rejected
from wenchang_sql.errors import after_sending, before_sending, driver_error
from wenchang_sql.hooks_faults import every_sdk_error


def of_sqlite(name: str) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("some text")
    error.sqlite_errorcode = getattr(sqlite3, name)
    error.sqlite_errorname = name
    return error


def of_mysql(number: int, text: str = "some text") -> pymysql.OperationalError:
    return pymysql.OperationalError(number, text)


def of_postgresql(state: str, text: str = "some text") -> psycopg.Error:
    return psycopg.errors.lookup(state)(text)


def test_every_class_of_the_sdks_is_judged_and_gives_nothing_away():
    seen = 0
    for error in every_sdk_error():
        after, before = after_sending(error), before_sending(error)
        assert isinstance(after, Ambiguous | Busy | Refused | Rejected)
        assert isinstance(before, NotSent | Busy | Rejected)
        for answer in (after, before):
            ours = getattr(answer, "error", None)
            if isinstance(answer, Rejected):
                assert isinstance(ours, StorageRejectedError)
                assert ours.__cause__ is driver_error(error)
                assert "some text" not in f"{ours} {ours!r}"
            assert "a secret" not in f"{ours} {ours!r}"
        seen += 1
    assert seen > 1000


@pytest.mark.parametrize(
    "error",
    [
        of_postgresql("40001"),
        of_postgresql("40P01"),
        of_postgresql("55P03"),
        of_postgresql("57014"),
        of_postgresql("53200"),
        of_postgresql("0A000", "cached plan must not change result type"),
        of_mysql(1205),
        of_mysql(1213),
        of_mysql(1020),
        of_sqlite("SQLITE_BUSY"),
        of_sqlite("SQLITE_BUSY_SNAPSHOT"),
        of_sqlite("SQLITE_LOCKED"),
    ],
)
def test_out_busy_a_busy_answer_is_repeated_and_never_a_conflict(error: Exception):
    wrapped = exc.OperationalError("SELECT 1", {}, error)
    assert isinstance(after_sending(wrapped), Busy)
    assert isinstance(before_sending(error), Busy)


@pytest.mark.parametrize(
    "error",
    [
        of_postgresql("57P01"),
        of_postgresql("08006"),
        of_postgresql("40003"),
        of_postgresql("XX000"),
        psycopg.OperationalError("server closed the connection unexpectedly"),
        of_mysql(2006),
        of_mysql(2013),
        of_mysql(1053),
        of_mysql(1105),
        of_sqlite("SQLITE_IOERR_FSYNC"),
        TimeoutError(),
        ValueError("a torn answer"),
    ],
)
def test_a_lost_answer_is_ambiguous_after_sending_and_nothing_before(error: Exception):
    assert isinstance(after_sending(error), Ambiguous)
    assert isinstance(before_sending(error), NotSent)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (
            psycopg.OperationalError('FATAL: password authentication failed for user "x"'),
            "credentials",
        ),
        (psycopg.OperationalError('FATAL: database "x" does not exist'), "missing_container"),
        (of_postgresql("42501"), "permission"),
        (of_postgresql("42P01"), "missing_container"),
        (of_postgresql("25006"), "locked"),
        (of_postgresql("53100"), "full"),
        (of_postgresql("22P02"), "invalid"),
        (of_postgresql("26000"), "unsupported"),
        (of_mysql(1045), "credentials"),
        (of_mysql(1049), "missing_container"),
        (of_mysql(1142), "permission"),
        (of_mysql(1290), "locked"),
        (of_mysql(1021), "full"),
        (of_mysql(1030, "Got error 28 from storage engine"), "full"),
        (of_sqlite("SQLITE_READONLY_DBMOVED"), "locked"),
        (of_sqlite("SQLITE_FULL"), "full"),
        (of_sqlite("SQLITE_NOTADB"), "invalid"),
        (of_sqlite("SQLITE_CANTOPEN"), "missing_container"),
    ],
)
def test_out_mapped_a_refusal_for_good_has_its_kind(error: Exception, kind: str):
    for answer in (after_sending(error), before_sending(error)):
        assert isinstance(answer, Rejected)
        assert isinstance(answer.error, StorageRejectedError)
        assert answer.error.kind == kind


def test_only_a_primary_key_that_exists_is_a_refusal():
    assert isinstance(after_sending(of_mysql(1062)), Refused)
    assert isinstance(after_sending(of_sqlite("SQLITE_CONSTRAINT_PRIMARYKEY")), Refused)
    assert isinstance(after_sending(of_sqlite("SQLITE_CONSTRAINT_NOTNULL")), Rejected)


def test_a_lost_prepared_statement_names_the_option_that_helps():
    answer = after_sending(of_postgresql("26000"))
    assert isinstance(answer, Rejected)
    assert "prepared_statements=false" in str(answer.error)


def test_an_exhausted_pool_is_nothing_sent():
    assert isinstance(before_sending(exc.TimeoutError("QueuePool limit")), NotSent)
