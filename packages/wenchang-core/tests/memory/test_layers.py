"""What the modules of memory may know of each other, and of the adopter's scopes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from wenchang import paths
from wenchang.storage import Storage

PACKAGE = Path(paths.__file__).parent

# Where a scope has to be named at all: the defaults of the command line and of the configuration.
# Adapters speak of the roles of messages, which share a word with a customary scope.
# `settings.py` of the files holds the documented default of the configuration `[files] scope`.
NAMES_SCOPES = {"cli", "config.py", "adapters", "files/settings.py"}


def test_mem_004_no_module_names_a_scope() -> None:
    customary = {"user", "project", "organization", "organisation", "team", "org"}
    for source in PACKAGE.rglob("*.py"):
        inside = source.relative_to(PACKAGE)
        if inside.parts[0] in NAMES_SCOPES or inside.as_posix() in NAMES_SCOPES:
            continue
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant):
                assert node.value not in customary, f"{source.name}:{node.lineno}"


def test_mem_087_a_storage_has_five_methods() -> None:
    public = [name for name in vars(Storage) if not name.startswith("_")]
    assert public == ["get", "put", "put_if_version", "delete_if_version", "list_page"]


@pytest.mark.parametrize(
    ("module", "allowed"),
    [
        ("paths", set()),
        ("identity", {"errors", "paths"}),
        ("scope", {"errors", "identity", "paths"}),
    ],
)
def test_the_small_modules_import_only_what_lies_below_them(module: str, allowed: set[str]) -> None:
    assert _imports(module) <= {f"wenchang.{name}" for name in allowed}


def test_the_core_knows_neither_scopes_nor_transports() -> None:
    inner = ["core", "_drafts", "_writer", "_listing", "_objects", "_options", "index", "operators"]
    for module in inner:
        assert not _imports(module) & {"wenchang.scope", "wenchang.transport", "wenchang.tools"}


def _imports(module: str) -> set[str]:
    """Return which modules of the package a module imports, type-checking imports included."""
    source = (PACKAGE / f"{module}.py").read_text(encoding="utf-8")
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return {name for name in found if name.startswith("wenchang")}
