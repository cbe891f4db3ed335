"""What a kind of test server is, and running several of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from devlib.console import DevError, say


class Stoppable(Protocol):
    """Something that was started and can be ended."""

    def stop(self) -> None:
        """End it; whatever it left on disk goes too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A server that runs.

    Attributes:
        environ: what tests find in their environment to reach it.
        about: program and version, for the person who reads the output.
        parts: what to end, in this order.
    """

    environ: dict[str, str]
    about: str
    parts: tuple[Stoppable, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of server.

    Attributes:
        name: what it is called on the command line and in reports.
        summary: one line for `dev.py servers --list`.
        variables: the environment variables that it exports.
        start: makes sure that the program is there, starts it on a free loopback port and
            returns it. Its argument says whether packages of the system may be installed, which
            needs root. Raises DevError with the reason if it cannot be had.
        needs: how it comes here, one line.
    """

    name: str
    summary: str
    variables: tuple[str, ...]
    start: Callable[[bool], Started]
    needs: str


@dataclass(slots=True)
class Running:
    """The servers that run, and why others do not."""

    environ: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)


@contextmanager
def running(kinds: Sequence[Kind], *, install: bool) -> Iterator[Running]:
    """Start `kinds` one after another; end them all on leaving, also after an error."""
    result = Running()
    with ExitStack() as stack:
        for kind in kinds:
            try:
                started = kind.start(install)
            except DevError as error:
                result.missing[kind.name] = str(error)
                say(f"   {kind.name}: not available: {str(error).splitlines()[0]}")
                continue
            for part in reversed(started.parts):
                stack.callback(part.stop)
            result.environ.update(started.environ)
            say(f"   {kind.name}: {started.about}")
        yield result
