"""`wenchang sql init`."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from wenchang_sql.cli import sql


def run(*arguments: str) -> Any:
    return CliRunner().invoke(sql, ["init", *arguments])


def test_init_makes_the_tables_for_a_handle_that_may_not(place: Any):
    if place.kind == "sqlite":
        pytest.importorskip("sqlite3")
    url = f"{place.url}?table={place.table}"
    done = run(f"{url}&create_schema=false")
    assert done.exit_code == 0, done.output
    assert done.output == "The tables are ready.\n"
    assert place.open(create_schema=False).put("a", b"1", {})
    assert run(url).exit_code == 0


def test_print_shows_the_sql_and_touches_nothing(tmp_path: Any):
    path = tmp_path / "x.db"
    done = run(f"sqlite:///{path}?table=mine", "--print")
    assert done.exit_code == 0
    assert "CREATE TABLE IF NOT EXISTS mine (" in done.output
    assert "mine_meta" in done.output
    assert not path.exists()
    assert "BYTEA" in run("postgresql://nowhere/db", "--print").output.upper()
    assert "LONGBLOB" in run("mariadb://nowhere/db", "--print").output


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("s3://bucket", "must be one of sqlite"),
        ("sqlite://", "sqlite:///relative/file.db"),
        ("postgresql://user:secret@host", "host:port/database"),
        ("sqlite:////tmp/x.db?table=No", "option 'table'"),
        ("no url", "not a URL"),
    ],
)
def test_a_wrong_url_says_what_is_right_and_no_secret(url: str, text: str):
    done = run(url)
    assert done.exit_code != 0
    assert text in done.output
    assert "secret" not in done.output


def test_the_url_may_come_from_the_environment(tmp_path: Any):
    done = CliRunner().invoke(
        sql, ["init"], env={"WENCHANG_STORAGE": f"sqlite:///{tmp_path / 'y.db'}"}
    )
    assert done.exit_code == 0
    assert (tmp_path / "y.db").exists()
