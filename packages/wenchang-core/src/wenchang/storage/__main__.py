"""`python -m wenchang.storage`: list the storage backends, with nothing but the standard library."""

from __future__ import annotations

import sys

from wenchang.storage.registry import list_backends


def main() -> None:
    """Print one line for each backend."""
    for backend in list_backends():
        origin = f"{backend.distribution} {backend.version}".strip()
        sys.stdout.write(f"{backend.name}\t{backend.state}\t{origin}\t{backend.summary}\n")
        if backend.problem:
            sys.stdout.write(f"\t{backend.problem}\n")


if __name__ == "__main__":
    main()
