"""Adapters whose package is missing say what to install, and nothing loads a harness unasked."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


def run(script):
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, encoding="utf-8", check=True
    )
    return done.stdout.strip()


@pytest.mark.parametrize("adapter", ["deepagents", "anthropic"])
def test_a_missing_package_is_told_with_the_line_that_installs_it(adapter):
    told = run(
        f"""
import sys
sys.modules[{adapter!r}] = None
try:
    import wenchang.adapters.{adapter}
except ImportError as error:
    print(error)
"""
    )
    line = f'pip install "wenchang[{adapter}]"'
    assert told == f'wenchang.adapters.{adapter} needs the extra "{adapter}": {line}'


def test_importing_wenchang_and_its_files_loads_no_harness():
    loaded = run(
        """
import json, sys
import wenchang, wenchang.adapters, wenchang.files.store_backend, wenchang.files.composite
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""
    )
    assert not {"deepagents", "anthropic", "langgraph", "langchain_core", "re2", "anyio"} & set(
        json.loads(loaded)
    )
