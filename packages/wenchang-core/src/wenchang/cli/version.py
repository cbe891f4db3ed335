"""`wenchang version`."""

from __future__ import annotations

import platform
from importlib import metadata

import click

from wenchang.storage import STORAGE_CONTRACT

__all__ = ["version"]

_OURS = (
    "wenchang",
    "wenchang-core",
    "wenchang-sql",
    "wenchang-s3",
    "wenchang-gcs",
    "wenchang-azure",
    "wenchang-conformance",
)


@click.command()
def version() -> None:
    """Show the versions installed here."""
    for name in _OURS:
        try:
            click.echo(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    click.echo(f"storage contract {STORAGE_CONTRACT}")
    click.echo(f"Python {platform.python_version()}")
