"""Tells, at the end of a run, how many members of the zoo the suite has found out."""

from __future__ import annotations

import pytest

VISIT = "zoo"
"""The property of a test that shows the suite one wrong backend; its value is what kind that is."""
ALONE = "zoo-alone"
"""The property of a member that fails nothing but what it breaks."""


@pytest.fixture
def visited(record_property):
    """Note that the suite is shown a member; later, that it failed nothing else."""

    def note(kind, *, alone=False):
        record_property(ALONE if alone else VISIT, kind)

    return note


def pytest_terminal_summary(terminalreporter):
    reports = [
        report
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, ())
        if report.when == "call"
    ]

    def count(name, kind, *outcomes):
        return sum(
            (name, kind) in report.user_properties and report.outcome in outcomes
            for report in reports
        )

    for kind in ("storages", "file backends"):
        shown = count(VISIT, kind, "passed", "failed")
        if shown:
            found = count(VISIT, kind, "passed")
            alone = count(ALONE, kind, "passed")
            terminalreporter.line(
                f"zoo: {found} of {shown} wrong {kind} failed by exactly the requirement they break "
                f"({alone} by it alone, the others also by what is named with it)"
            )
