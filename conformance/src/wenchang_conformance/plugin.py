"""The pytest plugin: explains failures, knows declared gaps, sums up, writes reports.

It acts only on cases of the suite. In a project that has none, it adds its options and its mark to
`--help` and `--markers`, and nothing else.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from wenchang_conformance.requirement import MARKER

if TYPE_CHECKING:
    from collections.abc import Generator

    from _pytest.terminal import TerminalReporter

    from wenchang_conformance.results import SubjectResult

__all__ = ["Collector"]

_PROPERTY: Final = "wenchang"
_COLLECTOR: Final = "wenchang-conformance-collector"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the suite."""
    group = parser.getgroup("wenchang", "wenchang storage conformance")
    group.addoption(
        "--wenchang-profile",
        dest="wenchang_profile",
        choices=("quick", "ci", "deep"),
        default=None,
        help="how much to prove and how hard to try (default: ci)",
    )
    group.addoption(
        "--wenchang-report",
        dest="wenchang_report",
        action="append",
        default=[],
        metavar="FILE",
        help="write a report: FILE.json, FILE.md or FILE.badge.json; may be repeated",
    )
    group.addoption(
        "--wenchang-gaps",
        dest="wenchang_gaps",
        default=None,
        metavar="FILE",
        help="declared deviations (default: the nearest conformance-gaps.toml)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark and what collects results."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}(*ids): the requirements of the wenchang storage contract that a case proves",
    )
    config.pluginmanager.register(Collector(config), _COLLECTOR)


class Collector:
    """Turns reports of cases into results, in each process, and results into a summary in one."""

    def __init__(self, config: pytest.Config) -> None:
        """Begin without results."""
        self._config = config
        self._is_worker = hasattr(config, "workerinput")
        self._runs: dict[str, _SubjectRun] = {}
        self.subjects: tuple[SubjectResult, ...] = ()

    # --- in the process that runs the case ---

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[Any]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Say in the report what it means for the contract."""
        report = yield
        mark = item.get_closest_marker(MARKER)
        if mark is not None:
            from wenchang_conformance import reporting

            reporting.annotate(item, call, report, mark.args, self._gaps_file(item))
        elif report.failed and _is_of_file_suite(item):
            from wenchang_conformance import reporting
            from wenchang_conformance.file_backend.manifest import requirements_of

            reporting.explain_file_requirements(
                report, requirements_of(getattr(item, "function", None))
            )
        return report

    def _gaps_file(self, item: pytest.Item) -> Path | None:
        from wenchang_conformance.gaps import find_gaps

        given = self._config.getoption("wenchang_gaps", None)
        if given is not None:
            return Path(given)
        return find_gaps(item.path.parent, self._config.rootpath)

    # --- in the process that sums up ---

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the result of a case."""
        if self._is_worker:
            return
        for name, value in report.user_properties:
            if name == _PROPERTY and isinstance(value, str):
                data = json.loads(value)
                run = self._runs.setdefault(data["subject"], _SubjectRun(data))
                run.add(report.nodeid, data["cases"])

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Judge each subject, write the reports, and fail the run for what only shows at its end."""
        if self._is_worker or not self._runs:
            return
        from wenchang_conformance.report import write_report

        self.subjects = tuple(run.judge() for run in self._runs.values())
        for file in self._config.getoption("wenchang_report") or ():
            write_report(Path(file), self.subjects)
        spoiled = any(subject.problems for subject in self.subjects)
        if spoiled and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """Print the table."""
        if not self.subjects:
            return
        from wenchang_conformance.report import table

        terminalreporter.section("wenchang storage conformance")
        for subject in self.subjects:
            for line in table(subject, everything=self._config.get_verbosity() > 0):
                terminalreporter.line(line)


def _is_of_file_suite(item: pytest.Item) -> bool:
    """Tell whether a test is one of `FileBackendConformance`."""
    module = getattr(getattr(item, "function", None), "__module__", "")
    return module.startswith("wenchang_conformance.file_backend.")


class _SubjectRun:
    """The results of one subject as they come in."""

    def __init__(self, data: dict[str, Any]) -> None:
        self._subject: str = data["subject"]
        self._profile: str = data["profile"]
        self._gaps_file: str | None = data["gaps_file"]
        self._cases: dict[str, list[dict[str, Any]]] = {}

    def add(self, nodeid: str, cases: list[dict[str, Any]]) -> None:
        """Add the results of one phase of a case; a failure is not undone by a later phase."""
        before = self._cases.get(nodeid)
        if before is None or before[0]["status"] == "passed":
            self._cases[nodeid] = cases

    def judge(self) -> SubjectResult:
        """Return the verdict on the subject."""
        from wenchang_conformance.gaps import read_gaps
        from wenchang_conformance.profiles import PROFILES
        from wenchang_conformance.results import CaseResult, judge
        from wenchang_conformance.suite import cases_by_requirement

        gaps = read_gaps(None if self._gaps_file is None else Path(self._gaps_file))
        cases = [CaseResult.from_data(data) for cases in self._cases.values() for data in cases]
        return judge(
            self._subject,
            self._profile,
            PROFILES[self._profile].ids,
            cases,
            gaps=gaps.of(self._subject),
            expected_cases=cases_by_requirement(),
            problems=gaps.problems,
        )
