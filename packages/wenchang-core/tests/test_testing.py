"""`wenchang.testing` re-exports the suites, and without the extra says what to install (mem_102)."""

from __future__ import annotations

import subprocess
import sys

from wenchang import testing

BLOCKED = """
import sys
sys.modules["wenchang_conformance"] = None
try:
    import wenchang.testing
except ImportError as error:
    print(error)
"""


def test_mem_102_the_suites_are_where_the_extra_promises_them():
    assert set(testing.__all__) >= {"ResolverConformance", "TransportConformance"}
    for name in testing.__all__:
        assert isinstance(getattr(testing, name), type)


def test_mem_102_without_the_extra_the_error_names_it_and_the_command():
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED],
        check=False,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
    )
    assert "needs the extra 'testing'" in done.stdout, done.stderr
    assert f'{sys.executable} -m pip install "wenchang-core[testing]"' in done.stdout
