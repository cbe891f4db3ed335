"""Starts the real server as a subprocess, the way a user would."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mcp.client.stdio import StdioServerParameters

_URL = re.compile(r"http://\S+/mcp")

# Small limits, so that a few dozen notes are enough to meet them.
CONFIGURATION = """\
[scopes]
user = "{user}:owner"
team = "{team}:member"

[limits]
index_max_bytes = 6000
max_file_bytes = 4096
list_page_size = 5
scope_priority = ["user", "team"]

[files]
history = 10

[server]
source = "demo"
"""


class ServerDidNotStartError(Exception):
    """The server ended before it listened; its own words are in the text."""


def command(storage: str, config: Path) -> list[str]:
    """Return the arguments, after the interpreter, that serve `storage`."""
    return [
        *("-m", "wenchang", "serve", "--tools", "both"),
        *("--storage", storage, "--config", str(config)),
    ]


def stdio_server(storage: str, config: Path) -> StdioServerParameters:
    """Describe a server of its own for one client."""
    return StdioServerParameters(command=sys.executable, args=command(storage, config))


@contextmanager
def http_server(storage: str, config: Path) -> Iterator[str]:
    """Run a server on a free loopback port; yield its URL."""
    process = subprocess.Popen(
        [sys.executable, *command(storage, config), "--http", "127.0.0.1:0"],
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    try:
        yield _wait_for_url(process)
    finally:
        process.terminate()
        try:
            process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def _wait_for_url(process: subprocess.Popen[str]) -> str:
    """Read the server's words until it says where it listens; its end of file ends the wait."""
    words = []
    for line in process.stderr or ():
        words.append(line)
        if match := _URL.search(line):
            return match[0]
    msg = "".join(words).strip() or "the server said nothing"
    raise ServerDidNotStartError(msg)
