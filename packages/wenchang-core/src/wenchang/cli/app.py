"""The command group: what is shown by `wenchang --help`, and how commands are found.

Commands are imported when they are run, so that `wenchang --help` loads neither the MCP SDK nor any
storage SDK. Other distributions add commands through the entry-point group `wenchang.commands`.
"""

from __future__ import annotations

import importlib
from importlib import metadata
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["app", "run"]

_COMMANDS: Final = {
    "serve": ("wenchang.cli.serve:serve", "Serve memory to MCP clients."),
    "backends": ("wenchang.cli.backends:backends", "List the storage backends installed here."),
    "check": ("wenchang.cli.check:check", "Prove that a storage keeps the contract."),
    "touch": ("wenchang.cli.touch:touch", "Give every object a new version, after a restore."),
    "version": ("wenchang.cli.version:version", "Show the versions installed here."),
}
_GROUP: Final = "wenchang.commands"


class _LazyGroup(click.Group):
    """A group whose commands are imported only when one of them is run."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return [*_COMMANDS, *sorted(name for name in _plugins() if name not in _COMMANDS)]

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        cmd_name: str,
    ) -> click.Command | None:
        if cmd_name in _COMMANDS:
            module, _, attribute = _COMMANDS[cmd_name][0].partition(":")
            command: object = getattr(importlib.import_module(module), attribute)
        elif cmd_name in _plugins():
            command = _load(_plugins()[cmd_name])
        else:
            return None
        if not isinstance(command, click.Command):
            msg = f"the plug-in of the command '{cmd_name}' gives no command; reinstall it"
            raise click.ClickException(msg)
        return command

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        formatter: click.HelpFormatter,
    ) -> None:
        """List the commands without importing them."""
        rows = [(name, summary) for name, (_, summary) in _COMMANDS.items()]
        rows += [
            (name, f"From {entry.dist.name if entry.dist else 'a plug-in'}.")
            for name, entry in sorted(_plugins().items())
            if name not in _COMMANDS
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _plugins() -> dict[str, metadata.EntryPoint]:
    return {entry.name: entry for entry in metadata.entry_points(group=_GROUP)}


def _load(entry: metadata.EntryPoint) -> object:
    try:
        return entry.load()
    except Exception as error:
        owner = entry.dist.name if entry.dist else entry.value
        msg = f"the command '{entry.name}' of {owner} cannot be loaded: {type(error).__name__}"
        raise click.ClickException(msg) from error


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
def app() -> None:
    """Durable, shared, versioned memory files for AI agents."""


def run(arguments: Sequence[str]) -> int:
    """Run one command line; return 0, the command's own exit code, or 2 for a wrong call."""
    try:
        result = app.main(args=list(arguments), prog_name="wenchang", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return 2
    except click.ClickException as error:
        # One line on stderr and the same code for every wrong call, whatever part refused it.
        click.echo(f"wenchang: {error.format_message()}", err=True)
        return 2
    except click.Abort:
        return 130
    return result if isinstance(result, int) else 0
