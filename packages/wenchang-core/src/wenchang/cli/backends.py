"""`wenchang backends`: what storage can be used here, broken plug-ins included."""

from __future__ import annotations

import click

from wenchang.storage import list_backends

__all__ = ["backends"]


@click.command()
def backends() -> None:
    """List the storage backends installed here."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("scheme", "state", "from", "what it is"):
        table.add_column(heading, overflow="fold")
    for backend in list_backends():
        table.add_row(
            backend.name,
            backend.state,
            f"{backend.distribution} {backend.version}".strip(),
            backend.summary,
        )
    Console().print(table)
