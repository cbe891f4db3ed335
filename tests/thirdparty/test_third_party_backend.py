"""A stranger's backend, installed from wheels into an environment of its own, keeps the contract."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
THERE = Path(__file__).resolve().parent / "wenchang-dbm"
MODULE = THERE / "src" / "wenchang_dbm" / "__init__.py"
TUTORIAL = ROOT / "docs" / "contract" / "write-a-backend.md"


def run(*words: object) -> str:
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> Path:
    """A clean environment with wheels of core, the suite and the stranger's package."""
    wheels = tmp_path_factory.mktemp("wheels")
    for package in (ROOT / "packages" / "wenchang-core", ROOT / "conformance", THERE):
        run(
            *(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"),
            *("-w", wheels, package),
        )
    home = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", home)
    python = home / "bin" / "python"
    built = sorted(wheels.glob("*.whl"))
    assert len(built) == 3
    run(
        *(python, "-m", "pip", "install", "-q", "--disable-pip-version-check"),
        *("-c", ROOT / "constraints.txt", *built),
    )
    return python


def test_it_conforms_when_checked_by_its_url(python, tmp_path):
    out = run(python, "-m", "wenchang_conformance", f"dbm://{tmp_path}/store", "--profile", "quick")
    assert out.rstrip().endswith(": conforms")


def test_it_is_listed_beside_the_backends_of_core(python):
    out = run(python, "-m", "wenchang.storage")
    assert re.search(r"^dbm\b.*\bok\b", out, re.MULTILINE), out


def test_it_is_no_longer_than_the_tutorial_promises():
    lines = MODULE.read_text(encoding="utf-8").splitlines()
    assert len([line for line in lines if line.strip()]) <= 120


def test_the_tutorial_builds_exactly_this_package():
    parts = re.findall(
        r'^```python title="wenchang_dbm.py"\n(.*?)^```',
        TUTORIAL.read_text("utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    whole = "".join(parts)
    assert whole == MODULE.read_text(encoding="utf-8")
