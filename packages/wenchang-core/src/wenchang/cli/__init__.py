"""The command `wenchang`. Its own dependencies come with the extra `cli`."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> int:
    """Run the command line; return the exit code."""
    try:
        import click  # noqa: F401 - only to say which extra is missing
    except ModuleNotFoundError:
        sys.stderr.write(
            "The command line needs the extra 'cli'. Install it with:\n"
            f'  {sys.executable} -m pip install "wenchang-core[cli]"\n'
        )
        return 2
    from wenchang.cli.app import run

    return run(sys.argv[1:])
