"""`wenchang check`: the conformance suite against one storage URL."""

from __future__ import annotations

import sys

import click

__all__ = ["check"]


@click.command(
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def check(arguments: tuple[str, ...]) -> int:
    """Prove that the storage behind a URL keeps the contract."""
    try:
        from wenchang_conformance.run import main
    except ModuleNotFoundError as error:
        msg = (
            "the check needs the extra 'testing'; install it with: "
            f'{sys.executable} -m pip install "wenchang-core[testing]"'
        )
        raise click.ClickException(msg) from error
    return main(list(arguments))
