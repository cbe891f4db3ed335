"""`wenchang touch`: new versions for every object, after an older state was restored.

A restore brings versions back. An agent that holds one from before could then take the restored object
for the one that it knows. Written anew, each object has a version that nobody holds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import click

from wenchang.config import ConfigurationError, choose_storage, load_config
from wenchang.errors import BackendUnavailableError
from wenchang.storage import (
    ListedObject,
    PreconditionFailedError,
    Storage,
    StorageError,
    open_storage,
)
from wenchang.storage.keys import UNREADABLE_METADATA

__all__ = ["touch"]

_PAGE = 1_000


@click.command()
@click.argument("prefix")
@click.option("--storage", "storage_url", metavar="URL", help="Where the memory lies.")
@click.option(
    "--config",
    "config_path",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Read this configuration file.",
)
def touch(prefix: str, storage_url: str | None, config_path: Path | None) -> int:
    """Write every object whose key begins with PREFIX anew, as it is ("" means all).

    For use after a restore, before agents go on. What others write meanwhile is left as they wrote it.
    Repeating it is harmless. Ends with 1 if damaged objects had to be left as they are.
    """
    try:
        choice = choose_storage(storage_url, os.environ, load_config(config_path, os.environ))
        storage = open_storage(
            choice.url, options=choice.options, provider=choice.provider, source=choice.source
        )
        try:
            written, damaged = _touch(storage, prefix)
        finally:
            close = getattr(storage, "close", None)
            if close is not None:
                close()
    except (ConfigurationError, StorageError, BackendUnavailableError) as error:
        raise click.ClickException(" ".join(str(error).split())) from error
    click.echo(f"{written} objects have new versions.")
    if damaged:
        click.echo(f"{damaged} damaged objects were left as they are.", err=True)
    return 1 if damaged else 0


def _touch(storage: Storage, prefix: str) -> tuple[int, int]:
    """Rewrite what is listed; return how many objects were written and how many are damaged."""
    written = damaged = 0
    for listed in _listing(storage, prefix):
        found = storage.get(listed.key)
        if found is None:
            continue
        if UNREADABLE_METADATA in found.metadata:
            # Written back, the remains of its metadata would become part of the body for good.
            damaged += 1
            continue
        try:
            storage.put_if_version(listed.key, found.data, found.metadata, found.version)
        except PreconditionFailedError:
            # Somebody has just given it a new version, or deleted it.
            continue
        written += 1
    return written, damaged


def _listing(storage: Storage, prefix: str) -> Iterator[ListedObject]:
    """Yield every object under the prefix, in key order."""
    start: str | None = None
    while True:
        page = storage.list_page(prefix, start, _PAGE)
        yield from page
        if len(page) < _PAGE:
            return
        start = page[-1].key
