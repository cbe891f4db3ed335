"""Talking to the person in front of the terminal, and running programs for them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn


class DevError(Exception):
    """Something the person can act on; its text is printed as it is and the exit code is 1."""


def say(text: str = "") -> None:
    """Print one line at once, in order with what child processes print."""
    print(text, flush=True)


def heading(text: str) -> None:
    """Print a line that begins a step."""
    say(f"\n== {text}")


@contextmanager
def timed(text: str) -> Iterator[None]:
    """Announce a step that may take long and say how long it took once it is done."""
    say(f"-- {text} …")
    begin = time.monotonic()
    yield
    say(f"   done in {time.monotonic() - begin:.0f} s")


def clean_environ(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this process's environment without what would leak into a child of ours.

    Another environment's Python settings and the person's own wenchang configuration stay out;
    `extra` is laid on top.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__"}
        and not name.startswith("WENCHANG_")
    }
    return {**kept, **(extra or {})}


def run(
    command: Sequence[object],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> int:
    """Run `command`, each word as its text, with its output on this terminal; return its exit code."""
    sys.stdout.flush()
    return subprocess.run([str(part) for part in command], cwd=cwd, env=env, check=False).returncode


def run_quietly(
    command: Sequence[object],
    *,
    what: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 1200,
) -> str:
    """Run `command`, keep its output to itself and return it.

    Raises:
        DevError: the program is missing, failed or took longer than `timeout` seconds. The text
            ends with the last lines of its output.
    """
    words = [str(part) for part in command]
    try:
        done = subprocess.run(
            words,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=timeout,
            check=False,
        )
    except OSError as error:
        raise DevError(f"{what}: {words[0]} cannot be run: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise DevError(f"{what}: {words[0]} did not end within {timeout:.0f} s") from error
    if done.returncode != 0:
        tail = "\n".join(f"     {line}" for line in done.stdout.strip().splitlines()[-25:])
        raise DevError(f"{what}: exit code {done.returncode} of {' '.join(words)}\n{tail}")
    return done.stdout


def fail(text: str) -> NoReturn:
    """End with `text` on standard error and exit code 1."""
    sys.stdout.flush()
    raise SystemExit(text)
