"""A pytest plugin that writes down how a run ended and what it did not run.

Loaded by `dev.py test` with `-p devlib.not_run`; the file is named by WENCHANG_TEST_REPORT.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest


def _reason(report: Any) -> str:
    """Return why a test or a whole module was skipped, without pytest's own prefix."""
    where = report.longrepr
    text = str(where[2]) if isinstance(where, tuple) else str(where)
    return text.removeprefix("Skipped: ")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Write the report, in the process that has seen the results of all workers."""
    target = os.environ.get("WENCHANG_TEST_REPORT")
    if not target:
        return
    stats = terminalreporter.stats
    counts = {name: len(stats.get(name, ())) for name in ("passed", "failed", "error", "xfailed")}
    skipped = [[report.nodeid, _reason(report)] for report in stats.get("skipped", ())]
    Path(target).write_text(json.dumps({"counts": counts, "skipped": skipped}), encoding="utf-8")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Show the command's own summary instead of the whole list of skips."""
    if os.environ.get("WENCHANG_TEST_REPORT") and config.option.reportchars == "a":
        config.option.reportchars = "fEX"
