"""What the repository consists of, read from its own files."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
MADE = ROOT / ".dev"
"""Everything that `dev.py` makes lies here; deleting the folder is always safe."""

CONSTRAINTS = ROOT / "constraints.txt"
OTHER_PYTHONS = ("3.12", "3.13")


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """One published package: its folder, its distribution and its import name."""

    folder: Path
    distribution: str
    module: str
    extras: tuple[str, ...] = ()

    def requirement(self, *extras: str) -> str:
        """Return the argument for `pip install -e` with `extras`."""
        return f"{self.folder}[{','.join(extras)}]" if extras else str(self.folder)


@cache
def table(pyproject: Path) -> dict[str, Any]:
    """Return the parsed TOML file."""
    with pyproject.open("rb") as file:
        return tomllib.load(file)


@cache
def packages() -> dict[str, Package]:
    """Return every package with code by distribution name, core first."""
    found: dict[str, Package] = {}
    folders = [*sorted((ROOT / "packages").iterdir()), ROOT / "conformance"]
    for folder in sorted(folders, key=lambda path: path.name != "wenchang-core"):
        pyproject = folder / "pyproject.toml"
        if not pyproject.is_file():
            continue
        project = table(pyproject)["project"]
        (source,) = (folder / "src").iterdir()
        found[project["name"]] = Package(
            folder=folder,
            distribution=project["name"],
            module=source.name,
            extras=tuple(project.get("optional-dependencies", {})),
        )
    return found


def group(*names: str) -> tuple[str, ...]:
    """Return the requirements of the dependency groups `names` in the root `pyproject.toml`."""
    groups = table(ROOT / "pyproject.toml")["dependency-groups"]
    return tuple(requirement for name in names for requirement in groups[name])
