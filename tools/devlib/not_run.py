"""A pytest plugin that writes down how a run ended and what it did not run.

Loaded by `dev.py test` with `-p devlib.not_run`; the file is named by WENCHANG_TEST_REPORT.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

NOT_APPLICABLE = ("unsupported:", "not applicable:")
"""How the reason of a skip begins that is no gap: what is tested there does not exist."""


def _reason(report: Any) -> str:
    """Return why a test or a whole module was skipped, without pytest's own prefix."""
    where = report.longrepr
    text = str(where[2]) if isinstance(where, tuple) else str(where)
    return text.removeprefix("Skipped: ")


def _is_gap(report: Any) -> bool:
    """Say whether something is missing: not where the reason says that it does not apply.

    The conformance suite tells with each case whether its profile asks for it; a case beyond the
    profile, which a storage has no hook for, is no gap either.
    """
    if _reason(report).lower().startswith(NOT_APPLICABLE):
        return False
    for name, value in report.user_properties:
        if name == "wenchang":
            return any(case["required"] for case in json.loads(value)["cases"])
    return True


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Write the report, in the process that has seen the results of all workers."""
    target = os.environ.get("WENCHANG_TEST_REPORT")
    if not target:
        return
    stats = terminalreporter.stats
    counts = {name: len(stats.get(name, ())) for name in ("passed", "failed", "error", "xfailed")}
    skipped = [
        [report.nodeid, _reason(report), _is_gap(report)] for report in stats.get("skipped", ())
    ]
    Path(target).write_text(json.dumps({"counts": counts, "skipped": skipped}), encoding="utf-8")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Leave the list of skips to the command's own summary; before the reporter reads the option."""
    if os.environ.get("WENCHANG_TEST_REPORT") and config.option.reportchars == "a":
        config.option.reportchars = "fEX"
