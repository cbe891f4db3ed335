"""The public surface: every public module with its `__all__`, read from the source.

A module of the conformance suite without `__all__` is internal; everywhere else it is a mistake.

`python tests/workspace/surface.py` prints it; written into `public_surface.txt` beside this file,
it is what the test compares with.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (*sorted((ROOT / "packages").glob("*/src")), ROOT / "conformance" / "src")
RECORD = Path(__file__).with_name("public_surface.txt")


def modules() -> Iterator[tuple[str, Path]]:
    """Yield name and file of each public module."""
    for source in SOURCES:
        for path in sorted(source.rglob("*.py")):
            parts = path.relative_to(source).with_suffix("").parts
            if parts[-1] == "__init__":
                parts = parts[:-1]
            internal = parts[0] == "wenchang_conformance" and exported(path) is None
            if not internal and not any(part.startswith("_") for part in parts):
                yield ".".join(parts), path


def exported(path: Path) -> tuple[str, ...] | None:
    """Return the names in `__all__`, None where the module has none."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and target.id == "__all__" and node.value is not None:
            return tuple(ast.literal_eval(node.value))
    return None


def surface() -> str:
    """Return the record: one line a module."""
    return "".join(f"{name}: {' '.join(exported(path) or ())}\n" for name, path in modules())


if __name__ == "__main__":
    sys.stdout.write(surface())
