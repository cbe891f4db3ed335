"""Data flows straight down, and importing one thing does not load another."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

LOADED_BY = """
import json, sys
before = set(sys.modules)
import {module}
print(json.dumps(sorted({{name.partition(".")[0] for name in set(sys.modules) - before}})))
"""

MODULES = (
    "wenchang",
    "wenchang.storage",
    "wenchang.storage.memory",
    "wenchang.storage.filesystem",
    "wenchang.core",
    "wenchang.transport",
    "wenchang.tools",
    "wenchang.schemas",
    "wenchang_sql",
    "wenchang_s3",
    "wenchang_gcs",
    "wenchang_azure",
)


def third_party(module: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", LOADED_BY.format(module=module)],
        cwd="/",
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    loaded = json.loads(done.stdout)
    return [
        name
        for name in loaded
        if name not in sys.stdlib_module_names
        and not name.startswith(("wenchang", "_sysconfigdata"))
    ]


@pytest.mark.parametrize("module", MODULES)
def test_importing_it_loads_no_third_party_module(module):
    assert third_party(module) == []


def test_no_module_imports_from_a_layer_above_its_own():
    program = Path(sysconfig.get_path("scripts")) / "lint-imports"
    if not program.exists():
        pytest.skip("import-linter is not in this environment")
    done = subprocess.run(
        [program, "--no-logo", "--config", "pyproject.toml", "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
