"""`wenchang sql`: the tables, for those who do not let the first call make them."""

from __future__ import annotations

from dataclasses import replace

import click

from wenchang.errors import WenchangError
from wenchang.storage import StorageConfigurationError, StorageError
from wenchang.storage.locations import StorageLocation
from wenchang_sql.options import DEFAULT_TABLE, check_table
from wenchang_sql.schema import create_script

__all__ = ["sql"]

_KINDS = {"sqlite": "sqlite", "postgresql": "postgresql", "mysql": "mysql", "mariadb": "mysql"}


@click.group()
def sql() -> None:
    """Look after the tables of a SQL storage."""


@sql.command()
@click.argument("url", envvar="WENCHANG_STORAGE")
@click.option(
    "--print", "show", is_flag=True, help="Print the SQL and touch nothing: for a person to run."
)
def init(url: str, *, show: bool) -> None:
    """Make or upgrade the tables of the storage at URL (or in WENCHANG_STORAGE).

    Needs the right to create tables, which the storage itself then does not. Says nothing of the
    objects and changes none. Repeating it is harmless.
    """
    try:
        location = StorageLocation.parse(url, source="the argument URL")
        if location.scheme not in _KINDS:
            _wrong_scheme()
        if show:
            table = location.options.get("table", DEFAULT_TABLE)
            check_table(str(table))
            click.echo(create_script(_KINDS[location.scheme], str(table)), nl=False)
            return
        from wenchang_sql.opening import open_location

        # What the storage must not do by itself is what this command is for.
        options = {name: item for name, item in location.options.items() if name != "create_schema"}
        with open_location(replace(location, options=options)) as storage:
            storage.prepare()
    except (StorageError, WenchangError) as error:
        raise click.ClickException(str(error)) from error
    click.echo("The tables are ready.")


def _wrong_scheme() -> None:
    msg = f"the URL's scheme must be one of {', '.join(_KINDS)}"
    raise StorageConfigurationError(msg)
