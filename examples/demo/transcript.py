"""What the demo prints: a transcript for people, in colour where the terminal has any."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

_console = Console(highlight=False, soft_wrap=True)
_COLOURS = {"Ada": "cyan", "Bo": "magenta", "server": "green", "check": "yellow"}


def heading(text: str) -> None:
    """Begin a part of the transcript."""
    _console.print()
    _console.rule(f"[bold]{escape(text)}[/bold]", align="left")


def says(who: str, text: str) -> None:
    """Print what somebody does or is told."""
    colour = _COLOURS.get(who, "white")
    _console.print(f"[{colour}]{who:>7}[/{colour}]  {escape(text)}")


def told(text: str) -> None:
    """Print the answer to the line above."""
    _console.print(f"         [dim]{escape(text)}[/dim]")


def plain(text: str) -> None:
    """Print text to be copied, exactly as it is."""
    _console.print(escape(text))


def verdict(text: str, *, good: bool) -> None:
    """Print the result."""
    _console.print()
    _console.print(f"[bold {'green' if good else 'red'}]{escape(text)}[/]")
